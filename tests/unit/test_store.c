/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/verdict/store.h"
#include "tests/unit/verdict_fixture.h"

#define NOW 1700000000
#define ALL (USE_BIT(USE_COUNT) - 1)

/* A directory of the test's own with a store and a mountinfo in it */
struct place {
	char *dir;
	char *statedir;
	char *mountinfo;
	char boot_id[64];
	struct fixture *f;
};

static void write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

/* What the members say of their mounts, and more */
static void mounts_as_they_are(struct place *p, const char *more)
{
	char *text = talloc_strdup(p, "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
	unsigned i;

	for (i = 0; i < FIXTURE_MEMBERS; i++) {
		text = talloc_asprintf_append(text, "%s\n",
					      p->f->members[i].mount_line);
	}
	write_text(p->mountinfo, talloc_asprintf_append(text, "%s", more));
}

static void use_mounts(struct place *p, const char *fstype,
		       const char *source, const char *options)
{
	unsigned i;

	fixture_mount(p->f, fstype, source, options);
	for (i = 0; i < FIXTURE_MEMBERS; i++) {
		p->f->members[i].boot_id = p->boot_id;
	}
	mounts_as_they_are(p, "");
}

static int setup(void **state)
{
	const char *tmp = getenv("TMPDIR");
	struct place *p = talloc_zero(NULL, struct place);
	FILE *boot_id = NULL;

	p->dir = talloc_asprintf(p, "%s/store.XXXXXX",
				 tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(p->dir));
	p->statedir = talloc_asprintf(p, "%s/state", p->dir);
	p->mountinfo = talloc_asprintf(p, "%s/mountinfo", p->dir);

	boot_id = fopen("/proc/sys/kernel/random/boot_id", "re");
	assert_non_null(boot_id);
	assert_non_null(fgets(p->boot_id, sizeof(p->boot_id), boot_id));
	fclose(boot_id);
	p->boot_id[strcspn(p->boot_id, "\n")] = '\0';

	p->f = talloc_steal(p, fixture_new());
	p->f->input.catalogue = NULL;
	use_mounts(p, "nfs4", "srv:/x", "vers=4.2");
	*state = p;
	return 0;
}

static void remove_tree(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	struct dirent *entry = NULL;
	DIR *dir = NULL;

	if (fd == -1) {
		unlinkat(at, name, 0);
		return;
	}
	dir = fdopendir(fd);
	while ((entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0) {
			remove_tree(fd, entry->d_name);
		}
	}
	closedir(dir);
	unlinkat(at, name, AT_REMOVEDIR);
}

static int teardown(void **state)
{
	struct place *p = *state;

	remove_tree(AT_FDCWD, p->dir);
	talloc_free(p);
	return 0;
}

static int write_as(struct place *p, unsigned member, unsigned tested,
		    time_t now)
{
	return store_write(p->statedir, &p->f->members[member],
			   fixture_judge(p->f), tested, now, "a, b");
}

static struct stored_record *lookup(struct place *p, const char *path)
{
	struct stored_record *record = NULL;
	int ret;

	ret = store_lookup(p, p->statedir, p->mountinfo, path, &record);
	assert_int_equal(ret, 0);
	return record;
}

static void assert_lookup(struct place *p, const char *path, int want)
{
	struct stored_record *record = NULL;
	int ret;

	ret = store_lookup(p, p->statedir, p->mountinfo, path, &record);
	assert_int_equal(ret, want);
	talloc_free(record);
}

/* At member 0 */
static void assert_use(struct place *p, enum use use, enum fitness fitness,
		       enum scope scope, time_t when)
{
	struct stored_record *record = lookup(p, "/mnt/a/dir");
	const struct stored_use *u = &record->uses[use];

	assert_true(u->present);
	assert_int_equal(u->fitness, fitness);
	assert_int_equal(u->scope, scope);
	assert_int_equal(u->when, when);
	talloc_free(record);
}

static void set_local(struct place *p, bool local)
{
	p->f->input.num_members = local ? 1 : 2;
	p->f->input.local = local;
}

/* The name of the only record */
static char *record_name(struct place *p)
{
	char *verdicts = talloc_asprintf(p, "%s/verdicts", p->statedir);
	DIR *dir = opendir(verdicts);
	struct dirent *entry = NULL;
	char *name = NULL;

	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		if (entry->d_name[0] != '.') {
			assert_null(name);
			name = talloc_asprintf(p, "%s/%s", verdicts,
					       entry->d_name);
		}
	}
	closedir(dir);
	return name;
}

static unsigned count_files(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	struct dirent *entry = NULL;
	unsigned num = 0;
	DIR *dir = NULL;

	if (fd == -1) {
		return 1;
	}
	dir = fdopendir(fd);
	while ((entry = readdir(dir)) != NULL) {
		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0) {
			num += count_files(fd, entry->d_name);
		}
	}
	closedir(dir);
	return num;
}

/* ---- what is written is what is read */

