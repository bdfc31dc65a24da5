/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One run of the lock ring by some of the members, for the checks that are
 * made of it
 *
 * ringrun_create(), the caller's fields, ringrun_send(). What came of it is
 * in the struct; ringrun_recv() returns 0, or ENOMEM.
 */
#ifndef PINGPONG_CHECKS_RINGRUN_H
#define PINGPONG_CHECKS_RINGRUN_H

#include "core/checks/history.h"
#include "core/checks/lockstep.h"
#include "core/probe/ring.h"

struct ringrun {
	/* set by the check */
	struct run *run;
	unsigned *members;	/* numbers in the run */
	unsigned num;
	unsigned io;		/* enum ring_io */
	bool judged;		/* members tell their steps */
	uint64_t seed;		/* of when to linger */
	uint64_t enough;	/* turns of all together */
	unsigned max_ms;	/* but not longer than this, */
	uint64_t least;		/* unless it were less than this: */
	unsigned most_ms;	/* then at most so long */
	unsigned slice_ms;	/* 0: as the locks' times ask for */
	uint64_t nlocks;	/* 0: as few as these members need */
	const char *file;	/* goes on in this one; NULL: one of its own */
	uint64_t before;	/* turns that were made in it before */
	void (*slice_fn)(struct ringrun *rr, void *private_data);
	void *private_data;	/* told after each slice; or NULL */

	/* what came of it: outcome, why, evidence ... as of a script */
	struct script *out;
	struct probe_answer *last;	/* of each member's last slice */
	uint64_t turns;		/* of all members */
	uint64_t ns;		/* of all slices */
	uint64_t first_turns;	/* of the first slice, not yet steady */
	uint64_t first_ns;
	struct history *history;	/* of the slice, and what counts
					 * of those before */
	struct history_verdict verdict;	/* of all slices */
	uint64_t lost;		/* updates missing in the sum */
};

/* The first num members of the run; io: enum ring_io. NULL: no memory */
struct ringrun *ringrun_create(TALLOC_CTX *mem_ctx, struct run *run,
			       unsigned num, unsigned io);

struct tevent_req *ringrun_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev,
				struct ringrun *rr);
int ringrun_recv(struct tevent_req *req);

/* Turns a second of all together, by the steady part */
double ringrun_rate(const struct ringrun *rr);

#endif
