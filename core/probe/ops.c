/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One function an operation, one table. Each makes the calls it is named for
 * and reports them as they are; what they mean is for core/checks to judge.
 */
#include <errno.h>
#include <linux/openat2.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/probe/ops.h"
#include "core/probe/syscalls.h"

#define CHUNK 65536

/* Values in succession that never share a byte */
#define PATTERNS 15

/* Steps of a ring: all that are kept, and the text of some of them, which
 * goes into one frame */
#define LOG_MAX_STEPS 65536
#define LOG_TEXT_SIZE 49152

static volatile sig_atomic_t probe_interrupted;
static volatile sig_atomic_t ended;

/*
 * A value's part of its pattern: the low bits survive whatever the offset, so
 * that neighbouring values never share a byte; never 0
 */
static uint8_t pattern_of_value(uint64_t value)
{
	return (uint8_t)((value % 15) + 1);
}

static uint8_t pattern_of_offset(uint64_t offset)
{
	return (uint8_t)(((offset * 0x9e3779b97f4a7c15ULL) >> 56) & 0xf0);
}

uint8_t probe_pattern(uint64_t value, uint64_t offset)
{
	if (value == 0) {
		return 0;
	}
	return pattern_of_offset(offset) ^ pattern_of_value(value);
}

static void interrupted(int sig)
{
	(void)sig;
	probe_interrupted = 1;
}

/* From then on SIGALRM interrupts a waiting call; again every 5 ms, in case it
 * came just before the call began to wait. */
static void interrupt_from(unsigned ms)
{
	struct sigaction sa = { .sa_handler = interrupted };
	struct itimerval it = {
		.it_value = {
			.tv_sec = ms / 1000,
			.tv_usec = ms > 0 ? (ms % 1000) * 1000 : 1,
		},
		.it_interval = { .tv_usec = 5000 },
	};

	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &it, NULL);
}

void probe_worker_end(int sig)
{
	ended = 1;
	interrupted(sig);
	interrupt_from(0);
}

static void patience_begin(unsigned patience_ms)
{
	probe_interrupted = 0;
	if (patience_ms > 0) {
		interrupt_from(patience_ms);
	}
	if (ended) {
		probe_worker_end(0);
	}
}

static void patience_end(void)
{
	struct itimerval it = {};

	setitimer(ITIMER_REAL, &it, NULL);
}

/* A check of data spends most of its own time here */
static void fill_pattern(uint8_t *buf, size_t n, uint64_t value,
			 uint64_t offset)
{
	uint8_t of_value = pattern_of_value(value);
	size_t i;

	if (value == 0) {
		memset(buf, 0, n);
		return;
	}
	for (i = 0; i < n; i++) {
		buf[i] = pattern_of_offset(offset + i) ^ of_value;
	}
}

/* Offset of the first byte that is not the pattern's; n: there is none */
static size_t first_difference(const uint8_t *buf, size_t n, uint64_t value,
			       uint64_t offset)
{
	uint8_t of_value = pattern_of_value(value);
	size_t i;

	if (value == 0) {
		for (i = 0; i < n && buf[i] == 0; i++) {
			;
		}
		return i;
	}
	for (i = 0; i < n; i++) {
		if (buf[i] != (pattern_of_offset(offset + i) ^ of_value)) {
			break;
		}
	}
	return i;
}

/* The generation that was seen; one pattern in PATTERNS is the same again. */
static void explain(struct probe_answer *answer, uint64_t value, uint8_t seen)
{
	unsigned back;

	for (back = 1; back < PATTERNS && back < value; back++) {
		if (seen == probe_pattern(value - back, answer->at)) {
			answer->value = value - back;
			return;
		}
	}
	answer->value = seen == 0 ? 0 : UINT64_MAX;
}

static void compare_pattern(struct probe_answer *answer, const uint8_t *buf,
			    size_t n, uint64_t value, uint64_t offset)
{
	size_t i;

	for (i = first_difference(buf, n, value, offset); i < n; i++) {
		if (buf[i] == probe_pattern(value, offset + i)) {
			continue;
		}
		if (answer->wrong == 0) {
			answer->at = offset + i;
			explain(answer, value, buf[i]);
		}
		answer->wrong++;
	}
}

