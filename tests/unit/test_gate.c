/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The gate over a store of its own. The command that it starts is a script
 * that says what a test wants, and notes that it was called.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/member/rundir.h"
#include "tests/unit/verdict_fixture.h"
#include "vfs_pingpong/gate.h"

#define TIMEOUT_MS 60000
#define PATH "/mnt/a/dir"

struct bench {
	char *dir;
	char *calls;		/* a line for each call of the command */
	char boot_id[64];
	struct gate_places places;
	struct fixture *f;
	struct share share;
	struct share_answer answer;
};

static char *in_dir(struct bench *b, const char *name)
{
	return talloc_asprintf(b, "%s/%s", b->dir, name);
}

static void write_text(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	ssize_t len = strlen(text);
	ssize_t n;

	assert_int_not_equal(fd, -1);
	n = write(fd, text, len);
	assert_int_equal(n, len);
	fchmod(fd, mode);
	close(fd);
}

/* The command says this, and sleeps or whatever before. */
static void command_is(struct bench *b, const char *lines)
{
	write_text(b->places.command,
		   talloc_asprintf(b, "#!/bin/sh\necho \"$@\" >>'%s'\n%s\n",
				   b->calls, lines), 0755);
}

static unsigned num_calls(struct bench *b)
{
	FILE *f = fopen(b->calls, "re");
	unsigned num = 0;
	int c;

	if (f == NULL) {
		return 0;
	}
	while ((c = fgetc(f)) != EOF) {
		num += c == '\n';
	}
	fclose(f);
	return num;
}

static void set_mounts(struct bench *b)
{
	char *text = talloc_strdup(b, "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
	unsigned i;

	for (i = 0; i < FIXTURE_MEMBERS; i++) {
		b->f->members[i].boot_id = b->boot_id;
		text = talloc_asprintf_append(text, "%s\n",
					      b->f->members[i].mount_line);
	}
	write_text(b->places.mountinfo, text, 0600);
}

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	struct bench *b = talloc_zero(NULL, struct bench);
	FILE *boot_id = fopen("/proc/sys/kernel/random/boot_id", "re");

	assert_non_null(boot_id);
	assert_non_null(fgets(b->boot_id, sizeof(b->boot_id), boot_id));
	fclose(boot_id);
	b->boot_id[strcspn(b->boot_id, "\n")] = '\0';

	b->dir = talloc_asprintf(b, "%s/gate.XXXXXX",
				 tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(b->dir));
	b->calls = in_dir(b, "calls");
	b->places = (struct gate_places){
		.statedir = in_dir(b, "state"),
		.rundir = in_dir(b, "run"),
		.mountinfo = in_dir(b, "mountinfo"),
		.command = in_dir(b, "command"),
	};
	b->f = talloc_steal(b, fixture_new());
	b->f->input.catalogue = NULL;
	set_mounts(b);
	command_is(b, "echo unknown: as the test wants it");
	share_init(&b->share, PATH);
	*state = b;
	return 0;
}

static void remove_tree(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	struct dirent *entry = NULL;
	DIR *dir = NULL;

	if (fd == -1) {
		unlinkat(at, name, 0);
		return;
	}
	dir = fdopendir(fd);
	while ((entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0) {
			remove_tree(fd, entry->d_name);
		}
	}
	closedir(dir);
	unlinkat(at, name, AT_REMOVEDIR);
}

static int teardown(void **state)
{
	struct bench *b = *state;

	remove_tree(AT_FDCWD, b->dir);
	talloc_free(b);
	return 0;
}

static void store(struct bench *b, time_t age_s)
{
	int ret;

	fixture_judge(b->f);
	ret = store_write(b->places.statedir, b->f->member_list[0],
			  b->f->verdict, USES_DEFAULT, time(NULL) - age_s,
			  "a, b");
	assert_int_equal(ret, 0);
}

