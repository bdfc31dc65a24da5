/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is written, how long a file is, what is appended: seen by the others
 */
#include <string.h>

#include "core/checks/catalogue.h"
#include "core/checks/rounds.h"

#define EOF_LEN 0

#define KEPT "by a descriptor kept open"
#define REOPENED "by a descriptor opened after the write"
#define STALE "old data is read"
#define OLD_SIZE "an old size is seen"

/* ---- io.visibility ------------------------------------------------------ */

#define RANGES 2

static const struct {
	uint64_t start, len;
} ranges[][RANGES] = {
	{ { 4095, 2 }, { 12289, 65543 } },	/* across pages' ends */
	{ { 1, 511 }, { 8191, 4098 } },
	{ { 0, 1 }, { 4096, 4096 } },		/* a page that is not the
						 * first */
	{ { 0, 1 << 20 }, { 65521, 31 } },	/* across FUSE's reads */
	{ { 131072, 131072 }, { (1 << 20) - 1, 1 } },
	{ { 511, 1 }, { 4097, 1 << 20 } },
};

#define NUM_RANGES (sizeof(ranges) / sizeof(ranges[0]))

/* Thorough: what the table does not have */
static void range_random(struct run *run, uint64_t *start, uint64_t *len)
{
	unsigned bits = (unsigned)(run_random(run) % 21);

	*len = 1 + (run_random(run) & (((uint64_t)1 << bits) - 1));
	*start = run_random(run) % (1 << 17);
}

static void range_of(struct rounds *r, unsigned i, uint64_t *start,
		     uint64_t *len)
{
	if (r->trial < NUM_RANGES) {
		*start = ranges[r->trial][i].start;
		*len = ranges[r->trial][i].len;
		return;
	}
	range_random(r->run, start, len);
}

static void generation_write(struct rounds *r, uint64_t start, uint64_t len,
			     uint64_t value)
{
	round_lock(r, MINE, 0, start, len);
	round_write(r, PROBE_WRITE, 0, start, len, value);
	round_unlock(r, MINE, 0, start, len);
}

static void generation_read(struct rounds *r, unsigned slot, uint64_t start,
			    uint64_t len, uint64_t value, const char *how)
{
	struct round *round = NULL;

	round_lock(r, THEIRS, slot, start, len);
	round = round_read(r, THEIRS, PROBE_READ, slot, start, len, value);
	round->how = how;
	round->means = STALE;
	round_unlock(r, THEIRS, slot, start, len);
}

static void visibility_range(struct rounds *r, uint64_t start, uint64_t len,
			     uint64_t *value)
{
	unsigned generations = r->brief ? 1 :
			       run_level(r->run) == RUN_LIGHT ? 2 : 3;
	unsigned i;

	for (i = 0; i < generations; i++) {
		generation_write(r, start, len, ++*value);
		generation_read(r, 1, start, len, *value, KEPT);
	}
	if (r->brief) {
		return;
	}
	generation_write(r, start, len, ++*value);
	round_open(r, THEIRS, 2);
	generation_read(r, 2, start, len, *value, REOPENED);
	round_add(r, THEIRS, PROBE_CLOSE, 2);
	generation_read(r, 1, start, len, *value, KEPT);
}

/* Cut off and made as long again: what was there before is gone */
static void visibility_hole(struct rounds *r, uint64_t end, uint64_t *value)
{
	uint64_t start = end / 2;

	generation_write(r, 0, end, ++*value);
	generation_read(r, 1, 0, end, *value, KEPT);
	round_lock(r, MINE, 0, 0, EOF_LEN);
	round_add(r, MINE, PROBE_TRUNCATE, 0)->req.start = start;
	round_add(r, MINE, PROBE_TRUNCATE, 0)->req.start = end;
	round_unlock(r, MINE, 0, 0, EOF_LEN);
	generation_read(r, 1, start, end - start, 0, KEPT);
}

static void visibility_build(struct rounds *r)
{
	uint64_t start[RANGES], len[RANGES], end = 0, value = 1;
	unsigned n = r->brief ? 1 : RANGES;
	struct round *round = NULL;
	unsigned i;

	for (i = 0; i < n; i++) {
		range_of(r, i, &start[i], &len[i]);
		end = start[i] + len[i] > end ? start[i] + len[i] : end;
	}
	round_open(r, MINE, 0)->req.make = true;
	round_write(r, PROBE_WRITE, 0, 0, end, value);
	round_open(r, THEIRS, 1);
	/* what the readers' caches are filled with */
	round = round_read(r, THEIRS, PROBE_READ, 1, 0, end, value);
	round->see = SEE_ANYTHING;
	for (i = 0; i < n; i++) {
		visibility_range(r, start[i], len[i], &value);
	}
	if (!r->brief) {
		visibility_hole(r, end, &value);
	}
}

