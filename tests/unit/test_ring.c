/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The lock ring
 *
 * With real locks and real processes: nothing is found. With locks that do
 * nothing: what happens is found and counted, once with real processes (as
 * it comes) and once step by step, so that the numbers are known beforehand.
 * Then each call that can fail.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/checks/history.h"
#include "core/probe/ring.h"
#include "core/probe/syscalls.h"

#define NS_PER_S 1000000000ULL
#define CREW 3
#define NLOCKS 5
#define STEPS 65536
#define FAR (600 * NS_PER_S)

/* Shared by the processes of a test */
struct shared {
	struct ring rings[CREW];	/* as they are after each run */
	struct ring_step steps[CREW][STEPS];
	uint64_t run_ns;		/* length of a run */
	_Atomic uint64_t locks;		/* lock calls of all */
	_Atomic unsigned begun;
	_Atomic unsigned ended;
	_Atomic bool release;
};

static struct shared *shared;
static struct syscall_table table;
static char path[64];
static int fd = -1;

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void *map_shared(size_t size)
{
	void *map = NULL;

	map = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(map, MAP_FAILED);

	return map;
}

static int setup(void **state)
{
	struct sigaction act = { .sa_handler = on_signal };
	int ret = 0;

	(void)state;
	sigaction(SIGALRM, &act, NULL);
	stop = 0;

	/* a file on tmpfs that leaves nothing behind */
	fd = memfd_create("test_ring", 0);
	assert_int_not_equal(fd, -1);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = ftruncate(fd, NLOCKS * 8);
	assert_int_equal(ret, 0);

	shared = map_shared(sizeof(*shared));

	syscalls_replace(NULL);
	table = *syscalls();

	return 0;
}

static int teardown(void **state)
{
	(void)state;
	syscalls_replace(NULL);
	munmap(shared, sizeof(*shared));
	close(fd);

	return 0;
}

static struct ring new_ring(enum ring_io io)
{
	return (struct ring) {
		.fd = fd,
		.nlocks = NLOCKS,
		.io = io,
		.width = 8,
		.stop = &stop,
	};
}

static uint64_t sum_of_counters(unsigned width)
{
	uint8_t buf[NLOCKS * 8] = {};
	uint64_t sum = 0;
	unsigned i = 0;
	ssize_t n = 0;

	n = pread(fd, buf, NLOCKS * width, 0);
	assert_int_equal(n, NLOCKS * width);
	for (i = 0; i < NLOCKS; i++) {
		uint64_t value = buf[i];

		if (width == 8) {
			memcpy(&value, buf + i * 8, 8);
		}
		sum += value;
	}

	return sum;
}

static void keep_steps(struct ring *ring, unsigned member)
{
	ring->log = shared->steps[member];
	ring->log_size = STEPS;
}

/* What the rings have logged, judged as the checks do */
static struct history_verdict judge(const struct ring *const *rings,
				    unsigned num)
{
	struct history *h = talloc_zero(NULL, struct history);
	struct history_op zero = { .what = HISTORY_WRITE };
	struct history_verdict verdict = {};
	unsigned i = 0;
	int ret = 0;

	for (; zero.start < NLOCKS; zero.start++) {
		history_add(h, &zero);
	}
	for (i = 0; i < num; i++) {
		history_add_ring(h, i, rings[i]->log, rings[i]->logged,
				 NLOCKS, rings[i]->io);
	}
	ret = history_judge(h, &verdict);
	assert_int_equal(ret, 0);
	talloc_free(h);

	return verdict;
}

static struct history_verdict judge_crew(void)
{
	const struct ring *rings[CREW] = {};
	unsigned i = 0;

	for (i = 0; i < CREW; i++) {
		rings[i] = &shared->rings[i];
	}

	return judge(rings, CREW);
}

/*
 * Several processes
 */

/* One that goes with this one, should the test fail */
static pid_t new_process(void)
{
	pid_t pid = 0;

	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	}

	return pid;
}

static void crew_member(unsigned i)
{
	struct ring *ring = &shared->rings[i];
	int ret = 0;

	ring->fd = open(path, O_RDWR);
	ret = ring_begin(ring);
	if (ret != 0) {
		_exit(1);
	}
	shared->begun++;
	while (shared->begun < CREW) {
		sched_yield();
	}

	while (!stop) {
		ret = ring_run(ring, ring_now() + shared->run_ns);
		if (ret != 0 || !ring->holding) {
			_exit(2);
		}
	}
	shared->ended++;
	while (!shared->release) {
		sched_yield();
	}

	ret = ring_end(ring);
	_exit(ret == 0 ? 0 : 3);
}

