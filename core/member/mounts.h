/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the kernel says of a mount: /proc/PID/mountinfo (proc(5))
 *
 * Reading mountinfo never touches the file system that is mounted, so any
 * process may do it, smbd and the coordinator too. Nothing here resolves a
 * path.
 */
#ifndef PINGPONG_MEMBER_MOUNTS_H
#define PINGPONG_MEMBER_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <talloc.h>

/* One line of mountinfo; strings are unescaped and children of the struct */
struct mount_line {
	uint64_t id;		/* mount id, as statx(2) gives it */
	uint64_t parent;	/* id of the mount it is mounted on */
	unsigned major, minor;	/* st_dev of files on it (not on btrfs) */
	const char *root;	/* root of the mount within the file system */
	const char *point;	/* mount point */
	const char *options;	/* per mount */
	const char *fstype;	/* "ext4", "fuse.glusterfs" */
	const char *source;	/* may be empty */
	const char *super_options;
	const char *line;	/* the whole line, as it was read */
};

/*
 * Parse one line (without newline). Returns 0, EINVAL (it is none), ENOMEM.
 */
int mount_line_parse(TALLOC_CTX *mem_ctx, const char *line,
		     struct mount_line **out);

/*
 * The mount with this id in a mountinfo file ("/proc/self/mountinfo").
 * Returns 0, ENOENT (no such mount), ENOMEM, or the errno of the read.
 */
int mount_by_id(TALLOC_CTX *mem_ctx, const char *mountinfo, uint64_t id,
		struct mount_line **out);

/*
 * The mount that a path leads to, by the mount points alone: what is mounted
 * over one of its directories hides what was there before.
 *
 * path: absolute, without symbolic links, "." and "..", as /proc/self/fd
 * shows it.
 *
 * Returns 0, ENOENT (no mount covers it), EINVAL (not absolute), ENOMEM, or
 * the errno of the read.
 */
int mount_by_path(TALLOC_CTX *mem_ctx, const char *mountinfo, const char *path,
		  struct mount_line **out);

/*
 * The mounts that stat(2) of their mount points does not tell from this one:
 * those of its device, and those at its mount point, in the order of the file.
 * *out, a child of mem_ctx, ends with NULL.
 *
 * Returns 0, EINVAL (a line is none), ENOMEM, or the errno of the read.
 */
int mounts_like(TALLOC_CTX *mem_ctx, const char *mountinfo,
		const struct mount_line *mount, struct mount_line ***out);

#endif
