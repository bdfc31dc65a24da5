/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/checks/lockstep.h"
#include "core/checks/operation.h"
#include "core/checks/rounds.h"
#include "core/checks/sight.h"
#include "core/member/channel.h"
#include "core/probe/ring.h"

/* SOON: what a check cannot begin without */
#define SOON_MS 1000

/* Asked again: after this long at first, and never more seldom than that */
#define AGAIN_MS 2
#define AGAIN_MAX_MS 50

/* What is not seen without a lock is waited for until a cache's time is over,
 * but not longer than this; and where there is little time, only so long that
 * it is late */
#define CACHE_PATIENCE_MS 6000
#define HURRY_MS 1200

/* rounds before the wrong one that the evidence tells */
#define TRAIL_ROUNDS 8

/* ---- building ----------------------------------------------------------- */

struct round *round_add(struct rounds *r, enum whose whose, enum probe_op op,
			unsigned slot)
{
	static struct round nowhere;
	size_t room = talloc_array_length(r->list);
	struct round *list = r->list;

	if (r->num_rounds == room) {
		list = talloc_realloc(r, r->list, struct round,
				      room == 0 ? 64 : 2 * room);
		if (list == NULL) {
			r->oom = true;
			return &nowhere;
		}
		r->list = list;
	}
	list += r->num_rounds++;
	*list = (struct round){
		.whose = whose,
		.req = { .op = op, .slot = slot },
		.see = SEE_DONE,
	};
	return list;
}

struct round *round_open(struct rounds *r, enum whose whose, unsigned slot)
{
	struct round *round = round_add(r, whose, PROBE_OPEN, slot);

	strcpy(round->req.name, r->file);
	round->sight = SOON;
	round->setup = true;
	return round;
}

void round_open_both(struct rounds *r)
{
	round_open(r, MINE, 0)->req.make = true;
	round_open(r, THEIRS, 1);
}

static void round_locking(struct rounds *r, enum whose whose, int type,
			  unsigned slot, uint64_t start, uint64_t len)
{
	struct round *round = NULL;

	if (!r->locked) {
		return;
	}
	round = round_add(r, whose, PROBE_LOCK, slot);
	round->req.type = type;
	round->req.start = start;
	round->req.len = len;
	round->sight = SOON;
}

void round_lock(struct rounds *r, enum whose whose, unsigned slot,
		uint64_t start, uint64_t len)
{
	round_locking(r, whose, whose == MINE ? F_WRLCK : F_RDLCK, slot,
		      start, len);
}

void round_unlock(struct rounds *r, enum whose whose, unsigned slot,
		  uint64_t start, uint64_t len)
{
	round_locking(r, whose, F_UNLCK, slot, start, len);
}

static struct round *round_data(struct rounds *r, enum whose whose,
				enum probe_op op, unsigned slot,
				uint64_t start, uint64_t len, uint64_t value)
{
	struct round *round = round_add(r, whose, op, slot);

	round->req.start = start;
	round->req.len = len;
	round->req.value = value;
	return round;
}

struct round *round_write(struct rounds *r, enum probe_op op, unsigned slot,
			  uint64_t start, uint64_t len, uint64_t value)
{
	return round_data(r, MINE, op, slot, start, len, value);
}

struct round *round_read(struct rounds *r, enum whose whose, enum probe_op op,
			 unsigned slot, uint64_t start, uint64_t len,
			 uint64_t value)
{
	struct round *round = round_data(r, whose, op, slot, start, len,
					 value);

	round->see = SEE_DATA;
	round->expected = len;
	round->sight = whose == THEIRS ? SEEN : AT_ONCE;
	return round;
}

void round_map(struct rounds *r, enum whose whose, unsigned slot, uint64_t len)
{
	struct round *round = round_add(r, whose, PROBE_STAT, slot);

	/* a page beyond what is taken for the end would be a SIGBUS */
	round->see = SEE_SIZE;
	round->expected = len;
	round->sight = SOON;
	round->setup = true;
	round = round_add(r, whose, PROBE_MAP, slot);
	round->req.len = len;
	round->means = "shared mappings are refused";
}

/* ---- one answer --------------------------------------------------------- */

