/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The verdict store: what was found about each file system of this host
 *
 * STATEDIR/verdicts/KEY.json, one record a file system, and
 * STATEDIR/paths.json, which maps each configured path to what a worker found
 * when it opened it. KEY (hex) stands for type, source, the options that
 * matter (store.c lists those that do not), and what tells apart two that
 * share all these: f_fsid of statfs(2), or where that is 0 the mount's device.
 * Files are replaced by rename (written, fsync'ed, renamed, directory
 * fsync'ed), so that a reader takes no lock and never waits. Writers wait for
 * each other, a few seconds at most. Directories are 0700, files 0600, owned
 * by who runs (root); others are refused.
 *
 * No function here resolves or touches a path under test: paths are looked
 * up as strings, mounts in /proc/self/mountinfo. A path is known as long as
 * the mount that its directory lay on is still there, with its line in
 * mountinfo unchanged and nothing mounted over it, until the next boot.
 *
 * Records merge use by use:
 *   - a use that was not tested keeps what was known;
 *   - unknown never replaces what is known and younger than STORE_FRESH_S;
 *   - neither does a local-scope result a cluster-scope one of that age,
 *     unless it is unfit where that was fit;
 *   - a light verdict (by the few checks of a door) does not replace what all
 *     checks found unfit within that age, unless it is unfit, too, and of
 *     cluster scope where that was local.
 * Settings stay as long as what was known of a use that they are about.
 */
#ifndef PINGPONG_VERDICT_STORE_H
#define PINGPONG_VERDICT_STORE_H

#include <time.h>

#include "core/member/mounts.h"
#include "core/verdict/verdict.h"

/* seconds */
#define STORE_FRESH_S 86400

/* One use in a record */
struct stored_use {
	bool present;
	enum fitness fitness;
	bool hung;
	bool light;		/* of a verdict by some of the checks only */
	enum scope scope;
	time_t when;
	const char *boot_id;
	const char *with;	/* the members, one line */
	const char **because;
	const char **mended_by;
	const char *reason;
	const char **ids;	/* as in struct use_verdict */
};

struct stored_record {
	const char *key;
	const char *fstype, *source;
	const char *options;	/* those that matter */
	const char *instance;
	struct stored_use uses[USE_COUNT];
	struct setting *settings;
	size_t num_settings;
	/* of a record that was looked up: the path's mount among those like
	 * it (mounts_like()); else NULL */
	struct mount_line **mounts;
};

/* Present and younger than max_age_s. What lies in the future is not fresh. */
bool stored_use_fresh(const struct stored_use *use, time_t now,
		      unsigned max_age_s);

/*
 * Record what a run found for one member's place: merges into the record of
 * its file system and notes the path.
 *
 * statedir: normally STATEDIR; it is made if need be, its parent is not.
 * tested: bits of the uses that were tested. with: the members, one line.
 * A corrupt file is replaced.
 *
 * Returns 0, EPERM (a directory or file there is not owned by us or open to
 * others), EBUSY (another writer keeps its lock), EILSEQ (a path or source
 * that is no UTF-8), ENOMEM, or the errno of the write (ENOSPC, EROFS ...):
 * the old record is then intact.
 */
int store_write(const char *statedir, const struct member_info *member,
		const struct verdict *verdict, unsigned tested, time_t now,
		const char *with);

/*
 * Look up a path as configured (a string).
 *
 * Returns 0 with *record, a child of mem_ctx; ENOENT: path never recorded;
 * ESTALE: recorded, but its mount is not the same any more; EPERM (as in
 * store_write()), EINVAL (corrupt), ENOMEM, or the errno of a read.
 */
int store_lookup(TALLOC_CTX *mem_ctx, const char *statedir,
		 const char *mountinfo, const char *path,
		 struct stored_record **record);

/*
 * Every path in turn, for `pingpong status`: fn gets what store_lookup() of
 * it gives, the record only while fn runs. Returns 0 or as store_lookup(),
 * when the paths themselves can't be read (ENOENT: nothing was recorded).
 */
int store_each(TALLOC_CTX *mem_ctx, const char *statedir,
	       const char *mountinfo,
	       void (*fn)(const char *path, int err,
			  const struct stored_record *record,
			  void *private_data),
	       void *private_data);

/*
 * Forget a path and, when no other path has it, its file system's record.
 * Returns 0, ENOENT, EINVAL (corrupt), or as store_write().
 */
int store_forget(const char *statedir, const char *path);

#endif
