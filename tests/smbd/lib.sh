# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
#
# For the tests of the VFS module: the distribution's smbd, with private
# directories, in the namespaces that tests/run made. What BUILD has built is
# laid over /usr, so that it looks as if pingpong had been installed.
#
#   share NAME PATH [LINE...]   a share for the next start of smbd
#   smbd_up [LINE...]           starts smbd; LINEs are for [global]
#   smbd_down
#   connect SHARE [ARG...]      tree connect as guest, or with smbclient's ARGs
#   accepted CASE SHARE [ARG...]
#   refused CASE SHARE [ARG...] the case that it is refused at tree connect
#   session_open SHARE          a client that stays
#   session_do tcon SHARE       another tree for it; or tdis: it leaves the last
#   session_close
#   said CASE PATTERN           the case that smbd's log has such a line
#   unsaid CASE PATTERN
#   new_log                     said and unsaid look at what comes from here on
#
# SMBD_PID is smbd, while it is up.

# Not every script names lines for [global], or patterns with a $.
# shellcheck disable=SC2119,SC2120,SC2016

# shellcheck source=tests/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"

need smbd smbclient smbpasswd
[ -e "$BUILD/vfs_pingpong/pingpong.so" ] ||
	skip_all "built without the VFS module"

SMBD_LOG=/var/log/samba/log.smbd
SHARES=$SCRATCH/shares
SMBD_PID=
# what smbclient does after the tree connect
DO='ls'

# Where smbd looks for modules
modules()
{
	smbd -b | sed -n 's/^ *MODULESDIR: \(.*\)/\1\/vfs/p'
}

lay_over()
{
	local usr=$SCRATCH/usr modules dir

	modules=$(modules)
	mkdir -p "$usr/bin" "$usr/libexec/pingpong" "$SCRATCH$modules"
	install "$BUILD/cli/pingpong-worker" "$usr/libexec/pingpong"
	install "$BUILD/vfs_pingpong/pingpong.so" \
		"$BUILD/tests/smbd/leaky.so" "$SCRATCH$modules"
	install "$BUILD/cli/pingpong" "$usr/bin/pingpong"
	[ ! -e "$BUILD/ctdb-events/pingpong-smbconf" ] ||
		install "$BUILD/ctdb-events/pingpong-smbconf" \
			"$usr/libexec/pingpong"
	mount -t overlay -o "lowerdir=$usr:/usr" pingpong /usr ||
		skip_all "no overlay file system"
	at_exit umount --lazy /usr
	for dir in etc/samba var/lib/samba run/samba var/cache/samba \
		   var/log/samba; do
		mkdir -p "$SCRATCH/$dir" "/$dir"
		mount --bind "$SCRATCH/$dir" "/$dir"
		at_exit umount --lazy "/$dir"
	done
	mkdir -p /var/lib/samba/private /var/lib/samba/usershares
	# smbd goes there as the user
	chmod a+x "$SCRATCH" "$TMPDIR" "${TMPDIR%/*}"
}

share()
{
	local name=$1 path=$2
	shift 2

	{
		printf '[%s]\n\tpath = %s\n\tguest ok = yes\n' "$name" "$path"
		printf '\tread only = no\n'
		[ $# -eq 0 ] || printf '\t%s\n' "$@"
	} >>"$SHARES"
}

listens()
{
	(exec 3<>/dev/tcp/127.0.0.1/445) 2>/dev/null
}

# until SECONDS CMD...: until CMD succeeds
until_true()
{
	local end=$((SECONDS + $1))
	shift

	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

smbd_up()
{
	{
		cat <<-'END'
		[global]
			server role = standalone
			map to guest = Bad User
			interfaces = lo
			bind interfaces only = yes
			load printers = no
			printcap name = /dev/null
			disable spoolss = yes
			log level = 1
			max log size = 0
			pingpong:timeout = 60
		END
		[ $# -eq 0 ] || printf '\t%s\n' "$@"
		cat "$SHARES"
	} >/etc/samba/smb.conf
	# it ends by a signal to its process group
	setsid smbd --foreground --no-process-group --debuglevel=1 \
		-l /var/log/samba </dev/null >"$SCRATCH/smbd.out" 2>&1 &
	SMBD_PID=$!
	at_exit smbd_down
	until_true 60 listens || {
		not_ok "smbd starts" "$(tail -n 20 "$SMBD_LOG")"
		exit 1
	}
	new_log
}

smbd_down()
{
	local pid=$SMBD_PID

	[ -n "$pid" ] || return 0
	SMBD_PID=
	kill -TERM "$pid"
	wait "$pid" 2>/dev/null
	until_true 30 no_smbd
}

no_smbd()
{
	! pgrep '^smbd' >/dev/null
}

# smbclient waits 20 s for a tree connect, which a busy machine may need.
connect()
{
	local share=$1 out status
	shift

	[ $# -gt 0 ] || set -- -N
	for _ in 1 2 3 4; do
		out=$(timeout 300 smbclient "//127.0.0.1/$share" "$@" \
			-c "$DO" 2>&1)
		status=$?
		[[ $out = *NT_STATUS_IO_TIMEOUT* ]] || break
	done
	echo "$out"
	return $status
}

# smbclient waits for its descriptor before it looks into its buffer: one
# command at a time.
session_open()
{
	mkfifo "$SCRATCH/asked" "$SCRATCH/answered"
	stdbuf -oL smbclient "//127.0.0.1/$1" -N \
		<"$SCRATCH/asked" >"$SCRATCH/answered" 2>&1 &
	SESSION_PID=$!
	exec {ASKED}>"$SCRATCH/asked" {ANSWERED}<"$SCRATCH/answered"
	rm "$SCRATCH/asked" "$SCRATCH/answered"
}

# session_do tcon SHARE | tdis
session_do()
{
	local line

	echo "$*" >&"$ASKED"
	while read -r -t 120 -u "$ANSWERED" line; do
		case $line in
		*successful*) return 0;;
		*failed*) break;;
		esac
	done
	echo "$*: $line"
	return 1
}

session_close()
{
	exec {ASKED}>&- {ANSWERED}<&-
	wait "$SESSION_PID"
}

accepted()
{
	local name=$1
	shift

	run connect "$@"
	if [ "$STATUS" = 0 ]; then
		ok "$name"
	else
		not_ok "$name" "$(cat "$OUT" "$ERR")" "$(log_tail)"
	fi
}

refused()
{
	local name=$1
	shift

	run connect "$@"
	if grep -q "tree connect failed: NT_STATUS_UNSUCCESSFUL" "$OUT" "$ERR"
	then
		ok "$name"
	else
		not_ok "$name" "expected: tree connect failed" \
			"$(cat "$OUT" "$ERR")" "$(log_tail)"
	fi
}

new_log()
{
	LOG_FROM=$(wc -l <"$SMBD_LOG")
}

log_new()
{
	tail -n +$((LOG_FROM + 1)) "$SMBD_LOG"
}

log_tail()
{
	log_new | tail -n 8 | cut -c -400 | sed 's/^/log: /'
}

said()
{
	if log_new | grep -q -e "$2"; then
		ok "$1"
	else
		not_ok "$1" "no line matches: $2" "$(log_tail)"
	fi
}

unsaid()
{
	if log_new | grep -q -e "$2"; then
		not_ok "$1" "a line matches: $2" "$(log_tail)"
	else
		ok "$1"
	fi
}

# What is said once a minute may be said again.
may_speak()
{
	rm -rf /run/pingpong/said
}

lay_over
: >"$SHARES"
