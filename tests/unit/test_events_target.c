/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a verdict means for the cluster lock, for shares with their settings,
 * and for paths; and who is connected, by what ctdb prints
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ctdb-events/connected.h"
#include "ctdb-events/nodes.h"
#include "ctdb-events/target.h"

#define TESTED \
	(USE_BIT(USE_SHARE) | USE_BIT(USE_POSIX_LOCKING) | \
	 USE_BIT(USE_FILE_ID))

/* of all cases */
static TALLOC_CTX *kept;

static struct use_verdict use_of(enum fitness fitness, const char *check)
{
	const char **because = talloc_zero_array(kept, const char *, 2);
	static const char *none[] = { NULL };

	because[0] = fitness == FIT ? NULL : check;
	return (struct use_verdict){
		.fitness = fitness, .because = because, .mended_by = none,
		.reason = fitness == FIT ? NULL : check,
	};
}

static void set_all(struct verdict *verdict, enum fitness fitness)
{
	unsigned i;

	*verdict = (struct verdict){ .scope = SCOPE_CLUSTER };
	for (i = 0; i < USE_COUNT; i++) {
		verdict->uses[i] = use_of(fitness, "lock.exclusion");
	}
}

static enum fitness judged(const struct target *target,
			   const struct verdict *verdict)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	struct judgement judgement;
	enum fitness fitness;

	target_judge(frame, target, verdict, NULL, &judgement);
	fitness = judgement.fitness;
	assert_true(fitness == FIT || judgement.reason != NULL);
	talloc_free(frame);
	return fitness;
}

static void the_lock(void **unused)
{
	struct target *target = target_of_lock(NULL, "/clusterfs/.ctdb");
	struct verdict verdict;

	(void)unused;
	assert_true(target_is_lock(target));
	set_all(&verdict, FIT);
	assert_int_equal(judged(target, &verdict), FIT);
	verdict.uses[USE_SHARE] = use_of(UNFIT, "io.size");
	assert_int_equal(judged(target, &verdict), FIT);
	verdict.uses[USE_CLUSTER_LOCK] = use_of(UNKNOWN, "lock.ring");
	assert_int_equal(judged(target, &verdict), UNKNOWN);
	verdict.uses[USE_CLUSTER_LOCK] = use_of(UNFIT, "lock.exclusion");
	assert_int_equal(judged(target, &verdict), UNFIT);
	talloc_free(target);
}

static void shares(void **unused)
{
	struct share two[2];
	struct target target = {
		.name = "/s", .directory = "/s", .uses = TESTED,
		.shares = two, .num_shares = 2,
	};
	struct verdict verdict;

	(void)unused;
	share_init(&two[0], "/s");
	share_init(&two[1], "/s/b");
	set_all(&verdict, FIT);
	assert_int_equal(judged(&target, &verdict), FIT);
	/* what no share asks for */
	verdict.uses[USE_CLUSTER_LOCK] = use_of(UNFIT, "lock.exclusion");
	verdict.uses[USE_MMAP] = use_of(UNFIT, "mmap.mixed");
	assert_int_equal(judged(&target, &verdict), FIT);
	/* what one does without and the other does not */
	verdict.uses[USE_POSIX_LOCKING] = use_of(UNFIT, "lock.ofd");
	two[0].posix_locking = false;
	assert_int_equal(judged(&target, &verdict), UNFIT);
	two[1].posix_locking = false;
	assert_int_equal(judged(&target, &verdict), FIT);
	/* unfit is worse than unknown */
	verdict.uses[USE_FILE_ID] = use_of(UNKNOWN, "id.device");
	assert_int_equal(judged(&target, &verdict), UNKNOWN);
	verdict.uses[USE_SHARE] = use_of(UNFIT, "io.visibility");
	assert_int_equal(judged(&target, &verdict), UNFIT);
}

static void paths(void **unused)
{
	const struct target target = {
		.name = "/p", .directory = "/p", .uses = USE_BIT(USE_SHARE),
	};
	struct verdict verdict;

	(void)unused;
	set_all(&verdict, UNFIT);
	verdict.uses[USE_SHARE] = use_of(FIT, NULL);
	assert_int_equal(judged(&target, &verdict), FIT);
	verdict.uses[USE_SHARE] = use_of(UNFIT, "io.size");
	assert_int_equal(judged(&target, &verdict), UNFIT);
}

static void who_is_connected(void **unused)
{
	char text[] =
		"|Node|IP|Disconnected|Unknown|Banned|Disabled|Unhealthy|"
		"Stopped|Inactive|PartiallyOnline|ThisNode|\n"
		"|0|10.0.0.1|0|0|0|0|0|0|0|0|Y|\n"
		"|1|10.0.0.2|1|0|0|0|0|0|0|0|N|\n"
		"|3|fd00::4|0|0|0|0|1|0|0|0|N|\n"
		"|4711|10.0.0.5|0|0|0|0|0|0|0|0|N|\n"
		"rubbish\n|x|y|z|\n";
	bool *connected = talloc_zero_array(NULL, bool, NODES_MAX);

	(void)unused;
	connected_parse(text, connected);
	assert_true(connected[0]);
	assert_false(connected[1]);
	assert_false(connected[2]);
	assert_true(connected[3]);
	talloc_free(connected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lock),
		cmocka_unit_test(shares),
		cmocka_unit_test(paths),
		cmocka_unit_test(who_is_connected),
	};
	int ret;

	kept = talloc_new(NULL);
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	talloc_free(kept);
	return ret;
}
