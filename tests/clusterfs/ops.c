/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "faults.h"

#include <dirent.h>
#include <limits.h>
#include <linux/fuse.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <sys/xattr.h>

/* newer than some systems' linux/fuse.h */
#define OPEN_PARALLEL_DIRECT_WRITES (1u << 6)
#define OPEN_PASSTHROUGH (1u << 7)

static struct member *req_member(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static struct inode *req_inode(fuse_req_t req, fuse_ino_t id)
{
	return inode_from_id(req_member(req), id);
}

/* Answer with the result of a system call. */
static void reply_call(fuse_req_t req, int ret)
{
	fuse_reply_err(req, ret == -1 ? errno : 0);
}

static unsigned int lock_capability(struct member *member,
				    unsigned int family, unsigned int cap)
{
	struct event ev = {
		.member = member,
		.family = family,
		.last = INT64_MAX,
	};

	faults_run(AT_MOUNT, &ev);
	return ev.nothing ? cap : 0;
}

static void op_init(void *data, struct fuse_conn_info *conn)
{
	struct member *member = data;

	conn->want &= ~lock_capability(member, FAMILY_POSIX,
				       FUSE_CAP_POSIX_LOCKS);
	conn->want &= ~lock_capability(member, FAMILY_FLOCK,
				       FUSE_CAP_FLOCK_LOCKS);
	conn->want &= ~(FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_READDIRPLUS |
			FUSE_CAP_READDIRPLUS_AUTO);
	conn->max_write = 1 << 20;
}

static int get_attr(struct inode *inode, struct stat *st)
{
	struct event ev = {
		.member = inode->member,
		.inode = inode,
		.op = OP_STAT,
		.st = st,
		.last = INT64_MAX,
	};
	int ret;

	ret = fstat(inode->file->fd, st);
	if (ret == -1) {
		return errno;
	}
	view_attr(inode, st);
	faults_run(AT_ATTR, &ev);
	inode->told_ino = st->st_ino;
	return 0;
}

/* All time-outs are 0: the kernel asks every time. */
static int fill_entry(struct inode *inode, struct fuse_entry_param *entry)
{
	*entry = (struct fuse_entry_param) {
		.ino = inode_id(inode),
	};
	return get_attr(inode, &entry->attr);
}

static void reply_entry(fuse_req_t req, struct inode *inode)
{
	struct fuse_entry_param entry;
	int ret;

	ret = fill_entry(inode, &entry);
	if (ret != 0) {
		inode_forget(inode, 1);
		fuse_reply_err(req, ret);
		return;
	}
	fuse_reply_entry(req, &entry);
}

static int find(struct inode *dir, const char *name, struct inode **inode)
{
	struct file *old = NULL;
	bool stale;

	stale = view_name(dir, name, &old);
	if (!stale) {
		return inode_lookup(dir, name, inode);
	}
	if (old == NULL) {
		return ENOENT;
	}
	*inode = inode_get(dir->member, old);
	return *inode == NULL ? ENOMEM : 0;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct inode *dir = req_inode(req, parent);
	struct inode *inode = NULL;
	int ret;

	ret = find(dir, name, &inode);
	if (ret != 0) {
		fuse_reply_err(req, ret);
		return;
	}
	reply_entry(req, inode);
}

static void op_forget(fuse_req_t req, fuse_ino_t id, uint64_t num)
{
	inode_forget(req_inode(req, id), num);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count,
			    struct fuse_forget_data *forgets)
{
	size_t i;

	for (i = 0; i < count; i++) {
		inode_forget(req_inode(req, forgets[i].ino),
			     forgets[i].nlookup);
	}
	fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t id,
		       struct fuse_file_info *fi)
{
	struct stat st = {};
	int ret;

	(void)fi;
	ret = get_attr(req_inode(req, id), &st);
	if (ret != 0) {
		fuse_reply_err(req, ret);
		return;
	}
	fuse_reply_attr(req, &st, 0);
}

static int set_size(struct inode *inode, const char *path, off_t size)
{
	struct stat st = {};
	off_t from = size;
	int ret;

	ret = fstat(inode->file->fd, &st);
	if (ret == -1) {
		return -1;
	}
	if (st.st_size < from) {
		from = st.st_size;
	}
	views_before_write(inode, from, st.st_size - from, size);
	ret = truncate(path, size);
	file_size_changed(inode->file);
	return ret;
}

static int set_times(const char *path, const struct stat *attr, int to_set)
{
	struct timespec ts[2] = {
		{ .tv_nsec = UTIME_OMIT },
		{ .tv_nsec = UTIME_OMIT },
	};

	if (to_set & FUSE_SET_ATTR_ATIME) {
		ts[0] = attr->st_atim;
	}
	if (to_set & FUSE_SET_ATTR_ATIME_NOW) {
		ts[0].tv_nsec = UTIME_NOW;
	}
	if (to_set & FUSE_SET_ATTR_MTIME) {
		ts[1] = attr->st_mtim;
	}
	if (to_set & FUSE_SET_ATTR_MTIME_NOW) {
		ts[1].tv_nsec = UTIME_NOW;
	}
	return utimensat(AT_FDCWD, path, ts, 0);
}

static int set_attr(struct inode *inode, const struct stat *attr, int to_set)
{
	char buf[PROC_PATH_SIZE];
	const char *path = file_proc_path(inode->file, buf);
	int ret;

	if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID)) {
		uid_t uid = (uid_t)-1;
		gid_t gid = (gid_t)-1;

		if (to_set & FUSE_SET_ATTR_UID) {
			uid = attr->st_uid;
		}
		if (to_set & FUSE_SET_ATTR_GID) {
			gid = attr->st_gid;
		}
		ret = fchownat(inode->file->fd, "", uid, gid,
			       AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
		if (ret == -1) {
			return errno;
		}
	}
	if (to_set & FUSE_SET_ATTR_MODE) {
		ret = chmod(path, attr->st_mode);
		if (ret == -1) {
			return errno;
		}
	}
	if (to_set & FUSE_SET_ATTR_SIZE) {
		ret = set_size(inode, path, attr->st_size);
		if (ret == -1) {
			return errno;
		}
	}
	if (to_set & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME)) {
		ret = set_times(path, attr, to_set);
		if (ret == -1) {
			return errno;
		}
	}
	return 0;
}

