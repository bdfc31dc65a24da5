#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The stock-compatible door next to stock: the same options, the same lines;
# and what stock does wrong done right.
# limit: 400

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need ping_pong
STOCK=$(command -v ping_pong)

mounts local 2 tmpfs
file=$MNT/node0/file

# both SECONDS PROGRAM_A PROGRAM_B ARG...: the two at once on one file, their
# output, lines apart, in $SCRATCH/a and $SCRATCH/b
both()
{
	local seconds=$1 a=$2 b=$3
	shift 3

	rm -f "$file"
	timeout "$seconds" "$a" "$@" >"$SCRATCH/a.raw" 2>"$SCRATCH/a.err" &
	timeout "$seconds" "$b" "$@" >"$SCRATCH/b.raw" 2>"$SCRATCH/b.err" &
	wait
	tr '\r' '\n' <"$SCRATCH/a.raw" >"$SCRATCH/a"
	tr '\r' '\n' <"$SCRATCH/b.raw" >"$SCRATCH/b"
}

# The kinds of lines in an output: every number is N.
kinds()
{
	tr '\r' '\n' <"$1" |
		sed -e '/^$/d' -e 's/[0-9][0-9]*/N/g' -e 's/^ *N/N/' | sort -u
}

# How a line of rates is padded and ends.
widths()
{
	grep -a -o '[ 0-9]* locks/sec.' "$1" | head -n 1 | tr '0-9' N |
		sed 's/[ N]/_/g' | od -An -c
}

for options in "" -r -w -rw -m -rwm -c -rwc; do
	about "ping_pong${options:+ $options}"
	# shellcheck disable=SC2086
	both 2 "$STOCK" "$STOCK" $options "$file" 3
	cp "$SCRATCH/a.raw" "$SCRATCH/stock.raw"
	# shellcheck disable=SC2086
	both 2 "$PING_PONG" "$PING_PONG" $options "$file" 3
	expect "the same kinds of lines" diff \
		<(kinds "$SCRATCH/stock.raw") <(kinds "$SCRATCH/a.raw")
	expect "the same form of the rate" diff \
		<(widths "$SCRATCH/stock.raw") <(widths "$SCRATCH/a.raw")
	expect "nothing on stderr" \
		[ ! -s "$SCRATCH/a.err" -a ! -s "$SCRATCH/b.err" ]
done

about "-rw"
both 3 "$PING_PONG" "$PING_PONG" -rw "$file" 3
expect "data increment 2 at both" \
	grep -qx "data increment = 2" "$SCRATCH/a" "$SCRATCH/b"
both 3 "$STOCK" "$PING_PONG" -rw "$file" 3
expect "data increment 2 beside stock" \
	grep -qx "data increment = 2" "$SCRATCH/b"
expect "data increment 2 at stock, too" \
	grep -qx "data increment = 2" "$SCRATCH/a"
rm -f "$file"
timeout 2 "$PING_PONG" -rw "$file" 2 >"$SCRATCH/alone" 2>&1
expect "alone: data increment 1" \
	grep -q "data increment = 1" <(tr '\r' '\n' <"$SCRATCH/alone")

about "the file of an earlier run"
for program in "$STOCK" "$PING_PONG"; do
	rm -f "$file"
	timeout 2 "$program" "$file" 3 >/dev/null 2>&1
	run timeout 2 "$PING_PONG" "$file" 3
	expect_says "left by ${program%/*}" "locks/sec" "$OUT"
	timeout 2 "$program" -rw "$file" 3 >/dev/null 2>&1
	run timeout 2 "$PING_PONG" -rw "$file" 3
	expect_says "left by ${program%/*} -rw" "locks/sec" "$OUT"
	run timeout 2 "$PING_PONG" -rw "$file" 5
	expect_says "left by ${program%/*} -rw, with more locks" \
		"locks/sec" "$OUT"
done

