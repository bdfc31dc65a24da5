/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>

#include "core/member/channel.h"
#include "ctdb-events/command.h"
#include "ctdb-events/ctdbconfig.h"

#define CONFIG_TIMEOUT_MS 2000

/* ctdb-config's exit status for a key that it does not know */
#define CONFIG_NO_KEY 2

struct ctdbconfig_state {
	struct tevent_context *ev;
	const char *program;
	const char *section;
	const char *const *key;
	char *value;
};

static int ask(struct tevent_req *req);
static void asked(struct tevent_req *subreq);

struct tevent_req *ctdbconfig_send(TALLOC_CTX *mem_ctx,
				   struct tevent_context *ev,
				   const struct ctdb_paths *paths,
				   const char *section,
				   const char *const *keys)
{
	struct ctdbconfig_state *state = NULL;
	struct tevent_req *req = NULL;
	int ret;

	req = tevent_req_create(mem_ctx, &state, struct ctdbconfig_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->section = section;
	state->key = keys;
	state->program = talloc_asprintf(state, "%s/ctdb-config",
					 paths->helpers);
	if (tevent_req_nomem(state->program, req)) {
		return tevent_req_post(req, ev);
	}
	ret = ask(req);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return tevent_req_post(req, ev);
	}
	return req;
}

static int ask(struct tevent_req *req)
{
	struct ctdbconfig_state *state = tevent_req_data(
		req, struct ctdbconfig_state);
	const char *argv[] = {
		state->program, "get", state->section, *state->key, NULL,
	};
	struct tevent_req *subreq = NULL;

	subreq = command_send(state, state->ev, argv, CONFIG_TIMEOUT_MS);
	if (subreq == NULL) {
		return ENOMEM;
	}
	tevent_req_set_callback(subreq, asked, req);
	return 0;
}

static void asked(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct ctdbconfig_state *state = tevent_req_data(
		req, struct ctdbconfig_state);
	char *output = NULL;
	int status = 0;
	int ret;

	ret = command_recv(subreq, state, &status, &output);
	TALLOC_FREE(subreq);
	if (ret == 0 && status != 0 && status != CONFIG_NO_KEY) {
		ret = EIO;
	}
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	output[strcspn(output, "\n")] = '\0';
	if (status == 0 && output[0] != '\0') {
		state->value = output;
		tevent_req_done(req);
		return;
	}
	state->key++;
	if (*state->key == NULL) {
		tevent_req_done(req);
		return;
	}
	ret = ask(req);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
	}
}

int ctdbconfig_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx, char **value,
		    const char **key)
{
	struct ctdbconfig_state *state = tevent_req_data(
		req, struct ctdbconfig_state);
	int ret = channel_req_error(req);

	*value = NULL;
	*key = NULL;
	if (ret == 0 && state->value != NULL) {
		*value = talloc_move(mem_ctx, &state->value);
		*key = *state->key;
	}
	tevent_req_received(req);
	return ret;
}
