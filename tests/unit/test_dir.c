/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The probe directory: what another user may have put in its place, what
 * earlier runs left, and that nothing else is touched.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/probe/dir.h"
#include "core/probe/probe.h"
#include "core/probe/process.h"
#include "core/probe/syscalls.h"

#define NOBODY 65534
#define ENDED "ffffffff.0.1.1.1.0000000000000001"	/* in 1970 */

struct bed {
	char path[128];			/* of the place */
	char name[PROBE_NAME_MAX];	/* of our run */
	struct probe_dir dir, other;
};

static int set_up(void **state)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	const char *tmp = getenv("TMPDIR");
	int place;

	assert_non_null(bed);
	snprintf(bed->path, sizeof(bed->path), "%s/dir.XXXXXX",
		 tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(bed->path));
	place = open(bed->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_not_equal(place, -1);
	bed->dir = bed->other = (struct probe_dir){
		.place = place, .top = -1, .run = -1,
	};
	probe_dir_make_name(bed->name, sizeof(bed->name), 60);
	*state = bed;
	return 0;
}

/* The test has taken away what it has put there: nothing else is left. */
static int tear_down(void **state)
{
	struct bed *bed = *state;

	syscalls_replace(NULL);
	probe_dir_close(&bed->dir);
	probe_dir_close(&bed->other);
	close(bed->dir.place);
	assert_int_equal(rmdir(bed->path), 0);
	free(bed);
	return 0;
}

static const char *in(const struct bed *bed, const char *below)
{
	static char path[4][512];
	static unsigned turn;
	char *out = path[turn++ % 4];

	snprintf(out, sizeof(path[0]), "%s/%s", bed->path, below);
	return out;
}

static const char *in_top(const struct bed *bed, const char *name)
{
	char below[384];

	snprintf(below, sizeof(below), "%s/%s", PROBE_DIR_NAME, name);
	return in(bed, below);
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_int_not_equal(fd, -1);
	close(fd);
}

static bool exists(const char *path)
{
	struct stat st = {};

	return lstat(path, &st) == 0;
}

static int make(struct bed *bed)
{
	return probe_dir_open(&bed->dir, bed->name, true);
}

/* Refused with this errno, as maker and as the one that looks for it */
static void refused(struct bed *bed, int err)
{
	assert_int_equal(make(bed), err);
	assert_int_equal(bed->dir.top, -1);
	assert_int_equal(bed->dir.run, -1);
	assert_int_equal(probe_dir_open(&bed->other, bed->name, false), err);
	assert_int_equal(bed->other.top, -1);
	assert_int_equal(bed->other.run, -1);
}

/* ---- names --------------------------------------------------------------- */

static void test_names(void **state)
{
	char a[PROBE_NAME_MAX], b[PROBE_NAME_MAX];

	(void)state;
	probe_dir_make_name(a, sizeof(a), UINT32_MAX);
	probe_dir_make_name(b, sizeof(b), UINT32_MAX);
	assert_string_not_equal(a, b);
	assert_true(strlen(a) < sizeof(a) - 1);
	assert_null(strchr(a, '/'));
	assert_int_not_equal(a[0], '.');
	assert_false(probe_dir_is_stale(a));
}

struct parts {
	char boot[16];
	unsigned long ns;
	long pid;
	unsigned long long start;
	long long expiry;
};

static struct parts parts_of(const char *name)
{
	struct parts p = {};
	int n = sscanf(name, "%8[0-9a-f].%lx.%ld.%llu.%lld", p.boot, &p.ns,
		       &p.pid, &p.start, &p.expiry);

	assert_int_equal(n, 5);
	return p;
}

static bool stale(const struct parts *p)
{
	char name[128];

	snprintf(name, sizeof(name), "%s.%lx.%ld.%llu.%lld.0123456789abcdef",
		 p->boot, p->ns, p->pid, p->start, p->expiry);
	return probe_dir_is_stale(name);
}

