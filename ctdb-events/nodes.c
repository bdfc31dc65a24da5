/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "core/member/channel.h"
#include "ctdb-events/command.h"
#include "ctdb-events/nodes.h"

#define LIST_TIMEOUT_MS 3000

static const char *const list_keys[] = { "nodes list", NULL };
static const char *const address_keys[] = { "node address", NULL };

/* ---- addresses ---------------------------------------------------------- */

bool node_address_parse(const char *text, struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (struct sockaddr_in *)address;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address;
	int ret;

	memset(address, 0, sizeof(*address));
	ret = inet_pton(AF_INET, text, &in->sin_addr);
	if (ret == 1) {
		in->sin_family = AF_INET;
		return true;
	}
	ret = inet_pton(AF_INET6, text, &in6->sin6_addr);
	if (ret == 1) {
		in6->sin6_family = AF_INET6;
		return true;
	}
	return false;
}

socklen_t node_address_len(const struct sockaddr_storage *address)
{
	return address->ss_family == AF_INET ? sizeof(struct sockaddr_in)
					     : sizeof(struct sockaddr_in6);
}

/* Every address as one of IPv6 */
static struct in6_addr as_in6(const struct sockaddr_storage *address)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)address;
	struct in6_addr mapped = {};

	if (address->ss_family == AF_INET6) {
		return in6->sin6_addr;
	}
	mapped.s6_addr[10] = 0xff;
	mapped.s6_addr[11] = 0xff;
	memcpy(&mapped.s6_addr[12], &in->sin_addr, 4);
	return mapped;
}

bool node_address_equal(const struct sockaddr_storage *a,
			const struct sockaddr_storage *b)
{
	struct in6_addr a6 = as_in6(a), b6 = as_in6(b);

	return memcmp(&a6, &b6, sizeof(a6)) == 0;
}

/* as ctdbd finds out: by binding to it */
static bool host_has(const struct sockaddr_storage *address)
{
	int fd, ret;

	fd = socket(address->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd == -1) {
		return false;
	}
	ret = bind(fd, (const struct sockaddr *)address,
		   node_address_len(address));
	close(fd);
	return ret == 0;
}

/* ---- the list ----------------------------------------------------------- */

static int add_node(struct ctdb_nodes *nodes, const char *line)
{
	struct ctdb_node *node = NULL;

	if (nodes->num == NODES_MAX) {
		return E2BIG;
	}
	nodes->nodes = talloc_realloc(nodes, nodes->nodes, struct ctdb_node,
				      nodes->num + 1);
	if (nodes->nodes == NULL) {
		return ENOMEM;
	}
	node = &nodes->nodes[nodes->num];
	*node = (struct ctdb_node){
		.pnn = (unsigned)nodes->num,
		.deleted = line[0] == '#',
		.text = talloc_strdup(nodes, line),
	};
	if (node->text == NULL) {
		return ENOMEM;
	}
	if (!node->deleted) {
		bool ok = node_address_parse(line, &node->address);

		if (!ok) {
			return EINVAL;
		}
	}
	nodes->num++;
	return 0;
}

int nodes_parse(TALLOC_CTX *mem_ctx, const char *text,
		struct ctdb_nodes **nodes, const char **bad)
{
	struct ctdb_nodes *list = talloc_zero(mem_ctx, struct ctdb_nodes);
	char *copy = NULL, *line = NULL, *save = NULL;
	int ret = 0;

	*bad = NULL;
	if (list == NULL) {
		return ENOMEM;
	}
	copy = talloc_strdup(list, text);
	if (copy == NULL) {
		talloc_free(list);
		return ENOMEM;
	}
	for (line = strtok_r(copy, "\r\n", &save); line != NULL && ret == 0;
	     line = strtok_r(NULL, "\r\n", &save)) {
		size_t len;

		line += strspn(line, " \t");
		len = strlen(line);
		while (len > 0 && (line[len - 1] == ' ' ||
				   line[len - 1] == '\t')) {
			line[--len] = '\0';
		}
		if (len > 0) {
			ret = add_node(list, line);
		}
		if (ret == EINVAL) {
			*bad = talloc_strdup(mem_ctx, line);
		}
	}
	if (ret != 0) {
		talloc_free(list);
		return ret;
	}
	talloc_free(copy);
	*nodes = list;
	return 0;
}

const struct ctdb_node *nodes_find(const struct ctdb_nodes *nodes,
				   const struct sockaddr_storage *address)
{
	size_t i;

	for (i = 0; i < nodes->num; i++) {
		const struct ctdb_node *node = &nodes->nodes[i];

		if (node->deleted) {
			continue;
		}
		if (node_address_equal(&node->address, address)) {
			return node;
		}
	}
	return NULL;
}

/* ---- reading it --------------------------------------------------------- */

