#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The unit tests under valgrind: no access outside of what was allocated, no
# use of what was never set, nothing lost. What they test is not asked here:
# the valgrind of Debian 12 knows neither openat2 nor pidfd_open and has its
# own vfork, so some cases fail; test_dir, test_errors and test_ops, which need
# openat2, are left to the sanitizers (source/compilers).
# limit: 300

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need valgrind gcc

memcheck()
{
	valgrind -q --error-exitcode=99 --leak-check=full \
		--show-leak-kinds=definite --errors-for-leak-kinds=definite \
		"$@"
}

clean()
{
	memcheck "$@"
	[ $? != 99 ]
}

cat >"$SCRATCH/lost.c" <<-'END'
	#include <stdlib.h>
	int main(void)
	{
		volatile char *lost = malloc(10);

		lost[0] = 1;
		lost = NULL;
		return 0;
	}
END
gcc -O0 -o "$SCRATCH/lost" "$SCRATCH/lost.c"
expect_not "what is lost is seen" clean "$SCRATCH/lost"

for t in "$BUILD"/tests/unit/test_*; do
	if ! [ -x "$t" ] || ! [ -f "$t" ]; then
		continue
	fi
	case ${t##*/} in test_dir|test_errors|test_ops) continue;; esac
	expect "${t##*/}" clean "$t"
done
