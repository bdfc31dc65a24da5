/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/member/channel.h"
#include "ctdb-events/command.h"

/* While there is one, nobody else may wait for children of any kind. */
static unsigned running;

struct command_state {
	pid_t pid;		/* 0: none */
	int pidfd;
	int out;		/* -1: its end was read */
	struct tevent_fd *out_fde, *end_fde;
	char *output;
	size_t len;
	int status;
};

static void command_readable(struct tevent_context *ev, struct tevent_fd *fde,
			     uint16_t flags, void *private_data);
static void command_ended(struct tevent_context *ev, struct tevent_fd *fde,
			  uint16_t flags, void *private_data);

static void close_output(struct command_state *state)
{
	TALLOC_FREE(state->out_fde);
	if (state->out != -1) {
		close(state->out);
		state->out = -1;
	}
}

static void forget_process(struct command_state *state)
{
	TALLOC_FREE(state->end_fde);
	if (state->pidfd != -1) {
		close(state->pidfd);
		state->pidfd = -1;
	}
	if (state->pid > 0) {
		state->pid = 0;
		running--;
		command_reap_others();
	}
}

void command_reap_others(void)
{
	pid_t pid = 1;

	while (running == 0 && pid > 0) {
		pid = waitpid(-1, NULL, WNOHANG);
	}
}

static int command_destructor(struct command_state *state)
{
	siginfo_t info = {};

	close_output(state);
	if (state->pid > 0) {
		kill(-state->pid, SIGKILL);
		waitid(P_PIDFD, (id_t)state->pidfd, &info, WEXITED | WNOHANG);
	}
	forget_process(state);
	return 0;
}

static void become_command(const char *const *argv, int out)
{
	sigset_t none;
	int null = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	dup2(null, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	close_range(3, ~0U, 0);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	execvp(argv[0], (char *const *)argv);
	_exit(127);
}

static int command_start(struct command_state *state,
			 const char *const *argv)
{
	int pipe_fds[2];
	int ret;

	ret = pipe2(pipe_fds, O_CLOEXEC);
	if (ret == -1) {
		return errno;
	}
	state->out = pipe_fds[0];
	state->pid = fork();
	if (state->pid == 0) {
		become_command(argv, pipe_fds[1]);
	}
	ret = state->pid == -1 ? errno : 0;
	close(pipe_fds[1]);
	if (ret != 0) {
		state->pid = 0;
		return ret;
	}
	running++;
	setpgid(state->pid, state->pid);
	fcntl(state->out, F_SETFL, O_NONBLOCK);
	state->pidfd = pidfd_open(state->pid, 0);
	return state->pidfd == -1 ? errno : 0;
}

struct tevent_req *command_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev,
				const char *const *argv, unsigned timeout_ms)
{
	struct command_state *state = NULL;
	struct tevent_req *req = NULL;
	bool ok;
	int ret;

	req = tevent_req_create(mem_ctx, &state, struct command_state);
	if (req == NULL) {
		return NULL;
	}
	state->pidfd = -1;
	state->out = -1;
	talloc_set_destructor(state, command_destructor);
	state->output = talloc_zero_array(state, char, 1);
	if (tevent_req_nomem(state->output, req)) {
		return tevent_req_post(req, ev);
	}
	ret = command_start(state, argv);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return tevent_req_post(req, ev);
	}
	state->out_fde = tevent_add_fd(ev, state, state->out, TEVENT_FD_READ,
				       command_readable, req);
	state->end_fde = tevent_add_fd(ev, state, state->pidfd,
				       TEVENT_FD_READ, command_ended, req);
	ok = tevent_req_set_endtime(req, ev, channel_deadline(timeout_ms));
	if (state->out_fde == NULL || state->end_fde == NULL || !ok) {
		tevent_req_oom(req);
		return tevent_req_post(req, ev);
	}
	return req;
}

static void command_finish(struct tevent_req *req)
{
	struct command_state *state = tevent_req_data(req,
						      struct command_state);

	if (state->out == -1 && state->pid == 0) {
		tevent_req_done(req);
	}
}

static int command_read(struct command_state *state)
{
	char buf[4096];
	ssize_t n;

	while (true) {
		n = read(state->out, buf, sizeof(buf));
		if (n == -1) {
			return errno == EAGAIN || errno == EINTR ? EAGAIN
								 : errno;
		}
		if (n == 0) {
			return 0;
		}
		if (state->len + (size_t)n > COMMAND_MAX_OUTPUT) {
			return EMSGSIZE;
		}
		state->output = talloc_realloc(state, state->output, char,
					       state->len + (size_t)n + 1);
		if (state->output == NULL) {
			return ENOMEM;
		}
		memcpy(state->output + state->len, buf, (size_t)n);
		state->len += (size_t)n;
		state->output[state->len] = '\0';
	}
}

static void command_readable(struct tevent_context *ev, struct tevent_fd *fde,
			     uint16_t flags, void *private_data)
{
	struct tevent_req *req = talloc_get_type_abort(private_data,
						       struct tevent_req);
	struct command_state *state = tevent_req_data(req,
						      struct command_state);
	int ret;

	(void)ev;
	(void)fde;
	(void)flags;
	ret = command_read(state);
	if (ret == EAGAIN) {
		return;
	}
	close_output(state);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	command_finish(req);
}

static void command_ended(struct tevent_context *ev, struct tevent_fd *fde,
			  uint16_t flags, void *private_data)
{
	struct tevent_req *req = talloc_get_type_abort(private_data,
						       struct tevent_req);
	struct command_state *state = tevent_req_data(req,
						      struct command_state);
	siginfo_t info = {};
	int ret;

	(void)ev;
	(void)fde;
	(void)flags;
	ret = waitid(P_PIDFD, (id_t)state->pidfd, &info, WEXITED | WNOHANG);
	state->status = 127;
	if (ret == 0) {
		state->status = info.si_code == CLD_EXITED
					? info.si_status
					: 128 + info.si_status;
	}
	forget_process(state);
	command_finish(req);
}

int command_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx, int *status,
		 char **output)
{
	struct command_state *state = tevent_req_data(req,
						      struct command_state);
	int ret = channel_req_error(req);

	*output = NULL;
	*status = state->status;
	if (ret == 0) {
		*output = talloc_move(mem_ctx, &state->output);
	}
	tevent_req_received(req);
	return ret;
}

const char **command_words(TALLOC_CTX *mem_ctx, const char *line)
{
	const char **words = talloc_zero_array(mem_ctx, const char *,
					       strlen(line) / 2 + 2);
	char *copy = NULL, *word = NULL, *save = NULL;
	size_t n = 0;

	if (words == NULL) {
		return NULL;
	}
	copy = talloc_strdup(words, line);
	if (copy != NULL) {
		word = strtok_r(copy, " \t\n", &save);
	}
	while (word != NULL) {
		words[n++] = word;
		word = strtok_r(NULL, " \t\n", &save);
	}
	if (n == 0) {
		talloc_free(words);
		return NULL;
	}
	return words;
}
