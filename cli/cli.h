/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The command: pingpong COMMAND ...
 *
 * A command is one line in the table of main.c and one function, which gets
 * its own arguments (argv[0] is "pingpong COMMAND") and returns the exit
 * status. Results go to standard output, all else to standard error.
 */
#ifndef PINGPONG_CLI_CLI_H
#define PINGPONG_CLI_CLI_H

#include <popt.h>
#include <talloc.h>

int cmd_check(int argc, const char **argv);
int cmd_sweep(int argc, const char **argv);
int cmd_checks(int argc, const char **argv);
int cmd_explain(int argc, const char **argv);
int cmd_agent(int argc, const char **argv);
int cmd_status(int argc, const char **argv);
int cmd_forget(int argc, const char **argv);
int cmd_preflight(int argc, const char **argv);
int cmd_apply(int argc, const char **argv);

/*
 * "pingpong: ..." on standard error, one line whatever the values in it are:
 * control characters as \xNN.
 */
void cli_say(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

/*
 * The operands of a command that has no options but --help: exactly so many.
 * operands: how --help and an error name them, NULL for none. Returns them,
 * NULL-terminated and children of mem_ctx; NULL: bad usage, which was told.
 */
const char **cli_operands(TALLOC_CTX *mem_ctx, int argc, const char **argv,
			  const char *operands, unsigned count);

/* The same for one that has these options, which take no value of their own
 * but what they store. */
const char **cli_operands_and(TALLOC_CTX *mem_ctx, int argc,
			      const char **argv,
			      const struct poptOption *options,
			      const char *operands, unsigned count);

/* What popt says of bad options (a negative return of poptGetNextOpt()), a
 * child of mem_ctx. */
char *cli_popt_error(TALLOC_CTX *mem_ctx, poptContext pc, int err);

/* The worker beside the command, or where it is installed; NULL: no memory. */
char *cli_worker(TALLOC_CTX *mem_ctx);

/* What an errno of core/verdict/store.h means to a person */
const char *cli_store_error(int err);

/* Flush standard output. Returns the exit status, or that of a failed write,
 * which was told. */
int cli_finish(int status);

#endif
