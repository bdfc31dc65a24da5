/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <string.h>

#include "core/probe/process.h"

bool process_look(pid_t pid, struct process *process)
{
	char path[64], line[1024];
	char *rest = NULL;
	FILE *f = NULL;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f == NULL) {
		return false;
	}
	rest = fgets(line, sizeof(line), f);
	fclose(f);
	if (rest == NULL) {
		return false;
	}
	/* the name in parentheses may hold anything */
	rest = strrchr(line, ')');
	if (rest == NULL) {
		return false;
	}
	n = sscanf(rest + 1,
		   " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
		   " %*s %*s %*s %*s %*s %*s %llu", &process->state,
		   &process->start);
	return n == 2;
}
