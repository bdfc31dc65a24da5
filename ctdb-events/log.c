/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <talloc.h>
#include <time.h>
#include <unistd.h>

#include "ctdb-events/log.h"

#define MAX_LINE 4096

static const char *log_file;	/* NULL: syslog */

static void log_abort(const char *reason)
{
	log_line("the agent aborts: %s", reason);
	abort();
}

void log_open(const char *logging)
{
	talloc_set_abort_fn(log_abort);
	if (logging != NULL && strncmp(logging, "file:", 5) == 0) {
		log_file = logging + 5;
		return;
	}
	openlog("pingpong", LOG_PID, LOG_DAEMON);
}

static void to_file(const char *line)
{
	/* opened each time: logs are rotated */
	FILE *f = fopen(log_file, "ae");
	char when[32] = "", host[65] = "";
	time_t now = time(NULL);
	struct tm tm = {};

	if (f == NULL) {
		return;
	}
	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%S%z", &tm);
	gethostname(host, sizeof(host) - 1);
	fprintf(f, "%s %s pingpong[%d]: %s\n", when, host, (int)getpid(),
		line);
	fclose(f);
}

void log_line(const char *format, ...)
{
	char line[MAX_LINE];
	char *p = NULL;
	va_list ap;

	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	for (p = line; *p != '\0'; p++) {
		if ((unsigned char)*p < ' ' || *p == 0x7f) {
			*p = '?';
		}
	}
	if (log_file != NULL) {
		to_file(line);
	} else {
		syslog(LOG_NOTICE, "%s", line);
	}
}
