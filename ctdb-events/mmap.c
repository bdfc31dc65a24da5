/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Divisions: the policy; what the store knows; mutexes; the agent's step.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/config.h"
#include "core/member/channel.h"
#include "core/verdict/store.h"
#include "ctdb-events/command.h"
#include "ctdb-events/ctdbconfig.h"
#include "ctdb-events/log.h"
#include "ctdb-events/mmap.h"

#define MOUNTINFO "/proc/self/mountinfo"
#define NO_MUTEXES RUNDIR "/no-tdb-mutexes"
#define SET_MS 12000

/* ---- the policy --------------------------------------------------------- */

/* A directory with TDBs that `use mmap = no` helps; NULL: none */
static const struct tdb_dir *bad_dir(const struct tdb_dirs *dirs)
{
	size_t i;

	for (i = 0; i < dirs->num; i++) {
		const struct tdb_dir *dir = &dirs->dirs[i];

		if (dir->tdb == UNFIT || dir->mmap == UNFIT) {
			return dir;
		}
	}
	return NULL;
}

static bool any_stale(const struct tdb_dirs *dirs)
{
	size_t i;

	for (i = 0; i < dirs->num; i++) {
		if (dirs->dirs[i].tdb == UNFIT) {
			return true;
		}
	}
	return false;
}

static bool any_unknown(const struct tdb_dirs *dirs)
{
	size_t i;

	for (i = 0; i < dirs->num; i++) {
		if (dirs->dirs[i].tdb == UNKNOWN) {
			return true;
		}
	}
	return false;
}

static bool is_by_apply(const struct tdb_dirs *dirs)
{
	return dirs->ours && dirs->by != NULL &&
	       strcmp(dirs->by, "apply") == 0;
}

/* Why `use mmap = no` is called for; NULL: it is not */
static char *reason(TALLOC_CTX *mem_ctx, const struct mmap_facts *facts)
{
	const struct tdb_dir *dir = bad_dir(facts->dirs);
	/* who asked for it asked for it by any failure */
	bool any = facts->policy != ON_MMAP_FAIL_AUTO ||
		   is_by_apply(facts->dirs);

	if (dir != NULL) {
		return talloc_asprintf(
			mem_ctx, "'%s' (%s) has TDBs, and shared mappings do "
			"not work there%s: %s", dir->path, dir->whose,
			dir->tdb == UNFIT ? "" : " across nodes",
			dir->why != NULL ? dir->why : "mmap");
	}
	if (any && facts->failure != NULL) {
		return talloc_strdup(mem_ctx, facts->failure);
	}
	return NULL;
}

static struct mmap_decision decide_called_for(TALLOC_CTX *mem_ctx,
					      const struct mmap_facts *facts,
					      const char *why)
{
	struct mmap_decision decision = {};

	if (facts->mutexes) {
		decision.line = talloc_asprintf(
			mem_ctx, "WARNING: %s. `use mmap = no` is called for, "
			"but not set: this ctdbd uses `tdb mutexes`, with "
			"which smbd would not start. 'pingpong apply' on every node "
			"changes both for the next start of the whole cluster",
			why);
	} else if (facts->services) {
		decision.line = talloc_asprintf(
			mem_ctx, "WARNING: %s. `use mmap = no` is called for; "
			"it will be set when this node starts the next time",
			why);
	} else {
		decision.action = MMAP_SET;
		decision.line = talloc_asprintf(
			mem_ctx, "`use mmap = no` is set: %s", why);
	}
	return decision;
}

