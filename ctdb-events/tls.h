/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * TLS with a pre-shared key between the agents of two nodes
 *
 * The connection is encrypted in a pair of its own: whoever uses it gets a
 * descriptor that carries the plain bytes, and needs not know.
 */
#ifndef PINGPONG_CTDB_EVENTS_TLS_H
#define PINGPONG_CTDB_EVENTS_TLS_H

#include <stdbool.h>
#include <talloc.h>
#include <tevent.h>

struct tls_key;

/*
 * The key is the content of a file, at least TLS_KEY_MIN bytes without the
 * newline at its end, that only its owner (root) can read.
 *
 * Returns 0 with *key, a child of mem_ctx; EPERM: it is open to others; EINVAL:
 * too short or too long; ENOMEM, EIO (GnuTLS), or the errno of the read.
 */
#define TLS_KEY_MIN 16
int tls_key_read(TALLOC_CTX *mem_ctx, const char *path, struct tls_key **key);

/*
 * Encrypt a connected socket (taken). server: we accepted it.
 *
 * Returns 0 with *plain, the caller's: what is written to it goes out
 * encrypted, from the handshake on. It ends (end of file) when the other side
 * has another key, is gone, or breaks the protocol. The pump between both is a
 * child of mem_ctx and ends with either.
 */
int tls_wrap(TALLOC_CTX *mem_ctx, struct tevent_context *ev, int fd,
	     bool server, const struct tls_key *key, int *plain);

#endif
