/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The door for those who know ping_pong; see ping_pong.h.
 *
 * No signal handler and no timer: SIGINT and SIGTERM end it as they end any
 * program, and nothing ever interrupts a waiting lock, which would be one more
 * operation on the file system under test. A ring that stands still is
 * noticed by a second process.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/ping_pong.h"
#include "core/probe/ring.h"
#include "core/probe/syscalls.h"

#define FILE_MAX 65536
#define NUM_LOCKS_MAX (FILE_MAX - 1)
#define NS_PER_S 1000000000ULL
#define STALL_S 5

#define ENOUGH_LOCKS "NUM_LOCKS must be greater than the number of instances"

/* In memory that the two processes share */
struct door {
	const char *path;
	bool only_lock;		/* -l */
	_Atomic bool begun;	/* the first byte is held */
	struct ring ring;	/* nlocks 0 with -l: any number */
};

static const char usage_text[] =
	"ping_pong -rwmc <file> <num_locks>\n"
	"ping_pong -l <file>\n"
	"\n"
	"Options\n"
	" -r    do reads\n"
	" -w    do writes\n"
	" -m    use mmap\n"
	" -c    check locks\n"
	" -l    test for working byte range locks\n";

/* Prints the line, returns the exit status. */
static int failed(const char *call, const char *path, int err)
{
	fprintf(stderr, "ping_pong: %s '%s' (%s)\n",
		call, path, strerror(err));

	return EXIT_FAILURE;
}

/* All that is on standard output is there at once. Returns success. */
static bool flushed(void)
{
	int ret = 0;

	ret = fflush(stdout);
	if (ret != 0) {
		failed("write", "standard output", errno);
	}

	return ret == 0;
}

static int bad_num_locks(const char *arg)
{
	fprintf(stderr,
		"ping_pong: NUM_LOCKS '%s' is not a number from 1 to %d\n",
		arg, NUM_LOCKS_MAX);

	return EX_USAGE;
}

static int missing(const char *what)
{
	printf("%s", usage_text);
	fprintf(stderr, "ping_pong: %s missing\n", what);

	return EX_USAGE;
}

/* Returns the first letter that is no option, or 0. */
static char parse_letters(const char *letters, struct door *door)
{
	for (; *letters != '\0'; letters++) {
		switch (*letters) {
		case 'r':
			door->ring.io |= RING_READ;
			break;
		case 'w':
			door->ring.io |= RING_WRITE;
			break;
		case 'm':
			door->ring.io |= RING_MAPPED;
			break;
		case 'c':
			door->ring.getlk = true;
			break;
		case 'l':
			door->only_lock = true;
			break;
		default:
			return *letters;
		}
	}

	return '\0';
}

static bool parse_num_locks(const char *arg, uint64_t *nlocks)
{
	size_t digits = strspn(arg, "0123456789");

	if (digits == 0 || arg[digits] != '\0') {
		return false;
	}
	*nlocks = strtoull(arg, NULL, 10);

	return *nlocks >= 1 && *nlocks <= NUM_LOCKS_MAX;
}

/* As with getopt, options may stand anywhere before "--". A minus sign and a
 * digit are a bad NUM_LOCKS. Returns 0 or the exit status. */
static int parse_arguments(int argc, const char **argv, struct door *door)
{
	const char *num_locks = NULL;
	bool options_end = false;
	int i = 0;

	for (i = 1; i < argc; i++) {
		const char *arg = argv[i];
		char unknown = '\0';

		if (!options_end && strcmp(arg, "--") == 0) {
			options_end = true;
			continue;
		}
		if (!options_end && arg[0] == '-' && arg[1] != '\0' &&
		    !isdigit((unsigned char)arg[1])) {
			unknown = parse_letters(arg + 1, door);
			if (unknown != '\0') {
				fprintf(stderr, "ping_pong: unknown option "
					"'%c' in '%s'\n", unknown, arg);
				return EX_USAGE;
			}
			continue;
		}
		if (door->path == NULL) {
			door->path = arg;
			continue;
		}
		if (num_locks == NULL) {
			num_locks = arg;
			continue;
		}
		fprintf(stderr, "ping_pong: one argument too many: '%s'\n",
			arg);
		return EX_USAGE;
	}

	if (door->path == NULL) {
		return missing("FILE is");
	}
	if (door->only_lock) {
		return 0;
	}
	if (num_locks == NULL) {
		return missing("NUM_LOCKS is");
	}

	return parse_num_locks(num_locks, &door->ring.nlocks) ?
		       0 : bad_num_locks(num_locks);
}

