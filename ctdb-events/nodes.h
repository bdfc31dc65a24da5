/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * CTDB's nodes, by ctdbd's own rules
 *
 * The list is `[cluster] nodes list` (a file, or after a "!" a command that
 * prints it) where this version knows that key, else the file
 * CTDB_BASE/nodes: one address a line, blank lines passed over. A line that
 * begins with "#" is a deleted node; it counts for the numbers (PNN) of those
 * after it.
 *
 * This node is the one with `[cluster] node address`, or the first listed
 * one that this host has.
 */
#ifndef PINGPONG_CTDB_EVENTS_NODES_H
#define PINGPONG_CTDB_EVENTS_NODES_H

#include <stdbool.h>
#include <sys/socket.h>

#include "ctdb-events/ctdbconfig.h"

/* More are not read */
#define NODES_MAX 4096

struct ctdb_node {
	unsigned pnn;
	bool deleted;			/* without an address */
	const char *text;		/* the address as it is listed */
	struct sockaddr_storage address;	/* port 0 */
};

struct ctdb_nodes {
	struct ctdb_node *nodes;	/* talloc array; nodes[i].pnn is i */
	size_t num;
	const struct ctdb_node *own;	/* NULL: none of them is this host */
};

/* "10.0.0.1", "fd00::1"; false: not an address. Port 0. */
bool node_address_parse(const char *text, struct sockaddr_storage *address);

/* The same host, whatever the ports; an IPv4 address mapped into IPv6 is that
 * IPv4 address. */
bool node_address_equal(const struct sockaddr_storage *a,
			const struct sockaddr_storage *b);

socklen_t node_address_len(const struct sockaddr_storage *address);

/*
 * The list from its text. Returns 0, EINVAL with *bad (a child of mem_ctx):
 * the line that is no address; E2BIG, or ENOMEM.
 */
int nodes_parse(TALLOC_CTX *mem_ctx, const char *text,
		struct ctdb_nodes **nodes, const char **bad);

/* The node with this address, NULL: none (deleted ones have none) */
const struct ctdb_node *nodes_find(const struct ctdb_nodes *nodes,
				   const struct sockaddr_storage *address);

/*
 * Read the list and find this node in it.
 *
 * nodes_recv() returns 0 with *nodes (nodes->own may be NULL), or an errno
 * with *why, one line for a person; both children of mem_ctx.
 */
struct tevent_req *nodes_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			      const struct ctdb_paths *paths);
int nodes_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
	       struct ctdb_nodes **nodes, const char **why);

#endif