static bool as_expected(const struct round *round,
			const struct probe_answer *a, uint64_t made_inode)
{
	switch (round->see) {
	case SEE_ANYTHING:
		return true;
	case SEE_DONE:
		return a->err == 0;
	case SEE_ERRNO:
		return a->err == (int)round->expected;
	case SEE_DATA:
		return a->err == 0 && a->wrong == 0 &&
		       a->count == round->expected;
	case SEE_SIZE:
		return a->err == 0 && a->size == round->expected;
	case SEE_COUNT:
		return a->err == 0 && a->wrong == 0 &&
		       a->count == round->expected;
	case SEE_NO_LEASE:
		return a->err == 0 && a->count == 0;
	case SEE_INODE:
		return a->err == 0 && a->inode == made_inode;
	}
	return false;
}

/* An answer that was right a while ago, or will be in a while */
static bool may_be_early(const struct round *round,
			 const struct probe_answer *a)
{
	switch (a->err) {
	case 0:
		/* where zeroes are to be read, anything else was before */
		return round->see != SEE_INODE &&
		       (a->wrong == 0 || a->value != UINT64_MAX ||
			round->req.value == 0);
	case ENOENT:
	case ESTALE:
		return round->req.op == PROBE_OPEN ||
		       round->req.op == PROBE_LOOKUP;
	case EAGAIN:
		/* a lease is being broken */
		return round->req.op == PROBE_OPEN ||
		       round->req.op == PROBE_LOCK;
	case EACCES:
		return round->req.op == PROBE_LOCK;
	default:
		return false;
	}
}

/* ---- texts -------------------------------------------------------------- */

static const char *op_text(TALLOC_CTX *mem_ctx, const struct round *round)
{
	const char *text = operation_text(mem_ctx, &round->req);

	return round->how == NULL ? text
		: talloc_asprintf(mem_ctx, "%s (%s)", text, round->how);
}

static const char *generation_text(TALLOC_CTX *mem_ctx, uint64_t value)
{
	if (value == 0) {
		return "zeroes";
	}
	return talloc_asprintf(mem_ctx, "generation %llu",
			       (unsigned long long)value);
}

static const char *expected_text(TALLOC_CTX *mem_ctx,
				 const struct round *round, uint64_t inode)
{
	unsigned long long n = (unsigned long long)round->expected;

	switch (round->see) {
	case SEE_ERRNO:
		return errno_text(mem_ctx, (int)round->expected);
	case SEE_DATA:
		return talloc_asprintf(
			mem_ctx, "%llu byte%s, %s", n, n == 1 ? "" : "s",
			generation_text(mem_ctx, round->req.value));
	case SEE_SIZE:
		return talloc_asprintf(mem_ctx, "size %llu", n);
	case SEE_COUNT:
		return talloc_asprintf(mem_ctx, "%llu", n);
	case SEE_NO_LEASE:
		return "the lease is gone";
	case SEE_INODE:
		return talloc_asprintf(mem_ctx, "st_ino %llu",
				       (unsigned long long)inode);
	case SEE_DONE:
		return round->req.op == PROBE_LOOKUP ? "found" : "done";
	case SEE_ANYTHING:
		break;
	}
	return "an answer";
}

static const char *data_text(TALLOC_CTX *mem_ctx, const struct round *round,
			     const struct probe_answer *a)
{
	const char *what = NULL;

	if (a->wrong == 0) {
		return talloc_asprintf(mem_ctx,
				       "end of file after %llu bytes",
				       (unsigned long long)a->count);
	}
	what = a->value == UINT64_MAX ? "nothing that was written"
				      : generation_text(mem_ctx, a->value);
	return talloc_asprintf(mem_ctx, "%s in %llu of %llu bytes, from "
			       "offset %llu on", what,
			       (unsigned long long)a->wrong,
			       (unsigned long long)round->req.len,
			       (unsigned long long)a->at);
}

