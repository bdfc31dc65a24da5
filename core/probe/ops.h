/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Carrying out requests (core/probe/probe.h) in a worker
 */
#ifndef PINGPONG_PROBE_OPS_H
#define PINGPONG_PROBE_OPS_H

#include <signal.h>

#include "core/probe/dir.h"
#include "core/probe/probe.h"
#include "core/probe/ring.h"

struct probe_slot {
	int fd;			/* -1: free */
	uint8_t *map;		/* or NULL */
	size_t map_len;
};

struct probe_worker {
	struct probe_dir dir;
	bool keeper;		/* it removes the directory at its end */
	struct probe_slot slots[PROBE_SLOTS];
	struct ring ring;
	bool ringing;		/* the ring holds a byte */
	size_t log_told;	/* steps of its log that were sent */
	char *log_text;		/* in which they are sent, or NULL */
};

/* place: descriptor of the directory under test. */
void probe_worker_init(struct probe_worker *worker, int place);

/* Carry out one request; may block for as long as the file system does. */
void probe_worker_do(struct probe_worker *worker,
		     const struct probe_request *request,
		     struct probe_answer *answer);

/* Handler of the signal that ends a worker: what waits gives up, and so does
 * whatever waits from now on. */
void probe_worker_end(int sig);

#endif
