/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What this node knows of its targets, and the rounds that find it out
 *
 * A round reads CTDB's nodes and its configuration, checks the cluster lock's
 * directory, and, once this node is past init, reads the shares and checks
 * each mount that they lie on; at last the directories that hold TDBs, for
 * `use mmap` (ctdb-events/mmap.h). One round at a time; the next one comes by
 * itself: at once to confirm what would turn this node, in 5 s while
 * something is unfit, else after RECHECK_INTERVAL.
 *
 * A node that runs is turned by two rounds that agree, not by one.
 */
#ifndef PINGPONG_CTDB_EVENTS_ROUNDS_H
#define PINGPONG_CTDB_EVENTS_ROUNDS_H

#include "ctdb-events/greet.h"
#include "ctdb-events/inquiry.h"
#include "ctdb-events/shares.h"

/* What is known of one target */
struct finding {
	const struct target *target;
	bool known;
	bool refused;
	bool doubted;			/* the last round saw it otherwise */
	time_t when;			/* of the last check */
	uint64_t begun_ms;		/* its begin (CLOCK_MONOTONIC) */
	const char **lines;		/* NULL-terminated */
	struct across_result *result;	/* of the last check, or NULL */
};

struct rounds_config {
	const struct options *options;
	const char *worker;
	const struct reach *reach;
	const bool *greeted;		/* by PNN, NODES_MAX of them */
	struct greeting *self;		/* running is set by the first round */
	bool mutexes;			/* ctdbd's: see mmap.h */
	/* the cluster lock's finding is new (round_over false), or a round is
	 * over */
	void (*news_fn)(bool round_over, void *private_data);
	void *private_data;
};

struct rounds;

/* config must stay. NULL for want of memory. */
struct rounds *rounds_create(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			     const struct rounds_config *config);

/* Begin one, if none is under way. Returns 0 or ENOMEM. */
int rounds_begin(struct rounds *rounds);

/* Begin one of this target only, if none is under way; by a path that lies
 * there. Returns 0, ENOENT (no target has the path), ENOMEM. */
int rounds_begin_path(struct rounds *rounds, const char *path);

/* The finding of the target where a path lies, NULL: none has it */
const struct finding *rounds_finding_of(const struct rounds *rounds,
					const char *path);

/* Check again after so many seconds, or earlier. */
void rounds_hurry(struct rounds *rounds, unsigned seconds);

/* ctdbd is in its event startup, or past it: the shares can be read. */
void rounds_past_setup(struct rounds *rounds);

/* Before the first round: the cluster lock's directory, which peers may name
 * from then on; NULL: there is none */
int rounds_set_lock(struct rounds *rounds, const char *directory);

/* A peer's name for a target, or a share's path: the directory, NULL: none */
const char *rounds_resolve(const struct rounds *rounds, const char *name);

/* Every finding in turn, the cluster lock's first; NULL: no more */
const struct finding *rounds_finding(const struct rounds *rounds, size_t i);

enum standing {
	STANDING_UNKNOWN,	/* something has not been checked yet */
	STANDING_FIT,
	STANDING_REFUSED,
};

/* with_shares: all; else the cluster lock only */
enum standing rounds_standing(const struct rounds *rounds, bool with_shares);

/*
 * Lines for a person: what is refused, or, where nothing is and all is asked
 * for, every verdict. NULL-terminated, a child of mem_ctx; NULL for want of
 * memory.
 */
const char **rounds_lines(TALLOC_CTX *mem_ctx, const struct rounds *rounds,
			  bool all);

#endif
