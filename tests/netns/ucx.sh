#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: netns slow
# timeout: 400
# cases: info small large datagrams transports ipv6
# UCX between two hosts: over IPv4, which it prefers, and over the GIDs of IPv6.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
. "$(dirname "$0")/../lib/ucx.sh"
two_hosts 1500
address=10.98.0.1 server_host=A client_host=B
if [ "${1:-small}" = ipv6 ]; then
    [ "$(gid_of A fd00:98::1)" = "$(gid_of B fd00:98::2)" ] || fail "GID indexes differ"
    UCX_IB_GID_INDEX=$(gid_of A fd00:98::1)
    export UCX_IB_GID_INDEX
    ucx small
else
    ucx "${1:-small}"
fi
