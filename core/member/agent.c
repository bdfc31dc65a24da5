/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

#include "core/config.h"
#include "core/member/agent.h"
#include "core/member/channel.h"
#include "core/member/supervisor.h"
#include "core/member/wire.h"

/* Longer than any run, short enough for sums of a few in 32 bits */
#define TIMEOUT_MAX_MS (24 * 3600 * 1000)

/* Nobody waits that long before the first question */
#define START_WAIT_MS 30000

struct agent_session {
	struct tevent_context *ev;
	struct wire *wire;
	struct tevent_immediate *end;
	struct tevent_timer *limit;	/* ends it; or NULL */
	bool over;		/* nothing is sent any more */
	const char *worker;
	struct supervisor *sv;	/* NULL: no place yet */
	bool calling;		/* a call is under way */
	bool changing;		/* a start or kill is under way */
	agent_resolve_fn resolve_fn;
	agent_end_fn end_fn;
	void *private_data;
};

/* A question that takes time; goes with its answer */
struct question {
	struct agent_session *session;
	json_int_t id;
	unsigned timeout_ms;
	bool restart;
};

/* ---- the session's end -------------------------------------------------- */

static void session_ended(struct tevent_context *ev,
			  struct tevent_immediate *im, void *private_data)
{
	struct agent_session *session = talloc_get_type_abort(
		private_data, struct agent_session);

	(void)ev;
	(void)im;
	TALLOC_FREE(session->wire);
	TALLOC_FREE(session->sv);
	session->end_fn(session->private_data);
}

/* from anywhere: what calls us may still use the wire or the supervisor */
static void session_end(struct agent_session *session)
{
	if (session->over) {
		return;
	}
	session->over = true;
	tevent_schedule_immediate(session->end, session->ev, session_ended,
				  session);
}

static void session_gone(int err, void *private_data)
{
	(void)err;
	session_end(talloc_get_type_abort(private_data,
					  struct agent_session));
}

static void session_outlived(struct tevent_context *ev,
			     struct tevent_timer *te, struct timeval now,
			     void *private_data)
{
	struct agent_session *session = talloc_get_type_abort(
		private_data, struct agent_session);

	(void)ev;
	(void)te;
	(void)now;
	session->limit = NULL;
	session_end(session);
}

/* The connection may be dead and nobody be told of it. ms: 0: no limit */
static int session_limit(struct agent_session *session, json_int_t ms)
{
	TALLOC_FREE(session->limit);
	if (ms <= 0 || ms > UINT_MAX) {
		return 0;
	}
	session->limit = tevent_add_timer(session->ev, session,
					  channel_deadline((unsigned)ms),
					  session_outlived, session);
	return session->limit != NULL ? 0 : ENOMEM;
}

static int session_destructor(struct agent_session *session)
{
	/* questions under way end now, unanswered */
	session->over = true;
	TALLOC_FREE(session->sv);
	return 0;
}

/* ---- answers ------------------------------------------------------------ */

static void answer(struct agent_session *session, json_int_t id, int err,
		   const char *name, json_t *value)
{
	json_t *frame = NULL;
	int ret;

	if (session->over) {
		json_decref(value);
		return;
	}
	frame = json_pack("{sI si}", "id", id, "err", err);
	if (value != NULL) {
		ret = json_object_set_new(frame, name, value);
		if (ret != 0) {
			json_decref(frame);
			frame = NULL;
		}
	}
	ret = wire_send(session->wire, frame, -1);
	if (ret != 0) {
		session_end(session);
	}
}

static struct question *question_create(struct agent_session *session,
					json_int_t id, unsigned timeout_ms)
{
	struct question *question = talloc(session, struct question);

	if (question != NULL) {
		*question = (struct question){
			.session = session,
			.id = id,
			.timeout_ms = timeout_ms,
		};
	}
	return question;
}

/* ---- start -------------------------------------------------------------- */

static void started(struct tevent_req *subreq)
{
	struct question *question = tevent_req_callback_data(subreq,
							     struct question);
	struct agent_session *session = question->session;
	const char *why = NULL;
	json_t *info = NULL;
	int ret;

	ret = supervisor_start_recv(subreq, &info, question, &why);
	TALLOC_FREE(subreq);
	session->changing = false;
	if (why != NULL) {
		answer(session, question->id, ret, "why", json_string(why));
	} else {
		answer(session, question->id, ret, "info", info);
	}
	talloc_free(question);
}