/* what fstat, fstatat and fstatfs say of a file */
static void answer_stat(struct probe_answer *answer, const struct stat *st)
{
	answer->dev = st->st_dev;
	answer->inode = st->st_ino;
	answer->size = (uint64_t)st->st_size;
}

static int op_nop(struct probe_worker *worker,
		  const struct probe_request *req, struct probe_answer *answer)
{
	(void)worker;
	(void)req;
	(void)answer;
	return 0;
}

static int op_begin(struct probe_worker *worker,
		    const struct probe_request *req,
		    struct probe_answer *answer)
{
	struct stat st = {};
	int ret;

	ret = probe_dir_open(&worker->dir, req->name, req->make);
	if (ret != 0) {
		return ret;
	}
	worker->keeper = req->keeper;
	ret = syscalls()->fstat(worker->dir.run, &st);
	if (ret == -1) {
		return errno;
	}
	answer_stat(answer, &st);
	return 0;
}

static struct probe_slot *slot_of(struct probe_worker *worker,
				  const struct probe_request *req)
{
	return &worker->slots[req->slot];
}

static int slot_unmap(struct probe_slot *slot)
{
	int ret;

	if (slot->map == NULL) {
		return 0;
	}
	ret = syscalls()->munmap(slot->map, slot->map_len);
	slot->map = NULL;
	return ret == -1 ? errno : 0;
}

static int slot_close(struct probe_slot *slot)
{
	int ret, err;

	err = slot_unmap(slot);
	if (slot->fd == -1) {
		return err;
	}
	ret = syscalls()->close(slot->fd);
	slot->fd = -1;
	if (ret == -1 && err == 0) {
		err = errno;
	}
	return err;
}

static int op_ring_end(struct probe_worker *worker,
		       const struct probe_request *req,
		       struct probe_answer *answer)
{
	(void)req;
	(void)answer;
	if (!worker->ringing) {
		return 0;
	}
	worker->ringing = false;
	return ring_end(&worker->ring);
}

static void log_drop(struct probe_worker *worker)
{
	free(worker->ring.log);
	worker->ring.log = NULL;
	free(worker->log_text);
	worker->log_text = NULL;
	worker->log_told = 0;
}

static int op_reset(struct probe_worker *worker,
		    const struct probe_request *req,
		    struct probe_answer *answer)
{
	unsigned i;
	int err, ret;

	err = op_ring_end(worker, req, answer);
	for (i = 0; i < PROBE_SLOTS; i++) {
		ret = i == PROBE_SLOT_KEPT ? 0
					   : slot_close(&worker->slots[i]);
		if (ret != 0 && err == 0) {
			err = ret;
		}
	}
	log_drop(worker);
	return err;
}

static int op_finish(struct probe_worker *worker,
		     const struct probe_request *req,
		     struct probe_answer *answer)
{
	op_reset(worker, req, answer);
	slot_close(&worker->slots[PROBE_SLOT_KEPT]);
	return probe_dir_remove(&worker->dir);
}

/* The request's file; -1 with errno */
static int open_file(const struct probe_worker *worker,
		     const struct probe_request *req)
{
	struct open_how how = {
		.flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS,
	};

	if (req->make) {
		how.flags |= O_CREAT | O_EXCL;
		how.mode = 0600;
	}
	if (req->append) {
		how.flags |= O_APPEND;
	}
	return syscalls()->openat2(worker->dir.run, req->name, &how);
}

static int op_open(struct probe_worker *worker,
		   const struct probe_request *req,
		   struct probe_answer *answer)
{
	struct probe_slot *slot = slot_of(worker, req);
	struct stat st = {};
	int ret;

	if (slot->fd != -1) {
		return EBUSY;
	}
	slot->fd = open_file(worker, req);
	if (slot->fd == -1) {
		return errno;
	}
	ret = syscalls()->fstat(slot->fd, &st);
	if (ret == -1) {
		ret = errno;
		slot_close(slot);
		return ret;
	}
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid()) {
		slot_close(slot);
		return EPERM;
	}
	answer_stat(answer, &st);
	return 0;
}

static int op_make_many(struct probe_worker *worker,
			const struct probe_request *req,
			struct probe_answer *answer)
{
	struct probe_request one = { .make = true };
	int fd, ret;

