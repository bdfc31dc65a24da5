/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/member/wire.h"

struct wire {
	struct tevent_context *ev;
	int rfd, wfd;
	struct tevent_fd *read_fde;
	struct tevent_fd *write_fde;	/* while something waits to be sent */
	char *in;			/* WIRE_MAX_FRAME bytes */
	size_t in_used;
	char *out;
	size_t out_used;
	bool *freed;			/* tells wire_deliver() that it was */
	wire_frame_fn frame_fn;
	wire_gone_fn gone_fn;
	void *private_data;
};

/* ---- structs as JSON ------------------------------------------------- */

enum field_type { FIELD_INT, FIELD_BOOL, FIELD_U64, FIELD_STRING };

struct field {
	const char *name;
	enum field_type type;
	size_t offset;
	size_t size;		/* of a string's array */
};

#define REQ(type, name) \
	{ #name, type, offsetof(struct probe_request, name), \
	  sizeof(((struct probe_request *)0)->name) }
#define ANS(type, name) \
	{ #name, type, offsetof(struct probe_answer, name), \
	  sizeof(((struct probe_answer *)0)->name) }

static const struct field request_fields[] = {
	REQ(FIELD_INT, slot), REQ(FIELD_INT, family), REQ(FIELD_INT, type),
	REQ(FIELD_BOOL, wait), REQ(FIELD_BOOL, make),
	REQ(FIELD_BOOL, keeper), REQ(FIELD_BOOL, append),
	REQ(FIELD_U64, start), REQ(FIELD_U64, len),
	REQ(FIELD_U64, value), REQ(FIELD_U64, count),
	REQ(FIELD_INT, patience_ms), REQ(FIELD_INT, deadline_ms),
	REQ(FIELD_STRING, name), REQ(FIELD_STRING, name2),
	REQ(FIELD_U64, nlocks), REQ(FIELD_INT, io),
	REQ(FIELD_INT, window_ms),
};

