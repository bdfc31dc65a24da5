/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/checks/check.h"
#include "core/checks/operation.h"

/* ---- texts -------------------------------------------------------------- */

static const char *const texts[PROBE_OPS] = {
	[PROBE_RESET] = "close",
	[PROBE_OPEN] = "open",
	[PROBE_MAKE_MANY] = "open of many",
	[PROBE_CLOSE] = "close",
	[PROBE_WRITE] = "pwrite",
	[PROBE_READ] = "pread",
	[PROBE_MAP] = "mmap",
	[PROBE_MAP_WRITE] = "store into the mapping",
	[PROBE_MAP_READ] = "load from the mapping",
	[PROBE_UNMAP] = "munmap",
	[PROBE_TRUNCATE] = "ftruncate",
	[PROBE_STAT] = "fstat",
	[PROBE_END] = "lseek(SEEK_END)",
	[PROBE_LOOKUP] = "stat",
	[PROBE_LIST] = "getdents",
	[PROBE_RENAME] = "rename",
	[PROBE_UNLINK] = "unlink",
	[PROBE_FORK_CLOSE] = "close in a forked child",
	[PROBE_LOCK_EXIT] = "F_SETLK F_WRLCK of a child that ends",
	[PROBE_APPEND] = "write with O_APPEND",
	[PROBE_COUNT] = "pread of all records",
	[PROBE_LEASE] = "F_SETLEASE",
	[PROBE_LEASED] = "F_GETLEASE",
	[PROBE_LOCK_MANY] = "many F_SETLK",
	[PROBE_CONTEND] = "F_SETLK again and again",
	[PROBE_RING] = "lock ring",
	[PROBE_SUM] = "pread of the counters",
};

const char *range_text(TALLOC_CTX *mem_ctx, uint64_t start, uint64_t len)
{
	if (len == 0) {
		return talloc_asprintf(mem_ctx, "[%llu, EOF)",
				       (unsigned long long)start);
	}
	return talloc_asprintf(mem_ctx, "[%llu, %llu)",
			       (unsigned long long)start,
			       (unsigned long long)(start + len));
}

const char *errno_text(TALLOC_CTX *mem_ctx, int err)
{
	const char *name = strerrorname_np(err);

	if (name == NULL) {
		return talloc_asprintf(mem_ctx, "errno %d, which is none",
				       err);
	}
	return talloc_asprintf(mem_ctx, "%s (%s)", name, strerror(err));
}

const char *lock_type_text(int type)
{
	switch (type) {
	case F_RDLCK:
		return "F_RDLCK";
	case F_WRLCK:
		return "F_WRLCK";
	default:
		return "F_UNLCK";
	}
}

static const char *lock_text(TALLOC_CTX *mem_ctx,
			     const struct probe_request *req)
{
	if (req->family == PROBE_FLOCK) {
		return talloc_asprintf(mem_ctx, "flock %s%s",
				       req->type == F_WRLCK ? "LOCK_EX" :
				       req->type == F_RDLCK ? "LOCK_SH" :
				       "LOCK_UN",
				       req->wait ? "" : "|LOCK_NB");
	}
	return talloc_asprintf(mem_ctx, "%s%s %s",
			       req->family == PROBE_OFD ? "F_OFD_SETLK"
							: "F_SETLK",
			       req->wait ? "W" : "",
			       lock_type_text(req->type));
}

const char *operation_text(TALLOC_CTX *mem_ctx,
			   const struct probe_request *req)
{
	if (req->op == PROBE_LOCK) {
		return lock_text(mem_ctx, req);
	}
	if (req->op == PROBE_GETLK) {
		return req->family == PROBE_OFD ? "F_OFD_GETLK" : "F_GETLK";
	}
	return texts[req->op] != NULL ? texts[req->op] : "step";
}

bool operation_is_data(enum probe_op op)
{
	return op == PROBE_WRITE || op == PROBE_READ ||
	       op == PROBE_MAP_WRITE || op == PROBE_MAP_READ;
}

const char *operation_range(TALLOC_CTX *mem_ctx,
			    const struct probe_request *req)
{
	bool has_range = req->op == PROBE_LOCK || req->op == PROBE_GETLK ||
			 operation_is_data(req->op);

	return has_range ? range_text(mem_ctx, req->start, req->len) : NULL;
}

const char *operation_full_text(TALLOC_CTX *mem_ctx,
				const struct probe_request *req)
{
	const char *text = operation_text(mem_ctx, req);
	const char *range = operation_range(mem_ctx, req);

	return range == NULL ? text
			     : talloc_asprintf(mem_ctx, "%s %s", text, range);
}

/* ---- errors ------------------------------------------------------------- */

unsigned operation_needs(const struct probe_request *req)
{
	switch (req->op) {
	case PROBE_LOCK:
	case PROBE_GETLK:
		return req->family == PROBE_OFD ? NEEDS_OFD :
		       req->family == PROBE_FLOCK ? NEEDS_FLOCK : NEEDS_LOCKS;
	case PROBE_READ:
	case PROBE_WRITE:
	case PROBE_APPEND:
	case PROBE_COUNT:
		return NEEDS_IO;
	case PROBE_MAP:
	case PROBE_MAP_READ:
	case PROBE_MAP_WRITE:
		return NEEDS_MMAP;
	default:
		return 0;
	}
}

static bool is_lock(enum probe_op op)
{
	return op == PROBE_LOCK || op == PROBE_GETLK ||
	       op == PROBE_LOCK_MANY || op == PROBE_LOCK_EXIT ||
	       op == PROBE_CONTEND;
}

static bool is_refusal(enum probe_op op, int err)
{
	switch (err) {
	case ENOSYS:
	case EOPNOTSUPP:
	case ENOTTY:
		return true;
	case ENOLCK:
	case EFBIG:
	case EOVERFLOW:
		return is_lock(op);
	case EINVAL:
		return is_lock(op) || op == PROBE_MAP || op == PROBE_LEASE;
	case ENODEV:
	case EACCES:
	case EPERM:
		return op == PROBE_MAP;
	default:
		return false;
	}
}

static bool is_shortage(enum probe_op op, int err)
{
	switch (err) {
	case ENOSPC:
	case EDQUOT:
	case EMFILE:
	case ENFILE:
	case ENOMEM:
	case EROFS:
		return true;
	case EAGAIN:
		/* of fork, for which there is no process or memory */
		return op == PROBE_FORK_CLOSE || op == PROBE_LOCK_EXIT;
	case EFAULT:
		/* no page to store into */
		return op == PROBE_MAP_WRITE;
	default:
		return false;
	}
}

enum errno_kind operation_errno(const struct probe_request *req, int err)
{
	switch (err) {
	case ENOTCONN:
	case ECONNABORTED:
	case ECONNRESET:
	case ESHUTDOWN:
	case EHOSTDOWN:
		return ERRNO_AWAY;
	}
	if (is_shortage(req->op, err)) {
		return ERRNO_SHORTAGE;
	}
	return is_refusal(req->op, err) ? ERRNO_REFUSAL : ERRNO_WRONG;
}
