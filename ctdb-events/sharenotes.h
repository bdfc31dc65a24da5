/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is to be known of shares by their settings alone
 *
 * - [global]'s `vfs objects = pingpong` does not reach a share with `vfs
 *   objects` of its own, which replace that list: one that leaves pingpong out
 *   is let in whatever its file system does.
 * - vfs_fileid may give each node ids of its own, on purpose: the nodes then
 *   do not see each other's opens.
 */
#ifndef PINGPONG_CTDB_EVENTS_SHARENOTES_H
#define PINGPONG_CTDB_EVENTS_SHARENOTES_H

#include <jansson.h>
#include <talloc.h>

/*
 * list: what `pingpong-smbconf list` prints; share: one of its shares. Adds
 * lines for a person to *notes, a NULL-terminated list or NULL; all are
 * children of mem_ctx. Returns 0 or ENOMEM.
 */
int share_notes(TALLOC_CTX *mem_ctx, const json_t *list, const json_t *share,
		const char ***notes);

/*
 * Read the configuration: such lines of all shares, NULL-terminated, children
 * of mem_ctx. NULL: there are none, or it cannot be read.
 */
const char **share_notes_read(TALLOC_CTX *mem_ctx);

#endif
