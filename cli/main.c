/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/ping_pong.h"
#include "core/config.h"
#include "core/member/agent.h"
#ifdef HAVE_CTDB_EVENTS
#include "ctdb-events/events.h"
#endif

static const struct {
	const char *name;
	int (*fn)(int argc, const char **argv);
	const char *about;
} commands[] = {
	{ "check", cmd_check, "is the file system at these places fit?" },
	{ "sweep", cmd_sweep, "lock rates of 1, 2, .. n members and back" },
	{ "checks", cmd_checks, "list the checks, and what must hold" },
	{ "explain", cmd_explain, "what a check does and who depends on it" },
	{ "status", cmd_status, "the verdicts that this host keeps" },
	{ "forget", cmd_forget, "forget the verdict on a path" },
#ifdef HAVE_CTDB_EVENTS
	{ "apply", cmd_apply, "write the settings that the verdicts name" },
#endif
	{ "agent", cmd_agent, "serve a check that runs on another host" },
	{ "preflight", cmd_preflight, "for the VFS module: check one share" },
};

#define NUM_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* ---- for all commands ---------------------------------------------------- */

void cli_say(const char *format, ...)
{
	char *line = NULL;
	const char *p = NULL;
	va_list ap;

	va_start(ap, format);
	line = talloc_vasprintf(NULL, format, ap);
	va_end(ap);
	fputs("pingpong: ", stderr);
	for (p = line != NULL ? line : format; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if (c < ' ' || c == 0x7f) {
			fprintf(stderr, "\\x%02x", c);
		} else {
			fputc(c, stderr);
		}
	}
	fputc('\n', stderr);
	talloc_free(line);
}

char *cli_popt_error(TALLOC_CTX *mem_ctx, poptContext pc, int err)
{
	const char *option = poptBadOption(pc, POPT_BADOPTION_NOALIAS);

	switch (err) {
	case POPT_ERROR_BADOPT:
		return talloc_asprintf(mem_ctx, "unknown option '%s', see "
				       "--help", option);
	case POPT_ERROR_NOARG:
		return talloc_asprintf(mem_ctx, "option '%s' needs a value",
				       option);
	default:
		return talloc_asprintf(mem_ctx, "option '%s': %s", option,
				       poptStrerror(err));
	}
}

static const char **take_operands(TALLOC_CTX *mem_ctx, poptContext pc,
				  const char *command, const char *operands,
				  unsigned count)
{
	const char **words = talloc_zero_array(mem_ctx, const char *,
					       count + 1);
	const char *word = NULL;
	unsigned n = 0;

	for (word = poptGetArg(pc); word != NULL && words != NULL;
	     word = poptGetArg(pc)) {
		if (n == count) {
			cli_say("'%s' is one too many, expected: %s%s%s",
				word, command, count > 0 ? " " : "",
				count > 0 ? operands : "");
			return NULL;
		}
		words[n++] = talloc_strdup(words, word);
	}
	if (n < count) {
		cli_say("expected: %s %s", command, operands);
		return NULL;
	}
	return words;
}

const char **cli_operands(TALLOC_CTX *mem_ctx, int argc, const char **argv,
			  const char *operands, unsigned count)
{
	const struct poptOption options[] = { POPT_AUTOHELP POPT_TABLEEND };

	return cli_operands_and(mem_ctx, argc, argv, options, operands, count);
}

const char **cli_operands_and(TALLOC_CTX *mem_ctx, int argc,
			      const char **argv,
			      const struct poptOption *options,
			      const char *operands, unsigned count)
{
	poptContext pc = poptGetContext(NULL, argc, argv, options, 0);
	const char **words = NULL;
	int ret;

	if (operands != NULL) {
		poptSetOtherOptionHelp(pc, operands);
	}
	ret = poptGetNextOpt(pc);
	if (ret < -1) {
		char *error = cli_popt_error(mem_ctx, pc, ret);

		cli_say("%s", error);
	} else {
		words = take_operands(mem_ctx, pc, argv[0], operands, count);
	}
	poptFreeContext(pc);
	return words;
}

