#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The matrix: every fault of the test file system against every check.
#
# For each fault the table says which checks must name it, which others may be
# hit by it, too, which of the default uses it makes unfit, and the exit status.
# Every check that is not named must come out as in the healthy run: no slow,
# fail, hung or unsupported. FAULT is of FAULTS.md: F1 to F21 the class, #1 to
# #22 the field case that looks like this.
#
# A check that must name a fault does so for itself: with its record as if it
# had passed the same report must be found wrong, so that no fault is named by
# luck.
#
# What is not here: #3, #8 and #9 on a cluster (ctdb/join, ctdb/hangs,
# system/ping_pong_care), #2 with a lock a second (system/slow), F4 for each operation (system/hangs), a file system
# that goes away (system/away), places that are not the same (system/places).
# by name only: takes ten minutes; system/clusterfs has the classic ones
# limit: 1200

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# FAULT | HOW | EXIT | CHECK... that name it | CHECK... that may | USE...
# A name that ends with "*" stands for all that begin so; "-" is none.
# CHECK=OUTCOME: exactly that, else anything but a pass. What hangs on a lock
# or cannot be locked may hit all that is counted under locks.
LOCKS='lock.* io.increment mmap.increment rate.*'
table()
{
	cat <<-END
	#7  | healthy | 1 | id.device=fail | - |
	F1 #1 #3 #14 #15 | local-locks | 2 | lock.exclusion=fail lock.ring=fail | $LOCKS | cluster-lock posix-locking
	F1  | local-locks:family=process | 2 | lock.exclusion=fail | $LOCKS | cluster-lock posix-locking
	F1  | local-locks:family=ofd | 1 | lock.ofd=fail | - | posix-locking
	F1 #19 | local-locks:family=flock | 1 | lock.flock=fail | - |
	F2  | noop-locks | 2 | lock.exclusion=fail | $LOCKS | cluster-lock posix-locking
	F3 #16 | error:errno=ENOLCK | 2 | lock.supported=unsupported | $LOCKS | cluster-lock posix-locking
	F3 #14 #16 | error:errno=ENOSYS | 2 | lock.supported=unsupported | $LOCKS | cluster-lock posix-locking
	F3  | error:errno=EINVAL | 2 | lock.supported=unsupported | $LOCKS | cluster-lock posix-locking
	F3  | error:errno=EACCES | 2 | lock.supported=fail | $LOCKS | cluster-lock posix-locking
	F3  | error:errno=EIO | 2 | lock.supported=fail | $LOCKS | cluster-lock posix-locking
	F3 #12 | error:errno=200 | 2 | lock.supported=fail | $LOCKS | cluster-lock posix-locking
	F3  | error:errno=EIO,op=unlock | 2 | lock.supported=fail | $LOCKS | cluster-lock posix-locking
	F3 #12 | error:errno=EDEADLK,op=waitlock,contended=1 | 2 | lock.handoff=fail | $LOCKS | cluster-lock posix-locking
	F3 #20 | error:errno=ENOLCK,held=256 | 2 | lock.many=unsupported | - | posix-locking
	F4 #9 #17 | hang:member=1,op=lock | 3 | lock.supported=hung | $LOCKS | cluster-lock posix-locking
	F4  | hang:member=1,op=read | 3 | io.visibility=hung | io.* mmap.* | posix-locking share
	F5  | coarse-locks | 2 | lock.exclusion=fail | $LOCKS | cluster-lock posix-locking
	F5  | coarse-locks:unit=0 | 2 | lock.exclusion=fail | $LOCKS | cluster-lock posix-locking
	F6  | stuck-locks:on=close | 2 | lock.release=fail | lock.* io.* mmap.* rate.* | cluster-lock posix-locking
	F6  | stuck-locks:on=exit | 2 | lock.release=fail | - | cluster-lock posix-locking
	F6 #18 | stuck-locks:on=kill | 2 | lock.release=fail | - | cluster-lock posix-locking
	F6 #4 #10 | stuck-locks:on=kill,seconds=3 | 1 | lock.release=slow | - |
	F6 #5 | stuck-locks:on=cancel | 2 | lock.cancel=fail | - | cluster-lock posix-locking
	F7  | no-wakeup:until=never | 3 | lock.handoff=hung | $LOCKS | cluster-lock posix-locking
	F7  | no-wakeup:until=asked | 3 | lock.handoff=hung | $LOCKS | cluster-lock posix-locking
	F8 #6 | lost-locks | 2 | lock.exclusion=fail | $LOCKS | cluster-lock posix-locking
	F8  | lost-locks:how=max,max=256 | 2 | lock.many=fail | - | posix-locking
	F8  | lost-locks:how=lease,seconds=0.5 | 2 | lock.idle=fail | lock.* | cluster-lock posix-locking
	F8  | lost-locks:how=foreign | 2 | lock.exclusion=fail lock.shared=fail | lock.* | cluster-lock posix-locking
	F8  | confused-locks | 2 | lock.shared=fail | lock.getlk lock.flock | posix-locking
	F8  | confused-locks:how=downgrade | 2 | lock.shared=fail | - | posix-locking
	F9  | mixed-owner | 2 | lock.release=fail | lock.ofd lock.idle | cluster-lock posix-locking
	F10 #2 #11 | stale-data | 2 | io.visibility=fail | io.increment io.append | posix-locking share
	F10 #11 | stale-data:seconds=3 | 2 | io.visibility=fail | io.increment io.append | posix-locking share
	F10 | stale-data:until=reopen | 2 | io.visibility=fail | io.increment io.append | posix-locking share
	F10 | stale-data:offset=4096- | 2 | io.visibility=fail | io.append | posix-locking share
	F10 | stale-size | 2 | io.size=fail | io.* mmap.* | share
	F10 | stale-names:seconds=3 | 1 | dir.visibility=slow | - |
	F10 | stale-names:member=1,after=4 | 2 | dir.visibility=fail | - | share ?cluster-lock ?posix-locking
	F10 | lost-writes:member=1 | 2 | io.visibility=fail | io.* mmap.* | posix-locking share
	F10 | torn-writes | 2 | io.visibility=fail | io.* mmap.* | posix-locking share
	F10 | append-overwrites | 2 | io.append=fail | - | share
	F11 | mmap-incoherent | 1 | mmap.visibility=fail mmap.mixed=fail | mmap.increment |
	F11 #21 | mmap-incoherent:scope=local | 1 | mmap.local=fail | mmap.* |
	F12 | mmap-refused | 1 | mmap.visibility=unsupported | mmap.* |
	F13 | slow:ms=20 | 1 | - | lock.many |
	F14 | unfair:favourite=0 | 1 | lock.handoff=slow | - |
	F14 | unfair:favourite=0,ms=1500 | 1 | lock.handoff=slow | - |
	F15 | ids | 2 | id.inode=fail | - | cluster-lock share
	F15 | ids:ino=open | 2 | id.inode=fail | - | cluster-lock share
	F16 | getlk-lies:how=blind | 2 | lock.getlk=fail | - | posix-locking
	F16 | getlk-lies:how=own | 2 | lock.getlk=fail | - | posix-locking
	F16 | getlk-lies:how=range | 2 | lock.getlk=fail | - | posix-locking
	F16 | getlk-lies:how=type | 2 | lock.getlk=fail | - | posix-locking
	F17 #22 | lease-kept | 1 | lease.break=fail | - |
	F18 | replaced | 2 | id.inode=fail | lock.* io.* mmap.* | cluster-lock posix-locking share
	F20 #13 | lost-writes:probability=0.01 | 2 | io.increment=fail | io.* mmap.mixed | posix-locking share
	F20 | lost-locks:probability=0.003 | 2 | lock.ring=fail | lock.* io.increment mmap.increment | cluster-lock posix-locking
	F21 | offset-bits:bits=31 | 2 | lock.range64=fail | - | posix-locking
	F21 | offset-bits:bits=32 | 2 | lock.range64=fail | - | posix-locking
	F21 | offset-bits:bits=32,how=refuse | 2 | lock.range64=unsupported | - | posix-locking
	END
}

