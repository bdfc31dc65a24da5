/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/member/channel.h"
#include "ctdb-events/log.h"
#include "ctdb-events/peers.h"

#define GREET_MS 5000

/* A session outlives no run by much */
#define SESSION_S 120

/* A list of nodes is good for so long */
#define NODES_AGE_S 2

#define MAX_VISITORS 128
#define MAX_FROM_ONE 24

struct peers {
	struct tevent_context *ev;
	struct peers_config config;
	int fd;
	struct tevent_fd *fde;
	struct visitor *visitors;	/* list */
	unsigned num;
	struct tevent_req *reading;	/* the nodes; NULL: not now */
	struct ctdb_nodes *nodes;	/* as last read, NULL: never */
	time_t read_at;			/* CLOCK_MONOTONIC */
};

/* One connection, from accept to end */
struct visitor {
	struct peers *peers;
	struct visitor *next;
	struct sockaddr_storage from;
	bool known;			/* to be one of CTDB's nodes: */
	unsigned pnn;
	int fd;				/* -1: the session's */
	struct agent_session *session;
};

static void peers_nodes_read(struct tevent_req *subreq);
static void visitor_greeted(struct tevent_req *subreq);
static int identify_visitors(struct peers *peers);

static int visitor_destructor(struct visitor *visitor)
{
	struct peers *peers = visitor->peers;
	struct visitor **p = NULL;

	TALLOC_FREE(visitor->session);
	if (visitor->fd != -1) {
		close(visitor->fd);
	}
	for (p = &peers->visitors; *p != NULL; p = &(*p)->next) {
		if (*p == visitor) {
			*p = visitor->next;
			peers->num--;
			break;
		}
	}
	return 0;
}

static bool is_full(const struct peers *peers,
		    const struct sockaddr_storage *from)
{
	const struct visitor *visitor = NULL;
	unsigned same = 0;

	for (visitor = peers->visitors; visitor != NULL;
	     visitor = visitor->next) {
		bool equal = node_address_equal(&visitor->from, from);

		same += equal ? 1 : 0;
	}
	return peers->num >= MAX_VISITORS || same >= MAX_FROM_ONE;
}

static void visitor_expired(struct tevent_context *ev, struct tevent_timer *te,
			    struct timeval now, void *private_data)
{
	(void)ev;
	(void)te;
	(void)now;
	talloc_free(private_data);
}

static struct visitor *visitor_create(struct peers *peers, int fd,
				      const struct sockaddr_storage *from)
{
	struct visitor *visitor = talloc_zero(peers, struct visitor);
	struct tevent_timer *te = NULL;

	if (visitor == NULL) {
		return NULL;
	}
	te = tevent_add_timer(peers->ev, visitor,
			      tevent_timeval_current_ofs(SESSION_S, 0),
			      visitor_expired, visitor);
	if (te == NULL) {
		talloc_free(visitor);
		return NULL;
	}
	visitor->peers = peers;
	visitor->fd = fd;
	visitor->from = *from;
	visitor->next = peers->visitors;
	peers->visitors = visitor;
	peers->num++;
	talloc_set_destructor(visitor, visitor_destructor);
	return visitor;
}

