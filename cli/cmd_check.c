/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pingpong check: run, judge, record, report
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "core/config.h"
#include "core/report/report.h"
#include "core/verdict/store.h"

/* A run ends by itself within its time; should it not, this ends it. */
#define GRACE_MS 5000

struct progress {
	bool shown;		/* standard error is a terminal */
	struct tevent_timer *tick;
	const char *check;	/* NULL: not begun, or over */
	unsigned done, total;
	time_t end;
};

struct job {
	const struct check_args *args;
	struct tevent_context *ev;
	struct tevent_req *req;		/* NULL: over */
	struct progress progress;
	FILE *history;			/* or NULL */
	int signal;			/* that ended it, or 0 */
	bool late;
	int err;
	struct run_result *result;
	const char *why;
};

/* ---- progress: one line, written over and over --------------------------- */

static void progress_show(const struct progress *progress)
{
	time_t now = time(NULL);

	fprintf(stderr, "\r\033[K%s (%u of %u), at most %lld s left",
		progress->check, progress->done + 1, progress->total,
		now < progress->end ? (long long)(progress->end - now) : 0);
}

static void progress_tick(struct tevent_context *ev, struct tevent_timer *te,
			  struct timeval now, void *private_data)
{
	struct job *job = private_data;

	(void)te;
	(void)now;
	if (job->progress.check != NULL) {
		progress_show(&job->progress);
	}
	job->progress.tick = tevent_add_timer(
		ev, ev, tevent_timeval_current_ofs(1, 0), progress_tick, job);
}

static void progress_next(const char *check, unsigned done, unsigned total,
			  void *private_data)
{
	struct job *job = private_data;
	struct progress *progress = &job->progress;

	progress->check = check;
	progress->done = done;
	progress->total = total;
	if (progress->shown && check != NULL) {
		progress_show(progress);
	}
}

static void progress_begin(struct job *job)
{
	const char *term = getenv("TERM");

	job->progress.shown = isatty(STDERR_FILENO) && term != NULL &&
			      strcmp(term, "dumb") != 0;
	job->progress.end = time(NULL) + job->args->timeout_ms / 1000;
	if (job->progress.shown) {
		progress_tick(job->ev, NULL, (struct timeval){}, job);
	}
}

static void progress_end(struct job *job)
{
	TALLOC_FREE(job->progress.tick);
	if (job->progress.shown) {
		fputs("\r\033[K", stderr);
	}
}

/* ---- the run ------------------------------------------------------------- */

static void run_done(struct tevent_req *req)
{
	struct job *job = tevent_req_callback_data_void(req);

	job->err = run_recv(req, job->ev, &job->result, &job->why);
	TALLOC_FREE(job->req);
}

static void interrupted(struct tevent_context *ev, struct tevent_signal *se,
			int signum, int count, void *siginfo,
			void *private_data)
{
	struct job *job = private_data;

	(void)ev;
	(void)se;
	(void)count;
	(void)siginfo;
	job->signal = signum;
	TALLOC_FREE(job->req);
}

static void too_late(struct tevent_context *ev, struct tevent_timer *te,
		     struct timeval now, void *private_data)
{
	struct job *job = private_data;

	(void)ev;
	(void)te;
	(void)now;
	job->late = true;
	TALLOC_FREE(job->req);
}

static bool watch(struct job *job)
{
	unsigned ms = job->args->timeout_ms + GRACE_MS;
	const void *sigint = NULL, *sigterm = NULL, *timer = NULL;

	sigint = tevent_add_signal(job->ev, job->ev, SIGINT, 0, interrupted,
				   job);
	sigterm = tevent_add_signal(job->ev, job->ev, SIGTERM, 0, interrupted,
				    job);
	timer = tevent_add_timer(job->ev, job->ev,
				 tevent_timeval_current_ofs(ms / 1000, 0),
				 too_late, job);
	return sigint != NULL && sigterm != NULL && timer != NULL;
}

