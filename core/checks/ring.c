/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The contended checks: all members run the lock ring at the same time
 *
 * A ring is begun by all members together, each with its own start byte, and
 * then run in slices until enough turns were made. At the end of a slice each
 * member stops between two calls, or is interrupted while it waits, and still
 * holds its byte: "frozen". Then it tells what it did when, and all that
 * together is a history, which core/checks/history.c judges: locks, the values
 * of the counters, and the order of the members. In the end the counters must
 * add up to all turns.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/checks/catalogue.h"
#include "core/checks/history.h"
#include "core/checks/operation.h"
#include "core/checks/record.h"
#include "core/checks/ringrun.h"
#include "core/member/channel.h"
#include "core/probe/ring.h"

/* A slice: long against a hand-over, short against a run's time; as long as
 * the turns that are missing will take. The first one finds out how many that
 * are; of a rate it is the only one. Where locks are slow each lasts for some
 * turns of each member, since waiting calls are interrupted at its end */
#define SLICE_MIN_MS 5
#define SLICE_MAX_MS 60
#define SLICE_MEMBER_MS 4
#define SLICE_FIRST_MS 20
#define SLICE_RATE_MS 20
#define SLICE_TURNS 4
#define SLICE_TURNS_LEAN 2

/* Steps that a member keeps of a slice; a ring on tmpfs makes as many in it */
#define SLICE_STEPS 8192

/* What two clocks may drift apart: one part in so many. Each host may slew its
 * own by 500 in a million (adjtimex(2)) */
#define CLOCK_DRIFT 1000

/* Where clocks are compared a byte is held for certain only if it is held for
 * longer than they may differ */
#define CLOCKS_LINGER_MS 1

/* Operations before the wrong one that the evidence tells */
#define TRAIL_OPS 8

/* After this long beyond a slice's end whoever is frozen lets go, so that a
 * waiter that no signal reaches gets its lock */
#define FREEZE_GRACE_MS 1000

/* No turn at all in this time although a byte is free: not slow, but stuck */
#define STUCK_MS 3000
#define STUCK_SLICES 3

enum ring_phase {
	PHASE_OPEN,		/* the first makes the file */
	PHASE_SIZE,
	PHASE_OPEN_OTHERS,
	PHASE_BEGIN,
	PHASE_SLICE,
	PHASE_RELEASE,		/* frozen members let go for a silent one */
	PHASE_LOG,		/* each tells its steps, in parts */
	PHASE_END,
	PHASE_MAP,
	PHASE_SUM,
	PHASE_RESET,
	PHASE_DONE,
};

/* How a member's clock is late against ours: by offset, give or take error */
struct ring_clock {
	uint64_t offset;	/* modulo 2^64 */
	uint64_t error;
	uint64_t since_ns;	/* when that was found; 0: never */
};

struct ringrun_state {
	struct tevent_context *ev;
	struct ringrun *rr;
	enum ring_phase phase;
	char file[PROBE_NAME_MAX];
	bool made;		/* it is there already */
	bool one_clock;		/* members of one host, whose clocks agree */
	struct ring_clock *clocks;
	unsigned pending;
	bool *answered;		/* the slice's answer is there */
	bool *sent;		/* asked in this phase */
	bool *more;		/* has steps to tell */
	uint64_t slice_begin_ns;
	unsigned slices;
	unsigned slice_ms;
	uint64_t open_ns;
	struct tevent_req *timer;
	bool late;		/* somebody could not be frozen */
};

struct ring_link {
	struct tevent_req *req;
	unsigned i;
	uint64_t sent_ns;
};

static void ring_phase_begin(struct tevent_req *req, enum ring_phase phase);
static void ring_answered(struct tevent_req *subreq);
static void ring_freeze_late(struct tevent_req *subreq);
static void ring_open_again(struct tevent_req *subreq);

static unsigned slice_ms(const struct ringrun *rr)
{
	unsigned turns = run_lean(rr->run) ? SLICE_TURNS_LEAN
					      : SLICE_TURNS;
	uint64_t need = run_lock_ns(rr->run) * rr->num * turns / 1000000;
	unsigned most = run_left_ms(rr->run) / 2;
	uint64_t ms = rr->judged ? SLICE_FIRST_MS : SLICE_RATE_MS;
	/* to stop and ask each takes its time */
	unsigned longest = SLICE_MAX_MS + SLICE_MEMBER_MS * rr->num;

	if (rr->slice_ms != 0) {
		return rr->slice_ms;
	}
	if (rr->turns > 0 && rr->turns < rr->enough) {
		double missing = (double)(rr->enough - rr->turns) /
				 (double)rr->turns * (double)rr->ns / 1e6;

		ms = missing < SLICE_MIN_MS ? SLICE_MIN_MS :
		     missing < longest ? (uint64_t)missing + 1 : longest;
	}
	if (rr->turns == 0 && need < 2 * rr->ns / 1000000) {
		/* its end may have interrupted what was about to be granted */
		need = 2 * rr->ns / 1000000;
	}
	if (need < ms) {
		return (unsigned)ms;
	}
	return need < most ? (unsigned)need : most;
}

static uint64_t ring_nlocks(const struct ringrun *rr)
{
	return rr->nlocks != 0 ? rr->nlocks : rr->num + 1;
}

/* The counters of a new file are zeroes */
static void history_begin(struct ringrun *rr)
{
	struct history_op zero = { .what = HISTORY_WRITE };

	for (; zero.start < ring_nlocks(rr); zero.start++) {
		history_add(rr->history, &zero);
	}
}

static bool on_one_host(const struct ringrun *rr)
{
	const struct member_info *first = member_info(
		run_member(rr->run, rr->members[0]));
	unsigned i;
	int differ = 0;

	for (i = 1; i < rr->num && differ == 0; i++) {
		const struct member_info *mi = member_info(
			run_member(rr->run, rr->members[i]));

		differ = strcmp(mi->boot_id, first->boot_id);
	}
	return differ == 0;
}

struct tevent_req *ringrun_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev,
				struct ringrun *rr)
{
	struct ringrun_state *state = NULL;
	struct tevent_req *req = NULL;

