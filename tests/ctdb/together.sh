#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Nodes that start at the same time on a file system that is wrong: for all of
# them, or for one; and what happens without the script.
# limit: 600

# shellcheck source=tests/ctdb/lib.sh
. "$(dirname "$0")/lib.sh"

# How many of these nodes have a ctdbd
running()
{
	local node n=0

	for node; do
		no_ctdbd "$node" || n=$((n + 1))
	done
	echo "$n"
}

left()
{
	local want=$1
	shift

	[ "$(running "$@")" = "$want" ]
}

about "locks local to each node"
cluster_make 3 clusterfs local-locks
c start
if until_ok $PATIENCE left 1 0 1 2; then
	ok "one node goes on, the others end"
else
	not_ok "one node goes on, the others end" \
		"$(for node in 0 1 2; do pingpong_lines $node; done)"
fi
served=
for node in 0 1 2; do
	if no_ctdbd $node; then
		expect_said "node $node says with whom and why" $node \
			'REFUSED: .* together with node .*(lock.exclusion'
	else
		served=$node
	fi
done
if c wait $PATIENCE "${served:-0}" 2>"$SCRATCH/wait"; then
	ok "the one serves"
else
	not_ok "the one serves" "$(on "${served:-0}" ctdb status 2>&1)"
fi

about "one node's locks are local"
cluster_make 3 clusterfs local-locks:member=1
c start
if until_ok $PATIENCE no_ctdbd 1; then
	ok "it stays out"
else
	not_ok "it stays out" "$(pingpong_lines 1)"
fi
expect_said "it says why" 1 'REFUSED: .* together with node [02]'
expect "the others are OK" c wait $PATIENCE 0 2

about "a FUSE daemon that forwards locks (bindfs)"
cluster_make 1 bindfs-lock
refused "it is refused, since a forked child's close drops the lock" 0 \
	'lock\.release'

about "without the script"
OPTIONS=no cluster_make 2 clusterfs local-locks
starts "the first node alone is OK" 0
mark
c start 1
expect "the second one throws both into recovery" \
	until_ok $PATIENCE one_said 'Daemon able to take .* lock .*during recovery'
generation 0 >"$SCRATCH/then"
expect_not "both are not OK for the next 10 s" c wait 10 0 1
expect_not "and its recoveries do not end" \
	cmp "$SCRATCH/then" <(generation 0)
