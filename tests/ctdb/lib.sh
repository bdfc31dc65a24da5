# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
#
# For the tests on real clusters: what tests/lib.sh gives, and
#
#   cluster_make N [FS [FAULT...]]   a new cluster (the one before is taken
#                                    down); variables as "cluster" has them
#   c VERB...                        tests/ctdb/cluster on it
#   on NODE CMD...                   CMD on the node
#   fs                               the cluster file system's path
#   mark                             what follows looks at logs from here on
#   said NODE PATTERN                the node's log has such a line since
#   one_said PATTERN                 some node's log has
#   starts CASE NODE...              ctdbd on these, and all of them are OK
#   refused CASE NODE PATTERN        ctdbd on the node; it ends in init, with
#                                    a line of pingpong's that matches
#   expect_said CASE NODE PATTERN
#   stop NODE                        ctdbd ends, in order
#   agent_pid NODE

# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

# More than any step takes on a busy machine
PATIENCE=120

need ctdbd ctdb
[ -x "$BUILD/cli/pingpong" ] || skip_all "no pingpong was built"
[ -x "$BUILD/tests/clusterfs/clusterfs" ] || skip_all "no clusterfs was built"

CLUSTER=
clusters=0
declare -A marks

c()
{
	CLUSTER=$CLUSTER "$TESTS/ctdb/cluster" "$@"
}

on()
{
	c exec "$@"
}

fs()
{
	echo "$CLUSTER/fs"
}

cluster_down()
{
	[ -z "$CLUSTER" ] || c down
}

cluster_make()
{
	cluster_down
	clusters=$((clusters + 1))
	CLUSTER=$SCRATCH/cluster$clusters
	mkdir "$CLUSTER"
	at_exit cluster_down
	mark
	# all nodes share this machine's processors
	if [ "${OPTIONS:-}" != no ]; then
		OPTIONS="CTDB_PINGPONG_TIMEOUT=20
${OPTIONS:-}"
		export OPTIONS
	fi
	if ! c make "$@"; then
		not_ok "the cluster is there"
		exit 1
	fi
}

log_of()
{
	echo "$CLUSTER/node$1/var/log/ctdb/log.ctdb"
}

mark()
{
	local log

	marks=()
	for log in "$CLUSTER"/node*/var/log/ctdb/log.ctdb; do
		[ ! -f "$log" ] || marks[$log]=$(wc -l <"$log")
	done
}

# The node's log since the mark
log_since()
{
	local log

	log=$(log_of "$1")
	[ ! -f "$log" ] || tail -n +$((${marks[$log]:-0} + 1)) "$log"
}

said()
{
	log_since "$1" | grep -q -e "$2"
}

one_said()
{
	local dir

	for dir in "$CLUSTER"/node*/; do
		dir=${dir%/}
		if said "${dir##*/node}" "$1"; then
			return 0
		fi
	done
	return 1
}

pingpong_lines()
{
	log_since "$1" | grep -i -e pingpong -e 'Shutting down' | tail -n 20
}

until_ok()
{
	local end=$((SECONDS + $1))
	shift

	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.2
	done
}

no_ctdbd()
{
	! on "$1" pgrep -x ctdbd >"$SCRATCH/pgrep"
}

# It outlives its ctdbd by 5 s, and keeps the next one from starting.
no_eventd()
{
	! on "$1" pgrep -x ctdb-eventd >"$SCRATCH/pgrep"
}

starts()
{
	local name=$1 node
	shift

	c start "$@"
	if c wait $PATIENCE "$@"; then
		ok "$name"
		return
	fi
	not_ok "$name" "$(for node in "$@"; do pingpong_lines "$node"; done)"
}

refused()
{
	local name=$1 node=$2

	mark
	c start "$node"
	if ! until_ok $PATIENCE no_ctdbd "$node"; then
		not_ok "$name" "ctdbd still runs" "$(pingpong_lines "$node")"
		stop "$node"
		return
	fi
	until_ok $PATIENCE no_eventd "$node"
	if said "$node" "00.pingpong: REFUSED: .*$3"; then
		ok "$name"
	else
		not_ok "$name" "no line matches: $3" \
			"$(pingpong_lines "$node")"
	fi
}

expect_said()
{
	if said "$2" "$3"; then
		ok "$1"
	else
		not_ok "$1" "no line matches: $3" "$(pingpong_lines "$2")"
	fi
}

# The agent goes with ctdbd.
no_daemons()
{
	! on "$1" pgrep -f 'ctdbd|ctdb-eventd|pingpong' >"$SCRATCH/pgrep"
}

stop()
{
	on "$1" timeout 10 ctdb shutdown >"$SCRATCH/shutdown" 2>&1
	until_ok $PATIENCE no_daemons "$1"
}

agent_pid()
{
	on "$1" pgrep -f 'pingpong agent --daemon' | head -n 1
}

agent_pid_is()
{
	[ -n "$(agent_pid "$1")" ]
}

no_agent()
{
	! agent_pid_is "$1"
}

no_worker()
{
	! on "$1" pgrep -f pingpong-worker >"$SCRATCH/pgrep"
}

# What a node says of the cluster and its databases: changes with a recovery
generation()
{
	on "$1" timeout 5 ctdb status |
		grep -e '^pnn:' -e '^Generation' -e '^Recovery mode' \
			-e '^Leader'
}