/* The file of the one record */
static char *record_file(struct bench *b)
{
	char *verdicts = talloc_asprintf(b, "%s/verdicts",
					 b->places.statedir);
	struct dirent *entry = NULL;
	DIR *dir = opendir(verdicts);
	char *file = NULL;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] != '.') {
			assert_null(file);
			file = talloc_asprintf(b, "%s/%s", verdicts,
					       entry->d_name);
		}
	}
	closedir(dir);
	assert_non_null(file);
	return file;
}

static void assert_asked(struct bench *b, enum fitness fitness,
			 unsigned calls, const char *reason)
{
	unsigned before = num_calls(b);

	gate_ask(b, &b->places, &b->share, TIMEOUT_MS, &b->answer);
	assert_string_equal(fitness_name(b->answer.fitness),
			    fitness_name(fitness));
	assert_int_equal(num_calls(b) - before, calls);
	if (reason == NULL) {
		return;
	}
	if (strstr(b->answer.reason, reason) == NULL) {
		fail_msg("'%s' is not in '%s'", reason, b->answer.reason);
	}
	assert_non_null(b->answer.remedy);
}

static void test_fresh(void **state)
{
	struct bench *b = *state;

	store(b, 10);
	assert_asked(b, FIT, 0, NULL);
	assert_asked(b, FIT, 0, NULL);
	fixture_set(b->f, "lock.exclusion", OUTCOME_FAIL, "both got it");
	store(b, 5);
	assert_asked(b, UNFIT, 0, "unfit for posix-locking across nodes: "
		     "both got it");
	b->share.posix_locking = false;
	assert_asked(b, FIT, 0, NULL);
}

static void test_stale(void **state)
{
	struct bench *b = *state;

	store(b, 2 * 86400);
	assert_asked(b, UNKNOWN, 1, "as the test wants it");
	b->share.max_age_s = 3 * 86400;
	assert_asked(b, FIT, 0, NULL);
	b->share.max_age_s = 0;
	assert_asked(b, UNKNOWN, 1, "as the test wants it");
	store(b, 0);
	b->share.max_age_s = 86400;
	assert_asked(b, FIT, 0, NULL);
}

static void test_nothing_there(void **state)
{
	struct bench *b = *state;

	assert_asked(b, UNKNOWN, 1, "as the test wants it");
	store(b, 10);
	b->share.path = "/mnt/b/other";
	assert_asked(b, UNKNOWN, 1, "as the test wants it");
}

/* A file that is what it should not be; the gate keeps nothing of it. */
static void spoiled(struct bench *b, const char *file, const char *reason)
{
	char *aside = talloc_asprintf(b, "%s.aside", file);
	char *half = NULL;
	struct stat st = {};
	int ret;

	command_is(b, "echo recorded");
	ret = rename(file, aside);
	assert_int_equal(ret, 0);
	write_text(file, "{", 0600);
	assert_asked(b, UNKNOWN, 1, reason);
	write_text(file, "", 0600);
	assert_asked(b, UNKNOWN, 1, reason);
	write_text(file, "{\"schema\": 99}", 0600);
	assert_asked(b, UNKNOWN, 1, reason);
	/* its first half: a writer that does not rename */
	ret = stat(aside, &st);
	assert_int_equal(ret, 0);
	half = talloc_asprintf(b, "head -c %lld '%s' >'%s'",
			       (long long)st.st_size / 2, aside, file);
	ret = system(half);
	assert_int_equal(ret, 0);
	assert_asked(b, UNKNOWN, 1, reason);
	/* for others to read or write */
	write_text(file, "{}", 0644);
	assert_asked(b, UNKNOWN, 1, strerror(EPERM));
	/* no file */
	unlink(file);
	ret = symlink(aside, file);
	assert_int_equal(ret, 0);
	assert_asked(b, UNKNOWN, 1, strerror(EPERM));
	unlink(file);
	ret = mkfifo(file, 0600);
	assert_int_equal(ret, 0);
	assert_asked(b, UNKNOWN, 1, strerror(EPERM));
	/* and right again */
	ret = rename(aside, file);
	assert_int_equal(ret, 0);
	assert_asked(b, FIT, 0, NULL);
}

