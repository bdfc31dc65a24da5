/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "faults.h"

#include <dirent.h>
#include <limits.h>
#include <pthread.h>
#include <sys/sysmacros.h>

/* An open that waits until the leases of others are broken. */
struct breaking {
	LIST_ENTRY(breaking) entry;
	struct member *member;	/* that opens; NULL: it has given up */
	struct inode *inode;
	uint64_t unique;
	fuse_req_t req;
	void (*go_on)(fuse_req_t req, struct inode *inode);

	/* for the thread */
	int flags;
	unsigned int num_paths;
	char paths[MAX_MEMBERS][PATH_MAX];
	_Atomic pid_t tid;
};

static LIST_HEAD(, breaking) all_breaking =
	LIST_HEAD_INITIALIZER(all_breaking);
static int pipe_fds[2] = { -1, -1 };

static void *break_leases(void *data)
{
	struct breaking *breaking = data;
	ssize_t n;
	unsigned int i;

	breaking->tid = gettid();
	for (i = 0; i < breaking->num_paths; i++) {
		/* waits for the holder, at most lease-break-time */
		int fd = open(breaking->paths[i],
			      breaking->flags | O_CLOEXEC);

		if (fd != -1) {
			close(fd);
		}
	}
	n = write(pipe_fds[1], &breaking, sizeof(breaking));
	if (n != sizeof(breaking)) {
		abort();
	}
	return NULL;
}

static void broken(struct source *source)
{
	struct breaking *breaking = NULL;
	ssize_t n;

	n = read(source->fd, &breaking, sizeof(breaking));
	if (n != sizeof(breaking)) {
		abort();
	}
	LIST_REMOVE(breaking, entry);
	if (breaking->member != NULL) {
		breaking->go_on(breaking->req, breaking->inode);
	}
	free(breaking);
}

/* Is it our own open, through the holder's mount? */
static bool is_breaker(pid_t pid)
{
	struct breaking *breaking = NULL;

	if (pid == 0) {
		return true;	/* from outside the mount's pid namespace */
	}
	LIST_FOREACH(breaking, &all_breaking, entry) {
		if (breaking->tid == pid) {
			return true;
		}
	}
	return false;
}

/* Does one of the lines of a fdinfo show a lease that stands in the way? */
static bool shows_lease(FILE *f, const struct inode *inode, bool writing)
{
	unsigned int major = 0, minor = 0;
	unsigned long ino = 0;
	bool found = false;
	char line[256];
	char type[16];

	while (!found && fgets(line, sizeof(line), f) != NULL) {
		int num = sscanf(line, "lock: %*u: LEASE %*s %15s %*d "
				 "%x:%x:%lu", type, &major, &minor, &ino);

		found = num == 4 && ino == inode->told_ino &&
			makedev(major, minor) == inode->member->dev &&
			(writing || strcmp(type, "READ") != 0);
	}
	return found;
}

/*
 * The kernel shows each lease with the descriptor that it was taken by. (Not
 * by /proc/locks: who reads that while others lock and unlock misses lines.)
 */
static bool holds_lease(const struct handle *handle, bool writing)
{
	const struct inode *inode = handle->inode;
	struct dirent *entry = NULL;
	bool found = false;
	char path[128];
	DIR *dir = NULL;

	snprintf(path, sizeof(path), "%s/%d/fdinfo", inode->member->proc,
		 (int)handle->pid);
	dir = opendir(path);
	while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
		FILE *f = NULL;
		int fd;

		fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);
		f = fd != -1 ? fdopen(fd, "r") : NULL;
		if (f == NULL) {
			if (fd != -1) {
				close(fd);
			}
			continue;
		}
		found = shows_lease(f, inode, writing);
		fclose(f);
	}
	if (dir != NULL) {
		closedir(dir);
	}
	return found;
}

static bool is_kept(struct member *member)
{
	struct event ev = { .member = member, .last = INT64_MAX };

	faults_run(AT_LEASE, &ev);
	return ev.nothing;
}

