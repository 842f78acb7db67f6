#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: netns
# timeout: 120
# cases: mtu1500-ipv4 mtu1500-ipv6 mtu4300-ipv4 mtu4300-ipv6
# What is on the wire: tshark finds no malformed packet, and every ICRC is right.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/programs.sh"
isolate "$@"
need tshark tcpdump ethtool "$tools/icrc_pcap"
case=${1:-mtu1500-ipv4}
mtu=${case%-*} mtu=${mtu#mtu}
two_hosts "$mtu"
no_offloads
server_host=A client_host=B
case $case in *ipv4) n=10.98.0. ;; *) n=fd00:98:: ;; esac
address=10.98.0.1 sgid=$(gid_of A ${n}1) cgid=$(gid_of B ${n}2)

# exec, so that the signal below reaches tcpdump and not a shell that ignores it.
(within A && exec "${cmd[@]}" tcpdump -U --immediate-mode -Z root -i eth1 -B 65536 -s 0 -w "$tmp/c.pcap" udp port 4791 2>"$tmp/tcpdump") &
dump=$!
for i in $(seq 100); do
    grep -qs listening "$tmp/tcpdump" && break
    sleep 0.05
done

for op in send write read atomic; do
    pair stream "$tools/stream -o $op -g $sgid -s 10001 -n 64" \
        "$tools/stream $address -o $op -g $cgid -s 10001 -n 64"
done
pair stream "$tools/stream -g $sgid -s 8 -n 64 -b" "$tools/stream $address -g $cgid -s 8 -n 64 -b"
pingpong uc -s 5000 -n 50
pingpong ud -s 1000 -n 50
pingpong srq -n 50
measure ib_write_bw -s 100000 -n 10 -q 2
sleep 0.3
kill -TERM $dump
wait $dump || true
grep -q ' 0 packets dropped by kernel' "$tmp/tcpdump" || grep -q '^0 packets dropped' "$tmp/tcpdump" ||
    fail "the capture is not whole: $(cat "$tmp/tcpdump")"

"$tools/icrc_pcap" "$tmp/c.pcap" || fail "ICRC"
# tshark tries RPC on the payload of any SEND and trips over short ones, also those of other devices
# (see tests/data/captures/rc-send_5.pcap).
tshark() { command tshark --disable-protocol rpcordma "$@"; }
fields=$(tshark -r "$tmp/c.pcap" -T fields -e infiniband.bth.opcode -e _ws.malformed 2>/dev/null)
[ "$(awk 'NF == 0' <<<"$fields" | wc -l)" = 0 ] || fail "packets that tshark does not take for RoCEv2"
[ "$(awk -F'\t' '$2 != ""' <<<"$fields" | wc -l)" = 0 ] || fail "malformed: $(tshark -r "$tmp/c.pcap" -Y _ws.malformed 2>/dev/null | head)"
cut -f 1 <<<"$fields" | sort -n | uniq -c | awk '{ print $1 " packets of opcode " $2 }'
[ "$(cut -f 1 <<<"$fields" | sort -u | wc -l)" -ge 15 ] || fail "fewer kinds of packets than were asked for"
