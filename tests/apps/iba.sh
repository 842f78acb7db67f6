#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 120
# cases: tour loop pieces port cm rc uc ud
# Async-verbs programs: examples/iba on their own, and with the verbs programs of ibverbs-utils as
# peers, both ways round, over shared memory and over UDP, polling and on events.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
tour=$WEFT_BUILD/examples/iba_tour
pingpong=$WEFT_BUILD/examples/iba_pingpong
[ -x "$pingpong" ] || skip "examples/iba is not built"

if [ "${1:-tour}" = tour ]; then
    for policy in "" pend; do
        WEFT_IBA_POLICY=$policy WEFT_IRQL=abort run "$tour" >"$tmp/tour" || fail "$(cat "$tmp/tour")"
        grep -q '^closed' "$tmp/tour" || fail "$(cat "$tmp/tour")"
        WEFT_IBA_POLICY=$policy run "$tools/iba_client" | grep -q 'in C++' || fail "the C++ client"
    done
    exit
fi

if [ "$1" = loop ]; then
    run "$tools/iba_loop" | grep -q exchanged || fail "verbs and async verbs on one engine"
    exit
fi

if [ "$1" = pieces ]; then
    for path in "" udp; do
        WEFT_PATH=$path run "$tools/iba_pieces" | grep -q moved || fail "scattered regions, path '$path'"
    done
    exit
fi

# wait_word WORD: until the program in the background has printed it. 10 seconds.
wait_word() {
    for _ in $(seq 200); do
        grep -q "$1" "$tmp/port" && return 0
        sleep 0.05
    done
    fail "no '$1' from the program in the background: $(cat "$tmp/port")"
}

if [ "$1" = cm ]; then
    mine=$WEFT_BUILD/examples/iba_connect theirs=$WEFT_BUILD/examples/ib_cm_connect
    [ -x "$mine" ] && [ -x "$theirs" ] || skip "the connection manager's examples are not built"
    for sides in "$mine $theirs" "$theirs $mine" "$mine $mine"; do
        run "${sides% *}" >"$tmp/port" 2>&1 &
        pid=$!
        wait_word listening
        run "${sides#* }" 10.99.0.1 >"$tmp/client" 2>&1 || fail "client: $(cat "$tmp/client" "$tmp/port")"
        wait $pid || fail "server: $(cat "$tmp/port")"
        grep -q '^received: a line' "$tmp/port" || fail "server: $(cat "$tmp/port")"
    done
    exit
fi

if [ "$1" = port ]; then
    run "$tools/iba_port" >"$tmp/port" 2>&1 &
    pid=$!
    wait_word waiting
    ip link set eth0 down
    wait_word down
    ip link set eth0 up
    wait_word active
    wait $pid || fail "iba_port: $(cat "$tmp/port")"
    exit
fi

kind=$1
peer=ibv_${kind}_pingpong
need "$peer"

# between NAME SERVER CLIENT: both must have moved everything.
between() {
    pair "$1" "$2" "$3 localhost"
    for side in server client; do
        grep -Eq 'usec each|bytes in .* seconds' "$tmp/$1.$side" || pair_failed "$1" "no result in $side"
    done
}

sizes="1 1024 4096 65536"
[ "$kind" != ud ] || sizes="1 256 1024"
for path in "" udp; do
    export WEFT_PATH=$path
    for size in $sizes; do
        between "iba-verbs$path-$size" "$pingpong $kind -s $size -n 300" "$peer -g 0 -s $size -n 300"
        between "verbs-iba$path-$size" "$peer -g 0 -s $size -n 300" "$pingpong $kind -s $size -n 300"
    done
    between "events$path" "$pingpong $kind -e -n 200" "$peer -g 0 -e -n 200"
    between "iba-iba$path" "$pingpong $kind -n 200" "$pingpong $kind -e -n 200"
done
