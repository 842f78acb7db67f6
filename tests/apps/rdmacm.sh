#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 240
# cases: rping ucmatose datagram ep rsocket many perftest refusal kill loopback
# The system's librdmacm and the programs that come with it, between processes.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/rdmacm.sh"
isolate "$@"
address=10.99.0.1 address6=fd00:99::1 client_address=10.99.0.1
server_host=- client_host=-
export WEFT_LINGER=10

cm_loopback() {
    need rping
    cm_pair rping-loopback "rping -s -C 5" "rping -c -a 127.0.0.1 -V -C 5"
    cm_pair rping-at-loopback "rping -s -a 127.0.0.1 -C 5" "rping -c -a 127.0.0.1 -V -C 5"
    local scoped
    scoped=$(ip -6 -o addr show dev eth0 scope link | awk '{ sub("/.*", "", $4); print $4 }')%eth0
    cm_pair rping-link-local "rping -s -a $scoped -C 5" "rping -c -a $scoped -V -C 5"
}

"cm_${1:-rping}"
