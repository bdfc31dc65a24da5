#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# An agent that lies (tests/hostile/mutate) against the coordinator: whatever it
# says, the command ends in time, with an exit status of its own, in bounded
# memory, has touched no file, and prints nothing that steers a terminal.
#
#   SESSIONS=N SEED=N tests/run hostile/agent	(8, 1)
#
# With a build of sanitizers: tests/run --build build-asan hostile/agent
#
# by name only: its agent is a Python program, whose start on a busy machine
# takes longer than a short check waits for an agent
# limit: 3000

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need python3 prlimit

sessions=${SESSIONS:-8}
seed=${SEED:-1}
export MUTATE_AGENT=$PINGPONG
export ASAN_OPTIONS=exitcode=99:detect_leaks=0 UBSAN_OPTIONS=exitcode=99
place=$SCRATCH/place
canaries=$SCRATCH/canaries
again=$SCRATCH/again
mkdir "$place" "$canaries" "$again"
mount --bind "$place" "$again" || exit 1
at_exit umount "$again"
echo mine >"$place/mine"
echo mine >"$canaries/mine"

# one frame in so many is a lie: from the greeting on, or deep in a run
rates=(5 200 3000)

state_of_files()
{
	find "$canaries" "$place" /etc/passwd -name .pingpong -prune -o \
		! -path "$place" -printf '%p %m %U %s %T@ %y\n'
}

# One session; prints what was wrong
session()
{
	local n=$1 out=$SCRATCH/$1.out ret began took
	local places=(hostile:"$place" "$again")
	local how=(--only "lock.exclusion,io.visibility,lock.ring,id.inode")

	[ $((n % 4)) = 3 ] && how=(--json)
	[ $((n % 8)) = 5 ] && places=(hostile:"$place" hostile:"$again")
	began=$SECONDS
	(cd "$canaries" &&
	 MUTATE_SEED=$((seed * 100000 + n)) MUTATE_RATE=${rates[n % 3]} \
	 timeout -s KILL 60 "${limit[@]}" "$PINGPONG" check --local --quick \
		--timeout 20 --no-store "${how[@]}" -e "$TESTS/hostile/mutate" \
		"${places[@]}") >"$out" 2>"$out.err" </dev/null
	ret=$?
	took=$((SECONDS - began))
	case $ret in
	0|1|2|3|4|69|70|73|77) ;;
	*)
		echo "session $n: exit status $ret after $took s"
		tail -n 20 "$out.err";;
	esac
	if grep -q -a -P '[\x00-\x08\x0b-\x1f\x7f]' "$out" "$out.err"; then
		echo "session $n: control characters are printed"
		grep -a -P '[\x00-\x08\x0b-\x1f\x7f]' "$out" "$out.err" |
			cat -v | cut -c 1-200 | head -n 3
	fi
	echo "$ret" >>"$SCRATCH/statuses"
	rm -f "$out" "$out.err"
}

# a sanitizer's shadow is larger than any limit
limit=(prlimit --as=$((512 << 20)))
if nm "$PINGPONG" 2>/dev/null | grep -q __asan_init; then
	limit=()
fi

state_of_files >"$SCRATCH/before"
for ((i = 0; i < sessions; i += 2)); do
	session "$i" >>"$SCRATCH/wrong" &
	session "$((i + 1))" >>"$SCRATCH/wrong"
	wait
done
state_of_files >"$SCRATCH/after"
echo "# exit statuses of $sessions sessions:" \
	"$(sort "$SCRATCH/statuses" | uniq -c | awk '{ printf "%s%s x %s", s, $1, $2; s = ", " }')"
if [ -s "$SCRATCH/wrong" ]; then
	mapfile -t lines < <(head -n 60 "$SCRATCH/wrong")
	not_ok "$sessions sessions" "${lines[@]}"
else
	ok "$sessions sessions"
fi
expect "no file is touched" cmp "$SCRATCH/before" "$SCRATCH/after"
# or the sessions would have shown nothing
expect "some of the lies are seen" grep -q -v '^[04]$' "$SCRATCH/statuses"
run "$PINGPONG" check --local --quick --no-store --only lock.supported "$place"
rm -f "$place/mine"
expect_clean "$place"
