/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <dirent.h>
#include <errno.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/probe/dir.h"
#include "core/probe/process.h"
#include "core/probe/syscalls.h"

/* entries of one directory that are looked at; more is somebody's attack */
#define DIR_MAX_ENTRIES 4096

struct dirent64_head {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

struct run_owner {
	char boot[9];
	unsigned long pid_ns;
	long pid;
	unsigned long long start;
	long long expiry;
};

static void boot_id_short(char boot[9])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	strcpy(boot, "00000000");
	if (f == NULL) {
		return;
	}
	if (fread(boot, 1, 8, f) != 8) {
		strcpy(boot, "00000000");
	}
	fclose(f);
}

static unsigned long pid_namespace(void)
{
	struct stat st = {};
	int ret = stat("/proc/self/ns/pid", &st);

	return ret == 0 ? (unsigned long)st.st_ino : 0;
}

void probe_dir_make_name(char *name, size_t size, unsigned lifetime_s)
{
	struct process self = {};
	uint64_t random = 0;
	char boot[9];
	ssize_t n;

	boot_id_short(boot);
	process_look(getpid(), &self);
	n = getrandom(&random, sizeof(random), 0);
	if (n != sizeof(random)) {
		random = (uint64_t)getpid() ^ (uint64_t)time(NULL);
	}
	snprintf(name, size, "%s.%lx.%ld.%llu.%lld.%016llx", boot,
		 pid_namespace(), (long)getpid(), self.start,
		 (long long)time(NULL) + lifetime_s,
		 (unsigned long long)random);
}

static bool run_owner_parse(const char *name, struct run_owner *owner)
{
	unsigned long long random;
	int end = 0;
	int n;

	n = sscanf(name, "%8[0-9a-f].%lx.%ld.%llu.%lld.%16llx%n", owner->boot,
		   &owner->pid_ns, &owner->pid, &owner->start,
		   &owner->expiry, &random, &end);
	return n == 6 && name[end] == '\0';
}

bool probe_dir_is_stale(const char *name)
{
	struct run_owner owner = {};
	struct process process = {};
	char boot[9];
	bool ok;

	ok = run_owner_parse(name, &owner);
	if (!ok) {
		return false;
	}
	if ((long long)time(NULL) > owner.expiry) {
		return true;
	}
	boot_id_short(boot);
	if (strcmp(boot, owner.boot) != 0 ||
	    owner.pid_ns != pid_namespace()) {
		return false;
	}
	ok = process_look((pid_t)owner.pid, &process);
	return !ok || process.start != owner.start;
}

static int open_below(int dirfd, const char *name, int flags, int *fd)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | O_NOFOLLOW),
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS,
	};

	*fd = syscalls()->openat2(dirfd, name, &how);
	return *fd == -1 ? errno : 0;
}

/*
 * Ours alone? Where root is mapped to another user by the server (NFS's
 * root_squash), what we make belongs to that user; then the owner of the
 * place's probe directory cannot be told from that user's own, and we refuse.
 */
static int check_own(int fd)
{
	struct stat st = {};
	int ret;

	ret = syscalls()->fstat(fd, &st);
	if (ret == -1) {
		return errno;
	}
	if (!S_ISDIR(st.st_mode)) {
		return ENOTDIR;
	}
	if (st.st_uid != geteuid() || (st.st_mode & 0022) != 0) {
		return EUSERS;
	}
	return 0;
}

static int open_own(int dirfd, const char *name, int *fd)
{
	int ret;

	ret = open_below(dirfd, name, O_RDONLY | O_DIRECTORY, fd);
	if (ret != 0) {
		return ret;
	}
	ret = check_own(*fd);
	if (ret != 0) {
		syscalls()->close(*fd);
		*fd = -1;
	}
	return ret;
}

/* may_exist: or open the one that is there */
static int make_own(int dirfd, const char *name, bool may_exist, int *fd)
{
	bool made;
	int ret;

	ret = syscalls()->mkdirat(dirfd, name, 0700);
	made = ret == 0;
	if (!made && (errno != EEXIST || !may_exist)) {
		return errno;
	}
	ret = open_own(dirfd, name, fd);
	if (ret != 0 && made) {
		/* it belongs to whom the server takes us for */
		syscalls()->unlinkat(dirfd, name, AT_REMOVEDIR);
	}
	return ret;
}

/*
 * Names of a directory's entries, at most DIR_MAX_ENTRIES, handed to fn; fn
 * returns false to end. Removing while reading is fine: it begins anew until
 * nothing is left to do.
 */
static int each_entry(int fd, bool (*fn)(int fd, const char *name,
					 void *private_data),
		      void *private_data)
{
	_Alignas(struct dirent64_head) char buf[16384];
	unsigned seen = 0;
	ssize_t n, pos;
	off_t ofs;

	ofs = syscalls()->lseek(fd, 0, SEEK_SET);
	if (ofs == -1) {
		return errno;
	}
	while (seen < DIR_MAX_ENTRIES) {
		n = syscalls()->getdents(fd, buf, sizeof(buf));
		if (n == -1) {
			return errno;
		}
		if (n == 0) {
			return 0;
		}
		for (pos = 0; pos < n;) {
			struct dirent64_head *de = (void *)(buf + pos);
			bool more;

			pos += de->reclen;
			if (strcmp(de->name, ".") == 0 ||
			    strcmp(de->name, "..") == 0) {
				continue;
			}
			seen++;
			more = fn(fd, de->name, private_data);
			if (!more) {
				return 0;
			}
		}
	}
	return 0;
}

