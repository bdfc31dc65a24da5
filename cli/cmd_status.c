/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pingpong status, pingpong forget PATH: what the verdict store holds
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "cli/cli.h"
#include "core/config.h"
#include "core/report/prometheus.h"
#include "core/verdict/store.h"
#ifdef HAVE_CTDB_EVENTS
#include "ctdb-events/events.h"
#endif

#define MOUNTINFO "/proc/self/mountinfo"

static int store_failed(int err)
{
	cli_say("'%s': %s", STATEDIR, cli_store_error(err));
	return err == EACCES || err == EPERM ? EX_NOPERM : EX_SOFTWARE;
}

/* ---- status -------------------------------------------------------------- */

static void put_age(time_t age)
{
	if (age < 120) {
		printf("%lld s ago", (long long)age);
	} else if (age < 7200) {
		printf("%lld min ago", (long long)age / 60);
	} else if (age < 2 * 86400) {
		printf("%lld h ago", (long long)age / 3600);
	} else {
		printf("%lld days ago", (long long)age / 86400);
	}
}

static void put_names(const char *before, const char *const *names)
{
	for (; names != NULL && *names != NULL; names++) {
		printf("%s%s", before, *names);
		before = ", ";
	}
}

static void put_use(enum use use, const struct stored_use *stored)
{
	printf("  %-14s %-8s %-8s ", use_name(use),
	       fitness_name(stored->fitness),
	       stored->scope == SCOPE_CLUSTER ? "cluster" : "local");
	put_age(time(NULL) - stored->when);
	printf(", %s", stored->with);
	if (stored->because != NULL && stored->because[0] != NULL) {
		put_names(": ", stored->because);
	} else if (stored->reason != NULL) {
		printf(": %s", stored->reason);
	}
	put_names("; mended by ", stored->mended_by);
	putchar('\n');
}

static void put_record(const char *path, int err,
		       const struct stored_record *record, void *private_data)
{
	unsigned i;

	(void)private_data;
	switch (err) {
	case 0:
		break;
	case ESTALE:
		printf("%s\n  its mount is another one now: check again\n",
		       path);
		return;
	case EINVAL:
		printf("%s\n  its record is corrupt: check again\n", path);
		return;
	default:
		printf("%s\n  its record: %s\n", path, strerror(err));
		return;
	}
	printf("%s (%s, %s)\n", path, record->fstype, record->source);
	for (i = 0; i < USE_COUNT; i++) {
		if (record->uses[i].present) {
			put_use(i, &record->uses[i]);
		}
	}
}

/* What CTDB's resident agent knows, where there is one or should be */
static void put_agent(TALLOC_CTX *mem_ctx)
{
#ifdef HAVE_CTDB_EVENTS
	const char **lines = events_status(mem_ctx);

	for (; lines != NULL && *lines != NULL; lines++) {
		printf("%s\n", *lines);
	}
#else
	(void)mem_ctx;
#endif
}

static int status_text(TALLOC_CTX *mem_ctx)
{
	int ret;

	ret = store_each(mem_ctx, STATEDIR, MOUNTINFO, put_record, NULL);
	if (ret == ENOENT) {
		printf("no verdicts stored\n");
		ret = 0;
	}
	put_agent(mem_ctx);
	return ret;
}

int cmd_status(int argc, const char **argv)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	int metrics = 0;
	const struct poptOption options[] = {
		{ "prometheus", '\0', POPT_ARG_NONE, &metrics, 0,
		  "as metrics for node_exporter's textfile collector", NULL },
		POPT_AUTOHELP
		POPT_TABLEEND
	};
	const char **none = cli_operands_and(frame, argc, argv, options, NULL,
					     0);
	int ret;

	if (none == NULL) {
		talloc_free(frame);
		return EX_USAGE;
	}
	ret = metrics ? prometheus_write(stdout, STATEDIR, MOUNTINFO)
		      : status_text(frame);
	talloc_free(frame);
	return ret == 0 ? cli_finish(EX_OK) : store_failed(ret);
}

/* ---- forget -------------------------------------------------------------- */

int cmd_forget(int argc, const char **argv)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	const char **paths = cli_operands(frame, argc, argv, "PATH", 1);
	int status = EX_USAGE;
	int ret;

	if (paths == NULL) {
		talloc_free(frame);
		return EX_USAGE;
	}
	ret = store_forget(STATEDIR, paths[0]);
	if (ret == 0) {
		status = EX_OK;
	} else if (ret == ENOENT) {
		cli_say("no verdict is stored for '%s', expected a path as "
			"'pingpong status' shows it", paths[0]);
	} else {
		status = store_failed(ret);
	}
	talloc_free(frame);
	return status;
}