	for (; answer->count < req->count; answer->count++) {
		snprintf(one.name, sizeof(one.name), "%.40s%llu.%u",
			 req->name,
			 (unsigned long long)(req->start + answer->count),
			 (unsigned)req->value);
		fd = open_file(worker, &one);
		if (fd == -1) {
			return errno;
		}
		ret = syscalls()->close(fd);
		if (ret == -1) {
			return errno;
		}
	}
	return 0;
}

static int op_close(struct probe_worker *worker,
		    const struct probe_request *req,
		    struct probe_answer *answer)
{
	(void)answer;
	return slot_close(slot_of(worker, req));
}

static int flock_op(const struct probe_request *req)
{
	int op = req->type == F_WRLCK ? LOCK_EX :
		 req->type == F_RDLCK ? LOCK_SH : LOCK_UN;

	return req->wait ? op : op | LOCK_NB;
}

static int lock_cmd(const struct probe_request *req, bool wait)
{
	if (req->family == PROBE_OFD) {
		return wait ? F_OFD_SETLKW : F_OFD_SETLK;
	}
	return wait ? F_SETLKW : F_SETLK;
}

static int op_lock(struct probe_worker *worker,
		   const struct probe_request *req,
		   struct probe_answer *answer)
{
	struct flock fl = {
		.l_type = (short)req->type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)req->start,
		.l_len = (off_t)req->len,
	};
	int fd = slot_of(worker, req)->fd;
	int ret, err;

	(void)answer;
	patience_begin(req->wait ? req->patience_ms : 0);
	do {
		if (req->family == PROBE_FLOCK) {
			ret = syscalls()->flock(fd, flock_op(req));
		} else {
			ret = syscalls()->fcntl_lock(
				fd, lock_cmd(req, req->wait), &fl);
		}
		err = ret == -1 ? errno : 0;
	} while (err == EINTR && !probe_interrupted);
	patience_end();
	return err;
}

static int op_getlk(struct probe_worker *worker,
		    const struct probe_request *req,
		    struct probe_answer *answer)
{
	struct flock fl = {
		.l_type = (short)req->type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)req->start,
		.l_len = (off_t)req->len,
	};
	int cmd = req->family == PROBE_OFD ? F_OFD_GETLK : F_GETLK;
	int ret;

	ret = syscalls()->fcntl_lock(slot_of(worker, req)->fd, cmd, &fl);
	if (ret == -1) {
		return errno;
	}
	answer->type = fl.l_type;
	answer->start = (uint64_t)fl.l_start;
	answer->len = (uint64_t)fl.l_len;
	answer->pid = fl.l_pid;
	return 0;
}

static int op_write(struct probe_worker *worker,
		    const struct probe_request *req,
		    struct probe_answer *answer)
{
	uint8_t buf[CHUNK];
	ssize_t n;

	while (answer->count < req->len) {
		uint64_t ofs = req->start + answer->count;
		uint64_t left = req->len - answer->count;

		if (left > sizeof(buf)) {
			left = sizeof(buf);
		}
		fill_pattern(buf, left, req->value, ofs);
		n = syscalls()->pwrite(slot_of(worker, req)->fd, buf, left,
				       (off_t)ofs);
		if (n == -1) {
			return errno;
		}
		if (n == 0) {
			return EIO;
		}
		answer->count += (uint64_t)n;
	}
	return 0;
}

static int op_read(struct probe_worker *worker,
		   const struct probe_request *req,
		   struct probe_answer *answer)
{
	uint8_t buf[CHUNK];
	ssize_t n;

	while (answer->count < req->len) {
		uint64_t ofs = req->start + answer->count;
		uint64_t left = req->len - answer->count;

		if (left > sizeof(buf)) {
			left = sizeof(buf);
		}
		n = syscalls()->pread(slot_of(worker, req)->fd, buf, left,
				      (off_t)ofs);
		if (n == -1) {
			return errno;
		}
		if (n == 0) {
			return 0;
		}
		compare_pattern(answer, buf, (size_t)n, req->value, ofs);
		answer->count += (uint64_t)n;
	}
	return 0;
}

static int op_map(struct probe_worker *worker,
		  const struct probe_request *req,
		  struct probe_answer *answer)
{
	struct probe_slot *slot = slot_of(worker, req);
	void *p = NULL;

