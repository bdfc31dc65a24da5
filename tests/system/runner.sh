#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The runner of the tests: what is wrong with a test must not pass.

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

tree=$SCRATCH/tree
mkdir -p "$tree/tests/system" "$tree/tests/ctdb" "$tree/build/tests/unit"
cp "$TESTS/run" "$tree/tests/run"

# script NAME: a test script from standard input
script()
{
	{ echo '#!/bin/bash'; cat; } >"$tree/tests/$1.sh"
	chmod +x "$tree/tests/$1.sh"
}

# runs NAME EXIT LAST CASE: the run of one test, its exit status and last line
runs()
{
	expect_exit "$2" "$4: exit status" "$tree/tests/run" "$1"
	expect "$4: counted" [ "$(tail -n 1 "$OUT")" = "$3" ]
}

# says CASE PATTERN: the last run printed such a line
says()
{
	expect "$1" grep -q -e "$2" "$OUT"
}

script system/good <<'END'
echo "ok one"
echo "ok two"
echo "skip three: no time"
END
runs system/good 0 "2 passed, 0 failed, 1 skipped" "a good test"
says "a skipped case is named" "skipped: three: no time"

script system/skipped <<'END'
echo "skip all: no program"
END
runs system/skipped 0 "0 passed, 0 failed, 1 skipped" "a test that skips"
says "its reason is named" "^skip system/skipped: no program"

script system/bad <<'END'
echo "ok one"
echo "not ok two"
echo "#   the evidence"
exit 1
END
runs system/bad 1 "1 passed, 1 failed, 0 skipped" "a case that fails"
says "its evidence is shown" "^  #   the evidence"

script system/status <<'END'
echo "ok one"
exit 3
END
runs system/status 1 "1 passed, 1 failed, 0 skipped" "a bad exit status"

script system/silent <<'END'
exit 0
END
runs system/silent 1 "0 passed, 1 failed, 0 skipped" "no case at all"

# The limit counts in the head of a script only: not in this one.
script system/endless <<'END'
# limit: 1
echo "ok one"
sleep 1000
END
runs system/endless 1 "1 passed, 1 failed, 0 skipped" "a test without end"

script system/process <<'END'
echo "ok one"
setsid sleep 1000 </dev/null >/dev/null 2>&1 &
END
runs system/process 1 "1 passed, 1 failed, 0 skipped" "a process left behind"
says "the process is named" "left behind: process [0-9]*: sleep 1000"

script system/mount <<'END'
echo "ok one"
d=$(mktemp -d)
mount -t tmpfs tmpfs "$d"
END
runs system/mount 1 "1 passed, 1 failed, 0 skipped" "a mount left behind"
says "the mount is named" "left behind: mount: /"

script system/file <<'END'
echo "ok one"
mktemp
END
runs system/file 1 "1 passed, 1 failed, 0 skipped" "a file left behind"
says "the file is named" "left behind: file: /"

script ctdb/store <<'END'
if [ -n "$(find /var/lib/pingpong /run/pingpong -mindepth 1)" ]; then
	echo "not ok empty"
fi
touch /var/lib/pingpong/mine /run/pingpong/mine && echo "ok private"
END
run find /var/lib/pingpong /run/pingpong
before=$(cat "$OUT")
runs ctdb/store 0 "1 passed, 0 failed, 0 skipped" "a store of its own"
expect "the store outside is as it was" \
	[ "$(find /var/lib/pingpong /run/pingpong)" = "$before" ]

cat >"$tree/build/tests/unit/test_tap" <<'END'
#!/bin/sh
[ "$CMOCKA_MESSAGE_OUTPUT" = TAP ] || exit 1
printf '1..3\nok 1 - one\nnot ok 2 - two\n# why\nok 3 - three # SKIP\n'
exit 1
END
chmod +x "$tree/build/tests/unit/test_tap"
runs unit/test_tap 1 "1 passed, 1 failed, 1 skipped" "a cmocka program"

expect_exit 1 "an unknown test" "$tree/tests/run" system/nothing
expect_exit 1 "an unknown option" "$tree/tests/run" --nothing

expect_exit 0 "--list" "$tree/tests/run" --list system
expect "it lists what was asked for" [ "$(wc -l <"$OUT")" = 9 ]
expect_not "and nothing else" grep -v ^system/ "$OUT"
