#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The tree builds with clang too, where a warning is an error as with gcc, and
# with gcc's sanitizers, under which the unit tests find nothing.
# limit: 900

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need clang gcc

top=$(dirname "$TESTS")

# copy DIR: the sources, so that the builds of the tree stay what they are
copy()
{
	mkdir "$1"
	tar -C "$top" -c --exclude=./build --exclude=./build-asan \
		--exclude=./.git --exclude=./.lock-waf* . | tar -C "$1" -x
}

clang_builds()
{
	(cd "$SCRATCH/clang" && CC=clang ./waf configure && ./waf build)
}

copy "$SCRATCH/clang"
expect "clang" clang_builds
echo 'static int nobody_calls_this(void) { return 0; }' \
	>>"$SCRATCH/clang/core/report/svg.c"
expect_not "a warning of clang's is an error" clang_builds

sanitized_builds()
{
	(cd "$SCRATCH/asan" && ./waf configure --sanitize &&
		./waf build --sanitize)
}

copy "$SCRATCH/asan"
expect "gcc with its sanitizers" sanitized_builds
for t in "$SCRATCH"/asan/build-asan/tests/unit/test_*; do
	if ! [ -x "$t" ] || ! [ -f "$t" ]; then
		continue
	fi
	expect "sanitized: ${t##*/}" env BUILD="$SCRATCH/asan/build-asan" "$t"
done
