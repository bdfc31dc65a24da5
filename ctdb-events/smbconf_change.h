/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Setting parameters of [global], and taking back what was set
 *
 * Where: in our include file when smb.conf includes it, in the registry when
 * the globals come from there. In the registry, which all nodes share, what is
 * set is noted beside it, in "pingpong:set NAME": what was there before, and
 * which nodes want it; the last one to take it back restores that.
 */
#ifndef PINGPONG_CTDB_EVENTS_SMBCONF_CHANGE_H
#define PINGPONG_CTDB_EVENTS_SMBCONF_CHANGE_H

#include <jansson.h>
#include <stdbool.h>
#include <talloc.h>

struct conf;

struct change {
	const char *include;	/* our include file */
	const char *by;		/* who wants it: "agent", "apply" */
	json_t *set;		/* {NAME: {"value", "staged"}}; NULL: reset */
	json_t *reset;		/* [NAME]; NULL: all that is by who */
	bool include_only;	/* reset: do not look at the registry */
	bool dry_run;
};

/*
 * All of it or nothing. *result, to be freed by json_decref(): {"where":
 * "registry" or the include file, "before", "after": its text (of the
 * registry: of these parameters only), null: none}, of which before and after
 * are the same when there was nothing to do.
 *
 * Returns EX_OK, or the exit status (sysexits.h) with *why.
 */
int change_make(TALLOC_CTX *mem_ctx, const struct change *change,
		json_t **result, const char **why);

/* What is set by us, as in confblock.h; in the registry also "was", "nodes",
 * and "here": this node is one of them. *entries to be freed by json_decref().
 * Returns as change_make(). */
int change_list(TALLOC_CTX *mem_ctx, const struct conf *conf,
		const char *include, json_t **entries, const char **why);

#endif
