/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/checks/lockstep.h"
#include "core/checks/operation.h"
#include "core/member/channel.h"
#include "core/probe/ring.h"

/* The answer to a release or a wake-up may come a little late without
 * anything being wrong: FUSE's RELEASE comes up to 1 ms after close() */
#define RETRY_MS 2

/* CTDB: RecLockLatencyMs (ctdb-tunables(7)) */
#define SLOW_LIMIT_NS 1000000000ULL

/* Pairs for what does not depend on who it is */
#define FEW_PAIRS 4

/* Scripts that run at the same time: more would only queue for the
 * coordinator and the lock server */
#define SCRIPTS_AT_ONCE 16

/* After this long a failure is not looked for at further pairs */
#define ENOUGH_NS 1000000000ULL

/* steps before the wrong one that the evidence tells */
#define TRAIL_STEPS 8

/* ---- texts -------------------------------------------------------------- */

static const char *expected_text(TALLOC_CTX *mem_ctx,
				 const struct step *step)
{
	switch (step->want) {
	case WANT_DONE:
		return step->req.op == PROBE_LOCK &&
		       step->req.type != F_UNLCK ? "granted" : "done";
	case WANT_REFUSED:
		return "refused";
	case WANT_ERRNO:
		return errno_text(mem_ctx, step->want_errno);
	case WANT_LOCK:
		if (step->want_type == F_UNLCK) {
			return "no lock in the way";
		}
		return talloc_asprintf(mem_ctx, "%s %s",
				       lock_type_text(step->want_type),
				       range_text(mem_ctx, step->want_start,
						  step->want_len));
	case WANT_COUNT:
		return talloc_asprintf(mem_ctx, "%llu",
				       (unsigned long long)step->want_value);
	case WANT_ANY:
		break;
	}
	return "an answer";
}

static const char *seen_text(TALLOC_CTX *mem_ctx, const struct step *step,
			     const struct probe_answer *a)
{
	bool lock = step->req.op == PROBE_LOCK && step->req.type != F_UNLCK;

	if (lock && (a->err == EAGAIN || a->err == EACCES)) {
		return talloc_asprintf(mem_ctx, "refused: %s",
				       errno_text(mem_ctx, a->err));
	}
	if (a->err != 0) {
		return errno_text(mem_ctx, a->err);
	}
	if (lock) {
		return "granted";
	}
	switch (step->want) {
	case WANT_LOCK:
		if (a->type == F_UNLCK) {
			return "no lock in the way";
		}
		return talloc_asprintf(mem_ctx, "%s %s", lock_type_text(a->type),
				       range_text(mem_ctx, a->start,
						  a->len));
	case WANT_COUNT:
		return talloc_asprintf(mem_ctx, "%llu of %llu, in the time "
				       "that there was",
				       (unsigned long long)a->count,
				       (unsigned long long)step->want_value);
	default:
		return "done";
	}
}

/* ---- building ----------------------------------------------------------- */

static struct step *step_new(struct script *s, enum step_kind kind,
			     unsigned who)
{
	static struct step nowhere;
	size_t room = talloc_array_length(s->steps);
	struct step *steps = s->steps;

	if (s->num_steps == room) {
		steps = talloc_realloc(s, s->steps, struct step,
				       room == 0 ? 64 : 2 * room);
		if (steps == NULL) {
			s->oom = true;
			return &nowhere;
		}
		s->steps = steps;
	}
	steps[s->num_steps] = (struct step){ .kind = kind, .who = who };
	return &steps[s->num_steps++];
}

struct step *step_call(struct script *s, unsigned who, enum probe_op op,
		       unsigned slot, enum want want)
{
	struct step *step = step_new(s, STEP_CALL, who);

	step->req.op = op;
	step->req.slot = slot;
	step->req.family = s->family;
	step->want = want;
	return step;
}

struct step *step_make(struct script *s, unsigned who, unsigned slot)
{
	struct step *step = step_call(s, who, PROBE_OPEN, slot, WANT_DONE);

	step->req.make = !s->made;
	strcpy(step->req.name, s->file);
	step->setup = true;
	return step;
}

struct step *step_open(struct script *s, unsigned who, unsigned slot)
{
	struct step *step = step_call(s, who, PROBE_OPEN, slot, WANT_DONE);

	strcpy(step->req.name, s->file);
	step->within_ms = run_name_ms(s->run);
	step->setup = true;
	return step;
}

struct step *step_close(struct script *s, unsigned who, unsigned slot)
{
	return step_call(s, who, PROBE_CLOSE, slot, WANT_DONE);
}

void step_open_all(struct script *s)
{
	unsigned i;

	step_make(s, 0, 0);
	for (i = 1; i < s->num_cast; i++) {
		step_open(s, i, 0);
	}
}

