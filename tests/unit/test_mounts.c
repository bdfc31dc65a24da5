/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/member/mounts.h"

#define MOUNTINFO "/proc/self/mountinfo"

/* ---- lines */

static const struct {
	const char *line;
	struct mount_line want;
} lines[] = {
	{"85 29 0:52 / /mnt/nfs rw,relatime shared:45 - nfs4 srv:/export "
	 "rw,vers=4.2,hard,proto=tcp,clientaddr=10.0.0.2,local_lock=none,"
	 "addr=10.0.0.1",
	 {85, 29, 0, 52, "/", "/mnt/nfs", "rw,relatime", "nfs4", "srv:/export",
	  "rw,vers=4.2,hard,proto=tcp,clientaddr=10.0.0.2,local_lock=none,"
	  "addr=10.0.0.1", NULL}},
	{"86 29 0:53 / /mnt/nfs3 rw shared:46 - nfs [fe80::1%eth0]:/x "
	 "rw,vers=3,nolock,local_lock=all",
	 {86, 29, 0, 53, "/", "/mnt/nfs3", "rw", "nfs", "[fe80::1%eth0]:/x",
	  "rw,vers=3,nolock,local_lock=all", NULL}},
	{"120 29 0:99 / /lustre rw,relatime shared:60 - lustre "
	 "10.1.1.1@tcp:10.1.1.2@tcp:/lfs01 rw,checksum,localflock,user_xattr",
	 {120, 29, 0, 99, "/", "/lustre", "rw,relatime", "lustre",
	  "10.1.1.1@tcp:10.1.1.2@tcp:/lfs01",
	  "rw,checksum,localflock,user_xattr", NULL}},
	{"40 25 0:41 /vol /mnt/cephfs rw,relatime shared:20 - ceph "
	 "10.0.0.1:6789,10.0.0.2:6789:/ rw,name=admin,secret=<hidden>,acl",
	 {40, 25, 0, 41, "/vol", "/mnt/cephfs", "rw,relatime", "ceph",
	  "10.0.0.1:6789,10.0.0.2:6789:/",
	  "rw,name=admin,secret=<hidden>,acl", NULL}},
	{"200 29 0:55 / /gpfs/fs1 rw,relatime shared:110 - gpfs fs1 rw",
	 {200, 29, 0, 55, "/", "/gpfs/fs1", "rw,relatime", "gpfs", "fs1", "rw",
	  NULL}},
	{"300 29 0:60 / /mnt/gv0 rw,relatime - fuse.glusterfs srv:/gv0 "
	 "rw,user_id=0,group_id=0,allow_other,max_read=131072",
	 {300, 29, 0, 60, "/", "/mnt/gv0", "rw,relatime", "fuse.glusterfs",
	  "srv:/gv0", "rw,user_id=0,group_id=0,allow_other,max_read=131072",
	  NULL}},
	{"310 29 0:61 / /mnt/a\\040b rw,relatime shared:2 master:3 "
	 "propagate_from:1 - cifs //srv/my\\040share "
	 "rw,vers=3.1.1,cache=strict,nobrl",
	 {310, 29, 0, 61, "/", "/mnt/a b", "rw,relatime", "cifs",
	  "//srv/my share", "rw,vers=3.1.1,cache=strict,nobrl", NULL}},
	{"320 29 253:3 / /ocfs2 rw,relatime unbindable - ocfs2 "
	 "/dev/mapper/vg-ocfs2 rw,heartbeat=local,localflocks,coherency=full",
	 {320, 29, 253, 3, "/", "/ocfs2", "rw,relatime", "ocfs2",
	  "/dev/mapper/vg-ocfs2",
	  "rw,heartbeat=local,localflocks,coherency=full", NULL}},
	{"330 29 253:4 / /gfs2 rw,relatime shared:230 - gfs2 "
	 "/dev/mapper/vg-gfs2 rw,localflocks",
	 {330, 29, 253, 4, "/", "/gfs2", "rw,relatime", "gfs2",
	  "/dev/mapper/vg-gfs2", "rw,localflocks", NULL}},
	{"26 1 0:23 /@home /home rw,relatime shared:29 - btrfs /dev/sda2 "
	 "rw,space_cache=v2,subvolid=257,subvol=/@home",
	 {26, 1, 0, 23, "/@home", "/home", "rw,relatime", "btrfs", "/dev/sda2",
	  "rw,space_cache=v2,subvolid=257,subvol=/@home", NULL}},
	/* every escape; a source that is empty; a root that looks like "-" */
	{"4294967297 1 4095:1048575 - /\\011\\012\\134\\043x\\0\\09\\400 "
	 "rw - tmpfs  rw",
	 {4294967297, 1, 4095, 1048575, "-", "/\t\n\\#x\\0\\09\\400", "rw",
	  "tmpfs", "", "rw", NULL}},
};

