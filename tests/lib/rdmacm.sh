# SPDX-License-Identifier: BSD-2-Clause
# Programs over the system's librdmacm, for one host (tests/apps) and two (tests/netns). Set before:
# address, address6 (the server's), server_host and client_host ("-": here).

# cm_pair NAME "SERVER" "CLIENT": both under weft run; both must end well. A server that goes on for
# ever is stopped when the client is done: forever=1.
cm_pair() {
    local name=$1 st=0 pid i
    # shellcheck disable=SC2086
    WEFT_LIMIT=${limit:-60} run_on "${server_host:--}" $2 >"$tmp/$name.server" 2>&1 </dev/null &
    pid=$!
    sleep "${settle:-0.7}" # rdma_cm's ports show nowhere from outside
    for i in 1 2 3 4 5 6; do
        st=0
        # shellcheck disable=SC2086
        WEFT_LIMIT=${limit:-60} run_on "${client_host:--}" $3 >"$tmp/$name.client" 2>&1 </dev/null ||
            st=$?
        # Nobody listens yet, on a busy machine.
        grep -q 'REJECTED; error: 8\.' "$tmp/$name.client" || break
        sleep 2
    done
    [ $st = 0 ] || pair_failed "$name" "client ended with $st: $3"
    if [ "${forever:-}" = 1 ]; then
        kill $pid 2>/dev/null || true
        wait $pid 2>/dev/null || true
    else
        wait $pid || st=$?
        [ $st = 0 ] || pair_failed "$name" "server ended with $st: $2"
    fi
    echo "ok $name"
}

cm_rping() {
    need rping
    cm_pair rping "rping -s -a $address -v -C 10" "rping -c -a $address -v -V -C 10"
    cm_pair rping-size "rping -s -a $address -C 5 -S 4000" "rping -c -a $address -V -C 5 -S 4000"
    cm_pair rping-ipv6 "rping -s -a $address6 -C 10" "rping -c -a $address6 -V -C 10"
    forever=1 cm_pair rping-persistent "rping -s -P -a $address" "rping -c -a $address -V -C 10"
}

cm_ucmatose() {
    need ucmatose
    cm_pair ucmatose "ucmatose -c 100" "ucmatose -s $address -c 100"
    cm_pair ucmatose-migrate "ucmatose -m -c 50" "ucmatose -m -s $address -c 50"
    cm_pair ucmatose-ipv6 "ucmatose -f ip6 -b $address6" "ucmatose -f ip6 -s $address6"
    cm_pair ucmatose-data "ucmatose -C 20 -S 4096" "ucmatose -s $address -C 20 -S 4096"
}

cm_datagram() {
    need udaddy udpong mckey
    cm_pair udaddy "udaddy -c 10" "udaddy -s $address -c 10"
    forever=1 cm_pair udpong "udpong -b $address -C 100" "udpong -s $address -C 100 -S 256"
    cm_pair mckey "mckey -m 239.1.1.1 -b $address" "mckey -m 239.1.1.1 -b $client_address -s"
}

cm_ep() {
    need rdma_server rdma_client rdma_xserver rdma_xclient
    cm_pair rdma_server rdma_server "rdma_client -s $address"
    cm_pair xserver-rc "rdma_xserver -c r" "rdma_xclient -s $address -c r"
    cm_pair xserver-xrc "rdma_xserver -c x" "rdma_xclient -s $address -c x"
}

cm_rsocket() {
    need rstream riostream rcopy
    local t
    for t in r b n v s f; do
        cm_pair rstream-$t "rstream -T $t -I 100 -S 4000 -C 10" \
            "rstream -s $address -T $t -I 100 -S 4000 -C 10"
    done
    cm_pair riostream "riostream -I 100 -S 4000 -C 10" "riostream -s $address -I 100 -S 4000 -C 10"
    head -c 3000000 /dev/urandom >"$tmp/from"
    forever=1 cm_pair rcopy rcopy "rcopy $tmp/from $address:$tmp/to"
    cmp "$tmp/from" "$tmp/to" || fail "rcopy: the copy differs"
}

# WEFT_CONNECTIONS: how many at once; WEFT_CYCLES: connects and disconnects, one after the other.
cm_many() {
    need cmtime "$tools/cmload"
    forever=1 limit=100 cm_pair cmtime "cmtime -c 1000" "cmtime -s $address -c 1000"
    tail -n 3 "$tmp/cmtime.client"
    forever=1 limit=200 cm_pair cmload "$tools/cmload -s $address" \
        "$tools/cmload $address -n ${WEFT_CONNECTIONS:-1000} -k ${WEFT_CYCLES:-1000}"
    cat "$tmp/cmload.client"
}

# perftest measures the CPU's clock before it listens.
cm_perftest() {
    need ib_write_bw ib_read_lat ib_send_bw ib_send_lat ib_atomic_lat
    local settle=2
    cm_pair write_bw "ib_write_bw -R -n 500" "ib_write_bw -R -n 500 $address"
    cm_pair read_lat "ib_read_lat -R -n 500" "ib_read_lat -R -n 500 $address"
    cm_pair send_bw "ib_send_bw -R -n 500" "ib_send_bw -R -n 500 $address"
    cm_pair send_ud "ib_send_lat -R -c UD -n 500" "ib_send_lat -R -c UD -n 500 $address"
    cm_pair atomic "ib_atomic_lat -R -n 500" "ib_atomic_lat -R -n 500 $address"
}

# Nobody there, and somebody who says no.
cm_refusal() {
    need rdma_client ibv_devinfo
    local out
    # On a host where nobody has used Weft for a while, nobody could refuse.
    run_on "$server_host" ibv_devinfo >/dev/null
    out=$(WEFT_LIMIT=20 run_on "$client_host" rdma_client -s "$address" -p 9999 2>&1) &&
        fail "connected to nobody"
    grep -q 'refused' <<<"$out" || fail "no listener: $out"
    echo "ok nobody listens"
}

# A server that is killed: the client hears of it at once, and the port is free.
cm_kill() {
    need "$tools/cmload" rping
    local pid before took i
    for i in 1 2 3; do
        WEFT_LIMIT=60 run_on "$server_host" "$tools/cmload" -s "$address" >"$tmp/kill.server" 2>&1 &
        wait_for "$tmp/kill.server" listening
        WEFT_LIMIT=60 run_on "$client_host" "$tools/cmload" "$address" -w >"$tmp/kill.client" 2>&1 &
        pid=$!
        wait_for "$tmp/kill.client" '^connected'
        before=$(date +%s%N)
        pkill -9 -f "^$tools/cmload -s" || fail "the server is not there: $(cat "$tmp/kill.server")"
        wait $pid || fail "the client failed: $(cat "$tmp/kill.client")"
        took=$((($(date +%s%N) - before) / 1000000))
        [ $took -lt 2000 ] || fail "the client heard of it after $took ms"
        echo "ok killed server: the client heard of it within $took ms"
    done
    cm_pair rping-again "rping -s -a $address -C 3" "rping -c -a $address -C 3"
}

wait_for() { # FILE PATTERN: 20 seconds
    local i
    for i in $(seq 400); do
        grep -q "$2" "$1" 2>/dev/null && return 0
        sleep 0.05
    done
    fail "no '$2' in $1: $(cat "$1")"
}