	(void)answer;
	if (slot->map != NULL) {
		return EBUSY;
	}
	p = syscalls()->mmap(NULL, req->len, PROT_READ | PROT_WRITE,
			     MAP_SHARED, slot->fd, 0);
	if (p == MAP_FAILED) {
		return errno;
	}
	slot->map = p;
	slot->map_len = req->len;
	return 0;
}

static int mapped(const struct probe_slot *slot,
		  const struct probe_request *req)
{
	if (slot->map == NULL || req->start > slot->map_len ||
	    req->len > slot->map_len - req->start) {
		return EINVAL;
	}
	return 0;
}

static sigjmp_buf no_page;

static void sigbus(int sig)
{
	(void)sig;
	siglongjmp(no_page, 1);
}

/* A page that the file system does not give must not end the worker */
static int map_access(struct probe_slot *slot, const struct probe_request *req,
		      struct probe_answer *answer, bool write)
{
	uint8_t *p = slot->map + req->start;

	signal(SIGBUS, sigbus);
	if (sigsetjmp(no_page, 1) != 0) {
		signal(SIGBUS, SIG_DFL);
		return EFAULT;
	}
	if (write) {
		fill_pattern(p, req->len, req->value, req->start);
	} else {
		compare_pattern(answer, p, req->len, req->value, req->start);
	}
	signal(SIGBUS, SIG_DFL);
	answer->count = req->len;
	return 0;
}

static int op_map_write(struct probe_worker *worker,
			const struct probe_request *req,
			struct probe_answer *answer)
{
	struct probe_slot *slot = slot_of(worker, req);
	int ret;

	ret = mapped(slot, req);
	if (ret != 0) {
		return ret;
	}
	return map_access(slot, req, answer, true);
}

static int op_map_read(struct probe_worker *worker,
		       const struct probe_request *req,
		       struct probe_answer *answer)
{
	struct probe_slot *slot = slot_of(worker, req);
	int ret;

	ret = mapped(slot, req);
	if (ret != 0) {
		return ret;
	}
	return map_access(slot, req, answer, false);
}

static int op_unmap(struct probe_worker *worker,
		    const struct probe_request *req,
		    struct probe_answer *answer)
{
	(void)answer;
	return slot_unmap(slot_of(worker, req));
}

static int op_truncate(struct probe_worker *worker,
		       const struct probe_request *req,
		       struct probe_answer *answer)
{
	int ret;

	(void)answer;
	ret = syscalls()->ftruncate(slot_of(worker, req)->fd,
				    (off_t)req->start);
	return ret == -1 ? errno : 0;
}

static int op_stat(struct probe_worker *worker,
		   const struct probe_request *req,
		   struct probe_answer *answer)
{
	struct statfs sfs = {};
	struct stat st = {};
	int fd = slot_of(worker, req)->fd;
	int ret;

	ret = syscalls()->fstat(fd, &st);
	if (ret == -1) {
		return errno;
	}
	answer_stat(answer, &st);
	ret = syscalls()->fstatfs(fd, &sfs);
	if (ret == -1) {
		return errno;
	}
	memcpy(&answer->fsid, &sfs.f_fsid, sizeof(answer->fsid));
	return 0;
}

static int op_end(struct probe_worker *worker,
		  const struct probe_request *req,
		  struct probe_answer *answer)
{
	off_t end;

	end = syscalls()->lseek(slot_of(worker, req)->fd, 0, SEEK_END);
	if (end == -1) {
		return errno;
	}
	answer->size = (uint64_t)end;
	return 0;
}

static int op_lookup(struct probe_worker *worker,
		     const struct probe_request *req,
		     struct probe_answer *answer)
{
	struct stat st = {};
	int ret;

	ret = syscalls()->fstatat(worker->dir.run, req->name, &st,
				  AT_SYMLINK_NOFOLLOW);
	if (ret == -1) {
		return errno;
	}
	answer_stat(answer, &st);
	return 0;
}

static int op_list(struct probe_worker *worker,
		   const struct probe_request *req,
		   struct probe_answer *answer)
{
	return probe_dir_list(&worker->dir, req->name, &answer->count);
}

static int op_rename(struct probe_worker *worker,
		     const struct probe_request *req,
		     struct probe_answer *answer)
{
	int ret;

