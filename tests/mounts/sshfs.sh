#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# sshfs (FUSE): N mounts of one directory, each through an SFTP server of its
# own. No sshd: what sshfs starts as ssh is the SFTP server itself, on the
# same socket pair.
#   default      kernel and sshfs caches
#   nocachesync  direct I/O, no caches, synchronous writes

# shellcheck source=tests/mounts/common.sh
. "$(dirname "$0")/common.sh"

# shellcheck disable=SC2034
VARIANTS="default nocachesync"
SFTP_SERVER=/usr/lib/openssh/sftp-server

fs_up()
{
	local n=$1 dir=$2 options=allow_other i

	case $3 in
	nocachesync)
		options+=,direct_io,dir_cache=no,attr_timeout=0,entry_timeout=0
		options+=,negative_timeout=0
		options+=,sshfs_sync,sync_readdir,no_readahead;;
	esac
	mkdir "$STATE/back"
	printf '#!/bin/sh\nexec %s\n' "$SFTP_SERVER" >"$STATE/ssh"
	chmod +x "$STATE/ssh"
	for ((i = 0; i < n; i++)); do
		daemon "client$i" sshfs -f -o "$options" \
			-o "ssh_command=$STATE/ssh" \
			"server:$STATE/back" "$dir/node$i"
	done
}

mounts_main "$@"
