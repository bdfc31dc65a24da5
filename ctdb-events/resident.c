/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Divisions: who asks; nodes without an agent; mounts that change; start.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config.h"
#include "core/member/mounts.h"
#include "ctdb-events/clusterlock.h"
#include "ctdb-events/command.h"
#include "ctdb-events/connected.h"
#include "ctdb-events/door.h"
#include "ctdb-events/log.h"
#include "ctdb-events/mmap.h"
#include "ctdb-events/mountwatch.h"
#include "ctdb-events/peers.h"
#include "ctdb-events/portholder.h"
#include "ctdb-events/resident.h"
#include "ctdb-events/rounds.h"

#define MOUNTINFO "/proc/self/mountinfo"

/* How long an older agent may take to go, and to leave the port */
#define QUIT_MS 3000
#define PORT_TRIES 60
#define PORT_PAUSE_US 50000

/* Another round after mounts have changed and been quiet */
#define SETTLED_S 10

/* The longest that nodes without an agent are not looked for again */
#define UNREACHED_S 60

struct resident {
	struct tevent_context *ev;
	const struct options *options;
	const char *worker;
	int life;
	const char *end;		/* why it ends; NULL: it does not */
	struct ctdb_nodes *nodes;	/* as they were at the start */
	struct greeting self;
	struct tls_key *key;		/* NULL: plain */
	struct reach reach;
	bool *greeted;			/* by PNN, NODES_MAX */
	struct peers *peers;
	struct door *door;
	struct rounds_config config;
	struct rounds *rounds;
	char *mounts;			/* the targets' lines in mountinfo */
	struct tevent_timer *settling;	/* they have changed; or NULL */
	/* Connected nodes whose agents cannot be reached, a line each;
	 * NULL-terminated, or NULL */
	const char **unreached;
};

static const char *const no_lines[] = { NULL };

/* ---- who asks ----------------------------------------------------------- */

static const char *warned(TALLOC_CTX *mem_ctx, const char *line)
{
	static const char refused[] = "REFUSED: ";
	size_t len = sizeof(refused) - 1;

	if (strncmp(line, refused, len) != 0) {
		return line;
	}
	return talloc_asprintf(mem_ctx, "WARNING (MODE=warn, else REFUSED): "
			       "%s", line + len);
}

/* What a healthy node has to say in monitor it says every few seconds. */
static const char *const *lines_for(TALLOC_CTX *mem_ctx,
				    const struct resident *resident,
				    const char *what, bool refused)
{
	bool quiet = !refused && strcmp(what, "monitor") == 0;
	const char **lines = NULL;
	size_t i;

	if (quiet) {
		return resident->unreached != NULL
			       ? (const char *const *)resident->unreached
			       : no_lines;
	}
	lines = rounds_lines(mem_ctx, resident->rounds, true);
	for (i = 0; lines != NULL && lines[i] != NULL; i++) {
		if (!resident->options->enforce) {
			lines[i] = warned(lines, lines[i]);
		}
	}
	return lines != NULL ? (const char *const *)lines : no_lines;
}

/* Returns false while there is nothing to answer. */
static bool answer(struct resident *resident, const char *what)
{
	bool init = strcmp(what, "init") == 0;
	enum standing standing = rounds_standing(resident->rounds, !init);
	bool unfit = standing == STANDING_REFUSED;
	bool refused = unfit && resident->options->enforce;
	TALLOC_CTX *frame = NULL;

	if (standing == STANDING_UNKNOWN) {
		return false;
	}
	frame = talloc_new(resident);
	door_answer(resident->door, what, refused ? DOOR_REFUSED : DOOR_OK,
		    lines_for(frame, resident, what, unfit));
	talloc_free(frame);
	if (!init && !refused) {
		resident->self.serving = true;
	}
	return true;
}

/* ---- what is known, for "pingpong status" ------------------------------- */

