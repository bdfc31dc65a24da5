/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Questions and answers over a stream of frames
 *
 * The other side (a worker, an agent) speaks first: a frame without "id", its
 * hello. Then each question gets a number ("id") and the answer carries it.
 * Answers may come in any order; one that comes after its time is dropped.
 *
 * talloc_free() of a channel closes it; questions under way end with
 * ECONNRESET.
 */
#ifndef PINGPONG_MEMBER_CHANNEL_H
#define PINGPONG_MEMBER_CHANNEL_H

#include <stdbool.h>
#include <jansson.h>
#include <stdint.h>
#include <talloc.h>
#include <tevent.h>

struct channel;

/* Over descriptors as in wire_create(), which takes them. */
struct channel *channel_create(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			       int rfd, int wfd);

/* The other side is gone. */
bool channel_gone(const struct channel *channel);

/*
 * Wait for the hello; at once when it has come.
 *
 * channel_hello_recv() returns 0 with *hello (a new reference), ETIMEDOUT,
 * ECONNRESET, EPROTO (something else was said), or ENOMEM.
 */
struct tevent_req *channel_hello_send(TALLOC_CTX *mem_ctx,
				      struct tevent_context *ev,
				      struct channel *channel,
				      unsigned timeout_ms);
int channel_hello_recv(struct tevent_req *req, json_t **hello);

/*
 * Ask: takes the reference to the frame (also of NULL: ENOMEM). fd: goes
 * with it over a Unix socket, or -1; stays open here.
 *
 * channel_ask_recv() returns 0 with *answer (a new reference), ETIMEDOUT,
 * ECONNRESET, or ENOMEM.
 */
struct tevent_req *channel_ask_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    struct channel *channel, json_t *frame,
				    int fd, unsigned timeout_ms);
int channel_ask_recv(struct tevent_req *req, json_t **answer);

/* The errno a request ended with (ETIMEDOUT, ENOMEM, its own), 0: done. */
int channel_req_error(struct tevent_req *req);

/* CLOCK_MONOTONIC */
uint64_t channel_now_ms(void);

/* Absolute time for tevent_req_set_endtime() */
struct timeval channel_deadline(unsigned timeout_ms);

#endif
