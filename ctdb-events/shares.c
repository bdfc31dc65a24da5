/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Divisions: shares from JSON; paths from PATHS; opening each; targets.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sysexits.h>

#include <jansson.h>

#include "core/config.h"
#include "core/member/channel.h"
#include "ctdb-events/command.h"
#include "ctdb-events/shares.h"
#include "ctdb-events/sharenotes.h"

#define SMBCONF LIBEXECDIR "/pingpong-smbconf"

/* A registry is there when ctdbd has recovered its databases. */
#define READ_S "20"
#define READ_MS 22000

/* To open one path */
#define OPEN_MS 2000

/* More are not named in a line */
#define MAX_NAMED 3

#define PATHS_USES (USE_BIT(USE_SHARE) | USE_BIT(USE_POSIX_LOCKING))

/* One path, until it is known on which mount it lies */
struct place {
	const char *path;
	const char *share;		/* name; NULL: of PATHS */
	struct share settings;
	const struct member_info *info;	/* NULL: could not be opened */
};

struct shares_state {
	struct tevent_context *ev;
	const char *worker;
	struct shares *shares;
	struct place *places;		/* talloc array, by path */
	size_t num;
	size_t opening;
	const char *why;
};

static void shares_read(struct tevent_req *subreq);
static void open_next(struct tevent_req *req);
static void opened(struct tevent_req *subreq);

static void fail(struct tevent_req *req, int err, char *why)
{
	struct shares_state *state = tevent_req_data(req,
						     struct shares_state);

	state->why = talloc_steal(state, why);
	tevent_req_error(req, (uint64_t)err);
}

/* ---- shares from JSON --------------------------------------------------- */

static int add_place(struct shares_state *state, const struct place *place)
{
	state->places = talloc_realloc(state, state->places, struct place,
				       state->num + 1);
	if (state->places == NULL) {
		return ENOMEM;
	}
	state->places[state->num++] = *place;
	return 0;
}

static int add_note(struct shares_state *state, const char *note)
{
	bool ok = note != NULL &&
		  names_add(state->shares, &state->shares->notes,
			    talloc_steal(state->shares, note));

	return ok ? 0 : ENOMEM;
}

static int set_objects(TALLOC_CTX *mem_ctx, const json_t *objects,
		       struct share *share)
{
	size_t i;

	for (i = 0; i < json_array_size(objects); i++) {
		const char *name = json_string_value(json_array_get(objects,
								    i));
		char *copy = talloc_strdup(mem_ctx, name != NULL ? name : "");
		bool ok = copy != NULL &&
			  names_add(mem_ctx, &share->objects, copy);

		if (!ok) {
			return ENOMEM;
		}
	}
	return 0;
}

int share_from_json(TALLOC_CTX *mem_ctx, const json_t *json, bool clustering,
		    struct share *share)
{
	json_t *params = json_object_get(json, "params");
	const char *name = NULL;
	json_t *value = NULL;
	int ret;

	share_init(share, share->path);
	share->scope = clustering ? SCOPE_CLUSTER : SCOPE_LOCAL;
	json_object_foreach(params, name, value) {
		const char *text = json_string_value(value);

		ret = share_set(mem_ctx, share, name,
				text != NULL ? text : "");
		if (ret == ENOMEM) {
			return ENOMEM;
		}
	}
	return set_objects(mem_ctx, json_object_get(json, "vfs_objects"),
			   share);
}

/* Why it is not for us to check; NULL: it is */
static const char *why_not(TALLOC_CTX *mem_ctx, const json_t *json,
			   const struct share *share)
{
	const char *skipped = json_string_value(json_object_get(json,
								"skipped"));
	const char *mode = json_string_value(json_object_get(
		json_object_get(json, "params"), "pingpong:mode"));
	struct share_answer answer = {};
	bool elsewhere;

	if (skipped != NULL) {
		return skipped;
	}
	if (mode != NULL && strcasecmp(mode, "enforce") != 0) {
		return talloc_asprintf(mem_ctx, "pingpong:mode = %s", mode);
	}
	elsewhere = share_elsewhere(mem_ctx, share, &answer);
	return elsewhere ? answer.reason : NULL;
}

