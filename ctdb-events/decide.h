/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which node refuses, when nodes do not fit together
 *
 * A starting node that is unfit with a running one refuses; a running node is
 * never turned by one that starts. Among nodes in the same state, those that
 * are fit with each other are a group: the largest goes on, of equal ones the
 * one with the lowest number; the rest refuse. So one node with a wrong mount
 * option stays out alone, and nodes that do not fit at all leave one of them
 * serving.
 */
#ifndef PINGPONG_CTDB_EVENTS_DECIDE_H
#define PINGPONG_CTDB_EVENTS_DECIDE_H

#include <stdbool.h>

#include "core/verdict/verdict.h"

/* This node, and the peers it was tested with */
#define DECIDE_MAX 17

struct party {
	unsigned pnn;
	bool running;
};

struct decision_input {
	unsigned num;
	struct party parties[DECIDE_MAX];	/* [0] is this node */
	/* of each pair, [lower][higher]; UNKNOWN: not tested */
	enum fitness fit[DECIDE_MAX][DECIDE_MAX];
};

/*
 * True: this node refuses, on account of parties[*because].
 */
bool decide_refuses(const struct decision_input *input, unsigned *because);

#endif
