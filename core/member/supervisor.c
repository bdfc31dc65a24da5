/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <string.h>
#include <unistd.h>

#include "core/config.h"
#include "core/member/autopsy.h"
#include "core/member/channel.h"
#include "core/member/stuck.h"
#include "core/member/supervisor.h"
#include "core/member/wire.h"

/* A worker ends itself this long after the deadline it was given, should its
 * supervisor not have done so */
#define WORKER_GRACE_MS 2000

/* As long it may go on removing the run's directory, supervised or not */
#define WORKER_CLEANUP_MS 10000

/* SIGKILL to the end of a worker that did not come back from opening its
 * directory */
#define START_KILL_MS 1000

/* For a few system calls and exec */
#define SPAWN_STACK 16384

#define MOUNTINFO "/proc/self/mountinfo"

struct kill_state {
	struct supervisor *sv;
	struct tevent_req *req;
};

struct supervisor {
	struct tevent_context *ev;
	const char *worker;
	const char *path;
	pid_t pid;			/* 0: none */
	int pidfd;
	struct tevent_fd *pidfd_fde;
	struct channel *channel;	/* NULL: none */
	bool opened;			/* mount is known */
	struct stuck_mount mount;
	bool keeper;			/* of the run's directory */
	bool finishing;			/* it is removing that */
	bool silent;			/* a call got no answer in time */
	bool stuck;
	int exec_err;			/* why the last worker was none, or 0 */
	struct kill_state *killing;	/* or NULL */
	json_t *told;			/* the last answer, or NULL */
};

/* ---- the process ------------------------------------------------------ */

struct spawning {
	const struct supervisor *sv;
	int sock;
	pid_t parent;
	int err;			/* errno of an exec that failed */
};

/*
 * The child's side, in its parent's memory until exec: nothing but
 * async-signal-safe calls. All signals stay blocked, since a handler would be
 * the parent's; the worker lets them in.
 */
static int become_worker(void *private_data)
{
	struct spawning *spawning = private_data;
	const struct supervisor *sv = spawning->sv;

	setpgid(0, 0);
	dup2(spawning->sock, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	close_range(3, ~0U, 0);
	/* it keeps this through exec; the parent may be gone already */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != spawning->parent) {
		_exit(1);
	}
	execl(sv->worker, "pingpong-worker", sv->path, (char *)NULL);
	spawning->err = errno;
	_exit(127);
}

/*
 * As vfork: with many members, copying this process's pages for each worker
 * would be a fifth of a check's time. Returns the pid, or -1 with errno; an exec
 * that failed is in sv->exec_err.
 */
static pid_t spawn_process(struct supervisor *sv, int sock)
{
	char stack[SPAWN_STACK] __attribute__((aligned(16)));
	struct spawning spawning = { .sv = sv, .sock = sock,
				     .parent = getpid() };
	sigset_t all, before;
	pid_t pid;
	int err;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = clone(become_worker, stack + sizeof(stack),
		    CLONE_VM | CLONE_VFORK | SIGCHLD, &spawning);
	err = errno;
	sv->exec_err = spawning.err;
	sigprocmask(SIG_SETMASK, &before, NULL);
	errno = err;
	return pid;
}

static void reap(struct supervisor *sv)
{
	siginfo_t info = {};

	/* ECHILD when the process's own handler was faster: fine */
	waitid(P_PIDFD, (id_t)sv->pidfd, &info, WEXITED | WNOHANG);
}

static void forget_process(struct supervisor *sv)
{
	TALLOC_FREE(sv->pidfd_fde);
	if (sv->pidfd != -1) {
		close(sv->pidfd);
		sv->pidfd = -1;
	}
	sv->pid = 0;
	sv->keeper = false;
	sv->finishing = false;
	sv->silent = false;
}

/* the whole group: a child that closes a descriptor may hang as well */
static void send_kill(const struct supervisor *sv)
{
	if (sv->pid > 0) {
		kill(-sv->pid, SIGKILL);
		pidfd_send_signal(sv->pidfd, SIGKILL, NULL, 0);
	}
}

static int supervisor_destructor(struct supervisor *sv)
{
	bool killed = sv->killing != NULL || sv->stuck;
	bool cleans = (sv->keeper && !sv->silent) || sv->finishing;

	if (sv->killing != NULL) {
		sv->killing->sv = NULL;
	}
	TALLOC_FREE(sv->channel);
	if (cleans && !killed) {
		/* ends what it waits in; removing it does not end */
		pidfd_send_signal(sv->pidfd, SIGTERM, NULL, 0);
	} else {
		send_kill(sv);
	}
	if (sv->pidfd != -1) {
		reap(sv);
	}
	forget_process(sv);
	json_decref(sv->told);
	return 0;
}

