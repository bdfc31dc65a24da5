#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# GlusterFS: right locks with stale data, and, with direct I/O, right data.
# limit: 600

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need glusterd

# checked EXIT CASE ARG...: as check_exit, on the mounts that are up. The check
# must not end the brick, as an unlock across thousands of locks would.
checked()
{
	local want=$1 name=$2
	shift 2

	run "$PINGPONG" check --json "$@" "$MNT"/node*
	# shellcheck disable=SC2016
	SHOW='{exit, verdict}' \
	expect_jq "$name" '.exit == $want' --argjson want "$want"
	expect "$name, the brick is there" pgrep -x glusterfsd
}

n=3
for variant in default off; do
	about "$variant"
	mounts glusterfs "$n" "$variant"
	checked 2 "exit status"
	expect_use fit cluster-lock
	expect_use unfit share mmap
	expect_because share io.visibility
	expect_outcome pass lock.exclusion lock.shared lock.getlk lock.release \
		lock.ring
	expect_outcome fail io.visibility
	expect_jq "how old the data was" '
		.checks[] | select(.name == "io.visibility")
		| [.why, .evidence, .metrics | tostring]
		| any(test("[0-9] ?m?s|age"))'
	expect_clean "$MNT/node0"
	unmounts
done

variant=offnocache
for n in 2 3; do
	about "$variant, $n mounts"
	mounts glusterfs "$n" "$variant"
	checked 1 "exit status"
	expect_use fit cluster-lock posix-locking share
	expect_mended file-id "vfs objects"
	expect_outcome unsupported mmap.visibility
	expect_use unfit mmap
	expect_outcome pass lock.exclusion lock.release lock.ring io.increment \
		io.visibility io.size id.inode
	expect_clean "$MNT/node0"
	checked 0 "only the locks" --for cluster-lock,posix-locking,share
	unmounts
done
