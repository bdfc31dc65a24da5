/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "faults.h"

#include <sys/syscall.h>

struct waiter {
	TAILQ_ENTRY(waiter) entry;	/* in its file's queue */
	LIST_ENTRY(waiter) in_all;
	unsigned int visit;	/* of the last search that came by */
	struct lock wanted;
	fuse_req_t req;		/* NULL: gave up, and is not forgotten */
	uint64_t unique;
	bool asleep;		/* a wake-up that it did not get */
	bool until_asked;	/* ... and gets with the next request */
};

static LIST_HEAD(, waiter) all_waiters = LIST_HEAD_INITIALIZER(all_waiters);

static void wake(struct file *file);

unsigned int lock_family(unsigned int family, const struct member *member,
			 pid_t pid)
{
	unsigned long args[2];
	int nr;

	if (family != FAMILY_POSIX) {
		return family;
	}
	nr = caller_syscall(member, pid, args);
	if (nr != SYS_fcntl) {
		return family;
	}
	switch (args[1]) {
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
	case F_OFD_GETLK:
		return FAMILY_OFD;
	}
	return FAMILY_PROCESS;
}

/* fcntl and OFD locks are one kind, flock is the other. */
static bool same_kind(const struct lock *a, const struct lock *b)
{
	return (a->family == FAMILY_FLOCK) == (b->family == FAMILY_FLOCK);
}

static bool same_owner(const struct lock *a, const struct lock *b)
{
	return a->member == b->member && a->owner == b->owner &&
	       !a->ghost && !b->ghost && same_kind(a, b);
}

static bool overlap(const struct lock *a, const struct lock *b)
{
	return a->start <= b->end && b->start <= a->end;
}

static bool visible(const struct lock *lock, const struct lock *to)
{
	if (lock->member == to->member) {
		return true;
	}
	return !lock->local && !to->local;
}

static bool in_the_way(const struct lock *held, const struct lock *wanted)
{
	if (held->type == F_RDLCK && wanted->type == F_RDLCK) {
		return false;
	}
	return same_kind(held, wanted) && overlap(held, wanted) &&
	       !same_owner(held, wanted) && visible(held, wanted);
}

static struct lock *first_in_the_way(const struct lock *wanted)
{
	struct lock *held = NULL;

	TAILQ_FOREACH(held, &wanted->file->locks, entry) {
		bool conflict = in_the_way(held, wanted);

		if (conflict) {
			return held;
		}
	}
	return NULL;
}

static void lock_free(struct lock *lock)
{
	struct file *file = lock->file;

	TAILQ_REMOVE(&file->locks, lock, entry);
	file->num_locks -= 1;
	free(lock);
	file_unref(file);
}

static struct lock *lock_add(const struct lock *template)
{
	struct lock *lock = NULL;

	lock = malloc(sizeof(*lock));
	if (lock == NULL) {
		abort();
	}
	*lock = *template;
	file_ref(lock->file);
	lock->file->num_locks += 1;
	TAILQ_INSERT_TAIL(&lock->file->locks, lock, entry);
	return lock;
}

static bool adjacent(const struct lock *a, const struct lock *b)
{
	if (a->end < b->start) {
		return a->end + 1 == b->start;
	}
	if (b->end < a->start) {
		return b->end + 1 == a->start;
	}
	return true;
}

static void expiry(void *data);

static struct timer *expiry_timer;
static uint64_t expiry_when;

static void expiry_at(uint64_t when)
{
	if (expiry_timer != NULL && expiry_when <= when) {
		return;
	}
	timer_remove(expiry_timer);
	expiry_when = when;
	expiry_timer = timer_add(when, expiry, NULL);
}

static void expiry(void *data)
{
	struct file *file = NULL;
	struct file *next_file = NULL;
	uint64_t now = now_us();

	(void)data;
	expiry_timer = NULL;
	for (file = LIST_FIRST(&all_files); file != NULL; file = next_file) {
		struct lock *lock = NULL;
		struct lock *next = NULL;

		file_ref(file);
		for (lock = TAILQ_FIRST(&file->locks); lock != NULL;
		     lock = next) {
			next = TAILQ_NEXT(lock, entry);
			if (lock->expires == 0) {
				continue;
			}
			if (lock->expires > now) {
				expiry_at(lock->expires);
			} else {
				lock_free(lock);
			}
		}
		wake(file);
		next_file = LIST_NEXT(file, entry);
		file_unref(file);
	}
}

