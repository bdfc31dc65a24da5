/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One directory, checked on this node and with other nodes
 *
 * First on this node alone, and at the same time every other node is looked
 * for. Then with up to MAX_PEERS of those whose agents answer, running ones
 * first: a run with each, so that it is known with whom this node is fit. Last,
 * where it is unfit with several, these with each other, which tells who
 * refuses (ctdb-events/decide.h).
 *
 * A node that greets us meanwhile and was not to be found before is looked
 * for again: so, of nodes that start together, none overlooks the other.
 *
 * What runs and what starts is told by the cluster lock's target by ctdbd
 * (past init), by others by the services (past startup).
 */
#ifndef PINGPONG_CTDB_EVENTS_ACROSS_H
#define PINGPONG_CTDB_EVENTS_ACROSS_H

#include "core/checks/run.h"
#include "core/verdict/verdict.h"
#include "ctdb-events/nodes.h"
#include "ctdb-events/options.h"
#include "ctdb-events/reach.h"
#include "ctdb-events/target.h"

/* What is asked for; all of it must outlive the request */
struct across {
	const struct options *options;
	const char *worker;
	const struct ctdb_nodes *nodes;	/* own: is one of them */
	const struct reach *reach;
	const bool *greeted;		/* by PNN, NODES_MAX of them */
	const struct target *target;
	unsigned door;			/* DOOR_INIT, DOOR_AGENT */
	unsigned timeout_ms;
};

/* What came of one other node */
struct across_peer {
	const struct ctdb_node *node;
	bool running;
	bool reached;			/* its agent answered */
	bool unaware;			/* but knows of no such target (yet) */
	bool tested;			/* fitness says something */
	enum fitness fitness;		/* of both together */
	const char *why;		/* not fit, or not tested: one line */
	const char *remedy;		/* or NULL */
	struct run_result *result;	/* of the run with it, or NULL */
	struct verdict *verdict;
};

struct across_result {
	/* on this node alone */
	struct judgement local;
	int local_err;			/* the run could not be made */
	struct run_result *local_result;	/* NULL: local_err */
	struct verdict *local_verdict;

	struct across_peer *peers;	/* every other node */
	unsigned num_peers;
	unsigned num_fit, num_unfit;
	const struct across_peer *refused_by;	/* NULL: it goes on */
};

/* across_recv() returns 0 with *result, a child of mem_ctx, or ENOMEM. */
struct tevent_req *across_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			       const struct across *across);
int across_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		struct across_result **result);

/* "node 1 (10.0.0.2)" */
const char *across_node_name(TALLOC_CTX *mem_ctx,
			     const struct ctdb_node *node);

#endif
