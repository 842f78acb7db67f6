#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: netns
# timeout: 60
# The udp link alone: packets of every opcode, alone and segmented from batches, seen on lo. Every ICRC
# is right and tshark finds nothing malformed.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
need ip tshark tcpdump "$tools/udp_sample" "$tools/icrc_pcap"

ip link set lo up
# Segment before lo, not behind the capture.
ip link set lo gso_max_segs 1 || skip "this ip or kernel cannot limit gso_max_segs"
tcpdump -U --immediate-mode -Z root -i lo -B 65536 -s 0 -w "$tmp/c.pcap" udp port 4791 2>"$tmp/tcpdump" &
dump=$!
for i in $(seq 100); do
    grep -qs listening "$tmp/tcpdump" && break
    sleep 0.05
done
sent=$("$tools/udp_sample") || fail "udp_sample"
# On a busy machine the capture is late, and what it has not read when it ends is lost.
for i in $(seq 100); do
    [ "$(tcpdump -r "$tmp/c.pcap" 2>/dev/null | wc -l)" -ge "$sent" ] && break
    sleep 0.1
done
kill -INT $dump
wait $dump || true

"$tools/icrc_pcap" "$tmp/c.pcap" || fail "ICRC"
# tshark tries RPC on any SEND, and trips over payload of five bytes.
tshark() { command tshark --disable-protocol rpcordma "$@"; }
fields=$(tshark -r "$tmp/c.pcap" -T fields -e infiniband.bth.opcode -e _ws.malformed -e ip.id 2>/dev/null)
seen=$(grep -c . <<<"$fields")
[ "$seen" = "$sent" ] || fail "$sent packets sent and $seen seen"
[ "$(awk -F'\t' '$1 == ""' <<<"$fields" | wc -l)" = 0 ] || fail "packets that tshark does not take for RoCEv2"
[ "$(awk -F'\t' '$2 != ""' <<<"$fields" | wc -l)" = 0 ] ||
    fail "malformed: $(tshark -r "$tmp/c.pcap" -Y _ws.malformed 2>/dev/null | head)"
