#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 180
# For each mistake that programs make: one line for its root cause, with the right number and words.
# What follows from it (flushes) and what the network noticed (dropped packets) may stand beside it.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
need "$tools/mistakes"

failed=0 count=0
while IFS=$'\t' read -r name number says; do
    count=$((count + 1))
    WEFT_LIMIT=10 WEFT_RUN_OPTS="--explain" run "$tools/mistakes" "$name" >"$tmp/out" 2>"$tmp/err" </dev/null ||
        { echo "$name: the program failed: $(cat "$tmp/err")" && failed=1; }
    grep '^weft: \[' "$tmp/err" | grep -vE '^weft: \[(405|503|506) |times in all' >"$tmp/lines" || true
    if [ "$(wc -l <"$tmp/lines")" != 1 ] || ! grep -q "^weft: \[$number " "$tmp/lines" ||
        ! grep -qF -- "$says" "$tmp/lines" || ! grep -q 'To do: ' "$tmp/lines"; then
        echo "$name: [$number] \"$says\" was due, not:"
        cat "$tmp/err"
        failed=1
    fi
done < <("$tools/mistakes" --list)
[ $count -ge 40 ] || fail "only $count mistakes"
[ $failed = 0 ] || fail "see above"
