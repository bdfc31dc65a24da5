/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <time.h>

#include "core/member/channel.h"
#include "core/member/wire.h"

/* Time to read what lies there already */
#define LATE_MS 50

struct ask_state;

struct channel {
	struct wire *wire;		/* NULL: gone */
	json_t *hello;			/* NULL: not come, or taken */
	bool greeted;
	json_int_t last_id;
	struct ask_state *waiting;	/* list */
};

struct ask_state {
	struct tevent_req *req;
	struct tevent_context *ev;
	struct channel *channel;	/* NULL: not in its list */
	struct ask_state *next;
	json_int_t id;			/* 0: waits for the hello */
	json_t *answer;
};

static void ask_unlist(struct ask_state *state)
{
	struct ask_state **p = NULL;

	if (state->channel == NULL) {
		return;
	}
	for (p = &state->channel->waiting; *p != NULL; p = &(*p)->next) {
		if (*p == state) {
			*p = state->next;
			break;
		}
	}
	state->channel = NULL;
}

static void ask_list(struct ask_state *state, struct channel *channel)
{
	state->channel = channel;
	state->next = channel->waiting;
	channel->waiting = state;
}

static int channel_destructor(struct channel *channel)
{
	TALLOC_FREE(channel->wire);
	while (channel->waiting != NULL) {
		struct ask_state *state = channel->waiting;

		ask_unlist(state);
		tevent_req_error(state->req, ECONNRESET);
	}
	json_decref(channel->hello);
	return 0;
}

static void channel_frame(json_t *frame, void *private_data)
{
	struct channel *channel = talloc_get_type_abort(private_data,
							struct channel);
	json_int_t id = json_integer_value(json_object_get(frame, "id"));
	struct ask_state *state = NULL;

	if (!channel->greeted) {
		channel->greeted = true;
		channel->hello = json_incref(frame);
		id = 0;
	}
	for (state = channel->waiting; state != NULL; state = state->next) {
		if (state->id == id) {
			break;
		}
	}
	if (state == NULL) {
		return;
	}
	ask_unlist(state);
	state->answer = json_incref(frame);
	tevent_req_done(state->req);
}

static void channel_lost(int err, void *private_data)
{
	struct channel *channel = talloc_get_type_abort(private_data,
							struct channel);

	/* what answers is not who was asked for */
	err = err == EPROTO && !channel->greeted ? EPROTO : ECONNRESET;
	TALLOC_FREE(channel->wire);
	if (channel->waiting != NULL) {
		struct tevent_req *req = channel->waiting->req;

		/* the others by their time; usually there is none, and a
		 * callback may free the channel */
		ask_unlist(channel->waiting);
		tevent_req_error(req, (uint64_t)err);
	}
}

struct channel *channel_create(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			       int rfd, int wfd)
{
	struct channel *channel = talloc_zero(mem_ctx, struct channel);

	if (channel == NULL) {
		return NULL;
	}
	channel->wire = wire_create(channel, ev, rfd, wfd, channel_frame,
				    channel_lost, channel);
	if (channel->wire == NULL) {
		talloc_free(channel);
		return NULL;
	}
	talloc_set_destructor(channel, channel_destructor);
	return channel;
}

bool channel_gone(const struct channel *channel)
{
	return channel->wire == NULL;
}

