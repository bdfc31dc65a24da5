/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Records of workers that do not die, with a mount table of our own. The
 * process that stands for such a worker simply sleeps.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/member/stuck.h"

static const char mounts[] =
	"20 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n"
	"30 20 0:40 / /mnt/a rw shared:2 - fuse.x x rw\n"
	"31 20 0:41 / /mnt/ab rw shared:3 - fuse.x y rw\n"
	"32 30 0:42 / /mnt/a/deep rw shared:4 - fuse.x z rw\n";

struct bed {
	char top[128];
	char rundir[160];
	char mountinfo[160];
	pid_t pid;		/* the stuck one */
};

static int set_up(void **state)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	const char *tmp = getenv("TMPDIR");
	FILE *f = NULL;

	assert_non_null(bed);
	snprintf(bed->top, sizeof(bed->top), "%s/stuck.XXXXXX",
		 tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(bed->top));
	snprintf(bed->rundir, sizeof(bed->rundir), "%s/run", bed->top);
	snprintf(bed->mountinfo, sizeof(bed->mountinfo), "%s/mountinfo",
		 bed->top);
	f = fopen(bed->mountinfo, "we");
	assert_non_null(f);
	assert_true(fputs(mounts, f) >= 0);
	assert_int_equal(fclose(f), 0);
	bed->pid = fork();
	if (bed->pid == 0) {
		pause();
		_exit(0);
	}
	*state = bed;
	return 0;
}

static void end_it(struct bed *bed)
{
	if (bed->pid != 0) {
		kill(bed->pid, SIGKILL);
		waitpid(bed->pid, NULL, 0);
		bed->pid = 0;
	}
}

static int tear_down(void **state)
{
	struct bed *bed = *state;
	char path[192];

	end_it(bed);
	unlink(bed->mountinfo);
	snprintf(path, sizeof(path), "%s/stuck", bed->rundir);
	/* finding has removed the records themselves */
	assert_true(rmdir(path) == 0 || errno == ENOENT);
	assert_true(rmdir(bed->rundir) == 0 || errno == ENOENT);
	assert_int_equal(rmdir(bed->top), 0);
	free(bed);
	return 0;
}

static pid_t find(struct bed *bed, const char *path)
{
	return stuck_find(bed->rundir, bed->mountinfo, path);
}

static int record(struct bed *bed, const char *path,
		  const struct stuck_mount *mount)
{
	return stuck_record(bed->rundir, bed->mountinfo, path, bed->pid,
			    mount);
}

static bool record_exists(struct bed *bed, const char *name)
{
	char path[256];
	struct stat st = {};

	snprintf(path, sizeof(path), "%s/stuck/%s", bed->rundir, name);
	return lstat(path, &st) == 0;
}

static void forget(struct bed *bed, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/stuck/%s", bed->rundir, name);
	assert_int_equal(unlink(path), 0);
}

static void test_none(void **state)
{
	assert_int_equal(find(*state, "/mnt/a"), 0);
}

static void test_whole_mount(void **state)
{
	struct bed *bed = *state;
	const struct stuck_mount a = { 0, 40 };

	assert_int_equal(record(bed, "/mnt/a/x/y", &a), 0);
	assert_int_equal(find(bed, "/mnt/a"), bed->pid);
	assert_int_equal(find(bed, "/mnt/a/x/y"), bed->pid);
	assert_int_equal(find(bed, "/mnt/a/other"), bed->pid);
	assert_int_equal(find(bed, "//mnt/./a//x/../z/"), bed->pid);
	/* others are not touched by it */
	assert_int_equal(find(bed, "/mnt/ab"), 0);
	assert_int_equal(find(bed, "/mnt/a/deep/x"), 0);
	assert_int_equal(find(bed, "/mnt"), 0);
	assert_int_equal(find(bed, "/"), 0);
	forget(bed, "0:40");
}

static void test_hung_at_mount_point(void **state)
{
	struct bed *bed = *state;

	assert_int_equal(record(bed, "/mnt/a/", NULL), 0);
	assert_int_equal(find(bed, "/mnt/a/other"), bed->pid);
	forget(bed, "0:40");
}

/* It never said what it opened; a link may have led it elsewhere. */
static void test_hung_below(void **state)
{
	struct bed *bed = *state;

	assert_int_equal(record(bed, "/srv/link", NULL), 0);
	assert_int_equal(find(bed, "/srv/link"), bed->pid);
	assert_int_equal(find(bed, "/srv/link/x"), bed->pid);
	assert_int_equal(find(bed, "/srv/linked"), 0);
	assert_int_equal(find(bed, "/srv"), 0);
	assert_int_equal(find(bed, "/"), 0);
	forget(bed, "8:1");
}

