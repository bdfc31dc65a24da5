/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>

#include "core/checks/history.h"

/* A lock that was granted, while it is certainly held */
struct held {
	const struct history_op *op;
	uint64_t until_ns;
};

void history_add(struct history *h, const struct history_op *op)
{
	size_t room = talloc_array_length(h->ops);
	struct history_op *ops = h->ops;

	if (h->num == room) {
		ops = talloc_realloc(h, h->ops, struct history_op,
				     room == 0 ? 256 : 2 * room);
		if (ops == NULL) {
			h->oom = true;
			return;
		}
		h->ops = ops;
	}
	h->ops[h->num++] = *op;
}

/* Between the grant of a byte and the unlock of the one before it */
static void add_counter(struct history *h, const struct history_op *inside,
			const struct ring_step *step, unsigned io)
{
	struct history_op op = *inside;

	if ((io & RING_READ) != 0) {
		op.what = HISTORY_READ;
		op.value = step->value;
		history_add(h, &op);
	}
	if ((io & RING_WRITE) != 0) {
		op.what = HISTORY_WRITE;
		op.value = step->value + 1;
		history_add(h, &op);
	}
}

void history_add_ring(struct history *h, unsigned member,
		      const struct ring_step *steps, size_t num,
		      uint64_t nlocks, unsigned io)
{
	size_t i;

	for (i = 0; i < num; i++) {
		const struct ring_step *step = &steps[i];
		struct history_op op = {
			.what = HISTORY_LOCK,
			.member = member,
			.start = step->position % nlocks,
			.len = 1,
			.invoked_ns = step->asked_ns,
			.answered_ns = step->granted_ns,
		};

		if (step->granted_ns != 0) {
			history_add(h, &op);
		}
		if (step->left_ns == 0) {
			continue;
		}
		op.start = (step->position + nlocks - 1) % nlocks;
		op.invoked_ns = step->granted_ns;
		op.answered_ns = step->left_ns;
		if (step->granted_ns != 0) {
			add_counter(h, &op, step, io);
		}
		op.what = HISTORY_UNLOCK;
		op.invoked_ns = step->left_ns;
		op.answered_ns = HISTORY_NEVER;
		history_add(h, &op);
	}
}

static uint64_t end_of(const struct history_op *op)
{
	return op->len == 0 ? UINT64_MAX : op->start + op->len;
}

static bool meet(const struct history_op *a, const struct history_op *b)
{
	return a->start < end_of(b) && b->start < end_of(a);
}

/*
 * ---- exclusion: a walk through the locks by the time they were granted
 */

static int by_start_of_hold(const void *a, const void *b)
{
	const struct held *x = a, *y = b;

	if (x->op->answered_ns != y->op->answered_ns) {
		return x->op->answered_ns < y->op->answered_ns ? -1 : 1;
	}
	return x->op < y->op ? -1 : x->op > y->op;
}

/*
 * Locks and how long each is certainly held: until the member's next unlock
 * or lock that meets it. Returns how many; open: room for as many.
 */
static size_t list_held(const struct history *h, struct held *held,
			size_t *open)
{
	size_t i, j, num_open = 0, num = 0;

	for (i = 0; i < h->num; i++) {
		const struct history_op *op = &h->ops[i];
		size_t kept = 0;

		if (op->what != HISTORY_LOCK && op->what != HISTORY_UNLOCK) {
			continue;
		}
		for (j = 0; j < num_open; j++) {
			struct held *other = &held[open[j]];

			if (other->op->member == op->member &&
			    meet(other->op, op)) {
				other->until_ns = op->invoked_ns;
			} else {
				open[kept++] = open[j];
			}
		}
		num_open = kept;
		if (op->what == HISTORY_LOCK) {
			held[num] = (struct held){ op, HISTORY_NEVER };
			open[num_open++] = num++;
		}
	}
	return num;
}

static void note_overlap(struct history_verdict *verdict,
			 const struct history_op *op,
			 const struct history_op *other)
{
	if (verdict->overlaps++ > 0) {
		return;
	}
	verdict->lock_wrong = HISTORY_OVERLAP;
	verdict->lock_op = *op;
	verdict->lock_other = *other;
}

static bool excludes(const struct held *before, const struct held *now)
{
	return before->until_ns > now->op->answered_ns &&
	       now->until_ns > now->op->answered_ns &&
	       before->op->member != now->op->member &&
	       !(before->op->shared && now->op->shared) &&
	       meet(before->op, now->op);
}

