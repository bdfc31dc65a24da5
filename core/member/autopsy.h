/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a silent process is doing: state, wchan, syscall and kernel stack from
 * /proc (proc(5)). Reading them never waits for the file system that the
 * process hangs on.
 */
#ifndef PINGPONG_MEMBER_AUTOPSY_H
#define PINGPONG_MEMBER_AUTOPSY_H

#include <sys/types.h>

#include "core/member/member.h"

/* Strings are children of mem_ctx, "" where the kernel tells nothing. */
void autopsy_of_process(TALLOC_CTX *mem_ctx, pid_t pid,
			struct member_autopsy *autopsy);

#endif
