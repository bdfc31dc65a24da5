/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The agent and what it stands on, with real workers in a directory of their
 * own: what a coordinator sees, bad questions, and the end of either side.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/config.h"
#include "core/member/agent.h"
#include "core/member/channel.h"
#include "core/member/supervisor.h"
#include "core/member/wire.h"
#include "core/probe/dir.h"
#include "core/probe/process.h"

/* far more than anything here takes */
#define PATIENCE_MS 20000

#define RUN_NAME "0.0.1.1.1.0000000000000001"

static char worker[PATH_MAX];

struct bed {
	struct tevent_context *ev;
	struct agent_session *session;	/* NULL: it has ended */
	struct channel *channel;
	int raw;			/* our end, before it is a channel */
	char place[PATH_MAX];
};

/* ---- helpers ------------------------------------------------------------- */

static void find_worker(void)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	unsigned up;

	assert_true(n > 0);
	self[n] = '\0';
	for (up = 0; up < 3; up++) {
		*strrchr(self, '/') = '\0';
	}
	n = snprintf(worker, sizeof(worker), "%s/cli/pingpong-worker", self);
	assert_true((size_t)n < sizeof(worker));
	assert_int_equal(access(worker, X_OK), 0);
}

/* children of ours that run; *pid: one of them */
static unsigned children(pid_t *pid)
{
	struct process process = {};
	unsigned n = 0;
	char path[64];
	FILE *f = NULL;
	int child;
	bool ok;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children",
		 (int)getpid());
	f = fopen(path, "re");
	assert_non_null(f);
	while (fscanf(f, "%d", &child) == 1) {
		ok = process_look(child, &process);
		if (ok && process.state != 'Z') {
			*pid = child;
			n++;
		}
	}
	fclose(f);
	return n;
}

static void wait_for_no_children(void)
{
	unsigned i;
	pid_t pid = 0;

	for (i = 0; i < PATIENCE_MS / 10 && children(&pid) > 0; i++) {
		usleep(10000);
	}
	assert_int_equal(children(&pid), 0);
	while (waitpid(-1, NULL, WNOHANG) > 0) {
	}
}

static unsigned entries(const char *path)
{
	struct dirent *de = NULL;
	unsigned n = 0;
	DIR *dir = opendir(path);

	assert_non_null(dir);
	while ((de = readdir(dir)) != NULL) {
		n += strcmp(de->d_name, ".") != 0 &&
		     strcmp(de->d_name, "..") != 0;
	}
	closedir(dir);
	return n;
}

static void wait_for_empty(const char *path)
{
	unsigned i;

	for (i = 0; i < PATIENCE_MS / 10 && entries(path) > 0; i++) {
		usleep(10000);
	}
	assert_int_equal(entries(path), 0);
}

/* Run the loop until the request is done. */
static void finish(struct bed *bed, struct tevent_req *req)
{
	assert_non_null(req);
	assert_true(tevent_req_poll(req, bed->ev));
}

static void session_over(void *private_data)
{
	struct bed *bed = private_data;

	TALLOC_FREE(bed->session);
}

static void run_until_over(struct bed *bed)
{
	while (bed->session != NULL) {
		assert_int_equal(tevent_loop_once(bed->ev), 0);
	}
}

static const char *resolve(TALLOC_CTX *mem_ctx, const char *place,
			   void *private_data)
{
	(void)private_data;
	return strcmp(place, "/forbidden") == 0
	       ? NULL : talloc_strdup(mem_ctx, place);
}

static void make_session(struct bed *bed, const char *program)
{
	int sock[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    sock), 0);
	bed->session = agent_session_create(bed->ev, bed->ev, sock[0],
					    sock[0], program, resolve,
					    session_over, bed);
	assert_non_null(bed->session);
	bed->raw = sock[1];
}

static void make_channel(struct bed *bed)
{
	bed->channel = channel_create(bed->ev, bed->ev, bed->raw, bed->raw);
	assert_non_null(bed->channel);
	bed->raw = -1;
}

