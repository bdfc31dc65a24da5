/* SPDX-License-Identifier: GPL-3.0-or-later */

#include "faults.h"

#define MAX_KEPT (64 << 20)	/* bytes kept of one change */

struct old_data {
	LIST_ENTRY(old_data) entry;
	uint64_t until;		/* 0: for ever */
	off_t offset;
	size_t size;
	char *bytes;
};

struct old_name {
	LIST_ENTRY(old_name) entry;
	uint64_t until;
	char *name;
	struct file *file;	/* NULL: there was none */
};

struct view {
	LIST_HEAD(, old_data) data;
	LIST_HEAD(, old_name) names;
	bool has_size;
	off_t size;
	uint64_t size_until;
	bool until_reopen;
};

static bool over(uint64_t until)
{
	return until != 0 && until <= now_us();
}

static void old_data_free(struct old_data *old)
{
	LIST_REMOVE(old, entry);
	free(old->bytes);
	free(old);
}

static void old_name_free(struct old_name *old)
{
	LIST_REMOVE(old, entry);
	if (old->file != NULL) {
		file_unref(old->file);
	}
	free(old->name);
	free(old);
}

static void forget_data(struct view *view)
{
	struct old_data *old = NULL;

	while ((old = LIST_FIRST(&view->data)) != NULL) {
		old_data_free(old);
	}
	view->has_size = false;
}

void view_free(struct inode *inode)
{
	struct view *view = inode->view;
	struct old_name *old = NULL;

	if (view == NULL) {
		return;
	}
	forget_data(view);
	while ((old = LIST_FIRST(&view->names)) != NULL) {
		old_name_free(old);
	}
	free(view);
	inode->view = NULL;
}

void views_free_all(void)
{
	struct member *member = NULL;
	struct inode *inode = NULL;

	LIST_FOREACH(member, &members, entry) {
		LIST_FOREACH(inode, &member->inodes, in_member) {
			view_free(inode);
		}
	}
}

static struct view *view_get(struct inode *inode)
{
	if (inode->view == NULL) {
		inode->view = calloc(1, sizeof(*inode->view));
	}
	if (inode->view == NULL) {
		abort();
	}
	return inode->view;
}

static void forget_expired(struct view *view)
{
	struct old_data *old = LIST_FIRST(&view->data);

	while (old != NULL) {
		struct old_data *next = LIST_NEXT(old, entry);
		bool gone = over(old->until);

		if (gone) {
			old_data_free(old);
		}
		old = next;
	}
	if (view->has_size) {
		view->has_size = !over(view->size_until);
	}
}

static void keep_data(struct view *view, struct file *file, off_t offset,
		      size_t size, uint64_t until)
{
	struct old_data *old = NULL;
	ssize_t n;
	int ret;

	/* what is stale already stays as it is */
	LIST_FOREACH(old, &view->data, entry) {
		off_t old_end = old->offset + old->size;
		off_t end = offset + size;

		if (old_end <= offset || end <= old->offset) {
			continue;
		}
		if (offset < old->offset) {
			keep_data(view, file, offset, old->offset - offset,
				  until);
		}
		if (end > old_end) {
			keep_data(view, file, old_end, end - old_end, until);
		}
		return;
	}

	ret = file_open_io(file);
	if (ret != 0 || size == 0 || size > MAX_KEPT) {
		return;
	}
	old = calloc(1, sizeof(*old));
	if (old == NULL) {
		return;
	}
	old->bytes = malloc(size);
	if (old->bytes == NULL) {
		free(old);
		return;
	}
	n = pread(file->io_fd, old->bytes, size, offset);
	if (n <= 0) {
		free(old->bytes);
		free(old);
		return;
	}
	old->offset = offset;
	old->size = n;
	old->until = until;
	LIST_INSERT_HEAD(&view->data, old, entry);
}

/* One's own write is always seen. */
static void forget_range(struct view *view, off_t offset, size_t size)
{
	struct old_data *old = NULL;
	struct old_data *next = NULL;
	off_t end = offset + size;

	for (old = LIST_FIRST(&view->data); old != NULL; old = next) {
		off_t old_end = old->offset + old->size;
		struct old_data *right = NULL;

		next = LIST_NEXT(old, entry);
		if (old_end <= offset || end <= old->offset) {
			continue;
		}
		if (old_end > end) {
			right = calloc(1, sizeof(*right));
			if (right == NULL) {
				abort();
			}
			right->until = old->until;
			right->offset = end;
			right->size = old_end - end;
			right->bytes = malloc(right->size);
			if (right->bytes == NULL) {
				abort();
			}
			memcpy(right->bytes,
			       old->bytes + (end - old->offset), right->size);
			LIST_INSERT_HEAD(&view->data, right, entry);
		}
		if (old->offset < offset) {
			old->size = offset - old->offset;
		} else {
			old_data_free(old);
		}
	}
}

static uint64_t until(uint64_t us)
{
	return us == 0 ? 0 : now_us() + us;
}