static void crew_start(pid_t *pids, enum ring_io io, enum ring_family family,
		       unsigned width)
{
	unsigned i = 0;

	for (i = 0; i < CREW; i++) {
		shared->rings[i] = new_ring(io);
		shared->rings[i].family = family;
		shared->rings[i].width = width;
		shared->rings[i].start = i;
		keep_steps(&shared->rings[i], i);

		pids[i] = new_process();
		if (pids[i] == 0) {
			crew_member(i);
		}
	}
}

static void sleep_1ms(void)
{
	struct timespec ms = { .tv_nsec = 1000000 };

	nanosleep(&ms, NULL);
}

/* Ask until it has been heard: a signal just before the call is lost. */
static void crew_stop(const pid_t *pids)
{
	unsigned i = 0;

	while (shared->ended < CREW) {
		for (i = 0; i < CREW; i++) {
			kill(pids[i], SIGALRM);
		}
		sleep_1ms();
	}
}

static void crew_release(const pid_t *pids)
{
	unsigned i = 0;

	shared->release = true;
	for (i = 0; i < CREW; i++) {
		int status = 0;

		waitpid(pids[i], &status, 0);
		assert_int_equal(status, 0);
	}
}

static void assert_nobody_holds(void)
{
	struct flock fl = { .l_type = F_WRLCK };
	int ret = 0;

	ret = fcntl(fd, F_GETLK, &fl);
	assert_int_equal(ret, 0);
	assert_int_equal(fl.l_type, F_UNLCK);
}

static int lock_counted(int lock_fd, int cmd, struct flock *fl)
{
	shared->locks++;

	return fcntl(lock_fd, cmd, fl);
}

static void coherent(enum ring_io io, enum ring_family family, unsigned width)
{
	const struct ring *rings = shared->rings;
	bool counting = (io & RING_RW) == RING_RW;
	struct history_verdict verdict = {};
	pid_t pids[CREW];
	uint64_t turns = 0;
	unsigned i = 0;

	table.fcntl_lock = lock_counted;
	syscalls_replace(&table);
	shared->run_ns = FAR;
	crew_start(pids, io, family, width);
	while (shared->locks < 10000) {
		sleep_1ms();
	}
	crew_stop(pids);
	syscalls_replace(NULL);

	for (i = 0; i < CREW; i++) {
		turns += rings[i].turns;

		assert_int_equal(rings[i].position, i + rings[i].turns);
		assert_int_equal(rings[i].logged, rings[i].turns + 1);
		assert_int_equal(rings[i].increment, counting ? CREW : 0);
	}
	assert_true(rings[0].position < rings[1].position);
	assert_true(rings[1].position < rings[2].position);
	assert_true(rings[2].position < rings[0].position + NLOCKS);

	verdict = judge_crew();
	assert_int_equal(verdict.grants, turns + CREW);
	assert_int_equal(verdict.overlaps, 0);
	if (counting && width == 8) {
		assert_int_equal(verdict.reads, turns);
		assert_int_equal(verdict.wrong, 0);
		assert_int_equal(sum_of_counters(width), turns);
	} else if (counting) {
		assert_int_equal(sum_of_counters(width) % 256, turns % 256);
	}

	crew_release(pids);
	assert_nobody_holds();
}

static void test_coherent_locks(void **state)
{
	(void)state;
	coherent(RING_LOCKS, RING_PROCESS, 8);
}

static void test_coherent_rw(void **state)
{
	(void)state;
	coherent(RING_RW, RING_PROCESS, 8);
}

static void test_coherent_rw_bytes(void **state)
{
	(void)state;
	coherent(RING_RW, RING_PROCESS, 1);
}

static void test_coherent_mmap(void **state)
{
	(void)state;
	coherent(RING_MMAP, RING_PROCESS, 8);
}

static void test_coherent_mmap_bytes(void **state)
{
	(void)state;
	coherent(RING_MMAP, RING_PROCESS, 1);
}

static void test_coherent_ofd(void **state)
{
	(void)state;
	coherent(RING_RW, RING_OFD, 8);
}

static int lock_nothing(int lock_fd, int cmd, struct flock *fl)
{
	(void)lock_fd;
	(void)cmd;
	(void)fl;

	return 0;
}

