/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#include "core/verdict/share.h"

#define NOW 1700000000
#define PATH "/gpfs/share"
#define DEVICE "0:50"
#define MOUNT "41 1 " DEVICE " / /gpfs rw - fuse.gpfs cluster rw"

/* A share, and what is known of its file system: fit for all, on two nodes */
struct bench {
	struct share share;
	struct stored_record record;
	struct setting settings[8];
	struct share_answer answer;
};

static const char *none[] = {NULL};

static int setup(void **state)
{
	struct bench *b = talloc_zero(NULL, struct bench);
	unsigned i;

	assert_non_null(b);
	share_init(&b->share, PATH);
	b->record.fstype = "fuse.gpfs";
	b->record.source = "cluster";
	b->record.settings = b->settings;
	for (i = 0; i < USE_COUNT; i++) {
		b->record.uses[i] = (struct stored_use){
			.present = true,
			.scope = SCOPE_CLUSTER,
			.when = NOW - 100,
			.because = none,
			.mended_by = none,
		};
	}
	*state = b;
	return 0;
}

static int teardown(void **state)
{
	struct bench *b = *state;

	talloc_free(b);
	return 0;
}

/* The mounts like the share's, NULL at the end */
static void mounted(struct bench *b, const char *line, ...)
{
	unsigned num = 0;
	va_list ap;

	b->record.mounts = talloc_zero_array(b, struct mount_line *, 8);
	va_start(ap, line);
	for (; line != NULL; line = va_arg(ap, const char *)) {
		int ret = mount_line_parse(b->record.mounts, line,
					   &b->record.mounts[num]);

		assert_int_equal(ret, 0);
		num++;
	}
	va_end(ap);
}

static void set(struct bench *b, const char *parameter, const char *value)
{
	int ret = share_set(b, &b->share, parameter, value);

	assert_int_equal(ret, 0);
}

static void unfit(struct bench *b, enum use use, const char *check)
{
	const char **because = talloc_zero_array(b, const char *, 2);

	because[0] = check;
	b->record.uses[use].fitness = UNFIT;
	b->record.uses[use].because = because;
	b->record.uses[use].reason = "it was seen to fail";
}

/* The verdict names a setting; one that is needed mends the use. */
static void name(struct bench *b, enum use use, const char *parameter,
		 const char *value, bool needed)
{
	static const char *mended[] = {"something", NULL};

	b->settings[b->record.num_settings] = (struct setting){
		.file = "smb.conf",
		.section = "global",
		.parameter = parameter,
		.value = value,
		.needed = needed,
		.because = "so it is",
		.uses = USE_BIT(use),
	};
	b->record.num_settings++;
	if (needed) {
		b->record.uses[use].mended_by = mended;
	}
}

static void assert_judged(struct bench *b, enum fitness fitness,
			  enum share_more more, const char *reason)
{
	enum share_more seen = share_judge(b, &b->share, &b->record, NOW,
					   &b->answer);

	assert_string_equal(fitness_name(b->answer.fitness),
			    fitness_name(fitness));
	assert_int_equal(seen, more);
	if (reason == NULL) {
		return;
	}
	if (strstr(b->answer.reason, reason) == NULL) {
		fail_msg("'%s' is not in '%s'", reason, b->answer.reason);
	}
	assert_non_null(b->answer.remedy);
}

