/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Divisions: what is kept; the check; the question; how often one may speak.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/member/rundir.h"
#include "vfs_pingpong/gate.h"

/* So long an answer holds that other nodes could not be asked. */
#define PEERS_AGAIN_S 30

/* Paths that are kept at the same time */
#define MAX_KEPT 32

#define MAX_LINE 1024

/* ---- what is kept -------------------------------------------------------- */

/* Which file it is; all zero: none */
struct identity {
	dev_t dev;
	ino_t ino;
	off_t size;
	struct timespec modified, changed;
};

struct kept {
	struct kept *next;
	char *path;
	char *paths_file, *record_file;
	struct identity paths_id, record_id;
	uint64_t seen_ms;	/* when the files were so */
	struct stored_record *record;
};

static struct kept *all_kept;
static unsigned num_kept;
static int mounts_fd = -1;

static void identify(const char *file, struct identity *id)
{
	struct stat st = {};
	int ret;

	*id = (struct identity){};
	ret = stat(file, &st);
	if (ret == 0) {
		id->dev = st.st_dev;
		id->ino = st.st_ino;
		id->size = st.st_size;
		id->modified = st.st_mtim;
		id->changed = st.st_ctim;
	}
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool unchanged(const char *file, const struct identity *then)
{
	struct identity now = {};

	identify(file, &now);
	return now.ino != 0 && now.dev == then->dev && now.ino == then->ino &&
	       now.size == then->size &&
	       same_time(&now.modified, &then->modified) &&
	       same_time(&now.changed, &then->changed);
}

static void forget_kept(struct kept **at)
{
	struct kept *kept = *at;

	*at = kept->next;
	num_kept--;
	talloc_free(kept);
}

static void forget_all_kept(void)
{
	while (all_kept != NULL) {
		forget_kept(&all_kept);
	}
}

/* The kernel tells a poller once that the mounts are not as they were. */
static bool mounts_changed(const char *mountinfo)
{
	struct pollfd pfd = {.events = POLLPRI};
	int ret;

	if (mounts_fd == -1) {
		mounts_fd = open(mountinfo, O_RDONLY | O_CLOEXEC);
		return true;
	}
	pfd.fd = mounts_fd;
	ret = poll(&pfd, 1, 0);
	return ret == -1 || (pfd.revents & (POLLPRI | POLLERR)) != 0;
}

static uint64_t now_ms(void)
{
	struct timespec ts = {};

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* The record that is kept of a path, or NULL */
static struct stored_record *find_kept(const char *path, unsigned trust_ms)
{
	struct kept **at = &all_kept;
	uint64_t now = now_ms();
	bool ok;

	while (*at != NULL && strcmp((*at)->path, path) != 0) {
		at = &(*at)->next;
	}
	if (*at == NULL) {
		return NULL;
	}
	if (now - (*at)->seen_ms < trust_ms) {
		return (*at)->record;
	}
	ok = unchanged((*at)->paths_file, &(*at)->paths_id) &&
	     unchanged((*at)->record_file, &(*at)->record_id);
	if (!ok) {
		forget_kept(at);
		return NULL;
	}
	(*at)->seen_ms = now;
	return (*at)->record;
}

static struct kept *new_kept(const char *statedir, const char *path)
{
	struct kept *kept = talloc_zero(NULL, struct kept);

	if (kept == NULL) {
		return NULL;
	}
	kept->path = talloc_strdup(kept, path);
	kept->paths_file = talloc_asprintf(kept, "%s/paths.json", statedir);
	if (kept->path == NULL || kept->paths_file == NULL) {
		talloc_free(kept);
		return NULL;
	}
	return kept;
}

/*
 * Look a path up, in what is kept or in the store: 0 or as store_lookup(). The
 * record is kept: it is there until the next call.
 */
static int look_up(const struct gate_places *places, const char *path,
		   unsigned trust_ms, struct stored_record **record)
{
	struct kept *kept = NULL;
	bool changed;
	int ret;

	/* before the store is read: a later change is told the next time */
	changed = mounts_changed(places->mountinfo);
	if (changed || num_kept >= MAX_KEPT) {
		forget_all_kept();
	}
	*record = find_kept(path, trust_ms);
	if (*record != NULL) {
		return 0;
	}
	kept = new_kept(places->statedir, path);
	if (kept == NULL) {
		return ENOMEM;
	}
	kept->seen_ms = now_ms();
	identify(kept->paths_file, &kept->paths_id);
	ret = store_lookup(kept, places->statedir, places->mountinfo, path,
			   &kept->record);
	if (ret == 0) {
		kept->record_file = talloc_asprintf(
			kept, "%s/verdicts/%s.json", places->statedir,
			kept->record->key);
		ret = kept->record_file != NULL ? 0 : ENOMEM;
	}
	if (ret != 0) {
		talloc_free(kept);
		return ret;
	}
	identify(kept->record_file, &kept->record_id);
	kept->next = all_kept;
	all_kept = kept;
	num_kept++;
	*record = kept->record;
	return 0;
}

/* ---- the check ----------------------------------------------------------- */

static unsigned long long boot_ns(void)
{
	struct timespec ts = {};

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (unsigned long long)ts.tv_sec * 1000000000 +
	       (unsigned long long)ts.tv_nsec;
}

/*
 * The program's signals are as in a fresh process, its descriptors are
 * nothing, the pipe and nothing, its directory is no share's.
 */
static int prepare(posix_spawnattr_t *attr, posix_spawn_file_actions_t *files,
		   int answer_fd)
{
	sigset_t none, all;
	int ret;

	sigemptyset(&none);
	sigfillset(&all);
	ret = posix_spawnattr_setsigmask(attr, &none);
	ret |= posix_spawnattr_setsigdefault(attr, &all);
	ret |= posix_spawnattr_setflags(
		attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	ret |= posix_spawn_file_actions_addchdir_np(files, "/");
	ret |= posix_spawn_file_actions_addopen(files, STDIN_FILENO,
						"/dev/null", O_RDONLY, 0);
	ret |= posix_spawn_file_actions_adddup2(files, answer_fd,
						STDOUT_FILENO);
	ret |= posix_spawn_file_actions_addopen(files, STDERR_FILENO,
						"/dev/null", O_WRONLY, 0);
	ret |= posix_spawn_file_actions_addclosefrom_np(files,
							STDERR_FILENO + 1);
	return ret == 0 ? 0 : ENOMEM;
}

static const char *scope_name(const struct share *share, enum share_more more)
{
	if (more == SHARE_ASK_PEERS) {
		return "peers";
	}
	return share->scope == SCOPE_CLUSTER ? "cluster" : "local";
}

static int spawn(const struct gate_places *places, const struct share *share,
		 enum share_more more, unsigned timeout_ms, int answer_fd)
{
	char timeout[16], asked[24];
	const char *argv[] = {
		"pingpong", "preflight", "--scope", scope_name(share, more),
		"--timeout", timeout, "--asked", asked, "--", share->path,
		NULL,
	};
	const char *envp[] = {
		"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL,
	};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	unsigned long long since = boot_ns();
	pid_t pid;
	int ret;

	if (more == SHARE_ASK_PEERS) {
		since -= MIN(since, PEERS_AGAIN_S * 1000000000ULL);
	}
	snprintf(timeout, sizeof(timeout), "%u", timeout_ms / 1000);
	snprintf(asked, sizeof(asked), "%llu", since);
	ret = posix_spawnattr_init(&attr);
	if (ret != 0) {
		return ret;
	}
	ret = posix_spawn_file_actions_init(&files);
	if (ret == 0) {
		ret = prepare(&attr, &files, answer_fd);
		if (ret == 0) {
			ret = posix_spawn(&pid, places->command, &files, &attr,
					  (char **)argv, (char **)envp);
		}
		posix_spawn_file_actions_destroy(&files);
	}
	posix_spawnattr_destroy(&attr);
	return ret;
}

/*
 * Read up to the end of the line or of the pipe. Returns 0, ETIMEDOUT or the
 * errno of the read.
 */
static int read_line(int fd, uint64_t until_ms, char line[MAX_LINE])
{
	size_t len = 0;
	char *end = NULL;
	ssize_t n;

	line[0] = '\0';
	while (end == NULL && len < MAX_LINE - 1) {
		struct pollfd pfd = {.fd = fd, .events = POLLIN};
		uint64_t now = now_ms();
		int ret;

		if (now >= until_ms) {
			return ETIMEDOUT;
		}
		ret = poll(&pfd, 1, (int)(until_ms - now));
		if (ret == 0 || (ret == -1 && errno == EINTR)) {
			continue;
		}
		n = read(fd, line + len, MAX_LINE - 1 - len);
		if (n == -1 && errno == EINTR) {
			continue;
		}
		if (n == -1) {
			return errno;
		}
		if (n == 0) {
			break;
		}
		len += n;
		line[len] = '\0';
		end = strchr(line, '\n');
	}
	line[strcspn(line, "\n")] = '\0';
	return 0;
}

/* Have the program ask or check: 0 with its line, or an errno. */
static int have_checked(const struct gate_places *places,
			const struct share *share, enum share_more more,
			unsigned timeout_ms, char line[MAX_LINE])
{
	uint64_t until_ms = now_ms() + timeout_ms;
	int fds[2];
	int ret;

	ret = pipe2(fds, O_CLOEXEC);
	if (ret == -1) {
		return errno;
	}
	ret = spawn(places, share, more, timeout_ms, fds[1]);
	close(fds[1]);
	if (ret == 0) {
		ret = read_line(fds[0], until_ms, line);
	}
	close(fds[0]);
	return ret;
}

/* ---- the question -------------------------------------------------------- */

/* What the store says, and what could tell more */
static enum share_more ask_store(TALLOC_CTX *mem_ctx,
				 const struct gate_places *places,
				 const struct share *share, unsigned trust_ms,
				 struct share_answer *answer)
{
	struct stored_record *record = NULL;
	int ret;

	ret = look_up(places, share->path, trust_ms, &record);
	if (ret != 0) {
		share_unknown(mem_ctx, share,
			      ret == ENOENT ? "never checked" :
			      ret == ESTALE ? "its mount is another one now" :
			      talloc_asprintf(mem_ctx, "the verdict in '%s' "
					      "cannot be used: %s",
					      places->statedir, strerror(ret)),
			      answer);
		return SHARE_CHECK;
	}
	return share_judge(mem_ctx, share, record, time(NULL), answer);
}

/* Why a check came to no verdict */
static const char *why_unknown(TALLOC_CTX *mem_ctx,
			       const struct gate_places *places,
			       unsigned timeout_ms, int err, const char *line)
{
	static const char unknown[] = "unknown: ";

	if (err == ETIMEDOUT) {
		return talloc_asprintf(mem_ctx, "no result of a check within "
				       "%u s", timeout_ms / 1000);
	}
	if (err != 0 || line[0] == '\0') {
		return talloc_asprintf(
			mem_ctx, "it could not be checked: '%s': %s",
			places->command, err != 0 ? strerror(err) :
			"it ended without an answer");
	}
	if (strncmp(line, unknown, strlen(unknown)) == 0) {
		line += strlen(unknown);
	}
	return talloc_strdup(mem_ctx, line);
}

/* Who else is there to ask: the resident agent has the other nodes. */
static bool is_over(const struct gate_places *places, enum share_more more)
{
	char door[PATH_MAX];
	int ret;

	if (more != SHARE_ASK_PEERS) {
		return more == SHARE_DECIDED;
	}
	snprintf(door, sizeof(door), "%s/" DOOR_NAME, places->rundir);
	ret = access(door, F_OK);
	return ret == -1;
}

void gate_ask(TALLOC_CTX *mem_ctx, const struct gate_places *places,
	      const struct share *share, unsigned timeout_ms,
	      struct share_answer *answer)
{
	char line[MAX_LINE] = "";
	enum share_more more;
	bool over;
	int ret;

	*answer = (struct share_answer){.fitness = UNKNOWN};
	more = ask_store(mem_ctx, places, share, places->trust_ms, answer);
	if (more != SHARE_DECIDED) {
		more = ask_store(mem_ctx, places, share, 0, answer);
	}
	over = is_over(places, more);
	if (over) {
		return;
	}
	ret = have_checked(places, share, more, timeout_ms, line);
	if (strncmp(line, "hung: ", 6) == 0) {
		answer->fitness = UNFIT;
		answer->reason = talloc_strdup(mem_ctx, line);
		answer->remedy = "the file system has to answer first";
		return;
	}
	/* where not all could be tested, what was may be unfit */
	more = ask_store(mem_ctx, places, share, 0, answer);
	if (more != SHARE_DECIDED && strcmp(line, "recorded") != 0) {
		share_unknown(mem_ctx, share,
			      why_unknown(mem_ctx, places, timeout_ms, ret,
					  line),
			      answer);
	}
}

/* ---- how often one may speak --------------------------------------------- */

/* FNV-1a: a share's name may have any character */
static void stamp_name(const char *share, char name[24])
{
	uint64_t h = 0xcbf29ce484222325;

	for (; *share != '\0'; share++) {
		h ^= (unsigned char)*share;
		h *= 0x100000001b3;
	}
	snprintf(name, 24, "%016llx", (unsigned long long)h);
}

/* The stamp's time is when it was last said; its size 0: never. */
static bool stamp(int fd, unsigned interval_s)
{
	struct stat st = {};
	time_t now = time(NULL);
	int ret;

	ret = flock(fd, LOCK_EX | LOCK_NB);
	if (ret == -1) {
		/* somebody else is just saying it */
		return errno != EWOULDBLOCK;
	}
	ret = fstat(fd, &st);
	if (ret == 0 && st.st_size > 0 && st.st_mtim.tv_sec <= now &&
	    now - st.st_mtim.tv_sec < (time_t)interval_s) {
		return false;
	}
	ret = pwrite(fd, "\n", 1, 0);
	return true;
}

bool gate_may_say(const char *rundir, const char *share, unsigned interval_s)
{
	char name[24];
	int dir = -1;
	int fd = -1;
	bool may;
	int ret;

	ret = rundir_open(rundir, "said", &dir);
	if (ret != 0) {
		return true;
	}
	stamp_name(share, name);
	fd = openat(dir, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	close(dir);
	if (fd == -1) {
		return true;
	}
	may = stamp(fd, interval_s);
	close(fd);
	return may;
}
