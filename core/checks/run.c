/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/checks/catalogue.h"
#include "core/checks/operation.h"
#include "core/checks/record.h"
#include "core/checks/run.h"
#include "core/member/channel.h"
#include "core/probe/dir.h"

/* CTDB waits so long for the lock to be refused at a recovery
 * (ctdb/server/ctdb_recovery_helper.c and ctdb_recoverd.c) */
#define OP_MAX_MS 5000

/* Members that start at the same time */
#define STARTS_AT_ONCE 16

/* SIGKILL to the end of a process that is not in D state */
#define KILL_MS 2000

/* With less than this a new worker is not worth the try */
#define RESTART_MIN_MS 100

/* Kept back from the run's time for removing its directory */
#define CLEANUP_MS 500

/* A probe made at one place appears at the others within this time, or they
 * do not show the same directory; longer than the 3 s for which NFS may keep
 * a directory's attributes at least (acdirmin is 30 s, but a name that was
 * never looked up is asked for at once) */
#define APPEAR_MS 3000
#define APPEAR_STEP_MS 20

/* From here on a check makes as few lock calls as it can */
#define LEAN_LOCK_NS 100000000ULL

/* From here on members do not queue for locks at the same time */
#define SLOW_LOCK_NS 200000000ULL

/* Names that are found later than this are made ahead, for about as many
 * scripts and trials as a run has */
#define NAME_LATE_MS 1000
#define NAME_MS 6000
#define NAMES_AHEAD 80

#define NAME_BEGIN "probe."
#define NAME_AHEAD "ahead."

/* A run's directory outlives its time by this much at most */
#define LIFETIME_SLACK_S 60

struct run {
	struct tevent_context *ev;
	struct run_options options;
	struct member **members;
	unsigned num_members;
	uint64_t end_ms;		/* CLOCK_MONOTONIC */
	uint64_t random;
	const char *check;		/* that runs; NULL: before and after */
	uint64_t names;
	char dir_name[PROBE_NAME_MAX];
	bool cleaned;			/* that was removed again, or tried */
	unsigned broken;		/* NEEDS_*, and for each bit: */
	const char *broken_by[NEEDS_COUNT];
	enum outcome broken_how[NEEDS_COUNT];
	uint64_t lock_sum_ns, locks;	/* not made to wait */
	double rates[2];
	struct {
		char name[PROBE_NAME_MAX];
		uint64_t since_ns;	/* 0: it is not held */
		bool tried;
	} kept[RUN_KEEPERS];
	const char *away;		/* NULL; or why no more can be tested:
					 * a member's file system has gone */
	bool over;			/* no time was left for a new worker */
	bool silent;			/* a look if it has got no answer */
	bool late;			/* names are found late */
	bool never;			/* one was not found at all */
	bool ahead_made;		/* or tried; and of these are left: */
	unsigned ahead;
};

