/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Shared mappings: of one member, across members, and against read and write
 */
#include "core/checks/catalogue.h"
#include "core/checks/rounds.h"

#define PAGE 4096
#define FILE_LEN (4 * PAGE)

#define KEPT "mapped before the write"
#define NEW "mapped after the write"
#define STALE "old data is in the mapping"

static const struct {
	uint64_t start, len;
} ranges[] = {
	{ 0, 1 },
	{ PAGE - 1, 2 },
	{ 2 * PAGE, PAGE },
	{ PAGE + 1, 2 * PAGE },
};

#define NUM_RANGES (sizeof(ranges) / sizeof(ranges[0]))

/* Each makes a file with content before another opens it, and maps its own
 * (slot 0) and the other's (slot 1) */
static void open_and_map(struct rounds *r, bool mine, bool theirs)
{
	round_open(r, MINE, 0)->req.make = true;
	round_write(r, PROBE_WRITE, 0, 0, FILE_LEN, 1);
	round_open(r, THEIRS, 1);
	if (mine) {
		round_map(r, MINE, 0, FILE_LEN);
	}
	if (theirs) {
		round_map(r, THEIRS, 1, FILE_LEN);
	}
}

static void write_by(struct rounds *r, enum probe_op op, uint64_t start,
		     uint64_t len, uint64_t value)
{
	round_lock(r, MINE, 0, start, len);
	round_write(r, op, 0, start, len, value);
	round_unlock(r, MINE, 0, start, len);
}

static void read_by(struct rounds *r, enum probe_op op, uint64_t start,
		    uint64_t len, uint64_t value, const char *how)
{
	struct round *round = NULL;

	round_lock(r, THEIRS, 1, start, len);
	round = round_read(r, THEIRS, op, 1, start, len, value);
	round->how = how;
	round->means = op == PROBE_MAP_READ ? STALE : "old data is read";
	round_unlock(r, THEIRS, 1, start, len);
}

/* ---- mmap.visibility ---------------------------------------------------- */

static void visibility_build(struct rounds *r)
{
	uint64_t value = 1;
	unsigned i;

	open_and_map(r, true, true);
	/* the pages are there before anything changes */
	round_read(r, MINE, PROBE_MAP_READ, 0, 0, FILE_LEN, value);
	round_read(r, THEIRS, PROBE_MAP_READ, 1, 0, FILE_LEN, value)->see =
		SEE_ANYTHING;
	for (i = 0; i < (r->brief ? 1 : 2 * NUM_RANGES); i++) {
		uint64_t start = ranges[i % NUM_RANGES].start;
		uint64_t len = ranges[i % NUM_RANGES].len;

		write_by(r, PROBE_MAP_WRITE, start, len, ++value);
		read_by(r, PROBE_MAP_READ, start, len, value, KEPT);
	}
	if (r->brief) {
		return;
	}
	write_by(r, PROBE_MAP_WRITE, 0, FILE_LEN, ++value);
	round_add(r, THEIRS, PROBE_UNMAP, 1);
	round_map(r, THEIRS, 1, FILE_LEN);
	read_by(r, PROBE_MAP_READ, 0, FILE_LEN, value, NEW);
}