/* The negative control of all of the above: the same without locks */
static void test_no_locks(void **state)
{
	const struct ring *rings = shared->rings;
	struct history_verdict verdict = {};
	pid_t pids[CREW];
	unsigned i = 0;

	(void)state;
	table.fcntl_lock = lock_nothing;
	syscalls_replace(&table);
	shared->run_ns = NS_PER_S / 50;

	crew_start(pids, RING_RW, RING_PROCESS, 8);
	for (i = 0; i < CREW; i++) {
		volatile const struct ring *ring = &rings[i];

		while (ring->logged + RING_LOG_SPARE <= STEPS) {
			sleep_1ms();
		}
	}
	crew_stop(pids);
	verdict = judge_crew();
	crew_release(pids);

	assert_true(verdict.overlaps > 0);
	assert_int_equal(verdict.lock_wrong, HISTORY_OVERLAP);
	assert_true(verdict.lock_op.start < NLOCKS);
	assert_int_equal(verdict.lock_op.start, verdict.lock_other.start);
	assert_int_not_equal(verdict.lock_op.member,
			     verdict.lock_other.member);
	assert_true(verdict.wrong > 0);
	assert_true(verdict.data_op.start < NLOCKS);
}

/*
 * Step by step: a second ring of this process makes one turn whenever the
 * first one writes, or, at the chosen turn, between its reading and writing.
 */

static struct ring *first;
static struct ring *second;
static uint64_t turn;		/* of the first one */
static uint64_t lost_turn;
static uint64_t last_turn;
static bool nested;

static void turn_of_second(void)
{
	int ret = 0;

	nested = true;
	ret = ring_run(second, 0);
	nested = false;
	assert_int_equal(ret, 0);
}

static ssize_t stepping_pread(int read_fd, void *buf, size_t n, off_t ofs)
{
	ssize_t nread = 0;

	nread = pread(read_fd, buf, n, ofs);
	if (!nested && turn == lost_turn) {
		turn_of_second();
	}

	return nread;
}

static ssize_t stepping_pwrite(int write_fd, const void *buf, size_t n,
			       off_t ofs)
{
	ssize_t nwritten = 0;

	nwritten = pwrite(write_fd, buf, n, ofs);
	if (nested) {
		return nwritten;
	}
	if (turn != lost_turn) {
		turn_of_second();
	}
	if (turn == last_turn) {
		stop = 1;
	}
	turn++;

	return nwritten;
}

static void test_lost_update(void **state)
{
	struct ring a = new_ring(RING_RW);
	struct ring b = new_ring(RING_RW);
	const struct ring *const rings[] = { &a, &b };
	struct history_verdict verdict = {};
	int ret = 0;

	(void)state;
	table.fcntl_lock = lock_nothing;
	table.pread = stepping_pread;
	table.pwrite = stepping_pwrite;
	syscalls_replace(&table);

	first = &a;
	second = &b;
	second->stop = NULL;
	keep_steps(first, 0);
	keep_steps(second, 1);
	turn = 0;
	lost_turn = 2 * NLOCKS + 3;
	last_turn = 4 * NLOCKS - 1;

	ret = ring_begin(first);
	assert_int_equal(ret, 0);
	ret = ring_begin(second);
	assert_int_equal(ret, 0);

	ret = ring_run(first, ring_now() + FAR);
	assert_int_equal(ret, 0);

	assert_int_equal(first->turns, 4 * NLOCKS);
	assert_int_equal(second->turns, 4 * NLOCKS);
	assert_int_equal(sum_of_counters(8), 2 * 4 * NLOCKS - 1);

	assert_int_equal(first->increment, 2);

	/* the second one always comes into the byte that the first holds */
	verdict = judge(rings, 2);
	assert_int_equal(verdict.grants, 2 + 2 * 4 * NLOCKS);
	assert_int_equal(verdict.overlaps, 1 + 4 * NLOCKS);
	assert_int_equal(verdict.lock_op.member, 1);
	assert_int_equal(verdict.lock_op.start, 0);
	assert_int_equal(verdict.lock_other.member, 0);
	assert_int_equal(verdict.reads, 2 * 4 * NLOCKS);
	assert_int_equal(verdict.wrong, 1);
	assert_int_equal(verdict.data_wrong, HISTORY_LOST);
	assert_int_equal(verdict.data_op.start, 3);

	ret = ring_end(first);
	assert_int_equal(ret, 0);
	ret = ring_end(second);
	assert_int_equal(ret, 0);
}