/* Returns 0, or the errno of what is not the file system's */
static int run(struct job *job, const char *worker)
{
	const struct run_options options = {
		.reach = { .worker = worker, .rsh = job->args->rsh },
		.places = job->args->places,
		.checks = job->args->checks,
		.level = job->args->level,
		.timeout_ms = job->args->timeout_ms,
		.thorough_ms = job->args->thorough_ms,
		.seed = job->args->seed,
		.history = job->history,
		.progress = progress_next,
		.private_data = job,
	};
	bool ok;
	int ret = 0;

	ok = watch(job);
	if (!ok) {
		return ENOMEM;
	}
	job->req = run_send(job->ev, job->ev, &options);
	if (job->req == NULL) {
		return ENOMEM;
	}
	tevent_req_set_callback(job->req, run_done, job);
	progress_begin(job);
	while (job->req != NULL && ret == 0) {
		ret = tevent_loop_once(job->ev);
	}
	progress_end(job);
	return ret == 0 ? 0 : EIO;
}

/* ---- why there is no verdict --------------------------------------------- */

static int error_status(int err)
{
	switch (err) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EEXIST:
		return EX_USAGE;
	case EHOSTUNREACH:
	case EPROTO:
		return EX_UNAVAILABLE;
	case EROFS:
	case ENOSPC:
	case EDQUOT:
	case EMLINK:
		return EX_CANTCREAT;
	case EACCES:
	case EPERM:
		return EX_NOPERM;
	default:
		return EX_SOFTWARE;
	}
}

static int no_verdict(const struct job *job)
{
	if (job->signal != 0) {
		return 128 + job->signal;
	}
	if (job->late) {
		cli_say("no result within %u s",
			(job->args->timeout_ms + GRACE_MS) / 1000);
		return EX_SOFTWARE;
	}
	cli_say("%s", job->why != NULL ? job->why : strerror(job->err));
	return error_status(job->err);
}

/* ---- the record ---------------------------------------------------------- */

/* The uses that the record may tell: all, or of a partial run what it found */
static unsigned uses_tested(const struct check_args *args,
			    const struct verdict *verdict)
{
	unsigned tested = 0;
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		if (args->all || verdict->uses[i].fitness != UNKNOWN) {
			tested |= USE_BIT(i);
		}
	}
	return tested;
}

static int store_member(TALLOC_CTX *mem_ctx, const struct job *job,
			const struct member_info *member,
			const struct verdict *verdict)
{
	unsigned tested = uses_tested(job->args, verdict);
	struct member_info copy = *member;

	if (member->path[0] != '/') {
		/* where it is relative to is forgotten */
		copy.path = member->resolved;
	}
	return store_write(STATEDIR, &copy, verdict, tested, time(NULL),
			   names_join(mem_ctx, job->args->places));
}

static void store(TALLOC_CTX *mem_ctx, const struct job *job,
		  const struct verdict *verdict)
{
	const char **places = job->args->places;
	const struct run_result *result = job->result;
	size_t i;
	int ret;

	for (i = 0; i < result->num_members; i++) {
		const struct member_info *member = result->members[i];
		unsigned number = member->number;

		/* two members at one place; HOST: is no part of the path */
		if (i > 0 && places[1] == NULL) {
			break;
		}
		if (strcmp(member->path, places[number]) != 0) {
			continue;
		}
		ret = store_member(mem_ctx, job, member, verdict);
		if (ret != 0) {
			cli_say("'%s': not recorded in '%s': %s",
				places[number], STATEDIR, cli_store_error(ret));
			break;
		}
	}
}

/* ---- the report ---------------------------------------------------------- */

static bool in_color(void)
{
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	return isatty(STDOUT_FILENO) &&
	       (no_color == NULL || no_color[0] == '\0') && term != NULL &&
	       strcmp(term, "dumb") != 0;
}