static bool add_line(TALLOC_CTX *mem_ctx, const char ***lines, char *line)
{
	return line != NULL && names_add(mem_ctx, lines, line);
}

/* The nodes as the last check that looked for them saw them */
static bool add_nodes(TALLOC_CTX *mem_ctx, const struct rounds *rounds,
		      const char ***lines)
{
	const struct across_result *result = NULL;
	const struct finding *finding = NULL;
	bool ok = true;
	unsigned i;

	for (i = 0; result == NULL; i++) {
		finding = rounds_finding(rounds, i);
		if (finding == NULL) {
			return true;
		}
		result = finding->result;
	}
	for (i = 0; ok && i < result->num_peers; i++) {
		const struct across_peer *peer = &result->peers[i];
		const char *name = across_node_name(mem_ctx, peer->node);

		ok = add_line(mem_ctx, lines, talloc_asprintf(
			mem_ctx, "%s: its agent %s%s", name,
			peer->reached ? "answers" : "cannot be reached: ",
			peer->reached ? "" : peer->why));
	}
	return ok;
}

static bool add_findings(TALLOC_CTX *mem_ctx, const struct rounds *rounds,
			 const char ***lines)
{
	const char **found = rounds_lines(mem_ctx, rounds, true);

	for (; found != NULL && *found != NULL; found++) {
		bool ok = names_add(mem_ctx, lines, *found);

		if (!ok) {
			return false;
		}
	}
	return found != NULL;
}

static void answer_status(struct resident *resident)
{
	TALLOC_CTX *frame = talloc_new(resident);
	const char **lines = NULL;
	bool ok;

	ok = add_line(frame, &lines, talloc_asprintf(
		frame, "agent " PINGPONG_VERSION " of %s, process %d, mode %s",
		across_node_name(frame, resident->nodes->own), (int)getpid(),
		resident->options->enforce ? "enforce" : "warn"));
	if (ok) {
		ok = add_line(frame, &lines, talloc_asprintf(
			frame, "listens for other nodes on %s, port %u: %s",
			resident->nodes->own->text,
			(unsigned)resident->options->port,
			resident->key != NULL
				? "TLS with the key of CTDB_PINGPONG_KEY"
				: "plain, by address (no CTDB_PINGPONG_KEY)"));
	}
	if (ok) {
		ok = add_nodes(frame, resident->rounds, &lines);
	}
	if (ok) {
		ok = add_findings(frame, resident->rounds, &lines);
	}
	door_answer(resident->door, "status", ok ? DOOR_OK : DOOR_CHECKING,
		    lines != NULL ? (const char *const *)lines : no_lines);
	talloc_free(frame);
}

/* For one who reaches the other nodes himself: see door.h */
static void answer_reach(struct resident *resident)
{
	const struct finding *lock = rounds_finding(resident->rounds, 0);
	const char *directory = lock->target->directory;
	const char *key = resident->options->key;
	TALLOC_CTX *frame = talloc_new(resident);
	const char *lines[] = {
		talloc_asprintf(frame, "port %u",
				(unsigned)resident->options->port),
		talloc_asprintf(frame, "key %s", key != NULL ? key : ""),
		talloc_asprintf(frame, "own %s", resident->nodes->own->text),
		talloc_asprintf(frame, "lock %s",
				directory != NULL ? directory : ""),
		NULL,
	};

	door_answer(resident->door, "reach", DOOR_OK, lines);
	talloc_free(frame);
}

/* ---- questions ---------------------------------------------------------- */

static void asked_event(struct resident *resident, const char *what)
{
	bool init = strcmp(what, "init") == 0;
	bool answered = false;
	int ret;

	if (init) {
		ret = rounds_begin(resident->rounds);
		if (ret != 0) {
			door_answer(resident->door, what, DOOR_REFUSED,
				    no_lines);
		}
		return;
	}
	rounds_past_setup(resident->rounds);
	if (strcmp(what, "monitor") == 0) {
		resident->self.serving = true;
	}
	answered = answer(resident, what);
	if (answered) {
		return;
	}
	ret = rounds_begin(resident->rounds);
	if (ret != 0 || resident->self.serving) {
		door_answer(resident->door, what, DOOR_CHECKING, no_lines);
	}
}