	req = tevent_req_create(mem_ctx, &state, struct ringrun_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->rr = rr;
	state->one_clock = on_one_host(rr);
	state->clocks = talloc_zero_array(state, struct ring_clock, rr->num);
	rr->history = talloc_zero(rr, struct history);
	rr->out = talloc_zero(rr, struct script);
	rr->last = talloc_zero_array(rr, struct probe_answer, rr->num);
	state->answered = talloc_zero_array(state, bool, rr->num);
	state->sent = talloc_zero_array(state, bool, rr->num);
	state->more = talloc_zero_array(state, bool, rr->num);
	if (rr->out == NULL || rr->last == NULL || state->answered == NULL ||
	    state->sent == NULL || state->more == NULL || state->clocks == NULL ||
	    rr->history == NULL) {
		tevent_req_oom(req);
		return tevent_req_post(req, ev);
	}
	history_begin(rr);
	rr->out->run = rr->run;
	rr->out->outcome = OUTCOME_PASS;
	if (rr->file != NULL) {
		strcpy(state->file, rr->file);
		state->made = rr->before > 0;
	} else {
		state->made = run_files(rr->run, state->file);
	}
	ring_phase_begin(req, PHASE_OPEN);
	if (!tevent_req_is_in_progress(req)) {
		return tevent_req_post(req, ev);
	}
	return req;
}

static void ring_request(const struct ringrun_state *state, unsigned i,
			 enum ring_phase phase, struct probe_request *request)
{
	const struct ringrun *rr = state->rr;
	uint64_t nlocks = ring_nlocks(rr);

	*request = (struct probe_request){};
	switch (phase) {
	case PHASE_OPEN:
	case PHASE_OPEN_OTHERS:
		request->op = PROBE_OPEN;
		request->make = phase == PHASE_OPEN && !state->made;
		snprintf(request->name, sizeof(request->name), "%.70s.0",
			 state->file);
		break;
	case PHASE_SIZE:
		request->op = PROBE_TRUNCATE;
		request->start = nlocks * sizeof(uint64_t);
		break;
	case PHASE_BEGIN:
	case PHASE_SLICE:
		request->op = PROBE_RING;
		request->nlocks = nlocks;
		request->start = i;
		request->io = rr->io;
		request->count = rr->judged ? SLICE_STEPS : 0;
		request->value = rr->seed + i;
		request->window_ms = phase == PHASE_SLICE ? state->slice_ms
							   : 0;
		request->patience_ms = state->one_clock ? 0 : CLOCKS_LINGER_MS;
		break;
	case PHASE_LOG:
		request->op = PROBE_RING_LOG;
		break;
	case PHASE_RELEASE:
	case PHASE_END:
		request->op = PROBE_RING_END;
		break;
	case PHASE_MAP:
		request->op = PROBE_MAP;
		request->len = nlocks * sizeof(uint64_t);
		break;
	case PHASE_SUM:
		request->op = PROBE_SUM;
		request->count = nlocks;
		break;
	case PHASE_RESET:
	case PHASE_DONE:
		request->op = PROBE_RESET;
		break;
	}
}

static void ring_ask(struct tevent_req *req, unsigned i)
{
	struct ringrun_state *state = tevent_req_data(
		req, struct ringrun_state);
	struct ringrun *rr = state->rr;
	struct probe_request request;
	struct tevent_req *subreq = NULL;
	struct ring_link *link = NULL;
	uint64_t sent_ns;

	if (member_gone(run_member(rr->run, rr->members[i]))) {
		return;
	}
	ring_request(state, i, state->phase, &request);
	sent_ns = ring_now();
	link = talloc(state, struct ring_link);
	subreq = run_call_send(state, state->ev, rr->run, rr->members[i],
			       &request, -1,
			       run_op_ms(rr->run) + state->slice_ms);
	if (tevent_req_nomem(link, req) || tevent_req_nomem(subreq, req)) {
		return;
	}
	*link = (struct ring_link){ req, i, sent_ns };
	state->sent[i] = true;
	state->pending++;
	tevent_req_set_callback(subreq, ring_answered, link);
}

static bool ring_phase_is_for(const struct ringrun_state *state, unsigned i)
{
	switch (state->phase) {
	case PHASE_OPEN:
	case PHASE_SIZE:
		return i == 0;
	case PHASE_OPEN_OTHERS:
		return i > 0;
	case PHASE_RELEASE:
		return state->answered[i];
	case PHASE_LOG:
		return state->more[i];
	default:
		return true;
	}
}

static void ring_sleep(struct tevent_req *req, unsigned ms, tevent_req_fn fn)
{
	struct ringrun_state *state = tevent_req_data(
		req, struct ringrun_state);

	state->timer = tevent_wakeup_send(state, state->ev,
					  channel_deadline(ms));
	if (tevent_req_nomem(state->timer, req)) {
		return;
	}
	tevent_req_set_callback(state->timer, fn, req);
}

static void ring_phase_begin(struct tevent_req *req, enum ring_phase phase)
{
	struct ringrun_state *state = tevent_req_data(
		req, struct ringrun_state);
	struct ringrun *rr = state->rr;
	unsigned i;

	state->phase = phase;
	TALLOC_FREE(state->timer);
	memset(state->sent, 0, rr->num * sizeof(bool));
	switch (phase) {
	case PHASE_DONE:
		tevent_req_done(req);
		return;
	case PHASE_OPEN_OTHERS:
		state->open_ns = ring_now();
		break;
	case PHASE_SLICE:
		memset(state->answered, 0, rr->num * sizeof(bool));
		state->slice_begin_ns = ring_now();
		state->slice_ms = slice_ms(rr);
		ring_sleep(req, state->slice_ms + FREEZE_GRACE_MS,
			   ring_freeze_late);
		break;
	default:
		break;
	}
	for (i = 0; i < rr->num; i++) {
		if (ring_phase_is_for(state, i)) {
			ring_ask(req, i);
		}
	}
	if (state->pending == 0 && tevent_req_is_in_progress(req)) {
		/* one member has no others to open; or all are gone */
		ring_phase_begin(req, phase == PHASE_OPEN_OTHERS
					      ? PHASE_BEGIN : PHASE_DONE);
	}
}

static void ring_tell(struct ringrun *rr, unsigned i, const char *operation,
		      const char *expected, const char *seen)
{
	struct script *out = rr->out;

	out->cast[0] = rr->members[i];
	out->num_cast = 1;
	out->evidence = (struct evidence){
		.operation = operation,
		.member = run_member_name(out, rr->run, rr->members[i]),
		.range = talloc_asprintf(out, "bytes 0 to %u of the ring",
					 rr->num),
		.expected = expected,
		.seen = seen,
	};
}

static void ring_fail(struct ringrun *rr, unsigned i, const char *operation,
		      const char *expected, const char *seen,
		      const char *detail)
{
	struct script *out = rr->out;

	if (out->outcome == OUTCOME_FAIL || out->outcome == OUTCOME_HUNG) {
		return;
	}
	ring_tell(rr, i, operation, expected, seen);
	out->evidence.detail = detail;
	out->outcome = OUTCOME_FAIL;
	out->why = talloc_asprintf(out, "member %s: %s: expected %s, seen %s",
				   out->evidence.member, operation, expected,
				   seen);
}

/* The call that a phase is about; failed: the one of the ring that failed */
static struct probe_request ring_call(const struct ringrun *rr,
				      enum ring_phase phase,
				      const char *failed)
{
	static const struct {
		const char *failed;
		struct probe_request call;
	} calls[] = {
		{ "read", { .op = PROBE_READ } },
		{ "write", { .op = PROBE_WRITE } },
		{ "unlock", { .op = PROBE_LOCK, .wait = true,
			      .type = F_UNLCK } },
		{ "map", { .op = PROBE_MAP } },
		{ "page", { .op = PROBE_MAP_WRITE } },
	};
	bool turning = phase == PHASE_BEGIN || phase == PHASE_SLICE ||
		       phase == PHASE_RELEASE;
	size_t i;

	if (!turning) {
		return (struct probe_request){
			.op = phase == PHASE_MAP ? PROBE_MAP :
			      phase == PHASE_SUM ? PROBE_SUM :
			      phase == PHASE_SIZE ? PROBE_TRUNCATE
						  : PROBE_OPEN };
	}
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strcmp(failed, calls[i].failed) == 0) {
			return calls[i].call;
		}
	}
	if ((rr->io & RING_MAPPED) != 0 && failed[0] == '\0') {
		return (struct probe_request){ .op = PROBE_MAP_WRITE };
	}
	return (struct probe_request){ .op = PROBE_LOCK, .wait = true,
				       .type = F_WRLCK };
}

