/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>

#include "tests/unit/verdict_fixture.h"

/* The manual's table, once more */
static const struct {
	const char *use;
	const char *needs;
} table[USE_COUNT] = {
	{"cluster-lock", " lock.supported lock.exclusion lock.release "
			 "lock.handoff lock.cancel lock.idle lock.ring "
			 "id.inode "},
	{"posix-locking", " lock.supported lock.exclusion lock.shared "
			  "lock.getlk lock.handoff lock.cancel lock.release "
			  "lock.range64 lock.many lock.idle lock.ofd "
			  "lock.ring "
			  "io.increment io.visibility "},
	{"share", " io.visibility io.size io.append id.inode "
		  "dir.visibility "},
	{"file-id", " id.inode id.device "},
	{"tdb", " mmap.local "},
	{"mmap", " mmap.increment mmap.visibility mmap.mixed "},
};

static bool needed(enum use use, const char *check)
{
	char *word = talloc_asprintf(NULL, " %s ", check);
	bool found = strstr(table[use].needs, word) != NULL;

	talloc_free(word);
	return found;
}

static void test_names(void **state)
{
	enum fitness fitness;
	enum use use;
	unsigned i;

	(void)state;
	for (i = 0; i < USE_COUNT; i++) {
		assert_string_equal(use_name(i), table[i].use);
		assert_true(use_parse(table[i].use, &use));
		assert_int_equal(use, i);
	}
	assert_false(use_parse("shares", &use));
	assert_false(use_parse("", &use));

	assert_string_equal(fitness_name(FIT), "fit");
	assert_string_equal(fitness_name(UNFIT), "unfit");
	assert_string_equal(fitness_name(UNKNOWN), "unknown");
	for (i = FIT; i <= UNKNOWN; i++) {
		assert_true(fitness_parse(fitness_name(i), &fitness));
		assert_int_equal(fitness, i);
	}
	assert_false(fitness_parse("Fit", &fitness));
}

/* A need that is misspelt would never be missed. */
static void test_needs_are_checks(void **state)
{
	unsigned i, j;

	(void)state;
	for (i = 0; i < USE_COUNT; i++) {
		const char *const *need = NULL;

		for (need = use_needs(i); *need != NULL; need++) {
			for (j = 0; j < NUM_CONTRACT; j++) {
				if (strcmp(*need, contract[j]) == 0) {
					break;
				}
			}
			assert_int_not_equal(j, NUM_CONTRACT);
		}
	}
}

static void test_healthy(void **state)
{
	struct fixture *f = fixture_new();
	struct verdict *v = fixture_judge(f);
	unsigned i;

	(void)state;
	assert_int_equal(v->scope, SCOPE_CLUSTER);
	assert_false(v->one_node);
	for (i = 0; i < USE_COUNT; i++) {
		assert_int_equal(v->uses[i].fitness, FIT);
		assert_false(v->uses[i].hung);
		assert_names(v->uses[i].because, "");
		assert_names(v->uses[i].mended_by, "");
		assert_null(v->uses[i].reason);
	}
	assert_int_equal(v->num_settings, 0);
	assert_int_equal(verdict_exit(v, USES_DEFAULT), 0);
	talloc_free(f);
}

/* One check at a time: whatever needs it, and nothing else, is unfit. */
static void one_at_a_time(enum outcome outcome, bool beyond_limit)
{
	struct fixture *f = NULL;
	size_t i;
	unsigned use;

	for (i = 0; i < NUM_CONTRACT; i++) {
		struct check_result *r = NULL;
		struct verdict *v = NULL;

		f = fixture_new();
		r = fixture_set(f, contract[i], outcome, "why");
		r->beyond_limit = beyond_limit;
		v = fixture_judge(f);
		for (use = 0; use < USE_COUNT; use++) {
			const struct use_verdict *u = &v->uses[use];
			bool hung = outcome == OUTCOME_HUNG;
			int exit;

			exit = verdict_exit(v, USE_BIT(use));
			if (!needed(use, contract[i])) {
				assert_int_equal(u->fitness, FIT);
				assert_int_equal(exit, 0);
				continue;
			}
			assert_int_equal(u->fitness, UNFIT);
			assert_int_equal(u->hung, hung);
			assert_names(u->because, contract[i]);
			assert_non_null(strstr(u->reason, "why ("));
			assert_non_null(strstr(u->reason, contract[i]));
			if (hung) {
				assert_int_equal(exit, 3);
			} else {
				assert_int_equal(exit,
						 *u->mended_by ? 1 : 2);
			}
		}
		talloc_free(f);
	}
}

