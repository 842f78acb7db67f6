#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 120
# weft run -n, PMI over PMIx, PMI alone, and what the death of a rank does.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
examples=$WEFT_BUILD/examples/gni
need "$examples/tour"
export WEFT_GNI_ONE_HOST=1 LD_LIBRARY_PATH=$WEFT_BUILD/lib

expect() { # expect STATUS ARGS...: of weft run
    local want=$1 st=0
    shift
    timeout -k 2 60 "$weft" run "$@" >$tmp/out 2>$tmp/err || st=$?
    [ $st = "$want" ] || fail "weft run $*: status $st, not $want: $(cat $tmp/err)"
}

expect 0 -n 3 -- "$examples/tour"
[ "$(grep -c "are right" $tmp/out)" = 3 ] || fail "tour: $(cat $tmp/out)"
expect 0 -n 4 --ppn 2 -- sh -c 'echo $WEFT_RANK/$WEFT_SIZE/$WEFT_PPN'
[ "$(sort $tmp/out | tr '\n' ' ')" = "0/4/2 1/4/2 2/4/2 3/4/2 " ] || fail "ranks: $(cat $tmp/out)"
expect 5 -n 2 -- sh -c 'exit $((WEFT_RANK * 5))'
expect 127 -n 2 -- no-such-program
expect 2 -n 0 -- true
expect 143 -n 2 -- sh -c 'kill -TERM $$'
# One rank is gone before the first collective call: the others are told, not left to wait.
expect 1 -n 3 -- sh -c '[ $WEFT_RANK = 1 ] || exec "$0"; exit 1' "$examples/tour"

"$examples/tour" >$tmp/out
grep -q "rank 0 of 1" $tmp/out || fail "alone: $(cat $tmp/out)"

if command -v mpirun >/dev/null; then
    timeout -k 2 60 mpirun --allow-run-as-root --oversubscribe -n 3 "$examples/halo" >$tmp/out 2>&1 ||
        fail "mpirun: $(cat $tmp/out)"
    [ "$(grep -c "of 3: 50 steps, 0 cells wrong" $tmp/out)" = 3 ] || fail "mpirun: $(cat $tmp/out)"
fi
