/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The lock checks that go in lock-step: A is the first of a pair, B the other
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "core/checks/catalogue.h"
#include "core/checks/lockstep.h"
#include "core/member/channel.h"
#include "core/probe/ring.h"

#define A 0
#define B 1
#define EOF_LEN 0

/* OFD locks and flock go with FUSE's RELEASE, about 1 ms after close(), and
 * later on a busy machine */
#define RELEASE_WITHIN_MS 2000
#define RELEASE_SLOW_MS 500

/* A lock whose holder was killed: refused so long is wrong; CTDB would be
 * without its lock for as long */
#define KILLED_WITHIN_MS 5000
#define KILLED_SLOW_MS 1000

/* Long enough to see that a waiter waits, as short as that allows: what some
 * lock calls take that do not wait */
#define QUIET_MIN_MS 2
#define QUIET_MAX_MS 10
#define QUIET_LOCKS 20

static unsigned quiet_ms(const struct run *run)
{
	uint64_t ms = QUIET_MIN_MS + QUIET_LOCKS * run_lock_ns(run) / 1000000;

	return ms < QUIET_MAX_MS ? (unsigned)ms : QUIET_MAX_MS;
}

#define LOCAL "locks do not exclude other nodes"

/* ---- lock.supported ----------------------------------------------------- */

static void supported_build(struct script *s)
{
	uint64_t len = s->family == PROBE_FLOCK ? EOF_LEN : 1;

	step_make(s, A, 0);
	step_lock(s, A, 0, F_RDLCK, 0, len, WANT_DONE);
	step_unlock(s, A, 0, 0, len);
	step_lock(s, A, 0, F_WRLCK, 0, len, WANT_DONE);
	step_unlock(s, A, 0, 0, len);
	step_lock(s, A, 0, F_WRLCK, 0, EOF_LEN, WANT_DONE);
	step_unlock(s, A, 0, 0, EOF_LEN);
}

struct supported_state {
	struct tevent_context *ev;
	struct run *run;
	struct check_result *result;
	struct check_result *families[3];
	unsigned next;
};

static const char *const family_names[] = { "process", "ofd", "flock" };

static void supported_next(struct tevent_req *req);
static void supported_done(struct tevent_req *subreq);

static struct tevent_req *supported_send(TALLOC_CTX *mem_ctx,
					 struct tevent_context *ev,
					 struct run *run,
					 struct check_result *result)
{
	struct supported_state *state = NULL;
	struct tevent_req *req = NULL;

	req = tevent_req_create(mem_ctx, &state, struct supported_state);
	if (req == NULL) {
		return NULL;
	}
	state->ev = ev;
	state->run = run;
	state->result = result;
	supported_next(req);
	if (!tevent_req_is_in_progress(req)) {
		return tevent_req_post(req, ev);
	}
	return req;
}

static int family_destructor(struct check_result *family)
{
	json_decref(family->metrics);
	return 0;
}

static void supported_next(struct tevent_req *req)
{
	struct supported_state *state = tevent_req_data(
		req, struct supported_state);
	struct tevent_req *subreq = NULL;
	struct check_result *family = NULL;

	/* the first is the check's own; the others are reported */
	family = state->result;
	if (state->next > 0) {
		family = talloc_zero(state, struct check_result);
		if (tevent_req_nomem(family, req)) {
			return;
		}
		family->check = state->result->check;
		family->metrics = json_object();
		talloc_set_destructor(family, family_destructor);
	}
	state->families[state->next] = family;
	subreq = singles_send(state, state->ev, state->run, family,
			      (enum probe_family)state->next, supported_build,
			      NULL);
	if (tevent_req_nomem(subreq, req)) {
		return;
	}
	tevent_req_set_callback(subreq, supported_done, req);
}

static void supported_done(struct tevent_req *subreq)
{
	struct tevent_req *req = tevent_req_callback_data(subreq,
							  struct tevent_req);
	struct supported_state *state = tevent_req_data(
		req, struct supported_state);
	json_t *told = NULL;
	unsigned i;
	int ret;

	ret = pairs_recv(subreq);
	TALLOC_FREE(subreq);
	if (ret != 0) {
		tevent_req_error(req, (uint64_t)ret);
		return;
	}
	/* what hangs once would only hang again */
	if (++state->next < 3 && state->result->outcome != OUTCOME_HUNG &&
	    !run_lean(state->run)) {
		supported_next(req);
		return;
	}
	told = json_object();
	for (i = 0; i < state->next; i++) {
		const struct check_result *family = state->families[i];

		json_object_set_new(told, family_names[i],
				    json_string(family->why != NULL
						? family->why
						: outcome_name(
							family->outcome)));
	}
	json_object_set_new(state->result->metrics, "families", told);
	tevent_req_done(req);
}

const struct check check_lock_supported = {
	.name = "lock.supported",
	.holds = "read and write locks are accepted and released",
	.how = "Each member takes and releases a read and a write lock on a "
	       "byte and on the whole of a file of its own, by process "
	       "(fcntl), OFD and flock locks. Each kind is reported; the "
	       "outcome is that of the process locks, the other two have "
	       "checks of their own (lock.ofd, lock.flock).",
	.depends = "CTDB's cluster lock is a process lock on one byte "
		   "(ctdb/server/ctdb_mutex_fcntl_helper.c); smbd with 'posix "
		   "locking = yes' puts clients' byte-range locks on the file "
		   "(source3/locking/posix.c, smb.conf(5)).",
	.remedy = "Mount the file system with its locks enabled (Lustre: "
		  "'flock'; NFSv3: a running lock manager, no 'nolock'; FUSE: "
		  "a daemon that implements locks), or keep the cluster lock "
		  "elsewhere. 'posix locking = no' only silences smbd: it is "
		  "right where nobody but Samba opens the files.",
	.doors = DOOR_INIT | DOOR_AGENT | DOOR_COMMAND,
	.send = supported_send,
	.recv = pairs_recv,
};

