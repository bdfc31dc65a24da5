/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "faults.h"

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

static struct member *member_by_dev(unsigned int major, unsigned int minor)
{
	struct member *member = NULL;
	dev_t dev = makedev(major, minor);

	LIST_FOREACH(member, &members, entry) {
		if (member->dev == dev) {
			return member;
		}
	}
	return NULL;
}

/* The other member that a line of /proc/locks shows as a holder, or NULL. */
static struct member *holder(const char *line, const struct inode *inode,
			     bool writing)
{
	struct member *member = NULL;
	char type[16];
	unsigned int major = 0;
	unsigned int minor = 0;
	unsigned long ino = 0;
	int num;
	struct event ev = { .last = INT64_MAX };

	num = sscanf(line, "%*u: LEASE %*s %15s %*d %x:%x:%lu", type, &major,
		     &minor, &ino);
	if (num != 4 || ino != inode->file->ino) {
		return NULL;
	}
	if (!writing && strcmp(type, "READ") == 0) {
		return NULL;
	}
	member = member_by_dev(major, minor);
	if (member == NULL || member == inode->member) {
		return NULL;
	}
	ev.member = member;
	faults_run(AT_LEASE, &ev);
	return ev.nothing ? NULL : member;
}

static uint64_t find_holders(const struct inode *inode, bool writing)
{
	FILE *f = fopen("/proc/locks", "re");
	char line[256];
	uint64_t holders = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		struct member *member = holder(line, inode, writing);

		if (member != NULL) {
			holders |= UINT64_C(1) << member->index;
		}
	}
	if (f != NULL) {
		fclose(f);
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
