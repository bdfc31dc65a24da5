/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A run told to people and to machines
 *
 * The JSON object is a contract (schema 1, pingpong.json(5)); the text report
 * has the verdict in its first line, one line a check, evidence indented
 * below what did not pass.
 */
#ifndef PINGPONG_REPORT_REPORT_H
#define PINGPONG_REPORT_REPORT_H

#include <stdio.h>
#include <time.h>

#include "core/verdict/verdict.h"

struct report {
	const char **places;	/* as given, NULL-terminated */
	time_t started;
	double duration_s;
	unsigned uses;		/* bits asked for */
	uint64_t seed;
	const struct verdict_input *input;
	const struct verdict *verdict;
	int exit;
};

/* A new reference; NULL for want of memory. */
json_t *report_json(const struct report *report);

/* color: with terminal colours. Returns 0 or the errno of the output. */
int report_text(const struct report *report, FILE *out, bool color);

#endif
