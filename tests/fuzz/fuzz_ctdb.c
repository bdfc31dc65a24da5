/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What CTDB's administrator and commands have written: the list of nodes,
 * "ctdb -X status", ctdb.conf, the cluster lock's line, the include file
 */
#include "ctdb-events/clusterlock.h"
#include "ctdb-events/command.h"
#include "ctdb-events/confblock.h"
#include "ctdb-events/connected.h"
#include "ctdb-events/ctdbedit.h"
#include "ctdb-events/nodes.h"
#include "tests/fuzz/fuzz.h"

static void as_nodes(TALLOC_CTX *mem_ctx, const char *text)
{
	struct ctdb_nodes *nodes = NULL;
	const char *bad = NULL;
	size_t i;
	int ret;

	ret = nodes_parse(mem_ctx, text, &nodes, &bad);
	for (i = 0; ret == 0 && i < nodes->num; i++) {
		const struct ctdb_node *node = &nodes->nodes[i];

		fuzz_assert(node->pnn == i);
		fuzz_assert(node->deleted ||
			    nodes_find(nodes, &node->address) != NULL);
	}
}

static void as_status(const char *text)
{
	static bool connected[NODES_MAX];
	char *copy = strdup(text);

	fuzz_assert(copy != NULL);
	connected_parse(copy, connected);
	free(copy);
}

/* Set once more it stays the same */
static void as_ctdb_conf(TALLOC_CTX *mem_ctx, const char *text)
{
	char *once = NULL, *twice = NULL;
	int ret;

	ret = ctdbedit_set(mem_ctx, text, "database", "tdb mutexes", "false",
			   &once);
	if (ret != 0) {
		return;
	}
	ret = ctdbedit_set(mem_ctx, once, "database", "tdb mutexes", "false",
			   &twice);
	fuzz_assert(ret == 0 && strcmp(once, twice) == 0);
}

/* Written and read again it is the same */
static void as_include_file(TALLOC_CTX *mem_ctx, const char *text)
{
	json_t *entries = NULL, *again = NULL;
	char *rest = NULL, *rest_again = NULL, *printed = NULL;
	bool ok;

	ok = confblock_parse(mem_ctx, text, &entries, &rest);
	if (!ok) {
		return;
	}
	printed = confblock_print(mem_ctx, entries, rest);
	fuzz_assert(printed != NULL);
	ok = confblock_parse(mem_ctx, printed, &again, &rest_again);
	fuzz_assert(ok && json_equal(entries, again) == 1);
	json_decref(entries);
	json_decref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	TALLOC_CTX *mem_ctx = talloc_new(NULL);
	char *text = fuzz_text(data, size);
	struct clusterlock lock = {};

	as_nodes(mem_ctx, text);
	as_status(text);
	as_ctdb_conf(mem_ctx, text);
	as_include_file(mem_ctx, text);
	clusterlock_parse(mem_ctx, text, &lock);
	command_words(mem_ctx, text);
	free(text);
	talloc_free(mem_ctx);
	return 0;
}
