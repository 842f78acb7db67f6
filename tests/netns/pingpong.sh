#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: netns
# timeout: 240
# cases: rc uc ud srq
# The pingpong programs between two hosts, over IPv4, IPv6 and link-local addresses.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/programs.sh"
isolate "$@"
two_hosts 1500
server_host=A client_host=B

address=10.98.0.1 sgid=$(gid_of A 10.98.0.1) cgid=$(gid_of B 10.98.0.2)
pingpongs "${1:-rc}"
sgid=$(gid_of A fd00:98::1) cgid=$(gid_of B fd00:98::2)
pingpong "${1:-rc}" -c
pingpong "${1:-rc}" -s 1000 -e -c
address=10.98.0.1 sgid=0 cgid=0
pingpong "${1:-rc}" -c -n 300
