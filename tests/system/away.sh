#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A file system that goes away in the middle of a run (its daemon ends, the
# connection is aborted): what was not tested before is unknown, and nothing
# is wrong on that account. Whoever had a lock there has it no more, so that
# the other member may well get it.
# limit: 240

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

USES=cluster-lock,posix-locking,share

nothing_wrong()
{
	expect_jq "no check says that something is wrong" '
		[.checks[] | select(.name != "id.device")
		 | select(.outcome | IN("fail", "hung", "unsupported"))] == []'
	expect_jq "the reason is told" '
		[.checks[] | select(.outcome == "skipped")]
		| length > 0 and all(.why | test("member 1 .*went away"))'
}

about "control, nothing goes away"
mounts clusterfs 2
check_exit 0 "exit status" --for $USES "$MNT"/node*
unmounts

# op=any of these at member 1, so many of them later
for what in op=open,after=0 op=lock,after=20 op=lock,after=3000 \
	    op=lock,after=8000 op=unlock,after=100 op=close,after=30 \
	    op=read,after=4 op=write,after=40 op=unlink,after=3; do
	about "gone at $what"
	mounts clusterfs 2 "gone:member=1,$what"
	check_exit 4 "exit status" --for $USES "$MNT"/node*
	nothing_wrong
	unmounts
done

about "connection aborted"
mkdir "$SCRATCH/fusectl"
if mount -t fusectl none "$SCRATCH/fusectl"; then
	at_exit umount "$SCRATCH/fusectl"
	mounts clusterfs 2
	dev=$(stat -c %d "$MNT/node1")
	"$PINGPONG" check --json --no-store --thorough=5 --for $USES \
		"$MNT"/node* >"$OUT" 2>"$ERR" </dev/null &
	pid=$!
	for _ in $(seq 500); do
		[ ! -d "$MNT/.state/back/.pingpong" ] || break
		sleep 0.01
	done
	sleep 1
	echo 1 >"$SCRATCH/fusectl/$dev/abort"
	wait $pid
	STATUS=$?
	expect "exit status" [ $STATUS = 4 ]
	nothing_wrong
	unmounts
else
	skip "exit status" "no fusectl"
fi