static void op_setattr(fuse_req_t req, fuse_ino_t id, struct stat *attr,
		       int to_set, struct fuse_file_info *fi)
{
	int ret;

	ret = set_attr(req_inode(req, id), attr, to_set);
	if (ret != 0) {
		fuse_reply_err(req, ret);
		return;
	}
	op_getattr(req, id, fi);
}

static void op_readlink(fuse_req_t req, fuse_ino_t id)
{
	char target[PATH_MAX + 1];
	ssize_t n;

	n = readlinkat(req_inode(req, id)->file->fd, "", target,
		       sizeof(target) - 1);
	if (n == -1) {
		fuse_reply_err(req, errno);
		return;
	}
	target[n] = '\0';
	fuse_reply_readlink(req, target);
}

/* We are root; what the caller makes is the caller's. */
static void give_to_caller(fuse_req_t req, struct inode *dir,
			   const char *name)
{
	const struct fuse_ctx *ctx = fuse_req_ctx(req);
	struct stat st = {};
	gid_t gid = ctx->gid;
	int ret;

	ret = fstat(dir->file->fd, &st);
	if (ret == 0 && (st.st_mode & S_ISGID)) {
		gid = (gid_t)-1;
	}
	ret = fchownat(dir->file->fd, name, ctx->uid, gid,
		       AT_SYMLINK_NOFOLLOW);
	if (ret == -1) {
		perror("clusterfs: chown");
	}
}

