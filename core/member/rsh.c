/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/member/channel.h"
#include "core/member/rsh.h"

/* From the end of the stream to that of the command and of its last words */
#define END_MS 1000
#define END_STEP_MS 10

/* Longer lines are told in pieces, and no more of them kept */
#define LINE_MAX_BYTES 1000
#define LINES_MAX 100

struct rsh {
	const char *host;
	const char *command;
	pid_t pid;
	bool over;			/* its end is known, and */
	int status;			/* as waitpid() tells it */
	int err_fd;			/* its standard error; -1: ended */
	struct tevent_fd *fde;
	char line[LINE_MAX_BYTES + 1];	/* not yet ended */
	size_t used;
	char **lines;			/* kept, a talloc array */
	rsh_said_fn said_fn;		/* NULL: not yet to be told */
	void *private_data;
};

static int rsh_destructor(struct rsh *rsh)
{
	if (!rsh->over) {
		kill(-rsh->pid, SIGTERM);
		kill(rsh->pid, SIGTERM);
	}
	TALLOC_FREE(rsh->fde);
	if (rsh->err_fd != -1) {
		close(rsh->err_fd);
	}
	return 0;
}

/* ---- what it says -------------------------------------------------------- */

static void line_over(struct rsh *rsh)
{
	size_t n = talloc_array_length(rsh->lines);

	while (rsh->used > 0 && rsh->line[rsh->used - 1] == '\r') {
		rsh->used--;
	}
	rsh->line[rsh->used] = '\0';
	if (rsh->used == 0) {
		return;
	}
	rsh->used = 0;
	if (rsh->said_fn != NULL) {
		rsh->said_fn(rsh->host, rsh->line, rsh->private_data);
		return;
	}
	if (n == LINES_MAX) {
		return;
	}
	rsh->lines = talloc_realloc(rsh, rsh->lines, char *, n + 1);
	if (rsh->lines != NULL) {
		rsh->lines[n] = talloc_strdup(rsh->lines, rsh->line);
	}
}

static void take_bytes(struct rsh *rsh, const char *bytes, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (bytes[i] == '\n' || rsh->used == LINE_MAX_BYTES) {
			line_over(rsh);
		}
		if (bytes[i] != '\n') {
			rsh->line[rsh->used++] = bytes[i];
		}
	}
}

static void readable(struct tevent_context *ev, struct tevent_fd *fde,
		     uint16_t flags, void *private_data)
{
	struct rsh *rsh = talloc_get_type_abort(private_data, struct rsh);
	char bytes[4096];
	ssize_t n;

	(void)ev;
	(void)fde;
	(void)flags;
	n = read(rsh->err_fd, bytes, sizeof(bytes));
	if (n > 0) {
		take_bytes(rsh, bytes, (size_t)n);
		return;
	}
	if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	line_over(rsh);
	TALLOC_FREE(rsh->fde);
	close(rsh->err_fd);
	rsh->err_fd = -1;
}

void rsh_tell(struct rsh *rsh, rsh_said_fn said_fn, void *private_data)
{
	size_t i;

	rsh->said_fn = said_fn;
	rsh->private_data = private_data;
	for (i = 0; i < talloc_array_length(rsh->lines); i++) {
		if (rsh->lines[i] != NULL) {
			said_fn(rsh->host, rsh->lines[i], private_data);
		}
	}
	TALLOC_FREE(rsh->lines);
}

/* ---- start --------------------------------------------------------------- */

static char **command_argv(TALLOC_CTX *mem_ctx, const char *command,
			   const char *host)
{
	char *line = talloc_strdup(mem_ctx, command);
	char **argv = talloc_zero_array(mem_ctx, char *, strlen(command) + 4);
	char *save = NULL, *word = NULL;
	unsigned n = 0;

	if (line == NULL || argv == NULL) {
		return NULL;
	}
	for (word = strtok_r(line, " \t", &save); word != NULL;
	     word = strtok_r(NULL, " \t", &save)) {
		argv[n++] = word;
	}
	argv[n++] = talloc_strdup(mem_ctx, host);
	argv[n++] = talloc_strdup(mem_ctx, "pingpong");
	argv[n] = talloc_strdup(mem_ctx, "agent");
	return argv[n - 2] != NULL && argv[n - 1] != NULL && argv[n] != NULL
		? argv : NULL;
}

static void become_command(char *const *argv, int sock, int err_fd)
{
	setsid();
	dup2(sock, STDIN_FILENO);
	dup2(sock, STDOUT_FILENO);
	dup2(err_fd, STDERR_FILENO);
	close_range(3, ~0U, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	execvp(argv[0], argv);
	fprintf(stderr, "cannot run '%s': %s\n", argv[0], strerror(errno));
	_exit(126);
}

/* Of sock and err: [0] is this side's, both close on exec */
static int open_streams(int sock[2], int err[2])
{
	int ret;

	ret = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock);
	if (ret == -1) {
		return errno;
	}
	ret = pipe2(err, O_CLOEXEC);
	if (ret == -1) {
		ret = errno;
		close(sock[0]);
		close(sock[1]);
		return ret;
	}
	return 0;
}

