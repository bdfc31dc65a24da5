/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A share of Samba: what it asks of its file system, and whether what the
 * store knows is good enough for it
 *
 * The one rule of all who refuse shares. Who they are fills in a struct share:
 * share_init(), then share_set() for each setting of smb.conf that the share
 * has or inherits; then
 *
 *	share_uses()		what has to be checked;
 *	share_elsewhere()	nothing can be checked, and what that means;
 *	share_judge()		the answer, from a record of the store.
 *
 * Nothing here makes a system call.
 */
#ifndef PINGPONG_VERDICT_SHARE_H
#define PINGPONG_VERDICT_SHARE_H

#include <time.h>

#include "core/verdict/store.h"

/* What vfs_fileid is told; lists end with NULL, NULL: not set */
struct share_fileid {
	const char *algorithm, *mapping;
	const char **fstype_deny, **fstype_allow;
	const char **mntdir_deny, **mntdir_allow;
	bool nolock_all_inodes;
};

struct share {
	const char *path;	/* as configured */
	const char **objects;	/* its vfs objects; ends with NULL, or NULL */
	bool posix_locking;
	bool process_locks;	/* smbd force process locks */
	bool kernel_oplocks;
	bool kernel_share_modes;
	struct share_fileid fileid;

	/* pingpong: */
	unsigned uses;		/* for: bits of those that must be fit */
	enum scope scope;	/* cluster: one node is not enough */
	unsigned max_age_s;	/* of a verdict */
};

/* What could tell more than a record does */
enum share_more {
	SHARE_DECIDED,		/* nothing */
	SHARE_ASK_PEERS,	/* other nodes: this one has told all it can */
	SHARE_CHECK,		/* a check */
};

struct share_answer {
	enum fitness fitness;
	const char *reason;	/* one line each; NULL where there is */
	const char *remedy;	/* nothing to say */
};

/* A share with Samba's defaults and those of vfs_pingpong(8), scope local */
void share_init(struct share *share, const char *path);

/*
 * Set what a parameter of smb.conf says, by its name there in lower case
 * ("vfs objects", "fileid:fstype deny"). A list may be in one string, as in
 * smb.conf, its elements are children of mem_ctx.
 *
 * Returns 0; ENOENT: a parameter that makes no difference; EINVAL: no value of
 * it, the share is unchanged; ENOMEM.
 */
int share_set(TALLOC_CTX *mem_ctx, struct share *share, const char *parameter,
	      const char *value);

/* Does it have this VFS module? In "/path/NAME.so:parameter" NAME counts. */
bool share_has_module(const struct share *share, const char *name);

/* Bits of the uses that it needs: those asked for without what its settings
 * do without. */
unsigned share_uses(const struct share *share);

/*
 * Does its vfs_fileid give every file an id of each node's own? vfs_fileid(8)
 * has this for shares on which nodes are not to see each other's opens, so it
 * is taken as wanted. Returns the setting, as in smb.conf, static; or NULL.
 */
const char *share_own_ids(const struct share *share);

/*
 * True: by its VFS modules its path is no path of this host (vfs_ceph,
 * vfs_glusterfs). *answer, never FIT, is what that means; its strings are
 * static or children of mem_ctx.
 */
bool share_elsewhere(TALLOC_CTX *mem_ctx, const struct share *share,
		     struct share_answer *answer);

/*
 * Judge by a record that was looked up. The answer's strings are the record's
 * or children of mem_ctx. Other than with SHARE_DECIDED it is UNKNOWN.
 */
enum share_more share_judge(TALLOC_CTX *mem_ctx, const struct share *share,
			    const struct stored_record *record, time_t now,
			    struct share_answer *answer);

/* *answer becomes UNKNOWN, with the way to more. reason: not copied */
void share_unknown(TALLOC_CTX *mem_ctx, const struct share *share,
		   const char *reason, struct share_answer *answer);

#endif
