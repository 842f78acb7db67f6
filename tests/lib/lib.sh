# SPDX-License-Identifier: BSD-2-Clause
# For test scripts: source it first, then call isolate. Everything a test starts or makes lives in
# process, network and mount namespaces of its own and is gone when it ends, however it ends.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
: "${WEFT_BUILD:=$(cd "$here/.." && pwd)/build}"
export WEFT_BUILD
weft=$WEFT_BUILD/bin/weft
tools=$WEFT_BUILD/tests

skip() {
    echo "skip: $*"
    exit 77
}

fail() {
    echo "FAILED: $*"
    exit 1
}

# need PROGRAM...: skips the test when one is not installed.
need() {
    local p
    for p in "$@"; do
        command -v "$p" >/dev/null || [ -x "$p" ] || skip "$p is not installed"
    done
}

# isolate "$@": runs the script again, in its own namespaces, with "lo" up and an interface eth0
# (10.99.0.1/24, fd00:99::1/64; the other end is nobody). As an ordinary user where the kernel
# lets one.
isolate() {
    [ -e "$WEFT_BUILD/lib/libibverbs.so.1" ] || skip "libibverbs.so.1 is not built"
    [ -e "$here/../src/engine/CMakeLists.txt" ] || skip "the engine is not there yet"
    if [ "${WEFT_ISOLATED:-}" != 1 ]; then
        local flags=(--net --mount --pid --fork --kill-child --mount-proc)
        [ "$(id -u)" = 0 ] && unshare "${flags[@]}" true 2>/dev/null || flags+=(--map-root-user)
        unshare "${flags[@]}" true 2>/dev/null || {
            skip "the kernel refuses namespaces (unshare)"
            return
        }
        WEFT_ISOLATED=1 exec unshare "${flags[@]}" "$BASH" "$0" "$@"
    fi
    mount -t tmpfs tmpfs /run
    mount -t tmpfs tmpfs /dev/shm
    mkdir -m 700 /run/user
    export XDG_RUNTIME_DIR=/run/user
    tmp=/run/tmp
    mkdir $tmp
    ip link set lo up
    ip link add eth0 type veth peer name eth0peer 2>/dev/null || skip "the kernel has no veth"
    # No duplicate address detection: link-local addresses are there at once.
    sysctl -qw net.ipv6.conf.eth0.accept_dad=0 2>/dev/null || true
    ip addr add 10.99.0.1/24 dev eth0
    ip addr add fd00:99::1/64 dev eth0 nodad
    ip link set eth0peer up
    ip link set eth0 up
    wait_addresses - eth0
    sanitizer_preload
    trap 'stop_children' EXIT
}

# Programs that were not built with the sanitizer load its runtime first. Their own leaks are not
# ours to judge.
sanitizer_preload() {
    local lib
    lib=$(ldd "$WEFT_BUILD/lib/libibverbs.so.1" 2>/dev/null |
        awk '/lib(asan|tsan)\.so/ { print $3; exit }') || true
    [ -z "$lib" ] || sanitizer_lib=$lib
    export UBSAN_OPTIONS=print_stacktrace=1
    export ASAN_OPTIONS=detect_leaks=0:verify_asan_link_order=0
    # perftest's own alarm handler opens a file.
    export TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}report_signal_unsafe=0
}

stop_children() {
    local pids
    pids=$(jobs -p)
    [ -z "$pids" ] || kill -9 $pids 2>/dev/null || true
}

# within HOST: fills $cmd with the words that run a program in that namespace ("-": here).
within() {
    cmd=()
    [ "$1" = - ] || cmd=(ip netns exec "$1")
}

# on HOST CMD...: run it there, without Weft.
on() {
    local cmd
    within "$1"
    "${cmd[@]}" "${@:2}"
}

# run_on HOST PROGRAM ARGS: there, under weft run. WEFT_RUN_OPTS: options of it; WEFT_LIMIT: seconds.
run_on() {
    local cmd
    within "$1"
    # shellcheck disable=SC2086
    timeout -k 2 "${WEFT_LIMIT:-60}" "${cmd[@]}" env ${sanitizer_lib:+LD_PRELOAD=$sanitizer_lib} \
        "$weft" run ${WEFT_RUN_OPTS:-} -- "${@:2}"
}

run() {
    run_on - "$@"
}

# two_hosts MTU: namespaces A and B joined by a veth pair: 10.98.0.1 and .2, fd00:98::1 and ::2.
two_hosts() {
    local h n=1
    ip netns add A
    ip netns add B
    ip link add eth1 netns A type veth peer name eth1 netns B
    for h in A B; do
        on $h ip link set lo up
        on $h sysctl -qw net.ipv6.conf.eth1.accept_dad=0 2>/dev/null || true
        on $h ip link set eth1 mtu "$1"
        on $h ip addr add 10.98.0.$n/24 dev eth1
        on $h ip addr add fd00:98::$n/64 dev eth1 nodad
        on $h ip link set eth1 up
        n=$((n + 1))
    done
    for h in A B; do
        wait_addresses $h eth1
    done
}

# Each packet on the link of two_hosts by itself, as on a wire: what a capture should show.
no_offloads() {
    local h
    for h in A B; do
        on $h ethtool -K eth1 tx off gso off gro off tx-udp-segmentation off >/dev/null 2>&1 || true
    done
}

# Until no address of the interface is tentative.
wait_addresses() {
    local i
    for i in $(seq 100); do
        [ -n "$(on "$1" ip -6 addr show dev "$2" tentative)" ] || return 0
        sleep 0.05
    done
}

# wait_listen HOST PORT PID: until a TCP server listens there or the process ended. 10 seconds.
wait_listen() {
    local hex i
    hex=$(printf ':%04X' "$2")
    for i in $(seq 200); do
        on "$1" cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
            awk -v p="$hex" '$4 == "0A" && substr($2, length($2) - 4) == p { found = 1 }
                             END { exit !found }' && return 0
        kill -0 "$3" 2>/dev/null || return 1
        sleep 0.05
    done
    return 1
}

# gid_of HOST ADDRESS: the index of the GID of this address, as programs there see it.
gid_of() {
    local want=$2
    case $want in *.*) want=::ffff:$want ;; esac
    run_on "$1" ibv_devinfo -v 2>/dev/null | python3 "$here/lib/gid_of.py" "$want" ||
        fail "no GID of $2 in $1"
}

# pair NAME "SERVER" "CLIENT": runs both under weft run (server_host, client_host: where) and waits
# for both to end well within $limit seconds (60). The server listens on TCP port $port (18515).
# Outputs are left in $tmp/NAME.server and $tmp/NAME.client.
pair() {
    local name=$1 st=0 pid
    # shellcheck disable=SC2086
    WEFT_LIMIT=${limit:-60} run_on "${server_host:--}" $2 >"$tmp/$name.server" 2>&1 </dev/null &
    pid=$!
    wait_listen "${server_host:--}" "${port:-18515}" $pid || pair_failed "$name" "server does not listen"
    # shellcheck disable=SC2086
    WEFT_LIMIT=${limit:-60} run_on "${client_host:--}" $3 >"$tmp/$name.client" 2>&1 </dev/null || st=$?
    [ $st = 0 ] || pair_failed "$name" "client ended with $st: $3"
    wait $pid || st=$?
    [ $st = 0 ] || pair_failed "$name" "server ended with $st: $2"
}

pair_failed() {
    local side
    for side in server client; do
        [ -f "$tmp/$1.$side" ] && echo "--- $1 $side:" && tail -n 25 "$tmp/$1.$side"
    done
    fail "$1: $2"
}