static void asked_path(struct resident *resident, const char *what)
{
	const char *path = what + sizeof(DOOR_CHECK) - 1;
	int ret;

	ret = rounds_begin_path(resident->rounds, path);
	if (ret != 0) {
		const char *const lines[] = {
			ret == ENOENT ? "no share that is checked has this "
					"path" : strerror(ret), NULL,
		};

		door_answer(resident->door, what, DOOR_CHECKING, lines);
	}
}

static void asked(const char *what, void *private_data)
{
	struct resident *resident = talloc_get_type_abort(private_data,
							  struct resident);

	if (strcmp(what, "init") == 0 || strcmp(what, "startup") == 0 ||
	    strcmp(what, "monitor") == 0) {
		asked_event(resident, what);
	} else if (strcmp(what, "status") == 0) {
		answer_status(resident);
	} else if (strcmp(what, "reach") == 0) {
		answer_reach(resident);
	} else if (strncmp(what, DOOR_CHECK, sizeof(DOOR_CHECK) - 1) == 0) {
		asked_path(resident, what);
	} else if (strcmp(what, "quit") == 0) {
		resident->end = "a newer agent takes over";
	} else {
		door_answer(resident->door, what, DOOR_CHECKING, no_lines);
	}
}

/* ---- nodes without an agent --------------------------------------------- */

static const struct across_peer *next_unreached(const struct rounds *rounds,
						unsigned *i)
{
	const struct finding *lock = rounds_finding(rounds, 0);
	unsigned num = lock->result != NULL ? lock->result->num_peers : 0;

	while (*i < num) {
		const struct across_peer *peer = &lock->result->peers[(*i)++];

		if (!peer->reached) {
			return peer;
		}
	}
	return NULL;
}

static void connected_read(struct tevent_req *subreq)
{
	struct resident *resident = tevent_req_callback_data(subreq,
							     struct resident);
	const struct across_peer *peer = NULL;
	bool *connected = NULL;
	unsigned i = 0;
	int ret;

	TALLOC_FREE(resident->unreached);
	ret = connected_recv(subreq, resident, &connected);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		return;
	}
	while ((peer = next_unreached(resident->rounds, &i)) != NULL) {
		char *line = NULL;

		if (!connected[peer->node->pnn]) {
			continue;
		}
		line = talloc_asprintf(
			resident, "WARNING: %s is connected, but its agent "
			"cannot be reached: %s. Is pingpong installed there, "
			"00.pingpong enabled, and TCP port %u open (firewall, "
			"SELinux, AppArmor)? Until then nothing is known of "
			"locks between it and this node",
			across_node_name(connected, peer->node), peer->why,
			(unsigned)resident->options->port);
		if (line != NULL) {
			names_add(resident, &resident->unreached, line);
			talloc_steal(resident->unreached, line);
		}
	}
	talloc_free(connected);
	if (resident->unreached != NULL &&
	    resident->options->recheck_interval_s > UNREACHED_S) {
		rounds_hurry(resident->rounds, UNREACHED_S);
	}
}

static void look_for_unreached(struct resident *resident)
{
	struct tevent_req *subreq = NULL;
	unsigned i = 0;

	if (!resident->self.serving ||
	    next_unreached(resident->rounds, &i) == NULL) {
		TALLOC_FREE(resident->unreached);
		return;
	}
	subreq = connected_send(resident, resident->ev);
	if (subreq != NULL) {
		tevent_req_set_callback(subreq, connected_read, resident);
	}
}

/* ---- mounts that change ------------------------------------------------- */