static void test_one_turn(void **state)
{
	struct ring ring = new_ring(RING_RW);
	int ret = 0;

	(void)state;
	ring.start = NLOCKS - 1;
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	assert_true(ring.holding);

	ret = ring_run(&ring, 0);
	assert_int_equal(ret, 0);
	assert_int_equal(ring.turns, 1);
	assert_int_equal(ring.position, NLOCKS);
	assert_int_equal(sum_of_counters(8), 1);

	stop = 1;
	ret = ring_run(&ring, ring_now() + FAR);
	assert_int_equal(ret, 0);
	assert_int_equal(ring.turns, 1);

	ret = ring_end(&ring);
	assert_int_equal(ret, 0);
	assert_false(ring.holding);
}

/* The log has each step with its times, and its text comes back the same */
static void test_log(void **state)
{
	struct ring ring = new_ring(RING_RW);
	struct ring_step back[32] = {};
	char text[1024] = "";
	size_t i = 0, num = 0, done = 0;
	int ret = 0;

	(void)state;
	keep_steps(&ring, 0);
	ring.log_size = 11 + RING_LOG_SPARE;
	ring.start = 3;
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	/* until the log is full */
	ret = ring_run(&ring, ring_now() + FAR);
	assert_int_equal(ret, 0);
	assert_int_equal(ring.turns, 11);
	assert_int_equal(ring.logged, 12);
	ret = ring_end(&ring);
	assert_int_equal(ret, 0);
	assert_int_equal(ring.logged, 13);

	assert_int_equal(ring.log[0].position, 3);
	assert_int_equal(ring.log[0].left_ns, 0);
	assert_int_equal(ring.log[12].position, 15);
	assert_int_equal(ring.log[12].granted_ns, 0);
	for (i = 1; i < 12; i++) {
		assert_int_equal(ring.log[i].position, 3 + i);
		assert_int_equal(ring.log[i].value, (i - 1) / NLOCKS);
		assert_true(ring.log[i].asked_ns <= ring.log[i].granted_ns);
		assert_true(ring.log[i].granted_ns <= ring.log[i].left_ns);
		assert_true(ring.log[i].left_ns <= ring.log[i + 1].left_ns);
	}

	while (done < ring.logged) {
		size_t some = 0;

		some = ring_steps_print(ring.log + done, ring.logged - done,
					text, 512);
		assert_true(some > 0);
		ret = ring_steps_parse(text, back + done, 32 - done, &num);
		assert_int_equal(ret, 0);
		assert_int_equal(num, some);
		assert_true(strlen(text) >= some * RING_STEP_TEXT_MIN);
		done += some;
	}
	assert_memory_equal(back, ring.log, 13 * sizeof(back[0]));

	ret = ring_steps_parse("", back, 32, &num);
	assert_int_equal(ret, EPROTO);
	ret = ring_steps_parse("0 0\n1 2 3 4\n", back, 32, &num);
	assert_int_equal(ret, EPROTO);
	ret = ring_steps_parse("0 0\n1 2 3 4 5\n1 2 3 4 5\n", back, 1, &num);
	assert_int_equal(ret, EPROTO);
	assert_int_equal(num, 1);
}

static void test_bytes_wrap(void **state)
{
	struct ring ring = new_ring(RING_RW);
	uint8_t full[NLOCKS] = { 250, 251, 252, 253, 254 };
	ssize_t n = 0;
	int ret = 0;

	(void)state;
	n = pwrite(fd, full, sizeof(full), 0);
	assert_int_equal(n, sizeof(full));
	ring.width = 1;
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	ring.until_change = true;
	ret = ring_run(&ring, ring_now() + FAR);
	assert_int_equal(ret, 0);
	/* the first increment: 0 becomes 1 in the second round */
	assert_int_equal(ring.turns, NLOCKS + 1);
	assert_int_equal(ring.increment, 1);

	ring.until_change = false;
	ret = ring_run(&ring, ring_now() + NS_PER_S / 20);
	assert_int_equal(ret, 0);
	while (ring.turns < 1000) {
		ret = ring_run(&ring, 0);
		assert_int_equal(ret, 0);
	}
	assert_int_equal(ring.increment, 1);

	ret = ring_end(&ring);
	assert_int_equal(ret, 0);
}

static void test_read_only(void **state)
{
	struct ring ring = new_ring(RING_READ);
	int ret = 0;

	(void)state;
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	while (ring.turns < 3 * NLOCKS) {
		ret = ring_run(&ring, 0);
		assert_int_equal(ret, 0);
	}
	assert_int_equal(ring.increment, 0);
	assert_int_equal(sum_of_counters(8), 0);
	ring_end(&ring);
}

