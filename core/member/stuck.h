/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Workers that not even SIGKILL ends
 *
 * Such a worker is left to die whenever its file system lets it. Until then
 * every question about the same mount is answered at once ("hung"), so that
 * they do not become more. Two things see to that:
 *
 * The turn. Workers of this host open their directories on a mount one after
 * the other, and remove them one after the other; a worker that hangs in that
 * keeps the turn as long as it lives, whatever became of its supervisor. So
 * whatever is started on a mount that does not answer, one worker of it gets
 * stuck, and the others wait for their turn, in which SIGKILL ends them.
 *
 * The record, of a worker that SIGKILL did not end: it spares the wait.
 *
 * Of workers that had their directory open at the moment when the mount
 * stopped answering, as many are stuck as were in a call, or have files to
 * close there; none of that can be taken back. So a mount has at most these
 * and one more, and never one more for each question.
 *
 * RUNDIR/turns/MAJOR:MINOR is locked (flock) by the worker whose turn it is,
 * and holds its pid. A path that leads off its mount through a symbolic link
 * has a turn of its own (MAJOR:MINOR-HASH).
 *
 * RUNDIR/stuck/MAJOR:MINOR (0600, in a directory of 0700) has a line for each
 * of a mount: "PID START PATH". START is the process's start time (clock
 * ticks after boot), PATH what the line stands for: every path below it.
 * That is "/", the whole mount, unless the worker hung behind a symbolic link,
 * before it could say where.
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
 * Wait for the turn, to touch what this path leads to. linked: it leads off
 * its mount through a symbolic link. Returns a descriptor that keeps the turn
 * until it is closed, or -1: EINTR, or nobody waits for anybody (not root, no
 * mount, ...), in errno.
 */
int stuck_turn(const char *rundir, const char *mountinfo, const char *path,
	       bool linked);

/* Whose turn it is, as it said itself; 0: nobody's, or not known */
pid_t stuck_turn_of(const char *rundir, const char *mountinfo,
		    const char *path, bool linked);

/*
 * For a worker only: open the directory without leaving the mount that its
 * path names, the mount point first. Returns a descriptor, or -1 with errno;
 * ELOOP, EXDEV: a symbolic link leads off that mount.
 */
int stuck_open(const char *mountinfo, const char *path);

/*
 * Record a worker that was started for this path. mount: NULL if it hung
 * before it could say; if it was its turn, it hung on this mount.
 *
 * Returns 0, EPERM (the directory is not ours alone, or we are not root),
 * EINVAL (no such process; a path with a newline), ENOENT (no mount), ENOMEM,
 * or the errno of the write.
 */
int stuck_record(const char *rundir, const char *mountinfo, const char *path,
		 pid_t pid, const struct stuck_mount *mount);

#endif