/* The mounts that the targets lie on, a line each */
static char *mounts_of_targets(struct resident *resident)
{
	char *lines = talloc_strdup(resident, "");
	const struct finding *finding = NULL;
	size_t i;

	for (i = 0; (finding = rounds_finding(resident->rounds, i)) != NULL;
	     i++) {
		const char *directory = finding->target->directory;
		struct mount_line *mount = NULL;
		int ret;

		if (directory == NULL) {
			continue;
		}
		ret = mount_by_path(resident, MOUNTINFO, directory, &mount);
		lines = talloc_asprintf_append(lines, "%s\n", ret == 0
					       ? mount->line : "");
		talloc_free(mount);
	}
	return lines;
}

static void keep_mounts(struct resident *resident)
{
	talloc_free(resident->mounts);
	resident->mounts = mounts_of_targets(resident);
}

static void mounts_settled(struct tevent_context *ev, struct tevent_timer *te,
			   struct timeval now, void *private_data)
{
	struct resident *resident = talloc_get_type_abort(private_data,
							  struct resident);

	(void)ev;
	(void)te;
	(void)now;
	resident->settling = NULL;
	rounds_begin(resident->rounds);
}

static void mounts_changed(void *private_data)
{
	struct resident *resident = talloc_get_type_abort(private_data,
							  struct resident);
	char *mounts = mounts_of_targets(resident);
	bool same = mounts != NULL && resident->mounts != NULL &&
		    strcmp(mounts, resident->mounts) == 0;

	talloc_free(mounts);
	if (same) {
		return;
	}
	keep_mounts(resident);
	TALLOC_FREE(resident->settling);
	resident->settling = tevent_add_timer(
		resident->ev, resident,
		tevent_timeval_current_ofs(SETTLED_S, 0), mounts_settled,
		resident);
}

/* ---- rounds ------------------------------------------------------------- */

/* A check that began before the question is no answer to it. */
static bool path_answered(const char *what, uint64_t asked_ms,
			  void *private_data)
{
	const struct resident *resident = talloc_get_type_abort(
		private_data, struct resident);
	const struct finding *finding = rounds_finding_of(
		resident->rounds, what + sizeof(DOOR_CHECK) - 1);

	return finding == NULL || finding->begun_ms >= asked_ms;
}

/* A round is over; another one is for those who asked in the middle of it. */
static void answer_paths(struct resident *resident)
{
	const char **lines = rounds_lines(resident, resident->rounds, true);
	const char *left = NULL;

	left = door_answer_if(resident->door, DOOR_CHECK, DOOR_OK,
			      lines != NULL ? (const char *const *)lines
					    : no_lines, path_answered);
	talloc_free(lines);
	if (left != NULL) {
		asked_path(resident, left);
	}
}

static void news(bool round_over, void *private_data)
{
	struct resident *resident = talloc_get_type_abort(private_data,
							  struct resident);

	answer(resident, "init");
	if (!round_over) {
		return;
	}
	answer(resident, "startup");
	answer_paths(resident);
	if (resident->settling == NULL) {
		keep_mounts(resident);
	}
	look_for_unreached(resident);
}

static const char *resolve(TALLOC_CTX *mem_ctx, const char *place,
			   void *private_data)
{
	const struct resident *resident = talloc_get_type_abort(
		private_data, struct resident);

	return talloc_strdup(mem_ctx,
			     rounds_resolve(resident->rounds, place));
}

static void greeted(unsigned pnn, void *private_data)
{
	struct resident *resident = talloc_get_type_abort(private_data,
							  struct resident);

	resident->greeted[pnn] = true;
}

/* ---- start -------------------------------------------------------------- */

/* An older agent, of a ctdbd before this one */
static void send_away(TALLOC_CTX *mem_ctx)
{
	enum door_outcome outcome;
	const char **lines = NULL;

	door_ask(mem_ctx, RUNDIR "/" DOOR_NAME, "quit", QUIT_MS, &outcome,
		 &lines);
}

