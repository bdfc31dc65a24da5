/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A module that loses a KiB and a descriptor with each tree connect: what
 * counts such losses has to see these.
 */
#include "includes.h"
#include "smbd/smbd.h"
#include "system/filesys.h"

#include "core/config.h"
#include "vfs_pingpong/compat.h"

static int leaky_connect(struct vfs_handle_struct *handle,
			 const char *service, const char *user)
{
	char *lost = talloc_zero_size(NULL, 1024);
	int fd = open("/dev/null", O_RDONLY);

	if (lost == NULL || fd == -1) {
		errno = ENOMEM;
		return -1;
	}
	return SMB_VFS_NEXT_CONNECT(handle, service, user);
}

static struct vfs_fn_pointers leaky_fns = {
	.connect_fn = leaky_connect,
};

NTSTATUS samba_init_module(TALLOC_CTX *ctx);
NTSTATUS samba_init_module(TALLOC_CTX *ctx)
{
	(void)ctx;
	return smb_register_vfs(SMB_VFS_INTERFACE_VERSION, "leaky",
				&leaky_fns);
}
