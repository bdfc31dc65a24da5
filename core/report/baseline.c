/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/report/baseline.h"

/* Fewer of a run say nothing */
#define SAMPLES_LEAST 3

/* Of which check which list of numbers, and what it is to a person */
static const struct {
	const char *check;
	const char *metric;
	const char *unit;
	bool more_is_better;
} told[] = {
	{ "lock.ring", "slices_per_s", "turns/s", true },
	{ "io.increment", "slices_per_s", "turns/s", true },
	{ "mmap.increment", "slices_per_s", "turns/s", true },
	{ "lock.handoff", "handover_ms", "ms", false },
};

#define NUM_TOLD (sizeof(told) / sizeof(told[0]))

static char *file_name(TALLOC_CTX *mem_ctx, const char *dir, const char *name)
{
	return talloc_asprintf(mem_ctx, "%s/%s.json", dir, name);
}

static char *target(TALLOC_CTX *mem_ctx, const struct report *report)
{
	return names_join(mem_ctx, report->places);
}

int baseline_load(const char *dir, const char *name, json_t **baseline)
{
	char *path = file_name(NULL, dir, name);
	FILE *f = path != NULL ? fopen(path, "re") : NULL;
	int ret = path == NULL ? ENOMEM : errno;

	talloc_free(path);
	*baseline = NULL;
	if (f == NULL) {
		return ret;
	}
	*baseline = json_loadf(f, 0, NULL);
	fclose(f);
	if (!json_is_string(json_object_get(*baseline, "target")) ||
	    !json_is_array(json_object_get(*baseline, "runs"))) {
		json_decref(*baseline);
		*baseline = NULL;
		return EINVAL;
	}
	return 0;
}

/* ---- saving -------------------------------------------------------------- */

/* The samples of a run, by the names of their checks */
static json_t *samples_of(const struct report *report)
{
	json_t *samples = json_object();
	size_t i;

	for (i = 0; i < NUM_TOLD; i++) {
		const struct check_result *r = verdict_result(report->input,
							      told[i].check);
		json_t *list = r != NULL && r->outcome == OUTCOME_PASS
			? json_object_get(r->metrics, told[i].metric) : NULL;

		if (json_array_size(list) >= SAMPLES_LEAST) {
			json_object_set(samples, told[i].check, list);
		}
	}
	return samples;
}

static int make_dirs(const char *dir)
{
	char *copy = talloc_strdup(NULL, dir);
	int ret;

	if (copy == NULL) {
		return ENOMEM;
	}
	mkdir(dirname(copy), 0700);
	talloc_free(copy);
	ret = mkdir(dir, 0700);
	return ret == 0 || errno == EEXIST ? 0 : errno;
}

static int replace(const char *path, const json_t *json)
{
	char *temp = talloc_asprintf(NULL, "%s.XXXXXX", path);
	int fd = temp != NULL ? mkostemp(temp, O_CLOEXEC) : -1;
	int ret, err = temp == NULL ? ENOMEM : errno;

	if (fd != -1) {
		ret = json_dumpfd(json, fd, JSON_INDENT(1));
		err = ret == 0 && fsync(fd) == 0 ? 0 : EIO;
		close(fd);
		if (err == 0) {
			ret = rename(temp, path);
			err = ret == 0 ? 0 : errno;
		}
		if (err != 0) {
			unlink(temp);
		}
	}
	talloc_free(temp);
	return err;
}

int baseline_save(const char *dir, const char *name,
		  const struct report *report)
{
	TALLOC_CTX *frame = talloc_new(NULL);
	char *places = target(frame, report);
	char *path = file_name(frame, dir, name);
	json_t *baseline = NULL, *runs = NULL;
	const char *of = NULL;
	int ret;

	ret = places != NULL && path != NULL ? make_dirs(dir) : ENOMEM;
	if (ret != 0) {
		talloc_free(frame);
		return ret;
	}
	baseline_load(dir, name, &baseline);
	of = json_string_value(json_object_get(baseline, "target"));
	if (of == NULL || strcmp(of, places) != 0) {
		json_decref(baseline);
		baseline = json_pack("{si ss s[]}", "schema", 1, "target",
				     places, "runs");
	}
	runs = json_object_get(baseline, "runs");
	if (json_array_size(runs) == BASELINE_RUNS_MOST) {
		json_array_remove(runs, 0);
	}
	json_array_append_new(runs, samples_of(report));
	ret = baseline != NULL ? replace(path, baseline) : EILSEQ;
	json_decref(baseline);
	talloc_free(frame);
	return ret;
}

/* ---- comparing ----------------------------------------------------------- */

struct range {
	double least, most;
	size_t num;
};

static void widen(struct range *range, const json_t *list)
{
	const json_t *value = NULL;
	size_t i;

	json_array_foreach(list, i, value) {
		double v = json_number_value(value);

		range->least = range->num > 0 ? fmin(range->least, v) : v;
		range->most = fmax(range->most, v);
		range->num++;
	}
}

/* A line, or NULL: not slower, or nothing is known */
static char *compare(TALLOC_CTX *mem_ctx, size_t which, const json_t *runs,
		     const json_t *now)
{
	const char *check = told[which].check;
	struct range before = {}, after = {};
	const json_t *run = NULL;
	bool slower;
	size_t i;

	json_array_foreach(runs, i, run) {
		widen(&before, json_object_get(run, check));
	}
	widen(&after, json_object_get(now, check));
	if (before.num < BASELINE_RUNS_LEAST * SAMPLES_LEAST ||
	    after.num == 0) {
		return NULL;
	}
	slower = told[which].more_is_better ? after.most < before.least
					    : after.least > before.most;
	if (!slower) {
		return NULL;
	}
	return talloc_asprintf(mem_ctx, "%s: %.4g to %.4g %s, before %.4g to "
			       "%.4g", check, after.least, after.most,
			       told[which].unit, before.least, before.most);
}

int baseline_compare(TALLOC_CTX *mem_ctx, const json_t *baseline,
		     const char *name, const struct report *report,
		     struct baseline_result **result)
{
	const json_t *runs = json_object_get(baseline, "runs");
	struct baseline_result *res = talloc_zero(mem_ctx,
						  struct baseline_result);
	char *places = target(res, report);
	json_t *now = NULL;
	bool ok = true;
	size_t i;

	if (places == NULL) {
		return ENOMEM;
	}
	if (strcmp(places, json_string_value(
			json_object_get(baseline, "target"))) != 0) {
		return EXDEV;
	}
	res->name = talloc_strdup(res, name);
	res->runs = (unsigned)json_array_size(runs);
	now = samples_of(report);
	for (i = 0; ok && i < NUM_TOLD; i++) {
		char *line = compare(res, i, runs, now);

		ok = line == NULL || names_add(res, &res->slower, line);
	}
	json_decref(now);
	*result = res;
	return ok ? 0 : ENOMEM;
}
