/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "ctdb-events/door.h"
#include "ctdb-events/reach.h"
#include "ctdb-events/target.h"
#include "ctdb-events/visit.h"

#define DOOR_MS 5000

/* For a connection and the greeting */
#define REACH_MS 2000

/* What the agent says, and what is made of it */
struct host {
	struct reach reach;
	struct greeting self;
	struct tls_key *key;
	const char *directory;		/* of the cluster lock; NULL: none */
};

struct visit {
	struct tevent_context *ev;
	unsigned waiting;
	struct call *calls;
};

struct call {
	struct visit *visit;
	const struct ctdb_node *node;
	int err;
	int fd;
};

/* ---- this node's agent --------------------------------------------------- */

/* "WORD VALUE" among the lines: the value, NULL: empty, or no such line */
static const char *value_of(const char **lines, const char *word)
{
	size_t len = strlen(word);

	for (; *lines != NULL; lines++) {
		if (strncmp(*lines, word, len) == 0 && (*lines)[len] == ' ') {
			const char *value = *lines + len + 1;

			return value[0] != '\0' ? value : NULL;
		}
	}
	return NULL;
}

static int take_answer(TALLOC_CTX *mem_ctx, const char **lines,
		       struct host *host, const char **why)
{
	const char *port = value_of(lines, "port");
	const char *own = value_of(lines, "own");
	const char *key = value_of(lines, "key");
	bool ok = false;
	int ret;

	if (own != NULL) {
		ok = node_address_parse(own, &host->reach.from);
	}
	if (port == NULL || !ok) {
		*why = "this node's agent is of another version";
		return EHOSTUNREACH;
	}
	host->reach.port = (uint16_t)atoi(port);
	host->directory = value_of(lines, "lock");
	if (key != NULL) {
		ret = tls_key_read(mem_ctx, key, &host->key);
		if (ret != 0) {
			*why = talloc_asprintf(mem_ctx, "CTDB_PINGPONG_KEY="
					       "'%s': %s", key, strerror(ret));
			return EHOSTUNREACH;
		}
	}
	host->reach.key = host->key;
	return 0;
}

static int ask_agent(TALLOC_CTX *mem_ctx, struct host *host, const char **why)
{
	enum door_outcome outcome = DOOR_NO_AGENT;
	const char **lines = NULL;
	int ret;

	ret = door_ask(mem_ctx, RUNDIR "/" DOOR_NAME, "reach", DOOR_MS,
		       &outcome, &lines);
	if (ret == ENOENT || ret == ECONNREFUSED) {
		*why = "no agent runs on this node: it runs as long as ctdbd "
		       "does, where 00.pingpong is enabled";
		return EHOSTUNREACH;
	}
	if (ret != 0) {
		*why = talloc_asprintf(mem_ctx, "this node's agent: %s",
				       strerror(ret));
		return EHOSTUNREACH;
	}
	return take_answer(mem_ctx, lines, host, why);
}

/* ---- the others' --------------------------------------------------------- */

static void reached(struct tevent_req *req)
{
	struct call *call = tevent_req_callback_data_void(req);
	struct greeting theirs = {};

	call->err = reach_recv(req, &call->fd, &theirs);
	talloc_free(req);
	call->visit->waiting--;
}

static int call_all(TALLOC_CTX *mem_ctx, struct visit *visit,
		    const struct ctdb_nodes *nodes, const struct host *host)
{
	struct tevent_req *req = NULL;
	int ret = 0;
	size_t i;

	visit->calls = talloc_zero_array(mem_ctx, struct call, nodes->num);
	if (visit->calls == NULL) {
		return ENOMEM;
	}
	for (i = 0; i < nodes->num; i++) {
		struct call *call = &visit->calls[i];

		*call = (struct call){ visit, &nodes->nodes[i], ENODEV, -1 };
		if (call->node->deleted || call->node == nodes->own) {
			continue;
		}
		req = reach_send(visit->calls, visit->ev, &host->reach,
				 &call->node->address, REACH_MS);
		if (req == NULL) {
			return ENOMEM;
		}
		tevent_req_set_callback(req, reached, call);
		visit->waiting++;
	}
	while (visit->waiting > 0 && ret == 0) {
		ret = tevent_loop_once(visit->ev);
	}
	return ret == 0 ? 0 : EIO;
}

/* ---- all of it ----------------------------------------------------------- */

static int make_places(struct visit *visit, size_t num, const char *directory,
		       const char *name, void (*said_fn)(const char *line),
		       const char **places, struct member_link *links)
{
	unsigned n = 0;
	size_t i;

	places[0] = directory;
	for (i = 0; i < num; i++) {
		const struct call *call = &visit->calls[i];
		char *host = NULL, *place = NULL;

		if (call->err == ENODEV) {
			continue;
		}
		host = talloc_asprintf(places, "node%u", call->node->pnn);
		if (call->err != 0) {
			said_fn(talloc_asprintf(
				places, "node %u (%s) takes no part: %s",
				call->node->pnn, call->node->text,
				reach_why(call->err)));
			continue;
		}
		place = talloc_asprintf(places, "%s:%s", host, name);
		if (host == NULL || place == NULL) {
			return ENOMEM;
		}
		links[n] = (struct member_link){ host, call->fd, call->fd };
		n++;
		places[n] = place;
	}
	return n > 0 ? 0 : EHOSTUNREACH;
}

int visit_nodes(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
		const struct ctdb_nodes *nodes, const char *directory,
		void (*said_fn)(const char *line), const char ***places,
		struct member_link **links, const char **why)
{
	struct host *host = talloc_zero(mem_ctx, struct host);
	struct visit visit = { .ev = ev };
	const char *name = directory;
	int ret;

	*why = "no memory";
	*places = talloc_zero_array(mem_ctx, const char *, nodes->num + 2);
	*links = talloc_zero_array(mem_ctx, struct member_link,
				   nodes->num + 1);
	if (host == NULL || *places == NULL || *links == NULL) {
		return ENOMEM;
	}
	ret = ask_agent(mem_ctx, host, why);
	if (ret != 0) {
		return ret;
	}
	host->self = (struct greeting){ .pnn = nodes->own->pnn,
					.running = true };
	snprintf(host->self.version, sizeof(host->self.version), "%s",
		 PINGPONG_VERSION);
	host->reach.own = &host->self;
	host->reach.pumps = mem_ctx;
	if (directory == NULL ||
	    (host->directory != NULL &&
	     strcmp(directory, host->directory) == 0)) {
		directory = host->directory;
		name = TARGET_CLUSTER_LOCK;
	}
	if (directory == NULL) {
		*why = "the cluster lock is no file: expected the path of a "
		       "share";
		return ENOENT;
	}
	ret = call_all(mem_ctx, &visit, nodes, host);
	if (ret == 0) {
		ret = make_places(&visit, nodes->num, directory, name, said_fn,
				  *places, *links);
	}
	if (ret == EHOSTUNREACH) {
		*why = "no other node's agent can be reached";
	}
	return ret;
}