static void lock_expires_in(struct lock *lock, uint64_t us)
{
	if (us == 0) {
		return;
	}
	lock->expires = now_us() + us;
	expiry_at(lock->expires);
}

/* Put the range into the owner's locks: replace, split, merge. */
static void apply(const struct lock *wanted)
{
	struct lock new = *wanted;
	struct lock *lock = NULL;
	struct lock *next = NULL;

	for (lock = TAILQ_FIRST(&wanted->file->locks); lock != NULL;
	     lock = next) {
		bool mine = same_owner(lock, &new);
		bool touch = adjacent(lock, &new);
		bool hit = overlap(lock, wanted);
		struct lock right = *lock;

		next = TAILQ_NEXT(lock, entry);
		if (!mine) {
			continue;
		}
		if (lock->type == new.type && touch) {
			if (lock->start < new.start) {
				new.start = lock->start;
			}
			if (lock->end > new.end) {
				new.end = lock->end;
			}
			lock_free(lock);
			continue;
		}
		if (!hit) {
			continue;
		}
		if (lock->end > wanted->end) {
			right.start = wanted->end + 1;
			lock_add(&right);
		}
		if (lock->start < wanted->start) {
			lock->end = wanted->start - 1;
		} else {
			lock_free(lock);
		}
	}
	if (new.type != F_UNLCK) {
		lock = lock_add(&new);
		lock_expires_in(lock, new.lifetime_us);
	}
}

/* Does whoever is in wanted's way wait, in the end, for its owner? */
static bool waits_in_a_circle(const struct lock *wanted,
			      const struct lock *owner, unsigned int visit)
{
	struct lock *held = NULL;

	TAILQ_FOREACH(held, &wanted->file->locks, entry) {
		bool conflict = in_the_way(held, wanted);
		struct waiter *waiter = NULL;

		if (!conflict) {
			continue;
		}
		conflict = same_owner(held, owner);
		if (conflict) {
			return true;
		}
		LIST_FOREACH(waiter, &all_waiters, in_all) {
			bool same = same_owner(&waiter->wanted, held);
			bool found;

			if (!same || waiter->visit == visit) {
				continue;
			}
			waiter->visit = visit;
			found = waits_in_a_circle(&waiter->wanted, owner,
						  visit);
			if (found) {
				return true;
			}
		}
	}
	return false;
}

/* As in the kernel, only process locks are looked at. */
static bool deadlock(const struct lock *wanted)
{
	static unsigned int visit;
	unsigned int family;
	bool circle;

	if (wanted->family == FAMILY_FLOCK) {
		return false;
	}
	circle = waits_in_a_circle(wanted, wanted, ++visit);
	if (!circle) {
		return false;
	}
	family = lock_family(wanted->family, wanted->member, wanted->pid);
	return family != FAMILY_OFD;
}

static void describe(const struct lock *lock, enum op op, struct event *ev)
{
	*ev = (struct event) {
		.member = lock->member,
		.op = op,
		.pid = lock->pid,
		.family = lock->family,
		.first = lock->start,
		.last = lock->end,
	};
	if (lock->handle != NULL) {
		ev->inode = lock->handle->inode;
	}
}

static enum op op_of(const struct lock *lock, bool wait)
{
	if (lock->type == F_UNLCK) {
		return OP_UNLOCK;
	}
	return wait ? OP_WAITLOCK : OP_TRYLOCK;
}

/* A fault may lose the lock that is in the way. */
static bool blocked(struct lock *wanted, enum op op)
{
	struct lock *held = NULL;

	while ((held = first_in_the_way(wanted)) != NULL) {
		struct event ev;

		describe(wanted, op, &ev);
		ev.lock = wanted;
		ev.held = held;
		faults_run(AT_CONFLICT, &ev);
		if (!ev.lose_held) {
			return true;
		}
		lock_free(held);
	}
	return false;
}

static void each_file(void (*each)(struct file *file,
				   struct member *member),
		      struct member *member);

static void only_wake(struct file *file, struct member *member)
{
	(void)file;
	(void)member;
}

