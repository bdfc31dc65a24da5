/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A run that never took place: every check of the contract passes on members
 * of as many nodes, until a test says otherwise.
 */
#ifndef PINGPONG_TESTS_VERDICT_FIXTURE_H
#define PINGPONG_TESTS_VERDICT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/verdict/verdict.h"

#define FIXTURE_MEMBERS 3

static const char *const contract[] = {
	"lock.supported", "lock.exclusion", "lock.shared", "lock.getlk",
	"lock.handoff", "lock.cancel", "lock.release", "lock.range64",
	"lock.many", "lock.idle", "lock.ofd", "lock.flock", "lock.ring",
	"io.increment",
	"io.visibility", "io.size", "io.append", "mmap.increment",
	"mmap.visibility", "mmap.local", "mmap.mixed", "id.inode", "id.device",
	"dir.visibility", "lease.break", "rate.alone", "rate.together",
	"rate.recovery",
};
#define NUM_CONTRACT (sizeof(contract) / sizeof(*contract))

struct fixture {
	struct check checks[NUM_CONTRACT];
	const struct check *catalogue[NUM_CONTRACT + 1];
	struct member_info members[FIXTURE_MEMBERS];
	const struct member_info *member_list[FIXTURE_MEMBERS];
	struct verdict_input input;
	struct verdict *verdict;
};

static int free_metrics(struct check_result *result)
{
	json_decref(result->metrics);
	return 0;
}

/* The members' nodes, as mounts of one file system in as many directories */
static void fixture_mount(struct fixture *f, const char *fstype,
			  const char *source, const char *options)
{
	unsigned i;

	for (i = 0; i < FIXTURE_MEMBERS; i++) {
		struct member_info *m = &f->members[i];

		*m = (struct member_info){
			.number = i,
			.name = talloc_asprintf(f, "/mnt/%c", 'a' + i),
			.host = "node",
			.path = talloc_asprintf(f, "/mnt/%c/dir", 'a' + i),
			.resolved = talloc_asprintf(f, "/mnt/%c/dir", 'a' + i),
			.kernel = "6.1.0",
			.boot_id = "boot",
			.mnt_ns = 4026531841,
			.mount_id = 40 + i,
			.mount_line = talloc_asprintf(
				f, "%u 1 0:%u / /mnt/%c rw - %s %s %s", 40 + i,
				50 + i, 'a' + i, fstype, source, options),
			.fstype = fstype,
			.source = source,
			.options = talloc_asprintf(f, "rw,%s", options),
			.minor = 50 + i,
			.inode = 128,
			.fsid = 7,
		};
		f->member_list[i] = m;
	}
}

static struct fixture *fixture_new(void)
{
	struct fixture *f = talloc_zero(NULL, struct fixture);
	size_t i;

	assert_non_null(f);
	fixture_mount(f, "fuse.x", "x", "rw");
	f->input = (struct verdict_input){
		.catalogue = f->catalogue,
		.results = talloc_zero_array(f, struct check_result *,
					     NUM_CONTRACT),
		.num_results = NUM_CONTRACT,
		.members = f->member_list,
		.num_members = 2,
		.same_directory = true,
	};
	for (i = 0; i < NUM_CONTRACT; i++) {
		struct check_result *r = talloc_zero(f, struct check_result);

		f->checks[i].name = contract[i];
		f->catalogue[i] = &f->checks[i];
		r->check = &f->checks[i];
		r->outcome = OUTCOME_PASS;
		r->members = talloc_zero_array(r, unsigned, 2);
		r->members[1] = 1;
		r->metrics = json_object();
		talloc_set_destructor(r, free_metrics);
		f->input.results[i] = r;
	}
	return f;
}

static inline struct check_result *fixture_result(struct fixture *f,
						  const char *name)
{
	size_t i;

	for (i = 0; i < f->input.num_results; i++) {
		if (strcmp(f->input.results[i]->check->name, name) == 0) {
			return f->input.results[i];
		}
	}
	fail_msg("no result of %s", name);
	return NULL;
}

static inline struct check_result *fixture_set(struct fixture *f,
					       const char *name,
					       enum outcome outcome,
					       const char *why)
{
	struct check_result *r = fixture_result(f, name);

	r->outcome = outcome;
	r->why = why;
	return r;
}

/* The check was not asked for. */
static inline void fixture_drop(struct fixture *f, const char *name)
{
	size_t i;

	for (i = 0; i < f->input.num_results; i++) {
		if (strcmp(f->input.results[i]->check->name, name) == 0) {
			f->input.num_results--;
			f->input.results[i] =
				f->input.results[f->input.num_results];
			return;
		}
	}
	fail_msg("no result of %s", name);
}

static inline struct verdict *fixture_judge(struct fixture *f)
{
	int ret;

	TALLOC_FREE(f->verdict);
	ret = verdict_judge(f, &f->input, &f->verdict);
	assert_int_equal(ret, 0);
	return f->verdict;
}

/* "a, b, c" against a list of names */
static inline void assert_names(const char *const *names, const char *want)
{
	char *line = names_join(NULL, names);

	assert_string_equal(line, want);
	talloc_free(line);
}

#endif
