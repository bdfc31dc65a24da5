/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * driver RUNS SEED FILE...: for compilers without libFuzzer
 *
 * Each file once, then RUNS inputs made of them: bytes changed, put in, taken
 * out, numbers at the edges of their types, parts of two files joined. The
 * same seed makes the same inputs.
 */
#include <string.h>

#include "tests/fuzz/fuzz.h"

#define MAX_SIZE 65536

static uint64_t state;

static uint64_t next(uint64_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return below > 0 ? state % below : 0;
}

struct input {
	uint8_t *data;
	size_t size;
};

static struct input read_file(const char *path)
{
	struct input input = { .data = malloc(MAX_SIZE) };
	FILE *f = fopen(path, "re");

	if (f == NULL || input.data == NULL) {
		perror(path);
		exit(1);
	}
	input.size = fread(input.data, 1, MAX_SIZE, f);
	fclose(f);
	return input;
}

static void put_in(uint8_t *buf, size_t *size, const void *what, size_t n)
{
	size_t at = next(*size + 1);

	if (*size + n > MAX_SIZE) {
		return;
	}
	memmove(buf + at + n, buf + at, *size - at);
	memcpy(buf + at, what, n);
	*size += n;
}

static void take_out(uint8_t *buf, size_t *size)
{
	size_t at = next(*size), n = 1 + next(16);

	if (*size == 0) {
		return;
	}
	n = n < *size - at ? n : *size - at;
	memmove(buf + at, buf + at + n, *size - at - n);
	*size -= n;
}

static void change(uint8_t *buf, size_t *size, const struct input *other)
{
	static const char *const words[] = {
		"-1", "2147483647", "4294967296", "9223372036854775807",
		"-9223372036854775808", "1e999", "null", "true", "{}", "[]",
		"\"\"", "\\u0000", "\n", "\\", "\"", "/", " ", "#", "!",
	};
	const char *word = NULL;
	uint8_t byte = (uint8_t)next(256);
	size_t at, n;

	switch (next(5)) {
	case 0:
		if (*size > 0) {
			buf[next(*size)] = byte;
		}
		break;
	case 1:
		put_in(buf, size, &byte, 1);
		break;
	case 2:
		take_out(buf, size);
		break;
	case 3:
		word = words[next(sizeof(words) / sizeof(words[0]))];
		put_in(buf, size, word, strlen(word));
		break;
	default:
		at = next(other->size);
		n = next(other->size - at + 1);
		put_in(buf, size, other->data + at, n < 64 ? n : 64);
	}
}

int main(int argc, char **argv)
{
	struct input *inputs = calloc((size_t)argc, sizeof(*inputs));
	static uint8_t buf[MAX_SIZE];
	unsigned long runs, i, num = (unsigned long)argc - 3;

	if (argc < 4 || inputs == NULL) {
		fprintf(stderr, "usage: %s RUNS SEED FILE...\n", argv[0]);
		return 1;
	}
	runs = strtoul(argv[1], NULL, 10);
	state = strtoul(argv[2], NULL, 10) * 2 + 1;
	for (i = 0; i < num; i++) {
		inputs[i] = read_file(argv[3 + i]);
		LLVMFuzzerTestOneInput(inputs[i].data, inputs[i].size);
	}
	for (i = 0; i < runs; i++) {
		const struct input *base = &inputs[next(num)];
		size_t size = base->size;
		uint64_t changes = 1 + next(6);
		uint8_t *exact = NULL;

		memcpy(buf, base->data, size);
		while (changes-- > 0) {
			change(buf, &size, &inputs[next(num)]);
		}
		/* of its exact size: a sanitizer sees what reads beyond */
		exact = malloc(size > 0 ? size : 1);
		fuzz_assert(exact != NULL);
		memcpy(exact, buf, size);
		LLVMFuzzerTestOneInput(exact, size);
		free(exact);
	}
	for (i = 0; i < num; i++) {
		free(inputs[i].data);
	}
	free(inputs);
	printf("Done %lu runs\n", runs);
	return 0;
}
