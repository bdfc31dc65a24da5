/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * TLS between two agents: what goes in comes out, nothing of it is readable on
 * the way, and who has another key gets nothing
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctdb-events/tls.h"

#define BIG (1024 * 1024)

static char dir[128];

static int make_dir(void **state)
{
	const char *top = getenv("TMPDIR");

	(void)state;
	snprintf(dir, sizeof(dir), "%s/tls.XXXXXX",
		 top != NULL ? top : "/tmp");
	return mkdtemp(dir) == NULL;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static int read_key(TALLOC_CTX *mem_ctx, const char *text, mode_t mode,
		    struct tls_key **key)
{
	char path[192];
	FILE *f = NULL;
	int ret;

	snprintf(path, sizeof(path), "%s/key", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
	ret = tls_key_read(mem_ctx, path, key);
	unlink(path);
	return ret;
}

static void key_file(void **state)
{
	TALLOC_CTX *mem_ctx = talloc_new(NULL);
	struct tls_key *key = NULL;

	(void)state;
	assert_int_equal(read_key(mem_ctx, "0123456789abcdef\n", 0600, &key),
			 0);
	assert_int_equal(read_key(mem_ctx, "0123456789abcde\n", 0600, &key),
			 EINVAL);
	assert_int_equal(read_key(mem_ctx, "", 0600, &key), EINVAL);
	assert_int_equal(read_key(mem_ctx, "0123456789abcdef", 0644, &key),
			 EPERM);
	assert_int_equal(read_key(mem_ctx, "0123456789abcdef", 0620, &key),
			 EPERM);
	assert_int_equal(tls_key_read(mem_ctx, "/nowhere/key", &key), ENOENT);
	assert_int_equal(tls_key_read(mem_ctx, "/dev/zero", &key), EPERM);
	talloc_free(mem_ctx);
}

struct ends {
	TALLOC_CTX *mem_ctx;
	struct tevent_context *ev;
	int a, b;
};

static struct ends connect_ends(const char *a_key, const char *b_key)
{
	struct ends ends = { .mem_ctx = talloc_new(NULL) };
	struct tls_key *key = NULL;
	int pair[2];

	ends.ev = tevent_context_init(ends.mem_ctx);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
				    pair), 0);
	assert_int_equal(read_key(ends.mem_ctx, a_key, 0600, &key), 0);
	assert_int_equal(tls_wrap(ends.mem_ctx, ends.ev, pair[0], false, key,
				  &ends.a), 0);
	if (b_key == NULL) {
		ends.b = pair[1];
		return ends;
	}
	assert_int_equal(read_key(ends.mem_ctx, b_key, 0600, &key), 0);
	assert_int_equal(tls_wrap(ends.mem_ctx, ends.ev, pair[1], true, key,
				  &ends.b), 0);
	return ends;
}

static void close_ends(struct ends *ends)
{
	close(ends->a);
	close(ends->b);
	talloc_free(ends->mem_ctx);
}

/* Read so many bytes, or to the end; how many there were */
static size_t receive(struct ends *ends, int fd, char *buf, size_t len)
{
	size_t done = 0;
	ssize_t n;

	while (done < len) {
		n = read(fd, buf + done, len - done);
		if (n == 0 || (n == -1 && errno != EAGAIN)) {
			break;
		}
		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		assert_int_equal(tevent_loop_once(ends->ev), 0);
	}
	return done;
}

static void same_key(void **state)
{
	struct ends ends = connect_ends("a key of many bytes",
					"a key of many bytes\n");
	char buf[64] = "";

	(void)state;
	assert_int_equal(write(ends.a, "question", 8), 8);
	assert_int_equal(receive(&ends, ends.b, buf, 8), 8);
	assert_memory_equal(buf, "question", 8);
	assert_int_equal(write(ends.b, "answer", 6), 6);
	assert_int_equal(receive(&ends, ends.a, buf, 6), 6);
	assert_memory_equal(buf, "answer", 6);
	/* the end of one is the end of the other */
	close(ends.a);
	assert_int_equal(receive(&ends, ends.b, buf, 1), 0);
	ends.a = open("/dev/null", O_RDONLY);
	close_ends(&ends);
}

static void much(void **state)
{
	struct ends ends = connect_ends("a key of many bytes",
					"a key of many bytes");
	char *sent = malloc(BIG), *got = malloc(BIG);
	size_t in = 0, out = 0, i;
	ssize_t n;

	(void)state;
	assert_true(sent != NULL && got != NULL);
	for (i = 0; i < BIG; i++) {
		sent[i] = (char)(i * 31 >> 3);
	}
	while (out < BIG) {
		n = write(ends.a, sent + in, BIG - in);
		in += n > 0 ? (size_t)n : 0;
		n = read(ends.b, got + out, BIG - out);
		out += n > 0 ? (size_t)n : 0;
		if (n <= 0) {
			assert_int_equal(tevent_loop_once(ends.ev), 0);
		}
	}
	assert_memory_equal(sent, got, BIG);
	free(sent);
	free(got);
	close_ends(&ends);
}

static void other_key(void **state)
{
	struct ends ends = connect_ends("a key of many bytes",
					"another of many bytes");
	char buf[64];

	(void)state;
	assert_int_equal(write(ends.a, "question", 8), 8);
	assert_int_equal(receive(&ends, ends.b, buf, 1), 0);
	assert_int_equal(receive(&ends, ends.a, buf, 1), 0);
	close_ends(&ends);
}

/* One side without TLS */
static void no_key(void **state)
{
	struct ends ends = connect_ends("a key of many bytes", NULL);
	char buf[4096] = "";
	size_t n;

	(void)state;
	assert_int_equal(write(ends.a, "question", 8), 8);
	n = receive(&ends, ends.b, buf, 64);
	assert_int_equal(n, 64);
	assert_null(memmem(buf, n, "question", 8));
	assert_int_equal(write(ends.b, "{\"hello\":\"node\"}\n", 17), 17);
	assert_int_equal(receive(&ends, ends.a, buf, 1), 0);
	close_ends(&ends);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_file),
		cmocka_unit_test(same_key),
		cmocka_unit_test(much),
		cmocka_unit_test(other_key),
		cmocka_unit_test(no_key),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