static const char *seen_text(TALLOC_CTX *mem_ctx, const struct round *round,
			     const struct probe_answer *a)
{
	if (a->err != 0) {
		return errno_text(mem_ctx, a->err);
	}
	switch (round->see) {
	case SEE_ERRNO:
		return "found";
	case SEE_DATA:
		return data_text(mem_ctx, round, a);
	case SEE_SIZE:
		return talloc_asprintf(mem_ctx, "size %llu",
				       (unsigned long long)a->size);
	case SEE_COUNT:
		if (a->wrong == 0) {
			return talloc_asprintf(mem_ctx, "%llu",
					       (unsigned long long)a->count);
		}
		return talloc_asprintf(mem_ctx, "%llu, and %llu others",
				       (unsigned long long)a->count,
				       (unsigned long long)a->wrong);
	case SEE_NO_LEASE:
		return "it is still held";
	case SEE_INODE:
		return talloc_asprintf(mem_ctx, "st_ino %llu",
				       (unsigned long long)a->inode);
	case SEE_DONE:
	case SEE_ANYTHING:
		break;
	}
	return "done";
}

static const char *whose_text(enum whose whose)
{
	switch (whose) {
	case MINE:
		return "its own file";
	case THEIRS:
		return "the other's file";
	case OURS:
		break;
	}
	return "the common file";
}

/* ---- running ------------------------------------------------------------ */

/* What one member is asked in the round */
struct look {
	struct rounds_state *state;
	struct tevent_req *subreq;
	bool asked;		/* takes part, and was not right yet */
	bool sent;
	int ret;
	struct probe_answer answer;
	const char *autopsy;
	uint64_t sent_ns;
	uint64_t wrong_ns;	/* when the last wrong answer was asked for;
				 * 0: none was */
	uint64_t inode;		/* of its own file */
};

struct rounds_state {
	struct tevent_req *req;
	struct tevent_context *ev;
	struct run *run;
	struct check_result *result;
	const struct rounds_check *check;
	struct rounds *r;
	struct look *looks;		/* one a member */
	unsigned num;
	unsigned trial;
	bool no_locks;			/* refused: go without */
	uint64_t begin_ns;

	/* of the trial */
	size_t current;
	size_t clean_at;		/* first of the rounds that clean up */
	bool ended;			/* outcome is there: only clean up */
	bool again;			/* anew, without locks */

	/* of the round */
	unsigned pending;
	uint64_t round_ns;		/* when it began */
	uint64_t changed_ns;		/* when the last one of MINE was over */
	unsigned again_ms;
	bool wrong;			/* somebody was: there is evidence */
	unsigned culprit;		/* whose the evidence is */
	bool may_wait;			/* its answer may become right */

	/* what there is to tell of the trial: why, evidence, err, members */
	struct check_result found;

	/* of all trials */
	uint64_t compared, violations;
	uint64_t stale_ms;
	bool was_locked;
};

static void trial_begin(struct rounds_state *state);
static void round_begin(struct rounds_state *state);
static void round_ask(struct rounds_state *state);
static void round_answered(struct tevent_req *subreq);
static void round_conclude(struct rounds_state *state, bool at_last,
			   uint64_t age_ms);
static void round_again(struct tevent_req *subreq);
static void trial_over(struct rounds_state *state);

static const struct round *current_round(const struct rounds_state *state)
{
	return &state->r->list[state->current];
}

static unsigned distance(unsigned num, unsigned trial)
{
	if (trial % 2 == 0) {
		return 1;
	}
	return num < 4 ? num - 1 : num / 2;
}

/* the member whose file `member` acts on in this round */
static unsigned maker_of(const struct rounds_state *state, unsigned member)
{
	switch (current_round(state)->whose) {
	case MINE:
		return member;
	case THEIRS:
		return (member + state->num -
			distance(state->num, state->trial)) % state->num;
	case OURS:
		break;
	}
	return 0;
}

struct tevent_req *rounds_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			       struct run *run, struct check_result *result,
			       const struct rounds_check *check)
{
	struct rounds_state *state = NULL;
	struct tevent_req *req = NULL;
	unsigned i;

	req = tevent_req_create(mem_ctx, &state, struct rounds_state);
	if (req == NULL) {
		return NULL;
	}
	state->req = req;
	state->ev = ev;
	state->run = run;
	state->result = result;
	state->check = check;
	state->num = run_num_members(run);
	state->begin_ns = ring_now();
	state->looks = talloc_zero_array(state, struct look, state->num);
	if (tevent_req_nomem(state->looks, req)) {
		return tevent_req_post(req, ev);
	}
	for (i = 0; i < state->num; i++) {
		state->looks[i].state = state;
	}
	trial_begin(state);
	if (!tevent_req_is_in_progress(req)) {
		return tevent_req_post(req, ev);
	}
	return req;
}

