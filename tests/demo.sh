#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The main job, shown: three mounts of the bundled cluster file system, first
# healthy, then with locks that each node keeps for itself.
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
	"$top/tests/mounts/clusterfs.sh" down "$dir/fs" >/dev/null 2>&1
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
