/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pingpong sweep: the lock rate of 1, 2, .. n members and back, judged
 *
 * While it runs, each second is a line: on a terminal one that is written over
 * and over, on standard error; else plain ones on standard output.
 */
#include <stdio.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/hosts.h"
#include "cli/job.h"
#include "core/checks/sweep.h"

/* Members to start, and what lies between the steps */
#define SLACK_MS 30000
#define STEP_SLACK_MS 2000

/* What the classic instructions ask the ring for */
#define USES_SWEEP (USE_BIT(USE_CLUSTER_LOCK) | USE_BIT(USE_POSIX_LOCKING))

struct live {
	bool terminal;
	bool json;
	const char *mode;
	unsigned members;
};

static void put_second(FILE *f, const struct run_rate *rate)
{
	fprintf(f, "%-5s  %3u member%s  %10.0f turns/s", rate->mode,
		rate->members, rate->members == 1 ? " " : "s",
		rate->turns_per_s);
	if (rate->increment != 0) {
		fprintf(f, "  data increment %llu",
			(unsigned long long)rate->increment);
	}
}

static void second_over(const struct run_rate *rate, void *private_data)
{
	struct live *live = private_data;

	if (live->terminal) {
		if (live->mode != NULL && (rate->mode != live->mode ||
					   rate->members != live->members)) {
			fputc('\n', stderr);
		}
		fputs("\r\033[K", stderr);
		put_second(stderr, rate);
	} else if (!live->json) {
		put_second(stdout, rate);
		putchar('\n');
		fflush(stdout);
	}
	live->mode = rate->mode;
	live->members = rate->members;
}

static void live_over(const struct live *live)
{
	if (live->mode == NULL) {
		return;
	}
	if (live->terminal) {
		fputs("\n\n", stderr);
	} else if (!live->json) {
		putchar('\n');
	}
}

static unsigned sweep_ms(const struct check_args *args)
{
	unsigned n = 0, modes = 0;

	while (args->places[n] != NULL) {
		n++;
	}
	while (sweep_catalogue[modes] != NULL) {
		modes++;
	}
	return SLACK_MS + modes * sweep_steps(n > 1 ? n : 2) *
			  (args->step_s * 1000 + STEP_SLACK_MS);
}

static int sweep(TALLOC_CTX *mem_ctx, const struct check_args *args)
{
	struct live live = {
		.terminal = isatty(STDERR_FILENO) && isatty(STDOUT_FILENO),
		.json = args->json,
	};
	struct job job = {
		.args = args,
		.checks = sweep_catalogue,
		.timeout_ms = sweep_ms(args),
		.rate_fn = second_over,
		.private_data = &live,
		.quiet = true,
	};
	const struct report *report = NULL;
	int status;

	status = job_run(mem_ctx, &job);
	live_over(&live);
	if (status != 0) {
		return status;
	}
	report = job_judge(mem_ctx, &job, sweep_catalogue, USES_SWEEP);
	return report != NULL ? job_report(&job, report) : EX_SOFTWARE;
}

int cmd_sweep(int argc, const char **argv)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	struct check_args args = {};
	const char *error = NULL;
	int status = EX_USAGE;

	error = sweep_args_parse(frame, argc, argv, &args);
	if (error == NULL) {
		error = hosts_expand(frame, &args);
	}
	if (error != NULL) {
		cli_say("%s", error);
	} else {
		status = sweep(frame, &args);
	}
	talloc_free(frame);
	return status;
}
