#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A worker that not even SIGKILL ends: there is never a second one on its
# mount. Until it has gone every question about the mount is answered at once,
# and nobody else's.
# limit: 400

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

RECORDS=/run/pingpong/stuck

mounts clusterfs 2
mkdir "$MNT/node0/dir"

workers()
{
	pgrep pingpong | wc -l
}

records()
{
	find $RECORDS -type f 2>/dev/null | wc -l
}

until_gone()
{
	local i

	for i in $(seq 100); do
		pgrep pingpong >/dev/null || return 0
		sleep 0.1
	done
	return 1
}

about "control"
check_exit 1 "healthy" "$MNT"/node*
expect "no record" [ "$(records)" = 0 ]
expect "no worker" until_gone

about "stuck"
fault add hang:member=1,op=lock,killable=0 >/dev/null
expect_exit 3 "it hangs" \
	"$PINGPONG" check --json --timeout 10 "$MNT"/node*
expect "one worker is left" [ "$(workers)" = 1 ]
expect "and recorded" [ "$(records)" = 1 ]
pid=$(pgrep pingpong)

# asked CASE PLACE...: hung at once, by that worker
asked()
{
	about "while it is, $1"
	shift
	check_exit 3 "hung" --timeout 60 "$@"
	expect_jq "not tried again" "[.checks[].why
		| contains(\"an earlier worker (process $pid) still hangs\")]
		| all"
	expect "there is no second one" [ "$(workers)" = 1 ]
}

asked "the same places" "$MNT"/node*
asked "one of them" "$MNT/node1"
asked "another directory" "$MNT/node1/dir"

about "while it is, the other mount"
check_exit 0 "works" --local "$MNT/node0"

about "when it has gone"
fault clear >/dev/null
expect "it has" until_gone
check_exit 1 "checks resume" "$MNT"/node*
expect "no record is left" [ "$(records)" = 0 ]
rmdir "$MNT/node0/dir"
expect_clean "$MNT/node0"
