/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The probe directory: where a run keeps its files
 *
 * PLACE/.pingpong/RUN, both made with mode 0700. The user's files are never
 * opened. Nothing on the way is followed if it is a symbolic link, and what
 * was opened must be a directory of our own user with nobody else's write
 * permission: otherwise another user of a world-writable place could redirect
 * or read what we do.
 *
 * RUN is "BOOT.NS.PID.START.EXPIRY.RANDOM" (hex and decimal): boot id's and
 * pid namespace's short forms, process id and start time of the coordinator,
 * and the second (Unix time) after which the run is over for certain. With
 * it a later run knows which directories nobody uses any more.
 */
#ifndef PINGPONG_PROBE_DIR_H
#define PINGPONG_PROBE_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROBE_DIR_NAME ".pingpong"

struct probe_dir {
	int place;		/* the directory under test */
	int top;		/* PROBE_DIR_NAME in it, or -1 */
	int run;		/* the run's directory, or -1 */
	char name[80];		/* of the run's directory */
};

/* Name of a run that begins now and is over in lifetime_s seconds. */
void probe_dir_make_name(char *name, size_t size, unsigned lifetime_s);

/* True when the run with this directory name is over. */
bool probe_dir_is_stale(const char *name);

/*
 * Open the run's directory; make: make it first (and PROBE_DIR_NAME), and
 * remove what earlier runs left.
 *
 * Returns 0; ENOENT: not there (yet); EUSERS: PROBE_DIR_NAME or the run's
 * directory belongs to somebody else or is open to others; ELOOP, ENOTDIR:
 * something else stands there; or the errno of the call.
 */
int probe_dir_open(struct probe_dir *dir, const char *name, bool make);

/*
 * Remove the run's directory with all in it, and PROBE_DIR_NAME when it is
 * empty. Returns 0 or the errno of the first thing that could not be removed.
 */
int probe_dir_remove(struct probe_dir *dir);

/*
 * How often the run's directory, opened anew, lists a name: 0 or 1 where all
 * is well. Returns 0 or the errno of the call.
 */
int probe_dir_list(struct probe_dir *dir, const char *name, uint64_t *count);

/* Close what is open, but for place. */
void probe_dir_close(struct probe_dir *dir);

#endif
