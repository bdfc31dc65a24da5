#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# bindfs (FUSE): N mounts of one directory.
#   default      no lock operations: the kernel keeps locks for each mount
#   lock         lock operations are forwarded to the directory; kernel caches
#   locknocache  the same with direct I/O and without caches

# shellcheck source=tests/mounts/common.sh
. "$(dirname "$0")/common.sh"

# shellcheck disable=SC2034
VARIANTS="default lock locknocache"

fs_up()
{
	local n=$1 dir=$2 options=() i

	case $3 in
	lock*) options+=(--enable-lock-forwarding --multithreaded);;
	esac
	case $3 in
	*nocache)
		options+=(-o "direct_io,attr_timeout=0,entry_timeout=0")
		options+=(-o negative_timeout=0);;
	esac
	mkdir "$STATE/back"
	for ((i = 0; i < n; i++)); do
		daemon "client$i" bindfs -f "${options[@]}" \
			"$STATE/back" "$dir/node$i"
	done
}

mounts_main "$@"