static int ask_start(struct question *question)
{
	struct agent_session *session = question->session;
	struct tevent_req *subreq = NULL;

	subreq = supervisor_start_send(question, session->ev, session->sv,
				       question->timeout_ms);
	if (subreq == NULL) {
		return ENOMEM;
	}
	tevent_req_set_callback(subreq, started, question);
	session->changing = true;
	return 0;
}

static int question_start(struct question *question, const json_t *frame)
{
	struct agent_session *session = question->session;
	const char *place = json_string_value(json_object_get(frame, "start"));
	const char *path = NULL;
	int ret;

	if (place == NULL) {
		return EPROTO;
	}
	if (session->changing || session->sv != NULL) {
		return EBUSY;
	}
	path = session->resolve_fn(question, place, session->private_data);
	if (path == NULL) {
		return EACCES;
	}
	session->sv = supervisor_create(session, session->ev, session->worker,
					path);
	if (session->sv == NULL) {
		return ENOMEM;
	}
	ret = session_limit(session, json_integer_value(
				    json_object_get(frame, "lifetime_ms")));
	return ret == 0 ? ask_start(question) : ret;
}

/* ---- call --------------------------------------------------------------- */

static void called(struct tevent_req *subreq)
{
	struct question *question = tevent_req_callback_data(subreq,
							     struct question);
	struct agent_session *session = question->session;
	struct probe_answer told = {};
	json_t *value = NULL;
	int ret;

	ret = supervisor_call_recv(subreq, &told);
	TALLOC_FREE(subreq);
	session->calling = false;
	if (ret == 0) {
		value = wire_from_answer(&told);
	}
	answer(session, question->id, ret, "answer", value);
	talloc_free(question);
}

static int question_call(struct question *question, const json_t *frame)
{
	struct agent_session *session = question->session;
	struct probe_request request = {};
	struct tevent_req *subreq = NULL;
	int ret;

	ret = wire_to_request(json_object_get(frame, "call"), &request);
	if (ret != 0) {
		return ret;
	}
	if (session->sv == NULL) {
		return ECONNRESET;
	}
	if (session->changing || session->calling) {
		return EBUSY;
	}
	subreq = supervisor_call_send(question, session->ev, session->sv,
				      &request, -1, question->timeout_ms);
	if (subreq == NULL) {
		return ENOMEM;
	}
	tevent_req_set_callback(subreq, called, question);
	session->calling = true;
	return 0;
}

/* ---- kill --------------------------------------------------------------- */

static void killed(struct tevent_req *subreq)
{
	struct question *question = tevent_req_callback_data(subreq,
							     struct question);
	struct agent_session *session = question->session;
	int ret;

	ret = supervisor_kill_recv(subreq);
	TALLOC_FREE(subreq);
	session->changing = false;
	if (ret == 0 && question->restart && !session->over) {
		ret = ask_start(question);
		if (ret == 0) {
			return;
		}
	}
	answer(session, question->id, ret, NULL, NULL);
	talloc_free(question);
}

static int question_kill(struct question *question, const json_t *frame)
{
	struct agent_session *session = question->session;
	const json_t *restart = json_object_get(frame, "kill");
	struct tevent_req *subreq = NULL;

	if (!json_is_boolean(restart)) {
		return EPROTO;
	}
	if (session->sv == NULL) {
		return ECONNRESET;
	}
	if (session->changing) {
		return EBUSY;
	}
	question->restart = json_is_true(restart);
	session->changing = true;
	/* ends a call under way, which is answered in it */
	subreq = supervisor_kill_send(question, session->ev, session->sv,
				      question->timeout_ms);
	if (subreq == NULL) {
		session->changing = false;
		return ENOMEM;
	}
	tevent_req_set_callback(subreq, killed, question);
	return 0;
}

/* ---- autopsy ------------------------------------------------------------ */

static void answer_autopsy(struct agent_session *session, json_int_t id)
{
	TALLOC_CTX *frame = talloc_new(session);
	struct member_autopsy autopsy = {
		.state = '?', .wchan = "", .syscall = "", .stack = "",
	};

	if (session->sv != NULL) {
		supervisor_autopsy(frame, session->sv, &autopsy);
	}
	answer(session, id, 0, "autopsy",
	       json_pack("{sb sb ss# ss ss ss}",
			 "found", (int)autopsy.found,
			 "blocked", (int)autopsy.blocked,
			 "state", &autopsy.state, (size_t)1,
			 "wchan", autopsy.wchan,
			 "syscall", autopsy.syscall,
			 "stack", autopsy.stack));
	talloc_free(frame);
}