static uint64_t now_ms(void)
{
	struct timespec ts = {};

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

unsigned run_num_members(const struct run *run)
{
	return run->num_members;
}

struct member *run_member(const struct run *run, unsigned number)
{
	return run->members[number];
}

const char *run_member_name(TALLOC_CTX *mem_ctx, const struct run *run,
			    unsigned number)
{
	return talloc_asprintf(mem_ctx, "%u (%s)", number,
			       member_info(run->members[number])->name);
}

enum run_level run_level(const struct run *run)
{
	return run->options.level;
}

const struct run_options *run_options(const struct run *run)
{
	return &run->options;
}

unsigned run_left_ms(const struct run *run)
{
	uint64_t now = now_ms() + CLEANUP_MS;

	return now < run->end_ms ? (unsigned)(run->end_ms - now) : 0;
}

/* a part of the run's time, so that a short one gets further than its first
 * hang */
static unsigned run_part_ms(const struct run *run, unsigned part)
{
	unsigned ms = run->options.timeout_ms / part;

	return ms < OP_MAX_MS ? ms : OP_MAX_MS;
}

/* what an operation must be given before its silence is called a hang: less
 * than it is given as long as there is time */
static unsigned run_hang_ms(const struct run *run)
{
	return run_part_ms(run, 4);
}

unsigned run_op_ms(const struct run *run)
{
	unsigned left = run_left_ms(run);
	unsigned full = run_part_ms(run, 2);

	return left < full ? left : full;
}

unsigned run_thorough_ms(const struct run *run)
{
	return run->options.level == RUN_THOROUGH ? run->options.thorough_ms
						  : 0;
}

void run_file_name(struct run *run, char name[PROBE_NAME_MAX])
{
	snprintf(name, PROBE_NAME_MAX, NAME_BEGIN "%llu",
		 (unsigned long long)++run->names);
}

/* Each check draws its own numbers, whatever ran before it */
static void run_seed(struct run *run, const char *check)
{
	run->check = check;
	run->random = run->options.seed;
	for (; *check != '\0'; check++) {
		run->random = run->random * 31 + (unsigned char)*check;
	}
}

FILE *run_history(const struct run *run)
{
	return run->options.history;
}

const char *run_check(const struct run *run)
{
	return run->check;
}

bool run_files(struct run *run, char name[PROBE_NAME_MAX])
{
	if (run->ahead == 0) {
		run_file_name(run, name);
		return false;
	}
	snprintf(name, PROBE_NAME_MAX, NAME_AHEAD "%u", --run->ahead);
	return true;
}

unsigned run_name_ms(const struct run *run)
{
	return run->never ? NAME_LATE_MS : NAME_MS;
}

void run_note_name(struct run *run, uint64_t waited_ms, bool found)
{
	run->late = run->late || waited_ms > NAME_LATE_MS;
	run->never = run->never || !found;
}

uint64_t run_random(struct run *run)
{
	uint64_t x = (run->random += 0x9e3779b97f4a7c15ULL);

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

void run_set_broken(struct run *run, unsigned needs, const char *check,
		    enum outcome outcome)
{
	unsigned i;

	for (i = 0; i < NEEDS_COUNT; i++) {
		if ((needs & ~run->broken & 1u << i) != 0) {
			run->broken_by[i] = check;
			run->broken_how[i] = outcome;
		}
	}
	run->broken |= needs;
}

bool run_broken(const struct run *run, unsigned needs)
{
	return (run->broken & needs) != 0;
}

void run_note_lock(struct run *run, uint64_t ns)
{
	run->lock_sum_ns += ns;
	run->locks++;
}

uint64_t run_lock_ns(const struct run *run)
{
	return run->locks > 0 ? run->lock_sum_ns / run->locks + 1 : 1;
}

bool run_lean(const struct run *run)
{
	return run_lock_ns(run) > LEAN_LOCK_NS;
}

double *run_rates(struct run *run)
{
	return run->rates;
}

const char *run_kept(const struct run *run, unsigned member,
		     uint64_t *since_ns)
{
	if (member >= RUN_KEEPERS || run->kept[member].since_ns == 0) {
		return NULL;
	}
	*since_ns = run->kept[member].since_ns;
	return run->kept[member].name;
}

bool run_slow(const struct run *run)
{
	return run->locks == 0 || run_lock_ns(run) > SLOW_LOCK_NS;
}

const char *run_silence_text(TALLOC_CTX *mem_ctx, const struct run *run,
			     int err, unsigned member)
{
	const char *name = run_member_name(mem_ctx, run, member);

	switch (err) {
	case EAGAIN:
		return talloc_asprintf(mem_ctx, "could not tell: member %s "
				       "got no processor in time", name);
	case ETIME:
		return "the run's time was over";
	case ENOTCONN:
		return talloc_strdup(mem_ctx, run->away);
	case EHOSTDOWN:
		return talloc_asprintf(mem_ctx, "could not tell: member %s "
				       "waited while another was lost", name);
	default:
		return talloc_asprintf(mem_ctx, "member %s was lost", name);
	}
}

/* The first to be found so is told; for the others nothing holds any more.
 * how: the call that showed it */
static void run_set_away(struct run *run, unsigned member, const char *how)
{
	if (run->away != NULL) {
		return;
	}
	run->away = talloc_asprintf(run, "the file system at member %s went "
				    "away during the run (%s)",
				    run_member_name(run, run, member), how);
}

/* ---- killing and starting anew ------------------------------------------ */

struct run_kill_state {
	struct tevent_context *ev;
	struct run *run;
	unsigned member;
	bool full_time;			/* each step is given KILL_MS */
	const char *told;		/* what it does instead of ending */
};

static void run_kill_killed(struct tevent_req *subreq);
static void run_kill_examined(struct tevent_req *subreq);
static void run_kill_restarted(struct tevent_req *subreq);
static void run_kill_begun(struct tevent_req *subreq);

static const char *autopsy_text(TALLOC_CTX *mem_ctx,
				const struct member_autopsy *autopsy)
{
	return talloc_asprintf(
		mem_ctx, "worker in state %c, system call %s, wchan %s%s%s",
		autopsy->state, autopsy->syscall, autopsy->wchan,
		autopsy->stack[0] != '\0' ? "\n" : "", autopsy->stack);
}

/* What is left for the kill, the start of a new worker, its end should it
 * hang in that, and its first call */
static unsigned run_kill_ms(const struct run *run)
{
	unsigned quarter = run_left_ms(run) / 4;

	return quarter < KILL_MS ? quarter : KILL_MS;
}

struct tevent_req *run_kill_send(TALLOC_CTX *mem_ctx,
				 struct tevent_context *ev, struct run *run,
				 unsigned member)
{
	struct run_kill_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;
	unsigned ms = run_kill_ms(run);

	req = tevent_req_create(mem_ctx, &state, struct run_kill_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->run = run;
	state->member = member;
	state->full_time = ms == KILL_MS;
	if (member < RUN_KEEPERS) {
		run->kept[member].since_ns = 0;
		run->kept[member].tried = false;
	}
	record_kill(run->options.history, run->check, member, ring_now());
	subreq = member_kill_send(state, ev, run->members[member], false,
				  ms < CLEANUP_MS ? CLEANUP_MS : ms);
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq, run_kill_killed, req);
	return req;
}

static void run_kill_killed(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_kill_state *state = tevent_req_data(
		req, struct run_kill_state);
	struct run *run = state->run;
	unsigned ms = run_kill_ms(run);
	int ret;

	ret = member_kill_recv(subreq);
	TALLOC_FREE(subreq);
	if (ret == ETIMEDOUT && !state->full_time) {
		ret = ETIME;
		run->over = true;
	}
	if (ret == ETIMEDOUT) {
		subreq = member_autopsy_send(state, state->ev,
					     run->members[state->member]);
		if (tevent_req_nomem(subreq, req)) {
			return;
		}
		tevent_req_set_callback(subreq, run_kill_examined, req);
		return;
	}
	if (ret != 0) {
		tevent_req_error(req, ret == ETIME ? ETIME : ECONNRESET);
		return;
	}
	state->full_time = ms == KILL_MS;
	if (ms < RESTART_MIN_MS) {
		run->over = true;
		tevent_req_error(req, ETIME);
		return;
	}
	subreq = member_kill_send(state, state->ev,
				  run->members[state->member], true, ms);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, run_kill_restarted, req);
}

/* err: of the start of a new worker, or of the first call to it;
 * op_err: of its opening of the directory */
static int run_kill_error(struct run_kill_state *state, int err,
			  int op_err)
{
	bool away = op_err == ENOENT ||
		    operation_errno(&(struct probe_request){
					.op = PROBE_OPEN }, op_err) ==
		    ERRNO_AWAY;

	if (away) {
		run_set_away(state->run, state->member,
			     talloc_asprintf(state->run, "open of the "
					     "directory: %s",
					     errno_text(state->run, op_err)));
		return ENOTCONN;
	}
	switch (err) {
	case EAGAIN:
		return EAGAIN;
	case ETIMEDOUT:
		state->run->over = state->run->over || !state->full_time;
		return state->full_time ? ECONNRESET : ETIME;
	default:
		return ECONNRESET;
	}
}

static void run_kill_restarted(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_kill_state *state = tevent_req_data(
		req, struct run_kill_state);
	struct run *run = state->run;
	struct probe_request begin = {
		.op = PROBE_BEGIN, .keeper = state->member == 0,
	};
	int ret;

	ret = member_kill_recv(subreq);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		tevent_req_error(req, run_kill_error(state, ret, ret));
		return;
	}
	strcpy(begin.name, run->dir_name);
	subreq = member_call_send(state, state->ev,
				  run->members[state->member], &begin, -1,
				  run_kill_ms(run));
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, run_kill_begun, req);
}

