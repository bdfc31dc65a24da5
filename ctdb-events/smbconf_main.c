/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pingpong-smbconf: the only program that carries Samba's libraries and waits
 * for its registry. For pingpong and its agent; JSON on standard output.
 *
 *   pingpong-smbconf [--timeout S] list
 *	{"file", "source" ("text", "registry", "both": text, and shares of the
 *	registry), "clustering", "use_mmap", "include" {"path", "included",
 *	"first"}, "tdb_dirs" [{"path", "whose"}],
 *	"shares" [{"name", "path", "skipped", "vfs_objects" [...],
 *	"params" {...}}]}
 *	skipped: why nothing can be said of its path; absent otherwise.
 *	params: names in lower case, values as they hold for the share.
 *
 * Exit status as in sysexits.h; 75: no answer within S seconds (10).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "core/config.h"
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

static void say(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	fputs("pingpong-smbconf: ", stderr);
	vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
}

/* ---- the deadline --------------------------------------------------------- */

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

/* ---- list ------------------------------------------------------------------ */

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

static json_t *list_vfs_objects(const struct conf *conf, json_t *service)
{
	char *copy = strdup(conf_service(conf, service, "vfs objects"));
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
			"vfs_objects", list_vfs_objects(conf, service),
			"params", list_params(conf, service)));
	}
	return shares;
}

static json_t *list(const struct conf *conf)
{
	static const char *const sources[] = {
		[CONF_TEXT] = "text",
		[CONF_REGISTRY] = "registry",
		[CONF_BOTH] = "both",
	};

	return json_pack(
		"{ss, ss, sb, sb, s{ss, sb, sb}, so, so}",
		"file", conf->file, "source", sources[conf->source],
		"clustering", conf_is_yes(conf_global(conf, "clustering")),
		"use_mmap", conf_is_yes(conf_global(conf, "use mmap")),
		"include", "path", include_file(), "included",
		conf->includes_ours, "first", conf->ours_comes_first,
		"tdb_dirs", list_tdb_dirs(conf), "shares", list_shares(conf));
}

static int cmd_list(FILE *out)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	struct conf *conf = NULL;
	const char *why = NULL;
	json_t *result = NULL;
	bool ok;
	int ret = -1;

	ok = conf_load(frame, include_file(), &conf, &why);
	if (!ok) {
		say("%s", why);
		talloc_free(frame);
		return EX_CONFIG;
	}
	result = list(conf);
	if (result != NULL) {
		ret = json_dumpf(result, out, JSON_COMPACT);
	}
	if (ret == 0) {
		fputc('\n', out);
		ret = fclose(out);
	}
	json_decref(result);
	talloc_free(frame);
	if (ret != 0) {
		say("standard output: %s", strerror(errno));
		return EX_IOERR;
	}
	return EX_OK;
}

/* ---- main ------------------------------------------------------------------ */

static const char usage[] =
	"usage: pingpong-smbconf [--timeout S] list\n";

static bool read_timeout(const char *value, unsigned *seconds)
{
	char *end = NULL;
	unsigned long n;

	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno != 0 || *end != '\0' || value[0] < '0' || value[0] > '9' ||
	    n < 1 || n > MAX_TIMEOUT_S) {
		return false;
	}
	*seconds = (unsigned)n;
	return true;
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
	unsigned seconds = TIMEOUT_S;
	FILE *out = NULL;
	bool ok;

	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(usage, stdout);
		return EX_OK;
	}
	if (argc >= 3 && strcmp(argv[1], "--timeout") == 0) {
		ok = read_timeout(argv[2], &seconds);
		if (!ok) {
			say("--timeout '%s': expected seconds from 1 to %u",
			    argv[2], MAX_TIMEOUT_S);
			return EX_USAGE;
		}
		argc -= 2;
		argv += 2;
	}
	if (argc != 2 || strcmp(argv[1], "list") != 0) {
		fputs(usage, stderr);
		return EX_USAGE;
	}
	out = take_stdout();
	ok = out != NULL && set_deadline(seconds);
	if (!ok) {
		say("%s", strerror(errno));
		return EX_OSERR;
	}
	return cmd_list(out);
}
