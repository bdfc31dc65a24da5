/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pingpong preflight PATH: what the VFS module starts when the store has no
 * fresh verdict on a share's path (with --scope peers: when it has one of this
 * node alone, and only the resident agent, which has the others, could tell
 * more)
 *
 * One line on standard output tells what it came to:
 *	recorded		a verdict is in the store
 *	hung: WHY		no answer, and not even enough of one to record
 *	unknown: WHY
 *
 * One check at a time runs on a mount. Whoever comes meanwhile waits for it,
 * and takes its answer if it was about the same path. Which mount that is is
 * told by the path's string, the path is never touched here.
 *
 * RUNDIR/preflight/MOUNT-ID, which is locked during a check, holds the last
 * answer: "NS ANSWER\nPATH\n". NS: when, in nanoseconds after boot
 * (CLOCK_BOOTTIME), as in --asked: an answer that is older than the question
 * is none to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/time.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/checks/run.h"
#include "core/config.h"
#include "core/member/mounts.h"
#include "core/member/rundir.h"
#include "core/verdict/store.h"
#ifdef HAVE_CTDB_EVENTS
#include "ctdb-events/door.h"
#endif

#define MOUNTINFO "/proc/self/mountinfo"

#define MAX_TIMEOUT_S 300
#define MAX_ANSWER 1024

/* Kept back from the time, this or an eighth of it: for what a run needs after
 * its end, and for storing and telling. Without it a file system that hangs
 * would be unknown instead. */
#define RESERVE_MS 700

/* Less is not worth a check. */
#define LEAST_MS 1000

#define EX_HUNG 3
#define EX_UNKNOWN 4

/* Who is to be asked */
enum asks { ASKS_NODE, ASKS_CLUSTER, ASKS_PEERS };

static const char *const asks_names[] = {
	[ASKS_NODE] = "local",
	[ASKS_CLUSTER] = "cluster",
	[ASKS_PEERS] = "peers",
};

struct preflight {
	const char *path;
	enum asks asks;
	unsigned timeout_ms;
	uint64_t end_ms;		/* CLOCK_MONOTONIC */
	unsigned long long asked_ns;	/* CLOCK_BOOTTIME */
	char answer[MAX_ANSWER];
};

static uint64_t now_ms(void)
{
	struct timespec ts = {};

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static unsigned left_ms(const struct preflight *preflight)
{
	unsigned eighth_ms = preflight->timeout_ms / 8;
	uint64_t now = now_ms() +
		       (eighth_ms > RESERVE_MS ? eighth_ms : RESERVE_MS);

	return now < preflight->end_ms ? (unsigned)(preflight->end_ms - now)
				       : 0;
}

/* One line, whatever is in it */
static void set_answer(struct preflight *preflight, const char *word,
		       const char *why)
{
	char *p = NULL;

	snprintf(preflight->answer, sizeof(preflight->answer), "%s: %s", word,
		 why != NULL ? why : "no memory");
	for (p = preflight->answer; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if (c < ' ' || c == 0x7f) {
			*p = ' ';
		}
	}
}

static void set_recorded(struct preflight *preflight)
{
	snprintf(preflight->answer, sizeof(preflight->answer), "recorded");
}

/* ---- the check ----------------------------------------------------------- */

struct check_job {
	struct tevent_req *req;		/* NULL: over */
	struct run_result *result;
	const char *why;
	int err;
};

static void check_done(struct tevent_req *req)
{
	struct check_job *job = tevent_req_callback_data_void(req);

	job->err = run_recv(req, job, &job->result, &job->why);
	TALLOC_FREE(job->req);
}

/* A result, or its err and why */
static struct check_job *check(TALLOC_CTX *mem_ctx, const char *path,
			       const struct check **checks,
			       unsigned timeout_ms)
{
	struct check_job *job = talloc_zero(mem_ctx, struct check_job);
	struct tevent_context *ev = tevent_context_init(mem_ctx);
	const char **places = talloc_zero_array(mem_ctx, const char *, 2);
	struct run_options options = {
		.reach = { .worker = cli_worker(mem_ctx) },
		.places = places,
		.checks = checks,
		.level = RUN_LIGHT,
		.timeout_ms = timeout_ms,
	};
	ssize_t n;
	int ret = 0;

	if (job == NULL || ev == NULL || places == NULL ||
	    options.reach.worker == NULL) {
		return NULL;
	}
	n = getrandom(&options.seed, sizeof(options.seed), 0);
	if (n == -1) {
		options.seed = now_ms();
	}
	places[0] = path;
	job->req = run_send(job, ev, &options);
	if (job->req == NULL) {
		return NULL;
	}
	tevent_req_set_callback(job->req, check_done, job);
	while (job->req != NULL && ret == 0) {
		ret = tevent_loop_once(ev);
	}
	if (ret != 0) {
		job->err = EIO;
	}
	return job;
}

/* What could not be tested is asked for again the next time. */
static unsigned uses_known(const struct verdict *verdict)
{
	unsigned known = 0;
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		if (verdict->uses[i].fitness != UNKNOWN) {
			known |= USE_BIT(i);
		}
	}
	return known;
}