static const struct field answer_fields[] = {
	ANS(FIELD_INT, err), ANS(FIELD_U64, ns), ANS(FIELD_INT, type),
	ANS(FIELD_U64, start), ANS(FIELD_U64, len), ANS(FIELD_INT, pid),
	ANS(FIELD_U64, count), ANS(FIELD_U64, wrong), ANS(FIELD_U64, at),
	ANS(FIELD_U64, value), ANS(FIELD_U64, dev), ANS(FIELD_U64, inode),
	ANS(FIELD_U64, size), ANS(FIELD_U64, fsid), ANS(FIELD_U64, turns),
	ANS(FIELD_U64, position), ANS(FIELD_BOOL, frozen),
	ANS(FIELD_U64, p50_ns), ANS(FIELD_U64, clock_ns),
	ANS(FIELD_U64, p99_ns), ANS(FIELD_U64, max_ns),
	ANS(FIELD_STRING, failed),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const op_names[PROBE_OPS] = {
	[PROBE_NOP] = "nop",
	[PROBE_BEGIN] = "begin",
	[PROBE_FINISH] = "finish",
	[PROBE_RESET] = "reset",
	[PROBE_OPEN] = "open",
	[PROBE_MAKE_MANY] = "make-many",
	[PROBE_CLOSE] = "close",
	[PROBE_LOCK] = "lock",
	[PROBE_GETLK] = "getlk",
	[PROBE_WRITE] = "write",
	[PROBE_READ] = "read",
	[PROBE_MAP] = "map",
	[PROBE_MAP_WRITE] = "map-write",
	[PROBE_MAP_READ] = "map-read",
	[PROBE_UNMAP] = "unmap",
	[PROBE_TRUNCATE] = "truncate",
	[PROBE_STAT] = "stat",
	[PROBE_END] = "end",
	[PROBE_LOOKUP] = "lookup",
	[PROBE_LIST] = "list",
	[PROBE_RENAME] = "rename",
	[PROBE_UNLINK] = "unlink",
	[PROBE_FORK_CLOSE] = "fork-close",
	[PROBE_LOCK_EXIT] = "lock-exit",
	[PROBE_APPEND] = "append",
	[PROBE_COUNT] = "count",
	[PROBE_LEASE] = "lease",
	[PROBE_LEASED] = "leased",
	[PROBE_LOCK_MANY] = "lock-many",
	[PROBE_CONTEND] = "contend",
	[PROBE_RING] = "ring",
	[PROBE_RING_LOG] = "ring-log",
	[PROBE_RING_END] = "ring-end",
	[PROBE_SUM] = "sum",
};

const char *wire_op_name(enum probe_op op)
{
	return op_names[op];
}

static json_t *field_value(const struct field *field, const void *base)
{
	const char *p = (const char *)base + field->offset;

	switch (field->type) {
	case FIELD_INT: {
		int v = *(const int *)p;
		return v != 0 ? json_integer(v) : NULL;
	}
	case FIELD_BOOL:
		return *(const bool *)p ? json_true() : NULL;
	case FIELD_U64: {
		/* JSON integers are signed here: the bits are kept */
		uint64_t v = *(const uint64_t *)p;
		return v != 0 ? json_integer((json_int_t)v) : NULL;
	}
	case FIELD_STRING:
		return p[0] != '\0' ? json_string(p) : NULL;
	}
	return NULL;
}

static json_t *encode(json_t *frame, const struct field *fields, size_t n,
		      const void *base)
{
	size_t i;

	for (i = 0; frame != NULL && i < n; i++) {
		json_t *value = field_value(&fields[i], base);

		if (value != NULL) {
			json_object_set_new(frame, fields[i].name, value);
		}
	}
	return frame;
}

static int decode_field(const struct field *field, const json_t *value,
			void *base)
{
	char *p = (char *)base + field->offset;

	switch (field->type) {
	case FIELD_INT: {
		json_int_t v = json_integer_value(value);

		if (!json_is_integer(value) || v < INT32_MIN ||
		    v > INT32_MAX) {
			return EPROTO;
		}
		*(int *)p = (int)v;
		return 0;
	}
	case FIELD_BOOL:
		if (!json_is_boolean(value)) {
			return EPROTO;
		}
		*(bool *)p = json_is_true(value);
		return 0;
	case FIELD_U64:
		if (!json_is_integer(value)) {
			return EPROTO;
		}
		*(uint64_t *)p = (uint64_t)json_integer_value(value);
		return 0;
	case FIELD_STRING:
		if (!json_is_string(value) ||
		    json_string_length(value) >= field->size) {
			return EPROTO;
		}
		memcpy(p, json_string_value(value),
		       json_string_length(value) + 1);
		return 0;
	}
	return EPROTO;
}

static int decode(const json_t *frame, const struct field *fields, size_t n,
		  void *base)
{
	size_t i;
	int ret;

	for (i = 0; i < n; i++) {
		const json_t *value = json_object_get(frame, fields[i].name);

		if (value == NULL) {
			continue;
		}
		ret = decode_field(&fields[i], value, base);
		if (ret != 0) {
			return ret;
		}
	}
	return 0;
}

json_t *wire_text(const char *text)
{
	json_t *json = json_string(text);
	char *plain = NULL;

	if (json != NULL) {
		return json;
	}
	plain = talloc_strdup(NULL, "");
	for (; *text != '\0' && plain != NULL; text++) {
		unsigned char c = (unsigned char)*text;

		plain = talloc_asprintf_append(plain,
					       c < 0x80 ? "%c" : "\\x%02x",
					       c);
	}
	json = plain != NULL ? json_string(plain) : NULL;
	talloc_free(plain);
	return json;
}

json_t *wire_from_request(const struct probe_request *request)
{
	json_t *frame = json_pack("{ss}", "op", op_names[request->op]);

	return encode(frame, request_fields, COUNT(request_fields), request);
}

json_t *wire_from_answer(const struct probe_answer *answer)
{
	json_t *frame = json_object();

	if (answer->log != NULL) {
		json_object_set_new(frame, "log", json_string(answer->log));
	}
	return encode(frame, answer_fields, COUNT(answer_fields), answer);
}

int wire_to_request(const json_t *frame, struct probe_request *request)
{
	const char *name = json_string_value(json_object_get(frame, "op"));
	unsigned op;

	*request = (struct probe_request){};
	for (op = 0; name != NULL && op < PROBE_OPS; op++) {
		if (strcmp(name, op_names[op]) == 0) {
			request->op = (enum probe_op)op;
			return decode(frame, request_fields,
				      COUNT(request_fields), request);
		}
	}
	return EPROTO;
}

int wire_to_answer(const json_t *frame, struct probe_answer *answer)
{
	int ret;

	*answer = (struct probe_answer){
		.log = json_string_value(json_object_get(frame, "log")),
	};
	ret = decode(frame, answer_fields, COUNT(answer_fields), answer);
	/* what is no errno is not told as one */
	return ret == 0 && answer->err < 0 ? EPROTO : ret;
}

/* ---- a stream of frames ---------------------------------------------- */

static int wire_destructor(struct wire *wire)
{
	TALLOC_FREE(wire->read_fde);
	TALLOC_FREE(wire->write_fde);
	close(wire->rfd);
	if (wire->wfd != wire->rfd) {
		close(wire->wfd);
	}
	if (wire->freed != NULL) {
		*wire->freed = true;
	}
	return 0;
}

static void wire_gone(struct wire *wire, int err)
{
	TALLOC_FREE(wire->read_fde);
	TALLOC_FREE(wire->write_fde);
	wire->gone_fn(err, wire->private_data);
}

static json_t *parse_line(const char *line, size_t len)
{
	json_t *frame = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);

	if (!json_is_object(frame)) {
		json_decref(frame);
		return NULL;
	}
	return frame;
}

