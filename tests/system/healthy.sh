#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# No false alarms: --quick of healthy file systems, 2, 3 and 8 members, every
# second run with both processors busy. RUNS (environment) is how many runs,
# 60 if not set; what they came to is told at the end. A run that could not
# tell is counted, and is none.
# by name only: a loop of many runs
# limit: 900

# What has a $ within single quotes is for jq.
# shellcheck disable=SC2016

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

RUNS=${RUNS:-60}
MOUNTS=(local:tmpfs local:ext4 local:xfs local:btrfs clusterfs:healthy)
busy=()

idle()
{
	[ ${#busy[@]} = 0 ] || kill "${busy[@]}"
	wait "${busy[@]}" 2>/dev/null
	busy=()
}
at_exit idle

load()
{
	while :; do :; done &
	busy+=($!)
}

# one N: a run of N members, judged; its line goes to runs
one()
{
	local n=$1 i places=() wrong

	for ((i = 0; i < n; i++)); do
		places+=("$MNT/node$i")
	done
	run "$PINGPONG" check --quick --json --no-store "${places[@]}"
	wrong=$(jq -r '.checks[] | select(.name != "id.device")
		| select(.outcome | IN("fail", "hung", "unsupported"))
		| "\(.name): \(.outcome), \(.why)"' "$OUT" 2>&1)
	[ -s "$OUT" ] || wrong="no report: $(said)"
	if [ -n "$wrong" ]; then
		not_ok "$n members, ${#busy[@]} processors busy" "$wrong" \
			"$(cat "$OUT")"
	fi
	jq -c '[([.checks[] | select(.outcome == "skipped")] | length),
		([.checks[] | select(.outcome == "slow")] | length),
		.duration_s]' "$OUT" >>"$SCRATCH/runs"
}

done=0
while [ "$done" -lt "$RUNS" ]; do
	for fs in "${MOUNTS[@]}"; do
		about "$fs"
		mounts "${fs%:*}" 8 "${fs#*:}"
		for n in 2 3 8 2 3 8; do
			[ "$done" -lt "$RUNS" ] || break
			[ $((done % 2)) = 0 ] || { load; load; }
			one "$n"
			idle
			done=$((done + 1))
		done
		unmounts
	done
done
subject=
expect "$RUNS runs, no false alarm" [ "$failures" = 0 ]
jq -rs '"# \(length) runs; \(map(select(.[0] > 0)) | length) of them with
	checks that could not tell, \(map(select(.[1] > 0)) | length) with slow
	ones; \(map(.[2]) | add) s, the longest \(map(.[2]) | max) s"
	| gsub("\\s+"; " ")' "$SCRATCH/runs"
