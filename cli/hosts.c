/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "cli/hosts.h"
#include "core/config.h"
#include "core/verdict/verdict.h"
#ifdef HAVE_CTDB_EVENTS
#include <fcntl.h>
#include <unistd.h>

#include "ctdb-events/nodes.h"
#include "ctdb-events/visit.h"
#endif

#define LINE_BYTES 1024

/* ---- the list ------------------------------------------------------------ */

static const char *read_hosts(TALLOC_CTX *mem_ctx, const char *file,
			      const char ***hosts)
{
	char line[LINE_BYTES];
	const char *error = NULL;
	FILE *f = fopen(file, "re");

	if (f == NULL) {
		return talloc_asprintf(mem_ctx, "--hosts-file '%s': %s", file,
				       strerror(errno));
	}
	while (error == NULL && fgets(line, sizeof(line), f) != NULL) {
		char *host = line + strspn(line, " \t");
		bool ok;

		host[strcspn(host, "\r\n")] = '\0';
		if (host[0] == '\0' || host[0] == '#') {
			continue;
		}
		if (host[strcspn(host, " \t/")] != '\0') {
			error = talloc_asprintf(
				mem_ctx, "--hosts-file '%s': '%s': expected "
				"the name of one host a line", file, host);
			break;
		}
		ok = names_add(mem_ctx, hosts, talloc_strdup(mem_ctx, host));
		error = ok ? NULL : "no memory";
	}
	if (error == NULL && ferror(f)) {
		error = talloc_asprintf(mem_ctx, "--hosts-file '%s': %s", file,
					strerror(errno));
	}
	fclose(f);
	return error;
}

#ifdef HAVE_CTDB_EVENTS
static const char *variable_or(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : otherwise;
}

/* ctdb-config tells on standard error of each key that is not set. Returns
 * what restore_stderr() takes. */
static int silence_stderr(void)
{
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (saved != -1 && null != -1) {
		dup2(null, STDERR_FILENO);
	}
	if (null != -1) {
		close(null);
	}
	return saved;
}

static void restore_stderr(int saved)
{
	if (saved != -1) {
		dup2(saved, STDERR_FILENO);
		close(saved);
	}
}

static const char *read_nodes(TALLOC_CTX *mem_ctx, struct ctdb_nodes **nodes)
{
	const struct ctdb_paths paths = {
		.base = variable_or("CTDB_BASE", "/etc/ctdb"),
		.helpers = variable_or("CTDB_HELPER_BINDIR",
				       "/usr/libexec/ctdb"),
	};
	struct tevent_context *ev = tevent_context_init(mem_ctx);
	struct tevent_req *req = NULL;
	const char *why = "no memory";
	bool ok = false;
	int saved, ret;

	saved = silence_stderr();
	if (ev != NULL) {
		req = nodes_send(ev, ev, &paths);
	}
	if (req != NULL) {
		ok = tevent_req_poll(req, ev);
	}
	restore_stderr(saved);
	if (ok) {
		ret = nodes_recv(req, mem_ctx, nodes, &why);
		if (ret == 0) {
			why = NULL;
		}
	}
	talloc_free(ev);
	return why;
}

/* The next of "0,2-4" in *spec: first to last. False: no such thing. */
static bool next_numbers(const char **spec, unsigned long *first,
			 unsigned long *last)
{
	char *end = NULL;

	if (**spec < '0' || **spec > '9') {
		return false;
	}
	*first = *last = strtoul(*spec, &end, 10);
	if (end[0] == '-' && end[1] >= '0' && end[1] <= '9') {
		*last = strtoul(end + 1, &end, 10);
	}
	if (end[0] == ',' && end[1] != '\0') {
		end++;
	} else if (end[0] != '\0') {
		return false;
	}
	*spec = end;
	return *first <= *last;
}

static const char *pick_node(TALLOC_CTX *mem_ctx, const char *spec,
			     const struct ctdb_nodes *nodes, unsigned long pnn,
			     const char ***hosts)
{
	const struct ctdb_node *node = NULL;
	bool ok;

	if (pnn < nodes->num) {
		node = &nodes->nodes[pnn];
	}
	if (node == NULL || node->deleted) {
		return talloc_asprintf(mem_ctx, "--nodes '%s': CTDB has no "
				       "node %lu", spec, pnn);
	}
	ok = names_add(mem_ctx, hosts, node == nodes->own ? "" : node->text);
	return ok ? NULL : "no memory";
}

