#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A running cluster whose file system turns bad on one node, and good again;
# and peers that cannot be asked.
# limit: 600

# shellcheck source=tests/ctdb/lib.sh
. "$(dirname "$0")/lib.sh"

OPTIONS="CTDB_PINGPONG_RECHECK_INTERVAL=3
CTDB_PINGPONG_MAX_AGE=0" cluster_make 3
starts "a healthy cluster" 0 1 2

# unhealthy NODE: and no other one
only_unhealthy()
{
	local list

	list=$(on 0 timeout 5 ctdb -X status) || return 1
	[ "$(awk -F'|' '$8 == 1 { print $2 }' <<<"$list")" = "$1" ]
}

# hostile LINE...: to node 0's door for peers, as node 1; what it answers
hostile()
{
	on 1 timeout 2 bash -c '
		exec 3<>/dev/tcp/10.77.0.1/4380 || exit 1
		printf "%s\n" "$@" >&3
		cat <&3' - "$@" >"$SCRATCH/hostile" 2>&1
}

greeting='{"hello":"node","protocol":1,"oldest":1,"version":"x","pnn":1,"running":true}'

about "a hostile peer"
agent=$(agent_pid 0)
hostile "$greeting" '{"id":1,"start":"cluster-lock","timeout_ms":9000}'
expect_says "the control: it may name the cluster lock" \
	'"id": *1, *"err": *0' "$SCRATCH/hostile"
for place in /etc "$(fs)/.ctdb" ../.. cluster-lock/.. ""; do
	hostile "$greeting" '{"id":1,"start":"'"$place"'","timeout_ms":9000}'
	expect_says "it may not name '$place'" '"err": *13' "$SCRATCH/hostile"
done
hostile "GET / HTTP/1.0" ""
expect_not "garbage gets no session" grep agent "$SCRATCH/hostile"
hostile "$(head -c 100000 /dev/zero | tr '\0' x)"
expect_not "an endless greeting gets no session" \
	grep agent "$SCRATCH/hostile"
hostile "$greeting" "$(head -c 100000 /dev/zero | tr '\0' x)"
hostile "${greeting/\"protocol\":1,\"oldest\":1/\"protocol\":9,\"oldest\":9}"
expect_not "another version gets no session" grep agent "$SCRATCH/hostile"
on 1 ip addr add 10.77.0.99/24 dev eth0
mark
on 1 ip route replace 10.77.0.1 dev eth0 src 10.77.0.99
hostile "$greeting"
on 1 ip route del 10.77.0.1 dev eth0 src 10.77.0.99
on 1 ip addr del 10.77.0.99/24 dev eth0
expect_not "an address that is no node's gets no session" \
	grep agent "$SCRATCH/hostile"
expect_said "and the log names it" 0 \
	'a connection from 10.77.0.99 was closed: it is none'
expect "the agent is the same" [ "$(agent_pid 0)" = "$agent" ]
expect "and all are OK" c wait $PATIENCE 0 1 2

about "locks of one running node become its own"
mark
c fault add local-locks:member=2 >"$SCRATCH/fault"
expect "it turns UNHEALTHY, no other one does" \
	until_ok $PATIENCE only_unhealthy 2
expect_said "it says why, with whom" 2 \
	'00.pingpong: REFUSED: .* together with node [01]'
c fault clear
expect "it is OK again when they are right" c wait $PATIENCE 0 1 2

about "a running node hangs"
mark
c fault add hang:member=1,op=lock+waitlock,resume=1 >"$SCRATCH/fault"
expect "it turns UNHEALTHY" until_ok $PATIENCE only_unhealthy 1
expect_said "it says what hangs" 1 'REFUSED: .*never returned'
c fault clear
expect "it is OK again" c wait $PATIENCE 0 1 2

# The cable stays in: only port 4380 is blocked, as by a firewall.
about "a blocked port"
stop 2
block()
{
	on 2 ip rule add to "$1" ipproto tcp dport 4380 blackhole
}
mark
block 10.77.0.1
block 10.77.0.2
starts "the node starts by its own checks" 2
expect_said "it names those that it could not ask" 2 \
	'not tested with node 0 (10.77.0.1): .*node 1 (10.77.0.2): '
stop 2
for peer in 10.77.0.1 10.77.0.2; do
	on 2 ip rule del to "$peer" ipproto tcp dport 4380 blackhole
done

about "a peer without an agent"
on 0 rm /etc/ctdb/events/legacy/00.pingpong.script
on 0 kill -TERM "$(agent_pid 0)"
until_ok $PATIENCE no_agent 0
mark
starts "the node starts all the same" 2
expect_said "it names the peer" 2 'node 0 (10.77.0.1): no agent listens there'
stop 2

about "MIN_PEERS"
on 2 /bin/sh -c 'echo CTDB_PINGPONG_MIN_PEERS=2 \
	>>/etc/ctdb/events/legacy/00.pingpong.options'
refused "too few are reached" 2 "CTDB_PINGPONG_MIN_PEERS asks for 2"
