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
	RING_LINGER = 8,	/* now and then stay inside for a while, at
				 * most 1 ms: a lock that does not hold shows
				 * only when another asks for it meanwhile */
	RING_RW = RING_READ | RING_WRITE,
	RING_MMAP = RING_RW | RING_MAPPED,
};

enum ring_family {
	RING_PROCESS,	/* fcntl F_SETLK/F_SETLKW */
	RING_OFD,	/* F_OFD_SETLK/F_OFD_SETLKW */
};

/*
 * What a turn was, for whoever judges it: the byte at `position` was granted,
 * then the counter of the one before it was used and that byte let go. Times
 * by CLOCK_MONOTONIC. ring_begin leaves left_ns 0, ring_end granted_ns.
 */
struct ring_step {
	uint64_t position;	/* start + turns; never reduced */
	uint64_t asked_ns;	/* the lock call was made */
	uint64_t granted_ns;	/* and returned */
	uint64_t left_ns;	/* the byte before is about to be unlocked */
	uint64_t value;		/* that its counter had */
};

/* Steps that ring_end and a turn under way may need */
#define RING_LOG_SPARE 3

/* Time in ns: log-linear buckets, 8 a power of two, relative error below 1/8;
 * the last one also holds everything above 2^44 ns */
#define RING_HIST_SUB 8
#define RING_HIST_BUCKETS (RING_HIST_SUB * 42)

struct ring {
	/* set by the caller */
	int fd;			/* for I/O: a file of nlocks * width bytes */
	uint64_t nlocks;
	uint64_t start;		/* byte to begin with, below nlocks */
	uint64_t seed;		/* chooses the turns of RING_LINGER */
	uint64_t linger_ns;	/* how long one of these lasts; 0: as a byte
				 * takes from one participant to the next */
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
	struct ring_step *log;	/* NULL, or the steps made are put here; when
				 * fewer than RING_LOG_SPARE of log_size are
				 * left, ring_run ends with 0 */
	size_t log_size;
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
	size_t logged;		/* steps in the log; set to 0 by the caller
				 * once he has taken them */
	const char *failed;	/* the call that failed: "lock", "unlock",
				 * "getlk", "read", "write", "map", "memory";
				 * "arguments": what the caller has set */
	struct flock other;	/* what F_GETLK showed, after EBUSY */
	uint64_t *seen;		/* last value read, for each counter */
	uint8_t *map;
	uint64_t granted_ns;	/* when the last lock was granted */
};

/*
 * Take the start byte (waiting) and prepare mapping and value memory.
 *
 * Returns 0, EINTR (a signal came while it waited and *ring->stop is set),
 * EINVAL ("arguments": no ring of these numbers), or another errno; ring->failed names the call.
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

/* Each step's text has at least so many characters */
#define RING_STEP_TEXT_MIN 10

/*
 * Steps as text for the way from worker to coordinator: as many as fit into
 * size bytes (at least 256) with the 0 at the end. Returns how many.
 */
size_t ring_steps_print(const struct ring_step *steps, size_t num, char *buf,
			size_t size);

/* Back again, at most room of them. Returns 0 or EPROTO; then *num are right. */
int ring_steps_parse(const char *text, struct ring_step *steps, size_t room,
		     size_t *num);

/* CLOCK_MONOTONIC in ns */
uint64_t ring_now(void);

#endif
