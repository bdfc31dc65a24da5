/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * By what smbd tells files apart: st_dev and st_ino
 */
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "core/checks/catalogue.h"
#include "core/checks/id.h"
#include "core/checks/rounds.h"
#include "core/member/channel.h"

/* ---- id.inode ----------------------------------------------------------- */

#define REOPENINGS 3

static void same_inode(struct round *round)
{
	round->see = SEE_INODE;
	round->sight = AT_ONCE;
	round->setup = false;
	round->means = "st_ino is not the same everywhere and always";
}

static void look_up(struct rounds *r, enum whose whose, const char *name)
{
	struct round *round = round_add(r, whose, PROBE_LOOKUP, 0);

	strcpy(round->req.name, name);
	same_inode(round);
}

static void inode_build(struct rounds *r)
{
	struct round *round = NULL;
	unsigned i;

	round_open_both(r);
	same_inode(round_add(r, MINE, PROBE_STAT, 0));
	same_inode(round_add(r, THEIRS, PROBE_STAT, 1));
	look_up(r, THEIRS, r->file);
	round_write(r, PROBE_WRITE, 0, 0, 1, 1);
	for (i = 0; i < REOPENINGS; i++) {
		round_add(r, THEIRS, PROBE_CLOSE, 1);
		same_inode(round_open(r, THEIRS, 1));
		round_add(r, MINE, PROBE_CLOSE, 0);
		same_inode(round_open(r, MINE, 0));
	}
	round_add(r, THEIRS, PROBE_CLOSE, 1);
	round = round_add(r, MINE, PROBE_RENAME, 0);
	strcpy(round->req.name, r->file);
	strcpy(round->req.name2, r->file2);
	same_inode(round_add(r, MINE, PROBE_STAT, 0));
	look_up(r, MINE, r->file2);
	/* a new name, which nobody has looked up */
	round = round_open(r, THEIRS, 1);
	strcpy(round->req.name, r->file2);
	same_inode(round_add(r, THEIRS, PROBE_STAT, 1));
	look_up(r, THEIRS, r->file2);
	round = round_add(r, MINE, PROBE_UNLINK, 0);
	strcpy(round->req.name, r->file2);
}

static const struct rounds_check inode = {
	.build = inode_build,
	.trials = {
		[RUN_LIGHT] = 2,
		[RUN_QUICK] = 2,
		[RUN_DEFAULT] = 2,
		[RUN_THOROUGH] = 2,
	},
};

static struct tevent_req *inode_send(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     struct run *run,
				     struct check_result *result)
{
	return rounds_send(mem_ctx, ev, run, result, &inode);
}

const struct check check_id_inode = {
	.name = "id.inode",
	.holds = "a file's st_ino is the same on all members, and stays",
	.how = "Each member makes a file; it and another look at its st_ino "
	       "by open, fstat and stat, after closing and opening it again, "
	       "after a write, and after it was renamed.",
	.depends = "CTDB's helper opens the cluster lock's file anew every 5 "
		   "s and gives the lock up when its inode has changed "
		   "(ctdb/server/ctdb_mutex_fcntl_helper.c). smbd keys open "
		   "files, share modes and byte-range locks by st_dev and "
		   "st_ino, in databases common to all nodes "
		   "(source3/modules/vfs_default.c, "
		   "source3/locking/share_mode_lock.c).",
	.remedy = "No Samba setting mends it. Look for a mount option that "
		  "makes the inode numbers the server's (SMB: 'serverino'; "
		  "FUSE: 'use_ino'; overlayfs: 'xino').",
	.doors = DOOR_INIT | DOOR_AGENT | DOOR_COMMAND,
	.send = inode_send,
	.recv = rounds_recv,
};

/* ---- id.device ---------------------------------------------------------- */

const char *fileid_source_verdict(const struct member_info *const *members,
				  unsigned num,
				  const char *(*name)(const char *source))
{
	const char *first = name(members[0]->source);
	unsigned i;

	for (i = 1; i < num; i++) {
		int cmp = strcmp(name(members[i]->source), first);

		if (cmp != 0) {
			return "differ";
		}
	}
	return "agree";
}

const char *fileid_fsid_verdict(const struct member_info *const *members,
				unsigned num)
{
	unsigned i;

	for (i = 0; i < num; i++) {
		if (members[i]->fsid == 0) {
			return "zero";
		}
	}
	for (i = 1; i < num; i++) {
		if (members[i]->fsid != members[0]->fsid) {
			return "differ";
		}
	}
	return "agree";
}

static const char *device_text(TALLOC_CTX *mem_ctx,
			       const struct member_info *mi)
{
	return talloc_asprintf(mem_ctx, "%u:%u", major(mi->st_dev),
			       minor(mi->st_dev));
}