static void run_kill_begun(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_kill_state *state = tevent_req_data(
		req, struct run_kill_state);
	struct probe_answer answer = {};
	int ret;

	ret = member_call_recv(subreq, &answer);
	TALLOC_FREE(subreq);
	if (ret != 0 || answer.err != 0) {
		/* not in the run's directory */
		member_set_gone(state->run->members[state->member]);
		tevent_req_error(req, run_kill_error(state, ret, answer.err));
		return;
	}
	tevent_req_done(req);
}

static void run_kill_examined(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_kill_state *state = tevent_req_data(
		req, struct run_kill_state);
	struct member_autopsy autopsy = {};
	int ret;

	ret = member_autopsy_recv(subreq, state, &autopsy);
	TALLOC_FREE(subreq);
	if (ret == 0 && autopsy.found) {
		state->told = talloc_asprintf(
			state, "%s\nSIGKILL does not end it",
			autopsy_text(state, &autopsy));
	}
	tevent_req_error(req, ETIMEDOUT);
}

int run_kill_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		  const char **autopsy)
{
	struct run_kill_state *state = tevent_req_data(
		req, struct run_kill_state);
	int ret = channel_req_error(req);

	*autopsy = state->told != NULL ? talloc_strdup(mem_ctx, state->told)
				       : NULL;
	tevent_req_received(req);
	return ret;
}

/* ---- one call ----------------------------------------------------------- */

struct run_call_state {
	struct tevent_context *ev;
	struct run *run;
	unsigned member;
	struct probe_request request;
	uint64_t sent_ns;
	struct probe_answer answer;
	bool full_time;			/* its silence would be a hang */
	struct member_autopsy autopsy;
	unsigned asked;			/* of the others, whether they live */
	int err;
	const char *told;
};

static void run_call_answered(struct tevent_req *subreq);
static void run_call_done(struct tevent_req *req);
static void run_call_examined(struct tevent_req *subreq);
static void run_call_ask_others(struct tevent_req *req);
static void run_call_other_lives(struct tevent_req *subreq);
static void run_call_kill(struct tevent_req *req);
static void run_call_killed(struct tevent_req *subreq);

struct tevent_req *run_call_send(TALLOC_CTX *mem_ctx,
				 struct tevent_context *ev, struct run *run,
				 unsigned member,
				 const struct probe_request *request, int fd,
				 unsigned timeout_ms)
{
	struct run_call_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;

	req = tevent_req_create(mem_ctx, &state, struct run_call_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->run = run;
	state->member = member;
	state->request = *request;
	state->sent_ns = ring_now();
	state->full_time = timeout_ms >= run_hang_ms(run);
	subreq = member_call_send(state, ev, run->members[member], request,
				  fd, timeout_ms);
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq, run_call_answered, req);
	return req;
}

static void run_call_answered(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_call_state *state = tevent_req_data(
		req, struct run_call_state);
	struct member *member = state->run->members[state->member];
	int ret;

	ret = member_call_recv(subreq, &state->answer);
	TALLOC_FREE(subreq);
	record_call(state->run->options.history, state->run->check,
		    state->member, &state->request, ret, &state->answer,
		    state->sent_ns, ring_now());
	if (ret == 0) {
		run_call_done(req);
		return;
	}
	if (ret != ETIMEDOUT || member_gone(member)) {
		tevent_req_error(req, ret == ENOMEM ? ENOMEM : ECONNRESET);
		return;
	}
	subreq = member_autopsy_send(state, state->ev, member);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, run_call_examined, req);
}

static void run_call_done(struct tevent_req *req)
{
	struct run_call_state *state = tevent_req_data(
		req, struct run_call_state);
	int err = state->answer.err;

	if (operation_errno(&state->request, err) == ERRNO_AWAY) {
		run_set_away(state->run, state->member, talloc_asprintf(
			state, "%s: %s",
			operation_full_text(state, &state->request),
			errno_text(state, err)));
		tevent_req_error(req, ENOTCONN);
		return;
	}
	tevent_req_done(req);
}

static void run_call_examined(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_call_state *state = tevent_req_data(
		req, struct run_call_state);
	struct member_autopsy *autopsy = &state->autopsy;
	int ret;

	ret = member_autopsy_recv(subreq, state, autopsy);
	TALLOC_FREE(subreq);
	if (ret != 0 || !autopsy->found) {
		tevent_req_error(req, ECONNRESET);
		return;
	}
	state->err = !autopsy->blocked ? EAGAIN :
		     state->full_time ? ETIMEDOUT : ETIME;
	state->told = autopsy_text(state, autopsy);
	if (state->err == ETIMEDOUT) {
		run_call_ask_others(req);
	} else {
		run_call_kill(req);
	}
}