/* All that a share may be asked for, as far as smbd's settings let it */
#define SHARE_USES \
	(USE_BIT(USE_SHARE) | USE_BIT(USE_POSIX_LOCKING) | \
	 USE_BIT(USE_FILE_ID))

static void record(TALLOC_CTX *mem_ctx, struct preflight *preflight,
		   const struct run_result *result,
		   const struct verdict *verdict)
{
	unsigned known = uses_known(verdict);
	unsigned i;
	int ret;

	if (result->num_members == 0) {
		set_answer(preflight, "hung",
			   verdict->uses[USE_SHARE].reason);
		return;
	}
	ret = store_write(STATEDIR, result->members[0], verdict, known,
			  time(NULL), preflight->path);
	if (ret != 0) {
		set_answer(preflight, "unknown", talloc_asprintf(
			mem_ctx, "the verdict cannot be recorded in '%s': %s",
			STATEDIR, cli_store_error(ret)));
		return;
	}
	for (i = 0; i < USE_COUNT; i++) {
		if ((SHARE_USES & ~known & USE_BIT(i)) != 0) {
			set_answer(preflight, "unknown",
				   verdict->uses[i].reason);
			return;
		}
	}
	set_recorded(preflight);
}

static void judge(TALLOC_CTX *mem_ctx, struct preflight *preflight,
		  const struct check **checks,
		  const struct run_result *result)
{
	const struct verdict_input input = {
		.catalogue = checks,
		.results = result->results,
		.num_results = result->num_results,
		.members = result->members,
		.num_members = result->num_members,
		.local = true,
		.same_directory = result->same_directory,
		.not_same = result->not_same,
	};
	struct verdict *verdict = NULL;
	int ret;

	ret = verdict_judge(mem_ctx, &input, &verdict);
	if (ret != 0) {
		set_answer(preflight, "unknown", strerror(ret));
		return;
	}
	record(mem_ctx, preflight, result, verdict);
}

static void check_and_record(TALLOC_CTX *mem_ctx, struct preflight *preflight)
{
	const struct check **checks = checks_of_door(mem_ctx, DOOR_AGENT);
	struct check_job *job = NULL;
	unsigned timeout_ms = left_ms(preflight);

	if (timeout_ms < LEAST_MS) {
		set_answer(preflight, "unknown",
			   "no time was left after waiting for other checks "
			   "of the file system");
		return;
	}
	if (checks != NULL) {
		job = check(mem_ctx, preflight->path, checks, timeout_ms);
	}
	if (job == NULL) {
		set_answer(preflight, "unknown", strerror(ENOMEM));
	} else if (job->result == NULL) {
		set_answer(preflight, "unknown",
			   job->why != NULL ? job->why : strerror(job->err));
	} else {
		judge(mem_ctx, preflight, checks, job->result);
	}
}

/* ---- the resident agent -------------------------------------------------- */

/*
 * The agent of a cluster's node checks a share's mount with its peers, and
 * records. True: the path has a verdict across nodes.
 */
#ifdef HAVE_CTDB_EVENTS
static bool agent_knows(TALLOC_CTX *mem_ctx, const struct preflight *preflight)
{
	const char *question = talloc_asprintf(mem_ctx, DOOR_CHECK "%s",
					       preflight->path);
	struct stored_record *record = NULL;
	const struct stored_use *use = NULL;
	enum door_outcome outcome = DOOR_NO_AGENT;
	const char **lines = NULL;
	int ret;

	if (question == NULL) {
		return false;
	}
	ret = door_ask(mem_ctx, RUNDIR "/" DOOR_NAME, question,
		       left_ms(preflight) / 3 * 2, &outcome, &lines);
	if (ret != 0 || outcome == DOOR_CHECKING) {
		return false;
	}
	ret = store_lookup(mem_ctx, STATEDIR, MOUNTINFO, preflight->path,
			   &record);
	if (ret != 0) {
		return false;
	}
	use = &record->uses[USE_SHARE];
	return use->scope == SCOPE_CLUSTER &&
	       stored_use_fresh(use, time(NULL), STORE_FRESH_S);
}
#else
static bool agent_knows(TALLOC_CTX *mem_ctx, const struct preflight *preflight)
{
	(void)mem_ctx;
	(void)preflight;
	return false;
}
#endif

