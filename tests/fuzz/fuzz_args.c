/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The command line, one word a line; an option that makes the program end
 * (--help and its like) is left out. The variables of ctdbd's environment too.
 */
#include <unistd.h>

#include "cli/args.h"
#include "cli/cli.h"
#include "ctdb-events/options.h"
#include "tests/fuzz/fuzz.h"

#define MAX_WORDS 32

/* cli/main.c has it, with a main() that is not ours */
char *cli_popt_error(TALLOC_CTX *mem_ctx, poptContext pc, int err)
{
	const char *option = poptBadOption(pc, POPT_BADOPTION_NOALIAS);

	return talloc_asprintf(mem_ctx, "'%s': %s", option, poptStrerror(err));
}

static void as_check(int argc, const char **argv)
{
	TALLOC_CTX *mem_ctx = talloc_new(NULL);
	struct check_args args = {};
	const char *why = NULL;

	why = check_args_parse(mem_ctx, argc, argv, &args);
	fuzz_assert(why != NULL || args.places != NULL);
	why = sweep_args_parse(mem_ctx, argc, argv, &args);
	talloc_free(mem_ctx);
}

static void as_options(const char *value)
{
	static const char *const names[] = {
		"CTDB_PINGPONG_MODE", "CTDB_PINGPONG_TIMEOUT",
		"CTDB_PINGPONG_PORT", "CTDB_PINGPONG_MAX_PEERS",
		"CTDB_PINGPONG_PATHS", "CTDB_PINGPONG_ON_MMAP_FAIL",
	};
	struct options *options = NULL;
	const char *why = NULL;
	TALLOC_CTX *mem_ctx = talloc_new(NULL);
	size_t i;
	int ret;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		setenv(names[i], value, 1);
		ret = options_read(mem_ctx, &options, &why);
		fuzz_assert(ret == 0 || why != NULL);
		unsetenv(names[i]);
	}
	talloc_free(mem_ctx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	const char *argv[MAX_WORDS + 1] = { "check" };
	char *word = NULL, *rest = text;
	int argc = 1;

	as_options(text);
	while (argc < MAX_WORDS && (word = strsep(&rest, "\n")) != NULL) {
		bool ends = strncmp(word, "--h", 3) == 0 ||
			    strncmp(word, "--u", 3) == 0 ||
			    (word[0] == '-' && strchr(word, '?') != NULL);

		if (!ends) {
			argv[argc++] = word;
		}
	}
	as_check(argc, argv);
	free(text);
	return 0;
}
