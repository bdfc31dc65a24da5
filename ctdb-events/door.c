/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/config.h"
#include "core/member/channel.h"
#include "core/member/wire.h"
#include "ctdb-events/door.h"

#define MAX_GUESTS 64
#define MAX_WHAT (sizeof(DOOR_CHECK) + PATH_MAX)

static const char *const outcomes[] = {
	[DOOR_OK] = "ok",
	[DOOR_REFUSED] = "refused",
	[DOOR_CHECKING] = "checking",
};

struct door {
	struct tevent_context *ev;
	int fd;
	struct tevent_fd *fde;
	const char *path;
	struct guest *guests;		/* list */
	unsigned num;
	void (*asked_fn)(const char *what, void *private_data);
	void *private_data;
};

/* One who came in; asks one thing at a time */
struct guest {
	struct door *door;
	struct guest *next;
	struct wire *wire;
	json_int_t id;			/* of the open question; 0: none */
	char what[MAX_WHAT];
	uint64_t asked_ms;		/* CLOCK_MONOTONIC */
};

static int guest_destructor(struct guest *guest)
{
	struct guest **p = NULL;

	for (p = &guest->door->guests; *p != NULL; p = &(*p)->next) {
		if (*p == guest) {
			*p = guest->next;
			guest->door->num--;
			break;
		}
	}
	return 0;
}

static void guest_frame(json_t *frame, void *private_data)
{
	struct guest *guest = talloc_get_type_abort(private_data,
						    struct guest);
	struct door *door = guest->door;
	const char *what = json_string_value(json_object_get(frame, "ask"));
	json_int_t id = json_integer_value(json_object_get(frame, "id"));

	if (what == NULL || strlen(what) >= MAX_WHAT || id == 0 ||
	    guest->id != 0) {
		talloc_free(guest);
		return;
	}
	guest->id = id;
	guest->asked_ms = channel_now_ms();
	strcpy(guest->what, what);
	door->asked_fn(guest->what, door->private_data);
}

static void guest_gone(int err, void *private_data)
{
	(void)err;
	talloc_free(private_data);
}

static bool is_ours(int fd)
{
	struct ucred cred = {};
	socklen_t len = sizeof(cred);
	int ret;

	ret = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	return ret == 0 && (cred.uid == 0 || cred.uid == geteuid());
}

static void door_accept(struct tevent_context *ev, struct tevent_fd *fde,
			uint16_t flags, void *private_data)
{
	struct door *door = talloc_get_type_abort(private_data, struct door);
	struct guest *guest = NULL;
	int fd;

	(void)fde;
	(void)flags;
	fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd == -1) {
		return;
	}
	if (door->num >= MAX_GUESTS || !is_ours(fd)) {
		close(fd);
		return;
	}
	guest = talloc_zero(door, struct guest);
	if (guest == NULL) {
		close(fd);
		return;
	}
	guest->door = door;
	guest->next = door->guests;
	door->guests = guest;
	door->num++;
	talloc_set_destructor(guest, guest_destructor);
	guest->wire = wire_create(guest, ev, fd, fd, guest_frame, guest_gone,
				  guest);
	if (guest->wire == NULL) {
		close(fd);
		talloc_free(guest);
		return;
	}
	wire_send(guest->wire, json_pack("{ss ss}", "hello", "resident",
					 "version", PINGPONG_VERSION), -1);
}

static json_t *json_lines(const char *const *lines)
{
	json_t *array = json_array();

	while (array != NULL && *lines != NULL) {
		json_array_append_new(array, wire_text(*lines));
		lines++;
	}
	return array;
}

static void guest_answer(struct guest *guest, enum door_outcome outcome,
			 const char *const *lines)
{
	/* one that is gone is told so by its wire */
	wire_send(guest->wire,
		  json_pack("{sI ss so}", "id", guest->id, "outcome",
			    outcomes[outcome], "lines", json_lines(lines)),
		  -1);
	guest->id = 0;
}

void door_answer(struct door *door, const char *what,
		 enum door_outcome outcome, const char *const *lines)
{
	struct guest *guest = NULL;

	for (guest = door->guests; guest != NULL; guest = guest->next) {
		if (guest->id != 0 && strcmp(guest->what, what) == 0) {
			guest_answer(guest, outcome, lines);
		}
	}
}

const char *door_answer_if(
	struct door *door, const char *prefix, enum door_outcome outcome,
	const char *const *lines,
	bool (*answered_fn)(const char *what, uint64_t asked_ms,
			    void *private_data))
{
	struct guest *guest = NULL;
	const char *left = NULL;

	for (guest = door->guests; guest != NULL; guest = guest->next) {
		bool answered;

		if (guest->id == 0 ||
		    strncmp(guest->what, prefix, strlen(prefix)) != 0) {
			continue;
		}
		answered = answered_fn(guest->what, guest->asked_ms,
				       door->private_data);
		if (answered) {
			guest_answer(guest, outcome, lines);
		} else if (left == NULL) {
			left = guest->what;
		}
	}
	return left;
}

