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

/* A verdict that changes is heeded so much later at most. */
#define TRUST_MS 1000

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

/* ---- parameters ---------------------------------------------------------- */

/* A value that is none is told by lp_parm_enum(); the default stands then. */
static int parameter(int snum, const char *name, const struct enum_list *list,
		     int otherwise)
{
	int value;

	value = lp_parm_enum(snum, MODULE, name, list, otherwise);
	return value != -1 ? value : otherwise;
}

/* ---- the share ----------------------------------------------------------- */

/* Settings with a type, and without those that smbd reads for itself */
static const struct {
	const char *type;
	const char *option;
} parametric[] = {
	{"fileid", "algorithm"},
	{"fileid", "mapping"},
	{"fileid", "fstype deny"},
	{"fileid", "fstype allow"},
	{"fileid", "mntdir deny"},
	{"fileid", "mntdir allow"},
	{"fileid", "nolock_all_inodes"},
	{MODULE, "for"},
	{MODULE, "scope"},
	{MODULE, "max age"},
};

/*
 * Returns 0, ENOMEM, or EINVAL: *wrong, a child of mem_ctx, is a setting that
 * cannot be understood, as it stands in smb.conf.
 */
static int read_settings(TALLOC_CTX *mem_ctx, int snum, struct share *share,
			 const char **wrong)
{
	size_t i;

	share->objects = lp_vfs_objects(snum);
	share->process_locks = lp_smbd_force_process_locks(snum);
	share->kernel_oplocks = lp_kernel_oplocks(snum);
	share->kernel_share_modes = lp_kernel_share_modes(snum);
	if (lp_clustering()) {
		share->scope = SCOPE_CLUSTER;
	}
	for (i = 0; i < ARRAY_SIZE(parametric); i++) {
		const char *type = parametric[i].type;
		const char *option = parametric[i].option;
		const char *value = lp_parm_const_string(snum, type, option,
							 NULL);
		char name[32];
		int ret;

		if (value == NULL) {
			continue;
		}
		snprintf(name, sizeof(name), "%s:%s", type, option);
		ret = share_set(mem_ctx, share, name, value);
		if (ret == EINVAL) {
			*wrong = talloc_asprintf(mem_ctx, "%s = %s", name,
						 value);
		}
		if (ret != 0) {
			return ret;
		}
	}
	return 0;
}

/* ---- tree connect -------------------------------------------------------- */

static void ask(TALLOC_CTX *mem_ctx, struct connection_struct *conn,
		struct share_answer *answer)
{
	static const struct gate_places places = {
		.statedir = STATEDIR,
		.rundir = RUNDIR,
		.mountinfo = MOUNTINFO,
		.command = COMMAND,
		.trust_ms = TRUST_MS,
	};
	int timeout_s = lp_parm_int(SNUM(conn), MODULE, "timeout", 5);
	struct share share;
	const char *wrong = NULL;
	bool elsewhere;
	int ret;

	share_init(&share, conn->connectpath);
	share.posix_locking = lp_posix_locking(conn->params);
	ret = read_settings(mem_ctx, SNUM(conn), &share, &wrong);
	if (ret != 0) {
		answer->fitness = UNKNOWN;
		answer->reason = ret == ENOMEM ? "no memory" :
			talloc_asprintf(mem_ctx, "`%s` cannot be understood",
					wrong);
		answer->remedy = "see vfs_pingpong(8)";
		return;
	}
	if (share_uses(&share) == 0) {
		answer->fitness = FIT;
		return;
	}
	elsewhere = share_elsewhere(mem_ctx, &share, answer);
	if (!elsewhere) {
		timeout_s = MIN(MAX(timeout_s, 1), MAX_TIMEOUT_S);
		gate_ask(mem_ctx, &places, &share, timeout_s * 1000, answer);
	}
}

/* One line, at most once a minute for a share */
static void pingpong_log(const struct connection_struct *conn,
			 const char *service,
			 const struct share_answer *answer, bool refused)
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
	struct share_answer answer = {};
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
