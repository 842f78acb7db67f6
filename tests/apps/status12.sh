#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 120
# cases: host udp
# "Retry exceeded" (status 12) comes from many things; each is told from the others.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
need "$tools/mistakes"
[ "${1:-host}" = host ] || export WEFT_PATH=udp
gid=$(gid_of - 10.99.0.1)

told() { # told NUMBER MISTAKE [RULE]: exactly this reason, and the status is 12
    local want=$1 opts=--explain
    if [ -n "${3:-}" ]; then
        echo "$3" >"$tmp/rules.conf"
        opts+=" --faults $tmp/rules.conf --faults-log $tmp/log"
    fi
    WEFT_LIMIT=20 WEFT_RUN_OPTS=$opts run "$tools/mistakes" "$2" "$gid" >"$tmp/out" 2>"$tmp/err" </dev/null ||
        fail "$2: $(cat "$tmp/err")"
    grep '^weft: \[' "$tmp/err" | grep -vE '^weft: \[(405|502|503|506|604) ' >"$tmp/lines" || true
    [ "$(wc -l <"$tmp/lines")" = 1 ] && grep -q "^weft: \[$want .*status 12, " "$tmp/lines" ||
        fail "$2 ${3:-}: [$want] was due, not: $(cat "$tmp/err")"
}

told 406 no_such_qp
# Over udp nobody remembers the process, only that it is not there.
case ${1:-host} in host) told 402 peer_killed ;; *) told 415 peer_killed ;; esac
told 407 peer_in_reset
told 408 peer_in_error
told 409 wrong_psn
told 411 plain_send 'port down'
told 412 plain_send 'drop'
told 413 plain_send 'corrupt icrc op=request'
told 414 plain_send 'drop op=ack'
