/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * pingpong checks, pingpong explain NAME
 */
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "cli/cli.h"
#include "core/checks/check.h"

#define WIDTH 78

int cmd_checks(int argc, const char **argv)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	const char **none = cli_operands(frame, argc, argv, NULL, 0);
	size_t i;

	talloc_free(frame);
	if (none == NULL) {
		return EX_USAGE;
	}
	for (i = 0; check_catalogue[i] != NULL; i++) {
		printf("%-17s %s\n", check_catalogue[i]->name,
		       check_catalogue[i]->holds);
	}
	return cli_finish(EX_OK);
}

/* Words, folded at WIDTH, each line indented */
static void put_folded(const char *text)
{
	size_t column = 0;

	while (*text != '\0') {
		size_t len = strcspn(text, " ");

		if (column > 0 && column + 1 + len > WIDTH) {
			putchar('\n');
			column = 0;
		}
		column += (size_t)printf("%s%.*s", column == 0 ? "  " : " ",
					 (int)len, text);
		text += len;
		text += strspn(text, " ");
	}
	putchar('\n');
}

static void put_section(const char *title, const char *text)
{
	printf("\n%s\n", title);
	put_folded(text);
}

int cmd_explain(int argc, const char **argv)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	const char **names = cli_operands(frame, argc, argv, "CHECK", 1);
	const struct check *check = NULL;

	if (names != NULL) {
		check = check_by_name(names[0]);
		if (check == NULL) {
			cli_say("unknown check '%s', expected a name as "
				"'pingpong checks' lists them", names[0]);
		}
	}
	talloc_free(frame);
	if (check == NULL) {
		return EX_USAGE;
	}
	printf("%s: %s\n", check->name, check->holds);
	put_section("What is done", check->how);
	put_section("What depends on it", check->depends);
	put_section("What to do when it fails", check->remedy);
	return cli_finish(EX_OK);
}
