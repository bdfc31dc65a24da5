/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * vfs_pingpong: a share on a file system that would lose its data is refused
 * at tree connect. Which verdict decides stands in gate.h, what the parameters
 * mean in vfs_pingpong(8).
 *
 * The verdict comes before SMB_VFS_NEXT_CONNECT: connect functions of other
 * modules (shadow_copy2, fileid) stat(2) the share's path, and on a file
 * system that hangs they would not return. So a refusal has nothing to undo.
 */
#include "includes.h"
#include "smbd/smbd.h"
#include "system/filesys.h"

#include "core/config.h"
#include "vfs_pingpong/compat.h"
#include "vfs_pingpong/gate.h"

#define MODULE "pingpong"
#define COMMAND "/usr/bin/pingpong"
#define MOUNTINFO "/proc/self/mountinfo"

/* A share is named in the log this often, in seconds, at most */
#define SAY_INTERVAL_S 60

#define MAX_TIMEOUT_S 300

static int vfs_pingpong_debug_level = DBGC_VFS;

#undef DBGC_CLASS
#define DBGC_CLASS vfs_pingpong_debug_level

enum mode { ENFORCE, WARN, OFF };
enum on_unknown { ALLOW, REFUSE };

static const struct enum_list modes[] = {
	{ENFORCE, "enforce"}, {WARN, "warn"}, {OFF, "off"}, {-1, NULL},
};
static const struct enum_list on_unknowns[] = {
	{ALLOW, "allow"}, {REFUSE, "refuse"}, {-1, NULL},
};
static const struct enum_list scopes[] = {
	{SCOPE_LOCAL, "local"}, {SCOPE_CLUSTER, "cluster"}, {-1, NULL},
};

/* ---- parameters ---------------------------------------------------------- */

/* A value that is none is told by lp_parm_enum(); the default stands then. */
static int parameter(int snum, const char *name, const struct enum_list *list,
		     int otherwise)
{
	int value;

	value = lp_parm_enum(snum, MODULE, name, list, otherwise);
	return value != -1 ? value : otherwise;
}

/*
 * The uses that must be fit: those of "for" without what the share does
 * without. False: *wrong is no use.
 */
static bool wanted_uses(const struct connection_struct *conn, unsigned *uses,
			const char **wrong)
{
	static const char *otherwise[] = {
		"share", "posix-locking", "file-id", NULL,
	};
	const char **names = lp_parm_string_list(SNUM(conn), MODULE, "for",
						 otherwise);
	enum use use;
	size_t i;

	*uses = 0;
	for (i = 0; names != NULL && names[i] != NULL; i++) {
		bool ok = use_parse(names[i], &use);

		if (!ok) {
			*wrong = names[i];
			return false;
		}
		*uses |= USE_BIT(use);
	}
	if (!lp_posix_locking(conn->params)) {
		*uses &= ~USE_BIT(USE_POSIX_LOCKING);
	}
	return true;
}

/* ---- the other modules of the share -------------------------------------- */

/* Of "/path/NAME.so:parameter" the name */
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