/* ---- one at a time ------------------------------------------------------- */

static void tick(int signum)
{
	(void)signum;
}

/* Interrupts a wait for the lock every now and then. */
static int start_ticks(void)
{
	const struct sigaction action = { .sa_handler = tick };
	const struct itimerval often = {
		.it_interval = { .tv_usec = 100000 },
		.it_value = { .tv_usec = 100000 },
	};
	int ret;

	ret = sigaction(SIGALRM, &action, NULL);
	if (ret == 0) {
		ret = setitimer(ITIMER_REAL, &often, NULL);
	}
	return ret == 0 ? 0 : errno;
}

static void stop_ticks(void)
{
	const struct itimerval never = {};

	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_DFL);
}

/* Returns 0, ETIMEDOUT, or the errno of flock */
static int take_lock(const struct preflight *preflight, int fd)
{
	int ret;

	ret = start_ticks();
	while (ret == 0) {
		ret = flock(fd, LOCK_EX) == 0 ? 0 : errno;
		if (ret != EINTR) {
			break;
		}
		ret = left_ms(preflight) > 0 ? 0 : ETIMEDOUT;
	}
	stop_ticks();
	return ret;
}

static unsigned long long boot_ns(void)
{
	struct timespec ts = {};

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000 +
	       (unsigned long long)ts.tv_nsec;
}

/* An answer to the same question that was given after we were asked */
static bool answered(struct preflight *preflight, int fd)
{
	char text[MAX_ANSWER + 4200] = "";
	char *answer = NULL, *path = NULL, *end = NULL;
	unsigned long long when;
	ssize_t n;

	n = pread(fd, text, sizeof(text) - 1, 0);
	if (n <= 0) {
		return false;
	}
	text[n] = '\0';
	when = strtoull(text, &answer, 10);
	path = strchr(answer, '\n');
	if (answer[0] != ' ' || path == NULL || when < preflight->asked_ns) {
		return false;
	}
	*path++ = '\0';
	end = strrchr(path, '\n');
	if (end == NULL) {
		return false;
	}
	*end = '\0';
	if (strcmp(path, preflight->path) != 0) {
		return false;
	}
	snprintf(preflight->answer, sizeof(preflight->answer), "%s",
		 answer + 1);
	return true;
}

static void leave_answer(const struct preflight *preflight, int fd)
{
	int ret;

	ret = ftruncate(fd, 0);
	if (ret == 0) {
		dprintf(fd, "%llu %s\n%s\n", boot_ns(), preflight->answer,
			preflight->path);
	}
}

static int open_lock(TALLOC_CTX *mem_ctx, const struct preflight *preflight,
		     int *fd)
{
	struct mount_line *mount = NULL;
	char *name = NULL;
	int dir = -1;
	int ret;

	ret = mount_by_path(mem_ctx, MOUNTINFO, preflight->path, &mount);
	if (ret != 0) {
		return ret;
	}
	name = talloc_asprintf(mem_ctx, "%llu", (unsigned long long)mount->id);
	if (name == NULL) {
		return ENOMEM;
	}
	ret = rundir_open(RUNDIR, "preflight", &dir);
	if (ret != 0) {
		return ret;
	}
	*fd = openat(dir, name,
		     O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
		     0600);
	ret = *fd == -1 ? errno : 0;
	close(dir);
	return ret;
}

static void ask_or_check(TALLOC_CTX *mem_ctx, struct preflight *preflight)
{
	bool known = preflight->asks != ASKS_NODE &&
		     agent_knows(mem_ctx, preflight);

	if (known) {
		set_recorded(preflight);
	} else if (preflight->asks == ASKS_PEERS) {
		set_answer(preflight, "unknown", "only one node tested, and "
			   "the resident agent has no verdict across nodes");
	} else {
		check_and_record(mem_ctx, preflight);
	}
}

static void find_answer(TALLOC_CTX *mem_ctx, struct preflight *preflight)
{
	bool known;
	int fd = -1;
	int ret;

	ret = open_lock(mem_ctx, preflight, &fd);
	if (ret != 0) {
		set_answer(preflight, "unknown", talloc_asprintf(
			mem_ctx, "'%s/preflight': %s", RUNDIR,
			cli_store_error(ret)));
		return;
	}
	ret = take_lock(preflight, fd);
	if (ret != 0) {
		set_answer(preflight, "unknown",
			   ret == ETIMEDOUT ? "another check of the file "
			   "system is under way" : strerror(ret));
		close(fd);
		return;
	}
	known = answered(preflight, fd);
	if (!known) {
		ask_or_check(mem_ctx, preflight);
		leave_answer(preflight, fd);
	}
	close(fd);
}

