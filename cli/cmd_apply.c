/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pingpong apply: writes the settings that the stored verdicts name
 *
 * Those of smb.conf through pingpong-smbconf, those of ctdb.conf here, all of
 * them or none. What cannot hold before ctdbd's next start is staged: the
 * event script's agent sets it then. What ctdb.conf was before and after is
 * kept beside the store, for --revert.
 *
 * Divisions: diffs; helpers; what is to be set; ctdb.conf; apply; revert.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <unistd.h>

#include <jansson.h>
#include <tevent.h>

#include "cli/cli.h"
#include "core/config.h"
#include "core/verdict/store.h"
#include "ctdb-events/command.h"
#include "ctdb-events/ctdbconfig.h"
#include "ctdb-events/ctdbedit.h"
#include "ctdb-events/edit.h"
#include "ctdb-events/life.h"
#include "ctdb-events/mmap.h"

#define BEFORE STATEDIR "/ctdb.conf.before"
#define AFTER STATEDIR "/ctdb.conf.after"

#define SMBCONF_MS 20000
#define SCRIPT "00.pingpong"

struct apply {
	struct tevent_context *ev;
	bool dry_run;
	struct ctdb_paths paths;
	const char *ctdb_conf;
	/* what is to be set */
	json_t *smb;		/* {NAME: {"value", "for": path}} */
	json_t *ctdb;		/* [{"section", "parameter", "value"}] */
	const char **others;	/* lines about what is not for us */
	/* Samba's configuration, as pingpong-smbconf lists it */
	json_t *samba;
	bool staged;		/* use mmap: at the next start only */
	/* ctdb.conf */
	struct edit *edit;	/* NULL: none of it is changed */
	char *after;
	bool written;
	bool changed;		/* anything */
};

static const char *string_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* ---- diffs -------------------------------------------------------------- */

#define CONTEXT 3

struct lines {
	char **line;		/* talloc array, NULL-terminated */
	size_t num;
};

static struct lines split_lines(TALLOC_CTX *mem_ctx, const char *text)
{
	struct lines lines = {};

	lines.line = talloc_zero_array(mem_ctx, char *,
				       strlen(text) + 1);
	while (lines.line != NULL && *text != '\0') {
		size_t len = strcspn(text, "\n");

		lines.line[lines.num++] = talloc_strndup(lines.line, text,
							 len);
		text += len + (text[len] == '\n' ? 1 : 0);
	}
	return lines;
}

static void put_lines(char mark, const struct lines *lines, size_t from,
		      size_t to)
{
	for (; from < to; from++) {
		printf("%c%s\n", mark, lines->line[from]);
	}
}

/* One hunk: what is set stands in one place. NULL: no file */
static void put_diff(TALLOC_CTX *mem_ctx, const char *where,
		     const char *before, const char *after)
{
	struct lines a = split_lines(mem_ctx, before != NULL ? before : "");
	struct lines b = split_lines(mem_ctx, after != NULL ? after : "");
	size_t head = 0, tail = 0, from, to_a, to_b;

	if (a.line == NULL || b.line == NULL) {
		return;
	}
	while (head < a.num && head < b.num &&
	       strcmp(a.line[head], b.line[head]) == 0) {
		head++;
	}
	while (head + tail < a.num && head + tail < b.num &&
	       strcmp(a.line[a.num - 1 - tail], b.line[b.num - 1 - tail]) ==
		       0) {
		tail++;
	}
	from = head > CONTEXT ? head - CONTEXT : 0;
	to_a = a.num - tail;
	to_b = b.num - tail;
	tail = tail > CONTEXT ? CONTEXT : tail;
	printf("--- %s\n+++ %s\n", before != NULL ? where : "/dev/null",
	       after != NULL ? where : "/dev/null");
	printf("@@ -%zu,%zu +%zu,%zu @@\n",
	       to_a + tail > from ? from + 1 : from, to_a + tail - from,
	       to_b + tail > from ? from + 1 : from, to_b + tail - from);
	put_lines(' ', &a, from, head);
	put_lines('-', &a, head, to_a);
	put_lines('+', &b, head, to_b);
	put_lines(' ', &a, to_a, to_a + tail);
}