/*
 * One that nobody reaches any more may hold what this member waits for: then
 * it is no hang of the file system.
 */
static void run_call_ask_others(struct tevent_req *req)
{
	struct run_call_state *state = tevent_req_data(
		req, struct run_call_state);
	const struct run *run = state->run;
	struct tevent_req *subreq = NULL;
	unsigned i;

	for (i = 0; i < run->num_members; i++) {
		if (i == state->member ||
		    !member_remote(run->members[i])) {
			continue;
		}
		subreq = member_autopsy_send(state, state->ev,
					     run->members[i]);
		if (tevent_req_nomem(subreq, req)) {
			return;
		}
		state->asked++;
		tevent_req_set_callback(subreq, run_call_other_lives, req);
	}
	if (state->asked == 0) {
		run_call_kill(req);
	}
}

static void run_call_other_lives(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_call_state *state = tevent_req_data(
		req, struct run_call_state);
	struct member_autopsy autopsy = {};
	int ret;

	ret = member_autopsy_recv(subreq, state, &autopsy);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		state->err = EHOSTDOWN;
	}
	state->asked--;
	if (state->asked == 0) {
		run_call_kill(req);
	}
}

static void run_call_kill(struct tevent_req *req)
{
	struct run_call_state *state = tevent_req_data(
		req, struct run_call_state);
	struct tevent_req *subreq = run_kill_send(
		state, state->ev, state->run, state->member);

	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, run_call_killed, req);
}

static void run_call_killed(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_call_state *state = tevent_req_data(
		req, struct run_call_state);
	const char *after = NULL;
	int ret;

	ret = run_kill_recv(subreq, state, &after);
	TALLOC_FREE(subreq);
	if (ret == ETIMEDOUT && state->err != EHOSTDOWN) {
		/* then it did hang */
		state->err = ETIMEDOUT;
		state->told = after != NULL ? after : state->told;
	}
	tevent_req_error(req, (uint64_t)state->err);
}

int run_call_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		  struct probe_answer *answer, const char **autopsy)
{
	struct run_call_state *state = tevent_req_data(
		req, struct run_call_state);
	int ret = channel_req_error(req);

	*answer = state->answer;
	*autopsy = state->told != NULL ? talloc_strdup(mem_ctx, state->told)
				       : NULL;
	tevent_req_received(req);
	return ret;
}

/* ---- the run ------------------------------------------------------------ */

struct run_state {
	struct tevent_context *ev;
	struct run *run;
	struct run_result *result;
	unsigned starting;		/* members that were asked to start */
	unsigned waiting;		/* members not yet started or begun */
	int err;
	const char *why;
	uint64_t appear_until_ms;
	unsigned next;			/* check */
	unsigned cleaner;		/* member */
	struct check_result *current;
	uint64_t check_ns;		/* when it began */
};

static void run_start_next(struct tevent_req *req);
static void run_started(struct tevent_req *subreq);
static void run_make(struct tevent_req *req);
static void run_made(struct tevent_req *subreq);
static void run_probe_file(struct tevent_req *req);
static void run_probe_made(struct tevent_req *subreq);
static void run_probe_closed(struct tevent_req *subreq);
static void run_probe_removed(struct tevent_req *subreq);
static void run_find(struct tevent_req *req, unsigned member);
static void run_found(struct tevent_req *subreq);
static void run_next_check(struct tevent_req *req);
static void run_made_ahead(struct tevent_req *subreq);
static void run_keep_opened(struct tevent_req *subreq);
static void run_keep_locked(struct tevent_req *subreq);
static void run_check_done(struct tevent_req *subreq);
static void run_look(struct tevent_req *req, unsigned member);
static void run_looked(struct tevent_req *subreq);
static void run_nothing_told(struct run_state *state, const char *why);
static void run_clean(struct tevent_req *req);
static void run_clean_next(struct tevent_req *req);
static void run_cleaned(struct tevent_req *subreq);
static void run_end(struct tevent_req *req);

static int run_destructor(struct run *run)
{
	unsigned i;

	for (i = 0; i < run->num_members; i++) {
		if (run->members[i] != NULL && !run->cleaned) {
			member_finish(run->members[i]);
		}
	}
	/* before the options that they point to */
	for (i = 0; i < run->num_members; i++) {
		TALLOC_FREE(run->members[i]);
	}
	return 0;
}

static int result_destructor(struct check_result *result)
{
	json_decref(result->metrics);
	return 0;
}

static int run_prepare_results(struct run_state *state)
{
	const struct check **checks = state->run->options.checks;
	struct run_result *result = state->result;
	size_t n = 0;

	while (checks[n] != NULL) {
		n++;
	}
	result->results = talloc_zero_array(result, struct check_result *, n);
	if (result->results == NULL) {
		return ENOMEM;
	}
	for (; result->num_results < n; result->num_results++) {
		struct check_result *res = talloc_zero(
			result->results, struct check_result);

		if (res == NULL) {
			return ENOMEM;
		}
		res->metrics = json_object();
		talloc_set_destructor(res, result_destructor);
		res->check = checks[result->num_results];
		res->outcome = OUTCOME_SKIPPED;
		res->why = "not run";
		result->results[result->num_results] = res;
	}
	return 0;
}

static const char *own_text(struct check_result *res, const char *text)
{
	return text != NULL ? talloc_strdup(res, text) : NULL;
}