static int take_share(struct shares_state *state, const json_t *json,
		      bool clustering)
{
	const char *name = json_string_value(json_object_get(json, "name"));
	const char *path = json_string_value(json_object_get(json, "path"));
	struct place place = {};
	const char *why = NULL;
	int ret;

	if (name == NULL || path == NULL) {
		return EPROTO;
	}
	place.share = talloc_strdup(state->shares, name);
	place.path = talloc_strdup(state->shares, path);
	if (place.share == NULL || place.path == NULL) {
		return ENOMEM;
	}
	place.settings.path = place.path;
	ret = share_from_json(state->shares, json, clustering,
			      &place.settings);
	if (ret != 0) {
		return ret;
	}
	why = why_not(state->shares, json, &place.settings);
	if (why == NULL && path[0] == '/') {
		return add_place(state, &place);
	}
	if (path[0] == '\0' || strcasecmp(name, "IPC$") == 0) {
		return 0;
	}
	return add_note(state, talloc_asprintf(
		state, "share [%s] is not checked: %s", name,
		why != NULL ? why : "its path is not absolute"));
}

static int parse(struct shares_state *state, const char *text)
{
	json_t *list = json_loads(text, 0, NULL);
	json_t *shares = json_object_get(list, "shares");
	bool clustering = json_is_true(json_object_get(list, "clustering"));
	int ret = json_is_array(shares) ? 0 : EPROTO;
	size_t i;

	for (i = 0; ret == 0 && i < json_array_size(shares); i++) {
		json_t *share = json_array_get(shares, i);
		const char **notes = NULL;

		ret = take_share(state, share, clustering);
		if (ret == 0) {
			ret = share_notes(state, list, share, &notes);
		}
		for (; ret == 0 && notes != NULL && *notes != NULL; notes++) {
			ret = add_note(state, *notes);
		}
	}
	json_decref(list);
	return ret;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct place *)a)->path,
		      ((const struct place *)b)->path);
}

bool shares_has_samba(void)
{
	struct stat st;

	return lstat("/etc/samba/smb.conf", &st) == 0 || errno != ENOENT;
}

static void shares_read(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct shares_state *state = tevent_req_data(req,
						     struct shares_state);
	char *output = NULL;
	int status = 0;
	int ret;

	ret = command_recv(subreq, state, &status, &output);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		fail(req, ret, talloc_asprintf(
			state, "the shares cannot be read: '%s': %s", SMBCONF,
			strerror(ret)));
		return;
	}
	if (status == EX_CONFIG && !shares_has_samba()) {
		tevent_req_done(req);
		return;
	}
	if (status != 0) {
		fail(req, EIO, talloc_asprintf(
			state, "the shares cannot be read: '%s' has ended "
			"with status %d", SMBCONF, status));
		return;
	}
	ret = parse(state, output);
	if (ret != 0) {
		fail(req, ret, talloc_asprintf(
			state, "the shares cannot be read: '%s': %s", SMBCONF,
			strerror(ret)));
		return;
	}
	if (state->num > 0) {
		qsort(state->places, state->num, sizeof(state->places[0]),
		      by_path);
	}
	open_next(req);
}

/* ---- paths from PATHS --------------------------------------------------- */

static int take_paths(struct shares_state *state, const char *paths)
{
	const char **words = command_words(state, paths);
	int ret = words != NULL ? 0 : ENOMEM;

	for (; ret == 0 && *words != NULL; words++) {
		struct place place = { .path = *words };

		share_init(&place.settings, *words);
		ret = add_place(state, &place);
	}
	return ret;
}

/* ---- targets ------------------------------------------------------------ */

/* Both are checked by checking one of them. */
static bool go_together(const struct place *a, const struct place *b)
{
	return a->info != NULL && b->info != NULL &&
	       a->info->mount_id == b->info->mount_id &&
	       a->settings.scope == b->settings.scope &&
	       (a->share == NULL) == (b->share == NULL);
}

/* "share [a]", "shares [a], [b], [c] and 2 more" */
static char *whose(TALLOC_CTX *mem_ctx, const struct place *const *places,
		   size_t num)
{
	char *text = NULL;
	size_t i;

	if (places[0]->share == NULL) {
		return talloc_strdup(mem_ctx, "CTDB_PINGPONG_PATHS");
	}
	text = talloc_strdup(mem_ctx, num == 1 ? "share" : "shares");
	for (i = 0; i < num && i < MAX_NAMED; i++) {
		text = talloc_asprintf_append(text, "%s [%s]",
					      i > 0 ? "," : "",
					      places[i]->share);
	}
	if (num > MAX_NAMED) {
		text = talloc_asprintf_append(text, " and %zu more",
					      num - MAX_NAMED);
	}
	return text;
}

