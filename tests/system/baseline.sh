#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# --save and --compare: what is slower than in all saved runs is named, and
# nothing else. --prometheus: the stored verdicts as metrics.
# limit: 200

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

[ -x "$BUILD/tests/clusterfs/clusterfs" ] || skip_all "no clusterfs was built"

mounts clusterfs 2
places=("$MNT/node0" "$MNT/node1")
only=(--only "lock.supported,lock.exclusion,lock.handoff,lock.ring")

about "metrics of nothing"
expect_exit 0 "exit status" "$PINGPONG" status --prometheus
expect_says "the store can be read" '^pingpong_store_readable 1$' "$OUT"

about "--save"
for i in 1 2 3; do
	check_exit 4 "exit status, run $i" "${only[@]}" --save before \
		"${places[@]}"
done
kept=/var/lib/pingpong/baselines/before.json
expect "three runs are kept" [ "$(jq '.runs | length' "$kept")" = 3 ]
expect "for root only" [ "$(stat -c %a "$kept")" = 600 ]

about "--compare"
expect_exit 64 "a name that is not there" "$PINGPONG" check --compare x \
	"${places[@]}"
expect_exit 64 "a name that is none" "$PINGPONG" check --save ../x \
	"${places[@]}"
expect_exit 64 "other places" "$PINGPONG" check "${only[@]}" \
	--compare before "$MNT/node0"

# What a busy machine would make of it is left out: the baseline is widened.
jq '.runs[0]["lock.ring"] += [1, 1e9] |
	.runs[0]["lock.handoff"] += [0.0001, 1e9]' "$kept" >"$SCRATCH/wide"
cp "$SCRATCH/wide" /var/lib/pingpong/baselines/wide.json
check_exit 4 "exit status" "${only[@]}" --compare wide "${places[@]}"
expect_jq "nothing is slower" '.compared | .runs == 3 and .slower == []'

# As if it had been a thousand times faster
jq '.runs |= map(."lock.ring" |= map(. * 1000) |
	."lock.handoff" |= map(. / 1000))' "$kept" >"$SCRATCH/fast"
cp "$SCRATCH/fast" /var/lib/pingpong/baselines/fast.json
check_exit 4 "exit status" "${only[@]}" --compare fast "${places[@]}"
expect_jq "both are named" '.compared.slower | length == 2 and
	(.[0] | startswith("lock.ring: ")) and
	(.[1] | startswith("lock.handoff: "))'
expect_exit 4 "as text" "$PINGPONG" check "${only[@]}" --compare fast \
	"${places[@]}"
expect_says "it is said" '^  slower than in all of them:$' "$OUT"

about "a single run"
check_exit 4 "exit status" "${only[@]}" --save one "${places[@]}"
expect_exit 4 "compared" "$PINGPONG" check "${only[@]}" --compare one \
	"${places[@]}"
expect_says "says nothing" '^  nothing can be said: ' "$OUT"

about "metrics"
check_exit 1 "a whole check" --quick --timeout 60 "${places[@]}"
expect_exit 0 "exit status" "$PINGPONG" status --prometheus
path=$MNT/node0
expect_says "fit" "^pingpong_use{path=\"$path\",use=\"share\",scope=\"cluster\",\
fitness=\"fit\"} 1\$" "$OUT"
expect_says "and not unfit" "^pingpong_use{path=\"$path\",use=\"share\",\
scope=\"cluster\",fitness=\"unfit\"} 0\$" "$OUT"
expect_says "its age" "^pingpong_checked_seconds{path=\"$path\",use=\"share\"} \
[0-9]*\$" "$OUT"
expect_not "each line is a comment or a sample" grep -vE \
	'^(# (HELP|TYPE) .*|[a-z_]+(\{([a-z]+="[^"]*",?)+\})? [0-9]+)$' "$OUT"
chmod 0755 /var/lib/pingpong/verdicts
expect_exit 77 "a store that is open to others" "$PINGPONG" status --prometheus
expect_says "is told as a metric" '^pingpong_store_readable 0$' "$OUT"
