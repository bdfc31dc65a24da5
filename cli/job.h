/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One run that a command makes, with its progress, its end and its report
 *
 * job_run(), then with the verdict job_report().
 */
#ifndef PINGPONG_CLI_JOB_H
#define PINGPONG_CLI_JOB_H

#include <time.h>

#include "cli/args.h"
#include "core/report/report.h"

struct progress {
	bool shown;		/* standard error is a terminal */
	struct tevent_timer *tick;
	const char *check;	/* NULL: not begun, or over */
	unsigned done, total;
	time_t end;
};

struct job {
	/* set by the caller */
	const struct check_args *args;
	const struct check *const *checks;	/* NULL-terminated */
	unsigned timeout_ms;		/* for all of it */
	FILE *history;			/* or NULL */
	void (*rate_fn)(const struct run_rate *rate, void *private_data);
	void *private_data;		/* told each second of a sweep */
	bool quiet;			/* no line of progress */
	struct tevent_context *ev;	/* or NULL: job_run() makes one */

	struct timeval begin;
	struct tevent_req *req;		/* NULL: over */
	struct progress progress;
	int signal;			/* that ended it, or 0 */
	bool late;
	int err;
	struct run_result *result;
	const char *why;
};

/* Returns 0 with job->result, a child of mem_ctx, or the exit status of what
 * went wrong, which was told. */
int job_run(TALLOC_CTX *mem_ctx, struct job *job);

/* Judge what job_run() has found, by a catalogue as in struct verdict_input.
 * report, *input and what it points to become children of mem_ctx, NULL:
 * there is no memory, which was told. */
struct report *job_judge(TALLOC_CTX *mem_ctx, const struct job *job,
			 const struct check *const *catalogue, unsigned uses);

/* The report as the arguments ask for it. Returns the exit status. */
int job_report(const struct job *job, const struct report *report);

#endif