static void test_set(void **state)
{
	struct bench *b = *state;
	unsigned all = b->share.uses;
	int ret;

	set(b, "posix locking", "No");
	assert_false(b->share.posix_locking);
	set(b, "posix locking", "1");
	assert_true(b->share.posix_locking);
	ret = share_set(b, &b->share, "posix locking", "perhaps");
	assert_int_equal(ret, EINVAL);
	assert_true(b->share.posix_locking);

	set(b, "vfs objects", "\tacl_xattr, \"/a b/pingpong.so:x\" fileid:y");
	assert_string_equal(b->share.objects[0], "acl_xattr");
	assert_string_equal(b->share.objects[1], "/a b/pingpong.so:x");
	assert_string_equal(b->share.objects[2], "fileid:y");
	assert_null(b->share.objects[3]);
	assert_true(share_has_module(&b->share, "pingpong"));
	assert_true(share_has_module(&b->share, "fileid"));
	assert_false(share_has_module(&b->share, "acl"));
	set(b, "vfs objects", " ");
	assert_null(b->share.objects);
	assert_false(share_has_module(&b->share, "pingpong"));

	set(b, "pingpong:for", "share tdb");
	assert_int_equal(b->share.uses, USE_BIT(USE_SHARE) | USE_BIT(USE_TDB));
	ret = share_set(b, &b->share, "pingpong:for", "share shares");
	assert_int_equal(ret, EINVAL);
	assert_int_equal(b->share.uses, USE_BIT(USE_SHARE) | USE_BIT(USE_TDB));
	set(b, "pingpong:for", "posix-locking,file-id, share");
	assert_int_equal(b->share.uses, all);
	set(b, "pingpong:for", "");
	assert_int_equal(b->share.uses, 0);

	set(b, "pingpong:scope", "Cluster");
	assert_int_equal(b->share.scope, SCOPE_CLUSTER);
	ret = share_set(b, &b->share, "pingpong:scope", "both");
	assert_int_equal(ret, EINVAL);
	set(b, "pingpong:max age", "60");
	assert_int_equal(b->share.max_age_s, 60);
	ret = share_set(b, &b->share, "pingpong:max age", "-1");
	assert_int_equal(ret, EINVAL);
	ret = share_set(b, &b->share, "pingpong:max age", "1h");
	assert_int_equal(ret, EINVAL);
	ret = share_set(b, &b->share, "pingpong:max age", "99999999999");
	assert_int_equal(ret, EINVAL);
	assert_int_equal(b->share.max_age_s, 60);

	ret = share_set(b, &b->share, "read only", "no");
	assert_int_equal(ret, ENOENT);
}

static void test_age(void **state)
{
	struct bench *b = *state;

	assert_judged(b, FIT, SHARE_DECIDED, NULL);
	b->share.max_age_s = 100;
	assert_judged(b, UNKNOWN, SHARE_CHECK, "too long ago");
	b->share.max_age_s = 101;
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
	b->record.uses[USE_SHARE].when = NOW + 1;
	assert_judged(b, UNKNOWN, SHARE_CHECK, "too long ago");
	b->record.uses[USE_SHARE].when = NOW;
	b->record.uses[USE_SHARE].present = false;
	assert_judged(b, UNKNOWN, SHARE_CHECK, "not checked");
}

static void test_hung_is_young(void **state)
{
	struct bench *b = *state;
	struct stored_use *use = &b->record.uses[USE_SHARE];

	unfit(b, USE_SHARE, "io.size");
	use->hung = true;
	assert_judged(b, UNFIT, SHARE_DECIDED, "unfit for share across nodes");
	use->light = true;
	assert_judged(b, UNKNOWN, SHARE_CHECK, "too long ago");
	use->when = NOW - 29;
	assert_judged(b, UNFIT, SHARE_DECIDED, "unfit for share across nodes");
}

static void test_uses(void **state)
{
	struct bench *b = *state;

	unfit(b, USE_TDB, "mmap.local");
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
	set(b, "pingpong:for", "share tdb");
	assert_judged(b, UNFIT, SHARE_DECIDED, "unfit for tdb");
	set(b, "pingpong:for", "share posix-locking");
	assert_judged(b, FIT, SHARE_DECIDED, NULL);

	unfit(b, USE_POSIX_LOCKING, "lock.exclusion");
	assert_judged(b, UNFIT, SHARE_DECIDED, "unfit for posix-locking across nodes: "
		      "it was seen to fail");
	assert_non_null(strstr(b->answer.remedy, "explain lock.exclusion"));
	set(b, "posix locking", "no");
	assert_int_equal(share_uses(&b->share), USE_BIT(USE_SHARE));
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
}

static void test_scope(void **state)
{
	struct bench *b = *state;

	b->record.uses[USE_SHARE].scope = SCOPE_LOCAL;
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
	set(b, "pingpong:scope", "cluster");
	assert_judged(b, UNKNOWN, SHARE_ASK_PEERS, "only one node tested");
	b->record.uses[USE_POSIX_LOCKING].fitness = UNKNOWN;
	assert_judged(b, UNKNOWN, SHARE_CHECK, NULL);
	unfit(b, USE_SHARE, "io.size");
	assert_judged(b, UNFIT, SHARE_DECIDED, "unfit for share: ");
}

