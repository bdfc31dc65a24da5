/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Questions and answers: matched by number, in time, late, never, and the
 * other side going away.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/member/channel.h"
#include "core/member/wire.h"

/* far more than anything here takes */
#define PATIENCE_MS 20000

struct bed {
	struct tevent_context *ev;
	struct channel *channel;
	int other;
	char buf[WIRE_MAX_FRAME];
	size_t used;
};

static int set_up(void **state)
{
	struct bed *bed = talloc_zero(NULL, struct bed);
	int sock[2];

	bed->ev = tevent_context_init(bed);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    sock), 0);
	bed->channel = channel_create(bed, bed->ev, sock[0], sock[0]);
	assert_non_null(bed->channel);
	bed->other = sock[1];
	*state = bed;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *bed = *state;

	if (bed->other != -1) {
		close(bed->other);
	}
	talloc_free(bed);
	return 0;
}

static void say(struct bed *bed, json_t *frame)
{
	assert_int_equal(wire_write_blocking(bed->other, frame), 0);
}

static void say_hello(struct bed *bed)
{
	say(bed, json_pack("{ss}", "hello", "test"));
}

/* The id of the next question that has come */
static json_int_t hear(struct bed *bed)
{
	json_t *frame = NULL;
	json_int_t id;
	int fd;

	assert_int_equal(wire_read_blocking(bed->other, bed->buf, &bed->used,
					    &frame, &fd), 0);
	id = json_integer_value(json_object_get(frame, "id"));
	json_decref(frame);
	return id;
}

static void hang_up(struct bed *bed)
{
	close(bed->other);
	bed->other = -1;
}

static struct tevent_req *ask(struct bed *bed, unsigned timeout_ms)
{
	struct tevent_req *req = channel_ask_send(
		bed, bed->ev, bed->channel, json_object(), -1, timeout_ms);

	assert_non_null(req);
	return req;
}

/* Its end, and the answer's "n" */
static int end_of(struct bed *bed, struct tevent_req *req, json_int_t *n)
{
	json_t *answer = NULL;
	int ret;

	assert_true(tevent_req_poll(req, bed->ev));
	ret = channel_ask_recv(req, &answer);
	assert_true((ret == 0) == (answer != NULL));
	*n = json_integer_value(json_object_get(answer, "n"));
	json_decref(answer);
	talloc_free(req);
	return ret;
}

static int hello_of(struct bed *bed, unsigned timeout_ms)
{
	struct tevent_req *req = channel_hello_send(bed, bed->ev,
						    bed->channel, timeout_ms);
	json_t *hello = NULL;
	int ret;

	assert_true(tevent_req_poll(req, bed->ev));
	ret = channel_hello_recv(req, &hello);
	assert_true((ret == 0) == (hello != NULL));
	json_decref(hello);
	talloc_free(req);
	return ret;
}

/* ---- hello --------------------------------------------------------------- */

static void test_hello(void **state)
{
	struct bed *bed = *state;

	say_hello(bed);
	assert_int_equal(hello_of(bed, PATIENCE_MS), 0);
	/* it has come, and can be asked for again */
	assert_int_equal(hello_of(bed, PATIENCE_MS), 0);
}

static void test_no_hello(void **state)
{
	assert_int_equal(hello_of(*state, 20), ETIMEDOUT);
}

static void test_another_hello(void **state)
{
	struct bed *bed = *state;

	say(bed, json_pack("{ss}", "motd", "Welcome"));
	assert_int_equal(hello_of(bed, PATIENCE_MS), EPROTO);
}

static void test_end_before_hello(void **state)
{
	struct bed *bed = *state;

	hang_up(bed);
	assert_int_equal(hello_of(bed, PATIENCE_MS), ECONNRESET);
	assert_true(channel_gone(bed->channel));
	assert_int_equal(hello_of(bed, PATIENCE_MS), ECONNRESET);
}

/* ---- questions ----------------------------------------------------------- */