/* ---- lock.exclusion ----------------------------------------------------- */

static void means(struct step *step, const char *text)
{
	step->means = text;
}

static void beside(struct step *step)
{
	step->means = "a lock covers more than its range";
	step->breaks = NEEDS_BYTES;
}

/* A holds [start, len): B gets none of it, and what lies beside it */
static void exclude(struct script *s, uint64_t start, uint64_t len)
{
	uint64_t last = start + len - 1;

	step_lock(s, A, 0, F_WRLCK, start, len, WANT_DONE);
	means(step_lock(s, B, 0, F_WRLCK, start, len, WANT_REFUSED), LOCAL);
	if (run_lean(s->run)) {
		beside(step_lock(s, B, 0, F_WRLCK, last + 1, 1, WANT_DONE));
		step_unlock(s, B, 0, last + 1, 1);
		step_unlock(s, A, 0, start, len);
		return;
	}
	means(step_lock(s, B, 0, F_RDLCK, start, len, WANT_REFUSED), LOCAL);
	means(step_lock(s, B, 0, F_WRLCK, last, 1, WANT_REFUSED), LOCAL);
	means(step_lock(s, B, 0, F_WRLCK, last, 2, WANT_REFUSED), LOCAL);
	beside(step_lock(s, B, 0, F_WRLCK, last + 1, 1, WANT_DONE));
	means(step_lock(s, A, 0, F_WRLCK, last + 1, 1, WANT_REFUSED), LOCAL);
	step_unlock(s, B, 0, last + 1, 1);
	if (start > 0) {
		beside(step_lock(s, B, 0, F_WRLCK, start - 1, 1, WANT_DONE));
		step_unlock(s, B, 0, start - 1, 1);
	}
	step_unlock(s, A, 0, start, len);
	means(step_lock(s, B, 0, F_WRLCK, start, len, WANT_DONE),
	      "a lock is not free after its unlock");
	step_unlock(s, B, 0, start, len);
}

/* Who unlocks what it does not hold, unlocks nothing */
static void unlocked_by_another(struct script *s)
{
	step_lock(s, A, 0, F_WRLCK, 0, 1, WANT_DONE);
	step_unlock(s, B, 0, 0, 1);
	means(step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_REFUSED),
	      "a lock is lost by another member's unlock");
	step_unlock(s, A, 0, 0, 1);
}

/* of so many locks each, within a fifth of a second by what one costs here */
static unsigned trials_that_fit(const struct run *run, unsigned trials,
				unsigned locks_each)
{
	uint64_t fit = 200000000ULL / (run_lock_ns(run) * locks_each);

	return fit < trials ? (unsigned)fit : trials;
}

static void exclusion_build(struct script *s)
{
	static const unsigned trials[] = {
		[RUN_LIGHT] = 0, [RUN_QUICK] = 4, [RUN_DEFAULT] = 16,
		[RUN_THOROUGH] = 256,
	};
	unsigned some = trials[run_level(s->run)] * 4 /
			(run_num_members(s->run) + 1);
	unsigned random = trials[run_level(s->run)];
	unsigned i;

	/* each pair makes some: of many pairs, fewer do */
	random = trials_that_fit(s->run, some < random ? some + 1 : random,
				 9);

	step_open_all(s);
	/* the bytes of CTDB's cluster lock */
	exclude(s, 0, 1);
	if (run_lean(s->run)) {
		return;
	}
	exclude(s, 1, 1);
	unlocked_by_another(s);
	exclude(s, 100, 100);

	/* to the end of the file, and beyond it: the file is empty */
	step_lock(s, A, 0, F_WRLCK, 1000, EOF_LEN, WANT_DONE);
	means(step_lock(s, B, 0, F_WRLCK, 1000, 1, WANT_REFUSED), LOCAL);
	means(step_lock(s, B, 0, F_WRLCK, 1 << 20, 1, WANT_REFUSED), LOCAL);
	means(step_lock(s, B, 0, F_WRLCK, 0, EOF_LEN, WANT_REFUSED), LOCAL);
	beside(step_lock(s, B, 0, F_WRLCK, 999, 1, WANT_DONE));
	step_unlock(s, B, 0, 999, 1);
	step_unlock(s, A, 0, 1000, EOF_LEN);

	for (i = 0; i < random; i++) {
		exclude(s, run_random(s->run) % (1 << 20),
			1 + run_random(s->run) % 8192);
	}
}

static struct tevent_req *exclusion_send(TALLOC_CTX *mem_ctx,
					 struct tevent_context *ev,
					 struct run *run,
					 struct check_result *result)
{
	return pairs_send(mem_ctx, ev, run, result, PROBE_PROCESS,
			  exclusion_build, NULL);
}

const struct check check_lock_exclusion = {
	.name = "lock.exclusion",
	.holds = "what one member has write-locked no other gets",
	.how = "In pairs, step by step: one member write-locks a range, the "
	       "other's attempts to lock any of it must be refused and its "
	       "locks on the bytes beside it granted; bytes 0 and 1, longer "
	       "ranges, to the end of the file, beyond it, random ranges. "
	       "Its unlock of what it does not hold must free nothing.",
	.depends = "CTDB: two nodes that both get byte 0 of the cluster lock "
		   "are two leaders (ctdb(7), 'cluster lock'; "
		   "ctdb/server/ctdb_mutex_fcntl_helper.c uses bytes 0 and "
		   "1). smbd: byte-range locks against other protocols and "
		   "nodes (source3/locking/posix.c).",
	.remedy = "The locks are kept by each node for itself. Look for a "
		  "mount option that says so (Lustre 'localflock', NFS "
		  "'nolock' or 'local_lock', CIFS 'nobrl', OCFS2 and GFS2 "
		  "'localflocks') or a daemon without lock forwarding; "
		  "otherwise the file system cannot hold CTDB's cluster lock.",
	.doors = DOOR_INIT | DOOR_AGENT | DOOR_COMMAND,
	.needs = NEEDS_LOCKS,
	.send = exclusion_send,
	.recv = pairs_recv,
};

