/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The lock ring: the ping-pong lock pattern, run by one participant
 *
 * A ring is a file with bytes 0 .. nlocks-1. A participant that holds byte p
 * asks for byte p+1 (modulo nlocks, waiting), then lets byte p go: one turn.
 * It always holds at least one byte, so on correct locks no participant can
 * pass another, and nlocks must be greater than the number of participants.
 *
 * The state keeps the exact number of turns. "Position" is the start byte
 * plus the turns made, never reduced modulo nlocks: on correct locks the
 * positions of all participants stay in the order of their start bytes, and
 * the last one stays less than nlocks ahead of the first.
 *
 * The same loop serves the worker (core) and ping_pong (cli).
 */
#ifndef PINGPONG_PROBE_RING_H
#define PINGPONG_PROBE_RING_H

#include <stdbool.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>

enum ring_io {
	RING_LOCKS,	/* locks only */
	RING_RW,	/* and read + add one + write, pread and pwrite */
	RING_MMAP,	/* the same through a shared mapping */
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
	uint32_t seen;		/* the other holder's number + 1 */
};

/* Latency of a lock call in ns: log-linear buckets, 8 a power of two,
 * relative error below 1/8 */
#define RING_HIST_SUB 8
#define RING_HIST_BUCKETS (RING_HIST_SUB * 42)

struct ring {
	/* set by the caller */
	int fd;
	uint64_t nlocks;
	uint64_t start;		/* byte to begin with */
	enum ring_io io;
	enum ring_family family;
	bool getlk;		/* -c: F_GETLK of the own byte each turn */
	unsigned width;		/* bytes of a counter: 1 (stock) or 8; counter
				 * i lies at offset i * width */
	struct ring_ledger *ledger;	/* or NULL */
	uint32_t member;	/* own number in the ledger */
	uint64_t *hist;		/* RING_HIST_BUCKETS counts, or NULL */
	volatile sig_atomic_t *stop;	/* nonzero: end after this turn */

	/* kept by the ring */
	bool holding;		/* holds byte (position % nlocks) */
	uint64_t position;
	uint64_t turns;
	uint64_t increment;	/* last value read at this byte minus the one
				 * read there a round ago (modulo 2^8 when
				 * width is 1); what stock ping_pong calls
				 * the data increment */
	uint64_t violations;	/* by the ledger */
	struct ring_violation first;
	const char *failed;	/* the call that failed: "lock", "unlock",
				 * "getlk", "read", "write", "map" */
};

/*
 * Take the start byte (waiting) and prepare mapping and value memory.
 *
 * Returns 0 or an errno; ring->failed names the call.
 */
int ring_begin(struct ring *ring);

/*
 * Make turns until the clock (CLOCK_MONOTONIC, ns) passes deadline_ns,
 * *ring->stop is set, or a call fails. The byte held stays held.
 *
 * Returns 0 (deadline or stop; EINTR of a waiting lock with stop set or the
 * deadline passed counts as such: ring->holding says that the old byte is
 * still held), or the errno of the call that ring->failed names.
 */
int ring_run(struct ring *ring, uint64_t deadline_ns);

/* Unlock what is held, unmap, free. Returns 0 or the errno of the unlock. */
int ring_end(struct ring *ring);

/* Value in ns below which the given share (0..1) of the counts lies; 0 for
 * an empty histogram. */
uint64_t ring_hist_percentile(const uint64_t *hist, double share);

/* CLOCK_MONOTONIC in ns */
uint64_t ring_now(void);

#endif
