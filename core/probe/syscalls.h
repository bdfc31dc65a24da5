/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The system calls on the file system under test
 *
 * Everything that a worker does to the file system under test goes through
 * this one table, so that a test can replace any call and make it fail, lie
 * or never return. Nothing outside core/probe and the worker calls it.
 *
 * Calling sequence: syscalls()->pread(fd, buf, n, ofs). A test calls
 * syscalls_replace() before and again with NULL after.
 *
 * Each call behaves as the system's own: -1 and errno on failure.
 */
#ifndef PINGPONG_PROBE_SYSCALLS_H
#define PINGPONG_PROBE_SYSCALLS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/statfs.h>

struct open_how;

struct syscall_table {
	/* path resolution stays below dirfd and follows no symbolic link
	 * when the caller says so in how->resolve (openat2(2)) */
	int (*openat2)(int dirfd, const char *path, struct open_how *how);
	int (*close)(int fd);
	int (*mkdirat)(int dirfd, const char *path, mode_t mode);
	int (*unlinkat)(int dirfd, const char *path, int flags);
	int (*renameat)(int olddir, const char *from,
			int newdir, const char *to);
	int (*fstat)(int fd, struct stat *st);
	int (*fstatat)(int dirfd, const char *path, struct stat *st,
		       int flags);
	int (*statx)(int dirfd, const char *path, int flags, unsigned mask,
		     struct statx *stx);
	int (*fstatfs)(int fd, struct statfs *sfs);
	ssize_t (*getdents)(int fd, void *buf, size_t len);
	off_t (*lseek)(int fd, off_t ofs, int whence);
	ssize_t (*pread)(int fd, void *buf, size_t n, off_t ofs);
	ssize_t (*pwrite)(int fd, const void *buf, size_t n, off_t ofs);
	int (*ftruncate)(int fd, off_t size);
	int (*fcntl_lock)(int fd, int cmd, struct flock *fl);
	int (*fcntl_int)(int fd, int cmd, int arg);
	int (*flock)(int fd, int op);
	void *(*mmap)(void *addr, size_t n, int prot, int flags, int fd,
		      off_t ofs);
	int (*munmap)(void *addr, size_t n);
};

/* The table in force. */
const struct syscall_table *syscalls(void);

/* Put another table in force (NULL: the system's own again). */
void syscalls_replace(const struct syscall_table *table);

#endif
