/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A worker's operations on locks, appended records and counters, with system
 * calls that answer as a test wants them to: what each asks for, and what it
 * makes of the answer.
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
#include <sys/mman.h>
#include <unistd.h>

#include "core/probe/ops.h"
#include "core/probe/syscalls.h"

#define CALLS 16

/* Lock calls, also those of forked children: the last one and how many */
struct seen {
	unsigned calls;
	int cmd;
	struct flock fl;
	int closed;
	pid_t pid;
};

struct bed {
	char path[128];
	int place;
	struct probe_worker worker;
	struct probe_answer answer;
};

static struct seen *seen;
static struct syscall_table table;
static const int *answers;	/* errno of each lock call, or 0; the last one
				 * is that of all that follow */
static unsigned num_answers;

static int fake_lock(int fd, int cmd, struct flock *fl)
{
	unsigned call = seen->calls++;
	int err = answers[call < num_answers ? call : num_answers - 1];

	(void)fd;
	seen->cmd = cmd;
	seen->fl = *fl;
	seen->pid = getpid();
	errno = err;
	return err == 0 ? 0 : -1;
}

static void lock_answers(const int *errnos, unsigned num)
{
	answers = errnos;
	num_answers = num;
	memset(seen, 0, sizeof(*seen));
	table.fcntl_lock = fake_lock;
}

#define LOCK_ANSWERS(...) \
	static const int errnos[] = { __VA_ARGS__ }; \
	lock_answers(errnos, sizeof(errnos) / sizeof(errnos[0]))

static int carry_out(struct bed *bed, struct probe_request req)
{
	bed->answer = (struct probe_answer){};
	probe_worker_do(&bed->worker, &req, &bed->answer);
	return bed->answer.err;
}

#define DO(bed, ...) carry_out(bed, (struct probe_request){ __VA_ARGS__ })

