/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Steps of a ring as text: what all are relative to, then a line of numbers
 * for each, hexadecimal. "0" is no time, others are one more than they are
 * late.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/probe/ring.h"

/* Five numbers of 64 bits, four blanks, the end of the line */
#define LINE_MAX_SIZE (5 * 16 + 4 + 1 + 1)

static uint64_t after(uint64_t ns, uint64_t base)
{
	return ns == 0 ? 0 : ns - base + 1;
}

static uint64_t time_of(uint64_t late, uint64_t base)
{
	return late == 0 ? 0 : late - 1 + base;
}

/* The earliest time of all that the steps name */
static uint64_t base_of(const struct ring_step *steps, size_t num)
{
	uint64_t base = UINT64_MAX;
	size_t i;

	for (i = 0; i < num; i++) {
		uint64_t first = steps[i].asked_ns != 0 ? steps[i].asked_ns
							: steps[i].left_ns;

		base = first < base ? first : base;
	}
	return base;
}

size_t ring_steps_print(const struct ring_step *steps, size_t num, char *buf,
			size_t size)
{
	uint64_t base = base_of(steps, num);
	uint64_t position = num > 0 ? steps[0].position : 0;
	size_t used = 0, done = 0;

	used = (size_t)snprintf(buf, size, "%" PRIx64 " %" PRIx64 "\n", base,
				position);
	while (done < num && used + LINE_MAX_SIZE < size) {
		const struct ring_step *step = &steps[done++];

		used += (size_t)snprintf(
			buf + used, size - used,
			"%" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64
			" %" PRIx64 "\n", step->position - position,
			after(step->asked_ns, base),
			after(step->granted_ns, base),
			after(step->left_ns, base), step->value);
	}
	return done;
}

/* A number and the one character behind it */
static int number(const char **text, char behind, uint64_t *value)
{
	char *end = NULL;

	errno = 0;
	*value = strtoull(*text, &end, 16);
	if (errno != 0 || end == *text || *end != behind) {
		return EPROTO;
	}
	*text = end + 1;
	return 0;
}

static int step_parse(const char **text, uint64_t base, uint64_t position,
		      struct ring_step *step)
{
	uint64_t field[5];
	unsigned i;
	int ret;

	for (i = 0; i < 5; i++) {
		ret = number(text, i < 4 ? ' ' : '\n', &field[i]);
		if (ret != 0) {
			return ret;
		}
	}
	*step = (struct ring_step) {
		.position = position + field[0],
		.asked_ns = time_of(field[1], base),
		.granted_ns = time_of(field[2], base),
		.left_ns = time_of(field[3], base),
		.value = field[4],
	};
	return 0;
}

int ring_steps_parse(const char *text, struct ring_step *steps, size_t room,
		     size_t *num)
{
	uint64_t base = 0, position = 0;
	int ret;

	*num = 0;
	ret = number(&text, ' ', &base);
	if (ret == 0) {
		ret = number(&text, '\n', &position);
	}
	while (ret == 0 && *text != '\0') {
		if (*num == room) {
			return EPROTO;
		}
		ret = step_parse(&text, base, position, &steps[*num]);
		*num += ret == 0;
	}
	return ret;
}
