/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The time scale of what one member sees of what another did
 *
 * Under a lock it must be current at once. Without one it may take 1 s; later
 * is slow; and what is not seen although the attribute cache's time is over
 * is wrong.
 */
#ifndef PINGPONG_CHECKS_SIGHT_H
#define PINGPONG_CHECKS_SIGHT_H

#include "core/checks/check.h"

/*
 * How long the file system may go by what it has cached, in ms: from the
 * mount options of NFS and SMB (actimeo, acregmax, acdirmax, noac), else 5 s.
 */
unsigned sight_cache_ms(const char *fstype, const char *options);

/*
 * What it is that a change was not seen for age_ms, and then was (`at_last`)
 * or was not asked for any more: PASS, SLOW or FAIL.
 */
enum outcome sight_outcome(bool locked, bool at_last, uint64_t age_ms,
			   unsigned cache_ms);

#endif
