/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pingpong-worker PATH: the process that touches the file system under test
 *
 * Standard input is a Unix socket to its supervisor: requests in, answers
 * out (core/member/wire.h). It ends when the supervisor does: at once when it
 * waits for a request; a system call it is in is interrupted, and what cannot
 * be interrupted ends it with the deadline that each request carries. On its
 * way out the keeper of the run's directory removes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "core/config.h"
#include "core/member/mounts.h"
#include "core/member/privilege.h"
#include "core/member/stuck.h"
#include "core/member/wire.h"
#include "core/probe/ops.h"
#include "core/probe/syscalls.h"

#define SUPERVISOR STDIN_FILENO

#define MOUNTINFO "/proc/self/mountinfo"

/* For removing the run's directory when nobody waits for it any more */
#define CLEANUP_MS 10000

/* Removing the run's directory ends by itself, or by its deadline. */
static void finish_undisturbed(void)
{
	signal(SIGTERM, SIG_IGN);
	signal(SIGALRM, SIG_IGN);
}

/* SIGKILL from the kernel itself after this long: no handler, no escape */
static void arm_deadline(timer_t timer, unsigned deadline_ms)
{
	struct itimerspec its = {
		.it_value = {
			.tv_sec = deadline_ms / 1000,
			.tv_nsec = (deadline_ms % 1000) * 1000000L,
		},
	};

	timer_settime(timer, 0, &its, NULL);
}

static void read_line(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");

	buf[0] = '\0';
	if (f == NULL) {
		return;
	}
	if (fgets(buf, (int)size, f) != NULL) {
		buf[strcspn(buf, "\n")] = '\0';
	}
	fclose(f);
}

/* ---- what it opens ------------------------------------------------------- */

/* Its place, and whether a link leads there; in both it waits for its turn */
struct place {
	const char *path;
	bool linked;
};

