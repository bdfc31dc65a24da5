/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A run: members at all places, the checks asked for one after the other
 *
 * run_send() starts the members, has the first make the run's directory and
 * the others find it, carries out the checks in the order of the catalogue,
 * removes the directory, and hands over the results. It ends within its time
 * whatever the file system does; what there was no time for is skipped.
 */
#ifndef PINGPONG_CHECKS_RUN_H
#define PINGPONG_CHECKS_RUN_H

#include <stdio.h>

#include "core/checks/check.h"
#include "core/member/member.h"

enum run_level {
	RUN_LIGHT,	/* DOOR_INIT, DOOR_AGENT: about a second */
	RUN_QUICK,
	RUN_DEFAULT,
	RUN_THOROUGH,
};

/* A second of a sweep */
struct run_rate {
	const char *mode;		/* "locks", "-rw", "-rwm" */
	unsigned members;		/* that take part */
	unsigned second;		/* 0 .. of this step */
	double turns_per_s;		/* of all together */
	uint64_t increment;		/* of the data, as ping_pong has it;
					 * 0: none */
};

struct run_options {
	struct member_reach reach;
	const char **places;		/* NULL-terminated; a single one gets
					 * two members */
	const struct check **checks;	/* NULL-terminated */
	enum run_level level;
	unsigned timeout_ms;		/* for the whole run */
	unsigned thorough_ms;		/* RUN_THOROUGH: for the rare faults */
	uint64_t seed;
	FILE *history;			/* core/checks/record.h; or NULL */
	unsigned step_ms;		/* sweep: for each number of members */
	/* Told each second of a sweep; or NULL */
	void (*rate)(const struct run_rate *rate, void *private_data);
	/* Called before each check, and with NULL at the end; or NULL. */
	void (*progress)(const char *check, unsigned done, unsigned total,
			 void *private_data);
	void *private_data;
};

struct run_result {
	struct check_result **results;	/* one a check asked for */
	size_t num_results;
	const struct member_info **members;
	size_t num_members;
	bool same_directory;
	const char *not_same;		/* else one line with both mounts */
};

/*
 * run_recv() returns 0 with *result, a child of mem_ctx, also when members
 * were lost or hung on the way: the outcomes say so. Else *why is one line
 * for a person and the errno is:
 *   ENOENT, ENOTDIR, ELOOP, ENAMETOOLONG: a place is none
 *   EEXIST: two places are the same directory of one mount
 *   EACCES, EPERM, EROFS, ENOSPC, EDQUOT, ...: the run's directory cannot be
 *     made there
 *   EHOSTUNREACH, EPROTO: a place's agent
 *   ENOMEM, or the errno of a process start.
 */
struct tevent_req *run_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			    const struct run_options *options);
int run_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
	     struct run_result **result, const char **why);

/* ---- for the checks ----------------------------------------------------- */

unsigned run_num_members(const struct run *run);
struct member *run_member(const struct run *run, unsigned number);

/* "0 (/mnt/a)" */
const char *run_member_name(TALLOC_CTX *mem_ctx, const struct run *run,
			    unsigned number);
enum run_level run_level(const struct run *run);

const struct run_options *run_options(const struct run *run);

/* ms left of the run's time */
unsigned run_left_ms(const struct run *run);

/* ms that one operation may take: CTDB's 5 s in which a lock must be refused
 * or granted, at most half of the run's time and what is left of it */
unsigned run_op_ms(const struct run *run);

/* A file name of this run that nobody has used or looked up yet. */
void run_file_name(struct run *run, char name[PROBE_NAME_MAX]);

/*
 * The same for files NAME.M, each made by member M. True: they are there,
 * empty, since a while: where names are found late (run_note_name()), many
 * are made ahead, so that they are waited for once and not by each check.
 */
bool run_files(struct run *run, char name[PROBE_NAME_MAX]);

/*
 * A name that one member has made is looked for by the others so long (ms): it
 * is what a check begins with, not what it is about. dir.visibility says how
 * late names come.
 */