struct supervisor *supervisor_create(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     const char *worker, const char *path)
{
	struct supervisor *sv = talloc_zero(mem_ctx, struct supervisor);

	if (sv == NULL) {
		return NULL;
	}
	sv->ev = ev;
	sv->pidfd = -1;
	sv->worker = talloc_strdup(sv, worker);
	sv->path = talloc_strdup(sv, path);
	if (sv->worker == NULL || sv->path == NULL) {
		talloc_free(sv);
		return NULL;
	}
	talloc_set_destructor(sv, supervisor_destructor);
	return sv;
}

void supervisor_autopsy(TALLOC_CTX *mem_ctx, const struct supervisor *sv,
			struct member_autopsy *autopsy)
{
	*autopsy = (struct member_autopsy){
		.state = '?', .wchan = "", .syscall = "", .stack = "",
	};
	if (sv->pid > 0) {
		autopsy_of_process(mem_ctx, sv->pid, autopsy);
	}
}

/* ---- its end ---------------------------------------------------------- */

static void worker_ended(struct tevent_context *ev, struct tevent_fd *fde,
			 uint16_t flags, void *private_data)
{
	struct supervisor *sv = talloc_get_type_abort(private_data,
						      struct supervisor);
	struct kill_state *state = sv->killing;

	(void)ev;
	(void)fde;
	(void)flags;
	reap(sv);
	forget_process(sv);
	sv->stuck = false;
	/* unless it was killed, the channel still has its last words */
	if (state != NULL) {
		sv->killing = NULL;
		state->sv = NULL;
		TALLOC_FREE(sv->channel);
		tevent_req_done(state->req);
	}
}

/* ---- start ------------------------------------------------------------ */

static int spawn(struct supervisor *sv)
{
	int sock[2];
	pid_t pid;
	int ret;

	ret = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock);
	if (ret == -1) {
		return errno;
	}
	pid = spawn_process(sv, sock[1]);
	ret = pid == -1 ? errno : 0;
	close(sock[1]);
	if (ret != 0) {
		close(sock[0]);
		return ret;
	}
	setpgid(pid, pid);
	sv->pid = pid;
	sv->pidfd = pidfd_open(pid, 0);
	if (sv->pidfd == -1) {
		ret = errno;
		kill(pid, SIGKILL);
		close(sock[0]);
		sv->pid = 0;
		return ret;
	}
	sv->pidfd_fde = tevent_add_fd(sv->ev, sv, sv->pidfd, TEVENT_FD_READ,
				      worker_ended, sv);
	sv->channel = channel_create(sv, sv->ev, sock[0], sock[0]);
	if (sv->channel == NULL) {
		close(sock[0]);
	}
	if (sv->pidfd_fde == NULL || sv->channel == NULL) {
		send_kill(sv);
		return ENOMEM;
	}
	return 0;
}

struct start_state {
	struct supervisor *sv;
	struct tevent_context *ev;
	unsigned timeout_ms;
	json_t *hello;
	char *why;
	const char *stack;
	bool starved;		/* it got no processor: that is no hang */
};

static int start_state_destructor(struct start_state *state)
{
	json_decref(state->hello);
	return 0;
}

static void start_done(struct tevent_req *subreq);
static void start_killed(struct tevent_req *subreq);

/* what a process does that hangs; the stack is for the line after */
static void start_examine(struct start_state *state, pid_t pid,
			  const char *who)
{
	struct member_autopsy autopsy = {};

	autopsy_of_process(state, pid, &autopsy);
	state->why = talloc_asprintf(
		state, "%s, in state %c, system call %s, wchan %s", who,
		autopsy.state, autopsy.syscall, autopsy.wchan);
	state->stack = autopsy.stack;
	state->starved = autopsy.found && !autopsy.blocked;
}

/* No answer to the open: the worker, or the one whose turn it is, hangs */
static void start_silent(struct start_state *state)
{
	const struct supervisor *sv = state->sv;
	char *who = NULL;
	pid_t turn;

	who = talloc_asprintf(state, "no answer when opened, for %u.%u s",
			      state->timeout_ms / 1000,
			      state->timeout_ms % 1000 / 100);
	turn = stuck_turn_of(RUNDIR, MOUNTINFO, sv->path, false);
	if (turn == 0 || turn == sv->pid) {
		turn = stuck_turn_of(RUNDIR, MOUNTINFO, sv->path, true);
	}
	if (turn != 0 && turn != sv->pid) {
		who = talloc_asprintf_append(
			who, ", where another worker (process %d) got none "
			"before it", (int)turn);
	} else {
		turn = sv->pid;
	}
	start_examine(state, turn, who);
}

