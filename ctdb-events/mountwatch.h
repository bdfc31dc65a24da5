/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Tell when mounts of this mount namespace change: by poll(2) on
 * /proc/self/mountinfo, which touches no file system
 */
#ifndef PINGPONG_CTDB_EVENTS_MOUNTWATCH_H
#define PINGPONG_CTDB_EVENTS_MOUNTWATCH_H

#include <talloc.h>
#include <tevent.h>

struct mountwatch;

/*
 * changed_fn is called after any mount, unmount or remount. Returns the
 * watch, a child of mem_ctx; NULL for want of memory or descriptors.
 */
struct mountwatch *mountwatch_create(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     void (*changed_fn)(void *private_data),
				     void *private_data);

#endif