static void trial_begin(struct rounds_state *state)
{
	struct rounds *r = NULL;
	bool made;
	size_t i;

	TALLOC_FREE(state->r);
	r = state->r = talloc_zero(state, struct rounds);
	if (tevent_req_nomem(r, state->req)) {
		return;
	}
	r->run = state->run;
	r->result = state->result;
	r->num = state->num;
	r->trial = state->trial;
	r->locked = state->check->locks && !state->no_locks &&
		    !run_broken(state->run, NEEDS_LOCKS);
	r->brief = r->locked && run_slow(state->run);
	r->outcome = OUTCOME_PASS;
	run_file_name(state->run, r->file);
	run_file_name(state->run, r->file2);
	made = !state->check->new_names && run_files(state->run, r->file);
	state->check->build(r);
	for (i = 0; made && i < r->num_rounds; i++) {
		r->list[i].req.make = false;
	}
	state->clean_at = r->num_rounds;
	round_add(r, MINE, PROBE_RESET, 0)->see = SEE_ANYTHING;
	round_add(r, MINE, PROBE_UNLINK, 0)->see = SEE_ANYTHING;
	if (r->oom) {
		tevent_req_oom(state->req);
		return;
	}
	strcpy(r->list[state->clean_at + 1].req.name, r->file);
	state->found = (struct check_result){};
	state->current = 0;
	state->ended = false;
	state->again = false;
	round_begin(state);
}

static bool takes_part(const struct rounds_state *state,
		       const struct round *round, unsigned member)
{
	bool gone = member_gone(run_member(state->run, member));

	if (gone) {
		return false;
	}
	return round->who == EACH || (round->who == FIRST) == (member == 0);
}

static void round_begin(struct rounds_state *state)
{
	const struct round *round = current_round(state);
	unsigned i;

	state->round_ns = ring_now();
	state->again_ms = AGAIN_MS;
	state->wrong = false;
	for (i = 0; i < state->num; i++) {
		state->looks[i].asked = takes_part(state, round, i);
		state->looks[i].wrong_ns = 0;
	}
	round_ask(state);
}

static void add_maker(char name[PROBE_NAME_MAX], unsigned maker)
{
	size_t len = strlen(name);

	if (len > 0) {
		snprintf(name + len, PROBE_NAME_MAX - len, ".%u", maker);
	}
}

static void look_send(struct rounds_state *state, unsigned member)
{
	const struct round *round = current_round(state);
	struct look *look = &state->looks[member];
	struct probe_request req = round->req;
	unsigned ms = run_op_ms(state->run);

	add_maker(req.name, maker_of(state, member));
	add_maker(req.name2, maker_of(state, member));
	if (req.op == PROBE_APPEND) {
		req.value += member * req.count;
	}
	look->sent = true;
	look->sent_ns = ring_now();
	look->subreq = run_call_send(state, state->ev, state->run, member,
				     &req, -1, state->ended ? ms + 100 : ms);
	if (tevent_req_nomem(look->subreq, state->req)) {
		return;
	}
	state->pending++;
	tevent_req_set_callback(look->subreq, round_answered, look);
}

/* Send what is to be asked and was not yet; all at once, or where locks are
 * slow one after the other */
static void round_send_more(struct rounds_state *state)
{
	unsigned i;

	for (i = 0; i < state->num; i++) {
		if (!tevent_req_is_in_progress(state->req) ||
		    (state->r->brief && state->pending > 0)) {
			return;
		}
		if (state->looks[i].asked && !state->looks[i].sent) {
			look_send(state, i);
		}
	}
}

static uint64_t age_ms(const struct rounds_state *state, uint64_t ns)
{
	return ns > state->changed_ns ? (ns - state->changed_ns) / 1000000
				      : 0;
}

static void trial_end(struct rounds_state *state, enum outcome outcome)
{
	state->r->outcome = outcome;
	state->ended = true;
	state->current = state->clean_at;
	round_begin(state);
}

