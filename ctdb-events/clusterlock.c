/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>

#include "ctdb-events/clusterlock.h"
#include "ctdb-events/command.h"

#define FCNTL_HELPER "ctdb_mutex_fcntl_helper"

static const char *const lock_keys[] = {
	"cluster lock", "recovery lock", NULL,
};

static int set_file(TALLOC_CTX *mem_ctx, const char *file,
		    struct clusterlock *lock)
{
	const char *slash = strrchr(file, '/');
	size_t len;

	if (file[0] != '/' || slash[1] == '\0') {
		return EINVAL;
	}
	while (slash > file && slash[-1] == '/') {
		slash--;
	}
	len = slash == file ? 1 : (size_t)(slash - file);
	lock->kind = CLUSTERLOCK_FILE;
	lock->file = talloc_strdup(mem_ctx, file);
	lock->directory = talloc_strndup(mem_ctx, file, len);
	if (lock->file == NULL || lock->directory == NULL) {
		return ENOMEM;
	}
	return 0;
}

static int set_helper(TALLOC_CTX *mem_ctx, const char *command,
		      struct clusterlock *lock)
{
	const char **words = command_words(mem_ctx, command);
	const char *name = NULL;

	lock->kind = CLUSTERLOCK_HELPER;
	if (words == NULL) {
		return 0;
	}
	name = strrchr(words[0], '/');
	name = name != NULL ? name + 1 : words[0];
	if (strcmp(name, FCNTL_HELPER) != 0 || words[1] == NULL) {
		return 0;
	}
	return set_file(mem_ctx, words[1], lock);
}

int clusterlock_parse(TALLOC_CTX *mem_ctx, const char *value,
		      struct clusterlock *lock)
{
	*lock = (struct clusterlock){};
	if (value == NULL || value[0] == '\0') {
		return 0;
	}
	lock->value = talloc_strdup(mem_ctx, value);
	if (lock->value == NULL) {
		return ENOMEM;
	}
	if (value[0] == '!') {
		return set_helper(mem_ctx, value + 1, lock);
	}
	return set_file(mem_ctx, value, lock);
}

struct tevent_req *clusterlock_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    const struct ctdb_paths *paths)
{
	return ctdbconfig_send(mem_ctx, ev, paths, "cluster", lock_keys);
}

int clusterlock_recv(struct tevent_req *req, TALLOC_CTX *mem_ctx,
		     struct clusterlock *lock)
{
	const char *key = NULL;
	char *value = NULL;
	int ret;

	*lock = (struct clusterlock){};
	ret = ctdbconfig_recv(req, mem_ctx, &value, &key);
	if (ret != 0) {
		return ret;
	}
	return clusterlock_parse(mem_ctx, value, lock);
}
