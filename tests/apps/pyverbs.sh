#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app slow
# timeout: 600
# cases: verbs
# The test suite of rdma-core's pyverbs, as Debian ships it, against this library. The rdma_cm tests
# skip themselves without a sysfs view of the device. WEFT_PYVERBS_MIN: passes asked for.
# Further arguments go to the suite (-k PATTERN, -f, -v).
. "$(dirname "$0")/../lib/lib.sh"
# As root and as an ordinary user who only plays root in a namespace alike.
minimum=${WEFT_PYVERBS_MIN:-128}
suite=/usr/share/doc/rdma-core/tests
[ "${1:-}" = verbs ] && shift
isolate verbs "$@"

python=
for p in /usr/bin/python3 python3; do
    "$p" -c 'import pyverbs' 2>/dev/null && python=$p && break
done
[ -n "$python" ] || skip "python3-pyverbs is not installed"
[ -d $suite ] || skip "the suite is not installed: $suite is missing (documentation left out?)"

case ${sanitizer_lib:-} in
*libtsan*) skip "the thread sanitizer follows no fork() of a threaded program, which one test makes" ;;
esac

cp -r $suite "$tmp/tests"
find "$tmp/tests" -name '*.gz' -exec gunzip {} +
status=0
cd "$tmp/tests"
PYTHONPATH=$tmp LD_LIBRARY_PATH=$WEFT_BUILD/lib LD_PRELOAD=${sanitizer_lib:-} \
    timeout -k 5 550 "$python" run_tests.py --dev weft0 --gid 1 -v "$@" >"$tmp/log" 2>&1 ||
    status=$?
cd /

count() { # NAME: of the last line, "FAILED (failures=1, errors=2, skipped=3)"
    tail -n 1 "$tmp/log" | sed -n "s/.*$1=\([0-9]*\).*/\1/p" | grep . || echo 0
}
[ -z "${WEFT_PYVERBS_LOG:-}" ] || cp "$tmp/log" "$WEFT_PYVERBS_LOG"
ran=$(sed -n 's/^Ran \([0-9]*\) tests.*/\1/p' "$tmp/log")
[ -n "$ran" ] || { tail -n 40 "$tmp/log"; fail "the suite ended with $status before its summary"; }
failures=$(count failures) errors=$(count errors) skipped=$(count skipped)
passed=$((ran - failures - errors - skipped))
sed -n '/^\(ERROR\|FAIL\): /,/^-*$/p; /Error: /p' "$tmp/log" | grep -v '^-*$' | head -n 120 || true
echo "skips by reason:"
sed -n "s/.*\.\.\. skipped ['\"]\(.*\)['\"]$/\1/p" "$tmp/log" | sort | uniq -c | sort -rn
echo "pyverbs: $ran run, $passed passed, $failures failed, $errors errors, $skipped skipped"
[ "$failures" = 0 ] && [ "$errors" = 0 ] && [ $status = 0 ] || fail "not all tests passed"
[ $# -gt 0 ] || [ "$passed" -ge "$minimum" ] || fail "$passed passes, $minimum expected"