static void test_round_trip(void **state)
{
	struct place *p = *state;
	struct check_result *r = NULL;
	struct stored_record *record = NULL;
	struct verdict *v = NULL;
	unsigned i;
	int ret;

	r = fixture_set(p->f, "id.device", OUTCOME_FAIL, "0:50 \"and\" 0:51");
	json_object_set_new(r->metrics, "algorithms",
			    json_pack("{s:s, s:s}", "fsname", "agree", "fsid",
				      "zero"));
	fixture_set(p->f, "mmap.visibility", OUTCOME_HUNG, "no answer");
	fixture_set(p->f, "io.size", OUTCOME_SLOW, "seen after 3 s");
	fixture_set(p->f, "lock.cancel", OUTCOME_SKIPPED, "no time");
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);

	v = p->f->verdict;
	record = lookup(p, "/mnt/a/dir");
	assert_string_equal(record->fstype, "nfs4");
	assert_string_equal(record->source, "srv:/x");
	for (i = 0; i < USE_COUNT; i++) {
		const struct stored_use *u = &record->uses[i];
		char *because = names_join(p, v->uses[i].because);
		char *mended_by = names_join(p, v->uses[i].mended_by);

		assert_true(u->present);
		assert_int_equal(u->fitness, v->uses[i].fitness);
		assert_int_equal(u->hung, v->uses[i].hung);
		assert_false(u->light);
		assert_int_equal(u->scope, SCOPE_CLUSTER);
		assert_int_equal(u->when, NOW);
		assert_string_equal(u->boot_id, p->boot_id);
		assert_string_equal(u->with, "a, b");
		assert_names(u->because, because);
		assert_names(u->mended_by, mended_by);
		if (v->uses[i].reason == NULL) {
			assert_null(u->reason);
		} else {
			assert_string_equal(u->reason, v->uses[i].reason);
		}
	}
	assert_true(record->uses[USE_MMAP].hung);
	assert_int_equal(record->uses[USE_CLUSTER_LOCK].fitness, UNKNOWN);
	assert_int_equal(record->uses[USE_SHARE].fitness, FIT);
	assert_names(record->uses[USE_SHARE].because, "io.size");

	assert_int_equal(record->num_settings, v->num_settings);
	assert_int_equal(record->num_settings, 2);
	for (i = 0; i < v->num_settings; i++) {
		const struct setting *a = &record->settings[i];
		const struct setting *b = &v->settings[i];

		assert_string_equal(a->file, b->file);
		assert_string_equal(a->section, b->section);
		assert_string_equal(a->parameter, b->parameter);
		assert_string_equal(a->value, b->value);
		assert_int_equal(a->needed, b->needed);
		assert_string_equal(a->because, b->because);
		assert_int_equal(a->uses, b->uses);
	}
}

