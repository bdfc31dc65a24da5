/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One value of ctdb.conf, every other byte as it was
 */
#ifndef PINGPONG_CTDB_EVENTS_CTDBEDIT_H
#define PINGPONG_CTDB_EVENTS_CTDBEDIT_H

#include <talloc.h>

/*
 * The text with KEY = VALUE in [SECTION]: in the place of the values that it
 * has there, else right below the section's first line, else in a section at
 * the end. text: NULL: there is no file.
 *
 * Returns 0 with *out, a child of mem_ctx, the same text when that is how it
 * is; EINVAL: the value, its section or the end is on a line that is continued;
 * ENOMEM.
 */
int ctdbedit_set(TALLOC_CTX *mem_ctx, const char *text, const char *section,
		 const char *key, const char *value, char **out);

#endif
