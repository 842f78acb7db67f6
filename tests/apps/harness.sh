#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 60
# The harness itself: namespaces come up with the addresses that the other tests use, and go away.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
need ip

[ "$(ip -o link | wc -l)" -ge 3 ] || fail "interfaces: $(ip -o link)"
ip -o addr show dev eth0 | grep -q 'inet6 fe80' || fail "no link-local address"
two_hosts 4300
on A ping -c 1 -W 2 10.98.0.2 >/dev/null 2>&1 || on A python3 - <<'PY' || fail "A does not reach B"
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("10.98.0.2", 9))
s.send(b"x")
PY
[ "$(on B cat /sys/class/net/eth1/mtu)" = 4300 ] || fail "MTU"
