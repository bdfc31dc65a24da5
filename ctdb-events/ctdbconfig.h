/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * ctdb.conf, as `ctdb-config get` reads it
 *
 * The only source that can be asked in the event init, when ctdbd's socket
 * exists and nobody answers on it.
 */
#ifndef PINGPONG_CTDB_EVENTS_CTDBCONFIG_H
#define PINGPONG_CTDB_EVENTS_CTDBCONFIG_H

#include <talloc.h>
#include <tevent.h>

/* Where CTDB has its files */
struct ctdb_paths {
	const char *base;	/* CTDB_BASE: /etc/ctdb */
	const char *helpers;	/* CTDB_HELPER_BINDIR: /usr/libexec/ctdb */
};

/*
 * The first of these keys that has a value. keys: NULL-terminated, must
 * outlive the request; a version that does not know one says so with exit
 * status 2 (ENOENT), and the next is asked for.
 *
 * ctdbconfig_recv() returns 0 with *value (a child of mem_ctx; NULL: none has
 * one) and *key, the one that had it; ETIMEDOUT; EIO: ctdb-config failed
 * (told on standard error); ENOMEM, or the errno of the start.
 */
struct tevent_req *ctdbconfig_send(TALLOC_CTX *mem_ctx,
				   struct tevent_context *ev,
				   const struct ctdb_paths *paths,
				   const char *section,
				   const char *const *keys);
int ctdbconfig_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx, char **value,
		    const char **key);

#endif
