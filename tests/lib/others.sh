# SPDX-License-Identifier: BSD-2-Clause
# Programs that Debian ships, on one host (tests/apps) and between two (tests/netns). Set before:
# address (the server's), sgid, cgid, server_host, client_host; for MPI also ranks.
. "$here/lib/programs.sh"

libfabric() { # libfabric PROVIDER OPTIONS
    need fi_pingpong
    port=47592
    pair fi "fi_pingpong -p $1 ${*:2} -I 200 -c" "fi_pingpong -p $1 ${*:2} -I 200 -c $address"
    [ "$(grep -c '=200' "$tmp/fi.client")" -ge 3 ] || pair_failed fi "no table: $*"
    echo "fi_pingpong $*: $(tail -n 1 "$tmp/fi.client")"
}

# The server stays for all tests.
qperfs() { # qperfs TEST...
    local t i server
    need qperf
    WEFT_LIMIT=100 run_on "$server_host" qperf >"$tmp/qperf.server" 2>&1 </dev/null &
    server=$!
    wait_listen "$server_host" 19765 $server || pair_failed qperf "server does not listen"
    for t in "$@"; do
        # Its server tells the port before it listens there, so the client may be too early.
        for i in 1 2 3 4 5 6; do
            # shellcheck disable=SC2086
            WEFT_LIMIT=20 run_on "$client_host" qperf -t 1 ${qperf_opts:-} "$address" "$t" \
                >"$tmp/qperf.client" 2>&1 && break
            grep -q 'Event rejected' "$tmp/qperf.client" || pair_failed qperf "$t"
        done
        grep -qE '(bw|latency|msg_rate) += +[1-9]' "$tmp/qperf.client" || pair_failed qperf "$t: no figure"
        echo "qperf $t: $(tail -n 1 "$tmp/qperf.client")"
    done
    kill $server 2>/dev/null || true
    ! grep -i fail "$tmp/qperf.server" || fail "qperf server"
}

fios() { # fios VERB
    need fio
    port=8765
    printf '[s]\nioengine=rdma\nport=8765\nbs=64k\nsize=16m\niodepth=8\n' >"$tmp/server.fio"
    printf '[c]\nioengine=rdma\nhostname=%s\nport=8765\nverb=%s\nbs=64k\nsize=16m\niodepth=8\n' \
        "$address" "$1" >"$tmp/client.fio"
    echo rw=read >>"$tmp/server.fio" # what makes it the server, whatever the verb
    echo rw=write >>"$tmp/client.fio"
    local server st=0
    WEFT_LIMIT=60 run_on "$server_host" fio "$tmp/server.fio" >"$tmp/fio.server" 2>&1 </dev/null &
    server=$!
    sleep 2 # it waits for an rdma_cm connection: no socket to look for
    WEFT_LIMIT=60 run_on "$client_host" fio "$tmp/client.fio" >"$tmp/fio.client" 2>&1 || st=$?
    wait $server || st=$?
    [ $st = 0 ] || pair_failed fio "$1: $st"
    ! grep -E 'err= *[1-9]' "$tmp/fio.client" "$tmp/fio.server" || pair_failed fio "$1"
    echo "fio $1: $(grep -E 'bw=|BW=' "$tmp/fio.client" | head -n 1)"
}

others() {
    case $1 in
    libfabric)
        libfabric verbs -e msg
        libfabric 'verbs;ofi_rxm' -e rdm
        libfabric verbs -d weft0-dgram -e dgram
        ;;
    qperf)
        qperf_opts='-cm 1'
        qperfs rc_bw rc_lat rc_bi_bw rc_rdma_read_bw rc_rdma_read_lat rc_rdma_write_bw \
            rc_rdma_write_lat rc_rdma_write_poll_lat rc_compare_swap_mr rc_fetch_add_mr \
            ver_rc_compare_swap ver_rc_fetch_add
        ;;
    fio)
        fios write
        fios read # not "send": fio asks for no RNR retries and overruns its own receiver
        ;;
    xsrq)
        need ibv_xsrq_pingpong
        pair xsrq "ibv_xsrq_pingpong -g $sgid" "ibv_xsrq_pingpong -g $cgid $address"
        grep -q success "$tmp/xsrq.client" || pair_failed xsrq "no success"
        pair xsrq "ibv_xsrq_pingpong -g $sgid -e -s 65536 -n 500" \
            "ibv_xsrq_pingpong -g $cgid -e -s 65536 -n 500 $address"
        ;;
    xrc)
        measure ib_send_bw -c XRC --use-srq
        measure ib_send_lat -c XRC --use-srq
        measure ib_write_bw -c XRC
        measure ib_write_lat -c XRC
        measure ib_read_bw -c XRC
        measure ib_atomic_bw -c XRC
        measure ib_send_bw -c XRC --use-srq -q 4 -s 4096
        ;;
    multicast)
        # perftest's group is an IPv6 one; it refuses to use it from a GID of IPv4.
        measure ib_send_bw -c UD -g -n 500
        measure ib_send_lat -c UD -g
        measure ib_send_bw -c UD -g -s 64 -n 500
        ;;
    esac
}