/* A process that has been, and is no more */
static pid_t ended_process(unsigned long long *start)
{
	struct process process = {};
	pid_t pid = fork();

	if (pid == 0) {
		pause();
		_exit(0);
	}
	assert_true(process_look(pid, &process));
	*start = process.start;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void test_stale(void **state)
{
	char name[PROBE_NAME_MAX];
	struct parts own, p;

	(void)state;
	probe_dir_make_name(name, sizeof(name), 60);
	own = parts_of(name);
	assert_int_equal(own.pid, getpid());
	assert_false(stale(&own));

	p = own;
	p.expiry = time(NULL) - 2;
	assert_true(stale(&p));
	/* the same number, another process */
	p = own;
	p.start++;
	assert_true(stale(&p));
	p = own;
	p.pid = ended_process(&p.start);
	assert_true(stale(&p));

	/* nobody here can know */
	strcpy(p.boot, "01234567");
	assert_false(stale(&p));
	strcpy(p.boot, own.boot);
	p.ns++;
	assert_false(stale(&p));
	p.expiry = time(NULL) - 2;
	assert_true(stale(&p));
}

static void test_names_of_others(void **state)
{
	static const char *const names[] = {
		"", ".", "..", "x", "mine", (ENDED "x"), (ENDED ".1"),
		(" " ENDED),
		"ffffffff.0.1.1.1", "ffffffff.0.1.1..0000000000000001",
		"fffffffg.0.1.1.1.0000000000000001",
	};
	size_t i;

	(void)state;
	assert_true(probe_dir_is_stale(ENDED));
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_false(probe_dir_is_stale(names[i]));
	}
}

/* ---- a run --------------------------------------------------------------- */