static const struct rounds_check visibility = {
	.build = visibility_build,
	.trials = {
		[RUN_LIGHT] = 3,
		[RUN_QUICK] = NUM_RANGES,
		[RUN_DEFAULT] = NUM_RANGES,
		[RUN_THOROUGH] = NUM_RANGES,
	},
	.locks = true,
};

static struct tevent_req *visibility_send(TALLOC_CTX *mem_ctx,
					  struct tevent_context *ev,
					  struct run *run,
					  struct check_result *result)
{
	return rounds_send(mem_ctx, ev, run, result, &visibility);
}

const struct check check_io_visibility = {
	.name = "io.visibility",
	.holds = "what one member wrote under a lock another reads after "
		 "taking it",
	.how = "Each member keeps another's file open and has read it, so "
	       "that its caches are full. Then, generation after generation, "
	       "the maker writes a range under a write lock, and the other "
	       "reads it under a read lock: sizes from 1 byte to 1 MiB, odd "
	       "offsets, across pages, by the descriptor kept open and by a "
	       "new one. Under the lock the new generation must be read at "
	       "once. Who reads an older one is asked again, to tell how old "
	       "stale data gets. Where locks do not work at all the same is "
	       "done without: seen within 1 s is a pass, later is slow, and "
	       "not although the attribute cache's time is over a failure.",
	.depends = "smbd on each node reads and writes the share's files by "
		   "pread and pwrite and relies on the file system for what "
		   "other nodes' clients wrote (source3/modules/"
		   "vfs_default.c); byte-range locks of clients order their "
		   "access (source3/locking/posix.c). ping_pong(1) calls it "
		   "I/O coherence and tests it by -rw.",
	.remedy = "Mount without caches that other nodes cannot invalidate "
		  "(FUSE: direct I/O; GlusterFS: performance translators off "
		  "and --direct-io-mode=enable; 9p: cache=none; virtiofs: "
		  "cache=never). No Samba setting mends it: clients on two "
		  "nodes would read and overwrite each other's old data.",
	.doors = DOOR_AGENT | DOOR_COMMAND,
	.needs = NEEDS_IO,
	.send = visibility_send,
	.recv = rounds_recv,
};

/* ---- io.size ------------------------------------------------------------ */

enum look_at { LOOK_STAT, LOOK_READ, LOOK_END, LOOKS };

/* The size as fstat, read to the end, or lseek sees it */
static void size_look(struct rounds *r, enum look_at look, unsigned slot,
		      uint64_t size, const char *how)
{
	static const enum probe_op ops[LOOKS] = {
		[LOOK_STAT] = PROBE_STAT,
		[LOOK_READ] = PROBE_READ,
		[LOOK_END] = PROBE_END,
	};
	struct round *round = NULL;

	round = round_add(r, THEIRS, ops[look], slot);
	round->see = SEE_SIZE;
	if (look == LOOK_READ) {
		round->see = SEE_DATA;
		round->req.value = 1;
		round->req.len = 2 * size + 4096;
	}
	round->expected = size;
	round->sight = SEEN;
	round->how = how;
	round->means = OLD_SIZE;
}

static void size_grow(struct rounds *r, uint64_t from, uint64_t to)
{
	round_lock(r, MINE, 0, 0, EOF_LEN);
	round_write(r, PROBE_WRITE, 0, from, to - from, 1);
	round_unlock(r, MINE, 0, 0, EOF_LEN);
}

static void size_truncate(struct rounds *r, uint64_t to)
{
	round_lock(r, MINE, 0, 0, EOF_LEN);
	round_add(r, MINE, PROBE_TRUNCATE, 0)->req.start = to;
	round_unlock(r, MINE, 0, 0, EOF_LEN);
}

/* Each kind of look is once the first one after a change */
static void size_kept(struct rounds *r, unsigned first, uint64_t size)
{
	unsigned i;

	round_lock(r, THEIRS, 1, 0, EOF_LEN);
	for (i = 0; i < LOOKS; i++) {
		size_look(r, (first + i) % LOOKS, 1, size, KEPT);
	}
	round_unlock(r, THEIRS, 1, 0, EOF_LEN);
}

static void size_reopened(struct rounds *r, uint64_t size)
{
	unsigned i;

	round_open(r, THEIRS, 2);
	round_lock(r, THEIRS, 2, 0, EOF_LEN);
	for (i = 0; i < LOOKS; i++) {
		size_look(r, i, 2, size, REOPENED);
	}
	round_unlock(r, THEIRS, 2, 0, EOF_LEN);
	round_add(r, THEIRS, PROBE_CLOSE, 2);
}

