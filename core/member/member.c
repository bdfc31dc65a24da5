/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/config.h"
#include "core/member/agent.h"
#include "core/member/channel.h"
#include "core/member/rsh.h"
#include "core/member/supervisor.h"
#include "core/member/wire.h"

/* How much longer than a worker's time an agent's answer may take before the
 * host counts as unreachable */
#define CHANNEL_GRACE_MS 3000

struct member {
	struct tevent_context *ev;
	struct member_info info;
	bool gone;
	/* one of the two: */
	struct supervisor *local;
	struct channel *remote;
	struct rsh *rsh;	/* the command behind the channel; or NULL */
	json_t *told;		/* the last answer over it, or NULL */
};

bool member_same_node(const struct member_info *a,
		      const struct member_info *b)
{
	return strcmp(a->boot_id, b->boot_id) == 0 && a->major == b->major &&
	       a->minor == b->minor;
}

const struct member_info *member_info(const struct member *member)
{
	return &member->info;
}

struct member_info *member_info_copy(TALLOC_CTX *mem_ctx,
				     const struct member_info *info)
{
	struct member_info *copy = talloc(mem_ctx, struct member_info);

	if (copy == NULL) {
		return NULL;
	}
	*copy = *info;
	copy->name = talloc_strdup(copy, info->name);
	copy->host = talloc_strdup(copy, info->host);
	copy->path = talloc_strdup(copy, info->path);
	copy->resolved = talloc_strdup(copy, info->resolved);
	copy->kernel = talloc_strdup(copy, info->kernel);
	copy->boot_id = talloc_strdup(copy, info->boot_id);
	copy->mount_line = talloc_strdup(copy, info->mount_line);
	copy->fstype = talloc_strdup(copy, info->fstype);
	copy->source = talloc_strdup(copy, info->source);
	copy->options = talloc_strdup(copy, info->options);
	return copy;
}

bool member_remote(const struct member *member)
{
	return member->remote != NULL;
}

bool member_gone(const struct member *member)
{
	return member->gone;
}

void member_set_gone(struct member *member)
{
	member->gone = true;
}

static int member_destructor(struct member *member)
{
	json_decref(member->told);
	return 0;
}

/* ---- what the worker said of its place --------------------------------- */

static const char *info_string(struct member *member, const json_t *info,
			       const char *name)
{
	const char *value = json_string_value(json_object_get(info, name));

	return talloc_strdup(member, value != NULL ? value : "");
}

static uint64_t info_number(const json_t *info, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(info, name));
}

static void member_take_info(struct member *member, const json_t *info)
{
	struct member_info *mi = &member->info;

	mi->host = info_string(member, info, "host");
	mi->resolved = info_string(member, info, "resolved");
	mi->kernel = info_string(member, info, "kernel");
	mi->boot_id = info_string(member, info, "boot_id");
	mi->mount_line = info_string(member, info, "mount_line");
	mi->fstype = info_string(member, info, "fstype");
	mi->source = info_string(member, info, "source");
	mi->options = info_string(member, info, "options");
	mi->mnt_ns = info_number(info, "mnt_ns");
	mi->mount_id = info_number(info, "mount_id");
	mi->major = (unsigned)info_number(info, "major");
	mi->minor = (unsigned)info_number(info, "minor");
	mi->st_dev = info_number(info, "st_dev");
	mi->inode = info_number(info, "inode");
	mi->fsid = info_number(info, "fsid");
}

/* ---- start -------------------------------------------------------------- */

struct start_state {
	struct tevent_context *ev;
	const struct member_reach *reach;
	struct member *member;
	unsigned timeout_ms;
	const char *host;	/* NULL: this one */
	int err;
	const char *why;
};

/*
 * [HOST:]PATH; a colon behind a slash is the path's own, those of an IPv6
 * address stand in brackets
 */
static const char *split_place(TALLOC_CTX *mem_ctx, const char *place,
			       const char **host)
{
	bool bracket = place[0] == '[';
	size_t skip = bracket ? 1 : 0;
	size_t n = skip + strcspn(place + skip, bracket ? "]/" : ":/");
	const char *colon = place + n + skip;

	*host = NULL;
	if (n == skip || (bracket && place[n] != ']') || *colon != ':') {
		return place;
	}
	*host = talloc_strndup(mem_ctx, place + skip, n - skip);
	return colon + 1;
}

static int connect_rsh(struct member *member, struct tevent_context *ev,
		       const char *command, const char *host)
{
	int sock = -1;
	int ret;

	ret = rsh_start(member, ev, command, host, &member->rsh, &sock);
	if (ret != 0) {
		return ret;
	}
	member->remote = channel_create(member, ev, sock, sock);
	if (member->remote == NULL) {
		close(sock);
		return ENOMEM;
	}
	return 0;
}

