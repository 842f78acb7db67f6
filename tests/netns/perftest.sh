#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: netns
# timeout: 500
# cases: rc uc ud atomic sizes both events queues inline time
# perftest between two hosts: MTU 1500 over IPv4, MTU 4300 over IPv6.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/programs.sh"
isolate "$@"
two_hosts 1500
server_host=A client_host=B
limit=150

address=10.98.0.1 sgid=$(gid_of A 10.98.0.1) cgid=$(gid_of B 10.98.0.2)
perftests "${1:-rc}"

for h in A B; do
    on $h ip link set eth1 mtu 4300
done
sleep 0.5 # until weftd has seen it, where one is still there
address=10.98.0.1 sgid=$(gid_of A fd00:98::1) cgid=$(gid_of B fd00:98::2)
perftests "${1:-rc}"
