/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pingpong-smbconf: the only program that carries Samba's libraries and waits
 * for its registry. For pingpong and its agent; JSON on standard output.
 *
 *   pingpong-smbconf [--timeout S] list
 *	{"file", "source" ("text", "registry", "both": text, and shares of the
 *	registry), "clustering", "use_mmap", "vfs_objects" [...] (of [global]),
 *	"include" {"path", "included", "first"}, "set",
 *	"tdb_dirs" [{"path", "whose"}],
 *	"shares" [{"name", "path", "skipped", "vfs_objects" [...],
 *	"params" {...}}]}
 *	skipped: why nothing can be said of its path; absent otherwise.
 *	params: names in lower case, values as they hold for the share.
 *	set: what pingpong has set: {NAME: {"value", "by", "staged"}}.
 *   pingpong-smbconf [OPTION...] set NAME VALUE [NAME VALUE...]
 *	What is in force already is not set.
 *   pingpong-smbconf [OPTION...] reset [NAME...]
 *	Takes back what was set; without NAME, all that WHO has set. Both give
 *	{"where", "before", "after"}: see smbconf_change.h. Options:
 *	--by WHO	who sets it ("agent")
 *	--staged NAME	this one is to be set at ctdbd's next start only
 *	--include-only	reset: not in the registry, and without reading it
 *	--dry-run	change nothing
 *
 * Exit status as in sysexits.h; 75: no answer within S seconds (10). What it
 * says of a failure is on standard error, and is {"error"} here.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "core/config.h"
#include "ctdb-events/smbconf_change.h"
#include "ctdb-events/smbconf_conf.h"

#define TIMEOUT_S 10
#define MAX_TIMEOUT_S 3600

#define INCLUDE_FILE STATEDIR "/smb.conf.include"

static const char *include_file(void)
{
	const char *path = getenv("CTDB_PINGPONG_INCLUDE_FILE");

	return path != NULL && path[0] != '\0' ? path : INCLUDE_FILE;
}

static void say(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/* One line, whatever the values in it are */
static void say(const char *format, ...)
{
	char *line = NULL, *p = NULL;
	va_list ap;

	va_start(ap, format);
	line = talloc_vasprintf(NULL, format, ap);
	va_end(ap);
	for (p = line; p != NULL && *p != '\0'; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f) {
			*p = '?';
		}
	}
	fprintf(stderr, "pingpong-smbconf: %s\n",
		line != NULL ? line : "no memory");
	talloc_free(line);
}

/* ---- the deadline ------------------------------------------------------- */

static char too_late[128];

static void deadline(int signum)
{
	ssize_t n;

	(void)signum;
	n = write(STDERR_FILENO, too_late, strlen(too_late));
	(void)n;
	_exit(EX_TEMPFAIL);
}

/* A timer of our own: Samba uses SIGALRM. */
static bool set_deadline(unsigned seconds)
{
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGRTMAX,
	};
	struct itimerspec when = { .it_value.tv_sec = seconds };
	timer_t timer;
	int ret;

	snprintf(too_late, sizeof(too_late), "pingpong-smbconf: no answer "
		 "within %u s: the registry is not served, or a file hangs\n",
		 seconds);
	signal(SIGRTMAX, deadline);
	ret = timer_create(CLOCK_MONOTONIC, &event, &timer);
	if (ret == 0) {
		ret = timer_settime(timer, 0, &when, NULL);
	}
	return ret == 0;
}

/* ---- list --------------------------------------------------------------- */

static const struct {
	const char *parameter;
	const char *whose;
} tdb_parameters[] = {
	{ "lock directory", "Samba's lock directory" },
	{ "state directory", "Samba's state directory" },
	{ "cache directory", "Samba's cache directory" },
	{ "private dir", "Samba's private dir" },
};