/*
 * Hand over every whole line. Returns 0, EPROTO, EMSGSIZE, or ECANCELED when
 * the wire was freed by the one it called.
 */
static int wire_deliver(struct wire *wire)
{
	bool freed = false;
	size_t done = 0;

	while (true) {
		char *line = wire->in + done;
		char *end = memchr(line, '\n', wire->in_used - done);
		json_t *frame = NULL;

		if (end == NULL) {
			break;
		}
		frame = parse_line(line, (size_t)(end - line));
		if (frame == NULL) {
			return EPROTO;
		}
		done += (size_t)(end - line) + 1;
		wire->freed = &freed;
		wire->frame_fn(frame, wire->private_data);
		json_decref(frame);
		if (freed) {
			return ECANCELED;
		}
		wire->freed = NULL;
	}
	memmove(wire->in, wire->in + done, wire->in_used - done);
	wire->in_used -= done;
	return wire->in_used == WIRE_MAX_FRAME ? EMSGSIZE : 0;
}

static void wire_readable(struct tevent_context *ev, struct tevent_fd *fde,
			  uint16_t flags, void *private_data)
{
	struct wire *wire = talloc_get_type_abort(private_data, struct wire);
	ssize_t n;
	int ret;

	(void)ev;
	(void)fde;
	(void)flags;
	n = read(wire->rfd, wire->in + wire->in_used,
		 WIRE_MAX_FRAME - wire->in_used);
	if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (n <= 0) {
		wire_gone(wire, ECONNRESET);
		return;
	}
	wire->in_used += (size_t)n;
	ret = wire_deliver(wire);
	if (ret != 0 && ret != ECANCELED) {
		wire_gone(wire, ret);
	}
}

static void wire_consume(struct wire *wire, size_t n)
{
	memmove(wire->out, wire->out + n, wire->out_used - n);
	wire->out_used -= n;
	if (wire->out_used == 0) {
		TALLOC_FREE(wire->write_fde);
	}
}

static void wire_writable(struct tevent_context *ev, struct tevent_fd *fde,
			  uint16_t flags, void *private_data)
{
	struct wire *wire = talloc_get_type_abort(private_data, struct wire);
	ssize_t n;

	(void)ev;
	(void)fde;
	(void)flags;
	n = write(wire->wfd, wire->out, wire->out_used);
	if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
		return;
	}
	if (n == -1) {
		wire_gone(wire, ECONNRESET);
		return;
	}
	wire_consume(wire, (size_t)n);
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags == -1 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

struct wire *wire_create(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			 int rfd, int wfd, wire_frame_fn frame_fn,
			 wire_gone_fn gone_fn, void *private_data)
{
	struct wire *wire = talloc_zero(mem_ctx, struct wire);

	if (wire == NULL) {
		return NULL;
	}
	*wire = (struct wire){
		.ev = ev,
		.rfd = rfd,
		.wfd = wfd,
		.frame_fn = frame_fn,
		.gone_fn = gone_fn,
		.private_data = private_data,
	};
	set_nonblocking(rfd);
	set_nonblocking(wfd);
	wire->in = talloc_array(wire, char, WIRE_MAX_FRAME);
	wire->read_fde = tevent_add_fd(ev, wire, rfd, TEVENT_FD_READ,
				       wire_readable, wire);
	if (wire->in == NULL || wire->read_fde == NULL) {
		talloc_free(wire);
		return NULL;
	}
	talloc_set_destructor(wire, wire_destructor);
	return wire;
}

/* One sendmsg or write; *sent: how much went. */
static int send_some(int wfd, const char *buf, size_t len, int fd,
		     size_t *sent)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {};
	struct iovec iov = { .iov_base = (void *)(uintptr_t)buf,
			     .iov_len = len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cmsg = NULL;
	ssize_t n;

	*sent = 0;
	if (fd == -1) {
		n = write(wfd, buf, len);
	} else {
		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(cmsg), &fd, sizeof(int));
		n = sendmsg(wfd, &msg, MSG_NOSIGNAL);
	}
	if (n == -1) {
		return errno;
	}
	*sent = (size_t)n;
	return 0;
}

