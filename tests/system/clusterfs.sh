#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The test file system: fit when healthy, and the classic faults, each with
# what the verdict must say of it. All faults: system/matrix.
# limit: 600

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

for n in 2 3; do
	about "healthy, $n mounts"
	mounts clusterfs $n
	check_exit 1 "exit status" "$MNT"/node*
	expect_jq "scope" '.scope == "cluster"'
	expect_use fit cluster-lock posix-locking share tdb mmap
	expect_use unfit file-id
	expect_because file-id id.device
	expect_mended file-id "vfs objects"
	expect_jq "nothing else is wrong" '
		[.checks[] | select(.name != "id.device") | .outcome
		 | select(IN("fail", "hung", "unsupported"))] == []'
	expect_clean "$MNT/node0"
	check_exit 0 "for all but file-id: exit status" \
		--for cluster-lock,posix-locking,share,tdb,mmap "$MNT"/node*
	expect_exit 1 "exit status of the text report" \
		"$PINGPONG" check "$MNT"/node*
	expect_says "it names the setting" "vfs objects" "$OUT"
	expect_clean "$MNT/node0"
	unmounts
done

about "F1, locks local to the node"
mounts clusterfs 3 local-locks
check_exit 2 "exit status" "$MNT"/node*
expect_use unfit cluster-lock posix-locking
expect_because cluster-lock lock.exclusion
expect_outcome fail lock.exclusion
expect_jq "the evidence" '
	.checks[] | select(.name == "lock.exclusion") | .evidence
	| all(.operation, .member, .range, .expected, .seen;
	      type == "string" and length > 0)'
expect_use fit share
expect_outcome pass io.visibility io.size id.inode
expect_clean "$MNT/node0"
expect_exit 2 "exit status of the text report" \
	"$PINGPONG" check "$MNT"/node*
expect_says "it names the check" "lock.exclusion" "$OUT"
fault clear >/dev/null
check_exit 1 "the fault is gone: exit status" "$MNT"/node*
expect_use fit cluster-lock posix-locking share
unmounts

about "F10, stale data"
mounts clusterfs 3 stale-data
check_exit 2 "exit status" "$MNT"/node*
expect_use unfit share
expect_because share io.visibility
expect_outcome fail io.visibility
expect_use fit cluster-lock
expect_outcome pass lock.exclusion lock.shared lock.getlk lock.handoff \
	lock.release lock.ring
expect_clean "$MNT/node0"
unmounts

about "F11, mappings that other nodes do not see"
mounts clusterfs 3 mmap-incoherent
check_exit 1 "--for mmap: exit status" --for mmap "$MNT"/node*
expect_use unfit mmap
expect_because mmap mmap.visibility
expect_mended mmap "use mmap"
expect_jq "the setting" 'any(.settings[];
	.file == "smb.conf" and .section == "global"
	and .parameter == "use mmap" and .value == "no")'
expect_jq "its companion" 'any(.settings[];
	.file == "ctdb.conf" and .section == "database"
	and .parameter == "tdb mutexes" and .value == "false")'
expect_jq "what it costs" 'any(.settings[] | .because; test("slow|cost"))'
expect_use fit cluster-lock posix-locking share tdb
expect_outcome pass lock.exclusion io.visibility mmap.local
check_exit 1 "default uses: exit status" "$MNT"/node*
check_exit 0 "without file-id: exit status" \
	--for cluster-lock,posix-locking,share "$MNT"/node*
expect_clean "$MNT/node0"
unmounts

about "F11, mappings that nobody else sees"
mounts clusterfs 2 mmap-incoherent:scope=local
check_exit 1 "exit status" --for tdb,mmap "$MNT"/node*
expect_use unfit tdb mmap
expect_because tdb mmap.local
unmounts

about "F12, mmap refused"
mounts clusterfs 2 mmap-refused
check_exit 1 "--for mmap: exit status" --for mmap "$MNT"/node*
expect_outcome unsupported mmap.visibility
expect_use unfit mmap
expect_use fit cluster-lock posix-locking share
unmounts

about "F3, ENOLCK"
mounts clusterfs 2 error:errno=ENOLCK
check_exit 2 "exit status" "$MNT"/node*
expect_use unfit cluster-lock posix-locking
expect_outcome unsupported lock.supported
expect_jq "the errno is named" '
	.checks[] | select(.name == "lock.supported")
	| tostring | test("ENOLCK|No locks available")'
expect_use fit share
unmounts

about "F6, a lock outlives its killed holder"
mounts clusterfs 2 stuck-locks:on=kill
check_exit 2 "exit status" "$MNT"/node*
expect_use unfit cluster-lock
expect_because cluster-lock lock.release
expect_outcome pass lock.exclusion
unmounts

about "F6, a lock outlives the exit of its holder"
mounts clusterfs 2 stuck-locks:on=exit
check_exit 2 "exit status" "$MNT"/node*
expect_use unfit cluster-lock posix-locking
expect_because cluster-lock lock.release
expect_outcome fail lock.release
expect_outcome pass lock.exclusion lock.cancel
unmounts

about "F21, offsets beyond 32 bits are refused"
mounts clusterfs 2 offset-bits:bits=32,how=refuse
check_exit 2 "exit status" "$MNT"/node*
expect_outcome unsupported lock.range64
expect_use unfit posix-locking
expect_use fit cluster-lock share
unmounts

about "F10, names that are seen after 3 s"
mounts clusterfs 2 stale-names:seconds=3
check_exit 1 "exit status" "$MNT"/node*
expect_outcome slow dir.visibility
expect_use fit cluster-lock posix-locking share
expect_jq "everything else was tested" '
	[.checks[] | select(.outcome == "skipped")] == []'
unmounts

about "F7, a waiter is never woken"
mounts clusterfs 2 no-wakeup:until=never
check_exit 3 "exit status" "$MNT"/node*
expect_use unfit cluster-lock
expect_because cluster-lock lock.handoff
expect_outcome pass lock.exclusion
unmounts

about "F15, inode numbers differ"
mounts clusterfs 2 ids
check_exit 2 "exit status" "$MNT"/node*
expect_use unfit file-id
expect_because file-id id.inode
expect_outcome fail id.inode
expect_jq "nothing mends it" '.verdict."file-id".mended_by == []'
expect_outcome pass lock.exclusion io.visibility
unmounts