/* ---- lock.shared -------------------------------------------------------- */

static void shared_build(struct script *s)
{
	step_open_all(s);
	step_lock(s, A, 0, F_RDLCK, 0, 10, WANT_DONE);
	means(step_lock(s, B, 0, F_RDLCK, 0, 10, WANT_DONE),
	      "read locks do not coexist");
	means(step_lock(s, B, 0, F_WRLCK, 5, 1, WANT_REFUSED),
	      "a reader does not exclude a writer");
	if (run_lean(s->run)) {
		return;
	}
	means(step_lock(s, A, 0, F_WRLCK, 0, 10, WANT_REFUSED),
	      "an upgrade ignores the other reader");
	/* a refused upgrade leaves the read lock */
	step_unlock(s, B, 0, 0, 10);
	means(step_lock(s, B, 0, F_WRLCK, 0, 10, WANT_REFUSED),
	      "a refused upgrade loses the read lock");
	step_lock(s, A, 0, F_WRLCK, 0, 10, WANT_DONE);
	means(step_lock(s, B, 0, F_RDLCK, 0, 10, WANT_REFUSED),
	      "an upgraded lock does not exclude readers");
	step_lock(s, A, 0, F_RDLCK, 0, 10, WANT_DONE);
	means(step_lock(s, B, 0, F_RDLCK, 0, 10, WANT_DONE),
	      "a downgraded lock still excludes readers");
	means(step_lock(s, B, 0, F_WRLCK, 0, 10, WANT_REFUSED),
	      "a downgraded lock is lost");
	step_unlock(s, B, 0, 0, 10);
	step_unlock(s, A, 0, 0, 10);

	/* a hole in the middle of a held range */
	step_lock(s, A, 0, F_WRLCK, 100, 100, WANT_DONE);
	step_unlock(s, A, 0, 140, 20);
	means(step_lock(s, B, 0, F_WRLCK, 140, 20, WANT_DONE),
	      "the middle of a range is not free after its unlock");
	means(step_lock(s, B, 0, F_WRLCK, 139, 1, WANT_REFUSED),
	      "unlocking the middle of a range loses its beginning");
	means(step_lock(s, B, 0, F_WRLCK, 160, 1, WANT_REFUSED),
	      "unlocking the middle of a range loses its end");
	step_unlock(s, B, 0, 140, 20);
	step_unlock(s, A, 0, 100, 100);
	step_lock(s, B, 0, F_WRLCK, 100, 100, WANT_DONE);
	step_unlock(s, B, 0, 100, 100);
}

static struct tevent_req *shared_send(TALLOC_CTX *mem_ctx,
				      struct tevent_context *ev,
				      struct run *run,
				      struct check_result *result)
{
	return pairs_send(mem_ctx, ev, run, result, PROBE_PROCESS,
			  shared_build, NULL);
}

const struct check check_lock_shared = {
	.name = "lock.shared",
	.holds = "read locks coexist and exclude writers; upgrade, downgrade, "
		 "split",
	.how = "In pairs, step by step: two read locks, a writer refused, a "
	       "lock upgraded and downgraded, the middle of a held range "
	       "unlocked.",
	.depends = "smbd maps clients' shared locks to read locks and splits "
		   "and merges ranges (source3/locking/posix.c); TDBs on the "
		   "file system lock chains for reading (lib/tdb/common/"
		   "lock.c).",
	.remedy = "Report it to the file system's vendor with this evidence.",
	.doors = DOOR_COMMAND,
	.needs = NEEDS_LOCKS,
	.send = shared_send,
	.recv = pairs_recv,
};

/* ---- lock.getlk --------------------------------------------------------- */

static void getlk_build(struct script *s)
{
	step_open_all(s);
	step_getlk(s, B, 0, 0, EOF_LEN, F_UNLCK, 0, 0);
	step_lock(s, A, 0, F_WRLCK, 10, 10, WANT_DONE);
	means(step_getlk(s, B, 0, 0, EOF_LEN, F_WRLCK, 10, 10),
	      "F_GETLK does not show another member's lock as it is");
	means(step_getlk(s, A, 0, 0, EOF_LEN, F_UNLCK, 0, 0),
	      "F_GETLK shows a member its own lock as another's");
	means(step_getlk(s, B, 0, 20, 5, F_UNLCK, 0, 0),
	      "F_GETLK shows a lock that is not in the way");
	step_unlock(s, A, 0, 10, 10);
	if (run_lean(s->run)) {
		return;
	}
	step_lock(s, A, 0, F_RDLCK, 30, 5, WANT_DONE);
	means(step_getlk(s, B, 0, 32, 1, F_RDLCK, 30, 5),
	      "F_GETLK does not show another member's lock as it is");
	step_unlock(s, A, 0, 30, 5);
	means(step_getlk(s, B, 0, 0, EOF_LEN, F_UNLCK, 0, 0),
	      "F_GETLK shows a lock that was released");
}

static struct tevent_req *getlk_send(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     struct run *run,
				     struct check_result *result)
{
	return pairs_send(mem_ctx, ev, run, result, PROBE_PROCESS,
			  getlk_build, NULL);
}

const struct check check_lock_getlk = {
	.name = "lock.getlk",
	.holds = "F_GETLK shows the other member's lock, never one's own",
	.how = "In pairs, step by step: one member locks, the other asks "
	       "F_GETLK; type and range must be those of the lock.",
	.depends = "smbd asks F_GETLK before it answers a client's lock test "
		   "(source3/locking/posix.c, is_posix_locked); ping_pong -c "
		   "and -l do.",
	.remedy = "Report it to the file system's vendor with this evidence.",
	.doors = DOOR_COMMAND,
	.needs = NEEDS_LOCKS,
	.send = getlk_send,
	.recv = pairs_recv,
};