static int read_nodes(struct resident *resident, const char **why)
{
	struct tevent_req *req = NULL;

	req = nodes_send(resident, resident->ev, &resident->options->ctdb);
	if (req == NULL || !tevent_req_poll(req, resident->ev)) {
		return ENOMEM;
	}
	return nodes_recv(req, resident, &resident->nodes, why);
}

/* What is wrong with it the first round says. */
static int read_lock(struct resident *resident)
{
	struct tevent_req *req = NULL;
	struct clusterlock lock;
	int ret;

	req = clusterlock_send(resident, resident->ev,
			       &resident->options->ctdb);
	if (req == NULL || !tevent_req_poll(req, resident->ev)) {
		return ENOMEM;
	}
	clusterlock_recv(req, req, &lock);
	ret = rounds_set_lock(resident->rounds, lock.directory);
	talloc_free(req);
	return ret;
}

static int read_key(struct resident *resident, const char **why)
{
	const char *path = resident->options->key;
	int ret;

	if (path == NULL) {
		return 0;
	}
	ret = tls_key_read(resident, path, &resident->key);
	if (ret == EPERM) {
		*why = talloc_asprintf(resident, "CTDB_PINGPONG_KEY='%s': "
				       "must be root's, with mode 0600",
				       path);
	} else if (ret == EINVAL) {
		*why = talloc_asprintf(resident, "CTDB_PINGPONG_KEY='%s': "
				       "must hold %u bytes or more", path,
				       TLS_KEY_MIN);
	} else if (ret != 0) {
		*why = talloc_asprintf(resident, "CTDB_PINGPONG_KEY='%s': %s",
				       path, strerror(ret));
	}
	return ret;
}

static int open_peers(struct resident *resident)
{
	const struct peers_config config = {
		.address = resident->nodes->own->address,
		.port = resident->options->port,
		.paths = &resident->options->ctdb,
		.own = &resident->self,
		.key = resident->key,
		.worker = resident->worker,
		.resolve_fn = resolve,
		.greeted_fn = greeted,
		.private_data = resident,
	};
	unsigned tries;
	int ret = 0;

	for (tries = 0; tries < PORT_TRIES; tries++) {
		ret = peers_open(resident, resident->ev, &config,
				 &resident->peers);
		if (ret != EADDRINUSE) {
			break;
		}
		usleep(PORT_PAUSE_US);
	}
	return ret;
}

static void life_over(struct tevent_context *ev, struct tevent_fd *fde,
		      uint16_t flags, void *private_data)
{
	struct resident *resident = talloc_get_type_abort(private_data,
							  struct resident);

	(void)ev;
	(void)fde;
	(void)flags;
	resident->end = "ctdbd has ended";
}

static void terminated(struct tevent_context *ev, struct tevent_signal *se,
		       int signum, int count, void *siginfo,
		       void *private_data)
{
	struct resident *resident = talloc_get_type_abort(private_data,
							  struct resident);

	(void)ev;
	(void)se;
	(void)signum;
	(void)count;
	(void)siginfo;
	resident->end = "SIGTERM";
}

static void child_ended(struct tevent_context *ev, struct tevent_signal *se,
			int signum, int count, void *siginfo,
			void *private_data)
{
	(void)ev;
	(void)se;
	(void)signum;
	(void)count;
	(void)siginfo;
	(void)private_data;
	command_reap_others();
}

static int open_doors(struct resident *resident, const char **why)
{
	int ret;

	send_away(resident);
	ret = open_peers(resident);
	if (ret != 0) {
		*why = talloc_asprintf(
			resident, "pingpong's agent cannot listen on port %u "
			"of %s: %s%s", (unsigned)resident->options->port,
			resident->nodes->own->text, strerror(ret),
			ret == EADDRINUSE ? portholder(
				resident, resident->options->port) : "");
		return ret;
	}
	ret = door_open(resident, resident->ev, RUNDIR "/" DOOR_NAME, asked,
			resident, &resident->door);
	if (ret != 0) {
		*why = talloc_asprintf(resident, "'%s': %s",
				       RUNDIR "/" DOOR_NAME, strerror(ret));
	}
	return ret;
}

