/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "core/member/channel.h"
#include "ctdb-events/across.h"
#include "ctdb-events/decide.h"

/* For a connection and the greeting: nodes that are down take it all */
#define REACH_MS 1000

/* The share of the time that this node alone may take */
#define LOCAL_SHARE(ms) ((ms) * 2 / 5)

/* Kept back for what comes after the runs */
#define END_MS 300

/* How often one node is looked for */
#define MAX_CALLS 3

/* What is known of a peer beside its part of the result */
struct contact {
	int fd;				/* connected and greeted; -1: not */
	unsigned calls;
	bool settled;			/* tested, or one too many */
};

struct across_state {
	struct tevent_context *ev;
	const struct across *across;
	struct across_result *result;
	struct contact *contacts;	/* of result->peers */
	const struct check **checks;	/* NULL-terminated: the door's */
	uint64_t end_ms;		/* CLOCK_MONOTONIC */
	unsigned waiting;		/* requests under way */
	bool rivals_tested;
	struct decision_input decision;
	/* decision.parties[i] is it, from 1 */
	struct across_peer *party[DECIDE_MAX];
};

/* Two parties and the connections to them */
struct pair {
	struct tevent_req *req;
	struct across_state *state;
	unsigned parties[2];		/* the lower first; 0 is this node */
	struct member_link links[3];
	unsigned num_links;
	const char *places[3];
	bool started;			/* the links are the run's */
};

/* A connection to a peer under way */
struct call {
	struct tevent_req *req;
	struct across_peer *peer;
	struct pair *pair;		/* NULL: the first look */
	unsigned end;			/* of the pair */
};

static void across_local_done(struct tevent_req *subreq);
static void across_reached(struct tevent_req *subreq);
static void across_step_done(struct tevent_req *req);
static void pair_link(struct pair *pair, unsigned end, int fd);
static void pair_done(struct tevent_req *subreq);

static unsigned left_ms(const struct across_state *state)
{
	uint64_t now = channel_now_ms() + END_MS;

	return now < state->end_ms ? (unsigned)(state->end_ms - now) : 1;
}

const char *across_node_name(TALLOC_CTX *mem_ctx,
			     const struct ctdb_node *node)
{
	return talloc_asprintf(mem_ctx, "node %u (%s)", node->pnn,
			       node->text);
}

/* ---- judging a run ------------------------------------------------------ */

static bool needed(const struct check *check, unsigned uses)
{
	const char *const *need = NULL;
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		if ((uses & USE_BIT(i)) == 0) {
			continue;
		}
		for (need = use_needs(i); *need != NULL; need++) {
			if (strcmp(*need, check->name) == 0) {
				return true;
			}
		}
	}
	return false;
}

/* Those of the door that the uses need */
static const struct check **checks_for(TALLOC_CTX *mem_ctx, unsigned door,
				       unsigned uses)
{
	const struct check **checks = checks_of_door(mem_ctx, door);
	size_t num = 0, i;

	for (i = 0; checks != NULL && checks[i] != NULL; i++) {
		if (needed(checks[i], uses)) {
			checks[num++] = checks[i];
		}
	}
	if (checks != NULL) {
		checks[num] = NULL;
	}
	return checks;
}

static struct verdict *judge(struct across_state *state,
			     struct run_result *result, bool local)
{
	const struct verdict_input input = {
		.catalogue = state->checks,
		.results = result->results,
		.num_results = result->num_results,
		.members = result->members,
		.num_members = result->num_members,
		.local = local,
		.same_directory = result->same_directory,
		.not_same = result->not_same,
	};
	struct verdict *verdict = NULL;
	int ret;

	ret = verdict_judge(result, &input, &verdict);
	return ret == 0 ? verdict : NULL;
}

static struct judgement judge_target(const struct across_state *state,
				     const struct run_result *result,
				     const struct verdict *verdict)
{
	const struct member_info *member = NULL;
	struct judgement judgement;

	if (result->num_members > 0) {
		member = result->members[0];
	}
	target_judge(state->result, state->across->target, verdict, member,
		     &judgement);
	return judgement;
}

