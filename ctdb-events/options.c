/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctdb-events/options.h"

#define PREFIX "CTDB_PINGPONG_"

static const char *value_of(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

static int read_number(TALLOC_CTX *mem_ctx, const char *name, unsigned low,
		       unsigned high, unsigned *number, const char **why)
{
	const char *value = value_of(name);
	char *end = NULL;
	unsigned long n;

	if (value == NULL) {
		return 0;
	}
	errno = 0;
	n = strtoul(value, &end, 10);
	if (errno != 0 || *end != '\0' || value[0] < '0' || value[0] > '9' ||
	    n < low || n > high) {
		*why = talloc_asprintf(mem_ctx, "%s='%s': expected a number "
				       "from %u to %u", name, value, low,
				       high);
		return EINVAL;
	}
	*number = (unsigned)n;
	return 0;
}

static int read_mode(TALLOC_CTX *mem_ctx, struct options *options,
		     const char **why)
{
	const char *mode = value_of(PREFIX "MODE");

	options->enforce = mode == NULL || strcmp(mode, "enforce") == 0;
	if (!options->enforce && strcmp(mode, "warn") != 0) {
		*why = talloc_asprintf(mem_ctx, PREFIX "MODE='%s': expected "
				       "enforce, warn or off", mode);
		return EINVAL;
	}
	return 0;
}

static int read_on_mmap_fail(TALLOC_CTX *mem_ctx, struct options *options,
			     const char **why)
{
	static const char *const names[] = {
		[ON_MMAP_FAIL_AUTO] = "auto",
		[ON_MMAP_FAIL_SET] = "set",
		[ON_MMAP_FAIL_REPORT] = "report",
	};
	const char *value = value_of(PREFIX "ON_MMAP_FAIL");
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (value == NULL || strcmp(value, names[i]) == 0) {
			options->on_mmap_fail = (enum on_mmap_fail)i;
			return 0;
		}
	}
	*why = talloc_asprintf(mem_ctx, PREFIX "ON_MMAP_FAIL='%s': expected "
			       "auto, set or report", value);
	return EINVAL;
}

static const char *text_or(TALLOC_CTX *mem_ctx, const char *name,
			   const char *otherwise)
{
	const char *value = value_of(name);

	if (value == NULL) {
		value = otherwise;
	}
	return value != NULL ? talloc_strdup(mem_ctx, value) : NULL;
}

int options_read(TALLOC_CTX *mem_ctx, struct options **options,
		 const char **why)
{
	struct options *o = talloc_zero(mem_ctx, struct options);
	unsigned port = 4380;
	struct {
		const char *name;
		unsigned low, high;
		unsigned *number;
	} numbers[] = {
		{ PREFIX "TIMEOUT", 2, 25, &o->timeout_s },
		{ PREFIX "MAX_PEERS", 0, 16, &o->max_peers },
		{ PREFIX "MIN_PEERS", 0, 16, &o->min_peers },
		{ PREFIX "RECHECK_INTERVAL", 1, 86400,
		  &o->recheck_interval_s },
		{ PREFIX "MAX_AGE", 0, 604800, &o->max_age_s },
		{ PREFIX "PORT", 1, 65535, &port },
	};
	size_t i;
	int ret;

	*why = NULL;
	if (o == NULL) {
		return ENOMEM;
	}
	o->timeout_s = 10;
	o->max_peers = 3;
	o->recheck_interval_s = 300;
	o->max_age_s = 3600;
	ret = read_mode(mem_ctx, o, why);
	if (ret == 0) {
		ret = read_on_mmap_fail(mem_ctx, o, why);
	}
	for (i = 0; ret == 0 && i < sizeof(numbers) / sizeof(numbers[0]);
	     i++) {
		ret = read_number(mem_ctx, numbers[i].name, numbers[i].low,
				  numbers[i].high, numbers[i].number, why);
	}
	if (ret == 0 && o->min_peers > o->max_peers) {
		*why = talloc_asprintf(mem_ctx, PREFIX "MIN_PEERS=%u is more "
				       "than " PREFIX "MAX_PEERS=%u",
				       o->min_peers, o->max_peers);
		ret = EINVAL;
	}
	if (ret != 0) {
		talloc_free(o);
		return ret;
	}
	o->port = (uint16_t)port;
	o->key = text_or(o, PREFIX "KEY", NULL);
	o->paths = text_or(o, PREFIX "PATHS", NULL);
	o->logging = text_or(o, "CTDB_LOGGING", NULL);
	o->ctdb.base = text_or(o, "CTDB_BASE", "/etc/ctdb");
	o->ctdb.helpers = text_or(o, "CTDB_HELPER_BINDIR",
				  "/usr/libexec/ctdb");
	if (o->ctdb.base == NULL || o->ctdb.helpers == NULL) {
		talloc_free(o);
		return ENOMEM;
	}
	*options = o;
	return 0;
}
