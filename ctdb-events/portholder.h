/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Who listens on a TCP port of this host
 */
#ifndef PINGPONG_CTDB_EVENTS_PORTHOLDER_H
#define PINGPONG_CTDB_EVENTS_PORTHOLDER_H

#include <stdint.h>
#include <talloc.h>

/*
 * ": process 4711 (nc) holds it", or that none is to be seen, a child of
 * mem_ctx (or static). From /proc/self/net/tcp, tcp6 and /proc/PID/fd.
 */
const char *portholder(TALLOC_CTX *mem_ctx, uint16_t port);

#endif
