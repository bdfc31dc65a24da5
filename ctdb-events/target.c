/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "ctdb-events/target.h"

#define MOUNTINFO "/proc/self/mountinfo"

bool target_is_lock(const struct target *target)
{
	return strcmp(target->name, TARGET_CLUSTER_LOCK) == 0;
}

struct target *target_of_lock(TALLOC_CTX *mem_ctx, const char *directory)
{
	struct target *target = talloc_zero(mem_ctx, struct target);

	if (target == NULL) {
		return NULL;
	}
	target->name = TARGET_CLUSTER_LOCK;
	target->whose = "the cluster lock";
	target->uses = USE_BIT(USE_CLUSTER_LOCK);
	if (directory == NULL) {
		return target;
	}
	target->directory = talloc_strdup(target, directory);
	if (target->directory == NULL) {
		talloc_free(target);
		return NULL;
	}
	return target;
}

/* ---- by the uses alone -------------------------------------------------- */

static const char *remedy_of(const struct use_verdict *use)
{
	const struct check *check = NULL;

	if (use->because != NULL && use->because[0] != NULL) {
		check = check_by_name(use->because[0]);
	}
	return check != NULL ? check->remedy : NULL;
}

/* unfit is worse than unknown is worse than fit */
static bool is_worse(enum fitness a, enum fitness b)
{
	static const unsigned rank[] = {
		[FIT] = 0, [UNKNOWN] = 1, [UNFIT] = 2,
	};

	return rank[a] > rank[b];
}

static void judge_uses(const struct target *target,
		       const struct verdict *verdict,
		       struct judgement *judgement)
{
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		const struct use_verdict *use = &verdict->uses[i];

		if ((target->uses & USE_BIT(i)) == 0 ||
		    !is_worse(use->fitness, judgement->fitness)) {
			continue;
		}
		*judgement = (struct judgement){
			use->fitness, use->hung, use->reason, remedy_of(use),
		};
	}
}

/* ---- by the shares' settings -------------------------------------------- */

/* The mounts that fileid chooses among: of another node only the one that the
 * member was on is known. */
static int mounts_of(TALLOC_CTX *mem_ctx, const struct member_info *member,
		     struct mount_line ***mounts)
{
	struct mount_line *mount = NULL;
	struct mount_line **one = NULL;
	int ret;

	ret = mount_by_id(mem_ctx, MOUNTINFO, member->mount_id, &mount);
	if (ret == 0 && strcmp(mount->line, member->mount_line) == 0) {
		return mounts_like(mem_ctx, MOUNTINFO, mount, mounts);
	}
	one = talloc_zero_array(mem_ctx, struct mount_line *, 2);
	if (one == NULL) {
		return ENOMEM;
	}
	*mounts = one;
	return mount_line_parse(one, member->mount_line, &one[0]);
}

/* The verdict as a record of the store, whose strings it borrows */
static int as_record(TALLOC_CTX *mem_ctx, const struct verdict *verdict,
		     const struct member_info *member,
		     struct stored_record *record)
{
	time_t now = time(NULL);
	unsigned i;

	*record = (struct stored_record){
		.settings = verdict->settings,
		.num_settings = verdict->num_settings,
	};
	for (i = 0; i < USE_COUNT; i++) {
		const struct use_verdict *use = &verdict->uses[i];

		record->uses[i] = (struct stored_use){
			.present = true,
			.fitness = use->fitness,
			.hung = use->hung,
			.scope = verdict->scope,
			.when = now,
			.because = use->because,
			.mended_by = use->mended_by,
			.reason = use->reason,
			.ids = use->ids,
		};
	}
	if (member == NULL) {
		return 0;
	}
	record->fstype = member->fstype;
	record->source = member->source;
	record->options = member->options;
	return mounts_of(mem_ctx, member, &record->mounts);
}

/* With whom it was tested is not asked here. */
static void judge_share(TALLOC_CTX *mem_ctx, const struct share *share,
			const struct stored_record *record,
			struct judgement *judgement)
{
	struct share one = *share;
	struct share_answer answer = {};

	one.scope = SCOPE_LOCAL;
	share_judge(mem_ctx, &one, record, time(NULL), &answer);
	if (is_worse(answer.fitness, judgement->fitness)) {
		judgement->fitness = answer.fitness;
		judgement->reason = answer.reason;
		judgement->remedy = answer.remedy;
	}
}

static bool any_hung(const struct target *target,
		     const struct verdict *verdict)
{
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		if ((target->uses & USE_BIT(i)) != 0 &&
		    verdict->uses[i].hung) {
			return true;
		}
	}
	return false;
}

void target_judge(TALLOC_CTX *mem_ctx, const struct target *target,
		  const struct verdict *verdict,
		  const struct member_info *member,
		  struct judgement *judgement)
{
	struct stored_record record;
	size_t i;
	int ret;

	*judgement = (struct judgement){ .fitness = FIT };
	if (target->num_shares == 0) {
		judge_uses(target, verdict, judgement);
		return;
	}
	ret = as_record(mem_ctx, verdict, member, &record);
	if (ret != 0) {
		*judgement = (struct judgement){
			.fitness = UNKNOWN, .reason = strerror(ret),
		};
		return;
	}
	for (i = 0; i < target->num_shares; i++) {
		judge_share(mem_ctx, &target->shares[i], &record, judgement);
	}
	judgement->hung = judgement->fitness == UNFIT &&
			  any_hung(target, verdict);
}
