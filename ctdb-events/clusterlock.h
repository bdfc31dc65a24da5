/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The cluster lock, as ctdb.conf names it
 *
 * `[cluster] cluster lock`, in older configurations `recovery lock`. Its value
 * is a file, or after a "!" a helper command; of a command, only
 * "ctdb_mutex_fcntl_helper FILE" is a lock on a file all the same.
 */
#ifndef PINGPONG_CTDB_EVENTS_CLUSTERLOCK_H
#define PINGPONG_CTDB_EVENTS_CLUSTERLOCK_H

#include "ctdb-events/ctdbconfig.h"

enum clusterlock_kind {
	CLUSTERLOCK_NONE,	/* not set */
	CLUSTERLOCK_HELPER,	/* a helper that is no file */
	CLUSTERLOCK_FILE,
};

struct clusterlock {
	enum clusterlock_kind kind;
	const char *value;	/* as configured; NULL: not set */
	const char *file;	/* CLUSTERLOCK_FILE */
	const char *directory;	/* the one that it lies in, as a string */
};

/*
 * What a value (NULL: none) stands for; strings are children of mem_ctx.
 * Returns 0, EINVAL (a file that is no absolute path), ENOMEM.
 */
int clusterlock_parse(TALLOC_CTX *mem_ctx, const char *value,
		      struct clusterlock *lock);

/* clusterlock_recv() returns 0 with *lock filled in (children of mem_ctx), or
 * an errno of ctdbconfig_recv() or clusterlock_parse(). */
struct tevent_req *clusterlock_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    const struct ctdb_paths *paths);
int clusterlock_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		     struct clusterlock *lock);

#endif
