/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Contenders for tests/bench/rings, beside stock ping_pong and ours
 *
 *   ring bare [-rwm] FILE NUM_LOCKS
 *	The ring without anything around its system calls: what the kernel
 *	allows. A timer, which interrupts nothing but once a second, stands in
 *	for the clock.
 *
 *   ring worker [-rwm] FILE NUM_LOCKS MEMBER
 *	The core's ring as a worker runs it: counters of 8 bytes, histogram,
 *	log. MEMBER is 0, 1 ...
 *
 * Both print their rate as ping_pong does and run until they are killed.
 *
 *   ring share SECONDS PID[,PID...]...
 *	Lets the contenders, stopped when it begins and when it ends, run one
 *	after the other, a few milliseconds at a time: what slows the machine
 *	down for a while slows all of them alike. An argument holds the
 *	processes of one contender. Prints for each the share of the time that
 *	it had.
 */
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "core/probe/ring.h"

#define NS_PER_S 1000000000ULL
#define SLICE_NS 20000000

static volatile sig_atomic_t second_over;

static void on_alarm(int sig)
{
	(void)sig;
	second_over = 1;
}

static void print_rate(uint64_t turns, uint64_t since, uint64_t now)
{
	printf("%8u locks/sec\r",
	       (unsigned)(2 * turns * NS_PER_S / (now - since)));
	fflush(stdout);
}

static int open_file(const char *path, size_t size)
{
	int ret = 0;
	int fd = -1;

	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd == -1) {
		err(EX_CANTCREAT, "%s", path);
	}
	ret = ftruncate(fd, size);
	if (ret == -1) {
		err(EX_IOERR, "%s", path);
	}

	return fd;
}

static void *map_file(int fd, size_t size)
{
	void *map = NULL;

	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		err(EX_OSERR, "mmap");
	}

	return map;
}

static void must(bool ok, const char *call)
{
	if (!ok) {
		err(EX_IOERR, "%s", call);
	}
}

static void bare(int fd, off_t nlocks, enum ring_io io)
{
	struct sigaction act = {
		.sa_handler = on_alarm,
		.sa_flags = SA_RESTART,
	};
	struct itimerval second = {
		.it_value.tv_sec = 1,
		.it_interval.tv_sec = 1,
	};
	volatile uint8_t *map = NULL;
	uint64_t since = 0;
	uint64_t turns = 0;
	off_t byte = 0;
	struct flock lock = {
		.l_type = F_WRLCK,
		.l_len = 1,
	};
	struct flock unlock = {
		.l_type = F_UNLCK,
		.l_len = 1,
	};

	if (io & RING_MAPPED) {
		map = map_file(fd, nlocks);
	}
	must(fcntl(fd, F_SETLKW, &lock) == 0, "lock");
	sigaction(SIGALRM, &act, NULL);
	setitimer(ITIMER_REAL, &second, NULL);

	since = ring_now();
	while (true) {
		off_t next = byte + 1 < nlocks ? byte + 1 : 0;
		uint8_t value = 0;

		lock.l_start = next;
		must(fcntl(fd, F_SETLKW, &lock) == 0, "lock");
		if (map != NULL) {
			map[byte]++;
		} else if (io & RING_RW) {
			must(pread(fd, &value, 1, byte) == 1, "pread");
			value++;
			must(pwrite(fd, &value, 1, byte) == 1, "pwrite");
		}
		unlock.l_start = byte;
		must(fcntl(fd, F_SETLKW, &unlock) == 0, "unlock");
		byte = next;
		turns++;

		if (second_over) {
			uint64_t now = ring_now();

			print_rate(turns, since, now);
			since = now;
			turns = 0;
			second_over = 0;
		}
	}
}

static void worker(int fd, uint64_t nlocks, enum ring_io io,
		   uint32_t member)
{
	static uint64_t hist[RING_HIST_BUCKETS];
	static struct ring_step steps[8192];
	struct ring ring = {
		.fd = fd,
		.nlocks = nlocks,
		.start = member,
		.io = io,
		.width = 8,
		.hist = hist,
		.log = steps,
		.log_size = 8192,
	};
	uint64_t since = 0;
	uint64_t turns = 0;
	int ret = 0;

	ret = ring_begin(&ring);
	since = ring_now();
	while (ret == 0) {
		uint64_t now = 0;

		ret = ring_run(&ring, since + NS_PER_S);
		ring.logged = 0;
		now = ring_now();
		if (ret == 0 && now < since + NS_PER_S) {
			continue;
		}
		print_rate(ring.turns - turns, since, now);
		since = now;
		turns = ring.turns;
	}
	errx(EX_IOERR, "%s: %s", ring.failed, strerror(ret));
}

static void signal_group(const char *pids, int sig)
{
	char *end = NULL;

	for (; *pids != '\0'; pids = *end == ',' ? end + 1 : end) {
		kill(strtol(pids, &end, 10), sig);
	}
}

static void share(char **groups, int ngroups, double seconds)
{
	struct timespec slice = { .tv_nsec = SLICE_NS };
	uint64_t begin = ring_now();
	uint64_t end = begin + (uint64_t)(seconds * NS_PER_S);
	uint64_t had[ngroups];
	int i = 0;

	memset(had, 0, sizeof(had));
	while (ring_now() < end) {
		for (i = 0; i < ngroups; i++) {
			uint64_t since = 0;

			signal_group(groups[i], SIGCONT);
			since = ring_now();
			nanosleep(&slice, NULL);
			signal_group(groups[i], SIGSTOP);
			had[i] += ring_now() - since;
		}
	}
	end = ring_now();

	for (i = 0; i < ngroups; i++) {
		printf("%.6f\n", (double)had[i] / (end - begin));
	}
}

static void usage(void)
{
	errx(EX_USAGE, "usage: ring bare [-rwm] FILE NUM_LOCKS\n"
	     "       ring worker [-rwm] FILE NUM_LOCKS MEMBER\n"
	     "       ring share SECONDS PID[,PID...]...");
}

int main(int argc, char **argv)
{
	enum ring_io io = RING_LOCKS;
	uint64_t nlocks = 0;
	char **arg = argv + 1;
	int nargs = argc - 1;
	bool is_bare = false;

	if (nargs < 3) {
		usage();
	}
	if (strcmp(*arg, "share") == 0) {
		share(arg + 2, nargs - 2, strtod(arg[1], NULL));
		return 0;
	}
	is_bare = strcmp(*arg, "bare") == 0;
	arg++;
	nargs--;
	if (**arg == '-') {
		io = strchr(*arg, 'm') != NULL ? RING_MMAP : RING_RW;
		arg++;
		nargs--;
	}
	if (nargs != (is_bare ? 2 : 3)) {
		usage();
	}
	nlocks = strtoull(arg[1], NULL, 10);

	if (is_bare) {
		bare(open_file(arg[0], nlocks + 1), nlocks, io);
	} else {
		worker(open_file(arg[0], nlocks * 8), nlocks, io,
		       strtoul(arg[2], NULL, 10));
	}

	return EX_USAGE;
}