static struct run_options run_options_of(const struct across_state *state,
					 const char **places,
					 const struct member_link *links,
					 unsigned timeout_ms)
{
	struct run_options options = {
		.reach = { .worker = state->across->worker, .rsh = "false",
			   .links = links },
		.places = places,
		.checks = state->checks,
		.level = RUN_LIGHT,
		.timeout_ms = timeout_ms,
	};
	ssize_t n = getrandom(&options.seed, sizeof(options.seed), 0);

	(void)n;
	return options;
}

/* ---- on this node alone ------------------------------------------------- */

static int start_local(struct tevent_req *req)
{
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	const char **places = talloc_zero_array(state, const char *, 2);
	struct tevent_req *subreq = NULL;
	struct run_options options;

	if (places == NULL) {
		return ENOMEM;
	}
	places[0] = state->across->target->directory;
	options = run_options_of(state, places, NULL,
				 LOCAL_SHARE(state->across->timeout_ms));
	subreq = run_send(state, state->ev, &options);
	if (subreq == NULL) {
		return ENOMEM;
	}
	tevent_req_set_callback(subreq, across_local_done, req);
	state->waiting++;
	return 0;
}

static void across_local_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	struct across_result *result = state->result;

	result->local_err = run_recv(subreq, result, &result->local_result,
				     &result->local.reason);
	TALLOC_FREE(subreq);
	if (result->local_err == ENOMEM) {
		tevent_req_oom(req);
		return;
	}
	if (result->local_err == 0) {
		struct verdict *verdict = judge(state, result->local_result,
						true);

		if (tevent_req_nomem(verdict, req)) {
			return;
		}
		result->local_verdict = verdict;
		result->local = judge_target(state, result->local_result,
					     verdict);
	}
	across_step_done(req);
}

/* ---- looking for the others --------------------------------------------- */

static int start_call(struct tevent_req *req, struct across_peer *peer,
		      struct pair *pair, unsigned end)
{
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	struct call *call = talloc_zero(state, struct call);
	struct tevent_req *subreq = NULL;

	if (call == NULL) {
		return ENOMEM;
	}
	*call = (struct call){ req, peer, pair, end };
	subreq = reach_send(call, state->ev, state->across->reach,
			    &peer->node->address, REACH_MS);
	if (subreq == NULL) {
		return ENOMEM;
	}
	tevent_req_set_callback(subreq, across_reached, call);
	state->waiting++;
	return 0;
}

static struct contact *contact_of(struct across_state *state,
				  const struct across_peer *peer)
{
	return &state->contacts[peer - state->result->peers];
}

static void across_reached(struct tevent_req *subreq)
{
	struct call *call = tevent_req_callback_data(subreq, struct call);
	struct tevent_req *req = call->req;
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	struct across_peer *peer = call->peer;
	struct pair *pair = call->pair;
	struct greeting theirs = {};
	unsigned end = call->end;
	int fd = -1;
	int ret;

	ret = reach_recv(subreq, &fd, &theirs);
	talloc_free(call);
	if (ret == 0) {
		peer->reached = true;
		peer->running = target_is_lock(state->across->target)
					? theirs.running
					: theirs.serving;
	}
	if (pair != NULL) {
		pair_link(pair, end, fd);
	} else if (ret != 0) {
		peer->why = reach_why(ret);
	} else {
		contact_of(state, peer)->fd = fd;
	}
	across_step_done(req);
}

/* ---- pairs -------------------------------------------------------------- */

static int pair_destructor(struct pair *pair)
{
	unsigned i;

	for (i = 0; i < pair->num_links && !pair->started; i++) {
		close(pair->links[i].rfd);
	}
	return 0;
}

static struct pair *pair_create(struct tevent_req *req, unsigned a, unsigned b)
{
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	struct pair *pair = talloc_zero(state, struct pair);

	if (pair == NULL) {
		return NULL;
	}
	pair->req = req;
	pair->state = state;
	pair->parties[0] = a;
	pair->parties[1] = b;
	if (a == 0) {
		pair->places[0] = state->across->target->directory;
	}
	talloc_set_destructor(pair, pair_destructor);
	return pair;
}

