#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: netns
# timeout: 120
# cases: ipv4 ipv6
# UD multicast (P43): members on both hosts get each datagram once, with the group's address in the
# GRH; others get none, nor does who left.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
two_hosts 1500
group=$tools/verbs_group
case ${1:-ipv4} in
ipv4) a=10.98.0.1 b=10.98.0.2 g=239.1.2.3 ;;
ipv6) a=fd00:98::1 b=fd00:98::2 g=ff0e::1:2:3 ;;
esac

member() { # member NAME HOST ADDRESS HOW
    run_on "$2" "$group" "$3" "$g" "$4" 30 >"$tmp/$1" 2>&1 &
}

member a1 A "$a" listen
member a2 A "$a" twice
member b1 B "$b" listen
member b2 B "$b" mute
for m in a1 a2 b1 b2; do
    for i in $(seq 200); do
        grep -q ready "$tmp/$m" && break
        sleep 0.05
    done
    grep -q ready "$tmp/$m" || fail "$m: $(cat "$tmp/$m")"
done
sleep 0.5 # until the kernels have joined

run_on A "$group" "$a" "$g" send one two
run_on B "$group" "$b" "$g" send three leave
sleep 1
run_on B "$group" "$b" "$g" send four end
sleep 1
for m in a1 b1; do
    want=$(printf 'ready\none from %s\ntwo from %s\nthree from %s\nleave from %s' $a $a $b $b)
    [ "$(cat "$tmp/$m")" = "$want" ] || fail "$m got: $(cat "$tmp/$m"), not $want"
done
[ "$(cat "$tmp/b2")" = ready ] || fail "who is no member got: $(cat "$tmp/b2")"
# Attached twice: one detach leaves the group all the same, or not, but nothing comes twice.
[ -z "$(sort "$tmp/a2" | uniq -d)" ] || fail "twice: $(cat "$tmp/a2")"
grep -q "three from $b" "$tmp/a2" || fail "attached twice: $(cat "$tmp/a2")"
echo "multicast $1: right"