/* Returns 0 or an errno. */
static int read_file(int fd, uint8_t *buf, size_t size)
{
	size_t done = 0;

	while (done < size) {
		ssize_t nread = 0;

		nread = syscalls()->pread(fd, buf + done, size - done, done);
		if (nread == -1 && errno == EINTR) {
			continue;
		}
		if (nread == -1) {
			return errno;
		}
		if (nread == 0) {
			return ENODATA;
		}
		done += nread;
	}

	return 0;
}

static bool begins_with_text(const uint8_t *buf, size_t size)
{
	size_t i = 0;

	for (i = 0; i < size && i < 4; i++) {
		bool line_end = buf[i] == '\n' || buf[i] == '\r';

		if (!isprint(buf[i]) && !line_end && buf[i] != '\t') {
			return false;
		}
	}

	return true;
}

/* Somebody holds one byte of the ring, or two in the middle of a turn */
static bool ring_in_use(int fd, uint64_t nlocks)
{
	struct flock fl = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
		.l_len = nlocks,
	};
	int ret = 0;

	ret = syscalls()->fcntl_lock(fd, F_GETLK, &fl);

	return ret == 0 && fl.l_type == F_WRLCK &&
	       (fl.l_len == 1 || fl.l_len == 2);
}

/* The rule of ping_pong.h for a file of 1 .. FILE_MAX bytes */
static bool is_ring_file(int fd, uint64_t nlocks,
			 const uint8_t *buf, size_t size)
{
	bool exact_size = nlocks == 0 || size == nlocks + 1;
	const uint8_t *nul = memchr(buf, '\0', size);

	if (!begins_with_text(buf, size)) {
		return exact_size || buf[size - 1] == '\0';
	}
	if (nul == buf + size - 1) {
		return true;
	}

	return exact_size && nlocks != 0 && ring_in_use(fd, nlocks);
}

static int refused(const char *path, const char *why)
{
	fprintf(stderr, "ping_pong: '%s' is not touched: %s\n", path, why);

	return EXIT_FAILURE;
}

/* Returns 0 or, after the line is printed, the exit status. */
static int check_owner(const struct door *door, off_t size)
{
	static uint8_t buf[FILE_MAX];
	bool ok = false;
	int ret = 0;

	if (size > FILE_MAX) {
		return refused(door->path, "larger than 64 KiB");
	}
	if (size == 0) {
		return 0;
	}

	ret = read_file(door->ring.fd, buf, size);
	if (ret != 0) {
		return failed("read", door->path, ret);
	}
	ok = is_ring_file(door->ring.fd, door->ring.nlocks, buf, size);
	if (!ok) {
		return refused(door->path, "it does not look like a file of "
			       "ping_pong's (name a new one)");
	}

	return 0;
}

/*
 * A shorter file keeps its counters; of a longer one the byte after the
 * counters becomes NUL again.
 *
 * Returns 0 or, after the line is printed, the exit status.
 */
static int set_size(const struct door *door, off_t size)
{
	const struct syscall_table *sys = syscalls();
	off_t counters = door->ring.nlocks;
	int ret = 0;

	if (size == counters + 1) {
		return 0;
	}
	if (size > counters) {
		ret = sys->ftruncate(door->ring.fd, counters);
	}
	if (ret == 0) {
		ret = sys->ftruncate(door->ring.fd, counters + 1);
	}

	return ret == 0 ? 0 : failed("ftruncate", door->path, errno);
}

