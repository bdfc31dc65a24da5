/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The agent's log: where CTDB_LOGGING says ("file:PATH"), else syslog, as
 * "pingpong". One line each; control characters become "?".
 */
#ifndef PINGPONG_CTDB_EVENTS_LOG_H
#define PINGPONG_CTDB_EVENTS_LOG_H

/* logging: the value of CTDB_LOGGING, or NULL; must stay */
void log_open(const char *logging);

void log_line(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

#endif
