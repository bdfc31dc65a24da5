#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# --history: every operation is there, with its times, and tells what the
# report tells; --seed: what went wrong can be seen again.
# limit: 300

# What has a $ within single quotes is for jq.
# shellcheck disable=SC2016

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

HISTORY=$SCRATCH/history

# expect_history CASE FILTER: holds for all lines as an array
expect_history()
{
	OUT=$HISTORY expect_jq "$1" "$2" --slurp
}

# trials CHECK: how many the last report has
trials()
{
	jq --arg name "$1" '
		.checks[] | select(.name == $name) | .metrics.trials' "$OUT"
}

mounts clusterfs 2
nodes=("$MNT/node0" "$MNT/node1")
checks=lock.exclusion,lock.release,lock.ring,io.increment

about "healthy"
check_exit 4 "exit status" --no-store --seed 7 --only "$checks" \
	--history "$HISTORY" "${nodes[@]}"
SHOW='.[0]' expect_history "the first line says what it was" '
	.[0] | .history == 1 and .seed == 7 and (.places | length) == 2
		and (.checks | length) == 4'
SHOW='length' expect_history "each line has member, times, request, answer" '
	.[1:] | all(.member < 2 and .request.op != null
		and (.request.op == "kill"
		     or (.invoked_ns > 1e9
			 and .invoked_ns <= (.answered_ns // 1e30)
			 and (.answer != null or .lost != null))))'
SHOW='length' expect_history "every check and both members are in it" '
	.[1:] | (map(.check) | unique | length) == 5
		and (map(.member) | unique) == [0, 1]'
SHOW='length' expect_history "killed workers are in it" '
	any(.[]; .request.op == "kill" and .check == "lock.release")'

# what the ring did, judged once more by other means
ring='[.[] | select(.check == "lock.ring" and .request.wait)]
	| group_by([.member, .request.start])
	| map([., .[1:]] | transpose
	      | map(select(.[0].request.type == 1 and .[1] != null)
		    | { member: .[0].member, byte: .[0].request.start,
			from: .[0].answered_ns, to: .[1].invoked_ns })) | add
	| group_by(.byte)
	| map(sort_by(.from) | [., .[1:]] | transpose
	      | map(select(.[1] != null and .[0].member != .[1].member
			   and .[1].from < .[0].to)) | length) | add'
SHOW='length' expect_history "every lock that was judged, none while held" "
	(map(select(.check == \"lock.ring\" and .request.type == 1)) |
		length) == $(trials lock.ring) and ($ring) == 0"
SHOW='length' expect_history "each value is read once, in this order" '
	[.[] | select(.check == "io.increment" and .request.op == "read"
		      and .request.len == 8)]
	| length == '"$(trials io.increment)"' and (group_by(.request.start)
	  | all(sort_by(.invoked_ns) | map(.answer.value // 0)
		| . == [range(length)]))'

about "locks that do not hold"
fault add noop-locks:op=waitlock,probability=0.01,seed=1 >"$SCRATCH/added"
check_exit 2 "exit status" --no-store --seed 7 --only lock.ring \
	--for cluster-lock --history "$HISTORY" "${nodes[@]}"
expect_outcome fail lock.ring
expect_jq "the evidence has what happened to the byte before" '
	.checks[0].evidence.detail | test("granted, [0-9.]+ us before")'
SHOW='length' expect_history "the history shows the same" "($ring) > 0"
run "$PINGPONG" check --no-store --seed 7 --only lock.ring "${nodes[@]}"
expect_says "the report has the command for it once more" \
	"pingpong check --seed 7 --only lock.ring $MNT" "$OUT"
fault clear >"$SCRATCH/cleared"

about "the same seed"
for i in 1 2; do
	run "$PINGPONG" check --no-store --seed 9 --only lock.exclusion \
		--history "$SCRATCH/h$i" "${nodes[@]}"
	jq -c 'select(.check == "lock.exclusion" and .request.op == "lock")
		| [.member, .request.start]' "$SCRATCH/h$i" >"$SCRATCH/o$i"
done
run "$PINGPONG" check --no-store --seed 9 --only lock.supported,lock.exclusion \
	--history "$SCRATCH/h3" "${nodes[@]}"
jq -c 'select(.check == "lock.exclusion" and .request.op == "lock")
	| [.member, .request.start]' "$SCRATCH/h3" >"$SCRATCH/o3"
run "$PINGPONG" check --no-store --seed 10 --only lock.exclusion \
	--history "$SCRATCH/h4" "${nodes[@]}"
jq -c 'select(.check == "lock.exclusion" and .request.op == "lock")
	| [.member, .request.start]' "$SCRATCH/h4" >"$SCRATCH/o4"
expect "there are operations" test -s "$SCRATCH/o1"
expect "the same operations" cmp "$SCRATCH/o1" "$SCRATCH/o2"
expect "the same beside another check" cmp "$SCRATCH/o1" "$SCRATCH/o3"
expect_not "others with another seed" cmp -s "$SCRATCH/o1" "$SCRATCH/o4"

about "hosts whose clocks differ"
if unshare --time --fork --monotonic 1000 true 2>"$SCRATCH/unshare"; then
	# HOST is how many seconds its clock is ahead
	cat >"$SCRATCH/rsh" <<-END
		#!/bin/sh
		exec unshare --time --fork --monotonic "\$1" \\
			"$PINGPONG" agent
	END
	chmod +x "$SCRATCH/rsh"
	hosts=("1000:${nodes[0]}" "200000:${nodes[1]}")
	for i in 1 2 3; do
		check_exit 4 "healthy $i, exit status" --no-store \
			--only lock.ring,io.increment -e "$SCRATCH/rsh" \
			"${hosts[@]}"
		expect_outcome pass lock.ring io.increment
	done
	fault add noop-locks:op=waitlock,probability=0.01,seed=1 \
		>"$SCRATCH/added"
	check_exit 2 "locks that do not hold" --no-store --for cluster-lock \
		--only lock.ring -e "$SCRATCH/rsh" "${hosts[@]}"
	expect_outcome fail lock.ring
	fault clear >"$SCRATCH/cleared"
else
	skip "healthy" "no time namespaces: $(cat "$SCRATCH/unshare")"
fi

about "a file that cannot be made"
expect_exit 73 "exit status" "$PINGPONG" check --no-store \
	--history "$SCRATCH/none/history" "${nodes[@]}"
expect_says "what is told" "--history '$SCRATCH/none/history': No such file" \
	"$ERR"
expect_exit 74 "a full disk: exit status" "$PINGPONG" check --no-store \
	--only lock.exclusion --history /dev/full "${nodes[@]}"
expect_clean "$MNT/node0"
unmounts
