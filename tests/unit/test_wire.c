/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Frames: structs as JSON and back, and streams of them in pieces, too long,
 * broken, never read.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/member/wire.h"

/* ---- structs ------------------------------------------------------------- */

/* every field is told, and comes back */
static void test_request(void **state)
{
	const struct probe_request all = {
		.op = PROBE_RING, .slot = 63, .family = PROBE_OFD, .type = 1,
		.wait = true, .make = true, .keeper = true, .append = true,
		.start = UINT64_MAX, .len = 1ULL << 63, .value = 7,
		.count = 8, .patience_ms = 9, .deadline_ms = 10,
		.name = "probe.1", .name2 = "probe.2", .nlocks = 11, .io = 3,
		.window_ms = 12,
	};
	struct probe_request back = {};
	json_t *frame = wire_from_request(&all);
	json_t *again = NULL;

	(void)state;
	assert_int_equal(json_object_size(frame), 19);
	assert_int_equal(wire_to_request(frame, &back), 0);
	assert_int_equal(back.start, all.start);
	assert_string_equal(back.name2, all.name2);
	again = wire_from_request(&back);
	assert_true(json_equal(frame, again));
	json_decref(again);
	json_decref(frame);
}

static void test_answer(void **state)
{
	const struct probe_answer all = {
		.err = EAGAIN, .ns = 1, .type = 2, .start = UINT64_MAX,
		.len = 3, .pid = -1, .count = 4, .wrong = 5, .at = 6,
		.value = UINT64_MAX, .dev = 7, .inode = 1ULL << 63,
		.size = 8, .fsid = 9, .turns = 10, .position = 11,
		.frozen = true, .p50_ns = 16, .p99_ns = 17, .max_ns = 18,
		.failed = "unlock", .log = "steps", .clock_ns = 19,
	};
	struct probe_answer back = {};
	json_t *frame = wire_from_answer(&all);
	json_t *again = NULL;

	(void)state;
	assert_int_equal(json_object_size(frame), 23);
	assert_int_equal(wire_to_answer(frame, &back), 0);
	assert_int_equal(back.inode, all.inode);
	assert_int_equal(back.pid, -1);
	again = wire_from_answer(&back);
	assert_true(json_equal(frame, again));
	json_object_set_new(frame, "err", json_integer(-EAGAIN));
	assert_int_equal(wire_to_answer(frame, &back), EPROTO);
	json_decref(again);
	json_decref(frame);
}

static void test_every_operation(void **state)
{
	unsigned op;

	(void)state;
	for (op = 0; op < PROBE_OPS; op++) {
		const struct probe_request request = {
			.op = (enum probe_op)op,
		};
		struct probe_request back = { .op = PROBE_OPS };
		json_t *frame = wire_from_request(&request);

		assert_non_null(wire_op_name((enum probe_op)op));
		/* what is zero is not told */
		assert_int_equal(json_object_size(frame), 1);
		assert_int_equal(wire_to_request(frame, &back), 0);
		assert_int_equal(back.op, op);
		json_decref(frame);
	}
}

static void test_bad_requests(void **state)
{
	static const char *const bad[] = {
		"{}",
		"{\"op\":\"sing\"}",
		"{\"op\":3}",
		"{\"op\":\"lock\",\"slot\":\"1\"}",
		"{\"op\":\"lock\",\"slot\":1.5}",
		"{\"op\":\"lock\",\"slot\":2147483648}",
		"{\"op\":\"lock\",\"slot\":-2147483649}",
		"{\"op\":\"lock\",\"start\":true}",
		"{\"op\":\"lock\",\"wait\":1}",
		"{\"op\":\"open\",\"name\":7}",
		"{\"op\":\"open\",\"name\":null}",
		/* 80 characters do not leave room for the end */
		("{\"op\":\"open\",\"name\":\"0123456789012345678901234567890123456"
		 "7890123456789012345678901234567890123456789\"}"),
	};
	struct probe_request request = {};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		json_t *frame = json_loads(bad[i], 0, NULL);

		assert_non_null(frame);
		assert_int_equal(wire_to_request(frame, &request), EPROTO);
		json_decref(frame);
	}
	assert_int_equal(wire_to_request(NULL, &request), EPROTO);
}

static void test_unknown_fields(void **state)
{
	json_t *frame = json_pack("{ss si}", "op", "nop", "tomorrow", 1);
	struct probe_request request = {};

	(void)state;
	assert_int_equal(wire_to_request(frame, &request), 0);
	json_decref(frame);
}

static void expect_text(const char *text, const char *want)
{
	json_t *json = wire_text(text);

	assert_string_equal(json_string_value(json), want);
	json_decref(json);
}

static void test_text(void **state)
{
	(void)state;
	expect_text("", "");
	expect_text("/srv/\xc3\xa4", "/srv/\xc3\xa4");
	expect_text("/srv/\xc3\xa4\xff", "/srv/\\xc3\\xa4\\xff");
}

