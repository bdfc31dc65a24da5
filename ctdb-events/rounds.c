/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Divisions: findings; when the next round comes; a round, step by step;
 * what others ask for.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "core/member/channel.h"
#include "ctdb-events/clusterlock.h"
#include "ctdb-events/log.h"
#include "ctdb-events/mmap.h"
#include "ctdb-events/rounds.h"

/* The check of one target of a node that runs may take this long */
#define RECHECK_MS 10000

/* When the next round comes: to confirm a verdict that would turn, or to read
 * shares that could not be read; while something is unfit, or another node
 * that starts does not know a share yet */
#define CONFIRM_S 1
#define UNFIT_S 5

#define WORD_MAX 16

struct rounds {
	struct tevent_context *ev;
	const struct rounds_config *config;
	struct round *round;		/* under way, or NULL */
	struct tevent_timer *next;	/* the next one, or NULL */
	struct finding lock;
	struct finding *findings;	/* of the shares' targets */
	size_t num;
	struct shares *shares;		/* as last read; NULL: not yet */
	bool shares_known;		/* or known that they cannot be read */
	bool past_setup;
	const char *trouble;
	struct finding mmap;		/* without a target */
};

struct round {
	struct rounds *rounds;
	char word[WORD_MAX];		/* by which its log lines are found */
	struct ctdb_nodes *nodes;
	const struct target *only;	/* NULL: all */
	bool past_setup;		/* when the shares were asked for */
	size_t at;			/* of findings */
	struct finding *finding;	/* whose check is under way */
	struct across across;
};

static void round_nodes_read(struct tevent_req *subreq);
static void round_lock_read(struct tevent_req *subreq);
static void round_lock_done(struct round *round);
static void round_shares_read(struct tevent_req *subreq);
static void round_check(struct round *round, struct finding *finding);
static void round_checked(struct tevent_req *subreq);
static void round_next(struct round *round);
static void round_mmap(struct round *round);
static void round_mmap_done(struct tevent_req *subreq);

/* ---- findings ----------------------------------------------------------- */

static void forget_finding(struct finding *finding)
{
	TALLOC_FREE(finding->lines);
	TALLOC_FREE(finding->result);
}

static bool enforces(const struct rounds *rounds)
{
	return rounds->config->options->enforce;
}

static char *line_of_round(TALLOC_CTX *mem_ctx, const struct round *round,
			   const char *line)
{
	return talloc_asprintf(mem_ctx, "%s [run %s]", line, round->word);
}

/* The lines as they are told, with the round's word */
static const char **told_lines(struct rounds *rounds,
			       const struct round *round, const char **lines)
{
	const char **told = NULL;
	bool ok = true;

	for (; ok && *lines != NULL; lines++) {
		char *line = line_of_round(rounds, round, *lines);

		ok = line != NULL && names_add(rounds, &told, line);
		if (ok) {
			talloc_steal(told, line);
		}
	}
	return told;
}

static void take_finding(struct round *round, struct finding *finding,
			 bool refused, const char **lines)
{
	struct rounds *rounds = round->rounds;
	bool turned = finding->known && finding->refused != refused;
	const char **line = NULL;

	TALLOC_FREE(finding->lines);
	finding->lines = told_lines(rounds, round, lines);
	finding->refused = refused;
	finding->known = true;
	/* what is asked for in an event the script logs */
	for (line = finding->lines; turned && line != NULL && *line != NULL;
	     line++) {
		log_line("%s", *line);
	}
}

/* What a check has found; two that agree turn a node that runs. */
static void find(struct round *round, struct finding *finding, bool refused,
		 const char **lines)
{
	bool runs = target_is_lock(finding->target)
			    ? round->rounds->config->self->running
			    : round->rounds->config->self->serving;
	bool turns = runs && finding->refused != refused;

	finding->when = time(NULL);
	if (turns && !finding->doubted) {
		finding->doubted = true;
		return;
	}
	finding->doubted = false;
	take_finding(round, finding, refused, lines);
}

/* The cluster lock's finding without a check, of one line */
static void find_line(struct round *round, bool refused, char *line)
{
	const char *lines[] = { line, NULL };

	if (line == NULL) {
		lines[0] = "no memory";
	}
	find(round, &round->rounds->lock, refused, lines);
}

/* ---- when the next one comes -------------------------------------------- */