struct step *step_lock(struct script *s, unsigned who, unsigned slot, int type,
		       uint64_t start, uint64_t len, enum want want)
{
	struct step *step = step_call(s, who, PROBE_LOCK, slot, want);

	step->req.type = type;
	step->req.start = start;
	step->req.len = len;
	return step;
}

struct step *step_unlock(struct script *s, unsigned who, unsigned slot,
			 uint64_t start, uint64_t len)
{
	return step_lock(s, who, slot, F_UNLCK, start, len, WANT_DONE);
}

struct step *step_lock_begin(struct script *s, unsigned who, unsigned slot,
			     int type, uint64_t start, uint64_t len)
{
	struct step *step = step_lock(s, who, slot, type, start, len,
				      WANT_ANY);

	step->kind = STEP_BEGIN;
	step->req.wait = true;
	return step;
}

struct step *step_quiet(struct script *s, unsigned who, unsigned pause_ms)
{
	struct step *step = step_new(s, STEP_QUIET, who);

	step->pause_ms = pause_ms;
	return step;
}

struct step *step_await(struct script *s, unsigned who, enum want want)
{
	struct step *step = step_new(s, STEP_AWAIT, who);

	step->want = want;
	return step;
}

struct step *step_getlk(struct script *s, unsigned who, unsigned slot,
			uint64_t start, uint64_t len, int want_type,
			uint64_t want_start, uint64_t want_len)
{
	struct step *step = step_call(s, who, PROBE_GETLK, slot, WANT_LOCK);

	step->req.type = F_WRLCK;
	step->req.start = start;
	step->req.len = len;
	step->want_type = want_type;
	step->want_start = want_start;
	step->want_len = want_len;
	return step;
}

struct step *step_kill(struct script *s, unsigned who)
{
	return step_new(s, STEP_KILL, who);
}

struct step *step_pause(struct script *s, unsigned pause_ms)
{
	struct step *step = step_new(s, STEP_PAUSE, 0);

	step->pause_ms = pause_ms;
	return step;
}

/* ---- judging one answer ------------------------------------------------- */

static bool as_wanted(const struct step *step, const struct probe_answer *a)
{
	switch (step->want) {
	case WANT_ANY:
		return true;
	case WANT_DONE:
		return a->err == 0;
	case WANT_REFUSED:
		return a->err == EAGAIN || a->err == EACCES;
	case WANT_ERRNO:
		return a->err == step->want_errno;
	case WANT_LOCK:
		if (a->err != 0 || a->type != step->want_type) {
			return false;
		}
		return a->type == F_UNLCK ||
		       (a->start == step->want_start &&
			a->len == step->want_len);
	case WANT_COUNT:
		return a->err == 0 && a->count == step->want_value;
	}
	return false;
}

/* ---- running ------------------------------------------------------------ */

struct lockstep_state {
	struct tevent_context *ev;
	struct script *script;
	size_t next;
	size_t current;
	uint64_t first_try_ns;
	bool ended;			/* outcome is there: only clean up */
	unsigned resetting;
	struct {
		struct tevent_req *subreq;	/* a STEP_BEGIN under way */
		bool answered;
		int ret;
		struct probe_answer answer;
		const char *autopsy;
		size_t step;
	} begun[4];
	unsigned awaiting;		/* cast number + 1 of a STEP_AWAIT */
};

static void lockstep_next(struct tevent_req *req);
static void lockstep_answered(struct tevent_req *subreq);
static void lockstep_begun(struct tevent_req *subreq);
static void lockstep_again(struct tevent_req *subreq);
static void lockstep_paused(struct tevent_req *subreq);
static void lockstep_killed(struct tevent_req *subreq);
static void lockstep_clean(struct tevent_req *req);
static void lockstep_cleaned(struct tevent_req *subreq);

struct tevent_req *lockstep_send(TALLOC_CTX *mem_ctx,
				 struct tevent_context *ev,
				 struct script *script)
{
	struct lockstep_state *state = NULL;
	struct tevent_req *req = NULL;

