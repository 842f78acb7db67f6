#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: interop
# timeout: 240
# serial: yes
# A real Linux rxe as the peer, both sides as server and as client. Needs root and the folder of the
# rxe-peer script: WEFT_PEER_DIR, or ../shared/peers/rxe beside the project.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/programs.sh"
need timeout
[ "$(id -u)" = 0 ] || skip "needs root (QEMU guest on a tap device)"
[ -e "$WEFT_BUILD/lib/libibverbs.so.1" ] || skip "libibverbs.so.1 is not built"
peer_dir=${WEFT_PEER_DIR:-$here/../../shared/peers/rxe}
peer=$peer_dir/rxe-peer
[ -x "$peer" ] || skip "no rxe-peer in $peer_dir"

export RXE_PEER_NETNS=weftrxe$$ RXE_PEER_ACCEL=${RXE_PEER_ACCEL:-tcg}
tmp=$(mktemp -d)
trap '"$peer" stop >/dev/null 2>&1 || true; stop_children; rm -rf "$tmp"' EXIT
"$peer" start >"$tmp/start" 2>&1 || { tail -n 5 "$tmp/start"; skip "the peer does not start here"; }
sanitizer_preload
here_addr=10.77.0.1 there=10.77.0.2
gid=$(gid_of "$RXE_PEER_NETNS" $here_addr)
there_gid=1

guest() {
    "$peer" exec -t 60 "$@"
}

# Until the guest listens on TCP port 18515.
guest_listens() {
    local i
    for i in $(seq 100); do
        guest 'grep -q ":4853 .* 0A " /proc/net/tcp /proc/net/tcp6' 2>/dev/null && return 0
        sleep 0.1
    done
    return 1
}

verdict() { # verdict NAME STATUS...: all zero, and no wrong data
    local name=$1 st
    shift
    for st in "$@"; do
        [ "$st" = 0 ] && ! grep -qi 'invalid data\|failed' "$tmp/here" "$tmp/there" ||
            { cat "$tmp/here" "$tmp/there"; fail "$name: $*"; }
    done
    echo "$name: ok"
}

weft_serves() { # weft_serves PROGRAM GID-OPTION OPTIONS
    local program=$1 flag=$2 st1=0 st2=0
    shift 2
    run_on "$RXE_PEER_NETNS" "$program" "$flag" "$gid" "$@" >"$tmp/here" 2>&1 &
    local pid=$!
    wait_listen "$RXE_PEER_NETNS" 18515 $pid || { cat "$tmp/here"; fail "$program does not listen"; }
    guest "$program $flag $there_gid $* $here_addr" >"$tmp/there" 2>&1 || st1=$?
    wait $pid || st2=$?
    verdict "rxe to Weft: $program $*" $st1 $st2
}

rxe_serves() {
    local program=$1 flag=$2 st1=0 st2=0
    shift 2
    guest "$program $flag $there_gid $*" >"$tmp/there" 2>&1 &
    local pid=$!
    guest_listens || { cat "$tmp/there"; fail "$program does not listen in the guest"; }
    run_on "$RXE_PEER_NETNS" "$program" "$flag" "$gid" "$@" $there >"$tmp/here" 2>&1 || st1=$?
    wait $pid || st2=$?
    verdict "Weft to rxe: $program $*" $st1 $st2
}

# The programs allow half a second for an answer, which an emulated guest on a busy machine does not
# always keep: three tries.
try() {
    local i
    for i in 1 2; do
        ("$@") && return 0
        echo "once more: $*"
        guest "killall $2" >/dev/null 2>&1 || true
    done
    "$@"
}

for direction in weft_serves rxe_serves; do
    try $direction ibv_rc_pingpong -g -c -n 300
    try $direction ibv_rc_pingpong -g -c -n 50 -s 100000
    try $direction ibv_uc_pingpong -g -c -n 100
    try $direction ibv_ud_pingpong -g -c -n 300
    try $direction ibv_srq_pingpong -g -n 100
    try $direction ib_send_bw -x -n 200 -s 16384
    try $direction ib_write_bw -x -n 200 -s 16384
    try $direction ib_read_bw -x -n 200 -s 16384
    try $direction ib_write_lat -x -n 100
    try $direction ib_atomic_lat -x -n 100
    try $direction ib_send_lat -x -n 100 -c UD
done
