#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 120
# cases: rc uc ud srq many
# The pingpong programs of ibverbs-utils on one host, with the options that they have.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/programs.sh"
isolate "$@"
address=localhost sgid=0 cgid=0

if [ "${1:-rc}" != many ]; then
    pingpongs "${1:-rc}"
    cgid=$(gid_of - 10.99.0.1) sgid=$(gid_of - fd00:99::1)
    pingpong "${1:-rc}" -n 100 # one side by its IPv4 address, the other by its IPv6 address: one host
    exit
fi

# Several at once, on one device.
need ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong
pids=()
n=0
for kind in rc uc ud srq rc rc ud srq; do
    n=$((n + 1))
    ( port=$((18600 + n)) tmp=$tmp/$n
      mkdir "$tmp"
      pingpong $kind -p $port -n 500 -c ) >"$tmp/many.$n" 2>&1 &
    pids+=($!)
done
n=0
for pid in "${pids[@]}"; do
    n=$((n + 1))
    wait "$pid" || { cat "$tmp/many.$n"; fail "number $n of several at once"; }
done