/* An operation of the ring ended with an errno */
static void ring_errno(struct ringrun *rr, unsigned i,
		       enum ring_phase phase, const struct probe_answer *a)
{
	struct script *out = rr->out;
	struct probe_request call = ring_call(rr, phase, a->failed);
	const char *what = operation_text(out, &call);
	const char *seen = errno_text(out, a->err);
	enum errno_kind kind = operation_errno(&call, a->err);

	if (out->outcome != OUTCOME_PASS) {
		return;
	}
	out->err = a->err;
	if (phase < PHASE_BEGIN || kind == ERRNO_SHORTAGE) {
		ring_tell(rr, i, what, "done", seen);
		out->outcome = OUTCOME_SKIPPED;
		out->why = talloc_asprintf(out, "could not be prepared: "
					   "member %s: %s: %s",
					   out->evidence.member, what, seen);
		return;
	}
	ring_fail(rr, i, what, "done", seen, NULL);
	if (a->err == EDEADLK) {
		out->why = talloc_asprintf(out, "a false EDEADLK: nobody "
					   "waits in a circle: %s", out->why);
	}
	if (kind == ERRNO_REFUSAL) {
		out->outcome = OUTCOME_UNSUPPORTED;
		out->broken = operation_needs(&call);
	}
}

static void ring_silent(struct ringrun *rr, unsigned i,
			enum ring_phase phase, int err, const char *autopsy)
{
	struct script *out = rr->out;
	struct probe_request call = ring_call(rr, phase, "");
	const char *what = operation_text(out, &call);

	if (out->outcome == OUTCOME_HUNG) {
		return;
	}
	ring_tell(rr, i, what, "an answer", "none");
	out->evidence.detail = autopsy;
	if (err == ETIMEDOUT) {
		out->outcome = OUTCOME_HUNG;
		out->broken = operation_needs(&call);
		out->why = talloc_asprintf(out, "member %s: %s never returned",
					   out->evidence.member, what);
		return;
	}
	out->outcome = OUTCOME_SKIPPED;
	out->why = run_silence_text(out, rr->run, err, rr->members[i]);
}

/* ---- judging a slice --------------------------------------------------------- */

/* By how much a member's clock may be off at a time of ours */
static uint64_t clock_error(const struct ring_clock *clock, uint64_t ns)
{
	uint64_t away = ns > clock->since_ns ? ns - clock->since_ns
					     : clock->since_ns - ns;

	return clock->error + away / CLOCK_DRIFT;
}

/* Steps by a member's clock as the history's: what is not certain is taken
 * for the other */
static void to_our_clock(const struct ringrun_state *state,
			 struct history_op *ops, size_t num)
{
	size_t k;

	for (k = 0; k < num && !state->one_clock; k++) {
		struct history_op *op = &ops[k];
		const struct ring_clock *clock = &state->clocks[op->member];

		op->invoked_ns -= clock->offset;
		op->invoked_ns -= clock_error(clock, op->invoked_ns);
		if (op->answered_ns != HISTORY_NEVER) {
			op->answered_ns -= clock->offset;
			op->answered_ns += clock_error(clock,
						       op->answered_ns);
		}
	}
}

/* Its clock was read at some time between question and answer */
static void set_clock(struct ringrun_state *state, unsigned i,
		      uint64_t sent_ns, uint64_t told_ns)
{
	struct ring_clock *clock = &state->clocks[i];
	uint64_t now = ring_now();
	uint64_t error = (now - sent_ns) / 2 + 1;

	if (clock->since_ns != 0 && clock_error(clock, now) <= error) {
		return;
	}
	*clock = (struct ring_clock){
		.offset = told_ns - (sent_ns + error),
		.error = error,
		.since_ns = now,
	};
	/* containers of one host may have clocks of their own */
	if (clock->offset + error > 2 * error) {
		state->one_clock = false;
	}
}

static const char *io_text(const struct ringrun *rr)
{
	return (rr->io & RING_MAPPED) != 0
		? "load + 1 and store under the lock"
		: "pread + 1 and pwrite under the lock";
}

static const char *history_op_text(TALLOC_CTX *mem_ctx,
				   const struct ringrun *rr,
				   const struct history_op *op)
{
	bool mapped = (rr->io & RING_MAPPED) != 0;

	switch (op->what) {
	case HISTORY_LOCK:
		return "F_SETLKW F_WRLCK: granted";
	case HISTORY_UNLOCK:
		return "F_SETLKW F_UNLCK: begins";
	case HISTORY_READ:
		return talloc_asprintf(mem_ctx, "%s: %llu",
				       mapped ? "load" : "pread",
				       (unsigned long long)op->value);
	case HISTORY_WRITE:
		break;
	}
	return talloc_asprintf(mem_ctx, "%s: %llu",
			       mapped ? "store" : "pwrite",
			       (unsigned long long)op->value);
}

/* When it is known to have taken place */
static uint64_t time_of(const struct history_op *op)
{
	return op->what == HISTORY_LOCK ? op->answered_ns : op->invoked_ns;
}