/* What a share needs depends on these. */
static const char *const share_parameters[] = {
	"posix locking", "smbd force process locks", "kernel oplocks",
	"kernel share modes", NULL,
};
static const char *const share_prefixes[] = { "fileid:", "pingpong:", NULL };

static json_t *list_tdb_dirs(const struct conf *conf)
{
	json_t *dirs = json_array();
	size_t i;

	for (i = 0; i < sizeof(tdb_parameters) / sizeof(*tdb_parameters);
	     i++) {
		const char *path = conf_global(conf,
					       tdb_parameters[i].parameter);

		json_array_append_new(dirs, json_pack(
			"{ss, ss}", "path", path, "whose",
			tdb_parameters[i].whose));
	}
	return dirs;
}

static const char *skipped(const struct conf *conf, json_t *service)
{
	const char *name = json_string_value(json_object_get(service, "name"));
	const char *path = conf_service(conf, service, "path");

	if (conf_is_yes(conf_service(conf, service, "printable"))) {
		return "a printer";
	}
	if (strcasecmp(name, "IPC$") == 0) {
		return "IPC$";
	}
	if (strcasecmp(name, "homes") == 0) {
		return "its path depends on the user";
	}
	if (path[0] == '\0') {
		return "no path";
	}
	if (!conf_is_yes(conf_service(conf, service, "available"))) {
		return "not available";
	}
	if (strchr(path, '%') != NULL) {
		return "its path has a substitution";
	}
	if (strchr(path, '?') != NULL) {
		return "its path is no UTF-8, or has a '?'";
	}
	return NULL;
}

static json_t *split(const char *list)
{
	char *copy = strdup(list);
	json_t *objects = json_array();
	char *word = NULL, *save = NULL;

	for (word = copy != NULL ? strtok_r(copy, " \t,\"", &save) : NULL;
	     word != NULL; word = strtok_r(NULL, " \t,\"", &save)) {
		json_array_append_new(objects, json_string(word));
	}
	free(copy);
	return objects;
}

static void take_prefixed(json_t *from, json_t *params)
{
	const char *const *prefix = NULL;
	const char *name = NULL;
	json_t *value = NULL;

	json_object_foreach(from, name, value) {
		for (prefix = share_prefixes; *prefix != NULL; prefix++) {
			if (strncmp(name, *prefix, strlen(*prefix)) == 0) {
				json_object_set(params, name, value);
			}
		}
	}
}

static json_t *list_params(const struct conf *conf, json_t *service)
{
	json_t *params = json_object();
	const char *const *name = NULL;

	for (name = share_parameters; *name != NULL; name++) {
		bool yes = conf_is_yes(conf_service(conf, service, *name));

		json_object_set_new(params, *name,
				    json_string(yes ? "yes" : "no"));
	}
	take_prefixed(conf->global, params);
	take_prefixed(json_object_get(service, "own"), params);
	return params;
}

static json_t *list_shares(const struct conf *conf)
{
	json_t *shares = json_array();
	json_t *service = NULL;
	size_t i;

	json_array_foreach(conf->services, i, service) {
		const char *why = skipped(conf, service);

		json_array_append_new(shares, json_pack(
			"{sO, ss, ss*, so, so}",
			"name", json_object_get(service, "name"),
			"path", conf_service(conf, service, "path"),
			"skipped", why,
			"vfs_objects", split(conf_service(conf, service,
							  "vfs objects")),
			"params", list_params(conf, service)));
	}
	return shares;
}

static json_t *list(const struct conf *conf, json_t *set)
{
	static const char *const sources[] = {
		[CONF_TEXT] = "text",
		[CONF_REGISTRY] = "registry",
		[CONF_BOTH] = "both",
	};

	return json_pack(
		"{ss, ss, sb, sb, so, s{ss, sb, sb}, so, so, so}",
		"file", conf->file, "source", sources[conf->source],
		"clustering", conf_is_yes(conf_global(conf, "clustering")),
		"use_mmap", conf_is_yes(conf_global(conf, "use mmap")),
		"vfs_objects", split(conf_global(conf, "vfs objects")),
		"include", "path", include_file(), "included",
		conf->includes_ours, "first", conf->ours_comes_first,
		"set", set, "tdb_dirs", list_tdb_dirs(conf),
		"shares", list_shares(conf));
}

