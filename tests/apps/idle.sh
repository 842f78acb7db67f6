#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 60
# serial: yes
# An idle program and weftd use no CPU; one that sleeps on a completion channel wakes by itself.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/programs.sh"
isolate "$@"

ticks() { # CPU time in clock ticks of the processes given
    local p
    for p in "$@"; do
        awk '{ sub(/^.*\) /, ""); print $12 + $13 }' "/proc/$p/stat"
    done | awk '{ n += $1 } END { print n }'
}

# A program with an open device and a connected queue pair that waits for its peer.
run "$tools/stream" -e -n 10 >"$tmp/server" 2>&1 &
server=$!
wait_listen - 18515 $server || { cat "$tmp/server"; fail "server"; }
run "$tools/stream" localhost -e -n 10 -o read >"$tmp/client" 2>&1 &
sleep 1
pids="$(pgrep -x stream) $(pgrep -x weftd)"
# shellcheck disable=SC2086
before=$(ticks $pids)
sleep 3
# shellcheck disable=SC2086
after=$(ticks $pids)
echo "$((after - before)) ticks of CPU in 3 s, processes" $pids
[ $((after - before)) -le 1 ] || fail "idle programs used $((after - before)) ticks in 3 s"

# Sleeping both sides: every exchange is a wake-up. A lost one would take for ever.
kill -9 $(pgrep -x stream)
address=localhost sgid=0 cgid=0
limit=30 pingpong rc -e -n 5000
limit=30 pingpong ud -e -n 5000
