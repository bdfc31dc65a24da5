#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Hangs are results: a call that never returns ends the run within its
# deadline, as hung, with what the stuck task is doing; the other checks are
# reported as what they are; and nobody waits for the stuck task.
# limit: 400

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need sshfs

DEADLINE=20
# What a run may take beyond its deadline before it counts as hung itself.
PATIENCE=20

# check_hung CASE PLACE...: exit status 3 within the deadline
check_hung()
{
	local name=$1
	shift

	expect_exit 3 "$name" timeout -s KILL $((DEADLINE + PATIENCE)) \
		"$PINGPONG" check --json --timeout $DEADLINE "$@"
}

# The evidence of a hang names the state of the task and where it waits.
shows_the_task()
{
	expect_jq "the task's state, wchan and system call" '
		[.checks[] | select(.outcome == "hung")]
		| length > 0 and any(.evidence | tostring
			| test("state|State") and test("fuse|request_wait")
			  and test("stack|wchan"))'
}

none_left()
{
	for _ in $(seq 100); do
		pgrep pingpong >/dev/null || return 0
		sleep 0.1
	done
	pgrep -al pingpong
	return 1
}

# clients SIGNAL: to the FUSE daemons of the last mounts
clients()
{
	local pid

	for pid in $("$TESTS/mounts/sshfs.sh" status "$MNT" |
			sed -n 's/^ *\([0-9]*\) sshfs .*/\1/p'); do
		kill -s "$1" "$pid"
	done
}

about "a file system whose server has stopped"
mounts sshfs 2 nocachesync
check_exit 2 "control: it works, though its locks are local" \
	"$MNT"/node*
expect_jq "control: nothing hangs" '
	[.checks[] | select(.outcome == "hung")] == []'
clients STOP
expect_exit 3 "exit status" timeout -s KILL $((DEADLINE + PATIENCE)) \
	"$PINGPONG" check --timeout $DEADLINE "$MNT/node0" "$MNT/node1"
expect_says "it says so" "hung" <(cat "$OUT" "$ERR")
clients CONT
expect "nobody is left when it goes on" none_left
check_exit 2 "and the next run is as before" "$MNT"/node*
expect_clean "$MNT/node0"

about "a server that stops during the run"
timeout -s KILL $((DEADLINE + PATIENCE)) \
	"$PINGPONG" check --json --timeout $DEADLINE "$MNT"/node* \
	>"$OUT" 2>"$ERR" </dev/null &
pid=$!
for _ in $(seq 500); do
	[ ! -d "$MNT/.state/back/.pingpong" ] || break
	sleep 0.01
done
clients STOP
wait $pid
STATUS=$?
expect "exit status" [ $STATUS = 3 ]
shows_the_task
clients CONT
expect "nobody is left when it goes on" none_left
check_exit 2 "and the next run is as before" "$MNT"/node*
expect_clean "$MNT/node0"
unmounts

about "F4, control"
mounts clusterfs 2
check_exit 1 "healthy" "$MNT"/node*
expect_jq "nothing hangs" '[.checks[] | select(.outcome == "hung")] == []'

# hung KEYS CHECK...: these operations of one member get no answer; the checks
# are those that do without them and must pass
hung()
{
	local spec=hang:member=1,$1
	shift

	about "F4, $spec"
	fault add "$spec" >/dev/null || not_ok "the fault is known"
	check_hung "exit status" "$MNT"/node*
	expect_says "the fault was hit" "hits=[1-9]" <(fault list)
	expect_jq "some check is hung" \
		'[.checks[] | select(.outcome == "hung")] != []'
	shows_the_task
	[ $# = 0 ] || expect_outcome pass "$@"
	fault clear >/dev/null
	expect "nobody is left when it answers" none_left
	check_exit 1 "healthy again" "$MNT"/node*
	expect_clean "$MNT/node0"
}

hung op=lock id.inode io.size
hung op=open
hung op=stat
hung op=read lock.exclusion id.inode
hung op=unlink lock.exclusion
hung op=lock,killable=0
hung op=read,killable=0 lock.exclusion id.inode

about "F4, the place itself"
fault add hang:member=1,op=statdir+opendir+lookup+statfs >/dev/null
expect_exit 3 "exit status" timeout -s KILL $((DEADLINE + PATIENCE)) \
	"$PINGPONG" check --timeout $DEADLINE "$MNT"/node*
expect_says "it says so" "hung" <(cat "$OUT" "$ERR")
fault clear >/dev/null
expect "nobody is left when it answers" none_left
unmounts
