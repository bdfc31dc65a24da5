/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One target, from what is stored of it to the verdict that is stored
 *
 * A node that starts is refused by what was found with other nodes not long
 * ago; anything else is checked (ctdb-events/across.h), told
 * (ctdb-events/words.h) and recorded in the verdict store.
 */
#ifndef PINGPONG_CTDB_EVENTS_INQUIRY_H
#define PINGPONG_CTDB_EVENTS_INQUIRY_H

#include "ctdb-events/across.h"

/* across: as for across_send(); all of it must outlive the request. */
struct tevent_req *inquiry_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev,
				const struct across *across);

/*
 * Returns 0 with *refused: this node has to, *lines (NULL-terminated, the
 * verdict first) and *result (NULL: refused without a check), children of
 * mem_ctx; or ENOMEM.
 */
int inquiry_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx, bool *refused,
		 const char ***lines, struct across_result **result);

#endif
