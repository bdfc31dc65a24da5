/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "ctdb-events/command.h"
#include "ctdb-events/life.h"

#define PATH_TIMEOUT_MS 2000

/* where ctdbd keeps its pid, by ctdb-path */
static int pid_file(TALLOC_CTX *mem_ctx, const struct ctdb_paths *paths,
		    char **file)
{
	struct tevent_context *ev = tevent_context_init(mem_ctx);
	const char *argv[] = { NULL, "pidfile", "ctdbd", NULL };
	struct tevent_req *req = NULL;
	int status = 0;
	bool ok;
	int ret;

	argv[0] = talloc_asprintf(mem_ctx, "%s/ctdb-path", paths->helpers);
	if (ev == NULL || argv[0] == NULL) {
		return ENOMEM;
	}
	req = command_send(mem_ctx, ev, argv, PATH_TIMEOUT_MS);
	if (req == NULL) {
		return ENOMEM;
	}
	ok = tevent_req_poll(req, ev);
	if (!ok) {
		return EIO;
	}
	ret = command_recv(req, mem_ctx, &status, file);
	if (ret == 0 && status != 0) {
		ret = EIO;
	}
	if (ret == 0) {
		(*file)[strcspn(*file, "\n")] = '\0';
	}
	talloc_free(req);
	talloc_free(ev);
	return ret;
}

static pid_t read_pid(const char *file)
{
	char line[32] = "";
	FILE *f = fopen(file, "re");

	if (f == NULL) {
		return 0;
	}
	if (fgets(line, sizeof(line), f) == NULL) {
		line[0] = '\0';
	}
	fclose(f);
	return (pid_t)strtol(line, NULL, 10);
}

static pid_t parent_of(pid_t pid)
{
	char path[64], line[256];
	int parent = 0;
	FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (f == NULL) {
		return 0;
	}
	while (parent == 0 && fgets(line, sizeof(line), f) != NULL) {
		sscanf(line, "PPid: %d", &parent);
	}
	fclose(f);
	return parent;
}

static bool is_ancestor(pid_t ancestor)
{
	pid_t pid;

	for (pid = getppid(); pid > 0; pid = parent_of(pid)) {
		if (pid == ancestor) {
			return true;
		}
	}
	return false;
}

int life_of_ctdbd(TALLOC_CTX *mem_ctx, const struct ctdb_paths *paths,
		  int *pidfd, const char **why)
{
	char *file = NULL;
	pid_t pid;
	int ret;

	ret = pid_file(mem_ctx, paths, &file);
	if (ret != 0) {
		*why = talloc_asprintf(mem_ctx, "'%s/ctdb-path pidfile "
				       "ctdbd': %s", paths->helpers,
				       strerror(ret));
		return ret;
	}
	pid = read_pid(file);
	if (pid > 0) {
		*pidfd = pidfd_open(pid, 0);
	}
	if (pid <= 0 || *pidfd == -1) {
		*why = talloc_asprintf(mem_ctx, "no ctdbd runs by its pid "
				       "file '%s'", file);
		return ESRCH;
	}
	if (!is_ancestor(pid)) {
		*why = talloc_asprintf(mem_ctx, "not started by a script of "
				       "ctdbd (process %d)", (int)pid);
		close(*pidfd);
		return EPERM;
	}
	return 0;
}

bool life_ctdbd_runs(const struct ctdb_paths *paths)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	char *file = NULL;
	int pidfd = -1;
	pid_t pid = 0;
	int ret;

	ret = pid_file(frame, paths, &file);
	if (ret == 0) {
		pid = read_pid(file);
	}
	if (pid > 0) {
		pidfd = pidfd_open(pid, 0);
	}
	talloc_free(frame);
	if (pidfd == -1) {
		return false;
	}
	close(pidfd);
	return true;
}
