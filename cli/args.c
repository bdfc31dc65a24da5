/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "core/verdict/verdict.h"

#define DEFAULT_TIMEOUT_S 60
#define QUICK_TIMEOUT_S 10
#define MAX_TIMEOUT_S 86400
#define DEFAULT_THOROUGH_S 10
#define MAX_THOROUGH_S 3600
#define DEFAULT_STEP_S 2
#define MAX_STEP_S 600
#define DEFAULT_RSH "ssh -o BatchMode=yes"

/* As popt leaves them; strings are malloc'ed */
struct raw {
	int local, json, no_store, quick, ctdb;
	char *uses, *checks, *thorough, *timeout, *rsh, *seed, *history;
	char *hosts_file, *nodes, *html, *save, *compare, *step;
};

/* ---- one value ----------------------------------------------------------- */

/* Digits only. False: something else, or above max. */
static bool parse_number(const char *text, uint64_t max, uint64_t *number)
{
	char *end = NULL;

	if (text[strspn(text, "0123456789")] != '\0' || text[0] == '\0') {
		return false;
	}
	errno = 0;
	*number = strtoull(text, &end, 10);
	return errno == 0 && *number <= max;
}

static const char *parse_seconds(TALLOC_CTX *mem_ctx, const char *option,
				 const char *text, unsigned max, unsigned *ms)
{
	uint64_t seconds = 0;
	bool ok;

	ok = parse_number(text, max, &seconds);
	if (!ok || seconds == 0) {
		return talloc_asprintf(mem_ctx, "%s '%s': expected seconds, "
				       "1 to %u", option, text, max);
	}
	*ms = (unsigned)seconds * 1000;
	return NULL;
}

static const char *parse_uses(TALLOC_CTX *mem_ctx, const char *list,
			      unsigned *uses)
{
	char *copy = talloc_strdup(mem_ctx, list);
	char *name = NULL;
	enum use use;
	bool ok;

	*uses = 0;
	while (copy != NULL) {
		name = strsep(&copy, ",");
		ok = use_parse(name, &use);
		if (!ok) {
			return talloc_asprintf(
				mem_ctx, "unknown use '%s', expected "
				"cluster-lock, posix-locking, share, "
				"file-id, tdb, mmap", name);
		}
		*uses |= USE_BIT(use);
	}
	return NULL;
}

static size_t num_checks(void)
{
	size_t n = 0;

	while (check_catalogue[n] != NULL) {
		n++;
	}
	return n;
}

/* Marks the named ones. */
static const char *mark_checks(TALLOC_CTX *mem_ctx, const char *list,
			       bool *wanted)
{
	char *copy = talloc_strdup(mem_ctx, list);
	const struct check *check = NULL;
	char *name = NULL;
	size_t i;

	while (copy != NULL) {
		name = strsep(&copy, ",");
		check = check_by_name(name);
		if (check == NULL) {
			return talloc_asprintf(
				mem_ctx, "unknown check '%s', expected "
				"names as 'pingpong checks' lists them",
				name);
		}
		for (i = 0; check_catalogue[i] != check; i++) {
		}
		wanted[i] = true;
	}
	return NULL;
}

/* list: NULL for all */
static const char *parse_checks(TALLOC_CTX *mem_ctx, const char *list,
				struct check_args *args)
{
	size_t i, n = 0, num = num_checks();
	bool *wanted = talloc_zero_array(mem_ctx, bool, num);
	const char *error = NULL;

	args->all = list == NULL;
	args->checks = talloc_zero_array(mem_ctx, const struct check *,
					 num + 1);
	if (wanted == NULL || args->checks == NULL) {
		return "no memory";
	}
	if (list != NULL) {
		error = mark_checks(mem_ctx, list, wanted);
	}
	for (i = 0; i < num; i++) {
		bool door = (check_catalogue[i]->doors & DOOR_COMMAND) != 0;

		if (list == NULL ? door : wanted[i]) {
			args->checks[n++] = check_catalogue[i];
		}
	}
	return error;
}

/* A name of one or more words */
static const char *parse_rsh(TALLOC_CTX *mem_ctx, const char *option,
			     const char *text, const char **rsh)
{
	if (text[strspn(text, " \t")] == '\0') {
		return talloc_asprintf(mem_ctx, "%s '%s': expected a command",
				       option, text);
	}
	*rsh = talloc_strdup(mem_ctx, text);
	return *rsh != NULL ? NULL : "no memory";
}

/* ---- all of them --------------------------------------------------------- */

static const char *parse_times(TALLOC_CTX *mem_ctx, const struct raw *raw,
			       struct check_args *args)
{
	const char *error = NULL;
	uint64_t timeout_s = DEFAULT_TIMEOUT_S;
	size_t n = 0;