/* The new name's entry is the answer. */
static void reply_made(fuse_req_t req, struct inode *dir, const char *name,
		       int ret)
{
	struct inode *inode = NULL;

	if (ret == -1) {
		fuse_reply_err(req, errno);
		return;
	}
	give_to_caller(req, dir, name);
	ret = inode_lookup(dir, name, &inode);
	if (ret != 0) {
		fuse_reply_err(req, ret);
		return;
	}
	reply_entry(req, inode);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name,
		     mode_t mode, dev_t rdev)
{
	struct inode *dir = req_inode(req, parent);

	views_before_name(dir, name);
	reply_made(req, dir, name,
		   mknodat(dir->file->fd, name, mode, rdev));
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name,
		     mode_t mode)
{
	struct inode *dir = req_inode(req, parent);

	views_before_name(dir, name);
	reply_made(req, dir, name, mkdirat(dir->file->fd, name, mode));
}

static void op_symlink(fuse_req_t req, const char *target,
		       fuse_ino_t parent, const char *name)
{
	struct inode *dir = req_inode(req, parent);

	views_before_name(dir, name);
	reply_made(req, dir, name, symlinkat(target, dir->file->fd, name));
}

static void op_link(fuse_req_t req, fuse_ino_t id, fuse_ino_t parent,
		    const char *name)
{
	struct inode *inode = req_inode(req, id);
	struct inode *dir = req_inode(req, parent);
	char buf[PROC_PATH_SIZE];
	int ret;

	views_before_name(dir, name);
	ret = linkat(AT_FDCWD, file_proc_path(inode->file, buf),
		     dir->file->fd, name, AT_SYMLINK_FOLLOW);
	if (ret == -1) {
		fuse_reply_err(req, errno);
		return;
	}
	inode->num_lookups += 1;
	reply_entry(req, inode);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct inode *dir = req_inode(req, parent);

	views_before_name(dir, name);
	reply_call(req, unlinkat(dir->file->fd, name, 0));
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct inode *dir = req_inode(req, parent);

	views_before_name(dir, name);
	reply_call(req, unlinkat(dir->file->fd, name, AT_REMOVEDIR));
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
		      fuse_ino_t new_parent, const char *new_name,
		      unsigned int flags)
{
	struct inode *dir = req_inode(req, parent);
	struct inode *new_dir = req_inode(req, new_parent);

	views_before_name(dir, name);
	views_before_name(new_dir, new_name);
	reply_call(req, renameat2(dir->file->fd, name, new_dir->file->fd,
				  new_name, flags));
}

static void fill_open(struct inode *inode, struct handle *handle,
		      struct fuse_open_out *out)
{
	*out = (struct fuse_open_out) {
		.fh = (uintptr_t)handle,
		.open_flags = FOPEN_DIRECT_IO | OPEN_PARALLEL_DIRECT_WRITES,
	};
	if (inode->backing_id != 0) {
		int32_t *backing_id = (int32_t *)(out + 1) - 1;

		/* the last word: "padding" in headers before Linux 6.9 */
		out->open_flags |= OPEN_PASSTHROUGH;
		*backing_id = inode->backing_id;
	}
}

static void open_now(fuse_req_t req, struct inode *inode)
{
	struct handle *handle = NULL;
	struct fuse_open_out out;
	int ret;

	ret = handle_open(inode, &handle);
	if (ret != 0) {
		fuse_reply_err(req, ret);
		return;
	}
	view_opened(inode);
	fill_open(inode, handle, &out);
	fuse_reply_buf(req, (char *)&out, sizeof(out));
}

static void op_open(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
	struct inode *inode = req_inode(req, id);
	bool wait;

	wait = lease_break(inode, fi->flags, req, open_now);
	if (!wait) {
		open_now(req, inode);
	}
}

static void attr_out(const struct stat *st, struct fuse_attr *attr)
{
	*attr = (struct fuse_attr) {
		.ino = st->st_ino,
		.mode = st->st_mode,
		.nlink = st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.rdev = st->st_rdev,
		.size = st->st_size,
		.blksize = st->st_blksize,
		.blocks = st->st_blocks,
		.atime = st->st_atim.tv_sec,
		.mtime = st->st_mtim.tv_sec,
		.ctime = st->st_ctim.tv_sec,
		.atimensec = st->st_atim.tv_nsec,
		.mtimensec = st->st_mtim.tv_nsec,
		.ctimensec = st->st_ctim.tv_nsec,
	};
}

