/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The sweep: the lock ring by one member, by two, .. by all, and back to one,
 * in one file, as people do it by hand with ping_pong
 *
 * Three checks, for locks alone, with -rw and with -rwm. They bear the names
 * of the checks of the catalogue that they stand for, so that a verdict can be
 * made of them, and are in no catalogue but this one.
 *
 * metrics: "mode"; "steps" [{"members", "rates" [turns a second of all
 * together, one each second], "rate" (without the first second),
 * "turns_each" [..], "increment"}]; "drop_each" (the rate alone divided by that
 * of each of two), "recovery" (the last rate alone divided by the first), both
 * of the best second; "remarks" [one line each]. Rates are telling, but no
 * reason against a file system.
 */
#ifndef PINGPONG_CHECKS_SWEEP_H
#define PINGPONG_CHECKS_SWEEP_H

#include "core/checks/check.h"

/* Ends with NULL */
extern const struct check *const sweep_catalogue[];

/* How many steps a sweep of so many members has */
unsigned sweep_steps(unsigned members);

#endif
