/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/member/mounts.h"
#include "core/member/rundir.h"
#include "core/member/stuck.h"
#include "core/probe/process.h"
#include "core/probe/syscalls.h"

/* of RUNDIR */
#define STUCK_DIR "stuck"
#define TURNS_DIR "turns"

/* ---- paths as strings ---------------------------------------------------- */

/* Absolute, without "//", "/./", "/x/../" and a trailing "/" */
static char *plain_path(TALLOC_CTX *mem_ctx, const char *path)
{
	char *cwd = NULL, *from = NULL, *out = NULL, *save = NULL;
	const char *word = NULL;

	if (path[0] != '/') {
		cwd = getcwd(NULL, 0);
	}
	from = talloc_asprintf(mem_ctx, "%s/%s", cwd != NULL ? cwd : "",
			       path);
	free(cwd);
	out = talloc_strdup(mem_ctx, "");
	if (from == NULL || out == NULL) {
		return NULL;
	}
	for (word = strtok_r(from, "/", &save); word != NULL && out != NULL;
	     word = strtok_r(NULL, "/", &save)) {
		if (strcmp(word, ".") == 0) {
			continue;
		}
		if (strcmp(word, "..") != 0) {
			out = talloc_asprintf_append(out, "/%s", word);
		} else if (out[0] != '\0') {
			*strrchr(out, '/') = '\0';
		}
	}
	return out == NULL || out[0] != '\0' ? out
					     : talloc_strdup(mem_ctx, "/");
}

static bool below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return strcmp(top, "/") == 0 ||
	       (strncmp(path, top, n) == 0 &&
		(path[n] == '\0' || path[n] == '/'));
}

/* ---- the files ----------------------------------------------------------- */

static void file_name(char name[32], unsigned major, unsigned minor)
{
	snprintf(name, 32, "%u:%u", major, minor);
}

/* ---- finding ------------------------------------------------------------- */

static bool still_there(pid_t pid, unsigned long long start)
{
	struct process process = {};
	bool ok;

	ok = process_look(pid, &process);
	return ok && process.start == start && process.state != 'Z' &&
	       process.state != 'X';
}

/*
 * Go through the lines of a file. Returns the first process that is there and
 * stands for the path, or 0; *alive: there are some, for whatever path.
 */
static pid_t look_through(FILE *f, const char *path, bool *alive)
{
	unsigned long long start = 0;
	pid_t found = 0;
	char *line = NULL;
	size_t size = 0;
	int pid = 0, end = 0, n;
	bool ok;

	*alive = false;
	while (found == 0 && getline(&line, &size, f) != -1) {
		line[strcspn(line, "\n")] = '\0';
		n = sscanf(line, "%d %llu %n", &pid, &start, &end);
		if (n != 2 || line[end] != '/') {
			continue;
		}
		ok = still_there(pid, start);
		if (!ok) {
			continue;
		}
		*alive = true;
		if (below(path, line + end)) {
			found = pid;
		}
	}
	free(line);
	return found;
}

static pid_t find_in(int dirfd, const char *name, const char *path)
{
	bool alive = false;
	pid_t found = 0;
	FILE *f = NULL;
	int fd;

	fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1) {
		return 0;
	}
	f = fdopen(fd, "r");
	if (f == NULL) {
		close(fd);
		return 0;
	}
	found = look_through(f, path, &alive);
	fclose(f);
	if (!alive) {
		unlinkat(dirfd, name, 0);
	}
	return found;
}

pid_t stuck_find(const char *rundir, const char *mountinfo, const char *path)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	struct mount_line *mount = NULL;
	char *plain = NULL;
	char name[32];
	pid_t found = 0;
	int fd = -1;
	int ret;

	ret = rundir_find(rundir, STUCK_DIR, &fd);
	if (ret != 0) {
		talloc_free(frame);
		return 0;
	}
	plain = plain_path(frame, path);
	if (plain != NULL) {
		ret = mount_by_path(frame, mountinfo, plain, &mount);
	}
	if (mount != NULL) {
		file_name(name, mount->major, mount->minor);
		found = find_in(fd, name, plain);
	}
	close(fd);
	talloc_free(frame);
	return found;
}

/* ---- turns --------------------------------------------------------------- */

/* FNV-1a; two paths with the same one only wait for each other */
static unsigned long long hash(const char *s)
{
	unsigned long long h = 14695981039346656037ULL;

	for (; *s != '\0'; s++) {
		h = (h ^ (unsigned char)*s) * 1099511628211ULL;
	}
	return h;
}

/* The file of the turn, opened with these flags; -1 with errno */
static int open_turn(const char *rundir, const char *mountinfo,
		     const char *path, bool linked, int flags)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	struct mount_line *mount = NULL;
	char *plain = plain_path(frame, path);
	char name[64];
	int dirfd = -1, fd = -1;
	int ret;

	ret = plain == NULL ? ENOMEM
			    : mount_by_path(frame, mountinfo, plain, &mount);
	if (ret == 0) {
		ret = (flags & O_CREAT) != 0
			      ? rundir_open(rundir, TURNS_DIR, &dirfd)
			      : rundir_find(rundir, TURNS_DIR, &dirfd);
	}
	if (ret == 0) {
		file_name(name, mount->major, mount->minor);
		if (linked) {
			snprintf(name + strlen(name), 32, "-%016llx",
				 hash(plain));
		}
		fd = openat(dirfd, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
		ret = fd == -1 ? errno : 0;
		close(dirfd);
	}
	talloc_free(frame);
	errno = ret;
	return fd;
}

