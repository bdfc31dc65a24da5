#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Agents that talk in TLS with a key, and one with another key; over IPv6.
# limit: 400

# shellcheck source=tests/ctdb/lib.sh
. "$(dirname "$0")/lib.sh"

key=/etc/ctdb/pingpong.key

# key_of NODE TEXT MODE
key_of()
{
	echo "$2" >"$CLUSTER/node$1$key"
	chmod "$3" "$CLUSTER/node$1$key"
}

NET=v6 OPTIONS="CTDB_PINGPONG_KEY=$key" cluster_make 2
key_of 0 "a key that both know" 0600
key_of 1 "a key that both know" 0600

about "the same key"
starts "both are OK" 0 1
expect "one was tested with the other" one_said 'tested with node'
agent=$(agent_pid 0)
rss=$(on 0 ps -o rss= -p "$agent")
expect "the agent has 8 MiB at most ($rss KiB)" [ "$rss" -le 8192 ]

about "another key"
stop 1
key_of 1 "a key that one knows" 0600
mark
starts "the node starts by its own checks" 1
expect_said "it says that the other hung up" 1 \
	'not tested with node 0 (fd77::1): its agent hung up .*another key'

about "no key"
stop 1
echo >"$CLUSTER/node1/etc/ctdb/events/legacy/00.pingpong.options"
mark
starts "the node starts by its own checks" 1
expect_said "it says that the other hung up" 1 \
	'not tested with node 0 (fd77::1): its agent'

about "a key that others can read"
stop 1
echo "CTDB_PINGPONG_KEY=$key" \
	>"$CLUSTER/node1/etc/ctdb/events/legacy/00.pingpong.options"
key_of 1 "a key that both know" 0644
mark
c start 1
expect "ctdbd does not start" until_ok $PATIENCE no_ctdbd 1
expect_said "the log says why" 1 "00.pingpong: .*must be root's, with mode 0600"