static void start_local_done(struct tevent_req *subreq);
static void start_greeted(struct tevent_req *subreq);
static void start_no_agent_why(struct tevent_req *subreq);
static void start_remote_done(struct tevent_req *subreq);

static int start_local(struct tevent_req *req, const char *worker)
{
	struct start_state *state = tevent_req_data(req, struct start_state);
	struct member *member = state->member;
	struct tevent_req *subreq = NULL;

	member->local = supervisor_create(member, state->ev, worker,
					  member->info.path);
	if (member->local == NULL) {
		return ENOMEM;
	}
	subreq = supervisor_start_send(state, state->ev, member->local,
				       state->timeout_ms);
	if (subreq == NULL) {
		return ENOMEM;
	}
	tevent_req_set_callback(subreq, start_local_done, req);
	return 0;
}

static int connect_link(struct member *member, struct tevent_context *ev,
			const struct member_link *link)
{
	member->remote = channel_create(member, ev, link->rfd, link->wfd);
	return member->remote != NULL ? 0 : ENOMEM;
}

/* NULL: the host has none */
static const struct member_link *find_link(const struct member_reach *reach,
					   const char *host)
{
	const struct member_link *link = reach->links;

	while (link != NULL && link->host != NULL) {
		if (strcmp(link->host, host) == 0) {
			return link;
		}
		link++;
	}
	return NULL;
}

static unsigned connect_ms(const struct start_state *state)
{
	unsigned ms = state->reach->connect_ms;

	return ms != 0 ? ms : state->timeout_ms;
}

static int start_remote(struct tevent_req *req,
			const struct member_reach *reach)
{
	struct start_state *state = tevent_req_data(req, struct start_state);
	struct member *member = state->member;
	const struct member_link *link = find_link(reach, state->host);
	struct tevent_req *subreq = NULL;
	int ret;

	if (link != NULL) {
		ret = connect_link(member, state->ev, link);
	} else {
		ret = connect_rsh(member, state->ev, reach->rsh, state->host);
	}
	if (ret != 0) {
		return ret;
	}
	subreq = channel_hello_send(state, state->ev, member->remote,
				    connect_ms(state));
	if (subreq == NULL) {
		return ENOMEM;
	}
	tevent_req_set_callback(subreq, start_greeted, req);
	return 0;
}

static void start_unreachable(struct tevent_req *req, int err,
			      const char *what)
{
	struct start_state *state = tevent_req_data(req, struct start_state);

	state->why = talloc_asprintf(state, "host '%s': %s", state->host,
				     what);
	tevent_req_error(req, err);
}

struct tevent_req *member_start_send(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     const struct member_reach *reach,
				     const char *place, unsigned number,
				     unsigned timeout_ms)
{
	struct start_state *state = NULL;
	struct tevent_req *req = NULL;
	struct member *member = NULL;
	const char *path = NULL;
	int ret;

	req = tevent_req_create(mem_ctx, &state, struct start_state);
	if (req == NULL) {
		return NULL;
	}
	member = talloc_zero(state, struct member);
	if (tevent_req_nomem(member, req)) {
		return tevent_req_post(req, ev);
	}
	talloc_set_destructor(member, member_destructor);
	path = split_place(state, place, &state->host);
	state->ev = ev;
	state->reach = reach;
	state->member = member;
	state->timeout_ms = timeout_ms;
	member->ev = ev;
	member->info.number = number;
	member->info.name = talloc_strdup(member, place);
	member->info.path = talloc_strdup(member, path);
	if (state->host != NULL && state->host[0] == '-') {
		/* the command that reaches hosts would take it for an option */
		start_unreachable(req, EHOSTUNREACH,
				  "the name of a host begins with no '-'");
		return tevent_req_post(req, ev);
	}
	ret = state->host == NULL ? start_local(req, reach->worker)
				  : start_remote(req, reach);
	if (ret != 0) {
		tevent_req_error(req, ret);
		return tevent_req_post(req, ev);
	}
	return req;
}

/* why: what was found out, or NULL */
static void start_failed(struct tevent_req *req, int err, const char *why)
{
	struct start_state *state = tevent_req_data(req, struct start_state);

	state->why = talloc_asprintf(state, "'%s': %s",
				     state->member->info.name,
				     why != NULL ? why : strerror(err));
	tevent_req_error(req, err);
}

