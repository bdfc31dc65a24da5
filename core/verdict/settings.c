/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>

#include "core/member/mounts.h"
#include "core/verdict/settings.h"

/* What a rule looks at */
struct seen {
	const struct verdict_input *input;
	struct verdict *verdict;
};

static bool failed(const struct seen *seen, const char *name)
{
	return verdict_broken(verdict_result(seen->input, name));
}

/* The use is unfit because of this check alone, and nothing hung. */
static bool only(const struct seen *seen, enum use use, const char *name)
{
	const struct use_verdict *v = &seen->verdict->uses[use];

	return v->fitness == UNFIT && !v->hung &&
	       strcmp(v->because[0], name) == 0 && v->because[1] == NULL;
}

static bool ofd_alone(const struct seen *seen)
{
	return only(seen, USE_POSIX_LOCKING, "lock.ofd");
}

static bool posix_locking_lost(const struct seen *seen)
{
	const struct use_verdict *v = &seen->verdict->uses[USE_POSIX_LOCKING];

	return v->fitness == UNFIT && v->mended_by == NULL;
}

static bool agrees(const struct seen *seen, const char *algorithm)
{
	bool alone = only(seen, USE_FILE_ID, "id.device");

	return alone && names_have(seen->verdict->uses[USE_FILE_ID].ids,
				   algorithm);
}

static bool fsname_agrees(const struct seen *seen)
{
	return agrees(seen, IDS_FSNAME);
}

static bool only_fsid_agrees(const struct seen *seen)
{
	return agrees(seen, IDS_FSID) && !agrees(seen, IDS_FSNAME);
}

static bool any_fileid(const struct seen *seen)
{
	return agrees(seen, IDS_FSID) || agrees(seen, IDS_FSNAME);
}

static bool mmap_broken(const struct seen *seen)
{
	const struct use_verdict *v = &seen->verdict->uses[USE_MMAP];

	return v->fitness == UNFIT && !v->hung;
}

static bool tdb_broken(const struct seen *seen)
{
	const struct use_verdict *v = &seen->verdict->uses[USE_TDB];

	return v->fitness == UNFIT && !v->hung;
}

static bool lease_broken(const struct seen *seen)
{
	return failed(seen, "lease.break");
}

static bool flock_broken(const struct seen *seen)
{
	return failed(seen, "lock.flock");
}

#define USE_MMAP_NO \
	"smb.conf", "global", "use mmap", "no", \
	"memory maps are refused here or do not show what was written: a " \
	"TDB file in this directory would be read stale. It changes TDB " \
	"files only (smbd maps no file of a share), makes each of their " \
	"operations about a hundred times slower (2 million a second with " \
	"mutexes and maps, 15 thousand without), has to stand before " \
	"`include = registry`, and does not reach ctdbd, which always maps " \
	"its databases: keep those on a local disk"
#define TDB_MUTEXES_FALSE \
	"ctdb.conf", "database", "tdb mutexes", "false", \
	"companion of `use mmap = no`, on every node: with mutexes a " \
	"clustered smbd without maps ends at its start (TDB_MUTEX_LOCKING " \
	"and TDB_NOMMAP are not allowed together); read when ctdbd starts"

/*
 * Which setting mends which use, and when. Advice mends nothing.
 */
#define MENDS true
#define ADVICE false