	req = tevent_req_create(mem_ctx, &state, struct lockstep_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->script = script;
	script->outcome = OUTCOME_PASS;
	script->answers = talloc_zero_array(script, struct probe_answer,
					    script->num_steps + 1);
	if (script->answers == NULL || script->oom) {
		tevent_req_oom(req);
		return tevent_req_post(req, ev);
	}
	lockstep_next(req);
	if (!tevent_req_is_in_progress(req)) {
		return tevent_req_post(req, ev);
	}
	return req;
}

static unsigned member_of(const struct script *s, const struct step *step)
{
	return s->cast[step->who];
}

/* the request that a step is about: its own, or the one that it awaits */
static const struct step *subject(const struct lockstep_state *state,
				  const struct step *step)
{
	if (step->kind == STEP_AWAIT || step->kind == STEP_QUIET) {
		return &state->script->steps[state->begun[step->who].step];
	}
	return step;
}

static const char *trail(struct lockstep_state *state)
{
	struct script *s = state->script;
	size_t from = state->current > TRAIL_STEPS
			? state->current - TRAIL_STEPS : 0;
	char *text = talloc_strdup(s, "after:");
	size_t i;

	for (i = from; i < state->current && text != NULL; i++) {
		const struct step *step = &s->steps[i];
		const struct step *about = step;

		if (step->kind == STEP_PAUSE) {
			continue;
		}
		if (step->kind == STEP_KILL) {
			text = talloc_asprintf_append(
				text, "\nmember %u: killed (SIGKILL)",
				member_of(s, step));
			continue;
		}
		if (step->kind == STEP_AWAIT || step->kind == STEP_QUIET) {
			about = &s->steps[state->begun[step->who].step];
		}
		text = talloc_asprintf_append(
			text, "\nmember %u: %s: %s", member_of(s, step),
			operation_full_text(s, &about->req),
			step->kind == STEP_BEGIN ? "begins to wait" :
			step->kind == STEP_QUIET ? "waits" :
			seen_text(s, about, &s->answers[i]));
	}
	return text;
}

static void tell(struct lockstep_state *state, const struct step *step,
		 const char *expected, const char *seen, const char *more)
{
	struct script *s = state->script;
	const struct step *about = subject(state, step);
	const char *detail = NULL;

	s->evidence = (struct evidence){
		.operation = operation_text(s, &about->req),
		.member = run_member_name(s, s->run, member_of(s, step)),
		.range = operation_range(s, &about->req),
		.expected = expected,
		.seen = seen,
	};
	detail = trail(state);
	if (more != NULL) {
		detail = talloc_asprintf(s, "%s\n%s", more, detail);
	}
	s->evidence.detail = detail;
}

static const char *default_meaning(const struct step *about,
				   const struct probe_answer *a)
{
	if (about->req.op == PROBE_LOCK && a->err == EDEADLK) {
		return "a false EDEADLK: nobody waits in a circle";
	}
	return NULL;
}

/* neither granted nor refused: what the step would mean does not apply */
static bool is_odd_error(const struct step *about,
			 const struct probe_answer *a)
{
	return about->req.op == PROBE_LOCK && a->err != 0 &&
	       a->err != EAGAIN && a->err != EACCES;
}

/* The answer to a step is not the wanted one */
static void lockstep_wrong(struct lockstep_state *state,
			   const struct step *step,
			   const struct probe_answer *a)
{
	struct script *s = state->script;
	const struct step *about = subject(state, step);
	const char *means = step->means;
	struct step compared = *step;
	const char *expected = NULL, *seen = NULL;
	enum errno_kind kind;

	compared.req = about->req;
	expected = step->kind == STEP_QUIET ? "waits"
					    : expected_text(s, &compared);
	seen = seen_text(s, &compared, a);
	tell(state, step, expected, seen, NULL);
	s->err = a->err;
	kind = operation_errno(&about->req, a->err);
	if (kind == ERRNO_SHORTAGE) {
		s->outcome = OUTCOME_SKIPPED;
	} else if (kind == ERRNO_REFUSAL && step->want != WANT_ERRNO) {
		s->outcome = OUTCOME_UNSUPPORTED;
		s->broken |= operation_needs(&about->req);
	} else if (step->setup) {
		s->outcome = OUTCOME_SKIPPED;
	} else {
		s->outcome = OUTCOME_FAIL;
	}
	if (s->outcome == OUTCOME_SKIPPED) {
		s->why = talloc_asprintf(s, "could not be prepared: member "
					 "%s: %s: %s", s->evidence.member,
					 s->evidence.operation, seen);
		return;
	}
	s->broken |= step->breaks;
	if (means == NULL || is_odd_error(about, a)) {
		means = default_meaning(about, a);
	}
	s->why = talloc_asprintf(
		s, "%s%smember %s: %s: expected %s, seen %s",
		means != NULL ? means : "", means != NULL ? ": " : "",
		s->evidence.member, operation_full_text(s, &about->req),
		expected, seen);
}

/* There is no answer */
static void lockstep_silent(struct lockstep_state *state,
			    const struct step *step, int err,
			    const char *autopsy)
{
	struct script *s = state->script;
	const struct step *about = subject(state, step);

	tell(state, step, "an answer", "none", autopsy);
	if (err == ETIMEDOUT) {
		s->outcome = OUTCOME_HUNG;
		s->broken |= operation_needs(&about->req);
		s->why = talloc_asprintf(
			s, "member %s: %s never returned", s->evidence.member,
			operation_full_text(s, &about->req));
		return;
	}
	s->outcome = OUTCOME_SKIPPED;
	s->why = run_silence_text(s, s->run, err, member_of(s, step));
}

static void lockstep_too_slow(struct lockstep_state *state,
			      const struct step *step, uint64_t after_ms)
{
	struct script *s = state->script;

	tell(state, step, talloc_asprintf(s, "within %u ms",
					  step->slow_after_ms),
	     talloc_asprintf(s, "after %llu ms",
			     (unsigned long long)after_ms), NULL);
	s->outcome = OUTCOME_SLOW;
	s->why = talloc_asprintf(s, "%s%smember %s: %s: as expected only "
				 "after %llu ms",
				 step->means != NULL ? step->means : "",
				 step->means != NULL ? ": " : "",
				 s->evidence.member, s->evidence.operation,
				 (unsigned long long)after_ms);
}

static void note_lock_time(struct script *s, const struct step *step,
			   const struct probe_answer *a)
{
	uint64_t waited = ring_now() - s->last_ns;

	if (step->kind == STEP_AWAIT && s->num_waits < SCRIPT_WAITS) {
		s->wait_ns[s->num_waits++] = waited;
	}
	if (step->kind != STEP_CALL || step->req.op != PROBE_LOCK ||
	    step->req.type == F_UNLCK) {
		return;
	}
	run_note_lock(s->run, a->ns);
	if (a->ns > s->max_lock_ns) {
		s->max_lock_ns = a->ns;
	}
}

static void lockstep_issue(struct tevent_req *req, const struct step *step)
{
	struct lockstep_state *state = tevent_req_data(
		req, struct lockstep_state);
	struct script *s = state->script;
	struct tevent_req *subreq = NULL;

	subreq = run_call_send(state, state->ev, s->run, member_of(s, step),
			       &step->req, -1, run_op_ms(s->run));
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	if (step->kind == STEP_BEGIN) {
		state->begun[step->who].subreq = subreq;
		state->begun[step->who].answered = false;
		state->begun[step->who].step = state->current;
		tevent_req_set_callback(subreq, lockstep_begun, req);
		lockstep_next(req);
		return;
	}
	tevent_req_set_callback(subreq, lockstep_answered, req);
}

static void lockstep_sleep(struct tevent_req *req, unsigned ms,
			   tevent_req_fn fn)
{
	struct lockstep_state *state = tevent_req_data(
		req, struct lockstep_state);
	struct tevent_req *subreq = NULL;

	subreq = tevent_wakeup_send(state, state->ev, channel_deadline(ms));
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, fn, req);
}