static bool same_text(const char *a, const char *b)
{
	if (a == NULL || b == NULL) {
		return a == b;
	}
	return strcmp(a, b) == 0;
}

/* ---- helpers ------------------------------------------------------------ */

/* Run one and wait. Returns an exit status of ours, 0 with *output; it has
 * said what is wrong itself. */
static int run(TALLOC_CTX *mem_ctx, const struct apply *apply,
	       const char *const *argv, char **output)
{
	struct tevent_req *req = NULL;
	int status = 0;
	bool ok;
	int ret;

	req = command_send(mem_ctx, apply->ev, argv, SMBCONF_MS);
	ok = req != NULL && tevent_req_poll(req, apply->ev);
	if (!ok) {
		cli_say("no memory");
		return EX_SOFTWARE;
	}
	ret = command_recv(req, mem_ctx, &status, output);
	talloc_free(req);
	if (ret != 0) {
		cli_say("'%s': %s", argv[0], strerror(ret));
		return ret == ETIMEDOUT ? EX_TEMPFAIL : EX_OSERR;
	}
	if (status == 127) {
		cli_say("'%s' cannot be run, expected: installed with "
			"pingpong", argv[0]);
		return EX_UNAVAILABLE;
	}
	return status == 0 || status >= EX__BASE ? status : EX_SOFTWARE;
}

/* *result: to be freed by json_decref() */
static int smbconf(TALLOC_CTX *mem_ctx, const struct apply *apply,
		   const char *const *argv, json_t **result)
{
	char *output = NULL;
	int status;

	status = run(mem_ctx, apply, argv, &output);
	if (status != EX_OK) {
		return status;
	}
	*result = json_loads(output, 0, NULL);
	if (!json_is_object(*result)) {
		cli_say("'%s' is of another version", argv[0]);
		json_decref(*result);
		*result = NULL;
		return EX_SOFTWARE;
	}
	return EX_OK;
}

/* What ctdbd's script gets from its options, pingpong-smbconf gets, too. */
static int read_options(TALLOC_CTX *mem_ctx, const struct apply *apply)
{
	static const char read[] =
		"for f; do [ ! -r \"$f\" ] || . \"$f\" >&2; done; "
		"printf %s \"$CTDB_PINGPONG_INCLUDE_FILE\"";
	const char *argv[] = { "/bin/sh", "-c", read, "sh", NULL, NULL, NULL };
	char *value = NULL;
	int status;

	argv[4] = talloc_asprintf(mem_ctx, "%s/script.options",
				  apply->paths.base);
	argv[5] = talloc_asprintf(mem_ctx, "%s/events/legacy/" SCRIPT
				  ".options", apply->paths.base);
	status = run(mem_ctx, apply, argv, &value);
	if (status == EX_OK) {
		setenv("CTDB_PINGPONG_INCLUDE_FILE", value, 1);
	}
	return status;
}

static const char *env_or(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : otherwise;
}

static int prepare(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	apply->ev = tevent_context_init(mem_ctx);
	apply->paths = (struct ctdb_paths){
		.base = env_or("CTDB_BASE", "/etc/ctdb"),
		.helpers = env_or("CTDB_HELPER_BINDIR", "/usr/libexec/ctdb"),
	};
	apply->ctdb_conf = talloc_asprintf(mem_ctx, "%s/ctdb.conf",
					   apply->paths.base);
	if (apply->ev == NULL || apply->ctdb_conf == NULL) {
		cli_say("no memory");
		return EX_SOFTWARE;
	}
	if (geteuid() != 0) {
		cli_say("expected to be run by root");
		return EX_NOPERM;
	}
	return read_options(mem_ctx, apply);
}

/* ---- what is to be set -------------------------------------------------- */

struct collect {
	struct apply *apply;
	int status;
};

