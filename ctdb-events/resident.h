/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The resident agent of this node: serves its peers, checks with them, knows
 * the verdict
 */
#ifndef PINGPONG_CTDB_EVENTS_RESIDENT_H
#define PINGPONG_CTDB_EVENTS_RESIDENT_H

#include "ctdb-events/options.h"

struct resident;

/*
 * Open both doors. options and worker must stay. life: a pidfd of ctdbd
 * (taken): the agent's end. running: this node is past its init.
 *
 * Returns 0 with *resident, a child of mem_ctx, or an errno with *why, one
 * line for a person (the same).
 */
int resident_create(TALLOC_CTX *mem_ctx, const struct options *options,
		    const char *worker, int life, bool running,
		    struct resident **resident, const char **why);

/* Serve until ctdbd has ended, a newer agent says so, or SIGTERM. */
void resident_serve(struct resident *resident);

#endif
