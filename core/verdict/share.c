/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Divisions: settings of smb.conf; what is needed; what gives a file its id;
 * the judgement.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/checks/id.h"
#include "core/member/mounts.h"
#include "core/verdict/share.h"

/* So long, in seconds, one has to do with "hung": then it is asked again. */
#define HUNG_FRESH_S 30

/* ---- settings of smb.conf ------------------------------------------------ */

void share_init(struct share *share, const char *path)
{
	*share = (struct share){
		.path = path,
		.posix_locking = true,
		.uses = USE_BIT(USE_SHARE) | USE_BIT(USE_POSIX_LOCKING) |
			USE_BIT(USE_FILE_ID),
		.scope = SCOPE_LOCAL,
		.max_age_s = STORE_FRESH_S,
	};
}

static int set_bool(const char *value, bool *field)
{
	static const char *const words[] = {
		"yes", "no", "true", "false", "on", "off", "1", "0",
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(value, words[i]) == 0) {
			*field = i % 2 == 0;
			return 0;
		}
	}
	return EINVAL;
}

/* As smb.conf(5) takes lists apart; "" keeps a list unset. */
static int set_list(TALLOC_CTX *mem_ctx, const char *value,
		    const char ***field)
{
	static const char between[] = " \t,;\n\r";
	const char **list = NULL;

	value += strspn(value, between);
	while (*value != '\0') {
		bool quoted = *value == '"';
		size_t len;
		char *element = NULL;
		bool ok;

		value += quoted;
		len = strcspn(value, quoted ? "\"" : between);
		element = talloc_strndup(mem_ctx, value, len);
		ok = element != NULL && names_add(mem_ctx, &list, element);
		if (!ok) {
			return ENOMEM;
		}
		value += len;
		value += quoted && *value == '"';
		value += strspn(value, between);
	}
	*field = list;
	return 0;
}

static int set_string(TALLOC_CTX *mem_ctx, const char *value,
		      const char **field)
{
	const char *copy = talloc_strdup(mem_ctx, value);

	if (copy == NULL) {
		return ENOMEM;
	}
	*field = copy;
	return 0;
}

static int set_uses(TALLOC_CTX *mem_ctx, const char *value, unsigned *field)
{
	const char **names = NULL;
	unsigned uses = 0;
	size_t i;
	int ret;

	ret = set_list(mem_ctx, value, &names);
	if (ret != 0) {
		return ret;
	}
	for (i = 0; names != NULL && names[i] != NULL; i++) {
		enum use use;
		bool ok;

		ok = use_parse(names[i], &use);
		if (!ok) {
			return EINVAL;
		}
		uses |= USE_BIT(use);
	}
	*field = uses;
	return 0;
}

static int set_scope(const char *value, enum scope *field)
{
	if (strcasecmp(value, "cluster") == 0) {
		*field = SCOPE_CLUSTER;
		return 0;
	}
	if (strcasecmp(value, "local") == 0) {
		*field = SCOPE_LOCAL;
		return 0;
	}
	return EINVAL;
}

static int set_seconds(const char *value, unsigned *field)
{
	char *end = NULL;
	unsigned long seconds;

	errno = 0;
	seconds = strtoul(value, &end, 10);
	if (errno != 0 || value[0] < '0' || value[0] > '9' || *end != '\0' ||
	    seconds > UINT32_MAX) {
		return EINVAL;
	}
	*field = (unsigned)seconds;
	return 0;
}

