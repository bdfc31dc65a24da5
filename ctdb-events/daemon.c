/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ctdb-events/events.h"
#include "ctdb-events/life.h"
#include "ctdb-events/log.h"
#include "ctdb-events/resident.h"

/* Reading the nodes, and an older agent that has to go */
#define READY_MS 15000

/* The child's side: an empty message is good news. */
static void tell(int fd, const char *message)
{
	ssize_t n = write(fd, message, strlen(message) + 1);

	(void)n;
	close(fd);
}

static void leave_caller(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int ret = chdir("/");

	(void)ret;
	if (null != -1) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
	}
}

static void become_daemon(TALLOC_CTX *mem_ctx, const struct options *options,
			  const char *worker, int life, bool running, int fd)
{
	struct resident *resident = NULL;
	const char *why = NULL;
	int ret;

	setsid();
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	log_open(options->logging);
	leave_caller();
	ret = resident_create(mem_ctx, options, worker, life, running,
			      &resident, &why);
	if (ret != 0) {
		tell(fd, why != NULL ? why : strerror(ret));
		_exit(1);
	}
	tell(fd, "");
	resident_serve(resident);
	_exit(0);
}

/* Returns an exit status. */
static int await_daemon(int fd)
{
	char message[1024] = "";
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	ssize_t n;
	int ret;

	ret = poll(&poll_fd, 1, READY_MS);
	if (ret != 1) {
		printf("pingpong's agent does not get ready\n");
		return 1;
	}
	n = read(fd, message, sizeof(message) - 1);
	if (n == 1) {
		return 0;
	}
	printf("%s\n", n > 0 ? message : "pingpong's agent has died");
	return 1;
}

static int start(TALLOC_CTX *mem_ctx, const char *event, const char *worker,
		 const char **why)
{
	struct options *options = NULL;
	int life = -1;
	int fds[2];
	pid_t pid;
	int ret;

	ret = options_read(mem_ctx, &options, why);
	if (ret != 0) {
		return ret;
	}
	ret = life_of_ctdbd(mem_ctx, &options->ctdb, &life, why);
	if (ret != 0) {
		return ret;
	}
	ret = pipe2(fds, O_CLOEXEC);
	if (ret == -1) {
		return errno;
	}
	pid = fork();
	if (pid == -1) {
		return errno;
	}
	if (pid == 0) {
		close(fds[0]);
		become_daemon(mem_ctx, options, worker, life,
			      strcmp(event, "init") != 0, fds[1]);
	}
	close(fds[1]);
	*why = NULL;
	return await_daemon(fds[0]) == 0 ? 0 : EIO;
}

int events_daemon(const char *event, const char *worker)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	const char *why = NULL;
	int ret;

	ret = start(frame, event, worker, &why);
	if (ret != 0 && why != NULL) {
		printf("%s\n", why);
	}
	talloc_free(frame);
	return ret == 0 ? 0 : 1;
}
