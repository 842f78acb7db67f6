#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 60
# ibv_asyncwatch sees addresses come and go; the entries of others keep their index, and an address
# that is gone leaves a hole (P51).
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
need ibv_asyncwatch stdbuf
run stdbuf -oL ibv_asyncwatch >"$tmp/watch" 2>&1 &

saw() { # saw COUNT: so many changes of the GID table by now, within 10 seconds
    local i
    for i in $(seq 100); do
        [ "$(grep -ci 'GID' "$tmp/watch")" -ge "$1" ] && return 0
        sleep 0.1
    done
    fail "not $1 changes: $(cat "$tmp/watch")"
}

for i in $(seq 100); do
    grep -q 'async event FD' "$tmp/watch" && break
    sleep 0.1
done
sleep 2 # link-local addresses of the far end settle
before=$(gid_of - fd00:99::1)
n=$(grep -ci GID "$tmp/watch" || true)
ip addr add 10.99.7.7/24 dev eth0
saw $((n + 1))
at=$(gid_of - 10.99.7.7)
n=$(grep -ci GID "$tmp/watch")
ip addr add 10.99.8.8/24 dev eth0
saw $((n + 1))
n=$(grep -ci GID "$tmp/watch")
behind=$(gid_of - 10.99.8.8)
ip addr del 10.99.7.7/24 dev eth0
saw $((n + 1))
[ "$(gid_of - fd00:99::1)" = "$before" ] && [ "$(gid_of - 10.99.8.8)" = "$behind" ] ||
    fail "indexes moved"
! (gid_of - 10.99.7.7) >/dev/null 2>&1 || fail "the address is still there, at $at"
echo "asyncwatch: $(tail -n 1 "$tmp/watch")"
