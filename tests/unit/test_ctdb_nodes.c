/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The list of CTDB's nodes, and which one is this host
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctdb-events/nodes.h"

static struct ctdb_nodes *parse(TALLOC_CTX *mem_ctx, const char *text)
{
	struct ctdb_nodes *nodes = NULL;
	const char *bad = NULL;
	int ret;

	ret = nodes_parse(mem_ctx, text, &nodes, &bad);
	assert_int_equal(ret, 0);
	assert_null(bad);
	return nodes;
}

static void plain(void **unused)
{
	struct ctdb_nodes *nodes = parse(NULL, "10.0.0.1\n10.0.0.2\n");

	(void)unused;
	assert_int_equal(nodes->num, 2);
	assert_int_equal(nodes->nodes[1].pnn, 1);
	assert_string_equal(nodes->nodes[1].text, "10.0.0.2");
	assert_null(nodes->own);
	talloc_free(nodes);
}

static void deleted_counts(void **unused)
{
	struct ctdb_nodes *nodes = parse(
		NULL, "  10.0.0.1 \t\n#10.0.0.2\n\n\t\n10.0.0.3\r\n\n");
	struct sockaddr_storage address;

	(void)unused;
	assert_int_equal(nodes->num, 3);
	assert_true(nodes->nodes[1].deleted);
	assert_false(nodes->nodes[2].deleted);
	assert_string_equal(nodes->nodes[2].text, "10.0.0.3");
	assert_true(node_address_parse("10.0.0.3", &address));
	assert_ptr_equal(nodes_find(nodes, &address), &nodes->nodes[2]);
	assert_true(node_address_parse("10.0.0.2", &address));
	assert_null(nodes_find(nodes, &address));
	/* a deleted node has no address, not even the one of all zeros */
	assert_true(node_address_parse("0.0.0.0", &address));
	assert_null(nodes_find(nodes, &address));
	talloc_free(nodes);
}

static void ipv6(void **unused)
{
	struct ctdb_nodes *nodes = parse(NULL, "fd00::1\nFD00:0:0::0002\n"
					       "10.0.0.3\n");
	struct sockaddr_storage address;

	(void)unused;
	assert_true(node_address_parse("fd00::2", &address));
	assert_ptr_equal(nodes_find(nodes, &address), &nodes->nodes[1]);
	assert_true(node_address_parse("::ffff:10.0.0.3", &address));
	assert_ptr_equal(nodes_find(nodes, &address), &nodes->nodes[2]);
	assert_true(node_address_parse("::10.0.0.3", &address));
	assert_null(nodes_find(nodes, &address));
	talloc_free(nodes);
}

static void bad_lines(void **unused)
{
	static const char *const lines[] = {
		"10.0.0", "node1", "10.0.0.1:4379", "10.0.0.1 10.0.0.2",
		"10.0.0.1 # comment",
	};
	struct ctdb_nodes *nodes = NULL;
	const char *bad = NULL;
	size_t i;
	int ret;

	(void)unused;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		char *text = talloc_asprintf(NULL, "10.0.0.9\n%s\n", lines[i]);

		ret = nodes_parse(text, text, &nodes, &bad);
		assert_int_equal(ret, EINVAL);
		assert_string_equal(bad, lines[i]);
		talloc_free(text);
	}
}

static void too_many(void **unused)
{
	char *text = talloc_strdup(NULL, "");
	struct ctdb_nodes *nodes = NULL;
	const char *bad = NULL;
	unsigned i;
	int ret;

	(void)unused;
	for (i = 0; i <= NODES_MAX; i++) {
		text = talloc_asprintf_append_buffer(text, "#\n");
	}
	ret = nodes_parse(text, text, &nodes, &bad);
	assert_int_equal(ret, E2BIG);
	talloc_free(text);
}

/* ---- read as on a node, with a ctdb-config of ours ---------------------- */

struct bed {
	char dir[64];
	struct tevent_context *ev;
	struct ctdb_paths paths;
	char *program, *list;
};

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

/* list: what `nodes list` is set to, NULL: the key is not known */
static void configure(struct bed *bed, const char *list, const char *address)
{
	char *text = talloc_asprintf(
		bed->ev, "#!/bin/sh\ncase $3 in\n\"nodes list\") %s;;\n"
		"\"node address\") echo '%s';;\nesac\n",
		list != NULL ? talloc_asprintf(bed->ev, "printf '%%s\\n' '%s'",
				       list)
			     : "exit 2",
		address);

	write_file(bed->program, text, 0755);
}

