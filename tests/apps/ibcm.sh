#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 120
# cases: connect reject altpath sidr rules
# The examples of <rdma/ib_cm.h>, between two processes and between two hosts.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/rdmacm.sh"
isolate "$@"
case=${1:-connect}
if [ "$case" = rules ]; then
    need "$tools/ibcm_rules"
    WEFT_LIMIT=60 run "$tools/ibcm_rules" 10.99.0.1
    exit 0
fi
program=$WEFT_BUILD/examples/ib_cm_$case
need "$program"
ip addr add 10.99.0.2/24 dev eth0

both() { # HOST HOST ADDRESS...: server, client
    WEFT_LIMIT=40 run_on "$1" "$program" >"$tmp/server" 2>&1 &
    local pid=$!
    wait_for "$tmp/server" listening
    WEFT_LIMIT=40 run_on "$2" "$program" "${@:3}" >"$tmp/client" 2>&1 ||
        fail "client: $(cat "$tmp/client") server: $(cat "$tmp/server")"
    wait $pid || fail "server: $(cat "$tmp/server")"
    cat "$tmp/client" "$tmp/server"
}

addresses() {
    case $case in
    altpath) echo "$1" "$2" ;;
    *) echo "$1" ;;
    esac
}

# shellcheck disable=SC2046
both - - $(addresses 10.99.0.1 10.99.0.2)
two_hosts 1500
on A ip addr add 10.98.0.11/24 dev eth1
# shellcheck disable=SC2046
both A B $(addresses 10.98.0.1 10.98.0.11)