/* An answer to the current step is there: wanted, to be asked again, wrong */
static void lockstep_judge(struct tevent_req *req, int ret,
			   const struct probe_answer *a, const char *autopsy)
{
	struct lockstep_state *state = tevent_req_data(
		req, struct lockstep_state);
	struct script *s = state->script;
	const struct step *step = &s->steps[state->current];
	uint64_t waited_ms;

	if (ret != 0) {
		lockstep_silent(state, step, ret, autopsy);
		lockstep_clean(req);
		return;
	}
	s->answers[state->current] = *a;
	waited_ms = (ring_now() - state->first_try_ns) / 1000000;
	if (as_wanted(step, a)) {
		note_lock_time(s, step, a);
		s->compared += step->want != WANT_ANY && !step->setup;
		if (step->req.op == PROBE_OPEN) {
			run_note_name(s->run, waited_ms, true);
		}
		/* the call's own time is no waiting */
		waited_ms -= a->ns / 1000000 < waited_ms ? a->ns / 1000000
							 : waited_ms;
		if (step->slow_after_ms > 0 &&
		    waited_ms > step->slow_after_ms &&
		    s->outcome == OUTCOME_PASS) {
			lockstep_too_slow(state, step, waited_ms);
		}
		lockstep_next(req);
		return;
	}
	if (step->kind == STEP_CALL && waited_ms < step->within_ms &&
	    run_left_ms(s->run) > RETRY_MS) {
		lockstep_sleep(req, RETRY_MS, lockstep_again);
		return;
	}
	if (step->req.op == PROBE_OPEN && a->err == ENOENT) {
		run_note_name(s->run, waited_ms, false);
	}
	s->compared += !step->setup;
	lockstep_wrong(state, step, a);
	lockstep_clean(req);
}

static void lockstep_answered(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct lockstep_state *state = tevent_req_data(
		req, struct lockstep_state);
	struct probe_answer answer = {};
	const char *autopsy = NULL;
	int ret;

	ret = run_call_recv(subreq, state->script, &answer, &autopsy);
	TALLOC_FREE(subreq);
	lockstep_judge(req, ret, &answer, autopsy);
}

static void lockstep_again(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct lockstep_state *state = tevent_req_data(
		req, struct lockstep_state);

	tevent_wakeup_recv(subreq);
	TALLOC_FREE(subreq);
	lockstep_issue(req, &state->script->steps[state->current]);
}

