#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Places on other hosts: network namespaces, one of them with a real sshd.
# Each verdict as on this host; a host that is not as it should be is one
# line; one that is cut off is no finding about the file system, and nothing
# is left there.
# limit: 400

# What has a $ within single quotes is for jq.
# shellcheck disable=SC2016

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need ip ssh sshd ssh-keygen
[ -x "$BUILD/tests/clusterfs/clusterfs" ] || skip_all "no clusterfs was built"

EX_UNAVAILABLE=69
export PATH=$BUILD/cli:$PATH

netns_gone()
{
	local h

	for h in h0 h1 h2; do
		ip netns del "$h" 2>/dev/null
	done
	umount /run/netns 2>/dev/null
}

at_exit netns_gone
for h in h0 h1 h2; do
	ip netns add "$h" || skip_all "no network namespaces"
done

mounts clusterfs 3
places=("$MNT/node0" "$MNT/node1" "$MNT/node2")
hosts=("h0:$MNT/node0" "h1:$MNT/node1" "h2:$MNT/node2")
netns=(-e "ip netns exec")

fitness()
{
	jq -cS '[.exit, (.verdict | map_values(.fitness))]' <"$OUT"
}

# Workers and agents of a check that runs no more
left()
{
	pgrep -a -f 'pingpong-worker|pingpong agent'
}

none_left()
{
	local i

	for ((i = 0; i < 300; i++)); do
		left >"$SCRATCH/left" || return 0
		sleep 0.1
	done
	cat "$SCRATCH/left"
	return 1
}

expect_nothing_left()
{
	expect "no process is left" none_left
	expect_clean "$MNT/node0"
}

# as_local CASE ARG...: the check of $hosts with ARG is that of $places
as_local()
{
	local want got
	about "$1"
	shift

	run "$PINGPONG" check --json --no-store "${places[@]}"
	want=$(fitness)
	run "$PINGPONG" check --json --no-store "$@"
	got=$(fitness)
	if [ "$want" = "$got" ]; then
		ok "the verdict is the local one"
	else
		not_ok "the verdict is the local one" "local:  $want" \
			"remote: $got" "$(said)"
	fi
	expect_nothing_left
}

# ---- network namespaces

as_local "healthy" "${netns[@]}" "${hosts[@]}"
expect_jq "the members are named as given" \
	'[.members[].name | sub(":.*"; "")] == ["h0", "h1", "h2"]'

fault add local-locks
as_local "node-local locks" "${netns[@]}" "${hosts[@]}"
expect_jq "that is unfit" '.exit == 2'
fault clear

about "PINGPONG_RSH"
expect_exit 1 "exit status" env PINGPONG_RSH="ip netns exec" \
	"$PINGPONG" check --quick --no-store "${hosts[@]}"

# ---- a hosts file

printf '# the nodes\n\nh0\nh1\n' >"$SCRATCH/hosts"
about "--hosts-file"
check_exit 4 "exit status" "${netns[@]}" --hosts-file "$SCRATCH/hosts" \
	--quick --no-store "$MNT/node0"
expect_jq "each place on each host" \
	"[.members[].name] == [\"h0:$MNT/node0\", \"h1:$MNT/node0\"]"
expect_exit 64 "with a host in the place" "$PINGPONG" check \
	--hosts-file "$SCRATCH/hosts" h0:/
expect_exit 64 "a file that is not there" "$PINGPONG" check \
	--hosts-file "$SCRATCH/nothing" /
printf 'h0:/mnt\nh1 h2\n' >"$SCRATCH/bad"
expect_exit 64 "a line that is no host" "$PINGPONG" check \
	--hosts-file "$SCRATCH/bad" /

# ---- CTDB's nodes: this one, a deleted one, two others

