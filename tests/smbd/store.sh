#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# The verdict store, whatever happens to it: missing, corrupt, somebody
# else's, its writer stopped, too old; and a share's mount that changes.
# limit: 600

# shellcheck source=tests/smbd/lib.sh
. "$(dirname "$0")/lib.sh"

STORE=/var/lib/pingpong

mounts clusterfs 2 "error:errno=ENOLCK source"
bad=$MNT/node0
mounts clusterfs 2
good=$MNT/node0
mkdir -m 0755 "$SCRATCH/moving"
mount --bind "$good" "$SCRATCH/moving"
at_exit umount "$SCRATCH/moving"

MODULE="vfs objects = pingpong"
share good "$good" "$MODULE"
share moving "$SCRATCH/moving" "$MODULE"
share strict "$good" "$MODULE" "pingpong:on unknown = refuse"
smbd_up

record()
{
	echo "$STORE"/verdicts/*.json
}

# edit FILTER: of the one record
edit()
{
	jq "$1" <"$(record)" >"$SCRATCH/new" &&
		cat "$SCRATCH/new" >"$(record)"
}

newest()
{
	jq '[.uses[].when] | max' "$(record)"
}

# fresh CASE: the record was made anew
fresh()
{
	expect "$1" [ "$(newest)" -ge "$BEGUN" ]
}

unknown()
{
	may_speak
	new_log
	accepted "let in" good
	said "and told: $1" "share \[good\], .*unknown: .*$1"
	may_speak
	refused "refused where unknown is refused" strict
	said "and told" "share \[strict\], .*refused: .*$1"
}

BEGUN=$(date +%s)
about "no verdict"
accepted "let in" good
fresh "after a check"

about "a corrupt record"
echo '{' >"$(record)"
accepted "let in" good
fresh "after a check"

about "a corrupt list of paths"
echo '{' >"$STORE/paths.json"
accepted "let in" good
fresh "after a check"

about "too old"
edit '.uses[].when -= 2 * 86400'
accepted "let in" good
fresh "after a check"

about "from the future"
edit '.uses[].when += 86400'
accepted "let in" good
expect "after a check" [ "$(newest)" -le "$(date +%s)" ]

about "a writer that is stopped"
flock "$STORE" sleep 600 &
writer=$!
until_true 10 pgrep -x sleep >/dev/null
kill -STOP "$writer"
accepted "a fresh verdict is read" good
unsaid "without a word" "share \[good\]"
mv "$(record)" "$SCRATCH/aside"
unknown "cannot be recorded"
mv "$SCRATCH/aside" "$STORE/verdicts/$(jq -r .key "$SCRATCH/aside").json"
kill -KILL "$writer"
pkill -KILL -P "$writer" 2>/dev/null
pkill -KILL -x sleep
wait "$writer" 2>/dev/null

about "somebody else's"
chown backup "$STORE/paths.json"
unknown "belongs to somebody else"
chown root "$STORE/paths.json"

about "open to others"
chmod 0644 "$(record)"
unknown "belongs to somebody else"
chmod 0600 "$(record)"

about "the command missing"
mount --bind /dev/null /usr/bin/pingpong
mv "$(record)" "$SCRATCH/aside"
unknown "could not be checked: '/usr/bin/pingpong'"
mv "$SCRATCH/aside" "$STORE/verdicts/$(jq -r .key "$SCRATCH/aside").json"
umount /usr/bin/pingpong

about "the command is another one"
printf '#!/bin/sh\n' >"$SCRATCH/silent"
chmod 0755 "$SCRATCH/silent"
mount --bind "$SCRATCH/silent" /usr/bin/pingpong
mv "$(record)" "$SCRATCH/aside"
unknown "ended without an answer"
mv "$SCRATCH/aside" "$STORE/verdicts/$(jq -r .key "$SCRATCH/aside").json"
umount /usr/bin/pingpong

about "a mount that changes"
accepted "fit" moving
umount "$SCRATCH/moving"
mount --bind "$bad" "$SCRATCH/moving"
refused "unfit" moving
umount "$SCRATCH/moving"
mount --bind "$good" "$SCRATCH/moving"
accepted "fit again" moving

about "in one session"
session_open moving
expect "a second tree connect" session_do tcon moving
expect "a third one" session_do tcon moving
umount --lazy "$SCRATCH/moving"
mount --bind "$bad" "$SCRATCH/moving"
expect_not "refused when the mount has changed" session_do tcon moving
session_close
