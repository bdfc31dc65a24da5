/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The door for peers: other nodes' agents run their checks through it
 *
 * TCP on this node's own address. Only CTDB's nodes are let in, by the list
 * as it is at that moment; each connection begins with a greeting
 * (ctdb-events/greet.h) and goes on as an agent's session, in which a peer can
 * name only what the resolve function knows. Bounded: connections in all and
 * from one address, the time for the greeting, the life of a session, the size
 * of a message (core/member/wire.h).
 */
#ifndef PINGPONG_CTDB_EVENTS_PEERS_H
#define PINGPONG_CTDB_EVENTS_PEERS_H

#include "core/member/agent.h"
#include "ctdb-events/greet.h"
#include "ctdb-events/nodes.h"
#include "ctdb-events/tls.h"

struct peers;

struct peers_config {
	struct sockaddr_storage address;
	uint16_t port;
	const struct ctdb_paths *paths;
	const struct greeting *own;
	const struct tls_key *key;	/* NULL: plain */
	const char *worker;
	agent_resolve_fn resolve_fn;
	/* a node has greeted us; or NULL */
	void (*greeted_fn)(unsigned pnn, void *private_data);
	void *private_data;
};

/*
 * Open the door. What config points to must stay.
 *
 * Returns 0 with *peers, a child of mem_ctx (freeing it closes the door and
 * all that came through it); EADDRINUSE or another errno of the socket;
 * ENOMEM.
 */
int peers_open(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
	       const struct peers_config *config, struct peers **peers);

#endif
