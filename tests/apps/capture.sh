#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 240
# cases: shm udp cm live recorder
# Captures: tshark reads all of them as RoCEv2 with no malformed frame, every ICRC is right, and
# writes within the host are there.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
need tshark "$tools/stream" "$tools/icrc_pcap"
gid=$(gid_of - 10.99.0.1)

sound() { # sound FILE: nothing malformed, ICRCs right
    [ -z "$(tshark -r "$1" -Y '_ws.malformed || !infiniband' 2>/dev/null | head -3)" ] ||
        fail "$1: $(tshark -r "$1" -Y '_ws.malformed || !infiniband' 2>/dev/null | head -3)"
    tshark -r "$1" -F pcap -w "$tmp/c.pcap" 2>/dev/null
    "$tools/icrc_pcap" "$tmp/c.pcap" >"$tmp/icrc" || fail "$1: $(cat "$tmp/icrc")"
}

captured() { # captured NAME COMMAND...: server and client in one file
    local name=$1 opts pid
    shift
    rm -f "$tmp/$name.pcapng"
    WEFT_RUN_OPTS="--capture $tmp/$name.pcapng" run "$@" >"$tmp/server" 2>&1 </dev/null &
    pid=$!
    wait_listen - 18515 $pid || fail "$*: $(cat "$tmp/server")"
    WEFT_CAPTURE=$tmp/$name.pcapng run "$@" 10.99.0.1 >"$tmp/client" 2>&1 </dev/null || fail "$*: $(cat "$tmp/client")"
    wait $pid || true
    sound "$tmp/$name.pcapng"
}

case ${1:-shm} in
shm | udp)
    [ "$1" = shm ] || export WEFT_PATH=udp
    for op in send write read atomic; do
        captured $op "$tools/stream" -o $op -g "$gid" -s 10001 -n 40
        tshark -r "$tmp/$op.pcapng" -T fields -e infiniband.bth.opcode 2>/dev/null
    done | sort -n | uniq -c >"$tmp/opcodes"
    cat "$tmp/opcodes"
    [ "$(wc -l <"$tmp/opcodes")" -ge 12 ] || fail "fewer kinds of packets than were asked for"
    captured uc ibv_uc_pingpong -g "$gid" -n 20 -s 3000
    captured ud ibv_ud_pingpong -g "$gid" -n 20
    captured bw ib_write_bw -x "$gid" -n 20 -s 65536
    # Twice each packet would be wrong: both ends write to this file.
    n=$(tshark -r "$tmp/bw.pcapng" -Y 'infiniband.bth.opcode == 6' 2>/dev/null | wc -l)
    { [ "$n" -ge 20 ] && [ "$n" -lt 60 ]; } || fail "ib_write_bw wrote 20 times, the capture shows $n first packets"
    tshark -r "$tmp/bw.pcapng" -T fields -e frame.comment 2>/dev/null >"$tmp/comments"
    grep -q 'ib_write_bw.*QP 0x.*wr_id' "$tmp/comments" || fail "no comments"
    ;;
cm)
    need rping
    WEFT_RUN_OPTS="--explain --capture $tmp/cm.pcapng" run rping -s -a 10.99.0.1 -C 3 >"$tmp/server" 2>&1 </dev/null &
    pid=$!
    for i in $(seq 50); do
        WEFT_CAPTURE=$tmp/cm.pcapng run rping -c -a 10.99.0.1 -C 3 >"$tmp/client" 2>&1 </dev/null && break
        sleep 0.1
    done
    wait $pid || true
    sound "$tmp/cm.pcapng"
    tshark -r "$tmp/cm.pcapng" 2>/dev/null >"$tmp/list"
    for m in ConnectRequest ConnectReply ReadyToUse DisconnectRequest DisconnectReply; do
        grep -q "CM: $m" "$tmp/list" || fail "no $m: $(cat "$tmp/list")"
    done
    ! grep -q '^weft: ' "$tmp/server" || fail "a connection that ends well was explained: $(cat "$tmp/server")"
    ;;
live)
    run ib_send_bw -x "$gid" -D 4 -s 4096 >"$tmp/server" 2>&1 &
    pid=$!
    wait_listen - 18515 $pid
    run ib_send_bw -x "$gid" -D 4 -s 4096 10.99.0.1 >"$tmp/client" 2>&1 &
    client=$!
    sleep 1
    "$weft" capture -w "$tmp/live.pcapng" -d 0.2 2>"$tmp/err" || fail "$(cat "$tmp/err")"
    sleep 0.2
    size=$(stat -c %s "$tmp/live.pcapng")
    [ "$size" -gt 10000 ] || fail "$size bytes only"
    [ -n "$(tshark -r "$tmp/live.pcapng" -c 50 -Y 'infiniband.bth.opcode == 1 || infiniband.bth.opcode == 0' 2>/dev/null)" ] ||
        fail "no sends"
    wait $client || fail "client: $(tail -5 "$tmp/client")"
    wait $pid || true
    st=0
    "$weft" capture -w /nonexistent/x 2>"$tmp/err" || st=$?
    [ $st = 1 ] && [ "$(wc -l <"$tmp/err")" = 1 ] || fail "unwritable file: $st $(cat "$tmp/err")"
    ;;
recorder)
    need "$tools/mistakes"
    WEFT_RUN_OPTS="--capture $tmp/none.pcapng --flight-recorder" run "$tools/mistakes" plain_send
    [ -z "$(tshark -r "$tmp/none.pcapng" 2>/dev/null)" ] || fail "written though nothing failed"
    WEFT_RUN_OPTS="--capture $tmp/some.pcapng --flight-recorder=1M" run "$tools/mistakes" write_past_the_end
    sound "$tmp/some.pcapng"
    [ "$(tshark -r "$tmp/some.pcapng" 2>/dev/null | wc -l)" -ge 2 ] || fail "request and NAK are not there"
    ;;
esac
