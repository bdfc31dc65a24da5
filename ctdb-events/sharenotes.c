/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>

#include "core/config.h"
#include "ctdb-events/command.h"
#include "ctdb-events/sharenotes.h"
#include "ctdb-events/shares.h"

#define MODULE "pingpong"
#define SMBCONF LIBEXECDIR "/pingpong-smbconf"

/* What it takes to read a registry when ctdbd is there */
#define READ_S "5"
#define READ_MS 6000

/* The module has nothing to say to these. */
static bool passes(const json_t *share)
{
	const char *skipped = json_string_value(json_object_get(share,
								"skipped"));

	return skipped != NULL && (strcmp(skipped, "a printer") == 0 ||
				   strcmp(skipped, "IPC$") == 0);
}

static bool is_unguarded(TALLOC_CTX *mem_ctx, const json_t *list,
			 const struct share *share)
{
	struct share global = {};
	int ret;

	ret = share_from_json(mem_ctx, list, false, &global);
	return ret == 0 && share_has_module(&global, MODULE) &&
	       !share_has_module(share, MODULE);
}

static int add_note(TALLOC_CTX *mem_ctx, const char ***notes, const char *note)
{
	bool ok = note != NULL && names_add(mem_ctx, notes, note);

	return ok ? 0 : ENOMEM;
}

int share_notes(TALLOC_CTX *mem_ctx, const json_t *list, const json_t *json,
		const char ***notes)
{
	const char *name = json_string_value(json_object_get(json, "name"));
	struct share share = {};
	const char *own = NULL;
	bool unguarded;
	int ret;

	if (name == NULL || passes(json)) {
		return 0;
	}
	ret = share_from_json(mem_ctx, json, false, &share);
	if (ret != 0) {
		return ret;
	}
	unguarded = is_unguarded(mem_ctx, list, &share);
	if (unguarded) {
		ret = add_note(mem_ctx, notes, talloc_asprintf(
			mem_ctx, "share [%s] is not guarded: its own `vfs "
			"objects` replace those of [global] and leave out "
			MODULE, name));
	}
	own = share_own_ids(&share);
	if (ret == 0 && own != NULL) {
		ret = add_note(mem_ctx, notes, talloc_asprintf(
			mem_ctx, "share [%s] has `%s`: nodes do not see what "
			"clients of other nodes have open", name, own));
	}
	return ret;
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

const char **share_notes_read(TALLOC_CTX *mem_ctx)
{
	const char **notes = NULL;
	json_t *list = read_list(mem_ctx);
	json_t *share = NULL;
	size_t i;
	int ret = 0;

	json_array_foreach(json_object_get(list, "shares"), i, share) {
		if (ret == 0) {
			ret = share_notes(mem_ctx, list, share, &notes);
		}
	}
	json_decref(list);
	return ret == 0 ? notes : NULL;
}
