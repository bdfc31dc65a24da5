/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Histories made by hand, good and bad, and what is to be said of them
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/checks/history.h"

#define LOCK(m, b, from, to) \
	{ .what = HISTORY_LOCK, .member = m, .start = b, .len = 1, \
	  .invoked_ns = from, .answered_ns = to }
#define SHARED(m, b, from, to) \
	{ .what = HISTORY_LOCK, .shared = true, .member = m, .start = b, \
	  .len = 1, .invoked_ns = from, .answered_ns = to }
#define RANGE(m, b, n, from, to) \
	{ .what = HISTORY_LOCK, .member = m, .start = b, .len = n, \
	  .invoked_ns = from, .answered_ns = to }
#define UNLOCK(m, b, from) \
	{ .what = HISTORY_UNLOCK, .member = m, .start = b, .len = 1, \
	  .invoked_ns = from, .answered_ns = HISTORY_NEVER }
#define LEAVE(m, from) \
	{ .what = HISTORY_UNLOCK, .member = m, .invoked_ns = from, \
	  .answered_ns = HISTORY_NEVER }
#define READ(m, p, v, from, to) \
	{ .what = HISTORY_READ, .member = m, .start = p, .value = v, \
	  .invoked_ns = from, .answered_ns = to }
#define WRITE(m, p, v, from, to) \
	{ .what = HISTORY_WRITE, .member = m, .start = p, .value = v, \
	  .invoked_ns = from, .answered_ns = to }

static struct history_verdict judge_ops(const struct history_op *ops,
					size_t num)
{
	struct history *h = talloc_zero(NULL, struct history);
	struct history_verdict v = {};
	size_t i;
	int ret;

	for (i = 0; i < num; i++) {
		history_add(h, &ops[i]);
	}
	ret = history_judge(h, &v);
	assert_int_equal(ret, 0);
	talloc_free(h);
	return v;
}

#define JUDGE(ops) judge_ops(ops, sizeof(ops) / sizeof(ops[0]))

static void assert_good(struct history_verdict v, uint64_t grants,
			uint64_t reads)
{
	assert_int_equal(v.grants, grants);
	assert_int_equal(v.reads, reads);
	assert_int_equal(v.overlaps, 0);
	assert_int_equal(v.wrong, 0);
	assert_int_equal(v.lock_wrong, HISTORY_RIGHT);
	assert_int_equal(v.data_wrong, HISTORY_RIGHT);
}

static void assert_overlap(struct history_verdict v, unsigned op,
			   unsigned other)
{
	assert_int_equal(v.overlaps, 1);
	assert_int_equal(v.lock_wrong, HISTORY_OVERLAP);
	assert_int_equal(v.lock_op.member, op);
	assert_int_equal(v.lock_other.member, other);
}

/* ---- locks -------------------------------------------------------------- */

static void test_nothing(void **state)
{
	(void)state;
	assert_good(judge_ops(NULL, 0), 0, 0);
}

static void test_one_after_the_other(void **state)
{
	static const struct history_op ops[] = {
		LOCK(0, 5, 10, 20), UNLOCK(0, 5, 30),
		LOCK(1, 5, 15, 40), UNLOCK(1, 5, 50),
		LOCK(0, 5, 35, 60),
	};

	(void)state;
	assert_good(JUDGE(ops), 3, 0);
}

static void test_granted_while_held(void **state)
{
	static const struct history_op ops[] = {
		LOCK(0, 5, 10, 20), UNLOCK(0, 5, 30),
		LOCK(1, 5, 15, 29), UNLOCK(1, 5, 50),
	};

	(void)state;
	assert_overlap(JUDGE(ops), 1, 0);
}

/* The one that came later is told of, in whatever order they are listed */
static void test_order_of_members(void **state)
{
	static const struct history_op ops[] = {
		LOCK(1, 5, 15, 29), UNLOCK(1, 5, 50),
		LOCK(0, 5, 10, 20), UNLOCK(0, 5, 30),
	};

	(void)state;
	assert_overlap(JUDGE(ops), 1, 0);
}

/* From the call of the unlock on nothing is certain, though no answer came */
static void test_granted_while_let_go(void **state)
{
	static const struct history_op ops[] = {
		LOCK(0, 5, 10, 20), UNLOCK(0, 5, 30),
		LOCK(1, 5, 15, 30), UNLOCK(1, 5, 50),
	};

	(void)state;
	assert_good(JUDGE(ops), 2, 0);
}

