#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Shares of a real cluster with smbd: checked with the other nodes before
# startup lets smbd start, judged by their own settings, watched while the
# node serves. Read from the registry, from text, or named by PATHS.
# by name only: its cause of failing is mended, but it was not seen to pass three times since
# limit: 900

# shellcheck source=tests/ctdb/lib.sh
. "$(dirname "$0")/lib.sh"

need smbd net

options=/etc/ctdb/events/legacy/00.pingpong.options
share=$SCRATCH/cluster1/fs/share

SAMBA=yes SMBCONF="[global]
	clustering = yes
	netbios name = CLUSTER
	map to guest = bad user
	include = registry" \
OPTIONS="CTDB_PINGPONG_RECHECK_INTERVAL=3
CTDB_PINGPONG_MAX_AGE=0" cluster_make 3

smbd_runs()
{
	on "$1" pgrep -x smbd >"$SCRATCH/pgrep"
}

# stored NODE USE FITNESS SCOPE PATH
stored()
{
	on "$1" "$PINGPONG" status |
		awk -v path="$5" '/^\// { here = $1 == path } here' |
		grep -q "^  $2 *$3 *$4 "
}

# node_is UNHEALTHY NODE: 1 or 0
node_is()
{
	on 0 timeout 5 ctdb -X status |
		awk -F'|' -v n="$2" -v u="$1" \
			'$2 == n { found = $8 == u } END { exit !found }'
}

status_of()
{
	on "$1" "$PINGPONG" status >"$SCRATCH/status" 2>&1
}

about "no share in the registry"
starts "three nodes with smbd are OK" 0 1 2

about "a share that comes while they run"
on 0 net conf addshare data "$share" writeable=y guest_ok=y
on 0 net conf setparm data "vfs objects" fileid
on 0 net conf setparm data "fileid:algorithm" fsname
for node in 0 1 2; do
	expect "node $node has checked it with another" until_ok $PATIENCE \
		stored $node share fit cluster "$share"
done
expect "all are still OK" c wait $PATIENCE

about "status"
status_of 0
expect_says "the agent, and who it is" \
	'^agent .* of node 0 (10.77.0.1), process [0-9]*, mode enforce' \
	"$SCRATCH/status"
expect_says "that it is plain" 'port 4380: plain' "$SCRATCH/status"
expect_says "its peers" '^node 1 (10.77.0.2): its agent answers' \
	"$SCRATCH/status"
expect_says "the share" "'$share' is fit for share \[data\], tested with" \
	"$SCRATCH/status"

about "the module's question"
rm -rf "$CLUSTER/node0/var/lib/pingpong/verdicts" \
	"$CLUSTER/node0/var/lib/pingpong/paths.json"
run on 0 "$PINGPONG" preflight --scope cluster --timeout 10 "$share"
expect "the agent has it checked" [ "$(cat "$OUT")" = recorded ]
expect "with other nodes" stored 0 posix-locking fit cluster "$share"
run on 0 "$PINGPONG" preflight --scope cluster --timeout 10 /etc
expect_not "what is no share is not recorded across nodes" \
	stored 0 share fit cluster /etc

about "reads turn stale on a running node"
mark
c fault add stale-data:member=2,seconds=30 >"$SCRATCH/fault"
expect "it turns UNHEALTHY" until_ok $PATIENCE node_is 1 2
expect_said "it says which share, with whom, and why" 2 \
	'REFUSED: .* not fit for share \[data\] together with node [01] .*io.visibility'
expect "no other node does" node_is 0 0
expect "nor the other" node_is 0 1
c fault clear
expect "it is OK again when they are right" c wait $PATIENCE

about "unfit from its start"
stop 2
c fault add stale-data:member=2,seconds=30 >"$SCRATCH/fault"
mark
c start 2
expect "it joins" until_ok $PATIENCE said 2 \
	'startup.*REFUSED\|REFUSED: .*share \[data\]'
expect_not "and smbd is not started" smbd_runs 2
expect "it is UNHEALTHY" node_is 1 2
expect "the others are OK" c wait $PATIENCE 0 1
c fault clear
expect "it is OK when it is right" c wait $PATIENCE
expect "and smbd runs" smbd_runs 2

about "what the share's settings do without"
c fault add local-locks:member=2,family=ofd >"$SCRATCH/fault"
expect "OFD locks of its own make it UNHEALTHY" \
	until_ok $PATIENCE node_is 1 2
on 0 net conf setparm data "posix locking" no
expect "posix locking = no asks for none" c wait $PATIENCE
c fault clear

about "another mount point, empty"
stop 2
on 2 mount -t tmpfs tmpfs "$share"
mark
c start 2
expect "it is refused" until_ok $PATIENCE said 2 \
	"REFUSED: this node's '$share' is not the cluster's"
expect_not "smbd is not started" smbd_runs 2

about "MODE=warn"
stop 2
on 2 /bin/sh -c "echo CTDB_PINGPONG_MODE=warn >>$options"
mark
starts "it is OK" 2
expect_said "with a warning" 2 \
	"WARNING (MODE=warn, else REFUSED): this node's '$share'"

about "MODE=off"
stop 2
on 2 /bin/sh -c "echo CTDB_PINGPONG_MODE=off >>$options"
mark
starts "it is OK" 2
expect "without an agent" no_agent 2

about "PATHS"
stop 2
on 2 umount "$share"
on 2 /bin/sh -c "printf '%s\n' CTDB_PINGPONG_MODE=enforce \
	'CTDB_PINGPONG_PATHS=\"$(fs) $share\"' >>$options"
mark
starts "it is OK" 2
expect_said "one of two paths on a mount was checked" 2 \
	"'$(fs)' is fit for CTDB_PINGPONG_PATHS"
expect_not "the share is not" \
	said 2 'share \[data\]'