static void run_take_evidence(struct check_result *res,
			      const struct evidence *evidence)
{
	res->evidence = (struct evidence){
		.operation = own_text(res, evidence->operation),
		.member = own_text(res, evidence->member),
		.expected = own_text(res, evidence->expected),
		.seen = own_text(res, evidence->seen),
		.detail = own_text(res, evidence->detail),
	};
}

/* The outcome of every check when there is nothing to run them on */
static void run_all(struct run_state *state, enum outcome outcome,
		    const char *why, const struct evidence *evidence)
{
	size_t i;

	for (i = 0; i < state->result->num_results; i++) {
		struct check_result *res = state->result->results[i];

		res->outcome = outcome;
		res->why = talloc_strdup(res, why);
		if (evidence != NULL) {
			run_take_evidence(res, evidence);
		}
	}
}

struct tevent_req *run_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			    const struct run_options *options)
{
	struct run_state *state = NULL;
	struct tevent_req *req = NULL;
	struct run *run = NULL;
	unsigned places = 0, i;
	int ret;

	req = tevent_req_create(mem_ctx, &state, struct run_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	run = state->run = talloc_zero(state, struct run);
	state->result = talloc_zero(state, struct run_result);
	if (run == NULL || state->result == NULL) {
		tevent_req_oom(req);
		return tevent_req_post(req, ev);
	}
	run->ev = ev;
	run->options = *options;
	record_begin(options->history, options);
	run->end_ms = now_ms() + options->timeout_ms;
	probe_dir_make_name(run->dir_name, sizeof(run->dir_name),
			    options->timeout_ms / 1000 + LIFETIME_SLACK_S);
	while (options->places[places] != NULL) {
		places++;
	}
	run->num_members = places == 1 ? 2 : places;
	run->members = talloc_zero_array(run, struct member *,
					 run->num_members);
	ret = run_prepare_results(state);
	if (run->members == NULL || ret != 0) {
		tevent_req_oom(req);
		return tevent_req_post(req, ev);
	}
	talloc_set_destructor(run, run_destructor);
	state->waiting = run->num_members;
	for (i = 0; i < run->num_members && i < STARTS_AT_ONCE; i++) {
		run_start_next(req);
	}
	if (!tevent_req_is_in_progress(req)) {
		return tevent_req_post(req, ev);
	}
	return req;
}

static void run_start_next(struct tevent_req *req)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct run *run = state->run;
	const char **places = run->options.places;
	unsigned number = state->starting++;
	struct tevent_req *subreq = NULL;

	subreq = member_start_send(state, state->ev, &run->options.reach,
				   places[places[1] == NULL ? 0 : number],
				   number, run_op_ms(run));
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, run_started, req);
}

/* The place a start failed at; ends the run when all have been heard of */
static void run_start_failed(struct tevent_req *req)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct evidence evidence = {
		.operation = "open of the directory",
		.expected = "an answer",
		.seen = "none",
		.detail = state->why,
	};
	/* a line for a person, then the stack */
	const char *line = talloc_strndup(state, state->why,
					  strcspn(state->why, "\n"));

	if (state->err != ETIMEDOUT && state->err != EAGAIN) {
		tevent_req_error(req, (uint64_t)state->err);
		return;
	}
	state->result->same_directory = true;
	if (state->err == EAGAIN) {
		run_all(state, OUTCOME_SKIPPED,
			talloc_asprintf(state, "could not tell: %s",
					line), NULL);
	} else {
		run_all(state, OUTCOME_HUNG, line, &evidence);
	}
	tevent_req_done(req);
}

/* Same directory through the same mount: they would be one member twice */
static const char *run_twins(struct run_state *state)
{
	struct run *run = state->run;
	unsigned i, j;

	for (i = 0; i < run->num_members; i++) {
		for (j = 0; j < i; j++) {
			const struct member_info *a =
				member_info(run->members[j]);
			const struct member_info *b =
				member_info(run->members[i]);

			if (strcmp(a->boot_id, b->boot_id) == 0 &&
			    a->mnt_ns == b->mnt_ns &&
			    a->mount_id == b->mount_id &&
			    a->inode == b->inode) {
				return talloc_asprintf(
					state, "'%s' is the same directory "
					"of the same mount as '%s' (%s)",
					b->name, a->name, b->resolved);
			}
		}
	}
	return NULL;
}

static void run_started(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct run *run = state->run;
	struct member *member = NULL;
	const char *why = NULL;
	int ret;

	ret = member_start_recv(subreq, state, &member, &why);
	TALLOC_FREE(subreq);
	if (ret == 0) {
		unsigned number = member_info(member)->number;

		run->members[number] = talloc_move(run->members, &member);
	} else if (state->err == 0 || state->err == EAGAIN ||
		   (state->err == ETIMEDOUT && ret != EAGAIN)) {
		/* what is plainly wrong is told before what hangs */
		state->err = ret;
		state->why = why;
	}
	state->waiting--;
	if (state->starting < run->num_members) {
		run_start_next(req);
		return;
	}
	if (state->waiting > 0) {
		return;
	}
	if (state->err != 0) {
		run_start_failed(req);
		return;
	}
	if (run->options.places[1] != NULL) {
		state->why = run_twins(state);
	}
	if (state->why != NULL) {
		tevent_req_error(req, EEXIST);
		return;
	}
	run_make(req);
}

static void run_call_member(struct tevent_req *req, unsigned member,
			    const struct probe_request *request,
			    tevent_req_fn done)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct run *run = state->run;
	struct tevent_req *subreq = NULL;

	subreq = run_call_send(state, state->ev, run, member, request, -1,
			       run_op_ms(run));
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, done, req);
}

/*
 * What a preparing call came to: 0, or the run is over: ended with what a
 * person must know, or cleaned up after.
 */