static void size_build(struct rounds *r)
{
	static const uint64_t units[] = { 100, 4096, 70001 };
	uint64_t unit = units[r->trial % 3];
	unsigned changes = r->brief ? 1 : LOOKS;
	struct round *round = NULL;
	unsigned i;

	round_open_both(r);
	round_write(r, PROBE_WRITE, 0, 0, unit, 1);
	round = round_read(r, THEIRS, PROBE_READ, 1, 0, unit, 1);
	round->see = SEE_ANYTHING;
	for (i = 0; i < changes; i++) {
		size_grow(r, (i + 1) * unit, (i + 2) * unit);
		size_kept(r, i, (i + 2) * unit);
	}
	if (r->brief) {
		return;
	}
	for (i = changes; i > 0; i--) {
		size_truncate(r, i * unit + 1);
		size_kept(r, i, i * unit + 1);
	}
	size_grow(r, unit + 1, 3 * unit);
	size_reopened(r, 3 * unit);
	size_truncate(r, unit + 1);
	size_reopened(r, unit + 1);
}

static const struct rounds_check size = {
	.build = size_build,
	.trials = {
		[RUN_LIGHT] = 1,
		[RUN_QUICK] = 3,
		[RUN_DEFAULT] = 3,
		[RUN_THOROUGH] = 3,
	},
	.locks = true,
};

static struct tevent_req *size_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    struct run *run,
				    struct check_result *result)
{
	return rounds_send(mem_ctx, ev, run, result, &size);
}

const struct check check_io_size = {
	.name = "io.size",
	.holds = "when a file grows or is truncated, the others see its size",
	.how = "Under a write lock the maker of a file makes it longer or "
	       "shorter; under a read lock another looks by fstat, by reading "
	       "to the end and by lseek(SEEK_END), each of them once as the "
	       "first, by a descriptor kept open and by a new one. Without "
	       "locks the time scale of io.visibility holds.",
	.depends = "smbd answers clients with the size that fstat gives "
		   "(source3/smbd/smb2_trans2.c, smb2_getinfo.c) and fills or "
		   "cuts files by it (source3/smbd/vfs.c); clients append at "
		   "that size.",
	.remedy = "Mount with attribute caches that other nodes invalidate, "
		  "or without (FUSE: attribute time-out 0; NFS: 'noac'; SMB: "
		  "'actimeo=0').",
	.doors = DOOR_AGENT | DOOR_COMMAND,
	.needs = NEEDS_IO,
	.send = size_send,
	.recv = rounds_recv,
};

/* ---- io.append ---------------------------------------------------------- */

#define BATCHES 4
#define RECORD 32

static void append_build(struct rounds *r)
{
	uint64_t each = 64 / r->num + 1;
	struct round *round = NULL;
	unsigned i;

	round = round_open(r, OURS, 0);
	round->who = FIRST;
	round->req.make = true;
	round->req.append = true;
	round = round_open(r, OURS, 0);
	round->who = REST;
	round->req.append = true;
	for (i = 0; i < BATCHES; i++) {
		round = round_add(r, OURS, PROBE_APPEND, 0);
		round->req.len = RECORD;
		round->req.value = 1 + i * each * r->num;
		round->req.count = each;
	}
	round_open(r, OURS, 1);
	round = round_add(r, OURS, PROBE_COUNT, 1);
	round->req.len = RECORD;
	round->req.value = 1;
	round->req.count = BATCHES * each * r->num;
	round->see = SEE_COUNT;
	round->expected = round->req.count;
	round->sight = SEEN;
	round->means = "appended records are lost";
	round = round_add(r, OURS, PROBE_UNLINK, 0);
	round->who = FIRST;
	strcpy(round->req.name, r->file);
}

static const struct rounds_check append = {
	.build = append_build,
	.trials = {
		[RUN_LIGHT] = 1,
		[RUN_QUICK] = 2,
		[RUN_DEFAULT] = 4,
		[RUN_THOROUGH] = 4,
	},
};

static struct tevent_req *append_send(TALLOC_CTX *mem_ctx,
				      struct tevent_context *ev,
				      struct run *run,
				      struct check_result *result)
{
	return rounds_send(mem_ctx, ev, run, result, &append);
}

const struct check check_io_append = {
	.name = "io.append",
	.holds = "what all members append at the same time is all there",
	.how = "All members have one file open with O_APPEND and write "
	       "records to it at the same time, without locks; then each "
	       "opens it anew and counts: every record of every member must "
	       "be there once, and nothing else.",
	.depends = "smbd opens with O_APPEND for POSIX clients that ask to "
		   "append (source3/smbd/open.c); programs on the nodes "
		   "append to logs on the share.",
	.remedy = "Mount so that O_APPEND is carried out where the file is, "
		  "not at the size that the node remembers (FUSE: direct I/O "
		  "and attribute time-out 0; on NFS it never is): else keep "
		  "files that are appended to from several nodes elsewhere.",
	.doors = DOOR_COMMAND,
	.needs = NEEDS_IO,
	.send = append_send,
	.recv = rounds_recv,
};