static int prepare_rounds(struct resident *resident)
{
	resident->config = (struct rounds_config){
		.options = resident->options,
		.worker = resident->worker,
		.reach = &resident->reach,
		.greeted = resident->greeted,
		.self = &resident->self,
		.news_fn = news,
		.private_data = resident,
	};
	resident->rounds = rounds_create(resident, resident->ev,
					 &resident->config);
	return resident->rounds != NULL ? 0 : ENOMEM;
}

static int resident_prepare(struct resident *resident, const char **why)
{
	struct tevent_signal *term = NULL, *child = NULL;
	struct mountwatch *watch = NULL;
	struct tevent_fd *fde = NULL;
	int ret;

	ret = read_nodes(resident, why);
	if (ret != 0) {
		return ret;
	}
	if (resident->nodes->own == NULL) {
		*why = "CTDB's nodes: none of them is this host";
		return ENOENT;
	}
	ret = prepare_rounds(resident);
	if (ret == 0) {
		ret = read_lock(resident);
	}
	if (ret == 0) {
		ret = read_key(resident, why);
	}
	if (ret != 0) {
		return ret;
	}
	resident->self.pnn = resident->nodes->own->pnn;
	resident->reach = (struct reach){
		.from = resident->nodes->own->address,
		.port = resident->options->port,
		.own = &resident->self,
		.key = resident->key,
		.pumps = resident,
	};
	fde = tevent_add_fd(resident->ev, resident, resident->life,
			    TEVENT_FD_READ, life_over, resident);
	term = tevent_add_signal(resident->ev, resident, SIGTERM, 0,
				 terminated, resident);
	child = tevent_add_signal(resident->ev, resident, SIGCHLD, 0,
				  child_ended, resident);
	if (fde == NULL || term == NULL || child == NULL) {
		return ENOMEM;
	}
	watch = mountwatch_create(resident, resident->ev, mounts_changed,
				  resident);
	if (watch == NULL) {
		return ENOMEM;
	}
	keep_mounts(resident);
	mkdir(RUNDIR, 0755);
	resident->config.mutexes = mmap_prepare(
		resident->ev, resident->options, resident->self.running);
	return open_doors(resident, why);
}

int resident_create(TALLOC_CTX *mem_ctx, const struct options *options,
		    const char *worker, int life, bool running,
		    struct resident **out, const char **why)
{
	struct resident *resident = talloc_zero(mem_ctx, struct resident);
	int ret;

	*why = NULL;
	if (resident == NULL) {
		return ENOMEM;
	}
	resident->ev = tevent_context_init(resident);
	resident->options = options;
	resident->worker = worker;
	resident->life = life;
	resident->self.running = running;
	resident->greeted = talloc_zero_array(resident, bool, NODES_MAX);
	snprintf(resident->self.version, sizeof(resident->self.version),
		 "%s", PINGPONG_VERSION);
	if (resident->ev == NULL || resident->greeted == NULL) {
		return ENOMEM;
	}
	ret = resident_prepare(resident, why);
	if (ret != 0) {
		return ret;
	}
	*out = resident;
	return 0;
}

void resident_serve(struct resident *resident)
{
	int ret = 0;

	while (resident->end == NULL && ret == 0) {
		ret = tevent_loop_once(resident->ev);
	}
	log_line("the agent ends: %s",
		 ret == 0 ? resident->end : strerror(errno));
	TALLOC_FREE(resident->rounds);
	TALLOC_FREE(resident->door);
	TALLOC_FREE(resident->peers);
}