/* The other members whose leases an open breaks */
static uint64_t find_holders(const struct inode *inode, bool writing)
{
	struct inode *other = NULL;
	struct handle *handle = NULL;
	uint64_t holders = 0;
	bool found, kept;

	LIST_FOREACH(other, &inode->file->inodes, in_file) {
		if (other == inode || other->num_open == 0) {
			continue;
		}
		found = false;
		LIST_FOREACH(handle, &other->member->handles, entry) {
			if (handle->inode != other) {
				continue;
			}
			found = holds_lease(handle, writing);
			if (found) {
				break;
			}
		}
		kept = found && is_kept(other->member);
		if (found && !kept) {
			holders |= UINT64_C(1) << other->member->index;
		}
	}
	return holders;
}

/* The file's path in each holder's mount. */
static void find_paths(struct breaking *breaking, uint64_t holders)
{
	char buf[PROC_PATH_SIZE];
	char path[PATH_MAX];
	size_t len = strlen(backing_path);
	struct member *member = NULL;
	ssize_t n;

	n = readlink(file_proc_path(breaking->inode->file, buf), path,
		     sizeof(path) - 1);
	if (n == -1) {
		return;
	}
	path[n] = '\0';
	if (strncmp(path, backing_path, len) != 0) {
		return;
	}
	LIST_FOREACH(member, &members, entry) {
		char *to = breaking->paths[breaking->num_paths];
		char root[32] = "";

		if (!(holders & (UINT64_C(1) << member->index))) {
			continue;
		}
		if (member->joiner != 0) {
			snprintf(root, sizeof(root), "/proc/%d/root",
				 (int)member->joiner);
		}
		n = snprintf(to, PATH_MAX, "%s%s%s", root, member->path,
			     path + len);
		if (n < PATH_MAX) {
			breaking->num_paths += 1;
		}
	}
}

static bool start_breaking(struct breaking *breaking)
{
	struct source *source = NULL;
	pthread_t thread;
	int ret;

	if (pipe_fds[0] == -1) {
		ret = pipe2(pipe_fds, O_CLOEXEC);
		if (ret == -1) {
			return false;
		}
		source = source_add(pipe_fds[0], broken, NULL);
		if (source == NULL) {
			return false;
		}
	}
	ret = pthread_create(&thread, NULL, break_leases, breaking);
	if (ret != 0) {
		return false;
	}
	pthread_detach(thread);
	LIST_INSERT_HEAD(&all_breaking, breaking, entry);
	return true;
}

bool lease_break(struct inode *inode, int flags, fuse_req_t req,
		 void (*go_on)(fuse_req_t req, struct inode *inode))
{
	struct breaking *breaking = NULL;
	uint64_t holders;
	bool ok;

	ok = is_breaker(current.pid);
	if (ok) {
		return false;
	}
	holders = find_holders(inode, (flags & O_ACCMODE) != O_RDONLY);
	if (holders == 0) {
		return false;
	}
	breaking = calloc(1, sizeof(*breaking));
	if (breaking == NULL) {
		return false;
	}
	breaking->member = inode->member;
	breaking->inode = inode;
	breaking->unique = current.unique;
	breaking->req = req;
	breaking->go_on = go_on;
	breaking->flags = flags & O_ACCMODE;
	find_paths(breaking, holders);
	ok = start_breaking(breaking);
	if (!ok) {
		free(breaking);
		return false;
	}
	if (flags & O_NONBLOCK) {
		breaking->member = NULL;
		fuse_reply_err(req, EWOULDBLOCK);
	}
	return true;
}

bool lease_interrupt(struct member *member, uint64_t unique)
{
	struct breaking *breaking = NULL;

	LIST_FOREACH(breaking, &all_breaking, entry) {
		if (breaking->member == member &&
		    breaking->unique == unique) {
			breaking->member = NULL;
			fuse_reply_err(breaking->req, EINTR);
			return true;
		}
	}
	return false;
}

void lease_drop_member(struct member *member)
{
	struct breaking *breaking = NULL;

	LIST_FOREACH(breaking, &all_breaking, entry) {
		if (breaking->member == member) {
			breaking->member = NULL;
			fuse_reply_err(breaking->req, ENOTCONN);
		}
	}
}