/* It said so: the mount is stuck, and the link leads there. */
static void test_behind_a_link(void **state)
{
	struct bed *bed = *state;
	const struct stuck_mount a = { 0, 40 };

	assert_int_equal(record(bed, "/srv/link", &a), 0);
	assert_int_equal(find(bed, "/srv/link"), bed->pid);
	assert_int_equal(find(bed, "/mnt/a"), bed->pid);
	assert_int_equal(find(bed, "/srv/other"), 0);
	forget(bed, "0:40");
	forget(bed, "8:1");
}

/* Takes the turn and keeps it until it is killed; *fd: says when it has it */
static pid_t take_turn(struct bed *bed, const char *path, bool linked, int *fd)
{
	int ready[2];
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		int turn = stuck_turn(bed->rundir, bed->mountinfo, path,
				      linked);

		dprintf(ready[1], "%d", turn != -1);
		pause();
		_exit(0);
	}
	close(ready[1]);
	*fd = ready[0];
	return pid;
}

static bool has_turn(int fd, int wait_ms)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, wait_ms) == 1;
}

static void end_turn(pid_t pid, int fd)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
}

static pid_t turn_of(struct bed *bed, const char *path, bool linked)
{
	return stuck_turn_of(bed->rundir, bed->mountinfo, path, linked);
}

static void forget_turn(struct bed *bed, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/turns/%s", bed->rundir, name);
	assert_int_equal(unlink(path), 0);
	snprintf(path, sizeof(path), "%s/turns", bed->rundir);
	rmdir(path);
}

/* Long enough for one that need not wait; it ends early */
#define SOON_MS 10000
#define A_WHILE_MS 200

static void test_turn(void **state)
{
	struct bed *bed = *state;
	pid_t first, second, other;
	int first_fd, second_fd, other_fd;

	assert_int_equal(turn_of(bed, "/mnt/a", false), 0);
	first = take_turn(bed, "/mnt/a", false, &first_fd);
	assert_true(has_turn(first_fd, SOON_MS));
	assert_int_equal(turn_of(bed, "/mnt/a/other", false), first);
	second = take_turn(bed, "/mnt/a/x", false, &second_fd);
	assert_false(has_turn(second_fd, A_WHILE_MS));
	other = take_turn(bed, "/mnt/ab", false, &other_fd);
	assert_true(has_turn(other_fd, SOON_MS));
	/* whatever ends it, it is the next one's */
	end_turn(first, first_fd);
	assert_true(has_turn(second_fd, SOON_MS));
	assert_int_equal(turn_of(bed, "/mnt/a", false), second);
	end_turn(second, second_fd);
	end_turn(other, other_fd);
	assert_int_equal(turn_of(bed, "/mnt/a", false), 0);
	forget_turn(bed, "0:40");
	forget_turn(bed, "0:41");
}

/* A link's turn is nobody else's; the mount it lies on is not stuck. */
static void test_turn_of_a_link(void **state)
{
	struct bed *bed = *state;
	char name[64], path[256];
	glob_t found = {};
	pid_t link;
	int link_fd;

	link = take_turn(bed, "/srv/link", true, &link_fd);
	assert_true(has_turn(link_fd, SOON_MS));
	assert_int_equal(turn_of(bed, "/srv/link", true), link);
	assert_int_equal(turn_of(bed, "/srv/other", true), 0);
	assert_int_equal(turn_of(bed, "/srv/link", false), 0);
	end_turn(link, link_fd);
	snprintf(path, sizeof(path), "%s/turns/8:1-*", bed->rundir);
	assert_int_equal(glob(path, 0, NULL, &found), 0);
	snprintf(name, sizeof(name), "%s", basename(found.gl_pathv[0]));
	globfree(&found);
	forget_turn(bed, name);
}

/* It hung when it was its turn: on this mount, and nowhere else. */
static void test_hung_in_turn(void **state)
{
	struct bed *bed = *state;
	int fd = -1;

	end_it(bed);
	bed->pid = take_turn(bed, "/mnt/a/x", false, &fd);
	assert_true(has_turn(fd, SOON_MS));
	assert_int_equal(record(bed, "/mnt/a/x", NULL), 0);
	assert_int_equal(find(bed, "/mnt/a/y"), bed->pid);
	assert_int_equal(find(bed, "/mnt/ab"), 0);
	close(fd);
	forget(bed, "0:40");
	forget_turn(bed, "0:40");
}

static void test_relative(void **state)
{
	struct bed *bed = *state;
	char cwd[PATH_MAX], path[2 * PATH_MAX];

	assert_non_null(getcwd(cwd, sizeof(cwd)));
	assert_int_equal(record(bed, "here", NULL), 0);
	snprintf(path, sizeof(path), "%s/here", cwd);
	assert_int_equal(find(bed, path), bed->pid);
	assert_int_equal(find(bed, "./here/."), bed->pid);
	assert_int_equal(find(bed, ".."), 0);
	forget(bed, "8:1");
}

