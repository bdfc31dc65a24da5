/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What differs between the versions of Samba that the module is built for
 *
 * Nothing that the module calls differs from 4.17 (interface version 47) to
 * 4.25 (53): connect and disconnect, lp_parm_*(), lp_*() of a share. smbd
 * refuses a module of another interface version than its own.
 *
 * Samba's build renames a module's init function when it makes a shared object
 * of it; outside of its tree we do.
 */
#ifndef PINGPONG_VFS_COMPAT_H
#define PINGPONG_VFS_COMPAT_H

#if SMB_VFS_INTERFACE_VERSION < 47
#error "Samba 4.17 or later is needed"
#endif

#ifndef PINGPONG_IN_SAMBA_TREE
#define vfs_pingpong_init samba_init_module
/* for buildtools/check_module */
static const char built_for[] __attribute__((used)) =
	"built for Samba " SAMBA_SERIES;
#endif

#endif
