/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdarg.h>

#include "core/checks/ringrun.h"
#include "core/checks/run.h"
#include "core/checks/sweep.h"
#include "core/member/channel.h"

#define SECOND_MS 1000

/* Up to here each number of members has a step, then every fourth part more */
#define EACH_STEP 8

/* A member's rate alone, divided by its rate with a second one: less than this
 * says that they did not wait for each other; where locks were seen to be
 * wrong it is told as long as both together are not much slower than one */
#define DROP_LEAST 1.1
#define DROP_LEAST_WRONG 3

/* The last rate alone divided by the first */
#define RECOVERY_LEAST 0.5

/* Of the slowest member's turns and those of the fastest */
#define EQUAL_LEAST 0.5

struct sweep_state {
	struct tevent_context *ev;
	struct run *run;
	struct check_result *result;
	const char *mode;
	unsigned io;
	char file[PROBE_NAME_MAX];
	unsigned *counts;		/* of members, talloc array */
	unsigned next;
	uint64_t before;		/* turns of the steps before */
	struct ringrun *rr;
	json_t *steps;			/* the metrics', as are: */
	json_t *seconds;
	json_t *remarks;
	uint64_t turns, ns;		/* at the end of the last second */
};

/* ---- the steps ----------------------------------------------------------- */

static unsigned count_after(unsigned count, unsigned members)
{
	unsigned next = count < EACH_STEP ? count + 1 : count + count / 4;

	return next < members ? next : members;
}

unsigned sweep_steps(unsigned members)
{
	unsigned count, n = 1;

	for (count = 1; count < members; count = count_after(count, members)) {
		n++;
	}
	return 2 * n - 1;
}

static unsigned *sweep_counts(TALLOC_CTX *mem_ctx, unsigned members)
{
	unsigned n = sweep_steps(members);
	unsigned *counts = talloc_array(mem_ctx, unsigned, n);
	unsigned i, count = 1;

	if (counts == NULL) {
		return NULL;
	}
	for (i = 0; i <= n / 2; i++) {
		counts[i] = counts[n - 1 - i] = count;
		count = count_after(count, members);
	}
	return counts;
}

/* ---- what is told -------------------------------------------------------- */