static void start_local_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct start_state *state = tevent_req_data(req, struct start_state);
	const char *why = NULL;
	json_t *info = NULL;
	int ret;

	ret = supervisor_start_recv(subreq, &info, state, &why);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		start_failed(req, ret, why);
		return;
	}
	member_take_info(state->member, info);
	json_decref(info);
	tevent_req_done(req);
}

/* Nobody there, or not who was asked for: the command may have said why */
static void start_no_agent(struct tevent_req *req, int err)
{
	struct start_state *state = tevent_req_data(req, struct start_state);
	struct tevent_req *subreq = NULL;

	state->err = err;
	if (state->member->rsh == NULL) {
		start_unreachable(req, EHOSTUNREACH, "no agent answers");
		return;
	}
	subreq = rsh_why_send(state, state->ev, state->member->rsh);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, start_no_agent_why, req);
}

static void start_no_agent_why(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct start_state *state = tevent_req_data(req, struct start_state);
	char *why = rsh_why_recv(subreq, state);

	TALLOC_FREE(subreq);
	if (state->err == EPROTO) {
		why = talloc_strdup(state, "something else than 'pingpong "
				    "agent' answers: its login must not "
				    "print anything");
	} else if (state->err == ETIMEDOUT) {
		why = talloc_asprintf(
			state, "no answer from 'pingpong agent' within "
			"%.3g s%s%s", connect_ms(state) / 1000.0,
			why != NULL ? ": " : "", why != NULL ? why : "");
	} else if (why == NULL) {
		why = talloc_strdup(state, "the connection was closed before "
				    "'pingpong agent' answered");
	}
	start_unreachable(req, EHOSTUNREACH, why != NULL ? why : "no agent");
}

/* Returns 0, or EPROTO: no version that both speak, which was told */
static int compare_versions(struct tevent_req *req, const json_t *hello)
{
	struct start_state *state = tevent_req_data(req, struct start_state);
	const struct member_reach *reach = state->reach;
	json_int_t newest = json_integer_value(
		json_object_get(hello, "protocol"));
	json_int_t oldest = json_integer_value(
		json_object_get(hello, "oldest"));
	const char *version = json_string_value(
		json_object_get(hello, "version"));
	char *line = NULL;

	version = version != NULL ? version : "of no version";
	if (oldest > AGENT_PROTOCOL || newest < AGENT_PROTOCOL_OLDEST) {
		line = talloc_asprintf(
			state, "pingpong %s there speaks protocol %lld, "
			"expected %d to %d, as pingpong %s does", version,
			(long long)newest, AGENT_PROTOCOL_OLDEST,
			AGENT_PROTOCOL, PINGPONG_VERSION);
		start_unreachable(req, EPROTO, line != NULL ? line : version);
		return EPROTO;
	}
	if (reach->said_fn != NULL && strcmp(version, PINGPONG_VERSION) != 0) {
		line = talloc_asprintf(state, "pingpong %s there, %s here",
				       version, PINGPONG_VERSION);
		reach->said_fn(state->host, line != NULL ? line : version,
			       reach->private_data);
	}
	return 0;
}

static void start_greeted(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct start_state *state = tevent_req_data(req, struct start_state);
	const struct member_reach *reach = state->reach;
	struct member *member = state->member;
	json_t *hello = NULL;
	int ret;

	ret = channel_hello_recv(subreq, &hello);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		start_no_agent(req, ret);
		return;
	}
	ret = compare_versions(req, hello);
	json_decref(hello);
	if (ret != 0) {
		return;
	}
	if (member->rsh != NULL && reach->said_fn != NULL) {
		rsh_tell(member->rsh, reach->said_fn, reach->private_data);
	}
	subreq = channel_ask_send(
		state, state->ev, member->remote,
		json_pack("{ss si si}", "start", member->info.path,
			  "timeout_ms", (int)state->timeout_ms,
			  "lifetime_ms", (int)reach->lifetime_ms),
		-1, state->timeout_ms + CHANNEL_GRACE_MS);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, start_remote_done, req);
}

/* err of an agent's answer; the answer itself stays the caller's */
static int remote_recv(struct tevent_req *subreq, json_t **answer)
{
	int ret = channel_ask_recv(subreq, answer);

	if (ret == ETIMEDOUT || ret == ECONNRESET) {
		/* the agent keeps its own time: it is the host or the way */
		return EHOSTUNREACH;
	}
	if (ret != 0) {
		return ret;
	}
	ret = (int)json_integer_value(json_object_get(*answer, "err"));
	/* what is none is not passed on as one */
	return ret >= 0 ? ret : EPROTO;
}