/* What happened to the byte before and at the time of the wrong operation */
static const char *history_trail(struct ringrun *rr,
				 const struct history_op *wrong)
{
	const struct history *h = rr->history;
	const struct history_op *last[TRAIL_OPS] = {};
	char *text = talloc_strdup(rr->out, "after:");
	size_t i;
	int k;

	for (i = 0; i < h->num; i++) {
		const struct history_op *op = &h->ops[i];

		if (op->start != wrong->start || time_of(op) == 0 ||
		    time_of(op) > time_of(wrong)) {
			continue;
		}
		for (k = 0; k < TRAIL_OPS && last[k] != NULL &&
		     time_of(last[k]) > time_of(op); k++) {
			;
		}
		if (k < TRAIL_OPS) {
			memmove(last + k + 1, last + k, sizeof(*last) *
				(size_t)(TRAIL_OPS - 1 - k));
			last[k] = op;
		}
	}
	for (k = TRAIL_OPS - 1; k >= 0 && text != NULL; k--) {
		if (last[k] != NULL) {
			text = talloc_asprintf_append(
				text, "\nmember %u: byte %llu: %s, %.1f us "
				"before", rr->members[last[k]->member],
				(unsigned long long)last[k]->start,
				history_op_text(rr->out, rr, last[k]),
				(double)(time_of(wrong) - time_of(last[k])) /
				1e3);
		}
	}
	return text;
}

static const char *member_of(struct ringrun *rr, const struct history_op *op)
{
	return run_member_name(rr->out, rr->run, rr->members[op->member]);
}

/* An error that came with it, such as a deadlock that a lock granted twice
 * leads to, is not the first thing that was wrong */
static bool may_tell(struct ringrun *rr)
{
	if (rr->out->outcome == OUTCOME_FAIL && rr->out->err != 0) {
		rr->out->evidence.detail = NULL;
		rr->out->outcome = OUTCOME_PASS;
		rr->out->err = 0;
	}
	return rr->out->outcome == OUTCOME_PASS;
}

static void tell_locks(struct ringrun *rr, const struct history_verdict *v)
{
	if (v->lock_wrong == HISTORY_RIGHT || !may_tell(rr)) {
		return;
	}
	ring_fail(rr, v->lock_op.member, "F_SETLKW F_WRLCK",
		  talloc_asprintf(rr->out, "a wait: member %s holds byte %llu",
				  member_of(rr, &v->lock_other),
				  (unsigned long long)v->lock_op.start),
		  talloc_asprintf(rr->out, "granted; %llu of %llu grants so",
				  (unsigned long long)v->overlaps,
				  (unsigned long long)v->grants),
		  history_trail(rr, &v->lock_op));
}

/* A turn reads and writes: its read may be wrong, what it wrote be lost, or
 * both; so many turns were wrong at least. */
static uint64_t wrong_turns(const struct history_verdict *v)
{
	uint64_t reads = v->wrong - v->lost;

	return reads > v->lost ? reads : v->lost;
}

static void tell_data(struct ringrun *rr, const struct history_verdict *v)
{
	unsigned long long seen = v->data_op.value;
	const char *expected = "a value that was written";

	if (v->data_wrong == HISTORY_RIGHT || !may_tell(rr)) {
		return;
	}
	if (v->data_wrong != HISTORY_NOWHERE) {
		expected = talloc_asprintf(
			rr->out, "%llu at least, which member %s wrote",
			(unsigned long long)v->data_other.value,
			member_of(rr, &v->data_other));
	}
	if (v->data_wrong == HISTORY_LOST) {
		/* what it wrote is one more than it had read */
		seen--;
	}
	ring_fail(rr, v->data_op.member, io_text(rr), expected,
		  talloc_asprintf(rr->out, "%llu read at byte %llu; %llu of "
				  "%llu wrong", seen,
				  (unsigned long long)v->data_op.start,
				  (unsigned long long)wrong_turns(v),
				  (unsigned long long)v->reads),
		  history_trail(rr, &v->data_op));
}

/*
 * A call of the ring that failed: a lock call asked for the byte after the one
 * that its member held, any other was about that one.
 */
static void tell_failed(struct ringrun_state *state, unsigned i)
{
	struct ringrun *rr = state->rr;
	const struct probe_answer *a = &rr->last[i];
	bool first = !a->frozen;
	bool next = strcmp(a->failed, "lock") == 0 && !first;
	struct history_op op = {
		.what = HISTORY_LOCK,
		.member = i,
		.start = (a->position + next) % ring_nlocks(rr),
		.answered_ns = a->clock_ns,
	};

	op.invoked_ns = op.answered_ns;
	to_our_clock(state, &op, 1);
	rr->out->evidence.detail = history_trail(rr, &op);
}

static void tell_errno(struct ringrun_state *state)
{
	struct ringrun *rr = state->rr;
	unsigned i;

	if (rr->out->outcome != OUTCOME_FAIL || rr->out->err == 0 ||
	    rr->out->evidence.detail != NULL) {
		return;
	}
	for (i = 0; i < rr->num; i++) {
		if (rr->members[i] == rr->out->cast[0]) {
			tell_failed(state, i);
		}
	}
}

static int judge_history(struct ringrun_state *state)
{
	struct ringrun *rr = state->rr;
	struct history_verdict *all = &rr->verdict;
	struct history_verdict v = {};
	int ret;

	if (!rr->judged) {
		return 0;
	}
	ret = history_judge(rr->history, &v);
	if (ret != 0) {
		return ret;
	}
	/* what was held before the slice was judged with that one */
	all->grants += v.grants;
	all->overlaps += v.overlaps;
	all->reads += v.reads;
	all->wrong += v.wrong;
	all->lost += v.lost;
	tell_locks(rr, &v);
	tell_data(rr, &v);
	tell_errno(state);
	history_forget(rr->history);
	return 0;
}

/* Where each member has got to */
static const char *positions_text(const struct ringrun *rr)
{
	char *text = talloc_strdup(rr->out, "in the end:");
	unsigned i;

	for (i = 0; i < rr->num && text != NULL; i++) {
		text = talloc_asprintf_append(
			text, "\nmember %u: %llu turns, at position %llu",
			rr->members[i], (unsigned long long)rr->last[i].turns,
			(unsigned long long)rr->last[i].position);
	}
	return text;
}

static void judge_order(struct ringrun *rr)
{
	uint64_t *positions = talloc_array(rr->out, uint64_t, rr->num);
	unsigned i, who = 0, whom = 0;
	bool ok;

	for (i = 0; positions != NULL && i < rr->num; i++) {
		bool frozen = rr->last[i].frozen && rr->last[i].err == 0;

		positions[i] = frozen ? rr->last[i].position : HISTORY_NEVER;
	}
	ok = positions == NULL ||
	     history_in_order(positions, rr->num, ring_nlocks(rr), &who,
			      &whom);
	if (ok) {
		return;
	}
	ring_fail(rr, who, "F_SETLKW F_WRLCK",
		  talloc_asprintf(rr->out, "to stay behind member %s and less "
				  "than a round", run_member_name(
					rr->out, rr->run, rr->members[whom])),
		  talloc_asprintf(rr->out, "position %llu against %llu",
				  (unsigned long long)positions[who],
				  (unsigned long long)positions[whom]),
		  positions_text(rr));
}