int share_set(TALLOC_CTX *mem_ctx, struct share *share, const char *parameter,
	      const char *value)
{
	struct share_fileid *fileid = &share->fileid;
	const struct {
		const char *parameter;
		bool *field;
	} bools[] = {
		{"posix locking", &share->posix_locking},
		{"smbd force process locks", &share->process_locks},
		{"kernel oplocks", &share->kernel_oplocks},
		{"kernel share modes", &share->kernel_share_modes},
		{"fileid:nolock_all_inodes", &fileid->nolock_all_inodes},
	};
	const struct {
		const char *parameter;
		const char ***field;
	} lists[] = {
		{"vfs objects", &share->objects},
		{"fileid:fstype deny", &fileid->fstype_deny},
		{"fileid:fstype allow", &fileid->fstype_allow},
		{"fileid:mntdir deny", &fileid->mntdir_deny},
		{"fileid:mntdir allow", &fileid->mntdir_allow},
	};
	size_t i;

	for (i = 0; i < sizeof(bools) / sizeof(bools[0]); i++) {
		if (strcmp(parameter, bools[i].parameter) == 0) {
			return set_bool(value, bools[i].field);
		}
	}
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (strcmp(parameter, lists[i].parameter) == 0) {
			return set_list(mem_ctx, value, lists[i].field);
		}
	}
	if (strcmp(parameter, "fileid:algorithm") == 0) {
		return set_string(mem_ctx, value, &fileid->algorithm);
	}
	if (strcmp(parameter, "fileid:mapping") == 0) {
		return set_string(mem_ctx, value, &fileid->mapping);
	}
	if (strcmp(parameter, "pingpong:for") == 0) {
		return set_uses(mem_ctx, value, &share->uses);
	}
	if (strcmp(parameter, "pingpong:scope") == 0) {
		return set_scope(value, &share->scope);
	}
	if (strcmp(parameter, "pingpong:max age") == 0) {
		return set_seconds(value, &share->max_age_s);
	}
	return ENOENT;
}

/* ---- what is needed ------------------------------------------------------ */

unsigned share_uses(const struct share *share)
{
	unsigned uses = share->uses;

	if (!share->posix_locking) {
		uses &= ~USE_BIT(USE_POSIX_LOCKING);
	}
	return uses;
}

static bool is_module(const char *object, const char *name)
{
	const char *slash = strrchr(object, '/');
	size_t n;

	if (slash != NULL) {
		object = slash + 1;
	}
	n = strcspn(object, slash != NULL ? ".:" : ":");
	return strlen(name) == n && strncmp(object, name, n) == 0;
}

bool share_has_module(const struct share *share, const char *name)
{
	size_t i;

	for (i = 0; share->objects != NULL && share->objects[i] != NULL; i++) {
		bool found = is_module(share->objects[i], name);

		if (found) {
			return true;
		}
	}
	return false;
}

/* Modules below which a share's path is no path of this host */
static const struct {
	const char *name;
	bool no_locks;		/* lock calls succeed and do nothing */
} elsewhere[] = {
	{"ceph", true},
	{"ceph_new", true},
	{"glusterfs", false},
};

bool share_elsewhere(TALLOC_CTX *mem_ctx, const struct share *share,
		     struct share_answer *answer)
{
	unsigned uses = share_uses(share);
	size_t i;

	for (i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		const char *name = elsewhere[i].name;
		bool found = share_has_module(share, name);

		if (!found) {
			continue;
		}
		if (elsewhere[i].no_locks &&
		    (uses & USE_BIT(USE_POSIX_LOCKING)) != 0) {
			answer->fitness = UNFIT;
			answer->reason = talloc_asprintf(
				mem_ctx, "unfit for posix-locking: vfs_%s "
				"grants every lock and takes none", name);
			answer->remedy = "smb.conf: `posix locking = no` if "
				"nobody but Samba opens the files";
			return true;
		}
		answer->fitness = UNKNOWN;
		answer->reason = talloc_asprintf(
			mem_ctx, "below vfs_%s it is no path of this host, "
			"and cannot be checked", name);
		answer->remedy = "mount the file system and check the mount";
		return true;
	}
	return false;
}

/* ---- what gives a file its id ------------------------------------------- */

/*
 * vfs_fileid's algorithms, the same from Samba 4.17 to 4.25. Those that begin
 * with fsname_ differ from fsname for directories, which get ids of each
 * node's own because the administrator wants it.
 */
