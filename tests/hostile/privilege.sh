#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What a worker may do once its place is open: files, and nothing else of
# root's. A directory that is closed to root's group and to others is checked
# all the same.
#
# limit: 60

# shellcheck source=tests/lib.sh
. "$(dirname "$0")/../lib.sh"

need python3

mkdir -m 0700 "$SCRATCH/place"
chown 65534:65534 "$SCRATCH/place"

# The worker's /proc/PID/status and limits, once it has said hello
cat >"$SCRATCH/look" <<'END'
import json, socket, subprocess, sys
ours, its = socket.socketpair()
worker = subprocess.Popen(sys.argv[1:3], stdin=its)
its.close()
stream = ours.makefile('rw')
json.loads(stream.readline())
stream.write('{"id":1,"op":"nop"}\n')
stream.flush()
json.loads(stream.readline())
print(open('/proc/%d/status' % worker.pid).read())
print(open('/proc/%d/limits' % worker.pid).read())
stream.close()
ours.close()
worker.wait()
END
expect_exit 0 "a worker answers" python3 "$SCRATCH/look" \
	"$BUILD/cli/pingpong-worker" "$SCRATCH/place"

# dac_override, dac_read_search, fowner; sys_resource where we have it
expect_says "capabilities: those on files" '^CapPrm:.*000000[01]00000e$' "$OUT"
expect_says "in force, too" '^CapEff:.*000000[01]00000e$' "$OUT"
expect_says "none comes back" '^NoNewPrivs:.*1$' "$OUT"
expect_says "no core file" '^Max core file size  *0  *0 ' "$OUT"
expect_says "few descriptors" '^Max open files  *128  *128 ' "$OUT"
expect_not "we have more ourselves" cmp -s \
	<(grep CapEff "$OUT") <(grep CapEff /proc/self/status)

expect_exit 0 "somebody's closed directory" "$PINGPONG" check --local --quick \
	--no-store "$SCRATCH/place"
expect_clean "$SCRATCH/place"
