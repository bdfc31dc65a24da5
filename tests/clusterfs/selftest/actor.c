/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "actor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS 4

static int fds[SLOTS] = { -1, -1, -1, -1 };
static unsigned char *maps[SLOTS];
static char bytes[1 << 20];
static volatile sig_atomic_t lease_broken;

static void on_lease(int sig)
{
	(void)sig;
	lease_broken = 1;
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void fork_close(const struct call *call, struct answer *answer)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		close(fds[call->slot]);
		_exit(0);
	}
	answer->ret = waitpid(pid, &status, 0) == pid ? 0 : -1;
}

static void list(const struct call *call, struct answer *answer)
{
	DIR *d = opendir(call->path);
	struct dirent *de = NULL;

	answer->ret = -1;
	if (d == NULL) {
		return;
	}
	answer->ret = 0;
	while ((de = readdir(d)) != NULL) {
		if (strcmp(de->d_name, call->name) == 0) {
			answer->ret = 1;
		}
	}
	closedir(d);
}

static void do_stat(const struct call *call, struct answer *answer)
{
	struct stat st = {};

	if (call->act == ACT_STAT) {
		answer->ret = stat(call->path, &st);
	} else {
		answer->ret = fstat(fds[call->slot], &st);
	}
	answer->v[0] = st.st_size;
	answer->v[1] = st.st_ino;
}

static void do_lock(const struct call *call, struct answer *answer)
{
	struct flock fl = {
		.l_type = call->b,
		.l_start = call->c,
		.l_len = call->d,
	};

	answer->ret = fcntl(fds[call->slot], call->a, &fl);
	answer->v[0] = fl.l_type;
	answer->v[1] = fl.l_start;
	answer->v[2] = fl.l_len;
	answer->v[3] = fl.l_pid;
}

static void perform(const struct call *call, struct answer *answer)
{
	int fd = fds[call->slot];
	volatile unsigned char *byte = NULL;
	struct itimerval it = {};

	if (maps[call->slot] != NULL) {
		byte = maps[call->slot] + call->a;
	}

	errno = 0;
	switch (call->act) {
	case ACT_OPEN:
		answer->ret = open(call->path, call->a, 0644);
		if (answer->ret != -1) {
			fds[call->slot] = answer->ret;
		}
		break;
	case ACT_CLOSE:
		answer->ret = close(fd);
		break;
	case ACT_LOCK:
	case ACT_GETLK:
		do_lock(call, answer);
		break;
	case ACT_FLOCK:
		answer->ret = flock(fd, call->a);
		break;
	case ACT_READ:
		answer->ret = pread(fd, bytes, call->b, call->a);
		if (answer->ret > 0) {
			answer->v[0] = (unsigned char)bytes[answer->ret - 1];
			answer->v[1] = (unsigned char)bytes[0];
		}
		break;
	case ACT_WRITE:
		memset(bytes, call->c, call->b);
		answer->ret = pwrite(fd, bytes, call->b, call->a);
		break;
	case ACT_MAP:
		maps[call->slot] = mmap(NULL, call->a, PROT_READ | PROT_WRITE,
					MAP_SHARED, fd, 0);
		answer->ret = maps[call->slot] == MAP_FAILED ? -1 : 0;
		break;
	case ACT_STORE:
		*byte = call->b;
		break;
	case ACT_LOAD:
		answer->ret = *byte;
		break;
	case ACT_STAT:
	case ACT_FSTAT:
		do_stat(call, answer);
		break;
	case ACT_TRUNCATE:
		answer->ret = ftruncate(fd, call->a);
		break;
	case ACT_FSYNC:
		answer->ret = fsync(fd);
		break;
	case ACT_FORK_CLOSE:
		fork_close(call, answer);
		break;
	case ACT_LEASE:
		answer->ret = fcntl(fd, F_SETLEASE, call->a);
		break;
	case ACT_LEASE_BROKEN:
		answer->ret = lease_broken;
		break;
	case ACT_UNLINK:
		answer->ret = unlink(call->path);
		break;
	case ACT_MKDIR:
		answer->ret = mkdir(call->path, 0755);
		break;
	case ACT_RMDIR:
		answer->ret = rmdir(call->path);
		break;
	case ACT_LIST:
		list(call, answer);
		break;
	case ACT_ALARM:
		it.it_value.tv_usec = call->a * 1000;
		it.it_interval = it.it_value;
		answer->ret = setitimer(ITIMER_REAL, &it, NULL);
		break;
	}
	answer->err = errno;
}

static void play(int fd)
{
	struct sigaction alarm = { .sa_handler = on_alarm };
	struct sigaction lease = {
		.sa_handler = on_lease,
		.sa_flags = SA_RESTART,
	};

	sigaction(SIGALRM, &alarm, NULL);
	sigaction(SIGIO, &lease, NULL);
	while (true) {
		struct call call;
		struct answer answer = {};
		ssize_t n;

		n = recv(fd, &call, sizeof(call), 0);
		if (n == -1 && errno == EINTR) {
			continue;
		}
		if (n != sizeof(call)) {
			exit(0);
		}
		perform(&call, &answer);
		send(fd, &answer, sizeof(answer), MSG_NOSIGNAL);
	}
}

static void enter(pid_t ns)
{
	char path[64];
	int fd;
	int ret;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)ns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ret = setns(fd, CLONE_NEWNS);
	if (ret == -1) {
		perror("setns");
		_exit(1);
	}
	close(fd);
}

void actor_start(struct actor *actor, pid_t ns)
{
	int pair[2];
	int ret;

	ret = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
	if (ret == -1) {
		perror("socketpair");
		exit(1);
	}
	fflush(stdout);
	actor->pid = fork();
	if (actor->pid == -1) {
		perror("fork");
		exit(1);
	}
	if (actor->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* nothing of the other actors */
		dup2(pair[1], 3);
		close_range(4, ~0U, 0);
		if (ns != 0) {
			enter(ns);
		}
		play(3);
	}
	close(pair[1]);
	actor->fd = pair[0];
}

void actor_end(struct actor *actor)
{
	close(actor->fd);
	waitpid(actor->pid, NULL, 0);
}

void actor_kill(struct actor *actor)
{
	kill(actor->pid, SIGKILL);
	actor_end(actor);
}

void act_begin(struct actor *actor, struct call call)
{
	send(actor->fd, &call, sizeof(call), MSG_NOSIGNAL);
}

bool act_end(struct actor *actor, int ms, struct answer *answer)
{
	struct pollfd pfd = { .fd = actor->fd, .events = POLLIN };
	ssize_t n;
	int ret;

	*answer = (struct answer) { .ret = -1, .err = ETIME };
	ret = poll(&pfd, 1, ms);
	if (ret != 1) {
		return false;
	}
	n = recv(actor->fd, answer, sizeof(*answer), 0);
	if (n != sizeof(*answer)) {
		*answer = (struct answer) { .ret = -1, .err = ESRCH };
	}
	return true;
}

struct answer act(struct actor *actor, struct call call)
{
	struct answer answer;

	act_begin(actor, call);
	act_end(actor, PATIENCE, &answer);
	return answer;
}

char actor_state(const struct actor *actor)
{
	char path[64];
	char text[256] = "";
	char *p = NULL;
	FILE *f = NULL;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)actor->pid);
	f = fopen(path, "re");
	if (f == NULL) {
		return '-';
	}
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = '\0';
	p = strrchr(text, ')');
	return p != NULL ? p[2] : '-';
}
