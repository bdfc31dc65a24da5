#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Bad input: one line on stderr, with the offending value in quotes, an exit
# status that says what kind of trouble it is, and nothing on stdout.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

mkdir "$SCRATCH/dir"
touch "$SCRATCH/file"
chmod 0755 "$SCRATCH" "$SCRATCH/dir"
dir=$SCRATCH/dir

# refused STATUS VALUE CASE ARG...
refused()
{
	local status=$1 value=$2 name=$3
	shift 3

	about "$name"
	expect_exit "$status" "exit status" "$@"
	expect "one line on stderr" [ "$(wc -l <"$ERR")" = 1 ]
	expect "the value is quoted" grep -qF "'$value'" "$ERR"
	expect "nothing on stdout" [ ! -s "$OUT" ]
}

about "control"
check_exit 0 "the same directory is fit" --local "$dir"

EX_USAGE=64
EX_CANTCREAT=73
EX_NOPERM=77

refused $EX_USAGE nothing "unknown command" "$PINGPONG" nothing
refused $EX_USAGE --nothing "unknown option" \
	"$PINGPONG" check --nothing "$dir"
refused $EX_USAGE nothing "unknown use" \
	"$PINGPONG" check --for nothing "$dir"
refused $EX_USAGE nothing "unknown use beside a known one" \
	"$PINGPONG" check --for share,nothing "$dir"
refused $EX_USAGE lock.nothing "unknown check" \
	"$PINGPONG" check --only lock.nothing "$dir"
refused $EX_USAGE lock.nothing "explain of an unknown check" \
	"$PINGPONG" explain lock.nothing
for value in 0 -1 x 1x 99999999999999999999; do
	refused $EX_USAGE "$value" "time-out of $value" \
		"$PINGPONG" check --timeout "$value" "$dir"
done

about "no place"
expect_exit $EX_USAGE "exit status" "$PINGPONG" check
expect "it says something" [ -s "$ERR" ]
about "no command"
expect_exit $EX_USAGE "exit status" "$PINGPONG"
expect "it says something" [ -s "$ERR" ]

refused $EX_USAGE "$SCRATCH/nothing" "a place that does not exist" \
	"$PINGPONG" check --local "$SCRATCH/nothing"
refused $EX_USAGE "$SCRATCH/nothing" "one of the places does not exist" \
	"$PINGPONG" check --local "$dir" "$SCRATCH/nothing"
refused $EX_USAGE "$SCRATCH/file" "a place that is no directory" \
	"$PINGPONG" check --local "$SCRATCH/file"

refused $EX_USAGE "$dir" "the same place three times" \
	"$PINGPONG" check "$dir" "$dir" "$dir"

mkdir "$SCRATCH/ro"
mount --bind -o ro "$dir" "$SCRATCH/ro"
at_exit umount "$SCRATCH/ro"
refused $EX_CANTCREAT "$SCRATCH/ro" "a file system that is read only" \
	"$PINGPONG" check --local "$SCRATCH/ro"

refused $EX_NOPERM "$dir" "a directory that we may not write to" \
	setpriv --reuid=65534 --regid=65534 --clear-groups \
	"$PINGPONG" check --local --no-store "$dir"

about "afterwards"
expect_clean "$dir"

about "answers"
expect_exit 0 "--version" "$PINGPONG" --version
expect_says "a number" '[0-9]\.[0-9]' "$OUT"
expect_exit 0 "checks" "$PINGPONG" checks
for check in lock.supported lock.exclusion lock.shared lock.getlk \
	     lock.handoff lock.release lock.ring io.increment io.visibility \
	     io.size mmap.increment mmap.visibility mmap.local id.inode \
	     id.device rate.alone rate.together rate.recovery; do
	expect_says "checks names $check" "$check" "$OUT"
done
for check in lock.exclusion mmap.visibility id.device; do
	expect_exit 0 "explain $check" "$PINGPONG" explain "$check"
	expect_says "with more than its name" "Samba\|CTDB\|ctdb\|smbd" "$OUT"
done