static void test_not_tested(void **state)
{
	struct bench *b = *state;

	b->record.uses[USE_SHARE].fitness = UNKNOWN;
	b->record.uses[USE_SHARE].reason = "it is full";
	assert_judged(b, UNKNOWN, SHARE_CHECK, "it is full");
	/* what is known to be wrong decides */
	unfit(b, USE_FILE_ID, "id.inode");
	assert_judged(b, UNFIT, SHARE_DECIDED, "unfit for file-id");
}

static void test_process_locks(void **state)
{
	struct bench *b = *state;

	unfit(b, USE_POSIX_LOCKING, "lock.ofd");
	name(b, USE_POSIX_LOCKING, "smbd force process locks", "yes", true);
	assert_judged(b, UNFIT, SHARE_DECIDED, "unfit for posix-locking");
	assert_non_null(strstr(b->answer.remedy,
			       "`smbd force process locks = yes`"));
	set(b, "smbd force process locks", "yes");
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
}

static void test_leases_and_flock(void **state)
{
	static const char *const asking[] = {
		"kernel oplocks", "kernel share modes",
	};
	struct bench *b = *state;
	unsigned i;

	for (i = 0; i < 2; i++) {
		b->record.num_settings = 0;
		name(b, USE_SHARE, asking[i], "no", false);
		assert_judged(b, FIT, SHARE_DECIDED, NULL);
		set(b, asking[i], "yes");
		assert_judged(b, UNFIT, SHARE_DECIDED, asking[i]);
		set(b, "pingpong:for", "posix-locking");
		assert_judged(b, FIT, SHARE_DECIDED, NULL);
		set(b, "pingpong:for", "share");
		set(b, asking[i], "no");
		assert_judged(b, FIT, SHARE_DECIDED, NULL);
	}
}

static void test_elsewhere(void **state)
{
	struct bench *b = *state;
	bool elsewhere;

	set(b, "vfs objects", "pingpong cephalopod");
	elsewhere = share_elsewhere(b, &b->share, &b->answer);
	assert_false(elsewhere);
	set(b, "vfs objects", "pingpong ceph_new");
	elsewhere = share_elsewhere(b, &b->share, &b->answer);
	assert_true(elsewhere);
	assert_int_equal(b->answer.fitness, UNFIT);
	set(b, "posix locking", "no");
	elsewhere = share_elsewhere(b, &b->share, &b->answer);
	assert_true(elsewhere);
	assert_int_equal(b->answer.fitness, UNKNOWN);
	set(b, "posix locking", "yes");
	set(b, "vfs objects", "pingpong glusterfs");
	elsewhere = share_elsewhere(b, &b->share, &b->answer);
	assert_true(elsewhere);
	assert_int_equal(b->answer.fitness, UNKNOWN);
}

/* ---- vfs_fileid ---------------------------------------------------------- */

/* What gives one id on all members: ids, up to NULL */
static void ids_are(struct bench *b, const char *ids, ...)
{
	struct stored_use *use = &b->record.uses[USE_FILE_ID];
	va_list ap;

	use->ids = talloc_zero_array(b, const char *, 1);
	va_start(ap, ids);
	for (; ids != NULL; ids = va_arg(ap, const char *)) {
		bool ok = names_add(b, &use->ids, ids);

		assert_true(ok);
	}
	va_end(ap);
}

/* st_dev differs between nodes; what mends it */
static void id_differs(struct bench *b, const char *algorithm)
{
	b->record.num_settings = 0;
	unfit(b, USE_FILE_ID, "id.device");
	name(b, USE_FILE_ID, "vfs objects", "fileid", true);
	name(b, USE_FILE_ID, "fileid:algorithm", algorithm, true);
	ids_are(b, algorithm, NULL);
}

static const char *const lists_of_modules[] = {
	"fileid", "pingpong fileid", "fileid pingpong acl_xattr",
};

