# SPDX-License-Identifier: BSD-2-Clause
# ucx_perftest on one host (tests/apps) and between two (tests/netns): as Debian has it, with Weft's
# device and no other transport. Set before: address (the server's), server_host, client_host.

need ucx_perftest
port=13337
export UCX_NET_DEVICES=weft0:1 UCX_WARN_UNUSED_ENV_VARS=n

# uses TRANSPORTS TEST SIZE ROUNDS: both sides end well, the client with a row of positive figures.
uses() {
    local args="-f -t $2 -s $3 -n $4 -w $(($4 / 10 + 1)) ${*:5}"
    export UCX_TLS=$1,self
    pair ucx "ucx_perftest $args" "ucx_perftest $args $address"
    figures "$1 $2 -s $3"
}

# transport NAME TEST LAYOUT: the same one level below, without UCX's own protocols.
transport() {
    local args="-f -x $1 -d weft0:1 -t $2 -D $3 -s ${4:-8} -n 500 -w 50"
    pair ucx "ucx_perftest $args" "ucx_perftest $args $address"
    figures "$1 $2 $3"
}

figures() {
    local line
    line=$(awk '$1 ~ /^[0-9]+$/ && NF == 8' "$tmp/ucx.client" | tail -n 1)
    [ -n "$line" ] || pair_failed ucx "no figures: $1"
    ! grep -h ERROR "$tmp/ucx.client" "$tmp/ucx.server" || pair_failed ucx "errors: $1"
    echo "$1: ${line#"${line%%[! ]*}"}"
}

ucx() {
    local t size
    case $1 in
    info)
        run_on "$server_host" ucx_info -d >"$tmp/info" 2>&1
        grep -q 'Memory domain: weft0' "$tmp/info" || fail "ucx_info: $(grep -i -A3 weft "$tmp/info")"
        for t in rc_verbs ud_verbs; do
            grep -q "Transport: $t" "$tmp/info" || fail "ucx_info: no $t"
        done
        grep -q 'Connection manager: rdmacm' "$tmp/info" || fail "ucx_info: no rdmacm"
        ! grep -E 'ERROR|WARN' "$tmp/info" || fail "ucx_info complains"
        grep -q 'atomic_fadd: 64 bit' <(sed -n '/rc_verbs/,$p' "$tmp/info") || fail "no atomics"
        ;;
    small)
        for t in tag_lat tag_bw tag_sync_lat ucp_put_lat ucp_put_bw ucp_get ucp_am_lat ucp_am_bw \
            stream_bw ucp_add ucp_fadd ucp_cswap; do
            uses rc_v $t 8 1000
        done
        for t in tag_lat tag_bw tag_sync_lat ucp_put_lat ucp_put_bw ucp_am_lat ucp_am_bw stream_bw; do
            uses ud_verbs $t 8 1000
        done
        uses ud_verbs ucp_get 8 20
        uses rc_verbs,ud_verbs tag_lat 8 1000
        uses rc_verbs,ud_verbs ucp_get 8 1000
        ;;
    large)
        for t in tag_lat tag_bw ucp_put_bw ucp_get ucp_am_lat ucp_am_bw; do
            for size in 4000 65536 1048576; do
                uses rc_v $t $size 50
            done
            uses rc_v $t 67108864 2
        done
        ;;
    datagrams)
        for t in tag_lat tag_bw ucp_am_lat ucp_am_bw; do
            uses ud_verbs $t 4000 200
            uses ud_verbs $t 1048576 10
        done
        uses ud_verbs tag_bw 67108864 1
        # Between two barriers ucx_perftest's passive side looks once in a millisecond.
        uses ud_verbs ucp_put_bw 65536 5
        uses ud_verbs ucp_get 65536 5
        ;;
    transports)
        for t in am_lat put_lat am_bw put_bw; do
            transport rc_verbs $t short
            transport rc_verbs $t bcopy 4000
            transport rc_verbs $t zcopy 4000
        done
        for t in add_lat fadd cswap add_mr; do
            transport rc_verbs $t short
        done
        transport rc_verbs get bcopy
        transport rc_verbs get zcopy 4000
        for t in am_lat am_bw; do
            transport ud_verbs $t short
            transport ud_verbs $t bcopy 500
            transport ud_verbs $t zcopy 500
        done
        ;;
    esac
}
