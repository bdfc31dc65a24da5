/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a worker can be asked to do, and what it answers
 *
 * A worker has one probe directory open and 64 numbered slots for files in
 * it. A request is one step of a check and usually one system call. The same
 * two structs serve the coordinator and the worker; core/member/wire turns
 * them into JSON and back.
 */
#ifndef PINGPONG_PROBE_PROBE_H
#define PINGPONG_PROBE_PROBE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum probe_op {
	PROBE_NOP,	/* answers at once */
	PROBE_BEGIN,	/* make (make set) or open the run directory `name`;
			 * fails with ENOENT while it is not to be seen */
	PROBE_FINISH,	/* remove the run directory with all in it */
	PROBE_RESET,	/* close every slot but PROBE_SLOT_KEPT, unmap, forget
			 * the ring */
	PROBE_OPEN,	/* file `name` into slot; make: O_CREAT | O_EXCL;
			 * append: O_APPEND */
	PROBE_MAKE_MANY,/* empty files `name`N.value, `count` of them, N from
			 * start on; answer: count made */
	PROBE_CLOSE,
	PROBE_LOCK,	/* family, type F_RDLCK, F_WRLCK or F_UNLCK on start,
			 * len (0: to the end of file); wait: until granted,
			 * at most patience_ms: then EINTR */
	PROBE_GETLK,	/* what lock is in the way; type F_UNLCK: none */
	PROBE_WRITE,	/* len bytes of pattern `value` at start */
	PROBE_READ,	/* len bytes at start, compared with `value` */
	PROBE_MAP,	/* the first len bytes of the file, shared */
	PROBE_MAP_WRITE,/* as PROBE_WRITE, through the mapping; EFAULT: no
			 * page was to be had (SIGBUS) */
	PROBE_MAP_READ,
	PROBE_UNMAP,
	PROBE_TRUNCATE,	/* to size start */
	PROBE_STAT,	/* of the slot's file */
	PROBE_END,	/* size: where lseek(SEEK_END) finds the end */
	PROBE_LOOKUP,	/* fstatat of `name`: size, inode; ENOENT */
	PROBE_LIST,	/* count: how often the directory lists `name` */
	PROBE_RENAME,	/* `name` to `name2` */
	PROBE_UNLINK,	/* `name` */
	PROBE_FORK_CLOSE,/* a forked child closes the slot's descriptor and
			 * ends */
	PROBE_LOCK_EXIT,/* a forked child opens `name`, takes the process
			 * lock type, start, len without waiting, and ends by
			 * itself with it held */
	PROBE_APPEND,	/* `count` records of len bytes: pattern value + i,
			 * one write each on an O_APPEND slot */
	PROBE_COUNT,	/* of records of len bytes in the file: how many
			 * carry a pattern value .. value + count - 1 */
	PROBE_LEASE,	/* F_SETLEASE type; given up at once when it is
			 * broken */
	PROBE_LEASED,	/* count: 1 while the slot's lease is held */
	PROBE_LOCK_MANY,/* `count` F_SETLK of `type` on one byte each at
			 * start, start + 2 .., for at most patience_ms;
			 * answer: count granted, err of the first that was
			 * not */
	PROBE_CONTEND,	/* let the process lock type, start, len go and ask
			 * for it again a moment later without waiting, until
			 * it is refused (frozen) or patience_ms are over;
			 * count: how often it was granted; it is not held in
			 * the end */
	PROBE_RING,	/* take the ring's start byte (window_ms 0; count:
			 * steps of a window to be kept; value: a seed), or
			 * make turns for window_ms; patience_ms: the ring's
			 * linger_ns; see below */
	PROBE_RING_LOG,	/* steps of the ring that were not told before, as
			 * many as fit; count: how many are left */
	PROBE_RING_END,	/* let the ring's last byte go */
	PROBE_SUM,	/* value: sum of `count` counters of 64 bits at the
			 * beginning of the file; by the slot's mapping when
			 * it has one */
	PROBE_OPS	/* how many there are */
};

enum probe_family {
	PROBE_PROCESS,	/* fcntl(2) locks of the process */
	PROBE_OFD,	/* of the open file description */
	PROBE_FLOCK,	/* flock(2): whole file */
};

#define PROBE_SLOTS 64
#define PROBE_SLOT_KEPT 63
#define PROBE_NAME_MAX 80

struct probe_request {
	enum probe_op op;
	unsigned slot;
	enum probe_family family;
	int type;
	bool wait;
	bool make;
	bool keeper;		/* PROBE_BEGIN: the worker removes the run's
				 * directory when its supervisor goes */
	bool append;
	uint64_t start, len;
	uint64_t value;		/* pattern: see below */
	uint64_t count;
	unsigned patience_ms;
	unsigned deadline_ms;	/* the worker kills itself after this long */
	char name[PROBE_NAME_MAX];
	char name2[PROBE_NAME_MAX];

	/* PROBE_RING, on the slot's open file */
	uint64_t nlocks;
	unsigned io;		/* enum ring_io: core/probe/ring.h */
	unsigned window_ms;
};

/*
 * Patterns: value v at offset o of a file gives the byte
 * probe_pattern(v, o); neighbouring values differ in every byte, so that one
 * byte tells two generations apart. Value 0 is a hole: all zeroes.
 */
uint8_t probe_pattern(uint64_t value, uint64_t offset);

struct probe_answer {
	int err;		/* 0 or the errno of the operation */
	uint64_t ns;		/* how long the system call took */

	/* PROBE_GETLK */
	int type;
	uint64_t start, len;
	int pid;

	/* PROBE_READ, PROBE_MAP_READ, PROBE_COUNT, PROBE_LOCK_MANY ... */
	uint64_t count;		/* bytes read, records found, locks got */
	uint64_t wrong;		/* bytes that are not the pattern's */
	uint64_t at;		/* offset of the first of them */
	uint64_t value;		/* the other pattern that would explain it:
				 * value - 1 .. value - 8 or 0; UINT64_MAX:
				 * none */

	/* PROBE_BEGIN, PROBE_STAT, PROBE_LOOKUP */
	uint64_t dev, inode, size, fsid;

	/* PROBE_RING */
	uint64_t turns, position;
	bool frozen;		/* stopped between two calls or by its
				 * signal: it still holds its byte */
	uint64_t p50_ns, p99_ns, max_ns;
	char failed[16];	/* the call that failed */

	/* PROBE_RING_LOG */
	const char *log;	/* ring_steps_parse() reads it; NULL: none.
				 * The member's, until its next call */
	uint64_t clock_ns;	/* also PROBE_RING: CLOCK_MONOTONIC there, at
				 * the end of the operation */
};

#endif
