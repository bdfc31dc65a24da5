/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/job.h"

/* A run ends by itself within its time; should it not, this ends it. */
#define GRACE_MS 5000

#define CONNECT_MAX_MS 20000

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

	job->progress.shown = !job->quiet && isatty(STDERR_FILENO) &&
			      term != NULL && strcmp(term, "dumb") != 0;
	job->progress.end = time(NULL) + job->timeout_ms / 1000;
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

/* What a host prints, in a line of its own */
static void host_said(const char *host, const char *line, void *private_data)
{
	const struct job *job = private_data;

	if (job->progress.shown) {
		fputs("\r\033[K", stderr);
	}
	cli_say("host '%s': %s", host, line);
}

static void rate_told(const struct run_rate *rate, void *private_data)
{
	const struct job *job = private_data;

	job->rate_fn(rate, job->private_data);
}

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
	unsigned ms = job->timeout_ms + GRACE_MS;
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

/* A login may take its time, but not all that there is */
static unsigned connect_ms(unsigned timeout_ms)
{
	return timeout_ms / 2 < CONNECT_MAX_MS ? timeout_ms / 2
					       : CONNECT_MAX_MS;
}

/* Returns 0, or the errno of what is not the file system's */
static int run(struct job *job, const char *worker)
{
	const struct run_options options = {
		.reach = {
			.worker = worker,
			.rsh = job->args->rsh,
			.links = job->args->links,
			.connect_ms = connect_ms(job->timeout_ms),
			.lifetime_ms = job->timeout_ms + GRACE_MS,
			.said_fn = host_said,
			.private_data = job,
		},
		.places = job->args->places,
		.checks = (const struct check **)job->checks,
		.level = job->args->level,
		.timeout_ms = job->timeout_ms,
		.thorough_ms = job->args->thorough_ms,
		.seed = job->args->seed,
		.history = job->history,
		.step_ms = job->args->step_s * 1000,
		.rate = job->rate_fn != NULL ? rate_told : NULL,
		.progress = progress_next,
		.private_data = job,
	};
	bool ok;
	int ret = 0;

	/* descriptors can be what is short, too */
	errno = ENOMEM;
	ok = watch(job);
	if (!ok) {
		return errno;
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
	case ENOTCONN:
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
			(job->timeout_ms + GRACE_MS) / 1000);
		return EX_SOFTWARE;
	}
	cli_say("%s", job->why != NULL ? job->why : strerror(job->err));
	return error_status(job->err);
}

int job_run(TALLOC_CTX *mem_ctx, struct job *job)
{
	const char *worker = cli_worker(mem_ctx);
	int ret;

	job->begin = tevent_timeval_current();
	if (job->ev == NULL) {
		job->ev = tevent_context_init(mem_ctx);
	}
	if (job->ev == NULL || worker == NULL) {
		cli_say("%s", strerror(ENOMEM));
		return EX_SOFTWARE;
	}
	/* a member that goes is told as such */
	signal(SIGPIPE, SIG_IGN);
	ret = run(job, worker);
	if (ret != 0) {
		job->err = ret;
	}
	return job->result != NULL ? 0 : no_verdict(job);
}

/* ---- the verdict --------------------------------------------------------- */

static double seconds_since(const struct timeval *begin)
{
	struct timeval now = tevent_timeval_current();
	struct timeval took = tevent_timeval_until(begin, &now);

	return (double)took.tv_sec + (double)took.tv_usec / 1e6;
}

struct report *job_judge(TALLOC_CTX *mem_ctx, const struct job *job,
			 const struct check *const *catalogue, unsigned uses)
{
	const struct check_args *args = job->args;
	const struct run_result *result = job->result;
	struct report *report = talloc(mem_ctx, struct report);
	struct verdict_input *input = talloc(mem_ctx, struct verdict_input);
	struct verdict *verdict = NULL;
	int ret = ENOMEM;

	if (report != NULL && input != NULL) {
		*input = (struct verdict_input){
			.catalogue = catalogue,
			.results = result->results,
			.num_results = result->num_results,
			.members = result->members,
			.num_members = result->num_members,
			.local = args->local,
			.same_directory = result->same_directory,
			.not_same = result->not_same,
		};
		ret = verdict_judge(mem_ctx, input, &verdict);
	}
	if (ret != 0) {
		cli_say("the verdict: %s", strerror(ret));
		return NULL;
	}
	*report = (struct report){
		.places = args->places,
		.started = job->begin.tv_sec,
		.duration_s = seconds_since(&job->begin),
		.uses = uses,
		.seed = args->seed,
		.input = input,
		.verdict = verdict,
		.exit = verdict_exit(verdict, uses),
	};
	return report;
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

static int write_page(const char *file, const struct report *report)
{
	FILE *f = fopen(file, "we");
	int ret, err;

	if (f == NULL) {
		return errno;
	}
	ret = report_html(report, f);
	err = fclose(f) == 0 ? 0 : errno;
	return ret != 0 ? ret : err;
}

int job_report(const struct job *job, const struct report *report)
{
	const struct check_args *args = job->args;
	int ret;

	if (args->html != NULL) {
		ret = write_page(args->html, report);
		if (ret != 0) {
			cli_say("--html '%s': %s", args->html, strerror(ret));
			return EX_CANTCREAT;
		}
	}
	ret = args->json ? print_json(report)
			 : report_text(report, stdout, in_color());
	if (ret != 0) {
		cli_say("the report: %s", strerror(ret));
		return ret == ENOMEM ? EX_SOFTWARE : EX_IOERR;
	}
	return cli_finish(report->exit);
}
