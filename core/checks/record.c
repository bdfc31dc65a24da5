/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "core/checks/record.h"
#include "core/config.h"
#include "core/member/wire.h"

/* Takes the reference */
static void put_line(FILE *f, json_t *line)
{
	int ret = -1;

	if (line != NULL) {
		ret = json_dumpf(line, f, JSON_COMPACT);
		json_decref(line);
	}
	if (ret == 0) {
		fputc('\n', f);
	}
}

static json_t *names_of_checks(const struct check **checks)
{
	json_t *names = json_array();
	size_t i;

	for (i = 0; checks[i] != NULL; i++) {
		json_array_append_new(names, json_string(checks[i]->name));
	}
	return names;
}

void record_begin(FILE *f, const struct run_options *options)
{
	json_t *places = json_array();
	size_t i;

	if (f == NULL) {
		json_decref(places);
		return;
	}
	for (i = 0; options->places[i] != NULL; i++) {
		json_array_append_new(places, wire_text(options->places[i]));
	}
	put_line(f, json_pack("{si ss sI so so}", "history", 1, "pingpong",
			      PINGPONG_VERSION, "seed",
			      (json_int_t)options->seed, "places", places,
			      "checks", names_of_checks(options->checks)));
}

static void put_call(FILE *f, const char *check, unsigned member,
		     const struct probe_request *request, int err,
		     json_t *answer, uint64_t invoked_ns, uint64_t answered_ns)
{
	json_t *line = json_pack("{ss* si sI}", "check", check, "member",
				 (int)member, "invoked_ns",
				 (json_int_t)invoked_ns);

	if (answered_ns != HISTORY_NEVER) {
		json_object_set_new(line, "answered_ns",
				    json_integer((json_int_t)answered_ns));
	}
	json_object_set_new(line, "request", wire_from_request(request));
	if (err == 0) {
		json_object_set_new(line, "answer", answer);
	} else {
		json_decref(answer);
		json_object_set_new(line, "lost",
				    json_string(strerrorname_np(err)));
	}
	put_line(f, line);
}

void record_call(FILE *f, const char *check, unsigned member,
		 const struct probe_request *request, int err,
		 const struct probe_answer *answer, uint64_t invoked_ns,
		 uint64_t answered_ns)
{
	if (f == NULL || request->op == PROBE_RING_LOG) {
		return;
	}
	put_call(f, check, member, request, err, wire_from_answer(answer),
		 invoked_ns, answered_ns);
}

void record_kill(FILE *f, const char *check, unsigned member, uint64_t at_ns)
{
	if (f == NULL) {
		return;
	}
	put_line(f, json_pack("{ss* si sI s{ss}}", "check", check, "member",
			      (int)member, "invoked_ns", (json_int_t)at_ns,
			      "request", "op", "kill"));
}

static void ring_request(const struct history_op *op, unsigned io,
			 unsigned width, struct probe_request *request)
{
	bool mapped = (io & RING_MAPPED) != 0;

	*request = (struct probe_request){ .start = op->start,
					   .len = op->len };
	switch (op->what) {
	case HISTORY_LOCK:
	case HISTORY_UNLOCK:
		request->op = PROBE_LOCK;
		request->wait = true;
		request->type = op->what == HISTORY_LOCK ? F_WRLCK : F_UNLCK;
		return;
	case HISTORY_READ:
		request->op = mapped ? PROBE_MAP_READ : PROBE_READ;
		break;
	case HISTORY_WRITE:
		request->op = mapped ? PROBE_MAP_WRITE : PROBE_WRITE;
		request->value = op->value;
		break;
	}
	request->start = op->start * width;
	request->len = width;
}

void record_ring(FILE *f, const char *check, const unsigned *members,
		 const struct history_op *ops, size_t num, unsigned io,
		 unsigned width)
{
	size_t i;

	for (i = 0; f != NULL && i < num; i++) {
		const struct history_op *op = &ops[i];
		struct probe_request request = {};
		struct probe_answer answer = {};

		ring_request(op, io, width, &request);
		if (op->what == HISTORY_READ) {
			answer.value = op->value;
		}
		put_call(f, check, members[op->member], &request, 0,
			 wire_from_answer(&answer), op->invoked_ns,
			 op->answered_ns);
	}
}