static const struct {
	enum use use;
	bool mends;
	bool (*applies)(const struct seen *seen);
	const char *file;
	const char *section;
	const char *parameter;
	const char *value;
	const char *because;
} rules[] = {
	{USE_POSIX_LOCKING, MENDS, ofd_alone,
	 "smb.conf", "global", "smbd force process locks", "yes",
	 "locks of open file descriptions, smbd's default, do not work here; "
	 "those of processes do"},
	{USE_FILE_ID, MENDS, any_fileid,
	 "smb.conf", "global", "vfs objects", "fileid",
	 "st_dev differs between nodes, so that each keys the same file "
	 "differently and conflicts go unseen; a share with `vfs objects` of "
	 "its own needs fileid in that list, which replaces this one"},
	{USE_FILE_ID, MENDS, fsname_agrees,
	 "smb.conf", "global", "fileid:algorithm", "fsname",
	 "the mount's source is the same on all members"},
	{USE_FILE_ID, MENDS, only_fsid_agrees,
	 "smb.conf", "global", "fileid:algorithm", "fsid",
	 "f_fsid is the same on all members; the mount's source is not"},
	{USE_TDB, MENDS, tdb_broken, USE_MMAP_NO},
	{USE_TDB, MENDS, tdb_broken, TDB_MUTEXES_FALSE},
	{USE_MMAP, MENDS, mmap_broken, USE_MMAP_NO},
	{USE_MMAP, MENDS, mmap_broken, TDB_MUTEXES_FALSE},
	{USE_POSIX_LOCKING, ADVICE, posix_locking_lost,
	 "smb.conf", "global", "posix locking", "no",
	 "it mends nothing: smbd then keeps its locks to itself, which is "
	 "right only where nobody but Samba opens the files"},
	{USE_SHARE, ADVICE, lease_broken,
	 "smb.conf", "global", "kernel oplocks", "no",
	 "the default, to be kept: a lease is not broken when another node "
	 "opens the file"},
	{USE_SHARE, ADVICE, flock_broken,
	 "smb.conf", "global", "kernel share modes", "no",
	 "the default, to be kept: flock does not work across nodes here"},
};

static bool fcntl_refused(const struct seen *seen)
{
	const struct check_result *result =
		verdict_result(seen->input, "lock.supported");

	return result != NULL && result->outcome == OUTCOME_UNSUPPORTED;
}

/* Locks were granted on two nodes at once, and not on one as well. */
static bool local(const struct seen *seen, const char *name)
{
	const struct check_result *result = verdict_result(seen->input, name);

	return seen->verdict->scope == SCOPE_CLUSTER && result != NULL &&
	       result->outcome == OUTCOME_FAIL &&
	       !json_is_false(json_object_get(result->metrics, "local"));
}

static bool fcntl_local(const struct seen *seen)
{
	return local(seen, "lock.exclusion");
}

static bool flock_local(const struct seen *seen)
{
	return local(seen, "lock.flock");
}

static bool any_local(const struct seen *seen)
{
	return fcntl_local(seen) || flock_local(seen);
}

/*
 * Mount options that do what was seen, as mountinfo shows them; of those of
 * one mount the first.
 */
static const struct {
	const char *fstype;
	const char *option;
	bool missing;		/* it is the want of the option that does it */
	const char *instead;	/* "": just leave it out */
	bool (*does)(const struct seen *seen);
	const char *what;
} culprits[] = {
	{"lustre", "localflock", false, "flock", any_local,
	 "keeps locks on the node"},
	{"lustre", "flock", true, "flock", fcntl_refused,
	 "without it a client refuses locks"},
	{"nfs", "nolock", false, "lock", any_local,
	 "keeps locks on the node"},
	{"nfs", "local_lock=all", false, "local_lock=none", any_local,
	 "keeps locks on the node"},
	{"nfs", "local_lock=posix", false, "local_lock=none", fcntl_local,
	 "keeps fcntl locks on the node"},
	{"nfs", "local_lock=flock", false, "local_lock=none", flock_local,
	 "keeps flock locks on the node"},
	{"nfs4", "local_lock=all", false, "local_lock=none", any_local,
	 "keeps locks on the node"},
	{"nfs4", "local_lock=posix", false, "local_lock=none", fcntl_local,
	 "keeps fcntl locks on the node"},
	{"nfs4", "local_lock=flock", false, "local_lock=none", flock_local,
	 "keeps flock locks on the node"},
	{"cifs", "nobrl", false, "", any_local,
	 "keeps locks on the node"},
	{"smb3", "nobrl", false, "", any_local,
	 "keeps locks on the node"},
	{"gfs2", "localflocks", false, "", any_local,
	 "keeps locks on the node"},
	{"gfs2", "lockproto=lock_nolock", false, "lockproto=lock_dlm",
	 any_local, "keeps locks on the node"},
	{"ocfs2", "localflocks", false, "", flock_local,
	 "keeps flock locks on the node"},
	{"pvfs2", "local_lock", false, "", any_local,
	 "keeps locks on the node"},
};

static bool option_there(const char *options, const char *option)
{
	size_t len = strlen(option);
	const char *at = options;

	while (at != NULL) {
		if (strncmp(at, option, len) == 0 &&
		    (at[len] == ',' || at[len] == '\0')) {
			return true;
		}
		at = strchr(at, ',');
		at = at != NULL ? at + 1 : NULL;
	}
	return false;
}

