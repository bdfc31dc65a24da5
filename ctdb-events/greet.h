/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Two nodes' agents greet each other
 *
 * Over a new connection the one that connected says
 *
 *   {"hello":"node","protocol":1,"oldest":1,"version":V,"pnn":N,"running":B,
 *    "serving":B}
 *
 * and is answered with the same of the other node; then the other one serves
 * an agent's session (core/member/agent.h) on the same connection. Since the
 * one that connects speaks first, who answers knows of it before it tells its
 * own state: of two nodes that start together, one that was told "not running"
 * is known to the other when that one decides.
 */
#ifndef PINGPONG_CTDB_EVENTS_GREET_H
#define PINGPONG_CTDB_EVENTS_GREET_H

#include <stdbool.h>
#include <talloc.h>
#include <tevent.h>

struct greeting {
	unsigned pnn;
	bool running;		/* past its own init */
	bool serving;		/* past its own startup */
	char version[32];
};

/*
 * Greet over a descriptor, which stays the caller's. first: we connected.
 * own: as it is when it is sent; must outlive the request.
 *
 * greet_recv() returns 0 with *theirs; ETIMEDOUT, ECONNRESET; EPROTO: no
 * greeting, or another protocol version; ENOMEM.
 */
struct tevent_req *greet_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			      int fd, bool first, const struct greeting *own,
			      unsigned timeout_ms);
int greet_recv(struct tevent_req *req, struct greeting *theirs);

#endif