/* What is held for no certain time is in nobody's way, and shows nothing */
static void test_held_uncertainly(void **state)
{
	static const struct history_op ops[] = {
		LOCK(0, 5, 10, 20), UNLOCK(0, 5, 60),
		LOCK(1, 5, 15, 40), UNLOCK(1, 5, 35),
	};

	(void)state;
	assert_good(JUDGE(ops), 1, 0);
}

static void test_never_let_go(void **state)
{
	static const struct history_op ops[] = {
		LOCK(0, 5, 10, 20),
		LOCK(1, 6, 10, 20),
		LOCK(2, 5, 1000, 2000),
	};

	(void)state;
	assert_overlap(JUDGE(ops), 2, 0);
}

static void test_neighbours(void **state)
{
	static const struct history_op ops[] = {
		RANGE(0, 0, 5, 10, 20), LOCK(1, 5, 10, 20),
		RANGE(2, 6, 0, 10, 20),
	};

	(void)state;
	assert_good(JUDGE(ops), 3, 0);
}

static void test_ranges_meet(void **state)
{
	static const struct history_op ops[] = {
		RANGE(0, 0, 6, 10, 20), LOCK(1, 5, 30, 40),
	};
	static const struct history_op to_eof[] = {
		RANGE(0, 4, 0, 10, 20), LOCK(1, UINT64_C(1) << 62, 30, 40),
	};

	(void)state;
	assert_overlap(JUDGE(ops), 1, 0);
	assert_overlap(JUDGE(to_eof), 1, 0);
}

static void test_readers(void **state)
{
	static const struct history_op good[] = {
		SHARED(0, 5, 10, 20), SHARED(1, 5, 10, 20),
		UNLOCK(0, 5, 30), UNLOCK(1, 5, 30), LOCK(2, 5, 10, 40),
	};
	static const struct history_op bad[] = {
		SHARED(0, 5, 10, 20), SHARED(1, 5, 10, 21),
		UNLOCK(0, 5, 30), LOCK(2, 5, 10, 40),
	};

	(void)state;
	assert_good(JUDGE(good), 3, 0);
	assert_overlap(JUDGE(bad), 2, 1);
}

/* A lock takes the place of the member's own: to read it only lets readers in */
static void test_downgrade(void **state)
{
	static const struct history_op good[] = {
		LOCK(0, 5, 10, 20), SHARED(0, 5, 30, 40), SHARED(1, 5, 35, 36),
	};
	static const struct history_op early[] = {
		LOCK(0, 5, 10, 20), SHARED(0, 5, 30, 40), SHARED(1, 5, 25, 26),
	};
	static const struct history_op writer[] = {
		LOCK(0, 5, 10, 20), SHARED(0, 5, 30, 40), LOCK(1, 5, 45, 46),
	};

	(void)state;
	assert_good(JUDGE(good), 3, 0);
	assert_overlap(JUDGE(early), 1, 0);
	assert_overlap(JUDGE(writer), 1, 0);
}

/* A close, or a death, lets go of all of one member and of nobody else's */
static void test_close(void **state)
{
	static const struct history_op good[] = {
		LOCK(0, 5, 10, 20), LOCK(0, 7, 10, 20), LEAVE(0, 30),
		LOCK(1, 5, 10, 31), LOCK(1, 7, 10, 32),
	};
	static const struct history_op bad[] = {
		LOCK(0, 5, 10, 20), LOCK(1, 7, 10, 20), LEAVE(0, 30),
		LOCK(2, 5, 10, 31), LOCK(2, 7, 10, 32),
	};

	(void)state;
	assert_good(JUDGE(good), 4, 0);
	assert_overlap(JUDGE(bad), 2, 1);
}

/* ---- values ------------------------------------------------------------- */

static void test_counter(void **state)
{
	static const struct history_op ops[] = {
		WRITE(0, 0, 0, 0, 0),
		READ(0, 0, 0, 10, 20), WRITE(0, 0, 1, 10, 20),
		READ(1, 0, 1, 30, 40), WRITE(1, 0, 2, 30, 40),
		READ(0, 0, 2, 50, 60), WRITE(0, 0, 3, 50, 60),
	};

	(void)state;
	assert_good(JUDGE(ops), 0, 3);
}

