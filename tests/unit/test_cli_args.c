/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The arguments of pingpong check: what each stands for, and bad ones, each
 * named in its error.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/verdict/verdict.h"

/* the command's own sources are in no library */
#include "cli/args.c"

/* as in main.c */
char *cli_popt_error(TALLOC_CTX *mem_ctx, poptContext pc, int err)
{
	(void)err;
	return talloc_asprintf(mem_ctx, "option '%s'",
			       poptBadOption(pc, POPT_BADOPTION_NOALIAS));
}

#define MAX_WORDS 300

struct bed {
	struct check_args args;
	const char *argv[MAX_WORDS];
	int argc;
};

static int set_up(void **state)
{
	struct bed *bed = talloc_zero(NULL, struct bed);

	unsetenv("PINGPONG_RSH");
	bed->argv[bed->argc++] = "pingpong check";
	*state = bed;
	return 0;
}

static int tear_down(void **state)
{
	talloc_free(*state);
	return 0;
}

/* words: separated by one space */
static const char *parse(struct bed *bed, const char *words)
{
	char *line = talloc_strdup(bed, words);
	char *word = NULL;

	bed->argc = 1;
	for (word = strsep(&line, " "); word != NULL;
	     word = strsep(&line, " ")) {
		bed->argv[bed->argc++] = word;
	}
	return check_args_parse(bed, bed->argc, bed->argv, &bed->args);
}

static const struct check_args *good(struct bed *bed, const char *words)
{
	const char *error = parse(bed, words);

	if (error != NULL) {
		fail_msg("%s: %s", words, error);
	}
	return &bed->args;
}

static void bad(struct bed *bed, const char *words, const char *value)
{
	char *quoted = talloc_asprintf(bed, "'%s'", value);
	const char *error = parse(bed, words);

	if (error == NULL) {
		fail_msg("no error: %s", words);
	}
	if (strstr(error, quoted) == NULL) {
		fail_msg("%s: does not name %s: %s", words, quoted, error);
	}
	assert_null(strchr(error, '\n'));
}

static unsigned count(const struct check_args *args)
{
	unsigned n = 0;

	while (args->checks[n] != NULL) {
		n++;
	}
	return n;
}

static void test_defaults(void **state)
{
	const struct check_args *args = good(*state, "/a host:/b c");

	assert_string_equal(args->places[0], "/a");
	assert_string_equal(args->places[1], "host:/b");
	assert_string_equal(args->places[2], "c");
	assert_null(args->places[3]);
	assert_int_equal(args->uses, USES_DEFAULT);
	assert_true(args->all);
	assert_true(count(args) > 10);
	assert_int_equal(args->level, RUN_DEFAULT);
	assert_int_equal(args->timeout_ms, 60000);
	assert_false(args->local);
	assert_false(args->json);
	assert_true(args->store);
	assert_string_equal(args->rsh, "ssh -o BatchMode=yes");
}

static void test_flags(void **state)
{
	const struct check_args *args = good(
		*state, "/a --local --json --no-store "
		"--seed 18446744073709551615");

	assert_true(args->local);
	assert_true(args->json);
	assert_false(args->store);
	assert_int_equal(args->seed, UINT64_MAX);
}

static void test_seed_differs(void **state)
{
	uint64_t first = good(*state, "/a")->seed;
	uint64_t second = good(*state, "/a")->seed;
	uint64_t third = good(*state, "/a")->seed;

	assert_true(first != second || second != third);
}

static void test_times(void **state)
{
	const struct check_args *args = good(*state, "--quick /a");

	assert_int_equal(args->level, RUN_QUICK);
	assert_int_equal(args->timeout_ms, 10000);
	args = good(*state, "--quick --timeout 7 /a");
	assert_int_equal(args->timeout_ms, 7000);
	args = good(*state, "--timeout=86400 /a");
	assert_int_equal(args->timeout_ms, 86400000);

	args = good(*state, "--thorough /a");
	assert_int_equal(args->level, RUN_THOROUGH);
	assert_int_equal(args->thorough_ms, 10000);
	assert_string_equal(args->places[0], "/a");
	assert_int_equal(args->timeout_ms, 60000 + 10000 * count(args));
	args = good(*state, "--thorough=3 --only lock.ring,io.increment /a");
	assert_int_equal(args->thorough_ms, 3000);
	assert_int_equal(args->timeout_ms, 66000);
	args = good(*state, "--thorough=3600 /a");
	assert_int_equal(args->timeout_ms, 3600000 * count(args) + 60000 <
			 86400000 ? 3600000 * count(args) + 60000 : 86400000);
	args = good(*state, "--thorough=3 --timeout 5 /a");
	assert_int_equal(args->timeout_ms, 5000);
	/* behind "--" it is a place */
	args = good(*state, "-- --thorough");
	assert_string_equal(args->places[0], "--thorough");
	assert_int_equal(args->level, RUN_DEFAULT);
}

