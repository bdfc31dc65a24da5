/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config.h"
#include "core/member/mounts.h"
#include "core/verdict/store.h"
#include "ctdb-events/across.h"
#include "ctdb-events/clusterlock.h"
#include "ctdb-events/command.h"
#include "ctdb-events/door.h"
#include "ctdb-events/log.h"
#include "ctdb-events/mountwatch.h"
#include "ctdb-events/peers.h"
#include "ctdb-events/resident.h"
#include "ctdb-events/words.h"

#define CLUSTER_LOCK "cluster-lock"
#define MOUNTINFO "/proc/self/mountinfo"

/* How long an older agent may take to go, and to leave the port */
#define QUIT_MS 3000
#define PORT_TRIES 60
#define PORT_PAUSE_US 50000

/* A re-check may take this long */
#define RECHECK_MS 10000

/* When the next one comes: to confirm a verdict that would turn; while this
 * node is unfit; after its mount has changed and has been quiet */
#define CONFIRM_S 1
#define UNFIT_S 5
#define SETTLED_S 10

struct resident {
	struct tevent_context *ev;
	const struct options *options;
	const char *worker;
	int life;
	const char *end;		/* why it ends; NULL: it does not */
	struct ctdb_nodes *nodes;	/* as they were at the start */
	char *directory;		/* of the cluster lock; NULL: none */
	struct greeting self;
	struct tls_key *key;		/* NULL: plain */
	struct reach reach;
	bool *greeted;			/* by PNN, NODES_MAX */
	struct peers *peers;
	struct door *door;

	struct inquiry *inquiry;	/* under way, or NULL */
	struct tevent_timer *next;	/* the next one, or NULL */
	char *mount;			/* the lock's line in mountinfo */
	struct tevent_timer *settling;	/* it has changed; or NULL */
	/* the last verdict */
	bool known;
	bool unfit;
	bool doubted;			/* the last check saw it otherwise */
	const char **lines;		/* NULL-terminated */
};

/* One check, with what it goes by */
struct inquiry {
	struct resident *resident;
	struct ctdb_nodes *nodes;
	struct clusterlock lock;
	struct across across;
	const char **lines;
	bool unfit;
};

static int check_start(struct resident *resident);
static void check_nodes_read(struct tevent_req *subreq);
static void check_lock_read(struct tevent_req *subreq);
static void check_done(struct tevent_req *subreq);

/* ---- the end of a check ------------------------------------------------- */

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

static void answer(struct resident *resident, const char *what)
{
	static const char *const none[] = { NULL };
	bool refused = resident->unfit && resident->options->enforce;
	bool quiet = !resident->unfit && strcmp(what, "init") != 0;

	door_answer(resident->door, what, refused ? DOOR_REFUSED : DOOR_OK,
		    quiet ? none : resident->lines);
}

static void next_check(struct tevent_context *ev, struct tevent_timer *te,
		       struct timeval now, void *private_data)
{
	struct resident *resident = talloc_get_type_abort(private_data,
							  struct resident);

	(void)ev;
	(void)te;
	(void)now;
	resident->next = NULL;
	if (resident->inquiry == NULL) {
		check_start(resident);
	}
}

