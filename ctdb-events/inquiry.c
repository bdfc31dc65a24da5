/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "core/config.h"
#include "core/member/channel.h"
#include "core/member/mounts.h"
#include "core/verdict/store.h"
#include "ctdb-events/inquiry.h"
#include "ctdb-events/log.h"
#include "ctdb-events/words.h"

#define MOUNTINFO "/proc/self/mountinfo"

struct inquiry_state {
	const struct across *across;
	struct across_result *result;
	const char **lines;
	bool refused;
};

static void inquiry_checked(struct tevent_req *subreq);

/* ---- without a check ---------------------------------------------------- */

/* A refusal by what was found with other nodes not long ago; or NULL */
static char *stored_refusal(struct inquiry_state *state)
{
	unsigned max_age_s = state->across->options->max_age_s;
	const char *directory = state->across->target->directory;
	const struct stored_use *use = NULL;
	struct stored_record *record = NULL;
	time_t now = time(NULL);
	bool fresh;
	int ret;

	ret = store_lookup(state, STATEDIR, MOUNTINFO, directory, &record);
	if (ret != 0) {
		return NULL;
	}
	use = &record->uses[USE_CLUSTER_LOCK];
	fresh = stored_use_fresh(use, now, max_age_s);
	if (!fresh || use->scope != SCOPE_CLUSTER || use->fitness != UNFIT) {
		return NULL;
	}
	return talloc_asprintf(
		state, "REFUSED: '%s' was found unfit for the cluster lock "
		"%lld s ago with %s: %s. When it has been mended, prove it "
		"with 'pingpong check', or 'pingpong forget %s'",
		directory, (long long)(now - use->when), use->with,
		use->reason, directory);
}

/* To look there would mount it. */
static bool waits_for_automount(struct inquiry_state *state)
{
	struct mount_line *mount = NULL;
	bool waits;
	int ret;

	ret = mount_by_path(state, MOUNTINFO, state->across->target->directory,
			    &mount);
	waits = ret == 0 && strcmp(mount->fstype, "autofs") == 0;
	talloc_free(mount);
	return waits;
}

/* The line that makes a check needless, or NULL */
static char *known_already(struct inquiry_state *state)
{
	const struct across *across = state->across;
	char *line = NULL;

	if (across->door == DOOR_INIT) {
		line = stored_refusal(state);
		state->refused = line != NULL;
		return line;
	}
	if (waits_for_automount(state)) {
		return talloc_asprintf(
			state, "'%s' is not checked: nothing is mounted there "
			"now (autofs)", across->target->directory);
	}
	return NULL;
}

/* ---- what is recorded --------------------------------------------------- */

static void store(const struct target *target,
		  const struct member_info *member,
		  const struct verdict *verdict, const char *with)
{
	int ret;

	ret = store_write(STATEDIR, member, verdict,
			  target->uses | target->reported, time(NULL), with);
	if (ret != 0) {
		log_line("the verdict on '%s' could not be stored: %s",
			 member->path, strerror(ret));
	}
}

/* Which run speaks for this node: the one that it refuses by, else one that
 * it goes on by. */
static void record(struct inquiry_state *state)
{
	const struct across_result *result = state->result;
	const struct target *target = state->across->target;
	const struct run_result *run = result->local_result;
	const struct verdict *verdict = result->local_verdict;
	const char *with = "this node alone";
	size_t i;

	for (i = 0; i < result->num_peers; i++) {
		const struct across_peer *peer = &result->peers[i];
		bool speaks = result->refused_by != NULL
				      ? peer == result->refused_by
				      : peer->tested && peer->fitness == FIT;

		if (speaks && peer->verdict != NULL) {
			run = peer->result;
			verdict = peer->verdict;
			with = across_node_name(state, peer->node);
		}
	}
	if (run == NULL || run->num_members == 0) {
		return;
	}
	if (target->num_shares == 0) {
		store(target, run->members[0], verdict, with);
	}
	for (i = 0; i < target->num_shares; i++) {
		if (target->places[i] != NULL) {
			store(target, target->places[i], verdict, with);
		}
	}
}

/* ---- calls -------------------------------------------------------------- */

struct tevent_req *inquiry_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev,
				const struct across *across)
{
	struct inquiry_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;
	char *line = NULL;

	req = tevent_req_create(mem_ctx, &state, struct inquiry_state);
	if (req == NULL) {
		return NULL;
	}
	state->across = across;
	line = known_already(state);
	if (line != NULL) {
		bool ok = names_add(state, &state->lines, line);

		if (ok) {
			tevent_req_done(req);
		} else {
			tevent_req_oom(req);
		}
		return tevent_req_post(req, ev);
	}
	subreq = across_send(state, ev, across);
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq, inquiry_checked, req);
	return req;
}

static void inquiry_checked(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct inquiry_state *state = tevent_req_data(req,
						      struct inquiry_state);
	int ret;

	ret = across_recv(subreq, state, &state->result);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	state->refused = words_of_check(state, state->across, state->result,
					&state->lines);
	if (tevent_req_nomem(state->lines, req)) {
		return;
	}
	record(state);
	tevent_req_done(req);
}

static const char **copy_lines(TALLOC_CTX *mem_ctx, const char **lines)
{
	const char **copy = NULL;
	size_t num = 0, i;

	while (lines[num] != NULL) {
		num++;
	}
	copy = talloc_zero_array(mem_ctx, const char *, num + 1);
	for (i = 0; copy != NULL && i < num; i++) {
		copy[i] = talloc_strdup(copy, lines[i]);
	}
	return copy;
}

int inquiry_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx, bool *refused,
		 const char ***lines, struct across_result **result)
{
	struct inquiry_state *state = tevent_req_data(req,
						      struct inquiry_state);
	int ret = channel_req_error(req);

	*lines = NULL;
	*result = NULL;
	if (ret == 0) {
		*refused = state->refused;
		*lines = copy_lines(mem_ctx, state->lines);
		*result = talloc_move(mem_ctx, &state->result);
		ret = *lines != NULL ? 0 : ENOMEM;
	}
	tevent_req_received(req);
	return ret;
}
