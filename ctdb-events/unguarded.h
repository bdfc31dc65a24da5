/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Shares that [global]'s `vfs objects = pingpong` does not reach
 *
 * A share's own `vfs objects` replace the list of [global]: one that leaves
 * pingpong out is let in whatever its file system does.
 */
#ifndef PINGPONG_CTDB_EVENTS_UNGUARDED_H
#define PINGPONG_CTDB_EVENTS_UNGUARDED_H

#include <jansson.h>
#include <talloc.h>

/*
 * list: what `pingpong-smbconf list` prints; share: one of its shares.
 * Returns a line for a person, a child of mem_ctx; NULL: it is guarded, or
 * pingpong is not meant to guard all shares (or there is no memory).
 */
const char *unguarded_note(TALLOC_CTX *mem_ctx, const json_t *list,
			   const json_t *share);

/*
 * Read the configuration: such lines, NULL-terminated, children of mem_ctx.
 * NULL: there are none, or it cannot be read.
 */
const char **unguarded_read(TALLOC_CTX *mem_ctx);

#endif