static int run_prepared(struct tevent_req *req, struct tevent_req *subreq,
			unsigned member, const char *what,
			struct probe_answer *answer)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	const char *name = member_info(state->run->members[member])->name;
	struct evidence evidence = { .operation = what, .member = name,
				     .expected = "an answer",
				     .seen = "none" };
	int ret;

	ret = run_call_recv(subreq, state, answer, &evidence.detail);
	switch (ret) {
	case 0:
		return 0;
	case ETIMEDOUT:
	case ETIME:
	case EAGAIN:
		state->result->same_directory = true;
		run_all(state, ret == ETIMEDOUT ? OUTCOME_HUNG
						: OUTCOME_SKIPPED,
			talloc_asprintf(state, "'%s': no answer: %s", name,
					what),
			&evidence);
		run_clean(req);
		return ret;
	default:
		state->why = talloc_asprintf(state, "'%s': its worker is "
					     "gone: %s", name, what);
		tevent_req_error(req, ret == ENOMEM ? ENOMEM : EHOSTUNREACH);
		return ret;
	}
}

static void run_make(struct tevent_req *req)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct probe_request begin = { .op = PROBE_BEGIN, .make = true,
				       .keeper = true };

	strcpy(begin.name, state->run->dir_name);
	run_call_member(req, 0, &begin, run_made);
}

/* What stands where the probe directory belongs is not ours. */
static bool run_make_foreign(int err)
{
	return err == EUSERS || err == ENOTDIR || err == ELOOP;
}

static const char *run_make_why(TALLOC_CTX *mem_ctx, const char *place,
				int err)
{
	if (run_make_foreign(err)) {
		return talloc_asprintf(
			mem_ctx, "'%s/%s' is left alone: %s", place,
			PROBE_DIR_NAME, err == EUSERS ?
			"it is another user's, or others may write there" :
			"it is no directory");
	}
	return talloc_asprintf(mem_ctx, "'%s': cannot make '%s' there: %s",
			       place, PROBE_DIR_NAME, strerror(err));
}

static void run_made(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct probe_answer answer = {};
	int ret;

	ret = run_prepared(req, subreq, 0, "mkdir of the probe directory",
			   &answer);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		return;
	}
	if (answer.err != 0) {
		state->why = run_make_why(
			state, member_info(state->run->members[0])->name,
			answer.err);
		tevent_req_error(req, run_make_foreign(answer.err) ?
					      EPERM : (uint64_t)answer.err);
		return;
	}
	run_probe_file(req);
}

/* Where nothing can be removed again (retention, WORM), no more is made */
static void run_probe_file(struct tevent_req *req)
{
	struct probe_request open = { .op = PROBE_OPEN, .make = true,
				      .name = "removable" };

	run_call_member(req, 0, &open, run_probe_made);
}

static void run_probe_made(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct probe_request close = { .op = PROBE_CLOSE };
	struct probe_answer answer = {};
	int ret;

	ret = run_prepared(req, subreq, 0, "open of a probe file", &answer);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		return;
	}
	if (answer.err != 0) {
		state->why = talloc_asprintf(
			state, "'%s': cannot make a file there: %s",
			member_info(state->run->members[0])->name,
			strerror(answer.err));
		state->err = answer.err;
		run_clean(req);
		return;
	}
	run_call_member(req, 0, &close, run_probe_closed);
}

static void run_probe_closed(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct probe_request unlink = { .op = PROBE_UNLINK,
					.name = "removable" };
	struct probe_answer answer = {};
	int ret;

	ret = run_prepared(req, subreq, 0, "close of a probe file", &answer);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		return;
	}
	run_call_member(req, 0, &unlink, run_probe_removed);
}

static void run_probe_removed(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct probe_answer answer = {};
	int ret;

	ret = run_prepared(req, subreq, 0, "unlink of a probe file",
			   &answer);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		return;
	}
	if (answer.err != 0) {
		state->result->same_directory = true;
		run_all(state, OUTCOME_SKIPPED,
			talloc_asprintf(state, "a file made there cannot be "
					"removed: %s", strerror(answer.err)),
			NULL);
		run_clean(req);
		return;
	}
	state->appear_until_ms = now_ms() + APPEAR_MS;
	run_find(req, 1);
}

/* Have the other members, one after the other, open the run's directory */
static void run_find(struct tevent_req *req, unsigned member)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct run *run = state->run;
	struct probe_request begin = { .op = PROBE_BEGIN };

	if (member == run->num_members) {
		state->result->same_directory = true;
		run_next_check(req);
		return;
	}
	state->waiting = member;
	strcpy(begin.name, run->dir_name);
	run_call_member(req, member, &begin, run_found);
}

static void run_find_again(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);

	tevent_wakeup_recv(subreq);
	TALLOC_FREE(subreq);
	run_find(req, state->waiting);
}

static void run_not_same(struct tevent_req *req, unsigned member)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	const struct member_info *a = member_info(state->run->members[0]);
	const struct member_info *b = member_info(state->run->members[member]);

	state->result->not_same = talloc_asprintf(
		state->result, "what is made in '%s' (%s: %s) does not "
		"appear in '%s' (%s: %s)", a->name, a->host, a->mount_line,
		b->name, b->host, b->mount_line);
	run_all(state, OUTCOME_SKIPPED,
		"the places do not show the same directory", NULL);
	run_clean(req);
}

