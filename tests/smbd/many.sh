#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Fifty clients at once have one check made; a thousand connects leave nothing
# behind: no descriptor, process or memory. A module that does shows that this
# would be seen.
# limit: 900

# shellcheck source=tests/smbd/lib.sh
. "$(dirname "$0")/lib.sh"

CLIENTS=50
CONNECTS=1000
CHECKED=20
# KiB; a tenth of one lost with each connect would be more
MUCH=100

mounts clusterfs 2
good=$MNT/node0
# every check makes directories: how many is counted
fault add slow:ms=1,op=mkdir

share good "$good" "vfs objects = pingpong"
# never fresh
share old "$good" "vfs objects = pingpong" "pingpong:max age = 0"
share leaky "$good" "vfs objects = pingpong leaky"
smbd_up

forget()
{
	rm -rf /var/lib/pingpong/*
}

# mkdirs so far
mkdirs()
{
	fault list | sed -n 's/.* slow.* hits=\([0-9]*\)$/\1/p'
}

about "one client"
accepted "let in" good
single=$(mkdirs)
expect "its check is seen" [ "${single:-0}" -gt 0 ]

descriptors()
{
	find "/proc/$1/fd" -mindepth 1 | wc -l
}

children()
{
	wc -w <"/proc/$1/task/$1/children"
}

# In KiB
memory()
{
	sed -n 's/^Anonymous: *\([0-9]*\) kB$/\1/p' "/proc/$1/smaps_rollup"
}

# The helpers of smbd that start later are not there yet.
no_client()
{
	! ss -Htn state established '( sport = :445 )' | grep -q .
}

about "$CLIENTS clients at once"
until_true 60 no_client
parent=$(descriptors "$SMBD_PID") helpers=$(children "$SMBD_PID")
parent_memory=$(memory "$SMBD_PID")
forget
clients=()
for ((i = 0; i < CLIENTS; i++)); do
	connect good >"$SCRATCH/client.$i" 2>&1 &
	clients+=($!)
done
out=()
for ((i = 0; i < CLIENTS; i++)); do
	wait "${clients[i]}" || out+=("$(cat "$SCRATCH/client.$i")")
done
if [ ${#out[@]} = 0 ]; then
	ok "all are let in"
else
	not_ok "all are let in" "${out[@]}" "$(log_tail)"
fi
all=$(mkdirs)
expect "one check was made: $((all - single)) of $single" \
	[ $((all - single)) = "$single" ]

until_true 60 no_client
# shellcheck disable=SC2016
until_true 60 eval '[ "$(children "$SMBD_PID")" = "$helpers" ]'
expect "no process of theirs is left" \
	[ "$(children "$SMBD_PID")" = "$helpers" ]
expect "smbd has no descriptor more" \
	[ "$(descriptors "$SMBD_PID")" -le "$parent" ]
grown=$(($(memory "$SMBD_PID") - parent_memory))
expect "nor memory: $grown KiB" [ "$grown" -lt "$MUCH" ]

# The smbd of a session that stands
about "$CONNECTS connects in one session"
session_open good

# connects SHARE COUNT: each a tree of its own that is left again
connects()
{
	local i

	for ((i = 0; i < $2; i++)); do
		session_do tcon "$1" && session_do tdis || return 1
	done
}

its_smbd()
{
	ss -Htnp state established '( sport = :445 )' |
		sed -n 's/.*("smbd[^"]*",pid=\([0-9]*\),.*/\1/p' | head -n 1
}

connects good 10
server=$(its_smbd)
expect "its smbd is found" [ -n "$server" ]
before=$(descriptors "$server")
memory=$(memory "$server")
expect "they succeed" connects good $CONNECTS
expect "no descriptor is left" [ "$(descriptors "$server")" = "$before" ]
expect "no process is left" [ "$(children "$server")" = 0 ]
grown=$(($(memory "$server") - memory))
expect "no memory is: $grown KiB" [ "$grown" -lt "$MUCH" ]

about "$CHECKED connects with a check each"
checks=$(mkdirs)
expect "they succeed" connects old $CHECKED
expect "a check was made for each" \
	[ $(($(mkdirs) - checks)) = $((CHECKED * single)) ]
expect "no descriptor is left" [ "$(descriptors "$server")" = "$before" ]
expect "no process is left" [ "$(children "$server")" = 0 ]

about "$CONNECTS connects with a module that loses something"
memory=$(memory "$server")
expect "they succeed" connects leaky $CONNECTS
expect "its descriptors are seen" \
	[ "$(descriptors "$server")" = $((before + CONNECTS)) ]
grown=$(($(memory "$server") - memory))
expect "its memory is: $grown KiB" [ "$grown" -ge "$CONNECTS" ]
session_close
expect "no check is under way" eval '! pgrep -x pingpong'
expect_clean "$good"