static void test_modes(void **state)
{
	struct place *p = *state;
	struct stat st = {};
	mode_t mask = umask(0);
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	umask(mask);
	assert_int_equal(ret, 0);

	assert_int_equal(stat(p->statedir, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(stat(talloc_asprintf(p, "%s/verdicts", p->statedir),
			      &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(stat(talloc_asprintf(p, "%s/paths.json",
					      p->statedir), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(stat(record_name(p), &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(count_files(AT_FDCWD, p->statedir), 2);
}

static void test_paths(void **state)
{
	struct place *p = *state;
	int ret;

	assert_lookup(p, "/mnt/a/dir", ENOENT);
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/a/dir", 0);
	assert_lookup(p, "//mnt/a//dir/", 0);
	assert_lookup(p, "/mnt/a", ENOENT);
	assert_lookup(p, "/mnt/a/di", ENOENT);
	assert_lookup(p, "mnt/a/dir", ENOENT);
	assert_lookup(p, "/", ENOENT);
	assert_lookup(p, "", ENOENT);
	assert_lookup(p, "/mnt/b/dir", ENOENT);

	/* one file system, one record, whichever path */
	ret = write_as(p, 1, ALL, NOW);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/b/dir", 0);
	assert_non_null(record_name(p));

	/* a relative path goes by where it led */
	p->f->members[2].path = ".";
	ret = write_as(p, 2, ALL, NOW);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/c/dir", 0);
	assert_lookup(p, ".", ENOENT);
}

/* ---- a path is known as long as its mount stands */

static void test_stale(void **state)
{
	static const char *const over[] = {
		"99 40 0:99 / /mnt/a rw - tmpfs over rw\n",
		"99 40 0:99 / /mnt/a/dir rw - tmpfs over rw\n",
		"99 1 0:99 / /mnt rw - tmpfs over rw\n",
	};
	struct place *p = *state;
	size_t i;
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);

	for (i = 0; i < sizeof(over) / sizeof(*over); i++) {
		mounts_as_they_are(p, over[i]);
		assert_lookup(p, "/mnt/a/dir", ESTALE);
	}
	mounts_as_they_are(p, "99 40 0:99 / /mnt/a/dir2 rw - tmpfs x rw\n"
			      "98 1 0:98 / /m rw - tmpfs x rw\n");
	assert_lookup(p, "/mnt/a/dir", 0);

	/* other options; another device; gone */
	write_text(p->mountinfo,
		   "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
		   "40 1 0:50 / /mnt/a rw - nfs4 srv:/x vers=4.2,nolock\n");
	assert_lookup(p, "/mnt/a/dir", ESTALE);
	write_text(p->mountinfo,
		   "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
		   "40 1 0:57 / /mnt/a rw - nfs4 srv:/x vers=4.2\n");
	assert_lookup(p, "/mnt/a/dir", ESTALE);
	write_text(p->mountinfo, "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n");
	assert_lookup(p, "/mnt/a/dir", ESTALE);
	write_text(p->mountinfo, "");
	assert_lookup(p, "/mnt/a/dir", ESTALE);
	unlink(p->mountinfo);
	assert_lookup(p, "/mnt/a/dir", ESTALE);

	/* before the last boot */
	mounts_as_they_are(p, "");
	assert_lookup(p, "/mnt/a/dir", 0);
	p->f->members[0].boot_id = "another boot";
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/a/dir", ESTALE);
}

/* Two file systems that come to one key: the last one has it. */
static void test_record_of_another(void **state)
{
	struct place *p = *state;
	char *name = NULL;
	json_t *json = NULL;
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	name = record_name(p);
	json = json_load_file(name, 0, NULL);
	json_object_set_new(json, "source", json_string("other:/x"));
	ret = json_dump_file(json, name, 0);
	assert_int_equal(ret, 0);
	json_decref(json);
	assert_lookup(p, "/mnt/a/dir", ENOENT);

	fixture_set(p->f, "io.size", OUTCOME_FAIL, "never");
	ret = write_as(p, 0, USE_BIT(USE_SHARE), NOW);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNFIT, SCOPE_CLUSTER, NOW);
	assert_false(lookup(p, "/mnt/a/dir")->uses[USE_MMAP].present);
}

/* ---- merging */

static void test_partial(void **state)
{
	struct place *p = *state;
	int ret;

	fixture_set(p->f, "mmap.visibility", OUTCOME_FAIL, "old data");
	fixture_set(p->f, "lock.exclusion", OUTCOME_FAIL, "twice");
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	assert_int_equal(lookup(p, "/mnt/a/dir")->num_settings, 3);

	/* a run of two uses: the others stay, with their settings */
	fixture_set(p->f, "mmap.visibility", OUTCOME_SKIPPED, "not asked for");
	fixture_set(p->f, "lock.exclusion", OUTCOME_PASS, NULL);
	fixture_set(p->f, "io.size", OUTCOME_FAIL, "never");
	ret = write_as(p, 0, USE_BIT(USE_SHARE) | USE_BIT(USE_CLUSTER_LOCK),
		       NOW + 60);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNFIT, SCOPE_CLUSTER, NOW + 60);
	assert_use(p, USE_CLUSTER_LOCK, FIT, SCOPE_CLUSTER, NOW + 60);
	assert_use(p, USE_POSIX_LOCKING, UNFIT, SCOPE_CLUSTER, NOW);
	assert_use(p, USE_MMAP, UNFIT, SCOPE_CLUSTER, NOW);
	assert_use(p, USE_TDB, FIT, SCOPE_CLUSTER, NOW);
	assert_int_equal(lookup(p, "/mnt/a/dir")->num_settings, 3);

	/* locks found right: the advice on them goes, use mmap stays */
	fixture_set(p->f, "io.size", OUTCOME_PASS, NULL);
	ret = write_as(p, 0,
		       USE_BIT(USE_SHARE) | USE_BIT(USE_POSIX_LOCKING),
		       NOW + 120);
	assert_int_equal(ret, 0);
	assert_use(p, USE_POSIX_LOCKING, FIT, SCOPE_CLUSTER, NOW + 120);
	assert_use(p, USE_MMAP, UNFIT, SCOPE_CLUSTER, NOW);
	assert_int_equal(lookup(p, "/mnt/a/dir")->num_settings, 2);

	/* and goes with its own use, though another one is unfit */
	fixture_set(p->f, "io.size", OUTCOME_FAIL, "never");
	ret = write_as(p, 0, USE_BIT(USE_SHARE), NOW + 150);
	assert_int_equal(ret, 0);
	assert_int_equal(lookup(p, "/mnt/a/dir")->num_settings, 2);
	fixture_set(p->f, "mmap.visibility", OUTCOME_PASS, NULL);
	ret = write_as(p, 0, USE_BIT(USE_MMAP), NOW + 180);
	assert_int_equal(ret, 0);
	assert_use(p, USE_MMAP, FIT, SCOPE_CLUSTER, NOW + 180);
	assert_int_equal(lookup(p, "/mnt/a/dir")->num_settings, 0);
}

static void test_settings_are_not_doubled(void **state)
{
	struct place *p = *state;
	int ret;

	fixture_set(p->f, "mmap.visibility", OUTCOME_FAIL, "old data");
	fixture_set(p->f, "mmap.local", OUTCOME_FAIL, "old data");
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	ret = write_as(p, 0, USE_BIT(USE_TDB), NOW + 1);
	assert_int_equal(ret, 0);
	assert_int_equal(lookup(p, "/mnt/a/dir")->num_settings, 2);

	/* found for one of the two uses alone: they are about both */
	fixture_set(p->f, "mmap.visibility", OUTCOME_SKIPPED, "no time");
	ret = write_as(p, 0, USE_BIT(USE_TDB), NOW + 1);
	assert_int_equal(ret, 0);
	assert_int_equal(lookup(p, "/mnt/a/dir")->settings[0].uses,
			 USE_BIT(USE_TDB) | USE_BIT(USE_MMAP));

	/* one of the two uses is well again: still needed by the other */
	fixture_set(p->f, "mmap.local", OUTCOME_PASS, NULL);
	fixture_set(p->f, "mmap.visibility", OUTCOME_SKIPPED, "no time");
	ret = write_as(p, 0, USE_BIT(USE_TDB), NOW + 2);
	assert_int_equal(ret, 0);
	assert_int_equal(lookup(p, "/mnt/a/dir")->num_settings, 2);
	assert_int_equal(lookup(p, "/mnt/a/dir")->settings[0].uses,
			 USE_BIT(USE_MMAP));
}

static void test_unknown_keeps_what_is_known(void **state)
{
	struct place *p = *state;
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	fixture_set(p->f, "io.size", OUTCOME_SKIPPED, "no time");
	ret = write_as(p, 0, ALL, NOW + 10);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW);
	assert_use(p, USE_TDB, FIT, SCOPE_CLUSTER, NOW + 10);

	/* what is old is not known any more */
	ret = write_as(p, 0, ALL, NOW + STORE_FRESH_S);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNKNOWN, SCOPE_CLUSTER, NOW + STORE_FRESH_S);

	/* nor is what the clock says is still to come */
	fixture_set(p->f, "io.size", OUTCOME_PASS, NULL);
	ret = write_as(p, 0, ALL, NOW + 1000000);
	assert_int_equal(ret, 0);
	fixture_set(p->f, "io.size", OUTCOME_SKIPPED, "no time");
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNKNOWN, SCOPE_CLUSTER, NOW);
}

static void test_scopes(void **state)
{
	struct place *p = *state;
	int ret;

	/* cluster-scope fit: local fit keeps it, local unfit does not */
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	set_local(p, true);
	ret = write_as(p, 0, ALL, NOW + 1);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW);
	fixture_set(p->f, "io.size", OUTCOME_FAIL, "never");
	ret = write_as(p, 0, ALL, NOW + 2);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNFIT, SCOPE_LOCAL, NOW + 2);
	assert_use(p, USE_TDB, FIT, SCOPE_CLUSTER, NOW);

	/* local by local, and cluster whatever there is */
	fixture_set(p->f, "io.size", OUTCOME_PASS, NULL);
	ret = write_as(p, 0, ALL, NOW + 3);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, FIT, SCOPE_LOCAL, NOW + 3);
	set_local(p, false);
	fixture_set(p->f, "io.size", OUTCOME_FAIL, "never");
	ret = write_as(p, 0, ALL, NOW + 4);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNFIT, SCOPE_CLUSTER, NOW + 4);

	/* cluster-scope unfit stands against anything local while fresh */
	set_local(p, true);
	ret = write_as(p, 0, ALL, NOW + 5);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNFIT, SCOPE_CLUSTER, NOW + 4);
	fixture_set(p->f, "io.size", OUTCOME_PASS, NULL);
	ret = write_as(p, 0, ALL, NOW + 3 + STORE_FRESH_S);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNFIT, SCOPE_CLUSTER, NOW + 4);
	ret = write_as(p, 0, ALL, NOW + 4 + STORE_FRESH_S);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, FIT, SCOPE_LOCAL, NOW + 4 + STORE_FRESH_S);
}