/* ---- questions ---------------------------------------------------------- */

static const struct {
	const char *name;
	int (*fn)(struct question *question, const json_t *frame);
} questions[] = {
	{ "start", question_start },
	{ "call", question_call },
	{ "kill", question_kill },
};

static int question_take(struct agent_session *session, json_int_t id,
			 const json_t *frame)
{
	struct question *question = NULL;
	json_int_t timeout_ms;
	size_t i = 0;
	int ret;

	while (json_object_get(frame, questions[i].name) == NULL) {
		i++;
		if (i == sizeof(questions) / sizeof(questions[0])) {
			return ENOTSUP;
		}
	}
	timeout_ms = json_integer_value(json_object_get(frame, "timeout_ms"));
	if (timeout_ms < 1 || timeout_ms > TIMEOUT_MAX_MS) {
		return EINVAL;
	}
	question = question_create(session, id, (unsigned)timeout_ms);
	if (question == NULL) {
		return ENOMEM;
	}
	ret = questions[i].fn(question, frame);
	if (ret != 0) {
		talloc_free(question);
	}
	return ret;
}

static void session_frame(json_t *frame, void *private_data)
{
	struct agent_session *session = talloc_get_type_abort(
		private_data, struct agent_session);
	json_int_t id = json_integer_value(json_object_get(frame, "id"));
	const json_t *autopsy = json_object_get(frame, "autopsy");
	int ret;

	if (session->over) {
		return;
	}
	if (autopsy != NULL) {
		answer_autopsy(session, id);
		return;
	}
	ret = question_take(session, id, frame);
	if (ret != 0) {
		answer(session, id, ret, NULL, NULL);
	}
}

struct agent_session *agent_session_create(TALLOC_CTX *mem_ctx,
					   struct tevent_context *ev,
					   int rfd, int wfd,
					   const char *worker,
					   agent_resolve_fn resolve_fn,
					   agent_end_fn end_fn,
					   void *private_data)
{
	struct agent_session *session = talloc(mem_ctx, struct agent_session);
	int ret;

	if (session == NULL) {
		return NULL;
	}
	*session = (struct agent_session){
		.ev = ev,
		.worker = talloc_strdup(session, worker),
		.end = tevent_create_immediate(session),
		.resolve_fn = resolve_fn,
		.end_fn = end_fn,
		.private_data = private_data,
	};
	if (session->worker == NULL || session->end == NULL) {
		talloc_free(session);
		return NULL;
	}
	talloc_set_destructor(session, session_destructor);
	session->wire = wire_create(session, ev, rfd, wfd, session_frame,
				    session_gone, session);
	if (session->wire == NULL) {
		talloc_free(session);
		return NULL;
	}
	ret = wire_send(session->wire,
			json_pack("{ss si si ss}", "hello", "agent",
				  "protocol", AGENT_PROTOCOL,
				  "oldest", AGENT_PROTOCOL_OLDEST,
				  "version", PINGPONG_VERSION),
			-1);
	if (ret == 0) {
		ret = session_limit(session, START_WAIT_MS);
	}
	if (ret != 0) {
		session_end(session);
	}
	return session;
}

/* ---- over stdio --------------------------------------------------------- */

static const char *take_path(TALLOC_CTX *mem_ctx, const char *place,
			     void *private_data)
{
	(void)private_data;
	return talloc_strdup(mem_ctx, place);
}

static void stdio_ended(void *private_data)
{
	bool *ended = private_data;

	*ended = true;
}

int agent_stdio(const char *worker)
{
	struct tevent_context *ev = tevent_context_init(NULL);
	struct agent_session *session = NULL;
	bool ended = false;
	int ret = 0;

	if (ev == NULL) {
		return EX_SOFTWARE;
	}
	signal(SIGPIPE, SIG_IGN);
	session = agent_session_create(ev, ev, STDIN_FILENO, STDOUT_FILENO,
				       worker, take_path, stdio_ended,
				       &ended);
	if (session == NULL) {
		talloc_free(ev);
		return EX_SOFTWARE;
	}
	while (!ended && ret == 0) {
		ret = tevent_loop_once(ev);
	}
	talloc_free(ev);
	return ret == 0 ? EX_OK : EX_SOFTWARE;
}
