#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The mounts that the other tests stand on: each comes up, shows what stock
# ping_pong says of it, and goes away.
# limit: 600

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need ping_pong bindfs sshfs glusterd mkfs.ext4 mkfs.xfs mkfs.btrfs

# increments: the data increments seen by either of two stock ping_pongs
increments()
{
	local node

	for node in 0 1; do
		timeout 3 ping_pong -rw "$MNT/node$node/stock" 3 \
			>"$SCRATCH/stock$node" 2>&1 &
	done
	wait
	cat "$SCRATCH"/stock[01] | tr '\r' '\n' |
		sed -n 's/^data increment = //p' | sort -u | tr '\n' ' '
}

# lab COHERENT NAME VARIANT; COHERENT: yes, no, or unsteady
lab()
{
	local seen

	about "$2 $3"
	if ! mounts "$2" 3 "$3"; then
		not_ok "up"
		return
	fi
	expect "status" "$TESTS/mounts/$2.sh" status "$MNT"
	seen=$(increments)
	case $1 in
	yes) expect "both count" grep -qw 2 <<<"$seen";;
	no) expect "neither sees the other" [ "$seen" = "1 " ];;
	unsteady) expect "it runs" [ -n "$seen" ];;
	esac
	unmounts
	expect_not "down" ls -d "$MNT"
}

lab yes local directory
lab yes local ext4
lab yes local xfs
lab yes local btrfs
lab yes local tmpfs
lab no bindfs default
lab no bindfs lock
lab yes bindfs locknocache
lab unsteady sshfs default
lab unsteady sshfs nocachesync
lab no glusterfs default
lab no glusterfs off
lab yes glusterfs offnocache

about "two at once"
mounts glusterfs 2 default
first=$MNT
mounts glusterfs 2 default
touch "$first/node0/mine"
expect "a volume of its own" [ -e "$first/node1/mine" ]
expect_not "nothing shared" ls "$MNT/node0/mine"

about "usage"
expect_exit 64 "unknown variant" "$TESTS/mounts/bindfs.sh" \
	up 2 "$SCRATCH/x" nothing
expect_exit 64 "no node" "$TESTS/mounts/bindfs.sh" up 0 "$SCRATCH/x"
expect_exit 1 "down of nothing" "$TESTS/mounts/bindfs.sh" down "$SCRATCH"
