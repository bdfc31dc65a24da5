/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The uses and what each needs; words of a verdict, and lists of them
 */
#include <string.h>

#include "core/verdict/verdict.h"

/*
 * What each use needs, in the order in which reasons are given. What is in no
 * row (rate.*, lock.flock, lease.break) makes no use unfit.
 */
#define MAX_NEEDS 16		/* and the NULL */

static const struct {
	const char *name;
	const char *const needs[MAX_NEEDS];
} uses[USE_COUNT] = {
	/*
	 * CTDB's helper tries byte 0 and waits for byte 1: a waiter that left
	 * something behind blocks the next one.
	 */
	[USE_CLUSTER_LOCK] = {"cluster-lock", {
		"lock.supported", "lock.exclusion", "lock.release",
		"lock.handoff", "lock.cancel", "lock.idle", "lock.ring",
		"id.inode",
	}},
	/*
	 * smbd itself never waits for a lock on a share's file. Whoever else
	 * opens the file may, and what such a waiter leaves behind smbd meets.
	 */
	[USE_POSIX_LOCKING] = {"posix-locking", {
		"lock.supported", "lock.exclusion", "lock.shared",
		"lock.getlk", "lock.release", "lock.handoff", "lock.cancel",
		"lock.range64", "lock.many", "lock.idle", "lock.ofd",
		"lock.ring",
		"io.increment", "io.visibility",
	}},
	[USE_SHARE] = {"share", {
		"io.visibility", "io.size", "io.append", "id.inode",
		"dir.visibility",
	}},
	[USE_FILE_ID] = {"file-id", {"id.inode", "id.device"}},
	[USE_TDB] = {"tdb", {"mmap.local"}},
	[USE_MMAP] = {"mmap", {
		"mmap.visibility", "mmap.mixed", "mmap.increment",
	}},
};

static const char *const fitness_names[] = {
	[FIT] = "fit",
	[UNFIT] = "unfit",
	[UNKNOWN] = "unknown",
};

const char *use_name(enum use use)
{
	return uses[use].name;
}

const char *const *use_needs(enum use use)
{
	return uses[use].needs;
}

bool use_parse(const char *name, enum use *use)
{
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		if (strcmp(uses[i].name, name) == 0) {
			*use = i;
			return true;
		}
	}
	return false;
}

const char *fitness_name(enum fitness fitness)
{
	return fitness_names[fitness];
}

bool fitness_parse(const char *name, enum fitness *fitness)
{
	unsigned i;

	for (i = FIT; i <= UNKNOWN; i++) {
		if (strcmp(fitness_names[i], name) == 0) {
			*fitness = i;
			return true;
		}
	}
	return false;
}

bool names_add(TALLOC_CTX *mem_ctx, const char ***names, const char *name)
{
	size_t num = 0;
	const char **list = NULL;

	while (*names != NULL && (*names)[num] != NULL) {
		num++;
	}
	list = talloc_realloc(mem_ctx, *names, const char *, num + 2);
	if (list == NULL) {
		return false;
	}
	list[num] = name;
	list[num + 1] = NULL;
	*names = list;
	return true;
}

bool names_have(const char *const *names, const char *name)
{
	for (; names != NULL && *names != NULL; names++) {
		if (strcmp(*names, name) == 0) {
			return true;
		}
	}
	return false;
}

char *names_join(TALLOC_CTX *mem_ctx, const char *const *names)
{
	char *line = talloc_strdup(mem_ctx, "");

	while (*names != NULL && line != NULL) {
		line = talloc_asprintf_append(line, "%s%s", *names,
					      names[1] != NULL ? ", " : "");
		names++;
	}
	return line;
}