static void remark(struct sweep_state *state, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void remark(struct sweep_state *state, const char *format, ...)
{
	char *line = NULL;
	va_list ap;

	va_start(ap, format);
	line = talloc_vasprintf(state, format, ap);
	va_end(ap);
	if (line != NULL) {
		json_array_append_new(state->remarks, json_string(line));
	}
	talloc_free(line);
}

/* The data increment: what the members saw last, if they agree */
static uint64_t increment_of(const struct ringrun *rr)
{
	uint64_t increment = rr->last[0].value;
	unsigned i;

	for (i = 1; i < rr->num; i++) {
		if (rr->last[i].value != increment) {
			increment = rr->last[i].value > increment
				? rr->last[i].value : increment;
		}
	}
	return (rr->io & RING_RW) != 0 ? increment : 0;
}

static void second_over(struct ringrun *rr, void *private_data)
{
	struct sweep_state *state = talloc_get_type_abort(private_data,
							  struct sweep_state);
	const struct run_options *options = run_options(state->run);
	uint64_t turns = rr->turns - state->turns;
	uint64_t ns = rr->ns - state->ns;
	const struct run_rate rate = {
		.mode = state->mode,
		.members = rr->num,
		.second = (unsigned)json_array_size(state->seconds),
		.turns_per_s = ns > 0 ? (double)turns * 1e9 / (double)ns : 0,
		.increment = increment_of(rr),
	};

	state->turns = rr->turns;
	state->ns = rr->ns;
	json_array_append_new(state->seconds, json_real(rate.turns_per_s));
	if (turns == 0) {
		remark(state, "no turn in a second with %u members", rr->num);
	}
	if (options->rate != NULL) {
		options->rate(&rate, options->private_data);
	}
}

static json_t *turns_each(struct sweep_state *state)
{
	const struct ringrun *rr = state->rr;
	uint64_t least = UINT64_MAX, most = 0;
	json_t *each = json_array();
	unsigned i;

	for (i = 0; i < rr->num; i++) {
		uint64_t turns = rr->last[i].turns;

		least = turns < least ? turns : least;
		most = turns > most ? turns : most;
		json_array_append_new(each, json_integer((json_int_t)turns));
	}
	if ((double)least < (double)most * EQUAL_LEAST) {
		remark(state, "unequal members: of %u, one made %llu turns "
		       "and another %llu", rr->num, (unsigned long long)least,
		       (unsigned long long)most);
	}
	return each;
}

static void step_told(struct sweep_state *state)
{
	const struct ringrun *rr = state->rr;

	json_array_append_new(
		state->steps,
		json_pack("{sI sO sf so sI}",
			  "members", (json_int_t)rr->num,
			  "rates", state->seconds,
			  "rate", ringrun_rate(rr),
			  "turns_each", turns_each(state),
			  "increment", (json_int_t)increment_of(rr)));
}

/* Of all seconds of a step, since a busy machine has slow ones, too */
static double best_second(const struct sweep_state *state, unsigned step)
{
	const json_t *rates = json_object_get(
		json_array_get(state->steps, step), "rates");
	const json_t *rate = NULL;
	double best = 0;
	size_t i;

	json_array_foreach(rates, i, rate) {
		if (json_number_value(rate) > best) {
			best = json_number_value(rate);
		}
	}
	return best;
}

static void judge_drop(struct sweep_state *state)
{
	bool wrong = state->result->outcome == OUTCOME_FAIL;
	double alone = best_second(state, 0);
	double two = best_second(state, 1);
	double drop = two > 0 ? 2 * alone / two : 0;

	json_object_set_new(state->result->metrics, "drop_each",
			    json_real(drop));
	if (two > 0 && drop < (wrong ? DROP_LEAST_WRONG : DROP_LEAST)) {
		remark(state, "no drop at the second member: %.0f turns/s "
		       "alone, %.0f together", alone, two);
	}
}

static void judge_recovery(struct sweep_state *state, unsigned last)
{
	double before = best_second(state, 0);
	double after = best_second(state, last);
	double recovery = before > 0 ? after / before : 0;

	json_object_set_new(state->result->metrics, "recovery",
			    json_real(recovery));
	if (recovery < RECOVERY_LEAST) {
		remark(state, "the rate alone did not come back: %.0f turns/s "
		       "before, %.0f after", before, after);
	}
}

static void sweep_judge(struct sweep_state *state)
{
	unsigned all = sweep_steps(run_num_members(state->run));

	json_object_set_new(state->result->metrics, "trials",
			    json_integer((json_int_t)state->before));
	if (state->next > 1 && state->counts[1] == 2) {
		judge_drop(state);
	}
	if (state->next == all && all > 1) {
		judge_recovery(state, all - 1);
	}
}

/* ---- running ------------------------------------------------------------- */

static void sweep_next(struct tevent_req *req);
static void sweep_step_done(struct tevent_req *subreq);

static int sweep_state_destructor(struct sweep_state *state)
{
	json_decref(state->seconds);
	return 0;
}

static struct tevent_req *sweep_send(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     struct run *run,
				     struct check_result *result,
				     const char *mode, unsigned io)
{
	unsigned members = run_num_members(run);
	struct sweep_state *state = NULL;
	struct tevent_req *req = NULL;

	req = tevent_req_create(mem_ctx, &state, struct sweep_state);
	if (req == NULL) {
		return NULL;
	}
	*state = (struct sweep_state){
		.ev = ev, .run = run, .result = result, .mode = mode,
		.io = io, .steps = json_array(), .remarks = json_array(),
		.counts = sweep_counts(state, members),
	};
	talloc_set_destructor(state, sweep_state_destructor);
	run_file_name(run, state->file);
	json_object_set_new(result->metrics, "mode", json_string(mode));
	json_object_set_new(result->metrics, "steps", state->steps);
	json_object_set_new(result->metrics, "remarks", state->remarks);
	if (state->counts == NULL) {
		tevent_req_oom(req);
		return tevent_req_post(req, ev);
	}
	sweep_next(req);
	if (!tevent_req_is_in_progress(req)) {
		return tevent_req_post(req, ev);
	}
	return req;
}

static void sweep_next(struct tevent_req *req)
{
	struct sweep_state *state = tevent_req_data(req, struct sweep_state);
	unsigned step_ms = run_options(state->run)->step_ms;
	struct tevent_req *subreq = NULL;
	struct ringrun *rr = NULL;

	json_decref(state->seconds);
	state->seconds = json_array();
	state->turns = state->ns = 0;
	rr = ringrun_create(state, state->run, state->counts[state->next],
			    state->io);
	if (tevent_req_nomem(rr, req)) {
		return;
	}
	state->rr = rr;
	rr->enough = UINT64_MAX;
	/* so that it is over with the last whole second */
	rr->max_ms = step_ms - SECOND_MS / 2;
	rr->slice_ms = SECOND_MS;
	rr->nlocks = run_num_members(state->run) + 1;
	rr->file = state->file;
	rr->before = state->before;
	rr->slice_fn = second_over;
	rr->private_data = state;
	subreq = ringrun_send(state, state->ev, rr);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, sweep_step_done, req);
}

