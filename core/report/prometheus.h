/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stored verdicts as metrics, for the textfile collector of node_exporter
 *
 * pingpong_use{path,use,scope,fitness}: 1 for the fitness that it has, 0 for
 *	the two others
 * pingpong_checked_seconds{path,use}: when that was found, since 1970
 * pingpong_path_known{path}: 0: its mount is another one now, or its record
 *	cannot be read
 * pingpong_store_readable: 0: nothing is known
 */
#ifndef PINGPONG_REPORT_PROMETHEUS_H
#define PINGPONG_REPORT_PROMETHEUS_H

#include <stdio.h>

/*
 * Reads the store as store_each() does. Returns 0 or its errno, which is then
 * told as metrics, too; ENOENT (nothing stored) is 0.
 */
int prometheus_write(FILE *f, const char *statedir, const char *mountinfo);

#endif