struct nodes_state {
	struct tevent_context *ev;
	const struct ctdb_paths *paths;
	struct ctdb_nodes *nodes;
	const char *from;
	const char *why;
};

static void nodes_configured(struct tevent_req *subreq);
static void nodes_listed(struct tevent_req *subreq);
static void nodes_addressed(struct tevent_req *subreq);

static void nodes_fail(struct tevent_req *req, int err, const char *what,
		       const char *why)
{
	struct nodes_state *state = tevent_req_data(req, struct nodes_state);

	state->why = talloc_asprintf(state, "CTDB's nodes: %s: %s", what,
				     why != NULL ? why : strerror(err));
	tevent_req_error(req, (uint64_t)err);
}

struct tevent_req *nodes_send(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			      const struct ctdb_paths *paths)
{
	struct nodes_state *state = NULL;
	struct tevent_req *req = NULL, *subreq = NULL;

	req = tevent_req_create(mem_ctx, &state, struct nodes_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->paths = paths;
	subreq = ctdbconfig_send(state, ev, paths, "cluster", list_keys);
	if (tevent_req_nomem(subreq, req)) {
		return tevent_req_post(req, ev);
	}
	tevent_req_set_callback(subreq, nodes_configured, req);
	return req;
}

/* A file is read by a process of its own, too: it may lie anywhere. */
static void nodes_configured(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct nodes_state *state = tevent_req_data(req, struct nodes_state);
	const char *cat[] = { "cat", "--", NULL, NULL };
	const char *const *argv = cat;
	const char *key = NULL;
	char *value = NULL;
	int ret;

	ret = ctdbconfig_recv(subreq, state, &value, &key);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		nodes_fail(req, ret, "ctdb-config", NULL);
		return;
	}
	state->from = value;
	if (value == NULL) {
		state->from = talloc_asprintf(state, "%s/nodes",
					      state->paths->base);
	}
	if (tevent_req_nomem(state->from, req)) {
		return;
	}
	cat[2] = state->from;
	if (state->from[0] == '!') {
		argv = command_words(state, state->from + 1);
	}
	if (argv == NULL) {
		nodes_fail(req, EINVAL, state->from, "no command");
		return;
	}
	subreq = command_send(state, state->ev, argv, LIST_TIMEOUT_MS);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, nodes_listed, req);
}

static void nodes_listed(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct nodes_state *state = tevent_req_data(req, struct nodes_state);
	const char *bad = NULL;
	char *text = NULL;
	int status = 0;
	int ret;

	ret = command_recv(subreq, state, &status, &text);
	TALLOC_FREE(subreq);
	if (ret == 0 && status != 0) {
		nodes_fail(req, EIO, state->from, "cannot be read");
		return;
	}
	if (ret == 0) {
		ret = nodes_parse(state, text, &state->nodes, &bad);
	}
	if (ret != 0) {
		const char *why = NULL;

		if (bad != NULL) {
			why = talloc_asprintf(state, "'%s' is no address",
					      bad);
		}
		nodes_fail(req, ret, state->from, why);
		return;
	}
	subreq = ctdbconfig_send(state, state->ev, state->paths, "cluster",
				 address_keys);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, nodes_addressed, req);
}

static const struct ctdb_node *find_own(const struct ctdb_nodes *nodes)
{
	size_t i;

	for (i = 0; i < nodes->num; i++) {
		bool here = !nodes->nodes[i].deleted &&
			    host_has(&nodes->nodes[i].address);

		if (here) {
			return &nodes->nodes[i];
		}
	}
	return NULL;
}

static void nodes_addressed(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct nodes_state *state = tevent_req_data(req, struct nodes_state);
	struct sockaddr_storage address;
	const char *key = NULL;
	char *value = NULL;
	bool ok;
	int ret;

	ret = ctdbconfig_recv(subreq, state, &value, &key);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		nodes_fail(req, ret, "ctdb-config", NULL);
		return;
	}
	if (value == NULL) {
		state->nodes->own = find_own(state->nodes);
		tevent_req_done(req);
		return;
	}
	ok = node_address_parse(value, &address);
	if (!ok) {
		nodes_fail(req, EINVAL, value, "no address");
		return;
	}
	state->nodes->own = nodes_find(state->nodes, &address);
	tevent_req_done(req);
}

int nodes_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
	       struct ctdb_nodes **nodes, const char **why)
{
	struct nodes_state *state = tevent_req_data(req, struct nodes_state);
	int ret = channel_req_error(req);

	*nodes = NULL;
	*why = NULL;
	if (ret == 0) {
		*nodes = talloc_move(mem_ctx, &state->nodes);
	} else {
		*why = talloc_strdup(mem_ctx, state->why != NULL
					      ? state->why : strerror(ret));
	}
	tevent_req_received(req);
	return ret;
}
