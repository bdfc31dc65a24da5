#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A healthy cluster is never refused: twenty starts of three nodes.
# by name only: takes ten minutes
# limit: 1200

# shellcheck source=tests/ctdb/lib.sh
. "$(dirname "$0")/lib.sh"

cluster_make 3
for i in $(seq 20); do
	about "start $i"
	mark
	starts "all are OK" 0 1 2
	expect_not "nothing was refused" one_said 'REFUSED'
	for node in 0 1 2; do
		stop $node &
	done
	wait
done
