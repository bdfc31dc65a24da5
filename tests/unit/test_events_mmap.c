/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * When `use mmap = no` is set, taken back, or only talked about; and the lines
 * of it in the include file
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "ctdb-events/confblock.h"
#include "ctdb-events/mmap.h"

/* ---- the policy --------------------------------------------------------- */

static struct tdb_dir dirs[] = {
	{ .path = "/var/lib/ctdb", .whose = "ctdbd's", .tdb = FIT,
	  .mmap = UNKNOWN },
	{ .path = "/run/samba", .whose = "Samba's", .tdb = FIT,
	  .mmap = UNKNOWN, .why = "stale" },
};

#define MUTEXES 0x1
#define SERVICES 0x2
#define IN_FORCE 0x4
#define OURS 0x8
#define STAGED 0x10
#define APPLY 0x20
#define LOCAL 0x40	/* not clustered */
#define THERE 0x80	/* set by other nodes */

/* What of the directory /run/samba, and of the file systems of shares */
enum bad { NONE, STALE, INCOHERENT, SHARE, DIR_UNKNOWN };

static const struct {
	enum on_mmap_fail policy;
	enum bad bad;
	unsigned flags;
	enum mmap_action action;
	bool refuse;
	const char *says;	/* in the line; NULL: no line */
} cases[] = {
	/* nothing is wrong */
	{ ON_MMAP_FAIL_AUTO, NONE, 0, MMAP_NOTHING, false, NULL },
	{ ON_MMAP_FAIL_SET, NONE, 0, MMAP_NOTHING, false, NULL },
	{ ON_MMAP_FAIL_AUTO, DIR_UNKNOWN, 0, MMAP_NOTHING, false, NULL },
	/* a share's file system: by the classic rule only */
	{ ON_MMAP_FAIL_AUTO, SHARE, 0, MMAP_NOTHING, false, NULL },
	{ ON_MMAP_FAIL_SET, SHARE, 0, MMAP_SET, false, "is set: share" },
	{ ON_MMAP_FAIL_REPORT, SHARE, 0, MMAP_NOTHING, false,
	  "share. `use mmap = no`" },
	/* where TDBs are */
	{ ON_MMAP_FAIL_AUTO, INCOHERENT, 0, MMAP_SET, false,
	  "is set: '/run/samba' (Samba's) has TDBs" },
	{ ON_MMAP_FAIL_AUTO, STALE, 0, MMAP_SET, false, "is set" },
	{ ON_MMAP_FAIL_REPORT, INCOHERENT, 0, MMAP_NOTHING, false,
	  "=report, not set" },
	{ ON_MMAP_FAIL_REPORT, STALE, 0, MMAP_NOTHING, true,
	  "=report, not set" },
	{ ON_MMAP_FAIL_REPORT, STALE, IN_FORCE, MMAP_NOTHING, false, NULL },
	/* smbd would not start */
	{ ON_MMAP_FAIL_SET, SHARE, MUTEXES, MMAP_NOTHING, false,
	  "'pingpong apply'" },
	{ ON_MMAP_FAIL_AUTO, STALE, MUTEXES, MMAP_NOTHING, true,
	  "'pingpong apply'" },
	{ ON_MMAP_FAIL_SET, SHARE, MUTEXES | LOCAL, MMAP_SET, false,
	  "is set" },
	/* too late */
	{ ON_MMAP_FAIL_SET, SHARE, SERVICES, MMAP_NOTHING, false,
	  "the next time" },
	/* it is set */
	{ ON_MMAP_FAIL_SET, SHARE, IN_FORCE | OURS, MMAP_NOTHING, false,
	  NULL },
	{ ON_MMAP_FAIL_SET, SHARE, IN_FORCE, MMAP_NOTHING, false, NULL },
	{ ON_MMAP_FAIL_AUTO, STALE, IN_FORCE | OURS | SERVICES, MMAP_NOTHING,
	  false, NULL },
	/* taken back, if it was ours, and the reason is known to be gone */
	{ ON_MMAP_FAIL_SET, NONE, IN_FORCE | OURS, MMAP_TAKE_BACK, false,
	  "work again" },
	{ ON_MMAP_FAIL_SET, NONE, IN_FORCE | OURS | SERVICES, MMAP_TAKE_BACK,
	  false, "work again" },
	{ ON_MMAP_FAIL_SET, NONE, IN_FORCE, MMAP_NOTHING, false, NULL },
	{ ON_MMAP_FAIL_SET, DIR_UNKNOWN, IN_FORCE | OURS, MMAP_NOTHING, false,
	  NULL },
	{ ON_MMAP_FAIL_AUTO, SHARE, IN_FORCE | OURS, MMAP_TAKE_BACK, false,
	  "work again" },
	{ ON_MMAP_FAIL_SET, SHARE, IN_FORCE | OURS | MUTEXES, MMAP_TAKE_BACK,
	  false, "would not start" },
	{ ON_MMAP_FAIL_SET, STALE, IN_FORCE | OURS | MUTEXES, MMAP_TAKE_BACK,
	  true, "would not start" },
	/* set in the registry by others: join them, or leave it */
	{ ON_MMAP_FAIL_SET, SHARE, IN_FORCE | THERE | SERVICES, MMAP_SET,
	  false, NULL },
	{ ON_MMAP_FAIL_SET, NONE, IN_FORCE | THERE, MMAP_NOTHING, false,
	  NULL },
	/* by pingpong apply: any failure is a reason, whatever the policy */
	{ ON_MMAP_FAIL_AUTO, SHARE, IN_FORCE | OURS | APPLY, MMAP_NOTHING,
	  false, NULL },
	{ ON_MMAP_FAIL_REPORT, NONE, IN_FORCE | OURS | APPLY, MMAP_TAKE_BACK,
	  false, "work again" },
	/* staged: for the next start */
	{ ON_MMAP_FAIL_AUTO, SHARE, OURS | STAGED | APPLY, MMAP_SET, false,
	  "has asked for" },
	{ ON_MMAP_FAIL_REPORT, NONE, OURS | STAGED | APPLY, MMAP_SET, false,
	  "has asked for" },
	{ ON_MMAP_FAIL_AUTO, SHARE, OURS | STAGED | APPLY | MUTEXES,
	  MMAP_NOTHING, false, NULL },
	{ ON_MMAP_FAIL_SET, SHARE, OURS | STAGED | APPLY | SERVICES,
	  MMAP_NOTHING, false, NULL },
};