	(void)answer;
	ret = syscalls()->renameat(worker->dir.run, req->name,
				   worker->dir.run, req->name2);
	return ret == -1 ? errno : 0;
}

static int op_unlink(struct probe_worker *worker,
		     const struct probe_request *req,
		     struct probe_answer *answer)
{
	int ret;

	(void)answer;
	ret = syscalls()->unlinkat(worker->dir.run, req->name, 0);
	return ret == -1 ? errno : 0;
}

/* What a forked child does: 0 or an errno, which is its exit status */
static int in_child(int (*child)(struct probe_worker *worker,
				 const struct probe_request *req),
		    struct probe_worker *worker,
		    const struct probe_request *req)
{
	int status = 0;
	pid_t pid, got;

	pid = fork();
	if (pid == -1) {
		return errno;
	}
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(child(worker, req) & 0x7f);
	}
	do {
		got = waitpid(pid, &status, 0);
	} while (got == -1 && errno == EINTR);
	if (got != pid || !WIFEXITED(status)) {
		return ECHILD;
	}
	return WEXITSTATUS(status);
}

static int child_closes(struct probe_worker *worker,
			const struct probe_request *req)
{
	int ret;

	ret = syscalls()->close(slot_of(worker, req)->fd);
	return ret == -1 ? errno : 0;
}

static int op_fork_close(struct probe_worker *worker,
			 const struct probe_request *req,
			 struct probe_answer *answer)
{
	(void)answer;
	return in_child(child_closes, worker, req);
}

/* The lock and its file are left to the end of the process */
static int child_locks(struct probe_worker *worker,
		       const struct probe_request *req)
{
	struct flock fl = {
		.l_type = (short)req->type,
		.l_whence = SEEK_SET,
		.l_start = (off_t)req->start,
		.l_len = (off_t)req->len,
	};
	int fd, ret;

	fd = open_file(worker, req);
	if (fd == -1) {
		return errno;
	}
	ret = syscalls()->fcntl_lock(fd, F_SETLK, &fl);
	return ret == -1 ? errno : 0;
}

static int op_lock_exit(struct probe_worker *worker,
			const struct probe_request *req,
			struct probe_answer *answer)
{
	(void)answer;
	return in_child(child_locks, worker, req);
}

static int op_append(struct probe_worker *worker,
		     const struct probe_request *req,
		     struct probe_answer *answer)
{
	uint8_t buf[CHUNK];
	ssize_t n;

	if (req->len > sizeof(buf)) {
		return EINVAL;
	}
	for (; answer->count < req->count; answer->count++) {
		/* a record is told by its value: the same at any offset */
		memset(buf, 0, req->len);
		memcpy(buf, &(uint64_t){ req->value + answer->count },
		       sizeof(uint64_t));
		n = syscalls()->pwrite(slot_of(worker, req)->fd, buf,
				       req->len, 0);
		if (n == -1) {
			return errno;
		}
		if ((uint64_t)n != req->len) {
			return EIO;
		}
	}
	return 0;
}

static int op_count(struct probe_worker *worker,
		    const struct probe_request *req,
		    struct probe_answer *answer)
{
	uint8_t buf[CHUNK];
	uint64_t ofs, value;
	ssize_t n;

	if (req->len > sizeof(buf) || req->len < sizeof(value)) {
		return EINVAL;
	}
	for (ofs = 0;; ofs += req->len) {
		n = syscalls()->pread(slot_of(worker, req)->fd, buf, req->len,
				      (off_t)ofs);
		if (n == -1) {
			return errno;
		}
		if ((uint64_t)n < req->len) {
			answer->size = ofs + (uint64_t)n;
			return 0;
		}
		memcpy(&value, buf, sizeof(value));
		if (value >= req->value && value < req->value + req->count) {
			answer->count++;
		} else {
			answer->wrong++;
		}
	}
}

static int leased_fd = -1;

/* As smbd does when it hears of a break: let go, so that the opener goes on */
static void lease_broken(int sig)
{
	int err = errno;

	(void)sig;
	syscalls()->fcntl_int(leased_fd, F_SETLEASE, F_UNLCK);
	errno = err;
}