static bool is_about_unfit(const struct stored_record *record,
			   const struct setting *setting)
{
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		if ((setting->uses & USE_BIT(i)) != 0 &&
		    record->uses[i].present &&
		    record->uses[i].fitness == UNFIT) {
			return true;
		}
	}
	return false;
}

static void add_other(struct apply *apply, char *line)
{
	if (line != NULL) {
		names_add(apply->ev, &apply->others, line);
	}
}

static int add_smb(struct apply *apply, const struct setting *setting,
		   const char *path)
{
	const json_t *known = json_object_get(apply->smb, setting->parameter);
	const char *value = string_of(known, "value");

	if (value != NULL && strcasecmp(value, setting->value) != 0) {
		cli_say("'%s' would have to be '%s' for '%s' and '%s' for "
			"'%s': set it in the shares, then 'pingpong check'",
			setting->parameter, value, string_of(known, "for"),
			setting->value, path);
		return EX_CONFIG;
	}
	if (value == NULL) {
		json_object_set_new(apply->smb, setting->parameter, json_pack(
			"{ss, ss}", "value", setting->value, "for", path));
	}
	return EX_OK;
}

static void add_ctdb(struct apply *apply, const struct setting *setting)
{
	json_t *new = json_pack("{ss, ss, ss}", "section", setting->section,
				"parameter", setting->parameter, "value",
				setting->value);
	json_t *known = NULL;
	size_t i;

	json_array_foreach(apply->ctdb, i, known) {
		if (json_equal(known, new)) {
			json_decref(new);
			return;
		}
	}
	json_array_append_new(apply->ctdb, new);
}

static void collect_setting(struct collect *collect, const char *path,
			    const struct setting *setting)
{
	struct apply *apply = collect->apply;

	if (strcmp(setting->file, "smb.conf") == 0) {
		int status = add_smb(apply, setting, path);

		collect->status = status != EX_OK ? status : collect->status;
	} else if (strcmp(setting->file, "ctdb.conf") == 0) {
		add_ctdb(apply, setting);
	} else {
		add_other(apply, talloc_asprintf(
			apply->ev, "not changed by this: %s %s: '%s' -> '%s'",
			setting->file, setting->section, setting->parameter,
			setting->value));
	}
}

static void collect_record(const char *path, int err,
			   const struct stored_record *record,
			   void *private_data)
{
	struct collect *collect = private_data;
	size_t i;

	if (err != 0) {
		add_other(collect->apply, talloc_asprintf(
			collect->apply->ev, "'%s' is not known any more: check "
			"it again", path));
		return;
	}
	for (i = 0; i < record->num_settings; i++) {
		const struct setting *setting = &record->settings[i];

		if (setting->needed && is_about_unfit(record, setting)) {
			collect_setting(collect, path, setting);
		}
	}
}

static int collect_settings(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	struct collect collect = { .apply = apply };
	int ret;

	apply->smb = json_object();
	apply->ctdb = json_array();
	ret = store_each(mem_ctx, STATEDIR, "/proc/self/mountinfo",
			 collect_record, &collect);
	if (ret != 0 && ret != ENOENT) {
		cli_say("'%s': %s", STATEDIR, cli_store_error(ret));
		return ret == EACCES || ret == EPERM ? EX_NOPERM
						     : EX_SOFTWARE;
	}
	return collect.status;
}

static bool list_has(const json_t *list, const char *name)
{
	size_t i;

	for (i = 0; i < json_array_size(list); i++) {
		const char *other = json_string_value(json_array_get(list, i));

		if (other != NULL && strcmp(other, name) == 0) {
			return true;
		}
	}
	return false;
}

