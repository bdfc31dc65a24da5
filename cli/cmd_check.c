/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pingpong check: run, judge, record, report
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/hosts.h"
#include "cli/job.h"
#include "core/config.h"
#include "core/report/baseline.h"
#include "core/verdict/store.h"

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

/* ---- all of it ----------------------------------------------------------- */

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

#define BASELINES STATEDIR "/baselines"

/* Before the run, which takes its time. Returns 0 or an exit status */
static int baseline_open(const char *name, json_t **baseline)
{
	int ret;

	if (name == NULL) {
		return 0;
	}
	ret = baseline_load(BASELINES, name, baseline);
	if (ret == ENOENT) {
		cli_say("--compare '%s': expected a name that was given to "
			"--save before", name);
		return EX_USAGE;
	}
	if (ret != 0) {
		cli_say("--compare '%s': %s", name,
			ret == EINVAL ? "no baseline" : strerror(ret));
		return ret == EACCES ? EX_NOPERM : EX_SOFTWARE;
	}
	return 0;
}

/* Returns 0 or an exit status */
static int baselines(TALLOC_CTX *mem_ctx, const struct check_args *args,
		     const json_t *baseline, struct report *report)
{
	struct baseline_result *result = NULL;
	int ret;

	if (baseline != NULL) {
		ret = baseline_compare(mem_ctx, baseline, args->compare,
				       report, &result);
		if (ret != 0) {
			cli_say("--compare '%s': %s", args->compare,
				ret == EXDEV ? "it is of other places"
					     : strerror(ret));
			return ret == EXDEV ? EX_USAGE : EX_SOFTWARE;
		}
		report->compared = result;
	}
	if (args->save != NULL) {
		ret = baseline_save(BASELINES, args->save, report);
		if (ret != 0) {
			cli_say("--save '%s': %s", args->save, strerror(ret));
			return ret == EACCES || ret == EPERM ? EX_NOPERM
							     : EX_CANTCREAT;
		}
	}
	return 0;
}

static int judge(TALLOC_CTX *mem_ctx, const struct job *job,
		 const json_t *baseline)
{
	const struct check_args *args = job->args;
	struct report *report = job_judge(mem_ctx, job, NULL, args->uses);
	int status;

	if (report == NULL) {
		return EX_SOFTWARE;
	}
	if (args->store && geteuid() == 0) {
		store(mem_ctx, job, report->verdict);
	}
	status = baselines(mem_ctx, args, baseline, report);
	return status == 0 ? job_report(job, report) : status;
}

static int check(TALLOC_CTX *mem_ctx, struct check_args *args)
{
	struct job job = {
		.args = args,
		.checks = args->checks,
		.timeout_ms = args->timeout_ms,
		.ev = tevent_context_init(mem_ctx),
	};
	json_t *baseline = NULL;
	int status;

	if (job.ev == NULL) {
		cli_say("%s", strerror(ENOMEM));
		return EX_SOFTWARE;
	}
	status = baseline_open(args->compare, &baseline);
	if (status == 0) {
		status = hosts_visit(mem_ctx, job.ev, args);
	}
	if (status == 0) {
		status = history_open(&job);
	}
	if (status == 0) {
		status = job_run(mem_ctx, &job);
	}
	if (status == 0) {
		status = judge(mem_ctx, &job, baseline);
	}
	json_decref(baseline);
	return history_close(&job, status);
}

int cmd_check(int argc, const char **argv)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	struct check_args args = {};
	const char *error = NULL;
	int status = EX_USAGE;

	error = check_args_parse(frame, argc, argv, &args);
	if (error == NULL) {
		error = hosts_expand(frame, &args);
	}
	if (error != NULL) {
		cli_say("%s", error);
	} else {
		status = check(frame, &args);
	}
	talloc_free(frame);
	return status;
}