struct mmap_decision mmap_decide(TALLOC_CTX *mem_ctx,
				 const struct mmap_facts *given)
{
	struct mmap_facts facts = *given;
	const struct tdb_dirs *dirs = facts.dirs;
	struct mmap_decision decision = {};
	bool in_force = !dirs->use_mmap;
	bool set = dirs->ours && !dirs->staged;
	char *why = reason(mem_ctx, &facts);

	/* without CTDB no TDB has mutexes that are not Samba's own affair */
	facts.mutexes = facts.mutexes && dirs->clustering;
	if (set && facts.mutexes) {
		decision.action = MMAP_TAKE_BACK;
		decision.line = talloc_strdup(
			mem_ctx, "WARNING: `use mmap = no` is taken back: this "
			"ctdbd uses `tdb mutexes`, with which smbd would not "
			"start");
		in_force = false;
	} else if (dirs->staged && !facts.mutexes && !facts.services) {
		decision.action = MMAP_SET;
		decision.line = talloc_strdup(
			mem_ctx, "`use mmap = no` is set, as 'pingpong apply' "
			"has asked for");
	} else if (why != NULL && !in_force && !dirs->staged &&
		   facts.policy == ON_MMAP_FAIL_REPORT) {
		decision.line = talloc_asprintf(
			mem_ctx, "WARNING: %s. `use mmap = no` is called for "
			"and, by CTDB_PINGPONG_ON_MMAP_FAIL=report, not set",
			why);
	} else if (why != NULL && !in_force && !dirs->staged) {
		decision = decide_called_for(mem_ctx, &facts, why);
	} else if (why != NULL && set && !dirs->here &&
		   facts.policy != ON_MMAP_FAIL_REPORT) {
		/* it stays as long as any node has a reason */
		decision.action = MMAP_SET;
	} else if (why == NULL && set && dirs->here && !any_unknown(dirs)) {
		decision.action = MMAP_TAKE_BACK;
		decision.line = talloc_strdup(
			mem_ctx, "`use mmap = no` is taken back: shared "
			"mappings work again");
	}
	in_force = in_force || decision.action == MMAP_SET;
	decision.refuse = any_stale(dirs) && !in_force;
	talloc_free(why);
	return decision;
}

/* ---- what the store knows ----------------------------------------------- */

struct failure {
	TALLOC_CTX *mem_ctx;
	char *line;
};

static void look_for_failure(const char *path, int err,
			     const struct stored_record *record,
			     void *private_data)
{
	struct failure *failure = private_data;
	const struct stored_use *use = NULL;
	bool fresh;

	if (err != 0 || failure->line != NULL) {
		return;
	}
	use = &record->uses[USE_MMAP];
	fresh = stored_use_fresh(use, time(NULL), STORE_FRESH_S);
	if (fresh && use->scope == SCOPE_CLUSTER && use->fitness == UNFIT &&
	    !use->hung) {
		failure->line = talloc_asprintf(
			failure->mem_ctx, "on '%s' shared mappings are not "
			"coherent across nodes: %s", path, use->reason);
	}
}

static char *stored_failure(TALLOC_CTX *mem_ctx)
{
	struct failure failure = { .mem_ctx = mem_ctx };

	store_each(mem_ctx, STATEDIR, MOUNTINFO, look_for_failure, &failure);
	return failure.line;
}

/* ---- mutexes ------------------------------------------------------------ */

static bool conf_has_mutexes(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			     const struct options *options)
{
	static const char *const keys[] = { "tdb mutexes", NULL };
	struct tevent_req *req = NULL;
	const char *key = NULL;
	char *value = NULL;
	bool ok;
	int ret;

	req = ctdbconfig_send(mem_ctx, ev, &options->ctdb, "database", keys);
	if (req == NULL) {
		return true;
	}
	ok = tevent_req_poll(req, ev);
	ret = ok ? ctdbconfig_recv(req, mem_ctx, &value, &key) : EIO;
	talloc_free(req);
	return ret != 0 || value == NULL || strcmp(value, "false") != 0;
}

static void take_back_include(TALLOC_CTX *mem_ctx, struct tevent_context *ev)
{
	static const char *const argv[] = {
		TDBDIRS_SMBCONF, "--include-only", "reset", "use mmap", NULL,
	};
	struct tevent_req *req = NULL;

	req = command_send(mem_ctx, ev, argv, SET_MS);
	if (req != NULL) {
		tevent_req_poll(req, ev);
		talloc_free(req);
	}
}

bool mmap_without_mutexes(void)
{
	return access(NO_MUTEXES, F_OK) == 0;
}

bool mmap_prepare(struct tevent_context *ev, const struct options *options,
		  bool running)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	bool mutexes;
	int fd;

	if (running) {
		talloc_free(frame);
		return !mmap_without_mutexes();
	}
	mutexes = conf_has_mutexes(frame, ev, options);
	unlink(NO_MUTEXES);
	if (mutexes) {
		take_back_include(frame, ev);
	} else {
		fd = open(NO_MUTEXES, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
			  0600);
		if (fd != -1) {
			close(fd);
		}
	}
	talloc_free(frame);
	return mutexes;
}

/* ---- the agent's step --------------------------------------------------- */