/* A share's own list replaces that of [global]. */
static void note_shares(struct apply *apply, const char *module)
{
	const json_t *global = json_object_get(apply->samba, "vfs_objects");
	const json_t *shares = json_object_get(apply->samba, "shares");
	size_t i;

	for (i = 0; i < json_array_size(shares); i++) {
		const json_t *share = json_array_get(shares, i);
		const json_t *own = json_object_get(share, "vfs_objects");

		if (json_object_get(share, "skipped") == NULL &&
		    !json_equal(own, global) && !list_has(own, module)) {
			add_other(apply, talloc_asprintf(
				apply->ev, "not changed by this: share [%s] "
				"has 'vfs objects' of its own, and needs '%s' "
				"there", string_of(share, "name"), module));
		}
	}
}

/* The module is added to those that [global] loads. */
static void extend_vfs_objects(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	const json_t *list = json_object_get(apply->samba, "vfs_objects");
	json_t *setting = json_object_get(apply->smb, "vfs objects");
	const char *module = string_of(setting, "value");
	char *value = talloc_strdup(mem_ctx, "");
	size_t i;

	if (module == NULL) {
		return;
	}
	note_shares(apply, module);
	if (list_has(list, module)) {
		json_object_del(apply->smb, "vfs objects");
		return;
	}
	for (i = 0; i < json_array_size(list); i++) {
		value = talloc_asprintf_append(
			value, "%s ",
			json_string_value(json_array_get(list, i)));
	}
	value = talloc_asprintf_append(value, "%s", module);
	json_object_set_new(setting, "value", json_string(value));
}

/* Samba's configuration, and what that makes of the settings */
static int look_at_samba(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	static const char *const argv[] = { TDBDIRS_SMBCONF, "list", NULL };
	bool clustering;
	int status;

	status = smbconf(mem_ctx, apply, argv, &apply->samba);
	if (status != EX_OK) {
		return status;
	}
	extend_vfs_objects(mem_ctx, apply);
	clustering = json_is_true(json_object_get(apply->samba, "clustering"));
	if (!clustering) {
		json_array_clear(apply->ctdb);
	}
	apply->staged = clustering && !mmap_without_mutexes() &&
			life_ctdbd_runs(&apply->paths);
	if (!json_is_true(json_object_get(apply->samba, "use_mmap"))) {
		json_object_del(apply->smb, "use mmap");
	}
	return EX_OK;
}

/* "pingpong-smbconf set" with everything; *result as it gives it */
static int set_smb(TALLOC_CTX *mem_ctx, const struct apply *apply,
		   bool dry_run, json_t **result)
{
	const char **argv = NULL;
	const char *name = NULL;
	json_t *setting = NULL;

	*result = NULL;
	if (json_object_size(apply->smb) == 0) {
		return EX_OK;
	}
	names_add(mem_ctx, &argv, TDBDIRS_SMBCONF);
	names_add(mem_ctx, &argv, "--by");
	names_add(mem_ctx, &argv, "apply");
	if (dry_run) {
		names_add(mem_ctx, &argv, "--dry-run");
	}
	if (apply->staged) {
		names_add(mem_ctx, &argv, "--staged");
		names_add(mem_ctx, &argv, "use mmap");
	}
	names_add(mem_ctx, &argv, "set");
	json_object_foreach(apply->smb, name, setting) {
		names_add(mem_ctx, &argv, name);
		names_add(mem_ctx, &argv, string_of(setting, "value"));
	}
	return smbconf(mem_ctx, apply, argv, result);
}

static void show_smb(TALLOC_CTX *mem_ctx, struct apply *apply,
		     const json_t *result)
{
	const char *before = string_of(result, "before");
	const char *after = string_of(result, "after");

	if (result != NULL && !same_text(before, after)) {
		put_diff(mem_ctx, string_of(result, "where"), before, after);
		apply->changed = true;
	}
}

/* ---- ctdb.conf ---------------------------------------------------------- */

static int edit_failed(int err, const char *why)
{
	cli_say("%s", why);
	return edit_status(err);
}

