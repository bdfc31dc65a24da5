# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
#
# For test scripts: ". tests/lib.sh" gives them
#
#   SCRATCH               a directory that goes at the end
#   PINGPONG, PING_PONG   the programs under test (BUILD is set by tests/run)
#   at_exit CMD...        runs CMD at the end, the last one first
#
#   about TEXT            stands before the names of the cases that follow
#   ok CASE
#   not_ok CASE [LINE...]           LINEs are shown as the evidence
#   skip CASE WHY
#   skip_all WHY                    ends the script: nothing can be tested
#   need CMD...                     skip_all where a program is missing
#
#   run CMD...                      runs it; STATUS, $OUT and $ERR hold exit
#                                   status, stdout and stderr
#   expect_exit STATUS CASE CMD...  run, and the case that STATUS is right
#   expect CASE CMD...              the case that CMD succeeds
#   expect_not CASE CMD...          the case that CMD fails
#   expect_jq CASE FILTER [ARG...]  the case that the filter holds for $OUT
#
#   expect_says CASE PATTERN FILE   the case that a line of FILE matches
#
#   check_exit STATUS CASE ARG...   expect_exit of pingpong check --json ARG...;
#                                   the others look at its report:
#   expect_outcome OUTCOME CHECK... the case that each has this outcome
#   expect_use FITNESS USE...       the case that each is fit, unfit, unknown
#   expect_because USE CHECK...     the case that these are among the reasons
#   expect_mended USE PARAMETER     the case that this setting mends it
#   expect_clean DIR                the case that no probe directory is left
#
#   mounts NAME N [VARIANT]         brings up tests/mounts/NAME.sh in $MNT
#                                   ($MNT/node0 ...) until unmounts or the end
#   fault COMMAND...                to the clusterfs that is up: add FAULT,
#                                   clear [NAME], list
#   unmounts                        takes the last one down again
#
# The exit status is 1 if a case failed.

# A script that is started by itself starts the runner, which starts it again:
# its store and its leftovers must not be those of the machine.

# What has a $ within single quotes is for jq.
# shellcheck disable=SC2016

set -u
export PATH="$PATH:/usr/sbin:/sbin"
export LC_ALL=C

