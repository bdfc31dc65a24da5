/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The command that reaches a host
 *
 * It runs as "COMMAND HOST pingpong agent" in a session of its own: without a
 * terminal it can ask nobody for a password. What it and the other side print
 * on standard error is kept by lines, and told from rsh_tell() on.
 *
 * talloc_free() ends it with all that it has started here (SIGTERM), without
 * waiting: this process ends soon, or ignores its children.
 */
#ifndef PINGPONG_MEMBER_RSH_H
#define PINGPONG_MEMBER_RSH_H

#include <talloc.h>
#include <tevent.h>

struct rsh;

/* One line from a host, without its newline */
typedef void (*rsh_said_fn)(const char *host, const char *line,
			    void *private_data);

/*
 * command: split at white space, never given to a shell.
 *
 * Returns 0 with *rsh and *sock, the stream to the agent, which is the
 * caller's; EINVAL: no word in the command; ENOMEM, or the errno of the
 * process start.
 */
int rsh_start(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
	      const char *command, const char *host, struct rsh **rsh,
	      int *sock);

/* Tell what was kept, and from now on each line as it comes. */
void rsh_tell(struct rsh *rsh, rsh_said_fn said_fn, void *private_data);

/*
 * Find out why no agent answers: waits a moment for the command's end and
 * takes the last line that it has printed. rsh_why_recv() returns one line for
 * a person, a child of mem_ctx, or NULL: it goes on, or ended well, and has
 * said nothing.
 */
struct tevent_req *rsh_why_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev, struct rsh *rsh);
char *rsh_why_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx);

#endif
