#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: netns slow
# timeout: 300
# cases: libfabric qperf fio xsrq xrc mpi
# Programs of other projects between two hosts.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
. "$here/lib/others.sh"
two_hosts 1500
address=10.98.0.1 server_host=A client_host=B
sgid=$(gid_of A 10.98.0.1) cgid=$(gid_of B 10.98.0.2)

# Two ranks on each host. mpirun reaches the other one with a "remote shell" of ours.
mpi() {
    need mpicc mpirun
    mpicc -O1 -o "$tmp/exchange" "$here/mpi/exchange.c"
    cat >"$tmp/shell" <<'S'
#!/bin/sh
host=$1
shift
case $host in *98.0.1) ns=A ;; *) ns=B ;; esac
exec ip netns exec $ns sh -c "$*"
S
    chmod +x "$tmp/shell"
    export UCX_NET_DEVICES=weft0:1 UCX_TLS=rc_v,self
    WEFT_LIMIT=120 run_on A mpirun --allow-run-as-root --host 10.98.0.1:2,10.98.0.2:2 -n 4 \
        --mca plm_rsh_agent "$tmp/shell" --mca plm_rsh_no_tree_spawn 1 \
        --mca oob_tcp_if_include eth1 --mca pml ucx --mca btl self -x LD_LIBRARY_PATH -x LD_PRELOAD \
        -x UCX_NET_DEVICES -x UCX_TLS -x XDG_RUNTIME_DIR "$tmp/exchange" >"$tmp/mpi" 2>&1 ||
        fail "$(cat "$tmp/mpi")"
    grep -q '4 ranks, all right' "$tmp/mpi" || fail "$(cat "$tmp/mpi")"
    tail -n 1 "$tmp/mpi"
}

case ${1:-xrc} in
mpi) mpi ;;
*) others "${1:-xrc}" ;;
esac