static void count_slice(struct ringrun_state *state)
{
	struct ringrun *rr = state->rr;
	uint64_t turns = 0;
	unsigned i;

	for (i = 0; i < rr->num; i++) {
		turns += rr->last[i].turns;
		if (rr->last[i].max_ns > rr->out->max_lock_ns &&
		    !state->late) {
			rr->out->max_lock_ns = rr->last[i].max_ns;
		}
	}
	rr->turns = turns;
	if (state->slices++ == 0) {
		rr->first_turns = rr->turns;
		rr->first_ns = rr->ns;
	}
	if (rr->slice_fn != NULL) {
		rr->slice_fn(rr, rr->private_data);
	}
}

static bool is_stuck(const struct ringrun_state *state)
{
	return state->rr->turns == 0 && state->slices >= STUCK_SLICES &&
	       state->rr->ns >= STUCK_MS * 1000000ULL;
}

static bool slices_enough(const struct ringrun_state *state)
{
	const struct ringrun *rr = state->rr;
	uint64_t elapsed_ms = rr->ns / 1000000;

	if (rr->out->outcome != OUTCOME_PASS || state->late ||
	    run_left_ms(rr->run) < 4 * slice_ms(rr)) {
		return true;
	}
	if (rr->turns == 0) {
		return is_stuck(state);
	}
	if (elapsed_ms >= rr->max_ms) {
		return rr->turns >= rr->least ||
		       elapsed_ms >= rr->most_ms || run_lean(rr->run);
	}
	return rr->turns >= rr->enough;
}

/* ---- what comes back ----------------------------------------------------------- */

/* A part of a member's steps; another one is asked for */
static void ring_take_log(struct ringrun_state *state, unsigned i,
			  uint64_t sent_ns, const struct probe_answer *a)
{
	struct ringrun *rr = state->rr;
	struct ring_step *steps = NULL;
	size_t from = rr->history->num, room = 0, num = 0;
	int ret = a->err;

	if (ret == 0 && a->log != NULL) {
		room = strlen(a->log) / RING_STEP_TEXT_MIN + 1;
		steps = talloc_array(rr->out, struct ring_step, room);
		ret = steps == NULL ? ENOMEM
		    : ring_steps_parse(a->log, steps, room, &num);
	}
	if (ret != 0) {
		ring_tell(rr, i, "the steps of the ring", "told",
			  errno_text(rr->out, ret));
		rr->out->outcome = OUTCOME_SKIPPED;
		rr->out->why = talloc_asprintf(
			rr->out, "could not tell: member %s does not say what "
			"it did (another version of pingpong?)",
			rr->out->evidence.member);
		return;
	}
	set_clock(state, i, sent_ns, a->clock_ns);
	history_add_ring(rr->history, i, steps, num, ring_nlocks(rr), rr->io);
	to_our_clock(state, rr->history->ops + from,
		     rr->history->num - from);
	record_ring(run_history(rr->run), run_check(rr->run), rr->members,
		    rr->history->ops + from, rr->history->num - from, rr->io,
		    sizeof(uint64_t));
	talloc_free(steps);
	state->more[i] = a->count > 0;
}

static void ring_take(struct ringrun_state *state, unsigned i, int ret,
		      uint64_t sent_ns, const struct probe_answer *a,
		      const char *autopsy)
{
	struct ringrun *rr = state->rr;

	if (ret != 0) {
		ring_silent(rr, i, state->phase, ret, autopsy);
		return;
	}
	if (state->phase == PHASE_LOG) {
		ring_take_log(state, i, sent_ns, a);
		return;
	}
	if (state->phase == PHASE_SLICE || state->phase == PHASE_RELEASE) {
		if (state->answered[i]) {
			return;		/* of PROBE_RING_END */
		}
		state->answered[i] = true;
		rr->last[i] = *a;
	}
	if (a->err != 0) {
		ring_errno(rr, i, state->phase, a);
		return;
	}
	if (state->phase == PHASE_BEGIN) {
		/* before there is anything to be converted */
		set_clock(state, i, sent_ns, a->clock_ns);
	}
	if (state->phase == PHASE_SUM && a->value != rr->before + rr->turns) {
		uint64_t all = rr->before + rr->turns;

		rr->lost = a->value < all ? all - a->value : 0;
		ring_fail(rr, i, "sum of all counters after the ring",
			  talloc_asprintf(rr->out, "%llu",
					  (unsigned long long)all),
			  talloc_asprintf(rr->out, "%llu",
					  (unsigned long long)a->value),
			  positions_text(rr));
	}
}

static void judge_progress(const struct ringrun_state *state)
{
	struct ringrun *rr = state->rr;

	if (rr->turns > 0 || rr->out->outcome != OUTCOME_PASS) {
		return;
	}
	if (!is_stuck(state)) {
		rr->out->outcome = OUTCOME_SKIPPED;
		rr->out->why = "there was no time for a single turn";
		return;
	}
	ring_fail(rr, 0, "F_SETLKW F_WRLCK",
		  "one of the members gets the byte that is free",
		  talloc_asprintf(rr->out, "no turn at all in %llu ms",
				  (unsigned long long)(rr->ns / 1000000)),
		  positions_text(rr));
}

static void ring_slice_over(struct tevent_req *req)
{
	struct ringrun_state *state = tevent_req_data(
		req, struct ringrun_state);
	bool enough;
	int ret;

	count_slice(state);
	ret = judge_history(state);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	/* who was let go to free another may have been passed meanwhile */
	if (!state->late) {
		judge_order(state->rr);
	}
	enough = slices_enough(state);
	if (!enough) {
		ring_phase_begin(req, PHASE_SLICE);
		return;
	}
	judge_progress(state);
	ring_phase_begin(req, PHASE_END);
}

/* All members are alive, whatever else is wrong. */
static bool can_tell(const struct ringrun *rr)
{
	return rr->out->outcome == OUTCOME_PASS ||
	       rr->out->outcome == OUTCOME_FAIL;
}

/* Has a member steps to tell? */
static bool any_more(const struct ringrun_state *state)
{
	return memchr(state->more, true, state->rr->num) != NULL;
}

