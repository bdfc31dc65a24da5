#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Campaigns against a running check: at a random moment a random one of its
# processes (coordinator, agent, worker) is killed, or stopped for a while; the
# file system goes away; the store's disk is full. After each: no process, no
# half-written record, and nothing of it left in the place once the next check
# has run.
#
#   ROUNDS=N SEED=N tests/run hostile/kill	(5 of each, 1)
#
# Prints a table: tried, survived (the check ended by itself with a verdict or
# a reason), left behind.
#
# by name only: it takes longer than a minute
# limit: 3000

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need mkfs.ext4

rounds=${ROUNDS:-5}
RANDOM=${SEED:-1}
place=$SCRATCH/place
again=$SCRATCH/again
mkdir "$place" "$again"
mount --bind "$place" "$again" || exit 1
at_exit umount "$again"

# "HOST pingpong agent" without a way to a HOST
cat >"$SCRATCH/rsh" <<-END
	#!/bin/sh
	exec "$PINGPONG" agent
END
chmod +x "$SCRATCH/rsh"

# all of the check's, by their session
ours()
{
	ps -o pid= -s "$1"
}

# The check, as the leader of a session: its process is in $check
begin()
{
	setsid "$PINGPONG" check --local --quick --timeout 8 \
		-e "$SCRATCH/rsh" "$@" >"$OUT" 2>"$ERR" </dev/null &
	check=$!
}

moment()
{
	sleep "0.$(printf '%03d' $((RANDOM % 900)))"
}

# 124: it did not end within what its own deadline and a kill need
ended()
{
	local i

	for ((i = 0; i < 400; i++)); do
		if ! kill -0 "$check" 2>/dev/null; then
			wait "$check"
			return
		fi
		sleep 0.1
	done
	kill -KILL "$check"
	return 124
}

# What is wrong now, a line each. $1: the session
leftovers()
{
	local i f

	for ((i = 0; i < 150; i++)); do
		[ -z "$(ours "$1")" ] && break
		sleep 0.1
	done
	ps -o pid=,stat=,args= -s "$1"
	for f in /var/lib/pingpong/paths.json /var/lib/pingpong/verdicts/*; do
		[ -e "$f" ] || continue
		case $f in
		*.json) jq -e . "$f" >/dev/null || echo "half: $f";;
		esac
	done
}

# The next check finds the place as if nothing had been, and leaves nothing
next_check()
{
	local last=${places[-1]}

	"$PINGPONG" check --local --quick --only lock.exclusion "$last" \
		>"$SCRATCH/next" 2>&1
	case $? in
	0|4) ;;
	*) echo "the next check:"; cat "$SCRATCH/next";;
	esac
	find "$last" -mindepth 1
	find /var/lib/pingpong -name '*.new*' -o -name '*.tmp*'
}

campaign()
{
	local name=$1 prepare=$2 fn=$3 i left tried=0 survived=0 behind=0 status

	: >"$SCRATCH/left"
	for ((i = 0; i < rounds; i++)); do
		$prepare
		begin "${places[@]}"
		moment
		$fn
		ended
		status=$?
		tried=$((tried + 1))
		[ "$status" -lt 124 ] && survived=$((survived + 1))
		left=$(leftovers "$check"; next_check)
		[ "$status" = 124 ] && left="no end in 40 s. $left"
		if [ -n "$left" ]; then
			behind=$((behind + 1))
			printf 'round %d, status %d: %s\n' "$i" "$status" \
				"$left" >>"$SCRATCH/left"
		fi
	done
	printf '# %-28s tried %3d  survived %3d  left behind %d\n' "$name" \
		"$tried" "$survived" "$behind"
	if [ -s "$SCRATCH/left" ]; then
		mapfile -t lines < <(head -n 30 "$SCRATCH/left")
		not_ok "$name" "${lines[@]}"
	else
		ok "$name"
	fi
}

a_process()
{
	local pids

	mapfile -t pids < <(ours "$check")
	[ ${#pids[@]} -gt 0 ] || return 1
	echo "${pids[RANDOM % ${#pids[@]}]}"
}

kill_one()
{
	local pid

	pid=$(a_process) && kill -KILL "$pid" 2>/dev/null
}

pause_one()
{
	local pid

	pid=$(a_process) || return
	kill -STOP "$pid" 2>/dev/null
	moment
	kill -CONT "$pid" 2>/dev/null
}

two_workers()
{
	places=("$place" "$again")
}

with_agent()
{
	places=("h:$place" "$again")
}

campaign "SIGKILL, two workers" two_workers kill_one
campaign "SIGKILL, agent and worker" with_agent kill_one
campaign "SIGSTOP and SIGCONT" with_agent pause_one

# ---- the file system goes

gone()
{
	umount -l "$MNT/node0"
}

# a cluster of its own for each
cluster()
{
	unmounts
	mounts clusterfs 2 >"$SCRATCH/mounts" 2>&1 || exit 1
	places=("$MNT/node0" "$MNT/node1")
}

if mounts clusterfs 2 >"$SCRATCH/mounts" 2>&1; then
	campaign "file system gone" cluster gone
	unmounts
else
	skip "file system gone" "$(tail -n 1 "$SCRATCH/mounts")"
fi

# ---- the store's disk is full

truncate -s 2M "$SCRATCH/disk"
mkfs.ext4 -q -F "$SCRATCH/disk" 2>/dev/null || exit 1
mount -o loop "$SCRATCH/disk" /var/lib/pingpong || skip_all "no loop device"
at_exit umount /var/lib/pingpong
chmod 0700 /var/lib/pingpong
dd if=/dev/zero of=/var/lib/pingpong/full bs=1k 2>/dev/null
campaign "store on a full disk" two_workers true
expect "it is said" grep -q 'No space left' "$ERR"