/* What all checks found unfit is not made fit by a few of them. */
static void test_light(void **state)
{
	struct place *p = *state;
	int ret;

	set_local(p, true);
	fixture_set(p->f, "io.size", OUTCOME_FAIL, "never");
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);

	p->f->input.catalogue = p->f->catalogue;
	ret = write_as(p, 0, ALL, NOW + 1);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNFIT, SCOPE_LOCAL, NOW);
	assert_true(lookup(p, "/mnt/a/dir")->uses[USE_TDB].light);
	assert_false(lookup(p, "/mnt/a/dir")->uses[USE_SHARE].light);
	fixture_set(p->f, "io.size", OUTCOME_PASS, NULL);
	ret = write_as(p, 0, ALL, NOW + 2);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNFIT, SCOPE_LOCAL, NOW);
	assert_use(p, USE_TDB, FIT, SCOPE_LOCAL, NOW + 2);

	/* but across nodes is more than on one */
	set_local(p, false);
	fixture_set(p->f, "io.size", OUTCOME_FAIL, "never");
	ret = write_as(p, 0, ALL, NOW + 3);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNFIT, SCOPE_CLUSTER, NOW + 3);
	assert_true(lookup(p, "/mnt/a/dir")->uses[USE_SHARE].light);

	/* a light one goes with the next, a full one with the next full one */
	fixture_set(p->f, "io.size", OUTCOME_PASS, NULL);
	ret = write_as(p, 0, ALL, NOW + 4);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW + 4);
	p->f->input.catalogue = NULL;
	fixture_set(p->f, "io.size", OUTCOME_FAIL, "never");
	ret = write_as(p, 0, ALL, NOW + 5);
	assert_int_equal(ret, 0);
	fixture_set(p->f, "io.size", OUTCOME_PASS, NULL);
	ret = write_as(p, 0, ALL, NOW + 6);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW + 6);
}

static void test_unknown_is_replaced(void **state)
{
	struct place *p = *state;
	int ret;

	fixture_set(p->f, "io.size", OUTCOME_SKIPPED, "no time");
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, UNKNOWN, SCOPE_CLUSTER, NOW);
	fixture_set(p->f, "io.size", OUTCOME_PASS, NULL);
	set_local(p, true);
	ret = write_as(p, 0, ALL, NOW + 1);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, FIT, SCOPE_LOCAL, NOW + 1);
}

static void test_fresh(void **state)
{
	struct stored_use use = {.present = true, .when = NOW};

	(void)state;
	assert_true(stored_use_fresh(&use, NOW, 10));
	assert_true(stored_use_fresh(&use, NOW + 9, 10));
	assert_false(stored_use_fresh(&use, NOW + 10, 10));
	assert_false(stored_use_fresh(&use, NOW - 1, 10));
	use.present = false;
	assert_false(stored_use_fresh(&use, NOW, 10));
}

/* ---- keys */

/* The key that a file system gets */
static const char *key_for(struct place *p, const char *fstype,
			   const char *source, const char *options,
			   uint64_t fsid, unsigned minor)
{
	unsigned i;
	int ret;

	use_mounts(p, fstype, source, options);
	for (i = 0; i < FIXTURE_MEMBERS; i++) {
		p->f->members[i].fsid = fsid;
		p->f->members[i].minor = minor;
	}
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	return lookup(p, p->f->members[0].path)->key;
}

static void assert_same_key(struct place *p, bool same, const char *a,
			    const char *b)
{
	const char *key_a = key_for(p, "nfs4", "srv:/x", a, 0, 1);
	const char *key_b = key_for(p, "nfs4", "srv:/x", b, 0, 1);

	assert_int_equal(strcmp(key_a, key_b) == 0, same);
}

