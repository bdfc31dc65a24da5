/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "faults.h"

#include <linux/fuse.h>
#include <sys/syscall.h>
#include <sys/uio.h>

/* newer than some systems' linux/fuse.h, and than libfuse */
#define INIT_EXT (1u << 30)
#define INIT2_DIRECT_IO_ALLOW_MMAP (1u << (36 - 32))
#define INIT2_PASSTHROUGH (1u << (37 - 32))
struct init_out {
	uint32_t major;
	uint32_t minor;
	uint32_t max_readahead;
	uint32_t flags;
	uint16_t max_background;
	uint16_t congestion_threshold;
	uint32_t max_write;
	uint32_t time_gran;
	uint16_t max_pages;
	uint16_t map_alignment;
	uint32_t flags2;
	uint32_t max_stack_depth;
};

/* A request that is not passed on for now. */
struct parked {
	LIST_ENTRY(parked) entry;
	struct member *member;
	struct fuse_in_header *in;	/* and what follows it */
	size_t size;
	bool interruptible;
	unsigned int fault_id;		/* that hangs it; 0: only delayed */
	bool resume;
	struct timer *timer;
};

struct request current;

static ssize_t device_read(int fd, void *buf, size_t size, void *data)
{
	(void)data;
	return read(fd, buf, size);
}

/* libfuse does not know of passthrough: say it for it, in its INIT reply. */
static void extend_init(struct member *member, struct iovec *iov, int count)
{
	struct init_out *out = NULL;

	if (count < 2 || iov[1].iov_len < sizeof(*out)) {
		return;
	}
	out = iov[1].iov_base;
	if (!member->can_pass_through) {
		return;
	}
	out->flags |= INIT_EXT;
	out->flags2 |= INIT2_PASSTHROUGH | INIT2_DIRECT_IO_ALLOW_MMAP;
	out->max_stack_depth = 2;	/* the most there is */
}

static ssize_t device_writev(int fd, struct iovec *iov, int count,
			     void *data)
{
	struct member *member = data;
	struct fuse_out_header *out = iov[0].iov_base;

	if (out->unique != 0 && out->unique == member->init_unique) {
		extend_init(member, iov, count);
		member->init_unique = 0;
	}
	return writev(fd, iov, count);
}

int session_start(struct member *member, int fuse_fd)
{
	static const struct fuse_custom_io io = {
		.read = device_read,
		.writev = device_writev,
	};
	char *argv[] = { NULL, NULL };
	char name[] = "clusterfs";
	struct fuse_args args = FUSE_ARGS_INIT(1, argv);
	int fd;
	int ret;

	argv[0] = name;
	member->session = fuse_session_new(&args, &clusterfs_ops,
					   sizeof(clusterfs_ops), member);
	fuse_opt_free_args(&args);
	if (member->session == NULL) {
		return ENOMEM;
	}
	/* libfuse closes the one, the event loop the other */
	fd = fcntl(fuse_fd, F_DUPFD_CLOEXEC, 0);
	if (fd == -1) {
		ret = errno;
		fuse_session_destroy(member->session);
		return ret;
	}
	ret = fuse_session_custom_io(member->session, &io, fd);
	if (ret != 0) {
		close(fd);
		fuse_session_destroy(member->session);
		return -ret;
	}
	member->device = source_add(fuse_fd, session_ready, member);
	if (member->device == NULL) {
		ret = errno;
		fuse_session_destroy(member->session);
		return ret;
	}
	return 0;
}

static void parked_free(struct parked *parked)
{
	timer_remove(parked->timer);
	LIST_REMOVE(parked, entry);
	free(parked->in);
	free(parked);
}

void session_stop(struct member *member)
{
	struct parked *parked = NULL;

	while ((parked = LIST_FIRST(&member->parked)) != NULL) {
		parked_free(parked);
	}
	source_remove(member->device);
	fuse_session_destroy(member->session);
	free(member->buf.mem);
}

static void answer(struct member *member, uint64_t unique, int error)
{
	struct fuse_out_header out = {
		.len = sizeof(out),
		.error = -error,
		.unique = unique,
	};
	ssize_t n;

	n = write(member->device->fd, &out, sizeof(out));
	if (n == -1 && errno != ENOENT && errno != ENODEV) {
		perror("clusterfs: writing device");
	}
}

static void process(struct member *member, struct fuse_in_header *in,
		    size_t size)
{
	struct fuse_buf buf = { .mem = in, .size = size };

	current.member = member;
	current.unique = in->unique;
	current.pid = in->pid;
	fuse_session_process_buf(member->session, &buf);
}

static bool must_be_processed(uint32_t opcode)
{
	return opcode == FUSE_FLUSH || opcode == FUSE_RELEASE ||
	       opcode == FUSE_RELEASEDIR;
}

static void parked_resume(void *data)
{
	struct parked *parked = data;
	struct member *member = parked->member;
	struct fuse_in_header *in = parked->in;
	size_t size = parked->size;

	parked->in = NULL;
	parked_free(parked);
	process(member, in, size);
	free(in);
}

