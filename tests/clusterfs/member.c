/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "faults.h"

#include <sys/mount.h>
#include <sys/sysmacros.h>

struct member_list members = LIST_HEAD_INITIALIZER(members);

/* Of the last mount at path; stat(2) would ask the mount itself. */
static dev_t mount_dev(const char *path)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL;
	size_t size = 0;
	dev_t dev = 0;

	while (f != NULL && getline(&line, &size, f) != -1) {
		unsigned int major = 0;
		unsigned int minor = 0;
		char where[4096];
		int num;

		num = sscanf(line, "%*u %*u %u:%u %*s %4095s", &major,
			     &minor, where);
		if (num == 3 && strcmp(where, path) == 0) {
			dev = makedev(major, minor);
		}
	}
	free(line);
	if (f != NULL) {
		fclose(f);
	}
	return dev;
}

int mount_fuse(const char *path, const char *source, int *fd, dev_t *dev)
{
	char options[128];
	int ret;

	*fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	if (*fd == -1) {
		return errno;
	}
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,"
		 "default_permissions,allow_other", *fd);
	ret = mount(source, path, "fuse.clusterfs", MS_NODEV | MS_NOSUID,
		    options);
	if (ret == -1) {
		ret = errno;
		close(*fd);
		*fd = -1;
		return ret;
	}
	*dev = mount_dev(path);
	return 0;
}

struct member *member_find(int index)
{
	struct member *member = NULL;

	LIST_FOREACH(member, &members, entry) {
		if (member->index == index) {
			return member;
		}
	}
	return NULL;
}

static int free_index(void)
{
	int i;

	for (i = 0; i < MAX_MEMBERS; i++) {
		struct member *member = member_find(i);

		if (member == NULL) {
			return i;
		}
	}
	return -1;
}

/* The kernel numbers a mount's callers as its mounter sees them. */
static void find_proc(struct member *member)
{
	struct stat ours = {};
	struct stat theirs = {};
	char path[48];
	int ret;

	snprintf(member->proc, sizeof(member->proc), "/proc");
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)member->joiner);
	ret = stat(path, &theirs);
	if (ret == -1) {
		return;
	}
	ret = stat("/proc/self/ns/pid", &ours);
	if (ret == 0 && theirs.st_ino != ours.st_ino) {
		snprintf(member->proc, sizeof(member->proc),
			 "/proc/%d/root/proc", (int)member->joiner);
	}
}

/* The joiner never says another word: this is its end. */
static void joiner_gone(struct source *source)
{
	member_remove(source->data);
}

int member_add(const char *path, dev_t dev, int index, int fuse_fd,
	       int joiner_fd, pid_t joiner, struct member **_member)
{
	struct member *member = NULL;
	struct member *other = NULL;
	int ret = ENOMEM;

	if (index == -1) {
		index = free_index();
	}
	other = member_find(index);
	if (index < 0 || index >= MAX_MEMBERS || other != NULL) {
		ret = EBUSY;
		goto fail;
	}

	member = calloc(1, sizeof(*member));
	if (member == NULL) {
		goto fail;
	}
	member->index = index;
	member->joiner = joiner;
	member->dev = dev;
	find_proc(member);
	LIST_INIT(&member->inodes);
	LIST_INIT(&member->handles);
	LIST_INIT(&member->parked);
	member->path = strdup(path);
	if (member->path == NULL) {
		goto fail;
	}
	ret = inode_root(member, &member->root);
	if (ret != 0) {
		goto fail;
	}

	ret = session_start(member, fuse_fd);
	if (ret != 0) {
		inode_free(member->root);
		goto fail;
	}
	if (joiner_fd != -1) {
		member->joined = source_add(joiner_fd, joiner_gone, member);
	}
	LIST_INSERT_HEAD(&members, member, entry);
	*_member = member;
	return 0;
fail:
	if (member != NULL) {
		free(member->path);
		free(member);
	}
	close(fuse_fd);
	if (joiner_fd != -1) {
		close(joiner_fd);
	}
	return ret;
}

void member_remove(struct member *member)
{
	struct inode *inode = NULL;
	struct handle *handle = NULL;

	member->dead = true;
	LIST_REMOVE(member, entry);
	fuse_session_exit(member->session);
	if (member->joined != NULL) {
		source_remove(member->joined);
	} else {
		umount2(member->path, MNT_DETACH);
	}
	lock_drop_member(member);
	lease_drop_member(member);
	session_stop(member);

	while ((handle = LIST_FIRST(&member->handles)) != NULL) {
		handle_close(handle);
	}
	while ((inode = LIST_FIRST(&member->inodes)) != NULL) {
		inode_free(inode);
	}
	free(member->path);
	free(member);
}

void members_remove_all(void)
{
	struct member *member = NULL;

	while ((member = LIST_FIRST(&members)) != NULL) {
		member_remove(member);
	}
}