/*
 * What is no file is refused before it is opened, for opening alone can have
 * effects on a device; what is opened is looked at again.
 *
 * Returns 0 or, after the line is printed, the exit status.
 */
static int open_file(struct door *door)
{
	const struct syscall_table *sys = syscalls();
	struct open_how how = {
		.flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC,
		.mode = 0600,
	};
	struct stat st = {};
	int ret = 0;

	ret = sys->fstatat(AT_FDCWD, door->path, &st, AT_SYMLINK_NOFOLLOW);
	if (ret == -1 && errno != ENOENT) {
		return failed("stat", door->path, errno);
	}
	if (ret == 0 && S_ISLNK(st.st_mode)) {
		return refused(door->path,
			       "a symbolic link (name the file itself)");
	}
	if (ret == 0 && !S_ISREG(st.st_mode)) {
		return refused(door->path, "not a regular file");
	}

	door->ring.fd = sys->openat2(AT_FDCWD, door->path, &how);
	if (door->ring.fd == -1) {
		return failed("open", door->path, errno);
	}
	ret = sys->fstat(door->ring.fd, &st);
	if (ret == -1) {
		return failed("stat", door->path, errno);
	}
	if (!S_ISREG(st.st_mode)) {
		return refused(door->path, "not a regular file");
	}

	ret = check_owner(door, st.st_size);
	if (ret != 0 || door->only_lock) {
		return ret;
	}

	return set_size(door, st.st_size);
}

