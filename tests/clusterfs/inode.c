/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "faults.h"

#include <limits.h>
#include <mqueue.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

/* newer than some systems' linux/fuse.h */
struct backing_map {
	int32_t fd;
	uint32_t flags;
	uint64_t padding;
};
#define DEV_IOC_BACKING_OPEN _IOW(229, 1, struct backing_map)
#define DEV_IOC_BACKING_CLOSE _IOW(229, 2, uint32_t)

#define HASH_SIZE 4096

struct file_list all_files = LIST_HEAD_INITIALIZER(all_files);
static struct file_list hash[HASH_SIZE];

const char *file_proc_path(const struct file *file, char *buf)
{
	snprintf(buf, PROC_PATH_SIZE, "/proc/self/fd/%d", file->fd);
	return buf;
}

static struct file *file_find(const struct stat *st)
{
	struct file *file = NULL;

	LIST_FOREACH(file, &hash[st->st_ino % HASH_SIZE], in_hash) {
		if (file->ino == st->st_ino && file->dev == st->st_dev) {
			return file;
		}
	}
	return NULL;
}

/* fd belongs to the file from here on */
static struct file *file_get(int fd, const struct stat *st)
{
	struct file *file = NULL;

	file = file_find(st);
	if (file != NULL) {
		close(fd);
		return file_ref(file);
	}
	file = calloc(1, sizeof(*file));
	if (file == NULL) {
		close(fd);
		return NULL;
	}
	file->dev = st->st_dev;
	file->ino = st->st_ino;
	file->mode = st->st_mode & S_IFMT;
	file->fd = fd;
	file->io_fd = -1;
	file->refs = 1;
	TAILQ_INIT(&file->locks);
	TAILQ_INIT(&file->waiters);
	LIST_INIT(&file->inodes);
	LIST_INSERT_HEAD(&all_files, file, entry);
	LIST_INSERT_HEAD(&hash[st->st_ino % HASH_SIZE], file, in_hash);
	return file;
}

struct file *file_ref(struct file *file)
{
	file->refs += 1;
	return file;
}

void file_unref(struct file *file)
{
	file->refs -= 1;
	if (file->refs > 0) {
		return;
	}
	LIST_REMOVE(file, entry);
	LIST_REMOVE(file, in_hash);
	if (file->io_fd != -1) {
		close(file->io_fd);
	}
	close(file->fd);
	free(file);
}

int file_open_io(struct file *file)
{
	char buf[PROC_PATH_SIZE];
	const char *path = file_proc_path(file, buf);

	if (file->io_fd != -1) {
		return 0;
	}
	file->io_fd = open(path, O_RDWR | O_CLOEXEC);
	if (file->io_fd == -1) {
		file->io_fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (file->io_fd == -1) {
		return errno;
	}
	return 0;
}

static int copy_bytes(int from, int to)
{
	off_t offset = 0;
	ssize_t n;

	do {
		n = sendfile(to, from, &offset, 1 << 20);
	} while (n > 0);
	return n == -1 ? errno : 0;
}

void file_replace(struct file *file, bool vanish)
{
	char buf[PROC_PATH_SIZE];
	char path[PATH_MAX];
	char copy[PATH_MAX + 8];
	struct stat st = {};
	ssize_t n;
	int fd;
	int ret;

	n = readlink(file_proc_path(file, buf), path, sizeof(path) - 1);
	ret = fstat(file->fd, &st);
	if (n == -1 || ret == -1 || st.st_nlink == 0) {
		return;
	}
	path[n] = '\0';
	if (vanish) {
		unlink(path);
		return;
	}
	ret = file_open_io(file);
	if (ret != 0) {
		return;
	}
	snprintf(copy, sizeof(copy), "%s.new", path);
	fd = open(copy, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode);
	if (fd == -1) {
		return;
	}
	ret = copy_bytes(file->io_fd, fd);
	close(fd);
	if (ret == 0) {
		ret = rename(copy, path);
	}
	if (ret != 0) {
		unlink(copy);
	}
}

struct inode *inode_from_id(struct member *member, fuse_ino_t id)
{
	if (id == FUSE_ROOT_ID) {
		return member->root;
	}
	return (struct inode *)(uintptr_t)id;
}

fuse_ino_t inode_id(struct inode *inode)
{
	if (inode == inode->member->root) {
		return FUSE_ROOT_ID;
	}
	return (uintptr_t)inode;
}

struct inode *inode_get(struct member *member, struct file *file)
{
	struct inode *inode = NULL;

	LIST_FOREACH(inode, &file->inodes, in_file) {
		if (inode->member == member) {
			inode->num_lookups += 1;
			return inode;
		}
	}
	inode = calloc(1, sizeof(*inode));
	if (inode == NULL) {
		return NULL;
	}
	inode->member = member;
	inode->file = file_ref(file);
	inode->num_lookups = 1;
	inode->private_fd = -1;
	LIST_INSERT_HEAD(&file->inodes, inode, in_file);
	LIST_INSERT_HEAD(&member->inodes, inode, in_member);
	return inode;
}

/* fd (O_PATH) belongs to the file from here on */
static struct file *file_from_fd(int fd)
{
	struct stat st = {};
	int ret;

	if (fd == -1) {
		return NULL;
	}
	ret = fstat(fd, &st);
	if (ret == -1) {
		ret = errno;
		close(fd);
		errno = ret;
		return NULL;
	}
	return file_get(fd, &st);
}

struct file *file_lookup(struct file *dir, const char *name)
{
	return file_from_fd(openat(dir->fd, name,
				   O_PATH | O_NOFOLLOW | O_CLOEXEC));
}

static int inode_from_file(struct member *member, struct file *file,
			   struct inode **inode)
{
	if (file == NULL) {
		return errno;
	}
	*inode = inode_get(member, file);
	file_unref(file);
	if (*inode == NULL) {
		return ENOMEM;
	}
	return 0;
}

int inode_lookup(struct inode *dir, const char *name, struct inode **inode)
{
	struct file *file = file_lookup(dir->file, name);

	return inode_from_file(dir->member, file, inode);
}

int inode_root(struct member *member, struct inode **inode)
{
	int fd = fcntl(backing_fd, F_DUPFD_CLOEXEC, 0);
	struct file *file = file_from_fd(fd);

	return inode_from_file(member, file, inode);
}

void inode_forget(struct inode *inode, uint64_t num_lookups)
{
	if (inode == inode->member->root) {
		return;
	}
	if (inode->num_lookups > num_lookups) {
		inode->num_lookups -= num_lookups;
		return;
	}
	inode_free(inode);
}

void inode_free(struct inode *inode)
{
	view_free(inode);
	LIST_REMOVE(inode, in_file);
	LIST_REMOVE(inode, in_member);
	file_unref(inode->file);
	free(inode);
}

/* A file that opens like any other and refuses to be mapped. */
static int unmappable_fd(void)
{
	static int fd = -1;
	char name[32];

	if (fd != -1) {
		return fd;
	}
	snprintf(name, sizeof(name), "/clusterfs.%d", (int)getpid());
	fd = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, NULL);
	mq_unlink(name);
	return fd;
}

