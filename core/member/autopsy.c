/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a silent process is doing, from /proc
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/member/autopsy.h"
#include "core/probe/process.h"

static const struct {
	long number;
	const char *name;
} syscall_names[] = {
	{ SYS_fcntl, "fcntl" },
	{ SYS_flock, "flock" },
	{ SYS_openat, "openat" },
	{ SYS_openat2, "openat2" },
	{ SYS_close, "close" },
	{ SYS_read, "read" },
	{ SYS_pread64, "pread64" },
	{ SYS_pwrite64, "pwrite64" },
	{ SYS_ftruncate, "ftruncate" },
	{ SYS_newfstatat, "newfstatat" },
	{ SYS_fstat, "fstat" },
	{ SYS_statx, "statx" },
	{ SYS_fstatfs, "fstatfs" },
	{ SYS_mkdirat, "mkdirat" },
	{ SYS_unlinkat, "unlinkat" },
	{ SYS_renameat, "renameat" },
	{ SYS_getdents64, "getdents64" },
	{ SYS_mmap, "mmap" },
	{ SYS_munmap, "munmap" },
	{ SYS_wait4, "wait4" },
	{ SYS_recvmsg, "recvmsg" },
};

static char *read_proc(TALLOC_CTX *mem_ctx, pid_t pid, const char *file)
{
	char path[64], buf[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1) {
		return talloc_strdup(mem_ctx, "");
	}
	n = read(fd, buf, sizeof(buf) - 1);
	close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return talloc_strdup(mem_ctx, buf);
}

static char *name_syscall(TALLOC_CTX *mem_ctx, char *line)
{
	char *rest = NULL;
	size_t i;
	long number;

	line[strcspn(line, "\n")] = '\0';
	number = strtol(line, &rest, 10);
	if (rest == line) {
		return line;	/* "running" or nothing */
	}
	for (i = 0; i < sizeof(syscall_names) / sizeof(syscall_names[0]);
	     i++) {
		if (syscall_names[i].number == number) {
			return talloc_asprintf(mem_ctx, "%s",
					       syscall_names[i].name);
		}
	}
	return line;
}

void autopsy_of_process(TALLOC_CTX *mem_ctx, pid_t pid,
			struct member_autopsy *autopsy)
{
	struct process process = {};
	bool found;

	*autopsy = (struct member_autopsy){
		.state = '?', .wchan = "", .syscall = "", .stack = "",
	};
	found = process_look(pid, &process);
	if (!found) {
		return;
	}
	autopsy->found = true;
	autopsy->state = process.state;
	autopsy->wchan = read_proc(mem_ctx, pid, "wchan");
	autopsy->stack = read_proc(mem_ctx, pid, "stack");
	autopsy->syscall = name_syscall(mem_ctx,
					read_proc(mem_ctx, pid, "syscall"));
	/* in recvmsg it waits for its supervisor, not for the file system */
	autopsy->blocked = (autopsy->state == 'S' || autopsy->state == 'D') &&
			   strcmp(autopsy->syscall, "recvmsg") != 0;
}
