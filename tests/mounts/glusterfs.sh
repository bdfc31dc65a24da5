#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# GlusterFS (FUSE): a volume of one brick, mounted N times.
#   default     as the packages set it up
#   off         performance translators off
#   offnocache  the same; mounted with direct I/O and all time-outs 0

# shellcheck source=tests/mounts/common.sh
. "$(dirname "$0")/common.sh"

# shellcheck disable=SC2034
VARIANTS="default off offnocache"
SERVER=127.0.0.2

gluster_cli()
{
	enter timeout 60 gluster --mode=script \
		--glusterd-sock="$STATE/glusterd.socket" \
		--log-file="$STATE/cli.log" "$@" >>"$STATE/setup.log" 2>&1
}

# glusterd and its bricks write to fixed places. They get private ones (a
# brick's log: $STATE/log/bricks); the mounts are made by the clients, which
# stay outside.
start_glusterd()
{
	local glusterd=$STATE/glusterd

	mkdir "$glusterd" "$STATE/log"
	cat >"$STATE/glusterd.vol" <<-END
	volume management
	    type mgmt/glusterd
	    option working-directory $glusterd
	    option run-directory $glusterd/run
	    option glusterd-sockfile $STATE/glusterd.socket
	    option transport-type socket
	    option transport.address-family inet
	    option transport.socket.bind-address $SERVER
	    option ping-timeout 0
	    option base-port 49152
	    option max-port 49200
	end-volume
	END
	# shellcheck disable=SC2016
	daemon glusterd unshare --mount sh -c '
		mount --bind "$1" /var/log/glusterfs || exit 1
		mount -t tmpfs tmpfs /run || exit 1
		mkdir -p /run/gluster
		shift
		exec "$@"' sh "$STATE/log" \
		glusterd --no-daemon --volfile="$STATE/glusterd.vol" \
			--pid-file="$glusterd/pid" --log-file=-
	wait_for 30 gluster_cli volume list
}

fs_up()
{
	local n=$1 dir=$2 variant=$3 options=() i feature

	start_glusterd || return 1
	mkdir "$STATE/brick"
	gluster_cli volume create v "$SERVER:$STATE/brick" force || return 1
	case $variant in
	off*)
		for feature in write-behind io-cache quick-read open-behind \
			       stat-prefetch read-ahead readdir-ahead; do
			gluster_cli volume set v "performance.$feature" off ||
				return 1
		done;;
	esac
	case $variant in
	*nocache)
		options+=(--direct-io-mode=enable --attribute-timeout=0)
		options+=(--entry-timeout=0 --negative-timeout=0);;
	esac
	gluster_cli volume start v || return 1
	for ((i = 0; i < n; i++)); do
		daemon "client$i" glusterfs --no-daemon --log-file=- \
			--volfile-server="$SERVER" --volfile-id=v \
			"${options[@]}" "$dir/node$i"
	done
}

mounts_main "$@"
