/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <sys/random.h>

#include <jansson.h>

#include "core/checks/run.h"
#include "core/config.h"
#include "core/member/channel.h"
#include "core/verdict/store.h"
#include "ctdb-events/command.h"
#include "ctdb-events/tdbdirs.h"

#define MOUNTINFO "/proc/self/mountinfo"

#define LIST_S "5"
#define LIST_MS 7000
/* mmap.local takes some ms */
#define CHECK_MS 3000

static const struct {
	const char *key;
	const char *whose;
} ctdbd_dirs[] = {
	{ "volatile database directory", "ctdbd's volatile databases" },
	{ "persistent database directory", "ctdbd's persistent databases" },
	{ "state database directory", "ctdbd's state database" },
};

#define NUM_CTDBD_DIRS (sizeof(ctdbd_dirs) / sizeof(*ctdbd_dirs))

struct tdbdirs_state {
	struct tevent_context *ev;
	const struct options *options;
	const char *worker;
	struct tdb_dirs *dirs;
	const char *why;
	const struct check *checks[2];
	const char *key[2];		/* of ctdb.conf, asked for */
	size_t asked;			/* of ctdbd_dirs */
	size_t checked;			/* of dirs->dirs */
};

static void tdbdirs_listed(struct tevent_req *subreq);
static void ask_ctdb_conf(struct tevent_req *req);
static void tdbdirs_asked(struct tevent_req *subreq);
static void check_next(struct tevent_req *req);
static void tdbdirs_checked(struct tevent_req *subreq);

/* ---- which -------------------------------------------------------------- */

struct tevent_req *tdbdirs_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev,
				const struct options *options,
				const char *worker)
{
	static const char *const argv[] = {
		TDBDIRS_SMBCONF, "--timeout", LIST_S, "list", NULL,
	};
	struct tdbdirs_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;

	req = tevent_req_create(mem_ctx, &state, struct tdbdirs_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->options = options;
	state->worker = worker;
	state->checks[0] = check_by_name("mmap.local");
	state->dirs = talloc_zero(state, struct tdb_dirs);
	if (tevent_req_nomem(state->dirs, req)) {
		return tevent_req_post(req, ev);
	}
	subreq = command_send(state, ev, argv, LIST_MS);
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq, tdbdirs_listed, req);
	return req;
}

int tdbdirs_smbconf_failed(TALLOC_CTX *mem_ctx, int status, const char *output,
			   const char **why)
{
	json_t *json = json_loads(output, 0, NULL);
	const char *error = json_string_value(json_object_get(json, "error"));
	int err = EINVAL;

	if (status == 127) {
		error = "'" TDBDIRS_SMBCONF "' is not installed";
		err = ENOENT;
	} else if (status == EX_TEMPFAIL) {
		err = ETIMEDOUT;
	}
	if (error != NULL) {
		*why = talloc_strdup(mem_ctx, error);
	} else {
		*why = talloc_asprintf(mem_ctx, "'" TDBDIRS_SMBCONF "' ended "
				       "with status %d", status);
	}
	json_decref(json);
	return err;
}

static bool add_dir(struct tdb_dirs *dirs, const char *path,
		    const char *whose)
{
	size_t i;

	for (i = 0; i < dirs->num; i++) {
		if (strcmp(dirs->dirs[i].path, path) == 0) {
			return true;
		}
	}
	dirs->dirs = talloc_realloc(dirs, dirs->dirs, struct tdb_dir,
				    dirs->num + 1);
	if (dirs->dirs == NULL) {
		return false;
	}
	dirs->dirs[dirs->num++] = (struct tdb_dir){
		.path = talloc_strdup(dirs, path),
		.whose = talloc_strdup(dirs, whose),
		.tdb = UNKNOWN,
		.mmap = UNKNOWN,
	};
	return dirs->dirs[dirs->num - 1].path != NULL &&
	       dirs->dirs[dirs->num - 1].whose != NULL;
}

/* Returns 0, EINVAL, ENOMEM. */
static int take_list(struct tdb_dirs *dirs, const json_t *json)
{
	const json_t *list = json_object_get(json, "tdb_dirs");
	const json_t *set = json_object_get(json_object_get(json, "set"),
					    "use mmap");
	size_t i;

	if (!json_is_array(list)) {
		return EINVAL;
	}
	dirs->clustering = json_is_true(json_object_get(json, "clustering"));
	dirs->use_mmap = json_is_true(json_object_get(json, "use_mmap"));
	if (set != NULL) {
		const char *by = json_string_value(json_object_get(set, "by"));

		dirs->ours = true;
		dirs->here = !json_is_false(json_object_get(set, "here"));
		dirs->staged = json_is_true(json_object_get(set, "staged"));
		dirs->by = talloc_strdup(dirs, by != NULL ? by : "agent");
	}
	for (i = 0; i < json_array_size(list); i++) {
		const json_t *dir = json_array_get(list, i);
		const char *path = json_string_value(
			json_object_get(dir, "path"));
		const char *whose = json_string_value(
			json_object_get(dir, "whose"));
		bool ok;

		if (path == NULL || whose == NULL) {
			return EINVAL;
		}
		ok = add_dir(dirs, path, whose);
		if (!ok) {
			return ENOMEM;
		}
	}
	return 0;
}

static int read_list(struct tdbdirs_state *state, int status,
		     const char *output)
{
	json_t *json = NULL;
	int ret;

	if (status != EX_OK) {
		return tdbdirs_smbconf_failed(state, status, output,
					      &state->why);
	}
	json = json_loads(output, 0, NULL);
	ret = take_list(state->dirs, json);
	json_decref(json);
	if (ret == EINVAL) {
		state->why = "'" TDBDIRS_SMBCONF "' is of another version";
	}
	return ret;
}

