#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Rare faults: one violation in 1,000 operations is found by the default run,
# one in 100,000 by --thorough, and what was not seen has a number.
# limit: 600

# What has a $ within single quotes is for jq.
# shellcheck disable=SC2016

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

RINGS=lock.ring,io.increment

mounts clusterfs 2
nodes=("$MNT/node0" "$MNT/node1")

# found FAULT CHECKS [OPTION...]: that some of the checks fail
found()
{
	local name=$1 checks=$2
	shift 2

	fault add "$name" >"$SCRATCH/added"
	run "$PINGPONG" check --no-store --json --only "$checks" "$@" \
		"${nodes[@]}"
	fault clear >"$SCRATCH/cleared"
	expect_jq "found: $name" 'any(.checks[]; .outcome == "fail"
		and .metrics.violations > 0 and .evidence.detail != null)'
}

about "healthy"
check_exit 4 "exit status" --no-store --only "$RINGS",io.visibility \
	"${nodes[@]}"
expect_jq "trials, violations and the bound" '
	all(.checks[].metrics; .violations == 0 and .trials > 0 and
	    (1 - pow(0.05; 1 / .trials) - .violation_bound_95 | fabs) < 1e-6)'
expect_jq "a rate of 1 in 1,000 is excluded, as far as 5 s allow" '
	[.checks[] | select(.name | test("ring|increment")) | .metrics]
	| length == 2 and all(.violation_bound_95 < 0.001
			      or .took_ms > 5000)'
run "$PINGPONG" check --no-store --only "$RINGS" "${nodes[@]}"
expect_says "the report says so" "lock.ring 1 in [0-9]" "$OUT"

about "1 in 1,000"
for seed in 1 2 3; do
	found "lost-locks:probability=0.001,seed=$seed" "$RINGS"
	found "noop-locks:probability=0.001,seed=$seed" "$RINGS"
	found "stale-data:probability=0.001,seed=$seed" "$RINGS",io.visibility
	found "lost-writes:probability=0.001,seed=$seed" "$RINGS",io.visibility
done

about "1 in 10,000, --thorough"
found "lost-locks:probability=0.0001,seed=1" lock.ring --thorough=60
found "stale-data:probability=0.0001,seed=1" io.increment --thorough=60
unmounts

about "1 in 100,000 excluded, --thorough"
mounts local 2 directory
nodes=("$MNT/node0" "$MNT/node1")
check_exit 4 "exit status" --local --no-store --thorough=60 --only lock.ring \
	"${nodes[@]}"
expect_jq "it ends once that is so" '
	.checks[0].metrics.violation_bound_95 <= 1e-5 and .duration_s < 60'
check_exit 4 "exit status when the time is over first" --local --no-store \
	--thorough=1 --only io.increment "${nodes[@]}"
expect_jq "the bound says what could not be excluded" '
	.checks[0].metrics | .trials > 0
	and (1 - pow(0.05; 1 / .trials) - .violation_bound_95 | fabs) < 1e-6'
unmounts