static void test_any_order(void **state)
{
	struct bed *bed = *state;
	struct tevent_req *first = NULL, *second = NULL;
	json_int_t id1, id2, n = 0;

	say_hello(bed);
	first = ask(bed, PATIENCE_MS);
	second = ask(bed, PATIENCE_MS);
	id1 = hear(bed);
	id2 = hear(bed);
	assert_int_not_equal(id1, id2);
	say(bed, json_pack("{sI si}", "id", id2, "n", 2));
	say(bed, json_pack("{sI si}", "id", id1, "n", 1));
	assert_int_equal(end_of(bed, first, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(end_of(bed, second, &n), 0);
	assert_int_equal(n, 2);
}

static void test_late_answer(void **state)
{
	struct bed *bed = *state;
	struct tevent_req *req = NULL;
	json_int_t id, n = 0;

	say_hello(bed);
	req = ask(bed, 20);
	id = hear(bed);
	assert_int_equal(end_of(bed, req, &n), ETIMEDOUT);
	say(bed, json_pack("{sI si}", "id", id, "n", 1));
	req = ask(bed, PATIENCE_MS);
	id = hear(bed);
	say(bed, json_pack("{sI si}", "id", id, "n", 2));
	assert_int_equal(end_of(bed, req, &n), 0);
	assert_int_equal(n, 2);
}

static void test_unasked_answers(void **state)
{
	struct bed *bed = *state;
	struct tevent_req *req = NULL;
	json_int_t id, n = 0;

	say_hello(bed);
	say(bed, json_pack("{si}", "id", 99));
	say(bed, json_pack("{ss}", "id", "x"));
	say(bed, json_pack("{ss}", "hello", "again"));
	req = ask(bed, PATIENCE_MS);
	id = hear(bed);
	say(bed, json_pack("{sI si}", "id", id + 1, "n", 1));
	say(bed, json_pack("{sI si}", "id", id, "n", 2));
	assert_int_equal(end_of(bed, req, &n), 0);
	assert_int_equal(n, 2);
}

static void test_end_during_questions(void **state)
{
	struct bed *bed = *state;
	struct tevent_req *req = NULL;
	json_int_t n = 0;

	say_hello(bed);
	req = ask(bed, PATIENCE_MS);
	hear(bed);
	hang_up(bed);
	assert_int_equal(end_of(bed, req, &n), ECONNRESET);
	assert_true(channel_gone(bed->channel));
	assert_int_equal(end_of(bed, ask(bed, PATIENCE_MS), &n), ECONNRESET);
}

static void test_broken_line_ends_it(void **state)
{
	struct bed *bed = *state;
	struct tevent_req *req = NULL;
	json_int_t n = 0;

	say_hello(bed);
	req = ask(bed, PATIENCE_MS);
	hear(bed);
	assert_int_equal(write(bed->other, "oops\n", 5), 5);
	assert_int_equal(end_of(bed, req, &n), ECONNRESET);
	assert_true(channel_gone(bed->channel));
}

static void test_freed_channel(void **state)
{
	struct bed *bed = *state;
	struct tevent_req *first = NULL, *second = NULL;
	json_int_t n = 0;

	first = ask(bed, PATIENCE_MS);
	second = ask(bed, PATIENCE_MS);
	TALLOC_FREE(bed->channel);
	assert_int_equal(end_of(bed, first, &n), ECONNRESET);
	assert_int_equal(end_of(bed, second, &n), ECONNRESET);
}

static void test_freed_question(void **state)
{
	struct bed *bed = *state;
	struct tevent_req *req = NULL;
	json_int_t id, n = 0;

	say_hello(bed);
	talloc_free(ask(bed, PATIENCE_MS));
	id = hear(bed);
	say(bed, json_pack("{sI}", "id", id));
	req = ask(bed, PATIENCE_MS);
	say(bed, json_pack("{sI si}", "id", hear(bed), "n", 3));
	assert_int_equal(end_of(bed, req, &n), 0);
	assert_int_equal(n, 3);
}

static void free_channel(struct tevent_req *req)
{
	struct bed *bed = tevent_req_callback_data(req, struct bed);

	TALLOC_FREE(bed->channel);
}

static void test_freed_by_answer(void **state)
{
	struct bed *bed = *state;
	struct tevent_req *first = NULL, *second = NULL;
	json_int_t n = 0;

	say_hello(bed);
	first = ask(bed, PATIENCE_MS);
	second = ask(bed, PATIENCE_MS);
	tevent_req_set_callback(first, free_channel, bed);
	say(bed, json_pack("{sI si}", "id", hear(bed), "n", 4));
	assert_int_equal(end_of(bed, second, &n), ECONNRESET);
	assert_null(bed->channel);
	assert_int_equal(end_of(bed, first, &n), 0);
	assert_int_equal(n, 4);
}

static void test_no_frame(void **state)
{
	struct bed *bed = *state;
	struct tevent_req *req = NULL;
	json_int_t n = 0;

	req = channel_ask_send(bed, bed->ev, bed->channel, NULL, -1,
			       PATIENCE_MS);
	assert_int_equal(end_of(bed, req, &n), ENOMEM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hello),
		TEST(test_no_hello),
		TEST(test_another_hello),
		TEST(test_end_before_hello),
		TEST(test_any_order),
		TEST(test_late_answer),
		TEST(test_unasked_answers),
		TEST(test_end_during_questions),
		TEST(test_broken_line_ends_it),
		TEST(test_freed_channel),
		TEST(test_freed_question),
		TEST(test_freed_by_answer),
		TEST(test_no_frame),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
