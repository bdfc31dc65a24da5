/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Run a command and read what it prints
 *
 * For short helpers: ctdb-config, the command of `nodes list`,
 * pingpong-smbconf. Standard input is empty, standard error stays the
 * caller's. Never through a shell. At its deadline the command's process
 * group is killed and not waited for.
 */
#ifndef PINGPONG_CTDB_EVENTS_COMMAND_H
#define PINGPONG_CTDB_EVENTS_COMMAND_H

#include <talloc.h>
#include <tevent.h>

/* Bytes of output that are read; one that prints more fails with EMSGSIZE */
#define COMMAND_MAX_OUTPUT (1024 * 1024)

/*
 * argv: NULL-terminated; argv[0] is searched in PATH.
 *
 * command_recv() returns 0 with *status (the exit status, 128 + N after
 * signal N) and *output, a child of mem_ctx; ETIMEDOUT, EMSGSIZE, ENOMEM, or
 * the errno of the start. A program that cannot be run has status 127.
 */
struct tevent_req *command_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev,
				const char *const *argv,
				unsigned timeout_ms);
int command_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx, int *status,
		 char **output);

/*
 * Wait for those children that have ended and that nobody waits for (killed
 * workers); for a handler of SIGCHLD. Does it later while a command runs.
 */
void command_reap_others(void);

/* Words of a line, split at white space: argv for the above, children of the
 * array. NULL: none, or no memory. */
const char **command_words(TALLOC_CTX *mem_ctx, const char *line);

#endif