static void test_write_only(void **state)
{
	struct ring ring = new_ring(RING_WRITE);
	int ret = 0;

	(void)state;
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	while (ring.turns < 3 * NLOCKS) {
		ret = ring_run(&ring, 0);
		assert_int_equal(ret, 0);
	}
	assert_int_equal(ring.increment, 0);
	assert_int_equal(sum_of_counters(8), NLOCKS);
	ring_end(&ring);
}

static void test_single_byte(void **state)
{
	struct ring ring = new_ring(RING_RW);
	int ret = 0;

	(void)state;
	ring.nlocks = 1;
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	ret = ring_run(&ring, 0);
	assert_int_equal(ret, 0);
	assert_false(ring.holding);
	ret = ring_run(&ring, 0);
	assert_int_equal(ret, 0);
	assert_int_equal(sum_of_counters(8), 2);
	ret = ring_end(&ring);
	assert_int_equal(ret, 0);
}

static void test_arguments(void **state)
{
	struct ring ring = {};
	int ret = 0;

	(void)state;
	ring = new_ring(RING_LOCKS);
	ring.nlocks = 0;
	ret = ring_begin(&ring);
	assert_int_equal(ret, EINVAL);
	assert_string_equal(ring.failed, "arguments");
	ret = ring_end(&ring);
	assert_int_equal(ret, 0);

	ring = new_ring(RING_LOCKS);
	ring.start = NLOCKS;
	ret = ring_begin(&ring);
	assert_int_equal(ret, EINVAL);

	ring = new_ring(RING_RW);
	ring.width = 4;
	ret = ring_begin(&ring);
	assert_int_equal(ret, EINVAL);
}

/*
 * Calls that fail: the n-th one of its kind, counted from 0
 */

enum call {
	CALL_NONE,
	CALL_LOCK,
	CALL_UNLOCK,
	CALL_GETLK,
	CALL_READ,
	CALL_WRITE,
	CALL_MAP,
	CALL_UNMAP,
	CALLS,
};

static enum call fail_call;
static unsigned fail_at;
static unsigned fail_times;
static int fail_errno;
static bool fail_stops;
static unsigned ncalls[CALLS];

static bool fails(enum call call)
{
	unsigned n = ncalls[call]++;

	if (call != fail_call || n < fail_at || n >= fail_at + fail_times) {
		return false;
	}
	if (fail_stops) {
		stop = 1;
	}
	errno = fail_errno;

	return true;
}

static int failing_lock(int lock_fd, int cmd, struct flock *fl)
{
	enum call call = fl->l_type == F_UNLCK ? CALL_UNLOCK : CALL_LOCK;
	bool failing = false;

	if (cmd == F_GETLK) {
		call = CALL_GETLK;
	}
	failing = fails(call);

	return failing ? -1 : fcntl(lock_fd, cmd, fl);
}

static ssize_t failing_pread(int read_fd, void *buf, size_t n, off_t ofs)
{
	bool failing = fails(CALL_READ);

	/* errno 0: too few bytes */
	if (failing && fail_errno == 0) {
		return 0;
	}

	return failing ? -1 : pread(read_fd, buf, n, ofs);
}

static ssize_t failing_pwrite(int write_fd, const void *buf, size_t n,
			      off_t ofs)
{
	bool failing = fails(CALL_WRITE);

	if (failing && fail_errno == 0) {
		return n - 1;
	}

	return failing ? -1 : pwrite(write_fd, buf, n, ofs);
}

static void *failing_mmap(void *addr, size_t n, int prot, int flags,
			  int map_fd, off_t ofs)
{
	bool failing = fails(CALL_MAP);

	return failing ? MAP_FAILED : mmap(addr, n, prot, flags, map_fd, ofs);
}

static int failing_munmap(void *addr, size_t n)
{
	bool failing = fails(CALL_UNMAP);

	munmap(addr, n);

	return failing ? -1 : 0;
}

static void let_fail(enum call call, unsigned at, int err)
{
	table.fcntl_lock = failing_lock;
	table.pread = failing_pread;
	table.pwrite = failing_pwrite;
	table.mmap = failing_mmap;
	table.munmap = failing_munmap;
	syscalls_replace(&table);

	fail_call = call;
	fail_at = at;
	fail_times = 1;
	fail_errno = err;
	fail_stops = false;
	memset(ncalls, 0, sizeof(ncalls));
}

