/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/config.h"
#include "core/verdict/verdict.h"
#include "ctdb-events/door.h"
#include "ctdb-events/events.h"
#include "ctdb-events/options.h"
#include "ctdb-events/sharenotes.h"

/* What the agent needs beyond the time of the check itself */
#define INIT_GRACE_MS 2000

/* In any other event nobody waits longer */
#define EVENT_MS 2000

static int say(const char *line, int status)
{
	printf("%s\n", line);
	return status;
}

static int ask_failed(int err)
{
	switch (err) {
	case ENOENT:
	case ECONNREFUSED:
		return say("pingpong's agent does not run", EVENTS_NO_AGENT);
	case ETIMEDOUT:
		return say("the file system is being checked: no verdict yet",
			   EVENTS_CHECKING);
	default:
		printf("pingpong's agent: %s\n", strerror(err));
		return EVENTS_NO_AGENT;
	}
}

int events_ask(const char *event)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	struct options *options = NULL;
	enum door_outcome outcome = DOOR_OK;
	const char **lines = NULL;
	const char *why = NULL;
	unsigned timeout_ms = EVENT_MS;
	int ret, status;

	ret = options_read(frame, &options, &why);
	if (ret != 0) {
		status = say(why != NULL ? why : strerror(ret),
			     EVENTS_REFUSED);
		talloc_free(frame);
		return status;
	}
	if (strcmp(event, "init") == 0) {
		timeout_ms = options->timeout_s * 1000 + INIT_GRACE_MS;
	}
	ret = door_ask(frame, RUNDIR "/" DOOR_NAME, event, timeout_ms,
		       &outcome, &lines);
	if (ret != 0) {
		status = ask_failed(ret);
		talloc_free(frame);
		return status;
	}
	for (; *lines != NULL; lines++) {
		printf("%s\n", *lines);
	}
	talloc_free(frame);
	switch (outcome) {
	case DOOR_OK:
		return EVENTS_OK;
	case DOOR_CHECKING:
		return EVENTS_CHECKING;
	default:
		return EVENTS_REFUSED;
	}
}

/* ---- status ------------------------------------------------------------- */

static bool is_enabled(TALLOC_CTX *mem_ctx, const struct options *options)
{
	const char *script = talloc_asprintf(
		mem_ctx, "%s/events/legacy/00.pingpong.script",
		options->ctdb.base);

	return script != NULL && access(script, X_OK) == 0;
}

static const char **one_line(TALLOC_CTX *mem_ctx, const char *line)
{
	const char **lines = talloc_zero_array(mem_ctx, const char *, 2);

	if (lines != NULL) {
		lines[0] = line;
	}
	return lines;
}

const char **events_status(TALLOC_CTX *mem_ctx)
{
	enum door_outcome outcome = DOOR_NO_AGENT;
	struct options *options = NULL;
	const char **lines = NULL;
	const char *why = NULL;
	bool enabled;
	int ret;

	ret = door_ask(mem_ctx, RUNDIR "/" DOOR_NAME, "status", EVENT_MS,
		       &outcome, &lines);
	if (ret == 0) {
		return lines;
	}
	if (ret != ENOENT && ret != ECONNREFUSED) {
		return one_line(mem_ctx, talloc_asprintf(
			mem_ctx, "agent: %s", strerror(ret)));
	}
	/* an agent would have told */
	lines = share_notes_read(mem_ctx);
	ret = options_read(mem_ctx, &options, &why);
	enabled = ret == 0 && is_enabled(mem_ctx, options);
	if (enabled) {
		names_add(mem_ctx, &lines, "agent: does not run, though "
			  "00.pingpong is enabled (it runs as long as ctdbd "
			  "does)");
	}
	return lines;
}