int stuck_turn(const char *rundir, const char *mountinfo, const char *path,
	       bool linked)
{
	int fd, ret;

	fd = open_turn(rundir, mountinfo, path, linked, O_RDWR | O_CREAT);
	if (fd == -1) {
		return -1;
	}
	ret = flock(fd, LOCK_EX);
	if (ret == -1) {
		ret = errno;
		close(fd);
		errno = ret;
		return -1;
	}
	ret = ftruncate(fd, 0);
	if (ret == 0) {
		dprintf(fd, "%d\n", (int)getpid());
	}
	return fd;
}

pid_t stuck_turn_of(const char *rundir, const char *mountinfo,
		    const char *path, bool linked)
{
	char text[32] = "";
	int fd, ret;

	fd = open_turn(rundir, mountinfo, path, linked, O_RDONLY);
	if (fd == -1) {
		return 0;
	}
	ret = flock(fd, LOCK_SH | LOCK_NB);
	if (ret == -1) {
		ret = (int)pread(fd, text, sizeof(text) - 1, 0);
	}
	close(fd);
	return atoi(text);
}

int stuck_open(const char *mountinfo, const char *path)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS,
	};
	TALLOC_CTX *frame = talloc_new(NULL);
	struct mount_line *mount = NULL;
	char *plain = plain_path(frame, path);
	const char *rest = NULL;
	int top = -1, fd = -1;
	int ret;

	ret = plain == NULL ? ENOMEM
			    : mount_by_path(frame, mountinfo, plain, &mount);
	if (ret == 0 && strstr(path, "..") != NULL) {
		/* that is another place where what is before it is a link */
		ret = ELOOP;
	}
	if (ret == 0) {
		top = open(mount->point, O_PATH | O_DIRECTORY | O_CLOEXEC);
		ret = top == -1 ? errno : 0;
	}
	if (ret == 0) {
		rest = plain + strlen(mount->point);
		rest += strspn(rest, "/");
		fd = syscalls()->openat2(top, *rest != '\0' ? rest : ".",
					 &how);
		ret = fd == -1 ? errno : 0;
		close(top);
	}
	talloc_free(frame);
	errno = ret;
	return fd;
}

/* ---- recording ----------------------------------------------------------- */

static int add_line(int dirfd, unsigned major, unsigned minor, pid_t pid,
		    unsigned long long start, const char *path)
{
	char name[32];
	int fd, n, ret;

	file_name(name, major, minor);
	fd = openat(dirfd, name,
		    O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
		    0600);
	if (fd == -1) {
		return errno;
	}
	n = dprintf(fd, "%d %llu %s\n", (int)pid, start, path);
	ret = n < 0 ? errno : 0;
	close(fd);
	return ret;
}

/*
 * What the path says and what the worker said may be two mounts; the next
 * question comes with the path.
 */
static int add_lines(int dirfd, const struct mount_line *by_path,
		     const char *plain, pid_t pid, unsigned long long start,
		     const struct stuck_mount *opened, bool its_turn)
{
	bool same = opened != NULL && opened->major == by_path->major &&
		    opened->minor == by_path->minor;
	bool all = same || (opened == NULL &&
			    (its_turn || strcmp(by_path->point, plain) == 0));
	int ret = 0;

	if (opened != NULL && !same) {
		ret = add_line(dirfd, opened->major, opened->minor, pid,
			       start, "/");
	}
	if (ret != 0) {
		return ret;
	}
	return add_line(dirfd, by_path->major, by_path->minor, pid, start,
			all ? "/" : plain);
}

int stuck_record(const char *rundir, const char *mountinfo, const char *path,
		 pid_t pid, const struct stuck_mount *opened)
{
	TALLOC_CTX *frame = NULL;
	struct mount_line *mount = NULL;
	struct process process = {};
	char *plain = NULL;
	pid_t turn;
	int fd = -1;
	bool ok;
	int ret;

	ok = process_look(pid, &process);
	if (!ok || strchr(path, '\n') != NULL) {
		return EINVAL;
	}
	ret = rundir_open(rundir, STUCK_DIR, &fd);
	if (ret != 0) {
		return ret;
	}
	frame = talloc_new(NULL);
	plain = plain_path(frame, path);
	ret = plain == NULL ? ENOMEM
			    : mount_by_path(frame, mountinfo, plain, &mount);
	if (ret == 0) {
		turn = stuck_turn_of(rundir, mountinfo, path, false);
		ret = add_lines(fd, mount, plain, pid, process.start, opened,
				turn == pid);
	}
	close(fd);
	talloc_free(frame);
	return ret;
}
