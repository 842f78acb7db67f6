# SPDX-License-Identifier: BSD-2-Clause
# Which programs run with which options: the same lists on one host (tests/apps) and between two
# (tests/netns). Set before: address (the server's), sgid and cgid (GID indexes of both sides),
# server_host and client_host; see pair in lib.sh.

pingpong() { # pingpong rc|uc|ud|srq OPTIONS
    local program=ibv_$1_pingpong
    need "$program"
    pair "$program" "$program -g $sgid ${*:2}" "$program -g $cgid ${*:2} $address"
    for side in server client; do
        grep -q 'bytes in .* seconds' "$tmp/$program.$side" || fail "$program ${*:2}: no result in $side"
        grep -qi 'invalid data' "$tmp/$program.$side" && fail "$program ${*:2}: $(cat "$tmp/$program.$side")"
    done
    return 0
}

pingpongs() {
    local size
    case $1 in
    ud)
        pingpong ud -n 2000
        pingpong ud -c
        pingpong ud -e
        pingpong ud -s 1024 -r 100 -c
        pingpong ud -s 64 -e -c -n 300
        ;;
    *)
        pingpong "$1" -n 2000
        pingpong "$1" -c
        pingpong "$1" -e
        pingpong "$1" -e -c -n 300
        pingpong "$1" -r 20 -c
        for size in 1 63 1024 1025 4097 65536; do
            pingpong "$1" -s $size -c -n 200
        done
        pingpong "$1" -s 1048576 -c -n 20 -r 20
        pingpong "$1" -m 256 -s 5000 -c -n 200
        ;;
    esac
    if [ "$1" = rc ]; then
        pingpong rc -N
        pingpong rc -N -e -c
        pingpong rc -t
    fi
}

# measure PROGRAM OPTIONS: status 0 on both sides and a row of positive figures. For options that
# one side only has: server_only, client_only.
measure() {
    local program=$1 line
    shift
    need "$program"
    pair "$program" "$program -x $sgid $* ${server_only:-}" \
        "$program -x $cgid $* ${client_only:-} $address"
    line=$(awk '$1 ~ /^[0-9]+$/ && $2 ~ /^[0-9]+$/ && NF >= 4' "$tmp/$program.client" | tail -n 1)
    [ -n "$line" ] || pair_failed "$program" "no figures: $program $*"
    # shellcheck disable=SC2086
    set -- "$program $*" $line
    awk -v a="$5" 'BEGIN { exit !(a > 0) }' || pair_failed "$program" "figures are zero: $line"
    echo "$1: ${line#"${line%%[! ]*}"}"
}

perftests() {
    case $1 in
    rc)
        measure ib_send_bw
        measure ib_send_lat
        measure ib_write_bw
        measure ib_write_lat
        measure ib_read_bw
        measure ib_read_lat
        ;;
    uc)
        measure ib_send_bw -c UC -n 500
        measure ib_send_lat -c UC
        measure ib_write_bw -c UC
        measure ib_write_lat -c UC
        ;;
    ud)
        measure ib_send_bw -c UD -n 500
        measure ib_send_lat -c UD
        measure ib_send_lat -c UD -s 1000
        measure ib_send_bw -c UD -b -n 500
        ;;
    xrc)
        measure ib_send_bw -c XRC
        measure ib_send_lat -c XRC
        measure ib_write_bw -c XRC -q 2
        measure ib_read_lat -c XRC
        measure ib_atomic_bw -c XRC
        pair ibv_xsrq_pingpong "ibv_xsrq_pingpong -g $sgid" "ibv_xsrq_pingpong -g $cgid $address"
        pair ibv_xsrq_pingpong "ibv_xsrq_pingpong -g $sgid -e" "ibv_xsrq_pingpong -g $cgid -e $address"
        ;;
    atomic)
        measure ib_atomic_bw
        measure ib_atomic_lat
        measure ib_atomic_bw -A CMP_AND_SWAP
        measure ib_atomic_lat -A CMP_AND_SWAP
        measure ib_atomic_bw -q 4 -o 2
        ;;
    sizes)
        measure ib_send_bw -a -n 20
        measure ib_write_bw -a -n 50
        measure ib_read_bw -a -n 50
        measure ib_send_lat -a -n 50
        measure ib_write_lat -a -n 50
        measure ib_read_lat -a -n 50
        ;;
    both)
        measure ib_send_bw -b
        measure ib_write_bw -b
        measure ib_read_bw -b
        measure ib_atomic_bw -b
        measure ib_send_bw -b -a -n 20
        ;;
    events)
        measure ib_send_bw -e
        measure ib_send_lat -e
        measure ib_read_bw -e
        measure ib_read_lat -e
        measure ib_atomic_lat -e
        measure ib_send_bw -c UD -e -n 500
        ;;
    queues)
        measure ib_send_bw -q 16 -s 4096
        measure ib_write_bw -q 16 -s 4096
        measure ib_read_bw -q 16 -s 4096
        measure ib_send_bw --use-srq
        measure ib_send_bw --use-srq -q 16 -s 4096
        measure ib_send_bw -c UD --use-srq -n 500
        measure ib_send_bw -t 8 -r 16
        measure ib_write_bw -t 1
        measure ib_send_bw -l 16 -n 1600
        measure ib_write_bw -Q 1 -n 500
        ;;
    inline)
        measure ib_send_lat -I 64 -s 32
        measure ib_write_lat -I 128 -s 128
        measure ib_send_bw -I 64 -s 64
        measure ib_send_lat -I 0
        measure ib_write_bw -I 100 -s 100 -q 4
        measure ib_send_bw --use_old_post_send -s 64
        ;;
    time)
        measure ib_write_bw -D 2
        measure ib_send_bw -D 2 -s 1024
        measure ib_send_lat -D 2
        measure ib_read_bw -D 2 -b
        measure ib_write_lat -n 5
        measure ib_send_bw -n 100000 -s 2
        ;;
    esac
}
