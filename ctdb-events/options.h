/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The options CTDB_PINGPONG_*, as the script's environment has them
 *
 * 00.pingpong.options documents each one.
 */
#ifndef PINGPONG_CTDB_EVENTS_OPTIONS_H
#define PINGPONG_CTDB_EVENTS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <talloc.h>

#include "ctdb-events/ctdbconfig.h"

/* ON_MMAP_FAIL */
enum on_mmap_fail {
	ON_MMAP_FAIL_AUTO,	/* set where TDBs lie on such a file system */
	ON_MMAP_FAIL_SET,	/* set where any is not coherent across nodes */
	ON_MMAP_FAIL_REPORT,	/* never set */
};

struct options {
	bool enforce;			/* MODE; false: warn */
	unsigned timeout_s;		/* TIMEOUT: the whole of init */
	unsigned max_peers, min_peers;
	unsigned recheck_interval_s, max_age_s;
	uint16_t port;
	const char *key;		/* file; NULL: none */
	enum on_mmap_fail on_mmap_fail;
	const char *paths;		/* PATHS; NULL: every share's */
	const char *logging;		/* CTDB_LOGGING; NULL: syslog */
	struct ctdb_paths ctdb;
};

/*
 * Returns 0 with *options, a child of mem_ctx; EINVAL with *why (the same):
 * the variable, its value and what it may be; or ENOMEM.
 */
int options_read(TALLOC_CTX *mem_ctx, struct options **options,
		 const char **why);

#endif