static const struct {
	const char *name;
	const char *ids;	/* IDS_*; NULL: of each node's own */
} algorithms[] = {
	{"fsname", IDS_FSNAME},
	{"fsname_nodirs", IDS_FSNAME},
	{"fsname_norootdir", IDS_FSNAME},
	{"fsname_norootdir_ext", IDS_FSNAME},
	{"fsid", IDS_FSID},
	{"hostname", NULL},
	{"next_module", IDS_ST_DEV},
};

/* What gives the share's files their ids */
struct numbering {
	const char *ids;	/* IDS_*; NULL: something else */
	const char *module;	/* NULL: none, it is st_dev */
	const char *algorithm;	/* of vfs_fileid, else NULL */
};

static bool fileid_takes(const struct share_fileid *fileid,
			 const struct mount_line *mount)
{
	if (names_have(fileid->fstype_deny, mount->fstype) ||
	    names_have(fileid->mntdir_deny, mount->point)) {
		return false;
	}
	return (fileid->fstype_allow == NULL ||
		names_have(fileid->fstype_allow, mount->fstype)) &&
	       (fileid->mntdir_allow == NULL ||
		names_have(fileid->mntdir_allow, mount->point));
}

/*
 * vfs_fileid goes through the list of mounts, leaves out what its lists leave
 * out, and takes the first whose mount point is on the file's device; without
 * one it leaves st_dev as it is.
 */
static const struct mount_line *fileid_mount(
	const struct share_fileid *fileid, const struct stored_record *record)
{
	struct mount_line **mount = record->mounts;

	for (; mount != NULL && *mount != NULL; mount++) {
		bool taken = fileid_takes(fileid, *mount);

		if (taken) {
			return *mount;
		}
	}
	return NULL;
}

static const char *fileid_algorithm(const struct share_fileid *fileid)
{
	if (fileid->algorithm != NULL) {
		return fileid->algorithm;
	}
	return fileid->mapping != NULL ? fileid->mapping : "fsname";
}

static void fileid_numbers(const struct share_fileid *fileid,
			   const struct stored_record *record,
			   struct numbering *n)
{
	const struct mount_line *mount = fileid_mount(fileid, record);
	size_t i;

	n->ids = NULL;
	n->module = "fileid";
	n->algorithm = fileid_algorithm(fileid);
	for (i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
		if (strcmp(n->algorithm, algorithms[i].name) == 0) {
			n->ids = algorithms[i].ids;
		}
	}
	if (n->ids == NULL) {
		return;
	}
	if (mount == NULL) {
		n->ids = IDS_ST_DEV;
	} else if (strcmp(n->ids, IDS_FSNAME) == 0 &&
		   strcmp(fileid_fsname(mount->source),
			  fileid_fsname(record->source)) != 0) {
		/* of stacked mounts the lower one may be named */
		n->ids = NULL;
	}
}

/* Of modules that give ids the first in the list decides; next_module leaves
 * it to those that follow. */
static void find_numbering(const struct share *share,
			   const struct stored_record *record,
			   struct numbering *n)
{
	size_t i;

	*n = (struct numbering){.ids = IDS_ST_DEV};
	for (i = 0; share->objects != NULL && share->objects[i] != NULL; i++) {
		const char *object = share->objects[i];
		bool fileid = is_module(object, "fileid");
		bool glusterfs = is_module(object, "glusterfs_fuse");

		if (fileid) {
			fileid_numbers(&share->fileid, record, n);
		}
		if (fileid && strcmp(n->algorithm, "next_module") != 0) {
			return;
		}
		if (glusterfs) {
			*n = (struct numbering){
				.ids = IDS_GLUSTERFS_FUSE,
				.module = "glusterfs_fuse",
			};
			return;
		}
	}
}

const char *share_own_ids(const struct share *share)
{
	bool fileid = share_has_module(share, "fileid");

	if (!fileid) {
		return NULL;
	}
	if (share->fileid.nolock_all_inodes) {
		return "fileid:nolock_all_inodes = yes";
	}
	if (strcmp(fileid_algorithm(&share->fileid), "hostname") == 0) {
		return "fileid:algorithm = hostname";
	}
	return NULL;
}

