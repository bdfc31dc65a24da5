/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/unit/verdict_fixture.h"

/*
 * "FILE [SECTION] PARAMETER = VALUE[ needed]" of every setting, in order.
 */
static char *listing(TALLOC_CTX *mem_ctx, const struct verdict *v)
{
	char *s = talloc_strdup(mem_ctx, "");
	size_t i;

	for (i = 0; i < v->num_settings; i++) {
		const struct setting *set = &v->settings[i];

		s = talloc_asprintf_append(s, "%s[%s] %s=%s%s\n", set->file,
					   set->section, set->parameter,
					   set->value,
					   set->needed ? " needed" : "");
		assert_non_null(set->because);
		assert_null(strchr(set->because, '\n'));
	}
	return s;
}

static void assert_settings(struct fixture *f, const char *want)
{
	struct verdict *v = fixture_judge(f);

	assert_string_equal(listing(v, v), want);
}

static const struct setting *setting_of(struct fixture *f,
					const char *parameter)
{
	size_t i;

	for (i = 0; i < f->verdict->num_settings; i++) {
		if (strcmp(f->verdict->settings[i].parameter, parameter) ==
		    0) {
			return &f->verdict->settings[i];
		}
	}
	fail_msg("no setting %s", parameter);
	return NULL;
}

/* ---- smb.conf and ctdb.conf */

static void test_process_locks(void **state)
{
	struct fixture *f = fixture_new();

	(void)state;
	fixture_set(f, "lock.ofd", OUTCOME_UNSUPPORTED, "EINVAL");
	assert_settings(f, "smb.conf[global] smbd force process locks=yes "
			   "needed\n");
	assert_names(f->verdict->uses[USE_POSIX_LOCKING].mended_by,
		     "smbd force process locks");
	assert_int_equal(verdict_exit(f->verdict, USES_DEFAULT), 1);
	assert_non_null(strstr(setting_of(f, "smbd force process locks")
				       ->because, "lock.ofd"));

	/* not what other checks found */
	fixture_set(f, "lock.many", OUTCOME_FAIL, "257 refused");
	assert_settings(f, "smb.conf[global] posix locking=no\n");
	assert_names(f->verdict->uses[USE_POSIX_LOCKING].mended_by, "");
	assert_int_equal(verdict_exit(f->verdict, USES_DEFAULT), 2);

	fixture_set(f, "lock.many", OUTCOME_PASS, NULL);
	fixture_set(f, "io.visibility", OUTCOME_FAIL, "old data");
	assert_settings(f, "smb.conf[global] posix locking=no\n");
	fixture_set(f, "io.visibility", OUTCOME_PASS, NULL);

	/* and not where it hangs */
	fixture_set(f, "lock.ofd", OUTCOME_HUNG, "no answer");
	assert_settings(f, "smb.conf[global] posix locking=no\n");
	assert_int_equal(verdict_exit(f->verdict, USES_DEFAULT), 3);
	talloc_free(f);
}

static void set_algorithms(struct fixture *f, const char *fsname,
			   const char *fsid)
{
	struct check_result *r = fixture_set(f, "id.device", OUTCOME_FAIL,
					     "st_dev differs");
	int ret;

	ret = json_object_set_new(r->metrics, "algorithms",
				  json_pack("{s:s, s:s}", "fsname", fsname,
					    "fsid", fsid));
	assert_int_equal(ret, 0);
}

static void test_fileid(void **state)
{
	struct fixture *f = fixture_new();
	const char *with_fsname =
		"smb.conf[global] vfs objects=fileid needed\n"
		"smb.conf[global] fileid:algorithm=fsname needed\n";

	(void)state;
	set_algorithms(f, "agree", "zero");
	assert_settings(f, with_fsname);
	assert_names(f->verdict->uses[USE_FILE_ID].mended_by,
		     "vfs objects, fileid:algorithm");
	assert_int_equal(verdict_exit(f->verdict, USES_DEFAULT), 1);

	set_algorithms(f, "agree", "agree");
	assert_settings(f, with_fsname);
	assert_names(f->verdict->uses[USE_FILE_ID].mended_by,
		     "vfs objects, fileid:algorithm");

	set_algorithms(f, "differ", "agree");
	assert_settings(f, "smb.conf[global] vfs objects=fileid needed\n"
			   "smb.conf[global] fileid:algorithm=fsid needed\n");
	assert_names(f->verdict->uses[USE_FILE_ID].mended_by,
		     "vfs objects, fileid:algorithm");

	/* none gives one answer: nothing mends it */
	set_algorithms(f, "differ", "zero");
	assert_settings(f, "");
	assert_int_equal(verdict_exit(f->verdict, USES_DEFAULT), 2);
	set_algorithms(f, "differ", "differ");
	assert_settings(f, "");

	/* no evidence: nothing named */
	json_object_clear(fixture_result(f, "id.device")->metrics);
	assert_settings(f, "");

	/* a differing st_ino is mended by nothing */
	set_algorithms(f, "agree", "agree");
	fixture_set(f, "id.inode", OUTCOME_FAIL, "st_ino differs");
	assert_settings(f, "");
	assert_int_equal(verdict_exit(f->verdict, USE_BIT(USE_FILE_ID)), 2);

	/* nor is anything mended that is not broken */
	fixture_set(f, "id.inode", OUTCOME_PASS, NULL);
	fixture_set(f, "id.device", OUTCOME_PASS, NULL);
	assert_settings(f, "");
	talloc_free(f);
}

