/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The file of --history: every operation of a run, one JSON object a line
 *
 * The first line is what the run was: {"history": 1, "pingpong": VERSION,
 * "seed": N, "places": [...], "checks": [...]}. Each other one is an
 * operation of a member:
 *
 * {"check": NAME, "member": N, "invoked_ns": N, "answered_ns": N,
 *  "request": {"op": NAME, ...}, "answer": {...}}
 *
 * Requests and answers are those of core/probe/probe.h, without what is zero;
 * an answer's "err" is the errno of the operation. In place of an answer
 * "lost" names the errno of a call that had none. "kill" is the SIGKILL of a
 * worker. Times are CLOCK_MONOTONIC of the host that ran the command; those of
 * a ring's operations come from the members' clocks, and are widened by what
 * these may differ where the members are on several hosts. A ring's
 * operations follow the calls in which they were made and told.
 */
#ifndef PINGPONG_CHECKS_RECORD_H
#define PINGPONG_CHECKS_RECORD_H

#include <stdio.h>

#include "core/checks/history.h"
#include "core/checks/run.h"

/* Each does nothing when f is NULL; errors stay with the file (ferror). */

void record_begin(FILE *f, const struct run_options *options);

/* err: 0, or why there is no answer */
void record_call(FILE *f, const char *check, unsigned member,
		 const struct probe_request *request, int err,
		 const struct probe_answer *answer, uint64_t invoked_ns,
		 uint64_t answered_ns);
void record_kill(FILE *f, const char *check, unsigned member, uint64_t at_ns);

/* Operations of a ring; members: the run's numbers of the ring's; width: bytes
 * of a counter */
void record_ring(FILE *f, const char *check, const unsigned *members,
		 const struct history_op *ops, size_t num, unsigned io,
		 unsigned width);

#endif
