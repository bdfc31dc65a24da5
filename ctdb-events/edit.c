/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "ctdb-events/edit.h"

#define LOCK_TRIES 300
#define LOCK_PAUSE_US 10000

struct edit {
	const char *path;
	const char *name;	/* its last part */
	const char *new_name;	/* what it is written as */
	int dir;		/* locked */
	struct stat st;		/* of the file, if there is one */
	char *text;		/* NULL: there is none */
};

static int edit_destructor(struct edit *edit)
{
	if (edit->dir != -1) {
		close(edit->dir);
	}
	return 0;
}

static int failed(struct edit *edit, int err, const char *what,
		  const char **why)
{
	*why = talloc_asprintf(talloc_parent(edit), "'%s': %s%s%s",
			       edit->path, what, what[0] != '\0' ? ": " : "",
			       strerror(err));
	return err;
}

static int refused(struct edit *edit, int err, const char *what,
		   const char **why)
{
	*why = talloc_asprintf(talloc_parent(edit), "'%s' is not changed: %s",
			       edit->path, what);
	return err;
}

/* ---- opening ------------------------------------------------------------ */

static bool is_ours(const struct stat *st)
{
	return st->st_uid == geteuid() && (st->st_mode & 022) == 0;
}

static int open_dir(struct edit *edit, const char **why)
{
	const char *slash = strrchr(edit->path, '/');
	struct stat st = {};
	char *dir = NULL;
	int ret;

	if (slash == NULL || slash == edit->path || slash[1] == '\0') {
		return refused(edit, EINVAL, "expected an absolute path of a "
			       "file in a directory", why);
	}
	edit->name = slash + 1;
	edit->new_name = talloc_asprintf(edit, "%s.pingpong-new", edit->name);
	dir = talloc_strndup(edit, edit->path, (size_t)(slash - edit->path));
	if (dir == NULL || edit->new_name == NULL) {
		return failed(edit, ENOMEM, "", why);
	}
	edit->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (edit->dir == -1) {
		return failed(edit, errno, "its directory", why);
	}
	ret = fstat(edit->dir, &st);
	if (ret != 0) {
		return failed(edit, errno, "its directory", why);
	}
	if (!is_ours(&st)) {
		return refused(edit, EPERM, "its directory belongs to another "
			       "user, or others may write there", why);
	}
	return 0;
}

static int lock_dir(struct edit *edit, const char **why)
{
	unsigned tries;
	int ret;

	for (tries = 0; tries < LOCK_TRIES; tries++) {
		ret = flock(edit->dir, LOCK_EX | LOCK_NB);
		if (ret == 0) {
			return 0;
		}
		if (errno != EWOULDBLOCK && errno != EINTR) {
			return failed(edit, errno, "its directory", why);
		}
		usleep(LOCK_PAUSE_US);
	}
	return refused(edit, EBUSY, "another process of pingpong's is at it",
		       why);
}

static int read_text(struct edit *edit, int fd, const char **why)
{
	size_t len = 0;
	ssize_t n = 1;

	if (edit->st.st_size > EDIT_MAX) {
		return refused(edit, EINVAL, "it is longer than 1 MiB", why);
	}
	edit->text = talloc_zero_array(edit, char, edit->st.st_size + 1);
	if (edit->text == NULL) {
		return failed(edit, ENOMEM, "", why);
	}
	while (len < (size_t)edit->st.st_size && n > 0) {
		n = read(fd, edit->text + len, edit->st.st_size - len);
		if (n == -1) {
			return failed(edit, errno, "", why);
		}
		len += (size_t)n;
	}
	if (strlen(edit->text) != (size_t)edit->st.st_size) {
		return refused(edit, EINVAL, "it is no text", why);
	}
	return 0;
}

static int open_file(struct edit *edit, const char **why)
{
	int fd, ret;

	/* O_NONBLOCK: a FIFO must not hold us up */
	fd = openat(edit->dir, edit->name,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd == -1 && errno == ENOENT) {
		return 0;
	}
	if (fd == -1 && errno == ELOOP) {
		return refused(edit, EPERM, "it is a symbolic link", why);
	}
	if (fd == -1) {
		return failed(edit, errno, "", why);
	}
	ret = fstat(fd, &edit->st);
	if (ret != 0) {
		ret = failed(edit, errno, "", why);
	} else if (!S_ISREG(edit->st.st_mode) || edit->st.st_nlink != 1) {
		ret = refused(edit, EPERM, "it is no regular file, or has "
			      "another name, too", why);
	} else if (!is_ours(&edit->st)) {
		ret = refused(edit, EPERM, "it belongs to another user, or "
			      "others may write it", why);
	} else {
		ret = read_text(edit, fd, why);
	}
	close(fd);
	return ret;
}