/* ---- a stream ------------------------------------------------------------ */

struct bed {
	struct tevent_context *ev;
	struct wire *wire;
	int other;		/* the other end, as plain descriptor */
	unsigned frames;
	json_int_t last;	/* "n" of the last frame */
	bool gone;
	int err;
	bool free_in_frame;
};

static void frame_came(json_t *frame, void *private_data)
{
	struct bed *bed = private_data;

	bed->frames++;
	bed->last = json_integer_value(json_object_get(frame, "n"));
	if (bed->free_in_frame) {
		TALLOC_FREE(bed->wire);
	}
}

static void wire_went(int err, void *private_data)
{
	struct bed *bed = private_data;

	assert_false(bed->gone);
	bed->gone = true;
	bed->err = err;
	TALLOC_FREE(bed->wire);
}

static int set_up(void **state)
{
	struct bed *bed = talloc_zero(NULL, struct bed);
	int sock[2];

	bed->ev = tevent_context_init(bed);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    sock), 0);
	bed->wire = wire_create(bed, bed->ev, sock[0], sock[0], frame_came,
				wire_went, bed);
	assert_non_null(bed->wire);
	bed->other = sock[1];
	*state = bed;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *bed = *state;

	close(bed->other);
	talloc_free(bed);
	return 0;
}

static void say(struct bed *bed, const char *text)
{
	assert_int_equal(write(bed->other, text, strlen(text)),
			 strlen(text));
}

static void until_frames(struct bed *bed, unsigned n)
{
	while (bed->frames < n && !bed->gone) {
		assert_int_equal(tevent_loop_once(bed->ev), 0);
	}
	assert_int_equal(bed->frames, n);
}

static void until_gone(struct bed *bed, int err)
{
	while (!bed->gone) {
		assert_int_equal(tevent_loop_once(bed->ev), 0);
	}
	assert_int_equal(bed->err, err);
}

static void test_pieces(void **state)
{
	static const char text[] = "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n";
	struct bed *bed = *state;
	unsigned i;

	say(bed, text);
	until_frames(bed, 3);
	assert_int_equal(bed->last, 3);
	for (i = 0; i < strlen(text); i++) {
		assert_int_equal(write(bed->other, text + i, 1), 1);
		assert_int_equal(tevent_loop_once(bed->ev), 0);
	}
	assert_int_equal(bed->frames, 6);
	say(bed, "{\"n\"");
	assert_int_equal(tevent_loop_once(bed->ev), 0);
	say(bed, ":4}\n{\"n\":5}\n{");
	until_frames(bed, 8);
	assert_int_equal(bed->last, 5);
}

static void test_longest_line(void **state)
{
	static char line[WIRE_MAX_FRAME];
	struct bed *bed = *state;
	const char *p = line;

	memset(line, ' ', sizeof(line));
	memcpy(line, "{\"n\":9}", 7);
	line[sizeof(line) - 1] = '\n';
	fcntl(bed->other, F_SETFL, O_NONBLOCK);
	while (bed->frames == 0 && !bed->gone) {
		ssize_t n = write(bed->other, p,
				  (size_t)(line + sizeof(line) - p));

		p += n > 0 ? n : 0;
		assert_int_equal(tevent_loop_once(bed->ev), 0);
	}
	assert_int_equal(bed->last, 9);
}

static void test_too_long(void **state)
{
	static char line[WIRE_MAX_FRAME];
	struct bed *bed = *state;
	const char *p = line;

	memset(line, ' ', sizeof(line));
	line[0] = '{';
	fcntl(bed->other, F_SETFL, O_NONBLOCK);
	while (!bed->gone) {
		ssize_t n = write(bed->other, p,
				  (size_t)(line + sizeof(line) - p));

		p += n > 0 ? n : 0;
		assert_int_equal(tevent_loop_once(bed->ev), 0);
	}
	assert_int_equal(bed->err, EMSGSIZE);
}

static void test_no_json(void **state)
{
	struct bed *bed = *state;

	say(bed, "{\"n\":1}\nnonsense\n{\"n\":2}\n");
	until_gone(bed, EPROTO);
	assert_int_equal(bed->frames, 1);
}

static void test_no_object(void **state)
{
	say(*state, "[1]\n");
	until_gone(*state, EPROTO);
}

static void test_duplicate_keys(void **state)
{
	say(*state, "{\"n\":1,\"n\":2}\n");
	until_gone(*state, EPROTO);
}

static void test_end(void **state)
{
	struct bed *bed = *state;

	say(bed, "{\"n\":1}\n{\"n\"");
	shutdown(bed->other, SHUT_WR);
	until_gone(bed, ECONNRESET);
	assert_int_equal(bed->frames, 1);
}

static void test_freed_by_frame(void **state)
{
	struct bed *bed = *state;

	bed->free_in_frame = true;
	say(bed, "{\"n\":1}\n{\"n\":2}\n");
	until_frames(bed, 1);
	assert_null(bed->wire);
	assert_false(bed->gone);
}

