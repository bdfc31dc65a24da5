/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A check: one property that a file system must have across members
 *
 * Each check is one `const struct check` in a file of its family and one line
 * in core/checks/catalogue.c. The run (core/checks/run.h) hands it the
 * members; the check fills in one check_result.
 */
#ifndef PINGPONG_CHECKS_CHECK_H
#define PINGPONG_CHECKS_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>
#include <talloc.h>
#include <tevent.h>

enum outcome {
	OUTCOME_PASS,
	OUTCOME_SLOW,		/* right, but slower than a limit that Samba
				 * or CTDB sets */
	OUTCOME_FAIL,		/* wrong, with evidence */
	OUTCOME_HUNG,		/* no answer, with what the worker is doing */
	OUTCOME_UNSUPPORTED,	/* refused, with the errno */
	OUTCOME_SKIPPED,	/* not tested, with the reason */
};

/* "pass", "slow", ... */
const char *outcome_name(enum outcome outcome);
bool outcome_parse(const char *name, enum outcome *outcome);

/* Is a told rather than b, where a check has seen both? */
bool outcome_worse(enum outcome a, enum outcome b);

/*
 * What was seen. Strings are talloc children of the result; NULL where
 * nothing applies.
 */
struct evidence {
	const char *operation;	/* "F_SETLK F_WRLCK" */
	const char *member;	/* "1 (/mnt/b) against 0 (/mnt/a)" */
	const char *range;	/* "[0, 1)" */
	const char *expected;	/* "refused" */
	const char *seen;	/* "granted" */
	const char *detail;	/* more lines: kernel stack, a usual cause */
};

struct check_result {
	const struct check *check;
	enum outcome outcome;
	const char *why;	/* one line; NULL for a plain pass */
	struct evidence evidence;
	int err;		/* OUTCOME_UNSUPPORTED: the errno */
	bool beyond_limit;	/* OUTCOME_SLOW: beyond a hard limit of CTDB */
	unsigned *members;	/* numbers of those tested, or of the failing
				 * ones; a talloc array */
	json_t *metrics;	/* object; freed with the result */
};

/* Doors a check may run at (DESIGN.md) */
#define DOOR_INIT	0x1	/* ctdbd's init */
#define DOOR_AGENT	0x2	/* resident agent, smbd */
#define DOOR_COMMAND	0x4	/* pingpong check */

/* What a check cannot do without; when that is known to hang or to be
 * refused, the check is skipped with the reason */
#define NEEDS_LOCKS	0x1	/* process locks */
#define NEEDS_OFD	0x2
#define NEEDS_FLOCK	0x4
#define NEEDS_IO	0x8
#define NEEDS_MMAP	0x10
#define NEEDS_BYTES	0x20	/* neighbouring bytes are locked apart */
#define NEEDS_COUNT	6

struct run;

struct check {
	const char *name;
	const char *holds;	/* what must hold, one line */
	const char *how;	/* what is done, prose */
	const char *depends;	/* what in Samba and CTDB depends on it, with
				 * the source file or manual page */
	const char *remedy;	/* what to do when it fails, prose */
	unsigned doors;
	unsigned needs;
	bool spare;		/* no use that is asked for by default depends
				 * on it: comes last where time is short */
	/*
	 * Fills in *result, which is set to pass without evidence before.
	 * The request fails only for want of memory.
	 */
	struct tevent_req *(*send)(TALLOC_CTX *mem_ctx,
				   struct tevent_context *ev, struct run *run,
				   struct check_result *result);
	int (*recv)(struct tevent_req *req);
};

/* All checks, in the order they run; ends with NULL. */
extern const struct check *const check_catalogue[];

const struct check *check_by_name(const char *name);

/* The checks that run at a door (DOOR_*), a child of mem_ctx that ends with
 * NULL; NULL for want of memory. */
const struct check **checks_of_door(TALLOC_CTX *mem_ctx, unsigned door);

#endif