static void test_keys(void **state)
{
	struct place *p = *state;
	const char *key = key_for(p, "nfs4", "a/../b:", "x", 0, 1);
	const char *other = key_for(p, "nfs", "4a/../b:", "x", 0, 1);

	assert_int_equal(strspn(key, "0123456789abcdef"), strlen(key));
	assert_string_not_equal(key, other);

	assert_same_key(p, true, "rw,vers=4.2", "rw,vers=4.2,addr=10.0.0.1");
	assert_same_key(p, true, "rw,port=1,vers=3,clientaddr=1", "rw,vers=3");
	assert_same_key(p, true, "rw,relatime", "rw,noatime,");
	assert_same_key(p, false, "rw", "rw,nolock");
	assert_same_key(p, false, "rw", "ro");
	assert_same_key(p, false, "rw,vers=3", "rw,vers=4.2");
	assert_same_key(p, false, "rw", "rw,addresses=1");
	assert_same_key(p, false, "rw", "rw,por");
}

/* Two that are mounted alike are two; one that is mounted twice is one, where
 * it says so. */
static void test_keys_of_two(void **state)
{
	struct place *p = *state;
	const char *key = key_for(p, "fuse.x", "x", "rw", 0, 50);
	const char *other = key_for(p, "fuse.x", "x", "rw", 0, 51);

	assert_string_not_equal(key, other);
	key = key_for(p, "ext4", "/dev/sda1", "rw", 7, 50);
	other = key_for(p, "ext4", "/dev/sda1", "rw", 7, 51);
	assert_string_equal(key, other);
	other = key_for(p, "ext4", "/dev/sda1", "rw", 8, 51);
	assert_string_not_equal(key, other);
}

/* The old record of a path goes when nobody else has it. */
static void test_remounted(void **state)
{
	struct place *p = *state;
	char *name = NULL;
	char *other = NULL;
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	name = record_name(p);
	use_mounts(p, "nfs4", "srv:/x", "vers=4.2,nolock");
	assert_lookup(p, "/mnt/a/dir", ESTALE);
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/a/dir", 0);
	other = record_name(p);
	assert_string_not_equal(name, other);
}

static void test_forget(void **state)
{
	struct place *p = *state;
	int ret;

	ret = store_forget(p->statedir, "/mnt/a/dir");
	assert_int_equal(ret, ENOENT);
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	ret = write_as(p, 1, ALL, NOW);
	assert_int_equal(ret, 0);

	ret = store_forget(p->statedir, "/mnt/c/dir");
	assert_int_equal(ret, ENOENT);
	ret = store_forget(p->statedir, "/mnt/a/dir/");
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/a/dir", ENOENT);
	assert_lookup(p, "/mnt/b/dir", 0);
	ret = store_forget(p->statedir, "/mnt/b/dir");
	assert_int_equal(ret, 0);
	assert_null(record_name(p));
	ret = store_forget(p->statedir, "/mnt/b/dir");
	assert_int_equal(ret, ENOENT);
}

struct each {
	unsigned num;
	int errors[3];
	char *paths[3];
};

static void each_path(const char *path, int err,
		      const struct stored_record *record, void *private_data)
{
	struct each *each = private_data;

	assert_in_range(each->num, 0, 2);
	assert_int_equal(record != NULL, err == 0);
	each->errors[each->num] = err;
	each->paths[each->num] = talloc_strdup(NULL, path);
	each->num++;
}

static void test_each(void **state)
{
	struct place *p = *state;
	struct each each = {};
	unsigned i;
	int ret;

	ret = store_each(p, p->statedir, p->mountinfo, each_path, &each);
	assert_int_equal(ret, ENOENT);
	for (i = 0; i < 3; i++) {
		ret = write_as(p, i, ALL, NOW);
		assert_int_equal(ret, 0);
	}
	mounts_as_they_are(p, "99 41 0:99 / /mnt/b rw - tmpfs over rw\n");
	ret = store_each(p, p->statedir, p->mountinfo, each_path, &each);
	assert_int_equal(ret, 0);
	assert_int_equal(each.num, 3);
	for (i = 0; i < 3; i++) {
		assert_string_equal(each.paths[i], p->f->members[i].path);
		assert_int_equal(each.errors[i], i == 1 ? ESTALE : 0);
		talloc_free(each.paths[i]);
	}
}

/* ---- what a file system or an intruder can put in the way */

static void test_corrupt(void **state)
{
	static const char *const bad[] = {
		"", "{", "[]", "null", "{}", "{\"schema\": 2}",
		"{\"schema\": \"1\"}", "{\"schema\": 1}",
		"{\"schema\": 1, \"paths\": []}",
		"{\"schema\": 1, \"paths\": {\"/mnt/a/dir\": 7}}",
		"{\"schema\": 1, \"paths\": {\"/mnt/a/dir\": {\"key\": "
		"\"../paths\", \"resolved\": \"/mnt/a/dir\", \"boot_id\": "
		"\"x\", \"mount\": \"x\"}}}",
		"{\"schema\": 1, \"schema\": 1, \"paths\": {}}",
	};
	struct place *p = *state;
	char *paths = talloc_asprintf(p, "%s/paths.json", p->statedir);
	char *name = NULL;
	size_t i;
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	name = record_name(p);
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		write_text(paths, bad[i]);
		assert_lookup(p, "/mnt/a/dir", EINVAL);
		ret = write_as(p, 0, ALL, NOW);
		assert_int_equal(ret, 0);
		assert_lookup(p, "/mnt/a/dir", 0);

		write_text(name, bad[i]);
		assert_lookup(p, "/mnt/a/dir", EINVAL);
		ret = write_as(p, 0, ALL, NOW);
		assert_int_equal(ret, 0);
		assert_lookup(p, "/mnt/a/dir", 0);
	}
	write_text(paths, "{");
	ret = store_forget(p->statedir, "/mnt/a/dir");
	assert_int_equal(ret, EINVAL);
	ret = store_each(p, p->statedir, p->mountinfo, each_path, NULL);
	assert_int_equal(ret, EINVAL);

	/* a record without its name, or of impossible size */
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	unlink(name);
	assert_lookup(p, "/mnt/a/dir", ENOENT);
	write_text(name, "");
	chmod(name, 0600);
	ret = truncate(name, 1LL << 40);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/a/dir", EINVAL);
}

