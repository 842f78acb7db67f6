#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 30
# weft run passes status, signals and output through, and says in one line why it cannot work.
. "$(dirname "$0")/../lib/lib.sh"
isolate "$@"
lib=$WEFT_BUILD/lib/libibverbs.so.1
[ -e "$lib" ] || skip "$lib is not built"

expect() { # expect STATUS TEXT ARGS...: that status, and TEXT in exactly one line of stderr
    local want=$1 text=$2 st=0
    shift 2
    "$weft" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null || st=$?
    [ $st = "$want" ] || fail "weft $*: status $st, not $want: $(cat "$tmp/err")"
    [ -z "$text" ] || { [ "$(wc -l <"$tmp/err")" = 1 ] && grep -q -- "$text" "$tmp/err"; } ||
        fail "weft $*: said: $(cat "$tmp/err")"
}

expect 0 "" run true
expect 1 "" run -- false
expect 42 "" run -- sh -c 'exit 42'
expect 127 "not found" run no-such-program
expect 126 "not an executable" run /etc
expect 126 "not an executable" run /etc/passwd
expect 2 "" run
expect 2 "no command" nonsense
expect 0 "" --help
[ "$(wc -l <"$tmp/out")" -le 24 ] || fail "help does not fit a screen"
expect 0 "" version

[ "$("$weft" run sh -c 'echo out')" = out ] || fail "standard output"
[ "$("$weft" run --explain sh -c 'echo $WEFT_EXPLAIN')" = 1 ] || fail "--explain"
[ "$(env -i "$weft" run /bin/sh -c 'echo $LD_LIBRARY_PATH')" = "$WEFT_BUILD/lib" ] || fail "library path"
[ "$("$weft" run "$weft" run sh -c 'echo $LD_LIBRARY_PATH')" = "$WEFT_BUILD/lib" ] || fail "run in run"
got=$(LD_LIBRARY_PATH=/x LD_PRELOAD= "$weft" run sh -c 'echo $LD_LIBRARY_PATH')
[ "$got" = "$WEFT_BUILD/lib:/x" ] || fail "the caller's library path is lost"

# A signal reaches the program itself, and kills it as without weft.
st=0
"$weft" run sleep 100 &
pid=$!
sleep 0.2
[ "$(cat /proc/$pid/comm)" = sleep ] || fail "weft run stays between"
kill -TERM $pid
wait $pid || st=$?
[ $st = 143 ] || fail "SIGTERM gave $st"

cat >"$tmp/static.c" <<'C'
int main(void) { return 0; }
C
if command -v gcc >/dev/null; then
    gcc -static -o "$tmp/static" "$tmp/static.c" 2>/dev/null && expect 126 "statically linked" run "$tmp/static"
    gcc -o "$tmp/dynamic" "$tmp/static.c"
    expect 0 "" run "$tmp/dynamic"
    chown 65534:65534 "$tmp/dynamic" 2>/dev/null && chmod u+s "$tmp/dynamic" &&
        expect 126 "set-user-ID" run "$tmp/dynamic"
fi
mkdir "$tmp/bin" "$tmp/lib"
cp "$weft" "$tmp/bin/weft"
weft=$tmp/bin/weft
expect 126 "libibverbs.so.1 is missing" run true
