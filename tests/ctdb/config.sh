#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What ctdb.conf and the nodes file may say: both keys of the cluster lock, a
# helper that is a file and one that is none, no lock, a deleted node, nodes
# that come while the cluster runs; a port that is taken.
# limit: 600

# shellcheck source=tests/ctdb/lib.sh
. "$(dirname "$0")/lib.sh"

need python3

# knocks NODE ADDRESS: at an agent's door for peers; lets it in?
# shellcheck disable=SC2016
knocks()
{
	on "$1" timeout 3 bash -c '
		exec 3<>/dev/tcp/$1/4380 || exit 1
		echo "$2" >&3
		cat <&3' - "$2" \
		'{"hello":"node","protocol":1,"oldest":1,"version":"x","pnn":1,"running":true}' \
		>"$SCRATCH/knock" 2>&1
	grep -q '"hello": *"agent"' "$SCRATCH/knock"
}

about "'recovery lock', and a deleted node"
NODES="10.77.0.1
#10.77.0.2
10.77.0.3" LOCKKEY="recovery lock" cluster_make 3
starts "the other two are OK" 0 2
expect "one was tested with the other" one_said \
	'is fit for the cluster lock, tested with node [02] '
expect_not "of the deleted node nobody speaks" one_said 'node 1 '
expect_not "it gets no session" knocks 1 10.77.0.1
expect_said "and is told to be none" 0 \
	'a connection from 10.77.0.2 was closed: it is none of CTDB'

about "reloadnodes"
for node in 0 1 2; do
	sed -i 's/^#//' "$CLUSTER/node$node/etc/ctdb/nodes"
done
on 0 timeout 20 ctdb reloadnodes >"$SCRATCH/reload" 2>&1
expect "it gets a session" until_ok $PATIENCE knocks 1 10.77.0.1
mark
starts "it starts, and all are OK" 1 0 2
expect_said "it was tested with the others" 1 \
	'is fit for the cluster lock, tested with node 0 .*, node 2 '

about "a port that is taken"
stop 1
on 1 python3 -c '
import socket, time
s = socket.socket()
s.bind(("10.77.0.2", 4380))
s.listen()
time.sleep(300)' &
thief=$!
until_ok $PATIENCE on 1 bash -c ': </dev/tcp/10.77.0.2/4380' \
	2>"$SCRATCH/port"
mark
c start 1
expect "ctdbd does not start" until_ok $PATIENCE no_ctdbd 1
expect_said "the log names who holds it" 1 \
	'00.pingpong: .*cannot listen on port 4380 of 10.77.0.2: .*process [0-9]* (python3) holds it'
expect "the others noticed nothing" c wait $PATIENCE 0 2
on 1 pkill -x python3
wait $thief

about "no cluster lock"
LOCK=none cluster_make 1
starts "it starts" 0
expect_said "that there was nothing to check" 0 \
	'00.pingpong: no cluster lock is set'

about "a helper that is no file"
LOCK='!/bin/echo 0' cluster_make 1
mark
c start 0
expect "the log says that there was nothing to check" until_ok $PATIENCE \
	said 0 "00.pingpong: the cluster lock is no file but '!/bin/echo 0'"

about "ctdb_mutex_fcntl_helper"
LOCK="!/usr/libexec/ctdb/ctdb_mutex_fcntl_helper $SCRATCH/cluster4/fs/.ctdb/lock" \
	cluster_make 1 clusterfs noop-locks
refused "its file's locks hold nothing" 0 "not fit for the cluster lock"
c fault clear
starts "when they do it starts" 0

# 4.17 does not know the key, and its ctdbd would not start with it
about "nodes list"
if on 0 /usr/libexec/ctdb/ctdb-config get cluster "nodes list" \
	>"$SCRATCH/key" 2>&1; then
	mv "$CLUSTER/nodes" "$CLUSTER/list"
	CONF="	nodes list = !cat $SCRATCH/cluster5/list" cluster_make 2
	c exec 0 rm /etc/ctdb/nodes
	starts "its command is asked" 0 1
	expect "one was tested with the other" one_said 'tested with node'
else
	skip "its command is asked" \
		"this ctdb does not know it (unit/test_ctdb_nodes does)"
fi
