#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A local file system, bind-mounted N times: one node with N views.
#   directory          on the file system that DIR lies on
#   ext4, xfs, btrfs   on a loop device
#   tmpfs

# shellcheck source=tests/mounts/common.sh
. "$(dirname "$0")/common.sh"

# shellcheck disable=SC2034
VARIANTS="directory ext4 xfs btrfs tmpfs"
# shellcheck disable=SC2034
DAEMONS=

fs_up()
{
	local n=$1 dir=$2 variant=$3 back=$STATE/back i

	mkdir "$back"
	case $variant in
	directory) ;;
	tmpfs) mount -t tmpfs -o size=64m tmpfs "$back" || return 1;;
	*)
		# 320 MiB: less is too little for mkfs.xfs.
		truncate -s 320M "$STATE/image" &&
		"mkfs.$variant" -q "$STATE/image" >"$STATE/mkfs.log" 2>&1 &&
		mount -o loop -t "$variant" "$STATE/image" "$back" ||
			return 1;;
	esac
	for ((i = 0; i < n; i++)); do
		mount --bind "$back" "$dir/node$i" || return 1
	done
}

mounts_main "$@"