about "NUM_LOCKS too small"
both 5 "$PING_PONG" "$PING_PONG" "$file" 2
expect "the error is explained" grep -q "NUM_LOCKS\|num_locks" \
	"$SCRATCH/a.err" "$SCRATCH/b.err"
expect "it is said once" \
	[ "$(cat "$SCRATCH/a.err" "$SCRATCH/b.err" | wc -l)" -le 4 ]

about "-l"
rm -f "$file"
timeout 20 "$PING_PONG" -l "$file" >"$SCRATCH/holder" 2>&1 \
	< <(sleep 5; echo) &
holder=$!
for _ in $(seq 100); do
	grep -q "Holding lock" "$SCRATCH/holder" && break
	sleep 0.05
done
expect "the first one holds the lock" grep -q "Holding lock" "$SCRATCH/holder"
run "$STOCK" -l "$file"
cp "$OUT" "$SCRATCH/stock.out"
expect_exit 0 "the second one is refused" "$PING_PONG" -l "$file"
expect "in the words of stock" diff \
	<(sed 's/[0-9][0-9]*/N/g' "$SCRATCH/stock.out") \
	<(sed 's/[0-9][0-9]*/N/g' "$OUT")
expect_says "Working" "^Working POSIX byte range locks" "$OUT"
expect "it names the holder" grep -q "pid='$holder'\|pid='$(pgrep -n -P \
	"$holder")'" "$OUT"
wait "$holder"
STATUS=$?
expect "the holder ends" [ $STATUS = 0 ]
expect "-l has written nothing" [ ! -s "$file" ]

about "-l, lock calls answered with ENOLCK"
mounts clusterfs 1 error:errno=ENOLCK
run "$STOCK" -l "$MNT/node0/file"
expect "control: stock says Working" grep -q Working "$OUT" "$ERR"
expect "control: and exits with 0" [ "$STATUS" = 0 ]
run "$PING_PONG" -l "$MNT/node0/file"
expect_not "it does not say Working" grep -q Working "$OUT" "$ERR"
expect "exit status" [ "$STATUS" != 0 ]
expect_says "the error is named" "No locks available" "$ERR"
run timeout 10 "$PING_PONG" -rw "$MNT/node0/file" 3
expect "-rw: an error ends the run" \
	[ "$STATUS" != 0 -a "$STATUS" != 124 ]
expect_says "-rw: the error is named" "No locks available" "$ERR"
unmounts

# refused CASE FILE: somebody's file is not touched
refused()
{
	local before

	about "$1"
	before=$(sha256sum "$2"; stat -c '%s %Y %Z' "$2")
	for options in -rw -rwm -l ""; do
		# shellcheck disable=SC2086
		run timeout 5 "$PING_PONG" $options "$2" 3
		expect "${options:-no option}: refused" \
			[ "$STATUS" != 0 -a "$STATUS" != 124 ]
		expect "${options:-no option}: and says why" [ -s "$ERR" ]
	done
	expect "untouched" \
		[ "$(sha256sum "$2"; stat -c '%s %Y %Z' "$2")" = "$before" ]
}

echo "notes of the user" >"$SCRATCH/text"
refused "a text file" "$SCRATCH/text"
head -c 65537 /dev/zero >"$SCRATCH/large"
refused "a large file" "$SCRATCH/large"
about "control"
head -c 3 /dev/zero >"$SCRATCH/small"
run timeout 2 "$PING_PONG" -rw "$SCRATCH/small" 3
expect "a file of its own kind is taken" grep -q "locks/sec" "$OUT"

about "errors"
expect_not "a directory that is not there" \
	"$PING_PONG" "$SCRATCH/nothing/file" 3
run "$PING_PONG" "$SCRATCH/nothing/file" 3
expect_says "it is named" "$SCRATCH/nothing/file" "$ERR"
for args in "" "$file 0" "$file x" "-z $file 3"; do
	# shellcheck disable=SC2086
	run timeout 5 "$PING_PONG" $args
	expect "'$args'" [ "$STATUS" != 0 -a "$STATUS" != 124 ]
done
