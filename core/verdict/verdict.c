/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <string.h>

#include "core/verdict/settings.h"
#include "core/verdict/verdict.h"

/* Increments are counted under locks: where those are broken, lost ones say
 * nothing of the data. */
static const char *const counted_under_locks[] = {
	"io.increment", "mmap.increment", NULL,
};
static const char *const locks[] = {
	"lock.supported", "lock.exclusion", "lock.ring", NULL,
};

const struct check_result *verdict_result(const struct verdict_input *input,
					  const char *name)
{
	size_t i;

	for (i = 0; i < input->num_results; i++) {
		if (strcmp(input->results[i]->check->name, name) == 0) {
			return input->results[i];
		}
	}
	return NULL;
}

bool verdict_broken(const struct check_result *result)
{
	if (result == NULL) {
		return false;
	}
	switch (result->outcome) {
	case OUTCOME_FAIL:
	case OUTCOME_HUNG:
	case OUTCOME_UNSUPPORTED:
		return true;
	case OUTCOME_SLOW:
		return result->beyond_limit;
	case OUTCOME_PASS:
	case OUTCOME_SKIPPED:
		break;
	}
	return false;
}

static bool locks_broken(const struct verdict_input *input)
{
	const char *const *name = NULL;
	bool broken = false;

	for (name = locks; *name != NULL && !broken; name++) {
		broken = verdict_broken(verdict_result(input, *name));
	}
	return broken;
}

/* What a result says, in one line: the check's own words, or its evidence. */
static char *told(TALLOC_CTX *mem_ctx, const struct check_result *result)
{
	const struct evidence *e = &result->evidence;

	if (result->why != NULL) {
		bool local = json_is_true(
			json_object_get(result->metrics, "local"));

		return talloc_asprintf(
			mem_ctx, "%s%s",
			local ? "locks are local to each node: " : "",
			result->why);
	}
	if (e->operation != NULL && e->seen != NULL) {
		return talloc_asprintf(
			mem_ctx, "%s%s%s: %s instead of %s", e->operation,
			e->member != NULL ? " at " : "",
			e->member != NULL ? e->member : "", e->seen,
			e->expected != NULL ? e->expected : "success");
	}
	if (result->outcome == OUTCOME_UNSUPPORTED && result->err != 0) {
		return talloc_asprintf(mem_ctx, "refused: %s",
				       strerror(result->err));
	}
	return talloc_strdup(mem_ctx, outcome_name(result->outcome));
}

/* "WHAT WAS SEEN (first.check; also second.check)" */
static const char *reason_for(TALLOC_CTX *mem_ctx,
			      const struct verdict_input *input,
			      const char *const *because)
{
	const struct check_result *first = verdict_result(input, because[0]);
	char *what = told(mem_ctx, first);
	char *others = names_join(mem_ctx, because + 1);
	char *reason = NULL;

	if (what != NULL && others != NULL) {
		reason = talloc_asprintf(mem_ctx, "%s (%s%s%s)", what,
					 because[0],
					 because[1] != NULL ? "; also " : "",
					 others);
	}
	talloc_free(what);
	talloc_free(others);
	return reason;
}

/* What the needs of one use came to */
struct findings {
	const char **broken;
	const char **slow;
	const char **untested;
	const char **untested_why;	/* of each, "": none */
	const char **vain;	/* fail, which says nothing without locks */
	bool any;		/* a need was tested and holds */
	bool hung;
};

static bool names_add_all(TALLOC_CTX *mem_ctx, const char ***names,
			  const char *const *more)
{
	bool ok = true;

	for (; more != NULL && *more != NULL && ok; more++) {
		ok = names_add(mem_ctx, names, *more);
	}
	return ok;
}

static bool find_untested(TALLOC_CTX *mem_ctx, struct findings *found,
			  const char *name, const char *why)
{
	bool ok;

	ok = names_add(mem_ctx, &found->untested, name);
	if (!ok) {
		return false;
	}
	return names_add(mem_ctx, &found->untested_why,
			 why != NULL ? why : "");
}

/* Those from `first` on that have its reason: "a, b (REASON)" */
static char *untested_group(TALLOC_CTX *mem_ctx, const struct findings *found,
			    size_t first)
{
	const char *why = found->untested_why[first];
	const char **names = NULL;
	char *list = NULL, *group = NULL;
	size_t i;

	for (i = first; found->untested[i] != NULL; i++) {
		bool ok = strcmp(found->untested_why[i], why) != 0 ||
			  names_add(mem_ctx, &names, found->untested[i]);

		if (!ok) {
			return NULL;
		}
	}
	list = names_join(mem_ctx, names);
	talloc_free(names);
	if (list == NULL || why[0] == '\0') {
		return list;
	}
	group = talloc_asprintf(mem_ctx, "%s (%s)", list, why);
	talloc_free(list);
	return group;
}