static void test_stale(void **state)
{
	static const struct history_op ops[] = {
		WRITE(0, 7, 1, 0, 1), WRITE(0, 7, 2, 10, 20),
		WRITE(0, 7, 3, 30, 40), READ(1, 7, 1, 50, 60),
	};
	struct history_verdict v = JUDGE(ops);

	(void)state;
	assert_int_equal(v.wrong, 1);
	assert_int_equal(v.data_wrong, HISTORY_STALE);
	assert_int_equal(v.data_op.value, 1);
	assert_int_equal(v.data_op.member, 1);
	assert_int_equal(v.data_other.value, 2);
}

/* While it is being written, both the old and the new value are right */
static void test_at_the_same_time(void **state)
{
	static const struct history_op ops[] = {
		WRITE(0, 0, 1, 0, 1), WRITE(0, 0, 2, 10, 30),
		READ(1, 0, 1, 20, 25), READ(2, 0, 2, 20, 25),
		READ(1, 0, 1, 29, 40),
	};

	(void)state;
	assert_good(JUDGE(ops), 0, 3);
}

/* A write without an answer may have taken place, or may still */
static void test_unanswered_write(void **state)
{
	static const struct history_op ops[] = {
		WRITE(0, 0, 1, 0, 1), WRITE(0, 0, 2, 10, HISTORY_NEVER),
		READ(1, 0, 1, 20, 25), READ(2, 0, 2, 30, 35),
	};

	(void)state;
	assert_good(JUDGE(ops), 0, 2);
}

static void test_nowhere(void **state)
{
	static const struct history_op unwritten[] = {
		WRITE(0, 0, 1, 0, 1), READ(1, 0, 9, 20, 25),
	};
	static const struct history_op future[] = {
		READ(1, 0, 1, 5, 6), WRITE(0, 0, 1, 10, 20),
	};
	static const struct history_op elsewhere[] = {
		WRITE(0, 1, 1, 0, 1), WRITE(0, 0, 2, 0, 1),
		READ(1, 0, 1, 20, 25),
	};

	(void)state;
	assert_int_equal(JUDGE(unwritten).data_wrong, HISTORY_NOWHERE);
	assert_int_equal(JUDGE(future).data_wrong, HISTORY_NOWHERE);
	assert_int_equal(JUDGE(elsewhere).data_wrong, HISTORY_NOWHERE);
	assert_int_equal(JUDGE(elsewhere).wrong, 1);
}

/* Two members add one to the same value; no clock is needed to see that */
static void test_lost_update(void **state)
{
	static const struct history_op ops[] = {
		WRITE(0, 0, 0, 0, 0),
		READ(0, 0, 0, 10, 90), WRITE(0, 0, 1, 10, 90),
		READ(1, 0, 0, 10, 90), WRITE(1, 0, 1, 10, 90),
	};
	struct history_verdict v = JUDGE(ops);

	(void)state;
	assert_int_equal(v.reads, 2);
	assert_int_equal(v.wrong, 1);
	assert_int_equal(v.lost, 1);
	assert_int_equal(v.data_wrong, HISTORY_LOST);
	assert_int_equal(v.data_op.member, 1);
	assert_int_equal(v.data_other.member, 0);
}

/* The first one by time is told of, though another place stands before it */
static void test_first_is_told(void **state)
{
	static const struct history_op ops[] = {
		WRITE(0, 0, 1, 0, 1), WRITE(0, 9, 1, 0, 1),
		READ(1, 0, 5, 50, 51), READ(1, 9, 6, 20, 21),
	};
	struct history_verdict v = JUDGE(ops);

	(void)state;
	assert_int_equal(v.wrong, 2);
	assert_int_equal(v.lost, 0);
	assert_int_equal(v.data_op.start, 9);
}

/* ---- in parts ----------------------------------------------------------- */

static void add_all(struct history *h, const struct history_op *ops,
		    size_t num)
{
	size_t i;

	for (i = 0; i < num; i++) {
		history_add(h, &ops[i]);
	}
}

