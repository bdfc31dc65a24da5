/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What the value of `cluster lock` stands for, and which key it is read from
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctdb-events/clusterlock.h"

static void values(void **unused)
{
	static const struct {
		const char *value;
		enum clusterlock_kind kind;
		const char *directory;
	} table[] = {
		{ NULL, CLUSTERLOCK_NONE, NULL },
		{ "", CLUSTERLOCK_NONE, NULL },
		{ "/clusterfs/.ctdb/lock", CLUSTERLOCK_FILE,
		  "/clusterfs/.ctdb" },
		{ "/lock", CLUSTERLOCK_FILE, "/" },
		{ "/a b//lock", CLUSTERLOCK_FILE, "/a b" },
		{ "!/usr/libexec/ctdb/ctdb_mutex_fcntl_helper /a/lock",
		  CLUSTERLOCK_FILE, "/a" },
		{ "!ctdb_mutex_fcntl_helper  /a/lock 5", CLUSTERLOCK_FILE,
		  "/a" },
		{ "!/usr/libexec/ctdb/ctdb_mutex_ceph_rados_helper ceph c p o",
		  CLUSTERLOCK_HELPER, NULL },
		{ "!ctdb_mutex_fcntl_helper", CLUSTERLOCK_HELPER, NULL },
		{ "!/opt/my_ctdb_mutex_fcntl_helper /a/lock",
		  CLUSTERLOCK_HELPER, NULL },
		{ "!", CLUSTERLOCK_HELPER, NULL },
	};
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		TALLOC_CTX *mem_ctx = talloc_new(NULL);
		struct clusterlock lock;

		assert_int_equal(clusterlock_parse(mem_ctx, table[i].value,
						   &lock), 0);
		assert_int_equal(lock.kind, table[i].kind);
		if (table[i].directory == NULL) {
			assert_null(lock.directory);
		} else {
			assert_string_equal(lock.directory,
					    table[i].directory);
		}
		talloc_free(mem_ctx);
	}
}

static void no_path(void **unused)
{
	static const char *const bad[] = {
		"lock", "./lock", "/clusterfs/", "/",
		"!ctdb_mutex_fcntl_helper lock",
	};
	TALLOC_CTX *mem_ctx = talloc_new(NULL);
	struct clusterlock lock;
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(clusterlock_parse(mem_ctx, bad[i], &lock),
				 EINVAL);
	}
	talloc_free(mem_ctx);
}

/* ctdb-config as this script, in a directory of its own */
static int ask(const char *script, struct clusterlock *lock,
	       TALLOC_CTX *mem_ctx)
{
	const char *top = getenv("TMPDIR");
	char *dir = talloc_asprintf(mem_ctx, "%s/lock.XXXXXX",
				    top != NULL ? top : "/tmp");
	char *program = NULL;
	struct tevent_context *ev = tevent_context_init(mem_ctx);
	struct ctdb_paths paths = {};
	struct tevent_req *req = NULL;
	FILE *f = NULL;
	int ret;

	assert_non_null(mkdtemp(dir));
	program = talloc_asprintf(mem_ctx, "%s/ctdb-config", dir);
	f = fopen(program, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", script);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(program, 0755), 0);
	paths.base = paths.helpers = dir;
	req = clusterlock_send(mem_ctx, ev, &paths);
	assert_true(tevent_req_poll(req, ev));
	ret = clusterlock_recv(req, mem_ctx, lock);
	unlink(program);
	assert_int_equal(rmdir(dir), 0);
	return ret;
}

static void keys(void **unused)
{
	static const struct {
		const char *script;
		const char *file;	/* NULL: no lock */
	} table[] = {
		{ "[ \"$3\" != 'cluster lock' ] || echo /new/lock",
		  "/new/lock" },
		{ "[ \"$3\" != 'recovery lock' ] || echo /old/lock",
		  "/old/lock" },
		/* both: the new one */
		{ "case $3 in cluster*) echo /new/lock;; *) echo /old/lock;; "
		  "esac", "/new/lock" },
		/* a version that does not know the new one */
		{ "case $3 in cluster*) exit 2;; *) echo /old/lock;; esac",
		  "/old/lock" },
		/* not set: an empty line */
		{ "echo", NULL },
		{ "exit 2", NULL },
	};
	size_t i;

	(void)unused;
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		TALLOC_CTX *mem_ctx = talloc_new(NULL);
		struct clusterlock lock;

		assert_int_equal(ask(table[i].script, &lock, mem_ctx), 0);
		if (table[i].file == NULL) {
			assert_int_equal(lock.kind, CLUSTERLOCK_NONE);
		} else {
			assert_int_equal(lock.kind, CLUSTERLOCK_FILE);
			assert_string_equal(lock.file, table[i].file);
		}
		talloc_free(mem_ctx);
	}
}

static void config_fails(void **unused)
{
	TALLOC_CTX *mem_ctx = talloc_new(NULL);
	struct clusterlock lock;

	(void)unused;
	assert_int_equal(ask("exit 1", &lock, mem_ctx), EIO);
	assert_int_equal(ask("sleep 60", &lock, mem_ctx), ETIMEDOUT);
	assert_int_equal(ask("echo relative", &lock, mem_ctx), EINVAL);
	talloc_free(mem_ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(no_path),
		cmocka_unit_test(keys),
		cmocka_unit_test(config_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
