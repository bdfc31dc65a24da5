#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What hangs, dies or is cut off at the wrong moment: a file system in init,
# more than once; a peer during a check; ctdbd itself. And eight nodes, one of
# which is wrong.
# limit: 600

# shellcheck source=tests/ctdb/lib.sh
. "$(dirname "$0")/lib.sh"

OPTIONS="CTDB_PINGPONG_MAX_AGE=0
CTDB_PINGPONG_RECHECK_INTERVAL=5" cluster_make 3
starts "two nodes are OK" 0 1

# stuck NODE: how many workers are left there that cannot be killed
stuck()
{
	on "$1" pgrep -c -f pingpong-worker
}

about "everything hangs in D state"
c fault add hang:member=2,op=all,killable=0,resume=1 >"$SCRATCH/fault"
refused "init ends" 2 "not fit for the cluster lock"
expect "one worker is stuck" [ "$(stuck 2)" = 1 ]
refused "and again" 2 "not fit for the cluster lock"
run on 2 "$PINGPONG" preflight --timeout 5 "$(fs)"
expect_says "the module's question is answered" '^hung: ' "$OUT"
run on 2 "$PINGPONG" check --local --no-store --timeout 10 "$(fs)/.ctdb"
expect "so is the command" [ "$STATUS" = 3 ]
expect "it is still the only one" [ "$(stuck 2)" = 1 ]
expect "the others noticed nothing" c wait $PATIENCE 0 1
c fault clear
expect "it goes when it can" until_ok $PATIENCE no_worker 2
starts "and the node starts" 2

about "a running node hangs in D state"
mark
c fault add hang:member=2,op=all,killable=0,resume=1 >"$SCRATCH/fault"
expect "monitor says so" until_ok $PATIENCE said 2 'REFUSED: .*fs/.ctdb'
# those that were in a call at that moment, and one more (core/member/stuck.h)
stop 2
left=$(stuck 2)
expect "some are stuck" [ "$left" -gt 0 ]
refused "nor does its ctdbd start anew" 2 "not fit for the cluster lock"
expect "one more at most is" [ "$(stuck 2)" -le $((left + 1)) ]
refused "nor once more" 2 "not fit for the cluster lock"
expect "and none is added" [ "$(stuck 2)" -le $((left + 1)) ]
c fault clear
until_ok $PATIENCE no_worker 2

# A node's check with its peers takes this long, so that there is a middle of
# it.
slowly()
{
	c fault add slow:member=2,ms=100 >"$SCRATCH/fault"
	mark
	c start 2 &
	starting=$!
	until_ok $PATIENCE on "$1" pgrep -f pingpong-worker >"$SCRATCH/worker"
}

about "a peer's agent is killed during the check"
slowly 1
on 1 kill -KILL "$(agent_pid 1)"
wait $starting
c fault clear
expect "the node starts, all are OK" c wait $PATIENCE
expect_said "by what the other one showed" 2 \
	'is fit for the cluster lock, tested with node 0'
stop 2

about "a peer is cut off during the check"
slowly 1
c link 1 down
wait $starting
c fault clear
c link 1 up
expect "the node starts, all are OK" c wait $PATIENCE
expect_said "by what the other one showed" 2 \
	'is fit for the cluster lock, tested with node 0'

about "ctdbd is killed"
on 2 pkill -KILL -x ctdbd
expect "its agent goes with it" until_ok $PATIENCE no_agent 2
until_ok $PATIENCE no_daemons 2
starts "and comes with the next" 2

about "a mount is changed under a running node"
mark
on 2 umount -l "$(fs)"
expect "it turns UNHEALTHY" until_ok $PATIENCE said 2 'REFUSED: '
c mount 2
expect "and is OK when it is back" c wait $PATIENCE

about "eight nodes, the locks of one are its own"
cluster_make 8 clusterfs local-locks:member=5
c start
expect "that one stays out" until_ok $PATIENCE no_ctdbd 5
expect_said "it says why" 5 'REFUSED: .* together with node'
expect "the others are OK" c wait $((2 * PATIENCE)) 0 1 2 3 4 6 7
