#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: netns
# timeout: 120
# The connection manager's datagrams as they stand on the wire, read by tshark: every kind of
# message, none malformed, service ids, addresses and reasons where they belong.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/rdmacm.sh"
isolate "$@"
need tshark tcpdump udaddy rping "$WEFT_BUILD/examples/ib_cm_altpath"
two_hosts 1500
on A ip addr add 10.98.0.11/24 dev eth1
server_host=A client_host=B

ip netns exec A tcpdump -U -Z root -i eth1 -B 65536 -s 0 -w "$tmp/c.pcap" udp port 4791 2>"$tmp/tcpdump" &
dump=$!
wait_for "$tmp/tcpdump" listening

cm_pair rping "rping -s -a 10.98.0.1 -C 2" "rping -c -a 10.98.0.1 -C 2"
cm_pair udaddy udaddy "udaddy -s 10.98.0.1"
for e in altpath:10.98.0.1:10.98.0.11 reject:10.98.0.1; do
    name=${e%%:*} args=${e#*:}
    WEFT_LIMIT=40 run_on A "$WEFT_BUILD/examples/ib_cm_$name" >"$tmp/$name.server" 2>&1 &
    pid=$!
    wait_for "$tmp/$name.server" listening
    # shellcheck disable=SC2086
    WEFT_LIMIT=40 run_on B "$WEFT_BUILD/examples/ib_cm_$name" ${args//:/ } >"$tmp/$name.client" 2>&1 ||
        pair_failed "$name" client
    wait $pid || pair_failed "$name" server
done
sleep 0.5
kill $dump
wait $dump || true

shark() {
    tshark -r "$tmp/c.pcap" "$@" 2>/dev/null
}
attributes=$(shark -Y infiniband.mad -T fields -e infiniband.mad.attributeid | sort | uniq -c)
echo "$attributes"
for a in 0x0010 0x0012 0x0013 0x0014 0x0015 0x0016 0x0017 0x0018 0x0019 0x001a; do
    grep -q "$a" <<<"$attributes" || fail "no message with attribute $a"
done
[ -z "$(shark -Y 'infiniband.mad && _ws.malformed')" ] || fail "malformed datagrams"
[ -z "$(shark -Y 'infiniband.mad && infiniband.mad.mgmtclass != 7')" ] || fail "another class"
shark -Y 'infiniband.cm.req.serviceid.dport == 7174 || infiniband.cm.req.ip_cm.sip4 == 10.98.0.2' |
    grep -q . || fail "no REQ with an IP header from 10.98.0.2"
for reason in 8 28; do
    shark -Y "infiniband.cm.rej.reason == $reason" | grep -q . || fail "no REJ with reason $reason"
done
# The ids of each REP are those of the RTU that answers it, the other way round.
shark -Y infiniband.cm.rep -T fields -e infiniband.cm.rep -e infiniband.cm.rep.remotecommid |
    sort -u >"$tmp/reps"
shark -Y infiniband.cm.rtu.localcommid -T fields -e infiniband.cm.rtu.remotecommid \
    -e infiniband.cm.rtu.localcommid | sort -u >"$tmp/rtus"
[ -s "$tmp/reps" ] && diff "$tmp/reps" "$tmp/rtus" || fail "REPs and RTUs do not match"