static void round_ask(struct rounds_state *state)
{
	unsigned left = run_left_ms(state->run);
	unsigned i;

	if (left == 0 && !state->ended) {
		if (state->wrong) {
			round_conclude(state, false, age_ms(
				state, state->looks[state->culprit].wrong_ns));
			return;
		}
		if (state->trial == 0) {
			state->found.why = "the run's time was over";
			trial_end(state, OUTCOME_SKIPPED);
			return;
		}
		/* what was tested was right */
		trial_end(state, OUTCOME_PASS);
		return;
	}
	for (i = 0; i < state->num; i++) {
		state->looks[i].sent = false;
	}
	round_send_more(state);
	if (state->pending == 0 &&
	    tevent_req_is_in_progress(state->req)) {
		trial_over(state);
	}
}

/* The evidence: which member was asked for what and saw what */
static void tell(struct rounds_state *state, unsigned member,
		 const char *expected, const char *seen, const char *more)
{
	struct check_result *result = state->result;
	const struct round *round = current_round(state);
	unsigned maker = maker_of(state, member);
	unsigned *members = NULL;
	const char *name = run_member_name(result, state->run, member);
	const char *other = run_member_name(result, state->run, maker);
	char *trail = talloc_strdup(result, more != NULL ? more : "");
	size_t i;

	trail = talloc_asprintf_append(trail, "%safter:",
				       more != NULL ? "\n" : "");
	i = state->current > TRAIL_ROUNDS ? state->current - TRAIL_ROUNDS : 0;
	for (; i < state->current; i++) {
		const struct round *before = &state->r->list[i];
		const struct probe_request *req = &before->req;
		const char *range = operation_range(result, req);
		bool data = operation_is_data(req->op);

		trail = talloc_asprintf_append(
			trail, "\neach member: %s%s%s in %s%s%s",
			op_text(result, before), range != NULL ? " " : "",
			range != NULL ? range : "", whose_text(before->whose),
			data ? ": " : "",
			data ? generation_text(result, req->value) : "");
	}
	state->found.evidence = (struct evidence){
		.operation = op_text(result, round),
		.member = round->whose != THEIRS ? name :
			talloc_asprintf(result, "%s, of what %s did", name,
					other),
		.range = operation_range(result, &round->req),
		.expected = expected,
		.seen = seen,
		.detail = trail,
	};
	members = talloc_array(result, unsigned, maker == member ? 1 : 2);
	if (members != NULL) {
		members[0] = member;
		members[maker == member ? 0 : 1] = maker;
	}
	state->found.members = members;
}

/* "member 1 (/mnt/b), ...: pread [0, 1)" */
static const char *where_text(const struct rounds_state *state)
{
	const struct evidence *e = &state->found.evidence;

	return talloc_asprintf(state->result, "member %s: %s%s%s", e->member,
			       e->operation, e->range != NULL ? " " : "",
			       e->range != NULL ? e->range : "");
}

static void look_silent(struct rounds_state *state, unsigned member)
{
	struct look *look = &state->looks[member];
	struct check_result *result = state->result;
	const char *where = NULL;

	tell(state, member, "an answer", "none", look->autopsy);
	where = where_text(state);
	if (look->ret == ETIMEDOUT) {
		state->found.why = talloc_asprintf(
			result, "%s never returned", where);
		run_set_broken(state->run,
			       operation_needs(&current_round(state)->req),
			       result->check->name, OUTCOME_HUNG);
		trial_end(state, OUTCOME_HUNG);
		return;
	}
	state->found.why = run_silence_text(result, state->run, look->ret,
					    member);
	trial_end(state, OUTCOME_SKIPPED);
}

/* "stale for 1.2 s", when the answer was wrong for a while only */
static const char *age_text(struct rounds_state *state, bool at_last,
			    uint64_t age_ms)
{
	if (age_ms < 10) {
		return at_last ? "; right when asked again" : "";
	}
	return talloc_asprintf(state->result, "; %s %.2f s",
			       at_last ? "right only after"
				       : "still so after",
			       (double)age_ms / 1000);
}

static unsigned cache_ms(const struct rounds_state *state)
{
	const struct member_info *mi = member_info(
		run_member(state->run, state->culprit));

	return sight_cache_ms(mi->fstype, mi->options);
}