/* One end is connected (or not, fd -1); with the second the run begins. */
static void pair_link(struct pair *pair, unsigned end, int fd)
{
	struct across_state *state = pair->state;
	const struct across_peer *peer = state->party[pair->parties[end]];
	struct tevent_req *subreq = NULL;
	struct run_options options;
	const char *host = NULL;

	if (fd == -1) {
		return;
	}
	host = talloc_asprintf(pair, "node%u", peer->node->pnn);
	pair->links[pair->num_links++] = (struct member_link){ host, fd, fd };
	pair->places[end] = talloc_asprintf(pair, "%s:%s", host,
					    state->across->target->name);
	if (pair->places[0] == NULL || pair->places[1] == NULL) {
		return;
	}
	options = run_options_of(state, pair->places, pair->links,
				 left_ms(state));
	subreq = run_send(pair, state->ev, &options);
	if (tevent_req_nomem(subreq, pair->req)) {
		return;
	}
	pair->started = true;
	tevent_req_set_callback(subreq, pair_done, pair);
	state->waiting++;
}

static void take_verdict(struct across_state *state, struct across_peer *peer,
			 struct run_result *result)
{
	struct verdict *verdict = judge(state, result, false);
	struct judgement judgement;

	if (verdict == NULL) {
		peer->why = "no memory";
		return;
	}
	judgement = judge_target(state, result, verdict);
	peer->result = talloc_steal(state->result, result);
	peer->verdict = verdict;
	peer->tested = true;
	peer->fitness = judgement.fitness;
	peer->why = judgement.reason;
	peer->remedy = judgement.remedy;
	if (!result->same_directory) {
		peer->fitness = UNFIT;
		peer->remedy = "One of the two is not the cluster's file "
			       "system: mount it, or correct the path.";
	}
}

static void pair_done(struct tevent_req *subreq)
{
	struct pair *pair = tevent_req_callback_data(subreq, struct pair);
	struct tevent_req *req = pair->req;
	struct across_state *state = pair->state;
	struct across_peer *peer = state->party[pair->parties[1]];
	enum fitness *fit = &state->decision.fit[pair->parties[0]]
						[pair->parties[1]];
	struct run_result *result = NULL;
	const char *why = NULL;
	int ret;

	ret = run_recv(subreq, state->result, &result, &why);
	TALLOC_FREE(subreq);
	*fit = UNKNOWN;
	if (pair->parties[0] == 0) {
		peer->why = why;
		peer->unaware = ret == EACCES &&
				!target_is_lock(state->across->target);
		if (peer->unaware) {
			peer->why = "it has no share there, or has not read "
				    "its shares yet";
		}
		if (ret == 0) {
			take_verdict(state, peer, result);
			*fit = peer->fitness;
		}
	} else if (ret == 0) {
		struct verdict *verdict = judge(state, result, false);

		if (verdict != NULL) {
			*fit = judge_target(state, result, verdict).fitness;
		}
		if (!result->same_directory) {
			*fit = UNFIT;
		}
		talloc_free(result);
	}
	talloc_free(pair);
	across_step_done(req);
}

/* ---- step by step ------------------------------------------------------- */

/* Test this node with a peer that is connected. */
static int start_pair(struct tevent_req *req, struct across_peer *peer)
{
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	struct contact *contact = contact_of(state, peer);
	struct decision_input *decision = &state->decision;
	unsigned party = decision->num;
	struct pair *pair = NULL;
	int fd = contact->fd;

	pair = pair_create(req, 0, party);
	if (pair == NULL) {
		return ENOMEM;
	}
	decision->parties[party] = (struct party){ peer->node->pnn,
						   peer->running };
	decision->num++;
	state->party[party] = peer;
	peer->why = NULL;
	contact->fd = -1;
	contact->settled = true;
	pair_link(pair, 1, fd);
	return 0;
}

