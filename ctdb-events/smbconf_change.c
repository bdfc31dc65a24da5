/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <unistd.h>

#include "ctdb-events/edit.h"
#include "ctdb-events/confblock.h"
#include "ctdb-events/smbconf_change.h"
#include "ctdb-events/smbconf_conf.h"
#include "ctdb-events/smbconf_samba.h"

#define NOTE "pingpong:set "
#define NODE_MAX 256

static const char *string_of(json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static json_t *result_of(const char *where, const char *before,
			 const char *after)
{
	return json_pack("{ss, ss?, ss?}", "where", where, "before", before,
			 "after", after);
}

/* ---- in the include file ------------------------------------------------ */

static int parse_include(TALLOC_CTX *mem_ctx, const struct edit *edit,
			 const char *path, json_t **entries, char **rest,
			 const char **why)
{
	bool ok;

	ok = confblock_parse(mem_ctx, edit_text(edit), entries, rest);
	if (ok) {
		return EX_OK;
	}
	*why = talloc_asprintf(mem_ctx, "'%s' is not changed: the lines "
			       "between pingpong's marks, or the marks, have been "
			       "changed; expected: as pingpong wrote them, or "
			       "none of them", path);
	return EX_CONFIG;
}

/* [NAME] of what is to be taken back of these entries, to be freed by
 * json_decref() */
static json_t *to_reset(const struct change *change, json_t *entries)
{
	json_t *names = json_array();
	const char *name = NULL;
	json_t *entry = NULL;

	if (change->set != NULL) {
		return names;
	}
	if (change->reset != NULL) {
		json_array_extend(names, change->reset);
		return names;
	}
	json_object_foreach(entries, name, entry) {
		const char *by = string_of(entry, "by");

		if (by != NULL && strcmp(by, change->by) == 0) {
			json_array_append_new(names, json_string(name));
		}
	}
	return names;
}

/* Returns whether there is anything to do. */
static bool change_entries(const struct change *change, json_t *entries)
{
	json_t *names = to_reset(change, entries);
	const char *name = NULL;
	json_t *setting = NULL;
	bool any = false;
	size_t i;

	json_array_foreach(names, i, setting) {
		int ret = json_object_del(entries, json_string_value(setting));

		any = any || ret == 0;
	}
	json_decref(names);
	json_object_foreach(change->set, name, setting) {
		json_object_set_new(entries, name, json_pack(
			"{sO, ss, sO}", "value",
			json_object_get(setting, "value"), "by", change->by,
			"staged", json_object_get(setting, "staged")));
		any = true;
	}
	return any;
}

static int put_text(struct edit *edit, const char *text, const char **why)
{
	int ret;

	if (text == NULL) {
		ret = edit_remove(edit, why);
	} else {
		ret = edit_replace(edit, text, why);
	}
	return ret == 0 ? EX_OK : edit_status(ret);
}

/* What smb.conf makes of what was set; NULL: as it should be */
static char *not_in_force(TALLOC_CTX *mem_ctx, const struct change *change)
{
	struct conf *conf = NULL;
	const char *name = NULL, *why = NULL;
	json_t *setting = NULL;
	bool ok;

	if (json_object_size(change->set) == 0) {
		return NULL;
	}
	ok = conf_load(mem_ctx, change->include, &conf, &why);
	if (!ok) {
		return talloc_asprintf(mem_ctx, "Samba's configuration could "
				       "not be read with it: %s", why);
	}
	json_object_foreach(change->set, name, setting) {
		const char *value = string_of(setting, "value");
		const char *now = conf_global(conf, name);

		if (!json_is_true(json_object_get(setting, "staged")) &&
		    strcasecmp(value, now) != 0) {
			return talloc_asprintf(
				mem_ctx, "'%s' would be '%s' still: '%s' sets "
				"it after it includes '%s'", name, now,
				conf->file, change->include);
		}
	}
	return NULL;
}

/* Write the file, see that it is in force, else put it back. */
static int put_include(TALLOC_CTX *mem_ctx, const struct change *change,
		       struct edit *edit, const char *after, const char **why)
{
	char *before = NULL, *wrong = NULL;
	int ret;

	if (edit_text(edit) != NULL) {
		before = talloc_strdup(mem_ctx, edit_text(edit));
	}
	ret = put_text(edit, after, why);
	/* unlocked: Samba reads it */
	talloc_free(edit);
	if (ret != EX_OK) {
		return ret;
	}
	wrong = not_in_force(mem_ctx, change);
	if (wrong == NULL) {
		return EX_OK;
	}
	ret = edit_open(mem_ctx, change->include, &edit, why);
	if (ret != 0) {
		return edit_status(ret);
	}
	ret = put_text(edit, before, why);
	talloc_free(edit);
	if (ret == EX_OK) {
		*why = talloc_asprintf(mem_ctx, "nothing is changed: %s",
				       wrong);
		ret = EX_CONFIG;
	}
	return ret;
}

/* *done: it had something to do here */
static int change_include(TALLOC_CTX *mem_ctx, const struct change *change,
			  bool *done, json_t **result, const char **why)
{
	const char *before = NULL, *after = NULL;
	struct edit *edit = NULL;
	json_t *entries = NULL;
	char *rest = NULL;
	int ret;

	ret = edit_open(mem_ctx, change->include, &edit, why);
	if (ret == ENOENT && change->set == NULL) {
		return EX_OK;
	}
	if (ret != 0) {
		return edit_status(ret);
	}
	ret = parse_include(mem_ctx, edit, change->include, &entries, &rest,
			    why);
	if (ret != EX_OK) {
		talloc_free(edit);
		return ret;
	}
	before = edit_text(edit);
	*done = change_entries(change, entries);
	after = confblock_print(mem_ctx, entries, rest);
	/* no file before, or one of ours only */
	if (json_object_size(entries) == 0 && rest[0] == '\0') {
		after = NULL;
	}
	json_decref(entries);
	if (!*done) {
		after = before;
	}
	*result = result_of(change->include, before, after);
	if (change->dry_run || !*done ||
	    (before != NULL && after != NULL && strcmp(before, after) == 0)) {
		talloc_free(edit);
		return EX_OK;
	}
	return put_include(mem_ctx, change, edit, after, why);
}

/* ---- in the registry ---------------------------------------------------- */

struct registry {
	TALLOC_CTX *mem_ctx;
	struct smbconf_ctx *ctx;
	const struct change *change;
	json_t *notes;			/* {NAME: note} */
	char node[NODE_MAX];
	char *before, *after;		/* for a person */
	const char *why;
	bool done;
};

static const char *note_name(struct registry *r, const char *name)
{
	return talloc_asprintf(r->mem_ctx, NOTE "%s", name);
}

/* NULL: unset */
static char *registry_get(struct registry *r, const char *name)
{
	char *value = NULL;
	sbcErr err;

	err = smbconf_get_global_parameter(r->ctx, r->mem_ctx, name, &value);
	return SBC_ERROR_IS_OK(err) ? value : NULL;
}

static bool registry_put(struct registry *r, const char *name,
			 const char *value)
{
	sbcErr err;

	if (value != NULL) {
		err = smbconf_set_global_parameter(r->ctx, name, value);
	} else {
		err = smbconf_delete_global_parameter(r->ctx, name);
	}
	if (!SBC_ERROR_IS_OK(err)) {
		r->why = talloc_asprintf(r->mem_ctx, "the registry's '%s': %s",
					 name, sbcErrorString(err));
		return false;
	}
	return true;
}

static void show(struct registry *r, const char *name, const char *was,
		 const char *value)
{
	if (was != NULL) {
		r->before = talloc_asprintf_append(r->before, "\t%s = %s\n",
						   name, was);
	}
	if (value != NULL) {
		r->after = talloc_asprintf_append(r->after, "\t%s = %s\n",
						  name, value);
	}
}

static json_t *read_note(struct registry *r, const char *name)
{
	const char *text = registry_get(r, note_name(r, name));

	return text != NULL ? json_loads(text, 0, NULL) : NULL;
}

static bool put_note(struct registry *r, const char *name, json_t *note)
{
	char *text = json_dumps(note, JSON_COMPACT | JSON_SORT_KEYS);
	bool ok;

	ok = text != NULL && registry_put(r, note_name(r, name), text);
	free(text);
	return ok;
}

/* Where the note has this node; the number of nodes: it has not */
static size_t find_node(const json_t *note, const char *node)
{
	const json_t *nodes = json_object_get(note, "nodes");
	size_t i;

	for (i = 0; i < json_array_size(nodes); i++) {
		const char *name = json_string_value(json_array_get(nodes, i));

		if (name != NULL && strcmp(name, node) == 0) {
			break;
		}
	}
	return i;
}

static void note_node(json_t *note, const char *node, bool wants)
{
	json_t *nodes = json_object_get(note, "nodes");
	size_t i = find_node(note, node);
	bool there = i < json_array_size(nodes);

	if (there && !wants) {
		json_array_remove(nodes, i);
	} else if (!there && wants) {
		json_array_append_new(nodes, json_string(node));
	}
}

/* Somebody else has changed what we had set. */
static bool overruled(const char *now, json_t *note)
{
	const char *value = string_of(note, "value");
	bool staged = json_is_true(json_object_get(note, "staged"));

	return note != NULL && !staged &&
	       (now == NULL || value == NULL || strcasecmp(now, value) != 0);
}

static bool refuse_overruled(struct registry *r, const char *name,
			     const char *now)
{
	r->why = talloc_asprintf(r->mem_ctx, "the registry's '%s' is not "
				 "changed: somebody else has set it to '%s' "
				 "since pingpong did; to end that, delete "
				 "'" NOTE "%s' there", name,
				 now != NULL ? now : "(nothing)", name);
	return false;
}

static bool registry_set(struct registry *r, const char *name, json_t *setting)
{
	const char *value = string_of(setting, "value");
	bool staged = json_is_true(json_object_get(setting, "staged"));
	char *now = registry_get(r, name);
	json_t *note = read_note(r, name);
	bool ok;

	if (overruled(now, note)) {
		json_decref(note);
		return refuse_overruled(r, name, now);
	}
	if (note == NULL) {
		note = json_pack("{ss?, s[], ss}", "was", now, "nodes", "by",
				 r->change->by);
	}
	note_node(note, r->node, true);
	json_object_set(note, "value", json_object_get(setting, "value"));
	json_object_set_new(note, "staged", json_boolean(staged));
	show(r, name, now, staged ? now : value);
	r->done = true;
	ok = r->change->dry_run ||
	     ((staged || registry_put(r, name, value)) &&
	      put_note(r, name, note));
	json_decref(note);
	return ok;
}

static bool registry_reset(struct registry *r, const char *name)
{
	char *now = registry_get(r, name);
	json_t *note = read_note(r, name);
	const char *was = string_of(note, "was");
	bool staged = json_is_true(json_object_get(note, "staged"));
	bool ok = true;

	if (note == NULL) {
		return true;
	}
	r->done = true;
	if (overruled(now, note)) {
		json_decref(note);
		return refuse_overruled(r, name, now);
	}
	note_node(note, r->node, false);
	if (json_array_size(json_object_get(note, "nodes")) > 0) {
		show(r, name, now, now);
		ok = r->change->dry_run || put_note(r, name, note);
		json_decref(note);
		return ok;
	}
	show(r, name, now, staged ? now : was);
	if (!r->change->dry_run) {
		ok = (staged || registry_put(r, name, was)) &&
		     registry_put(r, note_name(r, name), NULL);
	}
	json_decref(note);
	return ok;
}

static bool registry_all(struct registry *r)
{
	json_t *names = to_reset(r->change, r->notes);
	const char *name = NULL;
	json_t *setting = NULL;
	bool ok = true;
	size_t i;

	json_array_foreach(names, i, setting) {
		ok = ok && registry_reset(r, json_string_value(setting));
	}
	json_decref(names);
	json_object_foreach(r->change->set, name, setting) {
		ok = ok && registry_set(r, name, setting);
	}
	return ok;
}

static bool registry_transaction(struct registry *r)
{
	sbcErr err;
	bool ok;

	err = smbconf_transaction_start(r->ctx);
	if (SBC_ERROR_IS_OK(err)) {
		ok = registry_all(r);
		if (ok && r->done && !r->change->dry_run) {
			err = smbconf_transaction_commit(r->ctx);
		} else {
			smbconf_transaction_cancel(r->ctx);
		}
		if (!ok) {
			return false;
		}
	}
	if (!SBC_ERROR_IS_OK(err)) {
		r->why = talloc_asprintf(r->mem_ctx, "the registry cannot be "
					 "changed: %s", sbcErrorString(err));
		return false;
	}
	return true;
}

static void list_notes(const struct conf *conf, json_t *entries)
{
	char node[NODE_MAX] = "";
	const char *name = NULL;
	json_t *value = NULL;

	gethostname(node, sizeof(node) - 1);

	json_object_foreach(conf->global, name, value) {
		json_t *note = NULL;

		if (strncmp(name, NOTE, strlen(NOTE)) != 0) {
			continue;
		}
		note = json_loads(json_string_value(value), 0, NULL);
		if (json_is_object(note)) {
			bool here = find_node(note, node) < json_array_size(
				json_object_get(note, "nodes"));

			json_object_set_new(note, "here", json_boolean(here));
			json_object_set(entries, name + strlen(NOTE), note);
		}
		json_decref(note);
	}
}

static int change_registry(TALLOC_CTX *mem_ctx, const struct change *change,
			   const struct conf *conf, json_t **result,
			   const char **why)
{
	struct registry r = { .mem_ctx = mem_ctx, .change = change };
	sbcErr err;
	bool ok;

	gethostname(r.node, sizeof(r.node) - 1);
	r.before = talloc_strdup(mem_ctx, "[global]\n");
	r.after = talloc_strdup(mem_ctx, "[global]\n");
	err = smbconf_init(mem_ctx, &r.ctx, "registry:");
	if (!SBC_ERROR_IS_OK(err)) {
		*why = talloc_asprintf(mem_ctx, "the registry cannot be "
				       "opened: %s", sbcErrorString(err));
		return EX_UNAVAILABLE;
	}
	r.notes = json_object();
	list_notes(conf, r.notes);
	ok = registry_transaction(&r);
	json_decref(r.notes);
	smbconf_shutdown(r.ctx);
	*why = r.why;
	if (ok) {
		*result = result_of("registry", r.before, r.after);
	}
	return ok ? EX_OK : EX_CANTCREAT;
}

/* ---- where -------------------------------------------------------------- */

/* What is so already, and not because another node has set it, is not ours to
 * set. */
static void drop_in_force(TALLOC_CTX *mem_ctx, const struct conf *conf,
			  json_t *set)
{
	const char *name = NULL;
	json_t *setting = NULL;
	void *next = NULL;

	json_object_foreach_safe(set, next, name, setting) {
		const char *value = string_of(setting, "value");
		const char *note = talloc_asprintf(mem_ctx, NOTE "%s", name);

		if (strcasecmp(conf_global(conf, name), value) == 0 &&
		    json_object_get(conf->global, note) == NULL) {
			json_object_del(set, name);
		}
	}
}

static int change_as_configured(TALLOC_CTX *mem_ctx,
				const struct change *change, json_t **result,
				const char **why)
{
	struct conf *conf = NULL;
	bool done = false;
	bool ok;

	ok = conf_load(mem_ctx, change->include, &conf, why);
	if (!ok) {
		return EX_CONFIG;
	}
	drop_in_force(mem_ctx, conf, change->set);
	if (change->set != NULL && json_object_size(change->set) == 0) {
		return EX_OK;
	}
	if (change->set != NULL && conf->includes_ours &&
	    conf->source != CONF_REGISTRY) {
		return change_include(mem_ctx, change, &done, result, why);
	}
	if (conf->includes_registry) {
		return change_registry(mem_ctx, change, conf, result, why);
	}
	if (change->set == NULL) {
		return EX_OK;
	}
	*why = talloc_asprintf(mem_ctx, "'%s' does not include '%s': put "
			       "'include = %s' first into its [global]",
			       conf->file, change->include, change->include);
	return EX_CONFIG;
}

int change_make(TALLOC_CTX *mem_ctx, const struct change *change,
		json_t **result, const char **why)
{
	TALLOC_CTX *frame = _talloc_stackframe(__func__);
	bool done = false;
	int ret = EX_OK;

	*result = NULL;
	if (change->set == NULL) {
		/* also where Samba's configuration cannot be read */
		ret = change_include(mem_ctx, change, &done, result, why);
	}
	if (ret == EX_OK && !done && !change->include_only) {
		json_decref(*result);
		*result = NULL;
		ret = change_as_configured(mem_ctx, change, result, why);
	}
	if (ret == EX_OK && *result == NULL) {
		*result = result_of(change->include, NULL, NULL);
	}
	talloc_free(frame);
	return ret;
}

/* ---- what is set -------------------------------------------------------- */

int change_list(TALLOC_CTX *mem_ctx, const struct conf *conf,
		const char *include, json_t **entries, const char **why)
{
	struct edit *edit = NULL;
	char *rest = NULL;
	int ret;

	*entries = NULL;
	ret = edit_open(mem_ctx, include, &edit, why);
	if (ret == 0) {
		ret = parse_include(mem_ctx, edit, include, entries, &rest,
				    why);
		talloc_free(edit);
	} else if (ret == ENOENT) {
		ret = EX_OK;
	} else {
		ret = edit_status(ret);
	}
	if (ret != EX_OK) {
		return ret;
	}
	if (*entries == NULL) {
		*entries = json_object();
	}
	list_notes(conf, *entries);
	return EX_OK;
}
