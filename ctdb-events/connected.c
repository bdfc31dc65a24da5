/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ctdb-events/command.h"
#include "ctdb-events/connected.h"
#include "ctdb-events/nodes.h"

/* Not ctdb's own -T, at whose end it kills its whole process group */
#define STATUS_MS 2000

struct tevent_req *connected_send(TALLOC_CTX *mem_ctx,
				  struct tevent_context *ev)
{
	static const char *const argv[] = { "ctdb", "-X", "status", NULL };

	return command_send(mem_ctx, ev, argv, STATUS_MS);
}

/* |Node|IP|Disconnected|Unknown|... */
void connected_parse(char *text, bool *connected)
{
	char *line = NULL, *save = NULL;

	for (line = strtok_r(text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		unsigned pnn = 0, disconnected = 1;
		int n;

		n = sscanf(line, "|%u|%*[^|]|%u|", &pnn, &disconnected);
		if (n == 2 && pnn < NODES_MAX) {
			connected[pnn] = disconnected == 0;
		}
	}
}

int connected_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		   bool **connected)
{
	char *output = NULL;
	int status = 0;
	int ret;

	*connected = NULL;
	ret = command_recv(req, mem_ctx, &status, &output);
	if (ret == 0 && status != 0) {
		ret = EIO;
	}
	if (ret == 0) {
		*connected = talloc_zero_array(mem_ctx, bool, NODES_MAX);
		ret = *connected != NULL ? 0 : ENOMEM;
	}
	if (ret == 0) {
		connected_parse(output, *connected);
	}
	talloc_free(output);
	return ret;
}