if [ -x /usr/libexec/ctdb/ctdb-config ]; then
	export CTDB_BASE=$SCRATCH/ctdb
	mkdir "$CTDB_BASE"
	printf '%s\n' 127.0.0.1 '#10.0.0.9' 10.99.0.2 fd00::2 >"$CTDB_BASE/nodes"
	cat >"$SCRATCH/node" <<-'END'
		#!/bin/bash
		exec unshare -m pingpong agent
	END
	chmod +x "$SCRATCH/node"
	about "--nodes"
	# nodes_are SPEC PLACE...
	nodes_are()
	{
		local spec=$1
		shift
		run "$PINGPONG" check --json --no-store --quick \
			-e "$SCRATCH/node" --only lock.supported \
			--nodes "$spec" "$MNT/node0"
		expect_jq "$spec" '[.members[].name] == $ARGS.positional' \
			--args "$@"
	}
	nodes_are all "$MNT/node0" "10.99.0.2:$MNT/node0" \
		"[fd00::2]:$MNT/node0"
	nodes_are 2-3 "10.99.0.2:$MNT/node0" "[fd00::2]:$MNT/node0"
	nodes_are 0,3 "$MNT/node0" "[fd00::2]:$MNT/node0"
	for spec in 1 4 x '0,' 3-2 ''; do
		expect_exit 64 "'$spec' is none" "$PINGPONG" check \
			--nodes "$spec" "$MNT/node0"
		expect "in one line" [ "$(wc -l <"$ERR")" = 1 ]
		expect_says "which is said" "^pingpong: .*'$spec'" "$ERR"
	done
	unset CTDB_BASE
else
	skip "--nodes" "no ctdb-config"
fi

# ---- hosts that are not as they should be

cat >"$SCRATCH/rsh" <<END
#!/bin/bash
case \$1 in
silent) exec sleep 1000;;
none) exec env PATH=/nothing /bin/sh -c 'pingpong agent';;
login) echo "Welcome to node1"; exec pingpong agent;;
ends) exit 3;;
asks) read -r -p 'Password: ' x </dev/tty && exec pingpong agent; exit 1;;
old) echo '{"hello":"agent","protocol":9,"oldest":9,"version":"9.9"}'
	exec sleep 1000;;
next) pingpong agent |
	sed -u -e '1s/"version": *"[^"]*"/"version":"9.9"/'; exit;;
warns) echo "the disk is almost full" >&2; exec pingpong agent;;
esac
END
chmod +x "$SCRATCH/rsh"

# no_host HOST PATTERN CASE
no_host()
{
	about "$3"
	expect_exit $EX_UNAVAILABLE "exit status" "$PINGPONG" check \
		-e "$SCRATCH/rsh" --timeout 6 --no-store \
		"$1:$MNT/node0" "$MNT/node1"
	expect "one line" [ "$(wc -l <"$ERR")" = 1 ]
	expect_says "it names host and reason" "'$1'.*$2" "$ERR"
	expect "no report" [ ! -s "$OUT" ]
	expect_nothing_left
}

no_host silent "no answer" "a host that does not answer"
no_host none "not installed" "a host without pingpong"
no_host login "login must not print" "a login that talks"
no_host ends "exit status 3" "a command that ends"
no_host asks "/dev/tty" "a host that asks for a password"
no_host old "pingpong 9.9 there speaks protocol 9" "another protocol"

about "a command that is none"
expect_exit $EX_UNAVAILABLE "exit status" "$PINGPONG" check \
	-e "$SCRATCH/nothing" "h0:$MNT/node0"
expect_says "it is named" "'h0'.*$SCRATCH/nothing" "$ERR"

about "a host that would be an option"
for host in -oProxyCommand=reboot -h; do
	expect_exit $EX_UNAVAILABLE "$host" "$PINGPONG" check \
		-e "$SCRATCH/rsh" -- "$host:/"
	printf '%s\n' "$host" >"$SCRATCH/options"
	expect_exit $EX_UNAVAILABLE "$host in a hosts file" "$PINGPONG" check \
		-e "$SCRATCH/rsh" --hosts-file "$SCRATCH/options" /
done

about "another version of the same protocol"
check_exit 4 "exit status" -e "$SCRATCH/rsh" --only lock.supported \
	--no-store "next:$MNT/node0" "$MNT/node1"
expect_outcome pass lock.supported
expect_says "it is named" "'next': pingpong 9.9 there" "$ERR"

about "what a host says"
run "$PINGPONG" check -e "$SCRATCH/rsh" --only lock.supported --no-store \
	"warns:$MNT/node0" "$MNT/node1"
expect_says "its line with its name" "'warns': the disk is almost full" "$ERR"

# ---- in the middle of a check

all_begun()
{
	local i

	for ((i = 0; i < 300; i++)); do
		[ "$(pgrep -c -f pingpong-worker)" -lt 3 ] || return 0
		sleep 0.1
	done
	return 1
}

# in_the_middle CMD...: a check of $hosts runs, CMD happens after two seconds
in_the_middle()
{
	local pid

	"$PINGPONG" check --json --no-store --thorough=3 --timeout 20 \
		"${reach[@]}" "${hosts[@]}" >"$OUT" 2>"$ERR" </dev/null &
	pid=$!
	expect "all take part" all_begun
	sleep 2
	"$@" "$pid"
	SECONDS=0
	wait "$pid"
	STATUS=$?
}