static void lockstep_begun(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct lockstep_state *state = tevent_req_data(
		req, struct lockstep_state);
	unsigned who;

	for (who = 0; state->begun[who].subreq != subreq; who++) {
		;
	}
	state->begun[who].subreq = NULL;
	state->begun[who].answered = true;
	state->begun[who].ret = run_call_recv(subreq, state->script,
					      &state->begun[who].answer,
					      &state->begun[who].autopsy);
	TALLOC_FREE(subreq);
	if (state->awaiting == who + 1) {
		state->awaiting = 0;
		lockstep_judge(req, state->begun[who].ret,
			       &state->begun[who].answer,
			       state->begun[who].autopsy);
	}
}

static void lockstep_paused(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct lockstep_state *state = tevent_req_data(
		req, struct lockstep_state);
	struct script *s = state->script;
	const struct step *step = &s->steps[state->current];

	tevent_wakeup_recv(subreq);
	TALLOC_FREE(subreq);
	if (step->kind == STEP_QUIET) {
		s->compared++;
		if (state->begun[step->who].answered) {
			if (state->begun[step->who].ret != 0) {
				lockstep_silent(state, step,
						state->begun[step->who].ret,
						state->begun[step->who].autopsy);
				lockstep_clean(req);
				return;
			}
			lockstep_wrong(state, step,
				       &state->begun[step->who].answer);
			lockstep_clean(req);
			return;
		}
	}
	lockstep_next(req);
}

static void lockstep_killed(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct lockstep_state *state = tevent_req_data(
		req, struct lockstep_state);
	struct script *s = state->script;
	const struct step *step = &s->steps[state->current];
	const char *autopsy = NULL;
	int ret;

	ret = run_kill_recv(subreq, s, &autopsy);
	TALLOC_FREE(subreq);
	if (ret != 0 && !state->ended) {
		tell(state, step, "its end", "none", autopsy);
		s->evidence.operation = "SIGKILL";
		s->outcome = ret == ETIMEDOUT ? OUTCOME_HUNG
					      : OUTCOME_SKIPPED;
		s->why = ret != ETIMEDOUT
			? run_silence_text(s, s->run, ret, member_of(s, step))
			: talloc_asprintf(s, "member %s: SIGKILL did not end "
					  "the worker", s->evidence.member);
		lockstep_clean(req);
		return;
	}
	if (state->ended) {
		lockstep_clean(req);
		return;
	}
	lockstep_next(req);
}

static void lockstep_next(struct tevent_req *req)
{
	struct lockstep_state *state = tevent_req_data(
		req, struct lockstep_state);
	struct script *s = state->script;
	const struct step *step = NULL;
	struct tevent_req *subreq = NULL;

	if (state->next == s->num_steps) {
		lockstep_clean(req);
		return;
	}
	state->current = state->next++;
	step = &s->steps[state->current];
	state->first_try_ns = ring_now();
	s->steps_done++;
	if (step->kind != STEP_AWAIT) {
		s->last_ns = state->first_try_ns;
	}
	if (run_left_ms(s->run) == 0) {
		s->outcome = OUTCOME_SKIPPED;
		s->why = "the run's time was over";
		lockstep_clean(req);
		return;
	}
	switch (step->kind) {
	case STEP_CALL:
	case STEP_BEGIN:
		lockstep_issue(req, step);
		break;
	case STEP_AWAIT:
		if (state->begun[step->who].answered) {
			lockstep_judge(req, state->begun[step->who].ret,
				       &state->begun[step->who].answer,
				       state->begun[step->who].autopsy);
			break;
		}
		state->awaiting = step->who + 1;
		break;
	case STEP_QUIET:
	case STEP_PAUSE:
		lockstep_sleep(req, step->pause_ms, lockstep_paused);
		break;
	case STEP_KILL:
		TALLOC_FREE(state->begun[step->who].subreq);
		subreq = run_kill_send(state, state->ev, s->run,
				       member_of(s, step));
		if (tevent_req_nomem(subreq, req)) {
			return;
		}
		tevent_req_set_callback(subreq, lockstep_killed, req);
		break;
	}
}

/* Whoever still waits is killed; then all of the cast let go of everything */
static void lockstep_clean(struct tevent_req *req)
{
	struct lockstep_state *state = tevent_req_data(
		req, struct lockstep_state);
	struct script *s = state->script;
	struct tevent_req *subreq = NULL;
	struct probe_request reset = { .op = PROBE_RESET };
	unsigned i;

	state->ended = true;
	for (i = 0; i < s->num_cast; i++) {
		if (state->begun[i].subreq == NULL) {
			continue;
		}
		TALLOC_FREE(state->begun[i].subreq);
		subreq = run_kill_send(state, state->ev, s->run, s->cast[i]);
		if (tevent_req_nomem(subreq, req)) {
			return;
		}
		tevent_req_set_callback(subreq, lockstep_killed, req);
		return;
	}
	state->resetting = 0;
	for (i = 0; i < s->num_cast; i++) {
		if (member_gone(run_member(s->run, s->cast[i]))) {
			continue;
		}
		subreq = run_call_send(state, state->ev, s->run, s->cast[i],
				       &reset, -1, run_op_ms(s->run) + 100);
		if (tevent_req_nomem(subreq, req)) {
			return;
		}
		state->resetting++;
		tevent_req_set_callback(subreq, lockstep_cleaned, req);
	}
	if (state->resetting == 0) {
		tevent_req_done(req);
	}
}

