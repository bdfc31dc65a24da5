/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * `use mmap = no`: whether it is called for, and setting it
 *
 * It concerns TDB files only, and costs much. With ctdbd's `tdb mutexes` no
 * clustered program of Samba's would start with it, nor do the tools work
 * beside a running smbd: so it is set only where this ctdbd was started without
 * mutexes, and only before services start. See "use mmap" in the manual.
 */
#ifndef PINGPONG_CTDB_EVENTS_MMAP_H
#define PINGPONG_CTDB_EVENTS_MMAP_H

#include "ctdb-events/tdbdirs.h"

/* ---- the policy --------------------------------------------------------- */

struct mmap_facts {
	enum on_mmap_fail policy;
	const struct tdb_dirs *dirs;
	/* A file system whose mappings were found incoherent across nodes, one
	 * line; NULL: none was */
	const char *failure;
	bool mutexes;		/* this ctdbd was started with tdb mutexes */
	bool services;		/* are running, or may start any moment */
};

enum mmap_action { MMAP_NOTHING, MMAP_SET, MMAP_TAKE_BACK };

struct mmap_decision {
	enum mmap_action action;
	bool refuse;		/* services must not start like this */
	const char *line;	/* for the log, a child of mem_ctx; NULL: none,
				 * or no memory */
};

/* A pure function of the facts */
struct mmap_decision mmap_decide(TALLOC_CTX *mem_ctx,
				 const struct mmap_facts *facts);

/* ---- the agent's step --------------------------------------------------- */

/*
 * At the agent's start: does this ctdbd use mutexes? In init (running false) by
 * ctdb.conf, which ctdbd has just read, and noted in RUNDIR; later by that
 * note. With mutexes, what we had set in the include file is taken back,
 * without reading Samba's configuration, which nobody could with it.
 *
 * Waits, some seconds at most. Returns whether it does; also if that is not
 * known.
 */
bool mmap_prepare(struct tevent_context *ev, const struct options *options,
		  bool running);

/* Was a ctdbd last started without mutexes, by the note in RUNDIR? */
bool mmap_without_mutexes(void);

/*
 * Check the directories that hold TDBs, decide, and do it. options, worker
 * must outlive the request. services: as in the facts, looked at when it is
 * decided.
 *
 * mmap_recv() returns 0 with *refuse and *lines, NULL-terminated, a child of
 * mem_ctx, or NULL; else an errno as tdbdirs_recv(), with *lines.
 */
struct tevent_req *mmap_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			     const struct options *options,
			     const char *worker, bool mutexes,
			     const bool *services);
int mmap_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx, bool *refuse,
	      const char ***lines);

#endif