static int run_command(struct rsh *rsh, int sock[2])
{
	char **argv = command_argv(rsh, rsh->command, rsh->host);
	int err[2];
	int ret;

	if (argv == NULL) {
		return ENOMEM;
	}
	ret = open_streams(sock, err);
	if (ret != 0) {
		return ret;
	}
	rsh->pid = fork();
	if (rsh->pid == 0) {
		become_command(argv, sock[1], err[1]);
	}
	ret = rsh->pid == -1 ? errno : 0;
	close(sock[1]);
	close(err[1]);
	if (ret != 0) {
		close(sock[0]);
		close(err[0]);
		return ret;
	}
	talloc_set_destructor(rsh, rsh_destructor);
	rsh->err_fd = err[0];
	fcntl(rsh->err_fd, F_SETFL, O_NONBLOCK);
	talloc_free(argv);
	return 0;
}

int rsh_start(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
	      const char *command, const char *host, struct rsh **rsh,
	      int *sock)
{
	struct rsh *new = NULL;
	int pair[2];
	int ret;

	if (command[strspn(command, " \t")] == '\0') {
		return EINVAL;
	}
	new = talloc_zero(mem_ctx, struct rsh);
	if (new == NULL) {
		return ENOMEM;
	}
	new->host = talloc_strdup(new, host);
	new->command = talloc_strdup(new, command);
	ret = new->host != NULL && new->command != NULL
		? run_command(new, pair) : ENOMEM;
	if (ret != 0) {
		talloc_free(new);
		return ret;
	}
	new->fde = tevent_add_fd(ev, new, new->err_fd, TEVENT_FD_READ,
				 readable, new);
	if (new->fde == NULL) {
		close(pair[0]);
		talloc_free(new);
		return ENOMEM;
	}
	*rsh = new;
	*sock = pair[0];
	return 0;
}

/* ---- why there is no agent ----------------------------------------------- */

struct rsh_why_state {
	struct tevent_context *ev;
	struct rsh *rsh;
	unsigned left_ms;
};

static void rsh_why_look(struct tevent_req *subreq);

static void rsh_why_wait(struct tevent_req *req)
{
	struct rsh_why_state *state = tevent_req_data(req,
						      struct rsh_why_state);
	struct tevent_req *subreq = tevent_wakeup_send(
		state, state->ev, channel_deadline(END_STEP_MS));

	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, rsh_why_look, req);
}

struct tevent_req *rsh_why_send(TALLOC_CTX *mem_ctx,
				struct tevent_context *ev, struct rsh *rsh)
{
	struct rsh_why_state *state = NULL;
	struct tevent_req *req = NULL;

	req = tevent_req_create(mem_ctx, &state, struct rsh_why_state);
	if (req == NULL) {
		return NULL;
	}
	*state = (struct rsh_why_state){
		.ev = ev, .rsh = rsh, .left_ms = END_MS,
	};
	rsh_why_wait(req);
	if (!tevent_req_is_in_progress(req)) {
		return tevent_req_post(req, ev);
	}
	return req;
}

static void rsh_why_look(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct rsh_why_state *state = tevent_req_data(req,
						      struct rsh_why_state);
	struct rsh *rsh = state->rsh;
	pid_t pid;

	tevent_wakeup_recv(subreq);
	TALLOC_FREE(subreq);
	if (!rsh->over) {
		/* who ignores its children gets ECHILD at their end */
		pid = waitpid(rsh->pid, &rsh->status, WNOHANG);
		rsh->over = pid != 0;
	}
	state->left_ms -= END_STEP_MS;
	if ((rsh->over && rsh->err_fd == -1) || state->left_ms == 0) {
		tevent_req_done(req);
		return;
	}
	rsh_why_wait(req);
}

char *rsh_why_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx)
{
	struct rsh_why_state *state = tevent_req_data(req,
						      struct rsh_why_state);
	const struct rsh *rsh = state->rsh;
	size_t n = talloc_array_length(rsh->lines);
	const char *last = n > 0 ? rsh->lines[n - 1] : NULL;
	int status = rsh->over && WIFEXITED(rsh->status)
			? WEXITSTATUS(rsh->status) : 0;
	char *why = NULL;

	if (status == 127) {
		why = talloc_asprintf(
			mem_ctx, "'pingpong' is not installed there%s%s%s",
			last != NULL ? " (" : "", last != NULL ? last : "",
			last != NULL ? ")" : "");
	} else if (last != NULL) {
		why = talloc_strdup(mem_ctx, last);
	} else if (status != 0) {
		why = talloc_asprintf(mem_ctx, "'%s' ended with exit status "
				      "%d", rsh->command, status);
	}
	tevent_req_received(req);
	return why;
}
