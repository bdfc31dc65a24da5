/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From outcomes to what a file system is fit for, and what would mend it
 *
 * The rules are those of the table "Verdict" in the manual: which use needs
 * which checks stands in uses.c, which settings mend what in settings.c.
 * Judging is a pure function of its input: no clock, no file.
 *
 * Besides outcome, why and evidence it reads two metrics, where a check gives
 * them:
 *   lock.exclusion, lock.flock: "local" (boolean), true: locks exclude
 *	processes of one node, but not those of two; false: not that;
 *   id.device: "algorithms" {"fsname", "fsid", "glusterfs_fuse"}, for each
 *	"agree", "differ" or "zero" (no answer).
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

/* Names of the checks that a use needs; ends with NULL. */
const char *const *use_needs(enum use use);

enum fitness { FIT, UNFIT, UNKNOWN };

const char *fitness_name(enum fitness fitness);	/* "fit" */
bool fitness_parse(const char *name, enum fitness *fitness);

struct use_verdict {
	enum fitness fitness;
	bool hung;		/* unfit because something hung */
	const char **because;	/* check names, NULL-terminated; for UNKNOWN:
				 * what was not tested; for FIT: what was
				 * slow */
	const char **mended_by;	/* parameter names, NULL-terminated */
	const char *reason;	/* one line for a log: why it is not fit;
				 * NULL when fit and nothing to say */
	const char **ids;	/* file-id, when id.device was tested: what
				 * gives a file one id on all members, of
				 * IDS_*; NULL-terminated. Else NULL */
};

/* st_dev as it is; else what a VFS module makes of it (core/checks/id.h) */
#define IDS_ST_DEV "st_dev"
#define IDS_FSNAME "fsname"
#define IDS_FSID "fsid"
#define IDS_FSID_ZERO "fsid 0"	/* that is no answer: many are 0 */
#define IDS_GLUSTERFS_FUSE "glusterfs_fuse"

struct setting {
	const char *file;	/* "smb.conf", "ctdb.conf", "mount options" */
	const char *section;	/* "global", "database"; the mount point */
	const char *parameter;	/* for a mount: the option that is there */
	const char *value;	/* for a mount: the option to put in its
				 * place, "": none */
	bool needed;		/* a use is unfit without it */
	const char *because;	/* reason, one line */
	unsigned uses;		/* bits of those that it is about */
};

enum scope { SCOPE_LOCAL, SCOPE_CLUSTER };

struct verdict_input {
	/* Checks that could be asked for (those of a door: checks_of_door()):
	 * a use does not need any other. Ends with NULL; NULL:
	 * check_catalogue */
	const struct check *const *catalogue;
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
	bool light;		/* not all checks could be asked for */
	bool one_node;		/* members are one node and !local: what
				 * passes is unknown */
	struct use_verdict uses[USE_COUNT];
	struct setting *settings;	/* talloc array */
	size_t num_settings;
};

/* The result of a check in the input; NULL if it was not asked for. */
const struct check_result *verdict_result(const struct verdict_input *input,
					  const char *name);

/*
 * Does the outcome make a use that needs the check unfit? (NULL: no)
 */
bool verdict_broken(const struct check_result *result);

/*
 * Append to a NULL-terminated list, itself a child of mem_ctx; *names may be
 * NULL. The string is not copied. Returns false for want of memory.
 */
bool names_add(TALLOC_CTX *mem_ctx, const char ***names, const char *name);

/* Is it in a NULL-terminated list? names may be NULL. */
bool names_have(const char *const *names, const char *name);

/* "a, b, c", a child of mem_ctx; NULL for want of memory. */
char *names_join(TALLOC_CTX *mem_ctx, const char *const *names);

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
