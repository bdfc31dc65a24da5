/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "ctdb-events/ctdbedit.h"

/* One line with its newline; the last one may have none */
struct line {
	const char *text;
	size_t len;
};

static bool next_line(const char **text, struct line *line)
{
	const char *end = strchr(*text, '\n');

	if (**text == '\0') {
		return false;
	}
	line->text = *text;
	line->len = end != NULL ? (size_t)(end + 1 - *text) : strlen(*text);
	*text += line->len;
	return true;
}

static void trim(const char **text, size_t *len)
{
	while (*len > 0 && isspace((unsigned char)**text)) {
		(*text)++;
		(*len)--;
	}
	while (*len > 0 && isspace((unsigned char)(*text)[*len - 1])) {
		(*len)--;
	}
}

static bool is_comment(const struct line *line)
{
	const char *text = line->text;
	size_t len = line->len;

	trim(&text, &len);
	return len == 0 || text[0] == '#' || text[0] == ';';
}

/* As ctdbd's parser has it: a backslash, or one and white space */
static bool is_continued(const struct line *line)
{
	const char *text = line->text;
	size_t len = line->len;

	if (is_comment(line)) {
		return false;
	}
	trim(&text, &len);
	return len > 0 && text[len - 1] == '\\';
}

/* *is_it: that of the name */
static bool is_header(const struct line *line, const char *section,
		      bool *is_it)
{
	const char *text = line->text;
	const char *end = NULL;
	size_t len = line->len;

	trim(&text, &len);
	if (len == 0 || text[0] != '[') {
		return false;
	}
	end = memchr(text, ']', len);
	*is_it = end != NULL &&
		 (size_t)(end - text - 1) == strlen(section) &&
		 strncasecmp(text + 1, section, strlen(section)) == 0;
	return true;
}

/* White space within a name counts as one blank. */
static bool same_key(const char *text, size_t len, const char *key)
{
	trim(&text, &len);
	while (len > 0 && *key != '\0') {
		if (isspace((unsigned char)*text) && *key == ' ') {
			trim(&text, &len);
			key++;
			continue;
		}
		if (*text != *key) {
			return false;
		}
		text++;
		len--;
		key++;
	}
	return len == 0 && *key == '\0';
}

/* Where the line's value begins, if it is one of the key; else NULL */
static const char *value_of_key(const struct line *line, const char *key)
{
	const char *equals = memchr(line->text, '=', line->len);
	bool same;

	if (equals == NULL || is_comment(line)) {
		return NULL;
	}
	same = same_key(line->text, (size_t)(equals - line->text), key);
	return same ? equals + 1 : NULL;
}

/* *out grows by the line with another value. */
static char *replace_value(char *out, const struct line *line,
			   const char *start, const char *value)
{
	const char *old = start;
	size_t len = (size_t)(line->text + line->len - start);
	const char *rest = NULL;

	trim(&old, &len);
	if (len == strlen(value) && strncasecmp(old, value, len) == 0) {
		return talloc_strndup_append_buffer(out, line->text,
						    line->len);
	}
	rest = old + len;
	if (len == 0) {
		rest = line->text + strcspn(line->text, "\n");
		return talloc_asprintf_append_buffer(
			out, "%.*s %s%.*s", (int)(start - line->text),
			line->text, value,
			(int)(line->text + line->len - rest), rest);
	}
	return talloc_asprintf_append_buffer(
		out, "%.*s%s%.*s", (int)(old - line->text), line->text, value,
		(int)(line->text + line->len - rest), rest);
}

/* The section is there and has no value yet. */
static char *insert_below(TALLOC_CTX *mem_ctx, const char *text,
			  size_t header_end, const char *key,
			  const char *value)
{
	bool newline = header_end > 0 && text[header_end - 1] == '\n';

	return talloc_asprintf(mem_ctx, "%.*s%s\t%s = %s\n%s",
			       (int)header_end, text, newline ? "" : "\n",
			       key, value, text + header_end);
}

static char *append_section(TALLOC_CTX *mem_ctx, const char *text,
			    const char *section, const char *key,
			    const char *value)
{
	size_t len = strlen(text);
	const char *between = "\n";

	if (len == 0) {
		between = "";
	} else if (text[len - 1] != '\n') {
		between = "\n\n";
	}
	return talloc_asprintf(mem_ctx, "%s%s[%s]\n\t%s = %s\n", text, between,
			       section, key, value);
}

int ctdbedit_set(TALLOC_CTX *mem_ctx, const char *given, const char *section,
		 const char *key, const char *value, char **out)
{
	const char *text = given != NULL ? given : "";
	const char *at = text;
	char *changed = talloc_strdup(mem_ctx, "");
	size_t header_end = 0;
	bool within = false, continued = false, found = false;
	struct line line;

	while (changed != NULL && next_line(&at, &line)) {
		bool here = within;
		bool header = !continued && is_header(&line, section, &here);
		const char *start = NULL;

		if (within && !header && !continued) {
			start = value_of_key(&line, key);
		}
		within = here;
		continued = is_continued(&line);
		if ((start != NULL || (header && within)) && continued) {
			talloc_free(changed);
			return EINVAL;
		}
		if (header && within && header_end == 0) {
			header_end = (size_t)(at - text);
		}
		if (start != NULL) {
			found = true;
			changed = replace_value(changed, &line, start, value);
		} else {
			changed = talloc_strndup_append_buffer(
				changed, line.text, line.len);
		}
	}
	if (changed != NULL && !found) {
		talloc_free(changed);
		if (continued && header_end == 0) {
			/* a line at the end would be part of that one */
			return EINVAL;
		}
		changed = header_end > 0
				  ? insert_below(mem_ctx, text, header_end,
						 key, value)
				  : append_section(mem_ctx, text, section,
						   key, value);
	}
	*out = changed;
	return changed != NULL ? 0 : ENOMEM;
}