static int private_copy(struct inode *inode)
{
	struct stat st = {};
	int ret;

	inode->private_fd = memfd_create("clusterfs", MFD_CLOEXEC);
	if (inode->private_fd == -1) {
		return -1;
	}
	ret = fstat(inode->file->io_fd, &st);
	if (ret == -1) {
		return -1;
	}
	ret = ftruncate(inode->private_fd, st.st_size);
	if (ret == -1) {
		return -1;
	}
	ret = copy_bytes(inode->file->io_fd, inode->private_fd);
	if (ret != 0) {
		return -1;
	}
	return inode->private_fd;
}

void file_size_changed(struct file *file)
{
	struct inode *inode = NULL;

	LIST_FOREACH(inode, &file->inodes, in_file) {
		struct stat st = {};
		int ret;

		if (inode->private_fd == -1) {
			continue;
		}
		ret = fstat(file->fd, &st);
		if (ret == 0) {
			ret = ftruncate(inode->private_fd, st.st_size);
		}
		if (ret == -1) {
			perror("clusterfs: private mapping");
		}
	}
}

void file_written(struct file *file, const char *data, size_t size,
		  off_t offset)
{
	struct inode *inode = NULL;

	LIST_FOREACH(inode, &file->inodes, in_file) {
		ssize_t n;

		if (inode->private_fd == -1) {
			continue;
		}
		n = pwrite(inode->private_fd, data, size, offset);
		if (n == -1) {
			perror("clusterfs: private mapping");
		}
	}
}

/* What the kernel maps when this member maps the file. */
static void inode_set_backing(struct inode *inode)
{
	struct event ev = {
		.member = inode->member,
		.inode = inode,
		.op = OP_OPEN,
		.mmap_mode = MMAP_COHERENT,
	};
	struct backing_map map = { .fd = -1 };

	faults_run(AT_OPEN, &ev);
	inode->mmap_mode = ev.mmap_mode;

	switch (ev.mmap_mode) {
	case MMAP_COHERENT:
		map.fd = inode->file->io_fd;
		break;
	case MMAP_PRIVATE:
		map.fd = private_copy(inode);
		break;
	case MMAP_REFUSED:
		map.fd = unmappable_fd();
		break;
	case MMAP_CACHED:
		return;
	}
	if (!inode->member->can_pass_through) {
		return;
	}
	inode->backing_id = ioctl(inode->member->device->fd,
				  DEV_IOC_BACKING_OPEN, &map);
	if (inode->backing_id < 0) {
		fprintf(stderr, "clusterfs: FUSE_DEV_IOC_BACKING_OPEN (%s): "
			"mappings are not coherent\n", strerror(errno));
		inode->backing_id = 0;
	}
}

int handle_open(struct inode *inode, struct handle **_handle)
{
	struct handle *handle = NULL;
	int ret;

	handle = calloc(1, sizeof(*handle));
	if (handle == NULL) {
		return ENOMEM;
	}
	if (inode->file->mode == S_IFREG) {
		ret = file_open_io(inode->file);
		if (ret != 0) {
			free(handle);
			return ret;
		}
		if (inode->num_open == 0) {
			inode_set_backing(inode);
		}
	}
	inode->num_open += 1;
	inode->times_opened += 1;
	inode->file->num_open += 1;
	handle->inode = inode;
	handle->pid = current.pid;
	LIST_INSERT_HEAD(&inode->member->handles, handle, entry);
	*_handle = handle;
	return 0;
}

void handle_close(struct handle *handle)
{
	struct inode *inode = handle->inode;
	struct file *file = inode->file;

	LIST_REMOVE(handle, entry);
	dirents_free(handle->dirents);
	free(handle);

	inode->num_open -= 1;
	if (inode->num_open == 0) {
		if (inode->backing_id != 0) {
			uint32_t id = inode->backing_id;

			ioctl(inode->member->device->fd,
			      DEV_IOC_BACKING_CLOSE, &id);
			inode->backing_id = 0;
		}
		if (inode->private_fd != -1) {
			close(inode->private_fd);
			inode->private_fd = -1;
		}
	}
	file->num_open -= 1;
	if (file->num_open == 0 && file->io_fd != -1) {
		close(file->io_fd);
		file->io_fd = -1;
	}
}

struct handle *handle_from_fh(uint64_t fh)
{
	return (struct handle *)(uintptr_t)fh;
}
