#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# ping_pong where stock ping_pong does harm or says nothing: whose file it is
# (cli/ping_pong.h has the rule), bad arguments, errors, a ring that stands
# still, the end.
# limit: 600

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need ping_pong
STOCK=$(command -v ping_pong)

mounts local 1 tmpfs
dir=$MNT/node0
file=$dir/file
PATIENCE=60

# one_line CASE: the last run said one line on stderr, with its name
one_line()
{
	expect "$1: one line" [ "$(wc -l <"$ERR")" = 1 ]
	expect_says "$1: of its own" "^ping_pong: " "$ERR"
}

# state FILE: what must not change; reading is allowed
state()
{
	stat -c '%F %i %h %s %a %y %z' "$1"
	[ ! -f "$1" ] || sha256sum <"$1"
}

# refused CASE FILE ARG...: refused with one line, and untouched
refused()
{
	local name=$1 path=$2 before
	shift 2

	before=$(state "$path")
	expect_exit 1 "$name: refused" timeout $PATIENCE "$PING_PONG" "$@"
	one_line "$name"
	expect_says "$name: it is named" "'$path'" "$ERR"
	expect "$name: untouched" [ "$(state "$path")" = "$before" ]
	expect "$name: nothing on stdout" [ ! -s "$OUT" ]
}

# turning ARG...: it runs until it shows a rate, which no busy machine keeps
# from it for PATIENCE seconds; TURNS: whether it ran then
turning()
{
	local end=$((SECONDS + PATIENCE)) pid

	"$PING_PONG" "$@" >"$OUT" 2>"$ERR" &
	pid=$!
	until grep -q locks/sec "$OUT" || [ $SECONDS -ge $end ]; do
		kill -0 $pid 2>/dev/null || break
		sleep 0.05
	done
	TURNS=no
	kill $pid 2>/dev/null && TURNS=yes
	wait $pid
}

# taken CASE ARG...
taken()
{
	local name=$1
	shift

	turning "$@"
	expect "$name: taken" [ $TURNS = yes ]
	expect "$name: it turns" grep -q "locks/sec" "$OUT"
	expect "$name: nothing on stderr" [ ! -s "$ERR" ]
}

size()
{
	stat -c %s "$1"
}

# ---- somebody's file

about "somebody's file"
printf 'my only copy\n' >"$file"
refused "text" "$file" -rw "$file" 3
refused "text, plain" "$file" "$file" 3
refused "text, -rwm" "$file" -rwm "$file" 3
refused "text, -l" "$file" -l "$file"
refused "text of just NUM_LOCKS + 1 bytes" "$file" -rw "$file" 12
printf 'hi\n' >"$file"
refused "three letters" "$file" -rw "$file" 2
printf 'abc\ndef\n' >"$file"
refused "text with an early end of line" "$file" -rw "$file" 7
printf '\346\265\213\350\257\225\n' >"$file"
refused "text that is not ASCII" "$file" -rw "$file" 3
printf '\037\213\010\000\001\002\003' >"$file"
refused "a small binary file" "$file" -rw "$file" 3
{ printf 'TDB file\n'; head -c 100 /dev/zero; } >"$file"
refused "text at the head, NULs behind" "$file" -rw "$file" 3
refused "the same, of NUM_LOCKS + 1 bytes" "$file" -rw "$file" 108
refused "the same, -l" "$file" -l "$file"
rm "$file"
head -c 65537 /dev/zero >"$file"
refused "larger than 64 KiB" "$file" -rw "$file" 3
refused "larger than 64 KiB, -l" "$file" -l "$file"
rm "$file"

about "no file"
mkfifo "$dir/fifo"
refused "a FIFO" "$dir/fifo" -rw "$dir/fifo" 3
refused "a FIFO, -l" "$dir/fifo" -l "$dir/fifo"
mkdir "$dir/directory"
refused "a directory" "$dir/directory" -rw "$dir/directory" 3
refused "a device" /dev/null -rw /dev/null 3
ln -s file "$dir/link"
refused "a symbolic link to nothing" "$dir/link" -rw "$dir/link" 3
expect_not "nothing made at its end" [ -e "$file" ]
printf '\0\0\0\0' >"$file"
refused "a symbolic link" "$dir/link" -rw "$dir/link" 3
rm "$file" "$dir/link"

# ---- a ring's file