TESTS=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
BUILD=${BUILD:-$(dirname "$TESTS")/build}
export BUILD
if [ -z "${UNDER_TESTS_RUN:-}" ]; then
	self=$(realpath "$0")
	self=${self#"$TESTS"/}
	exec "$TESTS/run" --build "$BUILD" "${self%.sh}"
fi
# shellcheck disable=SC2034
PINGPONG=$BUILD/cli/pingpong
# shellcheck disable=SC2034
PING_PONG=$BUILD/cli/ping_pong
SCRATCH=$(mktemp -d) || exit 1
OUT=$SCRATCH/stdout
ERR=$SCRATCH/stderr
STATUS=
MNT=
MNT_SCRIPT=

subject=
cleanups=()
failures=0
instances=0

at_exit()
{
	cleanups+=("$(printf '%q ' "$@")")
}

at_end()
{
	local ret=$? i

	trap '' INT TERM HUP
	for ((i = ${#cleanups[@]} - 1; i >= 0; i--)); do
		eval "${cleanups[i]}"
	done
	rm -rf --one-file-system "$SCRATCH"
	[ "$failures" = 0 ] || ret=1
	exit "$ret"
}
trap at_end EXIT
trap 'exit 1' INT TERM HUP

about()
{
	subject="$1, "
}

ok()
{
	echo "ok $subject$1"
}

not_ok()
{
	echo "not ok $subject$1"
	shift
	[ $# -eq 0 ] || printf '%s\n' "$@" | sed 's/^/#   /'
	failures=$((failures + 1))
}

skip()
{
	echo "skip $subject$1: $2"
}

skip_all()
{
	skip all "$1"
	exit 0
}

need()
{
	local cmd

	for cmd in "$@"; do
		[ -n "$(command -v "$cmd")" ] || skip_all "no program '$cmd'"
	done
}

run()
{
	"$@" >"$OUT" 2>"$ERR" </dev/null
	STATUS=$?
	case $STATUS in
	126|127)
		not_ok "it can be run: $*" "$(said)"
		exit 1;;
	esac
}

# What the last run said, short enough for a log.
said()
{
	echo "exit status $STATUS"
	if [ -n "${SHOW:-}" ]; then
		jq -c "$SHOW" <"$OUT" 2>&1
	else
		head -c 4000 "$OUT"
	fi
	head -c 1000 "$ERR" | sed 's/^/stderr: /'
}

expect_exit()
{
	local want=$1 name=$2
	shift 2

	run "$@"
	if [ "$STATUS" = "$want" ]; then
		ok "$name"
		return 0
	fi
	not_ok "$name" "expected exit status $want from: $*" "$(said)"
	return 1
}

expect()
{
	local name=$1 evidence
	shift

	if evidence=$("$@" 2>&1); then
		ok "$name"
	else
		not_ok "$name" "failed: $*" "$evidence"
	fi
}

expect_not()
{
	local name=$1 evidence
	shift

	if evidence=$("$@" 2>&1); then
		not_ok "$name" "succeeded: $*" "$evidence"
	else
		ok "$name"
	fi
}

expect_jq()
{
	local name=$1 filter=$2 evidence
	shift 2

	if evidence=$(jq -e "$filter" "$@" <"$OUT" 2>&1); then
		ok "$name"
	else
		not_ok "$name" "does not hold: $filter" "it gives: $evidence" \
			"$(jq -c "${SHOW:-.}" "$@" <"$OUT" 2>&1 | cut -c -2000)"
	fi
}

expect_says()
{
	if grep -q -e "$2" "$3"; then
		ok "$1"
	else
		not_ok "$1" "no line matches: $2" "$(head -c 2000 "$3")"
	fi
}

check_exit()
{
	local want=$1 name=$2
	shift 2

	SHOW='{exit, verdict}' \
	expect_exit "$want" "$name" "$PINGPONG" check --json "$@"
}

expect_outcome()
{
	local outcome=$1
	shift

	SHOW='[.checks[] | select(.name | IN($ARGS.positional[]))]' \
	expect_jq "$outcome: $*" '
		[.checks[] | select(.name | IN($ARGS.positional[])) | .outcome]
		| length == ($ARGS.positional | length)
		  and all(. == $outcome)
		' --arg outcome "$outcome" --args "$@"
}

expect_use()
{
	local fitness=$1
	shift

	SHOW='.verdict' expect_jq "$fitness: $*" '
		[.verdict[$ARGS.positional[]].fitness]
		| length > 0 and all(. == $fitness)
		' --arg fitness "$fitness" --args "$@"
}

expect_because()
{
	local use=$1
	shift

	SHOW='.verdict[$use]' expect_jq "$use because of: $*" '
		.verdict[$use].because as $because
		| $ARGS.positional | all(IN($because[]))
		' --arg use "$use" --args "$@"
}

expect_mended()
{
	SHOW='{use: .verdict[$use], settings}' \
	expect_jq "$1 mended by: $2" '
		(.verdict[$use].mended_by | index($parameter))
		and any(.settings[]; .parameter == $parameter and .needed)
		' --arg use "$1" --arg parameter "$2"
}

expect_clean()
{
	expect_not "no probe directory is left" ls -d "$1/.pingpong"
}

mounts()
{
	local script=$TESTS/mounts/$1.sh n=$2
	shift 2

	instances=$((instances + 1))
	MNT=$SCRATCH/mnt$instances
	MNT_SCRIPT=$script
	at_exit take_down "$script" "$MNT"
	"$script" up "$n" "$MNT" "$@"
}

fault()
{
	"$BUILD/tests/clusterfs/clusterfs" --control "$MNT/.state/control" \
		fault "$@"
}

take_down()
{
	[ ! -d "$2" ] || "$1" down "$2"
}

unmounts()
{
	take_down "$MNT_SCRIPT" "$MNT"
}