/* false: an earlier worker hangs where this one would */
static bool start_allowed(struct start_state *state)
{
	const struct supervisor *sv = state->sv;
	pid_t pid;

	pid = stuck_find(RUNDIR, MOUNTINFO, sv->path);
	if (pid == 0) {
		return true;
	}
	start_examine(state, pid, talloc_asprintf(
		state, "an earlier worker (process %d) still hangs on this "
		"file system", (int)pid));
	return false;
}

struct tevent_req *supervisor_start_send(TALLOC_CTX *mem_ctx,
					 struct tevent_context *ev,
					 struct supervisor *sv,
					 unsigned timeout_ms)
{
	struct start_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;
	bool ok;
	int ret;

	req = tevent_req_create(mem_ctx, &state, struct start_state);
	if (req == NULL) {
		return NULL;
	}
	talloc_set_destructor(state, start_state_destructor);
	state->sv = sv;
	state->ev = ev;
	state->timeout_ms = timeout_ms;
	if (sv->pid != 0 || sv->channel != NULL) {
		tevent_req_error(req, EBUSY);
		return tevent_req_post(req, ev);
	}
	ok = start_allowed(state);
	if (!ok) {
		tevent_req_error(req, ETIMEDOUT);
		return tevent_req_post(req, ev);
	}
	sv->opened = false;
	ret = spawn(sv);
	if (ret != 0) {
		tevent_req_error(req, ret);
		return tevent_req_post(req, ev);
	}
	subreq = channel_hello_send(state, ev, sv->channel, timeout_ms);
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq, start_done, req);
	return req;
}

/* The worker has ended before it said a word */
static char *start_ended(TALLOC_CTX *mem_ctx, const struct supervisor *sv)
{
	bool denied = sv->exec_err == EACCES || sv->exec_err == EPERM;

	if (sv->exec_err == 0) {
		return talloc_asprintf(mem_ctx, "its worker '%s' ended at once",
				       sv->worker);
	}
	return talloc_asprintf(
		mem_ctx, "its worker '%s' can't be run: %s%s", sv->worker,
		strerror(sv->exec_err),
		!denied ? "" : " (by its mode, its directory's, a mount "
			       "option noexec, or a policy: SELinux, AppArmor)");
}

static void start_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct start_state *state = tevent_req_data(req, struct start_state);
	struct supervisor *sv = state->sv;
	int ret;

	ret = channel_hello_recv(subreq, &state->hello);
	TALLOC_FREE(subreq);
	if (ret == ETIMEDOUT) {
		start_silent(state);
		subreq = supervisor_kill_send(
			state, state->ev, sv,
			state->timeout_ms < START_KILL_MS ? state->timeout_ms
							  : START_KILL_MS);
		if (tevent_req_nomem(subreq, req)) {
			return;
		}
		tevent_req_set_callback(subreq, start_killed, req);
		return;
	}
	if (ret == ECONNRESET) {
		state->stack = "";
		state->why = start_ended(state, sv);
	}
	if (ret == 0) {
		ret = (int)json_integer_value(
			json_object_get(state->hello, "err"));
	}
	if (ret != 0) {
		tevent_req_error(req, ret);
		return;
	}
	tevent_req_done(req);
}

static void start_killed(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct start_state *state = tevent_req_data(req, struct start_state);
	int ret;

	ret = supervisor_kill_recv(subreq);
	TALLOC_FREE(subreq);
	if (ret == ETIMEDOUT) {
		state->starved = false;
		state->why = talloc_asprintf_append(
			state->why, "; SIGKILL does not end it (process %d)",
			(int)state->sv->pid);
	}
	tevent_req_error(req, state->starved ? EAGAIN : ETIMEDOUT);
}

/* what stuck_record() will want to know */
static void take_mount(struct supervisor *sv, const json_t *info)
{
	const json_t *major = json_object_get(info, "major");
	const json_t *minor = json_object_get(info, "minor");

	sv->opened = json_is_integer(major) && json_is_integer(minor);
	sv->mount = (struct stuck_mount){
		.major = (unsigned)json_integer_value(major),
		.minor = (unsigned)json_integer_value(minor),
	};
}

int supervisor_start_recv(struct tevent_req *req, json_t **info,
			  TALLOC_CTX *mem_ctx, const char **why)
{
	struct start_state *state = tevent_req_data(req, struct start_state);
	int ret = channel_req_error(req);

	*info = NULL;
	*why = NULL;
	if (ret == 0) {
		*info = json_incref(json_object_get(state->hello, "info"));
		ret = *info != NULL ? 0 : EPROTO;
	}
	if (ret == 0) {
		take_mount(state->sv, *info);
	}
	if (ret != 0 && state->why != NULL) {
		*why = talloc_asprintf(mem_ctx, "%s%s%s", state->why,
				       state->stack[0] != '\0' ? "\n" : "",
				       state->stack);
	}
	tevent_req_received(req);
	return ret;
}

