/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The lock manager: one table for all members.
 *
 * An owner is a member and the number by which its kernel knows the process
 * (fcntl locks) or the open file (OFD locks and flock). fcntl and OFD locks
 * exclude each other, flock stands apart. Waiters are served in the order
 * in which they came. Process locks go with the FLUSH of their owner, and
 * of no other; OFD locks and flock with the RELEASE of the open file.
 */

#ifndef CLUSTERFS_LOCKMGR_H
#define CLUSTERFS_LOCKMGR_H

#include "clusterfs.h"

#define FAMILY_PROCESS 1u
#define FAMILY_OFD 2u
#define FAMILY_FLOCK 4u
/* FUSE does not tell these two apart; see lock_family() */
#define FAMILY_POSIX (FAMILY_PROCESS | FAMILY_OFD)

enum drop_cause {
	DROP_CLOSE = 1,
	DROP_EXIT = 2,
	DROP_KILL = 4,
	DROP_DEATH = 8,		/* of the node */
	DROP_CANCEL = 16,	/* a waiter that gave up */
};

struct lock {
	TAILQ_ENTRY(lock) entry;
	struct file *file;
	struct member *member;	/* NULL: its node is gone */
	struct handle *handle;	/* through which it was taken, or NULL */
	uint64_t owner;
	pid_t pid;
	unsigned int family;
	short type;		/* F_RDLCK, F_WRLCK; F_UNLCK in a request */
	int64_t start;
	int64_t end;		/* last byte; INT64_MAX: to the end */
	bool local;		/* no other member sees it */
	bool ghost;		/* its holder is gone, it stays */
	uint64_t lifetime_us;	/* 0: for ever */
	uint64_t expires;	/* once granted; 0: never */
};

/*
 * Set or release a lock; answers req, at once or when the lock is granted.
 * unique names the request to lock_interrupt().
 */
void lock_set(const struct lock *wanted, bool wait, fuse_req_t req,
	      uint64_t unique);
/* Who is in the way? On return found->type is F_UNLCK if nobody is. */
void lock_get(const struct lock *wanted, struct lock *found);
/* Turn an answer "nobody" into the asker's own lock, if it has one. */
void lock_find_own(struct lock *found);
/* A waiter gives up. False: there is no such waiter. */
bool lock_interrupt(struct member *member, uint64_t unique);

void lock_drop_owner(struct handle *handle, uint64_t owner,
		     enum drop_cause cause);
void lock_drop_handle(struct handle *handle, enum drop_cause cause);
void lock_drop_member(struct member *member);
/* Lose locks, as a server that restarts or has too many. */
void lock_lose_all(void);
void lock_lose_oldest(struct file *file);
/* Look at all waiters again: a fault has come or gone. */
void lock_rescan_all(void);
/* Forget the locks that only a fault kept. */
void lock_drop_ghosts(void);
/* Somebody else holds a lock on the file, or waits for one. */
bool lock_contended(const struct file *file, const struct member *member);
/* Tell process and OFD locks apart, by the caller's system call. */
unsigned int lock_family(unsigned int family, const struct member *member,
			 pid_t pid);

#endif /* CLUSTERFS_LOCKMGR_H */