static int list_all(TALLOC_CTX *mem_ctx, json_t **result, const char **why)
{
	struct conf *conf = NULL;
	json_t *set = NULL;
	bool ok;
	int ret;

	ok = conf_load(mem_ctx, include_file(), &conf, why);
	if (!ok) {
		return EX_CONFIG;
	}
	ret = change_list(mem_ctx, conf, include_file(), &set, why);
	if (ret == EX_OK) {
		*result = list(conf, set);
	}
	return ret;
}

/* ---- main --------------------------------------------------------------- */

static const char usage[] =
	"usage: pingpong-smbconf [--timeout S] list\n"
	"       pingpong-smbconf [OPTION...] set NAME VALUE [NAME VALUE...]\n"
	"       pingpong-smbconf [OPTION...] reset [NAME...]\n"
	"options: --timeout S, --by WHO, --staged NAME, --include-only, "
	"--dry-run\n";

enum { OPT_TIMEOUT, OPT_BY, OPT_STAGED, OPT_INCLUDE_ONLY, OPT_DRY_RUN,
       OPT_HELP };

static const struct option long_options[] = {
	{ "timeout", required_argument, NULL, OPT_TIMEOUT },
	{ "by", required_argument, NULL, OPT_BY },
	{ "staged", required_argument, NULL, OPT_STAGED },
	{ "include-only", no_argument, NULL, OPT_INCLUDE_ONLY },
	{ "dry-run", no_argument, NULL, OPT_DRY_RUN },
	{ "help", no_argument, NULL, OPT_HELP },
	{ NULL, 0, NULL, 0 },
};

struct command {
	unsigned timeout_s;
	const char *name;
	char **words;			/* NULL-terminated */
	const char *staged;
	struct change change;
};

static bool read_timeout(const char *value, unsigned *seconds)
{
	char *end = NULL;
	unsigned long n;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno != 0 || *end != '\0' || value[0] < '0' || value[0] > '9' ||
	    n < 1 || n > MAX_TIMEOUT_S) {
		say("--timeout '%s': expected seconds from 1 to %u", value,
		    MAX_TIMEOUT_S);
		return false;
	}
	*seconds = (unsigned)n;
	return true;
}

/* One word of letters: it stands in a line of the include file. */
static bool read_by(const char *value, const char **by)
{
	size_t len = strspn(value, "abcdefghijklmnopqrstuvwxyz");

	if (len == 0 || value[len] != '\0') {
		say("--by '%s': expected a word of small letters", value);
		return false;
	}
	*by = value;
	return true;
}

/* Returns whether to go on; else *status. */
static bool read_options(int argc, char **argv, struct command *command,
			 int *status)
{
	bool ok = true;
	int opt = 0;

	*status = EX_USAGE;
	while (ok && opt != -1) {
		opt = getopt_long(argc, argv, "+", long_options, NULL);
		switch (opt) {
		case -1:
			break;
		case OPT_TIMEOUT:
			ok = read_timeout(optarg, &command->timeout_s);
			break;
		case OPT_BY:
			ok = read_by(optarg, &command->change.by);
			break;
		case OPT_STAGED:
			command->staged = optarg;
			break;
		case OPT_INCLUDE_ONLY:
			command->change.include_only = true;
			break;
		case OPT_DRY_RUN:
			command->change.dry_run = true;
			break;
		case OPT_HELP:
			fputs(usage, stdout);
			*status = EX_OK;
			return false;
		default:
			return false;
		}
	}
	return ok;
}