static void sweep_step_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct sweep_state *state = tevent_req_data(req, struct sweep_state);
	unsigned steps = sweep_steps(run_num_members(state->run));
	bool well;
	int ret;

	ret = ringrun_recv(subreq);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	well = state->rr->out->outcome == OUTCOME_PASS;
	step_told(state);
	result_take(state->result, state->rr->out);
	state->before += state->rr->turns;
	state->next++;
	TALLOC_FREE(state->rr);
	if (well && state->next < steps) {
		sweep_next(req);
		return;
	}
	sweep_judge(state);
	tevent_req_done(req);
}

/* ---- the three ----------------------------------------------------------- */

static struct tevent_req *locks_send(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     struct run *run,
				     struct check_result *result)
{
	return sweep_send(mem_ctx, ev, run, result, "locks", RING_LOCKS);
}

static struct tevent_req *rw_send(TALLOC_CTX *mem_ctx,
				  struct tevent_context *ev, struct run *run,
				  struct check_result *result)
{
	return sweep_send(mem_ctx, ev, run, result, "-rw", RING_RW);
}

static struct tevent_req *rwm_send(TALLOC_CTX *mem_ctx,
				   struct tevent_context *ev, struct run *run,
				   struct check_result *result)
{
	return sweep_send(mem_ctx, ev, run, result, "-rwm", RING_MMAP);
}

static const struct check sweep_locks = {
	.name = "lock.ring",
	.holds = "locks pass from member to member, one after the other",
	.needs = NEEDS_LOCKS | NEEDS_BYTES,
	.send = locks_send,
	.recv = ringrun_recv,
};

static const struct check sweep_rw = {
	.name = "io.increment",
	.holds = "no update under a lock is lost",
	.needs = NEEDS_LOCKS | NEEDS_BYTES | NEEDS_IO,
	.send = rw_send,
	.recv = ringrun_recv,
};

static const struct check sweep_rwm = {
	.name = "mmap.increment",
	.holds = "nor one through a shared mapping",
	.needs = NEEDS_LOCKS | NEEDS_BYTES | NEEDS_MMAP,
	.send = rwm_send,
	.recv = ringrun_recv,
};

const struct check *const sweep_catalogue[] = {
	&sweep_locks, &sweep_rw, &sweep_rwm, NULL,
};