static void schedule(struct resident *resident)
{
	unsigned seconds = resident->options->recheck_interval_s;

	if (resident->doubted) {
		seconds = CONFIRM_S;
	} else if (resident->unfit && seconds > UNFIT_S) {
		seconds = UNFIT_S;
	}
	TALLOC_FREE(resident->next);
	resident->next = tevent_add_timer(
		resident->ev, resident, tevent_timeval_current_ofs(seconds, 0),
		next_check, resident);
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

static void take_verdict(struct resident *resident, struct inquiry *inquiry)
{
	bool turned = resident->known && resident->unfit != inquiry->unfit;
	const char **line = NULL;

	if (inquiry->unfit && !resident->options->enforce) {
		inquiry->lines[0] = warned(inquiry, inquiry->lines[0]);
	}
	TALLOC_FREE(resident->lines);
	resident->lines = copy_lines(resident, inquiry->lines);
	if (resident->lines == NULL) {
		resident->end = "no memory";
		return;
	}
	resident->unfit = inquiry->unfit;
	resident->known = true;
	if (!resident->unfit || !resident->options->enforce) {
		resident->self.running = true;
	}
	/* what is asked for in an event the script logs */
	for (line = resident->lines; turned && *line != NULL; line++) {
		log_line("%s", *line);
	}
}

/* A node that runs is turned by two checks that agree, not by one. */
static void check_end(struct inquiry *inquiry)
{
	struct resident *resident = inquiry->resident;
	bool turns = resident->self.running &&
		     resident->unfit != inquiry->unfit;

	if (turns && !resident->doubted) {
		resident->doubted = true;
	} else {
		resident->doubted = false;
		take_verdict(resident, inquiry);
	}
	resident->inquiry = NULL;
	talloc_free(inquiry);
	if (resident->end != NULL) {
		return;
	}
	answer(resident, "init");
	answer(resident, "startup");
	schedule(resident);
}

/* Ends a check with one line. */
static void check_say(struct inquiry *inquiry, bool unfit, const char *line)
{
	const char **lines = NULL;
	bool ok = false;

	if (line != NULL) {
		ok = names_add(inquiry, &lines, line);
	}
	if (!ok) {
		static const char *const none[] = { NULL };

		door_answer(inquiry->resident->door, "init", DOOR_REFUSED,
			    none);
		inquiry->resident->inquiry = NULL;
		talloc_free(inquiry);
		return;
	}
	inquiry->lines = lines;
	inquiry->unfit = unfit;
	check_end(inquiry);
}

/* ---- what is stored ----------------------------------------------------- */

/* A refusal by what was found with other nodes not long ago; or NULL */
static char *stored_refusal(struct inquiry *inquiry)
{
	unsigned max_age_s = inquiry->resident->options->max_age_s;
	const struct stored_use *use = NULL;
	struct stored_record *record = NULL;
	time_t now = time(NULL);
	bool fresh;
	int ret;

	ret = store_lookup(inquiry, STATEDIR, MOUNTINFO, inquiry->lock.directory,
			   &record);
	if (ret != 0) {
		return NULL;
	}
	use = &record->uses[USE_CLUSTER_LOCK];
	fresh = stored_use_fresh(use, now, max_age_s);
	if (!fresh || use->scope != SCOPE_CLUSTER || use->fitness != UNFIT) {
		return NULL;
	}
	return talloc_asprintf(
		inquiry, "REFUSED: '%s' was found unfit for the cluster lock "
		"%lld s ago with %s: %s. When it has been mended, prove it "
		"with 'pingpong check', or 'pingpong forget %s'",
		inquiry->lock.directory, (long long)(now - use->when),
		use->with, use->reason, inquiry->lock.directory);
}

/* Which run speaks for this node: the one that it refuses by, else one that
 * it goes on by. */
static void record(struct inquiry *inquiry, const struct across_result *result)
{
	const struct run_result *run = result->local_result;
	const struct verdict *verdict = result->local_verdict;
	const char *with = "this node alone";
	unsigned i;
	int ret;

	for (i = 0; i < result->num_peers; i++) {
		const struct across_peer *peer = &result->peers[i];
		bool speaks = result->refused_by != NULL
				      ? peer == result->refused_by
				      : peer->tested && peer->fitness == FIT;

		if (speaks && peer->verdict != NULL) {
			run = peer->result;
			verdict = peer->verdict;
			with = across_node_name(inquiry, peer->node);
		}
	}
	if (run == NULL || run->num_members == 0) {
		return;
	}
	ret = store_write(STATEDIR, run->members[0], verdict,
			  USE_BIT(inquiry->across.use), time(NULL), with);
	if (ret != 0) {
		log_line("the verdict on '%s' could not be stored: %s",
			 inquiry->across.directory, strerror(ret));
	}
}

/* ---- a check ------------------------------------------------------------ */

static int check_start(struct resident *resident)
{
	struct inquiry *inquiry = talloc_zero(resident, struct inquiry);
	struct tevent_req *subreq = NULL;

	if (inquiry == NULL) {
		return ENOMEM;
	}
	inquiry->resident = resident;
	subreq = nodes_send(inquiry, resident->ev, &resident->options->ctdb);
	if (subreq == NULL) {
		talloc_free(inquiry);
		return ENOMEM;
	}
	tevent_req_set_callback(subreq, check_nodes_read, inquiry);
	resident->inquiry = inquiry;
	return 0;
}

static void check_nodes_read(struct tevent_req *subreq)
{
	struct inquiry *inquiry = tevent_req_callback_data(subreq, struct inquiry);
	struct resident *resident = inquiry->resident;
	const char *why = NULL;
	int ret;

	ret = nodes_recv(subreq, inquiry, &inquiry->nodes, &why);
	TALLOC_FREE(subreq);
	if (ret == 0 && inquiry->nodes->own == NULL) {
		why = "CTDB's nodes: none of them is this host";
		ret = ENOENT;
	}
	if (ret != 0) {
		check_say(inquiry, true, talloc_asprintf(inquiry, "REFUSED: %s",
						       why));
		return;
	}
	subreq = clusterlock_send(inquiry, resident->ev,
				  &resident->options->ctdb);
	if (subreq == NULL) {
		check_say(inquiry, true, NULL);
		return;
	}
	tevent_req_set_callback(subreq, check_lock_read, inquiry);
}

static void check_across(struct inquiry *inquiry)
{
	struct resident *resident = inquiry->resident;
	struct tevent_req *subreq = NULL;

	inquiry->across = (struct across){
		.options = resident->options,
		.worker = resident->worker,
		.nodes = inquiry->nodes,
		.reach = &resident->reach,
		.greeted = resident->greeted,
		.name = CLUSTER_LOCK,
		.directory = inquiry->lock.directory,
		.use = USE_CLUSTER_LOCK,
		.door = resident->self.running ? DOOR_AGENT : DOOR_INIT,
		.timeout_ms = resident->self.running
				      ? RECHECK_MS
				      : resident->options->timeout_s * 1000,
	};
	subreq = across_send(inquiry, resident->ev, &inquiry->across);
	if (subreq == NULL) {
		check_say(inquiry, true, NULL);
		return;
	}
	tevent_req_set_callback(subreq, check_done, inquiry);
}

static void check_lock_read(struct tevent_req *subreq)
{
	struct inquiry *inquiry = tevent_req_callback_data(subreq, struct inquiry);
	struct resident *resident = inquiry->resident;
	char *line = NULL;
	int ret;

	ret = clusterlock_recv(subreq, inquiry, &inquiry->lock);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		check_say(inquiry, true, talloc_asprintf(
			inquiry, "REFUSED: the cluster lock of ctdb.conf%s%s "
			"cannot be read: %s",
			inquiry->lock.value != NULL ? " = " : "",
			inquiry->lock.value != NULL ? inquiry->lock.value : "",
			strerror(ret)));
		return;
	}
	talloc_free(resident->directory);
	resident->directory = talloc_strdup(resident,
					    inquiry->lock.directory);
	if (inquiry->lock.kind == CLUSTERLOCK_NONE) {
		check_say(inquiry, false, talloc_strdup(
			inquiry, "no cluster lock is set in ctdb.conf: nothing "
			"to check before this node joins"));
		return;
	}
	if (inquiry->lock.kind == CLUSTERLOCK_HELPER) {
		check_say(inquiry, false, talloc_asprintf(
			inquiry, "the cluster lock is no file but '%s': "
			"nothing to check before this node joins",
			inquiry->lock.value));
		return;
	}
	if (!resident->self.running) {
		line = stored_refusal(inquiry);
	}
	if (line != NULL) {
		check_say(inquiry, true, line);
		return;
	}
	check_across(inquiry);
}