static int set_up(void **state)
{
	struct bed *bed = calloc(1, sizeof(*bed));
	const char *tmp = getenv("TMPDIR");
	struct probe_request begin = { .op = PROBE_BEGIN, .make = true };

	assert_non_null(bed);
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(seen, MAP_FAILED);
	snprintf(bed->path, sizeof(bed->path), "%s/ops.XXXXXX",
		 tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(bed->path));
	bed->place = open(bed->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_not_equal(bed->place, -1);
	probe_worker_init(&bed->worker, bed->place);
	probe_dir_make_name(begin.name, sizeof(begin.name), 60);
	assert_int_equal(carry_out(bed, begin), 0);
	assert_int_equal(DO(bed, .op = PROBE_OPEN, .make = true, .name = "f"),
			 0);
	syscalls_replace(NULL);
	table = *syscalls();
	syscalls_replace(&table);
	*state = bed;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *bed = *state;

	syscalls_replace(NULL);
	assert_int_equal(DO(bed, .op = PROBE_FINISH), 0);
	close(bed->place);
	assert_int_equal(rmdir(bed->path), 0);
	munmap(seen, sizeof(*seen));
	free(bed);
	return 0;
}

/* ---- locks -------------------------------------------------------------- */

static void test_lock_exit(void **state)
{
	struct bed *bed = *state;
	LOCK_ANSWERS(0);

	assert_int_equal(DO(bed, .op = PROBE_LOCK_EXIT, .name = "f",
			    .type = F_WRLCK, .start = 7, .len = 1), 0);
	assert_int_equal(seen->calls, 1);
	assert_int_equal(seen->cmd, F_SETLK);
	assert_int_equal(seen->fl.l_type, F_WRLCK);
	assert_int_equal(seen->fl.l_start, 7);
	assert_int_equal(seen->fl.l_len, 1);
	assert_int_not_equal(seen->pid, getpid());
}

/* What the child meets is told; a file that is not there, too */
static void test_lock_exit_refused(void **state)
{
	struct bed *bed = *state;
	LOCK_ANSWERS(ENOLCK);

	assert_int_equal(DO(bed, .op = PROBE_LOCK_EXIT, .name = "f",
			    .type = F_WRLCK, .len = 1), ENOLCK);
	assert_int_equal(DO(bed, .op = PROBE_LOCK_EXIT, .name = "none",
			    .type = F_WRLCK, .len = 1), ENOENT);
	assert_int_equal(seen->calls, 1);
}

static int fake_close(int fd)
{
	seen->closed = fd;
	seen->pid = getpid();
	errno = EIO;
	return -1;
}

static void test_fork_close(void **state)
{
	struct bed *bed = *state;

	table.close = fake_close;
	assert_int_equal(DO(bed, .op = PROBE_FORK_CLOSE), EIO);
	assert_int_equal(seen->closed, bed->worker.slots[0].fd);
	assert_int_not_equal(seen->pid, getpid());
	assert_int_equal(fcntl(bed->worker.slots[0].fd, F_GETFD), FD_CLOEXEC);
}

static void test_lock_many(void **state)
{
	struct bed *bed = *state;
	LOCK_ANSWERS(0, 0, 0, ENOLCK);

	assert_int_equal(DO(bed, .op = PROBE_LOCK_MANY, .type = F_WRLCK,
			    .start = 10, .count = 8, .patience_ms = 10000),
			 ENOLCK);
	assert_int_equal(bed->answer.count, 3);
	assert_int_equal(seen->fl.l_start, 16);
	assert_int_equal(seen->fl.l_len, 1);
}

/* Whatever the time: one is asked for, and no more than there is time for */
static void test_lock_many_out_of_time(void **state)
{
	struct bed *bed = *state;
	LOCK_ANSWERS(0);

	assert_int_equal(DO(bed, .op = PROBE_LOCK_MANY, .type = F_WRLCK,
			    .count = 1000000000), 0);
	assert_in_range(bed->answer.count, 1, 1000000);
	assert_int_equal(bed->answer.count, seen->calls);
}

/* Let go, refused: somebody else has it */
static void test_contend(void **state)
{
	struct bed *bed = *state;
	LOCK_ANSWERS(0, EAGAIN);

	assert_int_equal(DO(bed, .op = PROBE_CONTEND, .type = F_WRLCK,
			    .len = 1, .patience_ms = 10000), 0);
	assert_true(bed->answer.frozen);
	assert_int_equal(bed->answer.count, 0);
	assert_int_equal(seen->calls, 2);
	assert_int_equal(seen->cmd, F_SETLK);
	assert_int_equal(seen->fl.l_type, F_WRLCK);
}

static void test_contend_again(void **state)
{
	struct bed *bed = *state;
	LOCK_ANSWERS(0, 0, 0, 0, 0, EACCES);

	assert_int_equal(DO(bed, .op = PROBE_CONTEND, .type = F_WRLCK,
			    .len = 1, .patience_ms = 10000), 0);
	assert_true(bed->answer.frozen);
	assert_int_equal(bed->answer.count, 2);
}

/* Always granted: it ends with its time, and lets go */
static void test_contend_alone(void **state)
{
	struct bed *bed = *state;
	LOCK_ANSWERS(0);

	assert_int_equal(DO(bed, .op = PROBE_CONTEND, .type = F_WRLCK,
			    .len = 1, .patience_ms = 5), 0);
	assert_false(bed->answer.frozen);
	assert_true(bed->answer.count > 0);
	assert_int_equal(seen->calls, 2 * bed->answer.count + 1);
	assert_int_equal(seen->fl.l_type, F_UNLCK);
}

static void test_contend_error(void **state)
{
	struct bed *bed = *state;
	LOCK_ANSWERS(0, EIO);

	assert_int_equal(DO(bed, .op = PROBE_CONTEND, .type = F_WRLCK,
			    .len = 1, .patience_ms = 10000), EIO);
	assert_false(bed->answer.frozen);
}

static int waits(int fd, int cmd, struct flock *fl)
{
	(void)fd;
	(void)fl;
	seen->calls++;
	seen->cmd = cmd;
	pause();
	return -1;
}

/* A waiter that nothing is granted gives up when its patience is over */
static void test_patience(void **state)
{
	struct bed *bed = *state;

	table.fcntl_lock = waits;
	assert_int_equal(DO(bed, .op = PROBE_LOCK, .family = PROBE_OFD,
			    .type = F_WRLCK, .wait = true, .len = 1,
			    .patience_ms = 5), EINTR);
	assert_int_equal(seen->cmd, F_OFD_SETLKW);
	assert_int_equal(seen->calls, 1);
}

/* The slot that is kept stays open, all others are closed */
static void test_reset(void **state)
{
	struct bed *bed = *state;
	int fd;

	assert_int_equal(DO(bed, .op = PROBE_OPEN, .name = "f",
			    .slot = PROBE_SLOT_KEPT), 0);
	fd = bed->worker.slots[PROBE_SLOT_KEPT].fd;
	assert_int_equal(DO(bed, .op = PROBE_RESET), 0);
	assert_int_equal(bed->worker.slots[0].fd, -1);
	assert_int_equal(bed->worker.slots[PROBE_SLOT_KEPT].fd, fd);
	assert_int_equal(DO(bed, .op = PROBE_STAT, .slot = PROBE_SLOT_KEPT),
			 0);
}

/* ---- records and counters ----------------------------------------------- */

static ssize_t half_write(int fd, const void *buf, size_t n, off_t ofs)
{
	(void)fd;
	(void)buf;
	(void)ofs;
	return (ssize_t)(n / 2);
}

static void test_append_short(void **state)
{
	struct bed *bed = *state;

	table.pwrite = half_write;
	assert_int_equal(DO(bed, .op = PROBE_APPEND, .len = 32, .count = 3),
			 EIO);
	assert_int_equal(bed->answer.count, 0);
}

/* One record twice, one of nobody, one missing */
static void test_count(void **state)
{
	static const uint64_t values[] = { 5, 6, 6, 99 };
	struct bed *bed = *state;
	unsigned i;

	for (i = 0; i < 4; i++) {
		char record[32] = {};

		memcpy(record, &values[i], sizeof(values[i]));
		assert_int_equal(pwrite(bed->worker.slots[0].fd, record, 32,
					32 * i), 32);
	}
	assert_int_equal(DO(bed, .op = PROBE_COUNT, .len = 32, .value = 5,
			    .count = 3), 0);
	assert_true(bed->answer.wrong > 0);
	assert_int_equal(DO(bed, .op = PROBE_COUNT, .len = 4, .count = 1),
			 EINVAL);
}

static void test_make_many(void **state)
{
	struct bed *bed = *state;

	assert_int_equal(DO(bed, .op = PROBE_MAKE_MANY, .name = "m.",
			    .count = 3, .value = 7), 0);
	assert_int_equal(bed->answer.count, 3);
	assert_int_equal(DO(bed, .op = PROBE_LOOKUP, .name = "m.2.7"), 0);
	assert_int_equal(DO(bed, .op = PROBE_LOOKUP, .name = "m.3.7"),
			 ENOENT);
	/* what is there already is not taken for made */
	assert_int_equal(DO(bed, .op = PROBE_MAKE_MANY, .name = "m.",
			    .start = 2, .count = 2, .value = 7), EEXIST);
	assert_int_equal(bed->answer.count, 0);
}

static void test_sum(void **state)
{
	static const uint64_t counters[] = { 1, 20, 300 };
	struct bed *bed = *state;

	assert_int_equal(pwrite(bed->worker.slots[0].fd, counters,
				sizeof(counters), 0), sizeof(counters));
	assert_int_equal(DO(bed, .op = PROBE_SUM, .count = 3), 0);
	assert_int_equal(bed->answer.value, 321);
	assert_int_equal(DO(bed, .op = PROBE_SUM, .count = 4), ENODATA);
}

/* A ring's turns, told once, with its clock */
static void test_ring_log(void **state)
{
	struct ring_step steps[CALLS];
	struct bed *bed = *state;
	struct probe_request ring = {
		.op = PROBE_RING, .nlocks = 3, .start = 1, .count = CALLS,
	};
	size_t num = 0;
	LOCK_ANSWERS(0, 0, 0, EDEADLK);

	assert_int_equal(carry_out(bed, ring), 0);
	ring.window_ms = 10000;
	assert_int_equal(carry_out(bed, ring), EDEADLK);
	assert_string_equal(bed->answer.failed, "lock");
	assert_int_equal(bed->answer.turns, 1);
	assert_int_equal(bed->answer.position, 2);
	assert_true(bed->answer.frozen);
	assert_int_equal(DO(bed, .op = PROBE_RING_LOG), 0);
	assert_int_equal(bed->answer.count, 0);
	assert_int_equal(ring_steps_parse(bed->answer.log, steps, CALLS,
					  &num), 0);
	assert_int_equal(num, 2);
	assert_int_equal(steps[0].position, 1);
	assert_int_equal(steps[1].position, 2);
	assert_true(steps[1].left_ns <= bed->answer.clock_ns);
	assert_int_equal(DO(bed, .op = PROBE_RING_LOG), 0);
	assert_int_equal(ring_steps_parse(bed->answer.log, steps, CALLS,
					  &num), 0);
	assert_int_equal(num, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_lock_exit),
		TEST(test_lock_exit_refused),
		TEST(test_fork_close),
		TEST(test_lock_many),
		TEST(test_lock_many_out_of_time),
		TEST(test_contend),
		TEST(test_contend_again),
		TEST(test_contend_alone),
		TEST(test_contend_error),
		TEST(test_patience),
		TEST(test_reset),
		TEST(test_append_short),
		TEST(test_count),
		TEST(test_make_many),
		TEST(test_sum),
		TEST(test_ring_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
