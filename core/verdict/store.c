/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/config.h"
#include "core/verdict/store.h"

/*
 * Divisions: files; keys; records; paths; the calls of store.h.
 *
 * verdicts/KEY.json: {schema, pingpong, key, fstype, source, options,
 *	instance, uses {USE: {fitness, hung, scope, when, boot_id, with,
 *	because, mended_by, reason, ids}}, settings [...]}
 * paths.json: {schema, paths {PATH: {key, resolved, device, mount_id, mnt_ns,
 *	boot_id, mount}}}
 *
 * A new file is written as NAME.new by the one writer that holds the lock on
 * STATEDIR itself.
 */
#define SCHEMA 1
#define PATHS "paths.json"
#define MAX_FILE (16 * 1024 * 1024)
#define LOCK_TRIES 200
#define LOCK_PAUSE_US 10000

struct store {
	int dir;		/* STATEDIR */
	int verdicts;
};

/* ---- files */

static void close_fd(int *fd)
{
	if (*fd != -1) {
		close(*fd);
		*fd = -1;
	}
}

/* Ours, and closed to others? */
static int check_owner(int fd, mode_t type)
{
	struct stat st = {};
	int ret;

	ret = fstat(fd, &st);
	if (ret != 0) {
		return errno;
	}
	if ((st.st_mode & S_IFMT) != type || st.st_uid != geteuid() ||
	    (st.st_mode & 077) != 0) {
		return EPERM;
	}
	return 0;
}

static int open_dir(int at, const char *name, bool make, int *fd)
{
	int ret;

	if (make) {
		ret = mkdirat(at, name, 0700);
		if (ret != 0 && errno != EEXIST) {
			return errno;
		}
	}
	*fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (*fd == -1) {
		/* a symbolic link, or no directory */
		return errno == ELOOP || errno == ENOTDIR ? EPERM : errno;
	}
	ret = check_owner(*fd, S_IFDIR);
	if (ret != 0) {
		close_fd(fd);
	}
	return ret;
}

static int open_file(int dir, const char *name, int flags, int *fd)
{
	int ret;

	/* O_NONBLOCK: a FIFO must not hold us up */
	*fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		     0600);
	if (*fd == -1) {
		return errno == ELOOP ? EPERM : errno;
	}
	ret = check_owner(*fd, S_IFREG);
	if (ret != 0) {
		close_fd(fd);
	}
	return ret;
}

/* It goes when the descriptor is closed. */
static int take_lock(int dir)
{
	unsigned tries;
	int ret;

	for (tries = 0; tries < LOCK_TRIES; tries++) {
		ret = flock(dir, LOCK_EX | LOCK_NB);
		if (ret == 0) {
			return 0;
		}
		if (errno != EWOULDBLOCK && errno != EINTR) {
			return errno;
		}
		usleep(LOCK_PAUSE_US);
	}
	return EBUSY;
}

static void store_close(struct store *store)
{
	close_fd(&store->verdicts);
	close_fd(&store->dir);
}

static int store_open(const char *statedir, bool make, bool write,
		      struct store *store)
{
	int ret;

	*store = (struct store){.dir = -1, .verdicts = -1};
	ret = open_dir(AT_FDCWD, statedir, make, &store->dir);
	if (ret == 0) {
		ret = open_dir(store->dir, "verdicts", make, &store->verdicts);
	}
	if (ret == 0 && write) {
		ret = take_lock(store->dir);
	}
	if (ret != 0) {
		store_close(store);
	}
	return ret;
}

static int read_all(int fd, char **text, size_t *len)
{
	struct stat st = {};
	ssize_t n;
	int ret;

	ret = fstat(fd, &st);
	if (ret != 0) {
		return errno;
	}
	if (st.st_size > MAX_FILE) {
		return EINVAL;
	}
	*text = malloc(st.st_size + 1);
	if (*text == NULL) {
		return ENOMEM;
	}
	/* A file is complete before it gets its name. */
	*len = 0;
	while (*len < (size_t)st.st_size) {
		n = read(fd, *text + *len, st.st_size - *len);
		if (n == -1 && errno == EINTR) {
			continue;
		}
		if (n <= 0) {
			ret = n == 0 ? EINVAL : errno;
			free(*text);
			return ret;
		}
		*len += n;
	}
	return 0;
}

