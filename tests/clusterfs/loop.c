/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "clusterfs.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>

static int epoll_fd = -1;
static int timer_fd = -1;
static bool stopped;
static LIST_HEAD(, timer) timers = LIST_HEAD_INITIALIZER(timers);
static LIST_HEAD(, source) sources = LIST_HEAD_INITIALIZER(sources);

/* removed while events for them may still be in the batch */
#define BATCH 32
static struct source *graveyard[1024];
static unsigned int num_dead;

uint64_t now_us(void)
{
	struct timespec ts = {};

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static int loop_init(void)
{
	struct epoll_event ev = { .events = EPOLLIN };
	int ret;

	if (epoll_fd != -1) {
		return 0;
	}

	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_fd == -1) {
		return errno;
	}
	timer_fd = timerfd_create(CLOCK_MONOTONIC,
				  TFD_CLOEXEC | TFD_NONBLOCK);
	if (timer_fd == -1) {
		return errno;
	}
	ret = epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &ev);
	if (ret == -1) {
		return errno;
	}
	return 0;
}

struct source *source_add(int fd, void (*ready)(struct source *source),
			  void *data)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct source *source = NULL;
	int ret;

	ret = loop_init();
	if (ret != 0) {
		errno = ret;
		return NULL;
	}
	source = calloc(1, sizeof(*source));
	if (source == NULL) {
		return NULL;
	}
	source->fd = fd;
	source->ready = ready;
	source->data = data;

	ev.data.ptr = source;
	ret = epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev);
	if (ret == -1) {
		free(source);
		return NULL;
	}
	LIST_INSERT_HEAD(&sources, source, entry);
	return source;
}

void source_remove(struct source *source)
{
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	close(source->fd);
	LIST_REMOVE(source, entry);
	source->ready = NULL;

	if (num_dead == sizeof(graveyard) / sizeof(graveyard[0])) {
		abort();
	}
	graveyard[num_dead++] = source;
}

static void bury_sources(void)
{
	while (num_dead > 0) {
		free(graveyard[--num_dead]);
	}
}

static void set_alarm(void)
{
	struct itimerspec its = {};
	struct timer *timer = LIST_FIRST(&timers);

	if (timer != NULL) {
		uint64_t when = timer->when != 0 ? timer->when : 1;

		its.it_value.tv_sec = when / 1000000;
		its.it_value.tv_nsec = (when % 1000000) * 1000;
	}
	timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &its, NULL);
}

struct timer *timer_add(uint64_t when, void (*fire)(void *data), void *data)
{
	struct timer *timer = NULL;
	struct timer *t = NULL;
	struct timer *before = NULL;
	int ret;

	ret = loop_init();
	timer = calloc(1, sizeof(*timer));
	if (ret != 0 || timer == NULL) {
		abort();
	}
	timer->when = when;
	timer->fire = fire;
	timer->data = data;

	LIST_FOREACH(t, &timers, entry) {
		if (t->when > when) {
			break;
		}
		before = t;
	}
	if (before != NULL) {
		LIST_INSERT_AFTER(before, timer, entry);
		return timer;
	}
	LIST_INSERT_HEAD(&timers, timer, entry);
	set_alarm();
	return timer;
}

void timer_remove(struct timer *timer)
{
	if (timer == NULL) {
		return;
	}
	LIST_REMOVE(timer, entry);
	free(timer);
}

static void fire_timers(void)
{
	uint64_t expirations;
	ssize_t n;

	n = read(timer_fd, &expirations, sizeof(expirations));
	if (n == -1 && errno != EAGAIN) {
		abort();
	}

	while (true) {
		struct timer *timer = LIST_FIRST(&timers);
		uint64_t now = now_us();
		void (*fire)(void *data) = NULL;
		void *data = NULL;

		if (timer == NULL || timer->when > now) {
			break;
		}
		fire = timer->fire;
		data = timer->data;
		timer_remove(timer);
		fire(data);
	}
	set_alarm();
}

int loop_run(void)
{
	int ret;

	ret = loop_init();
	if (ret != 0) {
		return ret;
	}

	while (!stopped) {
		struct epoll_event events[BATCH];
		int i;
		int num;

		num = epoll_wait(epoll_fd, events, BATCH, -1);
		if (num == -1 && errno != EINTR) {
			return errno;
		}
		for (i = 0; i < num; i++) {
			struct source *source = events[i].data.ptr;

			if (source == NULL) {
				fire_timers();
				continue;
			}
			if (source->ready != NULL) {
				source->ready(source);
			}
		}
		bury_sources();
	}
	return 0;
}

void loop_stop(void)
{
	stopped = true;
}

void loop_free(void)
{
	while (!LIST_EMPTY(&sources)) {
		source_remove(LIST_FIRST(&sources));
		bury_sources();
	}
	while (!LIST_EMPTY(&timers)) {
		timer_remove(LIST_FIRST(&timers));
	}
}
