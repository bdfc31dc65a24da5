/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From outcomes to what a file system is fit for, and what would mend it
 *
 * The rules are those of the table "Verdict" in the manual. Judging is a pure
 * function of its input: no clock, no file.
 */
#ifndef PINGPONG_VERDICT_VERDICT_H
#define PINGPONG_VERDICT_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <talloc.h>

#include "core/checks/check.h"
#include "core/member/member.h"

enum use {
	USE_CLUSTER_LOCK,
	USE_POSIX_LOCKING,
	USE_SHARE,
	USE_FILE_ID,
	USE_TDB,
	USE_MMAP,
	USE_COUNT
};

#define USE_BIT(use) (1u << (use))
#define USES_DEFAULT \
	(USE_BIT(USE_CLUSTER_LOCK) | USE_BIT(USE_POSIX_LOCKING) | \
	 USE_BIT(USE_SHARE) | USE_BIT(USE_FILE_ID))

const char *use_name(enum use use);		/* "cluster-lock" */
bool use_parse(const char *name, enum use *use);

enum fitness { FIT, UNFIT, UNKNOWN };

const char *fitness_name(enum fitness fitness);	/* "fit" */
bool fitness_parse(const char *name, enum fitness *fitness);

struct use_verdict {
	enum fitness fitness;
	bool hung;		/* unfit because something hung */
	const char **because;	/* check names, NULL-terminated; for UNKNOWN:
				 * what was not tested */
	const char **mended_by;	/* parameter names, NULL-terminated */
	const char *reason;	/* one line for a log: why it is not fit;
				 * NULL when fit and nothing to say */
};

struct setting {
	const char *file;	/* "smb.conf", "ctdb.conf", "mount options" */
	const char *section;	/* "global", "database", ... */
	const char *parameter;
	const char *value;
	bool needed;		/* a use is unfit without it */
	const char *because;	/* reason, one line */
};

enum scope { SCOPE_LOCAL, SCOPE_CLUSTER };

struct verdict_input {
	struct check_result **results;	/* of every check that was asked for */
	size_t num_results;
	const struct member_info **members;
	size_t num_members;
	bool local;		/* one node is all there is (--local) */
	bool same_directory;	/* all places show one directory */
	const char *not_same;	/* else: one line with both mount lines */
};

struct verdict {
	enum scope scope;
	bool one_node;		/* members are one node and !local: what
				 * passes is unknown */
	struct use_verdict uses[USE_COUNT];
	struct setting *settings;	/* talloc array */
	size_t num_settings;
};

/* Returns 0 or ENOMEM; *verdict is a child of mem_ctx. */
int verdict_judge(TALLOC_CTX *mem_ctx, const struct verdict_input *input,
		  struct verdict **verdict);

/*
 * Exit status over the uses asked for (bits): the first that applies of
 * 3 unfit because something hung, 2 unfit and not mended, 4 unknown,
 * 1 unfit and mended by settings, 0 fit.
 */
int verdict_exit(const struct verdict *verdict, unsigned uses);

#endif
