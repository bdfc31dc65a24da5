#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# pingpong apply: the settings of a stored verdict, in smb.conf's include file
# and in ctdb.conf; all of it or nothing; and back.

# What has a $ within single quotes is for jq.
# shellcheck disable=SC2016

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

[ -x "$BUILD/ctdb-events/pingpong-smbconf" ] ||
	skip_all "no pingpong-smbconf was built"
need ctdbd

STORE=/var/lib/pingpong
INCLUDE=$STORE/smb.conf.include
CTDB_CONF=/etc/ctdb/ctdb.conf

# /usr with pingpong-smbconf, and an /etc/ctdb and /etc/samba of our own
mkdir -p "$SCRATCH"/usr/libexec/pingpong "$SCRATCH"/{ctdb,samba,place}
cp "$BUILD/ctdb-events/pingpong-smbconf" "$SCRATCH/usr/libexec/pingpong/"
cp -a /etc/ctdb/. "$SCRATCH/ctdb/"
mount -t overlay -o "lowerdir=$SCRATCH/usr:/usr" pingpong /usr || exit 1
at_exit umount -l /usr
mount --bind "$SCRATCH/ctdb" /etc/ctdb || exit 1
at_exit umount /etc/ctdb
mount --bind "$SCRATCH/samba" /etc/samba || exit 1
at_exit umount /etc/samba

conf()
{
	printf '%s\n' "[global]" "	include = $INCLUDE" "	clustering = yes" \
		"$@" >/etc/samba/smb.conf
}

# record FILE SECTION PARAMETER VALUE USE ...: as a verdict needs it
record()
{
	local settings=[]
	while [ $# -gt 0 ]; do
		settings=$(jq -c --arg f "$1" --arg s "$2" --arg p "$3" \
			--arg v "$4" --arg u "$5" '. + [{file: $f, section: $s,
			parameter: $p, value: $v, needed: true,
			because: "test", uses: [$u]}]' <<<"$settings")
		shift 5
	done
	jq -c --argjson s "$settings" '.settings = $s
		| .uses.mmap.fitness = "unfit" | .uses["file-id"].fitness = "unfit"
		| .uses.mmap.reason = "test" | .uses["file-id"].reason = "test"' \
		"$SCRATCH/record" >"$SCRATCH/record.new" &&
		cat "$SCRATCH/record.new" >"$(echo $STORE/verdicts/*.json)"
}

keep()
{
	cp -p "$CTDB_CONF" "$SCRATCH/kept"
}

unchanged()
{
	cmp "$CTDB_CONF" "$SCRATCH/kept" && ! [ -e "$INCLUDE" ]
}

# refused STATUS CASE PATTERN ARG...: with one line, and nothing is changed
refused()
{
	local status=$1 name=$2 pattern=$3
	shift 3

	keep
	expect_exit "$status" "$name" "$PINGPONG" apply "$@"
	expect_says "$name: why" "$pattern" "$ERR"
	expect "$name: nothing is changed" unchanged
}

conf
expect_exit 0 "no verdicts: nothing to apply" "$PINGPONG" apply
expect_says "it says so" "^nothing to apply" "$OUT"

expect "a verdict is stored" "$PINGPONG" check --quick --local "$SCRATCH/place"
cp "$(echo $STORE/verdicts/*.json)" "$SCRATCH/record"
expect_exit 0 "a healthy file system: nothing to apply" "$PINGPONG" apply
MMAP=(smb.conf global "use mmap" no mmap
	ctdb.conf database "tdb mutexes" false mmap)
record "${MMAP[@]}"

about "apply"
keep
expect_exit 0 "--dry-run" "$PINGPONG" apply --dry-run
expect_says "it shows the one" '^+use mmap = no' "$OUT"
expect_says "and the other" '^+	tdb mutexes = false' "$OUT"
expect "it changes nothing" unchanged
expect_exit 0 "apply" "$PINGPONG" apply
expect_says "smb.conf's is there" '^use mmap = no' "$INCLUDE"
expect "ctdb.conf's, too" [ "$(ctdb-config get database "tdb mutexes" \
	2>/dev/null || /usr/libexec/ctdb/ctdb-config get database \
	"tdb mutexes")" = false ]