static void keep_view(struct inode *viewer, off_t offset, size_t size,
		      off_t new_size)
{
	struct event ev = {
		.member = viewer->member,
		.inode = viewer,
		.last = INT64_MAX,
	};
	struct stat st = {};
	int ret;

	if (viewer->view != NULL) {
		forget_expired(viewer->view);
	}
	faults_run(AT_SEE_DATA, &ev);
	if (ev.stale) {
		struct view *view = view_get(viewer);

		view->until_reopen = ev.until_reopen;
		keep_data(view, viewer->file, offset, size,
			  until(ev.stale_us));
	}

	ret = fstat(viewer->file->fd, &st);
	if (ret == -1 || st.st_size == new_size) {
		return;
	}
	ev.stale = false;
	ev.stale_us = 0;
	faults_run(AT_SEE_SIZE, &ev);
	if (ev.stale) {
		struct view *view = view_get(viewer);

		view->until_reopen = ev.until_reopen;
		if (!view->has_size) {
			view->has_size = true;
			view->size = st.st_size;
			view->size_until = until(ev.stale_us);
		}
	}
}

void views_before_write(struct inode *inode, off_t offset, size_t size,
			off_t new_size)
{
	struct inode *viewer = NULL;
	struct view *own = inode->view;

	if (own != NULL) {
		forget_expired(own);
		forget_range(own, offset, size);
		if (own->has_size && new_size > own->size) {
			own->size = offset + size;
		}
	}
	LIST_FOREACH(viewer, &inode->file->inodes, in_file) {
		/* a cache knows what it has had open */
		if (viewer != inode && viewer->times_opened > 0) {
			keep_view(viewer, offset, size, new_size);
		}
	}
}

static struct old_name *find_name(struct inode *dir, const char *name)
{
	struct old_name *old = NULL;
	struct old_name *next = NULL;

	if (dir->view == NULL) {
		return NULL;
	}
	for (old = LIST_FIRST(&dir->view->names); old != NULL; old = next) {
		bool gone = over(old->until);
		int cmp = strcmp(old->name, name);

		next = LIST_NEXT(old, entry);
		if (gone) {
			old_name_free(old);
		} else if (cmp == 0) {
			return old;
		}
	}
	return NULL;
}

static void keep_name(struct inode *viewer, const char *name)
{
	struct event ev = {
		.member = viewer->member,
		.inode = viewer,
		.last = INT64_MAX,
	};
	struct old_name *old = NULL;

	faults_run(AT_SEE_NAME, &ev);
	if (!ev.stale) {
		return;
	}
	old = find_name(viewer, name);
	if (old != NULL) {
		return;
	}
	old = calloc(1, sizeof(*old));
	if (old == NULL) {
		abort();
	}
	old->name = strdup(name);
	old->file = file_lookup(viewer->file, name);
	old->until = until(ev.stale_us);
	LIST_INSERT_HEAD(&view_get(viewer)->names, old, entry);
}

void views_before_name(struct inode *dir, const char *name)
{
	struct inode *viewer = NULL;
	struct old_name *own = NULL;

	own = find_name(dir, name);
	if (own != NULL) {
		old_name_free(own);
	}
	LIST_FOREACH(viewer, &dir->file->inodes, in_file) {
		if (viewer != dir) {
			keep_name(viewer, name);
		}
	}
}

bool view_name(struct inode *dir, const char *name, struct file **file)
{
	struct old_name *old = NULL;

	old = find_name(dir, name);
	if (old == NULL) {
		return false;
	}
	*file = old->file;
	return true;
}

void view_names(struct inode *dir,
		void (*each)(const char *name, struct file *file, void *data),
		void *data)
{
	struct old_name *old = NULL;

	if (dir->view == NULL) {
		return;
	}
	LIST_FOREACH(old, &dir->view->names, entry) {
		bool gone = over(old->until);

		if (!gone) {
			each(old->name, old->file, data);
		}
	}
}

static void overlay(const struct old_data *old, char *buf, off_t from,
		    off_t to, off_t buf_offset)
{
	if (from < old->offset) {
		from = old->offset;
	}
	if (to > (off_t)(old->offset + old->size)) {
		to = old->offset + old->size;
	}
	if (from < to) {
		memcpy(buf + (from - buf_offset),
		       old->bytes + (from - old->offset), to - from);
	}
}

ssize_t view_read(struct inode *inode, char *buf, size_t size, off_t offset,
		  ssize_t num_read)
{
	struct view *view = inode->view;
	struct event ev = {
		.member = inode->member,
		.inode = inode,
		.op = OP_READ,
		.pid = current.pid,
		.first = offset,
		.last = offset + size - 1,
		.size = size,
	};
	struct old_data *old = NULL;
	off_t end;

	if (view == NULL) {
		return num_read;
	}
	forget_expired(view);
	end = offset + num_read;
	if (view->has_size) {
		end = view->size;
		if (end > (off_t)(offset + size)) {
			end = offset + size;
		}
		if (end < offset) {
			end = offset;
		}
		if (end > offset + num_read) {
			memset(buf + num_read, 0, end - offset - num_read);
		}
	}
	faults_run(AT_READ, &ev);
	if (ev.stale) {
		off_t from = offset;
		off_t to = end;

		if (from < ev.stale_from) {
			from = ev.stale_from;
		}
		if (to - 1 > ev.stale_to) {
			to = ev.stale_to + 1;
		}
		LIST_FOREACH(old, &view->data, entry) {
			overlay(old, buf, from, to, offset);
		}
	}
	return end - offset;
}

void view_attr(struct inode *inode, struct stat *st)
{
	struct view *view = inode->view;

	if (view == NULL) {
		return;
	}
	forget_expired(view);
	if (view->has_size) {
		st->st_size = view->size;
	}
}

void view_opened(struct inode *inode)
{
	struct view *view = inode->view;

	if (view != NULL && view->until_reopen) {
		forget_data(view);
	}
}
