#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Scope cluster: what one node can show is not enough, what was proved across
# nodes counts, and the share's own settings mend what they mend.
# limit: 600

# shellcheck source=tests/smbd/lib.sh
. "$(dirname "$0")/lib.sh"

mounts clusterfs 2 local-locks
path=$MNT/node0
CLUSTER="pingpong:scope = cluster"
MODULE="vfs objects = pingpong"
share local "$path" "$MODULE"
share cluster "$path" "$MODULE" "$CLUSTER"
share strict "$path" "$MODULE" "$CLUSTER" "pingpong:on unknown = refuse"
share mended "$path" "vfs objects = pingpong fileid" "$CLUSTER" \
	"pingpong:on unknown = refuse"
for algorithm in fsid hostname fsname_nodirs; do
	share "$algorithm" "$path" "vfs objects = fileid pingpong" "$CLUSTER" \
		"fileid:algorithm = $algorithm" "pingpong:on unknown = refuse"
done
smbd_up

about "one node tested"
accepted "scope local: fit" local
accepted "scope cluster: let in" cluster
said "and told" "share \[cluster\].* unknown: only one node tested"
said "with what to do" "pingpong check $path HOST:$path"
refused "on unknown = refuse" strict

about "local locks, found across nodes"
check_exit 2 "the check" "$MNT/node0" "$MNT/node1"
may_speak
new_log
refused "scope cluster" cluster
said "the reason" "unfit for posix-locking across nodes: .*lock.exclusion"
refused "scope local" local

about "healthy, found across nodes"
fault clear
check_exit 1 "the check" "$MNT/node0" "$MNT/node1"
may_speak
new_log
refused "st_dev differs" cluster
# shellcheck disable=SC2016
said "the remedy" 'smb.conf: `vfs objects = fileid`, smb.conf: `fileid:algorithm = fsname`'
accepted "mended by fileid" mended
accepted "an algorithm with ids of a node, on purpose" fsname_nodirs
accepted "or for all files" hostname
refused "fsid, where f_fsid is 0" fsid
said "is unknown" "share \[fsid\].*\`fileid:algorithm = fsid\` .*not tested"