/* A part of a record is missing, null, or a list. */
static void mangle(struct place *p, const char *name, json_t *whole,
		   json_t *part, const char *key)
{
	json_t *saved = json_incref(json_object_get(part, key));
	bool needed = strcmp(key, "pingpong") != 0;
	bool use = use_parse(key, &(enum use){0});
	json_t *others[] = {json_null(), json_array(), NULL};
	size_t i;

	for (i = 0; i < 3; i++) {
		bool fine = !needed ||
			    (i == 2 ? use : strcmp(key, "reason") == 0) ||
			    (i == 1 && json_is_array(saved));

		if (others[i] != NULL) {
			json_object_set_new(part, key, others[i]);
		} else {
			json_object_del(part, key);
		}
		assert_int_equal(json_dump_file(whole, name, 0), 0);
		assert_lookup(p, "/mnt/a/dir", fine ? 0 : EINVAL);
	}
	json_object_set_new(part, key, saved);
}

static void mangle_all(struct place *p, const char *name, json_t *whole,
		       json_t *part)
{
	json_t *unchanged = json_copy(part);
	const char *key = NULL;
	json_t *value = NULL;

	json_object_foreach(unchanged, key, value) {
		mangle(p, name, whole, part, key);
	}
	json_decref(unchanged);
}

static void test_mangled(void **state)
{
	struct place *p = *state;
	json_t *json = NULL;
	json_t *uses = NULL;
	json_t *mmap = NULL;
	json_t *value = NULL;
	char *name = NULL;
	int ret;

	fixture_set(p->f, "mmap.visibility", OUTCOME_FAIL, "old data");
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	name = record_name(p);
	json = json_load_file(name, 0, NULL);
	uses = json_object_get(json, "uses");
	mmap = json_object_get(uses, "mmap");
	mangle_all(p, name, json, json);
	mangle_all(p, name, json, uses);
	mangle_all(p, name, json, mmap);
	mangle_all(p, name, json,
		   json_array_get(json_object_get(json, "settings"), 0));

	json_object_set_new(json, "schema", json_integer(2));
	ret = json_dump_file(json, name, 0);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/a/dir", EINVAL);
	json_object_set_new(json, "schema", json_integer(1));
	value = json_incref(json_object_get(json, "key"));
	json_object_set_new(json, "key", json_string("0123456789abcdef"));
	ret = json_dump_file(json, name, 0);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/a/dir", EINVAL);
	json_object_set_new(json, "key", value);

	json_object_set_new(mmap, "fitness", json_string("fine"));
	ret = json_dump_file(json, name, 0);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/a/dir", EINVAL);
	json_object_set_new(mmap, "fitness", json_string("fit"));
	json_object_set_new(mmap, "scope", json_string("world"));
	ret = json_dump_file(json, name, 0);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/a/dir", EINVAL);
	json_object_set_new(mmap, "scope", json_string("local"));
	json_object_set_new(mmap, "because", json_pack("[i]", 1));
	ret = json_dump_file(json, name, 0);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/a/dir", EINVAL);
	json_object_set_new(mmap, "because", json_array());
	json_object_set_new(uses, "no-use", json_object());
	ret = json_dump_file(json, name, 0);
	assert_int_equal(ret, 0);
	assert_lookup(p, "/mnt/a/dir", EINVAL);
	json_decref(json);
}

static void assert_refused(struct place *p)
{
	int ret;

	assert_lookup(p, "/mnt/a/dir", EPERM);
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, EPERM);
}

static void test_open_to_others(void **state)
{
	struct place *p = *state;
	char *files[4] = {};
	size_t i;
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	files[0] = p->statedir;
	files[1] = talloc_asprintf(p, "%s/verdicts", p->statedir);
	files[2] = talloc_asprintf(p, "%s/paths.json", p->statedir);
	files[3] = record_name(p);
	for (i = 0; i < 4; i++) {
		struct stat st = {};

		assert_int_equal(stat(files[i], &st), 0);
		chmod(files[i], st.st_mode | 0040);
		assert_refused(p);
		chmod(files[i], st.st_mode | 0002);
		assert_refused(p);
		chmod(files[i], st.st_mode);
		assert_lookup(p, "/mnt/a/dir", 0);
	}
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
}

static void test_foreign_owner(void **state)
{
	struct place *p = *state;
	char *files[4] = {};
	size_t i;
	int ret;

	if (geteuid() != 0) {
		skip();
	}
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	files[0] = p->statedir;
	files[1] = talloc_asprintf(p, "%s/verdicts", p->statedir);
	files[2] = talloc_asprintf(p, "%s/paths.json", p->statedir);
	files[3] = record_name(p);
	for (i = 0; i < 4; i++) {
		ret = chown(files[i], 65534, 0);
		assert_int_equal(ret, 0);
		assert_refused(p);
		ret = chown(files[i], 0, 0);
		assert_int_equal(ret, 0);
		assert_lookup(p, "/mnt/a/dir", 0);
	}
}