/* EINVAL: it is none of ours */
static int read_json(int dir, const char *name, json_t **json)
{
	char *text = NULL;
	size_t len = 0;
	int schema = 0;
	int fd = -1;
	int ret;

	ret = open_file(dir, name, O_RDONLY, &fd);
	if (ret != 0) {
		return ret;
	}
	ret = read_all(fd, &text, &len);
	close_fd(&fd);
	if (ret != 0) {
		return ret;
	}
	*json = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	free(text);
	ret = json_unpack(*json, "{s:i}", "schema", &schema);
	if (ret != 0 || schema != SCHEMA) {
		json_decref(*json);
		*json = NULL;
		return EINVAL;
	}
	return 0;
}

static int write_all(int fd, const char *text, size_t len)
{
	ssize_t n;
	int ret;

	while (len > 0) {
		n = write(fd, text, len);
		if (n == -1 && errno == EINTR) {
			continue;
		}
		if (n == -1) {
			return errno;
		}
		text += n;
		len -= n;
	}
	ret = fsync(fd);
	return ret == 0 ? 0 : errno;
}

static int replace(int dir, const char *name, const char *new,
		   const char *text)
{
	int fd = -1;
	int ret;

	ret = unlinkat(dir, new, 0);
	if (ret != 0 && errno != ENOENT) {
		return errno;
	}
	ret = open_file(dir, new, O_WRONLY | O_CREAT | O_EXCL, &fd);
	if (ret != 0) {
		return ret;
	}
	ret = write_all(fd, text, strlen(text));
	close_fd(&fd);
	if (ret == 0) {
		ret = renameat(dir, new, dir, name) == 0 ? 0 : errno;
	}
	if (ret != 0) {
		unlinkat(dir, new, 0);
		return ret;
	}
	ret = fsync(dir);
	return ret == 0 ? 0 : errno;
}

static int write_json(int dir, const char *name, const json_t *json)
{
	char *new = talloc_asprintf(NULL, "%s.new", name);
	char *text = json_dumps(json, JSON_INDENT(1));
	int ret = ENOMEM;

	if (new != NULL && text != NULL) {
		ret = replace(dir, name, new, text);
	}
	free(text);
	talloc_free(new);
	return ret;
}

/* ---- keys */

/* Options that say nothing of which file system it is, nor of how it locks
 * and caches; up to "=" */
static const char *const indifferent[] = {
	"addr", "clientaddr", "mountaddr", "mountport", "mountproto", "port",
	"proto", "retrans", "timeo", "rsize", "wsize", "bsize", "namlen",
	"nconnect", "max_connect", "echo_interval", "max_credits", "secret",
	"nosuid", "suid", "nodev", "dev", "noexec", "exec", "relatime",
	"noatime", "strictatime", "nodiratime", "lazytime", "size",
	"nr_inodes", "nr_blocks", "mode", "seclabel", "discard", "nodiscard",
	"errors", "commit", "stripe",
	NULL,
};

static bool matters(const char *option, size_t len)
{
	const char *const *name = NULL;
	const char *equals = memchr(option, '=', len);

	if (equals != NULL) {
		len = equals - option;
	}
	for (name = indifferent; *name != NULL; name++) {
		if (strlen(*name) == len && strncmp(*name, option, len) == 0) {
			return false;
		}
	}
	return len > 0;
}

static char *options_that_matter(TALLOC_CTX *mem_ctx, const char *options)
{
	char *left = talloc_strdup(mem_ctx, "");

	while (left != NULL && *options != '\0') {
		size_t len = strcspn(options, ",");
		bool keep = matters(options, len);

		if (keep) {
			left = talloc_asprintf_append(
				left, "%s%.*s", left[0] != '\0' ? "," : "",
				(int)len, options);
		}
		options += len;
		options += *options == ',';
	}
	return left;
}

