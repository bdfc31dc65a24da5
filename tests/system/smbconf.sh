#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# pingpong-smbconf: what it reads of Samba's configuration, text and registry,
# and how it sets a parameter: all of it or nothing, and only where it may.

# What has a $ within single quotes is for jq.
# shellcheck disable=SC2016

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

SMBCONF=$BUILD/ctdb-events/pingpong-smbconf
[ -x "$SMBCONF" ] || skip_all "no pingpong-smbconf was built"
need net

export SMB_CONF_PATH=$SCRATCH/smb.conf
DIR=$SCRATCH/own
INCLUDE=$DIR/include
export CTDB_PINGPONG_INCLUDE_FILE=$INCLUDE
mkdir -p "$SCRATCH"/{lock,state,cache,private}
mkdir -m 0700 "$DIR"
# where the registry is when all is in there
mount -t tmpfs tmpfs /var/lib/samba || exit 1
at_exit umount /var/lib/samba

# conf [LINE...]: smb.conf with these in [global]
conf()
{
	{
		cat <<-END
		[global]
			lock directory = $SCRATCH/lock
			state directory = $SCRATCH/state
			cache directory = $SCRATCH/cache
			private dir = $SCRATCH/private
			log level = 0
		END
		[ $# = 0 ] || printf '\t%s\n' "$@"
		printf '[a]\n\tpath = /srv/a\n'
	} >"$SMB_CONF_PATH"
}

registry()
{
	net -s "$SMB_CONF_PATH" conf "$@" >"$SCRATCH/net" 2>&1
}

registry_has()
{
	registry list
	grep -q "$1" "$SCRATCH/net"
}

# same FILE: as when it was kept
keep()
{
	rm -f "$SCRATCH/kept"
	[ ! -e "$INCLUDE" ] || cp -p "$INCLUDE" "$SCRATCH/kept"
}

same()
{
	if [ -e "$SCRATCH/kept" ]; then
		cmp "$SCRATCH/kept" "$INCLUDE"
	else
		! [ -e "$INCLUDE" ]
	fi
}

alone()
{
	[ "$(find "$DIR" -mindepth 1)" = "$INCLUDE" ]
}

# refused STATUS CASE PATTERN ARG...: one line that matches, nothing changed
refused()
{
	local status=$1 name=$2 pattern=$3
	shift 3

	keep
	expect_exit "$status" "$name" "$SMBCONF" "$@"
	expect_says "$name: why" "^pingpong-smbconf: .*$pattern" "$ERR"
	expect "$name: nothing is changed" same
}

about "text"
conf "vfs objects = pingpong fileid" "fileid:algorithm = fsname" \
	"posix locking = no"
cat >>"$SMB_CONF_PATH" <<END
	posix locking = yes
	Pingpong:Mode = warn
[b]
	path = /srv/b
	vfs objects = streams_xattr
	smbd force process locks = yes
[printers]
	printable = yes
	path = /tmp
[homes]
[u]
	path = /srv/%U
[off]
	path = /srv/off
	available = no
[nowhere]
END
expect_exit 0 "it is read" "$SMBCONF" list
expect_jq "what it is" '.source == "text" and (.clustering | not)
	and .use_mmap and .set == {} and (.include.included | not)'
expect_jq "the directories with TDBs" '[.tdb_dirs[].path] ==
	[$s + ("/lock", "/state", "/cache", "/private")]' --arg s "$SCRATCH"
expect_jq "shares that are skipped" '[.shares[] | select(.skipped) | .name]
	== ["printers", "homes", "u", "off", "nowhere"]'
expect_jq "a share's settings, its own and global ones" '.shares[0]
	| .path == "/srv/a" and .vfs_objects == ["pingpong", "fileid"]
	and .params["posix locking"] == "yes"
	and .params["pingpong:mode"] == "warn"
	and .params["fileid:algorithm"] == "fsname"'
expect_jq "another's" '.shares[1] | .vfs_objects == ["streams_xattr"]
	and .params["posix locking"] == "no"
	and .params["smbd force process locks"] == "yes"
	and .params["pingpong:mode"] == null'

about "text with an include"
conf "include = $INCLUDE" "include = $SCRATCH/more"
printf '[c]\n\tpath = /srv/c\n' >"$SCRATCH/more"
expect_exit 0 "it is read" "$SMBCONF" list
expect_jq "with the shares of the other file" '[.shares[].name] == ["c", "a"]'
expect_jq "ours is included" '.include.included and .include.first'

about "not readable"
conf "include = $INCLUDE"
echo "[broken" >>"$SMB_CONF_PATH"
refused 78 "a malformed file" "malformed" list
rm "$SMB_CONF_PATH"
refused 78 "no file" "cannot be read" list
refused 64 "no seconds" "'x': expected seconds" --timeout x list
refused 64 "a line within a value" "expected a parameter" set a $'b\nc'

about "set in the include file"
conf
refused 78 "smb.conf does not include it" "put 'include = $INCLUDE' first" \
	set "use mmap" no
conf "include = $INCLUDE"
keep
expect_exit 0 "--dry-run" "$SMBCONF" --dry-run set "use mmap" no
expect_jq "it shows what would be" '.before == null
	and (.after | contains("\nuse mmap = no\n"))'
expect "it changes nothing" same
expect_exit 0 "set" "$SMBCONF" set "use mmap" no
expect "the file is all there is" alone
expect_exit 0 "it is read" "$SMBCONF" list
expect_jq "it is in force, and ours" '(.use_mmap | not)
	and .set["use mmap"] == {value: "no", by: "agent", staged: false}'
keep
expect_exit 0 "set again" "$SMBCONF" set "use mmap" no
expect "is nothing" same
expect_exit 0 "another, staged" "$SMBCONF" --by apply \
	--staged "fileid:algorithm" set "fileid:algorithm" fsid \
	"kernel oplocks" yes
expect_says "a staged one is a comment" '^#fileid:algorithm = fsid' "$INCLUDE"
expect_exit 0 "taken back by who set it" "$SMBCONF" --by apply reset
expect "the first one stays" same
expect_exit 0 "taken back" "$SMBCONF" --include-only reset "use mmap"
expect_not "the file is gone with it" ls "$INCLUDE"
expect_exit 0 "and once more" "$SMBCONF" --include-only reset "use mmap"

about "beside the lines of others"
printf '# theirs\nserver string = x' >"$INCLUDE"
chmod 0640 "$INCLUDE"
keep
expect_exit 0 "set" "$SMBCONF" set "use mmap" no
expect_says "theirs stay" '^server string = x$' "$INCLUDE"
expect "the mode stays" [ "$(stat -c %a "$INCLUDE")" = 640 ]
expect_exit 0 "taken back" "$SMBCONF" reset "use mmap"
expect "it is as it was" same
printf '\nuse mmap = yes\n' >>"$INCLUDE"
refused 78 "they have the last word" "would be 'Yes' still" set "use mmap" no
rm "$INCLUDE"
conf "include = $INCLUDE" "use mmap = yes"
refused 78 "smb.conf has the last word" "would be 'Yes' still" \
	set "use mmap" no
conf "include = $INCLUDE" "use mmap = no"
expect_exit 0 "what is so already is not set" "$SMBCONF" set "use mmap" no
expect_not "there is no file" ls "$INCLUDE"

about "what is not safely ours"
conf "include = $INCLUDE"
echo "# begin of what pingpong writes: changes in here are lost" >"$INCLUDE"
refused 78 "damaged marks" "the marks, have been changed" set "use mmap" no
rm "$INCLUDE"
echo "# theirs" >"$SCRATCH/target"
ln -s "$SCRATCH/target" "$INCLUDE"
refused 77 "a symbolic link" "symbolic link" set "use mmap" no
expect "its target is untouched" grep -qx "# theirs" "$SCRATCH/target"
rm "$INCLUDE"
ln "$SCRATCH/target" "$INCLUDE"
refused 77 "another name" "has another name" set "use mmap" no
rm "$INCLUDE"
echo >"$INCLUDE"
chmod 0666 "$INCLUDE"
refused 77 "others may write" "others may write it" set "use mmap" no
chmod 0644 "$INCLUDE"
chown nobody "$INCLUDE"
refused 77 "somebody else's" "belongs to another user" set "use mmap" no
rm "$INCLUDE"
chmod 0777 "$DIR"
refused 77 "in a directory of everybody" "others may write there" \
	set "use mmap" no
chmod 0700 "$DIR"
printf '\0' >"$INCLUDE"
refused 78 "no text" "it is no text" set "use mmap" no
rm "$INCLUDE"
rmdir "$DIR"
refused 73 "no directory" "its directory: No such file" set "use mmap" no
mkdir -m 0700 "$DIR"

about "no room"
small()
{
	mount -t tmpfs -o size=16k,mode=0700 tmpfs "$DIR" &&
		printf '# theirs\n' >"$INCLUDE" &&
		! head -c 100000 /dev/zero >"$DIR/fill"
}
expect "a full file system" small
refused 73 "set" "No space left" set "use mmap" no
rm "$DIR/fill"
expect_exit 0 "the control: with room it is set" "$SMBCONF" set "use mmap" no
expect "nothing else is left there" alone

about "killed at any moment"
umount "$DIR"
conf "include = $INCLUDE"
whole=yes
for i in $(seq 40); do
	"$SMBCONF" set "use mmap" no >"$SCRATCH/out" 2>&1 &
	pid=$!
	sleep "0.0$((RANDOM % 5))$((RANDOM % 10))"
	kill -KILL $pid 2>/dev/null
	wait $pid 2>/dev/null
	if [ -e "$INCLUDE" ]; then
		grep -qx "# end of what pingpong writes" "$INCLUDE" || whole=no
	fi
	"$SMBCONF" --include-only reset "use mmap" >"$SCRATCH/out" 2>&1 ||
		whole=no
done
expect "the file is whole or not there" [ $whole = yes ]
expect_exit 0 "the next one is set" "$SMBCONF" set "use mmap" no
expect "nothing else is left there" alone
rm "$INCLUDE"

about "two at once"
for i in $(seq 8); do
	"$SMBCONF" set "param:$i" "$i" >"$SCRATCH/out.$i" 2>&1 &
done
wait
expect "none is lost" [ "$(grep -c '^param:' "$INCLUDE")" = 8 ]
rm "$INCLUDE"

about "shares of the registry"
conf "include = registry"
expect "the registry has a share" registry addshare r /srv/r
expect_exit 0 "it is read" "$SMBCONF" list
expect_jq "with text and registry" '.source == "both"
	and ([.shares[].name] | sort == ["a", "r"])'
expect_exit 0 "set there" "$SMBCONF" set "use mmap" no
expect_jq "it says where" '.where == "registry"
	and (.after | contains("use mmap = no"))'
expect "it is there" registry_has 'use mmap = no'
expect_not "there is no file" ls "$INCLUDE"
expect_exit 0 "it is read" "$SMBCONF" list
expect_jq "in force, and ours" '(.use_mmap | not)
	and .set["use mmap"].here and .set["use mmap"].value == "no"'
expect_exit 0 "taken back" "$SMBCONF" reset "use mmap"
expect_not "nothing of it is left" registry_has mmap
registry setparm global "use mmap" yes
"$SMBCONF" set "use mmap" no >"$SCRATCH/out"
expect "what was there is replaced" registry_has 'use mmap = no'
"$SMBCONF" reset "use mmap" >"$SCRATCH/out"
expect "and comes back" registry_has 'use mmap = yes'
"$SMBCONF" set "use mmap" no >"$SCRATCH/out"
registry setparm global "use mmap" yes
refused 73 "somebody else has changed it since" "somebody else has set it" \
	reset "use mmap"
expect "theirs stays" registry_has 'use mmap = yes'
registry delparm global "use mmap"
registry delparm global "pingpong:set use mmap"
"$SMBCONF" set "use mmap" no >"$SCRATCH/out"
unshare --uts sh -c "hostname other; exec '$SMBCONF' set 'use mmap' no" \
	>"$SCRATCH/out"
"$SMBCONF" reset "use mmap" >"$SCRATCH/out"
expect "one takes it back: it stays" registry_has 'use mmap = no'
expect_exit 0 "it is read" "$SMBCONF" list
expect_jq "but not on account of this node" '.set["use mmap"].here == false'
unshare --uts sh -c "hostname other; exec '$SMBCONF' reset 'use mmap'" \
	>"$SCRATCH/out"
expect_not "the last one takes it away" registry_has mmap

about "all in the registry"
conf "config backend = registry" "include = $INCLUDE"
expect "there is a share" registry addshare r /srv/r
expect_exit 0 "it is read" "$SMBCONF" list
expect_jq "as such, without the shares of the text" \
	'.source == "registry" and [.shares[].name] == ["r"]'
