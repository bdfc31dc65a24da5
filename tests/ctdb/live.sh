#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What an administrator and a client see of a running cluster: pingpong check
# --ctdb; a client's session and ctdb's status while a bad node is refused; a
# share that hangs in startup; a node whose agent cannot be reached; a share
# whose directory is gone.
# by name only: not yet seen to pass three times
# limit: 600

# shellcheck source=tests/ctdb/lib.sh
. "$(dirname "$0")/lib.sh"

need smbd smbclient net

share=$SCRATCH/cluster1/fs/share

SAMBA=yes SMBCONF="[global]
	clustering = yes
	netbios name = CLUSTER
	map to guest = bad user
[data]
	path = $share
	guest ok = yes
	force user = root
	read only = no
	vfs objects = fileid
	fileid:algorithm = fsname" \
OPTIONS="CTDB_PINGPONG_RECHECK_INTERVAL=5
CTDB_PINGPONG_MAX_AGE=0" cluster_make 3
starts "two nodes with smbd are OK" 0 1

# check NODE STATUS CASE ARG...: pingpong check --ctdb --json
check()
{
	local node=$1 want=$2 name=$3
	shift 3

	run on "$node" "$PINGPONG" check --ctdb --json --quick --timeout 100 \
		--no-store "$@"
	if [ "$STATUS" = "$want" ]; then
		ok "$name"
	else
		not_ok "$name" "exit status $STATUS, expected $want" \
			"$(tail -n 5 "$ERR")" "$(head -c 2000 "$OUT")"
	fi
}

about "check --ctdb"
check 0 0 "the cluster lock is fit" --for cluster-lock
expect_jq "with the other node" '[.members[].host] == ["node0", "node1"]'
expect_jq "across nodes" '.scope == "cluster"'
expect_says "the node that is down is named" \
	'node 2 (10.77.0.3) takes no part: ' "$ERR"
check 1 0 "so is a share's directory, from the other node" \
	--for share,posix-locking "$share"
c fault add local-locks:member=1 >"$SCRATCH/fault"
check 0 2 "locks of its own are found" --for cluster-lock
expect_jq "and named" '.verdict["cluster-lock"].because
	| index("lock.exclusion") != null'
c fault clear
check 0 77 "what is no share no peer opens" /etc
check 2 69 "without an agent there is none to ask"
expect_says "in one line" 'no agent runs on this node' "$ERR"
expect "all are OK" c wait $PATIENCE 0 1

# A client that writes, reads and sleeps in turn over one session until it is
# told to stop; one line each time.
about "a client's session while a bad node is refused"
seq 20000 >"$SCRATCH/data"
session()
{
	mkfifo "$SCRATCH/commands"
	on 0 smbclient //127.0.0.1/data -N -t 60 <"$SCRATCH/commands" \
		>"$SCRATCH/session" 2>&1 &
	client=$!
	exec 7>"$SCRATCH/commands"
}
# One command at a time: smbclient sees no second line that came with the
# first.
turns=0
turn()
{
	turns=$((turns + 1))
	echo "put $SCRATCH/data file.$turns" >&7
	until_ok $PATIENCE cmp -s "$SCRATCH/data" \
		"$CLUSTER/back/share/file.$turns" || return 1
	echo "get file.$turns $SCRATCH/got.$turns" >&7
	until_ok $PATIENCE cmp -s "$SCRATCH/data" "$SCRATCH/got.$turns"
}
session
expect "it works" turn
c fault add local-locks:member=2 >"$SCRATCH/fault"
before=$(generation 0; generation 1)
log=$SCRATCH/watched
watch_status()
{
	while [ ! -e "$SCRATCH/enough" ]; do
		(generation 0; generation 1) | md5sum >>"$log"
		sleep 0.3
	done
}
watch_status &
watcher=$!
refused "its locks are its own" 2 'together with node [01] .*(lock.exclusion'
expect "the session goes on" turn
: >"$SCRATCH/enough"
wait $watcher
looks=$(wc -l <"$log")
expect "ctdb's status was looked at throughout ($looks times)" \
	[ "$looks" -ge 3 ]
expect "and did not move" [ "$(sort -u "$log" | wc -l)" = 1 ]
expect "nor has it since" [ "$before" = "$(generation 0; generation 1)" ]
echo quit >&7
exec 7>&-
wait $client
expect_not "and had no error" grep -e NT_STATUS "$SCRATCH/session"
c fault clear

# Another mount of the cluster's on the share's directory, which is all that
# hangs.
about "a share that hangs, from startup on"
on 2 "$BUILD/tests/clusterfs/clusterfs" -d --join "$CLUSTER/fs.sock" \
	--member 3 "$share"
c fault add hang:member=3,op=all,resume=1 >"$SCRATCH/fault"
mark
c start 2
expect "startup says that it hangs" until_ok $PATIENCE said 2 \
	"REFUSED: '$share' is not fit for share \[data\]"
expect_not "smbd is not started" on 2 pgrep -x smbd
expect "the others are OK" c wait $PATIENCE 0 1
c fault clear
until_ok $PATIENCE on 2 umount "$share"
expect "without it all are OK" c wait $PATIENCE
expect "and smbd runs" on 2 pgrep -x smbd
stop 2

about "a node without an agent"
on 2 rm /etc/ctdb/events/legacy/00.pingpong.script
c start 2
expect "it joins" c wait $PATIENCE
mark
expect "monitor names it on another node" until_ok $PATIENCE said 0 \
	'WARNING: node 2 (10.77.0.3) is connected, but its agent cannot be reached: no agent listens there'
expect "which stays OK" c wait $PATIENCE
check 0 0 "check --ctdb names it and goes on with the others" \
	--for cluster-lock
expect_says "in a line" 'node 2 (10.77.0.3) takes no part: no agent' "$ERR"

about "a blocked port"
on 0 ip rule add to 10.77.0.2 ipproto tcp dport 4380 blackhole
mark
expect "monitor names the node behind it" until_ok $PATIENCE said 0 \
	'WARNING: node 1 (10.77.0.2) is connected, but its agent'
on 0 ip rule del to 10.77.0.2 ipproto tcp dport 4380 blackhole

about "a share's directory is gone"
mark
mv "$CLUSTER/back/share" "$CLUSTER/back/elsewhere"
status_says()
{
	on 0 "$PINGPONG" status | grep -q -e "$1"
}
expect "status names it" until_ok $PATIENCE status_says \
	"\[data\].*$share.*No such file\|$share.*\[data\].*No such file"
expect_not "this script does not refuse" said 0 'REFUSED: '
mv "$CLUSTER/back/elsewhere" "$CLUSTER/back/share"