/* FNV-1a of a string with its terminating zero */
static uint64_t hash(uint64_t h, const char *s)
{
	do {
		h ^= (unsigned char)*s;
		h *= 0x100000001b3;
	} while (*s++ != '\0');
	return h;
}

/* What tells a file system from others of its type, source and options: two
 * of FUSE, or two of tmpfs, often have the same. */
static char *instance_of(TALLOC_CTX *mem_ctx, const struct member_info *member)
{
	if (member->fsid != 0) {
		return talloc_asprintf(mem_ctx, "fsid %016llx",
				       (unsigned long long)member->fsid);
	}
	return talloc_asprintf(mem_ctx, "device %u:%u", member->major,
			       member->minor);
}

static char *key_of(TALLOC_CTX *mem_ctx, const struct member_info *member,
		    const char *options, const char *instance)
{
	uint64_t h = 0xcbf29ce484222325;

	h = hash(h, member->fstype);
	h = hash(h, member->source);
	h = hash(h, options);
	h = hash(h, instance);
	return talloc_asprintf(mem_ctx, "%016llx", (unsigned long long)h);
}

static char *file_name(TALLOC_CTX *mem_ctx, const char *key)
{
	return talloc_asprintf(mem_ctx, "%s.json", key);
}

/* ---- records: to JSON. NULL: no UTF-8, or no memory */

static json_t *strings_json(const char *const *list)
{
	json_t *array = json_array();

	for (; *list != NULL; list++) {
		int ret = json_array_append_new(array, json_string(*list));

		if (ret != 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *use_json(const struct stored_use *use)
{
	return json_pack("{s:s, s:b, s:b, s:s, s:I, s:s, s:s, s:o, s:o, s:s?, "
			 "s:o*}",
			 "fitness", fitness_name(use->fitness),
			 "hung", use->hung,
			 "light", use->light,
			 "scope",
			 use->scope == SCOPE_CLUSTER ? "cluster" : "local",
			 "when", (json_int_t)use->when,
			 "boot_id", use->boot_id,
			 "with", use->with,
			 "because", strings_json(use->because),
			 "mended_by", strings_json(use->mended_by),
			 "reason", use->reason,
			 "ids",
			 use->ids != NULL ? strings_json(use->ids) : NULL);
}

static json_t *setting_json(const struct setting *s)
{
	const char *names[USE_COUNT + 1] = {};
	unsigned i, num = 0;

	for (i = 0; i < USE_COUNT; i++) {
		if ((s->uses & USE_BIT(i)) != 0) {
			names[num] = use_name(i);
			num++;
		}
	}
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:s, s:o}",
			 "file", s->file,
			 "section", s->section,
			 "parameter", s->parameter,
			 "value", s->value,
			 "needed", s->needed,
			 "because", s->because,
			 "uses", strings_json(names));
}

static json_t *record_json(const struct stored_record *record)
{
	json_t *uses = json_object();
	json_t *settings = json_array();
	json_t *json = NULL;
	int ret = 0;
	size_t i;

	for (i = 0; i < USE_COUNT; i++) {
		if (record->uses[i].present) {
			ret |= json_object_set_new(uses, use_name(i),
						   use_json(&record->uses[i]));
		}
	}
	for (i = 0; i < record->num_settings; i++) {
		ret |= json_array_append_new(
			settings, setting_json(&record->settings[i]));
	}
	json = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o}",
			 "schema", SCHEMA,
			 "pingpong", PINGPONG_VERSION,
			 "key", record->key,
			 "fstype", record->fstype,
			 "source", record->source,
			 "options", record->options,
			 "instance", record->instance,
			 "uses", uses,
			 "settings", settings);
	if (ret != 0) {
		json_decref(json);
		return NULL;
	}
	return json;
}

/* ---- records: from JSON. The strings are the record's. */

/* Replace strings by copies; NULL ends the list. */
static int copy(TALLOC_CTX *mem_ctx, const char **strings[])
{
	for (; *strings != NULL; strings++) {
		if (**strings == NULL) {
			continue;
		}
		**strings = talloc_strdup(mem_ctx, **strings);
		if (**strings == NULL) {
			return ENOMEM;
		}
	}
	return 0;
}

