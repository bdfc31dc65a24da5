#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What administrators mistype and others try: values that are none, paths with
# odd characters, symbolic links, paths that are not there, a store and a
# runtime directory that cannot be used, verdicts forgotten all the time.
# limit: 600

# shellcheck source=tests/smbd/lib.sh
. "$(dirname "$0")/lib.sh"

STORE=/var/lib/pingpong
MODULE="vfs objects = pingpong"
UNKNOWN="pingpong:on unknown = refuse"

mounts clusterfs 2 "error:errno=ENOLCK source"
bad=$MNT/node0
mounts clusterfs 2
good=$MNT/node0

# share_at NAME DIR: a share of a new directory in the good file system
share_at()
{
	mkdir -p "$good/$2"
	share "$1" "$good/$2" "$MODULE" "$UNKNOWN"
}

values=(
	"mode = enforced" "mode = " "mode = 1"
	"on unknown = perhaps" "timeout = soon" "timeout = -5" "timeout = 0"
	"timeout = 99999999999999999999" "max age = -1" "max age = 1h"
	"max age = 99999999999999999999" "scope = node" "for = shares"
	"for = share,posix_locking"
)
for i in "${!values[@]}"; do
	share "value$i" "$bad" "$MODULE" "$UNKNOWN" "pingpong:${values[i]}"
	share "fit$i" "$good" "$MODULE" "pingpong:${values[i]}"
done
share_at spaces 'a b c'
share_at quotes "it's \"so\""
# shellcheck disable=SC2016
share_at shell '$(touch x) `y` & z|'
share_at backslash 'a\040b'
share_at utf8 'grün 目录'
share_at bytes $'caf\xe9'
share_at dash '-rf --scope'
share_at long "$(printf 'd%.0s' {1..200})"
mkdir "$good/real"
printf 'x\n' >"$good/file"
# as the client calls itself
share user "$good/%U" "$MODULE" "$UNKNOWN"
mkdir "$good/$(id -un)"
ln -s "$good/real" "$SCRATCH/to-good"
ln -s "$bad" "$SCRATCH/to-bad"
share link "$SCRATCH/to-good" "$MODULE" "$UNKNOWN"
share badlink "$SCRATCH/to-bad" "$MODULE"
share dots "$good/real/../real/." "$MODULE" "$UNKNOWN"
share missing "$good/none" "$MODULE"
share file "$good/file" "$MODULE"
share good "$good" "$MODULE"
share strict "$good" "$MODULE" "$UNKNOWN"
smbd_up

about "a value that is none"
for i in "${!values[@]}"; do
	refused "pingpong:${values[i]}: an unfit share" "value$i"
done
for i in 0 1 2 3 4 5 6 7; do
	accepted "pingpong:${values[i]}: a fit share" "fit$i"
done
said "a number below zero is named" "\[value8\].*pingpong:max age = -1"
said "with a unit" "\[value9\].*pingpong:max age = 1h"
said "too large" "\[value10\].*pingpong:max age = 9999"
said "a scope" "\[value11\].*pingpong:scope = node"

about "a path"
for name in spaces quotes shell backslash utf8 dash long user link dots; do
	accepted "$name" "$name"
done
expect_not "is never read by a shell" [ -e "$good/x" ]
refused "that is no UTF-8 cannot be recorded" bytes
said "and is told" "\[bytes\].*cannot be recorded"
refused "a link to an unfit file system" badlink
run connect missing
expect_says "that is not there" "tree connect failed" "$OUT"
said "is told" "\[missing\].*No such file"
run connect file
expect_says "that is a file" "tree connect failed" "$OUT"
said "is told" "\[file\].*Not a directory"
ln -sfn "$bad" "$SCRATCH/to-good"
accepted "a link that leads elsewhere now is known for a day" link
expect_exit 0 "until it is forgotten" pingpong forget "$SCRATCH/to-good"
refused "then it is refused" link
expect_clean "$good"

about "verdicts forgotten all the time"
forget_all()
{
	while :; do
		pingpong forget "$good" >/dev/null 2>&1
	done
}
forget_all &
forgetting=$!
for i in 1 2 3 4 5 6; do
	accepted "connect $i" good
done
kill "$forgetting"
wait "$forgetting" 2>/dev/null

unknown()
{
	may_speak
	new_log
	accepted "let in" good
	said "and told: $1" "\[good\].*unknown: .*$1"
	refused "refused where unknown is refused" strict
}

about "a store that is full"
mount -t tmpfs -o mode=0700,size=4k tmpfs "$STORE"
unknown "No space left"
umount "$STORE"

about "somebody else's store"
mount -t tmpfs -o mode=0777,uid=34 tmpfs "$STORE"
unknown "belongs to somebody else"
umount "$STORE"

about "a store that is read-only"
mount -t tmpfs -o mode=0700,ro tmpfs "$STORE"
unknown "Read-only"
umount "$STORE"

about "a runtime directory of somebody else"
pingpong forget "$good"
mount -t tmpfs -o mode=0777,uid=34 tmpfs /run/pingpong
mkdir /run/pingpong/preflight
chown backup /run/pingpong/preflight
new_log
accepted "let in" good
said "and told" "\[good\].*unknown: .*/preflight"
umount /run/pingpong
accepted "let in with its own" good
unsaid "without a word" "\[good\].*only one"