/* A frame's line, as talloc memory, with its newline; frame's reference is
 * taken. */
static int frame_line(TALLOC_CTX *mem_ctx, json_t *frame, char **line,
		      size_t *len)
{
	char *text = NULL;

	if (frame == NULL) {
		return ENOMEM;
	}
	text = json_dumps(frame, JSON_COMPACT);
	json_decref(frame);
	if (text == NULL) {
		return ENOMEM;
	}
	*line = talloc_asprintf(mem_ctx, "%s\n", text);
	free(text);
	if (*line == NULL) {
		return ENOMEM;
	}
	*len = strlen(*line);
	if (*len > WIRE_MAX_FRAME) {
		TALLOC_FREE(*line);
		return EMSGSIZE;
	}
	return 0;
}

static int wire_keep(struct wire *wire, const char *buf, size_t len)
{
	char *out = NULL;

	if (len == 0) {
		return 0;
	}
	if (wire->out_used + len > WIRE_MAX_BACKLOG) {
		return ENOBUFS;
	}
	out = talloc_realloc(wire, wire->out, char, wire->out_used + len);
	if (out == NULL) {
		return ENOMEM;
	}
	wire->out = out;
	memcpy(wire->out + wire->out_used, buf, len);
	wire->out_used += len;
	if (wire->write_fde == NULL) {
		wire->write_fde = tevent_add_fd(wire->ev, wire, wire->wfd,
						TEVENT_FD_WRITE,
						wire_writable, wire);
	}
	return wire->write_fde == NULL ? ENOMEM : 0;
}

int wire_send(struct wire *wire, json_t *frame, int fd)
{
	char *line = NULL;
	size_t len = 0, sent = 0;
	int ret;

	ret = frame_line(wire, frame, &line, &len);
	if (ret != 0) {
		return ret;
	}
	if (wire->out_used == 0) {
		ret = send_some(wire->wfd, line, len, fd, &sent);
		if (ret != 0 && ret != EAGAIN && ret != EINTR) {
			talloc_free(line);
			return ret;
		}
	}
	ret = wire_keep(wire, line + sent, len - sent);
	talloc_free(line);
	return ret;
}

bool wire_unread(const struct wire *wire)
{
	struct pollfd pfd = { .fd = wire->rfd, .events = POLLIN };
	int ret;

	ret = poll(&pfd, 1, 0);
	return ret == 1 && (pfd.revents & POLLIN) != 0;
}

/* ---- the worker's side ----------------------------------------------- */

static ssize_t recv_with_fd(int sock, char *buf, size_t len, int *fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {};
	struct iovec iov = { .iov_base = buf, .iov_len = len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	struct cmsghdr *cmsg = NULL;
	ssize_t n;

	n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	if (n <= 0) {
		return n;
	}
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg != NULL && cmsg->cmsg_level == SOL_SOCKET &&
	    cmsg->cmsg_type == SCM_RIGHTS) {
		if (*fd != -1) {
			close(*fd);
		}
		memcpy(fd, CMSG_DATA(cmsg), sizeof(int));
	}
	return n;
}

int wire_read_blocking(int sock, char *buf, size_t *used, json_t **frame,
		       int *fd)
{
	*fd = -1;
	while (true) {
		char *end = memchr(buf, '\n', *used);
		ssize_t n;

		if (end != NULL) {
			size_t len = (size_t)(end - buf);

			*frame = parse_line(buf, len);
			*used -= len + 1;
			memmove(buf, end + 1, *used);
			return *frame != NULL ? 0 : EPROTO;
		}
		if (*used == WIRE_MAX_FRAME) {
			return EMSGSIZE;
		}
		n = recv_with_fd(sock, buf + *used, WIRE_MAX_FRAME - *used,
				 fd);
		if (n == -1) {
			return errno;
		}
		if (n == 0) {
			return ECONNRESET;
		}
		*used += (size_t)n;
	}
}

int wire_write_blocking(int sock, json_t *frame)
{
	char *line = NULL;
	size_t len = 0, done = 0, sent = 0;
	int ret;

	ret = frame_line(NULL, frame, &line, &len);
	while (ret == 0 && done < len) {
		ret = send_some(sock, line + done, len - done, -1, &sent);
		done += sent;
		if (ret == EINTR) {
			ret = 0;
		}
	}
	talloc_free(line);
	return ret;
}