static int strings_parse(TALLOC_CTX *mem_ctx, json_t *array,
			 const char ***list)
{
	size_t i, num = json_array_size(array);

	if (!json_is_array(array)) {
		return EINVAL;
	}
	*list = talloc_zero_array(mem_ctx, const char *, num + 1);
	if (*list == NULL) {
		return ENOMEM;
	}
	for (i = 0; i < num; i++) {
		const char *s = json_string_value(json_array_get(array, i));

		if (s == NULL) {
			return EINVAL;
		}
		(*list)[i] = talloc_strdup(*list, s);
		if ((*list)[i] == NULL) {
			return ENOMEM;
		}
	}
	return 0;
}

static int use_parse_json(TALLOC_CTX *mem_ctx, json_t *json,
			  struct stored_use *use)
{
	const char **strings[] = {&use->boot_id, &use->with, &use->reason,
				  NULL};
	const char *fitness = NULL;
	const char *scope = NULL;
	json_t *because = NULL;
	json_t *mended_by = NULL;
	json_t *reason = NULL;
	json_t *ids = NULL;
	json_int_t when = 0;
	int hung = 0;
	int light = 0;
	bool ok;
	int ret;

	ret = json_unpack(json, "{s:s, s:b, s:b, s:s, s:I, s:s, s:s, s:o, s:o, "
			  "s:o, s?o}",
			  "fitness", &fitness, "hung", &hung,
			  "light", &light, "scope", &scope,
			  "when", &when, "boot_id", &use->boot_id,
			  "with", &use->with, "because", &because,
			  "mended_by", &mended_by, "reason", &reason,
			  "ids", &ids);
	if (ret != 0) {
		return EINVAL;
	}
	ok = fitness_parse(fitness, &use->fitness);
	if (!ok) {
		return EINVAL;
	}
	if (strcmp(scope, "cluster") == 0) {
		use->scope = SCOPE_CLUSTER;
	} else if (strcmp(scope, "local") == 0) {
		use->scope = SCOPE_LOCAL;
	} else {
		return EINVAL;
	}
	use->present = true;
	use->hung = hung;
	use->light = light;
	use->when = when;
	use->reason = json_string_value(reason);

	ret = strings_parse(mem_ctx, because, &use->because);
	if (ret != 0) {
		return ret;
	}
	ret = strings_parse(mem_ctx, mended_by, &use->mended_by);
	if (ret == 0 && ids != NULL) {
		ret = strings_parse(mem_ctx, ids, &use->ids);
	}
	if (ret != 0) {
		return ret;
	}
	return copy(mem_ctx, strings);
}

static int setting_parse(TALLOC_CTX *mem_ctx, json_t *json, struct setting *s)
{
	const char **strings[] = {&s->file, &s->section, &s->parameter,
				  &s->value, &s->because, NULL};
	json_t *uses = NULL;
	json_t *name = NULL;
	int needed = 0;
	size_t i;
	int ret;

	ret = json_unpack(json, "{s:s, s:s, s:s, s:s, s:b, s:s, s:o}",
			  "file", &s->file, "section", &s->section,
			  "parameter", &s->parameter, "value", &s->value,
			  "needed", &needed, "because", &s->because,
			  "uses", &uses);
	if (ret != 0 || !json_is_array(uses)) {
		return EINVAL;
	}
	s->needed = needed;
	json_array_foreach(uses, i, name) {
		enum use use;
		bool ok = json_is_string(name) &&
			  use_parse(json_string_value(name), &use);

		if (!ok) {
			return EINVAL;
		}
		s->uses |= USE_BIT(use);
	}
	return copy(mem_ctx, strings);
}

