#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app slow
# timeout: 600
# cases: server client
# kill -9 of one side during traffic, again and again: the peer gets an error completion soon, and
# nothing is left behind. WEFT_KILLS: how often (100).
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
victim=${1:-server}
times=${WEFT_KILLS:-100}
export WEFT_LINGER=2

memory() { # shared memory of all processes here, in KB
    cat /proc/[0-9]*/status 2>/dev/null | awk '/^RssShmem/ { n += $2 } END { print n + 0 }'
}

run ibv_devinfo >/dev/null # weftd is there
for i in $(seq "$times"); do
    args="-b -n 100000000 -s $((i % 3 * 4000 + 64)) -T 30"
    # shellcheck disable=SC2086
    { WEFT_LIMIT=40 run "$tools/stream" $args & echo $! >"$tmp/pid"; wait $!; } >"$tmp/server" 2>&1 &
    server=$!
    sleep 0.01
    wait_listen - 18515 $server || { cat "$tmp/server"; fail "round $i: server does not listen"; }
    # shellcheck disable=SC2086
    WEFT_LIMIT=40 run "$tools/stream" localhost $args >"$tmp/client" 2>&1 &
    client=$!
    for k in $(seq 200); do
        grep -q started "$tmp/client" && grep -q started "$tmp/server" && break
        sleep 0.02
    done
    sleep 0.0$((i % 10))
    if [ "$victim" = server ]; then pids=$(pgrep -f "^$tools/stream -b") dead=$server alive=$client log=client
    else pids=$(pgrep -f "^$tools/stream localhost") dead=$client alive=$server log=server; fi
    # shellcheck disable=SC2086
    kill -9 $pids || fail "round $i: $victim is not there: $(cat "$tmp/$victim")"
    before=$(date +%s%N)
    wait $dead 2>/dev/null || true
    st=0
    wait $alive || st=$?
    took=$((($(date +%s%N) - before) / 1000000))
    [ $st = 3 ] || { cat "$tmp/$log"; fail "round $i: the $log ended with $st, not with an error completion"; }
    [ $took -lt 5000 ] || fail "round $i: the error completion took $took ms"
    [ $i != 10 ] || early=$(memory)
done
echo "last round: $(grep completion "$tmp/$log"), after $took ms"
# All slots can be had again: more processes than the rounds have left room for, if they leaked.
late=$(memory)
[ "$times" -lt 20 ] || [ $late -lt $((early * 2 + 20000)) ] || fail "shared memory grew from $early to $late KB"
for i in $(seq 100); do
    [ "$(pgrep -c weftd)" != 0 ] || break
    sleep 0.1
done
[ "$(pgrep -c weftd)" = 0 ] || fail "weftd is still there, 10 s after its last client"
[ "$(pgrep -c stream)" = 0 ] || fail "processes are left: $(ps ax)"
