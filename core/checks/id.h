/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What vfs_fileid and vfs_glusterfs_fuse (source3/modules) would make of a
 * mount
 *
 * They replace st_dev by a number: vfs_fileid by that of the name of the
 * mount's source (fsname) or of f_fsid (fsid), vfs_glusterfs_fuse by that of
 * the volume that the source names. Only whether all members come to the same
 * is asked here, so names and f_fsid are compared, not the numbers.
 */
#ifndef PINGPONG_CHECKS_ID_H
#define PINGPONG_CHECKS_ID_H

#include <string.h>

#include "core/member/member.h"

/* What fsname goes by */
static inline const char *fileid_fsname(const char *source)
{
	return strncmp(source, "/dev/", 5) == 0 ? source + 5 : source;
}

/* What vfs_glusterfs_fuse goes by: "v" of "server:/v" and "server:v" differ */
static inline const char *glusterfs_fuse_volume(const char *source)
{
	const char *colon = strrchr(source, ':');

	return colon != NULL ? colon + 1 : source;
}

/*
 * Does what name() makes of the source come to the same on all members?
 * "agree" or "differ"
 */
const char *fileid_source_verdict(const struct member_info *const *members,
				  unsigned num,
				  const char *(*name)(const char *source));

/* "agree", "differ", or "zero": some member's f_fsid is 0 */
const char *fileid_fsid_verdict(const struct member_info *const *members,
				unsigned num);

#endif
