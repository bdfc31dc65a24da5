#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# bindfs, a real file system with three faces: locks local to each mount;
# locks right across mounts but for three flaws that stock ping_pong never
# sees (a forked child's close drops the lock; a waiter cannot be killed until
# the lock is free; two OFD owners of one process do not exclude each other);
# the same with right data.
# limit: 600

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need bindfs

flaws()
{
	expect_outcome pass lock.supported lock.exclusion lock.shared lock.getlk
	expect_use unfit cluster-lock posix-locking
	expect_because cluster-lock lock.release lock.cancel
	expect_because posix-locking lock.ofd
	expect_outcome fail lock.release lock.ofd
	expect_jq "the forked child is named" '
		.checks[] | select(.name == "lock.release")
		| .why | test("forked child")'
	expect_outcome hung lock.cancel
	expect_jq "the waiter is shown" '
		.checks[] | select(.name == "lock.cancel")
		| .evidence.detail
		| test("state D") and test("SIGKILL does not end it")'
	expect_clean "$MNT/node0"
}

for n in 2 3; do
	about "default, $n mounts"
	mounts bindfs $n default
	check_exit 2 "exit status" "$MNT"/node*
	expect_use unfit cluster-lock posix-locking share
	expect_because cluster-lock lock.exclusion
	expect_because share io.visibility
	expect_outcome fail lock.exclusion io.visibility
	expect_outcome pass id.inode lock.supported
	expect_mended file-id "vfs objects"
	expect_use unfit mmap
	expect_clean "$MNT/node0"
	unmounts

	about "lock, $n mounts"
	mounts bindfs $n lock
	check_exit 3 "exit status" "$MNT"/node*
	expect_use unfit share mmap
	expect_because share io.visibility
	flaws
	unmounts

	about "locknocache, $n mounts"
	mounts bindfs $n locknocache
	check_exit 3 "exit status" "$MNT"/node*
	expect_outcome pass io.visibility io.size io.append dir.visibility
	expect_use fit share
	expect_outcome unsupported mmap.visibility
	expect_use unfit mmap
	flaws
	unmounts
done
