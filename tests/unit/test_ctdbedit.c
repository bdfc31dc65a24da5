/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One value of ctdb.conf is changed, and no other byte
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "ctdb-events/ctdbedit.h"

#define SET "\ttdb mutexes = false\n"

static const struct {
	const char *before;
	const char *after;	/* NULL: EINVAL */
} cases[] = {
	{ NULL, "[database]\n" SET },
	{ "", "[database]\n" SET },
	{ "# c\n", "# c\n\n[database]\n" SET },
	{ "# c", "# c\n\n[database]\n" SET },
	{ "[cluster]\n\tx = 1\n", "[cluster]\n\tx = 1\n\n[database]\n" SET },
	{ "[database]\n[x]\n", "[database]\n" SET "[x]\n" },
	{ "[database]", "[database]\n" SET },
	{ " [DataBase] # c\r\n\tx = 1\n",
	  " [DataBase] # c\r\n" SET "\tx = 1\n" },
	{ "# [database]\n", "# [database]\n\n[database]\n" SET },
	/* a value is there: the same place, the rest of its line stays */
	{ "[database]\n  tdb  mutexes=true  \n\ty = 2\n",
	  "[database]\n  tdb  mutexes=false  \n\ty = 2\n" },
	{ "[database]\ntdb mutexes = true", "[database]\ntdb mutexes = false" },
	{ "[database]\ntdb mutexes =\n", "[database]\ntdb mutexes = false\n" },
	{ "[database]\ntdb mutexes = False\n",
	  "[database]\ntdb mutexes = False\n" },
	/* the last one counts: all of them */
	{ "[database]\ntdb mutexes = true\n[x]\n[database]\n"
	  "tdb mutexes = yes\n",
	  "[database]\ntdb mutexes = false\n[x]\n[database]\n"
	  "tdb mutexes = false\n" },
	/* one that is none */
	{ "[database]\n# tdb mutexes = true\n",
	  "[database]\n" SET "# tdb mutexes = true\n" },
	{ "[database]\ntdb mutexes2 = true\n",
	  "[database]\n" SET "tdb mutexes2 = true\n" },
	{ "[x]\ntdb mutexes = true\n",
	  "[x]\ntdb mutexes = true\n\n[database]\n" SET },
	/* lines that go on */
	{ "[x]\ny = a \\\n[database]\n",
	  "[x]\ny = a \\\n[database]\n\n[database]\n" SET },
	{ "[database]\nx = a\\\ntdb mutexes = true\n",
	  "[database]\n" SET "x = a\\\ntdb mutexes = true\n" },
	{ "[database]\n# c \\\ntdb mutexes = true\n",
	  "[database]\n# c \\\ntdb mutexes = false\n" },
	{ "[database]\ntdb mutexes = tr\\\nue\n", NULL },
	{ "[database] x = y \\\nz\n", NULL },
	{ "[x]\ny = a \\\n", NULL },
};

static void test_set(void **unused)
{
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		TALLOC_CTX *frame = talloc_new(NULL);
		char *out = NULL, *again = NULL;
		int ret;

		ret = ctdbedit_set(frame, cases[i].before, "database",
				   "tdb mutexes", "false", &out);
		if (cases[i].after == NULL) {
			assert_int_equal(ret, EINVAL);
			talloc_free(frame);
			continue;
		}
		assert_int_equal(ret, 0);
		assert_string_equal(out, cases[i].after);
		/* once is enough */
		ret = ctdbedit_set(frame, out, "database", "tdb mutexes",
				   "false", &again);
		assert_int_equal(ret, 0);
		assert_string_equal(again, out);
		talloc_free(frame);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