static const char *pick_nodes(TALLOC_CTX *mem_ctx, const char *spec,
			      const struct ctdb_nodes *nodes,
			      const char ***hosts)
{
	const char *error = NULL, *rest = spec;
	unsigned long first = 0, last = 0, i;
	bool all = strcmp(spec, "all") == 0;
	bool ok;

	for (i = 0; all && error == NULL && i < nodes->num; i++) {
		if (!nodes->nodes[i].deleted) {
			error = pick_node(mem_ctx, spec, nodes, i, hosts);
		}
	}
	while (!all && error == NULL && *rest != '\0') {
		ok = next_numbers(&rest, &first, &last);
		if (!ok) {
			return talloc_asprintf(mem_ctx, "--nodes '%s': "
					       "expected all, or numbers as "
					       "0,2-4", spec);
		}
		for (i = first; i <= last && error == NULL; i++) {
			error = pick_node(mem_ctx, spec, nodes, i, hosts);
		}
	}
	return error;
}

static const char *nodes_hosts(TALLOC_CTX *mem_ctx, const char *spec,
			       const char ***hosts)
{
	struct ctdb_nodes *nodes = NULL;
	const char *why = read_nodes(mem_ctx, &nodes);

	if (why != NULL) {
		return talloc_asprintf(mem_ctx, "--nodes '%s': %s", spec, why);
	}
	return pick_nodes(mem_ctx, spec, nodes, hosts);
}

static void say_line(const char *line)
{
	cli_say("%s", line);
}

static int visit(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
		 struct check_args *args)
{
	struct ctdb_nodes *nodes = NULL;
	struct member_link *links = NULL;
	const char *why = read_nodes(mem_ctx, &nodes);
	int ret;

	if (why == NULL && nodes->own == NULL) {
		why = "none of CTDB's nodes is this host";
	}
	if (why != NULL) {
		cli_say("--ctdb: %s", why);
		return EX_UNAVAILABLE;
	}
	ret = visit_nodes(mem_ctx, ev, nodes, args->places[0], say_line,
			  &args->places, &links, &why);
	if (ret != 0) {
		cli_say("--ctdb: %s", why);
		return ret == ENOENT ? EX_USAGE : EX_UNAVAILABLE;
	}
	args->links = links;
	return 0;
}
#else
static int visit(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
		 struct check_args *args)
{
	(void)mem_ctx;
	(void)ev;
	(void)args;
	cli_say("--ctdb: this build is without CTDB, expected --hosts-file");
	return EX_UNAVAILABLE;
}

static const char *nodes_hosts(TALLOC_CTX *mem_ctx, const char *spec,
			       const char ***hosts)
{
	(void)hosts;
	return talloc_asprintf(mem_ctx, "--nodes '%s': this build is without "
			       "CTDB, expected --hosts-file", spec);
}
#endif

/* ---- places -------------------------------------------------------------- */

/* host: "" for this one */
static char *place_on(TALLOC_CTX *mem_ctx, const char *host, const char *path)
{
	if (host[0] == '\0') {
		return talloc_strdup(mem_ctx, path);
	}
	if (strchr(host, ':') != NULL) {
		return talloc_asprintf(mem_ctx, "[%s]:%s", host, path);
	}
	return talloc_asprintf(mem_ctx, "%s:%s", host, path);
}

static const char *put_hosts(TALLOC_CTX *mem_ctx, const char **hosts,
			     struct check_args *args)
{
	const char **places = NULL;
	size_t i, j, n = 0;
	bool ok;

	for (i = 0; args->places[i] != NULL; i++) {
		const char *path = args->places[i];

		if (path[strcspn(path, ":/")] == ':') {
			return talloc_asprintf(
				mem_ctx, "'%s' has a host of its own, "
				"expected a DIRECTORY for all hosts", path);
		}
		for (j = 0; hosts[j] != NULL; j++) {
			if (n++ == ARGS_MAX_PLACES) {
				return talloc_asprintf(
					mem_ctx, "'%s' on all hosts is too "
					"many places, expected at most %u",
					path, ARGS_MAX_PLACES);
			}
			ok = names_add(mem_ctx, &places,
				       place_on(mem_ctx, hosts[j], path));
			if (!ok) {
				return "no memory";
			}
		}
	}
	args->places = places;
	return NULL;
}

const char *hosts_expand(TALLOC_CTX *mem_ctx, struct check_args *args)
{
	const char **hosts = NULL;
	const char *error = NULL;

	if (args->hosts_file == NULL && args->nodes == NULL) {
		return NULL;
	}
	error = args->hosts_file != NULL
		? read_hosts(mem_ctx, args->hosts_file, &hosts)
		: nodes_hosts(mem_ctx, args->nodes, &hosts);
	if (error != NULL) {
		return error;
	}
	if (hosts == NULL) {
		return talloc_asprintf(
			mem_ctx, "'%s' names no host",
			args->hosts_file != NULL ? args->hosts_file
						 : args->nodes);
	}
	return put_hosts(mem_ctx, hosts, args);
}

int hosts_visit(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
		struct check_args *args)
{
	return args->ctdb ? visit(mem_ctx, ev, args) : 0;
}
