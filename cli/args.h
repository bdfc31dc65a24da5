/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The arguments of pingpong check and of pingpong sweep
 */
#ifndef PINGPONG_CLI_ARGS_H
#define PINGPONG_CLI_ARGS_H

#include <stdbool.h>
#include <stdint.h>
#include <talloc.h>

#include "core/checks/check.h"
#include "core/checks/run.h"

#define ARGS_MAX_PLACES 256

struct check_args {
	const char **places;		/* NULL-terminated; without the hosts
					 * of the next two */
	const char *hosts_file;		/* or NULL */
	const char *nodes;		/* or NULL */
	bool ctdb;			/* one place at most, a DIRECTORY */
	const struct member_link *links;	/* set by ctdb_visit() */
	bool local;
	unsigned uses;			/* bits that decide the exit status */
	const struct check **checks;	/* NULL-terminated, as they run */
	bool all;			/* they are all there are */
	enum run_level level;
	unsigned thorough_ms;
	unsigned timeout_ms;
	bool json;
	const char *html;		/* a file, or NULL */
	bool store;
	const char *save, *compare;	/* names of baselines, or NULL */
	unsigned step_s;		/* sweep: seconds of each step */
	const char *rsh;
	uint64_t seed;
	const char *history;		/* a file, or NULL */
};

/*
 * What is pointed to becomes a child of mem_ctx. Returns NULL, or one line
 * for a person with the offending value in quotes, a child of mem_ctx too.
 * --help prints and exits.
 */
const char *check_args_parse(TALLOC_CTX *mem_ctx, int argc, const char **argv,
			     struct check_args *args);
const char *sweep_args_parse(TALLOC_CTX *mem_ctx, int argc, const char **argv,
			     struct check_args *args);

#endif
