/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Is a process still the one it was? /proc/PID/stat (proc(5)), reading which
 * never waits for anything that the process waits for.
 */
#ifndef PINGPONG_PROBE_PROCESS_H
#define PINGPONG_PROBE_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

struct process {
	char state;			/* 'R', 'S', 'D', 'Z', ... */
	unsigned long long start;	/* clock ticks after boot: with the
					 * pid it names one process */
};

/* False when there is no such process. */
bool process_look(pid_t pid, struct process *process);

#endif
