#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Each fuzz target, 10,000 times. `./waf fuzz` runs them longer.
#
# limit: 500

set -u
build=${BUILD:?}
cd "$(dirname "$0")/../.." || exit 1
if ! echo 'int main(void) { return 0; }' |
     gcc -fsanitize=address,undefined -x c - -o "${TMPDIR:?}/try"; then
	echo "skip fuzz: the compiler has no sanitizers"
	exit 0
fi
rm -f "$TMPDIR/try"
exec tests/fuzz/run --build "$build" --runs 10000