	if (raw->quick && raw->thorough != NULL) {
		return "'--quick' and '--thorough': expected one of them";
	}
	args->level = RUN_DEFAULT;
	if (raw->quick) {
		args->level = RUN_QUICK;
		timeout_s = QUICK_TIMEOUT_S;
	}
	if (raw->thorough != NULL) {
		args->level = RUN_THOROUGH;
		args->thorough_ms = DEFAULT_THOROUGH_S * 1000;
		if (raw->thorough[0] != '\0') {
			error = parse_seconds(mem_ctx, "--thorough",
					      raw->thorough, MAX_THOROUGH_S,
					      &args->thorough_ms);
		}
		while (args->checks[n] != NULL) {
			n++;
		}
		timeout_s += n * (args->thorough_ms / 1000);
		if (timeout_s > MAX_TIMEOUT_S) {
			timeout_s = MAX_TIMEOUT_S;
		}
	}
	args->timeout_ms = (unsigned)timeout_s * 1000;
	if (error == NULL && raw->timeout != NULL) {
		error = parse_seconds(mem_ctx, "--timeout", raw->timeout,
				      MAX_TIMEOUT_S, &args->timeout_ms);
	}
	return error;
}

static const char *parse_seed(TALLOC_CTX *mem_ctx, const char *text,
			      uint64_t *seed)
{
	uint32_t random = 0;
	ssize_t n;
	bool ok;

	if (text == NULL) {
		n = getrandom(&random, sizeof(random), 0);
		*seed = random;
		return n == sizeof(random) ? NULL : "no random numbers";
	}
	ok = parse_number(text, UINT64_MAX, seed);
	return ok ? NULL : talloc_asprintf(mem_ctx, "--seed '%s': expected a "
					   "number below 2^64", text);
}

static const char *parse_history(TALLOC_CTX *mem_ctx, const char *text,
				 const char **file)
{
	if (text[0] == '\0') {
		return "--history '': expected the name of a file";
	}
	*file = talloc_strdup(mem_ctx, text);
	return *file != NULL ? NULL : "no memory";
}

static const char *check_place(TALLOC_CTX *mem_ctx, const char **places,
			       unsigned n, const char *place)
{
	unsigned i;

	if (n == ARGS_MAX_PLACES) {
		return talloc_asprintf(mem_ctx, "'%s' is one place too many, "
				       "expected at most %u", place,
				       ARGS_MAX_PLACES);
	}
	if (place[0] == '\0') {
		return "'' is no place, expected [HOST:]DIRECTORY";
	}
	for (i = 0; i < n; i++) {
		if (strcmp(places[i], place) == 0) {
			return talloc_asprintf(
				mem_ctx, "'%s' is given twice, expected "
				"different places; one alone gets two "
				"members", place);
		}
	}
	return NULL;
}

static const char *parse_places(TALLOC_CTX *mem_ctx, poptContext pc,
				struct check_args *args)
{
	const char *error = NULL, *place = NULL;
	unsigned n = 0;

	args->places = talloc_zero_array(mem_ctx, const char *,
					 ARGS_MAX_PLACES + 1);
	if (args->places == NULL) {
		return "no memory";
	}
	for (place = poptGetArg(pc); place != NULL; place = poptGetArg(pc)) {
		error = check_place(mem_ctx, args->places, n, place);
		if (error != NULL) {
			return error;
		}
		args->places[n] = talloc_strdup(args->places, place);
		if (args->places[n] == NULL) {
			return "no memory";
		}
		n++;
	}
	if (args->ctdb && (n > 1 || (n == 1 && args->places[0][0] != '/'))) {
		return talloc_asprintf(
			mem_ctx, "--ctdb '%s': expected one absolute "
			"DIRECTORY, a share's, or none",
			args->places[n - 1]);
	}
	return n > 0 || args->ctdb ? NULL : "expected: [HOST:]DIRECTORY...";
}

/* A baseline: part of a file's name */
static const char *parse_name(TALLOC_CTX *mem_ctx, const char *option,
			      const char *text, const char **name)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._-";

	if (text == NULL) {
		return NULL;
	}
	if (text[0] == '\0' || text[0] == '.' || strlen(text) > 64 ||
	    text[strspn(text, plain)] != '\0') {
		return talloc_asprintf(mem_ctx, "%s '%s': expected a name of "
				       "letters, digits, '_', '-' and '.'",
				       option, text);
	}
	*name = talloc_strdup(mem_ctx, text);
	return *name != NULL ? NULL : "no memory";
}

