/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/checks/id.h"
#include "core/checks/sight.h"

/* ---- the time scale */

static const struct {
	const char *fstype, *options;
	unsigned ms;
} caches[] = {
	{ "ext4", "rw,relatime", 5000 },
	{ "fuse.glusterfs", "rw,acregmax=9", 5000 },
	{ "nfs4", "rw,vers=4.2,hard", 60000 },
	{ "nfs", "rw,vers=3,acregmin=3,acregmax=5", 60000 },
	{ "nfs", "rw,acregmax=5,acdirmax=7,addr=10.0.0.1", 7000 },
	{ "nfs", "rw,acregmax=120,acdirmax=7", 120000 },
	{ "nfs4", "rw,acregmin=0,acregmax=0,acdirmin=0,acdirmax=0", 1000 },
	{ "nfs4", "rw,noac,addr=10.0.0.1", 1000 },
	{ "nfs4", "rw,noac", 1000 },
	{ "nfs4", "rw,noacl", 60000 },
	{ "cifs", "rw,vers=3.1.1,actimeo=1", 1000 },
	{ "cifs", "rw,acdirmax=30,acregmax=1", 30000 },
	{ "smb3", "actimeo=10", 10000 },
};

static void test_cache(void **unused)
{
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(caches) / sizeof(caches[0]); i++) {
		assert_int_equal(sight_cache_ms(caches[i].fstype,
						caches[i].options),
				 caches[i].ms);
	}
}

static const struct {
	bool locked, at_last;
	uint64_t age_ms;
	unsigned cache_ms;
	enum outcome outcome;
} sights[] = {
	/* under a lock it is wrong, however short */
	{ true, true, 0, 1000, OUTCOME_FAIL },
	{ true, true, 300, 60000, OUTCOME_FAIL },
	{ true, false, 2500, 60000, OUTCOME_FAIL },
	/* without one it may take 1 s, and longer is slow */
	{ false, true, 0, 1000, OUTCOME_PASS },
	{ false, true, 1000, 1000, OUTCOME_PASS },
	{ false, true, 1001, 1000, OUTCOME_SLOW },
	{ false, true, 45000, 60000, OUTCOME_SLOW },
	/* never seen: wrong when the cache's time is over */
	{ false, false, 1000, 1000, OUTCOME_SLOW },
	{ false, false, 1100, 1000, OUTCOME_FAIL },
	{ false, false, 2500, 60000, OUTCOME_SLOW },
	{ false, false, 60001, 60000, OUTCOME_FAIL },
};

static void test_sight(void **unused)
{
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(sights) / sizeof(sights[0]); i++) {
		assert_int_equal(sight_outcome(sights[i].locked,
					       sights[i].at_last,
					       sights[i].age_ms,
					       sights[i].cache_ms),
				 sights[i].outcome);
	}
}

/* ---- vfs_fileid */

static const char *fsname(const char *a, const char *b)
{
	struct member_info first = { .source = a }, second = { .source = b };
	const struct member_info *members[] = { &first, &second };

	return fileid_source_verdict(members, 2, fileid_fsname);
}

static void test_fsname(void **unused)
{
	(void)unused;
	assert_string_equal(fsname("srv:/vol", "srv:/vol"), "agree");
	assert_string_equal(fsname("srv:/vol", "srv2:/vol"), "differ");
	assert_string_equal(fsname("/dev/mapper/vg", "mapper/vg"), "agree");
	assert_string_equal(fsname("/dev/sda", "/dev/sdb"), "differ");
	assert_string_equal(fsname("/device", "ice"), "differ");
}

static void test_glusterfs_fuse(void **unused)
{
	static const struct {
		const char *source, *volume;
	} table[] = {
		{"node1:/v", "/v"}, {"[::1]:v", "v"}, {"v", "v"}, {"", ""},
	};
	unsigned i;

	(void)unused;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		assert_string_equal(glusterfs_fuse_volume(table[i].source),
				    table[i].volume);
	}
}

static const char *fsid(uint64_t a, uint64_t b, uint64_t c)
{
	struct member_info first = { .fsid = a }, second = { .fsid = b };
	struct member_info third = { .fsid = c };
	const struct member_info *members[] = { &first, &second, &third };

	return fileid_fsid_verdict(members, 3);
}

static void test_fsid(void **unused)
{
	(void)unused;
	assert_string_equal(fsid(5, 5, 5), "agree");
	assert_string_equal(fsid(5, 5, 6), "differ");
	assert_string_equal(fsid(0, 0, 0), "zero");
	assert_string_equal(fsid(5, 5, 0), "zero");
	assert_string_equal(fsid(5, 6, 0), "zero");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_sight),
		cmocka_unit_test(test_fsname),
		cmocka_unit_test(test_glusterfs_fuse),
		cmocka_unit_test(test_fsid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
