#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# Every example of the manual pages and of the guide is run: those that say
# how they end (role "exit N" or "until stopped") as they stand. Every option
# of the command is in its page, and is completed.
# limit: 400

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need python3
[ -x "$BUILD/tests/clusterfs/clusterfs" ] || skip_all "no clusterfs was built"
DOC=$TESTS/../doc

# ---- three hosts with a cluster file system at /mnt/gpfs, one directory

mounts clusterfs 3
mount -t tmpfs tmpfs /mnt && at_exit umount -l /mnt
mount -t tmpfs tmpfs /srv && at_exit umount -l /srv
mkdir /mnt/gpfs /srv/share
mount --bind "$MNT/node0" /mnt/gpfs

cat >"$SCRATCH/rsh" <<END
#!/bin/bash
n=\${1#node}
shift
exec unshare -m bash -c 'mount --bind "\$0" /mnt/gpfs; exec "\$@"' \
	"$MNT/node\$((n - 1))" "\$@"
END
chmod +x "$SCRATCH/rsh"
export PINGPONG_RSH=$SCRATCH/rsh PATH=$BUILD/cli:$PATH
cd "$SCRATCH" || exit 1
printf 'node1\nnode2\nnode3\n' >hosts

# ---- the examples

examples()
{
	python3 - "$1" <<-'END'
	import sys
	import xml.dom.minidom as dom
	for e in dom.parse(sys.argv[1]).getElementsByTagName('programlisting'):
	    role = e.getAttribute('role')
	    if role.startswith('exit ') or role == 'until stopped':
	        text = ' '.join(e.firstChild.data.split('\n')).strip()
	        print(role.replace('exit ', '') + '\t' + text)
	END
}

for page in pingpong.1 ping_pong.1 pingpong-agent.8 pingpong.json.5; do
	about "$page"
	examples "$DOC/$page.xml" >list
	expect "there are examples" [ -s list ]
	while IFS=$'\t' read -r want line; do
		if [ "$want" = "until stopped" ]; then
			expect_exit 124 "$line" timeout -s INT 3 bash -c \
				"exec $line"
			expect_says "it prints rates" 'locks/sec' "$OUT"
		else
			expect_exit "$want" "$line" bash -c "$line"
		fi
	done <list
	if [ -e "$BUILD/doc/$page" ] && [ -n "$(command -v man)" ]; then
		expect "man shows it" sh -c "man -l '$BUILD/doc/$page' | grep -q ."
	fi
done

about "the guide"
sed -n 's/^    \(pingpong .*\)/\1/p' "$DOC/fit-for-ctdb.md" >list
expect "there are examples" [ -s list ]
while read -r line; do
	expect "$line" bash -c "$line || [ \$? = 1 ]" </dev/null
done <list

# ---- the table of faults is that of the matrix

about "pingpong-faults.7"
rows_of_page()
{
	python3 - "$DOC/pingpong-faults.7.xml" <<-'END'
	import sys
	import xml.dom.minidom as dom
	def text(e):
	    return e.data if e.nodeType == e.TEXT_NODE else \
	        ''.join(text(c) for c in e.childNodes)
	rows = dom.parse(sys.argv[1]).getElementsByTagName('tbody')[0]
	for row in rows.getElementsByTagName('row'):
	    print(' | '.join(text(e) for e in
	                     row.getElementsByTagName('entry')))
	END
}
rows_of_matrix()
{
	sed -n '/cat <<-END$/,/^\tEND$/p' "$TESTS/system/matrix.sh" |
		sed '1d; $d; s/[ \t]*|[ \t]*/|/g; s/^[ \t]*//' |
		awk -F'|' -v OFS=' | ' '{
			named = $4
			gsub(/=[a-z]+/, " (&)", named)
			gsub(/\(=/, "(", named)
			print $1, $2, named, $6 == "" ? "-" : $6
		}'
}
rows_of_matrix >rows
expect "there are rows" [ "$(wc -l <rows)" -gt 40 ]
expect "the page has them all, and no others" diff rows <(rows_of_page)

# ---- options

for command in check sweep status; do
	about "pingpong $command"
	pingpong "$command" --help | grep -oE -- '--[a-z-]+' | sort -u |
		grep -vxE -- '--(help|usage|rsh)' >options
	expect "it has options" [ -s options ]
	while read -r option; do
		expect_says "the page has $option" "[>,  ]$option" \
			"$DOC/pingpong.1.xml"
	done <options
done

# ---- completion

# completes WORD... : what the last WORD is completed to
completes()
{
	bash -c '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
		_pingpong; printf "%s\n" "${COMPREPLY[@]}"' \
		- "$DOC/pingpong.bash" "$@"
}

about "completion"
expect "a command" [ "$(completes pingpong sw)" = sweep ]
expect "an option" [ "$(completes pingpong check --hos)" = --hosts-file ]
expect "a check" \
	[ "$(completes pingpong explain lock.exc)" = lock.exclusion ]
expect "a use" [ "$(completes pingpong check --for = sha)" = share ]
expect "nothing that is not there" [ -z "$(completes pingpong check --xyz)" ]
