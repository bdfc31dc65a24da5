/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The lock ring: the ping-pong lock pattern, run by one participant
 *
 * A ring is a file with bytes 0 .. nlocks-1. A participant that holds byte p
 * asks for byte p+1 (modulo nlocks, waiting), does its I/O on counter p, then
 * lets byte p go: one turn. It always holds at least one byte, so on correct
 * locks no participant can pass another, and nlocks must be greater than the
 * number of participants (a single byte is no ring: each turn then takes it
 * and lets it go).
 *
 * The state keeps the exact number of turns. "Position" is the start byte
 * plus the turns made, never reduced modulo nlocks: on correct locks the
 * positions of all participants stay in the order of their start bytes, and
 * the last one stays less than nlocks ahead of the first.
 *
 * From that order follows what the counters must do: between two visits of
 * one participant to a counter each other participant visits it exactly once,
 * so the value grows by exactly the number of participants, each time, as
 * long as all hold a byte (ring_begin) and none has left (ring_end). Over a
 * whole test the counters' sum is the sum of all turns.
 *
 * The same loop serves the worker (core) and ping_pong (cli).
 *
 * Calling sequence: struct ring with the caller's fields set and the rest
 * zero; ring_begin, ring_run as often as liked, ring_end. ring_end is right
 * after any failure too, that of ring_begin included.
 */
#ifndef PINGPONG_PROBE_RING_H
#define PINGPONG_PROBE_RING_H

#include <stdbool.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "core/probe/syscalls.h"

/* What is done to a counter each turn: any union of the first three */
enum ring_io {
	RING_LOCKS = 0,		/* nothing: locks only */
	RING_READ = 1,
	RING_WRITE = 2,		/* the value last read, plus one */
	RING_MAPPED = 4,	/* through a shared mapping, not by pread and
				 * pwrite */
	RING_RW = RING_READ | RING_WRITE,
	RING_MMAP = RING_RW | RING_MAPPED,
};

enum ring_family {
	RING_PROCESS,	/* fcntl F_SETLK/F_SETLKW */
	RING_OFD,	/* F_OFD_SETLK/F_OFD_SETLKW */
};

/*
 * Who is inside: one word a byte of the ring, in memory shared by the
 * participants of one host (a memfd that came over the channel, never a file
 * of the file system under test). 0: nobody, else participant number + 1.
 * Set right after the grant and cleared right before the unlock, so that any
 * other owner seen at a grant is a proven violation of exclusion.
 */
struct ring_ledger {
	uint32_t nlocks;
	_Atomic uint32_t holder[];
};

/* What was wrong, first occurrence */
struct ring_violation {
	uint64_t turn;		/* turns made before it */
	uint64_t byte;
	uint64_t seen;		/* ledger: the other holder's number + 1;
				 * counter: the increment found */
};

/* Time in ns: log-linear buckets, 8 a power of two, relative error below 1/8;
 * the last one also holds everything above 2^44 ns */
#define RING_HIST_SUB 8
#define RING_HIST_BUCKETS (RING_HIST_SUB * 42)

struct ring {
	/* set by the caller */
	int fd;			/* for I/O: a file of nlocks * width bytes */
	uint64_t nlocks;
	uint64_t start;		/* byte to begin with, below nlocks */
	enum ring_io io;
	enum ring_family family;
	bool getlk;		/* -c: F_GETLK of the own byte each turn; a
				 * lock of somebody else there ends the run
				 * with EBUSY, failed "getlk" */
	unsigned width;		/* bytes of a counter: 1 (stock) or 8 (host
				 * byte order); counter i lies at offset
				 * i * width. Used with RING_READ or
				 * RING_WRITE only */
	bool until_change;	/* ring_run also ends, with 0, after a turn
				 * that gave another increment */
	uint32_t members;	/* nonzero: all these participants hold a
				 * byte, and none leaves before this run ends:
				 * judge each increment, from a round after
				 * the start of the run on */
	struct ring_ledger *ledger;	/* or NULL */
	uint32_t member;	/* own number in the ledger */
	uint64_t *hist;		/* RING_HIST_BUCKETS counts, or NULL: time
				 * of each turn from one grant to the next */
	volatile sig_atomic_t *stop;	/* nonzero: end after this turn; or
					 * NULL */

	/* kept by the ring; turns and position are up to date whenever a
	 * system call is made, turns for other threads too */
	_Atomic uint64_t turns;
	uint64_t position;
	bool holding;		/* holds byte (position % nlocks) */
	bool holding_next;	/* and the next one: a call has failed in the
				 * middle of a turn */
	uint64_t increment;	/* last value read at a byte minus the one
				 * read there a round ago (modulo 2^8 when
				 * width is 1); what stock ping_pong calls
				 * the data increment. 0 in the first round */
	uint64_t violations;	/* by the ledger */
	struct ring_violation first;
	uint64_t judged;	/* increments judged */
	uint64_t wrong;		/* of these, not equal to members: updates
				 * lost, stale reads, or no exclusion */
	struct ring_violation first_wrong;
	const char *failed;	/* the call that failed: "lock", "unlock",
				 * "getlk", "read", "write", "map", "memory";
				 * "arguments": what the caller has set */
	struct flock other;	/* what F_GETLK showed, after EBUSY */
	uint64_t *seen;		/* last value read, for each counter */
	uint8_t *map;
	uint64_t granted_ns;	/* when the last lock was granted, for hist */
};

/*
 * Take the start byte (waiting) and prepare mapping and value memory.
 *
 * Returns 0, EINTR (a signal came while it waited and *ring->stop is set),
 * EINVAL ("arguments": no ring of these numbers, or a ledger of another
 * size), or another errno; ring->failed names the call.
 */
int ring_begin(struct ring *ring);

/*
 * Make turns, at least one, until the clock (CLOCK_MONOTONIC, ns; looked at
 * after each turn, at most a few ms late) passes deadline_ns, the increment
 * changes (until_change), or a call fails; none or no more as soon as
 * *ring->stop is set. The byte held stays held.
 *
 * A lock that waits is not bounded by the deadline: only a signal whose
 * handler was installed without SA_RESTART ends the wait, and only with stop
 * set or the deadline passed, else the wait goes on. A signal that comes just
 * before the call is lost, so send it repeatedly (an interval timer).
 *
 * Returns 0 (deadline, stop, change; a wait ended by a signal counts as
 * such, and that turn is not made), or the errno of the call that
 * ring->failed names; ENODATA: the file ended before the counter, EBUSY: see
 * getlk. A turn whose unlock failed is not counted, although its counter has
 * been written.
 */
int ring_run(struct ring *ring, uint64_t deadline_ns);

/* Unlock what is held, unmap, free. Returns 0 or the errno of the first call
 * that failed, which ring->failed then names ("unlock" or "map"). */
int ring_end(struct ring *ring);

/* Value in ns below which at least the given share (0..1) of the counts lies:
 * the upper edge of a bucket; 0 for an empty histogram. */
uint64_t ring_hist_percentile(const uint64_t *hist, double share);

/* CLOCK_MONOTONIC in ns */
uint64_t ring_now(void);

#endif
