/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/member/mounts.h"

/*
 * Fields, separated by one space each:
 *
 *   ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG...] - FSTYPE SOURCE SUPER
 *
 * The kernel writes space, tab, newline, backslash and '#' as \ooo.
 */

static bool octal(char c)
{
	return c >= '0' && c <= '7';
}

/* The character at *p, which is moved behind it. */
static char unescaped(const char **p)
{
	const char *s = *p;

	if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && octal(s[2]) &&
	    octal(s[3])) {
		*p += 4;
		return (s[1] - '0') * 64 + (s[2] - '0') * 8 + (s[3] - '0');
	}
	*p += 1;
	return s[0];
}

static void unescape(char *field)
{
	const char *from = field;

	while (*from != '\0') {
		*field++ = unescaped(&from);
	}
	*field = '\0';
}

/* The next field of *rest, unescaped; NULL at the end of the line. */
static char *next_field(char **rest)
{
	char *field = strsep(rest, " ");

	if (field != NULL) {
		unescape(field);
	}
	return field;
}

static bool parse_number(const char *field, char end, uint64_t max,
			 uint64_t *number, const char **rest)
{
	char *stop = NULL;

	if (field == NULL || field[0] < '0' || field[0] > '9') {
		return false;
	}
	errno = 0;
	*number = strtoull(field, &stop, 10);
	if (errno != 0 || *number > max || *stop != end) {
		return false;
	}
	if (rest != NULL) {
		*rest = stop + 1;
	}
	return true;
}

static bool fill(struct mount_line *m, char *rest)
{
	const char *field = NULL;
	const char *minor_field = NULL;
	uint64_t major, minor;
	bool ok;

	ok = parse_number(next_field(&rest), '\0', UINT64_MAX, &m->id, NULL);
	if (!ok) {
		return false;
	}
	ok = parse_number(next_field(&rest), '\0', UINT64_MAX, &m->parent,
			  NULL);
	if (!ok) {
		return false;
	}
	ok = parse_number(next_field(&rest), ':', UINT32_MAX, &major,
			  &minor_field);
	if (!ok) {
		return false;
	}
	ok = parse_number(minor_field, '\0', UINT32_MAX, &minor, NULL);
	if (!ok) {
		return false;
	}
	m->major = major;
	m->minor = minor;

	m->root = next_field(&rest);
	m->point = next_field(&rest);
	m->options = next_field(&rest);
	do {
		field = next_field(&rest);
		if (field == NULL) {
			return false;
		}
	} while (strcmp(field, "-") != 0);
	m->fstype = next_field(&rest);
	m->source = next_field(&rest);
	m->super_options = next_field(&rest);

	return m->super_options != NULL && rest == NULL &&
	       m->root[0] != '\0' && m->point[0] != '\0' &&
	       m->fstype[0] != '\0' && m->super_options[0] != '\0';
}

int mount_line_parse(TALLOC_CTX *mem_ctx, const char *line,
		     struct mount_line **out)
{
	struct mount_line *m = NULL;
	char *fields = NULL;
	bool ok;

	if (strchr(line, '\n') != NULL) {
		return EINVAL;
	}
	m = talloc_zero(mem_ctx, struct mount_line);
	if (m == NULL) {
		return ENOMEM;
	}
	m->line = talloc_strdup(m, line);
	fields = talloc_strdup(m, line);
	if (m->line == NULL || fields == NULL) {
		talloc_free(m);
		return ENOMEM;
	}
	ok = fill(m, fields);
	if (!ok) {
		talloc_free(m);
		return EINVAL;
	}
	*out = m;
	return 0;
}

#define STOP (-1)

/* stdio's own is small, and a read of mountinfo is dear */
#define BUFFER_SIZE 65536

/*
 * Call fn for each line of a mountinfo file until it returns STOP or an errno.
 */
static int each_line(const char *mountinfo,
		     int (*fn)(const char *line, void *private_data),
		     void *private_data)
{
	char *buffer = malloc(BUFFER_SIZE);
	FILE *f = NULL;
	char *line = NULL;
	size_t size = 0;
	ssize_t len;
	int ret = 0;

	if (buffer == NULL) {
		return ENOMEM;
	}
	f = fopen(mountinfo, "re");
	if (f == NULL) {
		ret = errno;
		free(buffer);
		return ret;
	}
	setvbuf(f, buffer, _IOFBF, BUFFER_SIZE);
	while (ret == 0) {
		errno = 0;
		len = getline(&line, &size, f);
		if (len == -1) {
			ret = errno;
			break;
		}
		if (line[len - 1] == '\n') {
			line[len - 1] = '\0';
		}
		ret = fn(line, private_data);
	}
	free(line);
	fclose(f);
	free(buffer);
	return ret;
}

struct by_id {
	TALLOC_CTX *mem_ctx;
	uint64_t id;
	struct mount_line *found;
};

static int by_id_line(const char *line, void *private_data)
{
	struct by_id *state = private_data;
	uint64_t id = strtoull(line, NULL, 10);
	int ret;

	if (id != state->id) {
		return 0;
	}
	ret = mount_line_parse(state->mem_ctx, line, &state->found);
	return ret != 0 ? ret : STOP;
}