static int set_up(void **state)
{
	struct bed *bed = talloc_zero(NULL, struct bed);
	const char *tmp = getenv("TMPDIR");

	bed->ev = tevent_context_init(bed);
	snprintf(bed->place, sizeof(bed->place), "%s/agent.XXXXXX",
		 tmp != NULL ? tmp : "/tmp");
	assert_non_null(mkdtemp(bed->place));
	make_session(bed, worker);
	make_channel(bed);
	*state = bed;
	return 0;
}

static int tear_down(void **state)
{
	struct bed *bed = *state;

	TALLOC_FREE(bed->channel);
	if (bed->raw > 0) {
		close(bed->raw);
	}
	TALLOC_FREE(bed->session);
	wait_for_no_children();
	wait_for_empty(bed->place);
	assert_int_equal(rmdir(bed->place), 0);
	talloc_free(bed);
	return 0;
}

/* The whole answer; its "err" must be there. */
static json_t *ask(struct bed *bed, json_t *question)
{
	struct tevent_req *req = NULL;
	json_t *answer = NULL;

	req = channel_ask_send(bed, bed->ev, bed->channel, question, -1,
			       PATIENCE_MS);
	finish(bed, req);
	assert_int_equal(channel_ask_recv(req, &answer), 0);
	talloc_free(req);
	assert_true(json_is_integer(json_object_get(answer, "err")));
	return answer;
}

static int err_of(json_t *answer)
{
	int err = (int)json_integer_value(json_object_get(answer, "err"));

	json_decref(answer);
	return err;
}

static json_t *start_question(const char *place)
{
	return json_pack("{ss si}", "start", place, "timeout_ms",
			 PATIENCE_MS);
}

static json_t *call_question(const struct probe_request *request,
			     int timeout_ms)
{
	return json_pack("{so si}", "call", wire_from_request(request),
			 "timeout_ms", timeout_ms);
}

static json_t *kill_question(bool restart)
{
	return json_pack("{sb si}", "kill", (int)restart, "timeout_ms",
			 PATIENCE_MS);
}

static void start(struct bed *bed)
{
	assert_int_equal(err_of(ask(bed, start_question(bed->place))), 0);
}

/* The errno of the operation itself */
static int call(struct bed *bed, const struct probe_request *request,
		struct probe_answer *told)
{
	json_t *answer = ask(bed, call_question(request, PATIENCE_MS));

	assert_int_equal(json_integer_value(json_object_get(answer, "err")),
			 0);
	assert_int_equal(wire_to_answer(json_object_get(answer, "answer"),
					told), 0);
	json_decref(answer);
	return told->err;
}

static void begin(struct bed *bed, bool make)
{
	struct probe_request request = {
		.op = PROBE_BEGIN, .make = make, .keeper = make,
		.name = RUN_NAME,
	};
	struct probe_answer told = {};

	assert_int_equal(call(bed, &request, &told), 0);
}

static void open_file(struct bed *bed, bool make)
{
	struct probe_request request = {
		.op = PROBE_OPEN, .slot = 0, .make = make, .name = "file",
	};
	struct probe_answer told = {};

	assert_int_equal(call(bed, &request, &told), 0);
}

/* ---- what a coordinator does --------------------------------------------- */

static void test_hello(void **state)
{
	struct bed *bed = *state;
	struct tevent_req *req = NULL;
	json_t *hello = NULL;

	req = channel_hello_send(bed, bed->ev, bed->channel, PATIENCE_MS);
	finish(bed, req);
	assert_int_equal(channel_hello_recv(req, &hello), 0);
	talloc_free(req);
	assert_string_equal(json_string_value(json_object_get(hello, "hello")),
			    "agent");
	assert_int_equal(json_integer_value(
				 json_object_get(hello, "protocol")),
			 AGENT_PROTOCOL);
	assert_int_equal(json_integer_value(json_object_get(hello, "oldest")),
			 AGENT_PROTOCOL_OLDEST);
	assert_string_equal(json_string_value(
				    json_object_get(hello, "version")),
			    PINGPONG_VERSION);
	json_decref(hello);
}

static void test_start(void **state)
{
	struct bed *bed = *state;
	const json_t *info = NULL;
	json_t *answer = NULL;
	struct stat st = {};

	answer = ask(bed, start_question(bed->place));
	info = json_object_get(answer, "info");
	assert_string_equal(json_string_value(
				    json_object_get(info, "resolved")),
			    bed->place);
	assert_int_equal(stat(bed->place, &st), 0);
	assert_int_equal(json_integer_value(json_object_get(info, "inode")),
			 st.st_ino);
	assert_int_equal(err_of(answer), 0);
	assert_int_equal(err_of(ask(bed, start_question(bed->place))), EBUSY);
}