static int op_lease(struct probe_worker *worker,
		    const struct probe_request *req,
		    struct probe_answer *answer)
{
	struct sigaction sa = { .sa_handler = lease_broken,
				.sa_flags = SA_RESTART };
	int ret;

	(void)answer;
	leased_fd = slot_of(worker, req)->fd;
	sigaction(SIGIO, &sa, NULL);
	ret = syscalls()->fcntl_int(leased_fd, F_SETLEASE, req->type);
	return ret == -1 ? errno : 0;
}

static int op_leased(struct probe_worker *worker,
		     const struct probe_request *req,
		     struct probe_answer *answer)
{
	int ret;

	ret = syscalls()->fcntl_int(slot_of(worker, req)->fd, F_GETLEASE, 0);
	if (ret == -1) {
		return errno;
	}
	answer->count = ret != F_UNLCK;
	return 0;
}

static int op_lock_many(struct probe_worker *worker,
			const struct probe_request *req,
			struct probe_answer *answer)
{
	struct flock fl = { .l_type = (short)req->type,
			    .l_whence = SEEK_SET, .l_len = 1 };
	uint64_t end = ring_now() + (uint64_t)req->patience_ms * 1000000;
	int ret;

	for (; answer->count < req->count; answer->count++) {
		fl.l_start = (off_t)(req->start + 2 * answer->count);
		ret = syscalls()->fcntl_lock(slot_of(worker, req)->fd,
					     lock_cmd(req, false), &fl);
		if (ret == -1) {
			return errno;
		}
		if (ring_now() > end) {
			answer->count++;
			return 0;
		}
	}
	return 0;
}

/* For a waiter to get what was let go */
static void moment(void)
{
	struct timespec ts = { .tv_nsec = 200000 };

	nanosleep(&ts, NULL);
}

static int op_contend(struct probe_worker *worker,
		      const struct probe_request *req,
		      struct probe_answer *answer)
{
	uint64_t end = ring_now() + (uint64_t)req->patience_ms * 1000000;
	struct flock fl = { .l_whence = SEEK_SET, .l_start = (off_t)req->start,
			    .l_len = (off_t)req->len };
	int fd = slot_of(worker, req)->fd;
	int ret;

	for (;; answer->count++) {
		fl.l_type = F_UNLCK;
		ret = syscalls()->fcntl_lock(fd, F_SETLK, &fl);
		if (ret == -1) {
			return errno;
		}
		if (ring_now() > end) {
			return 0;
		}
		moment();
		fl.l_type = (short)req->type;
		ret = syscalls()->fcntl_lock(fd, F_SETLK, &fl);
		if (ret == -1) {
			answer->frozen = errno == EAGAIN || errno == EACCES;
			return answer->frozen ? 0 : errno;
		}
	}
}

/* Take the start byte, or make turns */
static int ring_step(struct probe_worker *worker,
		     const struct probe_request *req)
{
	struct ring *ring = &worker->ring;
	const char *failed = NULL;
	int ret = 0;

	if (!worker->ringing) {
		ret = ring_begin(ring);
		worker->ringing = ret == 0;
	}
	if (ret != 0) {
		failed = ring->failed;
		ring_end(ring);
		ring->failed = failed;
		return ret;
	}
	if (req->window_ms == 0) {
		return 0;
	}
	return ring_run(ring, ring_now() +
			(uint64_t)req->window_ms * 1000000);
}

/* EFAULT as in map_access() */
static int ring_guarded(struct probe_worker *worker,
			const struct probe_request *req)
{
	int ret;

	signal(SIGBUS, sigbus);
	if (sigsetjmp(no_page, 1) != 0) {
		signal(SIGBUS, SIG_DFL);
		worker->ring.failed = "page";
		return EFAULT;
	}
	ret = ring_step(worker, req);
	signal(SIGBUS, SIG_DFL);
	return ret;
}

