#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 120
# cases: killed idle detached
# weftd: killed during traffic nobody notices and new programs work at once; it goes when it is idle;
# it holds nothing of the program that started it.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
case ${1:-killed} in
killed)
    WEFT_LIMIT=60 run "$tools/stream" -b -n 1000000000 -T 6 >"$tmp/server" 2>&1 &
    server=$!
    wait_listen - 18515 $server || { cat "$tmp/server"; fail "server"; }
    WEFT_LIMIT=60 run "$tools/stream" localhost -b -n 1000000000 -T 6 >"$tmp/client" 2>&1 &
    client=$!
    for k in $(seq 200); do
        grep -q started "$tmp/client" && grep -q started "$tmp/server" && break
        sleep 0.02
    done
    for round in 1 2 3; do
        pkill -9 -x weftd || fail "no weftd in round $round"
        before=$(date +%s%N)
        port=18600
        limit=20 pair stream "$tools/stream -p 18600 -n 100" "$tools/stream localhost -p 18600 -n 100"
        took=$((($(date +%s%N) - before) / 1000000))
        echo "new connection $took ms after weftd was killed"
        [ $took -lt 2000 ] || fail "a new connection took $took ms"
    done
    for pid in $server $client; do
        wait $pid || true
    done
    grep -q "time is up" "$tmp/client" && grep -q "time is up\|went away" "$tmp/server" ||
        { cat "$tmp/server" "$tmp/client"; fail "running traffic did not go on"; }
    ;;
idle)
    export WEFT_LINGER=1
    run ibv_devinfo >/dev/null
    for i in $(seq 60); do
        pgrep -x weftd >/dev/null || exit 0
        sleep 0.1
    done
    fail "weftd is still there after 6 s"
    ;;
detached)
    # A pipe of the caller ends with the caller.
    before=$(date +%s%N)
    run ibv_devinfo 2>&1 | cat >/dev/null
    [ $((($(date +%s%N) - before) / 1000000)) -lt 3000 ] || fail "the pipe stayed open"
    pid=$(pgrep -x weftd) || fail "no weftd"
    [ "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$pid" ] || fail "not in a session of its own"
    for fd in 0 1 2; do
        [ "$(readlink /proc/"$pid"/fd/$fd)" = /dev/null ] || fail "descriptor $fd: $(ls -l /proc/"$pid"/fd/)"
    done
    [ "$(readlink /proc/"$pid"/cwd)" = / ] || fail "holds $(readlink /proc/"$pid"/cwd)"
    ;;
esac