static void wake_again(void *data)
{
	(void)data;
	each_file(only_wake, NULL);
}

/* A fault may prefer another node. */
static bool postponed(struct lock *wanted)
{
	struct event ev;

	if (wanted->member == NULL) {
		return false;
	}
	describe(wanted, OP_WAITLOCK, &ev);
	ev.lock = wanted;
	faults_run(AT_GRANT, &ev);
	if (ev.delay_us != 0) {
		timer_add(now_us() + ev.delay_us, wake_again, NULL);
		return true;
	}
	return false;
}

static void waiter_free(struct waiter *waiter)
{
	struct file *file = waiter->wanted.file;

	TAILQ_REMOVE(&file->waiters, waiter, entry);
	LIST_REMOVE(waiter, in_all);
	free(waiter);
	file_unref(file);
}

static bool try_waiter(struct waiter *waiter, bool woken)
{
	struct event ev;
	bool no;

	no = blocked(&waiter->wanted, OP_WAITLOCK);
	if (no) {
		return false;
	}
	if (woken) {
		describe(&waiter->wanted, OP_WAITLOCK, &ev);
		ev.lock = &waiter->wanted;
		faults_run(AT_WAKE, &ev);
		if (ev.pass_over) {
			waiter->asleep = true;
			waiter->until_asked = ev.until_asked;
			return false;
		}
	}
	no = postponed(&waiter->wanted);
	if (no) {
		return false;
	}
	apply(&waiter->wanted);
	if (waiter->req != NULL) {
		fuse_reply_err(waiter->req, 0);
	}
	waiter_free(waiter);
	return true;
}

/* asked: by a new request, not by a lock that went */
static void look_at_waiters(struct file *file, bool asked)
{
	struct waiter *waiter = NULL;
	struct waiter *next = NULL;

	file_ref(file);
	for (waiter = TAILQ_FIRST(&file->waiters); waiter != NULL;
	     waiter = next) {
		next = TAILQ_NEXT(waiter, entry);
		if (waiter->asleep && (!asked || !waiter->until_asked)) {
			continue;
		}
		if (asked && !waiter->asleep) {
			continue;
		}
		try_waiter(waiter, !asked);
	}
	file_unref(file);
}

static void wake(struct file *file)
{
	look_at_waiters(file, false);
}

static void lock_wait(const struct lock *wanted, fuse_req_t req,
		      uint64_t unique)
{
	struct waiter *waiter = NULL;

	waiter = calloc(1, sizeof(*waiter));
	if (waiter == NULL) {
		fuse_reply_err(req, ENOLCK);
		return;
	}
	waiter->wanted = *wanted;
	waiter->req = req;
	waiter->unique = unique;
	file_ref(wanted->file);
	TAILQ_INSERT_TAIL(&wanted->file->waiters, waiter, entry);
	LIST_INSERT_HEAD(&all_waiters, waiter, in_all);
}

/* flock(2) gives up a lock of another type before it asks anew. */
static void flock_give_up(const struct lock *wanted)
{
	struct lock *held = NULL;

	if (wanted->family != FAMILY_FLOCK) {
		return;
	}
	TAILQ_FOREACH(held, &wanted->file->locks, entry) {
		bool mine = same_owner(held, wanted);

		if (mine && held->type != wanted->type) {
			lock_free(held);
			wake(wanted->file);
			return;
		}
	}
}

static void unlock_everybody(const struct lock *wanted)
{
	struct lock *held = NULL;
	struct lock *next = NULL;

	for (held = TAILQ_FIRST(&wanted->file->locks); held != NULL;
	     held = next) {
		bool hit = same_kind(held, wanted) && overlap(held, wanted);

		next = TAILQ_NEXT(held, entry);
		if (hit) {
			lock_free(held);
		}
	}
}