static int setup(void **state)
{
	struct bed *bed = talloc_zero(NULL, struct bed);

	snprintf(bed->dir, sizeof(bed->dir), "%s", "/tmp/nodes.XXXXXX");
	if (getenv("TMPDIR") != NULL) {
		snprintf(bed->dir, sizeof(bed->dir), "%s/n.XXXXXX",
			 getenv("TMPDIR"));
	}
	assert_non_null(mkdtemp(bed->dir));
	bed->ev = tevent_context_init(bed);
	bed->paths = (struct ctdb_paths){ bed->dir, bed->dir };
	bed->program = talloc_asprintf(bed, "%s/ctdb-config", bed->dir);
	bed->list = talloc_asprintf(bed, "%s/nodes", bed->dir);
	*state = bed;
	return 0;
}

static int teardown(void **state)
{
	struct bed *bed = *state;

	unlink(bed->program);
	unlink(bed->list);
	assert_int_equal(rmdir(bed->dir), 0);
	talloc_free(bed);
	return 0;
}

static int read_nodes(struct bed *bed, struct ctdb_nodes **nodes,
		      const char **why)
{
	struct tevent_req *req = nodes_send(bed, bed->ev, &bed->paths);

	assert_non_null(req);
	assert_true(tevent_req_poll(req, bed->ev));
	return nodes_recv(req, bed, nodes, why);
}

static void own_is_first_here(void **state)
{
	struct bed *bed = *state;
	struct ctdb_nodes *nodes = NULL;
	const char *why = NULL;

	configure(bed, NULL, "");
	write_file(bed->list, "192.0.2.1\n#127.0.0.1\n127.0.0.7\n127.0.0.1\n",
		   0644);
	assert_int_equal(read_nodes(bed, &nodes, &why), 0);
	assert_int_equal(nodes->num, 4);
	assert_int_equal(nodes->own->pnn, 2);
}

static void own_by_address(void **state)
{
	struct bed *bed = *state;
	struct ctdb_nodes *nodes = NULL;
	const char *why = NULL;

	configure(bed, NULL, "127.0.0.1");
	write_file(bed->list, "127.0.0.7\n127.0.0.1\n", 0644);
	assert_int_equal(read_nodes(bed, &nodes, &why), 0);
	assert_int_equal(nodes->own->pnn, 1);
	configure(bed, NULL, "127.0.0.9");
	assert_int_equal(read_nodes(bed, &nodes, &why), 0);
	assert_null(nodes->own);
	configure(bed, NULL, "here");
	assert_int_equal(read_nodes(bed, &nodes, &why), EINVAL);
	assert_non_null(strstr(why, "here"));
}

static void list_key(void **state)
{
	struct bed *bed = *state;
	struct ctdb_nodes *nodes = NULL;
	const char *why = NULL;

	/* the file in its usual place is not looked at then */
	write_file(bed->list, "192.0.2.7\n", 0644);
	configure(bed, "!printf 192.0.2.1\\n#\\n127.0.0.1\\n", "");
	assert_int_equal(read_nodes(bed, &nodes, &why), 0);
	assert_int_equal(nodes->num, 3);
	assert_int_equal(nodes->own->pnn, 2);
	configure(bed, bed->list, "");
	assert_int_equal(read_nodes(bed, &nodes, &why), 0);
	assert_int_equal(nodes->num, 1);
	assert_null(nodes->own);
}

static void list_fails(void **state)
{
	struct bed *bed = *state;
	struct ctdb_nodes *nodes = NULL;
	const char *why = NULL;

	configure(bed, "!false", "");
	assert_int_equal(read_nodes(bed, &nodes, &why), EIO);
	configure(bed, "!/nowhere/at/all", "");
	assert_int_equal(read_nodes(bed, &nodes, &why), EIO);
	configure(bed, "!sleep 60", "");
	assert_int_equal(read_nodes(bed, &nodes, &why), ETIMEDOUT);
	assert_non_null(strstr(why, "!sleep 60"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(deleted_counts),
		cmocka_unit_test(ipv6),
		cmocka_unit_test(bad_lines),
		cmocka_unit_test(too_many),
		cmocka_unit_test_setup_teardown(own_is_first_here, setup,
						teardown),
		cmocka_unit_test_setup_teardown(own_by_address, setup,
						teardown),
		cmocka_unit_test_setup_teardown(list_key, setup, teardown),
		cmocka_unit_test_setup_teardown(list_fails, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
