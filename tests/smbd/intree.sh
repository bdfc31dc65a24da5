#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# In a Samba source tree, the unpacked one of the installed version: configure
# takes the module, its build makes it, and the installed smbd loads it.
# limit: 2400
# by name only: Samba's configure and the libraries of a module take minutes

# shellcheck source=tests/smbd/lib.sh
. "$(dirname "$0")/lib.sh"

PUT=$TESTS/../vfs_pingpong/into-samba-tree
source=$(readlink -f "${SAMBA_SOURCE:-/var/cache/pingpong/samba/source}")
[ -d "$source" ] || skip_all "no Samba source"
tree=$SCRATCH/tree
python=/usr/bin/python3
export PYTHONHASHSEED=1 PYTHON=$python

about "arguments"
expect_exit 64 "none" "$PUT"
expect_exit 64 "no Samba tree" "$PUT" "$SCRATCH"
expect_says "is told" "'$SCRATCH': expected the top of a Samba" "$ERR"

mkdir "$tree"
tar -C "$source" --exclude=./bin -cf - . | tar -C "$tree" -xf -

about "put there"
expect_exit 0 "once" "$PUT" "$tree"
cp -a "$tree/source3/modules" "$SCRATCH/once"
expect_exit 0 "and again" "$PUT" "$tree"
expect "nothing stands there twice" \
	diff -r "$SCRATCH/once" "$tree/source3/modules"
expect "the event script" [ -x \
	"$tree/ctdb/config/events/legacy/00.pingpong.script" ]
expect "the page is in the list" grep -q "'vfs_pingpong'" \
	"$tree/docs-xml/wscript_build"

in_tree()
{
	(cd "$tree" && "$@") >"$SCRATCH/log" 2>&1 || {
		tail -n 30 "$SCRATCH/log"
		return 1
	}
}

about "in the tree"
# The options of the installed one: what the module sees of smbd's structures
# is then as in the installed smbd.
mapfile -t options < <(sed -n 's/^\(--.*\)/\1/p' "$source/../stamp" |
	grep -v -e with-shared-modules -e without-json)
expect "configure" in_tree $python buildtools/bin/waf -j1 -C configure \
	"${options[@]}" --with-shared-modules='!vfs_snapper,vfs_pingpong'
expect "the build" in_tree $python buildtools/bin/waf -j2 build \
	--targets=vfs_pingpong
module=$(find "$tree/bin/default" -name '*vfs*pingpong*.so' | sed -n 1p)
expect "makes the module" [ -s "$module" ]
exports()
{
	nm -D --defined-only "$module" | grep -v ' A ' |
		awk '{ sub(/@.*/, "", $3); print $3 }'
}
expect "which exports nothing but its init function" \
	[ "$(exports)" = samba_init_module ]