expect "nothing else is lost of it" [ "$(diff "$SCRATCH/kept" "$CTDB_CONF" |
	grep -c '^<')" = 0 ]
expect_exit 0 "once more" "$PINGPONG" apply
expect_says "is nothing" "^nothing to apply" "$OUT"

about "revert"
echo "# theirs" >>"$CTDB_CONF"
expect_exit 78 "somebody else has changed ctdb.conf" "$PINGPONG" apply --revert
expect_says "it says so" "changed since by somebody else" "$ERR"
expect_says "nothing is reverted" '^use mmap = no' "$INCLUDE"
sed -i '$d' "$CTDB_CONF"
expect_exit 0 "--dry-run" "$PINGPONG" apply --revert --dry-run
expect_says "changes nothing" '^use mmap = no' "$INCLUDE"
expect_exit 0 "revert" "$PINGPONG" apply --revert
expect "all is as it was" unchanged
expect_exit 0 "once more" "$PINGPONG" apply --revert
expect_says "is nothing" "^nothing to revert" "$OUT"

about "all or nothing"
conf "	use mmap = yes"
refused 78 "smb.conf has the last word" "would be 'Yes' still"
expect_exit 0 "what was kept is gone" "$PINGPONG" apply --revert
expect_says "nothing to revert" "^nothing to revert" "$OUT"
printf '[global]\n\tclustering = yes\n' >/etc/samba/smb.conf
refused 78 "no include" "put 'include = $INCLUDE' first"
conf
mv "$CTDB_CONF" "$SCRATCH/target"
ln -s "$SCRATCH/target" "$CTDB_CONF"
refused 77 "ctdb.conf is a symbolic link" "symbolic link"
rm "$CTDB_CONF"
cp "$SCRATCH/target" "$CTDB_CONF"
chmod 0666 "$CTDB_CONF"
refused 77 "others may write ctdb.conf" "others may write it"
chmod 0644 "$CTDB_CONF"
printf '[database]\n\ttdb mutexes = \\\n\t\ttrue\n' >"$CTDB_CONF"
refused 78 "a line that is continued" "on a line that is continued"
cp "$SCRATCH/target" "$CTDB_CONF"
mount -t tmpfs -o size=64k,mode=0755 tmpfs /etc/ctdb
cp "$SCRATCH/target" "$CTDB_CONF"
head -c 100000 /dev/zero >/etc/ctdb/fill 2>"$SCRATCH/fill.err"
refused 73 "a full disk" "No space left"
expect "nothing else is left there" \
	[ "$(find /etc/ctdb -type f | wc -l)" = 2 ]
umount /etc/ctdb

about "other settings"
conf "	vfs objects = streams_xattr" "[x]" "	path = /x" \
	"	vfs objects = pingpong"
record smb.conf global "vfs objects" fileid file-id \
	smb.conf global "fileid:algorithm" fsname file-id
expect_exit 78 "smb.conf sets vfs objects itself, later" "$PINGPONG" apply
expect_says "it says what would be" "would be 'streams_xattr' still" "$ERR"
conf "[x]" "	path = /x" "	vfs objects = pingpong"
expect_exit 0 "apply" "$PINGPONG" apply
expect_says "the module" '^vfs objects = fileid' "$INCLUDE"
expect_says "the algorithm" '^fileid:algorithm = fsname' "$INCLUDE"
expect_says "a share that it does not reach" 'share \[x\]' "$OUT"
expect_exit 0 "revert" "$PINGPONG" apply --revert
expect_not "the file is gone" ls "$INCLUDE"

about "arguments"
expect_exit 64 "an operand" "$PINGPONG" apply x
expect_exit 64 "an unknown option" "$PINGPONG" apply --frce