about "a ring's file"
taken "none" -rw "$file" 3
expect "it is made with NUM_LOCKS + 1 bytes" [ "$(size "$file")" = 4 ]
expect "for its owner alone" [ "$(stat -c %a "$file")" = 600 ]
taken "of an earlier run" -rw "$file" 3
taken "of an earlier run, more locks" -rw "$file" 7
expect "it grows" [ "$(size "$file")" = 8 ]
taken "of an earlier run, fewer locks" -rw "$file" 4
expect "it shrinks" [ "$(size "$file")" = 5 ]
expect "to counters and a NUL" \
	[ "$(tail -c 1 "$file" | od -An -tx1 | tr -d ' ')" = 00 ]
: >"$file"
taken "an empty file" -rw "$file" 3
head -c 65536 /dev/zero >"$file"
taken "64 KiB" -rw "$file" 65535
printf 'aaaa\0' >"$file"
taken "counters that look like text" -c "$file" 4
expect "they are kept" grep -q '^aaaa' "$file"
taken "the same with another NUM_LOCKS" "$file" 3
printf 'aaaa\0' >"$file"
run "$PING_PONG" -l "$file"
expect_says "the same with -l" "^Holding lock" "$OUT"

# Stock shortens a file of more locks and leaves a counter at its end.
printf 'aaaaaaa\0' >"$file"
timeout $PATIENCE "$STOCK" "$file" 4 >"$SCRATCH/stock" 2>&1 &
stock=$!
until grep -q locks/sec "$SCRATCH/stock"; do
	sleep 0.1
done
expect "stock shortens it" grep -q '^aaaaa$' "$file"
taken "used by stock, a counter at its end" "$file" 4
kill "$stock"
wait "$stock"
refused "no longer used" "$file" -rw "$file" 4
rm "$file"

# ---- arguments

about "arguments"
for num_locks in abc 0 -3 -33 65536 99999999999999999999 3x 0x3 " 3" ""; do
	expect_exit 64 "NUM_LOCKS '$num_locks'" \
		timeout $PATIENCE "$PING_PONG" -rw "$file" "$num_locks"
	one_line "NUM_LOCKS '$num_locks'"
	expect "NUM_LOCKS '$num_locks': it is named" \
		grep -q -F "'$num_locks'" "$ERR"
done
for args in "" "-rw" "$file" "-z $file 3" "-rwz $file 3" "$file 3 4" \
	"-l" "--help"; do
	# shellcheck disable=SC2086
	expect_exit 64 "'${args//$dir\//}'" timeout $PATIENCE "$PING_PONG" $args
	one_line "'${args//$dir\//}'"
done
expect_not "no file is made" [ -e "$file" ]
run "$STOCK"
cp "$OUT" "$SCRATCH/stock"
run "$PING_PONG"
expect "the usage is stock's" cmp "$SCRATCH/stock" "$OUT"
taken "options apart and behind" -r "$file" 3 -w
taken "behind --" -rw -- "$file" 3
turning "$file" 1
expect "one lock: taken" [ $TURNS = yes ]
expect_says "one lock: told that it is no ring" "NUM_LOCKS must be" "$ERR"

# ---- errors

# injected CASE EXPRESSION PATTERN ARG...: a system call that fails
injected()
{
	local name=$1 expression=$2 pattern=$3
	shift 3

	rm -f "$file"
	if [ -z "$(command -v strace)" ]; then
		skip "$name" "no program 'strace'"
		return
	fi
	expect_exit 1 "$name" timeout $PATIENCE strace -o "$SCRATCH/strace" \
		-e inject="$expression" "$PING_PONG" "$@"
	one_line "$name"
	expect_says "$name: it is told" "$pattern" "$ERR"
}

about "errors"
expect_exit 1 "no such directory" "$PING_PONG" -rw "$dir/nothing/file" 3
one_line "no such directory"
expect_says "no such directory: it is told" \
	"open '$dir/nothing/file' (No such file or directory)" "$ERR"
injected "lock" fcntl:error=ENOLCK:when=4 \
	"lock '$file' byte 2 (No locks available)$" "$file" 3
injected "the first lock" fcntl:error=ENOLCK:when=1 \
	"lock '$file' byte 0 (No locks available)$" "$file" 3
injected "unlock" fcntl:error=EIO:when=5 \
	"unlock '$file' byte 1 (Input/output error)$" "$file" 3
injected "a ring that is too small" fcntl:error=EDEADLK:when=4 \
	"(Resource deadlock avoided): NUM_LOCKS must be greater" "$file" 3
injected "-c" fcntl:error=EINVAL:when=3 \
	"getlk '$file' byte 0 (Invalid argument)$" -c "$file" 3
injected "write" pwrite64:error=ENOSPC:when=5 \
	"write '$file' byte 1 (No space left on device)$" -rw "$file" 3
injected "read" pread64:error=EIO:when=8+ \
	"read '$file' byte [0-2] (Input/output error)$" -rw "$file" 3