/* What would end a line, or a name, would set something else. */
static bool is_settable(const char *word, const char *not_in)
{
	if (word[0] == '\0' || word[strcspn(word, not_in)] != '\0') {
		say("'%s': expected a parameter of smb.conf or its value",
		    word);
		return false;
	}
	return true;
}

static bool read_set(struct command *command)
{
	char **word = command->words;

	command->change.set = json_object();
	if (word[0] == NULL) {
		fputs(usage, stderr);
		return false;
	}
	for (; word[0] != NULL && word[1] != NULL; word += 2) {
		bool staged = command->staged != NULL &&
			      strcmp(command->staged, word[0]) == 0;

		if (!is_settable(word[0], "\n=#;[") ||
		    !is_settable(word[1], "\n")) {
			return false;
		}
		json_object_set_new(command->change.set, word[0], json_pack(
			"{ss, sb}", "value", word[1], "staged", staged));
	}
	if (word[0] != NULL) {
		say("'%s': expected a value after it", word[0]);
	}
	return word[0] == NULL;
}

static void read_reset(struct command *command)
{
	char **word = NULL;

	if (command->words[0] == NULL) {
		return;
	}
	command->change.reset = json_array();
	for (word = command->words; *word != NULL; word++) {
		json_array_append_new(command->change.reset,
				      json_string(*word));
	}
}

static bool read_command(char **words, struct command *command)
{
	command->name = words[0] != NULL ? words[0] : "";
	command->words = words + 1;
	if (strcmp(command->name, "set") == 0) {
		return read_set(command);
	}
	if (strcmp(command->name, "reset") == 0) {
		read_reset(command);
		return true;
	}
	if (strcmp(command->name, "list") == 0 && command->words[0] == NULL) {
		return true;
	}
	fputs(usage, stderr);
	return false;
}

static int run_command(struct command *command, json_t **result)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	const char *why = NULL;
	int ret;

	if (strcmp(command->name, "list") == 0) {
		ret = list_all(frame, result, &why);
	} else {
		ret = change_make(frame, &command->change, result, &why);
	}
	if (ret == EX_OK && *result == NULL) {
		why = "no memory";
		ret = EX_OSERR;
	}
	if (ret != EX_OK) {
		say("%s", why);
		json_decref(*result);
		*result = json_pack("{ss}", "error", why);
	}
	talloc_free(frame);
	return ret;
}

static int print_result(const json_t *result, FILE *out)
{
	int ret;

	ret = json_dumpf(result, out, JSON_COMPACT);
	if (ret == 0) {
		fputc('\n', out);
		ret = fclose(out);
	}
	if (ret != 0) {
		say("standard output: %s", strerror(errno));
		return EX_IOERR;
	}
	return EX_OK;
}

/* Standard output is the result's; what Samba prints goes elsewhere. */
static FILE *take_stdout(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (fd == -1) {
		return NULL;
	}
	dup2(STDERR_FILENO, STDOUT_FILENO);
	return fdopen(fd, "w");
}

int main(int argc, char **argv)
{
	struct command command = {
		.timeout_s = TIMEOUT_S,
		.change = { .by = "agent", .include = include_file() },
	};
	json_t *result = NULL;
	FILE *out = NULL;
	int status = EX_USAGE;
	bool ok;

	ok = read_options(argc, argv, &command, &status);
	if (!ok) {
		return status;
	}
	ok = read_command(argv + optind, &command);
	if (!ok) {
		return EX_USAGE;
	}
	out = take_stdout();
	ok = out != NULL && set_deadline(command.timeout_s);
	if (!ok) {
		say("%s", strerror(errno));
		return EX_OSERR;
	}
	status = run_command(&command, &result);
	if (result != NULL) {
		int ret = print_result(result, out);

		status = status == EX_OK ? ret : status;
	}
	json_decref(result);
	json_decref(command.change.set);
	json_decref(command.change.reset);
	return status;
}