static void start_remote_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct start_state *state = tevent_req_data(req, struct start_state);
	json_t *answer = NULL;
	int ret;

	ret = remote_recv(subreq, &answer);
	TALLOC_FREE(subreq);
	if (ret == 0) {
		member_take_info(state->member,
				 json_object_get(answer, "info"));
	}
	if (ret == EHOSTUNREACH) {
		start_unreachable(req, ret, "its agent does not answer");
	} else if (ret != 0) {
		start_failed(req, ret, json_string_value(
				     json_object_get(answer, "why")));
	} else {
		tevent_req_done(req);
	}
	json_decref(answer);
}

int member_start_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		      struct member **member, const char **why)
{
	struct start_state *state = tevent_req_data(req, struct start_state);
	int ret = channel_req_error(req);

	*member = NULL;
	*why = NULL;
	if (ret == 0) {
		*member = talloc_move(mem_ctx, &state->member);
	} else {
		*why = state->why != NULL
			? talloc_strdup(mem_ctx, state->why)
			: talloc_asprintf(mem_ctx, "'%s': %s",
					  state->member->info.name,
					  strerror(ret));
	}
	tevent_req_received(req);
	return ret;
}

/* ---- call --------------------------------------------------------------- */

struct call_state {
	struct member *member;
	struct probe_answer answer;
};

static void call_local_done(struct tevent_req *subreq);
static void call_remote_done(struct tevent_req *subreq);

struct tevent_req *member_call_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    struct member *member,
				    const struct probe_request *request,
				    int fd, unsigned timeout_ms)
{
	struct call_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;
	json_t *frame = NULL;

	req = tevent_req_create(mem_ctx, &state, struct call_state);
	if (req == NULL) {
		return NULL;
	}
	state->member = member;
	if (member->gone) {
		tevent_req_error(req, ECONNRESET);
		return tevent_req_post(req, ev);
	}
	if (member->local != NULL) {
		subreq = supervisor_call_send(state, ev, member->local,
					      request, fd, timeout_ms);
	} else {
		frame = json_pack("{so si}", "call",
				  wire_from_request(request), "timeout_ms",
				  (int)timeout_ms);
		subreq = channel_ask_send(state, ev, member->remote, frame,
					  -1, timeout_ms + CHANNEL_GRACE_MS);
	}
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq,
				member->local != NULL ? call_local_done
						      : call_remote_done,
				req);
	return req;
}

static void call_local_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct call_state *state = tevent_req_data(req, struct call_state);
	int ret;

	ret = supervisor_call_recv(subreq, &state->answer);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		tevent_req_error(req, ret);
		return;
	}
	tevent_req_done(req);
}

static void call_remote_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct call_state *state = tevent_req_data(req, struct call_state);
	json_t *answer = NULL;
	int ret;

	ret = remote_recv(subreq, &answer);
	TALLOC_FREE(subreq);
	if (ret == 0) {
		ret = wire_to_answer(json_object_get(answer, "answer"),
				     &state->answer);
	}
	json_decref(state->member->told);
	state->member->told = answer;
	if (ret == EHOSTUNREACH) {
		state->member->gone = true;
	}
	if (ret != 0) {
		tevent_req_error(req, ret);
		return;
	}
	tevent_req_done(req);
}

int member_call_recv(struct tevent_req *req, struct probe_answer *answer)
{
	struct call_state *state = tevent_req_data(req, struct call_state);
	int ret = channel_req_error(req);

	if (ret == 0) {
		*answer = state->answer;
	}
	tevent_req_received(req);
	return ret;
}

void member_finish(struct member *member)
{
	const struct probe_request finish = { .op = PROBE_FINISH };

	/* nobody is there for the answer: it goes with the member */
	member_call_send(member, member->ev, member, &finish, -1,
			 CHANNEL_GRACE_MS);
}

/* ---- kill --------------------------------------------------------------- */

struct kill_state {
	struct tevent_context *ev;
	struct member *member;
	bool restart;
	unsigned timeout_ms;
};

static void kill_local_done(struct tevent_req *subreq);
static void kill_restarted(struct tevent_req *subreq);
static void kill_remote_done(struct tevent_req *subreq);

