/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "core/checks/sight.h"

/* Without a lock, what another member did is there after this long */
#define SEEN_MS 1000

/* NFS's default for attributes at most (nfs(5), acregmax and acdirmax) */
#define NFS_CACHE_MS 60000

/* SMB's (mount.cifs(8), actimeo) */
#define SMB_CACHE_MS 1000

/* A FUSE daemon's time-outs are told nobody; few have longer ones */
#define UNKNOWN_CACHE_MS 5000

/* *ms becomes what the option says, if it is this one */
static void cache_option(const char *option, const char *name, long *ms)
{
	size_t len = strlen(name);

	if (strncmp(option, name, len) == 0 && option[len] == '=') {
		*ms = strtol(option + len + 1, NULL, 10) * 1000;
	}
}

unsigned sight_cache_ms(const char *fstype, const char *options)
{
	bool nfs = strncmp(fstype, "nfs", 3) == 0;
	bool smb = strcmp(fstype, "cifs") == 0 || strcmp(fstype, "smb3") == 0;
	/* what is not shown has its default */
	long files = nfs ? NFS_CACHE_MS :
		     smb ? SMB_CACHE_MS : UNKNOWN_CACHE_MS;
	long names = files;
	const char *option = options;

	while ((nfs || smb) && option != NULL) {
		if (strncmp(option, "noac,", 5) == 0 ||
		    strcmp(option, "noac") == 0) {
			return SEEN_MS;
		}
		cache_option(option, "actimeo", &files);
		cache_option(option, "actimeo", &names);
		cache_option(option, "acregmax", &files);
		cache_option(option, "acdirmax", &names);
		option = strchr(option, ',');
		option = option != NULL ? option + 1 : NULL;
	}
	files = files > names ? files : names;
	return files > SEEN_MS ? (unsigned)files : SEEN_MS;
}

enum outcome sight_outcome(bool locked, bool at_last, uint64_t age_ms,
			   unsigned cache_ms)
{
	if (locked) {
		return OUTCOME_FAIL;
	}
	if (at_last) {
		return age_ms <= SEEN_MS ? OUTCOME_PASS : OUTCOME_SLOW;
	}
	return age_ms > cache_ms ? OUTCOME_FAIL : OUTCOME_SLOW;
}