static void test_fileid_algorithm(void **state)
{
	static const struct {
		const char *ids;
		const char *parameter, *value;
		enum fitness fitness;
	} table[] = {
		{"fsname", "fileid:algorithm", "fsname", FIT},
		{"fsname", "fileid:algorithm", "fsname_nodirs", FIT},
		{"fsname", "fileid:algorithm", "fsname_norootdir", FIT},
		{"fsname", "fileid:algorithm", "fsname_norootdir_ext", FIT},
		{"fsname", "fileid:algorithm", "fsid", UNFIT},
		{"fsname", "fileid:algorithm", "fsnames", UNKNOWN},
		{"fsname", "fileid:algorithm", "fsname_", UNKNOWN},
		{"fsname", "fileid:algorithm", "next_module", UNFIT},
		{"fsname", "fileid:mapping", "fsname", FIT},
		{"fsname", "fileid:mapping", "fsid", UNFIT},
		{"fsname", "fileid:fstype deny", "nfs", FIT},
		{"fsid", "fileid:algorithm", "fsid", FIT},
		{"fsid", "fileid:mapping", "fsid", FIT},
		{"fsid", "fileid:algorithm", "fsname", UNFIT},
		{"fsid", "fileid:algorithm", "fsname_nodirs", UNFIT},
		{"fsid", "fileid:mntdir allow", "/gpfs", UNFIT},
		{"fsid 0", "fileid:algorithm", "fsid", UNKNOWN},
		{"fsid 0", "fileid:algorithm", "fsname", UNFIT},
		{"glusterfs_fuse", "fileid:algorithm", "fsname", UNFIT},
		/* of each node's own, which is what it is for */
		{"fsname", "fileid:algorithm", "hostname", FIT},
		{"nothing", "fileid:algorithm", "hostname", FIT},
		{"nothing", "fileid:nolock_all_inodes", "yes", FIT},
		{"nothing", "fileid:nolock_all_inodes", "no", UNFIT},
	};
	struct bench *b = *state;
	unsigned i, j;

	mounted(b, MOUNT, NULL);
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		share_init(&b->share, PATH);
		id_differs(b, table[i].ids);
		set(b, table[i].parameter, table[i].value);
		assert_judged(b, UNFIT, SHARE_DECIDED, "unfit for file-id");
		for (j = 0; j < 3; j++) {
			set(b, "vfs objects", lists_of_modules[j]);
			assert_judged(b, table[i].fitness, SHARE_DECIDED, NULL);
		}
	}
	share_init(&b->share, PATH);
	set(b, "vfs objects", "fileid");
	set(b, "fileid:mapping", "next_module");
	set(b, "fileid:algorithm", "hostname");
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
}

/* More than one algorithm may give one answer. */
static void test_fileid_both(void **state)
{
	struct bench *b = *state;

	mounted(b, MOUNT, NULL);
	id_differs(b, "fsname");
	ids_are(b, IDS_FSNAME, IDS_FSID, NULL);
	set(b, "vfs objects", "fileid");
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
	set(b, "fileid:algorithm", "fsid");
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
	set(b, "fileid:algorithm", "next_module");
	assert_judged(b, UNFIT, SHARE_DECIDED, "does not mend it");
	/* and a file's inode is not mended by any */
	unfit(b, USE_FILE_ID, "id.inode");
	set(b, "fileid:algorithm", "fsid");
	assert_judged(b, UNFIT, SHARE_DECIDED, "unfit for file-id");
	set(b, "fileid:algorithm", "hostname");
	assert_judged(b, UNFIT, SHARE_DECIDED, "unfit for file-id");
}

/* Where st_dev is the same on all nodes, fileid can still tell them apart. */
static void test_fileid_spoils(void **state)
{
	struct bench *b = *state;

	mounted(b, MOUNT, NULL);
	ids_are(b, IDS_ST_DEV, IDS_FSID, NULL);
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
	set(b, "vfs objects", "fileid pingpong");
	assert_judged(b, UNFIT, SHARE_DECIDED, "`fileid:algorithm = fsname` makes");
	assert_non_null(strstr(b->answer.remedy, "no fileid"));
	assert_non_null(strstr(b->answer.remedy, "explain id.device"));
	set(b, "fileid:mntdir deny", "/gpfs");
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
	set(b, "fileid:algorithm", "fsid");
	set(b, "fileid:mntdir deny", "");
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
	ids_are(b, IDS_ST_DEV, IDS_FSNAME, NULL);
	assert_judged(b, UNFIT, SHARE_DECIDED, "`fileid:algorithm = fsid` makes");
	assert_non_null(strstr(b->answer.remedy,
			       "`fileid:algorithm = fsname`"));
	/* a record that does not tell */
	b->record.uses[USE_FILE_ID].ids = NULL;
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
}