static void delay_over(void *data)
{
	struct parked *parked = data;

	parked->timer = NULL;
	parked_resume(parked);
}

void session_release_parked(struct member *member)
{
	struct parked *parked = NULL;
	struct parked *next = NULL;

	for (parked = LIST_FIRST(&member->parked); parked != NULL;
	     parked = next) {
		bool active;
		bool must;

		next = LIST_NEXT(parked, entry);
		if (parked->fault_id == 0) {
			continue;
		}
		active = fault_is_active(parked->fault_id);
		if (active) {
			continue;
		}
		must = must_be_processed(parked->in->opcode);
		if (parked->resume || must) {
			parked_resume(parked);
			continue;
		}
		answer(member, parked->in->unique, EIO);
		parked_free(parked);
	}
}

static void park(struct member *member, const struct fuse_in_header *in,
		 size_t size, const struct event *ev)
{
	struct parked *parked = NULL;

	parked = calloc(1, sizeof(*parked));
	if (parked == NULL) {
		answer(member, in->unique, ENOMEM);
		return;
	}
	parked->in = malloc(size);
	if (parked->in == NULL) {
		free(parked);
		answer(member, in->unique, ENOMEM);
		return;
	}
	memcpy(parked->in, in, size);
	parked->size = size;
	parked->member = member;
	parked->interruptible = ev->interruptible;
	parked->resume = ev->resume;
	LIST_INSERT_HEAD(&member->parked, parked, entry);
	if (ev->hang) {
		parked->fault_id = ev->fault_id;
		return;
	}
	parked->timer = timer_add(now_us() + ev->delay_us, delay_over,
				  parked);
}

static void interrupt(struct member *member, uint64_t unique)
{
	struct parked *parked = NULL;
	bool found;
	bool must;

	found = lock_interrupt(member, unique) ||
		lease_interrupt(member, unique);
	if (found) {
		return;
	}
	LIST_FOREACH(parked, &member->parked, entry) {
		if (parked->in->unique == unique) {
			break;
		}
	}
	if (parked == NULL || !parked->interruptible) {
		return;
	}
	must = must_be_processed(parked->in->opcode);
	if (must) {
		parked_resume(parked);
		return;
	}
	answer(member, unique, EINTR);
	parked_free(parked);
}

int caller_syscall(const struct member *member, pid_t pid,
		   unsigned long args[2])
{
	char path[96];
	char text[256];
	int tries;

	snprintf(path, sizeof(path), "%s/%d/syscall", member->proc, (int)pid);

	/* right after its request the caller may not be asleep yet */
	for (tries = 0; tries < 100; tries++) {
		int nr = -1;
		int num;
		int fd;
		ssize_t n;

		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd == -1) {
			return -1;
		}
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
		if (n <= 0) {
			return -1;
		}
		text[n] = '\0';
		num = sscanf(text, "%d %lx %lx", &nr, &args[0], &args[1]);
		if (num == 3) {
			return nr;
		}
		usleep(20);
	}
	return -1;
}

/* A GETATTR comes from stat(2), and from every walk along a path. */
static enum op stat_op(struct inode *inode, pid_t pid)
{
	unsigned long args[2];
	bool wanted;
	int nr;

	if (inode->file->mode == S_IFDIR) {
		return OP_STATDIR;
	}
	wanted = faults_want(OP_STAT);
	if (!wanted) {
		return OP_STAT;
	}
	nr = caller_syscall(inode->member, pid, args);
	switch (nr) {
	case SYS_open:
	case SYS_openat:
	case SYS_openat2:
	case SYS_creat:
	case SYS_execve:
		return OP_OTHER;
	}
	return OP_STAT;
}

static void describe_lock(const struct fuse_lk_in *lk, struct event *ev)
{
	ev->family = FAMILY_POSIX;
	if (lk->lk_flags & FUSE_LK_FLOCK) {
		ev->family = FAMILY_FLOCK;
	}
	ev->first = lk->lk.start;
	ev->last = lk->lk.end;
	if (ev->last < 0) {
		ev->last = INT64_MAX;
	}
	if (ev->op != OP_GETLK && lk->lk.type == F_UNLCK) {
		ev->op = OP_UNLOCK;
	}
	ev->interruptible = (ev->op == OP_WAITLOCK);
}

static void describe_io(uint64_t offset, uint32_t size, struct event *ev)
{
	ev->first = offset;
	ev->size = size;
	ev->last = offset + (size > 0 ? size - 1 : 0);
}

/* What a request is about, for the faults. */
static void describe(struct member *member, const struct fuse_in_header *in,
		     struct event *ev)
{
	const void *arg = in + 1;
	const struct fuse_open_in *open_in = arg;
	const struct fuse_read_in *read_in = arg;
	const struct fuse_write_in *write_in = arg;

