#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: netns
# timeout: 240
# cases: rping ucmatose datagram ep rsocket many perftest refusal kill
# The system's librdmacm and the programs that come with it, between two hosts.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/rdmacm.sh"
isolate "$@"
two_hosts 4200
address=10.98.0.1 address6=fd00:98::1 client_address=10.98.0.2
server_host=A client_host=B
export WEFT_LINGER=10
"cm_${1:-rping}"