/* What follows a phase when all its answers are there */
static void ring_phase_over(struct tevent_req *req)
{
	struct ringrun_state *state = tevent_req_data(
		req, struct ringrun_state);
	struct ringrun *rr = state->rr;
	bool well = rr->out->outcome == OUTCOME_PASS;

	switch (state->phase) {
	case PHASE_OPEN:
		ring_phase_begin(req, well ? PHASE_SIZE : PHASE_RESET);
		break;
	case PHASE_SIZE:
		ring_phase_begin(req, !well ? PHASE_RESET :
				 rr->num > 1 ? PHASE_OPEN_OTHERS
					     : PHASE_BEGIN);
		break;
	case PHASE_OPEN_OTHERS:
		ring_phase_begin(req, well ? PHASE_BEGIN : PHASE_RESET);
		break;
	case PHASE_BEGIN:
		ring_phase_begin(req, well ? PHASE_SLICE : PHASE_RESET);
		break;
	case PHASE_SLICE:
	case PHASE_RELEASE:
		rr->ns += ring_now() - state->slice_begin_ns;
		memset(state->more, rr->judged, rr->num);
		/* FALL THROUGH */
	case PHASE_LOG:
		if (!can_tell(rr) || !any_more(state)) {
			ring_slice_over(req);
			break;
		}
		ring_phase_begin(req, PHASE_LOG);
		break;
	case PHASE_END:
		/* where two were inside at once the sum tells nothing new */
		ring_phase_begin(req, (rr->io & RING_RW) == 0 || !well ||
				 state->late ? PHASE_RESET :
				 (rr->io & RING_MAPPED) != 0 ? PHASE_MAP
							     : PHASE_SUM);
		break;
	case PHASE_MAP:
		ring_phase_begin(req, PHASE_SUM);
		break;
	case PHASE_SUM:
		ring_phase_begin(req, PHASE_RESET);
		break;
	case PHASE_RESET:
	case PHASE_DONE:
		tevent_req_done(req);
		break;
	}
}

static void ring_answered(struct tevent_req *subreq)
{
	struct ring_link *link = tevent_req_callback_data_void(subreq);
	struct tevent_req *req = link->req;
	struct ringrun_state *state = tevent_req_data(
		req, struct ringrun_state);
	struct ringrun *rr = state->rr;
	struct probe_answer answer = {};
	const char *autopsy = NULL;
	uint64_t sent_ns = link->sent_ns;
	unsigned i = link->i;
	int ret;

	ret = run_call_recv(subreq, rr->out, &answer, &autopsy);
	TALLOC_FREE(subreq);
	talloc_free(link);
	state->pending--;
	if (ret == 0 && answer.err == ENOENT &&
	    state->phase == PHASE_OPEN_OTHERS &&
	    ring_now() - state->open_ns < run_name_ms(rr->run) * 1000000ULL) {
		/* the name is on its way; ask all who are left again */
		state->sent[i] = false;
		if (state->timer == NULL) {
			ring_sleep(req, 2, ring_open_again);
		}
		return;
	}
	if (state->phase == PHASE_OPEN_OTHERS) {
		run_note_name(rr->run, (ring_now() - state->open_ns) /
				       1000000, answer.err != ENOENT);
	}
	ring_take(state, i, ret, sent_ns, &answer, autopsy);
	if (state->pending == 0 &&
	    (state->phase != PHASE_OPEN_OTHERS || state->timer == NULL)) {
		ring_phase_over(req);
	}
}

static void ring_open_again(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct ringrun_state *state = tevent_req_data(
		req, struct ringrun_state);
	unsigned i;

	tevent_wakeup_recv(subreq);
	TALLOC_FREE(state->timer);
	for (i = 1; i < state->rr->num; i++) {
		if (!state->sent[i]) {
			ring_ask(req, i);
		}
	}
	if (state->pending == 0) {
		ring_phase_over(req);
	}
}

/* Somebody waits and no signal reaches it: let it have its lock */
static void ring_freeze_late(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct ringrun_state *state = tevent_req_data(
		req, struct ringrun_state);
	unsigned i;

	tevent_wakeup_recv(subreq);
	TALLOC_FREE(state->timer);
	state->phase = PHASE_RELEASE;
	state->late = true;
	for (i = 0; i < state->rr->num; i++) {
		if (state->answered[i]) {
			ring_ask(req, i);
		}
	}
}

int ringrun_recv(struct tevent_req *req)
{
	int ret = channel_req_error(req);

	tevent_req_received(req);
	return ret;
}

double ringrun_rate(const struct ringrun *rr)
{
	uint64_t turns = rr->turns, ns = rr->ns;

	if (ns > rr->first_ns) {
		turns -= rr->first_turns;
		ns -= rr->first_ns;
	}
	return ns > 0 ? (double)turns * 1e9 / (double)ns : 0;
}

/* ---- lock.ring, io.increment, mmap.increment ------------------------------------- */

struct ring_check_state {
	struct ringrun *rr;
	struct check_result *result;
	uint64_t turns, ns;		/* before the slice */
};

/* More say nothing new of a long run */
#define SLICES_TOLD 100

static void ring_note_slice(struct ringrun *rr, void *private_data)
{
	struct ring_check_state *state = talloc_get_type_abort(
		private_data, struct ring_check_state);
	json_t *metrics = state->result->metrics;
	json_t *slices = json_object_get(metrics, "slices_per_s");
	uint64_t turns = rr->turns - state->turns;
	uint64_t ns = rr->ns - state->ns;

	state->turns = rr->turns;
	state->ns = rr->ns;
	if (slices == NULL) {
		slices = json_array();
		json_object_set_new(metrics, "slices_per_s", slices);
	}
	if (ns > 0 && json_array_size(slices) < SLICES_TOLD) {
		json_array_append_new(slices, json_real((double)turns * 1e9 /
							(double)ns));
	}
}

static void ring_check_done(struct tevent_req *subreq);

struct ringrun *ringrun_create(TALLOC_CTX *mem_ctx, struct run *run,
			       unsigned num, unsigned io)
{
	struct ringrun *rr = talloc_zero(mem_ctx, struct ringrun);
	unsigned i;

	if (rr == NULL) {
		return NULL;
	}
	rr->members = talloc_array(rr, unsigned, num);
	if (rr->members == NULL) {
		talloc_free(rr);
		return NULL;
	}
	rr->run = run;
	rr->num = num;
	rr->io = io;
	for (i = 0; i < num; i++) {
		rr->members[i] = i;
	}
	return rr;
}

static struct tevent_req *ring_check_send(TALLOC_CTX *mem_ctx,
					  struct tevent_context *ev,
					  struct run *run,
					  struct check_result *result,
					  unsigned io)
{
	static const struct {
		uint64_t enough;
		unsigned max_ms;
		uint64_t least;
		unsigned most_ms;
	} sizes[] = {
		[RUN_LIGHT] = { 2000, 180, 0, 0 },
		[RUN_QUICK] = { 5000, 300, 0, 0 },
		/* one wrong in 1,000 does not go unseen */
		[RUN_DEFAULT] = { 8000, 900, 6000, 5000 },
		/* nor RUN_THOROUGH_RATE */
		[RUN_THOROUGH] = { 400000, 0, 0, 0 },
	};
	struct ring_check_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;
	enum run_level level = run_level(run);

	req = tevent_req_create(mem_ctx, &state, struct ring_check_state);
	if (req == NULL) {
		return NULL;
	}
	state->result = result;
	state->rr = ringrun_create(state, run, run_num_members(run),
				   io | RING_LINGER);
	if (tevent_req_nomem(state->rr, req)) {
		return tevent_req_post(req, ev);
	}
	state->rr->judged = true;
	state->rr->seed = run_random(run) >> 1;
	state->rr->slice_fn = ring_note_slice;
	state->rr->private_data = state;
	state->rr->enough = sizes[level].enough;
	state->rr->max_ms = sizes[level].max_ms;
	state->rr->least = sizes[level].least;
	state->rr->most_ms = sizes[level].most_ms;
	if (level == RUN_THOROUGH) {
		state->rr->max_ms = run_thorough_ms(run);
	}
	subreq = ringrun_send(state, ev, state->rr);
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq, ring_check_done, req);
	return req;
}