static int hold_until_key(void)
{
	bool ok = false;

	printf("Holding lock, press any key to continue...\n"
	       "You should run the same command on another node now.\n");
	ok = flushed();
	if (!ok) {
		return EXIT_FAILURE;
	}
	getchar();
	printf("Good bye.\n");
	ok = flushed();

	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void print_holder(const struct flock *fl)
{
	printf("check_lock failed: lock held: pid='%d', type='%d', "
	       "start='%d', len='%d'\n", (int)fl->l_pid, (int)fl->l_type,
	       (int)fl->l_start, (int)fl->l_len);
}

static int show_holder(const struct door *door)
{
	struct flock fl = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
	};
	bool ok = false;
	int ret = 0;

	printf("file already locked, calling check_lock to tell us who has it "
	       "locked:\n");
	ret = syscalls()->fcntl_lock(door->ring.fd, F_GETLK, &fl);
	if (ret == -1) {
		int err = errno;

		flushed();
		return failed("F_GETLK", door->path, err);
	}
	if (fl.l_type == F_UNLCK) {
		flushed();
		fprintf(stderr, "ping_pong: F_SETLK '%s' was refused, but "
			"F_GETLK shows no holder: it has just gone, or locks "
			"do not work\n", door->path);
		return EXIT_FAILURE;
	}
	print_holder(&fl);
	printf("Working POSIX byte range locks\n");
	ok = flushed();

	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int try_lock(const struct door *door)
{
	struct flock fl = {
		.l_type = F_WRLCK,
		.l_whence = SEEK_SET,
	};
	int ret = 0;

	ret = syscalls()->fcntl_lock(door->ring.fd, F_SETLK, &fl);
	if (ret == 0) {
		return hold_until_key();
	}
	if (errno != EAGAIN && errno != EACCES) {
		return failed("F_SETLK", door->path, errno);
	}

	return show_holder(door);
}

static void print_stall(const struct door *door, uint64_t turns)
{
	uint64_t byte = turns;

	if (door->begun) {
		byte++;
	}
	fprintf(stderr, "ping_pong: no turn for %d s, waiting at byte %llu of "
		"'%s' (%s)\n", STALL_S,
		(unsigned long long)(byte % door->ring.nlocks),
		door->path, ENOUGH_LOCKS);
}

/* One line each time that no turn is made for a while */
static void watch(const struct door *door)
{
	uint64_t last = UINT64_MAX;
	unsigned seconds = 0;

	while (true) {
		uint64_t turns = door->ring.turns;

		seconds = turns == last ? seconds + 1 : 0;
		last = turns;
		if (seconds == STALL_S) {
			print_stall(door, turns);
		}
		sleep(1);
	}
}

/*
 * Before FILE is opened. A process and not a thread, which would make each
 * system call of the ring dearer: a table of descriptors that is shared, and
 * calls that can be cancelled. The ring runs without it too.
 */
static void start_watch(const struct door *door)
{
	pid_t parent = getpid();
	pid_t child = 0;

	child = fork();
	if (child != 0) {
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent) {
		watch(door);
	}
	_exit(0);
}

static int ring_failed(const struct door *door, int err)
{
	const struct ring *ring = &door->ring;
	uint64_t byte = ring->position;

	if (ring->holding && strcmp(ring->failed, "lock") == 0) {
		byte++;
	}
	byte %= ring->nlocks;

	if (err == EBUSY && strcmp(ring->failed, "getlk") == 0) {
		print_holder(&ring->other);
		flushed();
		fprintf(stderr, "ping_pong: F_GETLK '%s' byte %llu: held "
			"here, and by somebody else\n", door->path,
			(unsigned long long)byte);
		return EXIT_FAILURE;
	}

	fprintf(stderr, "ping_pong: %s '%s' byte %llu (%s)%s\n",
		ring->failed, door->path, (unsigned long long)byte,
		strerror(err), err == EDEADLK ? ": " ENOUGH_LOCKS : "");

	return EXIT_FAILURE;
}

static bool print_increment(const struct ring *ring, uint64_t *printed)
{
	if (ring->increment == *printed) {
		return true;
	}
	*printed = ring->increment;
	printf("data increment = %u\n", (unsigned)ring->increment);

	return flushed();
}

static bool print_rate(uint64_t turns, uint64_t elapsed_ns)
{
	double seconds = (double)elapsed_ns / NS_PER_S;

	printf("%8u locks/sec\r", (unsigned)(2 * turns / seconds));

	return flushed();
}

static int play(struct door *door)
{
	struct ring *ring = &door->ring;
	uint64_t printed_increment = 0;
	uint64_t turns = 0;
	uint64_t since = 0;
	bool ok = true;
	int ret = 0;

	ret = ring_begin(ring);
	if (ret != 0) {
		return ring_failed(door, ret);
	}
	door->begun = true;

	since = ring_now();
	while (ok) {
		uint64_t now = 0;

		ret = ring_run(ring, since + NS_PER_S);
		if (ret != 0) {
			return ring_failed(door, ret);
		}
		ok = print_increment(ring, &printed_increment);
		now = ring_now();
		if (ok && now - since >= NS_PER_S) {
			ok = print_rate(ring->turns - turns, now - since);
			since = now;
			turns = ring->turns;
		}
	}

	return EXIT_FAILURE;
}

int ping_pong_main(int argc, const char **argv)
{
	struct door *door = NULL;
	int ret = 0;

	door = mmap(NULL, sizeof(*door), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (door == MAP_FAILED) {
		return failed("mmap", "memory", errno);
	}
	door->ring.width = 1;
	door->ring.until_change = true;

	ret = parse_arguments(argc, argv, door);
	if (ret != 0) {
		return ret;
	}
	if (door->ring.nlocks == 1) {
		fprintf(stderr, "ping_pong: one lock is no ring: %s\n",
			ENOUGH_LOCKS);
	}

	if (!door->only_lock) {
		start_watch(door);
	}
	ret = open_file(door);
	if (ret != 0) {
		return ret;
	}
	if (door->only_lock) {
		return try_lock(door);
	}

	return play(door);
}
