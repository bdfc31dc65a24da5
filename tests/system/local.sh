#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Local file systems: fit where one node is all there is (--local); one node
# only, and so unknown, where it is not.
# limit: 600

# What has a $ within single quotes is for jq.
# shellcheck disable=SC2016

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need mkfs.ext4 mkfs.xfs mkfs.btrfs

ALL="cluster-lock posix-locking share file-id tdb mmap"

about "directory, --local"
mounts local 3 directory
nodes=("$MNT/node0" "$MNT/node1" "$MNT/node2")
check_exit 0 "exit status" --local "${nodes[@]}"
# shellcheck disable=SC2086
expect_use fit $ALL
expect_jq "nothing failed" '
	[.checks[] | select(.outcome | IN("fail", "hung"))] == []'
expect_jq "scope" '.scope == "local"'
expect_jq "no setting is needed" '[.settings[] | select(.needed)] == []'
expect_clean "$MNT/node0"

about "the report"
expect_jq "the object" '
	.schema == 1 and .exit == 0 and (.duration_s > 0)
	and all(.pingpong, .started, .target; . != null)'
expect_jq "the members" '
	(.members | length) == 3
	and [.members[].path] == $ARGS.positional
	and all(.members[]; . as $m
		| all("name", "host", "fstype", "source", "options", "kernel";
		      $m[.] | type == "string" and length > 0))
	and ([.members[].inode] | unique | length) == 1
	and ([.members[].device] | unique | length) == 1
	' --args "${nodes[@]}"
expect_jq "the host" '.members[0].host == $host' --arg host "$(uname -n)"
expect_jq "the kernel" '.members[0].kernel == $kernel' \
	--arg kernel "$(uname -r)"
expect_jq "the device" '.members[0].device == $device' \
	--arg device "$(mountpoint -d "$MNT/node0")"
expect_jq "the inode" '.members[0].inode == $inode' \
	--argjson inode "$(stat -c %i "$MNT/node0")"
expect_jq "every check has an outcome" '
	(.checks | length) > 0
	and all(.checks[]; .outcome
		| IN("pass", "slow", "fail", "hung", "unsupported", "skipped"))'

about "directory, not --local"
check_exit 4 "exit status" "${nodes[@]}"
# shellcheck disable=SC2086
expect_use unknown $ALL
expect_exit 4 "exit status of the text report" "$PINGPONG" check "${nodes[@]}"
expect_says "it says why" "only one node" "$OUT"
expect_clean "$MNT/node0"

about "one place"
check_exit 0 "--local: exit status" --local "$MNT/node0"
expect_jq "it gets two members" '(.members | length) == 2'
check_exit 4 "not --local: exit status" "$MNT/node0"
expect_exit 4 "exit status of the text report" "$PINGPONG" check "$MNT/node0"
expect_says "it says why" "only one node" "$OUT"

about "--for"
check_exit 0 "mmap" --local --for mmap "${nodes[@]}"
check_exit 0 "tdb" --local --for tdb "${nodes[@]}"
check_exit 0 "all" --local --for "${ALL// /,}" "${nodes[@]}"

about "--only"
check_exit 4 "exit status: the rest is unknown" --local \
	--only lock.exclusion,io.size "${nodes[@]}"
expect_jq "only these" '
	[.checks[] | select(.outcome != "skipped") | .name] | sort
	== ["io.size", "lock.exclusion"]'
expect_use unknown cluster-lock posix-locking share file-id

about "--quick"
check_exit 0 "exit status" --local --quick "${nodes[@]}"
unmounts

for type in ext4 xfs btrfs tmpfs; do
	about "$type"
	mounts local 3 "$type"
	check_exit 0 "exit status" --local \
		"$MNT/node0" "$MNT/node1" "$MNT/node2"
	# shellcheck disable=SC2086
	expect_use fit $ALL
	expect_jq "the type" 'all(.members[]; .fstype == $type)' \
		--arg type "$type"
	expect_clean "$MNT/node0"
	check_exit 4 "not --local: exit status" "$MNT/node0" "$MNT/node1"
	unmounts
done
