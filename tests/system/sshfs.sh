#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# sshfs: locks are local to each mount whatever the options; the options
# decide about the data.
# limit: 600

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need sshfs

for n in 2 3; do
	about "default, $n mounts"
	mounts sshfs $n default
	check_exit 2 "exit status" "$MNT"/node*
	expect_use unfit cluster-lock posix-locking share mmap
	expect_because cluster-lock lock.exclusion
	expect_because share io.visibility
	expect_outcome fail lock.exclusion io.visibility
	expect_clean "$MNT/node0"
	unmounts

	about "nocachesync, $n mounts"
	mounts sshfs $n nocachesync
	check_exit 2 "exit status" "$MNT"/node*
	expect_use unfit cluster-lock posix-locking
	expect_because cluster-lock lock.exclusion
	expect_outcome fail lock.exclusion
	expect_outcome pass io.visibility
	expect_outcome unsupported mmap.visibility
	expect_clean "$MNT/node0"
	unmounts
done