/* ---- lock.handoff ------------------------------------------------------- */

static void handoff_once(struct script *s, unsigned from, unsigned to)
{
	bool flock = s->family == PROBE_FLOCK;
	/* CTDB waits for byte 1 */
	uint64_t start = flock ? 0 : 1, len = flock ? EOF_LEN : 1;

	step_lock(s, from, 0, F_WRLCK, start, len, WANT_DONE);
	step_lock_begin(s, to, 0, F_WRLCK, start, len);
	means(step_quiet(s, to, quiet_ms(s->run)), LOCAL);
	step_unlock(s, from, 0, start, len);
	means(step_await(s, to, WANT_DONE), "a waiter is not woken");
	if (!run_lean(s->run)) {
		means(step_lock(s, from, 0, F_WRLCK, start, len, WANT_REFUSED),
		      "a lock that was waited for does not exclude");
	}
	step_unlock(s, to, 0, start, len);
}

/* CTDB warns when its lock takes longer than 1 s (RecLockLatencyMs) */
#define STARVED_MS 1100

/* The holder lets go and asks again: whoever waits comes first */
static void handoff_contended(struct script *s, unsigned from, unsigned to)
{
	struct step *step = NULL;

	step_lock(s, from, 0, F_WRLCK, 1, 1, WANT_DONE);
	step_lock_begin(s, to, 0, F_WRLCK, 1, 1);
	step_quiet(s, to, quiet_ms(s->run));
	step = step_call(s, from, PROBE_CONTEND, 0, WANT_DONE);
	step->req.type = F_WRLCK;
	step->req.start = step->req.len = 1;
	step->req.patience_ms = STARVED_MS;
	means(step_await(s, to, WANT_DONE), "a waiter is not woken");
	step_unlock(s, to, 0, 1, 1);
}

static void handoff_build(struct script *s)
{
	bool short_one = run_level(s->run) == RUN_LIGHT ||
			 run_lean(s->run);
	unsigned rounds = short_one ? 1 : 3;
	unsigned i;

	step_open_all(s);
	for (i = 0; i < rounds; i++) {
		handoff_once(s, A, B);
		if (rounds > 1) {
			handoff_once(s, B, A);
		}
	}
	if (!short_one) {
		handoff_contended(s, A, B);
	}
}

/* The one that asked again and again always got it */
static void handoff_judge_fair(struct script *s)
{
	size_t i;

	for (i = 0; i < s->steps_done && s->outcome == OUTCOME_PASS; i++) {
		const struct probe_answer *a = &s->answers[i];

		if (s->steps[i].req.op != PROBE_CONTEND || a->frozen) {
			continue;
		}
		s->outcome = OUTCOME_SLOW;
		s->why = talloc_asprintf(
			s, "a waiter does not get the lock while another "
			"member goes on asking for it: member %s got it %llu "
			"times in %.1f s, member %s not once; CTDB warns from "
			"1 s on (RecLockLatencyMs)",
			run_member_name(s, s->run, s->cast[A]),
			(unsigned long long)a->count, STARVED_MS / 1e3,
			run_member_name(s, s->run, s->cast[B]));
	}
}

/* Hand-over times of all pairs, collected in the result until the end */
static void handoff_note_pair(const struct script *s,
			      struct check_result *result)
{
	json_t *pairs = json_object_get(result->metrics, "handover_pairs");
	json_t *ms = json_array();
	unsigned i;

	if (pairs == NULL) {
		pairs = json_array();
		json_object_set_new(result->metrics, "handover_pairs", pairs);
	}
	for (i = 0; i < s->num_waits; i++) {
		json_array_append_new(ms, json_real((double)s->wait_ns[i] /
						    1e6));
	}
	json_array_append_new(pairs, json_pack("{s[ii] so}", "members",
					       (int)s->cast[0],
					       (int)s->cast[1], "ms", ms));
}

static void handoff_judge(struct script *s, struct check_result *result)
{
	json_t *max = json_object_get(result->metrics, "handover_max_ms");
	json_t *all = json_object_get(result->metrics, "handover_ms");
	double worst = json_real_value(max);
	unsigned i;

	if (all == NULL) {
		all = json_array();
		json_object_set_new(result->metrics, "handover_ms", all);
	}
	for (i = 0; i < s->num_waits; i++) {
		double ms = (double)s->wait_ns[i] / 1e6;

		worst = ms > worst ? ms : worst;
		if (json_array_size(all) < 64) {
			json_array_append_new(all, json_real(ms));
		}
	}
	json_object_set_new(result->metrics, "handover_max_ms",
			    json_real(worst));
	handoff_note_pair(s, result);
	handoff_judge_fair(s);
	if (s->outcome == OUTCOME_PASS && worst > 1000) {
		s->outcome = OUTCOME_SLOW;
		s->why = talloc_asprintf(
			s, "a waiter got the lock %.1f s after its unlock; "
			"CTDB warns from 1 s on (RecLockLatencyMs)",
			worst / 1000);
	}
}

static struct tevent_req *handoff_send(TALLOC_CTX *mem_ctx,
				       struct tevent_context *ev,
				       struct run *run,
				       struct check_result *result)
{
	return pairs_send(mem_ctx, ev, run, result, PROBE_PROCESS,
			  handoff_build, handoff_judge);
}

