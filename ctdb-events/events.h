/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What 00.pingpong.script calls: "pingpong agent --daemon EVENT" and
 * "pingpong agent --ask EVENT"
 */
#ifndef PINGPONG_CTDB_EVENTS_EVENTS_H
#define PINGPONG_CTDB_EVENTS_EVENTS_H

#include <talloc.h>

/*
 * Start this node's resident agent in the background and return when both its
 * doors are open. event: the event of ctdbd that it is started in; in any but
 * init this node is running already. worker: path of pingpong-worker.
 *
 * Returns 0, or 1 with the reason on standard output.
 */
int events_daemon(const char *event, const char *worker);

/* Exit statuses of events_ask(): below 64, as ctdbd wants them */
#define EVENTS_OK 0
#define EVENTS_REFUSED 1
#define EVENTS_CHECKING 2
#define EVENTS_NO_AGENT 3

/*
 * Ask the resident agent in an event of ctdbd; prints its lines on standard
 * output, which ctdbd logs.
 */
int events_ask(const char *event);

/*
 * What the agent of this host says of itself, its nodes and its targets, for
 * "pingpong status": lines, NULL-terminated, a child of mem_ctx. One line
 * where it does not answer, though 00.pingpong is enabled; NULL: there is no
 * agent, and none is wanted.
 */
const char **events_status(TALLOC_CTX *mem_ctx);

#endif