static void check_done(struct tevent_req *subreq)
{
	struct inquiry *inquiry = tevent_req_callback_data(subreq, struct inquiry);
	struct across_result *result = NULL;
	int ret;

	ret = across_recv(subreq, inquiry, &result);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		check_say(inquiry, true, NULL);
		return;
	}
	inquiry->unfit = words_of_check(inquiry, &inquiry->across, result,
					&inquiry->lines);
	if (inquiry->lines == NULL) {
		check_say(inquiry, true, NULL);
		return;
	}
	record(inquiry, result);
	check_end(inquiry);
}

/* ---- mounts that change ------------------------------------------------- */

static char *mount_of_lock(struct resident *resident)
{
	struct mount_line *mount = NULL;
	char *line = NULL;
	int ret;

	if (resident->directory == NULL) {
		return NULL;
	}
	ret = mount_by_path(resident, MOUNTINFO, resident->directory,
			    &mount);
	if (ret == 0) {
		line = talloc_strdup(resident, mount->line);
		talloc_free(mount);
	}
	return line;
}

static void mount_settled(struct tevent_context *ev, struct tevent_timer *te,
			  struct timeval now, void *private_data)
{
	struct resident *resident = talloc_get_type_abort(private_data,
							  struct resident);

	(void)ev;
	(void)te;
	(void)now;
	resident->settling = NULL;
	if (resident->inquiry == NULL) {
		check_start(resident);
	}
}

