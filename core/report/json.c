/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>

#include "core/config.h"
#include "core/report/baseline.h"
#include "core/report/report.h"

/*
 * Every builder here returns a new reference or NULL for want of memory, and
 * takes over the references it is given (NULL too), so that they nest.
 */

/* NULL gives null. Bytes that are no UTF-8 (a path may have them) are written
 * as \xNN. */
static json_t *text(const char *s)
{
	char *safe = NULL;
	json_t *json = NULL;
	size_t i;

	if (s == NULL) {
		return json_null();
	}
	json = json_string(s);
	if (json != NULL) {
		return json;
	}
	safe = talloc_strdup(NULL, "");
	for (i = 0; s[i] != '\0' && safe != NULL; i++) {
		unsigned char c = s[i];

		safe = talloc_asprintf_append(safe, c < 0x80 ? "%c" : "\\x%02x",
					      c);
	}
	json = safe != NULL ? json_string(safe) : NULL;
	talloc_free(safe);
	return json;
}

/* Numbers beyond JSON's integers of 63 bits become strings. */
static json_t *number(uint64_t n)
{
	if (n <= INT64_MAX) {
		return json_integer(n);
	}
	return json_sprintf("%llu", (unsigned long long)n);
}

static json_t *names(const char *const *list)
{
	json_t *array = json_array();
	int ret = 0;

	while (array != NULL && ret == 0 && *list != NULL) {
		ret = json_array_append_new(array, text(*list));
		list++;
	}
	if (ret != 0) {
		json_decref(array);
		return NULL;
	}
	return array;
}

static json_t *member_json(const struct member_info *m)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "name", text(m->name),
			 "host", text(m->host),
			 "path", text(m->path),
			 "fstype", text(m->fstype),
			 "source", text(m->source),
			 "options", text(m->options),
			 "device", json_sprintf("%u:%u", m->major, m->minor),
			 "inode", number(m->inode),
			 "kernel", text(m->kernel));
}

static json_t *evidence_json(const struct evidence *e)
{
	if (e->operation == NULL && e->member == NULL && e->range == NULL &&
	    e->expected == NULL && e->seen == NULL && e->detail == NULL) {
		return json_null();
	}
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}",
			 "operation", text(e->operation),
			 "member", text(e->member),
			 "range", text(e->range),
			 "expected", text(e->expected),
			 "seen", text(e->seen),
			 "detail", text(e->detail));
}

static json_t *numbers(const unsigned *list)
{
	json_t *array = json_array();
	size_t i, num = list != NULL ? talloc_array_length(list) : 0;
	int ret = 0;

	for (i = 0; array != NULL && ret == 0 && i < num; i++) {
		ret = json_array_append_new(array, json_integer(list[i]));
	}
	if (ret != 0) {
		json_decref(array);
		return NULL;
	}
	return array;
}

static json_t *check_json(const struct check_result *r)
{
	json_t *metrics = r->metrics != NULL ? json_incref(r->metrics) :
					       json_object();

	const char *refusal = strerrorname_np(r->err);

	if (r->outcome != OUTCOME_UNSUPPORTED || r->err == 0) {
		refusal = NULL;
	}
	return json_pack("{s:s, s:s, s:s*, s:o*, s:o, s:o, s:o}",
			 "name", r->check->name,
			 "outcome", outcome_name(r->outcome),
			 "errno", refusal,
			 "why", r->why != NULL ? text(r->why) : NULL,
			 "members", numbers(r->members),
			 "evidence", evidence_json(&r->evidence),
			 "metrics", metrics);
}

static json_t *use_json(const struct use_verdict *v)
{
	return json_pack("{s:s, s:o, s:o, s:o*}",
			 "fitness", fitness_name(v->fitness),
			 "because", names(v->because),
			 "mended_by", names(v->mended_by),
			 "reason", v->reason != NULL ? text(v->reason) : NULL);
}

static json_t *uses_json(unsigned uses)
{
	json_t *array = json_array();
	unsigned i;
	int ret = 0;

	for (i = 0; i < USE_COUNT; i++) {
		if ((uses & USE_BIT(i)) != 0) {
			ret |= json_array_append_new(array,
						     json_string(use_name(i)));
		}
	}
	if (ret != 0) {
		json_decref(array);
		return NULL;
	}
	return array;
}

static json_t *setting_json(const struct setting *s)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o}",
			 "file", text(s->file),
			 "section", text(s->section),
			 "parameter", text(s->parameter),
			 "value", text(s->value),
			 "needed", s->needed,
			 "because", text(s->because),
			 "uses", uses_json(s->uses));
}

static json_t *started_json(time_t started)
{
	char line[sizeof("2000-01-01T00:00:00Z") + 16];
	struct tm tm = {};

	gmtime_r(&started, &tm);
	strftime(line, sizeof(line), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(line);
}

static json_t *target_json(const struct report *report)
{
	char *line = talloc_strdup(NULL, "");
	json_t *json = NULL;
	size_t i;

	for (i = 0; report->places[i] != NULL && line != NULL; i++) {
		line = talloc_asprintf_append(line, "%s%s", i > 0 ? " " : "",
					      report->places[i]);
	}
	json = line != NULL ? text(line) : NULL;
	talloc_free(line);
	return json;
}

static bool fill_lists(const struct report *report, json_t *members,
		       json_t *checks, json_t *verdict, json_t *settings)
{
	const struct verdict_input *input = report->input;
	const struct verdict *v = report->verdict;
	size_t i;
	int ret = 0;

	for (i = 0; i < input->num_members; i++) {
		ret |= json_array_append_new(members,
					     member_json(input->members[i]));
	}
	for (i = 0; i < input->num_results; i++) {
		ret |= json_array_append_new(checks,
					     check_json(input->results[i]));
	}
	for (i = 0; i < USE_COUNT; i++) {
		if (report_tells(report, i)) {
			ret |= json_object_set_new(verdict, use_name(i),
						   use_json(&v->uses[i]));
		}
	}
	for (i = 0; i < v->num_settings; i++) {
		ret |= json_array_append_new(settings,
					     setting_json(&v->settings[i]));
	}
	return ret == 0;
}

static json_t *compared_json(const struct baseline_result *c)
{
	static const char *const none[] = { NULL };

	return json_pack("{s:s, s:i, s:o}",
			 "baseline", c->name,
			 "runs", (int)c->runs,
			 "slower", names(c->slower != NULL ? c->slower
							   : none));
}

json_t *report_json(const struct report *report)
{
	json_t *members = json_array();
	json_t *checks = json_array();
	json_t *verdict = json_object();
	json_t *settings = json_array();
	json_t *json = NULL;
	bool local = report->verdict->scope == SCOPE_LOCAL;
	bool ok;

	ok = fill_lists(report, members, checks, verdict, settings);
	json = json_pack("{s:i, s:s, s:o, s:f, s:o, s:s, s:o, s:o, s:o, s:o, "
			 "s:o, s:i}",
			 "schema", 1,
			 "pingpong", PINGPONG_VERSION,
			 "started", started_json(report->started),
			 "duration_s", report->duration_s,
			 "target", target_json(report),
			 "scope", local ? "local" : "cluster",
			 "seed", number(report->seed),
			 "members", members,
			 "checks", checks,
			 "verdict", verdict,
			 "settings", settings,
			 "exit", report->exit);
	if (ok && report->compared != NULL) {
		ok = json_object_set_new(json, "compared", compared_json(
					 report->compared)) == 0;
	}
	if (!ok) {
		json_decref(json);
		return NULL;
	}
	return json;
}