/* No more is to be asked: what is it that was seen */
static void round_conclude(struct rounds_state *state, bool at_last,
			   uint64_t age_ms)
{
	const struct round *round = current_round(state);
	const struct look *look = &state->looks[state->culprit];
	struct check_result *result = state->result;
	const struct evidence *e = &state->found.evidence;
	enum outcome outcome = OUTCOME_FAIL;
	int err = look->answer.err;
	enum errno_kind kind = operation_errno(&round->req, err);
	bool refused = kind == ERRNO_REFUSAL;
	const char *means = "";

	if (round->req.op == PROBE_LOCK) {
		state->again = true;
		trial_end(state, OUTCOME_PASS);
		return;
	}
	if (round->setup && round->req.op == PROBE_OPEN && err == ENOENT) {
		run_note_name(state->run, age_ms, false);
	}
	if (kind == ERRNO_SHORTAGE || round->setup) {
		state->found.why = talloc_asprintf(
			result, "could not be prepared: %s: %s",
			where_text(state), e->seen);
		trial_end(state, OUTCOME_SKIPPED);
		return;
	}
	if (round->means != NULL &&
	    (err == 0 || refused || state->may_wait)) {
		means = talloc_asprintf(
			result, "%s%s: ", round->means,
			state->r->locked && round->sight == SEEN
				? " under a lock" : "");
	}
	state->found.why = talloc_asprintf(
		result, "%s%s: expected %s, seen %s%s", means,
		where_text(state), e->expected, e->seen,
		round->sight == SEEN && state->may_wait
			? age_text(state, at_last, age_ms) : "");
	state->found.err = err;
	if (refused) {
		trial_end(state, OUTCOME_UNSUPPORTED);
		return;
	}
	if (round->sight == SEEN && state->may_wait) {
		outcome = sight_outcome(state->r->locked, at_last, age_ms,
					cache_ms(state));
		state->r->stale = true;
	}
	state->violations += outcome == OUTCOME_FAIL;
	trial_end(state, outcome);
}

/* How many trials an answer stands for */
static uint64_t round_weight(const struct round *round)
{
	if (round->setup || round->see < SEE_ERRNO) {
		return 0;
	}
	return round->req.op == PROBE_COUNT ? round->expected : 1;
}

static void note_age(struct rounds_state *state, uint64_t age)
{
	if (current_round(state)->sight == SEEN && age > state->stale_ms) {
		state->stale_ms = age;
	}
}

static void look_judge(struct rounds_state *state, unsigned member,
		       bool *all_right)
{
	const struct round *round = current_round(state);
	struct look *look = &state->looks[member];
	uint64_t inode = state->looks[maker_of(state, member)].inode;
	bool right = as_expected(round, &look->answer, inode);

	if (right) {
		look->asked = false;
		if (round->req.op == PROBE_OPEN && round->whose == MINE &&
		    round->see == SEE_DONE) {
			look->inode = look->answer.inode;
		}
		if (round->req.op == PROBE_LOCK &&
		    round->req.type != F_UNLCK) {
			run_note_lock(state->run, look->answer.ns);
		}
		if (round->note != NULL) {
			round->note(state->r, member, &look->answer);
		}
		return;
	}
	*all_right = false;
	look->wrong_ns = look->sent_ns;
	if (state->wrong) {
		return;
	}
	state->wrong = true;
	state->culprit = member;
	state->may_wait = may_be_early(round, &look->answer);
	tell(state, member, expected_text(state->result, round, inode),
	     seen_text(state->result, round, &look->answer), NULL);
}

/* All are right, some perhaps only in the end */
static void round_right(struct rounds_state *state)
{
	const struct round *round = current_round(state);
	uint64_t age = 0;
	unsigned i;

	if (round->whose != THEIRS) {
		state->changed_ns = ring_now();
	}
	if (round->req.op == PROBE_OPEN) {
		run_note_name(state->run,
			      (ring_now() - state->round_ns) / 1000000,
			      true);
	}
	for (i = 0; i < state->num && round->sight == SEEN; i++) {
		struct look *look = &state->looks[i];

		if (age_ms(state, look->wrong_ns) > age) {
			age = age_ms(state, look->wrong_ns);
		}
	}
	if (state->wrong && round->sight == SEEN) {
		enum outcome outcome = sight_outcome(state->r->locked, true,
						     age, 0);

		note_age(state, age);
		if (outcome != OUTCOME_PASS) {
			round_conclude(state, true, age);
			return;
		}
	}
	state->current++;
	if (state->current == state->clean_at) {
		state->ended = true;
	}
	round_begin(state);
}

