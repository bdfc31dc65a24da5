#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# GlusterFS: right locks with stale data, and, with direct I/O, right data.
# limit: 600

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need glusterd

for variant in default off; do
	about "$variant"
	mounts glusterfs 3 $variant
	check_exit 2 "exit status" "$MNT"/node*
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

for n in 2 3; do
	about "offnocache, $n mounts"
	mounts glusterfs $n offnocache
	check_exit 1 "exit status" "$MNT"/node*
	expect_use fit cluster-lock posix-locking share
	expect_mended file-id "vfs objects"
	expect_outcome unsupported mmap.visibility
	expect_use unfit mmap
	expect_outcome pass lock.exclusion lock.release lock.ring io.increment \
		io.visibility io.size id.inode
	expect_clean "$MNT/node0"
	check_exit 0 "only the locks" --for cluster-lock,posix-locking,share \
		"$MNT"/node*
	unmounts
done
