/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Every system call of a worker fails once, with each errno that a file system
 * or the limits of a process may give, and from there on: a whole session is
 * run again and again, each time with the next call failing, until none does.
 *
 * What is right: the operation in which it happened says so with that errno,
 * those before it are as ever, nothing crashes, no descriptor and no mapping
 * stays, and nothing is left in the place that the next run does not remove.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/probe/ops.h"
#include "core/probe/syscalls.h"

#define LONG_OVER "ffffffff.0.1.1.1.0000000000000001"
#define ALSO_OVER "ffffffff.0.1.1.1.0000000000000002"
#define NEXT_RUN "ffffffff.0.1.1.1.0000000000000003"

/* The first one lasts: from the call on, all fail */
static const int errors[] = {
	EIO, EROFS, EMFILE, EACCES, EPERM, ENOSPC, EDQUOT, ESTALE,
	ENAMETOOLONG,
};

#define LASTING 1

/* Shared with the children that a worker forks */
static struct {
	unsigned calls;		/* made so far */
	unsigned at;		/* the one that fails; 0: none */
	int err;
	bool on;		/* all that follow fail, too */
	unsigned fired;		/* how many did */
	const char *name;	/* of the first */
} *inject;

static const struct syscall_table *own;
static const struct probe_request *session;	/* the one that is run */
static size_t steps;

static bool fails(const char *name)
{
	inject->calls++;
	if (inject->at == 0 || inject->calls < inject->at ||
	    (inject->calls > inject->at && !inject->on)) {
		return false;
	}
	if (inject->fired++ == 0) {
		inject->name = name;
	}
	errno = inject->err;
	return true;
}