/* Of the modules that give ids the first one decides. */
static void test_glusterfs_fuse(void **state)
{
	static const struct {
		const char *ids, *objects, *algorithm;
		enum fitness fitness;
	} table[] = {
		{"glusterfs_fuse", "pingpong glusterfs_fuse", "fsname", FIT},
		{"glusterfs_fuse", "glusterfs_fuse fileid", "fsname", FIT},
		{"glusterfs_fuse", "fileid glusterfs_fuse", "fsname", UNFIT},
		{"glusterfs_fuse", "fileid glusterfs_fuse", "next_module",
		 FIT},
		{"fsname", "glusterfs_fuse fileid", "fsname", UNFIT},
		{"fsname", "fileid glusterfs_fuse", "fsname", FIT},
	};
	struct bench *b = *state;
	unsigned i;

	mounted(b, MOUNT, NULL);
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		id_differs(b, table[i].ids);
		set(b, "vfs objects", table[i].objects);
		set(b, "fileid:algorithm", table[i].algorithm);
		assert_judged(b, table[i].fitness, SHARE_DECIDED, NULL);
	}
	id_differs(b, "fsname");
	set(b, "vfs objects", "glusterfs_fuse");
	assert_judged(b, UNFIT, SHARE_DECIDED, "vfs_glusterfs_fuse does not mend it");
}

static void test_own_ids(void **state)
{
	struct bench *b = *state;

	set(b, "fileid:algorithm", "hostname");
	assert_null(share_own_ids(&b->share));
	set(b, "vfs objects", "fileid");
	assert_string_equal(share_own_ids(&b->share),
			    "fileid:algorithm = hostname");
	set(b, "fileid:algorithm", "fsname_nodirs");
	assert_null(share_own_ids(&b->share));
	set(b, "fileid:nolock_all_inodes", "yes");
	assert_string_equal(share_own_ids(&b->share),
			    "fileid:nolock_all_inodes = yes");
}

static void test_fileid_lists(void **state)
{
	static const struct {
		const char *parameter, *value;
		enum fitness fitness;
	} table[] = {
		{"fileid:fstype deny", "nfs ext4", FIT},
		{"fileid:fstype deny", "nfs fuse.gpfs", UNFIT},
		{"fileid:fstype allow", "fuse.gpfs", FIT},
		{"fileid:fstype allow", "gpfs nfs", UNFIT},
		{"fileid:mntdir deny", "/gpfs/share", FIT},
		{"fileid:mntdir deny", "/mnt, /gpfs", UNFIT},
		{"fileid:mntdir allow", "/gpfs", FIT},
		{"fileid:mntdir allow", "/gpfs/", UNFIT},
	};
	struct bench *b = *state;
	unsigned i;

	mounted(b, MOUNT, NULL);
	id_differs(b, "fsname");
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		share_init(&b->share, PATH);
		set(b, "vfs objects", "fileid");
		set(b, table[i].parameter, table[i].value);
		assert_judged(b, table[i].fitness, SHARE_DECIDED,
			      table[i].fitness == UNFIT ?
				      "leaves st_dev as it is" : NULL);
	}
}

/* The first mount that stat(2) shows on the device gives its name. */
static void test_fileid_first_mount(void **state)
{
	struct bench *b = *state;

	id_differs(b, "fsname");
	set(b, "vfs objects", "fileid");
	mounted(b, "30 1 0:30 / /gpfs rw - autofs systemd-1 rw", MOUNT, NULL);
	assert_judged(b, UNKNOWN, SHARE_DECIDED, "was not tested");
	ids_are(b, IDS_FSNAME, IDS_FSID, NULL);
	set(b, "fileid:fstype deny", "autofs");
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
	/* mounted elsewhere, too, by another name */
	mounted(b, "31 1 " DEVICE " / /alias rw - fuse.gpfs other rw", MOUNT,
		NULL);
	assert_judged(b, UNKNOWN, SHARE_DECIDED, "was not tested");
	set(b, "fileid:mntdir allow", "/gpfs");
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
	/* f_fsid is the upper one's */
	id_differs(b, "fsid");
	set(b, "fileid:algorithm", "fsid");
	set(b, "fileid:mntdir allow", "/alias");
	assert_judged(b, FIT, SHARE_DECIDED, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_set, setup, teardown),
		cmocka_unit_test_setup_teardown(test_age, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hung_is_young, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_uses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_scope, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_tested, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_process_locks, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_leases_and_flock, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_elsewhere, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_fileid_algorithm, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_fileid_both, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_fileid_spoils, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_glusterfs_fuse, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_own_ids, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_fileid_lists, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_fileid_first_mount, setup,
						teardown),
	};

	return cmocka_run_group_tests_name("share", tests, NULL, NULL);
}