	ev->member = member;
	ev->pid = in->pid;
	ev->inode = inode_from_id(member, in->nodeid);
	ev->op = OP_OTHER;
	ev->last = INT64_MAX;

	switch (in->opcode) {
	case FUSE_LOOKUP:
		ev->op = OP_LOOKUP;
		break;
	case FUSE_GETATTR:
		ev->op = stat_op(ev->inode, in->pid);
		break;
	case FUSE_SETATTR:
		ev->op = OP_SETATTR;
		ev->writing = true;
		break;
	case FUSE_OPEN:
		ev->op = OP_OPEN;
		ev->writing = (open_in->flags & O_ACCMODE) != O_RDONLY;
		break;
	case FUSE_CREATE:
	case FUSE_MKNOD:
		ev->op = OP_CREATE;
		ev->writing = true;
		break;
	case FUSE_READ:
		ev->op = OP_READ;
		describe_io(read_in->offset, read_in->size, ev);
		break;
	case FUSE_WRITE:
		ev->op = OP_WRITE;
		describe_io(write_in->offset, write_in->size, ev);
		ev->writing = true;
		break;
	case FUSE_FLUSH:
		ev->op = OP_CLOSE;
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		ev->op = OP_RELEASE;
		break;
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
		ev->op = OP_FSYNC;
		break;
	case FUSE_MKDIR:
		ev->op = OP_MKDIR;
		ev->writing = true;
		break;
	case FUSE_UNLINK:
		ev->op = OP_UNLINK;
		ev->writing = true;
		break;
	case FUSE_RMDIR:
		ev->op = OP_RMDIR;
		ev->writing = true;
		break;
	case FUSE_RENAME:
	case FUSE_RENAME2:
		ev->op = OP_RENAME;
		ev->writing = true;
		break;
	case FUSE_LINK:
	case FUSE_SYMLINK:
		ev->op = OP_LINK;
		ev->writing = true;
		break;
	case FUSE_OPENDIR:
		ev->op = OP_OPENDIR;
		break;
	case FUSE_READDIR:
		ev->op = OP_READDIR;
		break;
	case FUSE_STATFS:
		ev->op = OP_STATFS;
		break;
	case FUSE_SETXATTR:
	case FUSE_REMOVEXATTR:
		ev->writing = true;
		ev->op = OP_XATTR;
		break;
	case FUSE_GETXATTR:
	case FUSE_LISTXATTR:
		ev->op = OP_XATTR;
		break;
	case FUSE_FALLOCATE:
		ev->writing = true;
		break;
	case FUSE_SETLK:
		ev->op = OP_TRYLOCK;
		describe_lock(arg, ev);
		break;
	case FUSE_SETLKW:
		ev->op = OP_WAITLOCK;
		describe_lock(arg, ev);
		break;
	case FUSE_GETLK:
		ev->op = OP_GETLK;
		describe_lock(arg, ev);
		break;
	}
}

/* The kernel asks for CAP_SYS_ADMIN in the initial user namespace. */
static bool may_pass_through(void)
{
	struct stat st = {};
	int ret;

	ret = stat("/proc/self/ns/user", &st);
	return ret == 0 && st.st_ino == 0xeffffffd;
}

static void arrived(struct member *member, struct fuse_in_header *in,
		    size_t size)
{
	const struct fuse_interrupt_in *interrupt_in = (void *)(in + 1);
	const struct fuse_init_in *init_in = (void *)(in + 1);
	struct event ev = {};
	bool any;
	bool must;

	switch (in->opcode) {
	case FUSE_INIT:
		member->init_unique = in->unique;
		member->can_pass_through =
			(init_in->flags & INIT_EXT) &&
			(init_in->flags2 & INIT2_PASSTHROUGH) &&
			may_pass_through();
		if (!member->can_pass_through) {
			fprintf(stderr, "clusterfs: \"%s\": no FUSE "
				"passthrough: mmap is refused\n",
				member->path);
		}
		process(member, in, size);
		return;
	case FUSE_INTERRUPT:
		interrupt(member, interrupt_in->unique);
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_DESTROY:
		process(member, in, size);
		return;
	}

	any = faults_any();
	if (!any) {
		process(member, in, size);
		return;
	}
	describe(member, in, &ev);
	faults_run(AT_REQUEST, &ev);
	if (ev.hang || ev.delay_us != 0) {
		park(member, in, size, &ev);
		return;
	}
	must = must_be_processed(in->opcode);
	if (ev.error != 0 && !must) {
		answer(member, in->unique, ev.error);
		return;
	}
	current.error = ev.error;
	process(member, in, size);
	current.error = 0;
}

void session_ready(struct source *source)
{
	struct member *member = source->data;
	int ret;

	ret = fuse_session_receive_buf(member->session, &member->buf);
	if (ret == -EINTR || ret == -EAGAIN) {
		return;
	}
	if (ret <= 0) {
		member_remove(member);
		return;
	}
	arrived(member, member->buf.mem, ret);
}
