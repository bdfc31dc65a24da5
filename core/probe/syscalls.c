/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/probe/syscalls.h"

static int sys_openat2(int dirfd, const char *path, struct open_how *how)
{
	return syscall(SYS_openat2, dirfd, path, how, sizeof(*how));
}

static ssize_t sys_getdents(int fd, void *buf, size_t len)
{
	return syscall(SYS_getdents64, fd, buf, len);
}

static int sys_fcntl_lock(int fd, int cmd, struct flock *fl)
{
	return fcntl(fd, cmd, fl);
}

static int sys_fcntl_int(int fd, int cmd, int arg)
{
	return fcntl(fd, cmd, arg);
}

static const struct syscall_table system_table = {
	.openat2 = sys_openat2,
	.close = close,
	.mkdirat = mkdirat,
	.unlinkat = unlinkat,
	.renameat = renameat,
	.fstat = fstat,
	.fstatat = fstatat,
	.statx = statx,
	.fstatfs = fstatfs,
	.getdents = sys_getdents,
	.lseek = lseek,
	.pread = pread,
	.pwrite = pwrite,
	.ftruncate = ftruncate,
	.fcntl_lock = sys_fcntl_lock,
	.fcntl_int = sys_fcntl_int,
	.flock = flock,
	.mmap = mmap,
	.munmap = munmap,
};

static const struct syscall_table *in_force = &system_table;

const struct syscall_table *syscalls(void)
{
	return in_force;
}

void syscalls_replace(const struct syscall_table *table)
{
	in_force = table != NULL ? table : &system_table;
}