static void run_fails(enum call call, enum ring_io io, int err, int expected,
		      const char *name)
{
	struct ring ring = new_ring(io);
	int ret = 0;

	/* in the third turn; the first lock is that of ring_begin */
	let_fail(call, call == CALL_LOCK ? 3 : 2, err);
	ring.getlk = call == CALL_GETLK;
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	ret = ring_run(&ring, ring_now() + FAR);
	assert_int_equal(ret, expected);
	assert_string_equal(ring.failed, name);
	assert_int_equal(ring.turns, 2);
	assert_true(ring.holding);
	assert_int_equal(ring.holding_next, call != CALL_LOCK);

	/* it can go on from there */
	ret = ring_run(&ring, 0);
	assert_int_equal(ret, 0);
	assert_null(ring.failed);
	assert_int_equal(ring.turns, 3);

	ret = ring_end(&ring);
	assert_int_equal(ret, 0);
	assert_nobody_holds();
}

static void test_errors(void **state)
{
	(void)state;
	run_fails(CALL_LOCK, RING_LOCKS, ENOLCK, ENOLCK, "lock");
	run_fails(CALL_LOCK, RING_LOCKS, EDEADLK, EDEADLK, "lock");
	run_fails(CALL_UNLOCK, RING_LOCKS, EIO, EIO, "unlock");
	run_fails(CALL_GETLK, RING_LOCKS, EINVAL, EINVAL, "getlk");
	run_fails(CALL_READ, RING_RW, EIO, EIO, "read");
	run_fails(CALL_READ, RING_RW, 0, ENODATA, "read");
	run_fails(CALL_WRITE, RING_RW, ENOSPC, ENOSPC, "write");
	run_fails(CALL_WRITE, RING_RW, 0, EIO, "write");
}

static void begin_fails(enum call call, int err, const char *name)
{
	struct ring ring = new_ring(RING_MMAP);
	int ret = 0;

	let_fail(call, 0, err);
	ret = ring_begin(&ring);
	assert_int_equal(ret, err);
	assert_string_equal(ring.failed, name);
	assert_false(ring.holding);
	ret = ring_end(&ring);
	assert_int_equal(ret, 0);
	assert_nobody_holds();
}

static void test_errors_at_begin(void **state)
{
	(void)state;
	begin_fails(CALL_LOCK, ENOLCK, "lock");
	begin_fails(CALL_MAP, ENODEV, "map");
}

static void end_fails(enum call call, int err, const char *name)
{
	struct ring ring = new_ring(RING_MMAP);
	int ret = 0;

	let_fail(call, 0, err);
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	ret = ring_end(&ring);
	assert_int_equal(ret, err);
	assert_string_equal(ring.failed, name);
}

static void test_errors_at_end(void **state)
{
	(void)state;
	end_fails(CALL_UNLOCK, EIO, "unlock");
	end_fails(CALL_UNMAP, EINVAL, "map");
}

/* Signals come, and nobody has asked to stop. */
static void test_eintr_goes_on(void **state)
{
	static const enum call calls[] = {
		CALL_LOCK, CALL_UNLOCK, CALL_READ, CALL_WRITE,
	};
	unsigned i = 0;

	(void)state;
	for (i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct ring ring = new_ring(RING_RW);
		uint64_t before = sum_of_counters(8);
		int ret = 0;

		let_fail(calls[i], 0, EINTR);
		fail_times = 3;
		ret = ring_begin(&ring);
		assert_int_equal(ret, 0);
		ret = ring_run(&ring, 0);
		assert_int_equal(ret, 0);
		assert_int_equal(ring.turns, 1);
		assert_int_equal(sum_of_counters(8), before + 1);
		assert_int_equal(ncalls[calls[i]],
				 calls[i] == CALL_LOCK ? 5 : 4);
		ring_end(&ring);
	}
}

static void test_eintr_ends_begin(void **state)
{
	struct ring ring = new_ring(RING_LOCKS);
	int ret = 0;

	(void)state;
	let_fail(CALL_LOCK, 0, EINTR);
	fail_stops = true;
	ret = ring_begin(&ring);
	assert_int_equal(ret, EINTR);
	assert_string_equal(ring.failed, "lock");
	assert_false(ring.holding);
	ret = ring_end(&ring);
	assert_int_equal(ret, 0);
}

static void run_is_ended(uint64_t deadline, bool stops, unsigned signals)
{
	struct ring ring = new_ring(RING_RW);
	int ret = 0;

	let_fail(CALL_LOCK, 1, EINTR);
	fail_times = signals;
	fail_stops = stops;
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	ret = ring_run(&ring, deadline);
	assert_int_equal(ret, 0);
	assert_int_equal(ring.turns, 0);
	assert_true(ring.holding);
	assert_false(ring.holding_next);
	assert_null(ring.failed);
	ret = ring_end(&ring);
	assert_int_equal(ret, 0);
}

