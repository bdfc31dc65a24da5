#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# User nobody attacks (tests/hostile/attack.c) the probe directory in a
# directory with mode 1777, and in one with 0777, while root checks there:
# nothing outside is touched, nothing of root's can be read, no check waits
# beyond its time, and none calls the file system unfit.
#
#   SECONDS_EACH=N SEED=N tests/run hostile/attack	(10, 1)
#
# limit: 1500

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need setpriv jq

seconds=${SECONDS_EACH:-10}
seed=${SEED:-1}
attack=$BUILD/tests/hostile/attack
chmod 0711 "$SCRATCH" "$TMPDIR" "$(dirname "$TMPDIR")"
cp "$attack" "$SCRATCH/attack"
chmod 0755 "$SCRATCH/attack"

mkdir -p "$SCRATCH/canary/dir"
echo canary >"$SCRATCH/canary/file"
echo canary >"$SCRATCH/canary/dir/ffffffff.0.1.1.1.0000000000000001"
chmod -R a+rX "$SCRATCH/canary"

canaries()
{
	find "$SCRATCH/canary" -printf '%p %m %U %s %n %T@ %C@ %y\n'
	find /etc -maxdepth 1 -newer "$SCRATCH/began"
}

# What the checks ended with, and those that were wrong
checks()
{
	local place=$1 until=$2 ret began n=0

	while [ "$SECONDS" -lt "$until" ]; do
		began=$SECONDS
		timeout -s KILL 60 "$PINGPONG" check --local --quick --timeout 5 \
			--no-store --json "$place" \
			>"$SCRATCH/json" 2>"$SCRATCH/said" </dev/null
		ret=$?
		n=$((n + 1))
		echo "$ret" >>"$SCRATCH/statuses"
		case $ret in
		0|4|73|77) ;;
		*)
			echo "check $n: status $ret after $((SECONDS - began)) s"
			cat "$SCRATCH/said"
			jq -c '.checks[] | select(.outcome == "fail" or
				.outcome == "hung")' "$SCRATCH/json" |
				cut -c 1-300;;
		esac
	done
}

one()
{
	local mode=$1 place=$SCRATCH/place.$1 attacker

	about "mode $mode"
	mkdir -m "$mode" "$place"
	: >"$SCRATCH/statuses"
	touch "$SCRATCH/began"
	canaries >"$SCRATCH/before"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$SCRATCH/attack" \
		"$place" "$seconds" "$seed" >"$SCRATCH/read" 2>&1 &
	attacker=$!
	checks "$place" $((SECONDS + seconds)) >"$SCRATCH/wrong"
	wait "$attacker" || not_ok "the attacker ends" "$(cat "$SCRATCH/read")"
	canaries >"$SCRATCH/after"
	echo "# mode $mode, $seconds s:" "$(sort "$SCRATCH/statuses" | uniq -c |
		awk '{ printf "%s%s x %s", s, $1, $2; s = ", " }')"
	expect "canaries are unchanged" cmp "$SCRATCH/before" "$SCRATCH/after"
	expect_not "nothing of root's is read" grep . \
		"$SCRATCH/read"
	expect_not "no check is wrong" grep . "$SCRATCH/wrong"
	expect "checks were made" test -s "$SCRATCH/statuses"
	rm -rf "$place/.pingpong" "$place"/moved*
	expect_exit 0 "a check afterwards" "$PINGPONG" check --local --quick \
		--no-store "$place"
	expect_clean "$place"
}

one 1777
one 0777