static int record_parse(json_t *json, struct stored_record *record)
{
	const char **strings[] = {&record->key, &record->fstype,
				  &record->source, &record->options,
				  &record->instance, NULL};
	json_t *uses = NULL;
	json_t *settings = NULL;
	json_t *value = NULL;
	const char *name = NULL;
	size_t i;
	int ret;

	ret = json_unpack(json, "{s:s, s:s, s:s, s:s, s:s, s:o, s:o}",
			  "key", &record->key, "fstype", &record->fstype,
			  "source", &record->source,
			  "options", &record->options,
			  "instance", &record->instance,
			  "uses", &uses, "settings", &settings);
	if (ret != 0 || !json_is_object(uses) || !json_is_array(settings)) {
		return EINVAL;
	}
	ret = copy(record, strings);
	if (ret != 0) {
		return ret;
	}
	json_object_foreach(uses, name, value) {
		enum use use;
		bool known = use_parse(name, &use);

		if (!known) {
			return EINVAL;
		}
		ret = use_parse_json(record, value, &record->uses[use]);
		if (ret != 0) {
			return ret;
		}
	}
	record->num_settings = json_array_size(settings);
	record->settings = talloc_zero_array(record, struct setting,
					     record->num_settings);
	if (record->settings == NULL) {
		return ENOMEM;
	}
	json_array_foreach(settings, i, value) {
		ret = setting_parse(record, value, &record->settings[i]);
		if (ret != 0) {
			return ret;
		}
	}
	return 0;
}

static int record_read(TALLOC_CTX *mem_ctx, const struct store *store,
		       const char *key, struct stored_record **out)
{
	struct stored_record *record = talloc_zero(mem_ctx,
						   struct stored_record);
	char *name = file_name(record, key);
	json_t *json = NULL;
	int ret = ENOMEM;

	if (record != NULL && name != NULL) {
		ret = read_json(store->verdicts, name, &json);
	}
	if (ret == 0) {
		ret = record_parse(json, record);
		json_decref(json);
	}
	if (ret == 0 && strcmp(record->key, key) != 0) {
		ret = EINVAL;
	}
	if (ret != 0) {
		talloc_free(record);
		return ret;
	}
	*out = record;
	return 0;
}

/* ---- records: merging */

bool stored_use_fresh(const struct stored_use *use, time_t now,
		      unsigned max_age_s)
{
	return use->present && use->when <= now && now - use->when < max_age_s;
}

static bool replaces(const struct stored_use *old,
		     const struct use_verdict *new,
		     const struct verdict *verdict, time_t now)
{
	bool fresh = stored_use_fresh(old, now, STORE_FRESH_S);
	enum scope scope = verdict->scope;

	if (!fresh || old->fitness == UNKNOWN) {
		return true;
	}
	if (new->fitness == UNKNOWN) {
		return false;
	}
	if (verdict->light && !old->light && old->fitness == UNFIT) {
		return new->fitness == UNFIT && scope > old->scope;
	}
	if (old->scope == SCOPE_LOCAL || scope == SCOPE_CLUSTER) {
		return true;
	}
	return old->fitness == FIT && new->fitness == UNFIT;
}

static bool same_setting(const struct setting *a, const struct setting *b)
{
	return strcmp(a->file, b->file) == 0 &&
	       strcmp(a->section, b->section) == 0 &&
	       strcmp(a->parameter, b->parameter) == 0;
}

/*
 * Of the new settings those that are about replaced uses, of the old ones
 * those about the others
 */
static int merge_settings(struct stored_record *record,
			  const struct verdict *verdict, unsigned replaced)
{
	struct setting *settings = NULL;
	size_t i, j, num = 0;

	settings = talloc_zero_array(record, struct setting,
				     record->num_settings +
					     verdict->num_settings);
	if (settings == NULL) {
		return ENOMEM;
	}
	for (i = 0; i < verdict->num_settings; i++) {
		settings[num] = verdict->settings[i];
		settings[num].uses &= replaced;
		num += settings[num].uses != 0;
	}
	for (i = 0; i < record->num_settings; i++) {
		struct setting *old = &record->settings[i];

		old->uses &= ~replaced;
		for (j = 0; j < num; j++) {
			bool same = same_setting(old, &settings[j]);

			if (same) {
				settings[j].uses |= old->uses;
				old->uses = 0;
			}
		}
		if (old->uses != 0) {
			settings[num] = *old;
			num++;
		}
	}
	record->settings = settings;
	record->num_settings = num;
	return 0;
}