struct mmap_state {
	struct tevent_context *ev;
	const struct options *options;
	bool mutexes;
	const bool *services;
	struct tdb_dirs *dirs;
	struct mmap_decision decision;
	const char **lines;
};

static void mmap_dirs_known(struct tevent_req *subreq);
static void mmap_changed(struct tevent_req *subreq);

struct tevent_req *mmap_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			     const struct options *options,
			     const char *worker, bool mutexes,
			     const bool *services)
{
	struct mmap_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;

	req = tevent_req_create(mem_ctx, &state, struct mmap_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->options = options;
	state->mutexes = mutexes;
	state->services = services;
	subreq = tdbdirs_send(state, ev, options, worker);
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq, mmap_dirs_known, req);
	return req;
}

static bool add_line(struct mmap_state *state, const char *line)
{
	return line != NULL && names_add(state, &state->lines, line);
}

/* NULL-terminated; argv[0] is the helper. */
static void change_argv(const struct mmap_state *state, const char *argv[8])
{
	const char *by = state->dirs->staged ? state->dirs->by : "agent";
	size_t n = 0;

	argv[n++] = TDBDIRS_SMBCONF;
	if (state->decision.action == MMAP_SET) {
		argv[n++] = "--by";
		argv[n++] = by;
		argv[n++] = "set";
		argv[n++] = "use mmap";
		argv[n++] = "no";
	} else {
		argv[n++] = "reset";
		argv[n++] = "use mmap";
	}
	argv[n] = NULL;
}

static void mmap_dirs_known(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct mmap_state *state = tevent_req_data(req, struct mmap_state);
	struct mmap_facts facts = {
		.policy = state->options->on_mmap_fail,
		.mutexes = state->mutexes,
		.services = *state->services,
	};
	const char *argv[8];
	const char *why = NULL;
	int ret;

	ret = tdbdirs_recv(subreq, state, &state->dirs, &why);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		add_line(state, talloc_asprintf(
			state, "WARNING: whether `use mmap = no` is called for "
			"is not known: %s", why));
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	facts.dirs = state->dirs;
	facts.failure = stored_failure(state);
	state->decision = mmap_decide(state, &facts);
	if (state->decision.action == MMAP_NOTHING) {
		add_line(state, state->decision.line);
		tevent_req_done(req);
		return;
	}
	change_argv(state, argv);
	subreq = command_send(state, state->ev, argv, SET_MS);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, mmap_changed, req);
}

static void mmap_changed(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct mmap_state *state = tevent_req_data(req, struct mmap_state);
	const char *why = NULL;
	char *output = NULL;
	int status = 0;
	int ret;

	ret = command_recv(subreq, state, &status, &output);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		why = strerror(ret);
	} else if (status != 0) {
		tdbdirs_smbconf_failed(state, status, output, &why);
	}
	if (why == NULL) {
		add_line(state, state->decision.line);
		tevent_req_done(req);
		return;
	}
	add_line(state, talloc_asprintf(
		state, "WARNING: `use mmap = no` could not be %s: %s",
		state->decision.action == MMAP_SET ? "set" : "taken back",
		why));
	/* then it is not in force */
	state->decision.refuse = any_stale(state->dirs) &&
				 state->dirs->use_mmap;
	tevent_req_done(req);
}

static const char *stale_line(TALLOC_CTX *mem_ctx,
			      const struct tdb_dirs *dirs)
{
	const struct tdb_dir *dir = bad_dir(dirs);

	return talloc_asprintf(
		mem_ctx, "REFUSED: '%s' (%s) is not fit for TDBs: %s. Put it "
		"on a local disk, or 'pingpong apply' and restart the cluster",
		dir->path, dir->whose, dir->why);
}

int mmap_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx, bool *refuse,
	      const char ***lines)
{
	struct mmap_state *state = tevent_req_data(req, struct mmap_state);
	int ret = channel_req_error(req);
	const char **first = NULL;
	size_t i;

	*refuse = ret == 0 && state->decision.refuse;
	if (*refuse) {
		names_add(state, &first, stale_line(state, state->dirs));
	}
	for (i = 0; state->lines != NULL && state->lines[i] != NULL; i++) {
		names_add(state, &first, state->lines[i]);
	}
	*lines = NULL;
	for (i = 0; first != NULL && first[i] != NULL; i++) {
		names_add(mem_ctx, lines, talloc_strdup(mem_ctx, first[i]));
	}
	tevent_req_received(req);
	return ret;
}
