/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Lock-step scripts: one operation after the other, each with the answer that
 * a coherent file system gives
 *
 * A check builds a script for a cast of members (member numbers in the run;
 * steps name them by their place in the cast) and hands it to the runner. The
 * next step begins when the answer of the one before has come over the
 * channel, so that the order of things is known for certain. The first answer
 * that is not the wanted one ends the script and becomes the evidence,
 * together with the steps that led to it.
 *
 * A waiting operation is one step that begins it (`begin`) and a later one
 * that awaits its end (`await`); between them other members act.
 */
#ifndef PINGPONG_CHECKS_LOCKSTEP_H
#define PINGPONG_CHECKS_LOCKSTEP_H

#include "core/checks/check.h"
#include "core/checks/run.h"

enum step_kind {
	STEP_CALL,	/* carry out and compare */
	STEP_BEGIN,	/* carry out, without waiting for the answer */
	STEP_QUIET,	/* for pause_ms no answer to the STEP_BEGIN comes */
	STEP_AWAIT,	/* wait for the answer, and compare */
	STEP_KILL,	/* SIGKILL to the worker; a new one starts */
	STEP_PAUSE,	/* pause_ms on purpose */
};

enum want {
	WANT_DONE,	/* no error */
	WANT_REFUSED,	/* EAGAIN or EACCES: somebody else holds it */
	WANT_ERRNO,	/* exactly want_errno */
	WANT_ANY,	/* nothing is compared but that it ends */
	WANT_LOCK,	/* F_GETLK shows want_type, start and len of the
			 * request's want_start, want_len */
	WANT_COUNT,	/* count is want_value */
};

struct step {
	enum step_kind kind;
	unsigned who;		/* in the cast */
	struct probe_request req;
	enum want want;
	int want_errno;
	int want_type;
	uint64_t want_start, want_len, want_value;
	unsigned within_ms;	/* ask again until it is as wanted, so long */
	unsigned slow_after_ms;	/* nonzero: as wanted, but only after this
				 * long, is slow */
	unsigned pause_ms;
	bool setup;		/* not what is tested: when it goes wrong, the
				 * check is skipped */
	unsigned breaks;	/* NEEDS_* that are not there when this goes
				 * wrong */
	const char *means;	/* what a wrong answer means, one line, or
				 * NULL; first words of the reason */
};

#define SCRIPT_WAITS 16

struct script {
	struct run *run;
	unsigned cast[4];
	unsigned num_cast;
	bool far;			/* each of the cast is in a pair
					 * beside, too: what depends on one
					 * node alone is done there */
	enum probe_family family;	/* of the locks that the builders
					 * below make */
	bool extreme;			/* far out, or very many: what is
					 * refused here says nothing of other
					 * locks */
	char file[PROBE_NAME_MAX];
	bool made;			/* it is there already */
	struct step *steps;		/* talloc array */
	size_t num_steps;
	bool oom;

	/* what came of it */
	enum outcome outcome;
	int err;
	bool beyond_limit;
	const char *why;
	struct evidence evidence;
	unsigned broken;		/* NEEDS_*: hangs or is refused */
	uint64_t steps_done;
	uint64_t compared;		/* answers compared: trials */
	uint64_t max_lock_ns;		/* longest lock call not made to wait */
	uint64_t wait_ns[SCRIPT_WAITS];	/* STEP_AWAIT: from the beginning of
					 * the step before to the answer */
	unsigned num_waits;
	uint64_t last_ns;
	struct probe_answer *answers;	/* of each step, talloc array */
};

/* ---- building: each returns the step, to be refined; never NULL --------- */

struct step *step_call(struct script *s, unsigned who, enum probe_op op,
		       unsigned slot, enum want want);
/* member `who` opens the script's file in a slot; the maker first */
struct step *step_make(struct script *s, unsigned who, unsigned slot);
struct step *step_open(struct script *s, unsigned who, unsigned slot);
struct step *step_close(struct script *s, unsigned who, unsigned slot);
/* all of the cast have the file open in slot 0, cast[0] makes it */
void step_open_all(struct script *s);
struct step *step_lock(struct script *s, unsigned who, unsigned slot, int type,
		       uint64_t start, uint64_t len, enum want want);
struct step *step_unlock(struct script *s, unsigned who, unsigned slot,
			 uint64_t start, uint64_t len);
/* a waiting lock that begins, and its end */
struct step *step_lock_begin(struct script *s, unsigned who, unsigned slot,
			     int type, uint64_t start, uint64_t len);
struct step *step_quiet(struct script *s, unsigned who, unsigned pause_ms);
struct step *step_await(struct script *s, unsigned who, enum want want);
/* F_GETLK for a write lock shows this one (want_type F_UNLCK: none) */
struct step *step_getlk(struct script *s, unsigned who, unsigned slot,
			uint64_t start, uint64_t len, int want_type,
			uint64_t want_start, uint64_t want_len);
struct step *step_kill(struct script *s, unsigned who);
struct step *step_pause(struct script *s, unsigned pause_ms);

/* ---- running ------------------------------------------------------------ */

/* Carry out a script; lockstep_recv() returns 0, the outcome is in it; or
 * ENOMEM. */
struct tevent_req *lockstep_send(TALLOC_CTX *mem_ctx,
				 struct tevent_context *ev,
				 struct script *script);
int lockstep_recv(struct tevent_req *req);

/*
 * A check that is one script for each of chosen pairs
 *
 * Pairs: each member with its successor (the last with the first), so that
 * each is once first and once second in the cast; from 4 members on each also
 * with one half of them away, so that every node meets a node far away. That
 * grows like the number of members, not its square: a fault of one node shows
 * with whomever it is paired. Pairs without a common member run at the same
 * time, but one after the other when locks are slow.
 *
 * build: fills in one script; script->file, cast and family are set.
 * judge: looks at a finished script and its answers, may put metrics into the
 * result or change the script's outcome; or NULL.
 *
 * The worst outcome and the first evidence become the check's.
 */
typedef void (*script_build_fn)(struct script *script);
typedef void (*script_judge_fn)(struct script *script,
				struct check_result *result);

struct tevent_req *pairs_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			      struct run *run, struct check_result *result,
			      enum probe_family family,
			      script_build_fn build, script_judge_fn judge);
int pairs_recv(struct tevent_req *req);

/* The same with at most four pairs, for what depends on the file system or
 * its server and not on the node. */
struct tevent_req *few_pairs_send(TALLOC_CTX *mem_ctx,
				  struct tevent_context *ev, struct run *run,
				  struct check_result *result,
				  enum probe_family family,
				  script_build_fn build,
				  script_judge_fn judge);

/* Each member alone, one script each (cast[0]); ends with pairs_recv() */
struct tevent_req *singles_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev, struct run *run,
				struct check_result *result,
				enum probe_family family,
				script_build_fn build, script_judge_fn judge);

/* Take over what came of a script into a check's result, if it is worse */
void result_take(struct check_result *result, const struct script *script);

/* Upper end of the 95 % confidence interval of the violation rate after
 * this many trials (Clopper-Pearson, one-sided; 1 - 0.05^(1/n) for none) */
double violation_bound(uint64_t trials, uint64_t violations);

#endif