injected "mmap" ftruncate:error=EDQUOT \
	"ftruncate '$file' (Disk quota exceeded)$" -rwm "$file" 3
injected "-l" fcntl:error=ENOLCK:when=1 \
	"F_SETLK '$file' (No locks available)$" -l "$file"
expect_not "-l: not Working" grep -q Working "$OUT"
injected "-l, refused without a holder" fcntl:error=EAGAIN:when=1 \
	"F_GETLK shows no holder" -l "$file"
expect_not "-l, refused without a holder: not Working" \
	grep -q Working "$OUT"

about "-rw to a full device"
for options in -rw -l; do
	timeout $PATIENCE "$PING_PONG" $options "$file" 3 >/dev/full 2>"$ERR" </dev/null
	STATUS=$?
	expect "$options: exit status" [ $STATUS = 1 ]
	expect_says "$options: it is told" "(No space left on device)" "$ERR"
done

# ---- in two processes

about "deadlock"
rm -f "$file"
for i in 1 2; do
	"$PING_PONG" "$file" 2 >/dev/null 2>"$SCRATCH/err$i" &
	pids[i]=$!
done
wait -n "${pids[@]}"
first=$?
sleep 0.5
running=0
for i in 1 2; do
	kill "${pids[i]}" 2>/dev/null && running=$((running + 1))
done
wait "${pids[@]}"
expect "one ends with an error" [ $first = 1 ]
expect "the other goes on" [ $running = 1 ]
expect "it is explained" grep -q -h -F "(Resource deadlock avoided): \
NUM_LOCKS must be greater than the number of instances" "$SCRATCH"/err[12]

about "-l"
for holder in "$STOCK" "$PING_PONG"; do
	who=$([ "$holder" = "$STOCK" ] && echo stock || echo own)
	mkfifo "$SCRATCH/key"
	"$holder" -l "$file" <"$SCRATCH/key" >"$SCRATCH/$who" 2>&1 &
	pid=$!
	exec 9>"$SCRATCH/key"
	until [ -n "$(awk -v pid=$pid '$5 == pid' /proc/locks)" ]; do
		sleep 0.05
	done
	run "$STOCK" -l "$file"
	cp "$OUT" "$SCRATCH/expected"
	expect_exit 0 "held by $who: exit status" "$PING_PONG" -l "$file"
	expect "held by $who: the same bytes as stock" \
		cmp "$SCRATCH/expected" "$OUT"
	expect "held by $who: nothing on stderr" [ ! -s "$ERR" ]
	echo >&9
	exec 9>&-
	wait "$pid"
	STATUS=$?
	expect "holder, $who: exit status" [ $STATUS = 0 ]
	rm "$SCRATCH/key"
done
expect "holder: the same bytes as stock" cmp "$SCRATCH/stock" "$SCRATCH/own"

about "standing still"
mkfifo "$SCRATCH/key"
"$STOCK" -l "$file" <"$SCRATCH/key" >/dev/null 2>&1 &
holder=$!
exec 9>"$SCRATCH/key"
until [ -n "$(awk -v pid=$holder '$5 == pid' /proc/locks)" ]; do
	sleep 0.05
done
"$PING_PONG" "$file" 3 >"$OUT" 2>"$ERR" 9>&- &
pid=$!
for _ in $(seq 300); do
	[ -s "$ERR" ] && break
	sleep 0.1
done
one_line "waiting for the first byte"
expect_says "waiting for the first byte: told" \
	"no turn for 5 s, waiting at byte 0 of '$file'" "$ERR"
expect "no rate meanwhile" [ ! -s "$OUT" ]
echo >&9
exec 9>&-
wait "$holder"
for _ in $(seq 600); do
	grep -q locks/sec "$OUT" && break
	sleep 0.1
done
expect "then it goes on" grep -q locks/sec "$OUT"

about "the end"
kill -TERM "$pid"
wait "$pid"
STATUS=$?
expect "of SIGTERM" [ $STATUS = 143 ]
for signal in INT KILL; do
	# Bash has a program in the background ignore SIGINT.
	env --default-signal=INT "$PING_PONG" "$file" 3 >"$OUT" 2>&1 &
	pid=$!
	until grep -q locks/sec "$OUT"; do
		sleep 0.1
	done
	kill -$signal $pid
	wait $pid
	STATUS=$?
	expect "of SIG$signal" [ $STATUS = $((128 + $(kill -l $signal))) ]
done
for _ in $(seq 50); do
	[ -z "$(pgrep -x ping_pong)" ] && break
	sleep 0.1
done
expect_not "no process is left" pgrep -x ping_pong