static int door_destructor(struct door *door)
{
	while (door->guests != NULL) {
		talloc_free(door->guests);
	}
	TALLOC_FREE(door->fde);
	if (door->fd != -1) {
		close(door->fd);
		unlink(door->path);
	}
	return 0;
}

static int unix_address(const char *path, struct sockaddr_un *address)
{
	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof(address->sun_path)) {
		return ENAMETOOLONG;
	}
	strcpy(address->sun_path, path);
	return 0;
}

static int door_listen(struct door *door)
{
	struct sockaddr_un address;
	mode_t mask;
	int ret;

	ret = unix_address(door->path, &address);
	if (ret != 0) {
		return ret;
	}
	door->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			  0);
	if (door->fd == -1) {
		return errno;
	}
	unlink(door->path);
	mask = umask(0177);
	ret = bind(door->fd, (struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (ret == 0) {
		ret = listen(door->fd, 16);
	}
	return ret == 0 ? 0 : errno;
}

int door_open(TALLOC_CTX *mem_ctx, struct tevent_context *ev, const char *path,
	      void (*asked_fn)(const char *what, void *private_data),
	      void *private_data, struct door **out)
{
	struct door *door = talloc_zero(mem_ctx, struct door);
	int ret;

	if (door == NULL) {
		return ENOMEM;
	}
	door->ev = ev;
	door->fd = -1;
	door->asked_fn = asked_fn;
	door->private_data = private_data;
	door->path = talloc_strdup(door, path);
	if (door->path == NULL) {
		talloc_free(door);
		return ENOMEM;
	}
	talloc_set_destructor(door, door_destructor);
	ret = door_listen(door);
	if (ret != 0) {
		talloc_free(door);
		return ret;
	}
	door->fde = tevent_add_fd(ev, door, door->fd, TEVENT_FD_READ,
				  door_accept, door);
	if (door->fde == NULL) {
		talloc_free(door);
		return ENOMEM;
	}
	*out = door;
	return 0;
}

/* ---- who asks ----------------------------------------------------------- */

static int read_answer(TALLOC_CTX *mem_ctx, const json_t *answer,
		       enum door_outcome *outcome, const char ***lines)
{
	const char *name = json_string_value(json_object_get(answer,
							     "outcome"));
	const json_t *array = json_object_get(answer, "lines");
	const char **list = talloc_zero_array(mem_ctx, const char *,
					      json_array_size(array) + 1);
	size_t i;

	if (list == NULL) {
		return ENOMEM;
	}
	for (i = 0; i < json_array_size(array); i++) {
		const char *line = json_string_value(json_array_get(array, i));

		list[i] = talloc_strdup(list, line != NULL ? line : "");
	}
	*lines = list;
	for (i = 0; name != NULL && i <= DOOR_CHECKING; i++) {
		if (strcmp(name, outcomes[i]) == 0) {
			*outcome = (enum door_outcome)i;
			return 0;
		}
	}
	return EPROTO;
}

static int connect_door(const char *path, int *fd)
{
	struct sockaddr_un address;
	int ret;

	ret = unix_address(path, &address);
	if (ret != 0) {
		return ret;
	}
	*fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*fd == -1) {
		return errno;
	}
	ret = connect(*fd, (struct sockaddr *)&address, sizeof(address));
	if (ret == -1) {
		ret = errno;
		close(*fd);
	}
	return ret;
}

int door_ask(TALLOC_CTX *mem_ctx, const char *path, const char *what,
	     unsigned timeout_ms, enum door_outcome *outcome,
	     const char ***lines)
{
	struct tevent_context *ev = tevent_context_init(mem_ctx);
	struct channel *channel = NULL;
	struct tevent_req *req = NULL;
	json_t *answer = NULL;
	int fd = -1;
	int ret;

	if (ev == NULL) {
		return ENOMEM;
	}
	ret = connect_door(path, &fd);
	if (ret != 0) {
		talloc_free(ev);
		return ret;
	}
	channel = channel_create(ev, ev, fd, fd);
	if (channel == NULL) {
		close(fd);
		talloc_free(ev);
		return ENOMEM;
	}
	req = channel_ask_send(ev, ev, channel,
			       json_pack("{ss}", "ask", what), -1,
			       timeout_ms);
	if (req == NULL || !tevent_req_poll(req, ev)) {
		talloc_free(ev);
		return ENOMEM;
	}
	ret = channel_ask_recv(req, &answer);
	if (ret == 0) {
		ret = read_answer(mem_ctx, answer, outcome, lines);
	}
	json_decref(answer);
	talloc_free(ev);
	return ret;
}