/* The record borrows the strings. */
static int merge(struct stored_record *record,
		 const struct member_info *member,
		 const struct verdict *verdict, unsigned tested, time_t now,
		 const char *with)
{
	unsigned replaced = 0;
	unsigned i;
	int ret;

	for (i = 0; i < USE_COUNT; i++) {
		bool replace_it = (tested & USE_BIT(i)) != 0 &&
				  replaces(&record->uses[i], &verdict->uses[i],
					   verdict, now);

		if (replace_it) {
			replaced |= USE_BIT(i);
		}
	}
	ret = merge_settings(record, verdict, replaced);
	if (ret != 0) {
		return ret;
	}
	for (i = 0; i < USE_COUNT; i++) {
		const struct use_verdict *use = &verdict->uses[i];

		if ((replaced & USE_BIT(i)) == 0) {
			continue;
		}
		record->uses[i] = (struct stored_use){
			.present = true,
			.fitness = use->fitness,
			.hung = use->hung,
			.light = verdict->light,
			.scope = verdict->scope,
			.when = now,
			.boot_id = member->boot_id,
			.with = with,
			.because = use->because,
			.mended_by = use->mended_by,
			.reason = use->reason,
			.ids = use->ids,
		};
	}
	return 0;
}

/* The record that is there, or an empty one of the member's file system */
static int record_open(TALLOC_CTX *mem_ctx, const struct store *store,
		       const struct member_info *member,
		       struct stored_record **out)
{
	struct stored_record *record = NULL;
	char *options = options_that_matter(mem_ctx, member->options);
	char *instance = instance_of(mem_ctx, member);
	char *key = NULL;
	int ret;

	if (options == NULL || instance == NULL) {
		return ENOMEM;
	}
	key = key_of(mem_ctx, member, options, instance);
	if (key == NULL) {
		return ENOMEM;
	}
	ret = record_read(mem_ctx, store, key, &record);
	if (ret == 0) {
		/* else two file systems with one key: the last one has it */
		bool same = strcmp(record->fstype, member->fstype) == 0 &&
			    strcmp(record->source, member->source) == 0 &&
			    strcmp(record->options, options) == 0 &&
			    strcmp(record->instance, instance) == 0;

		if (same) {
			*out = record;
			return 0;
		}
	} else if (ret != ENOENT && ret != EINVAL) {
		return ret;
	}
	record = talloc_zero(mem_ctx, struct stored_record);
	if (record == NULL) {
		return ENOMEM;
	}
	record->key = key;
	record->fstype = member->fstype;
	record->source = member->source;
	record->options = options;
	record->instance = instance;
	*out = record;
	return 0;
}

static int record_write(TALLOC_CTX *mem_ctx, const struct store *store,
			const struct stored_record *record)
{
	char *name = file_name(mem_ctx, record->key);
	json_t *json = NULL;
	int ret;

	if (name == NULL) {
		return ENOMEM;
	}
	json = record_json(record);
	if (json == NULL) {
		return EILSEQ;
	}
	ret = write_json(store->verdicts, name, json);
	json_decref(json);
	return ret;
}

/* ---- paths */

/* Without needless slashes, as smb.conf and the command line differ in them */
static char *tidy(TALLOC_CTX *mem_ctx, const char *path)
{
	char *tidied = talloc_strdup(mem_ctx, path);
	char *to = tidied;

	if (tidied == NULL) {
		return NULL;
	}
	for (; *path != '\0'; path++) {
		if (*path != '/' || (path[1] != '/' && path[1] != '\0')) {
			*to++ = *path;
		}
	}
	if (to == tidied && tidied[0] == '/') {
		to++;
	}
	*to = '\0';
	return tidied;
}

static int paths_read(const struct store *store, json_t **paths)
{
	int ret;

	ret = read_json(store->dir, PATHS, paths);
	if (ret == 0 && !json_is_object(json_object_get(*paths, "paths"))) {
		json_decref(*paths);
		ret = EINVAL;
	}
	return ret;
}

static bool is_key(const char *key)
{
	return key != NULL && key[0] != '\0' &&
	       key[strspn(key, "0123456789abcdef")] == '\0';
}

