#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Colour and progress: on a terminal, and only there; and what to run next.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need script

dir=$SCRATCH/dir
mkdir "$dir"
ESC=$(printf '\033')
quick=(check --no-store --quick --timeout 30)

# tty ARG...: pingpong ARG... on a terminal; what it shows is in $OUT
tty()
{
	local line

	line=$(printf '%q ' "$PINGPONG" "$@")
	script -qec "$line" /dev/null >"$OUT" 2>"$ERR" </dev/null
}

export TERM=xterm
unset NO_COLOR

about "a terminal"
tty "${quick[@]}" --local "$dir"
expect_says "colour" "${ESC}\[32mFIT: " "$OUT"
expect_says "progress with the time left" 'at most [0-9]* s left' "$OUT"

about "NO_COLOR"
export NO_COLOR=1
tty "${quick[@]}" --local "$dir"
unset NO_COLOR
expect_not "no colour" grep -q "${ESC}\[3" "$OUT"
expect_says "the verdict" 'FIT: cluster-lock' "$OUT"

about "a dumb terminal"
TERM=dumb tty "${quick[@]}" --local "$dir"
expect_not "nothing is painted" grep -q "$ESC" "$OUT"

about "a sweep on a terminal"
tty sweep --step 1 --local "$dir"
expect_says "a line is written over" "${ESC}\[K-rw  *2 members .*increment 2" \
	"$OUT"

about "a pipe"
expect_exit 0 "exit status" "$PINGPONG" "${quick[@]}" --local "$dir"
expect "nothing on stderr" [ ! -s "$ERR" ]
expect "the verdict is the first line" [ "$(head -c 5 "$OUT")" = "FIT: " ]
expect_not "nothing is painted" grep -q "$ESC" "$OUT"
expect_not "nothing to run next" grep -q 'Run next' "$OUT"

about "one node"
expect_exit 4 "exit status" "$PINGPONG" "${quick[@]}" "$dir"
expect_says "what was not tested" '^  anything between nodes: ' "$OUT"
expect_says "what to run next" "^  pingpong check $dir OTHER-NODE:$dir\$" "$OUT"

about "too little time"
run "$PINGPONG" check --no-store --timeout 1 --local "$dir"
if [ "$STATUS" = 4 ]; then
	expect_says "what to run next" \
		"^  pingpong check --local --timeout=600 $dir\$" "$OUT"
else
	skip "what to run next" "it was fast enough"
fi