static void device_metrics(struct check_result *result,
			   const struct member_info *const *members,
			   unsigned num)
{
	json_t *devices = json_array(), *sources = json_array();
	json_t *fsids = json_array();
	unsigned i;

	for (i = 0; i < num; i++) {
		char fsid[17];

		snprintf(fsid, sizeof(fsid), "%llx",
			 (unsigned long long)members[i]->fsid);
		json_array_append_new(devices, json_string(
			device_text(result, members[i])));
		json_array_append_new(sources,
				      json_string(members[i]->source));
		json_array_append_new(fsids, json_string(fsid));
	}
	json_object_set_new(result->metrics, "st_dev", devices);
	json_object_set_new(result->metrics, "source", sources);
	json_object_set_new(result->metrics, "fsid", fsids);
	json_object_set_new(
		result->metrics, "algorithms",
		json_pack("{ss ss ss}",
			  "fsname", fileid_source_verdict(members, num,
							  fileid_fsname),
			  "fsid", fileid_fsid_verdict(members, num),
			  "glusterfs_fuse",
			  fileid_source_verdict(members, num,
						glusterfs_fuse_volume)));
}

static void device_differs(struct run *run, struct check_result *result,
			   const struct member_info *const *members,
			   unsigned other)
{
	struct evidence *e = &result->evidence;

	result->outcome = OUTCOME_FAIL;
	result->members = talloc_array(result, unsigned, 2);
	if (result->members != NULL) {
		result->members[0] = 0;
		result->members[1] = other;
	}
	e->operation = "fstat: st_dev";
	e->member = talloc_asprintf(result, "%s against %s",
				    run_member_name(result, run, other),
				    run_member_name(result, run, 0));
	e->expected = device_text(result, members[0]);
	e->seen = device_text(result, members[other]);
	result->why = talloc_asprintf(
		result, "st_dev of one file differs: %s at member %s, %s at "
		"member %s", e->expected, run_member_name(result, run, 0),
		e->seen, run_member_name(result, run, other));
}

struct device_state {
	char unused;
};

/* What there is to know the members said when they started */
static struct tevent_req *device_send(TALLOC_CTX *mem_ctx,
				      struct tevent_context *ev,
				      struct run *run,
				      struct check_result *result)
{
	const struct member_info **members = NULL;
	struct device_state *state = NULL;
	struct tevent_req *req = NULL;
	unsigned num = run_num_members(run);
	unsigned i;

	req = tevent_req_create(mem_ctx, &state, struct device_state);
	if (req == NULL) {
		return NULL;
	}
	members = talloc_array(state, const struct member_info *, num);
	result->members = talloc_array(result, unsigned, num);
	if (members == NULL || result->members == NULL) {
		tevent_req_oom(req);
		return tevent_req_post(req, ev);
	}
	for (i = 0; i < num; i++) {
		members[i] = member_info(run_member(run, i));
		result->members[i] = i;
	}
	device_metrics(result, members, num);
	for (i = 1; i < num; i++) {
		if (members[i]->st_dev != members[0]->st_dev) {
			device_differs(run, result, members, i);
			break;
		}
	}
	tevent_req_done(req);
	return tevent_req_post(req, ev);
}

static int device_recv(struct tevent_req *req)
{
	int ret = channel_req_error(req);

	tevent_req_received(req);
	return ret;
}

const struct check check_id_device = {
	.name = "id.device",
	.holds = "st_dev of the file system is the same on all members",
	.how = "Compares what each member's stat says of the directory. "
	       "metrics.algorithms tells which of vfs_fileid's algorithms "
	       "would give one answer on all members: fsname (the mount's "
	       "source, without /dev/), fsid (f_fsid of statfs; 0 is no "
	       "answer: every file system without one would be the same); and "
	       "whether vfs_glusterfs_fuse would (the source's volume).",
	.depends = "smbd keys open files by st_dev and st_ino (source3/"
		   "modules/vfs_default.c): when st_dev differs, two nodes "
		   "key one file differently, and conflicting opens go "
		   "unseen. vfs_fileid(8) replaces st_dev (source3/modules/"
		   "vfs_fileid.c).",
	.remedy = "'vfs objects = fileid' with an 'fileid:algorithm' that "
		  "metrics.algorithms shows to agree, on all nodes: fsname "
		  "first, else fsid. Where neither does, mount from a source "
		  "that is written the same on every node. On GlusterFS 'vfs "
		  "objects = glusterfs_fuse' does as well.",
	.doors = DOOR_AGENT | DOOR_COMMAND,
	.send = device_send,
	.recv = device_recv,
};