static void test_fail(void **state)
{
	(void)state;
	one_at_a_time(OUTCOME_FAIL, false);
}

static void test_hung(void **state)
{
	(void)state;
	one_at_a_time(OUTCOME_HUNG, false);
}

static void test_unsupported(void **state)
{
	(void)state;
	one_at_a_time(OUTCOME_UNSUPPORTED, false);
}

static void test_beyond_limit(void **state)
{
	(void)state;
	one_at_a_time(OUTCOME_SLOW, true);
}

static void test_slow(void **state)
{
	struct fixture *f = fixture_new();
	struct verdict *v = NULL;

	(void)state;
	fixture_set(f, "lock.handoff", OUTCOME_SLOW, "2 s to hand over");
	v = fixture_judge(f);
	assert_int_equal(v->uses[USE_CLUSTER_LOCK].fitness, FIT);
	assert_names(v->uses[USE_CLUSTER_LOCK].because, "lock.handoff");
	assert_string_equal(v->uses[USE_CLUSTER_LOCK].reason,
			    "2 s to hand over (lock.handoff)");
	assert_names(v->uses[USE_SHARE].because, "");
	assert_int_equal(verdict_exit(v, USES_DEFAULT), 0);
	talloc_free(f);
}

/* Skipped, and not asked for: both unknown, and both named. */
static void test_untested(void **state)
{
	struct fixture *f = NULL;
	size_t i;
	unsigned use;

	(void)state;
	for (i = 0; i < NUM_CONTRACT; i++) {
		struct verdict *v = NULL;

		f = fixture_new();
		if (i % 2 == 0) {
			fixture_set(f, contract[i], OUTCOME_SKIPPED, "no time");
		} else {
			fixture_drop(f, contract[i]);
		}
		v = fixture_judge(f);
		for (use = 0; use < USE_COUNT; use++) {
			const struct use_verdict *u = &v->uses[use];

			if (!needed(use, contract[i])) {
				assert_int_equal(u->fitness, FIT);
				continue;
			}
			assert_int_equal(u->fitness, UNKNOWN);
			assert_names(u->because, contract[i]);
			assert_non_null(strstr(u->reason, "not tested: "));
			assert_non_null(strstr(u->reason, contract[i]));
			assert_int_equal(verdict_exit(v, USE_BIT(use)), 4);
		}
		talloc_free(f);
	}

	f = fixture_new();
	fixture_set(f, "lock.ring", OUTCOME_SKIPPED, "no time left");
	fixture_drop(f, "lock.cancel");
	assert_string_equal(fixture_judge(f)->uses[USE_CLUSTER_LOCK].reason,
			    "not tested: lock.cancel, "
			    "lock.ring (no time left)");
	talloc_free(f);
}

static void test_unfit_whatever_is_untested(void **state)
{
	struct fixture *f = fixture_new();
	struct verdict *v = NULL;

	(void)state;
	fixture_set(f, "lock.exclusion", OUTCOME_FAIL, "granted twice");
	fixture_set(f, "lock.supported", OUTCOME_SKIPPED, "no time");
	fixture_set(f, "lock.ring", OUTCOME_HUNG, "no answer");
	fixture_drop(f, "lock.handoff");
	v = fixture_judge(f);
	assert_int_equal(v->uses[USE_CLUSTER_LOCK].fitness, UNFIT);
	assert_true(v->uses[USE_CLUSTER_LOCK].hung);
	assert_names(v->uses[USE_CLUSTER_LOCK].because,
		     "lock.exclusion, lock.ring");
	assert_string_equal(v->uses[USE_CLUSTER_LOCK].reason,
			    "granted twice (lock.exclusion; also lock.ring)");
	talloc_free(f);
}

