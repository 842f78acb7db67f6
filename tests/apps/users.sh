#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# label: app
# timeout: 120
# cases: nobody empty-env no-network home shm-missing shm-small cwd two-users few-descriptors
# Poor surroundings: it works, or says in one line why not.
. "$(dirname "$0")/../lib/lib.sh"
. "$(dirname "$0")/../lib/programs.sh"
isolate "$@"
address=localhost sgid=0 cgid=0

# As another user from a place that everybody can read, whatever the folder of the build.
as_nobody() {
    [ "$(awk '{ print $3; exit }' /proc/self/uid_map)" -gt 65534 ] || skip "one user only in here (not root)"
    need setpriv
    mkdir -p /run/weft
    mount --bind "$WEFT_BUILD" /run/weft
    chmod 755 /run
    weft=/run/weft/bin/weft
    cat >"$tmp/as" <<'SH'
#!/bin/sh
exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all env -u XDG_RUNTIME_DIR HOME=/nonexistent "$@"
SH
    chmod 755 "$tmp/as" "$tmp"
}

ping_both() { # the server and client of ibv_rc_pingpong, each under "$@"
    local pid st=0
    timeout 30 "$@" "$weft" run ibv_rc_pingpong -g 0 -c >"$tmp/s" 2>&1 &
    pid=$!
    wait_listen - 18515 $pid || { cat "$tmp/s"; fail "server does not listen"; }
    timeout 30 "$@" "$weft" run ibv_rc_pingpong -g 0 -c localhost >"$tmp/c" 2>&1 || st=$?
    [ $st = 0 ] || { cat "$tmp/s" "$tmp/c"; fail "client ended with $st"; }
    wait $pid || { cat "$tmp/s"; fail "server"; }
    ! grep -i invalid "$tmp/s" "$tmp/c" || fail "data"
}

case ${1:-nobody} in
nobody)
    as_nobody
    ping_both "$tmp/as"
    ;;
empty-env)
    # No PATH, no HOME: an absolute path to the program.
    timeout 30 env -i "$weft" run /usr/bin/ibv_rc_pingpong -g 0 -c >"$tmp/s" 2>&1 &
    pid=$!
    wait_listen - 18515 $pid || { cat "$tmp/s"; fail "server does not listen"; }
    timeout 30 env -i "$weft" run /usr/bin/ibv_rc_pingpong -g 0 -c localhost || fail "client"
    wait $pid || fail "server"
    ;;
no-network)
    # A network namespace of its own with nothing up, not even lo.
    cat >"$tmp/both" <<SH
"$weft" run ibv_devinfo >$tmp/devinfo 2>&1 || exit 3
ip link set lo up
"$weft" run ibv_rc_pingpong -g 0 -c & 
sleep 1
"$weft" run ibv_rc_pingpong -g 0 -c localhost && wait %1
SH
    timeout 30 unshare -n sh "$tmp/both" >"$tmp/out" 2>&1 || {
        [ "$(grep -c . "$tmp/out")" -gt 0 ] && cat "$tmp/out" "$tmp/devinfo"
        fail "in unshare -n"
    }
    grep -q weft0 "$tmp/devinfo" || fail "no device"
    ;;
home)
    mkdir "$tmp/home"
    chmod 555 "$tmp/home"
    ping_both env -u XDG_RUNTIME_DIR HOME="$tmp/home"
    ping_both env -u XDG_RUNTIME_DIR -u HOME TMPDIR=/nonexistent
    ;;
shm-missing)
    umount /dev/shm
    mount -t tmpfs -o ro,size=4k tmpfs /dev/shm
    ping_both env
    ;;
shm-small)
    mount -o remount,size=64k /dev/shm
    ping_both env
    measure ib_write_bw -D 1
    ;;
cwd)
    mkdir "$tmp/gone"
    cd "$tmp/gone"
    rmdir "$tmp/gone"
    ping_both env
    ;;
few-descriptors)
    # Not asked for explanations, it still says in one line why there is no device.
    run ibv_devinfo >/dev/null || fail "with enough"
    for n in 8 13; do
        (ulimit -n $n && exec "$weft" run ibv_devinfo) >"$tmp/out" 2>&1 || true
        grep -q '^weft: no device: .*Too many open files' "$tmp/out" || { cat "$tmp/out"; fail "no reason"; }
        [ "$(grep -c '^weft: ' "$tmp/out")" = 1 ] || { cat "$tmp/out"; fail "more than a line"; }
    done
    ;;
two-users)
    # Two users of one host do not see each other's fabric, and both work.
    as_nobody
    run ibv_devinfo >/dev/null || fail "root"
    ping_both "$tmp/as"
    ping_both env
    ;;
esac
