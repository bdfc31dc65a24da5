#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What a check records, and who may read and write it.
# limit: 300

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

STORE=/var/lib/pingpong

mounts local 2 tmpfs
nodes=("$MNT/node0" "$MNT/node1")

records()
{
	find "$STORE/verdicts" -name '*.json' 2>/dev/null | wc -l
}

about "--no-store"
check_exit 0 "exit status" --local --no-store "${nodes[@]}"
expect "no record" [ "$(records)" = 0 ]

about "a check"
check_exit 0 "exit status" --local "${nodes[@]}"
expect "one file system, one record" [ "$(records)" = 1 ]
# shellcheck disable=SC2016
expect "the paths" jq -e --arg a "${nodes[0]}" --arg b "${nodes[1]}" \
	'tostring | contains($a) and contains($b)' "$STORE/paths.json"
expect "nothing but directories of 0700 and files of 0600, all root's" \
	[ -z "$(find $STORE -mindepth 1 ! \( -user root \
		\( -type d -perm 0700 -o -type f -perm 0600 \) \))" ]
record=$(find "$STORE/verdicts" -name '*.json')
expect "it is JSON" jq -e . "$record"

about "status"
expect_exit 0 "exit status" "$PINGPONG" status
expect_says "it shows the place" "${nodes[0]}" "$OUT"
expect_says "fit" "fit" "$OUT"

about "another run"
before=$(stat -c %i "$record")
check_exit 0 "exit status" --local "${nodes[@]}"
expect "still one record" [ "$(records)" = 1 ]
expect "replaced by rename" [ "$(stat -c %i "$record")" != "$before" ]
expect "no other file is left" \
	[ "$(find $STORE -type f | wc -l)" = 2 ]

about "a run of one check"
check_exit 4 "exit status" --local --only io.size "${nodes[@]}"
run "$PINGPONG" status
expect_says "what was known is kept" "${nodes[0]}.*fit\|cluster-lock.*fit" \
	"$OUT"

about "another file system"
old=("${nodes[@]}")
mounts local 2 ext4
check_exit 0 "exit status" --local "$MNT/node0" "$MNT/node1"
expect "a record of its own" [ "$(records)" = 2 ]
unmounts

about "a store that is open to others"
chmod 0777 $STORE/verdicts
run "$PINGPONG" check --json --local "${old[@]}"
expect "the verdict is given all the same" \
	jq -e '.verdict."cluster-lock".fitness == "fit"' "$OUT"
expect_says "the store is named" "$STORE" "$ERR"
chmod 0700 $STORE/verdicts

about "a corrupt record"
for file in "$STORE"/verdicts/*.json; do
	echo "{" >"$file"
done
run "$PINGPONG" status
expect_says "status names it" "corrupt\|invalid\|not valid\|Invalid" \
	<(cat "$OUT" "$ERR")
check_exit 0 "a check mends it" --local "${old[@]}"
