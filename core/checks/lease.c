/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <fcntl.h>
#include <string.h>

#include "core/checks/catalogue.h"
#include "core/checks/operation.h"
#include "core/checks/rounds.h"

/* Refused by one is told for all: what one can't have, nobody relies on */
static void lease_note(struct rounds *r, unsigned member,
		       const struct probe_answer *answer)
{
	json_t *metrics = r->result->metrics;
	json_t *lease = json_object_get(metrics, "lease");

	(void)member;
	if (answer->err != 0) {
		json_object_set_new(metrics, "lease", json_string("refused"));
		json_object_set_new(metrics, "errno", json_string(
			errno_text(r, answer->err)));
		return;
	}
	if (lease == NULL) {
		json_object_set_new(metrics, "lease", json_string("granted"));
	}
}

static void break_build(struct rounds *r)
{
	struct round *round = NULL;

	round_open(r, MINE, 0)->req.make = true;
	round = round_add(r, MINE, PROBE_LEASE, 0);
	round->req.type = F_WRLCK;
	round->see = SEE_ANYTHING;
	round->note = lease_note;
	round = round_add(r, THEIRS, PROBE_LOOKUP, 0);
	strcpy(round->req.name, r->file);
	round->sight = SOON;
	round->setup = true;
	/* EWOULDBLOCK until the holder has let go */
	round_open(r, THEIRS, 1);
	round = round_add(r, MINE, PROBE_LEASED, 0);
	round->see = SEE_NO_LEASE;
	round->means = "a lease is not broken when another member opens the "
		       "file";
}

static const struct rounds_check lease_break = {
	.build = break_build,
	.trials = {
		[RUN_LIGHT] = 1,
		[RUN_QUICK] = 2,
		[RUN_DEFAULT] = 2,
		[RUN_THOROUGH] = 2,
	},
};

static struct tevent_req *break_send(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     struct run *run,
				     struct check_result *result)
{
	return rounds_send(mem_ctx, ev, run, result, &lease_break);
}

const struct check check_lease_break = {
	.name = "lease.break",
	.holds = "a lease is refused, or broken by another member's open",
	.how = "Each member takes a write lease on a new file (F_SETLEASE), "
	       "another opens the file for writing, and the holder, as smbd "
	       "does, lets go when it is told of the break. metrics.lease: "
	       "'refused' (nothing to lose, and nothing to gain by kernel "
	       "oplocks) or 'granted'.",
	.depends = "With 'kernel oplocks = yes' smbd takes a lease for each "
		   "oplock (source3/smbd/oplock_linux.c) and relies on its "
		   "break when anybody else opens the file (smb.conf(5)). "
		   "The default is no, which asks nothing of the file system.",
	.remedy = "Keep 'kernel oplocks = no': oplocks among Samba's own "
		  "nodes are broken through CTDB, without leases.",
	.doors = DOOR_COMMAND,
	.spare = true,
	.send = break_send,
	.recv = rounds_recv,
};
