/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * One frame: as request, as answer, as a ring's log; what is understood is
 * written and read again as the same.
 */
#include "core/member/wire.h"
#include "core/probe/ring.h"
#include "tests/fuzz/fuzz.h"

#define STEPS 256

static void as_request(const json_t *frame)
{
	struct probe_request request, again;
	json_t *written = NULL;
	int ret;

	memset(&request, 0, sizeof(request));
	ret = wire_to_request(frame, &request);
	if (ret != 0) {
		return;
	}
	fuzz_assert(strlen(request.name) < PROBE_NAME_MAX);
	written = wire_from_request(&request);
	fuzz_assert(written != NULL);
	ret = wire_to_request(written, &again);
	fuzz_assert(ret == 0 && again.op == request.op &&
		    again.start == request.start &&
		    again.slot == request.slot &&
		    strcmp(again.name2, request.name2) == 0);
	json_decref(written);
}

static void as_answer(const json_t *frame)
{
	struct ring_step steps[STEPS];
	struct probe_answer answer, again;
	json_t *written = NULL;
	size_t num = 0;
	int ret;

	ret = wire_to_answer(frame, &answer);
	if (ret != 0) {
		return;
	}
	fuzz_assert(answer.err >= 0);
	if (answer.log != NULL) {
		ring_steps_parse(answer.log, steps, STEPS, &num);
		fuzz_assert(num <= STEPS);
	}
	written = wire_from_answer(&answer);
	fuzz_assert(written != NULL);
	ret = wire_to_answer(written, &again);
	fuzz_assert(ret == 0 && again.err == answer.err &&
		    again.fsid == answer.fsid);
	json_decref(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *frame = json_loadb((const char *)data, size,
				   JSON_REJECT_DUPLICATES, NULL);
	char *text = fuzz_text(data, size);
	json_t *string = wire_text(text);

	fuzz_assert(string != NULL);
	json_decref(string);
	free(text);
	if (json_is_object(frame)) {
		as_request(frame);
		as_answer(frame);
	}
	json_decref(frame);
	return 0;
}