static void test_decide(void **unused)
{
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		TALLOC_CTX *frame = talloc_new(NULL);
		unsigned flags = cases[i].flags;
		struct tdb_dirs all = {
			.dirs = dirs, .num = 2,
			.clustering = (flags & LOCAL) == 0,
			.use_mmap = (flags & IN_FORCE) == 0,
			.ours = (flags & (OURS | THERE)) != 0,
			.here = (flags & THERE) == 0,
			.staged = (flags & STAGED) != 0,
			.by = (flags & APPLY) != 0 ? "apply" : "agent",
		};
		struct mmap_facts facts = {
			.policy = cases[i].policy,
			.dirs = &all,
			.failure = cases[i].bad == SHARE ? "share" : NULL,
			.mutexes = (flags & MUTEXES) != 0,
			.services = (flags & SERVICES) != 0,
		};
		struct mmap_decision decision;

		dirs[1].tdb = cases[i].bad == STALE ? UNFIT : FIT;
		dirs[1].tdb = cases[i].bad == DIR_UNKNOWN ? UNKNOWN
							  : dirs[1].tdb;
		dirs[1].mmap = cases[i].bad == INCOHERENT ? UNFIT : UNKNOWN;
		decision = mmap_decide(frame, &facts);
		if (decision.action != cases[i].action ||
		    decision.refuse != cases[i].refuse) {
			fail_msg("case %zu: action %d, refuse %d", i,
				 decision.action, decision.refuse);
		}
		if (cases[i].says == NULL && decision.line != NULL) {
			fail_msg("case %zu says: %s", i, decision.line);
		}
		if (cases[i].says != NULL &&
		    (decision.line == NULL ||
		     strstr(decision.line, cases[i].says) == NULL)) {
			fail_msg("case %zu: '%s' is not in: %s", i,
				 cases[i].says, decision.line);
		}
		talloc_free(frame);
	}
}

/* ---- the include file --------------------------------------------------- */

#define BEGIN "# begin of what pingpong writes: changes in here are lost\n"
#define END "# end of what pingpong writes\n"
#define BLOCK BEGIN "# by agent:\nuse mmap = no\n" \
	"# by apply, from the next start of ctdbd on:\n#a:b = c = d\n" END

/* Parsed and printed again */
static void test_block(void **unused)
{
	static const struct {
		const char *text;
		size_t entries;
		const char *rest;
	} texts[] = {
		{ NULL, 0, "" },
		{ "", 0, "" },
		{ "use mmap = yes\n", 0, "use mmap = yes\n" },
		{ "no newline", 0, "no newline" },
		{ BEGIN END, 0, "" },
		{ BLOCK, 2, "" },
		{ BLOCK "theirs\n", 2, "theirs\n" },
		{ "theirs\n" BLOCK "too", 2, "theirs\ntoo" },
	};
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		TALLOC_CTX *frame = talloc_new(NULL);
		json_t *entries = NULL, *again = NULL;
		char *rest = NULL, *text = NULL;
		bool ok;

		ok = confblock_parse(frame, texts[i].text, &entries, &rest);
		assert_true(ok);
		assert_int_equal(json_object_size(entries), texts[i].entries);
		assert_string_equal(rest, texts[i].rest);
		text = confblock_print(frame, entries, rest);
		ok = confblock_parse(frame, text, &again, &rest);
		assert_true(ok);
		assert_true(json_equal(entries, again));
		assert_string_equal(rest, texts[i].rest);
		if (texts[i].entries > 0) {
			assert_memory_equal(text, BLOCK, strlen(BLOCK));
		} else {
			assert_string_equal(text, rest);
		}
		json_decref(entries);
		json_decref(again);
		talloc_free(frame);
	}
}

static void test_block_damaged(void **unused)
{
	static const char *const texts[] = {
		BEGIN,
		END,
		END BEGIN,
		"x " BEGIN END,
		BEGIN "x " END,
		BLOCK BLOCK,
		BEGIN "use mmap = no\n" END,
		BEGIN "# by agent:\n" END,
		BEGIN "# by agent\nuse mmap = no\n" END,
		BEGIN "# by agent:\nuse mmap\n" END,
		BEGIN "# by agent:\n#use mmap = no\n" END,
		BEGIN "# by a, from the next start of ctdbd on:\n"
		"use mmap = no\n" END,
		BEGIN "# by agent:\nuse mmap = no\nposix locking = no\n" END,
	};
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		TALLOC_CTX *frame = talloc_new(NULL);
		json_t *entries = NULL;
		char *rest = NULL;
		bool ok;

		ok = confblock_parse(frame, texts[i], &entries, &rest);
		if (ok) {
			fail_msg("this was taken: %s", texts[i]);
		}
		assert_null(entries);
		talloc_free(frame);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decide),
		cmocka_unit_test(test_block),
		cmocka_unit_test(test_block_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