static void test_start_of_no_place(void **state)
{
	struct bed *bed = *state;
	char missing[PATH_MAX + 8];

	snprintf(missing, sizeof(missing), "%s/none", bed->place);
	assert_int_equal(err_of(ask(bed, start_question(missing))), ENOENT);
}

static void test_start_of_forbidden_place(void **state)
{
	struct bed *bed = *state;
	pid_t pid = 0;

	assert_int_equal(err_of(ask(bed, start_question("/forbidden"))),
			 EACCES);
	assert_int_equal(children(&pid), 0);
}

static void test_name_that_is_no_utf8(void **state)
{
	struct bed *bed = *state;
	struct supervisor *sv = NULL;
	struct tevent_req *req = NULL;
	char path[PATH_MAX + 8], want[PATH_MAX + 8];
	const char *why = NULL;
	json_t *info = NULL;

	snprintf(path, sizeof(path), "%s/a\xff", bed->place);
	snprintf(want, sizeof(want), "%s/a\\xff", bed->place);
	assert_int_equal(mkdir(path, 0700), 0);
	sv = supervisor_create(bed, bed->ev, worker, path);
	req = supervisor_start_send(bed, bed->ev, sv, PATIENCE_MS);
	finish(bed, req);
	assert_int_equal(supervisor_start_recv(req, &info, bed, &why), 0);
	assert_string_equal(json_string_value(
				    json_object_get(info, "resolved")), want);
	json_decref(info);
	talloc_free(sv);
	assert_int_equal(rmdir(path), 0);
}

static void test_calls(void **state)
{
	struct bed *bed = *state;
	struct probe_request write = {
		.op = PROBE_WRITE, .start = 3, .len = 1000, .value = 7,
	};
	struct probe_request read = {
		.op = PROBE_READ, .start = 3, .len = 1000, .value = 7,
	};
	struct probe_request finish_run = { .op = PROBE_FINISH };
	struct probe_answer told = {};

	start(bed);
	begin(bed, true);
	open_file(bed, true);
	assert_int_equal(call(bed, &write, &told), 0);
	assert_int_equal(told.count, 1000);
	assert_int_equal(call(bed, &read, &told), 0);
	assert_int_equal(told.count, 1000);
	assert_int_equal(told.wrong, 0);
	read.value = 8;
	assert_int_equal(call(bed, &read, &told), 0);
	assert_int_equal(told.wrong, 1000);
	assert_int_equal(told.value, 7);
	read.slot = 5;
	assert_int_equal(call(bed, &read, &told), EBADF);
	assert_int_equal(call(bed, &finish_run, &told), 0);
	assert_int_equal(entries(bed->place), 0);
}

static void test_kill(void **state)
{
	struct bed *bed = *state;
	struct probe_request nop = { .op = PROBE_NOP };
	struct probe_answer told = {};
	pid_t first = 0, second = 0;

	start(bed);
	assert_int_equal(children(&first), 1);
	assert_int_equal(err_of(ask(bed, kill_question(true))), 0);
	assert_int_equal(children(&second), 1);
	assert_int_not_equal(first, second);
	assert_int_equal(call(bed, &nop, &told), 0);
	assert_int_equal(err_of(ask(bed, kill_question(false))), 0);
	assert_int_equal(children(&second), 0);
	assert_int_equal(err_of(ask(bed, call_question(&nop, PATIENCE_MS))),
			 ECONNRESET);
}

/*
 * A lock that nobody lets go: another process holds it, since in this one the
 * worker's request would be the only way to hold it.
 */