/* Remove the record of an entry that is gone, unless other paths have it. */
static int forget_record(const struct store *store, json_t *paths,
			 json_t *entry)
{
	const char *key = json_string_value(json_object_get(entry, "key"));
	const char *path = NULL;
	char *name = NULL;
	json_t *other = NULL;
	bool ok;
	int ret;

	ok = is_key(key);
	if (!ok) {
		return 0;
	}
	json_object_foreach(paths, path, other) {
		const char *others = json_string_value(
			json_object_get(other, "key"));

		if (others != NULL && strcmp(others, key) == 0) {
			return 0;
		}
	}
	name = file_name(NULL, key);
	if (name == NULL) {
		return ENOMEM;
	}
	ret = unlinkat(store->verdicts, name, 0);
	ret = ret == 0 || errno == ENOENT ? 0 : errno;
	talloc_free(name);
	return ret;
}

static json_t *path_json(const struct member_info *member, const char *key)
{
	return json_pack("{s:s, s:s, s:o, s:I, s:I, s:s, s:s}",
			 "key", key,
			 "resolved", member->resolved,
			 "device",
			 json_sprintf("%u:%u", member->major, member->minor),
			 "mount_id", (json_int_t)member->mount_id,
			 "mnt_ns", (json_int_t)member->mnt_ns,
			 "boot_id", member->boot_id,
			 "mount", member->mount_line);
}

static int path_write(TALLOC_CTX *mem_ctx, const struct store *store,
		      const struct member_info *member, const char *key)
{
	char *path = tidy(mem_ctx, member->path[0] == '/' ? member->path :
							    member->resolved);
	json_t *file = NULL;
	json_t *paths = NULL;
	json_t *before = NULL;
	int ret;

	if (path == NULL) {
		return ENOMEM;
	}
	ret = paths_read(store, &file);
	if (ret == ENOENT || ret == EINVAL) {
		file = json_pack("{s:i, s:{}}", "schema", SCHEMA, "paths");
		if (file == NULL) {
			return ENOMEM;
		}
	} else if (ret != 0) {
		return ret;
	}
	paths = json_object_get(file, "paths");
	before = json_incref(json_object_get(paths, path));
	ret = json_object_set_new(paths, path, path_json(member, key));
	ret = ret == 0 ? write_json(store->dir, PATHS, file) : EILSEQ;
	if (ret == 0) {
		ret = forget_record(store, paths, before);
	}
	json_decref(before);
	json_decref(file);
	return ret;
}

static int read_boot_id(char *buf, size_t size)
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	char *line = NULL;

	if (f == NULL) {
		return errno;
	}
	line = fgets(buf, size, f);
	fclose(f);
	if (line == NULL) {
		return EIO;
	}
	buf[strcspn(buf, "\n")] = '\0';
	return 0;
}

/* ESTALE: the path may lead somewhere else now */
static int check_mount(const struct mount_line *mount, const char *line,
		       const char *boot_id)
{
	char booted[64];
	int ret;

	ret = read_boot_id(booted, sizeof(booted));
	if (ret != 0) {
		return ret;
	}
	if (strcmp(booted, boot_id) != 0 || strcmp(mount->line, line) != 0) {
		return ESTALE;
	}
	return 0;
}

static int path_lookup(TALLOC_CTX *mem_ctx, const struct store *store,
		       const char *mountinfo, json_t *entry,
		       struct stored_record **out)
{
	struct stored_record *record = NULL;
	struct mount_line *mount = NULL;
	const char *key = NULL;
	const char *resolved = NULL;
	const char *boot_id = NULL;
	const char *line = NULL;
	int ret;

	ret = json_unpack(entry, "{s:s, s:s, s:s, s:s}", "key", &key,
			  "resolved", &resolved, "boot_id", &boot_id,
			  "mount", &line);
	if (ret != 0 || !is_key(key)) {
		return EINVAL;
	}
	ret = mount_by_path(mem_ctx, mountinfo, resolved, &mount);
	if (ret != 0) {
		return ret == ENOENT ? ESTALE : ret;
	}
	ret = check_mount(mount, line, boot_id);
	if (ret == 0) {
		ret = record_read(mem_ctx, store, key, &record);
	}
	if (ret == 0 && (strcmp(record->fstype, mount->fstype) != 0 ||
			 strcmp(record->source, mount->source) != 0)) {
		ret = ENOENT;
	}
	if (ret == 0) {
		ret = mounts_like(record, mountinfo, mount, &record->mounts);
	}
	talloc_free(mount);
	if (ret != 0) {
		talloc_free(record);
		return ret;
	}
	*out = record;
	return 0;
}

