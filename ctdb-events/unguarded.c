/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "core/config.h"
#include "core/verdict/share.h"
#include "ctdb-events/command.h"
#include "ctdb-events/unguarded.h"

#define MODULE "pingpong"
#define SMBCONF LIBEXECDIR "/pingpong-smbconf"

/* What it takes to read a registry when ctdbd is there */
#define READ_S "5"
#define READ_MS 6000

static const char **objects_of(TALLOC_CTX *mem_ctx, const json_t *json)
{
	const json_t *array = json_object_get(json, "vfs_objects");
	const char **names = NULL;
	size_t i;

	for (i = 0; i < json_array_size(array); i++) {
		const char *name = json_string_value(json_array_get(array,
								    i));
		bool ok = name == NULL || names_add(mem_ctx, &names, name);

		if (!ok) {
			return NULL;
		}
	}
	return names;
}

static bool has_module(TALLOC_CTX *mem_ctx, const json_t *json)
{
	const struct share share = {
		.objects = objects_of(mem_ctx, json),
	};

	return share_has_module(&share, MODULE);
}

/* The module has nothing to say to these. */
static bool passes(const json_t *share)
{
	const char *skipped = json_string_value(json_object_get(share,
								"skipped"));

	return skipped != NULL && (strcmp(skipped, "a printer") == 0 ||
				   strcmp(skipped, "IPC$") == 0);
}

const char *unguarded_note(TALLOC_CTX *mem_ctx, const json_t *list,
			   const json_t *share)
{
	TALLOC_CTX *frame = talloc_new(mem_ctx);
	const char *name = json_string_value(json_object_get(share, "name"));
	const char *note = NULL;
	bool lost;

	lost = frame != NULL && name != NULL && !passes(share) &&
	       has_module(frame, list) && !has_module(frame, share);
	if (lost) {
		note = talloc_asprintf(
			mem_ctx, "share [%s] is not guarded: its own `vfs "
			"objects` replace those of [global] and leave out "
			MODULE, name);
	}
	talloc_free(frame);
	return note;
}

struct reading {
	bool done;
	int ret;
	int status;
	char *output;
};

static void reading_done(struct tevent_req *req)
{
	struct reading *reading = tevent_req_callback_data_void(req);

	reading->ret = command_recv(req, talloc_parent(req), &reading->status,
				    &reading->output);
	reading->done = true;
}

/* The JSON of `pingpong-smbconf list`, or NULL */
static json_t *read_list(TALLOC_CTX *mem_ctx)
{
	static const char *const argv[] = {
		SMBCONF, "--timeout", READ_S, "list", NULL,
	};
	struct tevent_context *ev = tevent_context_init(mem_ctx);
	struct tevent_req *req = NULL;
	struct reading reading = {};
	int ret = 0;

	if (ev == NULL) {
		return NULL;
	}
	req = command_send(mem_ctx, ev, argv, READ_MS);
	if (req == NULL) {
		return NULL;
	}
	tevent_req_set_callback(req, reading_done, &reading);
	while (!reading.done && ret == 0) {
		ret = tevent_loop_once(ev);
	}
	if (!reading.done || reading.ret != 0 || reading.status != 0) {
		return NULL;
	}
	return json_loads(reading.output, 0, NULL);
}

const char **unguarded_read(TALLOC_CTX *mem_ctx)
{
	TALLOC_CTX *frame = talloc_new(mem_ctx);
	const char **lines = NULL;
	json_t *list = NULL;
	json_t *share = NULL;
	size_t i;
	bool ok = frame != NULL;

	if (ok) {
		list = read_list(frame);
	}
	json_array_foreach(json_object_get(list, "shares"), i, share) {
		const char *note = unguarded_note(mem_ctx, list, share);

		ok = ok && (note == NULL || names_add(mem_ctx, &lines, note));
	}
	json_decref(list);
	talloc_free(frame);
	return ok ? lines : NULL;
}