static void tdbdirs_listed(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct tdbdirs_state *state = tevent_req_data(req,
						      struct tdbdirs_state);
	char *output = NULL;
	int status = 0;
	int ret;

	ret = command_recv(subreq, state, &status, &output);
	TALLOC_FREE(subreq);
	if (ret == 0) {
		ret = read_list(state, status, output);
	}
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	ask_ctdb_conf(req);
}

static void ask_ctdb_conf(struct tevent_req *req)
{
	struct tdbdirs_state *state = tevent_req_data(req,
						      struct tdbdirs_state);
	struct tevent_req *subreq = NULL;

	if (state->asked == NUM_CTDBD_DIRS) {
		check_next(req);
		return;
	}
	state->key[0] = ctdbd_dirs[state->asked].key;
	subreq = ctdbconfig_send(state, state->ev, &state->options->ctdb,
				 "database", state->key);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, tdbdirs_asked, req);
}

static void tdbdirs_asked(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct tdbdirs_state *state = tevent_req_data(req,
						      struct tdbdirs_state);
	const char *key = NULL;
	char *value = NULL;
	bool ok = true;
	int ret;

	ret = ctdbconfig_recv(subreq, state, &value, &key);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		state->why = talloc_asprintf(state, "ctdb.conf cannot be read: "
					     "%s", strerror(ret));
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	if (value != NULL) {
		ok = add_dir(state->dirs, value,
			     ctdbd_dirs[state->asked].whose);
	}
	if (!ok) {
		tevent_req_oom(req);
		return;
	}
	state->asked++;
	ask_ctdb_conf(req);
}

/* ---- are they fit ------------------------------------------------------- */

static void check_next(struct tevent_req *req)
{
	struct tdbdirs_state *state = tevent_req_data(req,
						      struct tdbdirs_state);
	const char **places = NULL;
	struct run_options options = {
		.reach = { .worker = state->worker, .rsh = "false" },
		.checks = state->checks,
		.level = RUN_LIGHT,
		.timeout_ms = CHECK_MS,
	};
	struct tevent_req *subreq = NULL;
	ssize_t n;

	if (state->checked == state->dirs->num) {
		tevent_req_done(req);
		return;
	}
	places = talloc_zero_array(state, const char *, 2);
	if (tevent_req_nomem(places, req)) {
		return;
	}
	places[0] = state->dirs->dirs[state->checked].path;
	options.places = places;
	n = getrandom(&options.seed, sizeof(options.seed), 0);
	(void)n;
	subreq = run_send(state, state->ev, &options);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, tdbdirs_checked, req);
}

static int judge(struct tdbdirs_state *state, const struct run_result *result,
		 struct tdb_dir *dir)
{
	const struct verdict_input input = {
		.catalogue = state->checks,
		.results = result->results,
		.num_results = result->num_results,
		.members = result->members,
		.num_members = result->num_members,
		.local = true,
		.same_directory = result->same_directory,
		.not_same = result->not_same,
	};
	const struct use_verdict *use = NULL;
	struct verdict *verdict = NULL;
	int ret;

	ret = verdict_judge(state, &input, &verdict);
	if (ret != 0) {
		return ret;
	}
	use = &verdict->uses[USE_TDB];
	dir->tdb = use->hung ? UNKNOWN : use->fitness;
	dir->why = talloc_strdup(state->dirs, use->reason);
	/* that it cannot be stored is told where that matters more */
	store_write(STATEDIR, result->members[0], verdict, USE_BIT(USE_TDB),
		    time(NULL), "this node alone");
	talloc_free(verdict);
	return 0;
}

/* What the store knows of its file system across nodes */
static void look_up(struct tdbdirs_state *state, struct tdb_dir *dir)
{
	const struct stored_use *use = NULL;
	struct stored_record *record = NULL;
	bool fresh;
	int ret;

	ret = store_lookup(state, STATEDIR, MOUNTINFO, dir->path, &record);
	if (ret != 0) {
		return;
	}
	use = &record->uses[USE_MMAP];
	fresh = stored_use_fresh(use, time(NULL), STORE_FRESH_S);
	if (fresh && use->scope == SCOPE_CLUSTER && !use->hung) {
		dir->mmap = use->fitness;
		if (use->fitness == UNFIT && dir->tdb != UNFIT) {
			dir->why = talloc_strdup(state->dirs, use->reason);
		}
	}
	talloc_free(record);
}

static void tdbdirs_checked(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct tdbdirs_state *state = tevent_req_data(req,
						      struct tdbdirs_state);
	struct tdb_dir *dir = &state->dirs->dirs[state->checked];
	struct run_result *result = NULL;
	const char *why = NULL;
	int ret;

	ret = run_recv(subreq, state, &result, &why);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		dir->why = talloc_strdup(state->dirs, why);
	} else {
		ret = judge(state, result, dir);
		talloc_free(result);
	}
	if (ret == ENOMEM) {
		tevent_req_oom(req);
		return;
	}
	look_up(state, dir);
	state->checked++;
	check_next(req);
}

int tdbdirs_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		 struct tdb_dirs **dirs, const char **why)
{
	struct tdbdirs_state *state = tevent_req_data(req,
						      struct tdbdirs_state);
	int ret = channel_req_error(req);

	*dirs = NULL;
	*why = NULL;
	if (ret == 0) {
		*dirs = talloc_move(mem_ctx, &state->dirs);
	} else {
		*why = talloc_strdup(mem_ctx, state->why != NULL
						      ? state->why
						      : strerror(ret));
	}
	tevent_req_received(req);
	return ret;
}
