/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An agent: supervises one worker on behalf of a coordinator elsewhere
 *
 * It says {"hello":"agent","protocol":1,"oldest":1,"version":V} first and then
 * answers, one after the other:
 *
 *   {"id":N,"start":PLACE,"timeout_ms":T}  -> {"id":N,"err":E,"info":{..}}
 *   {"id":N,"call":{REQUEST},"timeout_ms":T} -> {"id":N,"err":E,"answer":{}}
 *   {"id":N,"kill":RESTART,"timeout_ms":T} -> {"id":N,"err":E}
 *   {"id":N,"autopsy":true}                -> {"id":N,"err":0,"autopsy":{}}
 *
 * err is an errno of the supervisor's (core/member/supervisor.h); ENOTSUP: no
 * such question; EPROTO: not as above; EINVAL: no such time; EACCES: a place
 * that may not be asked for; EBUSY: a place has been given already, or another
 * question is under way, to which only "kill" and "autopsy" may come. A start
 * that ends with ETIMEDOUT has "why" instead of "info": lines for a person.
 *
 * "start" may have "lifetime_ms": after it the session ends by itself; so it
 * does when there is no "start" within 30 s.
 *
 * The worker ends when the channel does; so does the session when a line is
 * no frame or its answers are not read.
 */
#ifndef PINGPONG_MEMBER_AGENT_H
#define PINGPONG_MEMBER_AGENT_H

#include <talloc.h>
#include <tevent.h>

#define AGENT_PROTOCOL 1
#define AGENT_PROTOCOL_OLDEST 1

struct agent_session;

/*
 * What a PLACE in "start" stands for: the directory, a child of mem_ctx, or
 * NULL: it may not be asked for. The command's agent takes it as a path.
 */
typedef const char *(*agent_resolve_fn)(TALLOC_CTX *mem_ctx,
					const char *place,
					void *private_data);
typedef void (*agent_end_fn)(void *private_data);

/*
 * Serve one coordinator over two descriptors (taken); end_fn is called once,
 * when it is gone, and may free the session. NULL for want of memory.
 */
struct agent_session *agent_session_create(TALLOC_CTX *mem_ctx,
					   struct tevent_context *ev,
					   int rfd, int wfd,
					   const char *worker,
					   agent_resolve_fn resolve_fn,
					   agent_end_fn end_fn,
					   void *private_data);

/* "pingpong agent": serve standard input and output until its end.
 * Returns an exit status. */
int agent_stdio(const char *worker);

#endif
