#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: netns
# timeout: 120
# cases: tour halo smsg alltoall killed
# uGNI ranks on two hosts: weft run starts them here, and each goes to the host of its node.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
examples=$WEFT_BUILD/examples/gni
need "$examples/tour"
two_hosts 1500
cat >$tmp/rank <<'END'
#!/bin/sh
if [ $WEFT_RANK -lt $WEFT_PPN ]; then host=A; else host=B; fi
exec ip netns exec $host "$@"
END
chmod +x $tmp/rank

ranks() { # ranks N PROGRAM...: half of them on each host
    timeout -k 2 60 env ${sanitizer_lib:+LD_PRELOAD=$sanitizer_lib} "$weft" run -n "$1" \
        --ppn $(($1 / 2)) -- $tmp/rank "${@:2}"
}

case ${1:-tour} in
tour) ranks 4 "$examples/tour" ;;
halo) ranks 4 "$examples/halo" ;;
smsg) ranks 2 "$examples/smsg_pingpong" 500 ;;
alltoall) ranks 8 "$examples/alltoall" ;;
killed)
    # Rank 1 ends in the middle of an endless ping-pong; rank 0 learns it and fails.
    ranks 2 "$examples/smsg_pingpong" 1000000000 >$tmp/out 2>&1 &
    job=$!
    for i in $(seq 100); do
        [ "$(pgrep -cf "^$examples/smsg_pingpong 1000000000")" = 2 ] && break
        sleep 0.1
    done
    sleep 2
    pid=$(pgrep -f "^$examples/smsg_pingpong 1000000000" | tail -1) || fail "the job ended early: $(cat $tmp/out)"
    kill -9 "$pid"
    wait $job && fail "the job ended well" || true
    grep -q "Killed" $tmp/out || fail "who was killed is not told: $(cat $tmp/out)"
    grep -Eq "peer process died|INVALID_STATE|peer" $tmp/out || fail "the peer's death is not told: $(cat $tmp/out)"
    ;;
esac
