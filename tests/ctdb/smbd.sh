#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Tree connects on a real cluster, with clustering = yes and the module in
# [global]: what decides is what the node's agent finds with its peers.
# limit: 400

# shellcheck source=tests/ctdb/lib.sh
. "$(dirname "$0")/lib.sh"

need smbd smbclient
[ -e "$BUILD/vfs_pingpong/pingpong.so" ] ||
	skip_all "built without the VFS module"

share=$SCRATCH/cluster1/fs/share

SAMBA=yes SMBCONF="[global]
	clustering = yes
	netbios name = CLUSTER
	map to guest = bad user
	vfs objects = pingpong fileid
	pingpong:on unknown = refuse
	pingpong:timeout = 60
[data]
	path = $share
	guest ok = yes
	read only = no
[bare]
	path = $share
	guest ok = yes
	vfs objects = fileid" \
OPTIONS="CTDB_PINGPONG_RECHECK_INTERVAL=3600" cluster_make 2

# connect NODE SHARE
connect()
{
	on "$1" timeout 100 smbclient "//127.0.0.1/$2" -N -t 90 -c 'exit' 2>&1
}

refused_at_connect()
{
	connect "$1" "$2" | grep -q 'tree connect failed'
}

forget()
{
	on "$1" rm -rf /var/lib/pingpong/verdicts /var/lib/pingpong/paths.json
}

# stored NODE FITNESS USE: of the share, across nodes
stored()
{
	on "$1" "$PINGPONG" status |
		awk -v path="$share" '/^\// { here = $1 == path } here' |
		grep -q "^  $3 *$2 *cluster "
}

smbd_said()
{
	on "$1" grep -q -e "$2" /var/log/samba/log.smbd
}

starts "two nodes with smbd are OK" 0 1

about "healthy"
expect "a client is let in" connect 0 data
expect "and at the other node" connect 1 data
forget 0
expect "without a verdict, too" connect 0 data
expect "the agent has made one with the other node" stored 0 fit posix-locking
expect "and for file-id, mended by fileid" stored 0 unfit file-id

# Of two nodes that are unfit together the second one has to refuse.
about "locks are local to each node"
c fault add local-locks >"$SCRATCH/fault"
expect "a fresh verdict decides" connect 1 data
forget 1
expect "without one the client is refused" refused_at_connect 1 data
expect "the agent's verdict is stored" stored 1 unfit posix-locking
expect "the log names share, path and reason" smbd_said 1 \
	"share \[data\], path '$share', is refused: unfit for posix-locking across nodes: "
expect "a share that lost the module is not guarded" connect 1 bare
on 1 "$PINGPONG" status >"$OUT"
expect_says "and is named by status" 'share \[bare\] is not guarded' "$OUT"
forget 0
expect "the node that may go on is alone: unknown" refused_at_connect 0 data
expect "and says so" smbd_said 0 'share \[data\].*only one node tested'

about "healthy again"
c fault clear
expect "the verdict stands" refused_at_connect 1 data
on 1 "$PINGPONG" forget "$share" >"$OUT"
expect "until it is forgotten" connect 1 data