static void test_eintr_ends_run(void **state)
{
	(void)state;
	run_is_ended(ring_now() + FAR, true, 1);
	stop = 0;
	run_is_ended(0, false, 1);
	run_is_ended(ring_now() + NS_PER_S / 100, false, UINT32_MAX / 2);
}

/* A real lock of another process, and a real signal that comes again and
 * again once the ring asks for it */
static int lock_with_timer(int lock_fd, int cmd, struct flock *fl)
{
	struct itimerval timer = {
		.it_value.tv_usec = 5000,
		.it_interval.tv_usec = 5000,
	};

	if (fl->l_type == F_WRLCK && fl->l_start == 2) {
		setitimer(ITIMER_REAL, &timer, NULL);
	}

	return fcntl(lock_fd, cmd, fl);
}

static void test_waiting_is_ended(void **state)
{
	struct itimerval off = {};
	struct ring ring = new_ring(RING_LOCKS);
	struct flock fl = { .l_type = F_WRLCK, .l_start = 2, .l_len = 1 };
	int pipefd[2];
	pid_t pid = 0;
	char c = 0;
	int ret = 0;

	(void)state;
	table.fcntl_lock = lock_with_timer;
	syscalls_replace(&table);
	ret = pipe(pipefd);
	assert_int_equal(ret, 0);
	pid = new_process();
	if (pid == 0) {
		fcntl(fd, F_SETLK, &fl);
		ret = write(pipefd[1], "x", 1);
		pause();
		_exit(0);
	}
	ret = read(pipefd[0], &c, 1);
	assert_int_equal(ret, 1);

	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	ret = ring_run(&ring, ring_now() + FAR);
	setitimer(ITIMER_REAL, &off, NULL);
	assert_int_equal(ret, 0);
	assert_int_equal(ring.turns, 1);
	assert_true(ring.holding);
	assert_int_equal(stop, 1);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(pipefd[0]);
	close(pipefd[1]);
	ring_end(&ring);
}

/* -c: locks that do nothing, and somebody else's real one */
static int only_getlk(int lock_fd, int cmd, struct flock *fl)
{
	return cmd == F_GETLK ? fcntl(lock_fd, cmd, fl) : 0;
}

static void test_getlk_shows_other(void **state)
{
	struct ring ring = new_ring(RING_LOCKS);
	struct flock fl = { .l_type = F_WRLCK, .l_start = 1, .l_len = 1 };
	int other = -1;
	int ret = 0;

	(void)state;
	other = open(path, O_RDWR);
	ret = fcntl(other, F_OFD_SETLK, &fl);
	assert_int_equal(ret, 0);

	table.fcntl_lock = only_getlk;
	syscalls_replace(&table);
	ring.getlk = true;
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	ret = ring_run(&ring, ring_now() + FAR);
	assert_int_equal(ret, EBUSY);
	assert_string_equal(ring.failed, "getlk");
	assert_int_equal(ring.turns, 1);
	assert_int_equal(ring.other.l_type, F_WRLCK);
	assert_int_equal(ring.other.l_start, 1);
	assert_int_equal(ring.other.l_len, 1);

	ret = ring_end(&ring);
	assert_int_equal(ret, 0);
	close(other);
}

static unsigned process_calls;
static unsigned ofd_calls;

static int lock_by_family(int lock_fd, int cmd, struct flock *fl)
{
	switch (cmd) {
	case F_SETLKW:
	case F_GETLK:
		process_calls++;
		break;
	case F_OFD_SETLKW:
	case F_OFD_GETLK:
		ofd_calls++;
		break;
	}

	return fcntl(lock_fd, cmd, fl);
}

static void run_family(enum ring_family family)
{
	struct ring ring = new_ring(RING_LOCKS);
	int ret = 0;

	process_calls = 0;
	ofd_calls = 0;
	ring.family = family;
	ring.getlk = true;
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	ret = ring_run(&ring, 0);
	assert_int_equal(ret, 0);
	ret = ring_end(&ring);
	assert_int_equal(ret, 0);
}

static void test_families(void **state)
{
	(void)state;
	table.fcntl_lock = lock_by_family;
	syscalls_replace(&table);

	run_family(RING_PROCESS);
	assert_int_equal(process_calls, 5);
	assert_int_equal(ofd_calls, 0);

	run_family(RING_OFD);
	assert_int_equal(process_calls, 0);
	assert_int_equal(ofd_calls, 5);
}