uint64_t channel_now_ms(void)
{
	struct timespec ts = {};

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

struct timeval channel_deadline(unsigned timeout_ms)
{
	return tevent_timeval_current_ofs(timeout_ms / 1000,
					  timeout_ms % 1000 * 1000);
}

int channel_req_error(struct tevent_req *req)
{
	enum tevent_req_state how = TEVENT_REQ_INIT;
	uint64_t err = 0;
	bool failed;

	failed = tevent_req_is_error(req, &how, &err);
	if (!failed) {
		return 0;
	}
	switch (how) {
	case TEVENT_REQ_TIMED_OUT:
		return ETIMEDOUT;
	case TEVENT_REQ_NO_MEMORY:
		return ENOMEM;
	default:
		return err != 0 ? (int)err : EIO;
	}
}

static int ask_state_destructor(struct ask_state *state)
{
	ask_unlist(state);
	json_decref(state->answer);
	return 0;
}

static void ask_cleanup(struct tevent_req *req, enum tevent_req_state how)
{
	(void)how;
	ask_unlist(tevent_req_data(req, struct ask_state));
}

static void ask_time_over(struct tevent_context *ev, struct tevent_timer *te,
			  struct timeval now, void *private_data);

static bool ask_set_time(struct ask_state *state, unsigned ms)
{
	struct tevent_timer *te = tevent_add_timer(
		state->ev, state, channel_deadline(ms), ask_time_over, state);

	return te != NULL;
}

/*
 * What has come and was not read yet is this process's own lateness, not the
 * other side's silence.
 */
static void ask_time_over(struct tevent_context *ev, struct tevent_timer *te,
			  struct timeval now, void *private_data)
{
	struct ask_state *state = talloc_get_type_abort(private_data,
							struct ask_state);
	const struct channel *channel = state->channel;
	bool ok;

	(void)ev;
	(void)te;
	(void)now;
	if (channel != NULL && channel->wire != NULL &&
	    wire_unread(channel->wire)) {
		ok = ask_set_time(state, LATE_MS);
		if (ok) {
			return;
		}
	}
	tevent_req_error(state->req, ETIMEDOUT);
}

static struct tevent_req *ask_create(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     unsigned timeout_ms,
				     struct ask_state **pstate)
{
	struct tevent_req *req = NULL;
	struct ask_state *state = NULL;
	bool ok;

	req = tevent_req_create(mem_ctx, &state, struct ask_state);
	if (req == NULL) {
		return NULL;
	}
	state->req = req;
	state->ev = ev;
	talloc_set_destructor(state, ask_state_destructor);
	tevent_req_set_cleanup_fn(req, ask_cleanup);
	ok = ask_set_time(state, timeout_ms);
	if (!ok) {
		talloc_free(req);
		return NULL;
	}
	*pstate = state;
	return req;
}

static int ask_recv(struct tevent_req *req, json_t **answer)
{
	struct ask_state *state = tevent_req_data(req, struct ask_state);
	int ret = channel_req_error(req);

	*answer = ret == 0 ? json_incref(state->answer) : NULL;
	tevent_req_received(req);
	return ret;
}

struct tevent_req *channel_hello_send(TALLOC_CTX *mem_ctx,
				      struct tevent_context *ev,
				      struct channel *channel,
				      unsigned timeout_ms)
{
	struct ask_state *state = NULL;
	struct tevent_req *req = ask_create(mem_ctx, ev, timeout_ms, &state);

	if (req == NULL) {
		return NULL;
	}
	if (channel->hello != NULL) {
		state->answer = json_incref(channel->hello);
		tevent_req_done(req);
		return tevent_req_post(req, ev);
	}
	if (channel->wire == NULL) {
		tevent_req_error(req, ECONNRESET);
		return tevent_req_post(req, ev);
	}
	ask_list(state, channel);
	return req;
}

int channel_hello_recv(struct tevent_req *req, json_t **hello)
{
	int ret = ask_recv(req, hello);

	if (ret == 0 && !json_is_string(json_object_get(*hello, "hello"))) {
		json_decref(*hello);
		*hello = NULL;
		ret = EPROTO;
	}
	return ret;
}

struct tevent_req *channel_ask_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    struct channel *channel, json_t *frame,
				    int fd, unsigned timeout_ms)
{
	struct ask_state *state = NULL;
	struct tevent_req *req = ask_create(mem_ctx, ev, timeout_ms, &state);
	int ret;

	if (req == NULL || channel->wire == NULL) {
		json_decref(frame);
		if (req == NULL) {
			return NULL;
		}
		tevent_req_error(req, ECONNRESET);
		return tevent_req_post(req, ev);
	}
	state->id = ++channel->last_id;
	if (frame != NULL) {
		json_object_set_new(frame, "id", json_integer(state->id));
	}
	ret = wire_send(channel->wire, frame, fd);
	if (ret != 0) {
		tevent_req_error(req, ret == ENOMEM || ret == EMSGSIZE
					      ? ret : ECONNRESET);
		return tevent_req_post(req, ev);
	}
	ask_list(state, channel);
	return req;
}

int channel_ask_recv(struct tevent_req *req, json_t **answer)
{
	return ask_recv(req, answer);
}