static void test_mmap(void **state)
{
	static const char *const of_mmap[] = {"mmap.visibility", "mmap.mixed",
					      "mmap.increment"};
	const char *no_mmap = "smb.conf[global] use mmap=no needed\n"
			      "ctdb.conf[database] tdb mutexes=false needed\n";
	struct fixture *f = NULL;
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		f = fixture_new();
		fixture_set(f, of_mmap[i],
			    i == 0 ? OUTCOME_UNSUPPORTED : OUTCOME_FAIL, "x");
		assert_settings(f, no_mmap);
		assert_names(f->verdict->uses[USE_MMAP].mended_by,
			     "use mmap, tdb mutexes");
		assert_names(f->verdict->uses[USE_TDB].mended_by, "");
		assert_int_equal(verdict_exit(f->verdict, USE_BIT(USE_MMAP)),
				 1);
		assert_int_equal(verdict_exit(f->verdict, USES_DEFAULT), 0);
		talloc_free(f);
	}

	f = fixture_new();
	fixture_set(f, "mmap.local", OUTCOME_FAIL, "x");
	fixture_set(f, "mmap.visibility", OUTCOME_FAIL, "x");
	assert_settings(f, no_mmap);
	assert_names(f->verdict->uses[USE_TDB].mended_by,
		     "use mmap, tdb mutexes");
	assert_names(f->verdict->uses[USE_MMAP].mended_by,
		     "use mmap, tdb mutexes");
	/* what it costs, and what it does not change */
	assert_non_null(strstr(setting_of(f, "use mmap")->because,
			       "hundred times slower"));
	assert_non_null(strstr(setting_of(f, "use mmap")->because, "ctdbd"));
	assert_non_null(strstr(setting_of(f, "tdb mutexes")->because,
			       "use mmap = no"));

	fixture_set(f, "mmap.local", OUTCOME_HUNG, "no answer");
	fixture_set(f, "mmap.visibility", OUTCOME_HUNG, "no answer");
	assert_settings(f, "");
	assert_int_equal(verdict_exit(f->verdict, USE_BIT(USE_MMAP)), 3);
	talloc_free(f);
}

static void test_advice(void **state)
{
	struct fixture *f = fixture_new();

	(void)state;
	fixture_set(f, "lease.break", OUTCOME_FAIL, "not broken");
	assert_settings(f, "smb.conf[global] kernel oplocks=no\n");
	fixture_set(f, "lock.flock", OUTCOME_FAIL, "granted twice");
	assert_settings(f, "smb.conf[global] kernel oplocks=no\n"
			   "smb.conf[global] kernel share modes=no\n");
	assert_int_equal(verdict_exit(f->verdict, USES_DEFAULT), 0);
	fixture_set(f, "lease.break", OUTCOME_SKIPPED, "no time");
	fixture_set(f, "lock.flock", OUTCOME_SKIPPED, "no time");
	assert_settings(f, "");
	talloc_free(f);
}

/* ---- mount options */

#define FCNTL 0x1
#define FLOCK 0x2
#define REFUSED 0x4

static const struct {
	const char *fstype;
	const char *options;
	unsigned seen;		/* what makes the option named */
	const char *parameter;
	const char *value;
} mounts[] = {
	{"lustre", "flock", 0, NULL, NULL},
	{"lustre", "localflock,user_xattr", FCNTL | FLOCK, "localflock",
	 "flock"},
	{"lustre", "checksum", REFUSED, "flock", "flock"},
	{"nfs", "vers=3,nolock,local_lock=all", FCNTL | FLOCK, "nolock",
	 "lock"},
	{"nfs", "vers=3,local_lock=all", FCNTL | FLOCK, "local_lock=all",
	 "local_lock=none"},
	{"nfs", "vers=3,local_lock=posix", FCNTL, "local_lock=posix",
	 "local_lock=none"},
	{"nfs", "local_lock=flock,vers=3", FLOCK, "local_lock=flock",
	 "local_lock=none"},
	{"nfs4", "vers=4.2,local_lock=all", FCNTL | FLOCK, "local_lock=all",
	 "local_lock=none"},
	{"nfs4", "vers=4.2,local_lock=posix", FCNTL, "local_lock=posix",
	 "local_lock=none"},
	{"nfs4", "local_lock=flock", FLOCK, "local_lock=flock",
	 "local_lock=none"},
	{"nfs4", "vers=4.2,local_lock=none", 0, NULL, NULL},
	{"cifs", "vers=3.1.1,nobrl", FCNTL | FLOCK, "nobrl", ""},
	{"smb3", "nobrl,x=y", FCNTL | FLOCK, "nobrl", ""},
	{"gfs2", "localflocks", FCNTL | FLOCK, "localflocks", ""},
	{"gfs2", "lockproto=lock_nolock", FCNTL | FLOCK,
	 "lockproto=lock_nolock", "lockproto=lock_dlm"},
	{"ocfs2", "localflocks,coherency=full", FLOCK, "localflocks", ""},
	{"pvfs2", "local_lock", FCNTL | FLOCK, "local_lock", ""},
	/* the name of an option in another one's, or on another type */
	{"ext4", "nolock,nobrl,localflock", 0, NULL, NULL},
	{"nfs", "xnolock,nolockx,source=nolock", 0, NULL, NULL},
};