/* A copy of what popt has, which ends with it; NULL for NULL */
static const char *keep(TALLOC_CTX *mem_ctx, const char *text)
{
	return text != NULL ? talloc_strdup(mem_ctx, text) : NULL;
}

/* What both commands have */
static const char *parse_common(TALLOC_CTX *mem_ctx, poptContext pc,
				const struct raw *raw, struct check_args *args)
{
	const char *from_env = getenv("PINGPONG_RSH");
	const char *error = NULL;

	args->local = raw->local;
	args->json = raw->json;
	args->html = keep(mem_ctx, raw->html);
	args->hosts_file = keep(mem_ctx, raw->hosts_file);
	args->nodes = keep(mem_ctx, raw->nodes);
	if (raw->hosts_file != NULL && raw->nodes != NULL) {
		return "'--hosts-file' and '--nodes': expected one of them";
	}
	if (raw->rsh != NULL) {
		error = parse_rsh(mem_ctx, "-e", raw->rsh, &args->rsh);
	} else if (error == NULL) {
		error = parse_rsh(mem_ctx, "PINGPONG_RSH",
				  from_env != NULL ? from_env : DEFAULT_RSH,
				  &args->rsh);
	}
	if (error == NULL) {
		error = parse_seed(mem_ctx, raw->seed, &args->seed);
	}
	if (error == NULL && raw->history != NULL) {
		error = parse_history(mem_ctx, raw->history, &args->history);
	}
	if (error == NULL) {
		error = parse_places(mem_ctx, pc, args);
	}
	return error;
}

static const char *parse_check(TALLOC_CTX *mem_ctx, poptContext pc,
			       const struct raw *raw, struct check_args *args)
{
	const char *error = NULL;

	args->ctdb = raw->ctdb;
	if (args->ctdb && (raw->local || raw->hosts_file != NULL ||
			   raw->nodes != NULL)) {
		return "'--ctdb' takes all of CTDB's nodes: expected no "
		       "'--local', '--hosts-file' or '--nodes' with it";
	}
	args->store = !raw->no_store;
	args->uses = USES_DEFAULT;
	if (raw->uses != NULL) {
		error = parse_uses(mem_ctx, raw->uses, &args->uses);
	}
	if (error == NULL) {
		error = parse_checks(mem_ctx, raw->checks, args);
	}
	if (error == NULL) {
		error = parse_times(mem_ctx, raw, args);
	}
	if (error == NULL) {
		error = parse_name(mem_ctx, "--save", raw->save, &args->save);
	}
	if (error == NULL) {
		error = parse_name(mem_ctx, "--compare", raw->compare,
				   &args->compare);
	}
	return error == NULL ? parse_common(mem_ctx, pc, raw, args) : error;
}

static const char *parse_sweep(TALLOC_CTX *mem_ctx, poptContext pc,
			       const struct raw *raw, struct check_args *args)
{
	const char *error = NULL;
	unsigned ms = DEFAULT_STEP_S * 1000;

	if (raw->step != NULL) {
		error = parse_seconds(mem_ctx, "--step", raw->step,
				      MAX_STEP_S, &ms);
	}
	args->step_s = ms / 1000;
	return error == NULL ? parse_common(mem_ctx, pc, raw, args) : error;
}

/*
 * popt would take the word behind --thorough for its value, although only
 * --thorough=S has one.
 */
static const char **own_argv(TALLOC_CTX *mem_ctx, int argc, const char **argv)
{
	const char **own = talloc_zero_array(mem_ctx, const char *,
					     (size_t)argc + 1);
	int i;

	for (i = 0; own != NULL && i < argc; i++) {
		own[i] = argv[i];
		if (strcmp(argv[i], "--") == 0) {
			memcpy(own + i, argv + i,
			       (size_t)(argc - i) * sizeof(argv[0]));
			break;
		}
		if (strcmp(argv[i], "--thorough") == 0) {
			own[i] = "--thorough=";
		}
	}
	return own;
}

static void free_raw(const struct raw *raw)
{
	free(raw->uses);
	free(raw->checks);
	free(raw->thorough);
	free(raw->timeout);
	free(raw->rsh);
	free(raw->seed);
	free(raw->history);
	free(raw->hosts_file);
	free(raw->nodes);
	free(raw->html);
	free(raw->save);
	free(raw->compare);
	free(raw->step);
}

typedef const char *(*parse_fn)(TALLOC_CTX *mem_ctx, poptContext pc,
				const struct raw *raw,
				struct check_args *args);