static void test_record_spoiled(void **state)
{
	struct bench *b = *state;

	store(b, 10);
	assert_asked(b, FIT, 0, NULL);
	spoiled(b, record_file(b), strerror(EINVAL));
}

static void test_paths_spoiled(void **state)
{
	struct bench *b = *state;

	store(b, 10);
	assert_asked(b, FIT, 0, NULL);
	spoiled(b, talloc_asprintf(b, "%s/paths.json", b->places.statedir),
		strerror(EINVAL));
}

static void test_store_open_to_others(void **state)
{
	struct bench *b = *state;
	int ret;

	store(b, 10);
	ret = chmod(b->places.statedir, 0755);
	assert_int_equal(ret, 0);
	command_is(b, "echo recorded");
	assert_asked(b, UNKNOWN, 1, strerror(EPERM));
}

static void test_trust(void **state)
{
	struct bench *b = *state;

	b->places.trust_ms = 3600000;
	store(b, 100);
	assert_asked(b, FIT, 0, NULL);
	/* what would lead to a check is looked at again */
	b->share.max_age_s = 50;
	store(b, 10);
	assert_asked(b, FIT, 0, NULL);
	fixture_set(b->f, "lock.exclusion", OUTCOME_FAIL, "both got it");
	store(b, 5);
	assert_asked(b, FIT, 0, NULL);
	b->places.trust_ms = 0;
	assert_asked(b, UNFIT, 0, "both got it");
}

/* The last call of the command */
static char *last_call(struct bench *b)
{
	FILE *f = fopen(b->calls, "re");
	char line[1024] = "";

	assert_non_null(f);
	while (fgets(line, sizeof(line), f) != NULL) {
	}
	fclose(f);
	return talloc_strdup(b, line);
}

/* A verdict of this node alone is fresh: only the agent could tell more. */
static void test_peers(void **state)
{
	struct bench *b = *state;
	char *door = talloc_asprintf(b, "%s/" DOOR_NAME, b->places.rundir);
	unsigned minor = b->f->members[1].minor;
	int ret;

	b->f->members[1].minor = b->f->members[0].minor;
	b->f->input.local = true;
	store(b, 10);
	assert_asked(b, FIT, 0, NULL);
	b->share.scope = SCOPE_CLUSTER;
	assert_asked(b, UNKNOWN, 0, "only one node tested");

	ret = mkdir(b->places.rundir, 0755);
	assert_int_equal(ret, 0);
	write_text(door, "", 0600);
	assert_asked(b, UNKNOWN, 1, "as the test wants it");
	assert_non_null(strstr(last_call(b), "--scope peers "));
	b->share.max_age_s = 5;
	assert_asked(b, UNKNOWN, 1, "as the test wants it");
	assert_non_null(strstr(last_call(b), "--scope cluster "));

	b->f->members[1].minor = minor;
	store(b, 1);
	assert_asked(b, FIT, 0, NULL);
}

/* A writer that is stopped with the lock holds up no reader. */
static void test_writer_stopped(void **state)
{
	struct bench *b = *state;
	int fd, ret;

	store(b, 10);
	fd = open(b->places.statedir, O_RDONLY | O_DIRECTORY);
	assert_int_not_equal(fd, -1);
	ret = flock(fd, LOCK_EX);
	assert_int_equal(ret, 0);
	assert_asked(b, FIT, 0, NULL);
	close(fd);
}

