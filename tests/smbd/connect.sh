#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# A fit share is let in, an unfit one is refused at tree connect, with share,
# path, reason and remedy in the log; per share and global, as guest and as a
# user.
# limit: 600

# shellcheck source=tests/smbd/lib.sh
. "$(dirname "$0")/lib.sh"

# Locks refused: what a single node can show. "source": another file system than
# the good one.
mounts clusterfs 2 "error:errno=ENOLCK source"
bad=$MNT/node0
mounts clusterfs 2
good=$MNT/node0

MODULE="vfs objects = pingpong"
share good "$good" "$MODULE"
share bad "$bad" "$MODULE"
share warned "$bad" "$MODULE" "pingpong:mode = warn"
share off "$bad" "$MODULE" "pingpong:mode = off"
share without "$bad"
share noposix "$bad" "$MODULE" "posix locking = no"
share forshare "$bad" "$MODULE" "pingpong:for = share"
share typo "$good" "$MODULE" "pingpong:for = shares" \
	"pingpong:on unknown = refuse"
smbd_up

about "guest"
accepted "a fit share" good
unsaid "nothing is said of it" "pingpong"
expect "the verdict is in the store" [ -s /var/lib/pingpong/paths.json ]
refused "an unfit share" bad
said "the share" "share \[bad\]"
said "the path" "path '$bad'"
said "the reason" "unfit for posix-locking: .*lock.supported"
said "the remedy" "Remedy: .*pingpong explain lock.supported"
accepted "warn lets it in" warned
said "with the same line" \
	"share \[warned\], path '$bad', is let in, though unfit: unfit for"
accepted "off lets it in" off
unsaid "without a word" "share \[off\]"
accepted "without the module it is let in" without
accepted "posix locking = no asks for no locks" noposix
accepted "for = share asks for no locks" forshare
refused "a use that there is none of" typo
said "is named" "\`pingpong:for = shares\` cannot be understood"
DO='exit' accepted "IPC$ passes" 'IPC$'
expect_clean "$good"
expect_clean "$bad"

about "user"
printf 'secret\nsecret\n' | smbpasswd -s -a backup >/dev/null
accepted "a fit share" good -U 'backup%secret'
refused "an unfit share" bad -U 'backup%secret'

about "the log"
new_log
refused "an unfit share again" bad
unsaid "is not told twice a minute" "share \[bad\]"
may_speak
refused "and again" bad
said "is told later" "share \[bad\]"

smbd_down
: >"$SHARES"
share good "$good"
share bad "$bad"
share own "$bad" "vfs objects = acl_xattr"
share both "$good" "vfs objects = acl_xattr pingpong"
share hosts "$good" "vfs objects = pingpong fileid" \
	"fileid:algorithm = hostname"
smbd_up "vfs objects = pingpong"
about "global"
accepted "a fit share" good
refused "an unfit share" bad
accepted "a share's own vfs objects replace the global ones" own
if [ -x /usr/libexec/pingpong/pingpong-smbconf ]; then
	expect_exit 0 "status" pingpong status
	expect_says "names it" "share \[own\] is not guarded: its own" "$OUT"
	expect_not "and no other" grep "not guarded" <(grep -v "\[own\]" "$OUT")
	expect_says "and which has ids of each node's own" \
		"share \[hosts\] has .fileid:algorithm = hostname.: nodes do" \
		"$OUT"
	expect_not "and no other" grep "nodes do not" \
		<(grep -v "\[hosts\]" "$OUT")
else
	skip "status names it" "built without pingpong-smbconf"
fi

about "a module"
expect "is for the installed smbd" "$TESTS/../buildtools/check_module" \
	"$BUILD/vfs_pingpong/pingpong.so" smbd
other=$BUILD/tests/smbd/other_interface.so
expect_exit 1 "for another one" "$TESTS/../buildtools/check_module" \
	"$other" smbd
expect_says "is told" "built for Samba '9\.9', smbd is '4\." "$ERR"

smbd_down
mount --bind "$other" "$(modules)/pingpong.so"
smbd_up "vfs objects = pingpong"
about "a module for another smbd"
run connect good
expect_says "no share with it" \
	"tree connect failed: NT_STATUS_BAD_NETWORK_NAME" "$OUT"
said "the reason" "Failed to register vfs module"
said "with its version" "compiled against SMB_VFS_INTERFACE_VERSION 1000"
umount "$(modules)/pingpong.so"
accepted "with its own module it is let in" good
