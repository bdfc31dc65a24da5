#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The matrix: every fault of the test file system against every check.
#
# For each fault the table says which checks must name it (slow counts), which others may
# be hit by it, too, which of the default uses it makes unfit, and the exit
# status. Every check that is not named must come out as in the healthy run:
# no fail, hung or unsupported.
# by name only: takes ten minutes
# limit: 1200

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

# CLASS | FAULT | EXIT | CHECK... that name it | CHECK... that may | USE...
# A name that ends with "*" stands for all that begin so; "-" is none.
table()
{
	cat <<-'END'
	-   | healthy | 1 | - | - |
	F1  | local-locks | 2 | lock.exclusion | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F1  | local-locks:family=process | 2 | lock.exclusion | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F1  | local-locks:family=ofd | 1 | lock.ofd | - | posix-locking
	F1  | local-locks:family=flock | 1 | lock.flock | - |
	F2  | noop-locks | 2 | lock.exclusion | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F3  | error:errno=ENOLCK | 2 | lock.supported | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F3  | error:errno=ENOSYS | 2 | lock.supported | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F3  | error:errno=EINVAL | 2 | lock.supported | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F3  | error:errno=EACCES | 2 | lock.supported | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F3  | error:errno=EIO,op=unlock | 2 | lock.supported | lock.* io.* mmap.* rate.* | cluster-lock posix-locking
	F3  | error:errno=EDEADLK,op=waitlock,contended=1 | 2 | lock.handoff | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F4  | hang:member=1,op=lock | 3 | lock.supported | lock.* io.* mmap.* rate.* | cluster-lock posix-locking
	F4  | hang:member=1,op=read | 3 | io.visibility | io.* mmap.* | posix-locking share
	F5  | coarse-locks | 2 | lock.exclusion | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F5  | coarse-locks:unit=0 | 2 | lock.exclusion | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F6  | stuck-locks:on=close | 2 | lock.release | lock.* io.* mmap.* rate.* | cluster-lock posix-locking
	F6  | stuck-locks:on=kill | 2 | lock.release | lock.* | cluster-lock posix-locking
	F6  | stuck-locks:on=exit | 2 | lock.release | lock.* | cluster-lock posix-locking
	F6  | stuck-locks:on=cancel | 2 | lock.cancel | lock.* | cluster-lock posix-locking
	F7  | no-wakeup:until=never | 3 | lock.handoff | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F7  | no-wakeup:until=asked | 3 | lock.handoff | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F8  | lost-locks | 2 | lock.exclusion | lock.* io.increment mmap.increment rate.* | cluster-lock posix-locking
	F8  | lost-locks:how=max,max=256 | 2 | lock.many | - | posix-locking
	F8  | lost-locks:how=foreign | 2 | lock.shared | lock.* | posix-locking
	F9  | mixed-owner | 2 | lock.release | lock.* | cluster-lock posix-locking
	F10 | stale-data | 2 | io.visibility | io.increment io.append | posix-locking share
	F10 | stale-data:seconds=3 | 2 | io.visibility | io.increment io.append | posix-locking share
	F10 | stale-data:until=reopen | 2 | io.visibility | io.increment io.append | posix-locking share
	F10 | stale-data:offset=4096- | 2 | io.visibility | io.append | posix-locking share
	F10 | stale-size | 2 | io.size | io.* mmap.* | share
	F10 | lost-writes:member=1 | 2 | io.visibility | io.* mmap.* | posix-locking share
	F10 | append-overwrites | 2 | io.append | - | share
	F11 | mmap-incoherent | 1 | mmap.visibility | mmap.increment mmap.mixed |
	F11 | mmap-incoherent:scope=local | 1 | mmap.local | mmap.* |
	F12 | mmap-refused | 1 | mmap.visibility | mmap.* |
	F13 | slow:ms=20 | 1 | - | - |
	F15 | ids | 2 | id.inode | lease.break | cluster-lock share
	F15 | ids:ino=open | 2 | id.inode | lease.break | cluster-lock share
	F16 | getlk-lies:how=blind | 2 | lock.getlk | - | posix-locking
	F16 | getlk-lies:how=own | 2 | lock.getlk | - | posix-locking
	F16 | getlk-lies:how=range | 2 | lock.getlk | - | posix-locking
	F16 | getlk-lies:how=type | 2 | lock.getlk | - | posix-locking
	F17 | lease-kept | 1 | lease.break | - |
	F21 | offset-bits:bits=31 | 2 | lock.range64 | lock.* | posix-locking
	F21 | offset-bits:bits=32 | 2 | lock.range64 | - | posix-locking
	F21 | offset-bits:bits=32,how=refuse | 2 | lock.range64 | - | posix-locking
	END
}

trim()
{
	sed 's/^[ \t]*//; s/[ \t]*$//; s/[ \t]*|[ \t]*/|/g'
}

# judge EXIT NAMED MAY USES: one line for each thing that is not as it should
# be. Names match with a "*" at the end.
judge()
{
	jq -r --argjson exit "$1" --arg named "$2" --arg may "$3" \
		--arg uses "$4" '
		def words: split(" ") | map(select(. != "-"));
		def among($list): . as $name | any($list[];
			if endswith("*") then
				.[:-1] as $head | $name | startswith($head)
			else . == $name end);
		def bad: IN("fail", "hung", "unsupported");
		($named | words) as $named | ($may | words) as $may
		| ($uses | words + ["file-id"] | unique) as $uses
		| (if .exit != $exit then "exit status \(.exit)" else empty end),
		  ($named[] as $name
		   | if any(.checks[]; .name == $name
			    and (.outcome | bad or . == "slow"))
		     then empty else "\($name) did not name it" end),
		  (.checks[] | select(.outcome | bad)
		   | select(.name | among($named + $may + ["id.device"]) | not)
		   | "\(.name): \(.outcome), \(.why)"),
		  (.verdict | to_entries
		   | map(select(.value.fitness == "unfit"
				and (.key | IN("tdb", "mmap") | not)) | .key)
		   | sort | if . == $uses then empty
			    else "unfit: \(join(" "))" end),
		  (.verdict | to_entries[]
		   | select(.key | IN("cluster-lock", "posix-locking",
				      "share", "file-id"))
		   | select(.value.fitness == "unknown")
		   | "unknown: \(.key), \(.value.because | join(" "))")
		' "$OUT"
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
while IFS='|' read -r class fault exit named may uses; do
	about "${class#-}${class:+ }$fault"
	mounts clusterfs 2 "$fault"
	run timeout -s KILL 90 "$PINGPONG" check --json "$MNT"/node*
	if ! jq -e . "$OUT" >/dev/null 2>&1; then
		not_ok "a report" "$(said)"
	else
		[ -n "$first" ] && header
		first=
		row "$fault"
		wrong=$(judge "$exit" "$named" "$may" "$uses")
		if [ -z "$wrong" ]; then
			ok "named by $named"
		else
			not_ok "named by $named" "$wrong"
		fi
	fi
	expect_clean "$MNT/node0"
	unmounts
done <"$SCRATCH/table"
