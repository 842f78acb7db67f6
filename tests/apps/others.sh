#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app slow
# timeout: 300
# cases: libfabric qperf fio xsrq xrc multicast mpi mpi-one-sided
# Programs of other projects between processes of one host.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
. "$here/lib/others.sh"
address=10.99.0.1 server_host=- client_host=- sgid=0 cgid=0

mpi() { # mpi ARGUMENTS: four ranks, with no transport but Weft's
    need mpicc mpirun
    mpicc -O1 -o "$tmp/exchange" "$here/mpi/exchange.c"
    export UCX_NET_DEVICES=weft0:1 UCX_TLS
    for UCX_TLS in rc_v,self ud_verbs,self; do
        WEFT_LIMIT=120 run mpirun --allow-run-as-root --oversubscribe -n 4 --mca pml ucx \
            --mca osc ucx --mca btl self "$tmp/exchange" "$@" >"$tmp/mpi" 2>&1 || fail "$(cat "$tmp/mpi")"
        grep -q '4 ranks, all right' "$tmp/mpi" || fail "$(cat "$tmp/mpi")"
        echo "$UCX_TLS: $(tail -n 1 "$tmp/mpi")"
    done
}

case ${1:-libfabric} in
mpi) mpi ;;
mpi-one-sided) mpi rma ;;
*) others "${1:-libfabric}" ;;
esac