const struct check check_lock_handoff = {
	.name = "lock.handoff",
	.holds = "a blocked waiter is granted after the unlock",
	.how = "In pairs, step by step: one member holds a lock, the other "
	       "waits for it (F_SETLKW) and must not get it before the "
	       "unlock and must get it after. The times from unlock to grant "
	       "are measured, a round over the channel included. In the end "
	       "the holder lets go and asks again and again: the waiter must "
	       "come first, or at least within 1 s.",
	.depends = "A new leader of CTDB takes byte 1 of the cluster lock by "
		   "waiting (ctdb/server/ctdb_mutex_fcntl_helper.c); TDBs on "
		   "the file system wait for chains (lib/tdb/common/lock.c).",
	.remedy = "A waiter that is never woken hangs whoever waits: report "
		  "it to the file system's vendor. If it is only slow, the "
		  "network or the lock server is.",
	.doors = DOOR_INIT | DOOR_AGENT | DOOR_COMMAND,
	.needs = NEEDS_LOCKS,
	.send = handoff_send,
	.recv = pairs_recv,
};

/* The last step is to be as wanted soon */
static void release_soon(struct script *s)
{
	struct step *step = &s->steps[s->num_steps - 1];

	step->within_ms = RELEASE_WITHIN_MS;
	step->slow_after_ms = RELEASE_SLOW_MS;
}

/* ---- lock.release ------------------------------------------------------- */

static void release_by_close(struct script *s)
{
	step_lock(s, A, 0, F_WRLCK, 0, 1, WANT_DONE);
	step_close(s, A, 0);
	if (run_lean(s->run)) {
		/* less than to be refused and ask again */
		step_pause(s, quiet_ms(s->run));
	}
	means(step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_DONE),
	      "a lock outlives the close of its file");
	release_soon(s);
	step_unlock(s, B, 0, 0, 1);
	step_open(s, A, 0);
}

static void release_by_exit(struct script *s)
{
	struct step *step = step_call(s, A, PROBE_LOCK_EXIT, 0, WANT_DONE);

	strcpy(step->req.name, s->file);
	step->req.type = F_WRLCK;
	step->req.len = 1;
	means(step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_DONE),
	      "a lock outlives the exit of its holder");
	release_soon(s);
	step_unlock(s, B, 0, 0, 1);
}

static void release_not_by_fork(struct script *s)
{
	bool lean = run_lean(s->run);

	step_lock(s, A, 0, F_WRLCK, 0, 1, WANT_DONE);
	if (!lean) {
		means(step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_REFUSED), LOCAL);
	}
	step_call(s, A, PROBE_FORK_CLOSE, 0, WANT_DONE);
	means(step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_REFUSED),
	      "a process loses its lock when a forked child closes the "
	      "inherited descriptor, as CTDB's lock helper's child does");
	step_unlock(s, A, 0, 0, 1);
	if (lean) {
		return;
	}
	step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_DONE);
	step_unlock(s, B, 0, 0, 1);
}

static void release_by_kill(struct script *s)
{
	struct step *step = NULL;

	step_lock(s, A, 0, F_WRLCK, 0, 1, WANT_DONE);
	step_kill(s, A);
	step = step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_DONE);
	step->within_ms = KILLED_WITHIN_MS;
	step->slow_after_ms = KILLED_SLOW_MS;
	means(step, "a lock outlives its killed holder");
	step_unlock(s, B, 0, 0, 1);
}

static void release_build(struct script *s)
{
	step_open_all(s);
	release_by_close(s);
	if (!s->far) {
		release_by_exit(s);
	}
	release_not_by_fork(s);
	if (run_level(s->run) != RUN_LIGHT && !s->far) {
		release_by_kill(s);
	}
}

static struct tevent_req *release_send(TALLOC_CTX *mem_ctx,
				       struct tevent_context *ev,
				       struct run *run,
				       struct check_result *result)
{
	return pairs_send(mem_ctx, ev, run, result, PROBE_PROCESS,
			  release_build, NULL);
}

const struct check check_lock_release = {
	.name = "lock.release",
	.holds = "locks go when the holder closes, exits or is killed, and "
		 "stay when a forked child closes its inherited descriptor",
	.how = "In pairs, step by step: the holder closes its file, exits "
	       "with the lock held, or is killed (SIGKILL): the other gets "
	       "the lock. The holder forks "
	       "and the child closes its copy of the descriptor: the lock "
	       "must stay.",
	.depends = "CTDB's lock helper forks after it has taken the lock and "
		   "its child closes what it inherited "
		   "(ctdb/server/ctdb_mutex_fcntl_helper.c); a node that died "
		   "must not keep the cluster lock.",
	.remedy = "A lock lost at a child's close means that the file system "
		  "takes any close for the owner's (some FUSE daemons): CTDB "
		  "cannot keep its cluster lock there. A lock that outlives "
		  "its holder blocks CTDB until the storage gives it up.",
	.doors = DOOR_INIT | DOOR_AGENT | DOOR_COMMAND,
	.needs = NEEDS_LOCKS,
	.send = release_send,
	.recv = pairs_recv,
};

/* ---- lock.range64 ------------------------------------------------------- */

static void alias(struct script *s, uint64_t high, uint64_t low)
{
	step_lock(s, A, 0, F_WRLCK, high, 1, WANT_DONE);
	means(step_lock(s, B, 0, F_WRLCK, high, 1, WANT_REFUSED), LOCAL);
	if (low != high) {
		means(step_lock(s, B, 0, F_WRLCK, low, 1, WANT_DONE),
		      "offsets are cut: a lock far out blocks another byte");
		step_unlock(s, B, 0, low, 1);
	}
	if (!run_lean(s->run)) {
		means(step_lock(s, B, 0, F_WRLCK, 0, EOF_LEN, WANT_REFUSED),
		      "a lock far out does not exclude a lock on the whole "
		      "file");
	}
	step_unlock(s, A, 0, high, 1);
}

