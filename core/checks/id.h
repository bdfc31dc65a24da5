/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What vfs_fileid (source3/modules/vfs_fileid.c) would make of a mount
 *
 * It replaces st_dev by a number: of the name of the mount's source (fsname)
 * or of f_fsid (fsid). Only whether all members come to the same is asked
 * here, so names and f_fsid are compared, not the numbers.
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

/* "agree" or "differ" */
const char *fileid_fsname_verdict(const struct member_info *const *members,
				  unsigned num);

/* "agree", "differ", or "zero": some member's f_fsid is 0 */
const char *fileid_fsid_verdict(const struct member_info *const *members,
				unsigned num);

#endif
