/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the checks say of an operation and of the errno that it ends with
 *
 * Texts are static or children of mem_ctx, and NULL for want of memory.
 */
#ifndef PINGPONG_CHECKS_OPERATION_H
#define PINGPONG_CHECKS_OPERATION_H

#include <stdbool.h>
#include <stdint.h>
#include <talloc.h>

#include "core/probe/probe.h"

/* "pread", "F_OFD_SETLKW F_WRLCK", "flock LOCK_EX|LOCK_NB" */
const char *operation_text(TALLOC_CTX *mem_ctx,
			   const struct probe_request *req);

/* "[0, 1)": the bytes that it is about; NULL: it is about none */
const char *operation_range(TALLOC_CTX *mem_ctx,
			    const struct probe_request *req);

/* "pread [0, 1)", "open" */
const char *operation_full_text(TALLOC_CTX *mem_ctx,
				const struct probe_request *req);

/* Is it reading or writing bytes of a file, by whatever means? */
bool operation_is_data(enum probe_op op);

/* What is not there when it hangs or is refused (NEEDS_*, check.h) */
unsigned operation_needs(const struct probe_request *req);

enum errno_kind {
	ERRNO_WRONG,	/* where it was not expected */
	ERRNO_REFUSAL,	/* the file system says that it has no such
			 * operation */
	ERRNO_SHORTAGE,	/* room, quota, descriptors, memory: says nothing
			 * about coherence */
	ERRNO_AWAY,	/* the file system was lost: the node's connection
			 * to it, or its daemon */
};

enum errno_kind operation_errno(const struct probe_request *req, int err);

/* "[0, 1)", "[5, EOF)" */
const char *range_text(TALLOC_CTX *mem_ctx, uint64_t start, uint64_t len);

/* "F_WRLCK" */
const char *lock_type_text(int type);

/* "ENOLCK (No locks available)" */
const char *errno_text(TALLOC_CTX *mem_ctx, int err);

#endif
