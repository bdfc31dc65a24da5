#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The main job, shown: three mounts of the bundled cluster file system, first
# healthy, then with locks that each node keeps for itself; and a real CTDB
# cluster of three nodes on either, with the event script and without it.
#
#   tests/demo.sh		BUILD names the build directory
#
# Runs in mount and pid namespaces of its own, which take everything with
# them when it ends.

set -u
top=$(cd "$(dirname "$0")/.." && pwd)
BUILD=${BUILD:-$top/build}
export BUILD

if [ "${1:-}" != inside ]; then
	exec unshare --mount --pid --fork --kill-child --mount-proc \
		"$0" inside
fi

dir=$(mktemp -d) || exit 1
trap 'clean' EXIT
control=$dir/fs/.state/control

clean()
{
	cd /
	"$top/tests/mounts/clusterfs.sh" down "$dir/fs" >/dev/null 2>&1
	[ -z "${CLUSTER:-}" ] || cluster down
	rm -rf "$dir"
}

# The commands as a person would type them, with what they print.
show()
{
	echo "\$ $*"
	"$@"
	echo "exit status $?"
	echo
}

mount -t tmpfs tmpfs /var/lib/pingpong 2>/dev/null
"$top/tests/mounts/clusterfs.sh" up 3 "$dir/fs" >/dev/null || exit 1
cd "$dir/fs" || exit 1
PATH=$BUILD/cli:$BUILD/tests/clusterfs:$PATH

echo "== Three mounts of a healthy cluster file system =="
show pingpong check --no-store node0 node1 node2

echo "== The same mounts, but each node keeps its locks for itself =="
show clusterfs --control "$control" "fault add local-locks"
show pingpong check --no-store node0 node1 node2

# ---- CTDB -------------------------------------------------------------------

export CLUSTER=

cluster()
{
	"$top/tests/ctdb/cluster" "$@"
}

# new_cluster NAME FAULT...: three nodes, without ctdbd
new_cluster()
{
	[ -z "$CLUSTER" ] || cluster down
	CLUSTER=$dir/$1
	shift
	mkdir "$CLUSTER"
	cluster make 3 clusterfs "$@"
}

has_ctdbd()
{
	cluster exec "$1" pgrep -x ctdbd >/dev/null
}

# shortly NODE PATTERN: such lines of its log, without host and time
shortly()
{
	cluster log "$1" | grep -e "$2" | sed -e 's/^[^ ]* //' \
		-e 's/ ctdb[-a-z]*\[[0-9]*\]//' -e "s|$CLUSTER||g" | tail -n "$3"
}

# Until at most so many nodes have a ctdbd, half a minute at most
await_running()
{
	local n node

	for _ in $(seq 60); do
		n=0
		for node in 0 1 2; do
			! has_ctdbd $node || n=$((n + 1))
		done
		[ $n -gt "$1" ] || return 0
		sleep 0.5
	done
}

show_nodes()
{
	local node

	for node in 0 1 2; do
		if has_ctdbd $node; then
			echo "node $node: ctdbd runs"
		else
			echo "node $node: ctdbd has ended"
		fi
		shortly $node '00.pingpong: ' 2
	done
}

show_status()
{
	echo "\$ ctdb status"
	cluster exec "$1" timeout 5 ctdb status | grep -e '^pnn' -e '^Recovery'
	echo
}

echo "== ctdbd on three nodes of a healthy cluster file system =="
new_cluster healthy
cluster start
cluster wait 60 || echo "not all nodes are OK"
show_nodes
show_status 0

echo "== The same, but each node keeps its locks for itself =="
new_cluster local local-locks
cluster start
await_running 1
for node in 0 1 2; do
	! has_ctdbd $node || cluster wait 30 $node
done
show_nodes
for node in 0 1 2; do
	! has_ctdbd $node || show_status $node
done

echo "== The same without the event script: recovery without end =="
OPTIONS=no new_cluster without local-locks
cluster start
cluster wait 20 2>/dev/null && echo "all nodes are OK"
shortly 0 'Daemon able to take' 5
echo "20 s after the start:"
show_status 0