/* Of those that are connected, running ones first; *started: runs */
static int start_pairs(struct tevent_req *req, unsigned *started)
{
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	unsigned max = state->across->options->max_peers;
	unsigned pass, i;
	int ret = 0;

	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < state->result->num_peers && ret == 0; i++) {
			struct across_peer *peer = &state->result->peers[i];

			if (state->contacts[i].fd == -1 ||
			    peer->running != (pass == 0) ||
			    state->decision.num > max) {
				continue;
			}
			ret = start_pair(req, peer);
			(*started)++;
		}
	}
	for (i = 0; i < state->result->num_peers; i++) {
		struct contact *contact = &state->contacts[i];

		if (contact->fd != -1) {
			close(contact->fd);
			contact->fd = -1;
			contact->settled = true;
			state->result->peers[i].why =
				"others were enough (MAX_PEERS)";
		}
	}
	return ret;
}

/* Who greeted us and was not to be found: it has started since. */
static int call_again(struct tevent_req *req, unsigned *started)
{
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	unsigned i;
	int ret = 0;

	for (i = 0; i < state->result->num_peers && ret == 0; i++) {
		struct across_peer *peer = &state->result->peers[i];
		struct contact *contact = &state->contacts[i];

		if (contact->settled || contact->calls >= MAX_CALLS ||
		    !state->across->greeted[peer->node->pnn]) {
			continue;
		}
		contact->calls++;
		ret = start_call(req, peer, NULL, 0);
		(*started)++;
	}
	return ret;
}

/* Test those that this node is unfit with, with each other. */
static int start_rivals(struct tevent_req *req, unsigned *started)
{
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	const struct decision_input *d = &state->decision;
	unsigned a, b;
	int ret = 0;

	for (a = 1; a < d->num; a++) {
		for (b = a + 1; b < d->num && ret == 0; b++) {
			struct pair *pair = NULL;

			if (d->fit[0][a] != UNFIT || d->fit[0][b] != UNFIT ||
			    d->parties[a].running != d->parties[0].running ||
			    d->parties[b].running != d->parties[0].running) {
				continue;
			}
			pair = pair_create(req, a, b);
			if (pair == NULL) {
				return ENOMEM;
			}
			ret = start_call(req, state->party[a], pair, 0);
			if (ret == 0) {
				ret = start_call(req, state->party[b], pair,
						 1);
			}
			(*started)++;
		}
	}
	return ret;
}

static void across_conclude(struct tevent_req *req)
{
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	struct across_result *result = state->result;
	unsigned because = 0;
	unsigned i;
	bool refuses;

	for (i = 0; i < result->num_peers; i++) {
		const struct across_peer *peer = &result->peers[i];

		result->num_fit += peer->tested && peer->fitness == FIT;
		result->num_unfit += peer->tested && peer->fitness == UNFIT;
	}
	refuses = decide_refuses(&state->decision, &because);
	if (refuses) {
		result->refused_by = state->party[because];
	}
	tevent_req_done(req);
}

/* A node that is unfit by itself need not be tested with others. */
static bool alone_is_enough(const struct across_result *result)
{
	return result->local_err != 0 || result->local.fitness == UNFIT;
}

/* What has not answered by now is not known. */
static void across_expired(struct tevent_context *ev, struct tevent_timer *te,
			   struct timeval now, void *private_data)
{
	struct tevent_req *req = talloc_get_type_abort(private_data,
						       struct tevent_req);
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	unsigned i;

	(void)ev;
	(void)te;
	(void)now;
	if (state->result->local.reason == NULL &&
	    state->result->local.fitness == UNKNOWN) {
		state->result->local.reason = "no answer in time";
	}
	for (i = 0; i < state->result->num_peers; i++) {
		struct across_peer *peer = &state->result->peers[i];

		if (!peer->tested && peer->why == NULL) {
			peer->why = "no answer in time";
		}
	}
	across_conclude(req);
}

static void across_next(struct tevent_req *req)
{
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	unsigned started = 0;
	int ret;

	if (alone_is_enough(state->result)) {
		across_conclude(req);
		return;
	}
	ret = start_pairs(req, &started);
	if (ret == 0 && started == 0) {
		ret = call_again(req, &started);
	}
	if (ret == 0 && started == 0 && !state->rivals_tested) {
		state->rivals_tested = true;
		ret = start_rivals(req, &started);
	}
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	if (started == 0) {
		across_conclude(req);
	}
}