static void test_lines(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		const struct mount_line *want = &lines[i].want;
		struct mount_line *m = NULL;
		int ret;

		ret = mount_line_parse(NULL, lines[i].line, &m);
		assert_int_equal(ret, 0);
		assert_int_equal(m->id, want->id);
		assert_int_equal(m->parent, want->parent);
		assert_int_equal(m->major, want->major);
		assert_int_equal(m->minor, want->minor);
		assert_string_equal(m->root, want->root);
		assert_string_equal(m->point, want->point);
		assert_string_equal(m->options, want->options);
		assert_string_equal(m->fstype, want->fstype);
		assert_string_equal(m->source, want->source);
		assert_string_equal(m->super_options, want->super_options);
		assert_string_equal(m->line, lines[i].line);
		talloc_free(m);
	}
}

static void test_bad_lines(void **state)
{
	static const char *const bad[] = {
		"",
		" ",
		"x 29 0:52 / /mnt rw - nfs4 srv:/x rw",
		"-1 29 0:52 / /mnt rw - nfs4 srv:/x rw",
		"85 x 0:52 / /mnt rw - nfs4 srv:/x rw",
		"85 29 052 / /mnt rw - nfs4 srv:/x rw",
		"85 29 0:x / /mnt rw - nfs4 srv:/x rw",
		"85 29 0:4294967296 / /mnt rw - nfs4 srv:/x rw",
		"18446744073709551616 29 0:52 / /mnt rw - nfs4 srv:/x rw",
		"85 29 0:52 / /mnt rw shared:1 nfs4 srv:/x rw",
		"85 29 0:52 / /mnt rw -  srv:/x rw",
		"85 29 0:52 / /mnt rw - nfs4 srv:/x rw more",
		"85 29 0:52 / /mnt rw - nfs4 srv:/x rw\n",
	};
	const char *good = "85 29 0:52 / /mnt rw - nfs4 srv:/x rw";
	struct mount_line *m = NULL;
	size_t i;
	int ret;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		ret = mount_line_parse(NULL, bad[i], &m);
		assert_int_equal(ret, EINVAL);
	}
	for (i = 0; i <= strlen(good) - 2; i++) {
		char *cut = strndup(good, i);

		ret = mount_line_parse(NULL, cut, &m);
		free(cut);
		assert_int_equal(ret, EINVAL);
	}
	ret = mount_line_parse(NULL, good, &m);
	assert_int_equal(ret, 0);
	talloc_free(m);
}

/* ---- files */

static char *write_file(const char *text)
{
	const char *dir = getenv("TMPDIR");
	char *name = NULL;
	ssize_t len = strlen(text);
	ssize_t n;
	int fd;

	name = talloc_asprintf(NULL, "%s/mounts.XXXXXX",
			       dir != NULL ? dir : "/tmp");
	fd = mkstemp(name);
	assert_true(fd >= 0);
	n = write(fd, text, len);
	assert_int_equal(n, len);
	close(fd);
	return name;
}

static void remove_file(char *name)
{
	unlink(name);
	talloc_free(name);
}