static void lockstep_cleaned(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct lockstep_state *state = tevent_req_data(
		req, struct lockstep_state);
	struct script *s = state->script;
	struct probe_answer answer = {};
	const char *autopsy = NULL;
	int ret;

	ret = run_call_recv(subreq, s, &answer, &autopsy);
	TALLOC_FREE(subreq);
	if (ret == ETIMEDOUT && s->outcome == OUTCOME_PASS) {
		s->outcome = OUTCOME_HUNG;
		s->why = "close of a probe file never returned";
		s->evidence = (struct evidence){
			.operation = "close", .expected = "an answer",
			.seen = "none", .detail = autopsy };
	}
	if (--state->resetting == 0) {
		tevent_req_done(req);
	}
}

int lockstep_recv(struct tevent_req *req)
{
	int ret = channel_req_error(req);

	tevent_req_received(req);
	return ret;
}

/* ---- results ------------------------------------------------------------ */

static void metric_add(struct check_result *result, const char *name,
		       uint64_t add)
{
	json_int_t old = json_integer_value(
		json_object_get(result->metrics, name));

	json_object_set_new(result->metrics, name,
			    json_integer(old + (json_int_t)add));
}

static const char *keep(struct check_result *result, const char *text)
{
	return text != NULL ? talloc_strdup(result, text) : NULL;
}

static void take_evidence(struct check_result *result,
			  const struct script *script)
{
	unsigned i;

	result->outcome = script->outcome;
	result->err = script->err;
	result->beyond_limit = script->beyond_limit;
	result->why = keep(result, script->why);
	result->evidence = (struct evidence){
		.operation = keep(result, script->evidence.operation),
		.member = keep(result, script->evidence.member),
		.range = keep(result, script->evidence.range),
		.expected = keep(result, script->evidence.expected),
		.seen = keep(result, script->evidence.seen),
		.detail = keep(result, script->evidence.detail),
	};
	TALLOC_FREE(result->members);
	result->members = talloc_array(result, unsigned, script->num_cast);
	for (i = 0; result->members != NULL && i < script->num_cast; i++) {
		result->members[i] = script->cast[i];
	}
}

static void judge_lock_time(struct script *script)
{
	if (script->outcome != OUTCOME_PASS ||
	    script->max_lock_ns <= SLOW_LIMIT_NS) {
		return;
	}
	script->outcome = OUTCOME_SLOW;
	script->why = talloc_asprintf(
		script, "a lock call that nobody made wait took %.1f s; CTDB "
		"warns from 1 s on (RecLockLatencyMs)",
		(double)script->max_lock_ns / 1e9);
}

void result_take(struct check_result *result, const struct script *script)
{
	double ms = (double)script->max_lock_ns / 1e6;
	const json_t *old = json_object_get(result->metrics, "lock_max_ms");

	metric_add(result, "trials", script->compared);
	metric_add(result, "violations", script->outcome == OUTCOME_FAIL);
	if (script->max_lock_ns > 0 && ms > json_real_value(old)) {
		json_object_set_new(result->metrics, "lock_max_ms",
				    json_real(ms));
	}
	if (script->broken != 0 && !script->extreme) {
		run_set_broken(script->run, script->broken,
			       result->check->name, script->outcome);
	}
	if (outcome_worse(script->outcome, result->outcome)) {
		take_evidence(result, script);
	}
}

static void result_finish(struct check_result *result, unsigned num_members)
{
	uint64_t trials = (uint64_t)json_integer_value(
		json_object_get(result->metrics, "trials"));
	uint64_t violations = (uint64_t)json_integer_value(
		json_object_get(result->metrics, "violations"));
	unsigned i;

	json_object_set_new(result->metrics, "violation_bound_95",
			    json_real(violation_bound(trials, violations)));
	if (result->members != NULL) {
		return;
	}
	result->members = talloc_array(result, unsigned, num_members);
	for (i = 0; result->members != NULL && i < num_members; i++) {
		result->members[i] = i;
	}
}

/*
 * Upper limit p with P(at most `violations` in `trials` | p) = 0.05, by
 * bisection on the binomial distribution.
 */
