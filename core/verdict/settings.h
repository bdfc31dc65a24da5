/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Settings that mend what was found, and advice
 *
 * A rule names the use that it mends, when it applies, and one parameter. A
 * mount option is named only where what was seen is what it does; it mends
 * nothing before it has been tested again.
 */
#ifndef PINGPONG_VERDICT_SETTINGS_H
#define PINGPONG_VERDICT_SETTINGS_H

#include "core/verdict/verdict.h"

/*
 * Fill in verdict->settings and the uses' mended_by, from uses that have been
 * judged. Returns 0 or ENOMEM.
 */
int settings_compute(const struct verdict_input *input,
		     struct verdict *verdict);

#endif