/* Returns a descriptor, or -1 with errno; *turn: to be closed (or -1) */
static int open_place(struct place *place, int *turn)
{
	int fd;

	*turn = stuck_turn(RUNDIR, MOUNTINFO, place->path, false);
	if (*turn == -1 && errno == EINTR) {
		return -1;
	}
	fd = stuck_open(MOUNTINFO, place->path);
	if (fd != -1 || (errno != ELOOP && errno != EXDEV)) {
		return fd;
	}
	close(*turn);
	place->linked = true;
	*turn = stuck_turn(RUNDIR, MOUNTINFO, place->path, true);
	if (*turn == -1 && errno == EINTR) {
		return -1;
	}
	return open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The run's directory goes, unless its mount does not answer any more; then
 * the next run removes it. */
static void finish(struct probe_worker *worker, const struct place *place,
		   struct probe_answer *answer)
{
	const struct probe_request request = { .op = PROBE_FINISH };
	pid_t stuck;
	int turn;

	turn = stuck_turn(RUNDIR, MOUNTINFO, place->path, place->linked);
	stuck = stuck_find(RUNDIR, MOUNTINFO, place->path);
	if (stuck != 0) {
		answer->err = ETIMEDOUT;
	} else {
		probe_worker_do(worker, &request, answer);
	}
	if (turn != -1) {
		close(turn);
	}
}

/* ---- what it says -------------------------------------------------------- */

/* "rw,relatime" and "rw,user_id=0" as one list */
static char *join_options(TALLOC_CTX *mem_ctx, const struct mount_line *mount)
{
	return talloc_asprintf(mem_ctx, "%s,%s", mount->options,
			       mount->super_options);
}

static json_t *describe_mount(TALLOC_CTX *mem_ctx, uint64_t mount_id)
{
	struct mount_line *mount = NULL;
	int ret;

	ret = mount_by_id(mem_ctx, MOUNTINFO, mount_id, &mount);
	if (ret != 0) {
		return json_object();
	}
	return json_pack("{so* so* so* so* si si}",
			 "mount_line", wire_text(mount->line),
			 "fstype", wire_text(mount->fstype),
			 "source", wire_text(mount->source),
			 "options", wire_text(join_options(mem_ctx, mount)),
			 "major", (int)mount->major,
			 "minor", (int)mount->minor);
}

static json_t *describe(int place)
{
	TALLOC_CTX *mem_ctx = talloc_new(NULL);
	char resolved[4096] = "", link[64], boot_id[64];
	struct statx stx = {};
	struct statfs sfs = {};
	struct utsname uts = {};
	struct stat ns = {};
	uint64_t fsid = 0;
	json_t *info = NULL, *more = NULL;
	ssize_t n;
	int ret;

	uname(&uts);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	n = readlink(link, resolved, sizeof(resolved) - 1);
	resolved[n > 0 ? n : 0] = '\0';
	read_line("/proc/sys/kernel/random/boot_id", boot_id,
		  sizeof(boot_id));
	stat("/proc/self/ns/mnt", &ns);
	ret = syscalls()->statx(place, "", AT_EMPTY_PATH,
				STATX_BASIC_STATS | STATX_MNT_ID, &stx);
	if (ret == -1) {
		talloc_free(mem_ctx);
		return NULL;
	}
	ret = syscalls()->fstatfs(place, &sfs);
	if (ret == 0) {
		memcpy(&fsid, &sfs.f_fsid, sizeof(fsid));
	}
	info = describe_mount(mem_ctx, stx.stx_mnt_id);
	more = json_pack("{so* ss ss ss sI sI sI sI sI}",
			 "resolved", wire_text(resolved),
			 "host", uts.nodename,
			 "kernel", uts.release,
			 "boot_id", boot_id,
			 "mnt_ns", (json_int_t)ns.st_ino,
			 "mount_id", (json_int_t)stx.stx_mnt_id,
			 "st_dev", (json_int_t)makedev(stx.stx_dev_major,
						       stx.stx_dev_minor),
			 "inode", (json_int_t)stx.stx_ino,
			 "fsid", (json_int_t)fsid);
	json_object_update(info, more);
	json_decref(more);
	talloc_free(mem_ctx);
	return info;
}

static int hello(int place, int err)
{
	json_t *info = NULL;

	if (err == 0) {
		info = describe(place);
		if (info == NULL) {
			err = errno;
		}
	}
	return wire_write_blocking(
		SUPERVISOR, json_pack("{ss si so*}", "hello", "worker",
				      "err", err, "info", info));
}

static int serve_one(struct probe_worker *worker, const struct place *place,
		     timer_t timer, char *buf, size_t *used)
{
	struct probe_request request = {};
	struct probe_answer answer = {};
	json_t *frame = NULL, *reply = NULL;
	json_int_t id;
	int fd = -1;
	int ret;

	ret = wire_read_blocking(SUPERVISOR, buf, used, &frame, &fd);
	if (fd != -1) {
		close(fd);
	}
	if (ret != 0) {
		return ret;
	}
	id = json_integer_value(json_object_get(frame, "id"));
	ret = wire_to_request(frame, &request);
	json_decref(frame);
	if (ret == 0) {
		arm_deadline(timer, request.deadline_ms);
		if (request.op == PROBE_FINISH) {
			finish_undisturbed();
			finish(worker, place, &answer);
		} else {
			probe_worker_do(worker, &request, &answer);
		}
		arm_deadline(timer, 0);
	} else {
		answer.err = ret;
	}
	reply = wire_from_answer(&answer);
	json_object_set_new(reply, "id", json_integer(id));
	return wire_write_blocking(SUPERVISOR, reply);
}

int main(int argc, char **argv)
{
	static struct probe_worker worker;
	static char buf[WIRE_MAX_FRAME];
	struct sigevent sev = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGKILL,
	};
	struct sigaction end = { .sa_handler = probe_worker_end };
	struct place place = {};
	sigset_t none;
	timer_t timer;
	size_t used = 0;
	int turn = -1;
	int fd, ret;

	if (argc != 2) {
		fprintf(stderr, "%s: started by pingpong, not by hand\n",
			argv[0]);
		return 64;
	}
	sigaction(SIGTERM, &end, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	/* whoever started us may ignore it; then no child could be waited for */
	signal(SIGCHLD, SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	ret = timer_create(CLOCK_MONOTONIC, &sev, &timer);
	if (ret == -1) {
		return 70;
	}
	umask(077);
	/* until the first request; opening may hang */
	arm_deadline(timer, 120000);
	place.path = argv[1];
	fd = open_place(&place, &turn);
	ret = hello(fd, fd == -1 ? errno : 0);
	if (fd == -1 || ret != 0) {
		return 1;
	}
	if (turn != -1) {
		close(turn);
	}
	privilege_drop();
	arm_deadline(timer, 0);
	probe_worker_init(&worker, fd);
	do {
		ret = serve_one(&worker, &place, timer, buf, &used);
	} while (ret == 0 || ret == EINTR);
	if (worker.keeper) {
		finish_undisturbed();
		arm_deadline(timer, CLEANUP_MS);
		finish(&worker, &place, &(struct probe_answer){});
	}
	return 0;
}
