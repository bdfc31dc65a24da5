/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <gnutls/gnutls.h>

#include "ctdb-events/tls.h"

#define KEY_MAX 4096
#define USER "pingpong"
#define PRIORITY "NONE:+VERS-TLS1.3:+CIPHER-ALL:+MAC-ALL:+GROUP-ALL:" \
		 "+SIGN-ALL:+ECDHE-PSK:+DHE-PSK:+PSK"

struct tls_key {
	gnutls_datum_t datum;		/* its data is a child */
};

/* Bytes on their way in one direction */
struct flow {
	char data[16384];
	size_t start, end;
};

struct pump {
	const struct tls_key *key;
	int net, inner;
	struct tevent_fd *net_fde, *inner_fde;
	gnutls_session_t session;
	gnutls_psk_server_credentials_t server_cred;
	gnutls_psk_client_credentials_t client_cred;
	bool shaken;
	struct flow in;			/* from the net, plain */
	struct flow out;
};

/* ---- the key ------------------------------------------------------------ */

int tls_key_read(TALLOC_CTX *mem_ctx, const char *path, struct tls_key **out)
{
	struct tls_key *key = NULL;
	struct stat st = {};
	char data[KEY_MAX + 1];
	ssize_t n = -1;
	int fd, ret;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd == -1) {
		return errno;
	}
	ret = fstat(fd, &st);
	if (ret == 0 && (!S_ISREG(st.st_mode) || (st.st_mode & 077) != 0 ||
			 (st.st_uid != 0 && st.st_uid != geteuid()))) {
		close(fd);
		return EPERM;
	}
	if (ret == 0) {
		n = read(fd, data, sizeof(data));
	}
	ret = n == -1 ? errno : 0;
	close(fd);
	if (ret != 0) {
		return ret;
	}
	if (n > 0 && data[n - 1] == '\n') {
		n--;
	}
	if (n < TLS_KEY_MIN || n > KEY_MAX) {
		return EINVAL;
	}
	key = talloc_zero(mem_ctx, struct tls_key);
	if (key == NULL) {
		return ENOMEM;
	}
	key->datum.data = talloc_memdup(key, data, (size_t)n);
	key->datum.size = (unsigned)n;
	if (key->datum.data == NULL) {
		talloc_free(key);
		return ENOMEM;
	}
	*out = key;
	return 0;
}

/* ---- the pump ----------------------------------------------------------- */

static int pump_destructor(struct pump *pump)
{
	TALLOC_FREE(pump->net_fde);
	TALLOC_FREE(pump->inner_fde);
	if (pump->session != NULL) {
		gnutls_deinit(pump->session);
	}
	if (pump->server_cred != NULL) {
		gnutls_psk_free_server_credentials(pump->server_cred);
	}
	if (pump->client_cred != NULL) {
		gnutls_psk_free_client_credentials(pump->client_cred);
	}
	if (pump->net != -1) {
		close(pump->net);
	}
	if (pump->inner != -1) {
		close(pump->inner);
	}
	return 0;
}

static bool again(ssize_t n)
{
	return n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED;
}

/* Each returns 0: nothing more to do now, or -1: the end. */

static int fill_in(struct pump *pump)
{
	struct flow *in = &pump->in;
	ssize_t n;

	while (true) {
		while (in->start < in->end) {
			n = send(pump->inner, in->data + in->start,
				 in->end - in->start,
				 MSG_NOSIGNAL | MSG_DONTWAIT);
			if (n == -1) {
				return errno == EAGAIN ? 0 : -1;
			}
			in->start += (size_t)n;
		}
		n = gnutls_record_recv(pump->session, in->data,
				       sizeof(in->data));
		if (n <= 0) {
			return again(n) ? 0 : -1;
		}
		in->start = 0;
		in->end = (size_t)n;
	}
}

static int fill_out(struct pump *pump)
{
	struct flow *out = &pump->out;
	ssize_t n;

	while (true) {
		while (out->start < out->end) {
			n = gnutls_record_send(pump->session,
					       out->data + out->start,
					       out->end - out->start);
			if (n < 0) {
				return again(n) ? 0 : -1;
			}
			out->start += (size_t)n;
		}
		n = recv(pump->inner, out->data, sizeof(out->data),
			 MSG_DONTWAIT);
		if (n == -1 && errno == EAGAIN) {
			return 0;
		}
		if (n <= 0) {
			return -1;
		}
		out->start = 0;
		out->end = (size_t)n;
	}
}

static int shake(struct pump *pump)
{
	int ret = gnutls_handshake(pump->session);

	pump->shaken = ret == GNUTLS_E_SUCCESS;
	if (pump->shaken || !gnutls_error_is_fatal(ret)) {
		return 0;
	}
	return -1;
}