static void test_command(void **state)
{
	struct bench *b = *state;

	command_is(b, "echo 'hung: it waits in fuse_request'");
	assert_asked(b, UNFIT, 1, "hung: it waits in fuse_request");
	command_is(b, "exit 3");
	assert_asked(b, UNKNOWN, 1, "it ended without an answer");
	command_is(b, "printf 'unknown: without an end'");
	assert_asked(b, UNKNOWN, 1, "without an end");
	/* it says that it has recorded, and has not */
	command_is(b, "echo recorded");
	assert_asked(b, UNKNOWN, 1, "never checked");
	/* its arguments, and nothing of ours in its descriptors */
	b->share.scope = SCOPE_CLUSTER;
	command_is(b, talloc_asprintf(
		b, "ls /proc/self/fd | wc -l >'%s/fds'\n"
		"readlink /proc/self/cwd >'%s/cwd'", b->dir, b->dir));
	assert_asked(b, UNKNOWN, 1, "it ended without an answer");
	assert_int_equal(system(talloc_asprintf(
		b, "grep -q -x 4 %s/fds && grep -q -x / %s/cwd && "
		"tail -n 1 %s/calls | grep -q '^preflight --scope cluster "
		"--timeout 60 --asked [0-9]* -- " PATH "$'", b->dir, b->dir,
		b->dir)), 0);

	unlink(b->places.command);
	assert_asked(b, UNKNOWN, 0, strerror(ENOENT));
	write_text(b->places.command, "no program", 0600);
	assert_asked(b, UNKNOWN, 0, strerror(EACCES));
}

static void test_command_is_slow(void **state)
{
	struct bench *b = *state;

	/* its end is told by its output's */
	command_is(b, talloc_asprintf(b, "echo $$ >>'%s/pids'\n"
				      "exec sleep 60 >&2", b->dir));
	assert_asked(b, UNKNOWN, 1, "it ended without an answer");
	command_is(b, talloc_asprintf(b, "echo $$ >>'%s/pids'\n"
				      "exec sleep 60", b->dir));
	gate_ask(b, &b->places, &b->share, 1000, &b->answer);
	assert_int_equal(b->answer.fitness, UNKNOWN);
	assert_string_equal(b->answer.reason,
			    "no result of a check within 1 s");
	assert_int_equal(system(talloc_asprintf(b, "kill $(cat '%s/pids')",
						b->dir)), 0);
}

static void test_may_say(void **state)
{
	struct bench *b = *state;
	const struct timespec long_ago[] = {{.tv_sec = 1}, {.tv_sec = 1}};
	const char *rundir = b->places.rundir;
	char *said = talloc_asprintf(b, "%s/said", rundir);
	struct dirent *entry = NULL;
	DIR *dir = NULL;

	assert_true(gate_may_say(rundir, "one", 3600));
	assert_false(gate_may_say(rundir, "one", 3600));
	assert_true(gate_may_say(rundir, "two/../..", 3600));
	assert_false(gate_may_say(rundir, "two/../..", 3600));
	assert_true(gate_may_say(rundir, "one", 0));
	assert_false(gate_may_say(rundir, "one", 3600));

	dir = opendir(said);
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] != '.') {
			assert_int_equal(utimensat(dirfd(dir), entry->d_name,
						   long_ago, 0), 0);
		}
	}
	closedir(dir);
	assert_true(gate_may_say(rundir, "one", 3600));
	assert_false(gate_may_say(rundir, "one", 3600));
	/* where it cannot be told, it is said */
	assert_int_equal(chmod(said, 0777), 0);
	assert_true(gate_may_say(rundir, "one", 3600));
	assert_true(gate_may_say(rundir, "one", 3600));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fresh, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_there, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_record_spoiled, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_paths_spoiled, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_store_open_to_others,
						setup, teardown),
		cmocka_unit_test_setup_teardown(test_trust, setup, teardown),
		cmocka_unit_test_setup_teardown(test_peers, setup, teardown),
		cmocka_unit_test_setup_teardown(test_writer_stopped, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_command, setup, teardown),
		cmocka_unit_test_setup_teardown(test_command_is_slow, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_may_say, setup, teardown),
	};

	return cmocka_run_group_tests_name("gate", tests, NULL, NULL);
}
