/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The directories that this node serves: every share's path, or what
 * CTDB_PINGPONG_PATHS names in their place
 *
 * The shares are read by pingpong-smbconf, which waits for ctdbd where they
 * are in the registry. A worker opens each path, and what lies on one mount
 * becomes one target. The target's directory is the first of its paths by
 * name, so that all nodes with the same shares check the same one.
 */
#ifndef PINGPONG_CTDB_EVENTS_SHARES_H
#define PINGPONG_CTDB_EVENTS_SHARES_H

#include <jansson.h>
#include <tevent.h>

#include "ctdb-events/options.h"
#include "ctdb-events/target.h"

struct shares {
	struct target **targets;	/* talloc array */
	size_t num;
	/* Lines for a person: what is not checked, and why; NULL-terminated,
	 * or NULL */
	const char **notes;
};

/*
 * options, worker (path of pingpong-worker): must outlive the request.
 *
 * shares_recv() returns 0 with *shares, or an errno with *why, one line; both
 * children of mem_ctx. ETIMEDOUT: the registry cannot be read (yet).
 */
struct tevent_req *shares_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			       const struct options *options,
			       const char *worker);
int shares_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		struct shares **shares, const char **why);

/*
 * The share's settings, from one of the shares of `pingpong-smbconf list`.
 * share->path stays; strings and lists are children of mem_ctx. What a
 * parameter says wrongly is told by the module at connect. Returns 0 or
 * ENOMEM.
 */
int share_from_json(TALLOC_CTX *mem_ctx, const json_t *json, bool clustering,
		    struct share *share);

/* Is there a smb.conf? A node of CTDB may well serve something else. */
bool shares_has_samba(void);

#endif
