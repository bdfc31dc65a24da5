# SPDX-License-Identifier: GPL-3.0-or-later
# shellcheck shell=bash
#
# Roots of Debian's releases, to build and try in. For bash scripts with a
# function die.

mirror()
{
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(LABEL)|$(SITE)' 'Created-By: Packages' |
		sed -n 's/^Debian|//p' | sed -n 1p
}

# make_root SUITE ROOT: a minimal system, with what apt is told here
make_root()
{
	local suite=$1 root=$2 site

	site=$(mirror)
	[ -n "$site" ] || die "apt's sources name no mirror of Debian"
	rm -rf --one-file-system "$root.new" || return
	debootstrap --variant=minbase "$suite" "$root.new" "$site" ||
		return
	apt-config dump |
		grep -E '^Acquire::(Check-Valid-Until|https?::Proxy) ' \
		>"$root.new/etc/apt/apt.conf.d/10machine" || true
	mv "$root.new" "$root"
}

# inside ROOT COMMAND...: with mounts and processes that go with it
inside()
{
	local root=$1
	shift

	cp -L /etc/resolv.conf "$root/etc/resolv.conf"
	# shellcheck disable=SC2016
	unshare --mount --propagation private --pid --fork --kill-child \
		bash -e -c '
		root=$1
		shift
		mount --bind "$root" "$root"
		mount -t proc proc "$root/proc"
		mount --rbind /sys "$root/sys"
		mount --rbind /dev "$root/dev"
		# not chroot: who enters a namespace of mounts later is at its
		# root again
		cd "$root"
		pivot_root . .
		umount -l .
		exec /usr/bin/env -i HOME=/root \
			PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"
		' inside "$root" "$@" </dev/null
}
