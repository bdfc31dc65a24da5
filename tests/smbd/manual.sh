#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# testparm accepts the examples of the manual page, and smbd reads them as the
# page says.
# limit: 300

# shellcheck source=tests/smbd/lib.sh
. "$(dirname "$0")/lib.sh"

need testparm

PAGE=$TESTS/../doc/vfs_pingpong.8.xml

sed -n '/<programlisting role="smb.conf">/,/<\/programlisting>/p' "$PAGE" |
	sed '/programlisting/d' >"$SCRATCH/example"
expect "there is an example" [ -s "$SCRATCH/example" ]
grep -v 'clustering' "$SCRATCH/example" >/etc/samba/smb.conf

expect_exit 0 "testparm accepts it" testparm -s
expect_not "without a complaint" grep -i -e unknown -e invalid -e ignor "$ERR"
for parameter in mode for scope "max age" timeout "on unknown"; do
	expect_says "the page tells of pingpong:$parameter" \
		"<term>pingpong:$parameter = " "$PAGE"
	expect_says "with an example" "<para>Example: pingpong:$parameter = " \
		"$PAGE"
	expect_says "and testparm knows it" "pingpong:$parameter" "$OUT"
done

# each of the one-line examples, in a share
mkdir "$SCRATCH/dir"
{
	printf '[global]\n[one]\n\tpath = %s\n' "$SCRATCH/dir"
	sed -n 's/^.*<para>Example: \(pingpong:.*\)<\/para>$/\t\1/p' "$PAGE"
} >/etc/samba/smb.conf
expect_exit 0 "testparm accepts the one-line examples" testparm -s
expect "all of them" [ "$(grep -c 'pingpong:' "$OUT")" = 6 ]
