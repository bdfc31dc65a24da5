#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# pingpong sweep, as people run ping_pong by hand: one member, two, three, and
# back; locks, -rw and -rwm, judged.
# limit: 300

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

[ -x "$BUILD/tests/clusterfs/clusterfs" ] || skip_all "no clusterfs was built"

mounts clusterfs 3
places=("$MNT/node0" "$MNT/node1" "$MNT/node2")

sweep_exit()
{
	local want=$1
	shift
	expect_exit "$want" "exit status" "$PINGPONG" sweep --json --step 1 "$@"
}

about "healthy"
sweep_exit 0 "${places[@]}"
expect_use fit cluster-lock posix-locking mmap
expect_outcome pass lock.ring io.increment mmap.increment
SHOW='[.checks[].metrics | del(.steps[].rates)]'
expect_jq "up and down, in each mode" \
	'all(.checks[].metrics.steps; map(.members) == [1, 2, 3, 2, 1])'
expect_jq "each second has a rate" \
	'all(.checks[].metrics.steps[]; .rates | length == 1 and .[0] > 0)'
expect_jq "the data increment is the number of members" '
	all(.checks[1, 2].metrics.steps[]; .increment == .members)'
expect_jq "drop and recovery are told" \
	'all(.checks[].metrics; .drop_each > 0 and .recovery > 0)'
expect_jq "only what it is about has a verdict" '
	.verdict | keys == ["cluster-lock", "mmap", "posix-locking"]'
SHOW=
expect_clean "$MNT/node0"

about "plain lines"
expect_exit 0 "exit status" "$PINGPONG" sweep --step 1 "${places[@]:0:2}"
expect_says "each second" '^-rw *2 members *[0-9]* turns/s  data increment 2$' \
	"$OUT"
expect_says "the verdict" '^FIT: cluster-lock, posix-locking$' "$OUT"
expect_says "a table" '^  members *locks *-rw *-rwm$' "$OUT"

fault add local-locks
about "node-local locks"
sweep_exit 2 "${places[@]}"
expect_use unfit cluster-lock posix-locking
expect_outcome fail lock.ring
expect_jq "no drop" '
	.checks[0].metrics.remarks | any(startswith("no drop"))'
fault clear

about "one node"
sweep_exit 4 "$MNT/node0"
sweep_exit 0 --local "$MNT/node0"

about "bad input"
expect_exit 64 "no place" "$PINGPONG" sweep
expect_exit 64 "no time" "$PINGPONG" sweep --step 0 "$MNT/node0"
expect_clean "$MNT/node0"