static void next_round(struct tevent_context *ev, struct tevent_timer *te,
		       struct timeval now, void *private_data)
{
	struct rounds *rounds = talloc_get_type_abort(private_data,
						      struct rounds);

	(void)ev;
	(void)te;
	(void)now;
	rounds->next = NULL;
	rounds_begin(rounds);
}

static void set_next(struct rounds *rounds, unsigned seconds)
{
	TALLOC_FREE(rounds->next);
	rounds->next = tevent_add_timer(
		rounds->ev, rounds, tevent_timeval_current_ofs(seconds, 0),
		next_round, rounds);
}

void rounds_hurry(struct rounds *rounds, unsigned seconds)
{
	if (rounds->round == NULL) {
		set_next(rounds, seconds);
	}
}

/* One that starts will know the target soon. */
static bool may_know_soon(const struct across_result *result)
{
	unsigned i;

	for (i = 0; result != NULL && i < result->num_peers; i++) {
		const struct across_peer *peer = &result->peers[i];

		if (peer->unaware && !peer->running) {
			return true;
		}
	}
	return false;
}

static void schedule(struct rounds *rounds)
{
	unsigned seconds = rounds->config->options->recheck_interval_s;
	const struct finding *finding = NULL;
	size_t i;

	for (i = 0; (finding = rounds_finding(rounds, i)) != NULL; i++) {
		if (finding->doubted) {
			seconds = CONFIRM_S;
		} else if ((finding->refused ||
			    may_know_soon(finding->result)) &&
			   seconds > UNFIT_S) {
			seconds = UNFIT_S;
		}
	}
	if (rounds->config->self->running && !rounds->shares_known) {
		seconds = CONFIRM_S;
	}
	set_next(rounds, seconds);
}

static void round_over(struct round *round)
{
	struct rounds *rounds = round->rounds;

	rounds->round = NULL;
	talloc_free(round);
	schedule(rounds);
	rounds->config->news_fn(true, rounds->config->private_data);
}

/* ---- a round ------------------------------------------------------------ */

static void make_word(struct round *round)
{
	uint32_t n = 0;
	ssize_t got = getrandom(&n, sizeof(n), 0);

	(void)got;
	snprintf(round->word, sizeof(round->word), "%08x", n);
}

static int begin(struct rounds *rounds, const struct target *only)
{
	struct round *round = talloc_zero(rounds, struct round);
	struct tevent_req *subreq = NULL;

	if (round == NULL) {
		return ENOMEM;
	}
	round->rounds = rounds;
	round->only = only;
	make_word(round);
	subreq = nodes_send(round, rounds->ev,
			    &rounds->config->options->ctdb);
	if (subreq == NULL) {
		talloc_free(round);
		return ENOMEM;
	}
	tevent_req_set_callback(subreq, round_nodes_read, round);
	TALLOC_FREE(rounds->next);
	rounds->round = round;
	return 0;
}

int rounds_begin(struct rounds *rounds)
{
	return rounds->round == NULL ? begin(rounds, NULL) : 0;
}

static void set_trouble(struct round *round, const char *why)
{
	struct rounds *rounds = round->rounds;
	char *line = NULL;

	if (why != NULL) {
		line = line_of_round(rounds, round, why);
	}
	talloc_free((void *)(uintptr_t)rounds->trouble);
	rounds->trouble = line;
}

/* What is to be checked is not known: a node that starts does not, one that
 * runs goes on by what was known. */
static void give_up(struct round *round, const char *why)
{
	struct rounds *rounds = round->rounds;

	if (rounds->config->self->running) {
		set_trouble(round, why);
		log_line("%s", why);
	} else {
		find_line(round, true, talloc_asprintf(round, "REFUSED: %s",
						       why));
	}
	round_over(round);
}

static void round_nodes_read(struct tevent_req *subreq)
{
	struct round *round = tevent_req_callback_data(subreq, struct round);
	struct rounds *rounds = round->rounds;
	const char *why = NULL;
	int ret;

	ret = nodes_recv(subreq, round, &round->nodes, &why);
	TALLOC_FREE(subreq);
	if (ret == 0 && round->nodes->own == NULL) {
		why = "CTDB's nodes: none of them is this host";
		ret = ENOENT;
	}
	if (ret != 0) {
		give_up(round, why);
		return;
	}
	if (round->only != NULL) {
		round_next(round);
		return;
	}
	subreq = clusterlock_send(round, rounds->ev,
				  &rounds->config->options->ctdb);
	if (subreq == NULL) {
		give_up(round, strerror(ENOMEM));
		return;
	}
	tevent_req_set_callback(subreq, round_lock_read, round);
}