static void run_found(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct probe_answer answer = {};
	unsigned member = state->waiting;
	int ret;

	ret = run_prepared(req, subreq, member,
			   "open of the probe directory", &answer);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		return;
	}
	if (answer.err == 0) {
		run_find(req, member + 1);
		return;
	}
	if (answer.err != ENOENT && answer.err != ESTALE) {
		state->err = answer.err;
		state->why = run_make_why(
			state, member_info(state->run->members[member])->name,
			answer.err);
		run_clean(req);
		return;
	}
	if (now_ms() >= state->appear_until_ms ||
	    run_left_ms(state->run) < APPEAR_STEP_MS) {
		run_not_same(req, member);
		return;
	}
	subreq = tevent_wakeup_send(state, state->ev,
				    tevent_timeval_current_ofs(
					    0, APPEAR_STEP_MS * 1000));
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, run_find_again, req);
}

/* Why a check cannot be run now; NULL: it can */
static const char *run_obstacle(struct run *run, const struct check *check,
				TALLOC_CTX *mem_ctx)
{
	unsigned i;

	if (run->away != NULL) {
		return talloc_strdup(mem_ctx, run->away);
	}
	if (run->over || run_left_ms(run) == 0) {
		return talloc_strdup(mem_ctx, "no time was left");
	}
	for (i = 0; i < run->num_members; i++) {
		if (member_gone(run->members[i])) {
			return talloc_asprintf(
				mem_ctx, "member '%s' was lost before",
				member_info(run->members[i])->name);
		}
	}
	for (i = 0; i < NEEDS_COUNT; i++) {
		if ((check->needs & run->broken & 1u << i) == 0) {
			continue;
		}
		return talloc_asprintf(mem_ctx, "%s of %s says why not",
				       outcome_name(run->broken_how[i]),
				       run->broken_by[i]);
	}
	return NULL;
}

/* Names are found late: have each member make files for all that follows */
static void run_make_ahead(struct tevent_req *req, unsigned member)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct probe_request make = {
		.op = PROBE_MAKE_MANY, .name = NAME_AHEAD,
		.count = NAMES_AHEAD, .value = member,
	};

	state->waiting = member;
	state->run->ahead_made = true;
	run_call_member(req, member, &make, run_made_ahead);
}

static void run_made_ahead(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct probe_answer answer = {};
	const char *autopsy = NULL;
	int ret;

	ret = run_call_recv(subreq, state, &answer, &autopsy);
	TALLOC_FREE(subreq);
	if (ret == 0 && answer.err == 0 &&
	    state->waiting + 1 < state->run->num_members) {
		run_make_ahead(req, state->waiting + 1);
		return;
	}
	/* else each check waits for its own */
	state->run->ahead = ret == 0 && answer.err == 0 ? NAMES_AHEAD : 0;
	run_next_check(req);
}

/* The member that is to keep a lock and does not yet; RUN_KEEPERS: none */
static unsigned run_keeper(const struct run *run)
{
	unsigned i;

	unsigned num = run_slow(run) ? 1 : RUN_KEEPERS;

	for (i = 0; i < num && i < run->num_members; i++) {
		if (!run->kept[i].tried && !member_gone(run->members[i])) {
			return i;
		}
	}
	return RUN_KEEPERS;
}

/* Is it asked for, is it known what a lock call does, and will those who keep
 * one live? */
static bool run_wants_keepers(const struct run_state *state)
{
	const struct run *run = state->run;
	bool wanted = false;
	size_t i;

	if (run->locks == 0 || run->away != NULL ||
	    run_broken(run, NEEDS_LOCKS) || run_left_ms(run) == 0) {
		return false;
	}
	for (i = state->next; i < state->result->num_results; i++) {
		const struct check *check = state->result->results[i]->check;

		wanted = wanted || check == &check_lock_idle;
		if (check == &check_lock_release) {
			/* it kills them */
			return false;
		}
	}
	return wanted;
}

static void run_keep(struct tevent_req *req, unsigned member)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct run *run = state->run;
	struct probe_request open = { .op = PROBE_OPEN, .make = true,
				      .slot = PROBE_SLOT_KEPT };

	run_file_name(run, run->kept[member].name);
	strcpy(open.name, run->kept[member].name);
	run->kept[member].tried = true;
	state->waiting = member;
	run_call_member(req, member, &open, run_keep_opened);
}

static void run_keep_opened(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct probe_request lock = { .op = PROBE_LOCK, .type = F_WRLCK,
				      .slot = PROBE_SLOT_KEPT, .len = 1 };
	struct probe_answer answer = {};
	const char *autopsy = NULL;
	int ret;

	ret = run_call_recv(subreq, state, &answer, &autopsy);
	TALLOC_FREE(subreq);
	if (ret != 0 || answer.err != 0) {
		run_next_check(req);
		return;
	}
	run_call_member(req, state->waiting, &lock, run_keep_locked);
}

static void run_keep_locked(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct probe_answer answer = {};
	const char *autopsy = NULL;
	int ret;

	ret = run_call_recv(subreq, state, &answer, &autopsy);
	TALLOC_FREE(subreq);
	if (ret == 0 && answer.err == 0) {
		state->run->kept[state->waiting].since_ns = ring_now();
	}
	run_next_check(req);
}

/* Where each lock takes long, those come last that may be spared. */
static void run_spare(struct run_result *result, size_t next)
{
	size_t i, j;

	for (i = next; i < result->num_results; i++) {
		struct check_result *res = result->results[i];

		if (res->check->spare) {
			continue;
		}
		for (j = i; j > next && result->results[j - 1]->check->spare;
		     j--) {
			result->results[j] = result->results[j - 1];
		}
		result->results[j] = res;
	}
}

