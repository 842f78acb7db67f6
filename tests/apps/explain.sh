#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 60
# weft explain, the reason table and docs/errors.md agree; JSON lines are JSON.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"

"$here/../scripts/errors-doc" --check || fail "docs/errors.md"
[ "$("$weft" explain --list | wc -l)" -ge 60 ] || fail "list"
"$weft" explain 304 | grep -q RKEY_ACCESS || fail "by number"
"$weft" explain rkey_access | grep -q '^304' || fail "by name"
for word in cause fault "to do"; do
    "$weft" explain 304 | grep -q "^  $word " || fail "no $word"
done
st=0
"$weft" explain 99999 >"$tmp/out" 2>"$tmp/err" || st=$?
[ $st = 1 ] && [ "$(wc -l <"$tmp/err")" = 1 ] && [ ! -s "$tmp/out" ] || fail "unknown number"
st=0
"$weft" explain --nonsense >"$tmp/out" 2>"$tmp/err" || st=$?
[ $st = 2 ] || fail "unknown option: $st"
dup=$("$weft" explain --list | awk '{ print $1 }' | sort | uniq -d)
[ -z "$dup" ] || fail "numbers used twice: $dup"

need ibv_rc_pingpong python3
run ibv_rc_pingpong -i 9 >/dev/null 2>&1 && fail "port 9 worked"
WEFT_RUN_OPTS="--explain --explain-file $tmp/reasons.json" run ibv_rc_pingpong -i 9 >"$tmp/out" 2>"$tmp/err" || true
[ "$(grep -c '^weft: \[' "$tmp/err")" = 1 ] || fail "one line was due: $(cat "$tmp/err")"
python3 - "$tmp/reasons.json" <<'PY' || fail "JSON lines: $(cat "$tmp/reasons.json")"
import json, sys
lines = [json.loads(l) for l in open(sys.argv[1])]
assert len(lines) == 1 and lines[0]["number"] == 107 and lines[0]["program"] == "ibv_rc_pingpong"
PY
