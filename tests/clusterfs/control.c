/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The socket carries one message a request and one an answer:
 *
 *   join INDEX DEVICE PATH  with a /dev/fuse descriptor; the connection
 *                           then lives as long as the member
 *   fault add FAULT    fault clear [ID|NAME]    fault list
 *
 * The answer begins with "ok" or "error".
 */

#include "faults.h"

#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#define MESSAGE_SIZE 65536

static int socket_to(const char *path, struct sockaddr_un *addr)
{
	size_t len = strlen(path);

	if (len >= sizeof(addr->sun_path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	*addr = (struct sockaddr_un) { .sun_family = AF_UNIX };
	memcpy(addr->sun_path, path, len);
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
}

/* Hands out the descriptor that came along, or -1. */
static ssize_t receive(int fd, char *text, size_t size, int *passed)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = text, .iov_len = size - 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = NULL;
	ssize_t n;

	*passed = -1;
	n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	if (n <= 0) {
		return n;
	}
	text[n] = '\0';
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg != NULL && cmsg->cmsg_type == SCM_RIGHTS) {
		memcpy(passed, CMSG_DATA(cmsg), sizeof(int));
	}
	return n;
}

static void send_fd(int fd, const char *text, int passed)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {};
	struct iovec iov = {
		.iov_base = (void *)(uintptr_t)text,
		.iov_len = strlen(text),
	};
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &passed, sizeof(int));
	sendmsg(fd, &msg, MSG_NOSIGNAL);
}

static void do_join(const struct source *source, const char *args, int fd,
		    FILE *reply)
{
	struct member *member = NULL;
	struct ucred cred = {};
	socklen_t len = sizeof(cred);
	unsigned long dev = 0;
	int joiner_fd;
	int index = -1;
	int pos = 0;
	int ret;

	ret = sscanf(args, "%d %lx %n", &index, &dev, &pos);
	if (fd == -1 || ret != 2 || args[pos] != '/') {
		fprintf(reply, "error: join wants an index, a device, a path "
			"and a descriptor");
		return;
	}
	getsockopt(source->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	joiner_fd = fcntl(source->fd, F_DUPFD_CLOEXEC, 0);
	if (joiner_fd == -1) {
		close(fd);
		fprintf(reply, "error: %s", strerror(errno));
		return;
	}
	ret = member_add(args + pos, dev, index, fd, joiner_fd, cred.pid,
			 &member);
	if (ret != 0) {
		fprintf(reply, "error: %s", strerror(ret));
		return;
	}
	fprintf(reply, "ok %d", member->index);
}

static void do_command(const char *text, FILE *reply)
{
	const char *why = NULL;
	unsigned int id = 0;
	int ret;

	if (strncmp(text, "fault add ", 10) == 0) {
		ret = fault_add(text + 10, &id, &why);
		if (ret != 0) {
			fprintf(reply, "error: %s: %s", text + 10, why);
			return;
		}
		fprintf(reply, "ok %u\n", id);
	} else if (strcmp(text, "fault clear") == 0) {
		fprintf(reply, "ok %d\n", fault_clear(NULL));
	} else if (strncmp(text, "fault clear ", 12) == 0) {
		ret = fault_clear(text + 12);
		if (ret == 0) {
			fprintf(reply, "error: %s: no such fault is active",
				text + 12);
			return;
		}
		fprintf(reply, "ok %d\n", ret);
	} else if (strcmp(text, "fault list") == 0) {
		fprintf(reply, "ok\n");
		fault_list(reply);
	} else {
		fprintf(reply, "error: %s: unknown command", text);
	}
}

static void client_ready(struct source *source)
{
	static char text[MESSAGE_SIZE];
	static char answer[MESSAGE_SIZE];
	FILE *reply = NULL;
	ssize_t n;
	bool join;
	int fd = -1;

	n = receive(source->fd, text, sizeof(text), &fd);
	if (n <= 0) {
		source_remove(source);
		return;
	}
	reply = fmemopen(answer, sizeof(answer), "w");
	if (reply == NULL) {
		abort();
	}
	join = (strncmp(text, "join ", 5) == 0);
	if (join) {
		do_join(source, text + 5, fd, reply);
	} else {
		do_command(text, reply);
	}
	n = ftell(reply);
	fclose(reply);
	send(source->fd, answer, n, MSG_NOSIGNAL);
	if (join) {
		/* the member has a descriptor of its own */
		source_remove(source);
	}
}

static void listener_ready(struct source *source)
{
	struct source *client = NULL;
	int fd;

	fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd == -1) {
		return;
	}
	client = source_add(fd, client_ready, NULL);
	if (client == NULL) {
		close(fd);
	}
}

