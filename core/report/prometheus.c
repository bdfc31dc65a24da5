/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>

#include "core/report/prometheus.h"
#include "core/verdict/store.h"

/* One family at a time, as the format wants them */
struct family {
	FILE *f;
	void (*put)(FILE *f, const char *path, int err,
		    const struct stored_record *record);
};

static void put_value(FILE *f, const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == '\\' || *s == '"') {
			fputc('\\', f);
		}
		if (*s == '\n') {
			fputs("\\n", f);
		} else {
			fputc(*s, f);
		}
	}
}

static void put_path(FILE *f, const char *name, const char *path)
{
	fprintf(f, "%s{path=\"", name);
	put_value(f, path);
	fputc('"', f);
}

static void put_known(FILE *f, const char *path, int err,
		      const struct stored_record *record)
{
	(void)record;
	put_path(f, "pingpong_path_known", path);
	fprintf(f, "} %d\n", err == 0);
}

static void put_fitness(FILE *f, const char *path, int err,
			const struct stored_record *record)
{
	static const enum fitness all[] = { FIT, UNFIT, UNKNOWN };
	unsigned i, j;

	for (i = 0; err == 0 && i < USE_COUNT; i++) {
		const struct stored_use *use = &record->uses[i];

		for (j = 0; use->present && j < 3; j++) {
			put_path(f, "pingpong_use", path);
			fprintf(f, ",use=\"%s\",scope=\"%s\",fitness=\"%s\"} "
				"%d\n", use_name(i),
				use->scope == SCOPE_CLUSTER ? "cluster"
							    : "local",
				fitness_name(all[j]),
				use->fitness == all[j]);
		}
	}
}

static void put_checked(FILE *f, const char *path, int err,
			const struct stored_record *record)
{
	unsigned i;

	for (i = 0; err == 0 && i < USE_COUNT; i++) {
		if (record->uses[i].present) {
			put_path(f, "pingpong_checked_seconds", path);
			fprintf(f, ",use=\"%s\"} %lld\n", use_name(i),
				(long long)record->uses[i].when);
		}
	}
}

static void put_record(const char *path, int err,
		       const struct stored_record *record, void *private_data)
{
	const struct family *family = private_data;

	family->put(family->f, path, err, record);
}

int prometheus_write(FILE *f, const char *statedir, const char *mountinfo)
{
	static const struct {
		const char *name;
		const char *help;
		void (*put)(FILE *f, const char *path, int err,
			    const struct stored_record *record);
	} families[] = {
		{ "pingpong_path_known",
		  "The verdict stored for the path is of its mount.",
		  put_known },
		{ "pingpong_use",
		  "1 for the fitness of the path for the use, else 0.",
		  put_fitness },
		{ "pingpong_checked_seconds",
		  "When the fitness was found, in seconds since 1970.",
		  put_checked },
	};
	int ret = 0;
	size_t i;

	for (i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		struct family family = { f, families[i].put };

		fprintf(f, "# HELP %s %s\n# TYPE %s gauge\n",
			families[i].name, families[i].help, families[i].name);
		ret = store_each(NULL, statedir, mountinfo, put_record,
				 &family);
	}
	ret = ret == ENOENT ? 0 : ret;
	fprintf(f, "# HELP pingpong_store_readable The verdicts can be read.\n"
		"# TYPE pingpong_store_readable gauge\n"
		"pingpong_store_readable %d\n", ret == 0);
	return ret;
}