static void test_catalogue(void **state)
{
	struct fixture *f = fixture_new();
	const struct check *none[] = {NULL};
	struct verdict *v = NULL;
	unsigned i, num = 0;

	(void)state;
	/* what the catalogue lacks is not needed */
	fixture_drop(f, "lock.cancel");
	fixture_drop(f, "lock.many");
	for (i = 0; i < NUM_CONTRACT; i++) {
		if (strcmp(contract[i], "lock.cancel") != 0 &&
		    strcmp(contract[i], "lock.many") != 0) {
			f->catalogue[num] = &f->checks[i];
			num++;
		}
	}
	f->catalogue[num] = NULL;
	v = fixture_judge(f);
	assert_int_equal(verdict_exit(v, USES_DEFAULT), 0);

	/* but nothing at all is no evidence */
	f->input.catalogue = none;
	f->input.num_results = 0;
	v = fixture_judge(f);
	for (i = 0; i < USE_COUNT; i++) {
		assert_int_equal(v->uses[i].fitness, UNKNOWN);
		assert_string_equal(v->uses[i].reason, "nothing was tested");
	}
	assert_int_equal(verdict_exit(v, USES_DEFAULT), 4);
	talloc_free(f);
}

/* Increments that are lost because locks do not hold say nothing of data. */
static void test_increment_without_locks(void **state)
{
	static const char *const locks[] = {"lock.supported", "lock.exclusion",
					    "lock.ring"};
	struct verdict *v = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		struct fixture *f = fixture_new();

		fixture_set(f, locks[i], OUTCOME_FAIL, "broken");
		fixture_set(f, "io.increment", OUTCOME_FAIL, "99 of 100");
		fixture_set(f, "mmap.increment", OUTCOME_FAIL, "99 of 100");
		v = fixture_judge(f);
		assert_names(v->uses[USE_POSIX_LOCKING].because, locks[i]);
		assert_int_equal(v->uses[USE_SHARE].fitness, FIT);
		assert_string_equal(v->uses[USE_SHARE].reason,
				    "io.increment: what fails there says "
				    "nothing of data where locks do not work");
		assert_int_equal(v->uses[USE_MMAP].fitness, UNKNOWN);
		assert_names(v->uses[USE_MMAP].because, "mmap.increment");
		assert_string_equal(v->uses[USE_MMAP].reason,
				    "mmap.increment: what fails there says "
				    "nothing of data where locks do not work");

		/* a hang is one all the same */
		fixture_set(f, "mmap.increment", OUTCOME_HUNG, "no answer");
		v = fixture_judge(f);
		assert_int_equal(v->uses[USE_MMAP].fitness, UNFIT);
		talloc_free(f);
	}
}

/* Locks hold, and updates under them are lost: a share's report says so. */
static void test_lost_updates(void **state)
{
	struct fixture *f = fixture_new();
	struct verdict *v = NULL;

	(void)state;
	fixture_set(f, "io.increment", OUTCOME_FAIL, "99 of 100");
	v = fixture_judge(f);
	assert_int_equal(v->uses[USE_POSIX_LOCKING].fitness, UNFIT);
	assert_int_equal(v->uses[USE_SHARE].fitness, FIT);
	assert_string_equal(v->uses[USE_SHARE].reason,
			    "io.increment fails: that is for those who lock, "
			    "see posix-locking");
	talloc_free(f);
}

/* What has one reason is told once. */
static void test_untested_together(void **state)
{
	struct fixture *f = fixture_new();
	struct verdict *v = NULL;

	(void)state;
	fixture_set(f, "io.size", OUTCOME_SKIPPED, "it went away");
	fixture_set(f, "io.append", OUTCOME_SKIPPED, "no time");
	fixture_set(f, "dir.visibility", OUTCOME_SKIPPED, "it went away");
	v = fixture_judge(f);
	assert_int_equal(v->uses[USE_SHARE].fitness, UNKNOWN);
	assert_string_equal(v->uses[USE_SHARE].reason,
			    "not tested: io.size, dir.visibility (it went "
			    "away), io.append (no time)");
	talloc_free(f);
}

