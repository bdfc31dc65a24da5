/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Who refuses: the cases of the rule, each from every node's point of view
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "ctdb-events/decide.h"

/*
 * nodes: "R" running, "s" starting, one letter a node; its place is its PNN.
 * groups: one letter a node; those with the same letter are fit together,
 * others unfit; "?": never tested with anybody.
 */
static bool refuses(const char *nodes, const char *groups, unsigned who)
{
	struct decision_input input = {};
	unsigned num = (unsigned)strlen(nodes);
	unsigned map[DECIDE_MAX] = { who };
	unsigned because = 0;
	unsigned i, j;
	bool refused;

	for (i = 0; i < num; i++) {
		if (i != who) {
			map[i < who ? i + 1 : i] = i;
		}
	}
	input.num = num;
	for (i = 0; i < num; i++) {
		input.parties[i] = (struct party){
			map[i], nodes[map[i]] == 'R' };
		for (j = i + 1; j < num; j++) {
			char a = groups[map[i]], b = groups[map[j]];

			input.fit[i][j] = a == '?' || b == '?' ? UNKNOWN
					  : a == b ? FIT : UNFIT;
		}
	}
	refused = decide_refuses(&input, &because);
	if (refused) {
		assert_in_range(because, 1, num - 1);
		assert_int_equal(input.fit[0][because], UNFIT);
	}
	return refused;
}

static void rule(void **unused)
{
	static const struct {
		const char *nodes, *groups;
		const char *want;	/* "x": refuses, "-": goes on */
	} table[] = {
		{ "s", "a", "-" },
		{ "ss", "aa", "--" },
		{ "sss", "aaa", "---" },
		/* a joiner that fits with nobody, and one that does */
		{ "RRs", "aab", "--x" },
		{ "sRR", "baa", "x--" },
		{ "RRs", "aaa", "---" },
		/* a joiner never turns a running node, however many */
		{ "Rsss", "abbb", "-xxx" },
		{ "ssR", "aab", "xx-" },
		/* together: one bad node stays out alone */
		{ "sss", "aab", "--x" },
		{ "sss", "baa", "x--" },
		{ "sss", "aba", "-x-" },
		/* a hopeless file system leaves one serving */
		{ "ss", "ab", "-x" },
		{ "sss", "abc", "-xx" },
		{ "ssss", "abcd", "-xxx" },
		/* equal groups: the one with the lowest number */
		{ "ssss", "abba", "-xx-" },
		{ "ssss", "baab", "-xx-" },
		/* running nodes among themselves, by the same rule */
		{ "RRR", "aab", "--x" },
		{ "RRR", "baa", "x--" },
		{ "RR", "ab", "-x" },
		/* what is not known turns nobody */
		{ "RRs", "aa?", "---" },
		{ "ss", "??", "--" },
		{ "RRs", "?ab", "--x" },
	};
	size_t i;
	unsigned who;

	(void)unused;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		for (who = 0; who < strlen(table[i].nodes); who++) {
			bool got = refuses(table[i].nodes, table[i].groups,
					   who);

			if (got != (table[i].want[who] == 'x')) {
				fail_msg("%s %s: node %u %s", table[i].nodes,
					 table[i].groups, who,
					 got ? "refuses" : "goes on");
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