static void range64_build(struct script *s)
{
	static const uint64_t highs[] = {
		(1ULL << 31) - 1, 1ULL << 31, 1ULL << 32, (1ULL << 32) + 5,
		1ULL << 62,
	};
	size_t i;

	s->extreme = true;
	step_open_all(s);
	if (run_lean(s->run)) {
		alias(s, (1ULL << 32) + 5, 5);
		return;
	}
	for (i = 0; i < sizeof(highs) / sizeof(highs[0]); i++) {
		alias(s, highs[i], highs[i] & 0x7fffffff);
		if ((highs[i] & 0xffffffff) != (highs[i] & 0x7fffffff)) {
			alias(s, highs[i], highs[i] & 0xffffffff);
		}
	}
	step_lock(s, A, 0, F_WRLCK, 0, EOF_LEN, WANT_DONE);
	for (i = 0; i < sizeof(highs) / sizeof(highs[0]); i++) {
		means(step_lock(s, B, 0, F_WRLCK, highs[i], 1, WANT_REFUSED),
		      "a lock on the whole file does not reach far out");
	}
	step_unlock(s, A, 0, 0, EOF_LEN);
}

static struct tevent_req *range64_send(TALLOC_CTX *mem_ctx,
				       struct tevent_context *ev,
				       struct run *run,
				       struct check_result *result)
{
	return pairs_send(mem_ctx, ev, run, result, PROBE_PROCESS,
			  range64_build, NULL);
}

const struct check check_lock_range64 = {
	.name = "lock.range64",
	.holds = "locks beyond 2^31 and 2^32 are their own bytes",
	.how = "In pairs, step by step: bytes at 2^31-1, 2^31, 2^32, 2^32+5 "
	       "and 2^62 are locked; they must exclude there and nowhere "
	       "else; the whole file includes them.",
	.depends = "Windows programs lock ranges far beyond the end of a file "
		   "to synchronise; smbd maps them (source3/locking/posix.c, "
		   "posix_lock_in_range) and takes EFBIG, ENOLCK and EINVAL "
		   "there for success.",
	.remedy = "Offsets are cut to 31 or 32 bits somewhere between client "
		  "and lock server (32 bit lock protocol, NFSv2): use a "
		  "newer protocol version.",
	.doors = DOOR_COMMAND,
	.needs = NEEDS_LOCKS,
	.send = range64_send,
	.recv = pairs_recv,
};

/* ---- lock.many ---------------------------------------------------------- */

/* then the worker stops, and the check could not be prepared */
#define MANY_PATIENCE_MS 4000

/* So many at any price */
#define MANY_FEWEST 2

/* Fewer than this say little of what databases do */
#define MANY_ENOUGH 1000

/* Locks of one operation: a loaded server that needs long for thousands is not
 * to be taken for one that never answers. */
#define MANY_AT_ONCE 100

static uint64_t many_count(const struct run *run)
{
	/* half a second's worth of locks by what one costs here; for enough
	 * of them up to three */
	uint64_t fit = 500000000ULL / run_lock_ns(run);
	uint64_t most = (run_lean(run) ? 1000000000ULL : 3000000000ULL) /
			run_lock_ns(run);
	uint64_t count = run_level(run) == RUN_QUICK ? MANY_ENOUGH :
			 run_level(run) == RUN_THOROUGH ? 10000 : 2000;

	if (fit >= count) {
		return count;
	}
	if (fit < MANY_ENOUGH) {
		fit = most < MANY_ENOUGH ? most : MANY_ENOUGH;
	}
	return fit < MANY_FEWEST ? MANY_FEWEST : fit;
}

/* They are given back as smbd does, one by one. An unlock of the whole file
 * would end a brick of GlusterFS 10.3 (Debian 12): its features/locks calls
 * itself once for each lock that the unlock meets, and the thread's stack of
 * 256 KiB is full after about 1,750 (seen in a debugger). */
static void many_steps(struct script *s, int type, const char *meaning)
{
	uint64_t count = many_count(s->run);
	uint64_t i;

	for (i = 0; i < count; i += MANY_AT_ONCE) {
		struct step *step = step_call(s, A, PROBE_LOCK_MANY, 0,
					      WANT_COUNT);

		step->req.type = type;
		step->req.start = 2 * i;
		step->req.count = step->want_value =
			count - i < MANY_AT_ONCE ? count - i : MANY_AT_ONCE;
		step->req.patience_ms = MANY_PATIENCE_MS;
		step->setup = true;
		step->means = meaning;
	}
}

static void many_build(struct script *s)
{
	uint64_t count = many_count(s->run);
	unsigned i;

	s->extreme = true;
	step_open_all(s);
	many_steps(s, F_WRLCK, "not so many locks can be held on one file");
	for (i = 0; i < (run_lean(s->run) ? 1 : 16); i++) {
		uint64_t k = i == 0 ? 0 : i == 1 ? count - 1 :
			     run_random(s->run) % count;

		means(step_lock(s, B, 0, F_WRLCK, 2 * k, 1, WANT_REFUSED),
		      "one of many held locks is lost");
	}
	if (!run_lean(s->run)) {
		means(step_lock(s, B, 0, F_WRLCK, 1, 1, WANT_DONE),
		      "locks on many bytes cover those between them");
		step_unlock(s, B, 0, 1, 1);
	}
	many_steps(s, F_UNLCK, "so many locks can't be given back");
	means(step_lock(s, B, 0, F_WRLCK, 0, EOF_LEN, WANT_DONE),
	      "of many locks that were given back some are left");
}

static void many_judge_few(struct script *s, uint64_t held)
{
	if (s->outcome != OUTCOME_PASS || held >= MANY_ENOUGH) {
		return;
	}
	s->outcome = OUTCOME_SLOW;
	s->why = talloc_asprintf(
		s, "a lock call takes %.1f ms: there was time for %llu locks "
		"on one file only", (double)run_lock_ns(s->run) / 1e6,
		(unsigned long long)held);
}

static void many_judge(struct script *s, struct check_result *result)
{
	uint64_t held = 0;
	bool tried = false;
	size_t i;

	for (i = 0; i < s->num_steps && i < s->steps_done; i++) {
		if (s->steps[i].req.op == PROBE_LOCK_MANY &&
		    s->steps[i].req.type == F_WRLCK) {
			held += s->answers[i].count;
			tried = true;
		}
	}
	if (tried) {
		json_object_set_new(result->metrics, "held",
				    json_integer((json_int_t)held));
		many_judge_few(s, held);
	}
}