int edit_open(TALLOC_CTX *mem_ctx, const char *path, struct edit **out,
	      const char **why)
{
	struct edit *edit = talloc_zero(mem_ctx, struct edit);
	int ret;

	*why = "no memory";
	if (edit == NULL) {
		return ENOMEM;
	}
	edit->dir = -1;
	talloc_set_destructor(edit, edit_destructor);
	edit->path = talloc_strdup(edit, path);
	if (edit->path == NULL) {
		talloc_free(edit);
		return ENOMEM;
	}
	ret = open_dir(edit, why);
	if (ret == 0) {
		ret = lock_dir(edit, why);
	}
	if (ret == 0) {
		ret = open_file(edit, why);
	}
	if (ret != 0) {
		talloc_free(edit);
		return ret;
	}
	*out = edit;
	return 0;
}

const char *edit_text(const struct edit *edit)
{
	return edit->text;
}

/* ---- changing ----------------------------------------------------------- */

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Nobody else has changed it since we read it. */
static int check_unchanged(struct edit *edit, const char **why)
{
	struct stat st = {};
	bool same;
	int ret;

	ret = fstatat(edit->dir, edit->name, &st, AT_SYMLINK_NOFOLLOW);
	if (ret != 0 && errno != ENOENT) {
		return failed(edit, errno, "", why);
	}
	if (ret != 0 || edit->text == NULL) {
		same = ret != 0 && edit->text == NULL;
	} else {
		same = st.st_ino == edit->st.st_ino &&
		       st.st_size == edit->st.st_size &&
		       same_time(&st.st_ctim, &edit->st.st_ctim);
	}
	if (!same) {
		return refused(edit, EBUSY, "somebody else has changed it just "
			       "now", why);
	}
	return 0;
}

static int write_text(int fd, const char *text)
{
	size_t len = strlen(text);
	ssize_t n;

	while (len > 0) {
		n = write(fd, text, len);
		if (n == -1 && errno == EINTR) {
			continue;
		}
		if (n == -1) {
			return errno;
		}
		text += n;
		len -= (size_t)n;
	}
	return 0;
}

static int fill_new(struct edit *edit, int fd, const char *text)
{
	int ret;

	if (edit->text != NULL) {
		ret = fchown(fd, edit->st.st_uid, edit->st.st_gid);
		if (ret != 0) {
			return errno;
		}
	}
	ret = fchmod(fd, edit->text != NULL ? edit->st.st_mode & 07777 : 0644);
	if (ret != 0) {
		return errno;
	}
	ret = write_text(fd, text);
	if (ret != 0) {
		return ret;
	}
	ret = fsync(fd);
	return ret != 0 ? errno : 0;
}

static int write_new(struct edit *edit, const char *text)
{
	int fd, ret, err;

	/* one that was killed has left it */
	ret = unlinkat(edit->dir, edit->new_name, 0);
	if (ret != 0 && errno != ENOENT) {
		return errno;
	}
	fd = openat(edit->dir, edit->new_name,
		    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1) {
		return errno;
	}
	err = fill_new(edit, fd, text);
	ret = close(fd);
	if (err == 0 && ret != 0) {
		err = errno;
	}
	return err;
}

int edit_replace(struct edit *edit, const char *text, const char **why)
{
	int ret;

	ret = write_new(edit, text);
	if (ret != 0) {
		unlinkat(edit->dir, edit->new_name, 0);
		return failed(edit, ret, "writing it anew", why);
	}
	ret = check_unchanged(edit, why);
	if (ret != 0) {
		unlinkat(edit->dir, edit->new_name, 0);
		return ret;
	}
	ret = renameat(edit->dir, edit->new_name, edit->dir, edit->name);
	if (ret != 0) {
		ret = failed(edit, errno, "writing it anew", why);
		unlinkat(edit->dir, edit->new_name, 0);
		return ret;
	}
	ret = fsync(edit->dir);
	return ret != 0 ? failed(edit, errno, "its directory", why) : 0;
}

int edit_remove(struct edit *edit, const char **why)
{
	int ret;

	ret = check_unchanged(edit, why);
	if (ret != 0) {
		return ret;
	}
	ret = unlinkat(edit->dir, edit->name, 0);
	if (ret != 0 && errno != ENOENT) {
		return failed(edit, errno, "", why);
	}
	ret = fsync(edit->dir);
	return ret != 0 ? failed(edit, errno, "its directory", why) : 0;
}

int edit_status(int err)
{
	switch (err) {
	case EPERM:
	case EACCES:
		return EX_NOPERM;
	case EINVAL:
		return EX_CONFIG;
	case EBUSY:
		return EX_TEMPFAIL;
	case ENOMEM:
		return EX_SOFTWARE;
	default:
		return EX_CANTCREAT;
	}
}
