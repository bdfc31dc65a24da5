#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What one member sees of what another did, and when: under a lock, without
# one, and what each kind of old data, size and name is called. Only what
# lasts for seconds is told from what does not, so that a busy machine changes
# nothing.
# limit: 600

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

NO_LOCKS=error:errno=ENOLCK
DATA=io.visibility,io.size,io.append,dir.visibility

# only EXIT CHECKS: the checks, on the clusterfs that is up
only()
{
	check_exit "$1" "exit status" --for share --only "$2" "$MNT"/node*
}

# metric CHECK FILTER
metric()
{
	expect_jq "metrics of $1: $2" "
		.checks[] | select(.name == \"$1\") | .metrics | $2"
}

about "healthy"
mounts clusterfs 3
only 4 "$DATA,lock.supported,lease.break,mmap.mixed"
expect_outcome pass io.visibility io.size io.append dir.visibility \
	lease.break mmap.mixed
metric io.visibility '.under_lock and .violations == 0 and .trials > 0'
metric mmap.mixed '.cells | length == 4 and all(. == "pass")'
metric lease.break '.lease == "granted"'

about "no locks, all current"
fault add $NO_LOCKS >/dev/null
only 4 "lock.supported,$DATA"
expect_outcome pass io.visibility io.size io.append dir.visibility
metric io.visibility '.under_lock == false'

about "no locks, old for 0.3 s"
fault add stale-data:seconds=0.3 >/dev/null
fault add stale-size:seconds=0.3 >/dev/null
only 4 "lock.supported,io.visibility,io.size"
expect_outcome pass io.visibility io.size
fault clear stale-data >/dev/null
fault clear stale-size >/dev/null

about "no locks, old for 2 s"
fault add stale-data:seconds=2 >/dev/null
fault add stale-size:seconds=2 >/dev/null
only 4 "lock.supported,io.visibility,io.size"
expect_outcome slow io.visibility io.size
metric io.visibility '.stale_ms > 1000'
metric io.size '.stale_ms > 1000'
fault clear stale-data >/dev/null
fault clear stale-size >/dev/null

about "no locks, old for ever"
fault add stale-data >/dev/null
fault add stale-size >/dev/null
only 2 "lock.supported,io.visibility,io.size"
expect_outcome fail io.visibility io.size
fault clear >/dev/null

about "under a lock, old for 0.3 s"
fault add stale-data:seconds=0.3 >/dev/null
only 2 "lock.supported,io.visibility,io.size"
expect_outcome fail io.visibility
expect_outcome pass io.size
metric io.visibility '.under_lock and .stale_ms < 2000'
expect_jq "the generation that is read" '
	.checks[] | select(.name == "io.visibility") | .evidence
	| (.expected | test("generation 2")) and (.seen | test("generation 1"))'
expect_jq "how long" '
	.checks[] | select(.name == "io.visibility").why
	| test("right only after [0-9.]+ s")'
fault clear >/dev/null

about "under a lock, old for ever"
fault add stale-data:until=reopen >/dev/null
only 2 "lock.supported,io.visibility"
expect_outcome fail io.visibility
expect_jq "for how long at least" '
	.checks[] | select(.name == "io.visibility").why
	| test("still so after [0-9.]+ s")'
fault clear >/dev/null

for part in offset=4096- size=65536- member=1; do
	about "old data, $part"
	fault add "stale-data:$part" >/dev/null
	only 2 lock.supported,io.visibility
	expect_outcome fail io.visibility
	fault clear >/dev/null
done

about "O_APPEND overwrites"
fault add append-overwrites >/dev/null
only 2 "lock.supported,$DATA"
expect_outcome fail io.append
expect_outcome pass io.visibility io.size dir.visibility
fault clear >/dev/null

about "writes that are lost"
fault add lost-writes >/dev/null
only 2 "lock.supported,io.visibility"
expect_outcome fail io.visibility
fault clear >/dev/null

about "names that are old for 2 s"
fault add stale-names:seconds=2 >/dev/null
only 4 dir.visibility
expect_outcome slow dir.visibility
fault clear >/dev/null

about "a lease that is kept"
fault add lease-kept >/dev/null
only 4 lease.break
expect_outcome fail lease.break
fault clear >/dev/null
expect_clean "$MNT/node0"
unmounts

about "mappings of one's own"
mounts clusterfs 2 mmap-incoherent
only 4 lock.supported,mmap.local,mmap.visibility,mmap.mixed
expect_outcome pass mmap.local
expect_outcome fail mmap.visibility mmap.mixed
metric mmap.mixed '.cells == {"pwrite-pread": "pass", "pwrite-mmap": "fail",
	"mmap-pread": "fail", "mmap-mmap": "fail"}'
unmounts

about "mappings that are copies"
mounts clusterfs 2 mmap-incoherent:scope=local
only 4 mmap.local
expect_outcome fail mmap.local
unmounts

about "no mappings"
mounts clusterfs 2 mmap-refused
only 4 lock.supported,mmap.local,mmap.visibility,mmap.mixed
expect_outcome unsupported mmap.local mmap.visibility mmap.mixed
expect_jq "the errno is named" '
	[.checks[] | select(.name | startswith("mmap."))
	 | .why | test("ENODEV")] | all'
unmounts

about "inode numbers of the member's own"
mounts clusterfs 3 ids
only 2 id.inode
expect_outcome fail id.inode
unmounts

about "inode numbers of each open"
mounts clusterfs 2 ids:ino=open
only 2 id.inode
expect_outcome fail id.inode
unmounts
