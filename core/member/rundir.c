/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/member/rundir.h"

static int make_dir(const char *path, mode_t mode)
{
	int ret;

	ret = mkdir(path, mode);
	return ret == 0 || errno == EEXIST ? 0 : errno;
}

static int open_dir(const char *rundir, const char *name, bool make, int *fd)
{
	struct stat st = {};
	char path[256];
	int ret;

	if (geteuid() != 0) {
		return EPERM;
	}
	ret = snprintf(path, sizeof(path), "%s/%s", rundir, name);
	if ((size_t)ret >= sizeof(path)) {
		return ENAMETOOLONG;
	}
	ret = make ? make_dir(rundir, 0755) : 0;
	if (ret == 0 && make) {
		ret = make_dir(path, 0700);
	}
	if (ret != 0) {
		return ret;
	}
	*fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd == -1) {
		return errno;
	}
	ret = fstat(*fd, &st);
	if (ret == -1 || st.st_uid != 0 || (st.st_mode & 0022) != 0) {
		close(*fd);
		return EPERM;
	}
	return 0;
}

int rundir_open(const char *rundir, const char *name, int *fd)
{
	return open_dir(rundir, name, true, fd);
}

int rundir_find(const char *rundir, const char *name, int *fd)
{
	return open_dir(rundir, name, false, fd);
}
