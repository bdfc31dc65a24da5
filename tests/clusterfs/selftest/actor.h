/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An actor is a process of a node that does one system call at a time, as
 * it is told, so that several of them can be led through a scene step by
 * step. An actor that does not answer can be left alone, looked at, killed.
 */

#ifndef ACTOR_H
#define ACTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PATIENCE 20000		/* ms that a call may take at most */
#define A_WHILE 300		/* ms after which a call counts as waiting */

enum act {
	ACT_OPEN,		/* a: flags; path; the slot gets it */
	ACT_CLOSE,
	ACT_LOCK,		/* a: command, b: type, c: start, d: len */
	ACT_GETLK,		/* the same; v: type, start, len, pid */
	ACT_FLOCK,		/* a: operation */
	ACT_READ,		/* a: offset, b: size; v: last byte */
	ACT_WRITE,		/* a: offset, b: size, c: byte */
	ACT_MAP,		/* a: size */
	ACT_STORE,		/* a: offset, b: byte */
	ACT_LOAD,		/* a: offset; ret: byte */
	ACT_STAT,		/* path; v: size, ino */
	ACT_FSTAT,
	ACT_TRUNCATE,		/* a: size */
	ACT_FSYNC,
	ACT_FORK_CLOSE,		/* a child closes the inherited descriptor */
	ACT_LEASE,		/* a: type */
	ACT_LEASE_BROKEN,	/* ret: 1 if we were told to give it up */
	ACT_UNLINK,		/* path */
	ACT_MKDIR,		/* path */
	ACT_RMDIR,		/* path */
	ACT_LIST,		/* path of a directory; name; ret: 1 if so */
	ACT_ALARM,		/* a: ms between signals that interrupt */
};

struct call {
	enum act act;
	int slot;
	int64_t a, b, c, d;
	char path[256];
	char name[64];
};

struct answer {
	int64_t ret;		/* as of the system call */
	int err;		/* errno, if ret is -1 */
	int64_t v[4];
};

struct actor {
	pid_t pid;
	int fd;
};

/* ns: a process whose mount namespace to live in, or 0. */
void actor_start(struct actor *actor, pid_t ns);
/* End it, by its own exit or by SIGKILL, and wait until it is gone. */
void actor_end(struct actor *actor);
void actor_kill(struct actor *actor);
/* One call and its answer; err is ETIME if there is none in time. */
struct answer act(struct actor *actor, struct call call);
/* The same in two steps; false: no answer within ms. */
void act_begin(struct actor *actor, struct call call);
bool act_end(struct actor *actor, int ms, struct answer *answer);
/* State letter of the actor's process: 'D', 'S', 'Z', ... */
char actor_state(const struct actor *actor);

#endif /* ACTOR_H */