double violation_bound(uint64_t trials, uint64_t violations)
{
	double low = 0, high = 1;
	unsigned i;

	if (trials == 0 || violations >= trials) {
		return 1;
	}
	for (i = 0; i < 60; i++) {
		double p = (low + high) / 2;
		double term = (double)trials * log1p(-p);
		double sum = exp(term);
		uint64_t k;

		for (k = 1; k <= violations && k < 1000; k++) {
			term += log((double)(trials - k + 1) / (double)k) +
				log(p) - log1p(-p);
			sum += exp(term);
		}
		if (sum > 0.05) {
			low = p;
		} else {
			high = p;
		}
	}
	return high;
}

/* ---- many scripts ------------------------------------------------------- */

struct many_state {
	struct tevent_context *ev;
	struct run *run;
	struct check_result *result;
	struct script **scripts;
	unsigned num_scripts;
	bool *started;
	bool *busy;			/* members */
	unsigned running;
	unsigned finished;
	bool stop;			/* what is known is enough */
	uint64_t begin_ns;
	script_judge_fn judge;
};

/* The files of scripts with different makers */
struct script_files {
	char name[PROBE_NAME_MAX];
	bool made;
};

static void many_start(struct tevent_req *req);
static void many_done(struct tevent_req *subreq);

static struct tevent_req *many_create(TALLOC_CTX *mem_ctx,
				      struct tevent_context *ev,
				      struct run *run,
				      struct check_result *result,
				      unsigned num_scripts,
				      struct many_state **pstate)
{
	struct many_state *state = NULL;
	struct tevent_req *req = NULL;

	req = tevent_req_create(mem_ctx, &state, struct many_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->run = run;
	state->result = result;
	state->begin_ns = ring_now();
	state->scripts = talloc_zero_array(state, struct script *,
					   num_scripts);
	state->started = talloc_zero_array(state, bool, num_scripts);
	state->busy = talloc_zero_array(state, bool, run_num_members(run));
	if (state->scripts == NULL || state->started == NULL ||
	    state->busy == NULL) {
		talloc_free(req);
		return NULL;
	}
	*pstate = state;
	return req;
}

/* One more script, for which a makes the file */
static void many_add(struct tevent_req *req, enum probe_family family,
		     script_build_fn build, unsigned num_cast, unsigned a,
		     unsigned b, const struct script_files *files)
{
	struct many_state *state = tevent_req_data(req, struct many_state);
	struct script *script = talloc_zero(state->scripts, struct script);

	if (tevent_req_nomem(script, req)) {
		return;
	}
	script->run = state->run;
	script->family = family;
	script->cast[0] = a;
	script->cast[1] = b;
	script->num_cast = num_cast;
	script->made = files->made;
	snprintf(script->file, sizeof(script->file), "%.68s.%u", files->name,
		 a);
	build(script);
	state->scripts[state->num_scripts++] = script;
}

static struct script_files files_new(struct run *run)
{
	struct script_files files = {};

	files.made = run_files(run, files.name);
	return files;
}

static struct tevent_req *many_begin(struct tevent_req *req,
				     struct tevent_context *ev)
{
	if (tevent_req_is_in_progress(req)) {
		many_start(req);
	}
	if (!tevent_req_is_in_progress(req)) {
		return tevent_req_post(req, ev);
	}
	return req;
}

static struct tevent_req *some_pairs_send(TALLOC_CTX *mem_ctx,
					  struct tevent_context *ev,
					  struct run *run,
					  struct check_result *result,
					  enum probe_family family,
					  script_build_fn build,
					  script_judge_fn judge,
					  unsigned near, unsigned far)
{
	unsigned n = run_num_members(run);
	struct many_state *state = NULL;
	struct tevent_req *req = many_create(mem_ctx, ev, run, result,
					     near + far, &state);
	struct script_files files;
	unsigned i;

	if (req == NULL) {
		return NULL;
	}
	state->judge = judge;
	files = files_new(run);
	for (i = 0; i < near; i++) {
		many_add(req, family, build, 2, i, (i + 1) % n, &files);
	}
	files = files_new(run);
	for (i = 0; i < far; i++) {
		many_add(req, family, build, 2, i, i + far, &files);
	}
	return many_begin(req, ev);
}

struct tevent_req *pairs_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			      struct run *run, struct check_result *result,
			      enum probe_family family,
			      script_build_fn build, script_judge_fn judge)
{
	unsigned n = run_num_members(run);
	unsigned far = n >= 4 ? n / 2 : 0;

	return some_pairs_send(mem_ctx, ev, run, result, family, build, judge,
			       n, far);
}

struct tevent_req *few_pairs_send(TALLOC_CTX *mem_ctx,
				  struct tevent_context *ev, struct run *run,
				  struct check_result *result,
				  enum probe_family family,
				  script_build_fn build,
				  script_judge_fn judge)
{
	unsigned n = run_num_members(run);

	return some_pairs_send(mem_ctx, ev, run, result, family, build, judge,
			       n < FEW_PAIRS ? n : FEW_PAIRS, 0);
}

