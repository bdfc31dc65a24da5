/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "ctdb-events/confblock.h"

#define BEGIN "# begin of what pingpong writes: changes in here are lost\n"
#define END "# end of what pingpong writes\n"
#define BY "# by "
#define STAGED ", from the next start of ctdbd on"

/* "# by WHO[, from ...]:" and then "NAME = VALUE" or "#NAME = VALUE" */
static bool parse_entry(char *who, char *line, json_t *entries)
{
	char *value = NULL, *end = NULL;
	bool staged;
	int ret;

	if (strncmp(who, BY, strlen(BY)) != 0) {
		return false;
	}
	who += strlen(BY);
	staged = strstr(who, STAGED ":") != NULL;
	end = strpbrk(who, ",:");
	if (end == NULL || (line[0] == '#') != staged) {
		return false;
	}
	*end = '\0';
	line += staged ? 1 : 0;
	value = strstr(line, " = ");
	if (value == NULL) {
		return false;
	}
	*value = '\0';
	ret = json_object_set_new(entries, line, json_pack(
		"{ss, ss, sb}", "value", value + strlen(" = "), "by", who,
		"staged", staged));
	return ret == 0;
}

static bool parse_entries(char *lines, json_t *entries)
{
	char *who = NULL, *line = NULL, *save = NULL;
	bool ok = true;

	who = strtok_r(lines, "\n", &save);
	while (who != NULL && ok) {
		line = strtok_r(NULL, "\n", &save);
		ok = line != NULL && parse_entry(who, line, entries);
		who = strtok_r(NULL, "\n", &save);
	}
	return ok;
}

static bool at_line_start(const char *text, const char *at)
{
	return at == text || at[-1] == '\n';
}

static bool split(TALLOC_CTX *mem_ctx, const char *text, char **lines,
		  char **rest)
{
	const char *begin = strstr(text, BEGIN);
	const char *end = strstr(text, END);
	const char *inner = NULL;

	if (begin == NULL && end == NULL) {
		*lines = talloc_strdup(mem_ctx, "");
		*rest = talloc_strdup(mem_ctx, text);
		return *lines != NULL && *rest != NULL;
	}
	if (begin == NULL || end == NULL || end < begin ||
	    !at_line_start(text, begin) || !at_line_start(text, end) ||
	    strstr(begin + 1, BEGIN) != NULL || strstr(end + 1, END) != NULL) {
		return false;
	}
	inner = begin + strlen(BEGIN);
	*lines = talloc_strndup(mem_ctx, inner, (size_t)(end - inner));
	*rest = talloc_asprintf(mem_ctx, "%.*s%s", (int)(begin - text), text,
				end + strlen(END));
	return *lines != NULL && *rest != NULL;
}

bool confblock_parse(TALLOC_CTX *mem_ctx, const char *text, json_t **entries,
		 char **rest)
{
	char *lines = NULL;
	bool ok;

	*entries = json_object();
	ok = *entries != NULL &&
	     split(mem_ctx, text != NULL ? text : "", &lines, rest) &&
	     parse_entries(lines, *entries);
	if (!ok) {
		json_decref(*entries);
		*entries = NULL;
	}
	talloc_free(lines);
	return ok;
}

char *confblock_print(TALLOC_CTX *mem_ctx, json_t *entries, const char *rest)
{
	char *text = NULL;
	const char *name = NULL;
	json_t *entry = NULL;

	if (json_object_size(entries) == 0) {
		return talloc_strdup(mem_ctx, rest);
	}
	text = talloc_strdup(mem_ctx, BEGIN);
	json_object_foreach(entries, name, entry) {
		bool staged = json_is_true(json_object_get(entry, "staged"));

		text = talloc_asprintf_append(
			text, BY "%s%s:\n%s%s = %s\n",
			json_string_value(json_object_get(entry, "by")),
			staged ? STAGED : "", staged ? "#" : "", name,
			json_string_value(json_object_get(entry, "value")));
	}
	return talloc_asprintf_append(text, END "%s", rest);
}