/* Opens it, which keeps others like us out, and finds what it will be. */
static int plan_ctdb_conf(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	const char *why = NULL;
	const char *text = NULL;
	json_t *setting = NULL;
	size_t i;
	int ret;

	if (json_array_size(apply->ctdb) == 0) {
		return EX_OK;
	}
	ret = edit_open(mem_ctx, apply->ctdb_conf, &apply->edit, &why);
	if (ret != 0) {
		return edit_failed(ret, why);
	}
	text = edit_text(apply->edit);
	json_array_foreach(apply->ctdb, i, setting) {
		ret = ctdbedit_set(mem_ctx, text,
				   string_of(setting, "section"),
				   string_of(setting, "parameter"),
				   string_of(setting, "value"),
				   &apply->after);
		if (ret != 0) {
			cli_say("'%s': '%s' is on a line that is continued, "
				"expected: on one line", apply->ctdb_conf,
				string_of(setting, "parameter"));
			return edit_status(ret);
		}
		text = apply->after;
	}
	if (same_text(edit_text(apply->edit), apply->after)) {
		TALLOC_FREE(apply->edit);
		return EX_OK;
	}
	put_diff(mem_ctx, apply->ctdb_conf, edit_text(apply->edit),
		 apply->after);
	apply->changed = true;
	return EX_OK;
}

/* text: NULL: no such file */
static int put_file(TALLOC_CTX *mem_ctx, const char *path, const char *text)
{
	struct edit *edit = NULL;
	const char *why = NULL;
	int ret;

	ret = edit_open(mem_ctx, path, &edit, &why);
	if (ret == 0 && text != NULL) {
		ret = edit_replace(edit, text, &why);
	} else if (ret == 0 && edit_text(edit) != NULL) {
		ret = edit_remove(edit, &why);
	}
	talloc_free(edit);
	return ret == 0 ? EX_OK : edit_failed(ret, why);
}

/* ctdbd's own parser agrees. */
static bool is_in_force(TALLOC_CTX *mem_ctx, const struct apply *apply,
			const json_t *setting)
{
	const char *keys[] = { string_of(setting, "parameter"), NULL };
	struct tevent_req *req = NULL;
	const char *key = NULL;
	char *value = NULL;
	bool ok;
	int ret;

	req = ctdbconfig_send(mem_ctx, apply->ev, &apply->paths,
			      string_of(setting, "section"), keys);
	ok = req != NULL && tevent_req_poll(req, apply->ev);
	if (!ok) {
		return false;
	}
	ret = ctdbconfig_recv(req, mem_ctx, &value, &key);
	talloc_free(req);
	return ret == 0 && value != NULL &&
	       strcasecmp(value, string_of(setting, "value")) == 0;
}

static int write_ctdb_conf(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	const char *before = edit_text(apply->edit);
	const char *why = NULL;
	json_t *setting = NULL;
	size_t i;
	int ret, status;

	status = put_file(mem_ctx, BEFORE, before);
	if (status == EX_OK) {
		status = put_file(mem_ctx, AFTER, apply->after);
	}
	if (status != EX_OK) {
		return status;
	}
	ret = edit_replace(apply->edit, apply->after, &why);
	if (ret != 0) {
		return edit_failed(ret, why);
	}
	apply->written = true;
	json_array_foreach(apply->ctdb, i, setting) {
		bool ok = is_in_force(mem_ctx, apply, setting);

		if (!ok) {
			cli_say("'%s': ctdbd does not take '%s = %s' there: "
				"it is as it was again", apply->ctdb_conf,
				string_of(setting, "parameter"),
				string_of(setting, "value"));
			return EX_CONFIG;
		}
	}
	return EX_OK;
}

static void forget_ctdb_conf(TALLOC_CTX *mem_ctx)
{
	put_file(mem_ctx, AFTER, NULL);
	put_file(mem_ctx, BEFORE, NULL);
}

/* What was written is put back; the edit was used up. */
static void restore_ctdb_conf(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	const char *before = NULL;
	int status = EX_OK;

	if (edit_text(apply->edit) != NULL) {
		before = talloc_strdup(mem_ctx, edit_text(apply->edit));
	}
	TALLOC_FREE(apply->edit);
	if (apply->written) {
		status = put_file(mem_ctx, apply->ctdb_conf, before);
	}
	if (status == EX_OK) {
		forget_ctdb_conf(mem_ctx);
	}
}

