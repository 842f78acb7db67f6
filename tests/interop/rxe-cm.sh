#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: interop
# timeout: 400
# serial: yes
# The connection manager of Linux (ib_cm, rdma_cm over rxe) as the peer: connects, datagram
# resolution, rejects and disconnects begun on each side. Needs what rxe.sh needs.
. "$(dirname "$0")/../lib/lib.sh"
need timeout rping ucmatose udaddy rdma_client
[ "$(id -u)" = 0 ] || skip "needs root (QEMU guest on a tap device)"
[ -e "$WEFT_BUILD/lib/libibverbs.so.1" ] || skip "libibverbs.so.1 is not built"
peer_dir=${WEFT_PEER_DIR:-$here/../../shared/peers/rxe}
peer=$peer_dir/rxe-peer
[ -x "$peer" ] || skip "no rxe-peer in $peer_dir"

tmp=$(mktemp -d)
if [ -n "${WEFT_PEER_RUNNING:-}" ]; then # a set of guests that is there already
    export RXE_PEER_NETNS=$WEFT_PEER_RUNNING
    trap 'stop_children; rm -rf "$tmp"' EXIT
else
    export RXE_PEER_NETNS=weftcm$$ RXE_PEER_ACCEL=${RXE_PEER_ACCEL:-tcg}
    trap '"$peer" stop >/dev/null 2>&1 || true; stop_children; rm -rf "$tmp"' EXIT
    for i in 1 2 3; do
        "$peer" start >"$tmp/start" 2>&1 && break
        [ $i != 3 ] || { tail -n 5 "$tmp/start"; skip "the peer does not start here"; }
    done
fi
sanitizer_preload
us=10.77.0.1 them=10.77.0.2
export WEFT_LINGER=20

guest() {
    "$peer" exec -t 60 "$@"
}

verdict() { # verdict NAME STATUS...: all zero
    local name=$1 st
    shift
    for st in "$@"; do
        [ "$st" = 0 ] || { tail -n 20 "$tmp/here" "$tmp/there"; fail "$name: $*"; }
    done
    echo "$name: ok"
}

weft_serves() { # weft_serves "SERVER" "CLIENT"
    local st1=0 st2=0
    # shellcheck disable=SC2086
    run_on "$RXE_PEER_NETNS" $1 >"$tmp/here" 2>&1 &
    local pid=$!
    sleep 1
    guest "$2" >"$tmp/there" 2>&1 || st1=$?
    wait $pid || st2=$?
    verdict "Linux to Weft: $2" $st1 $st2
}

linux_serves() {
    local st1=0 st2=0
    guest "$1" >"$tmp/there" 2>&1 &
    local pid=$! i
    for i in $(seq 60); do
        guest 'rdma res show cm_id' 2>/dev/null | grep -q 'state LISTEN' && break
        sleep 0.2
    done
    # shellcheck disable=SC2086
    run_on "$RXE_PEER_NETNS" $2 >"$tmp/here" 2>&1 || st1=$?
    wait $pid || st2=$?
    verdict "Weft to Linux: $2" $st1 $st2
}

refused() { # refused NAME OUTPUT
    grep -qi 'refused\|rejected\|event error' <<<"$2" || fail "$1: $2"
    echo "$1: ok"
}

weft_serves "rping -s -a $us -v -C 5" "rping -c -a $us -v -V -C 5"
linux_serves "rping -s -a $them -v -C 5" "rping -c -a $them -v -V -C 5"
weft_serves "ucmatose -c 10" "ucmatose -s $us -c 10"
linux_serves "ucmatose -c 10" "ucmatose -s $them -c 10"
weft_serves "udaddy -c 2" "udaddy -s $us -c 2"
linux_serves "udaddy -c 2" "udaddy -s $them -c 2"
weft_serves "rdma_server" "rdma_client -s $us"
linux_serves "rdma_server" "rdma_client -s $them"
weft_serves "rstream -T r -I 20 -S 1000 -C 5" "rstream -s $us -T r -I 20 -S 1000 -C 5"
linux_serves "rstream -T r -I 20 -S 1000 -C 5" "rstream -s $them -T r -I 20 -S 1000 -C 5"
weft_serves "ib_write_lat -R -n 100" "sleep 2; ib_write_lat -R -n 100 $us"
refused "Linux to Weft, nobody listens" "$(guest "rdma_client -s $us -p 9999" 2>&1)"
refused "Weft to Linux, nobody listens" \
    "$(run_on "$RXE_PEER_NETNS" rdma_client -s $them -p 9999 2>&1)"
