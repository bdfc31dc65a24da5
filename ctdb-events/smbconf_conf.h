/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Samba's configuration as smbd sees it: text with its includes, registry, or
 * both
 *
 * Reading a registry waits for ctdbd, and an include may lie anywhere: the
 * program has a deadline, these calls have none. Samba's own warnings go to
 * standard error.
 */
#ifndef PINGPONG_CTDB_EVENTS_SMBCONF_CONF_H
#define PINGPONG_CTDB_EVENTS_SMBCONF_CONF_H

#include <jansson.h>
#include <stdbool.h>
#include <talloc.h>

enum conf_source { CONF_TEXT, CONF_REGISTRY, CONF_BOTH };

struct conf {
	const char *file;		/* smb.conf */
	enum conf_source source;	/* BOTH: text, shares of the registry */
	/* Names of parameters in lower case, values as testparm -v prints them
	 * ("Yes", "No"); what is no UTF-8 has '?' in its place. */
	json_t *global;			/* {name: value}, the defaults too */
	json_t *services;		/* [{"name", "own" {name: value}}]; own:
					 * what is not as in global */
	/* [global] of smb.conf itself */
	bool includes_ours;		/* includes the file asked for */
	bool ours_comes_first;		/* nothing of a registry before it */
	bool includes_registry;		/* globals come from the registry */
};

/* smb.conf: the variable SMB_CONF_PATH, else as smbd was built */
const char *conf_file(void);

/*
 * Read it all. ours: an include file to look for. *conf: a child of mem_ctx.
 *
 * Returns false with *why, one line for a person.
 */
bool conf_load(TALLOC_CTX *mem_ctx, const char *ours, struct conf **conf,
	       const char **why);

/* A parameter of [global], "": unset */
const char *conf_global(const struct conf *conf, const char *name);
/* A parameter as it holds for a service */
const char *conf_service(const struct conf *conf, json_t *service,
			 const char *name);
bool conf_is_yes(const char *value);

#endif
