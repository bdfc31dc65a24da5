/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "core/member/channel.h"
#include "ctdb-events/reach.h"

/* Who has taken the connection is there; on a busy host its greeting may take
 * longer than a host that is down is worth waiting for */
#define GREETING_MS 4000

struct reach_state {
	struct tevent_context *ev;
	const struct reach *reach;
	int fd;
	struct tevent_fd *fde;
	struct tevent_timer *expiry;	/* of the connection */
	struct greeting theirs;
};

static void reach_connected(struct tevent_context *ev, struct tevent_fd *fde,
			    uint16_t flags, void *private_data);
static void reach_expired(struct tevent_context *ev, struct tevent_timer *te,
			  struct timeval now, void *private_data);
static void reach_greeted(struct tevent_req *subreq);

static int reach_destructor(struct reach_state *state)
{
	TALLOC_FREE(state->fde);
	if (state->fd != -1) {
		close(state->fd);
	}
	return 0;
}

static void set_port(struct sockaddr_storage *address, uint16_t port)
{
	if (address->ss_family == AF_INET) {
		((struct sockaddr_in *)address)->sin_port = htons(port);
	} else {
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
	}
}

static int reach_connect(struct reach_state *state, const struct reach *reach,
			 const struct sockaddr_storage *to)
{
	struct sockaddr_storage address = *to;
	int one = 1;
	int ret;

	state->fd = socket(to->ss_family,
			   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (state->fd == -1) {
		return errno;
	}
	setsockopt(state->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* by which the other side knows us */
	ret = bind(state->fd, (const struct sockaddr *)&reach->from,
		   node_address_len(&reach->from));
	if (ret == -1) {
		return errno;
	}
	set_port(&address, reach->port);
	ret = connect(state->fd, (struct sockaddr *)&address,
		      node_address_len(&address));
	return ret == 0 || errno == EINPROGRESS ? 0 : errno;
}

struct tevent_req *reach_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			      const struct reach *reach,
			      const struct sockaddr_storage *to,
			      unsigned timeout_ms)
{
	struct reach_state *state = NULL;
	struct tevent_req *req = NULL;
	int ret;

	req = tevent_req_create(mem_ctx, &state, struct reach_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->reach = reach;
	state->fd = -1;
	talloc_set_destructor(state, reach_destructor);
	ret = reach_connect(state, reach, to);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return tevent_req_post(req, ev);
	}
	/* READ, too: without it tevent keeps to itself that it was refused */
	state->fde = tevent_add_fd(ev, state, state->fd,
				   TEVENT_FD_READ | TEVENT_FD_WRITE,
				   reach_connected, req);
	state->expiry = tevent_add_timer(ev, state,
					 channel_deadline(timeout_ms),
					 reach_expired, req);
	if (state->fde == NULL || state->expiry == NULL) {
		tevent_req_oom(req);
		return tevent_req_post(req, ev);
	}
	return req;
}

/* A busy process may find its time over and the answer there. */
static void reach_expired(struct tevent_context *ev, struct tevent_timer *te,
			  struct timeval now, void *private_data)
{
	struct tevent_req *req = talloc_get_type_abort(private_data,
						       struct tevent_req);
	struct reach_state *state = tevent_req_data(req, struct reach_state);
	struct pollfd poll_fd = { .fd = state->fd, .events = POLLOUT };
	int ret;

	(void)ev;
	(void)te;
	(void)now;
	state->expiry = NULL;
	ret = poll(&poll_fd, 1, 0);
	if (ret != 1) {
		tevent_req_error(req, ETIMEDOUT);
	}
}

static int reach_encrypt(struct reach_state *state)
{
	const struct reach *reach = state->reach;
	int net = state->fd;

	if (reach->key == NULL) {
		return 0;
	}
	state->fd = -1;
	return tls_wrap(reach->pumps, state->ev, net, false, reach->key,
			&state->fd);
}

static void reach_connected(struct tevent_context *ev, struct tevent_fd *fde,
			    uint16_t flags, void *private_data)
{
	struct tevent_req *req = talloc_get_type_abort(private_data,
						       struct tevent_req);
	struct reach_state *state = tevent_req_data(req, struct reach_state);
	struct tevent_req *subreq = NULL;
	socklen_t len = sizeof(int);
	int err = 0;

	(void)fde;
	(void)flags;
	TALLOC_FREE(state->fde);
	/* from here on the greeting has its own time */
	TALLOC_FREE(state->expiry);
	getsockopt(state->fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err == 0) {
		err = reach_encrypt(state);
	}
	if (err != 0) {
		tevent_req_error(req, (uint64_t)err);
		return;
	}
	subreq = greet_send(state, ev, state->fd, true,
			    state->reach->own, GREETING_MS);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, reach_greeted, req);
}

static void reach_greeted(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct reach_state *state = tevent_req_data(req, struct reach_state);
	int ret;

	ret = greet_recv(subreq, &state->theirs);
	TALLOC_FREE(subreq);
	if (ret == ETIMEDOUT) {
		/* the way there is free */
		ret = ENOMSG;
	}
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	tevent_req_done(req);
}

int reach_recv(struct tevent_req *req, int *fd, struct greeting *theirs)
{
	struct reach_state *state = tevent_req_data(req, struct reach_state);
	int ret = channel_req_error(req);

	*fd = -1;
	if (ret == 0) {
		*fd = state->fd;
		*theirs = state->theirs;
		state->fd = -1;
	}
	tevent_req_received(req);
	return ret;
}

const char *reach_why(int err)
{
	switch (err) {
	case ECONNREFUSED:
		return "no agent listens there (00.pingpong not enabled?)";
	case ETIMEDOUT:
		return "no answer (host down, or port blocked)";
	case ENOMSG:
		return "its agent does not answer";
	case ECONNRESET:
		return "its agent hung up (this node's address not among its "
		       "nodes, or another key?)";
	case EPROTO:
		return "its agent is of another version";
	default:
		return strerror(err);
	}
}
