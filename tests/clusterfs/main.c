/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "faults.h"

#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#define MAX_FAULTS 64

int backing_fd = -1;
const char *backing_path;

static const char *pidfile;
static int ready_fd = -1;	/* tells the waiting parent, with -d */

static void usage(FILE *f)
{
	fputs("usage: clusterfs [OPTION...] BACKING [MOUNT...]\n"
	      "       clusterfs --join SOCKET [--member N] MOUNT\n"
	      "       clusterfs --control SOCKET COMMAND...\n"
	      "       clusterfs --list-faults\n"
	      "Mounts one directory several times, each mount a node of a "
	      "cluster.\n"
	      "  --server SOCKET  let others join and send commands here\n"
	      "  --fault FAULT    NAME[:KEY=VALUE,...], repeatable\n"
	      "  --source NAME    mount source (clusterfs)\n"
	      "  --member N       number of the mount that joins\n"
	      "  -d, --daemon     return when all is mounted\n"
	      "  --pidfile FILE   write the process id there\n"
	      "Commands: fault add FAULT, fault clear [ID|NAME], fault list\n",
	      f);
}

static void ready(void)
{
	if (pidfile != NULL) {
		FILE *f = fopen(pidfile, "w");

		if (f == NULL) {
			fprintf(stderr, "clusterfs: \"%s\" (%s)\n", pidfile,
				strerror(errno));
		} else {
			fprintf(f, "%d\n", (int)getpid());
			fclose(f);
		}
	}
	if (ready_fd != -1) {
		ssize_t n = write(ready_fd, "", 1);

		close(ready_fd);
		ready_fd = -1;
		if (n != 1) {
			exit(EXIT_FAILURE);
		}
	}
}

