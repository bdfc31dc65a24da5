# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
#
# What the scripts of this directory share: real file systems, mounted
# several times on one machine, each mount a node.
#
#   NAME.sh up N DIR [VARIANT]   mounts DIR/node0 .. DIR/node<N-1>
#   NAME.sh status DIR           shows mounts and daemons; 1 if one is missing
#   NAME.sh down DIR             takes everything away, DIR included
#
# A script sets VARIANTS (the first one is the default) and may set DAEMONS
# (nothing to enter otherwise), defines fs_up N DIR VARIANT, and calls
# mounts_main "$@".
#
# Everything that belongs to an instance lies in DIR/.state ($STATE). Its
# daemons live in a network namespace of the instance's own, held by a bind
# mount at $STATE/net. No setsid() and no second fork leads out of it, so that
# "down" finds exactly the instance's processes, even when "up" was killed,
# and instances never share a port.

set -u
export PATH="$PATH:/usr/sbin:/sbin"
export LC_ALL=C

NAME=$(basename "$0" .sh)
DAEMONS=yes
daemons=()

die()
{
	echo "$NAME: $*" >&2
	exit 1
}

# enter CMD...: runs CMD as one of the instance's processes.
enter()
{
	nsenter --net="$STATE/net" -- "$@"
}

# daemon LOG CMD...: the same, in the background and a session of its own. CMD
# stays in the foreground: its end before the mounts are there is a failure.
daemon()
{
	local log=$STATE/$1.log
	shift
	setsid nsenter --net="$STATE/net" -- "$@" \
		</dev/null >"$log" 2>&1 &
	disown
	daemons+=("$!")
}

# wait_for SECONDS CMD...: until CMD succeeds.
wait_for()
{
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# Mount points at or below DIR, the last one mounted first. They are read from
# mountinfo and never touched: a file system that hangs must not hang us.
mounted_below()
{
	awk -v dir="$1" '
		$5 == dir || index($5, dir "/") == 1 { print $5 }
		' /proc/self/mountinfo | tac
}

is_mounted()
{
	awk -v dir="$1" '$5 == dir { found = 1 } END { exit !found }' \
		/proc/self/mountinfo
}

all_mounted()
{
	local i

	for ((i = 0; i < $1; i++)); do
		is_mounted "$2/node$i" || return 1
	done
}

wait_mounted()
{
	local end=$((SECONDS + 20)) pid

	until all_mounted "$1" "$2"; do
		[ $SECONDS -lt $end ] || return 1
		for pid in "${daemons[@]}"; do
			kill -0 "$pid" 2>/dev/null || return 1
		done
		sleep 0.05
	done
}

# Pids of the processes in the instance's namespace.
members()
{
	local inode

	is_mounted "$STATE/net" || return 0
	inode=$(stat -L -c %i "$STATE/net")
	stat -L -c '%i %n' /proc/[0-9]*/ns/net 2>/dev/null |
		sed -n "s,^$inode /proc/\([0-9]*\)/.*,\1,p"
}

no_members()
{
	[ -z "$(members)" ]
}

# TERM first: a daemon then unmounts its file system itself. KILL ends the
# connection of a FUSE daemon, which frees whoever waits in it.
end_members()
{
	local signal pid

	for signal in TERM KILL; do
		for pid in $(members); do
			kill -s "$signal" "$pid" 2>/dev/null
		done
		wait_for 5 no_members && return 0
	done
	return 1
}

down()
{
	local mnt

	end_members || die "processes that can't be killed:" \
		"$(members | tr '\n' ' ')"
	for mnt in $(mounted_below "$1"); do
		umount "$mnt" 2>/dev/null || umount --lazy "$mnt" ||
			die "can't unmount '$mnt'"
	done
	rm -rf --one-file-system "$1"
}

up()
{
	local n=$1 dir=$2 variant=$3 i

	# Never "down" what was not "up": DIR is removed in the end.
	[ -z "$(ls -A "$dir" 2>/dev/null)" ] || die "'$dir' is not empty"
	mkdir -p "$STATE" || exit 1
	echo "$n $variant" >"$STATE/instance"
	for ((i = 0; i < n; i++)); do
		mkdir "$dir/node$i" || exit 1
	done
	if [ -n "$DAEMONS" ]; then
		touch "$STATE/net"
		unshare --net="$STATE/net" ip link set lo up ||
			die "can't make a network namespace"
	fi

	trap 'down "$dir"; exit 1' INT TERM HUP
	if ! { fs_up "$n" "$dir" "$variant" && wait_mounted "$n" "$dir"; }; then
		tail -n 5 "$STATE"/*.log >&2
		down "$dir"
		die "'$variant' with $n nodes did not come up"
	fi
	trap - INT TERM HUP
}

status()
{
	local n variant i pid ret=0

	read -r n variant <"$STATE/instance"
	echo "$NAME $variant, nodes: $n"
	for ((i = 0; i < n; i++)); do
		if is_mounted "$1/node$i"; then
			echo "  $1/node$i: $(findmnt -n -o FSTYPE,OPTIONS \
				--mountpoint "$1/node$i" | tail -n 1)"
		else
			echo "  $1/node$i: not mounted"
			ret=1
		fi
	done
	for pid in $(members); do
		echo "  $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done
	return $ret
}

usage()
{
	cat >&2 <<-END
	usage: $NAME.sh up N DIR [VARIANT]
	       $NAME.sh status DIR
	       $NAME.sh down DIR
	VARIANT: $VARIANTS
	END
	exit 64
}

mounts_main()
{
	local verb=${1:-} dir variant

	case $verb in
	up)
		case $# in
		3|4) ;;
		*) usage;;
		esac
		case $2 in
		''|0*|*[!0-9]*) usage;;
		esac
		variant=${4:-${VARIANTS%% *}}
		case " $VARIANTS " in
		*" $variant "*|*" FAULT... "*) ;;
		*) usage;;
		esac
		mkdir -p "$3" || exit 1
		dir=$(realpath -e "$3") || exit 1
		STATE=$dir/.state
		up "$2" "$dir" "$variant";;
	status|down)
		[ $# -eq 2 ] || usage
		dir=$(realpath -e "$2") || exit 1
		STATE=$dir/.state
		[ -f "$STATE/instance" ] || die "nothing is up at '$2'"
		"$verb" "$dir";;
	*)
		usage;;
	esac
}