static struct tevent_req *many_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    struct run *run,
				    struct check_result *result)
{
	return few_pairs_send(mem_ctx, ev, run, result, PROBE_PROCESS,
			      many_build, many_judge);
}

const struct check check_lock_many = {
	.name = "lock.many",
	.holds = "thousands of locks are held on one file, none lost",
	.how = "In pairs: one member locks every other byte, thousands of "
	       "them (fewer where locks are slow); the other must be refused "
	       "a sample of them and granted a byte between; when each was "
	       "given back, the whole file.",
	.depends = "Databases on a share hold many byte-range locks at once, "
		   "and smbd keeps them on the file (source3/locking/"
		   "posix.c).",
	.remedy = "The metric 'held' is how many there were when it ended. A "
		  "server with a limit (EFS: 256 a file) refuses the next "
		  "client's lock.",
	.doors = DOOR_COMMAND,
	.needs = NEEDS_LOCKS,
	.send = many_send,
	.recv = pairs_recv,
};

/* ---- lock.ofd, lock.flock ----------------------------------------------- */

static void ofd_build(struct script *s)
{
	step_open_all(s);
	exclude(s, 0, 1);
	if (run_lean(s->run)) {
		return;
	}
	exclude(s, 100, 100);
	handoff_once(s, A, B);

	/* two descriptors of one process are two owners, and closing one does
	 * not touch the other's locks */
	step_open(s, A, 1);
	step_lock(s, A, 0, F_WRLCK, 0, 1, WANT_DONE);
	means(step_lock(s, A, 1, F_WRLCK, 0, 1, WANT_REFUSED),
	      "two open file descriptions of one process do not exclude each "
	      "other");
	step_close(s, A, 1);
	means(step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_REFUSED),
	      "closing another descriptor loses an OFD lock");
	step_call(s, A, PROBE_FORK_CLOSE, 0, WANT_DONE);
	means(step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_REFUSED),
	      "a forked child's close loses an OFD lock");
	step_close(s, A, 0);
	means(step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_DONE),
	      "an OFD lock outlives the close of its file");
	release_soon(s);
	step_unlock(s, B, 0, 0, 1);
}

static struct tevent_req *ofd_send(TALLOC_CTX *mem_ctx,
				   struct tevent_context *ev, struct run *run,
				   struct check_result *result)
{
	return pairs_send(mem_ctx, ev, run, result, PROBE_OFD, ofd_build,
			  NULL);
}

const struct check check_lock_ofd = {
	.name = "lock.ofd",
	.holds = "OFD locks exclude, are handed over and released",
	.how = "The steps of lock.exclusion, lock.handoff and lock.release "
	       "with locks of the open file description (F_OFD_SETLK), and "
	       "what is peculiar to them: two descriptors of one process "
	       "exclude each other.",
	.depends = "smbd takes OFD locks on share files unless 'smbd force "
		   "process locks = yes' (source3/locking/posix.c, "
		   "smb.conf(5)).",
	.remedy = "Where process locks work and OFD locks do not: 'smbd force "
		  "process locks = yes' in smb.conf.",
	.doors = DOOR_AGENT | DOOR_COMMAND,
	.needs = NEEDS_OFD,
	.send = ofd_send,
	.recv = pairs_recv,
};

static void flock_build(struct script *s)
{
	step_open_all(s);
	step_lock(s, A, 0, F_WRLCK, 0, EOF_LEN, WANT_DONE);
	means(step_lock(s, B, 0, F_WRLCK, 0, EOF_LEN, WANT_REFUSED),
	      "flock locks do not exclude other nodes");
	if (run_lean(s->run)) {
		return;
	}
	means(step_lock(s, B, 0, F_RDLCK, 0, EOF_LEN, WANT_REFUSED),
	      "flock locks do not exclude other nodes");
	step_unlock(s, A, 0, 0, EOF_LEN);
	step_lock(s, A, 0, F_RDLCK, 0, EOF_LEN, WANT_DONE);
	means(step_lock(s, B, 0, F_RDLCK, 0, EOF_LEN, WANT_DONE),
	      "shared flock locks do not coexist");
	step_unlock(s, B, 0, 0, EOF_LEN);
	step_unlock(s, A, 0, 0, EOF_LEN);
	handoff_once(s, A, B);
	step_lock(s, A, 0, F_WRLCK, 0, EOF_LEN, WANT_DONE);
	step_close(s, A, 0);
	means(step_lock(s, B, 0, F_WRLCK, 0, EOF_LEN, WANT_DONE),
	      "a flock lock outlives the close of its file");
	release_soon(s);
	step_unlock(s, B, 0, 0, EOF_LEN);
}

static struct tevent_req *flock_send(TALLOC_CTX *mem_ctx,
				     struct tevent_context *ev,
				     struct run *run,
				     struct check_result *result)
{
	return pairs_send(mem_ctx, ev, run, result, PROBE_FLOCK, flock_build,
			  NULL);
}

const struct check check_lock_flock = {
	.name = "lock.flock",
	.holds = "flock locks exclude, are handed over and released",
	.how = "In pairs, step by step: flock(2) exclusive and shared, "
	       "waiting, and release by close.",
	.depends = "'kernel share modes = yes' (smb.conf(5)) has smbd take "
		   "flock locks against other programs (source3/modules/"
		   "vfs_default.c); nothing else in Samba or CTDB uses them.",
	.remedy = "Keep 'kernel share modes = no' where flock is local to the "
		  "node. On some file systems (GPFS) flock is local by "
		  "design while fcntl locks are coherent.",
	.doors = DOOR_COMMAND,
	.spare = true,
	.needs = NEEDS_FLOCK,
	.send = flock_send,
	.recv = pairs_recv,
};