static struct setting *find_setting(struct verdict *v, const char *section,
				    const char *parameter)
{
	size_t i;

	for (i = 0; i < v->num_settings; i++) {
		struct setting *s = &v->settings[i];

		if (strcmp(s->section, section) == 0 &&
		    strcmp(s->parameter, parameter) == 0) {
			return s;
		}
	}
	return NULL;
}

/* because: a child of the verdict, NULL for want of memory */
static bool add_setting(struct verdict *v, const struct setting *setting,
			const char *because)
{
	struct setting *settings = NULL;

	if (because == NULL) {
		return false;
	}
	settings = talloc_realloc(v, v->settings, struct setting,
				  v->num_settings + 1);
	if (settings == NULL) {
		return false;
	}
	v->settings = settings;
	settings[v->num_settings] = *setting;
	settings[v->num_settings].because = because;
	v->num_settings++;
	return true;
}

static bool add_culprit(struct verdict *v, const struct member_info *member,
			size_t culprit)
{
	struct setting setting = {
		.file = "mount options",
		.section = member->path,
		.parameter = culprits[culprit].option,
		.value = culprits[culprit].instead,
		.needed = true,
		.uses = USE_BIT(USE_CLUSTER_LOCK) | USE_BIT(USE_POSIX_LOCKING),
	};
	struct setting *known = NULL;
	struct mount_line *mount = NULL;
	int ret;

	ret = mount_line_parse(v, member->mount_line, &mount);
	if (ret == ENOMEM) {
		return false;
	}
	if (ret == 0) {
		setting.section = mount->point;
	}
	known = find_setting(v, setting.section, setting.parameter);
	if (known != NULL) {
		known->because = talloc_asprintf(v, "%s, %s", known->because,
						 member->name);
		return known->because != NULL;
	}
	return add_setting(v, &setting,
			   talloc_asprintf(v, "%s: so mounted at %s",
					   culprits[culprit].what,
					   member->name));
}

static bool find_culprits(const struct seen *seen)
{
	size_t m, c;

	for (m = 0; m < seen->input->num_members; m++) {
		const struct member_info *member = seen->input->members[m];

		for (c = 0; c < sizeof(culprits) / sizeof(*culprits); c++) {
			bool found, ok;

			found = strcmp(culprits[c].fstype,
				       member->fstype) == 0 &&
				option_there(member->options,
					     culprits[c].option) !=
					culprits[c].missing;
			if (!found) {
				continue;
			}
			ok = !culprits[c].does(seen) ||
			     add_culprit(seen->verdict, member, c);
			if (!ok) {
				return false;
			}
			break;
		}
	}
	return true;
}

static bool apply_rule(const struct seen *seen, size_t rule)
{
	struct setting setting = {
		.file = rules[rule].file,
		.section = rules[rule].section,
		.parameter = rules[rule].parameter,
		.value = rules[rule].value,
		.needed = rules[rule].mends,
		.uses = USE_BIT(rules[rule].use),
	};
	struct verdict *v = seen->verdict;
	struct use_verdict *use = &v->uses[rules[rule].use];
	struct setting *known = NULL;
	char *checks = NULL;
	bool ok;

	if (!rules[rule].mends) {
		return add_setting(v, &setting, rules[rule].because);
	}
	ok = names_add(v, &use->mended_by, setting.parameter);
	if (!ok) {
		return false;
	}
	known = find_setting(v, setting.section, setting.parameter);
	if (known != NULL) {
		known->uses |= setting.uses;
		return true;
	}
	checks = names_join(v, use->because);
	if (checks == NULL) {
		return false;
	}
	return add_setting(v, &setting,
			   talloc_asprintf(v, "%s (%s)", rules[rule].because,
					   checks));
}

int settings_compute(const struct verdict_input *input,
		     struct verdict *verdict)
{
	struct seen seen = {.input = input, .verdict = verdict};
	size_t i;
	bool ok;

	if (!input->same_directory) {
		return 0;
	}
	ok = find_culprits(&seen);
	for (i = 0; ok && i < sizeof(rules) / sizeof(*rules); i++) {
		bool applies = rules[i].applies(&seen);

		if (applies) {
			ok = apply_rule(&seen, i);
		}
	}
	return ok ? 0 : ENOMEM;
}
