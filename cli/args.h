/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The arguments of pingpong check
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
	const char **places;		/* NULL-terminated */
	bool local;
	unsigned uses;			/* bits that decide the exit status */
	const struct check **checks;	/* NULL-terminated, as they run */
	bool all;			/* they are all there are */
	enum run_level level;
	unsigned thorough_ms;
	unsigned timeout_ms;
	bool json;
	bool store;
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

#endif
