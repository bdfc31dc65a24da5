/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The ctdbd whose agent this is
 */
#ifndef PINGPONG_CTDB_EVENTS_LIFE_H
#define PINGPONG_CTDB_EVENTS_LIFE_H

#include <stdbool.h>

#include "ctdb-events/ctdbconfig.h"

/*
 * A pidfd (close-on-exec) of the ctdbd in ctdbd's pid file, which must be an
 * ancestor of this process: it was started by a script of that ctdbd. The
 * descriptor is readable when ctdbd has ended.
 *
 * Returns 0; ESRCH: no pid file, or no such process; EPERM: it is no ancestor
 * of ours; or an errno. *why, a child of mem_ctx, says so to a person.
 */
int life_of_ctdbd(TALLOC_CTX *mem_ctx, const struct ctdb_paths *paths,
		  int *pidfd, const char **why);

/* Does a ctdbd run on this host, by its pid file? */
bool life_ctdbd_runs(const struct ctdb_paths *paths);

#endif