/* ---- the judgement ------------------------------------------------------- */

/* Is this setting of smb.conf, which the verdict names, the share's? */
static bool has_setting(const struct share *share,
			const struct setting *setting)
{
	const char *parameter = setting->parameter;

	if (strcmp(parameter, "smbd force process locks") == 0) {
		return share->process_locks;
	}
	if (strcmp(parameter, "kernel oplocks") == 0) {
		return !share->kernel_oplocks;
	}
	if (strcmp(parameter, "kernel share modes") == 0) {
		return !share->kernel_share_modes;
	}
	return false;
}

/* What is known of all the uses that the share needs */
struct findings {
	const struct stored_use *unfit;
	enum use unfit_use;
	const struct setting *against;	/* a setting that the share has not */
	struct numbering numbering;	/* of a share that needs file-id */
	bool ids_unknown;		/* what it gives was not tested */
	bool one_node;			/* a cluster was asked for */
	bool not_known;			/* a check could tell more */
	const char *unknown_reason;	/* that was stored, or NULL */
};

static bool is_fresh(const struct stored_use *use, const struct share *share,
		     time_t now)
{
	unsigned max_age_s = share->max_age_s;

	if (use->light && use->hung && max_age_s > HUNG_FRESH_S) {
		max_age_s = HUNG_FRESH_S;
	}
	return stored_use_fresh(use, now, max_age_s);
}

static bool is_of_smbconf(const struct setting *setting, unsigned uses)
{
	return strcmp(setting->file, "smb.conf") == 0 &&
	       (setting->uses & uses) != 0;
}

/* Is all that mends the use set for the share? */
static bool is_mended(const struct share *share,
		      const struct stored_record *record, enum use use)
{
	bool mended = record->uses[use].mended_by[0] != NULL;
	size_t i;

	for (i = 0; i < record->num_settings && mended; i++) {
		const struct setting *s = &record->settings[i];

		if (s->needed && is_of_smbconf(s, USE_BIT(use))) {
			mended = has_setting(share, s);
		}
	}
	return mended;
}

/* Is it st_dev alone that file-id depends on here? */
static bool inodes_hold(const struct stored_use *file_id)
{
	if (file_id->fitness == FIT) {
		return true;
	}
	return !file_id->hung && file_id->because[0] != NULL &&
	       strcmp(file_id->because[0], "id.device") == 0 &&
	       file_id->because[1] == NULL;
}

/* file-id is of the share's modules as much as of the file system. */
static enum fitness judge_ids(const struct share *share,
			      const struct stored_record *record,
			      struct findings *found)
{
	const struct stored_use *stored = &record->uses[USE_FILE_ID];
	struct numbering *n = &found->numbering;
	const char *own = share_own_ids(share);
	bool hold = inodes_hold(stored);

	if (!hold || stored->ids == NULL) {
		return stored->fitness;
	}
	if (own != NULL) {
		return FIT;
	}
	find_numbering(share, record, n);
	if (n->ids == NULL || (strcmp(n->ids, IDS_FSID) == 0 &&
			       names_have(stored->ids, IDS_FSID_ZERO))) {
		found->ids_unknown = true;
		return UNKNOWN;
	}
	return names_have(stored->ids, n->ids) ? FIT : UNFIT;
}

/*
 * A share may ask for more than the uses say: leases and flock. Where these
 * do not work the record says what must not be set.
 */
static const struct setting *find_against(const struct share *share,
					  const struct stored_record *record,
					  unsigned uses)
{
	static const char *const asking[] = {
		"kernel oplocks", "kernel share modes",
	};
	size_t i, j;

	for (i = 0; i < record->num_settings; i++) {
		const struct setting *s = &record->settings[i];

		if (!is_of_smbconf(s, uses)) {
			continue;
		}
		for (j = 0; j < sizeof(asking) / sizeof(asking[0]); j++) {
			bool against =
				strcmp(s->parameter, asking[j]) == 0 &&
				!has_setting(share, s);

			if (against) {
				return s;
			}
		}
	}
	return NULL;
}