static pid_t hold_lock(const char *place)
{
	struct flock fl = { .l_type = F_WRLCK };
	char path[PATH_MAX + 128];
	int ready[2];
	char c;
	pid_t pid;
	int fd;

	snprintf(path, sizeof(path), "%s/%s/%s/file", place, PROBE_DIR_NAME,
		 RUN_NAME);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		/* nor keep the ends of the channel open */
		dup2(ready[1], STDIN_FILENO);
		close_range(3, ~0U, 0);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd != -1 && fcntl(fd, F_SETLK, &fl) == 0 &&
		    write(STDIN_FILENO, "", 1) == 1) {
			pause();
		}
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void test_silent_worker(void **state)
{
	struct bed *bed = *state;
	struct probe_request lock = {
		.op = PROBE_LOCK, .type = F_WRLCK, .wait = true,
		.patience_ms = 10 * PATIENCE_MS,
	};
	const json_t *autopsy = NULL;
	json_t *answer = NULL;
	pid_t holder;

	start(bed);
	begin(bed, true);
	open_file(bed, true);
	holder = hold_lock(bed->place);
	assert_int_equal(err_of(ask(bed, call_question(&lock, 200))),
			 ETIMEDOUT);

	answer = ask(bed, json_pack("{sb}", "autopsy", 1));
	autopsy = json_object_get(answer, "autopsy");
	assert_true(json_is_true(json_object_get(autopsy, "found")));
	assert_true(json_is_true(json_object_get(autopsy, "blocked")));
	assert_string_equal(json_string_value(
				    json_object_get(autopsy, "syscall")),
			    "fcntl");
	json_decref(answer);

	assert_int_equal(err_of(ask(bed, kill_question(true))), 0);
	begin(bed, false);
	open_file(bed, false);
	end_child(holder);
	lock.patience_ms = PATIENCE_MS;
	assert_int_equal(call(bed, &lock, &(struct probe_answer){}), 0);
	assert_int_equal(call(bed, &(struct probe_request){
				      .op = PROBE_FINISH },
			      &(struct probe_answer){}), 0);
}

static void test_kill_ends_a_call(void **state)
{
	struct bed *bed = *state;
	struct probe_request lock = {
		.op = PROBE_LOCK, .type = F_WRLCK, .wait = true,
		.patience_ms = 10 * PATIENCE_MS,
	};
	struct tevent_req *call_req = NULL, *busy_req = NULL;
	json_t *answer = NULL;
	pid_t holder;

	start(bed);
	begin(bed, true);
	open_file(bed, true);
	holder = hold_lock(bed->place);
	call_req = channel_ask_send(bed, bed->ev, bed->channel,
				    call_question(&lock, 2 * PATIENCE_MS), -1,
				    PATIENCE_MS);
	busy_req = channel_ask_send(bed, bed->ev, bed->channel,
				    call_question(&lock, 2 * PATIENCE_MS), -1,
				    PATIENCE_MS);
	finish(bed, busy_req);
	assert_int_equal(channel_ask_recv(busy_req, &answer), 0);
	assert_int_equal(err_of(answer), EBUSY);
	talloc_free(busy_req);

	assert_int_equal(err_of(ask(bed, kill_question(true))), 0);
	finish(bed, call_req);
	assert_int_equal(channel_ask_recv(call_req, &answer), 0);
	assert_int_equal(err_of(answer), ECONNRESET);
	talloc_free(call_req);
	end_child(holder);
	begin(bed, false);
	assert_int_equal(call(bed, &(struct probe_request){
				      .op = PROBE_FINISH },
			      &(struct probe_answer){}), 0);
}

/* A worker that never says its hello: sleep(1), for "path" seconds */
static void test_hung_start(void **state)
{
	struct bed *bed = *state;
	json_t *answer = NULL;
	const char *why = NULL;
	pid_t pid = 0;

	TALLOC_FREE(bed->channel);
	run_until_over(bed);
	make_session(bed, "/bin/sleep");
	make_channel(bed);
	answer = ask(bed, json_pack("{ss si}", "start", "1000", "timeout_ms",
				    300));
	why = json_string_value(json_object_get(answer, "why"));
	assert_non_null(why);
	assert_non_null(strstr(why, "no answer when opened, for 0.3 s, in "
			       "state S"));
	assert_int_equal(err_of(answer), ETIMEDOUT);
	assert_int_equal(children(&pid), 0);
}

/* ---- bad questions ------------------------------------------------------- */