/* The name is new, or was when the kernel looked. */
static int create(fuse_req_t req, struct inode *dir, const char *name,
		  mode_t mode, int flags, struct inode **inode)
{
	int fd;

	flags = (flags & (O_EXCL | O_TRUNC)) |
		O_CREAT | O_RDWR | O_NOFOLLOW | O_CLOEXEC;
	fd = openat(dir->file->fd, name, flags | O_EXCL, mode);
	if (fd != -1) {
		give_to_caller(req, dir, name);
	} else if (errno == EEXIST && !(flags & O_EXCL)) {
		fd = openat(dir->file->fd, name, flags, mode);
	}
	if (fd == -1) {
		return errno;
	}
	close(fd);
	return inode_lookup(dir, name, inode);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name,
		      mode_t mode, struct fuse_file_info *fi)
{
	struct inode *dir = req_inode(req, parent);
	struct inode *inode = NULL;
	struct handle *handle = NULL;
	struct fuse_entry_param entry = {};
	struct {
		struct fuse_entry_out entry;
		struct fuse_open_out open;
	} out = {};
	int ret;

	views_before_name(dir, name);
	ret = create(req, dir, name, mode, fi->flags, &inode);
	if (ret != 0) {
		fuse_reply_err(req, ret);
		return;
	}
	ret = fill_entry(inode, &entry);
	if (ret == 0) {
		ret = handle_open(inode, &handle);
	}
	if (ret != 0) {
		inode_forget(inode, 1);
		fuse_reply_err(req, ret);
		return;
	}
	view_opened(inode);
	out.entry.nodeid = entry.ino;
	attr_out(&entry.attr, &out.entry.attr);
	fill_open(inode, handle, &out.open);
	fuse_reply_buf(req, (char *)&out, sizeof(out));
}

static void op_read(fuse_req_t req, fuse_ino_t id, size_t size, off_t offset,
		    struct fuse_file_info *fi)
{
	static char *buf;
	static size_t buf_size;
	struct inode *inode = req_inode(req, id);
	ssize_t n;

	(void)fi;
	if (size > buf_size) {
		free(buf);
		buf = malloc(size);
		buf_size = size;
	}
	if (buf == NULL) {
		buf_size = 0;
		fuse_reply_err(req, ENOMEM);
		return;
	}
	n = pread(inode->file->io_fd, buf, size, offset);
	if (n == -1) {
		fuse_reply_err(req, errno);
		return;
	}
	n = view_read(inode, buf, size, offset, n);
	fuse_reply_buf(req, buf, n);
}

static ssize_t do_write(struct inode *inode, const char *data, size_t size,
			off_t offset, bool append)
{
	struct iovec iov = {
		.iov_base = (void *)(uintptr_t)data,
		.iov_len = size,
	};
	struct stat st = {};
	off_t end;
	ssize_t n;
	int ret;

	ret = fstat(inode->file->fd, &st);
	if (ret == -1) {
		return -1;
	}
	if (append) {
		offset = st.st_size;
	}
	end = offset + size;
	views_before_write(inode, offset, size,
			   end > st.st_size ? end : st.st_size);
	n = pwritev2(inode->file->io_fd, &iov, 1, offset, 0);
	if (n > 0) {
		file_written(inode->file, data, n, offset);
	}
	return n;
}

