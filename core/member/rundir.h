/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * RUNDIR: a directory of our own under it; what has a name there
 */
#ifndef PINGPONG_MEMBER_RUNDIR_H
#define PINGPONG_MEMBER_RUNDIR_H

/* The resident agent's socket (ctdb-events/door.h) */
#define DOOR_NAME "agent.sock"

/*
 * Open RUNDIR/NAME (0700), both are made if need be. rundir: normally RUNDIR.
 *
 * Returns 0 with *fd, EPERM (we are not root, or it is open to others),
 * ENAMETOOLONG, or the errno of mkdir or open.
 */
int rundir_open(const char *rundir, const char *name, int *fd);

/* The same where nothing is to be made; ENOENT: it is not there */
int rundir_find(const char *rundir, const char *name, int *fd);

#endif
