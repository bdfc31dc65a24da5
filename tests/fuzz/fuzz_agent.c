/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A coordinator says anything: the input is all that an agent hears. It is
 * given no place, so that no worker is started.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/member/agent.h"
#include "tests/fuzz/fuzz.h"

static const char *no_place(TALLOC_CTX *mem_ctx, const char *place,
			    void *private_data)
{
	(void)mem_ctx;
	(void)private_data;
	fuzz_assert(place != NULL);
	return NULL;
}

static void ended(void *private_data)
{
	*(bool *)private_data = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tevent_context *ev = tevent_context_init(NULL);
	struct agent_session *session = NULL;
	bool over = false;
	ssize_t n = 0;
	int sock[2];
	int ret;

	ret = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock);
	fuzz_assert(ev != NULL && ret == 0);
	if (size > 0) {
		n = send(sock[1], data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	fuzz_assert(n >= 0 || errno == EAGAIN);
	shutdown(sock[1], SHUT_WR);
	session = agent_session_create(ev, ev, sock[0], sock[0], "/bin/false",
				       no_place, ended, &over);
	fuzz_assert(session != NULL);
	while (!over) {
		ret = tevent_loop_once(ev);
		fuzz_assert(ret == 0);
	}
	talloc_free(ev);
	close(sock[1]);
	return 0;
}