static void peers_accept(struct tevent_context *ev, struct tevent_fd *fde,
			 uint16_t flags, void *private_data)
{
	struct peers *peers = talloc_get_type_abort(private_data,
						    struct peers);
	struct sockaddr_storage from = {};
	socklen_t len = sizeof(from);
	struct visitor *visitor = NULL;
	int one = 1;
	int fd, ret;

	(void)ev;
	(void)fde;
	(void)flags;
	fd = accept4(peers->fd, (struct sockaddr *)&from, &len,
		     SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd == -1) {
		return;
	}
	if (is_full(peers, &from)) {
		close(fd);
		return;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	visitor = visitor_create(peers, fd, &from);
	if (visitor == NULL) {
		close(fd);
		return;
	}
	ret = identify_visitors(peers);
	if (ret != 0) {
		talloc_free(visitor);
	}
}

static void log_stranger(const struct visitor *visitor, const char *what)
{
	const void *in = &((const struct sockaddr_in *)&visitor->from)
			  ->sin_addr;
	char text[INET6_ADDRSTRLEN] = "";

	if (visitor->from.ss_family == AF_INET6) {
		in = &((const struct sockaddr_in6 *)&visitor->from)
		      ->sin6_addr;
	}
	inet_ntop(visitor->from.ss_family, in, text, sizeof(text));
	log_line("a connection from %s was closed: %s", text, what);
}

static int visitor_encrypt(struct visitor *visitor)
{
	struct peers *peers = visitor->peers;
	int net = visitor->fd;

	if (peers->config.key == NULL) {
		return 0;
	}
	visitor->fd = -1;
	return tls_wrap(peers, peers->ev, net, true, peers->config.key,
			&visitor->fd);
}

/* A node is greeted, anybody else sent away. */
static void visitor_identify(struct visitor *visitor,
			     const struct ctdb_nodes *nodes, const char *why)
{
	struct peers *peers = visitor->peers;
	const struct ctdb_node *node = NULL;
	struct tevent_req *subreq = NULL;
	int ret;

	if (nodes != NULL) {
		node = nodes_find(nodes, &visitor->from);
		why = "it is none of CTDB's nodes";
	}
	if (node == NULL) {
		log_stranger(visitor, why);
		talloc_free(visitor);
		return;
	}
	visitor->known = true;
	visitor->pnn = node->pnn;
	ret = visitor_encrypt(visitor);
	if (ret != 0) {
		talloc_free(visitor);
		return;
	}
	subreq = greet_send(visitor, peers->ev, visitor->fd, false,
			    peers->config.own, GREET_MS);
	if (subreq == NULL) {
		talloc_free(visitor);
		return;
	}
	tevent_req_set_callback(subreq, visitor_greeted, visitor);
}

static time_t now_s(void)
{
	struct timespec ts = {};

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

static void with_nodes(struct peers *peers, const char *why)
{
	struct visitor *visitor = NULL, *next = NULL;

	for (visitor = peers->visitors; visitor != NULL; visitor = next) {
		next = visitor->next;
		if (!visitor->known) {
			visitor_identify(visitor, peers->nodes, why);
		}
	}
}

/* One reading serves all who came until its end. */
static int identify_visitors(struct peers *peers)
{
	if (peers->reading != NULL) {
		return 0;
	}
	if (peers->nodes != NULL && now_s() - peers->read_at < NODES_AGE_S) {
		with_nodes(peers, NULL);
		return 0;
	}
	peers->reading = nodes_send(peers, peers->ev, peers->config.paths);
	if (peers->reading == NULL) {
		return ENOMEM;
	}
	tevent_req_set_callback(peers->reading, peers_nodes_read, peers);
	return 0;
}

static void peers_nodes_read(struct tevent_req *subreq)
{
	struct peers *peers = tevent_req_callback_data(subreq, struct peers);
	const char *why = NULL;

	TALLOC_FREE(peers->nodes);
	nodes_recv(subreq, peers, &peers->nodes, &why);
	peers->reading = NULL;
	TALLOC_FREE(subreq);
	peers->read_at = now_s();
	with_nodes(peers, why);
	talloc_free((void *)(uintptr_t)why);
}

static const char *visitor_resolve(TALLOC_CTX *mem_ctx, const char *place,
				   void *private_data)
{
	const struct visitor *visitor = talloc_get_type_abort(
		private_data, struct visitor);
	const struct peers_config *config = &visitor->peers->config;

	return config->resolve_fn(mem_ctx, place, config->private_data);
}

static void visitor_ended(void *private_data)
{
	talloc_free(private_data);
}

static void visitor_greeted(struct tevent_req *subreq)
{
	struct visitor *visitor = tevent_req_callback_data(subreq,
							   struct visitor);
	struct peers *peers = visitor->peers;
	struct greeting theirs = {};
	int fd = visitor->fd;
	int ret;

	ret = greet_recv(subreq, &theirs);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		talloc_free(visitor);
		return;
	}
	if (peers->config.greeted_fn != NULL) {
		peers->config.greeted_fn(visitor->pnn,
					 peers->config.private_data);
	}
	visitor->session = agent_session_create(
		visitor, peers->ev, fd, fd, peers->config.worker,
		visitor_resolve, visitor_ended, visitor);
	if (visitor->session == NULL) {
		talloc_free(visitor);
		return;
	}
	visitor->fd = -1;
}

static int peers_destructor(struct peers *peers)
{
	while (peers->visitors != NULL) {
		talloc_free(peers->visitors);
	}
	TALLOC_FREE(peers->fde);
	if (peers->fd != -1) {
		close(peers->fd);
	}
	return 0;
}

static int peers_listen(struct peers *peers)
{
	struct sockaddr_storage address = peers->config.address;
	int one = 1;
	int ret;

	if (address.ss_family == AF_INET) {
		((struct sockaddr_in *)&address)->sin_port =
			htons(peers->config.port);
	} else {
		((struct sockaddr_in6 *)&address)->sin6_port =
			htons(peers->config.port);
	}
	peers->fd = socket(address.ss_family,
			   SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (peers->fd == -1) {
		return errno;
	}
	setsockopt(peers->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	ret = bind(peers->fd, (struct sockaddr *)&address,
		   node_address_len(&address));
	if (ret == 0) {
		ret = listen(peers->fd, 64);
	}
	return ret == 0 ? 0 : errno;
}

int peers_open(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
	       const struct peers_config *config, struct peers **out)
{
	struct peers *peers = talloc_zero(mem_ctx, struct peers);
	int ret;

	if (peers == NULL) {
		return ENOMEM;
	}
	peers->ev = ev;
	peers->config = *config;
	peers->fd = -1;
	talloc_set_destructor(peers, peers_destructor);
	ret = peers_listen(peers);
	if (ret != 0) {
		talloc_free(peers);
		return ret;
	}
	peers->fde = tevent_add_fd(ev, peers, peers->fd, TEVENT_FD_READ,
				   peers_accept, peers);
	if (peers->fde == NULL) {
		talloc_free(peers);
		return ENOMEM;
	}
	*out = peers;
	return 0;
}
