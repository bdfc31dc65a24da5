/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What libsmbconf and libsamba-util export and no installed header declares
 */
#ifndef PINGPONG_CTDB_EVENTS_SMBCONF_SAMBA_H
#define PINGPONG_CTDB_EVENTS_SMBCONF_SAMBA_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <talloc.h>

#include <smbconf.h>

/* A frame for what Samba allocates by the way: free it last. */
TALLOC_CTX *_talloc_stackframe(const char *location);

/* Read a smb.conf as smbd does, with all shares; false: malformed. */
bool lp_load_with_registry_shares(const char *file);

/* What testparm prints: [global] (with the defaults: testparm -v), then of
 * each service what is not as there. */
void lp_dump(FILE *f, bool defaults, int num_services);
int lp_numservices(void);

/* source: "registry:" or "file:PATH" */
sbcErr smbconf_init(TALLOC_CTX *mem_ctx, struct smbconf_ctx **ctx,
		    const char *source);

#endif