static void test_one_node(void **state)
{
	struct fixture *f = fixture_new();
	struct verdict *v = NULL;
	unsigned i;

	(void)state;
	f->members[1].minor = f->members[0].minor;
	fixture_set(f, "id.device", OUTCOME_FAIL, "differs");
	fixture_set(f, "io.size", OUTCOME_SKIPPED, "no time");
	v = fixture_judge(f);
	assert_int_equal(v->scope, SCOPE_LOCAL);
	assert_true(v->one_node);
	for (i = 0; i < USE_COUNT; i++) {
		const struct use_verdict *u = &v->uses[i];

		if (i == USE_FILE_ID) {
			assert_int_equal(u->fitness, UNFIT);
			continue;
		}
		assert_int_equal(u->fitness, UNKNOWN);
		if (i == USE_SHARE) {
			assert_string_equal(u->reason, "not tested: io.size "
						       "(no time)");
		} else {
			assert_string_equal(u->reason,
					    "only one node tested");
			assert_names(u->because, "");
		}
	}
	assert_int_equal(verdict_exit(v, USE_BIT(USE_CLUSTER_LOCK)), 4);

	/* --local */
	f->input.local = true;
	v = fixture_judge(f);
	assert_int_equal(v->scope, SCOPE_LOCAL);
	assert_false(v->one_node);
	assert_int_equal(v->uses[USE_CLUSTER_LOCK].fitness, FIT);
	assert_int_equal(v->uses[USE_FILE_ID].fitness, UNFIT);
	assert_int_equal(v->uses[USE_SHARE].fitness, UNKNOWN);

	/* a third member elsewhere */
	f->input.local = false;
	f->input.num_members = 3;
	v = fixture_judge(f);
	assert_int_equal(v->scope, SCOPE_CLUSTER);
	assert_int_equal(v->uses[USE_CLUSTER_LOCK].fitness, FIT);

	/* one member alone */
	f->input.num_members = 1;
	v = fixture_judge(f);
	assert_true(v->one_node);
	talloc_free(f);
}

static void test_not_same(void **state)
{
	struct fixture *f = fixture_new();
	struct verdict *v = NULL;
	unsigned i;

	(void)state;
	f->input.same_directory = false;
	f->input.not_same = "/mnt/b does not show what is made at /mnt/a";
	fixture_set(f, "id.inode", OUTCOME_FAIL, "differs");
	fixture_set(f, "mmap.visibility", OUTCOME_FAIL, "old data");
	v = fixture_judge(f);
	for (i = 0; i < USE_COUNT; i++) {
		assert_int_equal(v->uses[i].fitness, UNKNOWN);
		assert_string_equal(v->uses[i].reason, f->input.not_same);
	}
	assert_int_equal(v->num_settings, 0);
	assert_int_equal(verdict_exit(v, USES_DEFAULT), 4);
	talloc_free(f);
}

static void test_reasons(void **state)
{
	struct fixture *f = fixture_new();
	struct check_result *r = NULL;
	struct verdict *v = NULL;

	(void)state;
	r = fixture_set(f, "lock.exclusion", OUTCOME_FAIL,
			"a byte write-locked at /mnt/a was granted at /mnt/b");
	json_object_set_new(r->metrics, "local", json_true());
	v = fixture_judge(f);
	assert_string_equal(v->uses[USE_CLUSTER_LOCK].reason,
			    "locks are local to each node: a byte write-locked "
			    "at /mnt/a was granted at /mnt/b "
			    "(lock.exclusion)");

	/* without the check's own words: its evidence, its errno, its name */
	r->why = NULL;
	r->evidence = (struct evidence){
		.operation = "F_SETLK F_WRLCK",
		.member = "1 (/mnt/b) against 0 (/mnt/a)",
		.expected = "refused",
		.seen = "granted",
	};
	v = fixture_judge(f);
	assert_string_equal(v->uses[USE_CLUSTER_LOCK].reason,
			    "F_SETLK F_WRLCK at 1 (/mnt/b) against 0 (/mnt/a): "
			    "granted instead of refused (lock.exclusion)");

	r->evidence = (struct evidence){};
	r->outcome = OUTCOME_UNSUPPORTED;
	r->err = 37;
	v = fixture_judge(f);
	assert_string_equal(v->uses[USE_CLUSTER_LOCK].reason,
			    "refused: No locks available (lock.exclusion)");
	r->outcome = OUTCOME_FAIL;
	v = fixture_judge(f);
	assert_string_equal(v->uses[USE_CLUSTER_LOCK].reason,
			    "fail (lock.exclusion)");
	talloc_free(f);
}