static int ring_prepare(struct probe_worker *worker,
			const struct probe_request *req)
{
	struct ring *ring = &worker->ring;

	log_drop(worker);
	*ring = (struct ring){
		.fd = slot_of(worker, req)->fd,
		.nlocks = req->nlocks,
		.start = req->start,
		.seed = req->value,
		.io = (enum ring_io)req->io,
		.family = req->family == PROBE_OFD ? RING_OFD : RING_PROCESS,
		.width = 8,
	};
	if (req->count == 0) {
		return 0;
	}
	if (req->count > LOG_MAX_STEPS) {
		return EINVAL;
	}
	ring->log_size = req->count;
	ring->log = malloc(ring->log_size * sizeof(*ring->log));
	worker->log_text = malloc(LOG_TEXT_SIZE);
	return ring->log != NULL && worker->log_text != NULL ? 0 : ENOMEM;
}

static int op_ring(struct probe_worker *worker,
		   const struct probe_request *req,
		   struct probe_answer *answer)
{
	uint64_t hist[RING_HIST_BUCKETS] = {};
	struct ring *ring = &worker->ring;
	int ret = 0;

	if (!worker->ringing) {
		ret = ring_prepare(worker, req);
	}
	if (ret != 0) {
		return ret;
	}
	if (worker->log_told == ring->logged) {
		worker->log_told = ring->logged = 0;
	}
	ring->hist = hist;
	ring->stop = &probe_interrupted;
	ring->linger_ns = req->patience_ms * 1000000ULL;
	patience_begin(req->window_ms);
	ret = ring_guarded(worker, req);
	patience_end();
	ring->hist = NULL;
	answer->clock_ns = ring_now();
	answer->frozen = ring->holding;
	answer->turns = ring->turns;
	answer->position = ring->position;
	answer->value = ring->increment;
	answer->p50_ns = ring_hist_percentile(hist, 0.5);
	answer->p99_ns = ring_hist_percentile(hist, 0.99);
	answer->max_ns = ring_hist_percentile(hist, 1.0);
	if (ret != 0 && ring->failed != NULL) {
		strncpy(answer->failed, ring->failed,
			sizeof(answer->failed) - 1);
	}
	return ret;
}

static int op_ring_log(struct probe_worker *worker,
		       const struct probe_request *req,
		       struct probe_answer *answer)
{
	const struct ring *ring = &worker->ring;

	answer->clock_ns = ring_now();
	(void)req;
	if (ring->log == NULL) {
		return EINVAL;
	}
	worker->log_told += ring_steps_print(
		ring->log + worker->log_told, ring->logged - worker->log_told,
		worker->log_text, LOG_TEXT_SIZE);
	answer->count = ring->logged - worker->log_told;
	answer->log = worker->log_text;
	return 0;
}

static int sum_read(const struct probe_slot *slot, uint64_t count,
		    uint64_t *sum)
{
	uint64_t i, counter;
	ssize_t n;

	for (i = 0; i < count; i++) {
		n = syscalls()->pread(slot->fd, &counter, sizeof(counter),
				      (off_t)(i * sizeof(counter)));
		if (n == -1) {
			return errno;
		}
		if (n != (ssize_t)sizeof(counter)) {
			return ENODATA;
		}
		*sum += counter;
	}
	return 0;
}

/* EFAULT as in map_access() */
static int sum_mapped(const struct probe_slot *slot, uint64_t count,
		      uint64_t *sum)
{
	uint64_t i, counter;

	if (count > slot->map_len / sizeof(counter)) {
		return EINVAL;
	}
	signal(SIGBUS, sigbus);
	if (sigsetjmp(no_page, 1) != 0) {
		signal(SIGBUS, SIG_DFL);
		return EFAULT;
	}
	for (i = 0; i < count; i++) {
		memcpy(&counter, slot->map + i * sizeof(counter),
		       sizeof(counter));
		*sum += counter;
	}
	signal(SIGBUS, SIG_DFL);
	return 0;
}

static int op_sum(struct probe_worker *worker,
		  const struct probe_request *req,
		  struct probe_answer *answer)
{
	const struct probe_slot *slot = slot_of(worker, req);

	if (slot->map != NULL) {
		return sum_mapped(slot, req->count, &answer->value);
	}
	return sum_read(slot, req->count, &answer->value);
}

#define USES_SLOT 0x1		/* of a file that is open */
#define USES_RUN 0x2		/* needs the run directory */

