#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# F13: slow storage is slow, with the limit of CTDB's that it misses, and
# nothing worse; and what misses none passes.
# limit: 200

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

USES=cluster-lock,posix-locking,share

nothing_worse()
{
	expect_use fit cluster-lock posix-locking share
	expect_jq "nothing is worse than slow" '
		[.checks[] | select(.name != "id.device")
		 | select(.outcome | IN("fail", "hung", "unsupported"))] == []'
}

about "20 ms a lock"
mounts clusterfs 2 slow:ms=20
check_exit 0 "exit status" --for $USES "$MNT"/node*
nothing_worse
expect_outcome pass lock.supported lock.exclusion lock.handoff lock.release
unmounts

about "one lock a second"
mounts clusterfs 2 slow:rate=1
check_exit 0 "exit status, in the default time" --for $USES "$MNT"/node*
nothing_worse
expect_outcome slow lock.supported lock.ring
expect_jq "the limit is named" 'any(.checks[];
	.outcome == "slow" and (.why | test("CTDB warns")))'
expect_says "it says so in the report of each use" \
	"lock.supported" <(jq -c '.verdict."cluster-lock".because' "$OUT")
unmounts
