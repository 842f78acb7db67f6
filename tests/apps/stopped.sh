#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 200
# cases: signal debugger
# A target that stands still (SIGSTOP, or a debugger's breakpoint) is served all the same: WRITE and
# READ of its peer on the same host complete and are right. Atomics need the target: they wait, with no
# error, and go on with it. WEFT_STOP_SECONDS: how long.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
seconds=${WEFT_STOP_SECONDS:-5}
case=${1:-signal}
[ "$case" != debugger ] || need gdb

for op in write read atomic; do
    size=$([ $op = atomic ] && echo 8 || echo 20000)
    WEFT_LIMIT=$((seconds + 60)) run "$tools/stream" -o $op -s $size -n 1000000000 >"$tmp/server" 2>&1 &
    server=$!
    wait_listen - 18515 $server || { cat "$tmp/server"; fail "server"; }
    # Runs until its time is up: that, and not an error, must end it.
    more=$([ $op = atomic ] && echo 4 || echo 0) # after the stop
    WEFT_LIMIT=$((seconds + 60)) run "$tools/stream" localhost -o $op -s $size -n 1000000000 \
        -T $((seconds + more)) -t 10 -r 3 >"$tmp/client" 2>&1 &
    client=$!
    for k in $(seq 200); do
        grep -q started "$tmp/client" && grep -q started "$tmp/server" && break
        sleep 0.02
    done
    target=$(pgrep -f "^$tools/stream -o $op")
    if [ "$case" = signal ]; then
        kill -STOP "$target"
    else
        gdb -p "$target" -batch -ex "shell sleep $((seconds + (more ? 0 : 2)))" -ex detach >"$tmp/gdb" 2>&1 &
        for k in $(seq 100); do
            [ "$(awk '/^State/ { print $2 }' /proc/$target/status)" = t ] && break
            sleep 0.1
        done
        [ "$(awk '/^State/ { print $2 }' /proc/$target/status)" = t ] || skip "gdb cannot attach: $(tail -n 1 "$tmp/gdb")"
    fi
    st=0
    [ $op != atomic ] || { sleep "$seconds"; kill -CONT "$target" 2>/dev/null || true; }
    wait $client || st=$?
    grep -q "time is up, last completion [01] s ago" "$tmp/client" || { cat "$tmp/client"; fail "$op: the client ended with $st"; }
    kill -CONT "$target" 2>/dev/null || true
    kill -9 "$target" 2>/dev/null || true
    wait $server 2>/dev/null || true
done
