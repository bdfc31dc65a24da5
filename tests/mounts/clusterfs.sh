#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The test file system, N mounts served by one daemon. FAULT... are the faults
# to commit, as its option --fault names them, separated by blanks.
# DIR/.state/control is the socket that takes its commands. BUILD is the build
# directory.

# shellcheck source=tests/mounts/common.sh
. "$(dirname "$0")/common.sh"

# shellcheck disable=SC2034
VARIANTS="healthy FAULT..."
BUILD=${BUILD:-$(dirname "$(realpath "$0")")/../../build}

fs_up()
{
	local n=$1 dir=$2 options=() nodes=() i fault faults

	if [ "$3" != healthy ]; then
		read -r -a faults <<<"$3"
		for fault in "${faults[@]}"; do
			options+=(--fault "$fault")
		done
	fi
	for ((i = 0; i < n; i++)); do
		nodes+=("$dir/node$i")
	done
	mkdir "$STATE/back"
	daemon clusterfs "$BUILD/tests/clusterfs/clusterfs" \
		--server "$STATE/control" "${options[@]}" \
		"$STATE/back" "${nodes[@]}"
}

mounts_main "$@"
