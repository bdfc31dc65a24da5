/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The hosts of --hosts-file, --nodes and --ctdb, put before the places
 *
 * A hosts file has one host a line; blank lines and those that begin with "#"
 * are passed over. CTDB's nodes are those of its own list; the place of this
 * node has no HOST, so that it needs no way to reach itself.
 */
#ifndef PINGPONG_CLI_HOSTS_H
#define PINGPONG_CLI_HOSTS_H

#include "cli/args.h"

/*
 * Each place of *args on each host, in args->places, which becomes a child of
 * mem_ctx; nothing is changed without these options. Returns NULL, or one
 * line for a person, a child of mem_ctx too.
 */
const char *hosts_expand(TALLOC_CTX *mem_ctx, struct check_args *args);

/*
 * --ctdb: args->places and args->links become those of CTDB's nodes, for a run
 * on ev; nothing is changed without the option. Returns 0, or an exit status
 * whose reason was told.
 */
int hosts_visit(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
		struct check_args *args);

#endif
