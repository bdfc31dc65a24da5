/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "ctdb-events/mountwatch.h"

struct mountwatch {
	int mountinfo;
	int epoll;
	struct tevent_fd *fde;
	void (*changed_fn)(void *private_data);
	void *private_data;
};

static int mountwatch_destructor(struct mountwatch *watch)
{
	TALLOC_FREE(watch->fde);
	if (watch->epoll != -1) {
		close(watch->epoll);
	}
	if (watch->mountinfo != -1) {
		close(watch->mountinfo);
	}
	return 0;
}

static void changed(struct tevent_context *ev, struct tevent_fd *fde,
		    uint16_t flags, void *private_data)
{
	struct mountwatch *watch = talloc_get_type_abort(private_data,
							 struct mountwatch);
	struct epoll_event event;
	int ret;

	(void)ev;
	(void)fde;
	(void)flags;
	/* asking takes the news away */
	ret = epoll_wait(watch->epoll, &event, 1, 0);
	if (ret == 1) {
		watch->changed_fn(watch->private_data);
	}
}

/* mountinfo itself is always readable; only EPOLLPRI is news, which tevent
 * does not ask for. */
static int watch_mountinfo(struct mountwatch *watch)
{
	struct epoll_event event = { .events = EPOLLPRI };

	watch->mountinfo = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	watch->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (watch->mountinfo == -1 || watch->epoll == -1) {
		return -1;
	}
	return epoll_ctl(watch->epoll, EPOLL_CTL_ADD, watch->mountinfo,
			 &event);
}

struct mountwatch *mountwatch_create(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     void (*changed_fn)(void *private_data),
				     void *private_data)
{
	struct mountwatch *watch = talloc_zero(mem_ctx, struct mountwatch);
	int ret;

	if (watch == NULL) {
		return NULL;
	}
	watch->mountinfo = -1;
	watch->epoll = -1;
	watch->changed_fn = changed_fn;
	watch->private_data = private_data;
	talloc_set_destructor(watch, mountwatch_destructor);
	ret = watch_mountinfo(watch);
	if (ret == 0) {
		watch->fde = tevent_add_fd(ev, watch, watch->epoll,
					   TEVENT_FD_READ, changed, watch);
	}
	if (watch->fde == NULL) {
		talloc_free(watch);
		return NULL;
	}
	return watch;
}