static void lock_is_none(struct round *round, const struct clusterlock *lock)
{
	char *line = NULL;

	if (lock->kind == CLUSTERLOCK_NONE) {
		line = talloc_strdup(round, "no cluster lock is set in "
				     "ctdb.conf: nothing to check before this "
				     "node joins");
	} else {
		line = talloc_asprintf(round, "the cluster lock is no file but "
				       "'%s': nothing to check before this "
				       "node joins", lock->value);
	}
	find_line(round, false, line);
	round_lock_done(round);
}

static void round_lock_read(struct tevent_req *subreq)
{
	struct round *round = tevent_req_callback_data(subreq, struct round);
	struct rounds *rounds = round->rounds;
	struct clusterlock lock;
	int ret;

	ret = clusterlock_recv(subreq, round, &lock);
	TALLOC_FREE(subreq);
	if (ret == 0) {
		ret = rounds_set_lock(rounds, lock.directory);
	}
	if (ret != 0) {
		give_up(round, talloc_asprintf(
			round, "the cluster lock of ctdb.conf%s%s cannot be "
			"read: %s", lock.value != NULL ? " = " : "",
			lock.value != NULL ? lock.value : "", strerror(ret)));
		return;
	}
	if (lock.kind != CLUSTERLOCK_FILE) {
		lock_is_none(round, &lock);
		return;
	}
	round_check(round, &rounds->lock);
}

/* The cluster lock's finding is there. */
static void round_lock_done(struct round *round)
{
	struct rounds *rounds = round->rounds;
	struct tevent_req *subreq = NULL;

	if (!rounds->lock.refused || !enforces(rounds)) {
		rounds->config->self->running = true;
	}
	rounds->config->news_fn(false, rounds->config->private_data);
	if (!rounds->config->self->running) {
		round_over(round);
		return;
	}
	round->past_setup = rounds->past_setup;
	subreq = shares_send(round, rounds->ev, rounds->config->options,
			     rounds->config->worker);
	if (subreq == NULL) {
		round_over(round);
		return;
	}
	tevent_req_set_callback(subreq, round_shares_read, round);
}

/* The findings on targets that are still there are kept. */
static int take_shares(struct rounds *rounds, struct shares *shares)
{
	struct finding *findings = talloc_zero_array(rounds, struct finding,
						     shares->num);
	size_t i, j;

	if (findings == NULL) {
		return ENOMEM;
	}
	for (i = 0; i < shares->num; i++) {
		for (j = 0; j < rounds->num; j++) {
			struct finding *old = &rounds->findings[j];

			if (strcmp(old->target->name,
				   shares->targets[i]->name) == 0) {
				findings[i] = *old;
				*old = (struct finding){
					.target = old->target };
			}
		}
		findings[i].target = shares->targets[i];
	}
	for (j = 0; j < rounds->num; j++) {
		forget_finding(&rounds->findings[j]);
	}
	talloc_free(rounds->findings);
	talloc_free(rounds->shares);
	rounds->shares = talloc_steal(rounds, shares);
	rounds->findings = findings;
	rounds->num = shares->num;
	return 0;
}

static void round_shares_read(struct tevent_req *subreq)
{
	struct round *round = tevent_req_callback_data(subreq, struct round);
	struct rounds *rounds = round->rounds;
	struct shares *shares = NULL;
	const char *why = NULL;
	int ret;

	ret = shares_recv(subreq, round, &shares, &why);
	TALLOC_FREE(subreq);
	if (ret == 0) {
		ret = take_shares(rounds, shares);
	}
	if (ret == 0) {
		rounds->shares_known = true;
		set_trouble(round, NULL);
	} else if (round->past_setup) {
		/* before that a registry cannot be read */
		rounds->shares_known = true;
		set_trouble(round, why != NULL ? why : strerror(ret));
	}
	round_next(round);
}

static void round_next(struct round *round)
{
	struct rounds *rounds = round->rounds;
	struct finding *finding = NULL;

	while (round->at < rounds->num && finding == NULL) {
		struct finding *candidate = &rounds->findings[round->at++];

		if (round->only == NULL || round->only == candidate->target) {
			finding = candidate;
		}
	}
	if (finding != NULL) {
		round_check(round, finding);
	} else if (round->only == NULL && rounds->shares_known) {
		round_mmap(round);
	} else {
		round_over(round);
	}
}