/*
 * Histogram
 */

static void test_hist_edges(void **state)
{
	uint64_t hist[RING_HIST_BUCKETS] = {};
	uint64_t lower = 0;
	unsigned i = 0;

	(void)state;
	assert_int_equal(ring_hist_percentile(hist, 0.5), 0);

	for (i = 0; i < RING_HIST_BUCKETS; i++) {
		uint64_t upper = 0;

		hist[i] = 1;
		upper = ring_hist_percentile(hist, 1.0);
		hist[i] = 0;
		assert_true(upper > lower);
		if (lower >= RING_HIST_SUB) {
			assert_true(upper - lower <= lower / RING_HIST_SUB);
		}
		lower = upper;
	}
	assert_int_equal(lower, 1ULL << 44);
}

static void test_hist_percentiles(void **state)
{
	uint64_t hist[RING_HIST_BUCKETS] = {};

	(void)state;
	hist[3] = 50;
	hist[5] = 49;
	hist[16] = 1;
	assert_int_equal(ring_hist_percentile(hist, 0), 4);
	assert_int_equal(ring_hist_percentile(hist, 0.5), 4);
	assert_int_equal(ring_hist_percentile(hist, 0.51), 6);
	assert_int_equal(ring_hist_percentile(hist, 0.99), 6);
	assert_int_equal(ring_hist_percentile(hist, 1.0), 18);
}

/* Where the bucket begins: where the one below ends */
static uint64_t lower_edge(unsigned bucket)
{
	uint64_t hist[RING_HIST_BUCKETS] = {};

	if (bucket == 0) {
		return 0;
	}
	hist[bucket - 1] = 1;

	return ring_hist_percentile(hist, 1.0);
}

/* Four slow turns among twenty */
static int slow_lock(int lock_fd, int cmd, struct flock *fl)
{
	struct timespec delay = { .tv_nsec = 3000000 };

	if (fl->l_type == F_WRLCK && fl->l_start == 2) {
		nanosleep(&delay, NULL);
	}
	if (fl->l_type == F_UNLCK && ++turn == 4 * NLOCKS) {
		stop = 1;
	}

	return fcntl(lock_fd, cmd, fl);
}

static void test_hist_counts_turns(void **state)
{
	uint64_t hist[RING_HIST_BUCKETS] = {};
	struct ring ring = new_ring(RING_LOCKS);
	uint64_t total = 0;
	uint64_t ns = 0;
	uint64_t elapsed = 0;
	unsigned i = 0;
	int ret = 0;

	(void)state;
	table.fcntl_lock = slow_lock;
	syscalls_replace(&table);
	turn = 0;
	ring.hist = hist;
	ret = ring_begin(&ring);
	assert_int_equal(ret, 0);
	elapsed = ring_now();
	ret = ring_run(&ring, ring_now() + FAR);
	elapsed = ring_now() - elapsed;
	assert_int_equal(ret, 0);
	assert_int_equal(ring.turns, 4 * NLOCKS);

	for (i = 0; i < RING_HIST_BUCKETS; i++) {
		total += hist[i];
		ns += hist[i] * lower_edge(i);
	}
	assert_int_equal(total, ring.turns);
	assert_true(ns <= elapsed);
	assert_true(ring_hist_percentile(hist, 0.81) >= 3000000);
	ring_end(&ring);
}

#define RING_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RING_TEST(test_coherent_locks),
		RING_TEST(test_coherent_rw),
		RING_TEST(test_coherent_rw_bytes),
		RING_TEST(test_coherent_mmap),
		RING_TEST(test_coherent_mmap_bytes),
		RING_TEST(test_coherent_ofd),
		RING_TEST(test_no_locks),
		RING_TEST(test_lost_update),
		RING_TEST(test_one_turn),
		RING_TEST(test_log),
		RING_TEST(test_bytes_wrap),
		RING_TEST(test_read_only),
		RING_TEST(test_write_only),
		RING_TEST(test_single_byte),
		RING_TEST(test_arguments),
		RING_TEST(test_errors),
		RING_TEST(test_errors_at_begin),
		RING_TEST(test_errors_at_end),
		RING_TEST(test_eintr_goes_on),
		RING_TEST(test_eintr_ends_begin),
		RING_TEST(test_eintr_ends_run),
		RING_TEST(test_waiting_is_ended),
		RING_TEST(test_getlk_shows_other),
		RING_TEST(test_families),
		RING_TEST(test_hist_edges),
		RING_TEST(test_hist_percentiles),
		RING_TEST(test_hist_counts_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