static void test_bad_questions(void **state)
{
	struct bed *bed = *state;
	struct probe_request nop = { .op = PROBE_NOP };

	assert_int_equal(err_of(ask(bed, json_pack("{ss}", "sing", "song"))),
			 ENOTSUP);
	assert_int_equal(err_of(ask(bed, json_object())), ENOTSUP);
	assert_int_equal(err_of(ask(bed, json_pack("{si si}", "start", 1,
						   "timeout_ms", 1))),
			 EPROTO);
	assert_int_equal(err_of(ask(bed, json_pack("{ss}", "start", "/"))),
			 EINVAL);
	assert_int_equal(err_of(ask(bed, call_question(&nop, 0))), EINVAL);
	assert_int_equal(err_of(ask(bed, call_question(&nop, -1))), EINVAL);
	assert_int_equal(err_of(ask(bed, call_question(&nop, INT_MAX))),
			 EINVAL);
	assert_int_equal(err_of(ask(bed, json_pack("{s{ss} si}", "call",
						   "op", "sing",
						   "timeout_ms", 1))),
			 EPROTO);
	assert_int_equal(err_of(ask(bed, json_pack("{ss si}", "kill", "yes",
						   "timeout_ms", 1))),
			 EPROTO);
	/* no worker yet */
	assert_int_equal(err_of(ask(bed, call_question(&nop, 1000))),
			 ECONNRESET);
	assert_int_equal(err_of(ask(bed, kill_question(true))), ECONNRESET);
	/* and all that has not spoilt it */
	start(bed);
}

static void test_no_frames(void **state)
{
	static const char *const lines[] = {
		"hello\n", "[]\n", "{\"id\":1\n", "{}}\n", "\n",
		"{\"a\":\"\xff\"}\n",
	};
	struct bed *bed = *state;
	size_t i;

	TALLOC_FREE(bed->channel);
	run_until_over(bed);
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		make_session(bed, worker);
		assert_int_equal(write(bed->raw, lines[i], strlen(lines[i])),
				 strlen(lines[i]));
		run_until_over(bed);
		close(bed->raw);
	}
	bed->raw = -1;
}

static void test_long_line(void **state)
{
	static char line[WIRE_MAX_FRAME + 1];
	struct bed *bed = *state;
	size_t done = 0;
	ssize_t n;

	TALLOC_FREE(bed->channel);
	run_until_over(bed);
	make_session(bed, worker);
	memset(line, ' ', sizeof(line));
	fcntl(bed->raw, F_SETFL, O_NONBLOCK);
	while (bed->session != NULL) {
		n = done < sizeof(line)
		    ? write(bed->raw, line + done, sizeof(line) - done) : -1;
		done += n > 0 ? (size_t)n : 0;
		assert_int_equal(tevent_loop_once(bed->ev), 0);
	}
}

/* It asks and asks and never reads an answer. */
static void test_no_reader(void **state)
{
	static const char question[] = "{\"id\":1,\"autopsy\":true}\n";
	struct bed *bed = *state;
	ssize_t n;

	TALLOC_FREE(bed->channel);
	run_until_over(bed);
	make_session(bed, worker);
	fcntl(bed->raw, F_SETFL, O_NONBLOCK);
	while (bed->session != NULL) {
		n = write(bed->raw, question, strlen(question));
		assert_true(n == (ssize_t)strlen(question) ||
			    (n == -1 && errno == EAGAIN));
		assert_int_equal(tevent_loop_once(bed->ev), 0);
	}
}

/* ---- the end ------------------------------------------------------------- */

static void test_worker_ends_with_channel(void **state)
{
	struct bed *bed = *state;
	pid_t pid = 0;

	start(bed);
	assert_int_equal(children(&pid), 1);
	TALLOC_FREE(bed->channel);
	run_until_over(bed);
	wait_for_no_children();
}

/* Nobody tells it that the connection is dead */
static void test_session_does_not_outlive_its_run(void **state)
{
	struct bed *bed = *state;
	json_t *question = start_question(bed->place);
	struct tevent_req *req = NULL;

	json_object_set_new(question, "lifetime_ms", json_integer(300));
	req = channel_ask_send(bed, bed->ev, bed->channel, question, -1,
			       PATIENCE_MS);
	assert_non_null(req);
	run_until_over(bed);
	wait_for_no_children();
	talloc_free(req);
}

