/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What pingpong has set in the include file: a block of lines between two
 * marks. All other lines are somebody else's and stay as they are.
 *
 * Entries are {NAME: {"value": VALUE, "by": WHO, "staged": BOOL}}. A staged one
 * is a comment to Samba: it is to be set when ctdbd starts the next time.
 */
#ifndef PINGPONG_CTDB_EVENTS_CONFBLOCK_H
#define PINGPONG_CTDB_EVENTS_CONFBLOCK_H

#include <jansson.h>
#include <stdbool.h>
#include <talloc.h>

/*
 * text: the file; NULL: there is none. Returns false when the marks are not
 * as they should be, or for want of memory; else *entries (to be freed by
 * json_decref()) and *rest, the other lines, a child of mem_ctx.
 */
bool confblock_parse(TALLOC_CTX *mem_ctx, const char *text, json_t **entries,
		 char **rest);

/*
 * The file with these entries: the block first, so that it comes before a
 * registry that the rest includes. A child of mem_ctx; NULL: no memory.
 */
char *confblock_print(TALLOC_CTX *mem_ctx, json_t *entries, const char *rest);

#endif