static void test_make_find_remove(void **state)
{
	struct bed *bed = *state;
	struct stat st = {};

	make_file(in(bed, "theirs"));
	assert_int_equal(probe_dir_open(&bed->other, bed->name, false),
			 ENOENT);
	assert_int_equal(make(bed), 0);
	assert_int_equal(probe_dir_open(&bed->other, bed->name, false), 0);
	assert_int_equal(fstat(bed->other.run, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(lstat(in(bed, PROBE_DIR_NAME), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_string_equal(bed->other.name, bed->name);

	assert_int_equal(probe_dir_remove(&bed->dir), 0);
	assert_false(exists(in(bed, PROBE_DIR_NAME)));
	/* another one has been faster */
	assert_int_equal(probe_dir_remove(&bed->other), 0);
	assert_int_equal(unlink(in(bed, "theirs")), 0);
}

static void test_name_taken(void **state)
{
	struct bed *bed = *state;

	assert_int_equal(make(bed), 0);
	assert_int_equal(probe_dir_open(&bed->other, bed->name, true), EEXIST);
	assert_int_equal(probe_dir_remove(&bed->dir), 0);
}

static void test_two_runs(void **state)
{
	struct bed *bed = *state;
	char name[PROBE_NAME_MAX];

	probe_dir_make_name(name, sizeof(name), 60);
	assert_int_equal(make(bed), 0);
	assert_int_equal(probe_dir_open(&bed->other, name, true), 0);
	assert_int_equal(probe_dir_remove(&bed->dir), 0);
	assert_true(exists(in_top(bed, name)));
	assert_int_equal(probe_dir_remove(&bed->other), 0);
	assert_false(exists(in(bed, PROBE_DIR_NAME)));
}

static void test_contents_go(void **state)
{
	struct bed *bed = *state;
	char name[32];
	unsigned i;

	make_file(in(bed, "theirs"));
	assert_int_equal(make(bed), 0);
	for (i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "file.%u", i);
		assert_int_not_equal(close(openat(bed->dir.run, name,
						  O_WRONLY | O_CREAT, 0600)),
				     -1);
	}
	assert_int_equal(mkdirat(bed->dir.run, "dir", 0700), 0);
	/* the link goes, not what it leads to */
	assert_int_equal(symlinkat(in(bed, "theirs"), bed->dir.run, "link"),
			 0);
	assert_int_equal(symlinkat(bed->path, bed->dir.run, "up"), 0);
	assert_int_equal(probe_dir_remove(&bed->dir), 0);
	assert_false(exists(in(bed, PROBE_DIR_NAME)));
	assert_int_equal(unlink(in(bed, "theirs")), 0);
}

static void test_what_cannot_go(void **state)
{
	struct bed *bed = *state;

	assert_int_equal(make(bed), 0);
	assert_int_equal(mkdirat(bed->dir.run, "dir", 0700), 0);
	assert_int_equal(mkdirat(bed->dir.run, "dir/full", 0700), 0);
	assert_int_equal(probe_dir_remove(&bed->dir), ENOTEMPTY);
	assert_int_equal(bed->dir.run, -1);
	/* told once more when somebody looks */
	assert_int_equal(probe_dir_open(&bed->other, bed->name, false), 0);
	assert_int_equal(unlinkat(bed->other.run, "dir/full", AT_REMOVEDIR),
			 0);
	assert_int_equal(probe_dir_remove(&bed->other), 0);
}

/* ---- something else in its place ----------------------------------------- */

static void test_symlink(void **state)
{
	struct bed *bed = *state;

	assert_int_equal(mkdir(in(bed, "elsewhere"), 0700), 0);
	assert_int_equal(symlink("elsewhere", in(bed, PROBE_DIR_NAME)), 0);
	refused(bed, ENOTDIR);
	assert_int_equal(unlink(in(bed, PROBE_DIR_NAME)), 0);
	assert_int_equal(symlink("nowhere", in(bed, PROBE_DIR_NAME)), 0);
	refused(bed, ENOTDIR);
	assert_int_equal(unlink(in(bed, PROBE_DIR_NAME)), 0);
	/* nothing was made in it */
	assert_int_equal(rmdir(in(bed, "elsewhere")), 0);
}

static void test_file(void **state)
{
	struct bed *bed = *state;

	make_file(in(bed, PROBE_DIR_NAME));
	refused(bed, ENOTDIR);
	assert_int_equal(unlink(in(bed, PROBE_DIR_NAME)), 0);
	assert_int_equal(mkfifo(in(bed, PROBE_DIR_NAME), 0600), 0);
	refused(bed, ENOTDIR);
	assert_int_equal(unlink(in(bed, PROBE_DIR_NAME)), 0);
}

static void test_open_to_others(void **state)
{
	static const mode_t modes[] = { 0720, 0702, 0777, 01777 };
	struct bed *bed = *state;
	size_t i;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		assert_int_equal(mkdir(in(bed, PROBE_DIR_NAME), 0700), 0);
		assert_int_equal(chmod(in(bed, PROBE_DIR_NAME), modes[i]), 0);
		refused(bed, EUSERS);
		assert_int_equal(rmdir(in(bed, PROBE_DIR_NAME)), 0);
	}
	/* an earlier version's, or one that others may look at: fine */
	assert_int_equal(mkdir(in(bed, PROBE_DIR_NAME), 0755), 0);
	assert_int_equal(make(bed), 0);
	assert_int_equal(probe_dir_remove(&bed->dir), 0);
}

static void test_foreign(void **state)
{
	struct bed *bed = *state;

	if (geteuid() != 0) {
		skip();
	}
	assert_int_equal(mkdir(in(bed, PROBE_DIR_NAME), 0700), 0);
	assert_int_equal(chown(in(bed, PROBE_DIR_NAME), NOBODY, NOBODY), 0);
	refused(bed, EUSERS);
	assert_int_equal(rmdir(in(bed, PROBE_DIR_NAME)), 0);
}

/* The same one level below, for those who look for a run's directory */
static void test_run_in_place(void **state)
{
	struct bed *bed = *state;
	const char *run = NULL;

	assert_int_equal(mkdir(in(bed, PROBE_DIR_NAME), 0700), 0);
	run = in_top(bed, bed->name);
	assert_int_equal(symlink("..", run), 0);
	assert_int_equal(probe_dir_open(&bed->other, bed->name, false),
			 ENOTDIR);
	assert_int_equal(unlink(run), 0);
	make_file(run);
	assert_int_equal(probe_dir_open(&bed->other, bed->name, false),
			 ENOTDIR);
	assert_int_equal(make(bed), EEXIST);
	assert_int_equal(unlink(run), 0);
	assert_int_equal(mkdir(run, 0700), 0);
	assert_int_equal(chmod(run, 0770), 0);
	assert_int_equal(probe_dir_open(&bed->other, bed->name, false),
			 EUSERS);
	assert_int_equal(rmdir(run), 0);
	assert_int_equal(rmdir(in(bed, PROBE_DIR_NAME)), 0);
}

/* ---- what earlier runs left ---------------------------------------------- */

static void make_run_at(struct bed *bed, const char *name)
{
	char file[256];

	assert_int_equal(mkdir(in_top(bed, name), 0700), 0);
	snprintf(file, sizeof(file), "%s/probe.1", name);
	make_file(in_top(bed, file));
}

static void test_stale_runs_go(void **state)
{
	static const char live[] = "ffffffff.0.1.1.99999999999."
				   "0000000000000002";
	struct bed *bed = *state;
	char file[256];

	assert_int_equal(mkdir(in(bed, PROBE_DIR_NAME), 0700), 0);
	make_run_at(bed, ENDED);
	make_run_at(bed, live);
	make_run_at(bed, "mine");
	assert_int_equal(make(bed), 0);
	assert_false(exists(in_top(bed, ENDED)));
	assert_true(exists(in_top(bed, live)));
	assert_true(exists(in_top(bed, "mine")));

	assert_int_equal(probe_dir_remove(&bed->dir), 0);
	snprintf(file, sizeof(file), "%s/probe.1", live);
	assert_int_equal(unlink(in_top(bed, file)), 0);
	assert_int_equal(rmdir(in_top(bed, live)), 0);
	assert_int_equal(unlink(in_top(bed, "mine/probe.1")), 0);
	assert_int_equal(rmdir(in_top(bed, "mine")), 0);
	assert_int_equal(rmdir(in(bed, PROBE_DIR_NAME)), 0);
}

/* A name that looks stale does not lead anywhere else. */
static void test_stale_symlink(void **state)
{
	struct bed *bed = *state;

	assert_int_equal(mkdir(in(bed, "precious"), 0700), 0);
	make_file(in(bed, "precious/file"));
	assert_int_equal(mkdir(in(bed, PROBE_DIR_NAME), 0700), 0);
	assert_int_equal(symlink("../precious", in_top(bed, ENDED)), 0);
	assert_int_equal(make(bed), 0);
	assert_true(exists(in(bed, "precious/file")));
	assert_int_equal(probe_dir_remove(&bed->dir), 0);
	assert_true(exists(in(bed, "precious/file")));

	assert_int_equal(unlink(in_top(bed, ENDED)), 0);
	assert_int_equal(rmdir(in(bed, PROBE_DIR_NAME)), 0);
	assert_int_equal(unlink(in(bed, "precious/file")), 0);
	assert_int_equal(rmdir(in(bed, "precious")), 0);
}

static void test_stale_foreign(void **state)
{
	struct bed *bed = *state;

	if (geteuid() != 0) {
		skip();
	}
	assert_int_equal(mkdir(in(bed, PROBE_DIR_NAME), 0700), 0);
	make_run_at(bed, ENDED);
	assert_int_equal(chown(in_top(bed, ENDED), NOBODY, NOBODY), 0);
	assert_int_equal(make(bed), 0);
	assert_true(exists(in_top(bed, ENDED "/probe.1")));
	assert_int_equal(probe_dir_remove(&bed->dir), 0);

	assert_int_equal(unlink(in_top(bed, ENDED "/probe.1")), 0);
	assert_int_equal(rmdir(in_top(bed, ENDED)), 0);
	assert_int_equal(rmdir(in(bed, PROBE_DIR_NAME)), 0);
}

/* ---- calls that fail ----------------------------------------------------- */

static const struct syscall_table *own;
static unsigned mkdirs, good_mkdirs;

static int failing_mkdirat(int dirfd, const char *path, mode_t mode)
{
	mkdirs++;
	if (mkdirs > good_mkdirs) {
		errno = ENOSPC;
		return -1;
	}
	return own->mkdirat(dirfd, path, mode);
}

static void test_no_space(void **state)
{
	struct bed *bed = *state;
	struct syscall_table table;

	own = syscalls();
	table = *own;
	table.mkdirat = failing_mkdirat;
	syscalls_replace(&table);
	for (good_mkdirs = 0; good_mkdirs < 2; good_mkdirs++) {
		mkdirs = 0;
		assert_int_equal(make(bed), ENOSPC);
		assert_int_equal(mkdirs, good_mkdirs + 1);
		assert_false(exists(in(bed, PROBE_DIR_NAME)));
	}
	mkdirs = 0;
	assert_int_equal(make(bed), 0);
	assert_int_equal(probe_dir_remove(&bed->dir), 0);
}

/* A server that maps root to somebody else */
static int squashed_mkdirat(int dirfd, const char *path, mode_t mode)
{
	int ret = own->mkdirat(dirfd, path, mode);

	mkdirs++;
	if (ret == 0 && mkdirs > good_mkdirs) {
		ret = fchownat(dirfd, path, NOBODY, NOBODY, 0);
	}
	return ret;
}

static void test_squashed(void **state)
{
	struct bed *bed = *state;
	struct syscall_table table;

	if (geteuid() != 0) {
		skip();
	}
	own = syscalls();
	table = *own;
	table.mkdirat = squashed_mkdirat;
	syscalls_replace(&table);
	for (good_mkdirs = 0; good_mkdirs < 2; good_mkdirs++) {
		mkdirs = 0;
		assert_int_equal(make(bed), EUSERS);
		assert_false(exists(in(bed, PROBE_DIR_NAME)));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_names_of_others),
		TEST(test_make_find_remove),
		TEST(test_name_taken),
		TEST(test_two_runs),
		TEST(test_contents_go),
		TEST(test_what_cannot_go),
		TEST(test_symlink),
		TEST(test_file),
		TEST(test_open_to_others),
		TEST(test_foreign),
		TEST(test_run_in_place),
		TEST(test_stale_runs_go),
		TEST(test_stale_symlink),
		TEST(test_stale_foreign),
		TEST(test_no_space),
		TEST(test_squashed),
	};

	return cmocka_run_group_tests_name("dir", tests, NULL, NULL);
}