static bool told_before(const struct findings *found, size_t i)
{
	size_t j;

	for (j = 0; j < i; j++) {
		if (strcmp(found->untested_why[j],
			   found->untested_why[i]) == 0) {
			return true;
		}
	}
	return false;
}

/* "a, b: what fails there says nothing of data where locks do not work" */
static char *vain_reason(TALLOC_CTX *mem_ctx, const char *const *names)
{
	char *list = names_join(mem_ctx, names);
	char *reason = NULL;

	if (list != NULL) {
		reason = talloc_asprintf(mem_ctx, "%s: what fails there says "
					 "nothing of data where locks do not "
					 "work", list);
	}
	talloc_free(list);
	return reason;
}

/* "not tested: a, b (REASON), c (REASON)" */
static const char *untested_reason(TALLOC_CTX *mem_ctx,
				   const struct findings *found)
{
	char *reason = NULL;
	size_t i;

	if (found->untested == NULL) {
		return vain_reason(mem_ctx, found->vain);
	}
	reason = talloc_strdup(mem_ctx, "not tested: ");
	for (i = 0; found->untested[i] != NULL && reason != NULL; i++) {
		char *group = NULL;
		bool told = told_before(found, i);

		if (told) {
			continue;
		}
		group = untested_group(mem_ctx, found, i);
		if (group == NULL) {
			talloc_free(reason);
			return NULL;
		}
		reason = talloc_asprintf_append(reason, "%s%s",
						i > 0 ? ", " : "", group);
		talloc_free(group);
	}
	return reason;
}

static bool can_be_asked(const struct verdict_input *input, const char *name)
{
	const struct check *const *check = input->catalogue;

	if (check == NULL) {
		check = check_catalogue;
	}
	for (; *check != NULL; check++) {
		if (strcmp((*check)->name, name) == 0) {
			return true;
		}
	}
	return false;
}

static bool find_need(TALLOC_CTX *mem_ctx, const struct verdict_input *input,
		      const char *name, struct findings *found)
{
	const struct check_result *result = verdict_result(input, name);
	bool vain, broken;

	if (result == NULL) {
		return !can_be_asked(input, name) ||
		       find_untested(mem_ctx, found, name, NULL);
	}
	if (result->outcome == OUTCOME_SKIPPED) {
		return find_untested(mem_ctx, found, name, result->why);
	}
	vain = result->outcome == OUTCOME_FAIL &&
	       names_have(counted_under_locks, name) && locks_broken(input);
	if (vain) {
		return names_add(mem_ctx, &found->vain, name);
	}
	broken = verdict_broken(result);
	if (broken) {
		found->hung |= result->outcome == OUTCOME_HUNG;
		return names_add(mem_ctx, &found->broken, name);
	}
	found->any = true;
	if (result->outcome == OUTCOME_SLOW) {
		return names_add(mem_ctx, &found->slow, name);
	}
	return true;
}

/*
 * Lost updates beside a share that is fit: who reads the report must be told
 * why the one does not make the other unfit.
 */
static bool tell_lost_updates(TALLOC_CTX *mem_ctx,
			      const struct verdict_input *input,
			      struct use_verdict *v)
{
	const char *name = "io.increment";
	const struct check_result *result = verdict_result(input, name);

	if (result == NULL || result->outcome != OUTCOME_FAIL) {
		return true;
	}
	v->reason = locks_broken(input)
		? vain_reason(mem_ctx, (const char *[]){ name, NULL })
		: talloc_asprintf(mem_ctx, "%s fails: that is for those who "
				  "lock, see %s", name,
				  use_name(USE_POSIX_LOCKING));
	return v->reason != NULL;
}