static void test_directory_goes_with_channel(void **state)
{
	struct bed *bed = *state;

	start(bed);
	begin(bed, true);
	open_file(bed, true);
	assert_int_equal(entries(bed->place), 1);
	TALLOC_FREE(bed->channel);
	run_until_over(bed);
	wait_for_empty(bed->place);
	wait_for_no_children();
}

/* It is not waited for, and goes on all the same. */
static void test_channel_ends_during_finish(void **state)
{
	struct bed *bed = *state;
	struct probe_request finish_run = { .op = PROBE_FINISH };
	struct tevent_req *req = NULL;

	start(bed);
	begin(bed, true);
	open_file(bed, true);
	req = channel_ask_send(bed, bed->ev, bed->channel,
			       call_question(&finish_run, 1), -1, PATIENCE_MS);
	assert_int_equal(err_of(ask(bed, json_pack("{sb}", "autopsy", 1))),
			 0);
	TALLOC_FREE(req);
	TALLOC_FREE(bed->channel);
	run_until_over(bed);
	wait_for_empty(bed->place);
	wait_for_no_children();
}

static void test_channel_ends_during_call(void **state)
{
	struct bed *bed = *state;
	struct probe_request lock = {
		.op = PROBE_LOCK, .type = F_WRLCK, .wait = true,
		.patience_ms = 10 * PATIENCE_MS,
	};
	struct tevent_req *req = NULL;
	pid_t holder;

	start(bed);
	begin(bed, true);
	open_file(bed, true);
	holder = hold_lock(bed->place);
	req = channel_ask_send(bed, bed->ev, bed->channel,
			       call_question(&lock, 2 * PATIENCE_MS), -1,
			       PATIENCE_MS);
	assert_int_equal(err_of(ask(bed, json_pack("{sb}", "autopsy", 1))),
			 0);
	TALLOC_FREE(req);
	TALLOC_FREE(bed->channel);
	run_until_over(bed);
	wait_for_empty(bed->place);
	end_child(holder);
	wait_for_no_children();
}

static void test_session_freed_during_start(void **state)
{
	struct bed *bed = *state;
	struct tevent_req *req = NULL;
	pid_t pid = 0;

	req = channel_ask_send(bed, bed->ev, bed->channel,
			       start_question(bed->place), -1, PATIENCE_MS);
	while (children(&pid) == 0) {
		assert_int_equal(tevent_loop_once(bed->ev), 0);
	}
	TALLOC_FREE(bed->session);
	talloc_free(req);
	wait_for_no_children();
}

static void test_worker_killed_by_somebody(void **state)
{
	struct bed *bed = *state;
	struct probe_request nop = { .op = PROBE_NOP };
	pid_t pid = 0;

	start(bed);
	assert_int_equal(children(&pid), 1);
	kill(pid, SIGKILL);
	assert_int_equal(err_of(ask(bed, call_question(&nop, PATIENCE_MS))),
			 ECONNRESET);
	assert_int_equal(err_of(ask(bed, kill_question(true))), 0);
	assert_int_equal(call(bed, &nop, &(struct probe_answer){}), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_hello),
		TEST(test_start),
		TEST(test_start_of_no_place),
		TEST(test_start_of_forbidden_place),
		TEST(test_name_that_is_no_utf8),
		TEST(test_calls),
		TEST(test_kill),
		TEST(test_silent_worker),
		TEST(test_kill_ends_a_call),
		TEST(test_hung_start),
		TEST(test_bad_questions),
		TEST(test_no_frames),
		TEST(test_long_line),
		TEST(test_no_reader),
		TEST(test_worker_ends_with_channel),
		TEST(test_session_does_not_outlive_its_run),
		TEST(test_directory_goes_with_channel),
		TEST(test_channel_ends_during_finish),
		TEST(test_channel_ends_during_call),
		TEST(test_session_freed_during_start),
		TEST(test_worker_killed_by_somebody),
	};

	if (pidfd_open(getpid(), 0) == -1) {
		/* Debian 12's valgrind */
		printf("skip all: pidfd_open: %s\n", strerror(errno));
		return 0;
	}
	find_worker();
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests_name("agent", tests, NULL, NULL);
}