/* The parent stays until the child is ready, and ends as it does. */
static void daemonize(void)
{
	int fds[2];
	char c;
	pid_t pid;
	ssize_t n;
	int fd;
	int ret;

	ret = pipe2(fds, O_CLOEXEC);
	if (ret == -1) {
		perror("clusterfs");
		exit(EXIT_FAILURE);
	}
	pid = fork();
	if (pid == -1) {
		perror("clusterfs");
		exit(EXIT_FAILURE);
	}
	if (pid > 0) {
		close(fds[1]);
		n = read(fds[0], &c, 1);
		_exit(n == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	close(fds[0]);
	ready_fd = fds[1];
	setsid();
	fd = open("/dev/null", O_RDWR);
	if (fd != -1) {
		dup2(fd, STDIN_FILENO);
		dup2(fd, STDOUT_FILENO);
		if (fd > STDERR_FILENO) {
			close(fd);
		}
	}
}

static void block_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigprocmask(SIG_BLOCK, set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void signalled(struct source *source)
{
	(void)source;
	loop_stop();
}

static int mount_member(const char *path, int index, const char *source)
{
	struct member *member = NULL;
	struct member as = { .index = index };
	struct event ev = { .member = &as, .last = INT64_MAX };
	char other[PATH_MAX];
	dev_t dev = 0;
	int fd = -1;
	int ret;

	faults_run(AT_MOUNT, &ev);
	if (ev.other_source) {
		snprintf(other, sizeof(other), "%s-%d", source, index);
		source = other;
	}
	ret = mount_fuse(path, source, &fd, &dev);
	if (ret != 0) {
		return ret;
	}
	ret = member_add(path, dev, index, fd, -1, 0, &member);
	if (ret != 0) {
		umount2(path, MNT_DETACH);
	}
	return ret;
}

static int serve(const char *backing, char **mounts, const char *source,
		 const char *server, const sigset_t *signals)
{
	struct rlimit limit = {};
	int i;
	int fd;
	int ret;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	umask(0);

	backing_path = backing;
	backing_fd = open(backing, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (backing_fd == -1) {
		fprintf(stderr, "clusterfs: \"%s\" (%s)\n", backing,
			strerror(errno));
		return EXIT_FAILURE;
	}
	fd = signalfd(-1, signals, SFD_CLOEXEC);
	if (fd == -1) {
		perror("clusterfs");
		return EXIT_FAILURE;
	}
	source_add(fd, signalled, NULL);

	for (i = 0; mounts[i] != NULL; i++) {
		ret = mount_member(mounts[i], i, source);
		if (ret != 0) {
			fprintf(stderr, "clusterfs: \"%s\" (%s)\n",
				mounts[i], strerror(ret));
			members_remove_all();
			return EXIT_FAILURE;
		}
	}
	if (server != NULL) {
		ret = control_listen(server);
		if (ret != 0) {
			fprintf(stderr, "clusterfs: \"%s\" (%s)\n", server,
				strerror(ret));
			members_remove_all();
			return EXIT_FAILURE;
		}
	}
	ready();
	ret = loop_run();
	members_remove_all();
	loop_free();
	if (server != NULL) {
		unlink(server);
	}
	return ret == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Paths must hold wherever the mount point is looked at from. */
static char *full_path(const char *path)
{
	char *full = realpath(path, NULL);

	if (full == NULL) {
		fprintf(stderr, "clusterfs: \"%s\" (%s)\n", path,
			strerror(errno));
		exit(EXIT_FAILURE);
	}
	return full;
}

static void add_fault(const char *text)
{
	const char *why = NULL;
	unsigned int id;
	int ret;

	ret = fault_add(text, &id, &why);
	if (ret != 0) {
		fprintf(stderr, "clusterfs: --fault \"%s\": %s\n", text, why);
		exit(EXIT_FAILURE);
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "server", required_argument, NULL, 's' },
		{ "join", required_argument, NULL, 'j' },
		{ "control", required_argument, NULL, 'c' },
		{ "fault", required_argument, NULL, 'f' },
		{ "source", required_argument, NULL, 'S' },
		{ "member", required_argument, NULL, 'm' },
		{ "daemon", no_argument, NULL, 'd' },
		{ "pidfile", required_argument, NULL, 'p' },
		{ "list-faults", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	const char *server = NULL;
	const char *join = NULL;
	const char *control = NULL;
	const char *source = "clusterfs";
	const char *faults[MAX_FAULTS];
	int num_faults = 0;
	bool background = false;
	int index = -1;
	sigset_t signals;
	int i;
	int c;

	while ((c = getopt_long(argc, argv, "dh", options, NULL)) != -1) {
		switch (c) {
		case 's':
			server = optarg;
			break;
		case 'j':
			join = optarg;
			break;
		case 'c':
			control = optarg;
			break;
		case 'f':
			if (num_faults == MAX_FAULTS) {
				fprintf(stderr, "clusterfs: too many "
					"faults\n");
				return EXIT_FAILURE;
			}
			faults[num_faults++] = optarg;
			break;
		case 'S':
			source = optarg;
			break;
		case 'm':
			index = atoi(optarg);
			break;
		case 'd':
			background = true;
			break;
		case 'p':
			pidfile = optarg;
			break;
		case 'l':
			fault_list_types(stdout);
			return EXIT_SUCCESS;
		case 'h':
			usage(stdout);
			return EXIT_SUCCESS;
		default:
			usage(stderr);
			return EXIT_FAILURE;
		}
	}
	argv += optind;
	argc -= optind;
	if (argc < 1 || (join != NULL && argc != 1)) {
		usage(stderr);
		return EXIT_FAILURE;
	}
	if (control != NULL) {
		return control_send(control, argv);
	}

	for (i = 0; i < argc; i++) {
		argv[i] = full_path(argv[i]);
	}
	for (i = 0; i < num_faults; i++) {
		add_fault(faults[i]);
	}
	if (background) {
		daemonize();
	}
	block_signals(&signals);
	if (join != NULL) {
		return control_join(join, argv[0], index, source, ready);
	}
	return serve(argv[0], argv + 1, source, server, &signals);
}