static void test_gone(void **state)
{
	struct bed *bed = *state;
	const struct stuck_mount a = { 0, 40 };

	assert_int_equal(record(bed, "/mnt/a", &a), 0);
	assert_true(record_exists(bed, "0:40"));
	end_it(bed);
	assert_int_equal(find(bed, "/mnt/a"), 0);
	assert_false(record_exists(bed, "0:40"));
}

/* Dead, but not reaped by its parent: nothing keeps the file system. */
static void test_zombie(void **state)
{
	struct bed *bed = *state;
	const struct stuck_mount a = { 0, 40 };
	siginfo_t info = {};

	assert_int_equal(record(bed, "/mnt/a", &a), 0);
	kill(bed->pid, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)bed->pid, &info,
				WEXITED | WNOWAIT), 0);
	assert_int_equal(find(bed, "/mnt/a"), 0);
}

static void write_record(struct bed *bed, const char *name, const char *text)
{
	char path[256];
	FILE *f = NULL;

	snprintf(path, sizeof(path), "%s/stuck/%s", bed->rundir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* The number was given to another process, or the file is nonsense. */
static void test_other_process(void **state)
{
	struct bed *bed = *state;
	const struct stuck_mount a = { 0, 40 };
	char text[256];

	assert_int_equal(record(bed, "/mnt/a", &a), 0);
	snprintf(text, sizeof(text), "%d 1 /\n\nx\n%d\n%d 2\n-1 1 /\n",
		 (int)bed->pid, (int)bed->pid, (int)bed->pid);
	write_record(bed, "0:40", text);
	assert_int_equal(find(bed, "/mnt/a"), 0);
	assert_false(record_exists(bed, "0:40"));
}

static void test_several(void **state)
{
	struct bed *bed = *state;
	pid_t first = bed->pid;

	assert_int_equal(record(bed, "/srv/one", NULL), 0);
	bed->pid = fork();
	if (bed->pid == 0) {
		pause();
		_exit(0);
	}
	assert_int_equal(record(bed, "/srv/two", NULL), 0);
	assert_int_equal(find(bed, "/srv/one"), first);
	assert_int_equal(find(bed, "/srv/two"), bed->pid);
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	assert_int_equal(find(bed, "/srv/one"), 0);
	assert_int_equal(find(bed, "/srv/two"), bed->pid);
	forget(bed, "8:1");
}

static void test_no_such_process(void **state)
{
	struct bed *bed = *state;

	end_it(bed);
	bed->pid = INT_MAX;
	assert_int_equal(record(bed, "/mnt/a", NULL), EINVAL);
	bed->pid = 0;
}

static void test_hostile_directory(void **state)
{
	struct bed *bed = *state;
	const struct stuck_mount a = { 0, 40 };
	char stuck[192];

	snprintf(stuck, sizeof(stuck), "%s/stuck", bed->rundir);
	assert_int_equal(record(bed, "/mnt/a", &a), 0);
	assert_int_equal(chmod(stuck, 0777), 0);
	assert_int_equal(find(bed, "/mnt/a"), 0);
	assert_int_equal(record(bed, "/mnt/a", &a), EPERM);
	assert_int_equal(chmod(stuck, 0700), 0);
	assert_int_equal(find(bed, "/mnt/a"), bed->pid);
	forget(bed, "0:40");
	assert_int_equal(rmdir(stuck), 0);
	assert_int_equal(symlink(bed->top, stuck), 0);
	assert_int_not_equal(record(bed, "/mnt/a", &a), 0);
	assert_int_equal(unlink(stuck), 0);
}

static void test_not_root(void **state)
{
	struct bed *bed = *state;
	const struct stuck_mount a = { 0, 40 };

	assert_int_equal(record(bed, "/mnt/a", &a), 0);
	assert_int_equal(seteuid(65534), 0);
	assert_int_equal(find(bed, "/mnt/a"), 0);
	assert_int_equal(record(bed, "/mnt/a", &a), EPERM);
	assert_int_equal(seteuid(0), 0);
	forget(bed, "0:40");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_none),
		TEST(test_whole_mount),
		TEST(test_hung_at_mount_point),
		TEST(test_hung_below),
		TEST(test_behind_a_link),
		TEST(test_turn),
		TEST(test_turn_of_a_link),
		TEST(test_hung_in_turn),
		TEST(test_relative),
		TEST(test_gone),
		TEST(test_zombie),
		TEST(test_other_process),
		TEST(test_several),
		TEST(test_no_such_process),
		TEST(test_hostile_directory),
		TEST(test_not_root),
	};

	if (geteuid() != 0) {
		printf("skip all: only root keeps records\n");
		return 0;
	}
	return cmocka_run_group_tests_name("stuck", tests, NULL, NULL);
}