static int judge_locks(const struct history *h,
		       struct history_verdict *verdict)
{
	struct held *held = talloc_array(NULL, struct held, h->num + 1);
	size_t *room = talloc_array(held, size_t, h->num + 1);
	size_t i, j, num, open = 0;

	if (held == NULL || room == NULL) {
		talloc_free(held);
		return ENOMEM;
	}
	num = list_held(h, held, room);
	qsort(held, num, sizeof(*held), by_start_of_hold);
	/* held[0 .. open) are those that the next one may meet */
	for (i = 0; i < num; i++) {
		struct held now = held[i];
		const struct history_op *other = NULL;
		size_t kept = 0;

		for (j = 0; j < open; j++) {
			if (held[j].until_ns <= now.op->answered_ns) {
				continue;
			}
			if (other == NULL && excludes(&held[j], &now)) {
				other = held[j].op;
			}
			held[kept++] = held[j];
		}
		verdict->grants += now.op >= h->ops + h->before &&
				   now.until_ns > now.op->answered_ns;
		if (other != NULL) {
			note_overlap(verdict, now.op, other);
		}
		held[kept++] = now;
		open = kept;
	}
	talloc_free(held);
	return 0;
}

/*
 * ---- values: place by place, its writes in the order of their values
 */

static int by_place_and_value(const void *a, const void *b)
{
	const struct history_op *x = *(const struct history_op *const *)a;
	const struct history_op *y = *(const struct history_op *const *)b;

	if (x->start != y->start) {
		return x->start < y->start ? -1 : 1;
	}
	if (x->value != y->value) {
		return x->value < y->value ? -1 : 1;
	}
	if (x->what != y->what) {
		return x->what == HISTORY_WRITE ? -1 : 1;
	}
	return x < y ? -1 : x > y;
}

static int by_place_and_time(const void *a, const void *b)
{
	const struct history_op *x = *(const struct history_op *const *)a;
	const struct history_op *y = *(const struct history_op *const *)b;

	if (x->start != y->start) {
		return x->start < y->start ? -1 : 1;
	}
	if (x->invoked_ns != y->invoked_ns) {
		return x->invoked_ns < y->invoked_ns ? -1 : 1;
	}
	return x < y ? -1 : x > y;
}

/* A place's writes by the time they were invoked; first[i]: of those from i
 * on the one that was answered first */
struct writes {
	const struct history_op **list;
	const struct history_op **first;
	size_t num;
};

static int list_writes(TALLOC_CTX *mem_ctx, const struct history *h,
		       struct writes *writes)
{
	size_t i;

	writes->list = talloc_array(mem_ctx, const struct history_op *,
				    h->num + 1);
	writes->first = talloc_array(mem_ctx, const struct history_op *,
				     h->num + 1);
	if (writes->list == NULL || writes->first == NULL) {
		return ENOMEM;
	}
	for (i = 0; i < h->num; i++) {
		if (h->ops[i].what == HISTORY_WRITE) {
			writes->list[writes->num++] = &h->ops[i];
		}
	}
	qsort(writes->list, writes->num, sizeof(*writes->list),
	      by_place_and_time);
	for (i = writes->num; i > 0; i--) {
		const struct history_op *this = writes->list[i - 1];
		const struct history_op *next = NULL;

		if (i < writes->num &&
		    writes->list[i]->start == this->start) {
			next = writes->first[i];
		}
		writes->first[i - 1] = next == NULL || this->answered_ns <=
				       next->answered_ns ? this : next;
	}
	return 0;
}

/* A write that was certainly after the given one, the first that was
 * answered; NULL: there is none */
