/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What came of a check, in lines for a log: what is wrong, with whom, why,
 * and what to do
 */
#ifndef PINGPONG_CTDB_EVENTS_WORDS_H
#define PINGPONG_CTDB_EVENTS_WORDS_H

#include "ctdb-events/across.h"

/*
 * Returns true when this node has to refuse. *lines, NULL-terminated and a
 * child of mem_ctx: the verdict first; NULL for want of memory.
 */
bool words_of_check(TALLOC_CTX *mem_ctx, const struct across *across,
		    const struct across_result *result, const char ***lines);

#endif