/* Whoever does not see it has been asked often enough */
static bool window_over(const struct rounds_state *state, uint64_t age)
{
	uint64_t ms = (ring_now() - state->round_ns) / 1000000;
	enum run_level level = run_level(state->run);
	unsigned cache = cache_ms(state);
	/* once is enough to tell how old it gets */
	bool hurry = level < RUN_DEFAULT || state->stale_ms > 0;

	switch (current_round(state)->sight) {
	case AT_ONCE:
		break;
	case SOON:
		return ms >= (current_round(state)->req.op == PROBE_OPEN ||
			      current_round(state)->req.op == PROBE_LOOKUP
			      ? run_name_ms(state->run) : SOON_MS);
	case SEEN:
		if (state->r->locked) {
			return state->stale_ms > 0 ||
			       ms >= (hurry ? 1000 : 2500);
		}
		/* a cache's time is waited for, if that is not too long */
		return age > cache || (hurry && ms >= HURRY_MS) ||
		       (level < RUN_THOROUGH && ms >= CACHE_PATIENCE_MS);
	}
	return true;
}

static void round_judge(struct rounds_state *state)
{
	const struct round *round = current_round(state);
	bool first = !state->wrong, all_right = true, over;
	struct tevent_req *subreq = NULL;
	uint64_t age;
	unsigned i;

	for (i = 0; i < state->num; i++) {
		if (state->looks[i].asked && state->looks[i].ret != 0) {
			look_silent(state, i);
			return;
		}
	}
	for (i = 0; i < state->num; i++) {
		if (state->looks[i].asked) {
			state->compared += first ? round_weight(round) : 0;
			look_judge(state, i, &all_right);
		}
	}
	if (all_right) {
		round_right(state);
		return;
	}
	age = age_ms(state, state->looks[state->culprit].wrong_ns);
	over = !state->may_wait || window_over(state, age) ||
	       run_left_ms(state->run) < state->again_ms;
	if (over && !state->looks[state->culprit].asked) {
		/* it is right by now; whoever is not is to be told of */
		state->wrong = false;
		for (i = 0; !state->looks[i].asked; i++) {
			;
		}
		look_judge(state, i, &all_right);
		age = age_ms(state, state->looks[i].wrong_ns);
	}
	if (over) {
		note_age(state, age);
		round_conclude(state, false, age);
		return;
	}
	subreq = tevent_wakeup_send(state, state->ev,
				    channel_deadline(state->again_ms));
	if (tevent_req_nomem(subreq, state->req)) {
		return;
	}
	tevent_req_set_callback(subreq, round_again, state->req);
	state->again_ms *= 2;
	if (state->again_ms > AGAIN_MAX_MS) {
		state->again_ms = AGAIN_MAX_MS;
	}
}

static void round_again(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct rounds_state *state = tevent_req_data(req,
						     struct rounds_state);

	tevent_wakeup_recv(subreq);
	TALLOC_FREE(subreq);
	round_ask(state);
}

/* Cleaning up: what is silent now was not before */
static void clean_judge(struct rounds_state *state)
{
	struct rounds *r = state->r;
	unsigned i;

	for (i = 0; i < state->num && r->outcome == OUTCOME_PASS; i++) {
		struct look *look = &state->looks[i];

		if (!look->asked || look->ret == 0) {
			continue;
		}
		tell(state, i, "an answer", "none", look->autopsy);
		r->outcome = look->ret == ETIMEDOUT ? OUTCOME_HUNG
						    : OUTCOME_SKIPPED;
		state->found.why = look->ret != ETIMEDOUT
			? run_silence_text(state->result, state->run,
					   look->ret, i)
			: talloc_asprintf(
				state->result, "member %s: close or unlink "
				"of a probe file never returned",
				state->found.evidence.member);
	}
	state->current++;
	if (r->outcome == OUTCOME_PASS && state->current < r->num_rounds) {
		round_begin(state);
		return;
	}
	trial_over(state);
}