unsigned run_name_ms(const struct run *run);

/* How long a member had to look for a name that was there, found or not */
void run_note_name(struct run *run, uint64_t waited_ms, bool found);

/* Next number of the generator, which begins with each check by the run's
 * seed. */
uint64_t run_random(struct run *run);

/* Where its operations are recorded, or NULL; the check that runs, or NULL */
FILE *run_history(const struct run *run);
const char *run_check(const struct run *run);

/* RUN_THOROUGH goes on with a check that counts until so rare a violation can
 * be excluded (95 %), or */
#define RUN_THOROUGH_RATE 1e-5
/* as long as this says; 0 at other levels. */
unsigned run_thorough_ms(const struct run *run);

/*
 * One call of a member, as member_call_send(), with the run's way to treat a
 * silent or lost worker: it looks what the worker is doing, kills it and
 * starts a new one that opens the run's directory again.
 *
 * run_call_recv() returns 0 with *answer; else the call has no answer:
 * ETIMEDOUT: it hung; EAGAIN: the worker got no processor in that time, which
 * says nothing about the file system; ETIME: the run's time was over before
 * one could call it a hang; ENOTCONN: the file system is not there any more;
 * EHOSTDOWN: another member's host does not answer either, and may hold what
 * this one waits for; ECONNRESET: the worker or its host is gone. *autopsy (a
 * child of mem_ctx, or NULL) is what a person is told of it.
 * run_silence_text() is one line for all of these but ETIMEDOUT.
 */
struct tevent_req *run_call_send(TALLOC_CTX *mem_ctx,
				 struct tevent_context *ev, struct run *run,
				 unsigned member,
				 const struct probe_request *request, int fd,
				 unsigned timeout_ms);
int run_call_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		  struct probe_answer *answer, const char **autopsy);
const char *run_silence_text(TALLOC_CTX *mem_ctx, const struct run *run,
			     int err, unsigned member);

/*
 * Kill a member's worker and start a new one in the run's directory.
 * run_kill_recv() returns 0; ETIMEDOUT: SIGKILL did not end it; ETIME: too
 * little time was left for it or for a new one; EAGAIN: the new one got no
 * processor; ENOTCONN: the file system is not there any more; ECONNRESET: its
 * host is gone, or no new one could begin there.
 * *autopsy as run_call_recv()'s, after ETIMEDOUT.
 */
struct tevent_req *run_kill_send(TALLOC_CTX *mem_ctx,
				 struct tevent_context *ev, struct run *run,
				 unsigned member);
int run_kill_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		  const char **autopsy);

/* What hangs or is refused (NEEDS_*): later checks that need it are skipped. */
void run_set_broken(struct run *run, unsigned needs, const char *check,
		    enum outcome outcome);
bool run_broken(const struct run *run, unsigned needs);

/*
 * From the first check on after lock.supported that leaves their workers
 * alive, the first RUN_KEEPERS members keep the write lock on byte 0 of a file
 * of their own in PROBE_SLOT_KEPT, which nobody touches: its name, or NULL if
 * the member keeps none, and since when (ring_now()).
 */
#define RUN_KEEPERS 4
const char *run_kept(const struct run *run, unsigned member,
		     uint64_t *since_ns);

/* Note how long a lock call took that nobody made wait. */
void run_note_lock(struct run *run, uint64_t ns);

/* The mean of such times (ns, at least 1): what a lock costs here */
uint64_t run_lock_ns(const struct run *run);

/* Lock calls cost so much that a check makes the fewest that prove anything,
 * with one pair */
bool run_lean(const struct run *run);

/* Turns a second of the ring alone [0] and together [1] as far as a check of
 * this run has measured them, else 0; the checks rate.* share them. */
double *run_rates(struct run *run);

/* Lock calls are so slow that members had better not queue for them, or it
 * is not known yet how slow they are */
bool run_slow(const struct run *run);

#endif