static void op_write(fuse_req_t req, fuse_ino_t id, const char *data,
		     size_t size, off_t offset, struct fuse_file_info *fi)
{
	struct inode *inode = req_inode(req, id);
	struct event ev = {
		.member = inode->member,
		.inode = inode,
		.op = OP_WRITE,
		.pid = current.pid,
		.writing = true,
		.first = offset,
		.last = offset + size - 1,
		.size = size,
	};
	bool append = (fi->flags & O_APPEND) && !fi->writepage;
	ssize_t n;

	faults_run(AT_WRITE, &ev);
	if (ev.nothing) {
		fuse_reply_write(req, size);
		return;
	}
	n = do_write(inode, data, ev.size, offset, append && !ev.at_offset);
	if (n == -1) {
		fuse_reply_err(req, errno);
		return;
	}
	fuse_reply_write(req, n == ev.size ? size : (size_t)n);
}

/* Why does the caller close? PF_EXITING and PF_SIGNALED tell. */
static enum drop_cause close_cause(const struct member *member, pid_t pid)
{
	char path[96];
	char text[512];
	unsigned long flags = 0;
	bool asked;
	char *p = NULL;
	ssize_t n;
	int fd;

	asked = faults_any();
	if (!asked) {
		return DROP_CLOSE;
	}
	snprintf(path, sizeof(path), "%s/%d/stat", member->proc, (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1) {
		return DROP_CLOSE;
	}
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0) {
		return DROP_CLOSE;
	}
	text[n] = '\0';
	p = strrchr(text, ')');
	if (p == NULL) {
		return DROP_CLOSE;
	}
	sscanf(p + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags);
	if (flags & 0x400) {
		return DROP_KILL;
	}
	if (flags & 0x4) {
		return DROP_EXIT;
	}
	return DROP_CLOSE;
}

static void op_flush(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi)
{
	struct handle *handle = handle_from_fh(fi->fh);

	(void)id;
	handle->last_close = close_cause(req_member(req), current.pid);
	lock_drop_owner(handle, fi->lock_owner, handle->last_close);
	fuse_reply_err(req, current.error);
}

static void op_release(fuse_req_t req, fuse_ino_t id,
		       struct fuse_file_info *fi)
{
	struct handle *handle = handle_from_fh(fi->fh);
	enum drop_cause cause = handle->last_close;

	(void)id;
	lock_drop_handle(handle, cause != 0 ? cause : DROP_CLOSE);
	handle_close(handle);
	fuse_reply_err(req, 0);
}

/* Nothing here is meant to survive a crash of the machine. */
static void op_fsync(fuse_req_t req, fuse_ino_t id, int datasync,
		     struct fuse_file_info *fi)
{
	(void)id;
	(void)datasync;
	(void)fi;
	fuse_reply_err(req, 0);
}

/* The names of a directory, as they were when reading began. */
struct dirent_list {
	struct dirent_entry {
		char *name;
		ino_t ino;
		mode_t type;
	} *entries;
	size_t num;
};

static void dirents_add(struct dirent_list *list, const char *name,
			ino_t ino, mode_t type)
{
	struct dirent_entry *entries = NULL;

	entries = realloc(list->entries,
			  (list->num + 1) * sizeof(*entries));
	if (entries == NULL) {
		return;
	}
	list->entries = entries;
	entries[list->num].name = strdup(name);
	if (entries[list->num].name == NULL) {
		return;
	}
	entries[list->num].ino = ino;
	entries[list->num].type = type;
	list->num += 1;
}

void dirents_free(struct dirent_list *list)
{
	size_t i;

	if (list == NULL) {
		return;
	}
	for (i = 0; i < list->num; i++) {
		free(list->entries[i].name);
	}
	free(list->entries);
	free(list);
}

static void add_stale_name(const char *name, struct file *file, void *data)
{
	if (file != NULL) {
		dirents_add(data, name, file->ino, file->mode);
	}
}

static int dirents_read(struct inode *dir, struct dirent_list **_list)
{
	struct dirent_list *list = NULL;
	struct dirent *de = NULL;
	DIR *d = NULL;
	int fd;

	fd = openat(dir->file->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1) {
		return errno;
	}
	d = fdopendir(fd);
	if (d == NULL) {
		close(fd);
		return ENOMEM;
	}
	list = calloc(1, sizeof(*list));
	if (list == NULL) {
		closedir(d);
		return ENOMEM;
	}
	while ((de = readdir(d)) != NULL) {
		struct file *old = NULL;
		bool stale;

		stale = view_name(dir, de->d_name, &old);
		if (!stale) {
			dirents_add(list, de->d_name, de->d_ino,
				    (mode_t)de->d_type << 12);
		}
	}
	closedir(d);
	view_names(dir, add_stale_name, list);
	*_list = list;
	return 0;
}

