#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# kill -9 of the coordinator or a worker at a random moment: no process is
# left after its deadline, no probe directory at the latest after the next
# run, and a run that lost a worker never calls a healthy file system unfit.
# limit: 600

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

ROUNDS=12
SEED=${SEED:-$$}
RANDOM=$SEED
echo "# SEED=$SEED"

mounts local 3 tmpfs
nodes=("$MNT/node0" "$MNT/node1" "$MNT/node2")

# The test is alone in its pid namespace.
ours()
{
	pgrep pingpong
}

none_left()
{
	for _ in $(seq 150); do
		ours >/dev/null || return 0
		sleep 0.1
	done
	ps -o pid,ppid,stat,wchan:20,args -p "$(ours | paste -sd,)"
	return 1
}

start()
{
	timeout 60 "$PINGPONG" check --json --local "${nodes[@]}" \
		>"$OUT" 2>"$ERR" </dev/null &
	runner=$!
}

coordinator()
{
	pgrep -P "$runner"
}

pause()
{
	sleep "$((RANDOM % 2)).$(printf %03d $((RANDOM % 1000)))"
}

about "control"
start
wait "$runner"
expect "nobody killed: fit" [ $? = 0 ]
expect "nobody is left" none_left
expect_clean "${nodes[0]}"

about "coordinator"
killed=0
for ((round = 0; round < ROUNDS; round++)); do
	start
	pause
	pid=$(coordinator) && kill -KILL "$pid" && killed=$((killed + 1))
	wait "$runner"
	if ! left=$(none_left); then
		not_ok "round $round: a process is left" "$left"
		break
	fi
done
[ $round = $ROUNDS ] && ok "nobody is left after $ROUNDS kills"
expect "some were killed in time" [ $killed -gt $((ROUNDS / 4)) ]
check_exit 0 "the next run" --local "${nodes[@]}"
expect_clean "${nodes[0]}"

about "worker"
killed=0
for ((round = 0; round < ROUNDS; round++)); do
	start
	pause
	pid=$(pgrep pingpong | grep -vx "$(coordinator)" | shuf -n 1)
	[ -n "$pid" ] && kill -KILL "$pid" && killed=$((killed + 1))
	wait "$runner"
	STATUS=$?
	case $STATUS in
	0|4|69) ;;
	*)
		not_ok "round $round: the exit status" "$(said)"
		break;;
	esac
	if ! jq -e '[.checks[] | select(.outcome | IN("fail", "hung"))] == []
		    ' "$OUT" >/dev/null && [ $STATUS != 69 ]; then
		not_ok "round $round: a false alarm" "$(jq -c '.checks[]
			| select(.outcome | IN("fail", "hung"))' "$OUT")"
		break
	fi
	if ! left=$(none_left); then
		not_ok "round $round: a process is left" "$left"
		break
	fi
done
[ $round = $ROUNDS ] && ok "a right end of $ROUNDS runs"
[ $round != $ROUNDS ] ||
	expect "some were killed in time" [ $killed -gt $((ROUNDS / 4)) ]
check_exit 0 "the next run" --local "${nodes[@]}"
expect_clean "${nodes[0]}"

for signal in TERM INT; do
	about "SIG$signal"
	for ((round = 0; round < 5; round++)); do
		start
		sleep 0.$((RANDOM % 8 + 2))
		kill -s $signal "$(coordinator)"
		wait "$runner"
		none_left >/dev/null || break
		[ ! -e "${nodes[0]}/.pingpong" ] || break
	done
	expect "nobody is left" none_left
	expect_clean "${nodes[0]}"
done