struct tevent_req *member_kill_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    struct member *member, bool restart,
				    unsigned timeout_ms)
{
	struct kill_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;

	req = tevent_req_create(mem_ctx, &state, struct kill_state);
	if (req == NULL) {
		return NULL;
	}
	*state = (struct kill_state){
		.ev = ev,
		.member = member,
		.restart = restart,
		.timeout_ms = timeout_ms,
	};
	if (member->gone) {
		tevent_req_error(req, ECONNRESET);
		return tevent_req_post(req, ev);
	}
	if (member->local != NULL) {
		subreq = supervisor_kill_send(state, ev, member->local,
					      timeout_ms);
	} else {
		/* kill and new start each have their time */
		subreq = channel_ask_send(
			state, ev, member->remote,
			json_pack("{sb si}", "kill", (int)restart,
				  "timeout_ms", (int)timeout_ms),
			-1, 2 * timeout_ms + CHANNEL_GRACE_MS);
	}
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq,
				member->local != NULL ? kill_local_done
						      : kill_remote_done,
				req);
	return req;
}

static void kill_finish(struct tevent_req *req, int err)
{
	struct kill_state *state = tevent_req_data(req, struct kill_state);

	if (err != 0) {
		state->member->gone = true;
		tevent_req_error(req, err);
		return;
	}
	tevent_req_done(req);
}

static void kill_local_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct kill_state *state = tevent_req_data(req, struct kill_state);
	int ret;

	ret = supervisor_kill_recv(subreq);
	TALLOC_FREE(subreq);
	if (ret != 0 || !state->restart) {
		kill_finish(req, ret);
		return;
	}
	subreq = supervisor_start_send(state, state->ev, state->member->local,
				       state->timeout_ms);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, kill_restarted, req);
}

static void kill_restarted(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	const char *why = NULL;
	json_t *info = NULL;
	int ret;

	ret = supervisor_start_recv(subreq, &info, req, &why);
	TALLOC_FREE(subreq);
	json_decref(info);
	kill_finish(req, ret);
}

static void kill_remote_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	json_t *answer = NULL;
	int ret;

	ret = remote_recv(subreq, &answer);
	TALLOC_FREE(subreq);
	json_decref(answer);
	kill_finish(req, ret);
}

int member_kill_recv(struct tevent_req *req)
{
	int ret = channel_req_error(req);

	tevent_req_received(req);
	return ret;
}

/* ---- autopsy ------------------------------------------------------------ */

struct autopsy_state {
	struct member_autopsy autopsy;
};

static void autopsy_remote_done(struct tevent_req *subreq);

struct tevent_req *member_autopsy_send(TALLOC_CTX *mem_ctx,
				       struct tevent_context *ev,
				       struct member *member)
{
	struct autopsy_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;

	req = tevent_req_create(mem_ctx, &state, struct autopsy_state);
	if (req == NULL) {
		return NULL;
	}
	if (member->local != NULL) {
		supervisor_autopsy(state, member->local, &state->autopsy);
		tevent_req_done(req);
		return tevent_req_post(req, ev);
	}
	subreq = channel_ask_send(state, ev, member->remote,
				  json_pack("{sb}", "autopsy", 1), -1,
				  CHANNEL_GRACE_MS);
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq, autopsy_remote_done, req);
	return req;
}

static const char *copy_string(TALLOC_CTX *mem_ctx, const json_t *object,
			       const char *name)
{
	const char *value = json_string_value(json_object_get(object, name));

	return talloc_strdup(mem_ctx, value != NULL ? value : "");
}

static void autopsy_remote_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct autopsy_state *state = tevent_req_data(req,
						      struct autopsy_state);
	const json_t *told = NULL;
	json_t *answer = NULL;
	const char *text = NULL;
	int ret;

	ret = remote_recv(subreq, &answer);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		json_decref(answer);
		tevent_req_error(req, ret);
		return;
	}
	told = json_object_get(answer, "autopsy");
	text = copy_string(state, told, "state");
	state->autopsy = (struct member_autopsy){
		.found = json_is_true(json_object_get(told, "found")),
		.blocked = json_is_true(json_object_get(told, "blocked")),
		.state = text[0] != '\0' ? text[0] : '?',
		.wchan = copy_string(state, told, "wchan"),
		.syscall = copy_string(state, told, "syscall"),
		.stack = copy_string(state, told, "stack"),
	};
	json_decref(answer);
	tevent_req_done(req);
}

int member_autopsy_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
			struct member_autopsy *autopsy)
{
	struct autopsy_state *state = tevent_req_data(req,
						      struct autopsy_state);
	int ret = channel_req_error(req);

	if (ret == 0) {
		*autopsy = state->autopsy;
		autopsy->wchan = talloc_strdup(mem_ctx, autopsy->wchan);
		autopsy->syscall = talloc_strdup(mem_ctx, autopsy->syscall);
		autopsy->stack = talloc_strdup(mem_ctx, autopsy->stack);
	}
	tevent_req_received(req);
	return ret;
}