static const struct {
	int (*fn)(struct probe_worker *worker,
		  const struct probe_request *req,
		  struct probe_answer *answer);
	unsigned needs;
} ops[PROBE_OPS] = {
	[PROBE_NOP] = { op_nop, 0 },
	[PROBE_BEGIN] = { op_begin, 0 },
	[PROBE_FINISH] = { op_finish, 0 },
	[PROBE_RESET] = { op_reset, 0 },
	[PROBE_OPEN] = { op_open, USES_RUN },
	[PROBE_MAKE_MANY] = { op_make_many, USES_RUN },
	[PROBE_CLOSE] = { op_close, USES_SLOT },
	[PROBE_LOCK] = { op_lock, USES_SLOT },
	[PROBE_GETLK] = { op_getlk, USES_SLOT },
	[PROBE_WRITE] = { op_write, USES_SLOT },
	[PROBE_READ] = { op_read, USES_SLOT },
	[PROBE_MAP] = { op_map, USES_SLOT },
	[PROBE_MAP_WRITE] = { op_map_write, USES_SLOT },
	[PROBE_MAP_READ] = { op_map_read, USES_SLOT },
	[PROBE_UNMAP] = { op_unmap, USES_SLOT },
	[PROBE_TRUNCATE] = { op_truncate, USES_SLOT },
	[PROBE_STAT] = { op_stat, USES_SLOT },
	[PROBE_END] = { op_end, USES_SLOT },
	[PROBE_LOOKUP] = { op_lookup, USES_RUN },
	[PROBE_LIST] = { op_list, USES_RUN },
	[PROBE_RENAME] = { op_rename, USES_RUN },
	[PROBE_UNLINK] = { op_unlink, USES_RUN },
	[PROBE_FORK_CLOSE] = { op_fork_close, USES_SLOT },
	[PROBE_LOCK_EXIT] = { op_lock_exit, USES_RUN },
	[PROBE_APPEND] = { op_append, USES_SLOT },
	[PROBE_COUNT] = { op_count, USES_SLOT },
	[PROBE_LEASE] = { op_lease, USES_SLOT },
	[PROBE_LEASED] = { op_leased, USES_SLOT },
	[PROBE_LOCK_MANY] = { op_lock_many, USES_SLOT },
	[PROBE_CONTEND] = { op_contend, USES_SLOT },
	[PROBE_RING] = { op_ring, USES_SLOT },
	[PROBE_RING_LOG] = { op_ring_log, 0 },
	[PROBE_RING_END] = { op_ring_end, 0 },
	[PROBE_SUM] = { op_sum, USES_SLOT },
};

void probe_worker_init(struct probe_worker *worker, int place)
{
	unsigned i;

	*worker = (struct probe_worker){
		.dir = { .place = place, .top = -1, .run = -1 },
	};
	for (i = 0; i < PROBE_SLOTS; i++) {
		worker->slots[i].fd = -1;
	}
}

/* a name is one component and no way out */
static bool name_valid(const char *name)
{
	return name[0] != '\0' && name[0] != '.' &&
	       strchr(name, '/') == NULL;
}

static int request_check(const struct probe_worker *worker,
			 const struct probe_request *req)
{
	unsigned needs;

	if ((unsigned)req->op >= PROBE_OPS || req->slot >= PROBE_SLOTS ||
	    req->len > (uint64_t)1 << 40 || req->nlocks > 1 << 20) {
		return EINVAL;
	}
	needs = ops[req->op].needs;
	if ((needs & USES_RUN) != 0 && worker->dir.run == -1) {
		return EBADF;
	}
	if ((needs & USES_SLOT) != 0 && worker->slots[req->slot].fd == -1) {
		return EBADF;
	}
	if (((needs & USES_RUN) != 0 || req->op == PROBE_BEGIN) &&
	    !name_valid(req->name)) {
		return EINVAL;
	}
	if (req->op == PROBE_RENAME && !name_valid(req->name2)) {
		return EINVAL;
	}
	if (req->op == PROBE_RING && req->nlocks < 1) {
		return EINVAL;
	}
	return 0;
}

void probe_worker_do(struct probe_worker *worker,
		     const struct probe_request *req,
		     struct probe_answer *answer)
{
	uint64_t begin;

	*answer = (struct probe_answer){};
	answer->err = request_check(worker, req);
	if (answer->err != 0) {
		return;
	}
	begin = ring_now();
	answer->err = ops[req->op].fn(worker, req, answer);
	answer->ns = ring_now() - begin;
}
