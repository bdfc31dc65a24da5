/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A run told to people and to machines
 *
 * The JSON object is a contract (schema 1, pingpong.json(5)); the text report
 * has the verdict in its first line, one line a check, evidence indented
 * below what did not pass; the page has the same, and pictures of the metrics
 * of struct check_result that it knows.
 */
#ifndef PINGPONG_REPORT_REPORT_H
#define PINGPONG_REPORT_REPORT_H

#include <stdio.h>
#include <time.h>

#include "core/verdict/verdict.h"

struct baseline_result;

struct report {
	const char **places;	/* as given, NULL-terminated */
	time_t started;
	double duration_s;
	unsigned uses;		/* bits asked for */
	uint64_t seed;
	const struct verdict_input *input;
	const struct verdict *verdict;
	const struct baseline_result *compared;	/* or NULL */
	int exit;
};

/* Is the verdict on a use told? A sweep has none on most of them. */
bool report_tells(const struct report *report, enum use use);

/* Does the setting mend a use that was asked for? Else it is needed by others
 * only, or may be a cause. */
bool report_mends(const struct report *report, const struct setting *setting);

/* Names of the uses that decide the exit status, "a, b"; a child of mem_ctx */
char *report_deciding(TALLOC_CTX *mem_ctx, const struct report *report);

/* A new reference; NULL for want of memory. */
json_t *report_json(const struct report *report);

/* color: with terminal colours. Returns 0 or the errno of the output. */
int report_text(const struct report *report, FILE *out, bool color);

/*
 * One page that needs nothing from elsewhere. Returns 0, ENOMEM, or the errno
 * of the output.
 */
int report_html(const struct report *report, FILE *out);

#endif
