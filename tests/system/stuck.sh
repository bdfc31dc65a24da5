#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A worker that not even SIGKILL ends. Until it has gone every question about
# its mount is answered at once, and nobody else's. Of all that begin while a
# mount does not answer, whoever they are, one worker gets stuck.
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

# begin PLACE...: several at once that know nothing of each other
begin()
{
	local place

	began=()
	for place in "$@" "$@" "$@"; do
		"$PINGPONG" check --local --no-store --timeout 10 "$place" \
			>/dev/null 2>&1 &
		began+=($!)
	done
}

until_one()
{
	local i

	for i in $(seq 100); do
		[ "$(workers)" -gt 1 ] || break
		sleep 0.1
	done
	[ "$(workers)" = 1 ]
}

about "several begin where nothing answers"
mkdir "$MNT/node0/dir" "$SCRATCH/links"
ln -s "$MNT/node1/dir" "$SCRATCH/links/there"
fault add hang:member=1,op=all,killable=0,resume=1 >/dev/null
begin "$MNT/node1" "$MNT/node1/dir"
sleep 1
expect "one opens" [ "$(pgrep -c -f "pingpong-worker $MNT/node1")" -gt 1 ]
kill -KILL "${began[@]}" 2>/dev/null
wait "${began[@]}" 2>/dev/null
expect "one worker is left, though nobody is left to record it" \
	until_one
check_exit 3 "the next one waits for its turn, and hangs" \
	--timeout 10 "$MNT/node1/dir"
expect "and is killed in that" [ "$(workers)" = 1 ]
fault clear >/dev/null
expect "it goes when it can" until_gone

about "the same through a symbolic link"
fault add hang:member=1,op=all,killable=0,resume=1 >/dev/null
begin "$SCRATCH/links/there"
wait "${began[@]}"
expect "one worker is left" [ "$(workers)" = 1 ]
check_exit 0 "what the link lies on is not stuck" --local "$SCRATCH/links"
fault clear >/dev/null
expect "it goes when it can" until_gone
rmdir "$MNT/node0/dir"
expect_clean "$MNT/node0"