/* What gives a file one id on all members, where that was tested */
static bool find_ids(struct verdict *verdict,
		     const struct verdict_input *input)
{
	static const struct {
		const char *algorithm, *answer, *ids;
	} table[] = {
		{"fsname", "agree", IDS_FSNAME},
		{"fsid", "agree", IDS_FSID},
		{"fsid", "zero", IDS_FSID_ZERO},
		{"glusterfs_fuse", "agree", IDS_GLUSTERFS_FUSE},
	};
	const struct check_result *device = verdict_result(input, "id.device");
	struct use_verdict *v = &verdict->uses[USE_FILE_ID];
	json_t *tested = NULL;
	bool ok = true;
	size_t i;

	if (device == NULL || !input->same_directory) {
		return true;
	}
	tested = json_object_get(device->metrics, "algorithms");
	if (device->outcome == OUTCOME_PASS) {
		ok = names_add(verdict, &v->ids, IDS_ST_DEV);
	}
	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *answer = json_string_value(
			json_object_get(tested, table[i].algorithm));

		if (answer != NULL && strcmp(answer, table[i].answer) == 0) {
			ok = ok && names_add(verdict, &v->ids, table[i].ids);
		}
	}
	return ok;
}

static bool judge_use(struct verdict *verdict,
		      const struct verdict_input *input, enum use use)
{
	struct use_verdict *v = &verdict->uses[use];
	struct findings found = {};
	const char *const *need = NULL;
	bool ok;

	for (need = use_needs(use); *need != NULL; need++) {
		ok = find_need(verdict, input, *need, &found);
		if (!ok) {
			return false;
		}
	}

	v->fitness = UNKNOWN;
	if (!input->same_directory) {
		v->reason = talloc_strdup(
			verdict, input->not_same != NULL ?
				 input->not_same :
				 "the places do not show one directory");
		return v->reason != NULL;
	}
	if (found.broken != NULL) {
		v->fitness = UNFIT;
		v->hung = found.hung;
		v->because = found.broken;
		v->reason = reason_for(verdict, input, found.broken);
		return v->reason != NULL;
	}
	if (found.untested != NULL || found.vain != NULL) {
		v->reason = untested_reason(verdict, &found);
		ok = names_add_all(verdict, &found.untested, found.vain);
		v->because = found.untested;
		return ok && v->reason != NULL;
	}
	if (!found.any) {
		v->reason = "nothing was tested";
		return true;
	}
	if (verdict->one_node) {
		v->reason = "only one node tested";
		return true;
	}
	v->fitness = FIT;
	if (found.slow != NULL) {
		v->because = found.slow;
		v->reason = reason_for(verdict, input, found.slow);
		return v->reason != NULL;
	}
	return use != USE_SHARE || tell_lost_updates(verdict, input, v);
}

static bool one_node(const struct verdict_input *input)
{
	bool same = true;
	size_t i;

	for (i = 1; i < input->num_members && same; i++) {
		same = member_same_node(input->members[0], input->members[i]);
	}
	return same;
}

static void no_null_lists(struct verdict *verdict)
{
	static const char *none[] = {NULL};
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		struct use_verdict *v = &verdict->uses[i];

		v->because = v->because != NULL ? v->because : none;
		v->mended_by = v->mended_by != NULL ? v->mended_by : none;
	}
}

int verdict_judge(TALLOC_CTX *mem_ctx, const struct verdict_input *input,
		  struct verdict **verdict)
{
	struct verdict *v = NULL;
	unsigned i;
	int ret;

	v = talloc_zero(mem_ctx, struct verdict);
	if (v == NULL) {
		return ENOMEM;
	}
	v->light = input->catalogue != NULL;
	v->scope = one_node(input) ? SCOPE_LOCAL : SCOPE_CLUSTER;
	v->one_node = v->scope == SCOPE_LOCAL && !input->local;
	for (i = 0; i < USE_COUNT; i++) {
		bool ok = judge_use(v, input, i);

		if (!ok) {
			talloc_free(v);
			return ENOMEM;
		}
	}
	ret = find_ids(v, input) ? settings_compute(input, v) : ENOMEM;
	if (ret != 0) {
		talloc_free(v);
		return ret;
	}
	no_null_lists(v);
	*verdict = v;
	return 0;
}

int verdict_exit(const struct verdict *verdict, unsigned uses_asked)
{
	bool hung = false, unfit = false, unknown = false, mended = false;
	unsigned i;

	for (i = 0; i < USE_COUNT; i++) {
		const struct use_verdict *v = &verdict->uses[i];

		if ((uses_asked & USE_BIT(i)) == 0) {
			continue;
		}
		unknown |= v->fitness == UNKNOWN;
		if (v->fitness != UNFIT) {
			continue;
		}
		hung |= v->hung;
		unfit |= v->mended_by[0] == NULL;
		mended |= v->mended_by[0] != NULL;
	}
	if (hung) {
		return 3;
	}
	if (unfit) {
		return 2;
	}
	if (unknown) {
		return 4;
	}
	return mended ? 1 : 0;
}