char *cli_worker(TALLOC_CTX *mem_ctx)
{
	char self[PATH_MAX];
	char *worker = NULL;
	ssize_t n;
	int ret;

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n > 0) {
		self[n] = '\0';
		worker = talloc_asprintf(mem_ctx, "%s/pingpong-worker",
					 dirname(self));
	}
	if (worker != NULL) {
		ret = access(worker, X_OK);
		if (ret == 0) {
			return worker;
		}
	}
	return talloc_strdup(mem_ctx, LIBEXECDIR "/pingpong-worker");
}

const char *cli_store_error(int err)
{
	switch (err) {
	case EPERM:
		return "it, or what is in it, belongs to somebody else or is "
		       "open to others (expected modes 0700 and 0600)";
	case EACCES:
		return "no permission (to root only a policy refuses it: "
		       "SELinux, AppArmor)";
	default:
		return strerror(err);
	}
}

int cli_finish(int status)
{
	int ret;

	errno = 0;
	ret = fflush(stdout);
	if (ret == 0 && !ferror(stdout)) {
		return status;
	}
	cli_say("standard output: %s", strerror(errno != 0 ? errno : EIO));
	return EX_IOERR;
}

/* ---- the smallest command ------------------------------------------------ */

#ifdef HAVE_CTDB_EVENTS
/* What the event script calls; false: something else */
static bool agent_of_events(int argc, const char **argv, int *status)
{
	char *worker = NULL;

	if (argc != 3) {
		return false;
	}
	if (strcmp(argv[1], "--ask") == 0) {
		*status = events_ask(argv[2]);
		return true;
	}
	if (strcmp(argv[1], "--daemon") != 0) {
		return false;
	}
	worker = cli_worker(NULL);
	*status = worker != NULL ? events_daemon(argv[2], worker)
				 : EX_SOFTWARE;
	talloc_free(worker);
	return true;
}
#endif

int cmd_agent(int argc, const char **argv)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	const char **none = NULL;
	int status = EX_USAGE;

#ifdef HAVE_CTDB_EVENTS
	if (agent_of_events(argc, argv, &status)) {
		return status;
	}
#endif
	none = cli_operands(frame, argc, argv, NULL, 0);
	if (none != NULL) {
		char *worker = cli_worker(frame);

		status = worker != NULL ? agent_stdio(worker) : EX_SOFTWARE;
	}
	talloc_free(frame);
	return status;
}

/* ---- main ---------------------------------------------------------------- */

static void usage(FILE *out)
{
	size_t i;

	fputs("usage: pingpong COMMAND [ARGUMENT...]\n\n", out);
	for (i = 0; i < NUM_COMMANDS; i++) {
		fprintf(out, "  %-10s %s\n", commands[i].name,
			commands[i].about);
	}
	fputs("\npingpong COMMAND --help says more; pingpong --version\n",
	      out);
}

static int run_command(size_t i, int argc, const char **argv)
{
	char name[64];

	snprintf(name, sizeof(name), "pingpong %s", commands[i].name);
	argv[1] = name;
	return commands[i].fn(argc - 1, argv + 1);
}

/* A descriptor that is opened later must not become standard output. */
static void open_stdio(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd != -1) {
		close(fd);
	}
}

int main(int argc, const char **argv)
{
	const char *name = argc > 0 ? strrchr(argv[0], '/') : NULL;
	size_t i;

	open_stdio();
	name = name != NULL ? name + 1 : argc > 0 ? argv[0] : "pingpong";
	if (strcmp(name, "ping_pong") == 0) {
		return ping_pong_main(argc, argv);
	}
	if (argc < 2) {
		usage(stderr);
		return EX_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0) {
		usage(stdout);
		return cli_finish(EX_OK);
	}
	if (strcmp(argv[1], "--version") == 0) {
		printf("pingpong %s\n", PINGPONG_VERSION);
		return cli_finish(EX_OK);
	}
	for (i = 0; i < NUM_COMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name) == 0) {
			return run_command(i, argc, argv);
		}
	}
	cli_say("unknown %s '%s', see pingpong --help",
		argv[1][0] == '-' ? "option" : "command", argv[1]);
	return EX_USAGE;
}
