#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app slow
# timeout: 400
# cases: info small large datagrams transports
# UCX between two processes on one host.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
. "$(dirname "$0")/../lib/ucx.sh"
address=127.0.0.1 server_host=- client_host=-
ucx "${1:-small}"