static struct target *make_target(TALLOC_CTX *mem_ctx,
				  const struct place *const *places,
				  size_t num)
{
	struct target *target = talloc_zero(mem_ctx, struct target);
	struct share *shares = talloc_zero_array(target, struct share, num);
	size_t i;

	if (target == NULL || shares == NULL) {
		return NULL;
	}
	target->directory = talloc_strdup(target, places[0]->path);
	target->name = target->directory;
	target->whose = whose(target, places, num);
	target->places = talloc_zero_array(target, const struct member_info *,
					   num);
	if (target->directory == NULL || target->whose == NULL ||
	    target->places == NULL) {
		return NULL;
	}
	target->alone = places[0]->settings.scope == SCOPE_LOCAL;
	for (i = 0; i < num; i++) {
		shares[i] = places[i]->settings;
		target->places[i] = places[i]->info;
		target->uses |= share_uses(&shares[i]);
	}
	target->reported = USE_BIT(USE_MMAP);
	target->shares = shares;
	target->num_shares = num;
	if (places[0]->share == NULL) {
		/* whose settings would decide is not known */
		target->uses = PATHS_USES;
		target->num_shares = 0;
	}
	return target;
}

static int add_target(struct shares_state *state,
		      const struct place *const *places, size_t num)
{
	struct shares *shares = state->shares;
	struct target *target = NULL;

	shares->targets = talloc_realloc(shares, shares->targets,
					 struct target *, shares->num + 1);
	if (shares->targets == NULL) {
		return ENOMEM;
	}
	target = make_target(shares, places, num);
	if (target == NULL) {
		return ENOMEM;
	}
	shares->targets[shares->num++] = target;
	return 0;
}

static int make_targets(struct shares_state *state)
{
	const struct place **group = talloc_zero_array(
		state, const struct place *, state->num);
	bool *taken = talloc_zero_array(state, bool, state->num);
	size_t i, j;
	int ret = group != NULL && taken != NULL ? 0 : ENOMEM;

	for (i = 0; ret == 0 && i < state->num; i++) {
		size_t num = 0;

		for (j = i; j < state->num && !taken[i]; j++) {
			if (j == i || (!taken[j] &&
				       go_together(&state->places[i],
						   &state->places[j]))) {
				taken[j] = j != i;
				group[num++] = &state->places[j];
			}
		}
		if (num > 0) {
			ret = add_target(state, group, num);
		}
	}
	return ret;
}

/* ---- opening each ------------------------------------------------------- */

static void open_next(struct tevent_req *req)
{
	struct shares_state *state = tevent_req_data(req,
						     struct shares_state);
	const struct member_reach reach = {
		.worker = state->worker, .rsh = "false",
	};
	struct tevent_req *subreq = NULL;
	int ret;

	if (state->opening == state->num) {
		ret = make_targets(state);
		if (ret != 0) {
			tevent_req_error(req, (uint64_t)ret);
		} else {
			tevent_req_done(req);
		}
		return;
	}
	subreq = member_start_send(state, state->ev, &reach,
				   state->places[state->opening].path, 0,
				   OPEN_MS);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, opened, req);
}

/* Why one cannot be opened its check will tell. */
static void opened(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct shares_state *state = tevent_req_data(req,
						     struct shares_state);
	struct place *place = &state->places[state->opening];
	struct member *member = NULL;
	const char *why = NULL;
	int ret;

	ret = member_start_recv(subreq, state, &member, &why);
	TALLOC_FREE(subreq);
	if (ret == 0) {
		place->info = member_info_copy(state->shares,
					       member_info(member));
		talloc_free(member);
	}
	state->opening++;
	open_next(req);
}

/* ---- calls -------------------------------------------------------------- */

static void start_with_paths(struct tevent_req *req, const char *paths)
{
	struct shares_state *state = tevent_req_data(req,
						     struct shares_state);
	int ret;

	ret = take_paths(state, paths);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	open_next(req);
}

struct tevent_req *shares_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			       const struct options *options,
			       const char *worker)
{
	static const char *const argv[] = {
		SMBCONF, "--timeout", READ_S, "list", NULL,
	};
	struct shares_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;

	req = tevent_req_create(mem_ctx, &state, struct shares_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->worker = worker;
	state->shares = talloc_zero(state, struct shares);
	if (tevent_req_nomem(state->shares, req)) {
		return tevent_req_post(req, ev);
	}
	if (options->paths != NULL) {
		start_with_paths(req, options->paths);
		if (!tevent_req_is_in_progress(req)) {
			return tevent_req_post(req, ev);
		}
		return req;
	}
	subreq = command_send(state, ev, argv, READ_MS);
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq, shares_read, req);
	return req;
}

int shares_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		struct shares **shares, const char **why)
{
	struct shares_state *state = tevent_req_data(req,
						     struct shares_state);
	int ret = channel_req_error(req);

	*shares = NULL;
	*why = NULL;
	if (ret == 0) {
		*shares = talloc_move(mem_ctx, &state->shares);
	} else {
		*why = talloc_strdup(mem_ctx, state->why != NULL
					      ? state->why : strerror(ret));
	}
	tevent_req_received(req);
	return ret;
}
