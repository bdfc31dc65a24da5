/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A command visits the other nodes' agents, as this node's agent does
 *
 * It asks this node's agent how (ctdb-events/door.h), so that port, key and
 * cluster lock are those that ctdbd's options name.
 */
#ifndef PINGPONG_CTDB_EVENTS_VISIT_H
#define PINGPONG_CTDB_EVENTS_VISIT_H

#include "core/member/member.h"
#include "ctdb-events/nodes.h"

/*
 * Connect to the agents of all nodes but nodes->own, and make the places of a
 * check: this node's first, "HOST:NAME" for each that answered.
 *
 * directory: as this node has it, a share's path; NULL: the cluster lock's.
 * said_fn: told of each node that takes no part, one line.
 *
 * Returns 0 with *places (NULL-terminated) and *links (of the same hosts;
 * their descriptors are the caller's), children of mem_ctx; or an errno with
 * *why, one line: ENOENT: there is no cluster lock to check; EHOSTUNREACH: no
 * agent here, or of no other node; ENOMEM. Encrypted connections live as long
 * as mem_ctx, and while ev runs.
 */
int visit_nodes(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
		const struct ctdb_nodes *nodes, const char *directory,
		void (*said_fn)(const char *line), const char ***places,
		struct member_link **links, const char **why);

#endif