static void test_lists(void **state)
{
	const struct check_args *args = good(*state, "--for mmap,tdb /a");

	assert_int_equal(args->uses, USE_BIT(USE_MMAP) | USE_BIT(USE_TDB));
	args = good(*state, "--for share,share /a");
	assert_int_equal(args->uses, USE_BIT(USE_SHARE));
	/* in the order in which they run, whatever that of the names */
	args = good(*state, "--only lock.ring,lock.supported,lock.ring /a");
	assert_false(args->all);
	assert_int_equal(count(args), 2);
	assert_string_equal(args->checks[0]->name, "lock.supported");
	assert_string_equal(args->checks[1]->name, "lock.ring");
}

static void test_rsh(void **state)
{
	struct bed *bed = *state;

	setenv("PINGPONG_RSH", "rsh -n", 1);
	assert_string_equal(good(bed, "/a")->rsh, "rsh -n");
	assert_string_equal(good(bed, "-e mine /a")->rsh, "mine");
	assert_string_equal(good(bed, "--rsh=mine /a")->rsh, "mine");
	setenv("PINGPONG_RSH", "", 1);
	bad(bed, "/a", "");
	unsetenv("PINGPONG_RSH");
	bad(bed, "--rsh= /a", "");
}

static void test_bad_values(void **state)
{
	static const char *const numbers[] = {
		"0", "-1", "x", "1x", "1.5", "+1", "0x10", "86401",
		"18446744073709551616", "99999999999999999999999", "",
	};
	char words[128];
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		snprintf(words, sizeof(words), "--timeout=%s /a", numbers[i]);
		bad(*state, words, numbers[i]);
		if (numbers[i][0] == '\0') {
			continue;
		}
		snprintf(words, sizeof(words), "--thorough=%s /a",
			 numbers[i]);
		bad(*state, words, numbers[i]);
	}
	bad(*state, "--seed=x /a", "x");
	bad(*state, "--seed=-1 /a", "-1");
	bad(*state, "--seed=18446744073709551616 /a", "18446744073709551616");
}

static void test_bad_names(void **state)
{
	bad(*state, "--for nothing /a", "nothing");
	bad(*state, "--for share,nothing /a", "nothing");
	bad(*state, "--for= /a", "");
	bad(*state, "--for share, /a", "");
	bad(*state, "--for Share /a", "Share");
	bad(*state, "--only lock /a", "lock");
	bad(*state, "--only lock.ring,,lock.shared /a", "");
	bad(*state, "--only= /a", "");
	bad(*state, "--nothing /a", "--nothing");
	bad(*state, "-z /a", "-z");
	bad(*state, "/a --timeout", "--timeout");
}

static void test_conflict(void **state)
{
	bad(*state, "--quick --thorough /a", "--quick");
	bad(*state, "--thorough=5 --quick /a", "--thorough");
}

static void test_bad_places(void **state)
{
	assert_non_null(parse(*state, "--local"));
	bad(*state, "/a /b /a", "/a");
	bad(*state, "h:/a h:/a", "h:/a");
	bad(*state, "/a ", "");
	/* told apart by what a worker finds, not here */
	good(*state, "/a /a/ h:/a");
}

static void test_many_places(void **state)
{
	struct bed *bed = *state;
	const char *error = NULL;

	bed->argc = 1;
	while (bed->argc < 1 + ARGS_MAX_PLACES) {
		bed->argv[bed->argc] = talloc_asprintf(bed, "/p%d", bed->argc);
		bed->argc++;
	}
	error = check_args_parse(bed, bed->argc, bed->argv, &bed->args);
	assert_null(error);
	assert_non_null(bed->args.places[ARGS_MAX_PLACES - 1]);
	bed->argv[bed->argc++] = "/more";
	error = check_args_parse(bed, bed->argc, bed->argv, &bed->args);
	assert_non_null(error);
	assert_non_null(strstr(error, "'/more'"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_defaults),
		TEST(test_flags),
		TEST(test_seed_differs),
		TEST(test_times),
		TEST(test_lists),
		TEST(test_rsh),
		TEST(test_bad_values),
		TEST(test_bad_names),
		TEST(test_conflict),
		TEST(test_bad_places),
		TEST(test_many_places),
	};

	return cmocka_run_group_tests_name("cli_args", tests, NULL, NULL);
}
