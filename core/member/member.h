/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A member: one participant of a run, at one place
 *
 * A place is [HOST:]PATH, a directory as that host sees it (an IPv6 address
 * as HOST in brackets). Behind a member
 * stands a worker process at that place, the only one that touches the file
 * system. On this host the member supervises the worker itself; on another
 * host an agent does ("pingpong agent" over stdio, or a resident agent), and
 * the same requests travel over the channel. Callers see no difference.
 *
 * Calling sequence: member_start_send(), then any number of
 * member_call_send(), at most one at a time a member, member_kill_send() to
 * kill the worker (SIGKILL) and start a new one; talloc_free() ends it: the
 * worker's channel is closed and the worker killed, without waiting.
 *
 * Every call has a deadline. A worker that does not answer in time ends the
 * call with ETIMEDOUT; member_autopsy_send() then tells what it is doing.
 */
#ifndef PINGPONG_MEMBER_MEMBER_H
#define PINGPONG_MEMBER_MEMBER_H

#include <stdbool.h>
#include <stdint.h>
#include <talloc.h>
#include <tevent.h>

#include "core/probe/probe.h"

/* What a worker and its host say of a place; strings are the member's */
struct member_info {
	unsigned number;	/* 0 .. n-1, in the order of the places */
	const char *name;	/* the place, as given; made unique by "#2" */
	const char *host;	/* uname's nodename */
	const char *path;	/* as given, without HOST: */
	const char *resolved;	/* what the worker opened (/proc/self/fd) */
	const char *kernel;	/* uname's release */
	const char *boot_id;	/* /proc/sys/kernel/random/boot_id */
	uint64_t mnt_ns;	/* inode of /proc/self/ns/mnt */
	uint64_t mount_id;	/* statx(2) */
	const char *mount_line;	/* its whole line in mountinfo */
	const char *fstype, *source, *options;	/* options: mount's and super
						 * block's, joined by "," */
	unsigned major, minor;	/* of the mount, in mountinfo */
	uint64_t st_dev, inode;	/* of the directory */
	uint64_t fsid;		/* f_fsid of statfs(2), 0: none */
};

struct member;

/* Two members on the same host and super block prove no more than one. */
bool member_same_node(const struct member_info *a,
		      const struct member_info *b);

const struct member_info *member_info(const struct member *member);

/* A copy that outlives the member; NULL for want of memory. */
struct member_info *member_info_copy(TALLOC_CTX *mem_ctx,
				     const struct member_info *info);

/* A connection at whose other end an agent serves */
struct member_link {
	const char *host;	/* as the place names it */
	int rfd, wfd;		/* taken by the member that uses them */
};

/*
 * How to reach a place
 *
 * rsh: a command line, split at white space, that is run as "RSH HOST
 * pingpong agent" for places with a HOST; never passed through a shell.
 * links: for the HOSTs that are connected already; each for one member. Ends
 * with a host of NULL; or NULL.
 * connect_ms: how long a HOST's agent may take to greet; 0: as the start.
 * lifetime_ms: an agent ends by itself after this long, should the connection
 * be dead without its knowing; 0: never.
 * said_fn: told each line that comes from a HOST on standard error, and when
 * its version is another one; or NULL.
 *
 * It stays as it is until member_start_recv(), private_data while a member
 * lives.
 */
struct member_reach {
	const char *worker;	/* path of pingpong-worker */
	const char *rsh;
	const struct member_link *links;
	unsigned connect_ms;
	unsigned lifetime_ms;
	void (*said_fn)(const char *host, const char *line,
			void *private_data);
	void *private_data;
};

/*
 * Start a member at a place and have its worker open the directory.
 *
 * number: its number in the run. timeout_ms: for all of it.
 *
 * member_start_recv() hands over the member, a child of mem_ctx, or an errno:
 * ENOENT, ENOTDIR, EACCES, ... of the worker's open of the path; ETIMEDOUT:
 * no answer (*why says of what); EHOSTUNREACH: no agent on the host; EPROTO:
 * another protocol version, or no agent's talk; else of the process start.
 * *why is a line for a person, a child of mem_ctx.
 */
struct tevent_req *member_start_send(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     const struct member_reach *reach,
				     const char *place, unsigned number,
				     unsigned timeout_ms);
int member_start_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		      struct member **member, const char **why);

/*
 * Have the worker carry out one request.
 *
 * fd: a descriptor that goes with it (the ring's ledger), or -1; only for a
 * member on this host, else dropped.
 *
 * member_call_recv() returns 0 with *answer filled (answer->err is the errno
 * of the operation itself), ETIMEDOUT: no answer within timeout_ms,
 * ECONNRESET: the worker or the channel is gone, EBUSY: another call is
 * under way, EPROTO: the answer made no sense.
 */
struct tevent_req *member_call_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    struct member *member,
				    const struct probe_request *request,
				    int fd, unsigned timeout_ms);
int member_call_recv(struct tevent_req *req, struct probe_answer *answer);

/*
 * Kill the worker (SIGKILL) and wait until it is gone, then start a new one
 * at the same place (restart: true). A call under way ends with ECONNRESET.
 *
 * member_kill_recv() returns 0; ETIMEDOUT: it did not die within timeout_ms
 * (D state): the member is stuck and takes no more calls; or an errno of
 * member_start_recv().
 */
struct tevent_req *member_kill_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    struct member *member, bool restart,
				    unsigned timeout_ms);
int member_kill_recv(struct tevent_req *req);

/*
 * Before talloc_free() of a member whose run ends early: the worker shall
 * remove the run's directory before it ends. Does not wait.
 */
void member_finish(struct member *member);

/* Is it reached over a channel? */
bool member_remote(const struct member *member);

/* True when the member's worker hangs for good or its channel is gone. */
bool member_gone(const struct member *member);

/* Take it for gone: its worker is not where it was, and ends with the member */
void member_set_gone(struct member *member);

/*
 * What a silent worker is doing: from /proc/PID of its host.
 */
struct member_autopsy {
	bool found;		/* there is such a process */
	bool blocked;		/* it sleeps in a system call; else it was
				 * running or waiting for a processor */
	char state;		/* as in /proc/PID/stat */
	const char *wchan;
	const char *syscall;	/* name and arguments' line, or the number */
	const char *stack;	/* kernel stack, lines; "" if not readable */
};
struct tevent_req *member_autopsy_send(TALLOC_CTX *mem_ctx,
				       struct tevent_context *ev,
				       struct member *member);
int member_autopsy_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
			struct member_autopsy *autopsy);

#endif
