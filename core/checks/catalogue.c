/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "core/checks/catalogue.h"

/*
 * First what CTDB's cluster lock depends on, then the rest by what depends on
 * it, so that a run that is short of time has told the most. What may cost a
 * worker (lock.cancel: a waiter that SIGKILL does not end) comes last, a lock
 * that is left alone before that, since many are killed there.
 */
const struct check *const check_catalogue[] = {
	&check_lock_supported,
	&check_lock_exclusion,
	&check_lock_handoff,
	&check_lock_release,
	&check_id_inode,
	&check_id_device,
	&check_lock_ring,
	&check_lock_shared,
	&check_lock_getlk,
	&check_lock_ofd,
	&check_lock_range64,
	&check_lock_many,
	&check_io_visibility,
	&check_io_size,
	&check_io_append,
	&check_io_increment,
	&check_dir_visibility,
	&check_lock_flock,
	&check_mmap_local,
	&check_mmap_visibility,
	&check_mmap_mixed,
	&check_mmap_increment,
	&check_lease_break,
	&check_rate_alone,
	&check_rate_together,
	&check_rate_recovery,
	&check_lock_idle,
	&check_lock_cancel,
	NULL,
};

const struct check *check_by_name(const char *name)
{
	size_t i;

	for (i = 0; check_catalogue[i] != NULL; i++) {
		if (strcmp(check_catalogue[i]->name, name) == 0) {
			return check_catalogue[i];
		}
	}
	return NULL;
}

const struct check **checks_of_door(TALLOC_CTX *mem_ctx, unsigned door)
{
	size_t room = sizeof(check_catalogue) / sizeof(check_catalogue[0]);
	const struct check **checks = NULL;
	size_t i, n = 0;

	checks = talloc_zero_array(mem_ctx, const struct check *, room);
	if (checks == NULL) {
		return NULL;
	}
	for (i = 0; check_catalogue[i] != NULL; i++) {
		if ((check_catalogue[i]->doors & door) != 0) {
			checks[n++] = check_catalogue[i];
		}
	}
	return checks;
}

static const char *const outcome_names[] = {
	[OUTCOME_PASS] = "pass",
	[OUTCOME_SLOW] = "slow",
	[OUTCOME_FAIL] = "fail",
	[OUTCOME_HUNG] = "hung",
	[OUTCOME_UNSUPPORTED] = "unsupported",
	[OUTCOME_SKIPPED] = "skipped",
};

const char *outcome_name(enum outcome outcome)
{
	return outcome_names[outcome];
}

bool outcome_parse(const char *name, enum outcome *outcome)
{
	unsigned i;

	for (i = 0; i <= OUTCOME_SKIPPED; i++) {
		if (strcmp(outcome_names[i], name) == 0) {
			*outcome = (enum outcome)i;
			return true;
		}
	}
	return false;
}

bool outcome_worse(enum outcome a, enum outcome b)
{
	static const unsigned rank[] = {
		[OUTCOME_PASS] = 0,
		[OUTCOME_SLOW] = 1,
		[OUTCOME_SKIPPED] = 2,
		[OUTCOME_UNSUPPORTED] = 3,
		[OUTCOME_FAIL] = 4,
		[OUTCOME_HUNG] = 5,
	};

	return rank[a] > rank[b];
}