static void mounts_changed(void *private_data)
{
	struct resident *resident = talloc_get_type_abort(private_data,
							  struct resident);
	char *line = mount_of_lock(resident);
	bool same = line == resident->mount ||
		    (line != NULL && resident->mount != NULL &&
		     strcmp(line, resident->mount) == 0);

	if (same) {
		talloc_free(line);
		return;
	}
	talloc_free(resident->mount);
	resident->mount = line;
	TALLOC_FREE(resident->settling);
	resident->settling = tevent_add_timer(
		resident->ev, resident,
		tevent_timeval_current_ofs(SETTLED_S, 0), mount_settled,
		resident);
}

/* ---- who asks ----------------------------------------------------------- */

static void asked(const char *what, void *private_data)
{
	struct resident *resident = talloc_get_type_abort(private_data,
							  struct resident);
	static const char *const none[] = { NULL };
	bool init = strcmp(what, "init") == 0;
	int ret = 0;

	if (strcmp(what, "quit") == 0) {
		resident->end = "a newer agent takes over";
		return;
	}
	if (!init && strcmp(what, "startup") != 0 &&
	    strcmp(what, "monitor") != 0) {
		door_answer(resident->door, what, DOOR_REFUSED, none);
		return;
	}
	if (!init && resident->known) {
		answer(resident, what);
		return;
	}
	if (resident->inquiry == NULL) {
		ret = check_start(resident);
	}
	if (ret != 0 || strcmp(what, "monitor") == 0) {
		door_answer(resident->door, what, DOOR_CHECKING, none);
	}
}

static const char *resolve(TALLOC_CTX *mem_ctx, const char *place,
			   void *private_data)
{
	const struct resident *resident = talloc_get_type_abort(
		private_data, struct resident);

	if (strcmp(place, CLUSTER_LOCK) != 0) {
		return NULL;
	}
	return talloc_strdup(mem_ctx, resident->directory);
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
	ret = clusterlock_recv(req, req, &lock);
	resident->directory = talloc_strdup(resident, lock.directory);
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

	mkdir(RUNDIR, 0755);
	send_away(resident);
	ret = open_peers(resident);
	if (ret != 0) {
		*why = talloc_asprintf(
			resident, "pingpong's agent cannot listen on port %u "
			"of %s: %s", (unsigned)resident->options->port,
			resident->nodes->own->text, strerror(ret));
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
	/* what is wrong with it, the check says */
	read_lock(resident);
	ret = read_key(resident, why);
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
	resident->mount = mount_of_lock(resident);
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
	TALLOC_FREE(resident->inquiry);
	TALLOC_FREE(resident->door);
	TALLOC_FREE(resident->peers);
}