static void round_answered(struct tevent_req *subreq)
{
	struct look *look = tevent_req_callback_data_void(subreq);
	struct rounds_state *state = look->state;

	look->subreq = NULL;
	look->ret = run_call_recv(subreq, state->result, &look->answer,
				  &look->autopsy);
	TALLOC_FREE(subreq);
	if (look->ret == ENOMEM) {
		tevent_req_oom(state->req);
		return;
	}
	state->pending--;
	round_send_more(state);
	if (state->pending > 0 || !tevent_req_is_in_progress(state->req)) {
		return;
	}
	if (state->ended) {
		clean_judge(state);
		return;
	}
	round_judge(state);
}

/* ---- from trial to trial ------------------------------------------------ */

/* A check that is not at the end of its trials goes on for so long */
static unsigned budget_ms(struct run *run)
{
	static const unsigned budget[] = {
		[RUN_LIGHT] = 300,
		[RUN_QUICK] = 1500,
		[RUN_DEFAULT] = 4000,
	};
	unsigned thorough = run_thorough_ms(run);

	if (run_level(run) == RUN_THOROUGH) {
		return thorough > 0 ? thorough : budget[RUN_DEFAULT];
	}
	return budget[run_level(run)];
}

/* Each trial proves as many pairs as there are members: of many, fewer do */
static unsigned trials(const struct rounds_state *state)
{
	const unsigned *wanted = state->check->trials;
	unsigned some = wanted[run_level(state->run)] * 4 / state->num;

	if (state->check->go_on || state->num <= 4) {
		return wanted[run_level(state->run)];
	}
	return some > wanted[RUN_LIGHT] ? some : wanted[RUN_LIGHT];
}

static bool enough(const struct rounds_state *state)
{
	uint64_t ms = (ring_now() - state->begin_ns) / 1000000;
	enum outcome outcome = state->result->outcome;
	bool done = state->trial >= trials(state);
	bool sure = violation_bound(state->compared, 0) <= RUN_THOROUGH_RATE;
	bool over = sure || ms >= budget_ms(state->run) || state->r->brief;
	unsigned left = run_left_ms(state->run);

	if (state->check->go_on) {
		return done || (outcome != OUTCOME_PASS &&
				outcome != OUTCOME_FAIL);
	}
	if (outcome != OUTCOME_PASS || left == 0) {
		return true;
	}
	return run_level(state->run) == RUN_THOROUGH ? done && over
						     : done || over;
}

static void rounds_finish(struct rounds_state *state)
{
	struct check_result *result = state->result;
	json_t *metrics = result->metrics;
	unsigned i;

	json_object_set_new(metrics, "trials",
			    json_integer((json_int_t)state->compared));
	json_object_set_new(metrics, "violations",
			    json_integer((json_int_t)state->violations));
	json_object_set_new(metrics, "violation_bound_95",
			    json_real(violation_bound(state->compared,
						      state->violations)));
	if (state->check->locks) {
		json_object_set_new(metrics, "under_lock",
				    json_boolean(state->was_locked));
	}
	if (state->stale_ms > 0) {
		json_object_set_new(metrics, "stale_ms",
				    json_integer((json_int_t)state->stale_ms));
	}
	if (result->members == NULL) {
		result->members = talloc_array(result, unsigned, state->num);
		for (i = 0; result->members != NULL && i < state->num; i++) {
			result->members[i] = i;
		}
	}
	tevent_req_done(state->req);
}

static void trial_over(struct rounds_state *state)
{
	struct rounds *r = state->r;
	struct check_result *result = state->result;
	bool over;

	if (state->again && r->outcome == OUTCOME_PASS) {
		state->no_locks = true;
		trial_begin(state);
		return;
	}
	state->was_locked = r->locked;
	if (state->check->trial_over != NULL) {
		state->check->trial_over(r);
	}
	if (outcome_worse(r->outcome, result->outcome)) {
		result->outcome = r->outcome;
		result->why = state->found.why;
		result->evidence = state->found.evidence;
		result->members = state->found.members;
		result->err = state->found.err;
	}
	/* what was brief because nobody knew better is done again */
	state->trial += !r->brief || run_slow(state->run) ||
			r->outcome != OUTCOME_PASS;
	over = enough(state);
	if (over) {
		rounds_finish(state);
		return;
	}
	trial_begin(state);
}

int rounds_recv(struct tevent_req *req)
{
	int ret = channel_req_error(req);

	tevent_req_received(req);
	return ret;
}
