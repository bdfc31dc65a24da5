/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Does the healthy test file system behave as a cluster's should, and does
 * each fault do what it says?
 *
 *   selftest CLUSTERFS DIRECTORY
 *
 * A scene is a function that leads actors through calls and says GOOD if all
 * went as on a sound cluster, or BAD and a detail. The healthy cases are
 * scenes that must be GOOD. Each fault is a scene that must be GOOD before
 * it, BAD with it, with the right detail, and GOOD again when it has been
 * cleared; and another one that it must leave GOOD.
 */

#include "actor.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NODES 3

enum verdict {
	GOOD,
	BAD,
};

static const char *program;
static const char *dir;		/* scratch */
static char node[NODES][200];
static char control_path[100];
static pid_t server;

static struct actor a;		/* on node 0 */
static struct actor a2;		/* another process there */
static struct actor b;		/* on node 1 */
static struct actor c;		/* on node 2 */

/* Why a scene is bad: an errno, or a number of its own. */
static int64_t detail;
static char reason[256];
/* ms for what has to happen; less where it is not expected to. */
static int patience = PATIENCE;
/* The file of the scene, new each time. */
static char file[32];

static int passed;
static int failed;

/* What the scene is about: without it, BAD for this reason. */
#define MUST(cond, why, ...) do {					\
	bool ok_ = (cond);						\
	if (!ok_) {							\
		return bad(why, __VA_ARGS__);				\
	}								\
} while (0)

/* What has to hold on the way there. */
#define CHECK(cond, ...) MUST(cond, -2, __VA_ARGS__)

static enum verdict bad(int64_t why, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	detail = why;
	return BAD;
}

static void give_up(const char *what)
{
	printf("not ok setup: %s (%s)\n", what, strerror(errno));
	if (server > 0) {
		kill(server, SIGTERM);
		waitpid(server, NULL, 0);
	}
	exit(1);
}

static void pause_ms(int ms)
{
	struct timespec ts = {
		.tv_sec = ms / 1000,
		.tv_nsec = (ms % 1000) * 1000000L,
	};

	nanosleep(&ts, NULL);
}

