/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The directories that hold TDB files, Samba's and ctdbd's, and whether their
 * file systems are fit for them
 *
 * Samba's come from pingpong-smbconf, ctdbd's from ctdb.conf. On each, workers
 * of this node check that mappings and read/write agree (mmap.local); the
 * verdict is stored. What is known of mappings across nodes is looked up in
 * the store.
 */
#ifndef PINGPONG_CTDB_EVENTS_TDBDIRS_H
#define PINGPONG_CTDB_EVENTS_TDBDIRS_H

#include "core/verdict/verdict.h"
#include "ctdb-events/options.h"

#define TDBDIRS_SMBCONF LIBEXECDIR "/pingpong-smbconf"

struct tdb_dir {
	const char *path;
	const char *whose;	/* "Samba's lock directory" */
	enum fitness tdb;	/* on this node; what hung is UNKNOWN */
	enum fitness mmap;	/* across nodes */
	const char *why;	/* one line, if one of them is unfit, or tdb
				 * unknown */
};

struct tdb_dirs {
	struct tdb_dir *dirs;	/* talloc array */
	size_t num;
	/* What Samba's configuration says of "use mmap" */
	bool clustering;
	bool use_mmap;
	bool ours;		/* set by us, or staged */
	bool here;		/* by this node, not by others only */
	bool staged;
	const char *by;		/* who wanted that: "agent", "apply" */
};

/*
 * options, worker (path of pingpong-worker) must outlive the request.
 *
 * tdbdirs_recv() returns 0 with *dirs, a child of mem_ctx; ETIMEDOUT: Samba's
 * configuration cannot be read (yet); ENOENT: pingpong-smbconf is not
 * installed; EINVAL: it says why; ENOMEM, or the errno of a start. *why, a
 * child of mem_ctx: one line.
 */
struct tevent_req *tdbdirs_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev,
				const struct options *options,
				const char *worker);
int tdbdirs_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		 struct tdb_dirs **dirs, const char **why);

/* What pingpong-smbconf said when it failed, a child of mem_ctx: its status
 * and output as command_recv() gives them. Returns an errno as above. */
int tdbdirs_smbconf_failed(TALLOC_CTX *mem_ctx, int status, const char *output,
			   const char **why);

#endif