static void try_mount(size_t i, unsigned seen)
{
	struct fixture *f = fixture_new();
	struct verdict *v = NULL;
	unsigned n = 0;
	size_t s;

	fixture_mount(f, mounts[i].fstype, "source", mounts[i].options);
	if (seen & FCNTL) {
		fixture_set(f, "lock.exclusion", OUTCOME_FAIL, "x");
	}
	if (seen & FLOCK) {
		fixture_set(f, "lock.flock", OUTCOME_FAIL, "x");
	}
	if (seen & REFUSED) {
		fixture_set(f, "lock.supported", OUTCOME_UNSUPPORTED, "x");
	}
	v = fixture_judge(f);
	for (s = 0; s < v->num_settings; s++) {
		const struct setting *set = &v->settings[s];

		if (strcmp(set->file, "mount options") != 0) {
			continue;
		}
		assert_string_equal(set->section, n == 0 ? "/mnt/a" : "/mnt/b");
		assert_string_equal(set->parameter, mounts[i].parameter);
		assert_string_equal(set->value, mounts[i].value);
		assert_true(set->needed);
		n++;
	}
	assert_int_equal(n, (seen & mounts[i].seen) != 0 ? 2 : 0);
	/* to be shown by another run, not promised */
	assert_names(v->uses[USE_CLUSTER_LOCK].mended_by, "");
	talloc_free(f);
}

static void test_mount_options(void **state)
{
	size_t i;
	unsigned seen;

	(void)state;
	for (i = 0; i < sizeof(mounts) / sizeof(*mounts); i++) {
		for (seen = 0; seen <= REFUSED; seen++) {
			try_mount(i, seen);
		}
	}
}

/* The evidence has to be that of locks that are local to a node. */
static void test_mount_options_evidence(void **state)
{
	struct fixture *f = fixture_new();
	struct check_result *r = NULL;

	(void)state;
	fixture_mount(f, "nfs", "srv:/x", "nolock");
	r = fixture_set(f, "lock.exclusion", OUTCOME_FAIL, "granted twice");
	json_object_set_new(r->metrics, "local", json_false());
	assert_settings(f, "smb.conf[global] posix locking=no\n");

	json_object_set_new(r->metrics, "local", json_true());
	assert_settings(f, "mount options[/mnt/a] nolock=lock needed\n"
			   "mount options[/mnt/b] nolock=lock needed\n"
			   "smb.conf[global] posix locking=no\n");

	r->outcome = OUTCOME_HUNG;
	assert_settings(f, "smb.conf[global] posix locking=no\n");

	/* one node: what is local to it can't be told */
	r->outcome = OUTCOME_FAIL;
	f->members[1].minor = f->members[0].minor;
	assert_settings(f, "smb.conf[global] posix locking=no\n");
	talloc_free(f);

	/* members on one mount point, as on two hosts: named once */
	f = fixture_new();
	fixture_mount(f, "nfs", "srv:/x", "nolock");
	f->members[1].mount_line = f->members[0].mount_line;
	f->members[1].name = "node2:/mnt/a";
	fixture_set(f, "lock.exclusion", OUTCOME_FAIL, "granted twice");
	assert_settings(f, "mount options[/mnt/a] nolock=lock needed\n"
			   "smb.conf[global] posix locking=no\n");
	assert_string_equal(setting_of(f, "nolock")->because,
			    "keeps locks on the node: so mounted at /mnt/a, "
			    "node2:/mnt/a");
	talloc_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process_locks),
		cmocka_unit_test(test_fileid),
		cmocka_unit_test(test_mmap),
		cmocka_unit_test(test_advice),
		cmocka_unit_test(test_mount_options),
		cmocka_unit_test(test_mount_options_evidence),
	};

	return cmocka_run_group_tests_name("settings", tests, NULL, NULL);
}