static void across_step_done(struct tevent_req *req)
{
	struct across_state *state = tevent_req_data(req,
						     struct across_state);

	state->waiting--;
	if (state->waiting == 0) {
		across_next(req);
	}
}

static int across_destructor(struct across_state *state)
{
	size_t i;

	for (i = 0; i < talloc_array_length(state->contacts); i++) {
		if (state->contacts[i].fd != -1) {
			close(state->contacts[i].fd);
		}
	}
	return 0;
}

static void nothing_known(struct decision_input *decision)
{
	unsigned a, b;

	for (a = 0; a < DECIDE_MAX; a++) {
		for (b = 0; b < DECIDE_MAX; b++) {
			decision->fit[a][b] = UNKNOWN;
		}
	}
}

/* The result outlives the list of nodes. */
static const struct ctdb_node *keep_node(TALLOC_CTX *mem_ctx,
					 const struct ctdb_node *node)
{
	struct ctdb_node *copy = talloc(mem_ctx, struct ctdb_node);

	if (copy == NULL) {
		return NULL;
	}
	*copy = *node;
	copy->text = talloc_strdup(copy, node->text);
	return copy;
}

static int across_prepare(struct across_state *state)
{
	const struct ctdb_nodes *nodes = state->across->nodes;
	struct across_result *result = talloc_zero(state,
						   struct across_result);
	size_t i;

	state->checks = checks_for(state, state->across->door,
				   state->across->target->uses |
				   state->across->target->reported);
	state->contacts = talloc_array(state, struct contact, nodes->num);
	for (i = 0; i < talloc_array_length(state->contacts); i++) {
		state->contacts[i] = (struct contact){ .fd = -1, .calls = 1 };
	}
	if (result == NULL || state->checks == NULL ||
	    state->contacts == NULL) {
		return ENOMEM;
	}
	result->local.fitness = UNKNOWN;
	result->peers = talloc_zero_array(result, struct across_peer,
					  nodes->num);
	if (result->peers == NULL) {
		return ENOMEM;
	}
	for (i = 0; i < nodes->num; i++) {
		struct across_peer *peer = &result->peers[result->num_peers];

		if (nodes->nodes[i].deleted || &nodes->nodes[i] == nodes->own) {
			continue;
		}
		*peer = (struct across_peer){
			.node = keep_node(result, &nodes->nodes[i]),
			.fitness = UNKNOWN,
		};
		if (peer->node == NULL) {
			return ENOMEM;
		}
		result->num_peers++;
	}
	state->result = result;
	nothing_known(&state->decision);
	state->decision.num = 1;
	state->decision.parties[0] = (struct party){
		nodes->own->pnn, target_is_lock(state->across->target)
					 ? state->across->reach->own->running
					 : state->across->reach->own->serving };
	return 0;
}

struct tevent_req *across_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			       const struct across *across)
{
	struct across_state *state = NULL;
	struct tevent_req *req = NULL;
	struct tevent_timer *expiry = NULL;
	unsigned i;
	int ret;

	req = tevent_req_create(mem_ctx, &state, struct across_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->across = across;
	state->end_ms = channel_now_ms() + across->timeout_ms;
	talloc_set_destructor(state, across_destructor);
	ret = across_prepare(state);
	expiry = tevent_add_timer(
		ev, state,
		tevent_timeval_current_ofs(across->timeout_ms / 1000,
					   across->timeout_ms % 1000 * 1000),
		across_expired, req);
	if (expiry == NULL) {
		ret = ENOMEM;
	}
	if (ret == 0) {
		ret = start_local(req);
	}
	for (i = 0; ret == 0 && !across->target->alone &&
		    i < state->result->num_peers; i++) {
		ret = start_call(req, &state->result->peers[i], NULL, 0);
	}
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return tevent_req_post(req, ev);
	}
	return req;
}

int across_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		struct across_result **result)
{
	struct across_state *state = tevent_req_data(req,
						     struct across_state);
	int ret = channel_req_error(req);

	*result = NULL;
	if (ret == 0) {
		*result = talloc_move(mem_ctx, &state->result);
	}
	tevent_req_received(req);
	return ret;
}