static void op_opendir(fuse_req_t req, fuse_ino_t id,
		       struct fuse_file_info *fi)
{
	struct handle *handle = NULL;
	int ret;

	ret = handle_open(req_inode(req, id), &handle);
	if (ret != 0) {
		fuse_reply_err(req, ret);
		return;
	}
	fi->fh = (uintptr_t)handle;
	fuse_reply_open(req, fi);
}

static void op_readdir(fuse_req_t req, fuse_ino_t id, size_t size,
		       off_t offset, struct fuse_file_info *fi)
{
	struct handle *handle = handle_from_fh(fi->fh);
	struct dirent_list *list = NULL;
	char *buf = NULL;
	size_t used = 0;
	size_t i;
	int ret;

	if (offset == 0 || handle->dirents == NULL) {
		dirents_free(handle->dirents);
		handle->dirents = NULL;
		ret = dirents_read(req_inode(req, id), &handle->dirents);
		if (ret != 0) {
			fuse_reply_err(req, ret);
			return;
		}
	}
	list = handle->dirents;
	buf = malloc(size);
	if (buf == NULL) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	for (i = offset; i < list->num; i++) {
		struct stat st = {
			.st_ino = list->entries[i].ino,
			.st_mode = list->entries[i].type,
		};
		size_t need;

		need = fuse_add_direntry(req, buf + used, size - used,
					 list->entries[i].name, &st, i + 1);
		if (need > size - used) {
			break;
		}
		used += need;
	}
	fuse_reply_buf(req, buf, used);
	free(buf);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t id,
			  struct fuse_file_info *fi)
{
	(void)id;
	handle_close(handle_from_fh(fi->fh));
	fuse_reply_err(req, 0);
}

static void op_statfs(fuse_req_t req, fuse_ino_t id)
{
	struct statvfs st = {};
	int ret;

	ret = fstatvfs(req_inode(req, id)->file->fd, &st);
	if (ret == -1) {
		fuse_reply_err(req, errno);
		return;
	}
	fuse_reply_statfs(req, &st);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t id, const char *name,
			const char *value, size_t size, int flags)
{
	char buf[PROC_PATH_SIZE];
	const char *path = file_proc_path(req_inode(req, id)->file, buf);

	reply_call(req, setxattr(path, name, value, size, flags));
}

static void reply_xattr(fuse_req_t req, char *buf, size_t size, ssize_t n)
{
	if (n == -1) {
		fuse_reply_err(req, errno);
		return;
	}
	if (size == 0) {
		fuse_reply_xattr(req, n);
		return;
	}
	fuse_reply_buf(req, buf, n);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t id, const char *name,
			size_t size)
{
	char buf[PROC_PATH_SIZE];
	const char *path = file_proc_path(req_inode(req, id)->file, buf);
	char *value = malloc(size + 1);

	reply_xattr(req, value, size, getxattr(path, name, value, size));
	free(value);
}

static void op_listxattr(fuse_req_t req, fuse_ino_t id, size_t size)
{
	char buf[PROC_PATH_SIZE];
	const char *path = file_proc_path(req_inode(req, id)->file, buf);
	char *value = malloc(size + 1);

	reply_xattr(req, value, size, listxattr(path, value, size));
	free(value);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t id, const char *name)
{
	char buf[PROC_PATH_SIZE];
	const char *path = file_proc_path(req_inode(req, id)->file, buf);

	reply_call(req, removexattr(path, name));
}

static void op_fallocate(fuse_req_t req, fuse_ino_t id, int mode,
			 off_t offset, off_t length,
			 struct fuse_file_info *fi)
{
	struct inode *inode = req_inode(req, id);
	struct stat st = {};
	int ret;