/* ---- call ------------------------------------------------------------- */

struct call_state {
	struct supervisor *sv;
	enum probe_op op;
	json_t *frame;
};

static int call_state_destructor(struct call_state *state)
{
	json_decref(state->frame);
	return 0;
}

static void call_done(struct tevent_req *subreq);

struct tevent_req *supervisor_call_send(TALLOC_CTX *mem_ctx,
					struct tevent_context *ev,
					struct supervisor *sv,
					const struct probe_request *request,
					int fd, unsigned timeout_ms)
{
	struct call_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;
	struct probe_request timed = *request;

	req = tevent_req_create(mem_ctx, &state, struct call_state);
	if (req == NULL) {
		return NULL;
	}
	talloc_set_destructor(state, call_state_destructor);
	state->sv = sv;
	state->op = request->op;
	if (sv->channel == NULL) {
		tevent_req_error(req, ECONNRESET);
		return tevent_req_post(req, ev);
	}
	if (request->op == PROBE_BEGIN && request->keeper) {
		/* even if its answer does not come */
		sv->keeper = true;
	}
	timed.deadline_ms = timeout_ms + WORKER_GRACE_MS;
	if (request->op == PROBE_FINISH) {
		sv->finishing = !sv->silent;
		timed.deadline_ms = timeout_ms + WORKER_CLEANUP_MS;
	}
	subreq = channel_ask_send(state, ev, sv->channel,
				  wire_from_request(&timed), fd, timeout_ms);
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq, call_done, req);
	return req;
}

static void call_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct call_state *state = tevent_req_data(req, struct call_state);
	int ret;

	ret = channel_ask_recv(subreq, &state->frame);
	TALLOC_FREE(subreq);
	if (ret == ETIMEDOUT) {
		state->sv->silent = true;
	}
	if (ret != 0) {
		tevent_req_error(req, ret);
		return;
	}
	if (state->op == PROBE_FINISH) {
		state->sv->keeper = false;
		state->sv->finishing = false;
	}
	tevent_req_done(req);
}

int supervisor_call_recv(struct tevent_req *req, struct probe_answer *answer)
{
	struct call_state *state = tevent_req_data(req, struct call_state);
	int ret = channel_req_error(req);

	if (ret == 0) {
		json_decref(state->sv->told);
		state->sv->told = json_incref(state->frame);
		ret = wire_to_answer(state->frame, answer);
	}
	tevent_req_received(req);
	return ret;
}

/* ---- kill ------------------------------------------------------------- */

static void kill_cleanup(struct tevent_req *req, enum tevent_req_state how)
{
	struct kill_state *state = tevent_req_data(req, struct kill_state);
	struct supervisor *sv = state->sv;

	if (sv == NULL) {
		return;
	}
	/* not told of its end */
	state->sv = NULL;
	sv->killing = NULL;
	if (how == TEVENT_REQ_TIMED_OUT) {
		sv->stuck = true;
		/* without a record the next one finds out by itself */
		stuck_record(RUNDIR, MOUNTINFO, sv->path, sv->pid,
			     sv->opened ? &sv->mount : NULL);
	}
}

struct tevent_req *supervisor_kill_send(TALLOC_CTX *mem_ctx,
					struct tevent_context *ev,
					struct supervisor *sv,
					unsigned timeout_ms)
{
	struct kill_state *state = NULL;
	struct tevent_req *req = NULL;
	bool ok;

	req = tevent_req_create(mem_ctx, &state, struct kill_state);
	if (req == NULL) {
		return NULL;
	}
	/* before the channel goes: at its end the maker of the run's directory
	 * would remove it */
	send_kill(sv);
	/* a call under way ends with it */
	TALLOC_FREE(sv->channel);
	if (sv->pid == 0) {
		tevent_req_done(req);
		return tevent_req_post(req, ev);
	}
	if (sv->stuck || sv->killing != NULL) {
		tevent_req_error(req, ETIMEDOUT);
		return tevent_req_post(req, ev);
	}
	state->req = req;
	state->sv = sv;
	sv->killing = state;
	tevent_req_set_cleanup_fn(req, kill_cleanup);
	ok = tevent_req_set_endtime(req, ev, channel_deadline(timeout_ms));
	if (!ok) {
		tevent_req_oom(req);
		return tevent_req_post(req, ev);
	}
	return req;
}

int supervisor_kill_recv(struct tevent_req *req)
{
	int ret = channel_req_error(req);

	tevent_req_received(req);
	return ret;
}
