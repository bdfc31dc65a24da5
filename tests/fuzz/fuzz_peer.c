/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Whoever connects to a node's door for its peers says anything, and so does
 * the node that we connect to.
 */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ctdb-events/greet.h"
#include "tests/fuzz/fuzz.h"

static void greet(const uint8_t *data, size_t size, bool first)
{
	const struct greeting own = { .pnn = 1, .version = "1" };
	struct tevent_context *ev = tevent_context_init(NULL);
	struct greeting theirs = {};
	struct tevent_req *req = NULL;
	ssize_t n = 0;
	int sock[2];
	int ret;

	ret = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock);
	fuzz_assert(ev != NULL && ret == 0);
	if (size > 0) {
		n = send(sock[1], data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	}
	fuzz_assert(n >= 0 || errno == EAGAIN);
	shutdown(sock[1], SHUT_WR);
	req = greet_send(ev, ev, sock[0], first, &own, 60000);
	fuzz_assert(req != NULL);
	tevent_req_poll(req, ev);
	ret = greet_recv(req, &theirs);
	fuzz_assert(ret >= 0 && theirs.pnn <= INT32_MAX);
	fuzz_assert(memchr(theirs.version, '\0', sizeof(theirs.version)));
	talloc_free(ev);
	close(sock[0]);
	close(sock[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	greet(data, size, false);
	greet(data, size, true);
	return 0;
}