	(void)fi;
	ret = fstat(inode->file->fd, &st);
	if (ret == 0) {
		off_t end = offset + length;

		if (end < st.st_size || (mode & FALLOC_FL_KEEP_SIZE)) {
			end = st.st_size;
		}
		views_before_write(inode, offset, length, end);
		ret = fallocate(inode->file->io_fd, mode, offset, length);
	}
	reply_call(req, ret);
	file_size_changed(inode->file);
}

static void op_lseek(fuse_req_t req, fuse_ino_t id, off_t offset, int whence,
		     struct fuse_file_info *fi)
{
	off_t ret;

	(void)fi;
	ret = lseek(req_inode(req, id)->file->io_fd, offset, whence);
	if (ret == -1) {
		fuse_reply_err(req, errno);
		return;
	}
	fuse_reply_lseek(req, ret);
}

static void lock_from_request(fuse_req_t req, fuse_ino_t id,
			      struct fuse_file_info *fi, struct lock *lock)
{
	struct inode *inode = req_inode(req, id);

	*lock = (struct lock) {
		.file = inode->file,
		.member = inode->member,
		.handle = handle_from_fh(fi->fh),
		.owner = fi->lock_owner,
		.pid = fuse_req_ctx(req)->pid,
		.family = FAMILY_POSIX,
		.end = INT64_MAX,
	};
}

static void lock_range(const struct flock *fl, struct lock *lock)
{
	lock->type = fl->l_type;
	lock->start = fl->l_start;
	if (fl->l_len != 0) {
		lock->end = fl->l_start + fl->l_len - 1;
	}
}

static void op_getlk(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi,
		     struct flock *fl)
{
	struct member *member = req_member(req);
	struct lock wanted;
	struct lock found;

	lock_from_request(req, id, fi, &wanted);
	lock_range(fl, &wanted);
	lock_get(&wanted, &found);

	*fl = (struct flock) { .l_type = found.type };
	if (found.type != F_UNLCK) {
		fl->l_start = found.start;
		if (found.end != INT64_MAX) {
			fl->l_len = found.end - found.start + 1;
		}
		/* a process of another node has no number here */
		if (found.member == member) {
			fl->l_pid = found.pid;
		}
	}
	fuse_reply_lock(req, fl);
}

static void op_setlk(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi,
		     struct flock *fl, int sleep)
{
	struct lock wanted;

	lock_from_request(req, id, fi, &wanted);
	lock_range(fl, &wanted);
	lock_set(&wanted, sleep, req, current.unique);
}

static void op_flock(fuse_req_t req, fuse_ino_t id, struct fuse_file_info *fi,
		     int op)
{
	struct lock wanted;

	lock_from_request(req, id, fi, &wanted);
	wanted.family = FAMILY_FLOCK;
	switch (op & ~LOCK_NB) {
	case LOCK_SH:
		wanted.type = F_RDLCK;
		break;
	case LOCK_EX:
		wanted.type = F_WRLCK;
		break;
	default:
		wanted.type = F_UNLCK;
		break;
	}
	lock_set(&wanted, !(op & LOCK_NB), req, current.unique);
}

const struct fuse_lowlevel_ops clusterfs_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.readlink = op_readlink,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.symlink = op_symlink,
	.link = op_link,
	.unlink = op_unlink,
	.rmdir = op_rmdir,
	.rename = op_rename,
	.open = op_open,
	.create = op_create,
	.read = op_read,
	.write = op_write,
	.flush = op_flush,
	.release = op_release,
	.fsync = op_fsync,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.releasedir = op_releasedir,
	.statfs = op_statfs,
	.setxattr = op_setxattr,
	.getxattr = op_getxattr,
	.listxattr = op_listxattr,
	.removexattr = op_removexattr,
	.fallocate = op_fallocate,
	.lseek = op_lseek,
	.getlk = op_getlk,
	.setlk = op_setlk,
	.flock = op_flock,
};