static void test_exit(void **state)
{
	static const char *none[] = {NULL};
	static const char *some[] = {"use mmap", NULL};
	const struct use_verdict fit = {
		.fitness = FIT, .mended_by = none,
	};
	const struct use_verdict unknown = {
		.fitness = UNKNOWN, .mended_by = none,
	};
	const struct use_verdict mended = {
		.fitness = UNFIT, .mended_by = some,
	};
	const struct use_verdict unfit = {
		.fitness = UNFIT, .mended_by = none,
	};
	const struct use_verdict hung = {
		.fitness = UNFIT, .hung = true, .mended_by = none,
	};
	struct verdict v = {.uses = {hung, unfit, unknown, mended, fit, fit}};

	(void)state;
	/* the first that applies, over the uses asked for */
	assert_int_equal(verdict_exit(&v, 0x3f), 3);
	assert_int_equal(verdict_exit(&v, 0x3e), 2);
	assert_int_equal(verdict_exit(&v, 0x3c), 4);
	assert_int_equal(verdict_exit(&v, 0x38), 1);
	assert_int_equal(verdict_exit(&v, 0x30), 0);
	assert_int_equal(verdict_exit(&v, 0x0a), 2);
}

/* Deprecated, but nothing else makes talloc run out of memory at will. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Whatever allocation fails, it is ENOMEM and nothing else. */
static void test_no_memory(void **state)
{
	struct fixture *f = fixture_new();
	size_t limit;
	int ret = ENOMEM;

	(void)state;
	fixture_mount(f, "nfs", "srv:/x", "nolock");
	fixture_set(f, "lock.exclusion", OUTCOME_FAIL, "granted twice");
	fixture_set(f, "lock.ring", OUTCOME_FAIL, "two inside");
	fixture_set(f, "mmap.local", OUTCOME_FAIL, "old data");
	fixture_set(f, "id.inode", OUTCOME_SKIPPED, "no time");
	fixture_set(f, "io.size", OUTCOME_SLOW, "late");
	for (limit = 1; ret != 0; limit += 16) {
		TALLOC_CTX *mem_ctx = talloc_new(NULL);
		struct verdict *v = NULL;

		ret = talloc_set_memlimit(mem_ctx, limit);
		assert_int_equal(ret, 0);
		ret = verdict_judge(mem_ctx, &f->input, &v);
		if (ret == 0) {
			assert_int_not_equal(v->num_settings, 0);
		} else {
			assert_int_equal(ret, ENOMEM);
			assert_null(v);
		}
		talloc_free(mem_ctx);
	}
	assert_true(limit > 2000);
	talloc_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_needs_are_checks),
		cmocka_unit_test(test_healthy),
		cmocka_unit_test(test_fail),
		cmocka_unit_test(test_hung),
		cmocka_unit_test(test_unsupported),
		cmocka_unit_test(test_beyond_limit),
		cmocka_unit_test(test_slow),
		cmocka_unit_test(test_untested),
		cmocka_unit_test(test_unfit_whatever_is_untested),
		cmocka_unit_test(test_catalogue),
		cmocka_unit_test(test_increment_without_locks),
		cmocka_unit_test(test_lost_updates),
		cmocka_unit_test(test_untested_together),
		cmocka_unit_test(test_one_node),
		cmocka_unit_test(test_not_same),
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_exit),
		cmocka_unit_test(test_no_memory),
	};

	return cmocka_run_group_tests_name("verdict", tests, NULL, NULL);
}
