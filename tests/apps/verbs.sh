#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 240
# cases: arbel_ring limits probes probes-udp memory unload
# What the verbs library answers, in one process: tests/verbs/CASE.c.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
case $1 in
probes-udp)
    export WEFT_PATH=udp
    run "$tools/verbs_probes"
    ;;
memory) # an idle QP with default depths takes less than 16 KB
    run "$tools/qp_memory" 10000 | tee "$tmp/memory"
    awk '$1 == "qp" { n = $2 } END { exit !(n > 0 && n < 16384) }' "$tmp/memory" || fail "QPs are too large"
    ;;
*) run "$tools/verbs_$1" ;;
esac