/* What does not fit waits, and comes in order. */
static void test_backlog(void **state)
{
	static char buf[WIRE_MAX_FRAME];
	struct bed *bed = *state;
	json_int_t sent = 0, seen = 0;
	size_t used = 0;
	json_t *frame = NULL;
	char *pad = talloc_zero_size(bed, 1001);
	int small = 4096;
	int fd, ret;

	memset(pad, 'x', 1000);
	setsockopt(bed->other, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	for (sent = 0; sent < 200; sent++) {
		ret = wire_send(bed->wire, json_pack("{sI ss}", "n", sent,
						     "pad", pad), -1);
		assert_int_equal(ret, 0);
	}
	fcntl(bed->other, F_SETFL, O_NONBLOCK);
	while (seen < sent) {
		ret = wire_read_blocking(bed->other, buf, &used, &frame, &fd);
		if (ret == EAGAIN) {
			assert_int_equal(tevent_loop_once(bed->ev), 0);
			continue;
		}
		assert_int_equal(ret, 0);
		assert_int_equal(json_integer_value(
					 json_object_get(frame, "n")), seen);
		json_decref(frame);
		seen++;
	}
}

static void test_never_read(void **state)
{
	struct bed *bed = *state;
	char *pad = talloc_zero_size(bed, 10001);
	unsigned i;
	int ret = 0;

	memset(pad, 'x', 10000);
	for (i = 0; i < 10000 && ret == 0; i++) {
		ret = wire_send(bed->wire, json_pack("{ss}", "pad", pad), -1);
	}
	assert_int_equal(ret, ENOBUFS);
}

static void test_sends_that_fail(void **state)
{
	struct bed *bed = *state;
	char *pad = talloc_zero_size(bed, WIRE_MAX_FRAME + 1);

	memset(pad, 'x', WIRE_MAX_FRAME);
	assert_int_equal(wire_send(bed->wire, NULL, -1), ENOMEM);
	assert_int_equal(wire_send(bed->wire, json_pack("{ss}", "pad", pad),
				   -1), EMSGSIZE);
	close(bed->other);
	assert_int_equal(wire_send(bed->wire, json_object(), -1), EPIPE);
	bed->other = -1;
}

/* ---- the worker's side --------------------------------------------------- */

static void test_descriptor(void **state)
{
	static char buf[WIRE_MAX_FRAME];
	struct bed *bed = *state;
	struct stat sent = {}, got = {};
	json_t *frame = NULL;
	size_t used = 0;
	int fd = -1, memfd = memfd_create("test", MFD_CLOEXEC);

	assert_int_equal(wire_send(bed->wire, json_pack("{si}", "n", 1),
				   memfd), 0);
	assert_int_equal(wire_send(bed->wire, json_pack("{si}", "n", 2), -1),
			 0);
	assert_int_equal(wire_read_blocking(bed->other, buf, &used, &frame,
					    &fd), 0);
	json_decref(frame);
	assert_int_not_equal(fd, -1);
	assert_int_equal(fstat(memfd, &sent), 0);
	assert_int_equal(fstat(fd, &got), 0);
	assert_int_equal(sent.st_ino, got.st_ino);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	close(memfd);
	assert_int_equal(wire_read_blocking(bed->other, buf, &used, &frame,
					    &fd), 0);
	assert_int_equal(json_integer_value(json_object_get(frame, "n")), 2);
	json_decref(frame);
	assert_int_equal(fd, -1);
}

static void test_blocking_both_ways(void **state)
{
	static char buf[WIRE_MAX_FRAME];
	struct bed *bed = *state;
	json_t *frame = NULL;
	size_t used = 0;
	int fd;

	assert_int_equal(wire_write_blocking(bed->other,
					     json_pack("{si}", "n", 5)), 0);
	until_frames(bed, 1);
	assert_int_equal(bed->last, 5);
	TALLOC_FREE(bed->wire);
	assert_int_equal(wire_read_blocking(bed->other, buf, &used, &frame,
					    &fd), ECONNRESET);
	assert_int_equal(wire_write_blocking(bed->other, json_object()),
			 EPIPE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_request),
		cmocka_unit_test(test_answer),
		cmocka_unit_test(test_every_operation),
		cmocka_unit_test(test_bad_requests),
		cmocka_unit_test(test_unknown_fields),
		cmocka_unit_test(test_text),
		TEST(test_pieces),
		TEST(test_longest_line),
		TEST(test_too_long),
		TEST(test_no_json),
		TEST(test_no_object),
		TEST(test_duplicate_keys),
		TEST(test_end),
		TEST(test_freed_by_frame),
		TEST(test_backlog),
		TEST(test_never_read),
		TEST(test_sends_that_fail),
		TEST(test_descriptor),
		TEST(test_blocking_both_ways),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