void lock_set(const struct lock *request, bool wait, fuse_req_t req,
	      uint64_t unique)
{
	struct lock wanted = *request;
	struct file *file = wanted.file;
	enum op op = op_of(&wanted, wait);
	struct event ev;
	bool no;

	look_at_waiters(file, true);

	describe(&wanted, op, &ev);
	ev.lock = &wanted;
	faults_run(AT_LOCK, &ev);
	if (ev.error != 0 || ev.nothing) {
		fuse_reply_err(req, ev.error);
		return;
	}
	wanted.family = ev.family;
	if (wanted.type == F_UNLCK) {
		apply(&wanted);
		if (ev.any_owner) {
			unlock_everybody(&wanted);
		}
		fuse_reply_err(req, 0);
		wake(file);
		return;
	}

	flock_give_up(&wanted);
	no = blocked(&wanted, op);
	if (no && wait) {
		no = deadlock(&wanted);
		if (no) {
			fuse_reply_err(req, EDEADLK);
			return;
		}
		lock_wait(&wanted, req, unique);
		return;
	}
	if (no) {
		fuse_reply_err(req, EAGAIN);
		return;
	}
	apply(&wanted);
	fuse_reply_err(req, 0);
	/* a downgrade lets others in */
	if (wanted.type == F_RDLCK) {
		wake(file);
	}
}

void lock_get(const struct lock *request, struct lock *found)
{
	struct lock wanted = *request;
	struct lock *held = NULL;
	struct event ev;

	describe(&wanted, OP_GETLK, &ev);
	ev.lock = &wanted;
	faults_run(AT_LOCK, &ev);

	*found = wanted;
	found->type = F_UNLCK;
	held = first_in_the_way(&wanted);
	if (held != NULL && !ev.nothing) {
		*found = *held;
	}

	describe(&wanted, OP_GETLK, &ev);
	ev.lock = found;
	ev.held = held;
	faults_run(AT_GETLK, &ev);
}

void lock_find_own(struct lock *found)
{
	struct lock *held = NULL;

	TAILQ_FOREACH(held, &found->file->locks, entry) {
		bool mine = same_owner(held, found);
		bool hit = overlap(held, found);

		if (mine && hit) {
			*found = *held;
			return;
		}
	}
}

bool lock_interrupt(struct member *member, uint64_t unique)
{
	struct waiter *waiter = NULL;
	struct event ev;
	fuse_req_t req = NULL;

	LIST_FOREACH(waiter, &all_waiters, in_all) {
		if (waiter->wanted.member == member &&
		    waiter->req != NULL && waiter->unique == unique) {
			break;
		}
	}
	if (waiter == NULL) {
		return false;
	}
	describe(&waiter->wanted, OP_WAITLOCK, &ev);
	ev.lock = &waiter->wanted;
	ev.cause = DROP_CANCEL;
	faults_run(AT_DROP, &ev);

	req = waiter->req;
	if (ev.keep) {
		waiter->req = NULL;
		waiter->wanted.ghost = true;
		waiter->wanted.handle = NULL;
		waiter->wanted.lifetime_us = ev.keep_us;
	} else {
		waiter_free(waiter);
	}
	fuse_reply_err(req, EINTR);
	return true;
}

/* The holder lets go of the lock: it is freed, unless a fault keeps it. */
static void drop(struct lock *lock, enum drop_cause cause)
{
	struct event ev;

	if (lock->ghost) {
		return;
	}
	describe(lock, OP_UNLOCK, &ev);
	ev.lock = lock;
	ev.cause = cause;
	faults_run(AT_DROP, &ev);
	if (!ev.keep) {
		lock_free(lock);
		return;
	}
	lock->ghost = true;
	lock->handle = NULL;
	lock_expires_in(lock, ev.keep_us);
}

void lock_drop_owner(struct handle *handle, uint64_t owner,
		     enum drop_cause cause)
{
	struct inode *inode = handle->inode;
	struct lock *lock = NULL;
	struct lock *next = NULL;
	struct event ev = {
		.member = inode->member,
		.inode = inode,
		.op = OP_CLOSE,
		.pid = current.pid,
		.family = FAMILY_PROCESS,
		.last = INT64_MAX,
	};

	if (TAILQ_EMPTY(&inode->file->locks)) {
		return;
	}
	faults_run(AT_FLUSH, &ev);
	for (lock = TAILQ_FIRST(&inode->file->locks); lock != NULL;
	     lock = next) {
		bool mine = (lock->owner == owner);

		next = TAILQ_NEXT(lock, entry);
		if (ev.any_owner && lock->handle == handle) {
			mine = true;
		}
		if (mine && lock->member == inode->member &&
		    lock->family != FAMILY_FLOCK) {
			lock->family = FAMILY_PROCESS;
			drop(lock, cause);
		}
	}
	wake(inode->file);
}