static int print_json(const struct report *report)
{
	json_t *json = report_json(report);
	int ret;

	if (json == NULL) {
		return ENOMEM;
	}
	ret = json_dumpf(json, stdout, JSON_INDENT(2));
	json_decref(json);
	putchar('\n');
	return ret == 0 ? 0 : EIO;
}

static int print_report(const struct check_args *args,
			const struct report *report)
{
	int ret;

	ret = args->json ? print_json(report)
			 : report_text(report, stdout, in_color());
	if (ret != 0) {
		cli_say("the report: %s", strerror(ret));
		return ret == ENOMEM ? EX_SOFTWARE : EX_IOERR;
	}
	return cli_finish(report->exit);
}

static int judge(TALLOC_CTX *mem_ctx, const struct job *job,
		 struct report *report)
{
	const struct check_args *args = job->args;
	const struct run_result *result = job->result;
	const struct verdict_input input = {
		.results = result->results,
		.num_results = result->num_results,
		.members = result->members,
		.num_members = result->num_members,
		.local = args->local,
		.same_directory = result->same_directory,
		.not_same = result->not_same,
	};
	struct verdict *verdict = NULL;
	int ret;

	ret = verdict_judge(mem_ctx, &input, &verdict);
	if (ret != 0) {
		cli_say("the verdict: %s", strerror(ret));
		return EX_SOFTWARE;
	}
	report->input = &input;
	report->verdict = verdict;
	report->exit = verdict_exit(verdict, args->uses);
	if (args->store && geteuid() == 0) {
		store(mem_ctx, job, verdict);
	}
	return print_report(args, report);
}

/* ---- all of it ----------------------------------------------------------- */

static double seconds_since(const struct timeval *begin)
{
	struct timeval now = tevent_timeval_current();
	struct timeval took = tevent_timeval_until(begin, &now);

	return (double)took.tv_sec + (double)took.tv_usec / 1e6;
}

/* Returns 0 or an exit status */
static int history_open(struct job *job)
{
	const char *path = job->args->history;

	if (path == NULL) {
		return 0;
	}
	job->history = fopen(path, "we");
	if (job->history == NULL) {
		cli_say("--history '%s': %s", path, strerror(errno));
		return EX_CANTCREAT;
	}
	return 0;
}

/* As the exit status, unless the history could not be written */
static int history_close(struct job *job, int status)
{
	int failed, ret;

	if (job->history == NULL) {
		return status;
	}
	failed = ferror(job->history);
	ret = fclose(job->history);
	if (failed == 0 && ret == 0) {
		return status;
	}
	cli_say("--history '%s': it could not be written as a whole",
		job->args->history);
	return EX_IOERR;
}

static int check(TALLOC_CTX *mem_ctx, const struct check_args *args)
{
	struct timeval begin = tevent_timeval_current();
	struct job job = { .args = args };
	struct report report = {
		.places = args->places,
		.started = begin.tv_sec,
		.uses = args->uses,
		.seed = args->seed,
	};
	const char *worker = cli_worker(mem_ctx);
	int ret, status;

	job.ev = tevent_context_init(mem_ctx);
	if (job.ev == NULL || worker == NULL) {
		cli_say("%s", strerror(ENOMEM));
		return EX_SOFTWARE;
	}
	status = history_open(&job);
	if (status != 0) {
		return status;
	}
	/* a member that goes is told as such */
	signal(SIGPIPE, SIG_IGN);
	ret = run(&job, worker);
	if (ret != 0) {
		job.err = ret;
	}
	report.duration_s = seconds_since(&begin);
	status = job.result == NULL ? no_verdict(&job)
				    : judge(mem_ctx, &job, &report);
	return history_close(&job, status);
}

int cmd_check(int argc, const char **argv)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	struct check_args args = {};
	const char *error = NULL;
	int status = EX_USAGE;

	error = check_args_parse(frame, argc, argv, &args);
	if (error != NULL) {
		cli_say("%s", error);
	} else {
		status = check(frame, &args);
	}
	talloc_free(frame);
	return status;
}
