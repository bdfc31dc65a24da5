/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Frames between coordinator, agent and worker
 *
 * A frame is one JSON object on one line, at most WIRE_MAX_FRAME bytes with
 * its newline. The same frames travel over a socketpair (worker), over pipes
 * (agent by a command) and over TCP (resident agents).
 *
 * Worker: says {"hello":"worker","err":0,"info":{...}} or {"hello":"worker",
 * "err":ERRNO} once it has tried to open its directory, then answers each
 * request {"id":N,"op":NAME,...} with {"id":N,...}. Fields that are zero or
 * empty are left out.
 *
 * Agent: see core/member/agent.h.
 */
#ifndef PINGPONG_MEMBER_WIRE_H
#define PINGPONG_MEMBER_WIRE_H

#include <stdbool.h>
#include <jansson.h>
#include <talloc.h>
#include <tevent.h>

#include "core/probe/probe.h"

#define WIRE_MAX_FRAME 65536

/* Bytes that may wait to be sent before the other side counts as gone */
#define WIRE_MAX_BACKLOG (4 * WIRE_MAX_FRAME)

struct wire;

/* A frame has come; it is the wire's and goes after the call. */
typedef void (*wire_frame_fn)(json_t *frame, void *private_data);

/*
 * The other side is gone: ECONNRESET; EMSGSIZE: it sent too long a line;
 * EPROTO: a line that is no JSON object; ENOBUFS: it does not read. Called
 * once and last; the wire may be freed in it.
 */
typedef void (*wire_gone_fn)(int err, void *private_data);

/*
 * Speak frames over two descriptors (may be the same), which are made
 * non-blocking and closed with the wire. Returns NULL for want of memory,
 * then the descriptors stay open.
 */
struct wire *wire_create(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			 int rfd, int wfd, wire_frame_fn frame_fn,
			 wire_gone_fn gone_fn, void *private_data);

/*
 * Send a frame; takes the reference (also of NULL: ENOMEM). fd: a descriptor
 * that goes with it over a Unix socket, or -1.
 *
 * Returns 0, ENOMEM, EMSGSIZE, ENOBUFS or the errno of the write.
 */
int wire_send(struct wire *wire, json_t *frame, int fd);

/* Something has come that was not read yet. */
bool wire_unread(const struct wire *wire);

/* Requests and answers as frames; NULL for want of memory. */
json_t *wire_from_request(const struct probe_request *request);
json_t *wire_from_answer(const struct probe_answer *answer);

/* Back again. Returns 0 or EPROTO: a field of another type or too long, an
 * unknown operation, an err that is no errno. Unknown fields are passed over. An answer's log stays the
 * frame's. */
int wire_to_request(const json_t *frame, struct probe_request *request);
int wire_to_answer(const json_t *frame, struct probe_answer *answer);

/* A string as JSON; what is no UTF-8 (a path may be none) has its bytes above
 * 127 written as \xNN. NULL for want of memory. */
json_t *wire_text(const char *text);

/* "lock", "open", ... */
const char *wire_op_name(enum probe_op op);

/*
 * The worker's side, blocking: read one frame from a descriptor.
 * buf: WIRE_MAX_FRAME bytes, *used kept by the caller between calls. *fd: a
 * descriptor that came along, or -1.
 * Returns 0, ECONNRESET at its end, EMSGSIZE, EPROTO, EINTR or the errno.
 */
int wire_read_blocking(int sock, char *buf, size_t *used, json_t **frame,
		       int *fd);
int wire_write_blocking(int sock, json_t *frame);

#endif