/* All that is checked has been: is `use mmap = no` called for? */
static void round_mmap(struct round *round)
{
	struct rounds *rounds = round->rounds;
	struct tevent_req *subreq = NULL;
	bool samba = shares_has_samba();

	if (!samba) {
		rounds->mmap.known = true;
		round_over(round);
		return;
	}
	subreq = mmap_send(round, rounds->ev, rounds->config->options,
			   rounds->config->worker, rounds->config->mutexes,
			   &rounds->config->self->serving);
	if (subreq == NULL) {
		round_over(round);
		return;
	}
	tevent_req_set_callback(subreq, round_mmap_done, round);
}

/* A line as the last round had it, too: a round's word comes after it */
static bool is_old(const struct finding *finding, const char *line)
{
	const char **old = NULL;

	for (old = finding->lines; old != NULL && *old != NULL; old++) {
		if (strncmp(*old, line, strlen(line)) == 0) {
			return true;
		}
	}
	return false;
}

static void round_mmap_done(struct tevent_req *subreq)
{
	struct round *round = tevent_req_callback_data(subreq, struct round);
	struct finding *finding = &round->rounds->mmap;
	const char *none[] = { NULL };
	const char **lines = NULL, **line = NULL;
	bool refuse = false;
	int ret;

	ret = mmap_recv(subreq, round, &refuse, &lines);
	TALLOC_FREE(subreq);
	for (line = lines; line != NULL && *line != NULL; line++) {
		/* before that the script logs it */
		if (round->rounds->config->self->serving &&
		    !is_old(finding, *line)) {
			log_line("%s [run %s]", *line, round->word);
		}
	}
	if (ret == 0 || !finding->known) {
		/* a node that serves is not turned by it: see mmap.h */
		refuse = refuse && !round->rounds->config->self->serving;
		take_finding(round, finding, refuse,
			     lines != NULL ? lines : none);
	}
	round_over(round);
}

static void round_check(struct round *round, struct finding *finding)
{
	struct rounds *rounds = round->rounds;
	const struct rounds_config *config = rounds->config;
	bool starts = !config->self->running;
	struct tevent_req *subreq = NULL;

	round->finding = finding;
	finding->begun_ms = channel_now_ms();
	round->across = (struct across){
		.options = config->options,
		.worker = config->worker,
		.nodes = round->nodes,
		.reach = config->reach,
		.greeted = config->greeted,
		.target = finding->target,
		.door = starts ? DOOR_INIT : DOOR_AGENT,
		.timeout_ms = starts ? config->options->timeout_s * 1000
				     : RECHECK_MS,
	};
	subreq = inquiry_send(round, rounds->ev, &round->across);
	if (subreq == NULL) {
		round_over(round);
		return;
	}
	tevent_req_set_callback(subreq, round_checked, round);
}

static void round_checked(struct tevent_req *subreq)
{
	struct round *round = tevent_req_callback_data(subreq, struct round);
	struct finding *finding = round->finding;
	struct across_result *result = NULL;
	const char **lines = NULL;
	bool refused = false;
	int ret;

	ret = inquiry_recv(subreq, round, &refused, &lines, &result);
	TALLOC_FREE(subreq);
	if (ret == 0) {
		find(round, finding, refused, lines);
		talloc_free(finding->result);
		finding->result = talloc_steal(round->rounds, result);
	}
	if (target_is_lock(finding->target)) {
		round_lock_done(round);
		return;
	}
	round_next(round);
}

/* ---- what others ask for ------------------------------------------------ */

struct rounds *rounds_create(TALLOC_CTX *mem_ctx, struct tevent_context *ev,
			     const struct rounds_config *config)
{
	struct rounds *rounds = talloc_zero(mem_ctx, struct rounds);
	int ret;

	if (rounds == NULL) {
		return NULL;
	}
	rounds->ev = ev;
	rounds->config = config;
	ret = rounds_set_lock(rounds, NULL);
	if (ret != 0) {
		talloc_free(rounds);
		return NULL;
	}
	return rounds;
}

int rounds_set_lock(struct rounds *rounds, const char *directory)
{
	struct target *target = NULL;

	target = target_of_lock(rounds, directory);
	if (target == NULL) {
		return ENOMEM;
	}
	talloc_free((void *)(uintptr_t)rounds->lock.target);
	rounds->lock.target = target;
	return 0;
}

