/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Faults: what can be made to go wrong, when, and for whom.
 *
 * The file system calls faults_run() at the points named below, with an
 * event that says what is about to happen. Each active fault that belongs
 * to that point and whose filters match gets to change the event. To add a
 * fault, write its hook and a line of the table in faults.c.
 */

#ifndef CLUSTERFS_FAULTS_H
#define CLUSTERFS_FAULTS_H

#include "lockmgr.h"

enum op {
	OP_LOOKUP = 1u << 0,
	OP_STAT = 1u << 1,
	OP_STATDIR = 1u << 2,
	OP_SETATTR = 1u << 3,
	OP_OPEN = 1u << 4,
	OP_CREATE = 1u << 5,
	OP_READ = 1u << 6,
	OP_WRITE = 1u << 7,
	OP_CLOSE = 1u << 8,
	OP_RELEASE = 1u << 9,
	OP_FSYNC = 1u << 10,
	OP_MKDIR = 1u << 11,
	OP_UNLINK = 1u << 12,
	OP_RMDIR = 1u << 13,
	OP_RENAME = 1u << 14,
	OP_LINK = 1u << 15,
	OP_OPENDIR = 1u << 16,
	OP_READDIR = 1u << 17,
	OP_STATFS = 1u << 18,
	OP_XATTR = 1u << 19,
	OP_TRYLOCK = 1u << 20,
	OP_WAITLOCK = 1u << 21,
	OP_UNLOCK = 1u << 22,
	OP_GETLK = 1u << 23,
	OP_OTHER = 1u << 24,
};

#define OP_LOCK (OP_TRYLOCK | OP_WAITLOCK)
#define OP_ALL_LOCK (OP_LOCK | OP_UNLOCK | OP_GETLK)

/* The points at which a fault can act. */
enum fault_point {
	AT_REQUEST = 1u << 0,	/* any request: error, hang, delay_us */
	AT_LOCK = 1u << 1,	/* lock, unlock, getlk: lock, nothing */
	AT_CONFLICT = 1u << 2,	/* held is in lock's way: lose_held */
	AT_WAKE = 1u << 3,	/* a waiter may go on: pass_over */
	AT_DROP = 1u << 4,	/* a lock goes with its holder: keep */
	AT_FLUSH = 1u << 5,	/* a descriptor is closed: any_owner */
	AT_GETLK = 1u << 6,	/* the answer to a getlk: held, lock */
	AT_OPEN = 1u << 7,	/* mmap_mode */
	AT_ATTR = 1u << 8,	/* st */
	AT_READ = 1u << 9,	/* stale */
	AT_WRITE = 1u << 10,	/* nothing (lost), size (part), at_offset
				 * (append) */
	AT_SEE_DATA = 1u << 11,	/* of a member: others' writes: stale */
	AT_SEE_SIZE = 1u << 12,	/* of a member: others' sizes: stale */
	AT_SEE_NAME = 1u << 13,	/* of a member: others' names: stale */
	AT_LEASE = 1u << 14,	/* another's lease: nothing (not broken) */
	AT_MOUNT = 1u << 16,	/* other_source, nothing (no lock calls) */
	AT_GRANT = 1u << 15,	/* to a waiter: delay_us (not yet) */
};

struct event {
	struct member *member;
	struct inode *inode;	/* may be NULL */
	enum op op;
	pid_t pid;
	bool writing;		/* would change the file system */
	unsigned int family;	/* of a lock, else 0 */
	int64_t first, last;	/* bytes concerned */
	int64_t size;		/* of a read or write */

	/* what hooks look at and change */
	int error;
	bool hang;
	bool interruptible;
	bool resume;
	uint64_t delay_us;
	unsigned int fault_id;	/* that hangs the request */
	struct lock *lock;
	const struct lock *held;
	bool nothing;
	bool lose_held;
	bool pass_over;
	bool until_asked;
	enum drop_cause cause;
	bool keep;
	uint64_t keep_us;	/* 0: for ever */
	bool any_owner;
	enum mmap_mode mmap_mode;
	struct stat *st;
	bool stale;
	uint64_t stale_us;	/* 0: for ever */
	bool until_reopen;
	int64_t stale_from, stale_to;
	bool at_offset;
	bool other_source;
};

/* Parse "NAME[:KEY=VALUE,...]" and make it active; *why is static. */
int fault_add(const char *text, unsigned int *id, const char **why);
/* what: NULL for all, an id, or a name. Returns how many went. */
int fault_clear(const char *what);
/* One line a fault: id, text, matched, hits. */
void fault_list(FILE *f);
/* The table of faults, for people. */
void fault_list_types(FILE *f);
bool fault_is_active(unsigned int id);

/* False: nothing to run. */
bool faults_any(void);
/* Some fault cares about exactly this one. */
bool faults_want(enum op op);
void faults_run(enum fault_point point, struct event *ev);

#endif /* CLUSTERFS_FAULTS_H */