static void find_use(const struct share *share,
		     const struct stored_record *record, enum use use,
		     time_t now, struct findings *found)
{
	const struct stored_use *stored = &record->uses[use];
	enum fitness fitness = stored->fitness;
	bool fresh;

	fresh = is_fresh(stored, share, now);
	if (!fresh) {
		found->not_known = true;
		return;
	}
	if (fitness == UNKNOWN) {
		found->not_known = true;
		found->unknown_reason = stored->reason;
		return;
	}
	if (use == USE_FILE_ID) {
		fitness = judge_ids(share, record, found);
	} else if (fitness == UNFIT) {
		fitness = is_mended(share, record, use) ? FIT : UNFIT;
	}
	if (fitness == UNFIT && found->unfit == NULL) {
		found->unfit = stored;
		found->unfit_use = use;
	}
	if (share->scope == SCOPE_CLUSTER && stored->scope == SCOPE_LOCAL) {
		found->one_node = true;
	}
}

static void find_all(const struct share *share,
		     const struct stored_record *record, time_t now,
		     struct findings *found)
{
	unsigned uses = share_uses(share);
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		if ((uses & USE_BIT(i)) != 0) {
			find_use(share, record, i, now, found);
		}
	}
	if (found->unfit == NULL) {
		found->against = find_against(share, record, uses);
	}
}

static enum share_more what_more(const struct findings *found)
{
	if (found->unfit != NULL || found->against != NULL) {
		return SHARE_DECIDED;
	}
	if (found->not_known) {
		return SHARE_CHECK;
	}
	return found->one_node && !found->ids_unknown ? SHARE_ASK_PEERS :
							SHARE_DECIDED;
}

/* What of smb.conf or of the mount would have to be otherwise; "": nothing */
static char *settings_line(TALLOC_CTX *mem_ctx,
			   const struct stored_record *record, unsigned uses)
{
	char *line = talloc_strdup(mem_ctx, "");
	size_t i;

	for (i = 0; i < record->num_settings && line != NULL; i++) {
		const struct setting *s = &record->settings[i];
		const char *before = line[0] != '\0' ? ", " : "";

		if (!s->needed || (s->uses & uses) == 0) {
			continue;
		}
		if (strcmp(s->file, "mount options") == 0) {
			line = talloc_asprintf_append(
				line, "%smount '%s' with '%s' instead of '%s'",
				before, s->section, s->value, s->parameter);
		} else {
			line = talloc_asprintf_append(
				line, "%s%s: `%s = %s`", before, s->file,
				s->parameter, s->value);
		}
	}
	return line;
}

/* "`fileid:algorithm = fsid`", or what else the module does */
static char *numbering_line(TALLOC_CTX *mem_ctx, const struct numbering *n)
{
	if (n->algorithm != NULL && n->ids != NULL &&
	    strcmp(n->ids, IDS_ST_DEV) == 0) {
		return talloc_strdup(mem_ctx, "vfs_fileid, which by the share's "
				     "settings leaves st_dev as it is,");
	}
	if (n->algorithm != NULL) {
		return talloc_asprintf(mem_ctx, "`fileid:algorithm = %s`",
				       n->algorithm);
	}
	return talloc_asprintf(mem_ctx, "vfs_%s", n->module);
}

/* Why the share is unfit for the use */
static const char *unfit_line(TALLOC_CTX *mem_ctx,
			      const struct findings *found)
{
	const struct stored_use *unfit = found->unfit;
	const char *reason = unfit->reason;
	const char *numbering = NULL;

	if (reason == NULL) {
		reason = "no reason recorded";
	}
	if (found->unfit_use != USE_FILE_ID ||
	    found->numbering.module == NULL) {
		return reason;
	}
	numbering = numbering_line(mem_ctx, &found->numbering);
	if (unfit->fitness == UNFIT) {
		return talloc_asprintf(mem_ctx, "%s; %s does not mend it",
				       reason, numbering);
	}
	return talloc_asprintf(
		mem_ctx, "st_dev of a file is the same on all members, but %s "
		"makes different ids of it", numbering);
}

