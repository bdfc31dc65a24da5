#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A file system that gives no answer: the share is refused, smbd and its other
# shares go on.
# limit: 600

# shellcheck source=tests/smbd/lib.sh
. "$(dirname "$0")/lib.sh"

mounts clusterfs 2
good=$MNT/node0
mounts clusterfs 2 source
silent=$MNT/node0

MODULE="vfs objects = pingpong"
TIMEOUT="pingpong:timeout = 16"
share good "$good" "$MODULE"
share silent "$silent" "$MODULE" "$TIMEOUT"
# its connect function would stat(2) the path
share stacked "$silent" "vfs objects = pingpong shadow_copy2" "$TIMEOUT"
smbd_up

# no_smbd_waits: no smbd has a system call under way in the file system
no_smbd_waits()
{
	local pid

	for pid in $(pgrep '^smbd'); do
		! grep -q fuse "/proc/$pid/stack" 2>/dev/null || return 1
	done
}

about "nothing answers"
fault add hang:op=all
connect silent >"$SCRATCH/silent.out" 2>&1 &
client=$!
accepted "another share is let in meanwhile" good
wait "$client"
expect_says "the share is refused" "tree connect failed" "$SCRATCH/silent.out"
said "the reason" "share \[silent\], .* is refused: hung: "
refused "with shadow_copy2 below" stacked
expect "no smbd waits for it" no_smbd_waits
fault clear

about "locks do not answer"
fault add hang:op=trylock+waitlock
refused "the share is refused" silent
jq -s . /var/lib/pingpong/verdicts/*.json >"$OUT"
expect_jq "and the verdict is stored" '
	any(.[]; .uses["posix-locking"] | .hung and .fitness == "unfit")'
expect "no smbd waits for it" no_smbd_waits
fault clear

about "it answers again"
for record in /var/lib/pingpong/verdicts/*.json; do
	jq '.uses[].when -= 60' <"$record" >"$SCRATCH/new"
	cat "$SCRATCH/new" >"$record"
done
accepted "the share is let in" silent
