#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A node that wants to join a running cluster: let in where it fits, refused in
# init where it does not, and the running nodes never notice.
# limit: 600

# shellcheck source=tests/ctdb/lib.sh
. "$(dirname "$0")/lib.sh"

OPTIONS="CTDB_PINGPONG_MAX_AGE=0" cluster_make 3

about "a healthy cluster"
starts "three nodes started together are OK" 0 1 2
for node in 0 1 2; do
	expect_said "node $node says that it is fit" $node \
		"00.pingpong: .* is fit for the cluster lock"
	expect "node $node has recorded it" on $node \
		/bin/sh -c 'grep -q cluster-lock /var/lib/pingpong/verdicts/*'
done
expect "of nodes that start together one was tested with another" \
	one_said '00.pingpong: .* is fit for the cluster lock, tested with node'
expect_not "no probe directory is left" ls -d "$CLUSTER/back/.ctdb/.pingpong"
agent=$(agent_pid 0)
rss=$(on 0 ps -o rss= -p "$agent")
expect "the agent has 8 MiB at most ($rss KiB)" [ "$rss" -le 8192 ]

about "the agent's life"
on 1 kill -KILL "$(agent_pid 1)"
expect "one that was killed is started again by monitor" \
	until_ok $PATIENCE agent_pid_is 1
stop 2
expect_not "it is gone with ctdbd" agent_pid_is 2

bad()
{
	c fault add "$@" >"$SCRATCH/fault"
}

# What the running nodes say of the cluster from here on never changes.
about "node 2 joins"
# Node 2's leaving makes a recovery, and an election first where it was the
# leader: both have to be over.
same_for_3s()
{
	before=$(generation 0; generation 1)
	sleep 3
	[ "$before" = "$(generation 0; generation 1)" ] &&
		[ "$(grep -c 'mode:NORMAL' <<<"$before")" = 2 ] &&
		grep -q '^pnn:2.*DISCONNECTED' <<<"$before" &&
		[ "$(grep -c '^Leader:[01]$' <<<"$before")" = 2 ]
}
expect "its leaving is over" until_ok $PATIENCE same_for_3s
before=$(generation 0; generation 1)
unmoved()
{
	local now

	now=$(generation 0; generation 1)
	if [ "$now" = "$before" ]; then
		ok "nodes 0 and 1 noticed nothing ($1)"
	else
		not_ok "nodes 0 and 1 noticed nothing ($1)" \
			"$before" "now:" "$now" \
			"$(log_since 0 | grep -i -e recover -e leader |
			   head -n 20)"
	fi
}

bad local-locks:member=2
refused "its locks are its own" 2 \
	'together with node [01] .*(lock.exclusion'
unmoved "locks of its own"
c fault clear

bad noop-locks:member=2
refused "its locks hold nothing" 2 "not fit for the cluster lock"
unmoved "locks that hold nothing"
c fault clear

bad error:member=2,errno=ENOLCK
refused "its locks are refused" 2 "ENOLCK"
unmoved "locks refused"
c fault clear

bad mixed-owner:member=2
refused "a forked child's close drops its lock" 2 "(lock.release"
unmoved "the fork rule"
c fault clear

bad ids:member=2,ino=open
refused "inodes change" 2 "id.inode"
unmoved "inodes"
c fault clear

bad hang:member=2,op=lock+waitlock,resume=1
refused "its locks hang" 2 "never returned (lock.supported)"
unmoved "a hang"
c fault clear
until_ok $PATIENCE no_worker 2

on 2 umount "$(fs)"
refused "its mount point is empty" 2 "Is the cluster file system mounted"
on 2 mount -t tmpfs tmpfs "$(fs)"
on 2 mkdir "$(fs)/.ctdb"
refused "another file system is mounted there" 2 \
	"is not the cluster's: node [01] .* has another one"
unmoved "another file system"
on 2 umount "$(fs)"
c mount 2

about "node 2 joins, the negative control"
starts "without a fault it is OK" 2
