/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * attack DIRECTORY SECONDS SEED: somebody who does not wish us well
 *
 * Runs as any user and does to the probe directory of whoever checks there
 * what a user of a world-writable directory can do: makes it first, as a
 * directory, a file, a FIFO, a symbolic or hard link; moves and removes what
 * is there; fills it; takes locks and leases on all that can be opened; reads
 * all that can be read. Prints each content of ours that it could read.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PROBE ".pingpong"
#define ENTRIES 2000

static int place;

/* Whether it worked is not known before, and not needed after */
static void tried(int ret)
{
	(void)ret;
}

static void remove_all(const char *name)
{
	int fd = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	struct dirent *de = NULL;
	DIR *dir = NULL;

	if (fd != -1) {
		dir = fdopendir(fd);
	}
	while (dir != NULL && (de = readdir(dir)) != NULL) {
		if (unlinkat(fd, de->d_name, 0) == -1) {
			unlinkat(fd, de->d_name, AT_REMOVEDIR);
		}
	}
	if (dir != NULL) {
		closedir(dir);
	}
	if (unlinkat(place, name, 0) == -1) {
		unlinkat(place, name, AT_REMOVEDIR);
	}
}

static void make_directory(void)
{
	mkdirat(place, PROBE, 0777);
}

static void make_file(void)
{
	close(openat(place, PROBE, O_CREAT | O_EXCL | O_WRONLY, 0666));
}

static void make_fifo(void)
{
	mkfifoat(place, PROBE, 0666);
}

static void make_symlink(void)
{
	static const char *const targets[] = {
		"../canary", "../canary/dir", "/etc", "/proc/self/fd", PROBE,
	};

	tried(symlinkat(targets[rand() % 5], place, PROBE));
}

static void make_hard_link(void)
{
	tried(linkat(place, "../canary/file", place, PROBE, 0));
	tried(linkat(place, "own", place, PROBE, 0));
}

/* With all sorts of things in it, some named as runs are */
static void make_full(void)
{
	char name[64];
	int i, fd;

	mkdirat(place, PROBE, 0777);
	fd = openat(place, PROBE, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	if (fd == -1) {
		return;
	}
	for (i = 0; i < ENTRIES; i++) {
		snprintf(name, sizeof(name), "ffffffff.0.1.1.1.%016x", rand());
		if (symlinkat("../../canary/dir", fd, name) == -1) {
			break;
		}
	}
	close(fd);
}

static void move_away(void)
{
	char name[32];

	snprintf(name, sizeof(name), "moved%d", rand() % 4);
	renameat(place, PROBE, place, name);
	renameat(place, name, place, PROBE);
}

static void remove_it(void)
{
	remove_all(PROBE);
	remove_all("moved0");
	remove_all("moved1");
	remove_all("moved2");
	remove_all("moved3");
}

static void lock_and_read(int dirfd, const char *name)
{
	struct flock fl = { .l_type = F_WRLCK };
	char buf[64];
	ssize_t n;
	struct stat st = {};
	int fd = openat(dirfd, name, O_RDWR | O_NONBLOCK | O_NOFOLLOW);

	if (fd == -1) {
		fd = openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
		fl.l_type = F_RDLCK;
	}
	if (fd == -1) {
		return;
	}
	fcntl(fd, F_SETLK, &fl);
	fcntl(fd, F_SETLEASE, F_RDLCK);
	n = read(fd, buf, sizeof(buf));
	if (n > 0 && fstat(fd, &st) == 0 && st.st_uid != getuid()) {
		printf("read: %s\n", name);
		fflush(stdout);
	}
	/* kept open, with the locks, for as long as there is room */
	if (fd > 200) {
		closefrom(100);
	}
}

static void look_in(const char *name)
{
	int fd = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
	DIR *dir = fd != -1 ? fdopendir(fd) : NULL;
	struct dirent *de = NULL;

	while (dir != NULL && (de = readdir(dir)) != NULL) {
		if (de->d_name[0] != '.') {
			lock_and_read(fd, de->d_name);
		}
	}
	if (dir != NULL) {
		closedir(dir);
	}
}

static void look(void)
{
	lock_and_read(place, PROBE);
	look_in(PROBE);
}

/* Let a check get somewhere, and then strike */
static void lie_in_wait(void)
{
	int rounds = rand() % 60;

	remove_it();
	while (rounds-- > 0) {
		usleep(20000);
		look();
	}
	move_away();
	remove_it();
	make_symlink();
}

int main(int argc, char **argv)
{
	void (*const attacks[])(void) = {
		make_directory, make_file, make_fifo, make_symlink,
		make_hard_link, make_full, move_away, remove_it, remove_it,
		remove_it, look, look,
	};
	time_t end;

	if (argc != 4) {
		fprintf(stderr, "usage: %s DIRECTORY SECONDS SEED\n", argv[0]);
		return 64;
	}
	place = open(argv[1], O_RDONLY | O_DIRECTORY);
	if (place == -1 || geteuid() == 0) {
		fprintf(stderr, "%s: '%s': %s\n", argv[0], argv[1],
			place == -1 ? strerror(errno) : "not as root");
		return 1;
	}
	srand((unsigned)atoi(argv[3]));
	close(openat(place, "own", O_CREAT | O_WRONLY, 0666));
	end = time(NULL) + atoi(argv[2]);
	while (time(NULL) < end) {
		attacks[(size_t)rand() % (sizeof(attacks) /
					  sizeof(attacks[0]))]();
		if (rand() % 8 == 0) {
			lie_in_wait();
		}
	}
	remove_it();
	unlinkat(place, "own", 0);
	return 0;
}
