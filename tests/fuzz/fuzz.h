/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What a fuzz target is: one function, as libFuzzer calls it
 *
 * A target takes any bytes and must come back: no crash, nothing that a
 * sanitizer finds, no memory that grows. What it states about the code under
 * test it says with fuzz_assert(). tests/fuzz/run builds and runs them.
 */
#ifndef PINGPONG_TESTS_FUZZ_H
#define PINGPONG_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define fuzz_assert(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, \
				__LINE__, #what); \
			abort(); \
		} \
	} while (0)

/* The input as a string of its own, to be freed */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	fuzz_assert(text != NULL);
	if (size > 0) {
		memcpy(text, data, size);
	}
	text[size] = '\0';
	return text;
}

#endif
