#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 300
# cases: rules same verbs live recipes
# Fault rules: each does what it says, the same on every path and each time; mistakes in a file are
# told with their line; rules reach programs that run.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
need ibv_rc_pingpong
gid=$(gid_of - 10.99.0.1)

# pingpong RULES: 60 messages there and back with these rules on both sides; sets $st.
pingpong() {
    printf '%b\n' "$1" >"$tmp/rules.conf"
    st=0
    WEFT_LIMIT=30 WEFT_RUN_OPTS="--faults $tmp/rules.conf --faults-log $tmp/server.log" \
        run ibv_rc_pingpong -g "$gid" -n 60 -s 3000 -c >"$tmp/server" 2>&1 </dev/null &
    local pid=$!
    wait_listen - 18515 $pid || fail "server does not listen: $(cat "$tmp/server")"
    WEFT_LIMIT=30 WEFT_RUN_OPTS="--faults $tmp/rules.conf --faults-log $tmp/client.log ${2:-}" \
        run ibv_rc_pingpong -g "$gid" -n 60 -s 3000 -c 10.99.0.1 >"$tmp/client" 2>&1 </dev/null || st=$?
    [ $st = 0 ] || kill $pid 2>/dev/null || true
    wait $pid || true
}

refuse() { # refuse RULES WORDS
    printf '%b\n' "$1" >"$tmp/bad.conf"
    local st=0
    "$weft" run --faults "$tmp/bad.conf" -- true >"$tmp/out" 2>"$tmp/err" || st=$?
    [ $st = 1 ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q -- "$2" "$tmp/err" ||
        fail "\"$1\": status $st, $(cat "$tmp/err")"
}

case ${1:-rules} in
rules)
    for rule in 'drop nth=7 op=send' 'seed 3\ndrop p=5% op=request' 'duplicate 2 every=5' \
        'delay 3ms every=20' 'reorder 1 every=9 op=send' 'corrupt icrc nth=11' 'ecn' \
        'rnr op=send nth=4' 'nak sequence op=send nth=9' 'freeze 30ms nth=20' 'port down 60ms nth=15' \
        'event LID_CHANGE nth=2'; do
        pingpong "$rule"
        [ $st = 0 ] || fail "$rule: client ended with $st: $(cat "$tmp/client") $(cat "$tmp/server")"
        grep -q 'weft: fault: ibv_rc_pingpong: line' "$tmp/client.log" || [[ $rule == *rnr* || $rule == *nak* ]] ||
            fail "$rule: nothing in the log"
    done
    for rule in 'drop' 'nak access op=send nth=5' 'cq overrun nth=8' 'kill nth=30'; do
        pingpong "$rule"
        [ $st != 0 ] || fail "$rule: the client did not notice"
    done
    refuse 'explode' 'line 1: no action "explode"'
    refuse '\n\ndelay 5' 'line 3: .*a time as'
    st=0
    "$weft" run --faults /nonexistent -- true 2>"$tmp/err" || st=$?
    [ $st = 1 ] && grep -q 'No such file' "$tmp/err" || fail "missing file"
    ;;
same)
    # Only the sender's requests and one message at a time: what happens does not hang on timing.
    rules='seed 11\ndrop p=4% op=send\ncorrupt icrc p=2% op=send\ndelay 1ms p=3% op=send'
    for path in shm udp; do
        for i in 1 2 3 4 5; do
            [ $path = shm ] || export WEFT_PATH=udp
            pingpong "$rules"
            [ $st = 0 ] || fail "$path: $(cat "$tmp/client")"
            [ -s "$tmp/client.log" ] || fail "nothing happened"
            [ -e "$tmp/first.log" ] || cp "$tmp/client.log" "$tmp/first.log"
            cmp "$tmp/first.log" "$tmp/client.log" || {
                diff "$tmp/first.log" "$tmp/client.log" | head -10
                fail "$path, run $i: another log"
            }
        done
    done
    ;;
verbs)
    need "$tools/mistakes"
    for verb in 'alloc_pd' 'create_cq' 'create_qp' 'reg_mr' 'modify_qp' 'post_send' 'post_recv'; do
        echo "fail $verb ENOMEM nth=1" >"$tmp/rules.conf"
        st=0
        WEFT_RUN_OPTS="--explain --faults $tmp/rules.conf" run "$tools/mistakes" plain_send >"$tmp/out" 2>"$tmp/err" || st=$?
        grep -q "weft: fault: mistakes: line 1: fail: $verb answers ENOMEM" "$tmp/err" || fail "$verb: $(cat "$tmp/err")"
        grep -q '^weft: \[608 FAULTS\]' "$tmp/err" || fail "$verb: not explained: $(cat "$tmp/err")"
    done
    ;;
live)
    need ib_send_bw
    st=0
    "$weft" faults clear >"$tmp/out" 2>"$tmp/err" || st=$?
    WEFT_RUN_OPTS="--explain-file $tmp/reasons" run ib_send_bw -x "$gid" -D 4 -s 4096 >"$tmp/server" 2>&1 &
    pid=$!
    wait_listen - 18515 $pid
    run ib_send_bw -x "$gid" -D 4 -s 4096 10.99.0.1 >"$tmp/client" 2>&1 &
    client=$!
    sleep 1
    echo 'delay 100us every=100 op=send' >"$tmp/rules.conf"
    "$weft" faults set "$tmp/rules.conf" | grep -q 'for 2 processes' || fail "set"
    "$weft" faults list | grep -q '^delay 100us' || fail "list"
    sleep 0.5
    "$weft" faults clear | grep -q 'no faults' || fail "clear"
    "$weft" faults list | grep -q '^# no rules' || fail "list after clear"
    wait $client || fail "client: $(tail -5 "$tmp/client")"
    wait $pid || true
    grep -q 'weft: fault: ib_send_bw: line 1: delay: sent' "$tmp/client" || fail "the rule did nothing"
    ;;
recipes)
    n=0
    for f in "$here"/../examples/faults/*.conf; do
        "$weft" faults check "$f" >/dev/null || fail "$f"
        n=$((n + 1))
    done
    [ $n -ge 10 ] || fail "only $n recipes"
    ;;
esac