/* ---- arguments ----------------------------------------------------------- */

static const char *parse_timeout(TALLOC_CTX *mem_ctx, const char *text,
				 unsigned *ms)
{
	char *end = NULL;
	long seconds = 0;

	if (text == NULL) {
		return "expected --timeout S";
	}
	seconds = strtol(text, &end, 10);
	if (end == text || *end != '\0' || seconds < 1 ||
	    seconds > MAX_TIMEOUT_S) {
		return talloc_asprintf(mem_ctx, "--timeout '%s': expected "
				       "seconds, 1 to %u",
				       text, MAX_TIMEOUT_S);
	}
	*ms = (unsigned)seconds * 1000;
	return NULL;
}

static const char *parse_scope(TALLOC_CTX *mem_ctx, const char *text,
			       enum asks *asks)
{
	unsigned i;

	if (text == NULL) {
		return NULL;
	}
	for (i = ASKS_NODE; i <= ASKS_PEERS; i++) {
		if (strcmp(text, asks_names[i]) == 0) {
			*asks = i;
			return NULL;
		}
	}
	return talloc_asprintf(mem_ctx, "--scope '%s': expected local, "
			       "cluster or peers", text);
}

static const char *parse_asked(TALLOC_CTX *mem_ctx, const char *text,
			       unsigned long long *ns)
{
	char *end = NULL;

	if (text == NULL) {
		*ns = boot_ns();
		return NULL;
	}
	*ns = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0') {
		return talloc_asprintf(mem_ctx, "--asked '%s': expected "
				       "nanoseconds after boot", text);
	}
	return NULL;
}

/* NULL, or what is wrong */
static const char *parse(TALLOC_CTX *mem_ctx, int argc, const char **argv,
			 struct preflight *preflight)
{
	char *scope = NULL, *timeout = NULL, *asked = NULL;
	const struct poptOption options[] = {
		{ "scope", '\0', POPT_ARG_STRING, &scope, 0,
		  "who is asked", "local|cluster|peers" },
		{ "timeout", '\0', POPT_ARG_STRING, &timeout, 0,
		  "seconds for all of it", "S" },
		{ "asked", '\0', POPT_ARG_STRING, &asked, 0,
		  "when the question arose (CLOCK_BOOTTIME)", "NS" },
		POPT_AUTOHELP POPT_TABLEEND
	};
	poptContext pc = poptGetContext(NULL, argc, argv, options, 0);
	const char *error = NULL, *path = NULL;
	int ret;

	poptSetOtherOptionHelp(pc, "PATH");
	ret = poptGetNextOpt(pc);
	if (ret < -1) {
		error = cli_popt_error(mem_ctx, pc, ret);
	}
	if (error == NULL) {
		error = parse_scope(mem_ctx, scope, &preflight->asks);
	}
	if (error == NULL) {
		error = parse_timeout(mem_ctx, timeout,
				      &preflight->timeout_ms);
	}
	if (error == NULL) {
		error = parse_asked(mem_ctx, asked, &preflight->asked_ns);
	}
	path = poptGetArg(pc);
	if (error == NULL && (path == NULL || path[0] != '/' ||
			      poptPeekArg(pc) != NULL)) {
		error = "expected one absolute PATH";
	}
	if (error == NULL) {
		preflight->path = talloc_strdup(mem_ctx, path);
	}
	free(scope);
	free(timeout);
	free(asked);
	poptFreeContext(pc);
	return error;
}

static int finish(const struct preflight *preflight)
{
	puts(preflight->answer);
	if (strcmp(preflight->answer, "recorded") == 0) {
		return cli_finish(EX_OK);
	}
	return cli_finish(strncmp(preflight->answer, "hung", 4) == 0 ?
				  EX_HUNG : EX_UNKNOWN);
}

int cmd_preflight(int argc, const char **argv)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	struct preflight preflight = {};
	const char *error = NULL;
	int status = EX_USAGE;

	error = parse(frame, argc, argv, &preflight);
	if (error != NULL) {
		cli_say("%s", error);
	} else {
		/* nobody may listen any more */
		signal(SIGPIPE, SIG_IGN);
		preflight.end_ms = now_ms() + preflight.timeout_ms;
		find_answer(frame, &preflight);
		status = finish(&preflight);
	}
	talloc_free(frame);
	return status;
}
