/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Histories: who did what when, and whether a coherent file system can have
 * answered so
 *
 * A history is a list of operations of several members on one file. Each was
 * invoked at one time and answered at a later one; what the file system did
 * for it, it did somewhere between the two. So only two things are certain,
 * and only by them is it judged:
 *
 * - a lock is held from the answer of the lock call until its unlock is
 *   invoked;
 * - one operation is before another when it was answered before the other was
 *   invoked.
 *
 * Times are nanoseconds of one clock. Whoever takes them from the clocks of
 * several hosts widens each operation by what the clocks may differ; then
 * less is certain, and nothing is wrong that may have been right.
 */
#ifndef PINGPONG_CHECKS_HISTORY_H
#define PINGPONG_CHECKS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <talloc.h>

#include "core/probe/ring.h"

#define HISTORY_NEVER UINT64_MAX	/* no answer came */

enum history_what {
	HISTORY_LOCK,		/* granted; it takes the place of what the
				 * member held there. A lock call that was
				 * refused or got no answer is no operation */
	HISTORY_UNLOCK,		/* also by close or death */
	HISTORY_READ,		/* saw value */
	HISTORY_WRITE,		/* no two of one place write the same value,
				 * unless the first of them was lost */
};

struct history_op {
	enum history_what what;
	bool shared;		/* LOCK: a read lock */
	unsigned member;
	uint64_t start, len;	/* bytes; len 0: to the end of file. READ and
				 * WRITE: two of them are about one place when
				 * start is the same */
	uint64_t value;
	uint64_t invoked_ns, answered_ns;
};

struct history {
	struct history_op *ops;	/* talloc array; those of one member in the
				 * order in which it invoked them */
	size_t num;
	size_t before;		/* the first so many were judged before, and
				 * are only kept for what comes after */
	bool oom;		/* some are missing */
};

enum history_wrong {
	HISTORY_RIGHT,
	HISTORY_OVERLAP,	/* op was granted while other was held */
	HISTORY_STALE,		/* op read what other had overwritten */
	HISTORY_NOWHERE,	/* op read what nobody had written */
	HISTORY_LOST,		/* op wrote the value that other had written:
				 * other's write was not read, or is lost */
};

struct history_verdict {
	uint64_t grants;	/* locks judged: those held for certain */
	uint64_t overlaps;	/* of these, granted while another was held */
	uint64_t reads;		/* judged */
	uint64_t wrong;		/* of these, and writes that were lost */
	uint64_t lost;		/* so many of them are writes */
	/* the first of either kind, by time; other has the value 0 and the
	 * times 0 for NOWHERE */
	enum history_wrong lock_wrong, data_wrong;
	struct history_op lock_op, lock_other;
	struct history_op data_op, data_other;
};

/* Append; sets oom for want of memory. h is a talloc chunk. */
void history_add(struct history *h, const struct history_op *op);

/*
 * A ring's log as operations: each step is a lock, what io does with the
 * counter (start: the counter's number), and the unlock of the byte before.
 */
void history_add_ring(struct history *h, unsigned member,
		      const struct ring_step *steps, size_t num,
		      uint64_t nlocks, unsigned io);

/*
 * Judge a history. A pure function; the order of members in it does not
 * matter. Returns 0 or ENOMEM.
 */
int history_judge(const struct history *h, struct history_verdict *verdict);

/*
 * Drop what has been judged and cannot make a later operation wrong: locks
 * that were let go, values that were overwritten for certain.
 */
void history_forget(struct history *h);

/*
 * A ring whose members all stand still: positions of those who began at byte
 * 0, 1, ... (HISTORY_NEVER: not known). Nobody may have passed anybody, and
 * the last is less than a round ahead of the first. Needs no clock.
 *
 * Returns true, or false and who is not behind whom.
 */
bool history_in_order(const uint64_t *positions, unsigned num,
		      uint64_t nlocks, unsigned *who, unsigned *whom);

#endif