/* ---- apply -------------------------------------------------------------- */

static void put_others(const struct apply *apply)
{
	size_t i;

	for (i = 0; apply->others != NULL && apply->others[i] != NULL; i++) {
		printf("%s\n", apply->others[i]);
	}
}

static void put_next_steps(const struct apply *apply)
{
	bool staged = apply->staged &&
		      json_object_get(apply->smb, "use mmap") != NULL;
	char script[4096];
	int ret;

	if (staged || apply->edit != NULL) {
		printf("next: the same on every node, then stop ctdbd on all "
		       "of them, and start it\n");
	}
	if (!staged) {
		return;
	}
	snprintf(script, sizeof(script), "%s/events/legacy/" SCRIPT ".script",
		 apply->paths.base);
	ret = access(script, X_OK);
	if (ret != 0) {
		printf("next: enable the event script " SCRIPT ", which sets "
		       "'use mmap' when ctdbd starts\n");
	}
}

/* ctdb.conf first: by itself it is only slower, where smb.conf alone would
 * keep smbd from starting. */
static int write_all(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	json_t *result = NULL;
	int status = EX_OK;

	if (apply->edit != NULL) {
		status = write_ctdb_conf(mem_ctx, apply);
	}
	if (status == EX_OK) {
		status = set_smb(mem_ctx, apply, false, &result);
		json_decref(result);
	}
	if (status != EX_OK && apply->edit != NULL) {
		restore_ctdb_conf(mem_ctx, apply);
	}
	return status;
}

static int apply_settings(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	json_t *result = NULL;
	int status;

	status = collect_settings(mem_ctx, apply);
	if (status == EX_OK && (json_object_size(apply->smb) > 0 ||
				json_array_size(apply->ctdb) > 0)) {
		status = look_at_samba(mem_ctx, apply);
	}
	if (status == EX_OK) {
		status = set_smb(mem_ctx, apply, true, &result);
	}
	if (status == EX_OK) {
		status = plan_ctdb_conf(mem_ctx, apply);
	}
	if (status == EX_OK) {
		show_smb(mem_ctx, apply, result);
	}
	json_decref(result);
	if (status == EX_OK && apply->changed && !apply->dry_run) {
		status = write_all(mem_ctx, apply);
	}
	if (status != EX_OK) {
		return status;
	}
	if (!apply->changed) {
		printf("nothing to apply\n");
	}
	put_others(apply);
	if (apply->changed) {
		put_next_steps(apply);
	}
	return EX_OK;
}

/* ---- revert ------------------------------------------------------------- */

static int read_file(TALLOC_CTX *mem_ctx, const char *path, char **text)
{
	struct edit *edit = NULL;
	const char *why = NULL;
	int ret;

	*text = NULL;
	ret = edit_open(mem_ctx, path, &edit, &why);
	if (ret == ENOENT) {
		return EX_OK;
	}
	if (ret != 0) {
		return edit_failed(ret, why);
	}
	if (edit_text(edit) != NULL) {
		*text = talloc_strdup(mem_ctx, edit_text(edit));
	}
	talloc_free(edit);
	return EX_OK;
}

/* What ctdb.conf will be is in apply->after, NULL: no such file. */
static int plan_revert(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	const char *why = NULL;
	char *after = NULL;
	int ret, status;

	status = read_file(mem_ctx, AFTER, &after);
	if (status == EX_OK) {
		status = read_file(mem_ctx, BEFORE, &apply->after);
	}
	if (status != EX_OK || after == NULL) {
		return status;
	}
	ret = edit_open(mem_ctx, apply->ctdb_conf, &apply->edit, &why);
	if (ret != 0) {
		return edit_failed(ret, why);
	}
	if (same_text(edit_text(apply->edit), apply->after)) {
		TALLOC_FREE(apply->edit);
		return EX_OK;
	}
	if (!same_text(edit_text(apply->edit), after)) {
		cli_say("'%s' has been changed since by somebody else: nothing "
			"is reverted; what it was before is in '%s'",
			apply->ctdb_conf, BEFORE);
		return EX_CONFIG;
	}
	put_diff(mem_ctx, apply->ctdb_conf, after, apply->after);
	apply->changed = true;
	return EX_OK;
}

