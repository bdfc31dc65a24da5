/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reach another node's agent: connect, greet
 */
#ifndef PINGPONG_CTDB_EVENTS_REACH_H
#define PINGPONG_CTDB_EVENTS_REACH_H

#include <stdint.h>

#include "ctdb-events/greet.h"
#include "ctdb-events/nodes.h"
#include "ctdb-events/tls.h"

/* How this node reaches others; must outlive the requests */
struct reach {
	struct sockaddr_storage from;	/* own address, which is bound to */
	uint16_t port;
	const struct greeting *own;
	const struct tls_key *key;	/* NULL: plain */
	TALLOC_CTX *pumps;		/* parent of what encrypts: outlives
					 * the connections */
};

/*
 * timeout_ms: for the connection; whoever takes it has a few seconds more.
 *
 * reach_recv() returns 0 with *fd, the caller's, over which the peer now
 * serves a session, and *theirs; ECONNREFUSED: no agent listens; ETIMEDOUT,
 * EHOSTUNREACH, ...: no way there; ENOMSG: it does not greet; ECONNRESET: it
 * hung up (we are none of its nodes, or it is busy); EPROTO: another version;
 * ENOMEM.
 */
struct tevent_req *reach_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			      const struct reach *reach,
			      const struct sockaddr_storage *to,
			      unsigned timeout_ms);
int reach_recv(struct tevent_req *req, int *fd, struct greeting *theirs);

/* What such an errno means to a person */
const char *reach_why(int err);

#endif