static void watch(struct pump *pump)
{
	bool in_full = pump->in.start < pump->in.end;
	bool out_full = pump->out.start < pump->out.end;
	uint16_t net = in_full ? 0 : TEVENT_FD_READ;
	uint16_t inner = pump->shaken && !out_full ? TEVENT_FD_READ : 0;

	if (out_full || (!pump->shaken &&
			 gnutls_record_get_direction(pump->session) == 1)) {
		net |= TEVENT_FD_WRITE;
	}
	if (in_full) {
		inner |= TEVENT_FD_WRITE;
	}
	tevent_fd_set_flags(pump->net_fde, net);
	tevent_fd_set_flags(pump->inner_fde, inner);
}

static void pump_ready(struct tevent_context *ev, struct tevent_fd *fde,
		       uint16_t flags, void *private_data)
{
	struct pump *pump = talloc_get_type_abort(private_data, struct pump);
	int ret = 0;

	(void)ev;
	(void)fde;
	(void)flags;
	if (!pump->shaken) {
		ret = shake(pump);
	}
	if (ret == 0 && pump->shaken) {
		ret = fill_in(pump);
	}
	if (ret == 0 && pump->shaken) {
		ret = fill_out(pump);
	}
	if (ret != 0) {
		talloc_free(pump);
		return;
	}
	watch(pump);
}

static int find_key(gnutls_session_t session, const char *user,
		    gnutls_datum_t *datum)
{
	const struct pump *pump = gnutls_session_get_ptr(session);

	if (strcmp(user, USER) != 0) {
		return -1;
	}
	datum->size = pump->key->datum.size;
	datum->data = gnutls_malloc(datum->size);
	if (datum->data == NULL) {
		return -1;
	}
	memcpy(datum->data, pump->key->datum.data, datum->size);
	return 0;
}

static int set_credentials(struct pump *pump, bool server)
{
	int ret;

	if (server) {
		ret = gnutls_psk_allocate_server_credentials(
			&pump->server_cred);
		if (ret != 0) {
			return ret;
		}
		gnutls_psk_set_server_credentials_function(pump->server_cred,
							   find_key);
		return gnutls_credentials_set(pump->session, GNUTLS_CRD_PSK,
					      pump->server_cred);
	}
	ret = gnutls_psk_allocate_client_credentials(&pump->client_cred);
	if (ret == 0) {
		ret = gnutls_psk_set_client_credentials(
			pump->client_cred, USER, &pump->key->datum,
			GNUTLS_PSK_KEY_RAW);
	}
	if (ret == 0) {
		ret = gnutls_credentials_set(pump->session, GNUTLS_CRD_PSK,
					     pump->client_cred);
	}
	return ret;
}

static int begin_session(struct pump *pump, bool server)
{
	int ret;

	ret = gnutls_init(&pump->session,
			  GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL |
			  (server ? GNUTLS_SERVER : GNUTLS_CLIENT));
	if (ret != 0) {
		pump->session = NULL;
		return ret;
	}
	gnutls_session_set_ptr(pump->session, pump);
	ret = gnutls_priority_set_direct(pump->session, PRIORITY, NULL);
	if (ret == 0) {
		ret = set_credentials(pump, server);
	}
	gnutls_transport_set_int(pump->session, pump->net);
	return ret;
}

int tls_wrap(TALLOC_CTX *mem_ctx, struct tevent_context *ev, int fd,
	     bool server, const struct tls_key *key, int *plain)
{
	struct pump *pump = talloc_zero(mem_ctx, struct pump);
	int pair[2];
	int ret;

	if (pump == NULL) {
		close(fd);
		return ENOMEM;
	}
	pump->key = key;
	pump->net = fd;
	pump->inner = -1;
	talloc_set_destructor(pump, pump_destructor);
	ret = begin_session(pump, server);
	if (ret != 0) {
		talloc_free(pump);
		return EIO;
	}
	ret = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			 0, pair);
	if (ret == -1) {
		ret = errno;
		talloc_free(pump);
		return ret;
	}
	pump->inner = pair[0];
	pump->net_fde = tevent_add_fd(ev, pump, pump->net,
				      TEVENT_FD_READ | TEVENT_FD_WRITE,
				      pump_ready, pump);
	pump->inner_fde = tevent_add_fd(ev, pump, pump->inner, 0, pump_ready,
					pump);
	if (pump->net_fde == NULL || pump->inner_fde == NULL) {
		close(pair[1]);
		talloc_free(pump);
		return ENOMEM;
	}
	*plain = pair[1];
	return 0;
}