int control_listen(const char *path)
{
	struct sockaddr_un addr;
	struct source *source = NULL;
	int fd;
	int ret;

	fd = socket_to(path, &addr);
	if (fd == -1) {
		return errno;
	}
	unlink(path);
	ret = bind(fd, (struct sockaddr *)&addr, sizeof(addr));
	if (ret == 0) {
		ret = listen(fd, 64);
	}
	if (ret == 0) {
		source = source_add(fd, listener_ready, NULL);
	}
	if (ret == -1 || source == NULL) {
		ret = errno;
		close(fd);
		return ret;
	}
	return 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr;
	int fd;
	int ret;

	fd = socket_to(path, &addr);
	if (fd == -1) {
		fprintf(stderr, "clusterfs: \"%s\" (%s)\n", path,
			strerror(errno));
		return -1;
	}
	ret = connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	if (ret == -1) {
		fprintf(stderr, "clusterfs: \"%s\" (%s)\n", path,
			strerror(errno));
		close(fd);
		return -1;
	}
	return fd;
}

/* The answer without its "ok", or NULL after a complaint. */
static const char *get_answer(int fd)
{
	static char text[MESSAGE_SIZE];
	ssize_t n;
	int passed;

	n = receive(fd, text, sizeof(text), &passed);
	if (n <= 0) {
		fprintf(stderr, "clusterfs: no answer\n");
		return NULL;
	}
	if (strncmp(text, "ok", 2) != 0) {
		fprintf(stderr, "clusterfs: %s\n", text);
		return NULL;
	}
	return text + 2 + strspn(text + 2, " \n");
}

int control_send(const char *path, char **words)
{
	char command[MESSAGE_SIZE] = "";
	const char *answer = NULL;
	size_t len = 0;
	int fd;

	for (; *words != NULL && len < sizeof(command); words++) {
		len += snprintf(command + len, sizeof(command) - len, "%s%s",
				len > 0 ? " " : "", *words);
	}
	fd = connect_to(path);
	if (fd == -1) {
		return EXIT_FAILURE;
	}
	send(fd, command, strlen(command), MSG_NOSIGNAL);
	answer = get_answer(fd);
	close(fd);
	if (answer == NULL) {
		return EXIT_FAILURE;
	}
	fputs(answer, stdout);
	return EXIT_SUCCESS;
}

/* Until the server goes, or somebody wants us to. */
static void wait_for_the_end(int fd)
{
	struct pollfd fds[2] = {
		{ .fd = fd, .events = POLLIN },
		{ .events = POLLIN },
	};
	sigset_t set;
	int ret;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	fds[1].fd = signalfd(-1, &set, SFD_CLOEXEC);
	do {
		ret = poll(fds, 2, -1);
	} while (ret == -1 && errno == EINTR);
}

int control_join(const char *path, const char *mountpoint, int index,
		 const char *source, void (*mounted)(void))
{
	char text[MESSAGE_SIZE];
	const char *answer = NULL;
	int fuse_fd = -1;
	dev_t dev = 0;
	int fd;
	int ret;

	fd = connect_to(path);
	if (fd == -1) {
		return EXIT_FAILURE;
	}
	ret = mount_fuse(mountpoint, source, &fuse_fd, &dev);
	if (ret != 0) {
		fprintf(stderr, "clusterfs: \"%s\" (%s)\n", mountpoint,
			strerror(ret));
		return EXIT_FAILURE;
	}
	snprintf(text, sizeof(text), "join %d %lx %s", index,
		 (unsigned long)dev, mountpoint);
	send_fd(fd, text, fuse_fd);
	close(fuse_fd);
	answer = get_answer(fd);
	if (answer == NULL) {
		umount2(mountpoint, MNT_DETACH);
		return EXIT_FAILURE;
	}
	mounted();
	wait_for_the_end(fd);
	umount2(mountpoint, MNT_DETACH);
	return EXIT_SUCCESS;
}