static void ring_metrics(struct check_result *result,
			 const struct ringrun *rr)
{
	const struct history_verdict *v = &rr->verdict;
	uint64_t trials = (rr->io & RING_RW) == 0 ? v->grants : v->reads;
	uint64_t violations = v->overlaps + wrong_turns(v);
	uint64_t p50 = 0, p99 = 0, max = 0;
	json_t *each = json_array();
	unsigned i;

	for (i = 0; i < rr->num; i++) {
		const struct probe_answer *a = &rr->last[i];

		json_array_append_new(each, json_integer(
					(json_int_t)a->turns));
		p50 = a->p50_ns > p50 ? a->p50_ns : p50;
		p99 = a->p99_ns > p99 ? a->p99_ns : p99;
		max = a->max_ns > max ? a->max_ns : max;
	}
	if (rr->out->outcome == OUTCOME_FAIL && violations == 0) {
		violations = 1;
	}
	if (trials == 0) {
		/* nobody could tell his steps any more */
		trials = rr->turns;
	}
	json_object_update_new(
		result->metrics,
		json_pack("{sI sI sf so sf sf sf sf sI}",
			  "trials", (json_int_t)trials,
			  "violations", (json_int_t)violations,
			  "violation_bound_95",
			  violation_bound(trials, violations),
			  "turns_each", each,
			  "turns_per_s", ringrun_rate(rr),
			  "turn_p50_us", (double)p50 / 1e3,
			  "turn_p99_us", (double)p99 / 1e3,
			  "turn_max_us", (double)max / 1e3,
			  "lost_updates", (json_int_t)rr->lost));
}

static void ring_check_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct ring_check_state *state = tevent_req_data(
		req, struct ring_check_state);
	struct ringrun *rr = state->rr;
	struct script *out = rr->out;
	int ret;

	ret = ringrun_recv(subreq);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	if (out->outcome == OUTCOME_PASS && out->max_lock_ns > 1000000000ULL) {
		out->outcome = OUTCOME_SLOW;
		out->why = talloc_asprintf(
			out, "a turn of the ring took %.1f s with %u "
			"members; CTDB warns when its lock takes more than "
			"1 s (RecLockLatencyMs)",
			(double)out->max_lock_ns / 1e9, rr->num);
	}
	result_take(state->result, out);
	ring_metrics(state->result, rr);
	tevent_req_done(req);
}

static struct tevent_req *lock_ring_send(TALLOC_CTX *mem_ctx,
					 struct tevent_context *ev,
					 struct run *run,
					 struct check_result *result)
{
	return ring_check_send(mem_ctx, ev, run, result, RING_LOCKS);
}

static struct tevent_req *io_increment_send(TALLOC_CTX *mem_ctx,
					    struct tevent_context *ev,
					    struct run *run,
					    struct check_result *result)
{
	return ring_check_send(mem_ctx, ev, run, result, RING_RW);
}

static struct tevent_req *mmap_increment_send(TALLOC_CTX *mem_ctx,
					      struct tevent_context *ev,
					      struct run *run,
					      struct check_result *result)
{
	return ring_check_send(mem_ctx, ev, run, result, RING_MMAP);
}

const struct check check_lock_ring = {
	.name = "lock.ring",
	.holds = "in the ping-pong ring nobody is ever in another's critical "
		 "section, and everybody makes progress",
	.how = "All members at once go round a ring of one more byte than "
	       "members, each always holding one byte and waiting for the "
	       "next, as ping_pong does. Each tells when it was granted which "
	       "byte and when it let it go. A member that gets a byte while "
	       "another certainly holds it (clocks of several hosts are "
	       "compared as exactly as the connection allows), and one that "
	       "passes another, is named.",
	.depends = "CTDB's cluster lock and smbd's byte-range locks under "
		   "contention (ctdb/server/ctdb_mutex_fcntl_helper.c, "
		   "source3/locking/posix.c).",
	.remedy = "Locks that hold step by step but not here fail only under "
		  "contention: report it to the file system's vendor with "
		  "this evidence. Slow turns are the network's or the lock "
		  "server's.",
	.doors = DOOR_AGENT | DOOR_COMMAND,
	.needs = NEEDS_LOCKS | NEEDS_BYTES,
	.send = lock_ring_send,
	.recv = ringrun_recv,
};

const struct check check_io_increment = {
	.name = "io.increment",
	.holds = "the data increment equals the number of members, none lost",
	.how = "The ring with a 64 bit counter for each byte, read, increased "
	       "and written under its lock, as 'ping_pong -rw' does with 8 "
	       "bits. Each value is the one that the member before wrote, so "
	       "that each counter's values are read by one member each, in "
	       "the order of their visits; and in the end the counters must "
	       "add up to all turns.",
	.depends = "Any program that reads, changes and writes under a lock: "
		   "databases on a share with 'posix locking = yes' "
		   "(smb.conf(5)), NFS and Samba on the same files.",
	.remedy = "If the lock checks pass, data is cached although the lock "
		  "was taken: mount with caching off (direct I/O, "
		  "attribute and entry time-outs of 0, NFS 'noac'), or "
		  "see the file system's manual for a coherent mode.",
	.doors = DOOR_COMMAND,
	.needs = NEEDS_LOCKS | NEEDS_BYTES | NEEDS_IO,
	.send = io_increment_send,
	.recv = ringrun_recv,
};

const struct check check_mmap_increment = {
	.name = "mmap.increment",
	.holds = "the data increment through shared mappings, none lost",
	.how = "As io.increment, loading and storing through a shared "
	       "mapping, as 'ping_pong -rwm' does.",
	.depends = "Only TDB maps files shared, and only on one node "
		   "(lib/tdb/common/io.c); smbd never maps share files. It "
		   "tells how far the file system's coherence goes.",
	.remedy = "'use mmap = no' with 'tdb mutexes = false' where TDB files "
		  "lie on this file system; better: keep them on a local "
		  "disk.",
	.doors = DOOR_COMMAND,
	.spare = true,
	.needs = NEEDS_LOCKS | NEEDS_BYTES | NEEDS_MMAP,
	.send = mmap_increment_send,
	.recv = ringrun_recv,
};

