/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "core/report/report.h"

static bool in_catalogue(const struct verdict_input *input, const char *name)
{
	const struct check *const *check = input->catalogue;

	for (; *check != NULL; check++) {
		if (strcmp((*check)->name, name) == 0) {
			return true;
		}
	}
	return false;
}

bool report_tells(const struct report *report, enum use use)
{
	const char *const *name = use_needs(use);

	if (report->input->catalogue == NULL) {
		return true;
	}
	for (; *name != NULL; name++) {
		if (in_catalogue(report->input, *name)) {
			return true;
		}
	}
	return false;
}

bool report_mends(const struct report *report, const struct setting *setting)
{
	unsigned uses = setting->uses & report->uses;
	const char *const *name = NULL;
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		if ((uses & USE_BIT(i)) == 0) {
			continue;
		}
		name = report->verdict->uses[i].mended_by;
		for (; *name != NULL; name++) {
			if (strcmp(*name, setting->parameter) == 0) {
				return true;
			}
		}
	}
	return false;
}

static bool decides(const struct use_verdict *v, int status)
{
	switch (status) {
	case 0:
		return true;
	case 1:
		return v->fitness == UNFIT;
	case 2:
		return v->fitness == UNFIT && v->mended_by[0] == NULL;
	case 3:
		return v->fitness == UNFIT && v->hung;
	}
	return v->fitness == UNKNOWN;
}

char *report_deciding(TALLOC_CTX *mem_ctx, const struct report *report)
{
	int status = verdict_exit(report->verdict, report->uses);
	char *line = talloc_strdup(mem_ctx, "");
	unsigned i;

	for (i = 0; i < USE_COUNT && line != NULL; i++) {
		bool listed = (report->uses & USE_BIT(i)) != 0 &&
			      decides(&report->verdict->uses[i], status);

		if (listed) {
			line = talloc_asprintf_append(
				line, "%s%s", line[0] != '\0' ? ", " : "",
				use_name(i));
		}
	}
	return line;
}
