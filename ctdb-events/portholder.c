/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ctdb-events/portholder.h"

/* In /proc/net/tcp */
#define STATE_LISTEN 0x0a

/* The inode of a socket that listens on the port; 0: none */
static unsigned long inode_of(const char *table, uint16_t port)
{
	unsigned long inode = 0;
	char line[512];
	FILE *f = fopen(table, "re");

	while (f != NULL && inode == 0 && fgets(line, sizeof(line), f)) {
		unsigned local = 0, state = 0;
		unsigned long candidate = 0;
		int n;

		n = sscanf(line, "%*d: %*[0-9A-Fa-f]:%x %*s %x %*s %*s %*s "
			   "%*s %*s %lu", &local, &state, &candidate);
		if (n == 3 && local == port && state == STATE_LISTEN) {
			inode = candidate;
		}
	}
	if (f != NULL) {
		fclose(f);
	}
	return inode;
}

static bool has_socket(const char *pid, unsigned long inode)
{
	char dir[64], want[64], path[400], target[64];
	struct dirent *entry = NULL;
	bool found = false;
	DIR *d = NULL;

	snprintf(dir, sizeof(dir), "/proc/%.16s/fd", pid);
	snprintf(want, sizeof(want), "socket:[%lu]", inode);
	d = opendir(dir);
	while (d != NULL && !found && (entry = readdir(d)) != NULL) {
		ssize_t n;

		snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0) {
			target[n] = '\0';
			found = strcmp(target, want) == 0;
		}
	}
	if (d != NULL) {
		closedir(d);
	}
	return found;
}

static void read_name(const char *pid, char name[32])
{
	char path[64];
	FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	f = fopen(path, "re");
	if (f == NULL) {
		return;
	}
	if (fgets(name, 32, f) != NULL) {
		name[strcspn(name, "\n")] = '\0';
	}
	fclose(f);
}

const char *portholder(TALLOC_CTX *mem_ctx, uint16_t port)
{
	unsigned long inode = inode_of("/proc/self/net/tcp", port);
	const char *text = ": no process of this host is seen to hold it";
	struct dirent *entry = NULL;
	char name[32] = "?";
	DIR *d = NULL;

	if (inode == 0) {
		inode = inode_of("/proc/self/net/tcp6", port);
	}
	d = inode != 0 ? opendir("/proc") : NULL;
	while (d != NULL && (entry = readdir(d)) != NULL) {
		bool holds = isdigit((unsigned char)entry->d_name[0]) &&
			     has_socket(entry->d_name, inode);

		if (holds) {
			read_name(entry->d_name, name);
			text = talloc_asprintf(mem_ctx, ": process %s (%s) "
					       "holds it", entry->d_name,
					       name);
			break;
		}
	}
	if (d != NULL) {
		closedir(d);
	}
	return text;
}
