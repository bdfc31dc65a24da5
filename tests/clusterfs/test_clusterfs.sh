#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The test file system tested: healthy, and every fault of its table.
#
#   test_clusterfs.sh [CASE...]
#
# The program is CLUSTERFS, or the one in the build directory BUILD, or it is
# compiled here. Prints "ok CASE" and
# "not ok CASE: WHY"; the last line is "N passed, N failed, N skipped".
# limit: 800

set -u

here=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d) || exit 1
trap 'rm -rf --one-file-system "$scratch"' EXIT

compile()
{
	local program=$1
	shift

	# shellcheck disable=SC2046 # options are words
	"${CC:-cc}" -D_GNU_SOURCE -O2 -g -Wall -Wextra -Werror \
		-o "$program" "$@" $(pkg-config --cflags --libs fuse3) -lpthread
}

if [ ! -w /dev/fuse ] || [ "$(id -u)" != 0 ]; then
	echo "skip all: needs /dev/fuse and root"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
fi
CLUSTERFS=${CLUSTERFS:-${BUILD:+$BUILD/tests/clusterfs/clusterfs}}
if [ -z "$CLUSTERFS" ]; then
	CLUSTERFS=$scratch/clusterfs
	compile "$CLUSTERFS" "$here"/*.c || exit 1
fi
compile "$scratch/selftest" "$here"/selftest/*.c || exit 1

"$scratch/selftest" "$CLUSTERFS" "$scratch" "$@"
