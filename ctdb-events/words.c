/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>

#include "ctdb-events/words.h"

/* The first line: stacks of hanging processes come after it */
static char *first_line(TALLOC_CTX *mem_ctx, const char *text)
{
	if (text == NULL) {
		text = "no reason is known";
	}
	return talloc_strndup(mem_ctx, text, strcspn(text, "\n"));
}

/* That a directory cannot be probed, as it is, makes it useless for a lock;
 * that there is no room for a probe, or no process, does not. A share may be
 * read only, and smbd serves none without its directory. */
static bool is_useless(const struct target *target, int err)
{
	switch (err) {
	case ENOENT:
	case ENOTDIR:
	case EACCES:
	case EPERM:
	case EROFS:
		return target_is_lock(target);
	case ENOSPC:
	case EDQUOT:
	case ENOMEM:
	case EAGAIN:
	case EMFILE:
	case ENFILE:
	case EHOSTUNREACH:
	case EPROTO:
		return false;
	default:
		return err != 0;
	}
}

static const char *remedy_of_errno(int err)
{
	switch (err) {
	case ENOENT:
	case ENOTDIR:
	case ENOTCONN:
	case ESTALE:
		return "Is the cluster file system mounted? If it is, make "
		       "the directory there, once.";
	case EACCES:
	case EPERM:
	case EROFS:
		return "Root must be able to make a directory '.pingpong' "
		       "and files in it there.";
	default:
		return "See the kernel's log for the file system.";
	}
}

static char *local_refusal(TALLOC_CTX *mem_ctx, const struct across *across,
			   const struct across_result *result)
{
	const char *remedy = result->local.remedy;

	if (result->local_err != 0) {
		remedy = remedy_of_errno(result->local_err);
	}
	return talloc_asprintf(
		mem_ctx, "REFUSED: '%s' is not fit for %s: %s. %s",
		across->target->directory, across->target->whose,
		first_line(mem_ctx, result->local.reason),
		remedy != NULL ? remedy : "");
}

static char *peer_refusal(TALLOC_CTX *mem_ctx, const struct across *across,
			  const struct across_peer *peer)
{
	const char *node = across_node_name(mem_ctx, peer->node);
	bool same = peer->result == NULL || peer->result->same_directory;

	if (!same) {
		return talloc_asprintf(
			mem_ctx, "REFUSED: this node's '%s' is not the "
			"cluster's: %s has another one: %s. %s",
			across->target->directory, node,
			first_line(mem_ctx, peer->why), peer->remedy);
	}
	return talloc_asprintf(
		mem_ctx, "REFUSED: '%s' is not fit for %s together with %s: "
		"%s. %s", across->target->directory, across->target->whose, node,
		first_line(mem_ctx, peer->why),
		peer->remedy != NULL ? peer->remedy : "");
}

/* "node 1 (10.0.0.2), node 2 (10.0.0.3)" of those tested and fit */
static char *fit_peers(TALLOC_CTX *mem_ctx,
		       const struct across_result *result)
{
	char *list = talloc_strdup(mem_ctx, "");
	unsigned i;

	for (i = 0; i < result->num_peers; i++) {
		const struct across_peer *peer = &result->peers[i];

		if (!peer->tested || peer->fitness != FIT) {
			continue;
		}
		list = talloc_asprintf_append(
			list, "%s%s", list[0] != '\0' ? ", " : "",
			across_node_name(mem_ctx, peer->node));
	}
	return list;
}

/* Those that nothing is known of, each with the reason */
static char *unknown_peers(TALLOC_CTX *mem_ctx,
			   const struct across_result *result)
{
	char *list = talloc_strdup(mem_ctx, "");
	unsigned i;

	for (i = 0; i < result->num_peers; i++) {
		const struct across_peer *peer = &result->peers[i];

		if (peer->tested && peer->fitness != UNKNOWN) {
			continue;
		}
		list = talloc_asprintf_append(
			list, "%s%s: %s", list[0] != '\0' ? "; " : "",
			across_node_name(mem_ctx, peer->node),
			first_line(mem_ctx, peer->why));
	}
	return list;
}

static char *verdict_line(TALLOC_CTX *mem_ctx, const struct across *across,
			  const struct across_result *result)
{
	const char *with = fit_peers(mem_ctx, result);

	if (result->local_err != 0 || result->local.fitness == UNKNOWN) {
		return talloc_asprintf(
			mem_ctx, "WARNING: '%s' could not be tested for %s: "
			"%s", across->target->directory, across->target->whose,
			first_line(mem_ctx, result->local.reason));
	}
	if (result->num_fit == 0) {
		return talloc_asprintf(
			mem_ctx, "'%s' is fit for %s as far as this node can "
			"tell alone", across->target->directory,
			across->target->whose);
	}
	return talloc_asprintf(mem_ctx, "'%s' is fit for %s, tested with %s",
			       across->target->directory, across->target->whose, with);
}

static bool add_unfit(TALLOC_CTX *mem_ctx, const struct across *across,
		      const struct across_result *result,
		      const char ***lines)
{
	unsigned i;
	bool ok = true;

	for (i = 0; i < result->num_peers && ok; i++) {
		const struct across_peer *peer = &result->peers[i];

		if (!peer->tested || peer->fitness != UNFIT) {
			continue;
		}
		ok = names_add(mem_ctx, lines, talloc_asprintf(
			mem_ctx, "WARNING: '%s' is not fit together with %s, "
			"which has to refuse: %s", across->target->directory,
			across_node_name(mem_ctx, peer->node),
			first_line(mem_ctx, peer->why)));
	}
	return ok;
}

static char *refusal(TALLOC_CTX *mem_ctx, const struct across *across,
		     const struct across_result *result)
{
	unsigned min = across->options->min_peers;
	bool useless = is_useless(across->target, result->local_err);

	if (useless || (result->local_err == 0 && result->local.fitness == UNFIT)) {
		return local_refusal(mem_ctx, across, result);
	}
	if (result->refused_by != NULL) {
		return peer_refusal(mem_ctx, across, result->refused_by);
	}
	if (across->door == DOOR_INIT && result->num_fit < min) {
		return talloc_asprintf(
			mem_ctx, "REFUSED: '%s' was found fit with %u other "
			"nodes, and CTDB_PINGPONG_MIN_PEERS asks for %u: %s",
			across->target->directory, result->num_fit, min,
			unknown_peers(mem_ctx, result));
	}
	return NULL;
}

bool words_of_check(TALLOC_CTX *mem_ctx, const struct across *across,
		    const struct across_result *result, const char ***lines)
{
	const char *unknown = unknown_peers(mem_ctx, result);
	char *line = refusal(mem_ctx, across, result);
	bool refused = line != NULL;
	bool ok;

	*lines = NULL;
	if (refused) {
		names_add(mem_ctx, lines, line);
		return true;
	}
	ok = names_add(mem_ctx, lines,
		       verdict_line(mem_ctx, across, result));
	if (ok) {
		ok = add_unfit(mem_ctx, across, result, lines);
	}
	if (ok && unknown[0] != '\0') {
		names_add(mem_ctx, lines, talloc_asprintf(
			mem_ctx, "not tested with %s", unknown));
	}
	return false;
}
