/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Baselines: rates and times of earlier runs of the same places
 *
 * DIR/NAME.json holds the samples of the last runs that were saved under the
 * name: turns a second of the contended checks' slices, hand-over times. No
 * bands are invented: what is called slower has every sample beyond all those
 * of the saved runs, of which there must be two at least, since one does not
 * know how much they differ.
 */
#ifndef PINGPONG_REPORT_BASELINE_H
#define PINGPONG_REPORT_BASELINE_H

#include "core/report/report.h"

#define BASELINE_RUNS_LEAST 2
#define BASELINE_RUNS_MOST 10

struct baseline_result {
	const char *name;
	unsigned runs;		/* that it holds */
	const char **slower;	/* one line each; NULL: none */
};

/*
 * Read one. Returns 0 with *baseline, a new reference; ENOENT: there is none;
 * EINVAL: it is none; or the errno of the read.
 */
int baseline_load(const char *dir, const char *name, json_t **baseline);

/*
 * Add a run; an older one of other places is replaced. dir is made if need be
 * (0700), as is its parent. Returns 0, ENOMEM, or the errno of the write: the
 * old file is then intact.
 */
int baseline_save(const char *dir, const char *name,
		  const struct report *report);

/* Returns 0 with *result, a child of mem_ctx; EXDEV: it is of other places; or
 * ENOMEM. */
int baseline_compare(TALLOC_CTX *mem_ctx, const json_t *baseline,
		     const char *name, const struct report *report,
		     struct baseline_result **result);

#endif