#define REPLACE(type, name, args, call) \
	static type fail_##name args \
	{ \
		bool failed = fails(#name); \
		\
		return failed ? (type)-1 : own->name call; \
	}

/* Done all the same, as the kernel does with the last two */
#define REPLACE_LATE(name, args, call) \
	static int fail_##name args \
	{ \
		bool failed = fails(#name); \
		int err = errno; \
		int ret = own->name call; \
		\
		errno = failed ? err : errno; \
		return failed ? -1 : ret; \
	}

REPLACE(int, openat2, (int fd, const char *path, struct open_how *how),
	(fd, path, how))
REPLACE(int, mkdirat, (int fd, const char *path, mode_t mode),
	(fd, path, mode))
REPLACE(int, unlinkat, (int fd, const char *path, int flags),
	(fd, path, flags))
REPLACE(int, renameat, (int fd, const char *from, int to_fd, const char *to),
	(fd, from, to_fd, to))
REPLACE(int, fstat, (int fd, struct stat *st), (fd, st))
REPLACE(int, fstatat, (int fd, const char *path, struct stat *st, int flags),
	(fd, path, st, flags))
REPLACE(int, fstatfs, (int fd, struct statfs *sfs), (fd, sfs))
REPLACE(ssize_t, getdents, (int fd, void *buf, size_t len), (fd, buf, len))
REPLACE(off_t, lseek, (int fd, off_t ofs, int whence), (fd, ofs, whence))
REPLACE(ssize_t, pread, (int fd, void *buf, size_t n, off_t ofs),
	(fd, buf, n, ofs))
REPLACE(ssize_t, pwrite, (int fd, const void *buf, size_t n, off_t ofs),
	(fd, buf, n, ofs))
REPLACE(int, ftruncate, (int fd, off_t size), (fd, size))
REPLACE(int, fcntl_lock, (int fd, int cmd, struct flock *fl), (fd, cmd, fl))
REPLACE(int, fcntl_int, (int fd, int cmd, int arg), (fd, cmd, arg))
REPLACE(int, flock, (int fd, int op), (fd, op))
REPLACE(void *, mmap, (void *addr, size_t n, int prot, int flags, int fd,
		       off_t ofs), (addr, n, prot, flags, fd, ofs))
REPLACE_LATE(close, (int fd), (fd))
REPLACE_LATE(munmap, (void *addr, size_t n), (addr, n))

static struct syscall_table failing;

/* ---- a session: every operation of a worker ------------------------------ */

#define LOCK(kind, how, from) \
	{ .op = PROBE_LOCK, .family = PROBE_##kind, .type = F_##how, \
	  .start = from, .len = 1 }

static const struct probe_request without_children[] = {
	{ .op = PROBE_BEGIN, .name = LONG_OVER, .make = true, .keeper = true },
	{ .op = PROBE_OPEN, .name = "f", .make = true },
	{ .op = PROBE_OPEN, .slot = 1, .name = "f", .append = true },
	{ .op = PROBE_MAKE_MANY, .name = "m", .count = 3 },
	{ .op = PROBE_TRUNCATE, .start = 4096 },
	{ .op = PROBE_WRITE, .len = 100000, .value = 1 },
	{ .op = PROBE_READ, .len = 100000, .value = 1 },
	{ .op = PROBE_MAP, .len = 4096 },
	{ .op = PROBE_MAP_WRITE, .len = 4096, .value = 2 },
	{ .op = PROBE_MAP_READ, .len = 4096, .value = 2 },
	{ .op = PROBE_SUM, .count = 4 },
	{ .op = PROBE_UNMAP },
	{ .op = PROBE_SUM, .count = 4 },
	{ .op = PROBE_MAP, .slot = 1, .len = 4096 },
	{ .op = PROBE_STAT },
	{ .op = PROBE_END },
	{ .op = PROBE_LOOKUP, .name = "f" },
	{ .op = PROBE_LIST, .name = "f" },
	{ .op = PROBE_RENAME, .name = "m0.0", .name2 = "r" },
	{ .op = PROBE_UNLINK, .name = "r" },
	LOCK(PROCESS, WRLCK, 0), LOCK(PROCESS, UNLCK, 0),
	LOCK(OFD, RDLCK, 1), LOCK(OFD, UNLCK, 1),
	LOCK(FLOCK, WRLCK, 0), LOCK(FLOCK, UNLCK, 0),
	{ .op = PROBE_GETLK, .family = PROBE_OFD, .type = F_WRLCK, .len = 1 },
	{ .op = PROBE_LOCK_MANY, .type = F_WRLCK, .count = 3,
	  .patience_ms = 1000000 },
	{ .op = PROBE_LOCK_MANY, .type = F_UNLCK, .count = 3,
	  .patience_ms = 1000000 },
	{ .op = PROBE_APPEND, .slot = 1, .len = 16, .count = 2, .value = 7 },
	{ .op = PROBE_COUNT, .slot = 1, .len = 50000, .count = 2, .value = 7 },
	{ .op = PROBE_OPEN, .slot = 2, .name = "l", .make = true },
	{ .op = PROBE_LEASED, .slot = 2 },
	{ .op = PROBE_LEASE, .slot = 2, .type = F_WRLCK },
	{ .op = PROBE_LEASE, .slot = 2, .type = F_UNLCK },
	{ .op = PROBE_OPEN, .slot = 3, .name = "g", .make = true },
	{ .op = PROBE_TRUNCATE, .slot = 3, .start = 24 },
	{ .op = PROBE_RING, .slot = 3, .nlocks = 3,
	  .io = RING_RW, .count = 16 },
	{ .op = PROBE_RING, .slot = 3, .nlocks = 3,
	  .io = RING_RW, .count = 16, .window_ms = 10000 },
	{ .op = PROBE_RING_LOG },
	{ .op = PROBE_RING_END },
	{ .op = PROBE_RING, .slot = 3, .nlocks = 3,
	  .io = RING_MMAP, .count = 16 },
	{ .op = PROBE_RING, .slot = 3, .nlocks = 3,
	  .io = RING_MMAP, .count = 16, .window_ms = 10000 },
	{ .op = PROBE_RING_END },
	{ .op = PROBE_CLOSE, .slot = 1 },
	{ .op = PROBE_RESET },
	{ .op = PROBE_OPEN, .name = "f" },
	{ .op = PROBE_MAP, .len = 4096 },
	{ .op = PROBE_FINISH },
};

/* Those with a child of their own, which take their time */
static const struct probe_request with_children[] = {
	{ .op = PROBE_BEGIN, .name = LONG_OVER, .make = true, .keeper = true },
	{ .op = PROBE_OPEN, .name = "f", .make = true },
	{ .op = PROBE_FORK_CLOSE },
	{ .op = PROBE_LOCK_EXIT, .name = "f", .type = F_WRLCK, .len = 1 },
	{ .op = PROBE_FINISH },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct bed {
	char path[128];
	int place;
};

static int set_up(void **state)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	const char *tmp = getenv("TMPDIR");

	assert_non_null(bed);
	snprintf(bed->path, sizeof(bed->path), "%s/errors.XXXXXX",
		 tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(bed->path));
	bed->place = open(bed->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_not_equal(bed->place, -1);
	inject = mmap(NULL, sizeof(*inject), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(inject, MAP_FAILED);
	own = syscalls();
	failing = *own;
#define USE(name) failing.name = fail_##name
	USE(openat2);
	USE(mkdirat);
	USE(unlinkat);
	USE(renameat);
	USE(fstat);
	USE(fstatat);
	USE(fstatfs);
	USE(getdents);
	USE(lseek);
	USE(pread);
	USE(pwrite);
	USE(ftruncate);
	USE(fcntl_lock);
	USE(fcntl_int);
	USE(flock);
	USE(mmap);
	USE(close);
	USE(munmap);
	*state = bed;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *bed = *state;

	syscalls_replace(NULL);
	munmap(inject, sizeof(*inject));
	close(bed->place);
	assert_int_equal(rmdir(bed->path), 0);
	free(bed);
	return 0;
}

static unsigned entries(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *de = NULL;
	unsigned n = 0;

	assert_non_null(dir);
	while ((de = readdir(dir)) != NULL) {
		n += strcmp(de->d_name, ".") != 0 &&
		     strcmp(de->d_name, "..") != 0;
	}
	closedir(dir);
	return n;
}

/* lines of our mappings that are of files below the place */
static unsigned mappings(const struct bed *bed)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
		n += strstr(line, bed->path) != NULL;
	}
	fclose(f);
	return n;
}

/* One left by an earlier run, with a file in it, for the next one to remove */
static void leave_old_run(const struct bed *bed)
{
	struct probe_dir dir = { .place = bed->place, .top = -1, .run = -1 };
	int fd;

	assert_int_equal(probe_dir_open(&dir, ALSO_OVER, true), 0);
	fd = openat(dir.run, "old", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_not_equal(fd, -1);
	close(fd);
	probe_dir_close(&dir);
}

/* As whoever comes next does */
static void next_run(const struct bed *bed)
{
	struct probe_dir dir = { .place = bed->place, .top = -1, .run = -1 };

	assert_int_equal(probe_dir_open(&dir, NEXT_RUN, true), 0);
	assert_int_equal(probe_dir_remove(&dir), 0);
	assert_int_equal(entries(bed->path), 0);
}

static void wrong(unsigned step, int seen)
{
	fail_msg("call %u (%s) fails with %s%s: step %u answers %s",
		 inject->at, inject->name, strerror(inject->err),
		 inject->on ? ", and all that follow" : "", step,
		 strerror(seen));
}

/*
 * The step in which it happened. Not told: the end of a descriptor that
 * nothing was written by, and what an earlier run has left, which is tried
 * again by the next. What ends the session need not tell what it got over.
 */
static void look_at_step(const struct bed *bed, unsigned step, int err)
{
	enum probe_op op = session[step].op;

	if (err == inject->err) {
		return;
	}
	if (err == 0 && (op == PROBE_LIST || op == PROBE_BEGIN)) {
		if (op == PROBE_BEGIN || strcmp(inject->name, "close") == 0) {
			return;
		}
	}
	if (op == PROBE_FINISH && err == 0 &&
	    (entries(bed->path) == 0 || strcmp(inject->name, "close") == 0)) {
		return;
	}
	wrong(step, err);
}

/* Returns whether a call failed: false when the session has no more. */
static bool run_session(const struct bed *bed, unsigned at, int err, bool on)
{
	static struct probe_worker worker;
	struct probe_answer answer = {};
	unsigned i, where = 0;

	leave_old_run(bed);
	probe_worker_init(&worker, bed->place);
	*inject = (typeof(*inject)){ .at = at, .err = err, .on = on };
	syscalls_replace(&failing);
	for (i = 0; i < steps; i++) {
		unsigned fired = inject->fired;

		probe_worker_do(&worker, &session[i], &answer);
		if (inject->fired == 0 && answer.err != 0) {
			wrong(i, answer.err);
		}
		if (fired == 0 && inject->fired > 0) {
			look_at_step(bed, i, answer.err);
			where = i;
		}
	}
	syscalls_replace(NULL);
	/* as the keeper does when its supervisor goes */
	probe_worker_do(&worker, &(struct probe_request){
				.op = PROBE_FINISH }, &answer);
	assert_int_equal(answer.err, 0);
	assert_int_equal(worker.dir.top, -1);
	if (!on && where > 0 && where < steps - 1) {
		assert_int_equal(entries(bed->path), 0);
	}
	next_run(bed);
	return inject->fired > 0;
}

static void each_call(const struct bed *bed)
{
	const size_t num = COUNT(errors);
	unsigned fds, calls, sessions = 0;
	size_t i;

	/* what a first call of the library keeps for itself */
	assert_false(run_session(bed, 0, 0, false));
	calls = inject->calls;
	fds = entries("/proc/self/fd");
	for (i = 0; i < num + LASTING; i++) {
		unsigned at = 1;

		while (run_session(bed, at, errors[i % num], i >= num)) {
			assert_int_equal(entries("/proc/self/fd"), fds);
			assert_int_equal(mappings(bed), 0);
			at++;
			sessions++;
		}
		assert_true(at > steps);
	}
	print_message("%u calls a session, %u sessions\n", calls, sessions);
}

static void test_each_call(void **state)
{
	session = without_children;
	steps = COUNT(without_children);
	each_call(*state);
}

static void test_each_call_with_children(void **state)
{
	session = with_children;
	steps = COUNT(with_children);
	each_call(*state);
}

/* The next request after a ring that could not be begun finds no ring */
static void test_ring_again(void **state)
{
	const struct bed *bed = *state;
	static struct probe_worker worker;
	const struct probe_request ring = {
		.op = PROBE_RING, .nlocks = 3, .io = RING_MMAP,
		.window_ms = 1,
	};
	struct probe_answer answer = {};

	probe_worker_init(&worker, bed->place);
	probe_worker_do(&worker, &with_children[0], &answer);
	probe_worker_do(&worker, &with_children[1], &answer);
	assert_int_equal(answer.err, 0);
	*inject = (typeof(*inject)){ .at = 1, .err = EIO, .on = true };
	syscalls_replace(&failing);
	probe_worker_do(&worker, &ring, &answer);
	assert_int_equal(answer.err, EIO);
	assert_string_equal(answer.failed, "map");
	probe_worker_do(&worker, &ring, &answer);
	assert_int_equal(answer.err, EIO);
	syscalls_replace(NULL);
	probe_worker_do(&worker, &(struct probe_request){
				.op = PROBE_FINISH }, &answer);
	assert_int_equal(answer.err, 0);
}

/* A file that was cut below its mapping has no page: told, not died of */
static void test_sum_without_page(void **state)
{
	const struct bed *bed = *state;
	static struct probe_worker worker;
	const struct probe_request requests[] = {
		with_children[0], with_children[1],
		{ .op = PROBE_TRUNCATE, .start = 8192 },
		{ .op = PROBE_MAP, .len = 8192 },
		{ .op = PROBE_TRUNCATE, .start = 0 },
		{ .op = PROBE_SUM, .count = 4 },
		{ .op = PROBE_FINISH },
	};
	struct probe_answer answer = {};
	unsigned i;

	probe_worker_init(&worker, bed->place);
	for (i = 0; i < COUNT(requests); i++) {
		probe_worker_do(&worker, &requests[i], &answer);
		assert_int_equal(answer.err,
				 requests[i].op == PROBE_SUM ? EFAULT : 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_each_call, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_each_call_with_children,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_ring_again, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(test_sum_without_page, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
