/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The lock ring; see ring.h.
 *
 * Where a turn's time goes: 98 % of it into the kernel, in two system calls
 * (3 microseconds on the virtual machine where this was measured; `waf
 * bench`). What is left, about 60 instructions of our own:
 *
 * - The deadline is looked at each turn, so that a ring of one turn a minute
 *   is as punctual as one of a million turns a second, but with the coarse
 *   clock: 3 ns, where the precise one, which stock ping_pong reads each
 *   turn, takes 28. No timer signal, since it would interrupt a waiting lock,
 *   which is itself an operation that file systems get wrong.
 * - With a histogram there is one precise reading a turn, at the grant, which
 *   serves the deadline as well; hence the time from grant to grant. With a
 *   log there are three: what is certain of a lock is the time between.
 * - A ring of locks only asks once for all whether there is more to do, and
 *   its lock requests are built once: 50 instructions less, and 1 to 2 %,
 *   for each of them is cold when the kernel returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "core/probe/ring.h"

#define NS_PER_S 1000000000ULL

/* Longest stay inside, and up to where it is spent spinning, since a sleep
 * takes at least 50 us */
#define LINGER_MAX_NS 1000000ULL
#define LINGER_SPIN_NS 50000ULL

static uint64_t read_clock(clockid_t clock)
{
	struct timespec ts = {};

	clock_gettime(clock, &ts);

	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

uint64_t ring_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

/* Below RING_HIST_SUB a value is its own bucket; above, the three bits after
 * the leading one choose among the buckets of its power of two. */
static unsigned hist_bucket(uint64_t ns)
{
	unsigned shift = 0;
	unsigned bucket = 0;

	if (ns < RING_HIST_SUB) {
		return ns;
	}

	shift = 60 - __builtin_clzll(ns);
	bucket = shift * RING_HIST_SUB + (ns >> shift);

	return bucket < RING_HIST_BUCKETS ? bucket : RING_HIST_BUCKETS - 1;
}

static uint64_t hist_upper_edge(unsigned bucket)
{
	unsigned shift = 0;

	if (bucket < RING_HIST_SUB) {
		return bucket + 1;
	}

	shift = bucket / RING_HIST_SUB - 1;

	return (uint64_t)(RING_HIST_SUB + bucket % RING_HIST_SUB + 1) << shift;
}

uint64_t ring_hist_percentile(const uint64_t *hist, double share)
{
	uint64_t total = 0;
	uint64_t below = 0;
	unsigned i = 0;

	for (i = 0; i < RING_HIST_BUCKETS; i++) {
		total += hist[i];
	}
	if (total == 0) {
		return 0;
	}

	for (i = 0; i < RING_HIST_BUCKETS; i++) {
		below += hist[i];
		if (below > 0 && (double)below >= share * (double)total) {
			return hist_upper_edge(i);
		}
	}

	return hist_upper_edge(RING_HIST_BUCKETS - 1);
}

static int fail(struct ring *ring, const char *call, int err)
{
	ring->failed = call;

	return err;
}

static bool stopped(const struct ring *ring)
{
	return ring->stop != NULL && *ring->stop != 0;
}

static struct flock byte_lock(short type, uint64_t byte)
{
	return (struct flock) {
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = byte,
		.l_len = 1,
	};
}

static inline int set_lock(const struct syscall_table *sys,
			   const struct ring *ring, struct flock *fl)
{
	int cmd = ring->family == RING_OFD ? F_OFD_SETLKW : F_SETLKW;
	int ret = 0;

	ret = sys->fcntl_lock(ring->fd, cmd, fl);

	return ret == 0 ? 0 : errno;
}

/* Nobody waits for an unlock or for I/O: a signal is no reason to give up. */
static inline int unlock(const struct syscall_table *sys,
			 const struct ring *ring, struct flock *fl)
{
	int ret = 0;

	do {
		ret = set_lock(sys, ring, fl);
	} while (ret == EINTR);

	return ret;
}

static int check_lock(const struct syscall_table *sys, struct ring *ring,
		      uint64_t byte)
{
	struct flock fl = byte_lock(F_WRLCK, byte);
	int cmd = ring->family == RING_OFD ? F_OFD_GETLK : F_GETLK;
	int ret = 0;

	ret = sys->fcntl_lock(ring->fd, cmd, &fl);
	if (ret != 0) {
		return errno;
	}
	if (fl.l_type != F_UNLCK) {
		ring->other = fl;
		return EBUSY;
	}

	return 0;
}

static int read_counter(const struct syscall_table *sys,
			const struct ring *ring, uint64_t byte,
			uint64_t *value)
{
	off_t ofs = byte * ring->width;
	uint8_t narrow = 0;
	uint64_t wide = 0;
	void *buf = ring->width == 1 ? (void *)&narrow : (void *)&wide;
	ssize_t nread = 0;

	if (ring->map != NULL) {
		if (ring->width == 1) {
			*value = *(volatile uint8_t *)(ring->map + ofs);
		} else {
			*value = *(volatile uint64_t *)(ring->map + ofs);
		}
		return 0;
	}

	do {
		nread = sys->pread(ring->fd, buf, ring->width, ofs);
	} while (nread == -1 && errno == EINTR);
	if (nread == -1) {
		return errno;
	}
	if (nread != (ssize_t)ring->width) {
		return ENODATA;
	}

	*value = ring->width == 1 ? narrow : wide;

	return 0;
}

static int write_counter(const struct syscall_table *sys,
			 const struct ring *ring, uint64_t byte,
			 uint64_t value)
{
	off_t ofs = byte * ring->width;
	uint8_t narrow = value;
	const void *buf =
		ring->width == 1 ? (void *)&narrow : (void *)&value;
	ssize_t nwritten = 0;

	if (ring->map != NULL) {
		if (ring->width == 1) {
			*(volatile uint8_t *)(ring->map + ofs) = narrow;
		} else {
			*(volatile uint64_t *)(ring->map + ofs) = value;
		}
		return 0;
	}

	do {
		nwritten = sys->pwrite(ring->fd, buf, ring->width, ofs);
	} while (nwritten == -1 && errno == EINTR);
	if (nwritten == -1) {
		return errno;
	}
	if (nwritten != (ssize_t)ring->width) {
		return EIO;
	}

	return 0;
}

static void log_step(struct ring *ring, uint64_t position, uint64_t asked_ns,
		     uint64_t granted_ns, uint64_t left_ns, uint64_t value)
{
	if (ring->log == NULL || ring->logged == ring->log_size) {
		return;
	}
	ring->log[ring->logged++] = (struct ring_step) {
		.position = position,
		.asked_ns = asked_ns,
		.granted_ns = granted_ns,
		.left_ns = left_ns,
		.value = value,
	};
}

static bool log_full(const struct ring *ring)
{
	return ring->log != NULL &&
	       ring->logged + RING_LOG_SPARE > ring->log_size;
}

/*
 * A quarter of the turns, none of them regularly, and as long as a byte takes
 * from one participant to the next: whoever follows asks for this one by then,
 * and the ring is slower by a quarter only.
 */
static void linger(const struct ring *ring, uint64_t turn_ns)
{
	uint64_t mix = (ring->turns + ring->seed) * 0x9e3779b97f4a7c15ULL;
	uint64_t until = 0;

	if (mix >> 62 != 0) {
		return;
	}
	turn_ns = ring->linger_ns != 0 ? ring->linger_ns
				       : turn_ns / ring->nlocks;
	if (turn_ns > LINGER_MAX_NS) {
		turn_ns = LINGER_MAX_NS;
	}
	if (turn_ns > LINGER_SPIN_NS) {
		struct timespec ts = { .tv_nsec = (long)turn_ns };

		/* a signal is about the end: then no more of it */
		nanosleep(&ts, NULL);
		return;
	}
	until = ring_now() + turn_ns;
	while (ring_now() < until) {
		;
	}
}

/* Returns true when the increment is another one than last time. */
static bool take_increment(struct ring *ring, uint64_t byte, uint64_t value)
{
	uint64_t last = ring->increment;

	ring->increment = value - ring->seen[byte];
	if (ring->width == 1) {
		ring->increment &= UINT8_MAX;
	}

	return ring->increment != last;
}

static int do_io(const struct syscall_table *sys, struct ring *ring,
		 uint64_t byte, uint64_t turn_ns, bool *changed)
{
	uint64_t value = 0;
	int ret = 0;

	if (ring->io & RING_READ) {
		ret = read_counter(sys, ring, byte, &value);
		if (ret != 0) {
			return fail(ring, "read", ret);
		}
		if (ring->turns >= ring->nlocks) {
			*changed = take_increment(ring, byte, value);
		}
		ring->seen[byte] = value;
	}

	if (ring->io & RING_LINGER) {
		linger(ring, turn_ns);
	}

	if (ring->io & RING_WRITE) {
		ret = write_counter(sys, ring, byte, ring->seen[byte] + 1);
		if (ret != 0) {
			return fail(ring, "write", ret);
		}
	}

	return 0;
}

static bool arguments_ok(const struct ring *ring)
{
	if (ring->start >= ring->nlocks) {
		return false;
	}

	return !(ring->io & RING_RW) || ring->width == 1 || ring->width == 8;
}

int ring_begin(struct ring *ring)
{
	const struct syscall_table *sys = syscalls();
	struct flock lock = byte_lock(F_WRLCK, ring->start);
	uint64_t asked_ns = 0;
	bool ok = false;
	int ret = 0;

	ring->failed = NULL;
	ok = arguments_ok(ring);
	if (!ok) {
		return fail(ring, "arguments", EINVAL);
	}

	ring->position = ring->start;

	if (ring->io & RING_RW) {
		ring->seen = calloc(ring->nlocks, sizeof(*ring->seen));
		if (ring->seen == NULL) {
			return fail(ring, "memory", ENOMEM);
		}
	}

	if ((ring->io & RING_RW) && (ring->io & RING_MAPPED)) {
		void *map = NULL;

		map = sys->mmap(NULL, ring->nlocks * ring->width,
				PROT_READ | PROT_WRITE, MAP_SHARED,
				ring->fd, 0);
		if (map == MAP_FAILED) {
			return fail(ring, "map", errno);
		}
		ring->map = map;
	}

	asked_ns = ring_now();
	do {
		ret = set_lock(sys, ring, &lock);
	} while (ret == EINTR && !stopped(ring));
	if (ret != 0) {
		return fail(ring, "lock", ret);
	}
	ring->holding = true;
	log_step(ring, ring->position, asked_ns, ring_now(), 0, 0);

	return 0;
}

/* EINTR: a signal ended the wait, and the run is over. */
static inline int wait_for_lock(const struct syscall_table *sys,
				const struct ring *ring, struct flock *lock,
				uint64_t deadline_ns)
{
	int ret = 0;

	ret = set_lock(sys, ring, lock);
	while (ret == EINTR) {
		if (stopped(ring) || ring_now() >= deadline_ns) {
			return EINTR;
		}
		ret = set_lock(sys, ring, lock);
	}

	return ret;
}

/* Returns how long it took since the last grant. */
static uint64_t count_time(struct ring *ring)
{
	uint64_t now = ring_now();
	uint64_t turn_ns = now - ring->granted_ns;

	if (ring->hist != NULL) {
		ring->hist[hist_bucket(turn_ns)]++;
	}
	ring->granted_ns = now;

	return turn_ns;
}

/* What is done while both bytes are held */
static int use_turn(const struct syscall_table *sys, struct ring *ring,
		    uint64_t byte, uint64_t turn_ns, bool *changed)
{
	int ret = 0;

	if (ring->getlk) {
		ret = check_lock(sys, ring, byte);
		if (ret != 0) {
			return fail(ring, "getlk", ret);
		}
	}

	return do_io(sys, ring, byte, turn_ns, changed);
}

int ring_run(struct ring *ring, uint64_t deadline_ns)
{
	const struct syscall_table *sys = syscalls();
	bool timed = ring->hist != NULL || ring->log != NULL;
	bool locks_only = (ring->io & (RING_RW | RING_LINGER)) == 0 &&
			  !ring->getlk && ring->log == NULL;
	struct flock lock = byte_lock(F_WRLCK, 0);
	struct flock unlocked = byte_lock(F_UNLCK, 0);
	uint64_t byte = ring->position % ring->nlocks;
	uint64_t now = 0;
	bool changed = false;
	int ret = 0;

	ring->failed = NULL;
	if (timed) {
		now = ring->granted_ns = ring_now();
	}

	while (!stopped(ring) && !log_full(ring)) {
		uint64_t next = byte + 1 < ring->nlocks ? byte + 1 : 0;
		uint64_t asked_ns = now;
		uint64_t turn_ns = 0;

		lock.l_start = next;
		ret = wait_for_lock(sys, ring, &lock, deadline_ns);
		if (ret == EINTR) {
			break;
		}
		if (ret != 0) {
			return fail(ring, "lock", ret);
		}
		ring->holding_next = true;

		if (timed) {
			turn_ns = count_time(ring);
		}
		if (!locks_only) {
			ret = use_turn(sys, ring, byte, turn_ns, &changed);
			if (ret != 0) {
				return ret;
			}
		}
		if (ring->log != NULL) {
			log_step(ring, ring->position + 1, asked_ns,
				 ring->granted_ns, ring_now(),
				 ring->seen != NULL ? ring->seen[byte] : 0);
		}

		unlocked.l_start = byte;
		ret = unlock(sys, ring, &unlocked);
		if (ret != 0) {
			return fail(ring, "unlock", ret);
		}
		ring->holding = ring->nlocks > 1;
		ring->holding_next = false;
		ring->position++;
		atomic_store_explicit(&ring->turns, ring->turns + 1,
				      memory_order_relaxed);
		byte = next;

		if (ring->log != NULL) {
			now = ring_now();
		} else if (ring->hist != NULL) {
			now = ring->granted_ns;
		} else {
			now = read_clock(CLOCK_MONOTONIC_COARSE);
		}
		if (now >= deadline_ns || (changed && ring->until_change)) {
			break;
		}
	}

	return 0;
}

static int release(const struct syscall_table *sys, struct ring *ring,
		   bool held, uint64_t position)
{
	struct flock unlocked = {};

	if (!held) {
		return 0;
	}
	unlocked = byte_lock(F_UNLCK, position % ring->nlocks);
	log_step(ring, position + 1, 0, 0, ring_now(), 0);

	return unlock(sys, ring, &unlocked);
}

int ring_end(struct ring *ring)
{
	const struct syscall_table *sys = syscalls();
	int unmap_errno = 0;
	int errno_here = 0;
	int errno_next = 0;

	errno_here = release(sys, ring, ring->holding, ring->position);
	errno_next = release(sys, ring, ring->holding_next,
			     ring->position + 1);
	ring->holding = false;
	ring->holding_next = false;

	if (ring->map != NULL) {
		int ret = 0;

		ret = sys->munmap(ring->map, ring->nlocks * ring->width);
		unmap_errno = ret == 0 ? 0 : errno;
		ring->map = NULL;
	}
	free(ring->seen);
	ring->seen = NULL;

	if (errno_here != 0) {
		return fail(ring, "unlock", errno_here);
	}
	if (errno_next != 0) {
		return fail(ring, "unlock", errno_next);
	}

	return unmap_errno == 0 ? 0 : fail(ring, "map", unmap_errno);
}