static void run_next_check(struct tevent_req *req)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct run *run = state->run;
	struct run_result *result = state->result;
	struct tevent_req *subreq = NULL;
	struct check_result *res = NULL;

	if (run->late && !run->ahead_made && run->away == NULL &&
	    run_left_ms(run) > 0) {
		run_make_ahead(req, 0);
		return;
	}
	if (run_keeper(run) != RUN_KEEPERS && run_wants_keepers(state)) {
		run_keep(req, run_keeper(run));
		return;
	}
	if (run_lean(run)) {
		run_spare(result, state->next);
	}
	while (state->next < result->num_results) {
		res = result->results[state->next++];
		if (run->options.progress != NULL) {
			run->options.progress(res->check->name,
					      state->next - 1,
					      (unsigned)result->num_results,
					      run->options.private_data);
		}
		res->why = run_obstacle(run, res->check, res);
		if (res->why != NULL) {
			continue;
		}
		res->outcome = OUTCOME_PASS;
		state->current = res;
		run_seed(run, res->check->name);
		state->check_ns = ring_now();
		subreq = res->check->send(state, state->ev, run, res);
		if (tevent_req_nomem(subreq, req)) {
			return;
		}
		tevent_req_set_callback(subreq, run_check_done, req);
		return;
	}
	run_clean(req);
}

static void run_check_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);
	int ret;

	ret = state->current->check->recv(subreq);
	TALLOC_FREE(subreq);
	json_object_set_new(state->current->metrics, "took_ms",
			    json_real((double)(ring_now() - state->check_ns) /
				      1e6));
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	run_look(req, 0);
}

/*
 * Whatever went wrong may have done so because a file system went away (a
 * daemon that ended, a lazy unmount), with the locks of its node: then it says
 * nothing. So each member is asked whether it still has the directory.
 */
static void run_look(struct tevent_req *req, unsigned member)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct run *run = state->run;
	enum outcome outcome = state->current->outcome;
	struct probe_request look = { .op = PROBE_LOOKUP };

	if (outcome == OUTCOME_PASS || outcome == OUTCOME_SLOW ||
	    outcome == OUTCOME_HUNG || member == run->num_members ||
	    run->silent || run_left_ms(run) == 0) {
		run_next_check(req);
		return;
	}
	if (run->away != NULL) {
		run_nothing_told(state, run->away);
		run_next_check(req);
		return;
	}
	/* a name that no cache knows */
	run_file_name(run, look.name);
	state->waiting = member;
	run_call_member(req, member, &look, run_looked);
}

static void run_looked(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct run *run = state->run;
	struct probe_answer answer = {};
	const char *autopsy = NULL;
	unsigned member = state->waiting;
	int ret;

	ret = run_call_recv(subreq, state, &answer, &autopsy);
	TALLOC_FREE(subreq);
	if (ret == 0 && answer.err == EIO) {
		run_set_away(run, member, talloc_asprintf(
			state, "stat: %s", errno_text(state, EIO)));
	} else if (ret == ECONNRESET) {
		run_nothing_told(state, run_silence_text(
			state, run, ret, member));
		run_next_check(req);
		return;
	} else if (ret != 0 && ret != ENOTCONN) {
		run->silent = true;
	}
	run_look(req, member + 1);
}

/* It ended as it did for a reason that is not what it is about; the evidence
 * stays */
static void run_nothing_told(struct run_state *state, const char *why)
{
	struct check_result *res = state->current;

	res->outcome = OUTCOME_SKIPPED;
	res->why = talloc_strdup(res, why);
}

static void run_clean(struct tevent_req *req)
{
	struct run_state *state = tevent_req_data(req, struct run_state);

	state->cleaner = 0;
	run_clean_next(req);
}

/* By the first member that can; what could not be removed, the next run
 * removes */
static void run_clean_next(struct tevent_req *req)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct run *run = state->run;
	struct probe_request finish = { .op = PROBE_FINISH };
	struct tevent_req *subreq = NULL;

	while (state->cleaner < run->num_members &&
	       member_gone(run->members[state->cleaner])) {
		state->cleaner++;
	}
	if (state->cleaner == run->num_members) {
		run_end(req);
		return;
	}
	subreq = member_call_send(state, state->ev,
				  run->members[state->cleaner], &finish, -1,
				  run_left_ms(run) + CLEANUP_MS);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, run_cleaned, req);
}

static void run_end(struct tevent_req *req)
{
	struct run_state *state = tevent_req_data(req, struct run_state);

	if (state->run->options.progress != NULL) {
		state->run->options.progress(
			NULL, state->next,
			(unsigned)state->result->num_results,
			state->run->options.private_data);
	}
	if (state->err != 0) {
		tevent_req_error(req, (uint64_t)state->err);
		return;
	}
	tevent_req_done(req);
}

static void run_cleaned(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct probe_answer answer = {};
	int ret;

	ret = member_call_recv(subreq, &answer);
	TALLOC_FREE(subreq);
	if (ret == ECONNRESET) {
		state->cleaner++;
		run_clean_next(req);
		return;
	}
	/* one that is only slow goes on removing for a while */
	state->run->cleaned = true;
	run_end(req);
}

int run_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
	     struct run_result **result, const char **why)
{
	struct run_state *state = tevent_req_data(req, struct run_state);
	struct run *run = state->run;
	int ret = channel_req_error(req);
	unsigned i;

	*result = NULL;
	*why = NULL;
	if (ret != 0) {
		*why = talloc_strdup(mem_ctx, state->why != NULL
					      ? state->why : strerror(ret));
		tevent_req_received(req);
		return ret;
	}
	state->result->members = talloc_zero_array(
		state->result, const struct member_info *, run->num_members);
	for (i = 0; state->result->members != NULL && i < run->num_members;
	     i++) {
		if (run->members[i] == NULL) {
			continue;
		}
		state->result->members[state->result->num_members++] =
			member_info_copy(state->result,
					 member_info(run->members[i]));
	}
	*result = talloc_move(mem_ctx, &state->result);
	tevent_req_received(req);
	return 0;
}