trim()
{
	sed 's/^[ \t]*//; s/[ \t]*$//; s/[ \t]*|[ \t]*/|/g'
}

# judge EXIT NAMED MAY USES <REPORT: one line for each thing that is not as it
# should be. ?USE: unknown.
judge()
{
	jq -r --argjson exit "$1" --arg named "$2" --arg may "$3" \
		--arg uses "$4" '
		def words: split(" ") | map(select(. != "-" and . != ""));
		def among($list): . as $name | any($list[];
			if endswith("*") then
				.[:-1] as $head | $name | startswith($head)
			else . == $name end);
		def bad: IN("slow", "fail", "hung", "unsupported");
		def uses($fitness): to_entries
			| map(select(.value.fitness == $fitness
				     and (.key | IN("tdb", "mmap") | not))
			      | .key) | sort;
		($named | words | map(split("="))) as $named
		| ($may | words) as $may
		| ($uses | words) as $uses
		| ([$uses[] | select(startswith("?") | not)] + ["file-id"]
		   | unique) as $unfit
		| ([$uses[] | select(startswith("?")) | .[1:]] | sort)
		  as $unknown
		| (if .exit != $exit then "exit status \(.exit)" else empty end),
		  ($named[] as [$name, $outcome]
		   | [.checks[] | select(.name == $name) | .outcome]
		   | if (.[0] // "" | bad) and .[0] == ($outcome // .[0])
		     then empty else "\($name) did not name it: \(.)" end),
		  (.checks[] | select(.outcome | bad)
		   | select(.name | among([$named[][0]] + $may
					  + ["id.device"]) | not)
		   | "\(.name): \(.outcome), \(.why)"),
		  (.verdict | uses("unfit") | if . == $unfit then empty
		   else "unfit: \(join(" "))" end),
		  (.verdict | uses("unknown") | if . == $unknown then empty
		   else "unknown: \(join(" "))" end)'
}

# switched_off NAMED CHECK: the report with this check's record as a pass
switched_off()
{
	jq --arg check "${1%=*}" '
		(.checks[] | select(.name == $check) | .outcome) = "pass"' "$OUT"
}

row()
{
	jq -r --arg fault "$1" '
		{pass: ".", slow: "s", fail: "F", hung: "H",
		 unsupported: "U", skipped: "-"} as $letter
		| "# | \([.checks[] | $letter[.outcome]] | join("")) \($fault)"
		' "$OUT"
}

header()
{
	jq -r '.checks | to_entries[]
		| "# | column \(.key + 1): \(.value.name)"' "$OUT"
}

table | trim >"$SCRATCH/table"
first=yes
while IFS='|' read -r class how exit named may uses; do
	about "$class $how"
	mounts clusterfs 2 "$how"
	run timeout -s KILL 90 "$PINGPONG" check --json "$MNT"/node*
	if ! jq -e . "$OUT" >/dev/null 2>&1; then
		not_ok "a report" "$(said)"
		unmounts
		continue
	fi
	[ -n "$first" ] && header
	first=
	row "$class $how"
	wrong=$(judge "$exit" "$named" "$may" "$uses" <"$OUT")
	if [ -z "$wrong" ]; then
		ok "named by $named"
	else
		not_ok "named by $named" "$wrong"
	fi
	for check in $named; do
		[ "$check" != - ] || continue
		expect "$check switched off is found" [ -n "$(
			switched_off "$check" |
			judge "$exit" "$named" "$may" "$uses")" ]
	done
	expect_clean "$MNT/node0"
	unmounts
done <"$SCRATCH/table"

# F18, F19: nothing can be tested, and that is what it says.
while IFS='|' read -r how status says; do
	about "F18 $how"
	mounts clusterfs 2 "$how"
	expect_exit "$status" "exit status" "$PINGPONG" check "$MNT"/node*
	expect_says "it says why" "$says" "$ERR"
	unmounts
done <<'END'
read-only|73|Read-only file system
full|73|No space left
quota|73|quota
gone:member=1|69|not connected
END

about "F19 a peer that cannot be reached"
mounts clusterfs 2
expect_exit 69 "exit status" "$PINGPONG" check -e false "$MNT/node0" \
	"elsewhere:$MNT/node1"
expect_says "it says who" "host 'elsewhere'" "$ERR"
about "F19 #3 a peer that looks at another directory"
mkdir "$SCRATCH/empty"
check_exit 4 "exit status" "$MNT/node0" "$SCRATCH/empty"
expect_use unknown cluster-lock posix-locking share
expect_says "it shows both mounts" "does not appear in" "$OUT"
unmounts
