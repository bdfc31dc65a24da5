#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# `use mmap = no` on a cluster with smbd whose file system has no coherent
# mappings: with `tdb mutexes` only a warning; pingpong apply, and the next
# start of the cluster; taken back when mappings are coherent; reverted.
# limit: 600

# What has a $ within single quotes is for the node's shell.
# shellcheck disable=SC2016

# shellcheck source=tests/ctdb/lib.sh
. "$(dirname "$0")/lib.sh"

need smbd testparm smbcontrol
[ -x "$BUILD/ctdb-events/pingpong-smbconf" ] ||
	skip_all "no pingpong-smbconf was built"

INCLUDE=/var/lib/pingpong/smb.conf.include
ALL_NODES="0 1"

OPTIONS="CTDB_PINGPONG_ON_MMAP_FAIL=set
CTDB_PINGPONG_RECHECK_INTERVAL=5"
SAMBA=yes
SMBCONF="[global]
	include = $INCLUDE
	clustering = yes
	netbios name = CLUSTER
	include = registry
[data]
	path = $SCRATCH/cluster1/fs/share
	vfs objects = fileid
	fileid:algorithm = fsname"
export OPTIONS SAMBA SMBCONF
cluster_make 2 clusterfs mmap-incoherent:scope=node

use_mmap_no()
{
	on "$1" testparm -s 2>/dev/null | grep -q 'use mmap = No'
}

smbd_runs()
{
	on "$1" smbcontrol smbd ping >"$SCRATCH/ping" 2>&1
}

# Lines of clustered TDBs that an smbd has mapped, of all of them
clustered_maps()
{
	on "$1" sh -c 'cat $(pgrep -x smbd | sed "s|.*|/proc/&/maps|")' |
		grep -e /var/lib/ctdb/
}

no_file()
{
	! on "$1" test -e "$INCLUDE"
}

# What else pingpong apply wrote stays.
taken_back()
{
	! on "$1" grep -q "use mmap" "$INCLUDE"
}

restart()
{
	local node

	for node in $ALL_NODES; do
		stop "$node"
		until_ok $PATIENCE no_eventd "$node"
	done
	mark
	starts "all nodes start again" 0 1
}

about "with tdb mutexes"
starts "all nodes are OK" 0 1
for node in $ALL_NODES; do
	expect "node $node warns, and names pingpong apply" \
		until_ok $PATIENCE said "$node" \
		"WARNING: .*use mmap = no. is called for, but not set: .*'pingpong apply'"
	expect "nothing is written on node $node" no_file "$node"
	expect_not "it is not in force on node $node" use_mmap_no "$node"
	expect "smbd runs on node $node" smbd_runs "$node"
done
expect "the control: clustered TDBs are mapped" clustered_maps 0

about "pingpong apply"
cp "$CLUSTER/node0/etc/ctdb/ctdb.conf" "$SCRATCH/ctdb.conf"
expect_exit 0 "--dry-run" on 0 pingpong apply --dry-run
expect_says "it shows the one file" '^+	tdb mutexes = false$' "$OUT"
expect_says "and the other" '^+#use mmap = no$' "$OUT"
expect "it changes nothing" no_file 0
expect "at all" cmp "$SCRATCH/ctdb.conf" "$CLUSTER/node0/etc/ctdb/ctdb.conf"
for node in $ALL_NODES; do
	expect_exit 0 "on node $node" on "$node" pingpong apply
	expect "ctdb.conf has it" [ "$(on "$node" \
		/usr/libexec/ctdb/ctdb-config get database "tdb mutexes")" = \
		false ]
	expect_not "use mmap is not in force yet" use_mmap_no "$node"
done
expect "what runs goes on: smbd" smbd_runs 0
expect "the tools work" on 0 net conf list
expect "all nodes are OK" c wait $PATIENCE 0 1
expect_exit 0 "and once more" on 0 pingpong apply
expect_not "changes nothing" grep '^[+-]' "$OUT"

about "after a restart of the whole cluster"
restart
for node in $ALL_NODES; do
	expect_said "node $node says what it does" "$node" \
		"use mmap = no. is set"
	expect "it is in force on node $node" use_mmap_no "$node"
	expect_not "the include file has it" taken_back "$node"
	expect "smbd runs on node $node" smbd_runs "$node"
	expect_not "no clustered TDB is mapped by it" clustered_maps "$node"
done

about "mappings are coherent again"
mark
c fault clear
for node in $ALL_NODES; do
	expect "taken back on node $node" until_ok $PATIENCE taken_back "$node"
	expect "what was applied beside it stays on node $node" \
		on "$node" grep -q "^vfs objects = fileid" "$INCLUDE"
	expect_said "it says so" "$node" "use mmap = no. is taken back"
	expect_not "it is not in force any more" use_mmap_no "$node"
	expect "smbd runs on" smbd_runs "$node"
done
expect "all nodes are OK" c wait $PATIENCE 0 1

about "pingpong apply --revert"
for node in $ALL_NODES; do
	expect_exit 0 "on node $node" on "$node" pingpong apply --revert
done
expect "ctdb.conf is as it was" \
	cmp "$SCRATCH/ctdb.conf" "$CLUSTER/node0/etc/ctdb/ctdb.conf"
expect_exit 0 "and once more" on 0 pingpong apply --revert
expect_says "is nothing" "nothing to revert" "$OUT"
restart
expect "smbd runs" smbd_runs 0