static int reset_smb(TALLOC_CTX *mem_ctx, struct apply *apply, bool dry_run)
{
	const char *argv[] = {
		TDBDIRS_SMBCONF, "--by", "apply",
		dry_run ? "--dry-run" : "reset", dry_run ? "reset" : NULL, NULL,
	};
	json_t *result = NULL;
	int status;

	status = smbconf(mem_ctx, apply, argv, &result);
	if (status == EX_OK && dry_run) {
		show_smb(mem_ctx, apply, result);
	}
	json_decref(result);
	return status;
}

static int revert_ctdb_conf(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	const char *why = NULL;
	int ret;

	if (apply->after != NULL) {
		ret = edit_replace(apply->edit, apply->after, &why);
	} else {
		ret = edit_remove(apply->edit, &why);
	}
	if (ret != 0) {
		return edit_failed(ret, why);
	}
	forget_ctdb_conf(mem_ctx);
	return EX_OK;
}

static int revert_settings(TALLOC_CTX *mem_ctx, struct apply *apply)
{
	int status;

	status = plan_revert(mem_ctx, apply);
	if (status == EX_OK) {
		status = reset_smb(mem_ctx, apply, true);
	}
	if (status == EX_OK && apply->changed && !apply->dry_run) {
		status = reset_smb(mem_ctx, apply, false);
		if (status == EX_OK && apply->edit != NULL) {
			status = revert_ctdb_conf(mem_ctx, apply);
		}
	}
	if (status != EX_OK) {
		return status;
	}
	if (!apply->changed) {
		printf("nothing to revert\n");
	} else if (apply->edit != NULL) {
		printf("next: the same on every node, then stop ctdbd on all "
		       "of them, and start it\n");
	}
	return EX_OK;
}

/* ---- main --------------------------------------------------------------- */

/* Returns whether to go on. */
static bool read_arguments(TALLOC_CTX *mem_ctx, int argc, const char **argv,
			   int *dry_run, int *revert)
{
	const struct poptOption options[] = {
		{ "dry-run", 0, POPT_ARG_NONE, dry_run, 0,
		  "show what would be changed", NULL },
		{ "revert", 0, POPT_ARG_NONE, revert, 0,
		  "take back what was applied", NULL },
		POPT_AUTOHELP POPT_TABLEEND
	};
	poptContext pc = poptGetContext(NULL, argc, argv, options, 0);
	const char *extra = NULL;
	int ret;

	ret = poptGetNextOpt(pc);
	extra = poptGetArg(pc);
	if (ret < -1) {
		cli_say("%s", cli_popt_error(mem_ctx, pc, ret));
	} else if (extra != NULL) {
		cli_say("'%s' is one too many, expected: pingpong apply "
			"[--dry-run] [--revert]", extra);
	}
	ret = ret == -1 && extra == NULL ? 0 : -1;
	poptFreeContext(pc);
	return ret == 0;
}

int cmd_apply(int argc, const char **argv)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	struct apply apply = {};
	int dry_run = 0, revert = 0;
	int status = EX_USAGE;
	bool ok;

	ok = read_arguments(frame, argc, argv, &dry_run, &revert);
	if (!ok) {
		talloc_free(frame);
		return EX_USAGE;
	}
	apply.dry_run = dry_run != 0;
	status = prepare(frame, &apply);
	if (status == EX_OK) {
		status = revert != 0 ? revert_settings(frame, &apply)
				     : apply_settings(frame, &apply);
	}
	json_decref(apply.smb);
	json_decref(apply.ctdb);
	json_decref(apply.samba);
	talloc_free(frame);
	return status == EX_OK ? cli_finish(EX_OK) : status;
}
