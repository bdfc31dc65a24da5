#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What the share's own settings ask for or mend, on a file system where locks
# of open file descriptions and flock reach one node only, and leases are kept;
# and what vfs_fileid's lists leave of what it mends.
# limit: 600

# shellcheck source=tests/smbd/lib.sh
. "$(dirname "$0")/lib.sh"

mounts clusterfs 2 local-locks:family=ofd
path=$MNT/node0
fault add local-locks:family=flock
fault add lease-kept
MODULE="vfs objects = pingpong"
FILEID="vfs objects = pingpong fileid"
type=$(findmnt -n -o FSTYPE "$path")

# Leases and flock are asked for by what smbd does with the share's files.
LOCKS="pingpong:for = posix-locking"
FILES="pingpong:for = share"
share locks "$path" "$MODULE" "$LOCKS"
share process "$path" "$MODULE" "$LOCKS" "smbd force process locks = yes"
share noposix "$path" "$MODULE" "$LOCKS" "posix locking = no"
share files "$path" "$MODULE" "$FILES"
share oplocks "$path" "$MODULE" "$FILES" "kernel oplocks = yes"
share modes "$path" "$MODULE" "$FILES" "kernel share modes = yes"

fileid()
{
	local name=$1
	shift

	share "$name" "$path" "$FILEID" "pingpong:for = file-id" \
		"pingpong:on unknown = refuse" "$@"
}

share ids "$path" "$MODULE" "pingpong:for = file-id"
fileid fileid
fileid mapping "fileid:mapping = fsname"
fileid fsid "fileid:algorithm = fsid"
fileid next "fileid:algorithm = next_module"
fileid own "fileid:nolock_all_inodes = yes" "fileid:algorithm = next_module"
fileid type-denied "fileid:fstype deny = nfs $type"
fileid type-other "fileid:fstype deny = nfs gpfs"
fileid type-allowed "fileid:fstype allow = $type"
fileid types-without "fileid:fstype allow = nfs gpfs"
fileid dir-denied "fileid:mntdir deny = $path"
fileid dir-allowed "fileid:mntdir allow = $path"
fileid dirs-without "fileid:mntdir allow = /mnt, /gpfs"
smbd_up

check_exit 1 "the check across nodes" "$MNT/node0" "$MNT/node1"
expect_mended posix-locking "smbd force process locks"

about "locks of open file descriptions are local"
refused "smbd's default" locks
# shellcheck disable=SC2016
said "the remedy" '\[locks\].*Remedy: smb.conf: `smbd force process locks = yes`'
accepted "smbd force process locks = yes" process
accepted "posix locking = no" noposix

about "leases are kept, flock is local"
accepted "smbd's defaults" files
refused "kernel oplocks = yes" oplocks
# shellcheck disable=SC2016
said "the remedy" '\[oplocks\].*Remedy: smb.conf: `kernel oplocks = no`'
refused "kernel share modes = yes" modes
# shellcheck disable=SC2016
said "the remedy" '\[modes\].*Remedy: smb.conf: `kernel share modes = no`'

about "st_dev differs"
refused "without fileid" ids
accepted "fsname, the default" fileid
accepted "fileid:mapping" mapping
refused "fsid, where f_fsid is 0" fsid
# shellcheck disable=SC2016
said "is unknown" '\[fsid\].*`fileid:algorithm = fsid` .* was not tested'
refused "none at all" next
said "is told" '\[next\].*vfs_fileid, which .* leaves st_dev as it is'
accepted "ids of each node's own, on purpose" own
refused "the type is denied" type-denied
accepted "another one is" type-other
accepted "the type is allowed" type-allowed
refused "others are" types-without
refused "the mount point is denied" dir-denied
accepted "it is allowed" dir-allowed
refused "others are" dirs-without
