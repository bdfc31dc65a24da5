#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Above and below other modules: a fit share works, an unfit one is refused.
# limit: 600

# shellcheck source=tests/smbd/lib.sh
. "$(dirname "$0")/lib.sh"

mounts clusterfs 2 "error:errno=ENOLCK source"
# shellcheck disable=SC2034
bad=$MNT/node0
mounts clusterfs 2
good=$MNT/node0
chmod 0777 "$good"

OTHERS="fileid acl_xattr shadow_copy2 full_audit"
for other in $OTHERS; do
	for fs in good bad; do
		share "$fs-above-$other" "${!fs}" "vfs objects = pingpong $other"
		share "$fs-below-$other" "${!fs}" "vfs objects = $other pingpong"
	done
done
share all "$good" "vfs objects = full_audit shadow_copy2 pingpong acl_xattr fileid"
share ceph "$good" "vfs objects = pingpong ceph"
share ceph-nolocks "$good" "vfs objects = pingpong ceph" "posix locking = no" \
	"pingpong:on unknown = refuse"
share gluster "$good" "vfs objects = pingpong glusterfs" \
	"pingpong:on unknown = refuse"
smbd_up

echo "some words" >"$SCRATCH/words"

# There and back again
works()
{
	rm -f "$SCRATCH/back"
	timeout 120 smbclient "//127.0.0.1/$1" -N -c \
		"put $SCRATCH/words words; get words $SCRATCH/back; rm words" &&
		cmp "$SCRATCH/words" "$SCRATCH/back"
}

for other in $OTHERS; do
	for where in above below; do
		about "$where $other"
		expect "a fit share works" works "good-$where-$other"
		refused "an unfit one is refused" "bad-$where-$other"
	done
done
about "between them"
expect "a fit share works" works all

# loads NAME: the module of the distribution has its libraries
loads()
{
	local module

	module=$(modules)/$1.so
	[ -e "$module" ] && ! ldd "$module" | grep -q "lib$2.*not found"
}

about "no path of this host"
if loads ceph cephfs; then
	refused "vfs_ceph" ceph
	said "takes no locks" \
		"\[ceph\].*vfs_ceph grants every lock and takes none"
	refused "vfs_ceph without posix locking" ceph-nolocks
	said "cannot be checked" \
		"\[ceph-nolocks\].*below vfs_ceph .*cannot be checked"
else
	skip "vfs_ceph" "no libcephfs"
fi
if loads glusterfs gfapi; then
	refused "vfs_glusterfs" gluster
	said "cannot be checked" \
		"\[gluster\].*below vfs_glusterfs .*cannot be checked"
else
	skip "vfs_glusterfs" "no libgfapi"
fi