int mount_by_id(TALLOC_CTX *mem_ctx, const char *mountinfo, uint64_t id,
		struct mount_line **out)
{
	struct by_id state = {.mem_ctx = mem_ctx, .id = id};
	int ret;

	ret = each_line(mountinfo, by_id_line, &state);
	if (ret == STOP) {
		*out = state.found;
		return 0;
	}
	return ret != 0 ? ret : ENOENT;
}

/* The mounts whose mount point lies on the way to a path */
struct by_path {
	const char *path;
	struct mount_line **mounts;
	size_t num;
};

/* Is the line's mount point a leading part of the path? */
static bool leads_to(const char *line, const char *path)
{
	const char *point = line;
	unsigned i;

	for (i = 0; i < 4; i++) {
		point = strchr(point, ' ');
		if (point == NULL) {
			return false;
		}
		point++;
	}
	if (strncmp(point, "/ ", 2) == 0) {
		return true;
	}
	while (*point != ' ' && *point != '\0') {
		char c = unescaped(&point);

		if (c == '\0' || c != *path) {
			return false;
		}
		path++;
	}
	return *path == '\0' || *path == '/';
}

static int by_path_line(const char *line, void *private_data)
{
	struct by_path *state = private_data;
	struct mount_line **mounts = NULL;
	bool ok;
	int ret;

	ok = leads_to(line, state->path);
	if (!ok) {
		return 0;
	}
	mounts = talloc_realloc(state, state->mounts, struct mount_line *,
				state->num + 1);
	if (mounts == NULL) {
		return ENOMEM;
	}
	state->mounts = mounts;
	ret = mount_line_parse(mounts, line, &mounts[state->num]);
	if (ret == 0) {
		state->num++;
	}
	return ret;
}

/*
 * From the root down: of the mounts on the present one, the way to the path
 * meets the one with the shortest mount point first.
 */
static struct mount_line *topmost(const struct by_path *state)
{
	struct mount_line *at = NULL;
	struct mount_line *next = NULL;
	size_t depth, i;

	for (i = 0; i < state->num; i++) {
		if (strcmp(state->mounts[i]->point, "/") == 0) {
			next = state->mounts[i];
			break;
		}
	}
	for (depth = 0; next != NULL && depth <= state->num; depth++) {
		at = next;
		next = NULL;
		for (i = 0; i < state->num; i++) {
			struct mount_line *m = state->mounts[i];

			if (m == at || m->parent != at->id) {
				continue;
			}
			if (next == NULL ||
			    strlen(m->point) < strlen(next->point)) {
				next = m;
			}
		}
	}
	return at;
}

int mount_by_path(TALLOC_CTX *mem_ctx, const char *mountinfo, const char *path,
		  struct mount_line **out)
{
	struct by_path *state = NULL;
	struct mount_line *found = NULL;
	int ret;

	if (path[0] != '/') {
		return EINVAL;
	}
	state = talloc_zero(mem_ctx, struct by_path);
	if (state == NULL) {
		return ENOMEM;
	}
	state->path = path;
	ret = each_line(mountinfo, by_path_line, state);
	if (ret == 0) {
		found = topmost(state);
		ret = found == NULL ? ENOENT : 0;
	}
	if (ret == 0) {
		*out = talloc_steal(mem_ctx, found);
	}
	talloc_free(state);
	return ret;
}

struct mounts_alike {
	const struct mount_line *mount;
	struct mount_line **mounts;	/* a talloc array, ends with NULL */
};

static int mounts_like_line(const char *line, void *private_data)
{
	struct mounts_alike *state = private_data;
	size_t num = talloc_array_length(state->mounts);
	struct mount_line **mounts = NULL;
	struct mount_line *other = NULL;
	unsigned major = 0, minor = 0;
	bool alike;
	int ret;

	/* there may be thousands, which are not worth the parsing */
	ret = sscanf(line, "%*u %*u %u:%u ", &major, &minor);
	alike = ret == 2 && major == state->mount->major &&
		minor == state->mount->minor;
	if (!alike && !leads_to(line, state->mount->point)) {
		return 0;
	}
	ret = mount_line_parse(state->mounts, line, &other);
	if (ret != 0) {
		return ret;
	}
	alike = (other->major == state->mount->major &&
		 other->minor == state->mount->minor) ||
		strcmp(other->point, state->mount->point) == 0;
	if (!alike) {
		talloc_free(other);
		return 0;
	}
	mounts = talloc_realloc(NULL, state->mounts, struct mount_line *,
				num + 1);
	if (mounts == NULL) {
		return ENOMEM;
	}
	mounts[num - 1] = other;
	mounts[num] = NULL;
	state->mounts = mounts;
	return 0;
}

int mounts_like(TALLOC_CTX *mem_ctx, const char *mountinfo,
		const struct mount_line *mount, struct mount_line ***out)
{
	struct mounts_alike state = {
		.mount = mount,
		.mounts = talloc_zero_array(NULL, struct mount_line *, 1),
	};
	int ret;

	if (state.mounts == NULL) {
		return ENOMEM;
	}
	ret = each_line(mountinfo, mounts_like_line, &state);
	if (ret != 0) {
		talloc_free(state.mounts);
		return ret;
	}
	*out = talloc_steal(mem_ctx, state.mounts);
	return 0;
}