void lock_drop_handle(struct handle *handle, enum drop_cause cause)
{
	struct file *file = handle->inode->file;
	struct lock *lock = NULL;
	struct lock *next = NULL;

	for (lock = TAILQ_FIRST(&file->locks); lock != NULL; lock = next) {
		next = TAILQ_NEXT(lock, entry);
		if (lock->handle == handle) {
			if (lock->family != FAMILY_FLOCK) {
				lock->family = FAMILY_OFD;
			}
			drop(lock, cause);
		}
	}
	wake(file);
}

static void forget_member(struct file *file, struct member *member)
{
	struct lock *lock = NULL;
	struct lock *next = NULL;
	struct waiter *waiter = NULL;
	struct waiter *next_waiter = NULL;

	for (waiter = TAILQ_FIRST(&file->waiters); waiter != NULL;
	     waiter = next_waiter) {
		next_waiter = TAILQ_NEXT(waiter, entry);
		if (waiter->wanted.member != member) {
			continue;
		}
		if (waiter->req != NULL) {
			fuse_reply_err(waiter->req, ENOTCONN);
		}
		waiter_free(waiter);
	}
	for (lock = TAILQ_FIRST(&file->locks); lock != NULL; lock = next) {
		next = TAILQ_NEXT(lock, entry);
		if (lock->member != member) {
			continue;
		}
		if (lock->ghost) {
			lock->member = NULL;
			continue;
		}
		drop(lock, DROP_DEATH);
	}
	TAILQ_FOREACH(lock, &file->locks, entry) {
		if (lock->member == member) {
			lock->member = NULL;
			lock->local = false;
		}
	}
}

/* each may free the file */
static void each_file(void (*each)(struct file *file, struct member *member),
		      struct member *member)
{
	struct file *file = NULL;
	struct file *next = NULL;

	for (file = LIST_FIRST(&all_files); file != NULL; file = next) {
		file_ref(file);
		each(file, member);
		wake(file);
		next = LIST_NEXT(file, entry);
		file_unref(file);
	}
}

void lock_drop_member(struct member *member)
{
	each_file(forget_member, member);
}

static void lose_all(struct file *file, struct member *member)
{
	struct lock *lock = NULL;

	(void)member;
	while ((lock = TAILQ_FIRST(&file->locks)) != NULL) {
		lock_free(lock);
	}
}

void lock_lose_all(void)
{
	each_file(lose_all, NULL);
}

void lock_lose_oldest(struct file *file)
{
	struct lock *lock = TAILQ_FIRST(&file->locks);

	if (lock == NULL) {
		return;
	}
	file_ref(file);
	lock_free(lock);
	wake(file);
	file_unref(file);
}

static void wake_sleepers(struct file *file, struct member *member)
{
	struct waiter *waiter = NULL;

	(void)member;
	TAILQ_FOREACH(waiter, &file->waiters, entry) {
		waiter->asleep = false;
	}
}

void lock_rescan_all(void)
{
	each_file(wake_sleepers, NULL);
}

static void drop_ghosts(struct file *file, struct member *member)
{
	struct lock *lock = NULL;
	struct lock *next = NULL;
	struct waiter *waiter = NULL;
	struct waiter *next_waiter = NULL;

	(void)member;
	for (waiter = TAILQ_FIRST(&file->waiters); waiter != NULL;
	     waiter = next_waiter) {
		next_waiter = TAILQ_NEXT(waiter, entry);
		if (waiter->req == NULL) {
			waiter_free(waiter);
		}
	}
	for (lock = TAILQ_FIRST(&file->locks); lock != NULL; lock = next) {
		next = TAILQ_NEXT(lock, entry);
		if (lock->ghost) {
			lock_free(lock);
		}
	}
}

void lock_drop_ghosts(void)
{
	each_file(drop_ghosts, NULL);
}

bool lock_contended(const struct file *file, const struct member *member)
{
	struct lock *lock = NULL;

	if (!TAILQ_EMPTY(&file->waiters)) {
		return true;
	}
	TAILQ_FOREACH(lock, &file->locks, entry) {
		if (lock->member != member) {
			return true;
		}
	}
	return false;
}