struct emptying {
	int err;
	unsigned removed;
};

static bool remove_entry(int fd, const char *name, void *private_data)
{
	struct emptying *state = private_data;
	int ret, err;

	ret = syscalls()->unlinkat(fd, name, 0);
	err = ret == 0 ? 0 : errno;
	if (err == EISDIR || err == EPERM) {
		/* EPERM: a directory, or a file that is to stay */
		ret = syscalls()->unlinkat(fd, name, AT_REMOVEDIR);
		if (ret == 0 || errno != ENOTDIR) {
			err = ret == 0 ? 0 : errno;
		}
	}
	if (err == 0) {
		state->removed++;
	} else if (err != ENOENT && state->err == 0) {
		state->err = err;
	}
	return true;
}

static int empty_dir(int fd)
{
	struct emptying state;
	int ret;

	do {
		state = (struct emptying){};
		ret = each_entry(fd, remove_entry, &state);
	} while (ret == 0 && state.removed > 0);
	return ret != 0 ? ret : state.err;
}

static int remove_run(int top, const char *name)
{
	int fd = -1;
	int ret, err;

	ret = open_own(top, name, &fd);
	if (ret != 0) {
		return ret;
	}
	err = empty_dir(fd);
	syscalls()->close(fd);
	ret = syscalls()->unlinkat(top, name, AT_REMOVEDIR);
	if (ret == -1 && err == 0 && errno != ENOENT) {
		err = errno;
	}
	return err;
}

static bool remove_stale(int fd, const char *name, void *private_data)
{
	(void)private_data;
	if (probe_dir_is_stale(name)) {
		remove_run(fd, name);
	}
	return true;
}

static int open_run(struct probe_dir *dir, const char *name)
{
	int ret;

	ret = open_own(dir->place, PROBE_DIR_NAME, &dir->top);
	if (ret != 0) {
		return ret;
	}
	return open_own(dir->top, name, &dir->run);
}

static int make_run(struct probe_dir *dir, const char *name)
{
	int ret;

	ret = make_own(dir->place, PROBE_DIR_NAME, true, &dir->top);
	if (ret != 0) {
		return ret;
	}
	ret = each_entry(dir->top, remove_stale, NULL);
	if (ret == 0) {
		ret = make_own(dir->top, name, false, &dir->run);
	}
	if (ret != 0) {
		/* stays when another run is using it */
		syscalls()->unlinkat(dir->place, PROBE_DIR_NAME,
				     AT_REMOVEDIR);
	}
	return ret;
}

int probe_dir_open(struct probe_dir *dir, const char *name, bool make)
{
	unsigned tries = make ? 8 : 1;
	int ret;

	/* another run that ends may take the empty directory away */
	do {
		probe_dir_close(dir);
		ret = make ? make_run(dir, name) : open_run(dir, name);
	} while (ret == ENOENT && --tries > 0);
	if (ret != 0) {
		probe_dir_close(dir);
		return ret;
	}
	snprintf(dir->name, sizeof(dir->name), "%s", name);
	return 0;
}

int probe_dir_remove(struct probe_dir *dir)
{
	int ret = 0;
	int top;

	if (dir->top == -1) {
		return 0;
	}
	if (dir->run != -1) {
		ret = remove_run(dir->top, dir->name);
		if (ret == ENOENT) {
			ret = 0;
		}
	}
	top = syscalls()->unlinkat(dir->place, PROBE_DIR_NAME, AT_REMOVEDIR);
	/* stays when another run is using it */
	if (top == -1 && ret == 0 && errno != ENOTEMPTY && errno != EEXIST &&
	    errno != ENOENT) {
		ret = errno;
	}
	probe_dir_close(dir);
	return ret;
}

struct listing {
	const char *name;
	uint64_t count;
};

static bool listed(int fd, const char *name, void *private_data)
{
	struct listing *listing = private_data;

	(void)fd;
	listing->count += strcmp(name, listing->name) == 0;
	return true;
}

int probe_dir_list(struct probe_dir *dir, const char *name, uint64_t *count)
{
	struct listing listing = { .name = name };
	int fd = -1;
	int ret;

	ret = open_below(dir->run, ".", O_RDONLY | O_DIRECTORY, &fd);
	if (ret != 0) {
		return ret;
	}
	ret = each_entry(fd, listed, &listing);
	syscalls()->close(fd);
	*count = listing.count;
	return ret;
}

void probe_dir_close(struct probe_dir *dir)
{
	if (dir->run != -1) {
		syscalls()->close(dir->run);
		dir->run = -1;
	}
	if (dir->top != -1) {
		syscalls()->close(dir->top);
		dir->top = -1;
	}
}
