/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A directory that is checked, and for whom: the cluster lock, the shares that
 * lie on one mount, or a path that CTDB_PINGPONG_PATHS names
 */
#ifndef PINGPONG_CTDB_EVENTS_TARGET_H
#define PINGPONG_CTDB_EVENTS_TARGET_H

#include "core/verdict/share.h"

/* What peers call the cluster lock's directory */
#define TARGET_CLUSTER_LOCK "cluster-lock"

struct target {
	const char *name;	/* what peers call it: its directory, or
				 * TARGET_CLUSTER_LOCK */
	const char *directory;	/* NULL: the cluster lock is no file */
	const char *whose;	/* "the cluster lock", "share [a]" */
	unsigned uses;		/* bits of those that are asked for */
	unsigned reported;	/* of those that are tested and stored, too */
	bool alone;		/* other nodes need not be fit with it */
	/* Whose settings decide, one mount's; empty: a use that is unfit is */
	const struct share *shares;
	size_t num_shares;
	/* The same, by a worker that opened each share's path; NULL where
	 * none could */
	const struct member_info **places;
};

/* What a verdict means for a target */
struct judgement {
	enum fitness fitness;
	bool hung;
	const char *reason;	/* one line each; NULL where there is */
	const char *remedy;	/* nothing to say */
};

/* Is it the cluster lock, which decides about joining? */
bool target_is_lock(const struct target *target);

/* The target for the cluster lock in a directory (NULL: it is no file), a child
 * of mem_ctx; NULL for want of memory */
struct target *target_of_lock(TALLOC_CTX *mem_ctx, const char *directory);

/*
 * Judge. member: one of the verdict's members, or NULL. The judgement's
 * strings are the verdict's, static, or children of mem_ctx.
 */
void target_judge(TALLOC_CTX *mem_ctx, const struct target *target,
		  const struct verdict *verdict,
		  const struct member_info *member,
		  struct judgement *judgement);

#endif