static void test_by_id(void **state)
{
	const size_t size = 300000;
	struct mount_line *m = NULL;
	char *text = NULL;
	char *name = NULL;
	char *options = talloc_zero_array(NULL, char, size + 1);
	int ret;

	(void)state;
	memset(options, 'o', size);
	text = talloc_asprintf(options,
			       "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
			       "12 1 0:2 / /b rw - tmpfs b rw\n"
			       "2 1 0:3 / /a rw - overlay a rw,%s\n"
			       "3 1 0:4 / /c rw - tmpfs last rw",
			       options);
	name = write_file(text);

	ret = mount_by_id(NULL, name, 2, &m);
	assert_int_equal(ret, 0);
	assert_string_equal(m->point, "/a");
	assert_int_equal(strlen(m->super_options), size + 3);
	talloc_free(m);

	ret = mount_by_id(NULL, name, 3, &m);
	assert_int_equal(ret, 0);
	assert_string_equal(m->source, "last");
	talloc_free(m);

	ret = mount_by_id(NULL, name, 120, &m);
	assert_int_equal(ret, ENOENT);
	ret = mount_by_id(NULL, "/proc/self/mem", 1, &m);
	assert_int_equal(ret, EIO);
	remove_file(name);
	talloc_free(options);
}

static void check_path(const char *mountinfo, const char *path, uint64_t want)
{
	struct mount_line *m = NULL;
	int ret;

	ret = mount_by_path(NULL, mountinfo, path, &m);
	assert_int_equal(ret, 0);
	assert_int_equal(m->id, want);
	talloc_free(m);
}

static void test_by_path(void **state)
{
	struct mount_line *m = NULL;
	char *name = NULL;
	int ret;

	(void)state;
	name = write_file("1 0 8:1 / / rw - ext4 /dev/sda rw\n"
			  "2 1 0:2 / /mnt/a rw - tmpfs a rw\n"
			  "3 1 0:3 / /mnt/ab rw - tmpfs ab rw\n"
			  "4 2 0:4 / /mnt/a/sub rw - tmpfs sub rw\n"
			  "5 2 0:5 / /mnt/a/sub\\040x rw - tmpfs x rw\n"
			  "6 1 0:6 / /mnt/a\\000 rw - tmpfs never rw\n");
	check_path(name, "/", 1);
	check_path(name, "/mnt", 1);
	check_path(name, "/mnt/a", 2);
	check_path(name, "/mnt/abc", 1);
	check_path(name, "/mnt/ab/c", 3);
	check_path(name, "/mnt/a/su", 2);
	check_path(name, "/mnt/a/sub", 4);
	check_path(name, "/mnt/a/sub x/y", 5);
	ret = mount_by_path(NULL, name, "mnt", &m);
	assert_int_equal(ret, EINVAL);
	remove_file(name);

	/* the same again, with other mounts over it */
	name = write_file("1 0 8:1 / / rw - ext4 /dev/sda rw\n"
			  "2 1 0:2 / /mnt/a rw - tmpfs a rw\n"
			  "4 2 0:4 / /mnt/a/sub rw - tmpfs sub rw\n"
			  "6 4 0:6 / /mnt/a/sub rw - tmpfs over rw\n"
			  "7 1 0:7 / /srv rw - tmpfs srv rw\n"
			  "8 1 0:8 / /srv/x/y rw - tmpfs hidden rw\n");
	check_path(name, "/mnt/a", 2);
	check_path(name, "/mnt/a/sub", 6);
	check_path(name, "/srv/x/y", 7);
	remove_file(name);

	/* the root that the system started from is below its own */
	name = write_file("2 1 8:1 / / rw - ext4 /dev/sda rw\n"
			  "1 1 0:1 / / rw - rootfs rootfs rw\n"
			  "3 2 0:3 / /mnt rw - tmpfs a rw\n");
	check_path(name, "/", 2);
	check_path(name, "/mnt", 3);
	remove_file(name);

	name = write_file("2 1 0:2 / /mnt/a rw - tmpfs a rw\n");
	ret = mount_by_path(NULL, name, "/mnt/a", &m);
	assert_int_equal(ret, ENOENT);
	remove_file(name);
}

