/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A configuration file that is changed as a whole
 *
 *	edit_open(...)			reads it, keeps our others out
 *	edit_replace() or edit_remove()	once; or nothing
 *	talloc_free(edit)
 *
 * The new file is written beside the old one, synced and renamed, the
 * directory synced: whoever reads it, and whenever we end, finds the old text
 * or the new one. A file that is not safely ours is refused: a symbolic link,
 * no regular file, one with a second name, with another owner than us, or
 * that others may write, or in such a directory.
 *
 * All calls return 0, or an errno with *why, one line for a person, a child of
 * mem_ctx or of the edit:
 *	EPERM: not safely ours	EINVAL: no text, or longer than EDIT_MAX
 *	EBUSY: another writer of ours, or it was changed since edit_open()
 *	else that of the system call (ENOENT: there is no such directory)
 */
#ifndef PINGPONG_CTDB_EVENTS_EDIT_H
#define PINGPONG_CTDB_EVENTS_EDIT_H

#include <stdbool.h>
#include <talloc.h>

#define EDIT_MAX (1024 * 1024)

struct edit;

int edit_open(TALLOC_CTX *mem_ctx, const char *path, struct edit **edit,
	      const char **why);

/* The file as it was opened; NULL: there is none */
const char *edit_text(const struct edit *edit);

/* Mode, group and owner stay; a new file has 0644. */
int edit_replace(struct edit *edit, const char *text, const char **why);
int edit_remove(struct edit *edit, const char **why);

/* The exit status (sysexits.h) of a program that failed with such an errno */
int edit_status(int err);

#endif