/* ---- rate.* ------------------------------------------------------------------------ */

/* Rings one after the other, with 1, n or again 1 members */
struct rate_state {
	struct tevent_context *ev;
	struct run *run;
	struct check_result *result;
	const unsigned *nums;
	unsigned count;
	unsigned next;
	struct ringrun *rr;
	double rates[3];
};

static void rate_next(struct tevent_req *req);
static void rate_done(struct tevent_req *subreq);

static struct tevent_req *rate_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    struct run *run,
				    struct check_result *result,
				    unsigned count)
{
	struct rate_state *state = NULL;
	struct tevent_req *req = NULL;
	unsigned *nums = NULL;

	req = tevent_req_create(mem_ctx, &state, struct rate_state);
	if (req == NULL) {
		return NULL;
	}
	nums = talloc_array(state, unsigned, 3);
	if (tevent_req_nomem(nums, req)) {
		return tevent_req_post(req, ev);
	}
	if (run_lean(run)) {
		result->outcome = OUTCOME_SKIPPED;
		result->why = "too few turns a second: see lock.ring";
		tevent_req_done(req);
		return tevent_req_post(req, ev);
	}
	nums[0] = nums[2] = 1;
	nums[1] = run_num_members(run);
	state->ev = ev;
	state->run = run;
	state->result = result;
	state->nums = nums;
	state->count = count;
	rate_next(req);
	if (!tevent_req_is_in_progress(req)) {
		return tevent_req_post(req, ev);
	}
	return req;
}

static void rate_next(struct tevent_req *req)
{
	struct rate_state *state = tevent_req_data(req, struct rate_state);
	const double *known = run_rates(state->run);
	struct tevent_req *subreq = NULL;

	while (state->next < 2 && state->next + 1 < state->count &&
	       known[state->next] > 0) {
		state->rates[state->next] = known[state->next];
		state->next++;
	}
	state->rr = ringrun_create(state, state->run,
				   state->nums[state->next], RING_LOCKS);
	if (tevent_req_nomem(state->rr, req)) {
		return;
	}
	state->rr->enough = 1;
	subreq = ringrun_send(state, state->ev, state->rr);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, rate_done, req);
}

static void rate_judge(struct rate_state *state)
{
	struct check_result *result = state->result;
	double alone = state->rates[0];

	json_object_set_new(result->metrics, "alone_turns_per_s",
			    json_real(alone));
	if (state->count > 1) {
		json_object_set_new(result->metrics, "together_turns_per_s",
				    json_real(state->rates[1]));
		json_object_set_new(result->metrics, "drop",
				    json_real(state->rates[1] > 0
					? alone / state->rates[1] : 0));
	}
	if (state->count > 2) {
		json_object_set_new(result->metrics, "again_turns_per_s",
				    json_real(state->rates[2]));
		json_object_set_new(result->metrics, "recovery",
				    json_real(alone > 0
					? state->rates[2] / alone : 0));
	}
	result->members = talloc_array(result, unsigned, 1);
	if (result->members != NULL) {
		result->members[0] = 0;
	}
}

static void rate_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct rate_state *state = tevent_req_data(req, struct rate_state);
	int ret;

	ret = ringrun_recv(subreq);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	state->rates[state->next] = ringrun_rate(state->rr);
	if (state->rr->out->outcome != OUTCOME_PASS) {
		/* wrong locks are lock.ring's to tell: there is no rate */
		state->rr->out->broken = 0;
		if (state->rr->out->outcome == OUTCOME_FAIL) {
			state->rr->out->outcome = OUTCOME_SKIPPED;
		}
		result_take(state->result, state->rr->out);
		tevent_req_done(req);
		return;
	}
	TALLOC_FREE(state->rr);
	if (state->next < 2) {
		run_rates(state->run)[state->next] =
			state->rates[state->next];
	}
	if (++state->next < state->count) {
		rate_next(req);
		return;
	}
	rate_judge(state);
	tevent_req_done(req);
}

static struct tevent_req *rate_alone_send(TALLOC_CTX *mem_ctx,
					  struct tevent_context *ev,
					  struct run *run,
					  struct check_result *result)
{
	return rate_send(mem_ctx, ev, run, result, 1);
}

static struct tevent_req *rate_together_send(TALLOC_CTX *mem_ctx,
					     struct tevent_context *ev,
					     struct run *run,
					     struct check_result *result)
{
	return rate_send(mem_ctx, ev, run, result, 2);
}

static struct tevent_req *rate_recovery_send(TALLOC_CTX *mem_ctx,
					     struct tevent_context *ev,
					     struct run *run,
					     struct check_result *result)
{
	return rate_send(mem_ctx, ev, run, result, 3);
}

#define RATE_DEPENDS \
	"Telling, but never alone a reason against a file system: on few " \
	"processors wrong locks drop too."

const struct check check_rate_alone = {
	.name = "rate.alone",
	.holds = "the lock rate of one member alone is measured",
	.how = "One member goes round a ring of two bytes. Turns a second of "
	       "the steady part.",
	.depends = RATE_DEPENDS,
	.remedy = "Nothing to do. Compare with an earlier run of the same "
		  "places.",
	.doors = DOOR_COMMAND,
	.spare = true,
	.needs = NEEDS_LOCKS | NEEDS_BYTES,
	.send = rate_alone_send,
	.recv = ringrun_recv,
};

const struct check check_rate_together = {
	.name = "rate.together",
	.holds = "the lock rate of all members, and how much it drops",
	.how = "One member alone, then all: 'drop' is the rate alone divided "
	       "by that of all together. Coherent locks drop, since each "
	       "grant now has to go through all nodes.",
	.depends = RATE_DEPENDS,
	.remedy = "No drop and failing lock checks: locks are local to each "
		  "node. A deep drop with passing checks: see lock.ring for "
		  "the time of a turn.",
	.doors = DOOR_COMMAND,
	.spare = true,
	.needs = NEEDS_LOCKS | NEEDS_BYTES,
	.send = rate_together_send,
	.recv = ringrun_recv,
};

const struct check check_rate_recovery = {
	.name = "rate.recovery",
	.holds = "the lock rate of one member comes back when the others end",
	.how = "One member alone, then all, then one alone again: 'recovery' "
	       "is the last rate divided by the first.",
	.depends = RATE_DEPENDS,
	.remedy = "A rate that stays low although nobody else is there: the "
		  "lock server still asks nodes that have gone.",
	.doors = DOOR_COMMAND,
	.spare = true,
	.needs = NEEDS_LOCKS | NEEDS_BYTES,
	.send = rate_recovery_send,
	.recv = ringrun_recv,
};
