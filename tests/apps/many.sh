#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app slow
# timeout: 300
# 200 processes on one host at once: 100 pairs, every byte checked.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
pairs=${WEFT_PAIRS:-100}
limit=200
pids=()
for i in $(seq "$pairs"); do
    ( port=$((20000 + i)) tmp=$tmp/$i
      mkdir "$tmp"
      pair stream "$tools/stream -e -b -s 3000 -n 300 -T 150 -p $port" \
          "$tools/stream localhost -e -b -s 3000 -n 300 -T 150 -p $port" ) >"$tmp/$i.log" 2>&1 &
    pids+=($!)
done
i=0
for pid in "${pids[@]}"; do
    i=$((i + 1))
    wait "$pid" || { cat "$tmp/$i.log"; fail "pair $i"; }
done
# And all alive at one time.
for i in $(seq $((2 * pairs))); do
    run "$tools/stream" -p $((21000 + i)) >"$tmp/idle.$i" 2>&1 &
done
for k in $(seq 300); do
    [ "$(pgrep -fc "$tools/stream -p")" -lt $((2 * pairs)) ] || break
    sleep 0.1
done
sleep 1
! grep -h . "$tmp"/idle.* | sort | uniq -c || fail "of $((2 * pairs)) processes some do not live"