/* What the share would have to have, where it is its own vfs_fileid that
 * makes it unfit */
static char *ids_line(TALLOC_CTX *mem_ctx, const struct stored_use *file_id)
{
	if (names_have(file_id->ids, IDS_FSNAME)) {
		return talloc_strdup(mem_ctx,
				     "smb.conf: `fileid:algorithm = fsname`");
	}
	return talloc_strdup(mem_ctx, "smb.conf: no fileid in `vfs objects`");
}

static void say_unfit(TALLOC_CTX *mem_ctx, const struct share *share,
		      const struct stored_record *record,
		      const struct findings *found,
		      struct share_answer *answer)
{
	const struct stored_use *unfit = found->unfit;
	const char *check = unfit->because[0];
	char *settings = NULL;

	if (unfit->fitness == UNFIT) {
		settings = settings_line(mem_ctx, record,
					 USE_BIT(found->unfit_use));
	} else {
		settings = ids_line(mem_ctx, unfit);
		check = "id.device";
	}
	answer->fitness = UNFIT;
	answer->reason = talloc_asprintf(
		mem_ctx, "unfit for %s%s: %s", use_name(found->unfit_use),
		unfit->scope == SCOPE_CLUSTER ? " across nodes" : "",
		unfit_line(mem_ctx, found));
	answer->remedy = talloc_asprintf(
		mem_ctx, "%s%s'pingpong explain %s' says more; afterwards "
		"'pingpong check' or 'pingpong forget %s'",
		settings != NULL ? settings : "",
		settings != NULL && settings[0] != '\0' ? "; " : "",
		check != NULL ? check : "CHECK", share->path);
}

static void say_against(TALLOC_CTX *mem_ctx, const struct setting *setting,
			struct share_answer *answer)
{
	answer->fitness = UNFIT;
	answer->reason = talloc_asprintf(
		mem_ctx, "unfit for a share that has not `%s = %s`: %s",
		setting->parameter, setting->value, setting->because);
	answer->remedy = talloc_asprintf(mem_ctx, "%s: `%s = %s`",
					 setting->file, setting->parameter,
					 setting->value);
}

void share_unknown(TALLOC_CTX *mem_ctx, const struct share *share,
		   const char *reason, struct share_answer *answer)
{
	answer->fitness = UNKNOWN;
	answer->reason = reason;
	if (share->scope == SCOPE_CLUSTER) {
		answer->remedy = talloc_asprintf(
			mem_ctx, "'pingpong check %s HOST:%s ...' with "
			"another node as HOST", share->path, share->path);
	} else {
		answer->remedy = talloc_asprintf(
			mem_ctx, "'pingpong check --local %s' says more",
			share->path);
	}
}

static void say(TALLOC_CTX *mem_ctx, const struct share *share,
		const struct stored_record *record,
		const struct findings *found, struct share_answer *answer)
{
	if (found->unfit != NULL) {
		say_unfit(mem_ctx, share, record, found, answer);
	} else if (found->against != NULL) {
		say_against(mem_ctx, found->against, answer);
	} else if (found->not_known) {
		share_unknown(mem_ctx, share,
			      found->unknown_reason != NULL ?
			      found->unknown_reason :
			      "not checked, or too long ago", answer);
	} else if (found->ids_unknown) {
		share_unknown(mem_ctx, share, talloc_asprintf(
			mem_ctx, "whether %s gives a file one id on all nodes "
			"was not tested",
			numbering_line(mem_ctx, &found->numbering)), answer);
	} else if (found->one_node) {
		share_unknown(mem_ctx, share, "only one node tested", answer);
	} else {
		answer->fitness = FIT;
	}
}

enum share_more share_judge(TALLOC_CTX *mem_ctx, const struct share *share,
			    const struct stored_record *record, time_t now,
			    struct share_answer *answer)
{
	struct findings found = {};

	find_all(share, record, now, &found);
	say(mem_ctx, share, record, &found, answer);
	return what_more(&found);
}
