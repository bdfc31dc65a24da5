/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An agent says anything: the input is all that the coordinator hears, before
 * the connection ends. A member is started, asked, killed and looked at.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/member/member.h"
#include "tests/fuzz/fuzz.h"

#define PLENTY_MS 60000

static const struct probe_request request = { .op = PROBE_GETLK };

static void said(const char *host, const char *line, void *private_data)
{
	(void)private_data;
	fuzz_assert(host != NULL && line != NULL);
}

static void use_member(struct tevent_context *ev, struct member *member)
{
	struct probe_answer answer = {};
	struct member_autopsy autopsy = {};
	struct tevent_req *req = NULL;
	const struct member_info *info = member_info(member);
	int ret;

	fuzz_assert(info->host != NULL && info->mount_line != NULL &&
		    info->boot_id != NULL);
	req = member_call_send(ev, ev, member, &request, -1, PLENTY_MS);
	tevent_req_poll(req, ev);
	ret = member_call_recv(req, &answer);
	fuzz_assert(ret >= 0 && answer.err >= 0);
	talloc_free(req);
	req = member_autopsy_send(ev, ev, member);
	tevent_req_poll(req, ev);
	ret = member_autopsy_recv(req, ev, &autopsy);
	fuzz_assert(ret >= 0);
	talloc_free(req);
	req = member_kill_send(ev, ev, member, true, PLENTY_MS);
	tevent_req_poll(req, ev);
	ret = member_kill_recv(req);
	fuzz_assert(ret >= 0);
	talloc_free(req);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tevent_context *ev = tevent_context_init(NULL);
	struct member_link links[2] = { { .host = "host" } };
	struct member_reach reach = { .links = links, .said_fn = said };
	struct member *member = NULL;
	struct tevent_req *req = NULL;
	const char *why = NULL;
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
	links[0].rfd = links[0].wfd = sock[0];
	req = member_start_send(ev, ev, &reach, "host:/place", 0, PLENTY_MS);
	fuzz_assert(req != NULL);
	tevent_req_poll(req, ev);
	ret = member_start_recv(req, ev, &member, &why);
	talloc_free(req);
	fuzz_assert((ret == 0) == (member != NULL));
	fuzz_assert(ret == 0 || why != NULL);
	if (ret == 0) {
		use_member(ev, member);
	}
	talloc_free(ev);
	close(sock[1]);
	return 0;
}