static void test_alike(void **state)
{
	struct mount_line *mount = NULL;
	struct mount_line **alike = NULL;
	char *name = NULL;
	int ret;

	(void)state;
	name = write_file("1 0 8:1 / / rw - ext4 /dev/sda rw\n"
			  "2 1 0:2 / /mnt/a rw - autofs systemd-1 rw\n"
			  "3 1 0:3 /sub /mnt/b rw - nfs other:/x rw\n"
			  "4 1 0:33 / /mnt/ab rw - nfs srv:/y rw\n"
			  "5 2 0:3 / /mnt/a rw - nfs srv:/x rw\n");
	ret = mount_by_id(NULL, name, 5, &mount);
	assert_int_equal(ret, 0);
	ret = mounts_like(mount, name, mount, &alike);
	assert_int_equal(ret, 0);
	assert_int_equal(alike[0]->id, 2);
	assert_int_equal(alike[1]->id, 3);
	assert_int_equal(alike[2]->id, 5);
	assert_null(alike[3]);
	remove_file(name);
	ret = mounts_like(mount, "/nonexistent", mount, &alike);
	assert_int_equal(ret, ENOENT);
	talloc_free(mount);
}

/* ---- the kernel's own answer */

static uint64_t kernels_mount_id(const char *path)
{
	struct statx stx = {};
	int ret;

	ret = statx(AT_FDCWD, path, 0, STATX_MNT_ID, &stx);
	assert_int_equal(ret, 0);
	assert_true(stx.stx_mask & STATX_MNT_ID);
	return stx.stx_mnt_id;
}

static void check_kernel(const char *path)
{
	uint64_t id = kernels_mount_id(path);
	struct mount_line *m = NULL;
	int ret;

	check_path(MOUNTINFO, path, id);
	ret = mount_by_id(NULL, MOUNTINFO, id, &m);
	assert_int_equal(ret, 0);
	talloc_free(m);
}

static void test_kernel(void **state)
{
	(void)state;
	check_kernel("/");
	check_kernel("/proc");
	check_kernel("/proc/self/fd");
}

static void mount_tmpfs(const char *path)
{
	int ret;

	ret = mkdir(path, 0700);
	assert_true(ret == 0 || errno == EEXIST);
	ret = mount("", path, "tmpfs", 0, NULL);
	assert_int_equal(ret, 0);
}

static void test_kernel_overmounts(void **state)
{
	const char *dir = getenv("TMPDIR");
	char *base = talloc_asprintf(NULL, "%s/mounts.XXXXXX",
				     dir != NULL ? dir : "/tmp");
	char real[PATH_MAX];
	char *a = NULL, *ab = NULL;
	int ret;

	(void)state;
	ret = unshare(CLONE_NEWNS);
	if (ret != 0) {
		talloc_free(base);
		skip();
	}
	ret = mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL);
	assert_int_equal(ret, 0);
	assert_non_null(mkdtemp(base));
	assert_non_null(realpath(base, real));
	a = talloc_asprintf(base, "%s/a #\\", real);
	ab = talloc_asprintf(base, "%s/b", a);

	mount_tmpfs(a);
	check_kernel(a);
	mount_tmpfs(ab);
	check_kernel(ab);
	mount_tmpfs(ab);
	check_kernel(ab);
	mount_tmpfs(a);
	check_kernel(a);
	mount_tmpfs(real);
	check_kernel(real);
	ret = mkdir(a, 0700);
	assert_int_equal(ret, 0);
	check_kernel(a);

	umount2(real, MNT_DETACH);
	umount2(a, MNT_DETACH);
	umount2(a, MNT_DETACH);
	ret = rmdir(a);
	assert_int_equal(ret, 0);
	ret = rmdir(real);
	assert_int_equal(ret, 0);
	talloc_free(base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_bad_lines),
		cmocka_unit_test(test_by_id),
		cmocka_unit_test(test_by_path),
		cmocka_unit_test(test_alike),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_kernel_overmounts),
	};

	return cmocka_run_group_tests_name("mounts", tests, NULL, NULL);
}
