/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The module as the headers of another series of Samba would make it, with
 * another number of the VFS interface: smbd must not take it.
 */
#include "includes.h"
#include "smbd/smbd.h"

#include "core/config.h"

#undef SMB_VFS_INTERFACE_VERSION
#define SMB_VFS_INTERFACE_VERSION 1000
#undef SAMBA_SERIES
#define SAMBA_SERIES "9.9"

#include "vfs_pingpong/vfs_pingpong.c"