static bool lies_there(const struct target *target, const char *path)
{
	size_t i;

	if (target->directory != NULL &&
	    strcmp(target->directory, path) == 0) {
		return true;
	}
	for (i = 0; i < target->num_shares; i++) {
		if (strcmp(target->shares[i].path, path) == 0) {
			return true;
		}
	}
	return false;
}

const struct finding *rounds_finding_of(const struct rounds *rounds,
					const char *path)
{
	size_t i;

	for (i = 0; i < rounds->num; i++) {
		bool there = lies_there(rounds->findings[i].target, path);

		if (there) {
			return &rounds->findings[i];
		}
	}
	return NULL;
}

int rounds_begin_path(struct rounds *rounds, const char *path)
{
	const struct finding *finding = rounds_finding_of(rounds, path);

	if (finding == NULL) {
		return ENOENT;
	}
	return rounds->round == NULL ? begin(rounds, finding->target) : 0;
}

void rounds_past_setup(struct rounds *rounds)
{
	rounds->past_setup = true;
}

const char *rounds_resolve(const struct rounds *rounds, const char *name)
{
	size_t i;

	if (strcmp(name, TARGET_CLUSTER_LOCK) == 0) {
		return rounds->lock.target->directory;
	}
	for (i = 0; i < rounds->num; i++) {
		bool there = lies_there(rounds->findings[i].target, name);

		if (there) {
			return name;
		}
	}
	return NULL;
}

const struct finding *rounds_finding(const struct rounds *rounds, size_t i)
{
	if (i == 0) {
		return &rounds->lock;
	}
	return i <= rounds->num ? &rounds->findings[i - 1] : NULL;
}

enum standing rounds_standing(const struct rounds *rounds, bool with_shares)
{
	enum standing standing = STANDING_FIT;
	const struct finding *finding = NULL;
	size_t i;

	if (with_shares && (!rounds->shares_known || !rounds->mmap.known)) {
		standing = STANDING_UNKNOWN;
	}
	if (with_shares && rounds->mmap.refused) {
		return STANDING_REFUSED;
	}
	for (i = 0; (finding = rounds_finding(rounds, i)) != NULL; i++) {
		if (i > 0 && !with_shares) {
			break;
		}
		if (finding->known && finding->refused) {
			return STANDING_REFUSED;
		}
		if (!finding->known) {
			standing = STANDING_UNKNOWN;
		}
	}
	return standing;
}

static bool add_lines(TALLOC_CTX *mem_ctx, const char *const *lines,
		      const char ***all)
{
	bool ok = true;

	for (; ok && lines != NULL && *lines != NULL; lines++) {
		char *copy = talloc_strdup(mem_ctx, *lines);

		ok = copy != NULL && names_add(mem_ctx, all, copy);
	}
	return ok;
}

const char **rounds_lines(TALLOC_CTX *mem_ctx, const struct rounds *rounds,
			  bool all)
{
	const char **lines = talloc_zero_array(mem_ctx, const char *, 1);
	const struct finding *finding = NULL;
	bool ok = lines != NULL;
	size_t i;

	for (i = 0; ok && (finding = rounds_finding(rounds, i)) != NULL;
	     i++) {
		if (finding->known && finding->refused) {
			ok = add_lines(mem_ctx, finding->lines, &lines);
		}
	}
	if (ok && rounds->mmap.refused) {
		ok = add_lines(mem_ctx, rounds->mmap.lines, &lines);
	}
	if (!ok || (lines[0] != NULL) || !all) {
		return ok ? lines : NULL;
	}
	for (i = 0; ok && (finding = rounds_finding(rounds, i)) != NULL;
	     i++) {
		ok = add_lines(mem_ctx, finding->lines, &lines);
	}
	if (ok) {
		ok = add_lines(mem_ctx, rounds->mmap.lines, &lines);
	}
	if (ok && rounds->trouble != NULL) {
		const char *const trouble[] = { rounds->trouble, NULL };

		ok = add_lines(mem_ctx, trouble, &lines);
	}
	if (ok) {
		ok = add_lines(mem_ctx, (const char *const *)
			       (rounds->shares != NULL ? rounds->shares->notes
						       : NULL), &lines);
	}
	return ok ? lines : NULL;
}