/* What is kept is enough to see in the second part what the first one began */
static void test_forget(void **state)
{
	static const struct history_op part[] = {
		WRITE(0, 0, 0, 0, 0),
		LOCK(0, 5, 10, 20), UNLOCK(0, 5, 30), LOCK(0, 6, 25, 28),
		READ(0, 0, 0, 21, 22), WRITE(0, 0, 1, 21, 22),
		WRITE(0, 0, 2, 23, 24),
	};
	static const struct history_op good[] = {
		LOCK(1, 5, 40, 50), UNLOCK(0, 6, 60), LOCK(1, 6, 55, 70),
		READ(1, 0, 2, 51, 52),
	};
	static const struct history_op bad[] = {
		LOCK(1, 6, 40, 50), READ(1, 0, 1, 51, 52),
	};
	struct history *h = talloc_zero(NULL, struct history);
	struct history_verdict v = {};

	(void)state;
	add_all(h, part, 7);
	assert_int_equal(history_judge(h, &v), 0);
	assert_good(v, 2, 1);
	history_forget(h);
	assert_int_equal(h->num, 2);
	add_all(h, good, 4);
	assert_int_equal(history_judge(h, &v), 0);
	assert_good(v, 2, 1);
	talloc_free(h);

	h = talloc_zero(NULL, struct history);
	add_all(h, part, 7);
	history_forget(h);
	add_all(h, bad, 2);
	assert_int_equal(history_judge(h, &v), 0);
	assert_overlap(v, 1, 0);
	assert_int_equal(v.wrong, 1);
	talloc_free(h);
}

/* ---- a ring's steps ----------------------------------------------------- */

static void test_ring_steps(void **state)
{
	static const struct ring_step zero[] = {
		{ .position = 0, .asked_ns = 1, .granted_ns = 2 },
		{ 1, 3, 4, 6, 0 }, { 2, 7, 20, 22, 0 }, { 3, 0, 0, 40, 0 },
	};
	static const struct ring_step one[] = {
		{ .position = 1, .asked_ns = 1, .granted_ns = 7 },
		{ 2, 8, 9, 12, 1 },
	};
	struct history *h = talloc_zero(NULL, struct history);
	struct history_verdict v = {};

	(void)state;
	add_all(h, (const struct history_op[]){ WRITE(0, 0, 0, 0, 0),
						WRITE(0, 1, 0, 0, 0) }, 2);
	history_add_ring(h, 0, zero, 4, 3, RING_RW);
	assert_int_equal(h->num, 2 + 1 + 4 + 4 + 1);
	history_add_ring(h, 1, one, 2, 3, RING_LOCKS);
	assert_int_equal(h->num, 12 + 1 + 2);
	assert_int_equal(history_judge(h, &v), 0);
	/* member 1 got byte 1 before member 0 had left it, and member 0 byte 2
	 * while member 1 had it */
	assert_int_equal(v.grants, 5);
	assert_int_equal(v.overlaps, 2);
	assert_int_equal(v.lock_op.member, 1);
	assert_int_equal(v.lock_op.start, 1);
	assert_int_equal(v.reads, 2);
	assert_int_equal(v.wrong, 0);
	talloc_free(h);
}

static void test_in_order(void **state)
{
	static const uint64_t good[] = { 100, 101, 103 };
	static const uint64_t passed[] = { 102, 101, 103 };
	static const uint64_t level[] = { 101, 101, 103 };
	static const uint64_t round[] = { 100, 101, 104 };
	static const uint64_t unknown[] = { 100, HISTORY_NEVER, 103 };
	unsigned who = 9, whom = 9;

	(void)state;
	assert_true(history_in_order(good, 3, 4, &who, &whom));
	assert_true(history_in_order(good, 1, 2, &who, &whom));
	assert_true(history_in_order(unknown, 3, 4, &who, &whom));
	assert_int_equal(who, 9);
	assert_false(history_in_order(passed, 3, 4, &who, &whom));
	assert_int_equal(who, 0);
	assert_int_equal(whom, 1);
	assert_false(history_in_order(level, 3, 4, &who, &whom));
	assert_false(history_in_order(round, 3, 4, &who, &whom));
	assert_int_equal(who, 0);
	assert_int_equal(whom, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_granted_while_held),
		cmocka_unit_test(test_order_of_members),
		cmocka_unit_test(test_granted_while_let_go),
		cmocka_unit_test(test_held_uncertainly),
		cmocka_unit_test(test_never_let_go),
		cmocka_unit_test(test_neighbours),
		cmocka_unit_test(test_ranges_meet),
		cmocka_unit_test(test_readers),
		cmocka_unit_test(test_downgrade),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_counter),
		cmocka_unit_test(test_stale),
		cmocka_unit_test(test_at_the_same_time),
		cmocka_unit_test(test_unanswered_write),
		cmocka_unit_test(test_nowhere),
		cmocka_unit_test(test_lost_update),
		cmocka_unit_test(test_first_is_told),
		cmocka_unit_test(test_forget),
		cmocka_unit_test(test_ring_steps),
		cmocka_unit_test(test_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