static bool has_module(int snum, const char *name)
{
	const char **objects = lp_vfs_objects(snum);
	size_t i;

	for (i = 0; objects != NULL && objects[i] != NULL; i++) {
		bool found = is_module(objects[i], name);

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

static bool is_elsewhere(TALLOC_CTX *mem_ctx, int snum, unsigned uses,
			 struct gate_answer *answer)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(elsewhere); i++) {
		const char *name = elsewhere[i].name;
		bool found = has_module(snum, name);

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

/* ---- settings that a verdict names --------------------------------------- */

/*
 * fileid's algorithms that give each node its own numbers for some files do
 * so because the administrator wants it.
 */
static enum fitness has_algorithm(int snum, const char *value)
{
	const char *algorithm = NULL;

	algorithm = lp_parm_const_string(snum, "fileid", "mapping", "fsname");
	algorithm = lp_parm_const_string(snum, "fileid", "algorithm",
					 algorithm);
	if (strcmp(algorithm, value) == 0 ||
	    strcmp(algorithm, "hostname") == 0) {
		return FIT;
	}
	if (strcmp(value, "fsname") == 0 &&
	    strncmp(algorithm, "fsname_", 7) == 0) {
		return FIT;
	}
	return UNKNOWN;
}

static enum fitness has_setting(const char *parameter, const char *value,
				void *private_data)
{
	int snum = *(const int *)private_data;
	bool has;

	if (strcmp(parameter, "fileid:algorithm") == 0) {
		return has_algorithm(snum, value);
	}
	if (strcmp(parameter, "vfs objects") == 0) {
		has = has_module(snum, value);
	} else if (strcmp(parameter, "smbd force process locks") == 0) {
		has = lp_smbd_force_process_locks(snum);
	} else if (strcmp(parameter, "kernel oplocks") == 0) {
		has = !lp_kernel_oplocks(snum);
	} else if (strcmp(parameter, "kernel share modes") == 0) {
		has = !lp_kernel_share_modes(snum);
	} else {
		has = false;
	}
	return has ? FIT : UNFIT;
}

/* ---- tree connect -------------------------------------------------------- */

static void ask(TALLOC_CTX *mem_ctx, struct connection_struct *conn,
		struct gate_answer *answer)
{
	static const struct gate_places places = {
		.statedir = STATEDIR,
		.rundir = RUNDIR,
		.mountinfo = MOUNTINFO,
		.command = COMMAND,
	};
	int snum = SNUM(conn);
	int timeout_s = lp_parm_int(snum, MODULE, "timeout", 5);
	struct gate_question question = {
		.path = conn->connectpath,
		.scope = parameter(snum, "scope", scopes,
				   lp_clustering() ? SCOPE_CLUSTER
						   : SCOPE_LOCAL),
		.max_age_s = MAX(lp_parm_int(snum, MODULE, "max age", 86400),
				 0),
		.timeout_ms = MIN(MAX(timeout_s, 1), MAX_TIMEOUT_S) * 1000,
		.has = has_setting,
		.private_data = &snum,
	};
	const char *wrong = NULL;
	bool ok;

	ok = wanted_uses(conn, &question.uses, &wrong);
	if (!ok) {
		answer->fitness = UNKNOWN;
		answer->reason = talloc_asprintf(
			mem_ctx, "there is no use '%s'", wrong);
		answer->remedy = "smb.conf: `" MODULE ":for`";
		return;
	}
	if (question.uses == 0) {
		answer->fitness = FIT;
		return;
	}
	ok = is_elsewhere(mem_ctx, snum, question.uses, answer);
	if (!ok) {
		gate_ask(mem_ctx, &places, &question, answer);
	}
}

/* One line, at most once a minute for a share */
static void pingpong_log(const struct connection_struct *conn,
			 const char *service,
			 const struct gate_answer *answer, bool refused)
{
	bool may = gate_may_say(RUNDIR, service, SAY_INTERVAL_S);

	if (!may) {
		return;
	}
	DBG_ERR("share [%s], path '%s', is %s: %s. Remedy: %s.\n", service,
		conn->connectpath,
		refused ? "refused" :
		answer->fitness == UNKNOWN ? "let in, its fitness unknown" :
		"let in, though unfit",
		answer->reason != NULL ? answer->reason : "no memory",
		answer->remedy != NULL ? answer->remedy : "none");
}

/* Is the share to be refused? */
static bool is_refused(struct connection_struct *conn, const char *service,
		       enum mode mode)
{
	TALLOC_CTX *frame = talloc_stackframe();
	struct gate_answer answer = {};
	enum on_unknown on_unknown = ALLOW;
	bool refused = false;

	ask(frame, conn, &answer);
	if (answer.fitness == UNKNOWN) {
		on_unknown = parameter(SNUM(conn), "on unknown", on_unknowns,
				       ALLOW);
	}
	if (mode == ENFORCE) {
		refused = answer.fitness == UNFIT || on_unknown == REFUSE;
	}
	if (answer.fitness != FIT) {
		pingpong_log(conn, service, &answer, refused);
	}
	TALLOC_FREE(frame);
	return refused;
}

static int pingpong_connect(struct vfs_handle_struct *handle,
			    const char *service, const char *user)
{
	struct connection_struct *conn = handle->conn;
	enum mode mode;
	bool refused;

	if (IS_IPC(conn) || IS_PRINT(conn)) {
		return SMB_VFS_NEXT_CONNECT(handle, service, user);
	}
	mode = parameter(SNUM(conn), "mode", modes, ENFORCE);
	if (mode != OFF) {
		refused = is_refused(conn, service, mode);
		if (refused) {
			errno = EPERM;
			return -1;
		}
	}
	return SMB_VFS_NEXT_CONNECT(handle, service, user);
}

static struct vfs_fn_pointers vfs_pingpong_fns = {
	.connect_fn = pingpong_connect,
};

static_decl_vfs;
NTSTATUS vfs_pingpong_init(TALLOC_CTX *ctx)
{
	NTSTATUS status;
	int class;

	(void)ctx;
	status = smb_register_vfs(SMB_VFS_INTERFACE_VERSION, MODULE,
				  &vfs_pingpong_fns);
	if (!NT_STATUS_IS_OK(status)) {
		return status;
	}
	class = debug_add_class(MODULE);
	if (class == -1) {
		DBG_ERR("no debug class of its own, using that of vfs\n");
	} else {
		vfs_pingpong_debug_level = class;
	}
	return NT_STATUS_OK;
}
