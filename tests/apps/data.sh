#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 120
# cases: send write read atomic events
# Every byte checked, on one host: sizes around the limits of cells and areas, one way and both.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
case=${1:-send}
more=
op=$case
[ "$case" != events ] || { op=send more=-e; }
sizes="8 24 25 63 64 65 1000 4096 4097 32768 65535 262144 1048577"
[ "$op" != atomic ] || sizes=8

for size in $sizes; do
    n=$((size > 100000 ? 64 : 1000))
    for both in "" -b; do
        [ -z "$both" ] || [ "$op" = send ] || continue
        pair stream "$tools/stream -o $op -s $size -n $n $both $more" \
            "$tools/stream localhost -o $op -s $size -n $n $both $more"
    done
done
pair stream "$tools/stream -o $op -s 64 -n 3000 -d 200 $more" \
    "$tools/stream localhost -o $op -s 64 -n 3000 -d 200 $more"