/* ---- lock.idle ---------------------------------------------------------- */

static void idle_build(struct script *s)
{
	uint64_t since_ns = 0;
	const char *name = run_kept(s->run, s->cast[A], &since_ns);

	if (name == NULL) {
		return;
	}
	strcpy(s->file, name);
	step_open(s, B, 0);
	means(step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_REFUSED),
	      talloc_asprintf(s, "a lock that was held for %.1f s and not "
			      "used is lost",
			      (double)(ring_now() - since_ns) / 1e9));
	step_close(s, A, PROBE_SLOT_KEPT);
}

static void idle_judge(struct script *s, struct check_result *result)
{
	uint64_t since_ns = 0;
	const char *name = run_kept(s->run, s->cast[A], &since_ns);
	double held_s = (double)(ring_now() - since_ns) / 1e9;
	double most = json_real_value(json_object_get(result->metrics,
						      "held_s"));

	if (name == NULL && s->outcome == OUTCOME_PASS) {
		s->outcome = OUTCOME_SKIPPED;
		s->why = "no lock was held during the run";
		return;
	}
	if (s->outcome == OUTCOME_PASS && held_s > most) {
		json_object_set_new(result->metrics, "held_s",
				    json_real(held_s));
	}
}

static struct tevent_req *idle_send(TALLOC_CTX *mem_ctx,
				    struct tevent_context *ev,
				    struct run *run,
				    struct check_result *result)
{
	return few_pairs_send(mem_ctx, ev, run, result, PROBE_PROCESS,
			      idle_build, idle_judge);
}

const struct check check_lock_idle = {
	.name = "lock.idle",
	.holds = "a lock that nobody uses is still held at the end of the run",
	.how = "Four of the members take a lock on a file of their own as soon "
	       "as it is known that locks work, and leave it alone while the "
	       "other checks run. In the end another member's attempt must be "
	       "refused. The metric 'held_s' is how long it was held; "
	       "--thorough runs longest.",
	.depends = "CTDB's leader holds the cluster lock as long as it lives "
		   "and looks at it only now and then "
		   "(ctdb/server/ctdb_mutex_fcntl_helper.c); clients of smbd "
		   "hold byte-range locks for hours.",
	.remedy = "The lock server forgets clients that are quiet, or the "
		  "client does not renew its lease: look for a lease time or "
		  "a keep-alive, and for clocks and networks that delay it.",
	.doors = DOOR_COMMAND,
	.needs = NEEDS_LOCKS,
	.send = idle_send,
	.recv = pairs_recv,
};

/* ---- lock.cancel -------------------------------------------------------- */

/* A ghost of the waiter that gave up would have the lock now */
static void no_ghost(struct script *s, const char *what)
{
	step_unlock(s, A, 0, 0, 1);
	step_pause(s, quiet_ms(s->run));
	means(step_lock(s, A, 0, F_WRLCK, 0, 1, WANT_DONE), what);
	if (!run_lean(s->run)) {
		means(step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_REFUSED), LOCAL);
	}
	step_unlock(s, A, 0, 0, 1);
	if (!run_lean(s->run)) {
		means(step_lock(s, B, 0, F_WRLCK, 0, 1, WANT_DONE), what);
		step_unlock(s, B, 0, 0, 1);
	}
}

/* Each new worker costs; of many members so many are enough, since it is the
 * lock server that must not remember them */
#define CANCEL_KILLS 16

static bool is_sample(const struct script *s)
{
	unsigned each = run_num_members(s->run) / CANCEL_KILLS;

	return each < 2 || s->cast[0] % each == 0;
}

static void cancel_build(struct script *s)
{
	struct step *step = NULL;

	step_open_all(s);
	step_lock(s, A, 0, F_WRLCK, 0, 1, WANT_DONE);
	step = step_lock_begin(s, B, 0, F_WRLCK, 0, 1);
	step->req.patience_ms = 2 * quiet_ms(s->run);
	step = step_await(s, B, WANT_ERRNO);
	step->want_errno = EINTR;
	means(step, "a lock call that has to wait for a signal did not");
	no_ghost(s, "a waiter that gave up gets the lock later");
	if (s->far || !is_sample(s) || run_lean(s->run)) {
		return;
	}

	step_lock(s, A, 0, F_WRLCK, 0, 1, WANT_DONE);
	step_lock_begin(s, B, 0, F_WRLCK, 0, 1);
	step_quiet(s, B, quiet_ms(s->run));
	step_kill(s, B);
	step_open(s, B, 0);
	no_ghost(s, "a waiter that was killed gets the lock later");
}

static struct tevent_req *cancel_send(TALLOC_CTX *mem_ctx,
				      struct tevent_context *ev,
				      struct run *run,
				      struct check_result *result)
{
	return pairs_send(mem_ctx, ev, run, result, PROBE_PROCESS,
			  cancel_build, NULL);
}

const struct check check_lock_cancel = {
	.name = "lock.cancel",
	.holds = "a waiter that gives up, by signal or death, leaves no trace",
	.how = "In pairs, step by step: while one member holds a lock the "
	       "other waits for it and is interrupted by a signal, then "
	       "killed (SIGKILL). Afterwards the lock must still move on.",
	.depends = "CTDB kills a lock helper that takes too long "
		   "(ctdb/server/ctdb_cluster_mutex.c), and lock helpers of "
		   "its databases (ctdb/server/ctdb_lock.c); smbd children "
		   "end while they wait.",
	.remedy = "A waiter that SIGKILL does not end until the lock is free, "
		  "or that gets the lock after its death, blocks everybody "
		  "behind it: the file system (or its FUSE daemon) does not "
		  "handle interrupted lock requests.",
	.doors = DOOR_COMMAND,
	.needs = NEEDS_LOCKS,
	.send = cancel_send,
	.recv = pairs_recv,
};
