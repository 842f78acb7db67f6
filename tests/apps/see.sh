#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 180
# cases: nobody busy stopped hangs help
# What weft shows of programs: while they work, while they are stopped, and why they hang.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
gid=$(gid_of - 10.99.0.1)

says() { # says STATUS WORDS COMMAND...: one line on stderr, that status, nothing on stdout
    local want=$1 words=$2 st=0
    shift 2
    "$weft" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || st=$?
    [ $st = "$want" ] && [ "$(wc -l <"$tmp/err")" = 1 ] && [ ! -s "$tmp/out" ] && grep -q -- "$words" "$tmp/err" ||
        fail "weft $*: status $st, not $want: $(cat "$tmp/out" "$tmp/err")"
}

busy() {
    run ib_send_bw -x "$gid" -D 8 -s 4096 >"$tmp/server" 2>&1 &
    server=$!
    wait_listen - 18515 $server
    run ib_send_bw -x "$gid" -D 8 -s 4096 10.99.0.1 >"$tmp/client" 2>&1 &
    client=$!
    sleep 1
}

json() {
    python3 -c "import json,sys; d = json.load(sys.stdin); assert $1, d"
}

case ${1:-busy} in
nobody)
    export WEFT_SOCKET=weft-nobody-here
    for c in status stat top 'why 1' 'faults list' 'capture -w /dev/null' 'explain --pid 1'; do
        # shellcheck disable=SC2086
        says 1 'no program of this user' $c
    done
    ;;
help)
    for c in run explain why status stat top faults capture perf devinfo doctor; do
        "$weft" $c --help >"$tmp/out" 2>"$tmp/err" || fail "weft $c --help"
        grep -q "^usage: weft $c" "$tmp/out" && [ ! -s "$tmp/err" ] || fail "weft $c --help: $(cat "$tmp/out" "$tmp/err")"
        says 2 'nonsense' $c --nonsense
        [ -e "$here/../man/weft-$c.1" ] || fail "no manual page of weft $c"
    done
    for t in explain faults capture paths; do
        "$weft" help $t >"$tmp/out"
        [ "$(wc -l <"$tmp/out")" -le 24 ] && [ "$(wc -L <"$tmp/out")" -le 100 ] || fail "help $t does not fit a screen"
    done
    "$weft" help status | grep -q '^usage: weft status' || fail "help of a command"
    says 2 'no topic' help nonsense
    "$weft" doctor >"$tmp/out" || [ $? = 1 ] || fail doctor
    "$weft" devinfo | grep -q '^weft0' || fail devinfo
    bash -n "$here/../scripts/completion/weft.bash" || fail "bash completion"
    ;;
busy)
    need ib_send_bw python3
    busy
    "$weft" status >"$tmp/status"
    [ "$(grep -c 'RC .*shm, pid' "$tmp/status")" = 2 ] || fail "$(cat "$tmp/status")"
    "$weft" status --json | json 'len(d["processes"]) == 2 and all(p["qps"][0]["type"] == "RC" for p in d["processes"])'
    "$weft" stat | grep -q port_xmit_packets || fail stat
    "$weft" stat --json | json 'sum(p["counters"]["port_xmit_bytes"] for p in d) > 1000000'
    "$weft" stat --prometheus >"$tmp/prom"
    grep -qE '^weft_port_xmit_packets\{device="weft0",port="1",pid="[0-9]+",program="ib_send_bw"\} [0-9]+$' "$tmp/prom" || fail "prometheus"
    ! grep -vqE '^(# (HELP|TYPE) |weft_[a-z0-9_]+\{.*\} [0-9]+$)' "$tmp/prom" || fail "prometheus: $(head -5 "$tmp/prom")"
    "$weft" top -n 2 -d 0.3 >"$tmp/top"
    grep -qE 'ib_send_bw +[0-9.]+ [kMG]B/s' "$tmp/top" || fail "$(cat "$tmp/top")"
    says 1 'does not run with Weft' why 1
    says 2 'is not a process' why x1
    wait $client || fail "client: $(tail -3 "$tmp/client")"
    ;;
stopped)
    need ib_send_bw
    busy
    pkill -STOP -x ib_send_bw
    timeout 5 "$weft" status >"$tmp/status" || fail "status of stopped programs"
    [ "$(grep -c 'RC .*shm, pid' "$tmp/status")" = 2 ] || fail "$(cat "$tmp/status")"
    pid=$(pgrep -x ib_send_bw | head -1)
    timeout 5 "$weft" why "$pid" | grep -q ib_send_bw || fail why
    timeout 5 "$weft" explain --pid "$pid" >/dev/null || fail "explain --pid"
    pkill -CONT -x ib_send_bw
    wait $client || fail "client: $(tail -3 "$tmp/client")"
    ;;
hangs)
    need "$tools/mistakes"
    while IFS='|' read -r name words; do
        WEFT_LIMIT=30 run "$tools/mistakes" "$name" "$gid" >"$tmp/out" 2>&1 &
        for i in $(seq 50); do
            sleep 0.1
            pid=$(pgrep -x mistakes | head -1) || continue
            "$weft" why "$pid" >"$tmp/why" 2>&1 || continue
            grep -q -- "$words" "$tmp/why" && break
        done
        grep -q -- "$words" "$tmp/why" || fail "$name: $(cat "$tmp/why")"
        pkill -KILL -x mistakes
        wait || true
    done <<'LIST'
hang_without_receive|has no receive posted (RNR)
hang_unsignalled|none of them was signalled
hang_unpolled|1 completions that nobody polls
hang_unacknowledged|destroying CQ .* waits for 1 events to be acknowledged
LIST
    ;;
esac
