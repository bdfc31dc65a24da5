/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which nodes ctdbd is connected with, by "ctdb -X status"
 */
#ifndef PINGPONG_CTDB_EVENTS_CONNECTED_H
#define PINGPONG_CTDB_EVENTS_CONNECTED_H

#include <stdbool.h>
#include <talloc.h>
#include <tevent.h>

/*
 * connected_recv() returns 0 with *connected, by PNN, NODES_MAX of them, a
 * child of mem_ctx; EIO: ctdbd does not say; or an errno of command_recv().
 */
struct tevent_req *connected_send(TALLOC_CTX *mem_ctx,
				  struct tevent_context *ev);
int connected_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		   bool **connected);

/* From what "ctdb -X status" prints; connected: NODES_MAX of them */
void connected_parse(char *text, bool *connected);

#endif