/* In the place of each part a symbolic link to what would be right, a FIFO */
static void test_links(void **state)
{
	struct place *p = *state;
	char *aside = talloc_asprintf(p, "%s/aside", p->dir);
	char *files[4] = {};
	size_t i;
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	files[0] = p->statedir;
	files[1] = talloc_asprintf(p, "%s/verdicts", p->statedir);
	files[2] = talloc_asprintf(p, "%s/paths.json", p->statedir);
	files[3] = record_name(p);
	for (i = 0; i < 4; i++) {
		ret = rename(files[i], aside);
		assert_int_equal(ret, 0);
		ret = symlink(aside, files[i]);
		assert_int_equal(ret, 0);
		assert_refused(p);
		unlink(files[i]);

		ret = mkfifo(files[i], 0600);
		assert_int_equal(ret, 0);
		assert_refused(p);
		unlink(files[i]);

		ret = rename(aside, files[i]);
		assert_int_equal(ret, 0);
		assert_lookup(p, "/mnt/a/dir", 0);
	}
}

/* What a killed writer or an intruder left under the name of the next file */
static void test_leftover(void **state)
{
	struct place *p = *state;
	char *victim = talloc_asprintf(p, "%s/victim", p->dir);
	char *paths = talloc_asprintf(p, "%s/paths.json.new", p->statedir);
	char *record = NULL;
	struct stat st = {};
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	record = talloc_asprintf(p, "%s.new", record_name(p));
	write_text(victim, "precious");
	write_text(record, "half of a rec");
	ret = symlink(victim, paths);
	assert_int_equal(ret, 0);

	ret = write_as(p, 0, ALL, NOW + 1);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW + 1);
	assert_int_equal(count_files(AT_FDCWD, p->statedir), 2);
	assert_int_equal(stat(victim, &st), 0);
	assert_int_equal(st.st_size, strlen("precious"));

	/* a directory can't be taken for one */
	ret = mkdir(record, 0700);
	assert_int_equal(ret, 0);
	ret = write_as(p, 0, ALL, NOW + 2);
	assert_int_equal(ret, EISDIR);
	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW + 1);
}

static void test_no_parent(void **state)
{
	struct place *p = *state;
	int ret;

	p->statedir = talloc_asprintf(p, "%s/no/state", p->dir);
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, ENOENT);
}

static void test_no_utf8(void **state)
{
	struct place *p = *state;
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	p->f->members[1].path = "/mnt/\xff";
	ret = write_as(p, 1, ALL, NOW);
	assert_int_equal(ret, EILSEQ);
	p->f->members[1].path = "/mnt/b";
	p->f->members[1].source = "srv:/\xff";
	ret = write_as(p, 1, ALL, NOW);
	assert_int_equal(ret, EILSEQ);
	assert_lookup(p, "/mnt/a/dir", 0);
	assert_lookup(p, "/mnt/\xff", ENOENT);
}

/* ---- full, read only */

static bool own_mounts(void)
{
	int ret;

	ret = unshare(CLONE_NEWNS);
	if (ret != 0) {
		return false;
	}
	ret = mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL);
	return ret == 0;
}

static void test_full(void **state)
{
	struct place *p = *state;
	char *filler = talloc_asprintf(p, "%s/filler", p->dir);
	char zeros[4096] = {};
	ssize_t n;
	int fd, ret;
	bool ok;

	ok = own_mounts();
	if (!ok) {
		skip();
	}
	ret = mount("full", p->dir, "tmpfs", 0, "size=64k");
	assert_int_equal(ret, 0);
	mounts_as_they_are(p, "");
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);

	fd = open(filler, O_WRONLY | O_CREAT, 0600);
	do {
		n = write(fd, zeros, sizeof(zeros));
	} while (n > 0);
	close(fd);
	ret = write_as(p, 0, ALL, NOW + 1);
	assert_int_equal(ret, ENOSPC);
	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW);
	assert_int_equal(count_files(AT_FDCWD, p->statedir), 2);
	ret = store_forget(p->statedir, "/mnt/a/dir");
	assert_int_equal(ret, ENOSPC);
	assert_lookup(p, "/mnt/a/dir", 0);

	unlink(filler);
	ret = write_as(p, 0, ALL, NOW + 2);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW + 2);
	umount2(p->dir, MNT_DETACH);
}

static void test_read_only(void **state)
{
	struct place *p = *state;
	int ret;
	bool ok;

	ok = own_mounts();
	if (!ok) {
		skip();
	}
	ret = mount("ro", p->dir, "tmpfs", 0, NULL);
	assert_int_equal(ret, 0);
	mounts_as_they_are(p, "");
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	ret = mount("ro", p->dir, "tmpfs", MS_REMOUNT | MS_RDONLY, NULL);
	assert_int_equal(ret, 0);

	ret = write_as(p, 0, ALL, NOW + 1);
	assert_int_equal(ret, EROFS);
	ret = store_forget(p->statedir, "/mnt/a/dir");
	assert_int_equal(ret, EROFS);
	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW);
	p->statedir = talloc_asprintf(p, "%s/other", p->dir);
	ret = write_as(p, 0, ALL, NOW + 1);
	assert_int_equal(ret, EROFS);
	umount2(p->dir, MNT_DETACH);
}

/* ---- several at once */

/* In a child, which ends by exec: no leak checker then takes for lost what the
 * parent still has. */
static pid_t child(struct place *p, void (*fn)(struct place *, unsigned),
		   unsigned arg)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(p, arg);
		execlp("true", "true", NULL);
		_exit(1);
	}
	assert_true(pid > 0);
	return pid;
}