static const struct history_op *overwritten_by(const struct writes *writes,
					       const struct history_op *write)
{
	size_t low = 0, high = writes->num;

	while (low < high) {
		size_t mid = (low + high) / 2;
		const struct history_op *op = writes->list[mid];

		if (op->start < write->start ||
		    (op->start == write->start &&
		     op->invoked_ns <= write->answered_ns)) {
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	if (low == writes->num || writes->list[low]->start != write->start) {
		return NULL;
	}
	return writes->first[low];
}

static void note_wrong(struct history_verdict *verdict,
		       enum history_wrong wrong, const struct history_op *op,
		       const struct history_op *other)
{
	if (verdict->wrong++ > 0 &&
	    op->invoked_ns >= verdict->data_op.invoked_ns) {
		return;
	}
	verdict->data_wrong = wrong;
	verdict->data_op = *op;
	verdict->data_other = other != NULL ? *other
					    : (struct history_op){};
}

/* write: of the value that is read; NULL: nobody wrote it */
static void judge_read(struct history_verdict *verdict,
		       const struct writes *writes,
		       const struct history_op *read,
		       const struct history_op *write)
{
	const struct history_op *other = NULL;

	verdict->reads++;
	if (write == NULL || write->invoked_ns > read->answered_ns) {
		note_wrong(verdict, HISTORY_NOWHERE, read, write);
		return;
	}
	other = overwritten_by(writes, write);
	if (other != NULL && other->answered_ns < read->invoked_ns) {
		note_wrong(verdict, HISTORY_STALE, read, other);
	}
}

static int judge_values(const struct history *h,
			struct history_verdict *verdict)
{
	TALLOC_CTX *mem_ctx = talloc_new(NULL);
	const struct history_op **list = NULL;
	const struct history_op *write = NULL;
	struct writes writes = {};
	size_t i, num = 0;
	int ret = ENOMEM;

	list = talloc_array(mem_ctx, const struct history_op *, h->num + 1);
	if (list != NULL) {
		ret = list_writes(mem_ctx, h, &writes);
	}
	if (ret != 0) {
		talloc_free(mem_ctx);
		return ret;
	}
	for (i = 0; i < h->num; i++) {
		if (h->ops[i].what == HISTORY_READ ||
		    h->ops[i].what == HISTORY_WRITE) {
			list[num++] = &h->ops[i];
		}
	}
	/* the writes of a value stand before those who read it */
	qsort(list, num, sizeof(*list), by_place_and_value);
	for (i = 0; i < num; i++) {
		const struct history_op *op = list[i];
		bool same = write != NULL && write->start == op->start &&
			    write->value == op->value;

		if (op->what == HISTORY_READ) {
			judge_read(verdict, &writes, op, same ? write : NULL);
		} else if (same) {
			note_wrong(verdict, HISTORY_LOST, op, write);
			verdict->lost++;
		} else {
			write = op;
		}
	}
	talloc_free(mem_ctx);
	return 0;
}

int history_judge(const struct history *h, struct history_verdict *verdict)
{
	int ret;

	*verdict = (struct history_verdict){};
	if (h->oom) {
		return ENOMEM;
	}
	ret = judge_locks(h, verdict);
	if (ret != 0) {
		return ret;
	}
	return judge_values(h, verdict);
}

void history_forget(struct history *h)
{
	struct held *held = talloc_array(NULL, struct held, h->num + 1);
	size_t *room = talloc_array(held, size_t, h->num + 1);
	bool *keep = talloc_zero_array(held, bool, h->num + 1);
	struct writes writes = {};
	size_t i, j = 0, num = 0;
	int ret = ENOMEM;

	if (held != NULL && room != NULL && keep != NULL) {
		ret = list_writes(held, h, &writes);
	}
	if (ret != 0) {
		h->oom = true;
		talloc_free(held);
		return;
	}
	list_held(h, held, room);
	for (i = 0; i < h->num; i++) {
		const struct history_op *op = &h->ops[i];

		if (op->what == HISTORY_LOCK) {
			keep[i] = held[j++].until_ns == HISTORY_NEVER;
		} else if (op->what == HISTORY_WRITE) {
			keep[i] = overwritten_by(&writes, op) == NULL;
		}
	}
	for (i = 0; i < h->num; i++) {
		if (keep[i]) {
			h->ops[num++] = h->ops[i];
		}
	}
	h->num = h->before = num;
	talloc_free(held);
}

static bool behind(uint64_t a, uint64_t b, uint64_t nlocks)
{
	return a == HISTORY_NEVER || b == HISTORY_NEVER ||
	       (b > a && b - a < nlocks);
}

bool history_in_order(const uint64_t *positions, unsigned num,
		      uint64_t nlocks, unsigned *who, unsigned *whom)
{
	unsigned i;

	for (i = 0; i + 1 < num; i++) {
		if (!behind(positions[i], positions[i + 1], nlocks)) {
			*who = i;
			*whom = i + 1;
			return false;
		}
	}
	if (num > 2 && !behind(positions[0], positions[num - 1], nlocks)) {
		*who = 0;
		*whom = num - 1;
		return false;
	}
	return true;
}
