/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The local door: a Unix socket for this host's own root
 *
 * Frames as in core/member/wire.h. The agent says {"hello":"resident",
 * "version":V} first; then
 *
 *   {"id":N,"ask":WHAT} -> {"id":N,"outcome":OUTCOME,"lines":["...", ...]}
 *
 * OUTCOME is "ok", "refused" or "checking" (no verdict yet), the lines are for
 * a person. WHAT is
 *
 *   init, startup, monitor	an event of ctdbd
 *   check PATH			check the mount of a share's path with the other
 *				nodes, and store the verdict; "checking": it is
 *				no such path
 *   status			what the agent knows
 *   reach			how this node reaches the others' agents: four
 *				lines, "port P", "key FILE" or "key" (none),
 *				"own ADDRESS", "lock DIRECTORY" of the cluster
 *				lock or "lock" (it is no file)
 *   quit			the agent ends, and the connection with it
 */
#ifndef PINGPONG_CTDB_EVENTS_DOOR_H
#define PINGPONG_CTDB_EVENTS_DOOR_H

#include <talloc.h>
#include <tevent.h>

#include "core/member/rundir.h"

#define DOOR_CHECK "check "

enum door_outcome {
	DOOR_OK,
	DOOR_REFUSED,
	DOOR_CHECKING,
	DOOR_NO_AGENT,		/* told by door_ask() only */
};

struct door;

/*
 * Open the door at a path, in the place of what is there. asked_fn is called
 * for each question and leads to door_answer(), now or later.
 *
 * Returns 0 with *door, a child of mem_ctx, ENOMEM or the errno of the socket.
 */
int door_open(TALLOC_CTX *mem_ctx, struct tevent_context *ev, const char *path,
	      void (*asked_fn)(const char *what, void *private_data),
	      void *private_data, struct door **door);

/* Answer all who asked for this. lines: NULL-terminated. */
void door_answer(struct door *door, const char *what,
		 enum door_outcome outcome, const char *const *lines);

/*
 * Answer those whose question begins with this, and which answered_fn tells
 * to be answered; asked_ms: when it was asked (CLOCK_MONOTONIC). Returns the
 * first one that is left, as long as its guest is there, or NULL.
 */
const char *door_answer_if(
	struct door *door, const char *prefix, enum door_outcome outcome,
	const char *const *lines,
	bool (*answered_fn)(const char *what, uint64_t asked_ms,
			    void *private_data));

/*
 * The other side: ask and wait. Returns 0 with *outcome and *lines
 * (NULL-terminated, children of mem_ctx); ENOENT or ECONNREFUSED: no agent;
 * ETIMEDOUT, ECONNRESET (also: it quit), EPROTO, ENOMEM, or an errno.
 */
int door_ask(TALLOC_CTX *mem_ctx, const char *path, const char *what,
	     unsigned timeout_ms, enum door_outcome *outcome,
	     const char ***lines);

#endif
