#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Places that are not what they seem: each told as what it is.
# limit: 300

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

mounts local 3 directory
nodes=("$MNT/node0" "$MNT/node1" "$MNT/node2")
mounts local 1 tmpfs
other=$MNT/node0

# The control: the same command, with places that are right.
about "healthy"
check_exit 0 "exit status" --local "${nodes[@]}"

# told CASE PLACE...: not one and the same directory, with the lines of both
# mounts
told()
{
	local name=$1 dir
	shift

	about "$name"
	expect_exit 4 "exit status" "$PINGPONG" check --local "$@"
	for dir in "${nodes[0]}" "$other"; do
		expect_says "it shows the mount of $dir" \
			"$(findmnt -n -o MAJ:MIN --mountpoint "$dir" |
			   tail -n 1 | tr -d ' ')" "$OUT"
	done
	check_exit 4 "exit status with --json" --local "$@"
	expect_jq "nothing is fit" \
		'[.verdict[] | select(.fitness == "fit")] == []'
	expect_clean "${nodes[0]}"
	expect_clean "$other"
}

told "two file systems" "${nodes[0]}" "$other"

ln -s "$other" "$SCRATCH/link"
told "a symbolic link to another file system" "${nodes[0]}" "$SCRATCH/link"
expect_jq "the member is what the link leads to" \
	'[.members[].fstype] | index("tmpfs") == 1'

about "a symbolic link to the same directory"
ln -s "${nodes[1]}" "$SCRATCH/same"
check_exit 0 "exit status" --local "${nodes[0]}" "$SCRATCH/same"

mkdir "$SCRATCH/over"
mount --bind "${nodes[0]}" "$SCRATCH/over"
at_exit umount "$SCRATCH/over"
about "before it is mounted over"
check_exit 0 "exit status" --local "${nodes[0]}" "$SCRATCH/over"
mount --bind "$other" "$SCRATCH/over"
at_exit umount "$SCRATCH/over"
told "mounted over" "${nodes[0]}" "$SCRATCH/over"
expect_jq "the member is what is on top" \
	'[.members[].fstype] | index("tmpfs") == 1'

about "the same directory by three paths"
expect_exit 4 "exit status" "$PINGPONG" check "${nodes[@]}"
expect_says "it says why" "only one node" "$OUT"
expect_clean "${nodes[0]}"

about "two directories of one file system"
mkdir "$SCRATCH/a" "$SCRATCH/b"
expect_exit 4 "exit status" "$PINGPONG" check --local \
	"$SCRATCH/a" "$SCRATCH/b"

# foreign CASE PATTERN: what stands at .pingpong is not ours
foreign()
{
	about "$1"
	expect_exit 77 "exit status" "$PINGPONG" check --local "${nodes[0]}"
	expect_says "it says why" "/.pingpong' is left alone: $2" "$ERR"
	expect "it is still there" [ -e "${nodes[0]}/.pingpong" ]
}

mkdir -m 777 "${nodes[0]}/.pingpong"
foreign "a probe directory that others may write to" "it is another user's"
rmdir "${nodes[0]}/.pingpong"
mkdir -m 700 "${nodes[0]}/.pingpong"
chown nobody "${nodes[0]}/.pingpong"
foreign "a probe directory of another user" "it is another user's"
rmdir "${nodes[0]}/.pingpong"
: >"${nodes[0]}/.pingpong"
foreign "a file instead of the probe directory" "it is no directory"
rm "${nodes[0]}/.pingpong"

about "a worker that is no program"
mkdir "$SCRATCH/cli"
cp "$PINGPONG" "$SCRATCH/cli/pingpong"
echo none >"$SCRATCH/cli/pingpong-worker"
chmod 755 "$SCRATCH/cli/pingpong-worker"
expect_exit 70 "exit status" "$SCRATCH/cli/pingpong" check --local "${nodes[0]}"
expect_says "it says why" "can't be run: Exec format error" "$ERR"
