/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <jansson.h>

#include "core/member/agent.h"
#include "core/member/channel.h"
#include "ctdb-events/greet.h"

/* One that is longer is none */
#define MAX_LINE 512

struct greet_state {
	bool first;
	int fd;
	const struct greeting *own;
	struct greeting theirs;
	struct tevent_fd *fde;
	char line[MAX_LINE];
	size_t used;
};

static int say(const struct greet_state *state)
{
	const struct greeting *own = state->own;
	char line[MAX_LINE];
	ssize_t n;
	int len;

	len = snprintf(line, sizeof(line),
		       "{\"hello\":\"node\",\"protocol\":%d,\"oldest\":%d,"
		       "\"version\":\"%s\",\"pnn\":%u,\"running\":%s,"
		       "\"serving\":%s}\n",
		       AGENT_PROTOCOL, AGENT_PROTOCOL_OLDEST, own->version,
		       own->pnn, own->running ? "true" : "false",
		       own->serving ? "true" : "false");
	/* the connection is new: there is room for a line */
	n = send(state->fd, line, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
	return n == len ? 0 : ECONNRESET;
}

static int understand(struct greet_state *state)
{
	const char *hello = NULL, *version = "";
	int protocol = 0, oldest = 0, pnn = 0;
	int running = 0, serving = 0;
	json_t *frame = json_loadb(state->line, state->used, 0, NULL);
	int ret;

	ret = json_unpack(frame, "{ss si si ss si sb s?b}", "hello", &hello,
			  "protocol", &protocol, "oldest", &oldest,
			  "version", &version, "pnn", &pnn,
			  "running", &running, "serving", &serving);
	if (ret != 0 || strcmp(hello, "node") != 0 || pnn < 0 ||
	    oldest > AGENT_PROTOCOL || protocol < AGENT_PROTOCOL_OLDEST) {
		json_decref(frame);
		return EPROTO;
	}
	state->theirs.pnn = (unsigned)pnn;
	state->theirs.running = running != 0;
	state->theirs.serving = serving != 0;
	snprintf(state->theirs.version, sizeof(state->theirs.version), "%s",
		 version);
	json_decref(frame);
	return 0;
}

/*
 * Their line and not a byte more: what follows is for the session. Returns 0,
 * EAGAIN, EPROTO, ECONNRESET.
 */
static int hear(struct greet_state *state)
{
	char *start = state->line + state->used;
	size_t room = sizeof(state->line) - state->used;
	char *end = NULL;
	ssize_t n;

	if (room == 0) {
		return EPROTO;
	}
	n = recv(state->fd, start, room, MSG_PEEK | MSG_DONTWAIT);
	if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
		return EAGAIN;
	}
	if (n <= 0) {
		return ECONNRESET;
	}
	end = memchr(start, '\n', (size_t)n);
	if (end != NULL) {
		n = end + 1 - start;
	}
	n = recv(state->fd, start, (size_t)n, MSG_DONTWAIT);
	if (n <= 0) {
		return ECONNRESET;
	}
	state->used += (size_t)n;
	return end != NULL ? 0 : EAGAIN;
}

static void greet_readable(struct tevent_context *ev, struct tevent_fd *fde,
			   uint16_t flags, void *private_data)
{
	struct tevent_req *req = talloc_get_type_abort(private_data,
						       struct tevent_req);
	struct greet_state *state = tevent_req_data(req, struct greet_state);
	int ret;

	(void)ev;
	(void)fde;
	(void)flags;
	ret = hear(state);
	if (ret == EAGAIN) {
		return;
	}
	TALLOC_FREE(state->fde);
	if (ret == 0) {
		ret = understand(state);
	}
	if (!state->first && ret != ECONNRESET) {
		/* also to one that we do not understand: it shall know */
		int err = say(state);

		ret = ret == 0 ? err : ret;
	}
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	tevent_req_done(req);
}

struct tevent_req *greet_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			      int fd, bool first, const struct greeting *own,
			      unsigned timeout_ms)
{
	struct greet_state *state = NULL;
	struct tevent_req *req = NULL;
	bool ok;
	int ret = 0;

	req = tevent_req_create(mem_ctx, &state, struct greet_state);
	if (req == NULL) {
		return NULL;
	}
	state->first = first;
	state->fd = fd;
	state->own = own;
	state->fde = tevent_add_fd(ev, state, fd, TEVENT_FD_READ,
				   greet_readable, req);
	ok = tevent_req_set_endtime(req, ev, channel_deadline(timeout_ms));
	if (state->fde == NULL || !ok) {
		tevent_req_oom(req);
		return tevent_req_post(req, ev);
	}
	if (first) {
		ret = say(state);
	}
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return tevent_req_post(req, ev);
	}
	return req;
}

int greet_recv(struct tevent_req *req, struct greeting *theirs)
{
	struct greet_state *state = tevent_req_data(req, struct greet_state);
	int ret = channel_req_error(req);

	TALLOC_FREE(state->fde);
	*theirs = state->theirs;
	tevent_req_received(req);
	return ret;
}
