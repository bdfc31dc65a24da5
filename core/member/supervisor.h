/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The supervisor of one worker process on this host
 *
 * It starts pingpong-worker (exec, never a bare fork), speaks frames with it
 * over a socketpair, and learns of its end through a pidfd only, so that it
 * works in a process whose SIGCHLD handler reaps every child. It never waits
 * for a worker that does not die.
 *
 * talloc_free() of a supervisor returns at once. It kills the worker's process
 * group (SIGKILL). Only a worker that has answered so far and is the keeper of
 * the run's directory, or was asked to remove it (PROBE_FINISH), gets SIGTERM:
 * it lets go of what it waits for, removes the directory and ends. It has a
 * deadline, after which the kernel sends SIGKILL.
 */
#ifndef PINGPONG_MEMBER_SUPERVISOR_H
#define PINGPONG_MEMBER_SUPERVISOR_H

#include <jansson.h>

#include "core/member/member.h"

struct supervisor;

/* A supervisor without a worker yet, for one directory. */
struct supervisor *supervisor_create(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     const char *worker, const char *path);

/*
 * Start the worker and have it open the directory. A worker that does not
 * come back from that is killed; none is started where an earlier one is
 * stuck (core/member/stuck.h).
 *
 * supervisor_start_recv() returns 0 with *info (a new reference to the
 * worker's JSON object), the errno of its open, ETIMEDOUT, EAGAIN (no answer
 * in time for want of a processor: no hang), ECONNRESET (it ended), EBUSY
 * (there is one), or the errno of the process start.
 * *why: with ETIMEDOUT and EAGAIN, what the worker is doing: a line for a
 * person and after it, where the kernel tells, its stack; a child of mem_ctx.
 * Else NULL.
 */
struct tevent_req *supervisor_start_send(TALLOC_CTX *mem_ctx,
					 struct tevent_context *ev,
					 struct supervisor *sv,
					 unsigned timeout_ms);
int supervisor_start_recv(struct tevent_req *req, json_t **info,
			  TALLOC_CTX *mem_ctx, const char **why);

/* As member_call_send() and member_call_recv(). */
struct tevent_req *supervisor_call_send(TALLOC_CTX *mem_ctx,
					struct tevent_context *ev,
					struct supervisor *sv,
					const struct probe_request *request,
					int fd, unsigned timeout_ms);
int supervisor_call_recv(struct tevent_req *req, struct probe_answer *answer);

/*
 * SIGKILL, and wait for the worker's end. Returns 0, or ETIMEDOUT: it is in
 * D state, is recorded as stuck (core/member/stuck.h) and left to die; the
 * supervisor can start no other one.
 */
struct tevent_req *supervisor_kill_send(TALLOC_CTX *mem_ctx,
					struct tevent_context *ev,
					struct supervisor *sv,
					unsigned timeout_ms);
int supervisor_kill_recv(struct tevent_req *req);

/* What the worker is doing now; strings are children of mem_ctx. */
void supervisor_autopsy(TALLOC_CTX *mem_ctx, const struct supervisor *sv,
			struct member_autopsy *autopsy);

#endif
