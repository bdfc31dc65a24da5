/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Rounds: all members do the same thing at the same time
 *
 * A check of data, names or identities is a list of rounds. In a round every
 * member carries out the same operation, on the file that it made itself
 * (MINE) or on the file that another one made (THEIRS: that of the member
 * `distance` before it), and the next round begins when all have answered
 * over the channel. So it is known for certain what was done before what, and
 * n members prove n pairs in the time of one.
 *
 * What another member did is seen at a time (sight SEEN):
 * - under a lock (`locked`) it must be seen by the first look after it; else
 *   the file system is wrong;
 * - without a lock it may take 1 s; longer is slow; and what is not seen
 *   although the attribute cache's time is over is wrong.
 * Whoever does not see it is asked again for a while, so that the result
 * tells how old the stale data was.
 *
 * Calling sequence: rounds_send() with what the check is made of; it has the
 * check's build() fill in the rounds of trial 0, carries them out, goes on
 * with trial 1, and ends with the first trial that is not as it must be
 * (unless go_on), with the last one, or when the check has had its time.
 * RUN_THOROUGH repeats until its time is over.
 *
 * When locks are refused, the trial is built again without them: this is
 * about data; lock.* says what is wrong with the locks.
 */
#ifndef PINGPONG_CHECKS_ROUNDS_H
#define PINGPONG_CHECKS_ROUNDS_H

#include "core/checks/check.h"
#include "core/checks/run.h"

enum whose {
	MINE,		/* the member's own file: what is done changes it */
	THEIRS,		/* the other member's file: it is looked at */
	OURS,		/* one file for all */
};

enum who {
	EACH,
	FIRST,		/* the first member only */
	REST,		/* all but the first */
};

enum see {
	SEE_ANYTHING,	/* nothing is compared but that it ends */
	SEE_DONE,	/* no error */
	SEE_ERRNO,	/* exactly `expected` */
	SEE_DATA,	/* the pattern, `expected` bytes of it */
	SEE_SIZE,	/* size is `expected` */
	SEE_COUNT,	/* count is `expected`, and nothing else is there */
	SEE_NO_LEASE,	/* PROBE_LEASED: none is held */
	SEE_INODE,	/* as the maker's open said */
};

enum sight {
	AT_ONCE,	/* the first answer counts */
	SOON,		/* within 1 s; else the check cannot be prepared */
	SEEN,		/* on the time scale above */
};

struct rounds;

struct round {
	enum whose whose;
	enum who who;
	struct probe_request req;	/* name, name2: without the number of
					 * the maker, which is added */
	enum see see;
	uint64_t expected;
	enum sight sight;
	bool setup;		/* not what is tested: when it goes wrong, the
				 * check is skipped */
	const char *how;	/* in words, or NULL: "descriptor kept open" */
	const char *means;	/* what a wrong answer means, or NULL */
	/* told of each member's answer once it is as expected, or NULL */
	void (*note)(struct rounds *r, unsigned member,
		     const struct probe_answer *answer);
};

struct rounds {
	/* for build() */
	struct run *run;
	struct check_result *result;
	unsigned num;		/* members */
	unsigned trial;		/* 0 .. */
	bool locked;		/* changes and looks go under locks */
	bool brief;		/* locks are slow: as few as possible */
	char file[PROBE_NAME_MAX];	/* fresh names: one for each of */
	char file2[PROBE_NAME_MAX];	/* the members' files */

	/* filled in by the builders below */
	struct round *list;	/* talloc array */
	size_t num_rounds;
	bool oom;

	/* what came of the trial; for trial_over() */
	enum outcome outcome;
	bool stale;		/* fail or slow: old data, sizes, names */
};

struct rounds_check {
	void (*build)(struct rounds *r);
	/* looks at the outcome of one trial, or NULL */
	void (*trial_over)(struct rounds *r);
	unsigned trials[RUN_THOROUGH + 1];	/* by run_level; thorough:
						 * at least */
	bool locks;		/* under process locks, where they work */
	bool new_names;		/* no file of it may be made ahead */
	bool go_on;		/* with the next trial when one was wrong */
};

/* ---- building: each returns the round, to be refined; never NULL -------- */

struct round *round_add(struct rounds *r, enum whose whose, enum probe_op op,
			unsigned slot);
/* each makes its file, slot 0, and opens the other's, slot 1 */
void round_open_both(struct rounds *r);
/* the file once more, into another slot */
struct round *round_open(struct rounds *r, enum whose whose, unsigned slot);
/* Only where the trial is under locks: else no round is added. */
void round_lock(struct rounds *r, enum whose whose, unsigned slot,
		uint64_t start, uint64_t len);
void round_unlock(struct rounds *r, enum whose whose, unsigned slot,
		  uint64_t start, uint64_t len);
/* op: PROBE_WRITE or PROBE_MAP_WRITE to one's own file */
struct round *round_write(struct rounds *r, enum probe_op op, unsigned slot,
			  uint64_t start, uint64_t len, uint64_t value);
/* op: PROBE_READ or PROBE_MAP_READ, all of it, SEEN if it is theirs */
struct round *round_read(struct rounds *r, enum whose whose, enum probe_op op,
			 unsigned slot, uint64_t start, uint64_t len,
			 uint64_t value);
/* The first len bytes of the file, which the file must have. */
void round_map(struct rounds *r, enum whose whose, unsigned slot,
	       uint64_t len);

/* ---- running ------------------------------------------------------------ */

/* rounds_recv() returns 0 with the result filled in, or ENOMEM. */
struct tevent_req *rounds_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			       struct run *run, struct check_result *result,
			       const struct rounds_check *check);
int rounds_recv(struct tevent_req *req);

#endif
