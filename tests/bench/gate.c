/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * For tests/bench/smbd: what the VFS module does at a tree connect, without
 * smbd
 *
 *   gate PATH
 *
 * PATH has a fresh verdict in the store. Prints the median of what the first
 * question of a process takes, in µs, and the average of those that follow, in
 * ns.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/config.h"
#include "vfs_pingpong/gate.h"

#define PROCESSES 101
#define QUESTIONS 100000

static const struct gate_places places = {
	.statedir = STATEDIR,
	.rundir = RUNDIR,
	.mountinfo = "/proc/self/mountinfo",
	.command = "/bin/false",
	.trust_ms = 1000,
};

static double now_ns(void)
{
	struct timespec ts = {};

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void ask(const char *path)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	struct share_answer answer = {};
	struct share share;

	share_init(&share, path);
	gate_ask(frame, &places, &share, 1000, &answer);
	if (answer.fitness != FIT) {
		errx(1, "%s: %s", path, answer.reason);
	}
	talloc_free(frame);
}

/* Of a process that has asked nothing yet */
static double first_ns(const char *path)
{
	double took = 0;
	int fds[2];
	ssize_t n;
	int ret;
	pid_t pid;

	ret = pipe(fds);
	if (ret == -1) {
		err(1, "pipe");
	}
	pid = fork();
	if (pid == 0) {
		double start = now_ns();

		ask(path);
		took = now_ns() - start;
		n = write(fds[1], &took, sizeof(took));
		_exit(n == sizeof(took) ? 0 : 1);
	}
	close(fds[1]);
	n = read(fds[0], &took, sizeof(took));
	if (n != sizeof(took)) {
		errx(1, "no answer of a process");
	}
	close(fds[0]);
	waitpid(pid, NULL, 0);
	return took;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, const char **argv)
{
	double first[PROCESSES], start;
	unsigned i;

	if (argc != 2) {
		errx(64, "expected one PATH");
	}
	for (i = 0; i < PROCESSES; i++) {
		first[i] = first_ns(argv[1]);
	}
	qsort(first, PROCESSES, sizeof(first[0]), by_size);
	ask(argv[1]);
	start = now_ns();
	for (i = 0; i < QUESTIONS; i++) {
		ask(argv[1]);
	}
	printf("%.0f %.0f\n", first[PROCESSES / 2] / 1000,
	       (now_ns() - start) / QUESTIONS);
	return 0;
}
