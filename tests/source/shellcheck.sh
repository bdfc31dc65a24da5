#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Every script of the tree, by shellcheck.
# limit: 300

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need shellcheck

cat >"$SCRATCH/unquoted" <<-'END'
	#!/bin/sh
	rm $1
END
expect_not "an unquoted variable is told" shellcheck "$SCRATCH/unquoted"
expect "scripts" "$TESTS/../waf" shellcheck