static double seconds(void)
{
	struct timespec ts = {};

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/*
 * The control socket
 */

static char answer_text[65536];

static int control_connect(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int ret;

	memcpy(addr.sun_path, control_path, sizeof(control_path));
	ret = connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	if (ret == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool control(const char *fmt, ...)
{
	char text[512];
	va_list ap;
	ssize_t n;
	int fd;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);

	fd = control_connect();
	if (fd == -1) {
		give_up("control socket");
	}
	send(fd, text, strlen(text), MSG_NOSIGNAL);
	n = recv(fd, answer_text, sizeof(answer_text) - 1, 0);
	close(fd);
	if (n < 0) {
		n = 0;
	}
	answer_text[n] = '\0';
	return strncmp(answer_text, "ok", 2) == 0;
}

/* Hits of all active faults. */
static unsigned long hits(void)
{
	unsigned long sum = 0;
	char *p = answer_text;

	control("fault list");
	while ((p = strstr(p, "hits=")) != NULL) {
		p += 5;
		sum += strtoul(p, NULL, 10);
	}
	return sum;
}

/*
 * Calls
 */

static const char *on(int n, const char *name)
{
	static char path[4][256];
	static int i;

	i = (i + 1) % 4;
	snprintf(path[i], sizeof(path[i]), "%s/%s", node[n], name);
	return path[i];
}

static struct call path_call(enum act act, int n, const char *name)
{
	struct call call = { .act = act };

	snprintf(call.path, sizeof(call.path), "%s", on(n, name));
	return call;
}

static struct answer open_at(struct actor *actor, int n, int slot, int flags)
{
	struct call call = path_call(ACT_OPEN, n, file);

	call.slot = slot;
	call.a = flags;
	return act(actor, call);
}

static struct call lock_call(int slot, int cmd, int type, int64_t start,
			     int64_t len)
{
	return (struct call) {
		.act = ACT_LOCK,
		.slot = slot,
		.a = cmd,
		.b = type,
		.c = start,
		.d = len,
	};
}

/* 0 or an errno */
static int lock(struct actor *actor, int cmd, int type, int64_t start,
		int64_t len)
{
	struct answer answer = act(actor, lock_call(0, cmd, type, start,
						    len));

	return answer.ret == -1 ? answer.err : 0;
}

static int wlock(struct actor *actor, int64_t start, int64_t len)
{
	return lock(actor, F_SETLK, F_WRLCK, start, len);
}

static int rlock(struct actor *actor, int64_t start, int64_t len)
{
	return lock(actor, F_SETLK, F_RDLCK, start, len);
}

static int unlock(struct actor *actor, int64_t start, int64_t len)
{
	return lock(actor, F_SETLK, F_UNLCK, start, len);
}

static int flock_of(struct actor *actor, int op)
{
	struct call call = { .act = ACT_FLOCK, .a = op };
	struct answer answer = act(actor, call);

	return answer.ret == -1 ? answer.err : 0;
}

static void begin_wait(struct actor *actor, int64_t start)
{
	act_begin(actor, lock_call(0, F_SETLKW, F_WRLCK, start, 1));
}

static struct answer simple(struct actor *actor, enum act what, int64_t x,
			    int64_t y, int64_t z)
{
	struct call call = { .act = what, .a = x, .b = y, .c = z };

	return act(actor, call);
}

static int64_t size_seen(struct actor *actor)
{
	return simple(actor, ACT_FSTAT, 0, 0, 0).v[0];
}

static int byte_at(struct actor *actor, int64_t offset)
{
	struct answer answer = simple(actor, ACT_READ, offset, 1, 0);

	return answer.ret == 1 ? answer.v[0] : -1;
}

static bool write_at(struct actor *actor, int64_t offset, int64_t size,
		     int value)
{
	return simple(actor, ACT_WRITE, offset, size, value).ret == size;
}

/* Tried again for a while: some things are right only a little later. */
static bool gets_lock(struct actor *actor, int64_t start)
{
	double end = seconds() + patience / 1000.0;
	int ret;

	do {
		ret = wlock(actor, start, 1);
		if (ret == 0) {
			return true;
		}
		pause_ms(5);
	} while (seconds() < end);
	return false;
}

/* All three nodes have the file open. */
static enum verdict set_the_stage(void)
{
	static unsigned int num;
	struct answer answer;

	snprintf(file, sizeof(file), "file%u", num++);
	answer = open_at(&a, 0, 0, O_RDWR | O_CREAT);
	if (answer.ret == -1) {
		return bad(answer.err, "create: %s", strerror(answer.err));
	}
	answer = open_at(&a2, 0, 0, O_RDWR);
	if (answer.ret != -1) {
		answer = open_at(&b, 1, 0, O_RDWR);
	}
	if (answer.ret != -1) {
		answer = open_at(&c, 2, 0, O_RDWR);
	}
	if (answer.ret == -1) {
		return bad(answer.err, "open: %s", strerror(answer.err));
	}
	return GOOD;
}

/* Someone hangs: end the actor once its call has been let go. */
static void curtain(void)
{
	actor_kill(&a);
	actor_kill(&a2);
	actor_kill(&b);
	actor_kill(&c);
}

/*
 * Scenes: locks
 */

static enum verdict lock_works(void)
{
	int ret = wlock(&a, 0, 1);

	if (ret != 0) {
		return bad(ret, "lock: %s", strerror(ret));
	}
	ret = unlock(&a, 0, 1);
	if (ret != 0) {
		return bad(ret, "unlock: %s", strerror(ret));
	}
	return GOOD;
}

static enum verdict exclusion(void)
{
	int ret;

	CHECK(wlock(&a, 0, 1) == 0, "first lock");
	ret = wlock(&b, 0, 1);
	if (ret != EAGAIN) {
		return bad(ret, "granted twice, on two nodes");
	}
	CHECK(wlock(&b, 1, 1) == 0, "the next byte");
	CHECK(rlock(&c, 0, 1) == EAGAIN, "read lock under a write lock");
	CHECK(unlock(&a, 0, 1) == 0, "unlock");
	CHECK(wlock(&c, 0, 1) == 0, "after the unlock");
	return GOOD;
}

static enum verdict exclusion_on_one_node(void)
{
	CHECK(wlock(&a, 0, 1) == 0, "first lock");
	MUST(wlock(&a2, 0, 1) == EAGAIN, 0, "granted twice, on one node");
	return GOOD;
}

static enum verdict single_bytes(void)
{
	CHECK(wlock(&a, 0, 1) == 0, "byte 0");
	MUST(wlock(&b, 1, 1) == 0, 0, "byte 1");
	return GOOD;
}

static enum verdict far_bytes(void)
{
	CHECK(wlock(&a, 0, 1) == 0, "byte 0");
	MUST(wlock(&b, 100000, 1) == 0, 0, "byte 100000");
	return GOOD;
}

static enum verdict shared(void)
{
	CHECK(rlock(&a, 0, 10) == 0 && rlock(&b, 0, 10) == 0, "both read");
	CHECK(wlock(&a, 5, 1) == EAGAIN, "upgrade under a reader");
	CHECK(unlock(&b, 0, 0) == 0 && wlock(&a, 5, 1) == 0, "upgrade");
	CHECK(rlock(&b, 0, 5) == 0 && rlock(&b, 6, 4) == 0, "the rest");
	CHECK(rlock(&b, 5, 1) == EAGAIN, "the upgraded byte");
	CHECK(rlock(&a, 5, 1) == 0 && rlock(&b, 5, 1) == 0, "downgrade");
	return GOOD;
}

static enum verdict readers(void)
{
	CHECK(rlock(&a, 0, 10) == 0, "the first reader");
	MUST(rlock(&b, 0, 10) == 0, 1, "the second reader");
	MUST(wlock(&c, 5, 1) == EAGAIN, 2, "a writer among readers");
	return GOOD;
}

static enum verdict downgrade(void)
{
	CHECK(wlock(&a, 0, 10) == 0 && rlock(&a, 0, 10) == 0, "downgrade");
	MUST(wlock(&b, 0, 10) == EAGAIN, 0, "the read lock is lost");
	return GOOD;
}

static enum verdict unlock_of_a_part(void)
{
	CHECK(wlock(&a, 0, 100) == 0 && unlock(&a, 40, 20) == 0, "a hole");
	MUST(wlock(&b, 0, 1) == EAGAIN, 0, "all of it is free");
	return GOOD;
}

static enum verdict split(void)
{
	CHECK(wlock(&a, 0, 100) == 0, "whole");
	CHECK(unlock(&a, 40, 20) == 0, "a hole");
	CHECK(wlock(&b, 40, 20) == 0, "the hole is free");
	CHECK(wlock(&b, 39, 1) == EAGAIN, "left part");
	CHECK(wlock(&b, 60, 1) == EAGAIN, "right part");
	CHECK(wlock(&b, 99, 1) == EAGAIN && wlock(&b, 100, 1) == 0, "end");
	return GOOD;
}

static struct answer getlk(struct actor *actor, int cmd, int64_t start,
			   int64_t len)
{
	struct call call = lock_call(0, cmd, F_WRLCK, start, len);

	call.act = ACT_GETLK;
	return act(actor, call);
}

static enum verdict getlk_other(void)
{
	struct answer answer;

	CHECK(wlock(&a, 10, 5) == 0 && rlock(&a, 20, 5) == 0, "locks");
	answer = getlk(&b, F_GETLK, 0, 20);
	if (answer.v[0] == F_UNLCK) {
		return bad(1, "another node's lock is not shown");
	}
	if (answer.v[1] != 10 || answer.v[2] != 5) {
		return bad(2, "range %lld, %lld", (long long)answer.v[1],
			   (long long)answer.v[2]);
	}
	if (answer.v[0] != F_WRLCK) {
		return bad(3, "type");
	}
	answer = getlk(&b, F_GETLK, 18, 0);
	CHECK(answer.v[0] == F_RDLCK && answer.v[1] == 20, "the read lock");
	answer = getlk(&a2, F_GETLK, 10, 1);
	CHECK(answer.v[3] == a.pid, "pid on the same node");
	return GOOD;
}

static enum verdict getlk_own(void)
{
	CHECK(wlock(&a, 10, 5) == 0, "lock");
	MUST(getlk(&a, F_GETLK, 0, 0).v[0] == F_UNLCK, 0, "own lock shown");
	return GOOD;
}

static enum verdict handoff(void)
{
	struct answer answer;
	bool done;

	CHECK(wlock(&a, 0, 1) == 0, "lock");
	begin_wait(&b, 0);
	done = act_end(&b, A_WHILE, &answer);
	if (done) {
		return bad(answer.err, "does not wait");
	}
	CHECK(unlock(&a, 0, 1) == 0, "unlock");
	done = act_end(&b, patience, &answer);
	if (!done) {
		return bad(0, "the waiter is not woken");
	}
	CHECK(answer.ret == 0, "waiter: %s", strerror(answer.err));
	CHECK(wlock(&a, 0, 1) == EAGAIN, "the waiter has the lock");
	return GOOD;
}

/* Woken at the latest when a third one asks. */
static enum verdict handoff_or_asked(void)
{
	struct answer answer;
	bool done;

	CHECK(wlock(&a, 0, 1) == 0, "lock");
	begin_wait(&b, 0);
	done = act_end(&b, A_WHILE, &answer);
	CHECK(!done && unlock(&a, 0, 1) == 0, "unlock");
	done = act_end(&b, A_WHILE, &answer);
	if (!done) {
		wlock(&c, 9, 1);
		done = act_end(&b, patience, &answer);
	}
	MUST(done && answer.ret == 0, 0, "never woken");
	return GOOD;
}

static enum verdict in_order(void)
{
	struct answer answer;
	bool done;

	CHECK(wlock(&a, 0, 1) == 0, "lock");
	begin_wait(&b, 0);
	done = act_end(&b, A_WHILE, &answer);
	CHECK(!done, "b waits");
	begin_wait(&c, 0);
	done = act_end(&c, A_WHILE, &answer);
	CHECK(!done, "c waits");
	CHECK(unlock(&a, 0, 1) == 0, "unlock");
	done = act_end(&b, PATIENCE, &answer);
	CHECK(done && answer.ret == 0, "b first");
	done = act_end(&c, A_WHILE, &answer);
	CHECK(!done && unlock(&b, 0, 1) == 0, "c not yet");
	done = act_end(&c, PATIENCE, &answer);
	CHECK(done && answer.ret == 0, "then c");
	return GOOD;
}

/* With a favourite, the one that unlocks gets it back before the waiter. */
static enum verdict fair(void)
{
	struct answer answer;
	bool done;
	int ret;

	CHECK(wlock(&a, 0, 1) == 0, "lock");
	begin_wait(&b, 0);
	done = act_end(&b, A_WHILE, &answer);
	CHECK(!done && unlock(&a, 0, 1) == 0, "unlock");
	ret = wlock(&a, 0, 1);
	if (ret == 0) {
		return bad(0, "the waiter was passed over");
	}
	done = act_end(&b, PATIENCE, &answer);
	CHECK(done && answer.ret == 0, "waiter");
	return GOOD;
}

static enum verdict interrupted(void)
{
	struct answer answer;
	bool done;

	CHECK(wlock(&a, 0, 1) == 0, "lock");
	CHECK(simple(&b, ACT_ALARM, 200, 0, 0).ret == 0, "alarm");
	begin_wait(&b, 0);
	done = act_end(&b, PATIENCE, &answer);
	CHECK(done && answer.ret == -1 && answer.err == EINTR, "EINTR: %s",
	      done ? strerror(answer.err) : "no answer");
	CHECK(unlock(&a, 0, 1) == 0, "unlock");
	MUST(wlock(&c, 0, 1) == 0, 0, "the waiter that gave up has the lock");
	return GOOD;
}

static enum verdict killed_waiter(void)
{
	struct answer answer;
	bool done;

	CHECK(wlock(&a, 0, 1) == 0, "lock");
	begin_wait(&b, 0);
	done = act_end(&b, A_WHILE, &answer);
	CHECK(!done, "waits");
	actor_kill(&b);
	actor_start(&b, 0);
	CHECK(unlock(&a, 0, 1) == 0, "unlock");
	MUST(wlock(&c, 0, 1) == 0, 0, "the dead waiter has the lock");
	return GOOD;
}

static enum verdict freed_by_close(void)
{
	CHECK(wlock(&a, 0, 1) == 0, "lock");
	CHECK(simple(&a, ACT_CLOSE, 0, 0, 0).ret == 0, "close");
	MUST(wlock(&b, 0, 1) == 0, 0, "still locked");
	return GOOD;
}

/* POSIX: closing any descriptor of the file drops the process's locks. */
static enum verdict freed_by_other_close(void)
{
	struct call call = { .act = ACT_CLOSE, .slot = 1 };

	CHECK(open_at(&a, 0, 1, O_RDONLY).ret != -1, "second open");
	CHECK(wlock(&a, 0, 1) == 0, "lock");
	CHECK(act(&a, call).ret == 0, "close of the other");
	CHECK(wlock(&b, 0, 1) == 0, "still locked");
	return GOOD;
}

static enum verdict freed_by_exit(void)
{
	CHECK(wlock(&a, 0, 1) == 0, "lock");
	actor_end(&a);
	actor_start(&a, 0);
	MUST(gets_lock(&b, 0), 0, "still locked");
	return GOOD;
}

static enum verdict freed_by_kill(void)
{
	CHECK(wlock(&a, 0, 1) == 0, "lock");
	actor_kill(&a);
	actor_start(&a, 0);
	MUST(gets_lock(&b, 0), 0, "still locked");
	return GOOD;
}

static enum verdict freed_in_the_end(void)
{
	CHECK(wlock(&a, 0, 1) == 0, "lock");
	actor_kill(&a);
	actor_start(&a, 0);
	CHECK(gets_lock(&b, 0), "still locked");
	return GOOD;
}

static enum verdict kept_by_fork_close(void)
{
	CHECK(wlock(&a, 0, 1) == 0, "lock");
	CHECK(simple(&a, ACT_FORK_CLOSE, 0, 0, 0).ret == 0, "fork");
	MUST(wlock(&b, 0, 1) == EAGAIN, 0, "a child's close freed the lock");
	CHECK(simple(&a, ACT_CLOSE, 0, 0, 0).ret == 0, "close");
	CHECK(wlock(&b, 0, 1) == 0, "its own close does");
	return GOOD;
}

static enum verdict deadlock(void)
{
	struct answer answer;
	bool done;
	int ret;

	CHECK(wlock(&a, 0, 1) == 0 && wlock(&b, 1, 1) == 0, "locks");
	begin_wait(&a, 1);
	done = act_end(&a, A_WHILE, &answer);
	CHECK(!done, "a waits");
	ret = lock(&b, F_SETLKW, F_WRLCK, 0, 1);
	CHECK(ret == EDEADLK, "EDEADLK: %s", strerror(ret));
	CHECK(unlock(&b, 1, 1) == 0, "unlock");
	done = act_end(&a, PATIENCE, &answer);
	CHECK(done && answer.ret == 0, "a gets it");
	return GOOD;
}

/* As in the kernel: a circle of OFD locks just waits. */
static enum verdict no_deadlock_ofd(void)
{
	struct answer answer;
	bool done;

	CHECK(lock(&a, F_OFD_SETLK, F_WRLCK, 0, 1) == 0 &&
	      lock(&b, F_OFD_SETLK, F_WRLCK, 1, 1) == 0, "locks");
	act_begin(&a, lock_call(0, F_OFD_SETLKW, F_WRLCK, 1, 1));
	act_begin(&b, lock_call(0, F_OFD_SETLKW, F_WRLCK, 0, 1));
	done = act_end(&b, A_WHILE, &answer);
	CHECK(!done, "b does not wait: %s", strerror(answer.err));
	actor_kill(&b);
	actor_start(&b, 0);
	done = act_end(&a, PATIENCE, &answer);
	CHECK(done && answer.ret == 0, "a gets it");
	return GOOD;
}

static enum verdict ofd_exclusion(void)
{
	CHECK(lock(&a, F_OFD_SETLK, F_WRLCK, 0, 1) == 0, "lock");
	MUST(lock(&b, F_OFD_SETLK, F_WRLCK, 0, 1) == EAGAIN,
	     0, "OFD lock granted twice");
	CHECK(wlock(&b, 0, 1) == EAGAIN, "a process lock, too");
	CHECK(wlock(&a2, 0, 1) == EAGAIN, "on the same node, too");
	/* of the same process, through another open */
	CHECK(open_at(&a, 0, 1, O_RDWR).ret != -1, "open");
	CHECK(act(&a, lock_call(1, F_OFD_SETLK, F_WRLCK, 0, 1)).err == EAGAIN,
	      "the same process, another open");
	return GOOD;
}

static enum verdict ofd_release(void)
{
	struct call call = { .act = ACT_CLOSE, .slot = 1 };

	CHECK(open_at(&a, 0, 1, O_RDWR).ret != -1, "open");
	CHECK(lock(&a, F_OFD_SETLK, F_WRLCK, 0, 1) == 0, "lock");
	CHECK(act(&a, call).ret == 0, "close of another");
	CHECK(wlock(&b, 0, 1) == EAGAIN, "freed by another's close");
	CHECK(simple(&a, ACT_FORK_CLOSE, 0, 0, 0).ret == 0, "fork");
	CHECK(wlock(&b, 0, 1) == EAGAIN, "freed by a child's close");
	CHECK(simple(&a, ACT_CLOSE, 0, 0, 0).ret == 0, "close");
	MUST(gets_lock(&b, 0), 0, "still locked");
	return GOOD;
}

static enum verdict flock_exclusion(void)
{
	int ret;

	ret = flock_of(&a, LOCK_EX | LOCK_NB);
	if (ret != 0) {
		return bad(ret, "%s", strerror(ret));
	}
	MUST(flock_of(&b, LOCK_EX | LOCK_NB) == EAGAIN,
	     0, "flock granted twice");
	CHECK(wlock(&b, 0, 1) == 0, "fcntl stands apart");
	CHECK(flock_of(&a, LOCK_SH | LOCK_NB) == 0, "downgrade");
	CHECK(flock_of(&b, LOCK_SH | LOCK_NB) == 0, "shared");
	CHECK(flock_of(&a, LOCK_UN) == 0 && flock_of(&b, LOCK_UN) == 0,
	      "unlock");
	return GOOD;
}

static enum verdict flock_release(void)
{
	CHECK(flock_of(&a, LOCK_EX) == 0, "flock");
	CHECK(simple(&a, ACT_FORK_CLOSE, 0, 0, 0).ret == 0, "fork");
	CHECK(flock_of(&b, LOCK_EX | LOCK_NB) == EAGAIN, "a child's close");
	actor_kill(&a);
	actor_start(&a, 0);
	CHECK(flock_of(&b, LOCK_EX) == 0, "after SIGKILL");
	return GOOD;
}

static enum verdict range64(void)
{
	static const int64_t offsets[] = {
		(INT64_C(1) << 31) - 1, INT64_C(1) << 31, INT64_C(1) << 32,
		(INT64_C(1) << 32) + 5, INT64_C(1) << 62,
	};
	size_t i;

	CHECK(wlock(&a, 5, 1) == 0 && wlock(&a, 0, 1) == 0, "low");
	for (i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		int ret = wlock(&b, offsets[i], 1);

		if (ret != 0) {
			return bad(ret, "offset %lld: %s",
				   (long long)offsets[i], strerror(ret));
		}
	}
	CHECK(wlock(&a, 10, 0) == EAGAIN, "to the end");
	return GOOD;
}

static enum verdict many_locks(void)
{
	int i;

	for (i = 0; i < 2000; i++) {
		int ret = wlock(&a, i * 2, 1);

		if (ret != 0) {
			return bad(ret, "lock %d: %s", i, strerror(ret));
		}
	}
	for (i = 0; i < 2000; i++) {
		MUST(wlock(&b, i * 2, 1) == EAGAIN, 0, "lock %d is lost", i);
	}
	CHECK(unlock(&a, 0, 0) == 0 && wlock(&b, 0, 0) == 0, "all at once");
	return GOOD;
}

/* Held for a while in which nobody asks. */
static enum verdict lock_lasts(void)
{
	CHECK(wlock(&a, 0, 1) == 0, "lock");
	pause_ms(1500);
	MUST(wlock(&b, 0, 1) == EAGAIN, 0, "lost");
	return GOOD;
}

/* Another owner's unlock leaves it alone. */
static enum verdict foreign_unlock(void)
{
	CHECK(wlock(&a, 0, 1) == 0 && unlock(&b, 0, 1) == 0, "unlock");
	MUST(wlock(&c, 0, 1) == EAGAIN, 0, "another's unlock freed it");
	return GOOD;
}

/* Random calls of three owners, against one byte of state for each byte. */
static enum verdict model(void)
{
	enum { BYTES = 40, CALLS = 4000 };
	static const short types[] = { F_RDLCK, F_WRLCK, F_UNLCK };
	struct actor *actors[] = { &a, &a2, &b };
	short held[3][BYTES];
	unsigned int random = 1;
	int i;
	int j;
	int k;

	for (i = 0; i < 3; i++) {
		for (j = 0; j < BYTES; j++) {
			held[i][j] = F_UNLCK;
		}
	}
	for (i = 0; i < CALLS; i++) {
		int who = rand_r(&random) % 3;
		short type = types[rand_r(&random) % 3];
		int start = rand_r(&random) % BYTES;
		int len = 1 + rand_r(&random) % (BYTES - start);
		int want = 0;
		int ret;

		for (j = start; j < start + len && type != F_UNLCK; j++) {
			for (k = 0; k < 3; k++) {
				if (k != who && held[k][j] != F_UNLCK &&
				    (type == F_WRLCK ||
				     held[k][j] == F_WRLCK)) {
					want = EAGAIN;
				}
			}
		}
		ret = lock(actors[who], F_SETLK, type, start, len);
		if (ret != want) {
			return bad(i, "call %d: %s instead of %s", i,
				   strerror(ret), strerror(want));
		}
		for (j = start; j < start + len && ret == 0; j++) {
			held[who][j] = type;
		}
	}
	return GOOD;
}

/* One lock every now and then fails. */
static enum verdict hundred_locks(void)
{
	int num = 0;
	int i;

	for (i = 0; i < 100; i++) {
		num += (wlock(&a, 0, 1) != 0);
		unlock(&a, 0, 1);
	}
	if (num != 0) {
		return bad(num, "%d of 100 failed", num);
	}
	return GOOD;
}

static enum verdict hundred_exclusions(void)
{
	int num = 0;
	int i;

	for (i = 0; i < 100; i++) {
		CHECK(wlock(&a, 0, 1) == 0, "lock");
		num += (wlock(&b, 0, 1) != EAGAIN);
		unlock(&b, 0, 1);
		unlock(&a, 0, 1);
	}
	if (num != 0) {
		return bad(num, "%d of 100", num);
	}
	return GOOD;
}

static enum verdict unlock_while_contended(void)
{
	int ret;

	CHECK(lock_works() == GOOD, "alone");
	CHECK(wlock(&a, 0, 1) == 0, "lock");
	ret = wlock(&b, 5, 1);
	if (ret != 0) {
		return bad(ret, "%s", strerror(ret));
	}
	return GOOD;
}

static enum verdict eleven_locks(void)
{
	int i;

	for (i = 0; i < 11; i++) {
		int ret = wlock(&a, 2 * i, 1);

		if (ret != 0) {
			return bad(i, "lock %d", i);
		}
	}
	return GOOD;
}

/* Slow is what is slow each time. */
static enum verdict quick_locks(void)
{
	int i;

	for (i = 0; i < 5; i++) {
		double start = seconds();
		double took;

		CHECK(lock_works() == GOOD && lock_works() == GOOD, "lock");
		took = seconds() - start;
		if (took < 0.1) {
			return GOOD;
		}
	}
	return bad(0, "each pair of locks took 0.1 s");
}

/*
 * Scenes: data
 */

static enum verdict data_seen(void)
{
	CHECK(write_at(&a, 0, 8192, 'x'), "write");
	CHECK(byte_at(&b, 0) == 'x', "first read");
	CHECK(write_at(&a, 0, 8192, 'y'), "write again");
	MUST(byte_at(&b, 0) == 'y', 1, "old data at 0");
	MUST(byte_at(&b, 5000) == 'y', 2, "old data at 5000");
	CHECK(write_at(&b, 0, 1, 'z') && byte_at(&b, 0) == 'z' &&
	      byte_at(&a, 0) == 'z', "own write");
	return GOOD;
}

/* Large reads only. */
static enum verdict large_read_seen(void)
{
	struct answer answer;

	CHECK(write_at(&a, 0, 8192, 'x') && write_at(&a, 0, 8192, 'y'),
	      "write");
	CHECK(byte_at(&b, 0) == 'y', "small read");
	answer = simple(&b, ACT_READ, 0, 8192, 0);
	if (answer.v[1] != 'y') {
		return bad(0, "old data in a large read");
	}
	return GOOD;
}

static enum verdict data_seen_after_reopen(void)
{
	CHECK(write_at(&a, 0, 100, 'x') && write_at(&a, 0, 100, 'y'),
	      "write");
	CHECK(open_at(&b, 1, 0, O_RDWR).ret != -1, "open again");
	CHECK(byte_at(&b, 0) == 'y', "old data after reopening");
	return GOOD;
}

static enum verdict data_seen_in_the_end(void)
{
	double end = seconds() + PATIENCE / 1000.0;

	CHECK(write_at(&a, 0, 100, 'x') && write_at(&a, 0, 100, 'y'),
	      "write");
	while (byte_at(&b, 0) != 'y') {
		CHECK(seconds() < end, "old data for ever");
		pause_ms(10);
	}
	return GOOD;
}

static enum verdict writes_arrive(void)
{
	CHECK(write_at(&a, 0, 100, 'x'), "write");
	MUST(byte_at(&a, 0) == 'x' && byte_at(&b, 0) == 'x',
	     0, "the write is lost");
	return GOOD;
}

static enum verdict size_seen_by_b(void)
{
	CHECK(write_at(&a, 0, 100, 'x'), "write");
	MUST(size_seen(&b) == 100, size_seen(&b), "growth not seen");
	CHECK(simple(&b, ACT_READ, 0, 1000, 0).ret == 100, "read to the end");
	CHECK(simple(&a, ACT_TRUNCATE, 10, 0, 0).ret == 0, "truncate");
	MUST(size_seen(&b) == 10, size_seen(&b), "truncation not seen");
	CHECK(simple(&b, ACT_READ, 0, 1000, 0).ret == 10, "read to the end");
	CHECK(simple(&c, ACT_TRUNCATE, 50, 0, 0).ret == 0 &&
	      size_seen(&b) == 50 && byte_at(&b, 40) == 0, "grown again");
	return GOOD;
}

static enum verdict append(void)
{
	int64_t size;
	int i;

	CHECK(open_at(&a, 0, 0, O_RDWR | O_APPEND).ret != -1 &&
	      open_at(&b, 1, 0, O_RDWR | O_APPEND).ret != -1, "open");
	for (i = 0; i < 10; i++) {
		CHECK(write_at(&a, 0, 10, 'a') && write_at(&b, 0, 10, 'b'),
		      "write");
	}
	size = size_seen(&c);
	if (size != 200) {
		return bad(size, "size %lld instead of 200", (long long)size);
	}
	for (i = 0; i < 20; i++) {
		CHECK(byte_at(&c, i * 10 + 5) == (i % 2 ? 'b' : 'a'),
		      "record %d", i);
	}
	return GOOD;
}

static enum verdict name_seen(void)
{
	struct call list = path_call(ACT_LIST, 1, "");
	struct answer answer;
	char name[64];

	snprintf(name, sizeof(name), "%s.dir", file);
	memcpy(list.name, name, sizeof(name));
	CHECK(act(&b, path_call(ACT_STAT, 1, name)).err == ENOENT, "before");
	CHECK(act(&a, path_call(ACT_MKDIR, 0, name)).ret == 0, "mkdir");
	answer = act(&b, path_call(ACT_STAT, 1, name));
	if (answer.ret != 0) {
		act(&a, path_call(ACT_RMDIR, 0, name));
		return bad(1, "a new name is not seen");
	}
	CHECK(act(&b, list).ret == 1, "a new name is not listed");
	CHECK(act(&a, path_call(ACT_RMDIR, 0, name)).ret == 0, "rmdir");
	CHECK(act(&b, path_call(ACT_STAT, 1, name)).err == ENOENT,
	      "a removed name is seen");
	CHECK(act(&b, list).ret == 0, "a removed name is listed");
	return GOOD;
}

static enum verdict same_ino(void)
{
	struct answer one = act(&a, path_call(ACT_STAT, 0, file));
	struct answer two = act(&b, path_call(ACT_STAT, 1, file));

	CHECK(one.ret == 0 && two.ret == 0, "stat");
	if (one.v[1] != two.v[1]) {
		return bad(0, "st_ino differs between nodes");
	}
	return GOOD;
}

static enum verdict ino_stays(void)
{
	struct answer one = simple(&b, ACT_FSTAT, 0, 0, 0);
	struct answer two;

	CHECK(open_at(&b, 1, 0, O_RDWR).ret != -1, "open");
	two = simple(&b, ACT_FSTAT, 0, 0, 0);
	if (one.v[1] != two.v[1]) {
		return bad(0, "st_ino changes");
	}
	return GOOD;
}

/* After it has been used, the name still means the same file. */
static enum verdict file_stays(void)
{
	struct answer one = act(&a, path_call(ACT_STAT, 0, file));
	struct answer two;

	CHECK(lock_works() == GOOD, "lock");
	two = act(&b, path_call(ACT_STAT, 1, file));
	if (two.ret == -1) {
		return bad(two.err, "gone: %s", strerror(two.err));
	}
	if (one.v[1] != two.v[1]) {
		return bad(0, "replaced");
	}
	return GOOD;
}

/* "make" and "unmake" as EROFS, ENOSPC and the like see them. */
static enum verdict can_write(void)
{
	struct answer answer = simple(&a, ACT_WRITE, 0, 10, 'x');
	char name[64];

	if (answer.ret == -1) {
		return bad(answer.err, "write: %s", strerror(answer.err));
	}
	snprintf(name, sizeof(name), "%s.dir", file);
	CHECK(act(&a, path_call(ACT_MKDIR, 0, name)).ret == 0 &&
	      act(&a, path_call(ACT_RMDIR, 0, name)).ret == 0, "mkdir");
	return GOOD;
}

static enum verdict can_read(void)
{
	struct answer answer = simple(&b, ACT_READ, 0, 10, 0);

	if (answer.ret == -1) {
		return bad(answer.err, "read: %s", strerror(answer.err));
	}
	return GOOD;
}

static enum verdict can_list(void)
{
	struct call list = path_call(ACT_LIST, 1, "");

	snprintf(list.name, sizeof(list.name), "%s", file);
	CHECK(act(&b, list).ret == 1, "not listed");
	return GOOD;
}

/*
 * Scenes: mappings
 */

static enum verdict map_both(void)
{
	struct answer answer;

	CHECK(write_at(&a, 0, 8192, 'x'), "write");
	CHECK(size_seen(&a) == 8192 && size_seen(&b) == 8192, "size");
	answer = simple(&a, ACT_MAP, 8192, 0, 0);
	if (answer.ret == -1) {
		return bad(answer.err, "mmap: %s", strerror(answer.err));
	}
	answer = simple(&b, ACT_MAP, 8192, 0, 0);
	if (answer.ret == -1) {
		return bad(answer.err, "mmap: %s", strerror(answer.err));
	}
	CHECK(simple(&a, ACT_LOAD, 0, 0, 0).ret == 'x' &&
	      simple(&b, ACT_LOAD, 0, 0, 0).ret == 'x', "first load");
	return GOOD;
}

static enum verdict map_seen(void)
{
	enum verdict v = map_both();

	if (v != GOOD) {
		return v;
	}
	simple(&a, ACT_STORE, 0, 'y', 0);
	MUST(simple(&b, ACT_LOAD, 0, 0, 0).ret == 'y',
	     1, "a store is not seen by the other's mapping");
	MUST(byte_at(&b, 0) == 'y',
	     2, "a store is not seen by the other's read");
	CHECK(write_at(&b, 4096, 1, 'z'), "write");
	MUST(simple(&a, ACT_LOAD, 4096, 0, 0).ret == 'z',
	     3, "a write is not seen by the other's mapping");
	return GOOD;
}

static enum verdict map_local(void)
{
	enum verdict v = map_both();

	if (v != GOOD) {
		return v;
	}
	simple(&a, ACT_STORE, 0, 'y', 0);
	MUST(byte_at(&a, 0) == 'y',
	     1, "a store is not seen by read on its own node");
	CHECK(write_at(&a, 4096, 1, 'z'), "write");
	MUST(simple(&a, ACT_LOAD, 4096, 0, 0).ret == 'z',
	     2, "a write is not seen by its own node's mapping");
	return GOOD;
}

static enum verdict lease_broken(void)
{
	struct call call = path_call(ACT_OPEN, 1, file);
	struct answer answer;
	bool done;
	int i;

	answer = simple(&a, ACT_LEASE, F_WRLCK, 0, 0);
	if (answer.err == EAGAIN) {
		/* whoever else has it open on that node */
		actor_kill(&a2);
		actor_start(&a2, 0);
		for (i = 0; i < 100 && answer.ret == -1; i++) {
			pause_ms(10);
			answer = simple(&a, ACT_LEASE, F_WRLCK, 0, 0);
		}
	}
	CHECK(answer.ret == 0, "lease: %s", strerror(answer.err));
	call.a = O_RDWR;
	act_begin(&b, call);
	done = act_end(&b, A_WHILE, &answer);
	if (done) {
		return bad(0, "opened under another node's lease");
	}
	CHECK(simple(&a, ACT_LEASE_BROKEN, 0, 0, 0).ret == 1, "no signal");
	CHECK(simple(&a, ACT_LEASE, F_UNLCK, 0, 0).ret == 0, "given up");
	done = act_end(&b, PATIENCE, &answer);
	CHECK(done && answer.ret != -1, "open");
	return GOOD;
}

/*
 * Scenes: calls that do not return. BAD: it hangs, the file system answers
 * everybody else, and it can be killed (1) or not (2).
 */

static enum verdict hangs_at(struct call call)
{
	struct answer answer;
	unsigned long num_hits;
	bool done;
	char state;
	int i;

	act_begin(&a, call);
	done = act_end(&a, A_WHILE, &answer);
	if (done) {
		CHECK(answer.ret != -1, "%s", strerror(answer.err));
		return GOOD;
	}
	num_hits = hits();
	if (num_hits == 0) {
		/* just slow: wait for it */
		done = act_end(&a, PATIENCE, &answer);
		CHECK(done && answer.ret != -1, "no answer");
		return GOOD;
	}
	CHECK(byte_at(&b, 0) == 'x' && wlock(&b, 7, 1) == 0 &&
	      byte_at(&a2, 0) == 'x', "the others hang, too");

	kill(a.pid, SIGKILL);
	for (i = 0; i < 100; i++) {
		pause_ms(10);
		state = actor_state(&a);
		if (state == 'Z') {
			break;
		}
	}
	control("fault clear");
	actor_end(&a);
	actor_start(&a, 0);
	CHECK(state == 'Z' || state == 'D', "state %c", state);
	return bad(state == 'Z' ? 1 : 2, "hangs, state %c", state);
}

static enum verdict hang_trylock(void)
{
	CHECK(write_at(&a, 0, 10, 'x'), "write");
	return hangs_at(lock_call(0, F_SETLK, F_WRLCK, 0, 1));
}

static enum verdict hang_waitlock(void)
{
	CHECK(write_at(&a, 0, 10, 'x'), "write");
	return hangs_at(lock_call(0, F_SETLKW, F_WRLCK, 0, 1));
}

static enum verdict hang_unlock(void)
{
	CHECK(write_at(&a, 0, 10, 'x') && wlock(&a, 0, 1) == 0, "write");
	return hangs_at(lock_call(0, F_SETLK, F_UNLCK, 0, 1));
}

static enum verdict hang_getlk(void)
{
	struct call call = lock_call(0, F_GETLK, F_WRLCK, 0, 1);

	call.act = ACT_GETLK;
	CHECK(write_at(&a, 0, 10, 'x'), "write");
	return hangs_at(call);
}

static enum verdict hang_stat(void)
{
	CHECK(write_at(&a, 0, 10, 'x'), "write");
	return hangs_at(path_call(ACT_STAT, 0, file));
}

static enum verdict hang_open(void)
{
	CHECK(write_at(&a, 0, 10, 'x'), "write");
	return hangs_at(path_call(ACT_OPEN, 0, file));
}

static enum verdict hang_create(void)
{
	struct call call = path_call(ACT_OPEN, 0, file);

	strcat(call.path, ".new");
	call.a = O_CREAT | O_RDWR;
	CHECK(write_at(&a, 0, 10, 'x'), "write");
	return hangs_at(call);
}

static enum verdict hang_read(void)
{
	struct call call = { .act = ACT_READ, .b = 10, .a = 5 };

	CHECK(write_at(&a, 0, 100, 'x'), "write");
	return hangs_at(call);
}

static enum verdict hang_write(void)
{
	struct call call = { .act = ACT_WRITE, .b = 10, .c = 'x', .a = 5 };

	CHECK(write_at(&b, 0, 100, 'x'), "write");
	return hangs_at(call);
}

static enum verdict hang_fsync(void)
{
	struct call call = { .act = ACT_FSYNC };

	CHECK(write_at(&a, 0, 10, 'x'), "write");
	return hangs_at(call);
}

static enum verdict hang_unlink(void)
{
	CHECK(write_at(&a, 0, 10, 'x'), "write");
	return hangs_at(path_call(ACT_UNLINK, 0, file));
}

static enum verdict hang_mkdir(void)
{
	struct call call = path_call(ACT_MKDIR, 0, file);

	strcat(call.path, ".dir");
	CHECK(write_at(&a, 0, 10, 'x'), "write");
	return hangs_at(call);
}

static enum verdict hang_readdir(void)
{
	CHECK(write_at(&a, 0, 10, 'x'), "write");
	return hangs_at(path_call(ACT_LIST, 0, ""));
}

static enum verdict hang_close(void)
{
	struct call call = { .act = ACT_CLOSE };

	CHECK(write_at(&a, 0, 10, 'x'), "write");
	return hangs_at(call);
}

/* Let go by the end of the fault, with EIO or as if nothing had been. */
static enum verdict hangs_then(int want)
{
	struct answer answer;
	bool done;

	act_begin(&a, lock_call(0, F_SETLK, F_WRLCK, 0, 1));
	done = act_end(&a, A_WHILE, &answer);
	if (done) {
		CHECK(answer.ret == 0, "%s", strerror(answer.err));
		return GOOD;
	}
	control("fault clear");
	done = act_end(&a, PATIENCE, &answer);
	CHECK(done, "not let go");
	if (answer.err == want) {
		return bad(want, "hung, then: %s", strerror(want));
	}
	return bad(-1, "hung, then: %s", strerror(answer.err));
}

static enum verdict hang_then_eio(void)
{
	return hangs_then(EIO);
}

static enum verdict hang_then_done(void)
{
	return hangs_then(0);
}

/*
 * Scenes: nodes that come and go
 */

/* In a mount namespace of its own: pid of the joiner, or -1. */
static pid_t join(int index, const char *path)
{
	char number[16];
	struct stat before = {};
	struct stat st = {};
	char seen[300];
	pid_t pid;
	int ret;
	int i;

	mkdir(path, 0755);
	ret = stat(path, &before);
	if (ret == -1) {
		return -1;
	}
	snprintf(number, sizeof(number), "%d", index);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		close_range(3, ~0U, 0);
		ret = unshare(CLONE_NEWNS);
		if (ret == 0) {
			ret = mount("none", "/", NULL, MS_REC | MS_PRIVATE,
				    NULL);
		}
		if (ret == 0) {
			execl(program, "clusterfs", "--join", control_path,
			      "--member", number, path, (char *)NULL);
		}
		_exit(1);
	}
	snprintf(seen, sizeof(seen), "/proc/%d/root%s", (int)pid, path);
	for (i = 0; i < 1000; i++) {
		ret = stat(seen, &st);
		if (ret == 0 && st.st_dev != before.st_dev) {
			return pid;
		}
		pause_ms(10);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return -1;
}

/* A lock of a node that goes: BAD if it stays. */
static enum verdict node_goes(int sig)
{
	struct actor d;
	struct call call = { .act = ACT_OPEN, .a = O_RDWR };
	struct answer answer;
	char path[210];
	pid_t joiner;
	int ret;
	int held;
	bool freed;

	snprintf(path, sizeof(path), "%s/joined", dir);
	joiner = join(5, path);
	CHECK(joiner != -1, "join");
	actor_start(&d, joiner);
	snprintf(call.path, sizeof(call.path), "%s/%s", path, file);
	answer = act(&d, call);
	ret = answer.ret == -1 ? answer.err : wlock(&d, 0, 1);
	held = wlock(&b, 0, 1);
	if (ret != 0 || held != EAGAIN) {
		actor_kill(&d);
		kill(joiner, SIGTERM);
		waitpid(joiner, NULL, 0);
		return bad(-1, "no lock there: %s", strerror(ret));
	}
	kill(joiner, sig);
	waitpid(joiner, NULL, 0);
	freed = gets_lock(&b, 0);
	actor_kill(&d);
	if (!freed) {
		return bad(0, "a dead node's lock stays");
	}
	return GOOD;
}

static enum verdict node_death(void)
{
	return node_goes(SIGKILL);
}

static enum verdict node_leaves(void)
{
	return node_goes(SIGTERM);
}

/*
 * Cases
 */

struct healthy_case {
	const char *name;
	enum verdict (*scene)(void);
};

static const struct healthy_case healthy_cases[] = {
	{ "exclusion", exclusion },
	{ "exclusion on one node", exclusion_on_one_node },
	{ "single bytes", single_bytes },
	{ "shared, upgrade, downgrade", shared },
	{ "split range", split },
	{ "random ranges against a model", model },
	{ "getlk of another's lock", getlk_other },
	{ "getlk of one's own lock", getlk_own },
	{ "handoff", handoff },
	{ "waiters in order", in_order },
	{ "fair", fair },
	{ "interrupted waiter", interrupted },
	{ "killed waiter", killed_waiter },
	{ "release by close", freed_by_close },
	{ "release by close of another descriptor", freed_by_other_close },
	{ "release by exit", freed_by_exit },
	{ "release by SIGKILL", freed_by_kill },
	{ "fork and close keeps the lock", kept_by_fork_close },
	{ "another owner's unlock", foreign_unlock },
	{ "deadlock of process locks", deadlock },
	{ "no deadlock of OFD locks", no_deadlock_ofd },
	{ "OFD exclusion", ofd_exclusion },
	{ "OFD release", ofd_release },
	{ "flock exclusion", flock_exclusion },
	{ "flock release", flock_release },
	{ "64 bit offsets", range64 },
	{ "many locks", many_locks },
	{ "data", data_seen },
	{ "size", size_seen_by_b },
	{ "append", append },
	{ "names", name_seen },
	{ "inode number", same_ino },
	{ "mmap across nodes", map_seen },
	{ "mmap on one node", map_local },
	{ "lease broken by another node's open", lease_broken },
	{ "a node in its own namespace dies", node_death },
	{ "a node in its own namespace leaves", node_leaves },
};

struct fault_case {
	const char *fault;
	enum verdict (*scene)(void);	/* BAD with the fault */
	int64_t detail;			/* and this detail */
	enum verdict (*unharmed)(void);	/* GOOD with the fault */
};

static const struct fault_case fault_cases[] = {
	{ "local-locks", exclusion, 0, exclusion_on_one_node },
	{ "local-locks:member=1", exclusion, 0, exclusion_on_one_node },
	{ "local-locks:family=posix", exclusion, 0, flock_exclusion },
	{ "local-locks:family=process", exclusion, 0, flock_exclusion },
	{ "local-locks:family=ofd", ofd_exclusion, 0, exclusion },
	{ "local-locks:family=flock", flock_exclusion, 0, exclusion },
	{ "local-locks:after=2", foreign_unlock, 0, data_seen },
	{ "noop-locks", exclusion_on_one_node, 0, data_seen },
	{ "noop-locks:op=getlk", getlk_other, 1, exclusion },
	{ "error", lock_works, ENOLCK, data_seen },
	{ "error:errno=ENOSYS,op=lock+unlock+getlk", lock_works, ENOSYS,
	  data_seen },
	{ "error:errno=EOPNOTSUPP,family=flock", flock_exclusion, EOPNOTSUPP,
	  exclusion },
	{ "error:errno=ENOENT,op=unlock", lock_works, ENOENT, getlk_own },
	{ "error:errno=EDEADLK,op=waitlock", handoff, EDEADLK, exclusion },
	{ "error:errno=EINVAL,offset=2g-", range64, EINVAL, exclusion },
	{ "error:errno=EIO,probability=.5,seed=7", hundred_locks, -1,
	  data_seen },
	{ "error:errno=EACCES,contended=1", unlock_while_contended, EACCES,
	  lock_works },
	{ "error:errno=ENOLCK,held=10", eleven_locks, 10, lock_works },
	{ "error:errno=ENOLCK,load=50", hundred_locks, -1, data_seen },
	{ "error:errno=EIO,op=read,member=1", can_read, EIO, can_write },
	{ "error:errno=EIO,op=write,size=10", can_write, EIO, size_seen_by_b },
	{ "hang:op=trylock,member=0", hang_trylock, 1, data_seen },
	{ "hang:op=waitlock,member=0", hang_waitlock, 1, exclusion },
	{ "hang:op=waitlock,member=0,killable=0", hang_waitlock, 2,
	  exclusion },
	{ "hang:op=unlock,member=0", hang_unlock, 1, data_seen },
	{ "hang:op=getlk,member=0,killable=0", hang_getlk, 2, exclusion },
	{ "hang:op=stat,member=0", hang_stat, 1, exclusion },
	{ "hang:op=open,member=0,killable=0,after=2", hang_open, 2,
	  exclusion },
	{ "hang:op=create,member=0,after=1", hang_create, 1, exclusion },
	{ "hang:op=read,member=0,offset=5,size=10", hang_read, 1,
	  exclusion },
	{ "hang:op=write,member=0,killable=0,offset=5,size=10", hang_write,
	  2, exclusion },
	{ "hang:op=fsync,member=0", hang_fsync, 1, exclusion },
	{ "hang:op=unlink,member=0", hang_unlink, 1, exclusion },
	{ "hang:op=mkdir,member=0,killable=0", hang_mkdir, 2, exclusion },
	{ "hang:op=readdir,member=0", hang_readdir, 1, can_list },
	{ "hang:op=close,member=0,count=1", hang_close, 1, exclusion },
	{ "hang:op=trylock,member=0,seed=1", hang_then_eio, EIO, data_seen },
	{ "hang:op=trylock,member=0,resume=1", hang_then_done, 0,
	  data_seen },
	{ "coarse-locks", single_bytes, 0, far_bytes },
	{ "coarse-locks:unit=0", far_bytes, 0, flock_exclusion },
	{ "stuck-locks:on=close", freed_by_close, 0, freed_by_kill },
	{ "stuck-locks:on=exit", freed_by_exit, 0, freed_by_close },
	{ "stuck-locks:on=kill", freed_by_kill, 0, freed_by_close },
	{ "stuck-locks:on=close,family=ofd", ofd_release, 0,
	  freed_by_close },
	{ "stuck-locks:on=cancel", interrupted, 0, freed_by_kill },
	{ "stuck-locks:on=cancel,seed=1", killed_waiter, 0, freed_by_kill },
	{ "stuck-locks:on=death,member=5", node_death, 0, freed_by_kill },
	{ "stuck-locks:seconds=3", freed_by_kill, 0, freed_in_the_end },
	{ "no-wakeup", handoff, 0, handoff_or_asked },
	{ "no-wakeup:until=never", handoff_or_asked, 0, exclusion },
	{ "lost-locks", exclusion, 0, getlk_own },
	{ "lost-locks:how=conflict,probability=.1", hundred_exclusions, -1,
	  data_seen },
	{ "lost-locks:how=restart,after=1,count=1", exclusion, 0,
	  data_seen },
	{ "lost-locks:how=lease,seconds=1", lock_lasts, 0, exclusion },
	{ "lost-locks:how=max,max=1000", many_locks, 0, exclusion },
	{ "lost-locks:how=foreign", foreign_unlock, 0, handoff },
	{ "mixed-owner:how=close", kept_by_fork_close, 0, exclusion },
	{ "mixed-owner:how=node", exclusion_on_one_node, 0, single_bytes },
	{ "stale-data:member=1", data_seen, 1, exclusion },
	{ "stale-data:member=1,offset=4k-", data_seen, 2, size_seen_by_b },
	{ "stale-data:member=1,size=4k-", large_read_seen, 0, append },
	{ "stale-data:member=1,until=reopen", data_seen, 1,
	  data_seen_after_reopen },
	{ "stale-data:member=1,seconds=3", data_seen, 1,
	  data_seen_in_the_end },
	{ "stale-size:member=1", size_seen_by_b, 0, exclusion },
	{ "stale-names:member=1", name_seen, ENOENT, NULL },
	{ "stale-names:member=1,seconds=5,after=1", name_seen, 1, exclusion },
	{ "lost-writes:member=0", writes_arrive, 0, exclusion },
	{ "append-overwrites", append, -1, data_seen },
	{ "mmap-incoherent", map_seen, -1, map_local },
	{ "mmap-incoherent:scope=local", map_local, 1, data_seen },
	{ "mmap-refused", map_both, ENODEV, data_seen },
	{ "slow:ms=100", quick_locks, 0, data_seen },
	{ "slow:rate=8", quick_locks, 0, data_seen },
	{ "slow:ms_per_member=100", quick_locks, 0, data_seen },
	{ "unfair:favourite=0,ms=2000", fair, 0, exclusion },
	{ "ids", same_ino, 0, exclusion },
	{ "ids:ino=open,member=1", ino_stays, 0, exclusion },
	{ "getlk-lies", getlk_other, 1, getlk_own },
	{ "getlk-lies:how=own", getlk_own, 0, getlk_other },
	{ "getlk-lies:how=range", getlk_other, 2, getlk_own },
	{ "getlk-lies:how=type", getlk_other, 3, getlk_own },
	{ "lease-kept:member=0", lease_broken, 0, exclusion },
	{ "read-only:op=write+mkdir", can_write, EROFS, exclusion },
	{ "full:op=write+mkdir", can_write, ENOSPC, exclusion },
	{ "quota:op=write+mkdir", can_write, EDQUOT, exclusion },
	{ "replaced:op=lock", file_stays, 0, data_seen },
	{ "replaced:op=lock,how=vanish", file_stays, ENOENT, data_seen },
	{ "confused-locks", readers, 1, exclusion },
	{ "confused-locks:how=readers", readers, 2, data_seen },
	{ "confused-locks:how=downgrade", downgrade, 0, exclusion },
	{ "confused-locks:how=unlock", unlock_of_a_part, 0, exclusion },
	{ "torn-writes", data_seen, 2, exclusion },
	{ "offset-bits:bits=32", range64, EAGAIN, exclusion },
	{ "offset-bits:bits=31", range64, EAGAIN, exclusion },
	{ "offset-bits:bits=62,how=refuse", range64, EOVERFLOW, exclusion },
};

static enum verdict play_scene(enum verdict (*scene)(void))
{
	enum verdict v;

	detail = 0;
	reason[0] = '\0';
	actor_start(&a, 0);
	actor_start(&a2, 0);
	actor_start(&b, 0);
	actor_start(&c, 0);
	v = set_the_stage();
	if (v == GOOD) {
		v = scene();
	}
	curtain();
	return v;
}

static void result(bool ok, const char *name, const char *why)
{
	if (ok) {
		printf("ok %s\n", name);
		passed += 1;
	} else {
		printf("not ok %s: %s\n", name, why);
		failed += 1;
	}
	fflush(stdout);
}

static void run_healthy(const struct healthy_case *tc)
{
	enum verdict v = play_scene(tc->scene);

	result(v == GOOD, tc->name, reason);
}

static void run_fault(const struct fault_case *tc)
{
	char why[400] = "";
	enum verdict v;
	unsigned long num_hits = 0;
	bool ok;

	v = play_scene(tc->scene);
	if (v != GOOD) {
		snprintf(why, sizeof(why), "before the fault: %s", reason);
		goto done;
	}
	if (tc->unharmed != NULL) {
		ok = control("fault add %s", tc->fault);
		v = play_scene(tc->unharmed);
		if (!ok || v != GOOD) {
			snprintf(why, sizeof(why), "%s",
				 ok ? reason : "it is refused");
			control("fault clear");
			goto done;
		}
		control("fault clear");
	}
	control("fault add %s", tc->fault);
	patience = 500;
	v = play_scene(tc->scene);
	patience = PATIENCE;
	num_hits = hits();
	ok = (strstr(answer_text, tc->fault) == NULL);
	control("fault clear");
	if (v != BAD) {
		snprintf(why, sizeof(why), "not to be seen");
		goto done;
	}
	/* those that clear it themselves have looked at the hits */
	if (num_hits == 0 && !ok) {
		snprintf(why, sizeof(why), "never hit: %s", reason);
		goto done;
	}
	if (tc->detail != -1 && detail != tc->detail) {
		snprintf(why, sizeof(why), "detail %lld, expected %lld: %s",
			 (long long)detail, (long long)tc->detail, reason);
		goto done;
	}
	v = play_scene(tc->scene);
	if (v != GOOD) {
		snprintf(why, sizeof(why), "after it was cleared: %s",
			 reason);
	}
done:
	result(why[0] == '\0', tc->fault, why);
}

/*
 * What fits no table
 */

/* Until two processes are, or are not, both granted a lock. */
static bool until_both(bool granted)
{
	double end = seconds() + PATIENCE / 1000.0;

	while (seconds() < end) {
		bool both = wlock(&a, 0, 1) == 0 && wlock(&a2, 0, 1) == 0;

		unlock(&a, 0, 0);
		unlock(&a2, 0, 0);
		if (both == granted) {
			return true;
		}
		pause_ms(20);
	}
	return false;
}

static enum verdict for_a_time(void)
{
	control("fault add noop-locks:after_s=1000");
	CHECK(exclusion_on_one_node() == GOOD && unlock(&a, 0, 0) == 0,
	      "too early");
	control("fault clear");
	control("fault add noop-locks:after_s=0.2");
	CHECK(until_both(true), "never begins");
	control("fault clear");
	control("fault add noop-locks:for_s=0.2");
	CHECK(until_both(false), "never ends");
	return GOOD;
}

static enum verdict same_seed(void)
{
	int num[2] = {};
	int i;
	int j;

	for (i = 0; i < 2; i++) {
		control("fault add error:probability=.3,seed=42");
		for (j = 0; j < 30; j++) {
			int ret = wlock(&a, 0, 1);

			num[i] |= (ret != 0) << j;
		}
		control("fault clear");
	}
	CHECK(num[0] == num[1] && num[0] != 0, "%x %x", num[0], num[1]);
	return GOOD;
}

static enum verdict bad_faults(void)
{
	CHECK(!control("fault add nonsense"), "unknown name");
	CHECK(!control("fault add hang:nonsense=1"), "unknown key");
	CHECK(!control("fault add hang:op=nonsense"), "unknown operation");
	CHECK(!control("fault add hang:member=64"), "member");
	CHECK(!control("fault add hang:probability=x"), "number");
	CHECK(!control("fault add hang:killable"), "no value");
	CHECK(!control("fault clear 4711"), "unknown id");
	CHECK(!control("nonsense"), "unknown command");
	CHECK(hits() == 0 && strcmp(answer_text, "ok\n") == 0, "list");
	return GOOD;
}

static bool source_at(const char *path, const char *source)
{
	FILE *f = fopen("/proc/self/mounts", "re");
	char line[1024];
	char want[400];
	bool found = false;

	snprintf(want, sizeof(want), "%s %s ", source, path);
	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		found = found || strncmp(line, want, strlen(want)) == 0;
	}
	if (f != NULL) {
		fclose(f);
	}
	return found;
}

static void start_server(const char *name, const char *first,
			 const char *second);
static void stop_server(void);

/* Another file system, bad from its mounting on. */
static enum verdict from_the_start(void)
{
	char old_node[NODES][200];
	char old_control[100];
	pid_t old_server = server;
	enum verdict v;
	bool sources;
	int ret;

	memcpy(old_node, node, sizeof(node));
	memcpy(old_control, control_path, sizeof(control_path));
	start_server("start", "kernel-locks:family=posix",
		     "source:member=1");
	sources = source_at(node[0], "clusterfs") &&
		  source_at(node[1], "clusterfs-1");
	curtain();
	actor_start(&a, 0);
	actor_start(&a2, 0);
	actor_start(&b, 0);
	actor_start(&c, 0);
	v = set_the_stage();
	if (v == GOOD) {
		v = exclusion_on_one_node();
	}
	if (v == GOOD) {
		v = flock_exclusion();
	}
	ret = wlock(&c, 0, 1);
	if (v == GOOD && ret != 0) {
		v = bad(0, "the kernel sees another node's lock");
	}
	if (v == GOOD && !sources) {
		v = bad(0, "mount sources");
	}
	curtain();
	stop_server();
	actor_start(&a, 0);
	actor_start(&a2, 0);
	actor_start(&b, 0);
	actor_start(&c, 0);
	server = old_server;
	memcpy(node, old_node, sizeof(node));
	memcpy(control_path, old_control, sizeof(control_path));
	return v;
}

/* The last one: the mount does not come back. */
static enum verdict gone(void)
{
	struct answer answer;
	double end = seconds() + 20;

	CHECK(wlock(&c, 0, 1) == 0, "lock");
	control("fault add gone:member=2");
	do {
		answer = act(&c, path_call(ACT_STAT, 2, file));
		pause_ms(5);
	} while (answer.err != ENOENT && seconds() < end);
	CHECK(answer.err == ENOENT, "the mount is there");
	CHECK(gets_lock(&b, 0), "its lock stays");
	CHECK(byte_at(&b, 0) == -1 && data_seen() == GOOD, "the others");
	control("fault clear");
	return GOOD;
}

static const struct healthy_case other_cases[] = {
	{ "a fault for a time", for_a_time },
	{ "the same seed, the same faults", same_seed },
	{ "bad commands are refused", bad_faults },
	{ "bad from the start", from_the_start },
	{ "gone", gone },
};

static void start_server(const char *name, const char *first,
			 const char *second)
{
	char backing[220];
	int fd = -1;
	int i;

	snprintf(backing, sizeof(backing), "%s/%s", dir, name);
	mkdir(backing, 0755);
	snprintf(control_path, sizeof(control_path), "%s/%s.ctl", dir, name);
	for (i = 0; i < NODES; i++) {
		snprintf(node[i], sizeof(node[i]), "%s/%s%d", dir, name, i);
		mkdir(node[i], 0755);
	}
	server = fork();
	if (server == -1) {
		give_up("fork");
	}
	if (server == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		execl(program, "clusterfs", "--server", control_path,
		      "--fault", first, "--fault", second, backing,
		      node[0], node[1], node[2], (char *)NULL);
		_exit(1);
	}
	for (i = 0; i < 1000 && fd == -1; i++) {
		pause_ms(10);
		fd = control_connect();
	}
	if (fd == -1) {
		give_up("the server does not start");
	}
	close(fd);
}

static void stop_server(void)
{
	int status = 0;

	kill(server, SIGTERM);
	waitpid(server, &status, 0);
	result(WIFEXITED(status) && WEXITSTATUS(status) == 0,
	       "the server ends cleanly", "it does not");
}

static bool asked_for(const char *name, int argc, char **argv)
{
	int i;

	for (i = 3; i < argc; i++) {
		if (strncmp(name, argv[i], strlen(argv[i])) == 0) {
			return true;
		}
	}
	return argc <= 3;
}

int main(int argc, char **argv)
{
	size_t i;
	bool ok;

	if (argc < 3) {
		fprintf(stderr, "usage: selftest CLUSTERFS DIRECTORY "
			"[CASE...]\n");
		return 1;
	}
	i = strlen(argv[2]);
	if (i > 80) {
		errno = ENAMETOOLONG;
		give_up(argv[2]);
	}
	program = argv[1];
	dir = argv[2];
	signal(SIGPIPE, SIG_IGN);
	/* two faults that never come to pass */
	start_server("node", "slow:member=63", "slow:member=63");
	control("fault clear");

	for (i = 0; i < sizeof(healthy_cases) / sizeof(healthy_cases[0]);
	     i++) {
		ok = asked_for(healthy_cases[i].name, argc, argv);
		if (ok) {
			run_healthy(&healthy_cases[i]);
		}
	}
	for (i = 0; i < sizeof(fault_cases) / sizeof(fault_cases[0]); i++) {
		ok = asked_for(fault_cases[i].fault, argc, argv);
		if (ok) {
			run_fault(&fault_cases[i]);
		}
	}
	for (i = 0; i < sizeof(other_cases) / sizeof(other_cases[0]); i++) {
		ok = asked_for(other_cases[i].name, argc, argv);
		if (ok) {
			run_healthy(&other_cases[i]);
			control("fault clear");
		}
	}

	stop_server();
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	return failed == 0 ? 0 : 1;
}