struct tevent_req *singles_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev, struct run *run,
				struct check_result *result,
				enum probe_family family,
				script_build_fn build, script_judge_fn judge)
{
	unsigned n = run_num_members(run);
	struct many_state *state = NULL;
	struct tevent_req *req = many_create(mem_ctx, ev, run, result, n,
					     &state);
	struct script_files files;
	unsigned i;

	if (req == NULL) {
		return NULL;
	}
	state->judge = judge;
	files = files_new(run);
	for (i = 0; i < n; i++) {
		many_add(req, family, build, 1, i, i, &files);
	}
	return many_begin(req, ev);
}

static void set_busy(struct many_state *state, const struct script *script,
		     bool busy)
{
	unsigned i;

	for (i = 0; i < script->num_cast; i++) {
		state->busy[script->cast[i]] = busy;
	}
}

static bool can_start(const struct many_state *state,
		      const struct script *script)
{
	unsigned i;

	if (state->running >= (run_slow(state->run) ? 1 : SCRIPTS_AT_ONCE)) {
		return false;
	}
	for (i = 0; i < script->num_cast; i++) {
		if (state->busy[script->cast[i]] ||
		    member_gone(run_member(state->run, script->cast[i]))) {
			return false;
		}
	}
	return true;
}

/* One pair only, since there is no time for more: at the best slow */
static void many_judge_lean(struct many_state *state)
{
	if (!run_lean(state->run) ||
	    state->result->outcome != OUTCOME_PASS) {
		return;
	}
	state->result->outcome = OUTCOME_SLOW;
	state->result->why = talloc_asprintf(
		state->result, "a lock call takes %.1f s; only %u of %u pairs "
		"were tested", (double)run_lock_ns(state->run) / 1e9,
		state->finished, state->num_scripts);
}

struct many_link {
	struct tevent_req *req;
	struct script *script;
};

static void many_start(struct tevent_req *req)
{
	struct many_state *state = tevent_req_data(req, struct many_state);
	unsigned i;

	for (i = 0; i < state->num_scripts && !state->stop; i++) {
		struct script *script = state->scripts[i];
		struct tevent_req *subreq = NULL;
		struct many_link *link = NULL;

		if (state->started[i] || !can_start(state, script)) {
			continue;
		}
		link = talloc(script, struct many_link);
		subreq = lockstep_send(state, state->ev, script);
		if (tevent_req_nomem(link, req) ||
		    tevent_req_nomem(subreq, req)) {
			return;
		}
		*link = (struct many_link){ req, script };
		state->started[i] = true;
		state->running++;
		set_busy(state, script, true);
		tevent_req_set_callback(subreq, many_done, link);
	}
	if (state->running == 0) {
		many_judge_lean(state);
		if (state->finished < state->num_scripts &&
		    state->result->outcome == OUTCOME_PASS) {
			state->result->outcome = OUTCOME_SKIPPED;
			state->result->why = talloc_asprintf(
				state->result,
				"only %u of %u pairs could be tested",
				state->finished, state->num_scripts);
		}
		result_finish(state->result, run_num_members(state->run));
		tevent_req_done(req);
	}
}

static void note_pair(struct check_result *result,
		      const struct script *script)
{
	json_t *pairs = json_object_get(result->metrics, "pairs");

	if (script->num_cast != 2) {
		return;
	}
	if (pairs == NULL) {
		pairs = json_array();
		json_object_set_new(result->metrics, "pairs", pairs);
	}
	json_array_append_new(pairs, json_pack("[iis]", (int)script->cast[0],
					       (int)script->cast[1],
					       outcome_name(script->outcome)));
}

static void many_done(struct tevent_req *subreq)
{
	struct many_link *link = tevent_req_callback_data_void(subreq);
	struct tevent_req *req = link->req;
	struct script *script = link->script;
	struct many_state *state = tevent_req_data(req, struct many_state);
	int ret;

	ret = lockstep_recv(subreq);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	state->running--;
	state->finished++;
	set_busy(state, script, false);
	judge_lock_time(script);
	if (state->judge != NULL) {
		state->judge(script, state->result);
	}
	result_take(state->result, script);
	note_pair(state->result, script);
	/* a second pair would only cost time */
	if (script->outcome == OUTCOME_HUNG ||
	    script->outcome == OUTCOME_UNSUPPORTED ||
	    (script->outcome == OUTCOME_FAIL &&
	     ring_now() - state->begin_ns > ENOUGH_NS) ||
	    run_lean(state->run)) {
		state->stop = true;
	}
	TALLOC_FREE(script->answers);
	TALLOC_FREE(script->steps);
	many_start(req);
}

int pairs_recv(struct tevent_req *req)
{
	int ret = channel_req_error(req);

	tevent_req_received(req);
	return ret;
}
