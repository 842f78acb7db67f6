#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: netns
# timeout: 200
# cases: drop dup reorder corrupt all
# Loss, duplication, reordering and corruption on the wire: data stays right and runs end.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
two_hosts 1500
server_host=A client_host=B
limit=100
case=${1:-all}
case $case in
all) faults=drop=0.01,dup=0.01,reorder=0.01,corrupt=0.01 ;;
*) faults=$case=0.01 ;;
esac

for n in 10.98.0. fd00:98::; do
    sgid=$(gid_of A ${n}1) cgid=$(gid_of B ${n}2)
    for seed in 1 2; do
        export WEFT_UDP_FAULTS=$faults,seed=$seed
        for op in "send -b" write read atomic; do
            pair stream "$tools/stream -o $op -g $sgid -s 20000 -n 800 -T 60" \
                "$tools/stream 10.98.0.1 -o $op -g $cgid -s 20000 -n 800 -T 60"
            echo "$WEFT_UDP_FAULTS: $op: $(tail -n 1 "$tmp/stream.client")"
        done
    done
done