static void assert_child_done(pid_t pid)
{
	int status = 0;
	pid_t waited = waitpid(pid, &status, 0);

	assert_int_equal(waited, pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

#define ROUNDS 100

/* Fit and unfit in turn, each a consistent whole */
static void write_in_turn(struct place *p, unsigned rounds)
{
	struct check_result *r = fixture_result(p->f, "io.size");
	unsigned i;

	for (i = 0; rounds == 0 || i < rounds; i++) {
		int ret;

		r->outcome = i % 2 == 0 ? OUTCOME_PASS : OUTCOME_FAIL;
		r->why = i % 2 == 0 ? NULL : "never";
		ret = write_as(p, 0, ALL, NOW + i);
		if (ret != 0) {
			_exit(1);
		}
	}
}

static void test_reader_during_writes(void **state)
{
	struct place *p = *state;
	unsigned seen[2] = {};
	pid_t pid;
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	pid = child(p, write_in_turn, 0);
	while (seen[FIT] < ROUNDS || seen[UNFIT] < ROUNDS) {
		struct stored_record *record = NULL;
		const struct stored_use *u = NULL;

		ret = store_lookup(p, p->statedir, p->mountinfo, "/mnt/a/dir",
				   &record);
		if (ret != 0) {
			kill_child(pid);
		}
		assert_int_equal(ret, 0);
		u = &record->uses[USE_SHARE];
		assert_int_equal(u->fitness == FIT, u->when % 2 == 0);
		assert_int_equal(u->fitness == FIT, u->reason == NULL);
		seen[u->fitness]++;
		talloc_free(record);
	}
	kill_child(pid);
}

static void write_own_path(struct place *p, unsigned number)
{
	unsigned i;

	for (i = 0; i < 10; i++) {
		int ret;

		p->f->members[0].path = talloc_asprintf(p, "/mnt/a/%u.%u",
							number, i);
		p->f->members[0].resolved = p->f->members[0].path;
		p->f->members[0].source = talloc_asprintf(p, "s%u", number);
		ret = write_as(p, 0, ALL, NOW);
		if (ret != 0) {
			_exit(1);
		}
	}
}

static void test_writers_together(void **state)
{
	struct place *p = *state;
	json_t *paths = NULL;
	pid_t pids[4];
	unsigned i;

	for (i = 0; i < 4; i++) {
		pids[i] = child(p, write_own_path, i);
	}
	for (i = 0; i < 4; i++) {
		assert_child_done(pids[i]);
	}
	paths = json_load_file(talloc_asprintf(p, "%s/paths.json",
					       p->statedir), 0, NULL);
	assert_int_equal(json_object_size(json_object_get(paths, "paths")),
			 40);
	json_decref(paths);
	assert_int_equal(count_files(AT_FDCWD, p->statedir), 1 + 4);
}

static void stop_with_the_lock(struct place *p, unsigned unused)
{
	int fd = open(p->statedir, O_RDONLY | O_DIRECTORY);
	int ret = flock(fd, LOCK_EX);

	(void)unused;
	if (ret == 0) {
		raise(SIGSTOP);
	}
}

static void test_stopped_writer(void **state)
{
	struct place *p = *state;
	int status = 0;
	pid_t pid;
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	pid = child(p, stop_with_the_lock, 0);
	waitpid(pid, &status, WUNTRACED);
	assert_true(WIFSTOPPED(status));

	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW);
	ret = write_as(p, 0, ALL, NOW + 1);
	assert_int_equal(ret, EBUSY);
	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW);

	kill_child(pid);
	ret = write_as(p, 0, ALL, NOW + 1);
	assert_int_equal(ret, 0);
	assert_use(p, USE_SHARE, FIT, SCOPE_CLUSTER, NOW + 1);
}

static void test_killed_writers(void **state)
{
	struct place *p = *state;
	unsigned i;
	int ret;

	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	for (i = 0; i < 60; i++) {
		pid_t pid = child(p, write_in_turn, 0);

		usleep(500 + 397 * i);
		kill_child(pid);
		assert_lookup(p, "/mnt/a/dir", 0);
	}
	ret = write_as(p, 0, ALL, NOW);
	assert_int_equal(ret, 0);
	assert_int_equal(count_files(AT_FDCWD, p->statedir), 2);
}

int main(void)
{
#define STORE_TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		STORE_TEST(test_round_trip),
		STORE_TEST(test_modes),
		STORE_TEST(test_paths),
		STORE_TEST(test_stale),
		STORE_TEST(test_record_of_another),
		STORE_TEST(test_partial),
		STORE_TEST(test_settings_are_not_doubled),
		STORE_TEST(test_unknown_keeps_what_is_known),
		STORE_TEST(test_scopes),
		STORE_TEST(test_light),
		STORE_TEST(test_unknown_is_replaced),
		STORE_TEST(test_fresh),
		STORE_TEST(test_keys),
		STORE_TEST(test_keys_of_two),
		STORE_TEST(test_remounted),
		STORE_TEST(test_forget),
		STORE_TEST(test_each),
		STORE_TEST(test_corrupt),
		STORE_TEST(test_mangled),
		STORE_TEST(test_open_to_others),
		STORE_TEST(test_foreign_owner),
		STORE_TEST(test_links),
		STORE_TEST(test_leftover),
		STORE_TEST(test_no_parent),
		STORE_TEST(test_no_utf8),
		STORE_TEST(test_full),
		STORE_TEST(test_read_only),
		STORE_TEST(test_reader_during_writes),
		STORE_TEST(test_writers_together),
		STORE_TEST(test_stopped_writer),
		STORE_TEST(test_killed_writers),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