static const char *parse_argv(TALLOC_CTX *mem_ctx, int argc,
			      const char **argv,
			      const struct poptOption *options,
			      parse_fn parse, const struct raw *raw,
			      struct check_args *args)
{
	const char **own = own_argv(mem_ctx, argc, argv);
	const char *error = NULL;
	poptContext pc = NULL;
	int ret;

	*args = (struct check_args){};
	if (own == NULL) {
		return "no memory";
	}
	pc = poptGetContext(NULL, argc, own, options, 0);
	poptSetOtherOptionHelp(pc, "[OPTION...] [HOST:]DIRECTORY...");
	do {
		ret = poptGetNextOpt(pc);
	} while (ret >= 0);
	error = ret < -1 ? cli_popt_error(mem_ctx, pc, ret)
			 : parse(mem_ctx, pc, raw, args);
	poptFreeContext(pc);
	free_raw(raw);
	return error;
}

#define COMMON_OPTIONS(raw) \
	{ "local", '\0', POPT_ARG_NONE, &(raw).local, 0, \
	  "one node is all there is: what passes is fit", NULL }, \
	{ "json", '\0', POPT_ARG_NONE, &(raw).json, 0, \
	  "the report as a JSON object", NULL }, \
	{ "html", '\0', POPT_ARG_STRING, &(raw).html, 0, \
	  "the report as a page, too", "FILE" }, \
	{ "rsh", 'e', POPT_ARG_STRING, &(raw).rsh, 0, \
	  "reaches a HOST (ssh -o BatchMode=yes; variable PINGPONG_RSH)", \
	  "COMMAND" }, \
	{ "hosts-file", '\0', POPT_ARG_STRING, &(raw).hosts_file, 0, \
	  "each DIRECTORY on each of these hosts, one a line", "FILE" }, \
	{ "nodes", '\0', POPT_ARG_STRING, &(raw).nodes, 0, \
	  "the same on CTDB's nodes: all, or numbers as 0,2-4", "SPEC" }, \
	{ "seed", '\0', POPT_ARG_STRING, &(raw).seed, 0, \
	  "repeat the random choices of an earlier run", "N" }

const char *check_args_parse(TALLOC_CTX *mem_ctx, int argc, const char **argv,
			     struct check_args *args)
{
	struct raw raw = {};
	const struct poptOption options[] = {
		COMMON_OPTIONS(raw),
		{ "for", '\0', POPT_ARG_STRING, &raw.uses, 0,
		  "what decides the exit status (cluster-lock, "
		  "posix-locking, share, file-id; also tdb, mmap)",
		  "USE[,USE]" },
		{ "only", '\0', POPT_ARG_STRING, &raw.checks, 0,
		  "no other checks", "CHECK[,CHECK]" },
		{ "quick", '\0', POPT_ARG_NONE, &raw.quick, 0,
		  "fewer trials, within 10 s", NULL },
		{ "thorough", '\0', POPT_ARG_STRING, &raw.thorough, 0,
		  "until 1 violation in 100,000 can be excluded, or S "
		  "seconds for each check (without =S: 10)",
		  "S" },
		{ "timeout", '\0', POPT_ARG_STRING, &raw.timeout, 0,
		  "seconds for all of it (60, more with --thorough)", "S" },
		{ "ctdb", '\0', POPT_ARG_NONE, &raw.ctdb, 0,
		  "with CTDB's other nodes, through their resident agents: "
		  "the cluster lock's directory, or a share's", NULL },
		{ "no-store", '\0', POPT_ARG_NONE, &raw.no_store, 0,
		  "do not record the verdict", NULL },
		{ "save", '\0', POPT_ARG_STRING, &raw.save, 0,
		  "keep the rates and times as a baseline", "NAME" },
		{ "compare", '\0', POPT_ARG_STRING, &raw.compare, 0,
		  "name what is slower than in that baseline", "NAME" },
		{ "history", '\0', POPT_ARG_STRING, &raw.history, 0,
		  "write every operation to FILE, a line of JSON each",
		  "FILE" },
		POPT_AUTOHELP
		POPT_TABLEEND
	};

	return parse_argv(mem_ctx, argc, argv, options, parse_check, &raw,
			  args);
}

const char *sweep_args_parse(TALLOC_CTX *mem_ctx, int argc, const char **argv,
			     struct check_args *args)
{
	struct raw raw = {};
	const struct poptOption options[] = {
		COMMON_OPTIONS(raw),
		{ "step", '\0', POPT_ARG_STRING, &raw.step, 0,
		  "seconds with each number of members (2)", "S" },
		POPT_AUTOHELP
		POPT_TABLEEND
	};

	return parse_argv(mem_ctx, argc, argv, options, parse_sweep, &raw,
			  args);
}
