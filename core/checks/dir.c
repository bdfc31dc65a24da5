/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>

#include "core/checks/catalogue.h"
#include "core/checks/rounds.h"

static struct round *named(struct rounds *r, enum whose whose,
			   enum probe_op op, const char *name)
{
	struct round *round = round_add(r, whose, op, 0);

	strcpy(round->req.name, name);
	return round;
}

/* By stat and in a listing */
static void is_listed(struct rounds *r, const char *name, uint64_t times,
		      const char *means)
{
	struct round *round = named(r, THEIRS, PROBE_LIST, name);

	round->see = SEE_COUNT;
	round->expected = times;
	round->sight = SEEN;
	round->means = means;
}

static void is_there(struct rounds *r, const char *name, const char *means)
{
	struct round *round = named(r, THEIRS, PROBE_LOOKUP, name);

	round->sight = SEEN;
	round->means = means;
	is_listed(r, name, 1, means);
}

static void is_gone(struct rounds *r, const char *name, const char *means)
{
	struct round *round = named(r, THEIRS, PROBE_LOOKUP, name);

	round->see = SEE_ERRNO;
	round->expected = ENOENT;
	round->sight = SEEN;
	round->means = means;
	is_listed(r, name, 0, means);
}

/* Nobody looks a name up before its maker has said that it is there */
static void visibility_build(struct rounds *r)
{
	named(r, MINE, PROBE_OPEN, r->file)->req.make = true;
	is_there(r, r->file, "a new file is not seen");
	round_add(r, MINE, PROBE_CLOSE, 0);
	strcpy(named(r, MINE, PROBE_RENAME, r->file)->req.name2, r->file2);
	is_there(r, r->file2, "the new name of a renamed file is not seen");
	is_gone(r, r->file, "the old name of a renamed file is still seen");
	named(r, MINE, PROBE_UNLINK, r->file2);
	is_gone(r, r->file2, "a file that was unlinked is still seen");
}

static const struct rounds_check visibility = {
	.build = visibility_build,
	.new_names = true,
	.trials = {
		[RUN_LIGHT] = 2,
		[RUN_QUICK] = 4,
		[RUN_DEFAULT] = 6,
		[RUN_THOROUGH] = 6,
	},
};

static struct tevent_req *visibility_send(TALLOC_CTX *mem_ctx,
					  struct tevent_context *ev,
					  struct run *run,
					  struct check_result *result)
{
	return rounds_send(mem_ctx, ev, run, result, &visibility);
}

const struct check check_dir_visibility = {
	.name = "dir.visibility",
	.holds = "what one member creates, renames and unlinks the others see",
	.how = "Each member creates, renames and unlinks files with names "
	       "that nobody has used before; each time another looks for "
	       "the names by stat and in a listing of the directory. Seen "
	       "within 1 s is a pass, later is slow, and not although the "
	       "attribute cache's time is over a failure.",
	.depends = "smbd looks names up on the file system at each open and "
		   "rename (source3/smbd/filename.c, source3/smbd/open.c), "
		   "lists directories for clients (source3/smbd/dir.c), and "
		   "tells them by change notify what other nodes' clients "
		   "did, which they then look for (source3/smbd/notify.c).",
	.remedy = "Mount with shorter times for names (FUSE: entry time-out "
		  "and negative time-out 0; NFS: 'lookupcache=none' or a "
		  "short 'acdirmax'; sshfs: 'dir_cache=no').",
	.doors = DOOR_COMMAND,
	.send = visibility_send,
	.recv = rounds_recv,
};
