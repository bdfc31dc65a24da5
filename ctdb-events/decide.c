/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "ctdb-events/decide.h"

struct group {
	unsigned size;
	unsigned lowest;	/* PNN */
};

static enum fitness fitness(const struct decision_input *input, unsigned a,
			    unsigned b)
{
	return a < b ? input->fit[a][b] : input->fit[b][a];
}

static void join(const struct decision_input *input, struct group *group,
		 unsigned party)
{
	unsigned pnn = input->parties[party].pnn;

	if (group->size == 0 || pnn < group->lowest) {
		group->lowest = pnn;
	}
	group->size++;
}

/* This node and those it is fit with */
static struct group own_group(const struct decision_input *input)
{
	struct group group = {};
	unsigned i;

	join(input, &group, 0);
	for (i = 1; i < input->num; i++) {
		if (fitness(input, 0, i) == FIT) {
			join(input, &group, i);
		}
	}
	return group;
}

static bool rival(const struct decision_input *input, unsigned party)
{
	return input->parties[party].running == input->parties[0].running &&
	       fitness(input, 0, party) == UNFIT;
}

/* One that this node is unfit with, and the others of that kind that it is
 * fit with */
static struct group rivals(const struct decision_input *input, unsigned party)
{
	struct group group = {};
	unsigned i;

	join(input, &group, party);
	for (i = 1; i < input->num; i++) {
		if (i != party && rival(input, i) &&
		    fitness(input, party, i) == FIT) {
			join(input, &group, i);
		}
	}
	return group;
}

bool decide_refuses(const struct decision_input *input, unsigned *because)
{
	struct group own = own_group(input);
	bool running = input->parties[0].running;
	unsigned i;

	for (i = 1; i < input->num; i++) {
		if (!running && input->parties[i].running &&
		    fitness(input, 0, i) == UNFIT) {
			*because = i;
			return true;
		}
	}
	for (i = 1; i < input->num; i++) {
		struct group other = {};

		if (!rival(input, i)) {
			continue;
		}
		other = rivals(input, i);
		if (other.size > own.size || (other.size == own.size &&
					      other.lowest < own.lowest)) {
			*because = i;
			return true;
		}
	}
	return false;
}