static const struct rounds_check visibility = {
	.build = visibility_build,
	.trials = {
		[RUN_LIGHT] = 1,
		[RUN_QUICK] = 2,
		[RUN_DEFAULT] = 2,
		[RUN_THOROUGH] = 2,
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

const struct check check_mmap_visibility = {
	.name = "mmap.visibility",
	.holds = "what one member stores into a shared mapping is in the "
		 "mappings of the others",
	.how = "Each member maps its own file and another's. The maker "
	       "stores under a write lock, and the other loads under a read "
	       "lock: single bytes, across pages, pages beyond the first, by "
	       "a mapping that was there before, and by one made after.",
	.depends = "Nothing of Samba's own maps a share's files; programs "
		   "that do may run on the nodes. TDB maps its files ('use "
		   "mmap' in smb.conf(5), lib/tdb/common/io.c), without msync "
		   "but at the end of a transaction (lib/tdb/common/"
		   "transaction.c), but a TDB is shared by the processes of "
		   "one node only: see mmap.local.",
	.remedy = "Few file systems keep mappings coherent across nodes, and "
		  "neither the cluster lock nor a share needs it. Keep TDBs on "
		  "a local disk; 'use mmap = no' with 'tdb mutexes = false' is "
		  "for where that cannot be.",
	.doors = DOOR_AGENT | DOOR_COMMAND,
	.spare = true,
	.needs = NEEDS_MMAP | NEEDS_IO,
	.send = visibility_send,
	.recv = rounds_recv,
};

/* ---- mmap.local --------------------------------------------------------- */

#define GROWN_LEN (7 * PAGE)

static struct round *local_read(struct rounds *r, enum probe_op op,
				unsigned slot, uint64_t start, uint64_t len,
				uint64_t value)
{
	struct round *round = round_read(r, MINE, op, slot, start, len,
					 value);

	round->means = "mapping and file do not agree on one node";
	return round;
}

/* pwrite -> mapping, mapping -> pread, mapping -> mapping */
static void local_range(struct rounds *r, uint64_t start, uint64_t len,
			uint64_t *value)
{
	round_write(r, PROBE_WRITE, 0, start, len, ++*value);
	local_read(r, PROBE_MAP_READ, 1, start, len, *value);
	local_read(r, PROBE_MAP_READ, 0, start, len, *value);
	round_write(r, PROBE_MAP_WRITE, 1, start, len, ++*value);
	local_read(r, PROBE_READ, 0, start, len, *value);
	local_read(r, PROBE_READ, 1, start, len, *value);
	local_read(r, PROBE_MAP_READ, 0, start, len, *value);
	round_write(r, PROBE_MAP_WRITE, 0, start, len, ++*value);
	local_read(r, PROBE_READ, 1, start, len, *value);
	local_read(r, PROBE_MAP_READ, 1, start, len, *value);
}

/* As tdb_expand_file and tdb_oob: written at the end, seen by fstat, mapped
 * anew */
static void local_grow(struct rounds *r, uint64_t value)
{
	struct round *round = NULL;

	round_write(r, PROBE_WRITE, 0, FILE_LEN, GROWN_LEN - FILE_LEN, value);
	round = round_add(r, MINE, PROBE_STAT, 1);
	round->see = SEE_SIZE;
	round->expected = GROWN_LEN;
	round->means = "fstat does not show that the file has grown";
	round_add(r, MINE, PROBE_UNMAP, 1);
	round_map(r, MINE, 1, GROWN_LEN);
	local_read(r, PROBE_MAP_READ, 1, FILE_LEN, GROWN_LEN - FILE_LEN,
		   value);
	round_write(r, PROBE_MAP_WRITE, 1, GROWN_LEN - 1, 1, value + 1);
	local_read(r, PROBE_READ, 0, GROWN_LEN - 1, 1, value + 1);
	/* as tdb_open reads the header */
	round_open(r, MINE, 2);
	local_read(r, PROBE_READ, 2, GROWN_LEN - 1, 1, value + 1);
}

static void local_build(struct rounds *r)
{
	uint64_t value = 1;
	unsigned i;

	round_open(r, MINE, 0)->req.make = true;
	round_write(r, PROBE_WRITE, 0, 0, FILE_LEN, value);
	round_open(r, MINE, 1);
	round_map(r, MINE, 1, FILE_LEN);
	local_read(r, PROBE_MAP_READ, 1, 0, FILE_LEN, value);
	round_map(r, MINE, 0, FILE_LEN);
	for (i = 0; i < NUM_RANGES; i++) {
		local_range(r, ranges[i].start, ranges[i].len, &value);
	}
	local_grow(r, value + 1);
}

static const struct rounds_check local = {
	.build = local_build,
	.trials = {
		[RUN_LIGHT] = 1,
		[RUN_QUICK] = 2,
		[RUN_DEFAULT] = 2,
		[RUN_THOROUGH] = 2,
	},
};

static struct tevent_req *local_send(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     struct run *run,
				     struct check_result *result)
{
	return rounds_send(mem_ctx, ev, run, result, &local);
}

const struct check check_mmap_local = {
	.name = "mmap.local",
	.holds = "on each single member, mappings and read and write agree",
	.how = "Each member opens one file of its own twice and maps both: "
	       "what pwrite wrote must be in both mappings, what was stored "
	       "into one in the other and in pread of both, at once, in pages "
	       "beyond the first, too, and after the file has grown and was "
	       "mapped anew.",
	.depends = "TDB in each of Samba's and CTDB's processes: it reads the "
		   "header with read(2) (lib/tdb/common/open.c), makes the "
		   "file longer with ftruncate and pwrite, sees growth by "
		   "fstat and maps anew (lib/tdb/common/io.c), and all else "
		   "goes through the mapping, without msync but in "
		   "transactions; the locks between are fcntl locks or "
		   "mutexes in a mapping (lib/tdb/common/mutex.c). Processes "
		   "without mmap use pread and pwrite on the same file.",
	.remedy = "Keep no TDB there: Samba's 'lock', 'state', 'cache' and "
		  "'private directory' and CTDB's database directories belong "
		  "on a local disk. Else 'use mmap = no' in smb.conf with "
		  "'tdb mutexes = false' in ctdb.conf, which is about a "
		  "hundred times slower and does not reach ctdbd itself.",
	.doors = DOOR_AGENT | DOOR_COMMAND,
	.spare = true,
	.needs = NEEDS_MMAP | NEEDS_IO,
	.send = local_send,
	.recv = rounds_recv,
};

/* ---- mmap.mixed --------------------------------------------------------- */

/* writer x reader; the first is what io.visibility is about and is told, not
 * judged */
static const struct {
	const char *name;
	enum probe_op write, read;
} cells[] = {
	{ "pwrite-pread", PROBE_WRITE, PROBE_READ },
	{ "pwrite-mmap", PROBE_WRITE, PROBE_MAP_READ },
	{ "mmap-pread", PROBE_MAP_WRITE, PROBE_READ },
	{ "mmap-mmap", PROBE_MAP_WRITE, PROBE_MAP_READ },
};

#define NUM_CELLS (sizeof(cells) / sizeof(cells[0]))

static void mixed_build(struct rounds *r)
{
	enum probe_op write = cells[r->trial].write;
	enum probe_op read = cells[r->trial].read;
	uint64_t value = 1;
	unsigned i;

	if (r->brief && run_lock_ns(r->run) > 1) {
		/* known to be slow: for four cells too slow */
		r->locked = false;
	}
	open_and_map(r, write == PROBE_MAP_WRITE, read == PROBE_MAP_READ);
	round_read(r, THEIRS, read, 1, 0, FILE_LEN, value)->see =
		SEE_ANYTHING;
	for (i = 0; i < (r->brief ? 1 : NUM_RANGES); i++) {
		write_by(r, write, ranges[i].start, ranges[i].len, ++value);
		read_by(r, read, ranges[i].start, ranges[i].len, value,
			NULL);
	}
}

static void mixed_trial_over(struct rounds *r)
{
	json_t *told = json_object_get(r->result->metrics, "cells");

	if (told == NULL) {
		told = json_object();
		json_object_set_new(r->result->metrics, "cells", told);
	}
	json_object_set_new(told, cells[r->trial].name,
			    json_string(outcome_name(r->outcome)));
	if (r->trial == 0 && r->stale) {
		r->outcome = OUTCOME_PASS;
	}
}

static const struct rounds_check mixed = {
	.build = mixed_build,
	.trial_over = mixed_trial_over,
	.trials = {
		[RUN_LIGHT] = NUM_CELLS,
		[RUN_QUICK] = NUM_CELLS,
		[RUN_DEFAULT] = NUM_CELLS,
		[RUN_THOROUGH] = NUM_CELLS,
	},
	.locks = true,
	.go_on = true,
};

static struct tevent_req *mixed_send(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     struct run *run,
				     struct check_result *result)
{
	return rounds_send(mem_ctx, ev, run, result, &mixed);
}

const struct check check_mmap_mixed = {
	.name = "mmap.mixed",
	.holds = "mappings of one member agree with read and write of another",
	.how = "As mmap.visibility, with each of pwrite and mapping as the "
	       "writer and each of pread and mapping as the reader. "
	       "metrics.cells has the outcome of each of the four; that of "
	       "pwrite and pread is told only: it is what io.visibility "
	       "judges.",
	.depends = "As mmap.visibility: smbd reads and writes share files "
		   "with pread and pwrite (source3/modules/vfs_default.c), "
		   "programs on other nodes may have them mapped.",
	.remedy = "As mmap.visibility: neither the cluster lock nor a share "
		  "needs it. Do not let programs map files of the share on "
		  "one node that another node writes.",
	.doors = DOOR_COMMAND,
	.spare = true,
	.needs = NEEDS_MMAP | NEEDS_IO,
	.send = mixed_send,
	.recv = rounds_recv,
};