/* ---- calls */

int store_write(const char *statedir, const struct member_info *member,
		const struct verdict *verdict, unsigned tested, time_t now,
		const char *with)
{
	TALLOC_CTX *tmp_ctx = talloc_new(NULL);
	struct stored_record *record = NULL;
	struct store store;
	int ret;

	if (tmp_ctx == NULL) {
		return ENOMEM;
	}
	ret = store_open(statedir, true, true, &store);
	if (ret != 0) {
		talloc_free(tmp_ctx);
		return ret;
	}
	ret = record_open(tmp_ctx, &store, member, &record);
	if (ret == 0) {
		ret = merge(record, member, verdict, tested, now, with);
	}
	if (ret == 0) {
		ret = record_write(tmp_ctx, &store, record);
	}
	if (ret == 0) {
		ret = path_write(tmp_ctx, &store, member, record->key);
	}
	store_close(&store);
	talloc_free(tmp_ctx);
	return ret;
}

int store_lookup(TALLOC_CTX *mem_ctx, const char *statedir,
		 const char *mountinfo, const char *path,
		 struct stored_record **record)
{
	struct store store;
	json_t *paths = NULL;
	json_t *entry = NULL;
	char *name = NULL;
	int ret;

	ret = store_open(statedir, false, false, &store);
	if (ret != 0) {
		return ret;
	}
	name = tidy(NULL, path);
	ret = name != NULL ? paths_read(&store, &paths) : ENOMEM;
	if (ret == 0) {
		entry = json_object_get(json_object_get(paths, "paths"), name);
		ret = entry == NULL ? ENOENT :
			path_lookup(mem_ctx, &store, mountinfo, entry, record);
		json_decref(paths);
	}
	talloc_free(name);
	store_close(&store);
	return ret;
}

int store_each(TALLOC_CTX *mem_ctx, const char *statedir,
	       const char *mountinfo,
	       void (*fn)(const char *path, int err,
			  const struct stored_record *record,
			  void *private_data),
	       void *private_data)
{
	struct store store;
	json_t *paths = NULL;
	json_t *entry = NULL;
	const char *path = NULL;
	int ret;

	ret = store_open(statedir, false, false, &store);
	if (ret != 0) {
		return ret;
	}
	ret = paths_read(&store, &paths);
	if (ret != 0) {
		store_close(&store);
		return ret;
	}
	json_object_foreach(json_object_get(paths, "paths"), path, entry) {
		struct stored_record *record = NULL;
		int err = path_lookup(mem_ctx, &store, mountinfo, entry,
				      &record);

		fn(path, err, record, private_data);
		talloc_free(record);
	}
	json_decref(paths);
	store_close(&store);
	return 0;
}

static int forget(const struct store *store, json_t *file, const char *path)
{
	json_t *paths = json_object_get(file, "paths");
	json_t *entry = json_incref(json_object_get(paths, path));
	int ret;

	if (entry == NULL) {
		return ENOENT;
	}
	json_object_del(paths, path);
	ret = write_json(store->dir, PATHS, file);
	if (ret == 0) {
		ret = forget_record(store, paths, entry);
	}
	json_decref(entry);
	return ret;
}

int store_forget(const char *statedir, const char *path)
{
	struct store store;
	json_t *file = NULL;
	char *name = NULL;
	int ret;

	ret = store_open(statedir, false, true, &store);
	if (ret != 0) {
		return ret;
	}
	name = tidy(NULL, path);
	ret = name != NULL ? paths_read(&store, &file) : ENOMEM;
	if (ret == 0) {
		ret = forget(&store, file, name);
		json_decref(file);
	}
	talloc_free(name);
	store_close(&store);
	return ret;
}
