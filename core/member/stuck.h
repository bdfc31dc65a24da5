/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Workers that not even SIGKILL ends
 *
 * Such a worker is left to die whenever its file system lets it. Until then
 * every question about the same mount is answered at once ("hung"), so that
 * there is never more than one of them a mount.
 *
 * RUNDIR/stuck/MAJOR:MINOR (0600, in a directory of 0700) has a line for each
 * of a mount: "PID START PATH". START is the process's start time (clock
 * ticks after boot), PATH what the line stands for: every path below it.
 * That is "/", the whole mount, unless the worker hung before it had opened
 * its directory; then a symbolic link may have led it elsewhere.
 *
 * Which mount a path leads to is told by the mount points alone, the path is
 * never touched. Only root keeps and finds records.
 */
#ifndef PINGPONG_MEMBER_STUCK_H
#define PINGPONG_MEMBER_STUCK_H

#include <stdbool.h>
#include <sys/types.h>

/* What a worker said of the mount that it opened */
struct stuck_mount {
	unsigned major, minor;
};

/*
 * The worker that is stuck where this path leads to; 0: none that is known.
 * Records of those that have gone are removed. rundir: normally RUNDIR.
 * mountinfo: normally "/proc/self/mountinfo".
 */
pid_t stuck_find(const char *rundir, const char *mountinfo, const char *path);

/*
 * Record a worker that was started for this path. mount: NULL if it hung
 * before it could say. Returns 0, EPERM (the directory is not ours alone, or
 * we are not root), EINVAL (no such process; a path with a newline), ENOENT
 * (no mount), ENOMEM, or the errno of the write.
 */
int stuck_record(const char *rundir, const char *mountinfo, const char *path,
		 pid_t pid, const struct stuck_mount *mount);

#endif