# the far end of the second member
far_end()
{
	pgrep -f '^pingpong agent' | sed -n 2p
}

agent_killed()
{
	kill -KILL "$(far_end)"
}

expect_lost()
{
	case $STATUS in
	4|"$EX_UNAVAILABLE") ok "unknown, or not reached";;
	*) not_ok "unknown, or not reached" "$(said)";;
	esac
	expect "within the deadline" [ "$SECONDS" -le 26 ]
	[ "$STATUS" != 4 ] || expect_jq "nothing hung, nothing is wrong" \
		'all(.checks[]; .outcome | IN("hung", "fail") | not)'
	expect_nothing_left
}

reach=("${netns[@]}")
about "an agent that is killed"
in_the_middle agent_killed
expect_lost

about "a command that is killed"
in_the_middle kill -KILL
expect_nothing_left

# ---- a real sshd

link_up()
{
	ip link add near type veth peer name far netns h1 &&
	ip addr add 10.99.0.1/24 dev near &&
	ip link set near up &&
	ip -n h1 addr add 10.99.0.2/24 dev far &&
	ip -n h1 link set far up &&
	ip -n h1 link set lo up
}

sshd_up()
{
	local d=$SCRATCH/ssh i

	mkdir -m 0700 "$d"
	ssh-keygen -q -t ed25519 -N '' -f "$d/host" &&
	ssh-keygen -q -t ed25519 -N '' -f "$d/key" || return 1
	cp "$d/key.pub" "$d/authorized"
	chmod 0755 "$SCRATCH"
	chmod 0711 "$d"
	cat >"$d/sshd_config" <<-END
		ListenAddress 10.99.0.2
		HostKey $d/host
		PidFile $d/pid
		AuthorizedKeysFile $d/authorized
		StrictModes no
		UsePAM no
		PermitRootLogin yes
		SetEnv PATH=$PATH
	END
	cat >"$d/config" <<-END
		IdentityFile $d/key
		IdentitiesOnly yes
		UserKnownHostsFile $d/known
		StrictHostKeyChecking accept-new
		LogLevel ERROR
		User root
	END
	mkdir -p /run/sshd
	ip netns exec h1 /usr/sbin/sshd -f "$d/sshd_config" || return 1
	for ((i = 0; i < 100; i++)); do
		[ -s "$d/pid" ] && return 0
		sleep 0.1
	done
	return 1
}

sshd_down()
{
	local pid

	pid=$(cat "$SCRATCH/ssh/pid" 2>/dev/null)
	pkill -KILL -P "$pid" 2>/dev/null
	kill "$pid" 2>/dev/null
}

link_up || skip_all "no veth"
at_exit sshd_down
expect "sshd starts" sshd_up

ssh=(-e "ssh -o BatchMode=yes -o ConnectTimeout=3 -F $SCRATCH/ssh/config")
hosts=("$MNT/node0" "10.99.0.2:$MNT/node1" "root@10.99.0.2:$MNT/node2")
as_local "by ssh" "${ssh[@]}" "${hosts[@]}"

fault add local-locks
as_local "by ssh, node-local locks" "${ssh[@]}" "${hosts[@]}"
fault clear

cut_off()
{
	ip link set near down
}

reach=("${ssh[@]}")
about "a host that is cut off"
in_the_middle cut_off
expect_lost
sshd_down

about "a host that is not reached"
expect_exit $EX_UNAVAILABLE "exit status" "$PINGPONG" check "${ssh[@]}" \
	--timeout 12 "10.99.0.2:$MNT/node1" "$MNT/node0"
expect_says "it is named" "'10.99.0.2': " "$ERR"
expect "one line" [ "$(wc -l <"$ERR")" = 1 ]

ip link set near up
: >"$SCRATCH/ssh/authorized"
rm -f "$SCRATCH/ssh/pid"
ip netns exec h1 /usr/sbin/sshd -f "$SCRATCH/ssh/sshd_config"
sleep 0.5
about "a key that is not accepted"
expect_exit $EX_UNAVAILABLE "exit status" "$PINGPONG" check "${ssh[@]}" \
	"10.99.0.2:$MNT/node1" "$MNT/node0"
expect_says "it says so" "'10.99.0.2': .*Permission denied" "$ERR"
expect_nothing_left
