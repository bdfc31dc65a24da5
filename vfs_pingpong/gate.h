/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Is the file system below a share's path fit for it?
 *
 * What the verdict store says of the path decides. Where it says nothing that
 * is fresh, "pingpong preflight" is started (a program of its own, so that
 * nothing is forked off smbd's state), which asks the resident agent or has a
 * worker check the path, and what it says and has recorded decides
 * (core/verdict/share.h says how). Nothing here makes a system call on the
 * path.
 *
 * A record is kept in this process until the files that it came from or the
 * mounts change: one poll(2) a question and, when it was not asked for trust_ms
 * or a check would follow, two stat(2) of files of the store.
 *
 * Not to be called by two threads at the same time. SIGCHLD may be handled in
 * any way: the end of the program is learnt from a pipe.
 */
#ifndef PINGPONG_VFS_GATE_H
#define PINGPONG_VFS_GATE_H

#include "core/verdict/share.h"

/* Where all is that is asked; a test has its own */
struct gate_places {
	const char *statedir;		/* STATEDIR */
	const char *rundir;		/* RUNDIR */
	const char *mountinfo;		/* "/proc/self/mountinfo" */
	const char *command;		/* "/usr/bin/pingpong" */
	unsigned trust_ms;		/* so long what was read of the store
					 * is taken for what is there */
};

/*
 * Ask whether the share, which is to need something (share_uses()), can be let
 * in. timeout_ms: to wait for a check. *answer is filled in any case, its
 * strings are children of mem_ctx, static, or there until the next call.
 * UNKNOWN: there is no verdict, with the reason.
 */
void gate_ask(TALLOC_CTX *mem_ctx, const struct gate_places *places,
	      const struct share *share, unsigned timeout_ms,
	      struct share_answer *answer);

/*
 * May something be said of a share now? True at most once in interval_s
 * seconds, whatever process of this host asks. True also where that cannot be
 * told: better said twice than not at all.
 */
bool gate_may_say(const char *rundir, const char *share, unsigned interval_s);

#endif
