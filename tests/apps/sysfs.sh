#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 60
# The class folders and device nodes that UCX, NCCL, libfabric, pyverbs and perftest look at.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
need python3 ls

[ "$(run cat /sys/class/infiniband/weft0/node_type)" = "1: CA" ] || fail "node_type"
[ "$(run cat /sys/class/infiniband_verbs/uverbs0/ibdev)" = weft0 ] || fail "ibdev"
[ "$(run cat /sys/class/infiniband/weft0/ports/1/state)" = "4: ACTIVE" ] || fail "port state"
[ "$(run cat /sys/class/infiniband/weft0/ports/1/link_layer)" = Ethernet ] || fail "link layer"
[ "$(run ls /sys/class/infiniband/weft0/device/net)" = eth0 ] || fail "device/net"
guid=$(run ibv_devinfo -v | awk '/node_guid/ { print $2 }')
[ "$(run cat /sys/class/infiniband/weft0/node_guid)" = "$guid" ] || fail "node_guid"
run ls -lR /sys/class/infiniband/ /sys/class/infiniband_verbs /dev/infiniband >/dev/null

index=$(gid_of - 10.99.0.1)
gids=/sys/class/infiniband/weft0/ports/1
[ "$(run cat $gids/gids/$index)" = 0000:0000:0000:0000:0000:ffff:0a63:0001 ] || fail "GID of 10.99.0.1"
[ "$(run cat $gids/gid_attrs/types/$index)" = "RoCE v2" ] || fail "GID type"
[ "$(run cat $gids/gid_attrs/ndevs/$index)" = eth0 ] || fail "GID netdev"

run python3 - <<'PY' || fail "calls of Python"
import os, stat
node = os.stat("/dev/infiniband/uverbs0")
assert stat.S_ISCHR(node.st_mode)
assert os.access("/dev/infiniband/uverbs0", os.R_OK | os.W_OK)
real = os.path.realpath("/sys/class/infiniband/weft0/device")
assert real == "/sys/devices/virtual/weft/weft0", real
fd = os.open("/sys/class/infiniband", os.O_RDONLY | os.O_DIRECTORY)
inner = os.open("weft0/ports/1/pkeys/0", os.O_RDONLY, dir_fd=fd)
assert os.read(inner, 10) == b"0xffff\n"
assert os.listdir("/sys/class/infiniband") == ["weft0"]
assert not os.path.exists("/sys/class/infiniband/weft1")
assert os.path.exists("/sys/class/net/eth0/mtu")
PY

# An address that goes leaves a hole; one that comes is seen.
ip addr del 10.99.0.1/24 dev eth0
ip addr add 10.99.0.7/24 dev eth0
sleep 1.2
[ "$(run cat $gids/gids/$(gid_of - 10.99.0.7))" = 0000:0000:0000:0000:0000:ffff:0a63:0007 ] ||
    fail "GID of the new address"
run cat $gids/gids/* | grep -q 0a63:0001 && fail "the old address is still there"

# Without Weft the system is as it was.
[ ! -e /dev/infiniband/uverbs0 ] || ls -l /dev/infiniband/uverbs0
