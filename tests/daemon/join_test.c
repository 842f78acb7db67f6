// SPDX-License-Identifier: BSD-2-Clause
// Joining, leaving, dying.
#include "testing.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_join_alone_gets_slot_region_and_gid(void **state)
{
    static const union ibv_gid none;
    struct wf_gid_table t;
    struct wf_fabric *f;
    struct wf_peer *p;
    assert_int_equal(wf_fabric_join(&f), 0);
    assert_in_range(wf_fabric_slot(f), 1, 254);
    struct wf_region *r = wf_fabric_region(f);
    assert_int_equal(r->magic, WF_REGION_MAGIC);
    assert_int_equal(r->slot, wf_fabric_slot(f));
    assert_int_equal(r->generation, wf_fabric_generation(f));
    assert_int_equal(r->pid, getpid());
    assert_true(wf_fabric_udp_fd(f, AF_INET) >= 0);
    wf_fabric_gids(f, &t);
    assert_true(t.node_guid != 0);
    assert_int_equal(t.port_active, 1);
    assert_memory_not_equal(&t.gids[0].gid, &none, 16);
    assert_int_equal(wf_fabric_peer(f, wf_fabric_slot(f), &p), 0);
    assert_true(p->cma);
    assert_ptr_not_equal(p->region, r);
    assert_int_equal(wf_fabric_peer(f, 200, &p), -ENOENT);
    wf_fabric_leave(f);
}

// The starter must not be seen: no SIGCHLD, no child to wait for, no descriptor in the daemon.
static void test_start_by_library_leaves_no_trace(void **state)
{
    struct wf_fabric *f;
    int pipes[2];
    char c;
    wait_daemon_gone(3000);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(wf_fabric_join(&f), 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
    pid_t pid = daemon_pid();
    assert_true(pid > 1);
    assert_int_equal(getsid(pid) == getsid(0), 0);
    close(pipes[1]);
    assert_int_equal(read(pipes[0], &c, 1), 0); // the daemon holds no copy of the writing end
    close(pipes[0]);
    wf_fabric_leave(f);
    wait_daemon_gone(3000);
}

static void test_join_200_processes_all_get_a_slot(void **state)
{
    static struct member_proc m[200];
    bool seen[256] = {false};
    for (int i = 0; i < 200; i++)
        m[i] = member_start(body_join, NULL);
    for (int i = 0; i < 200; i++) {
        uint64_t slot = member_step(&m[i]);
        assert_in_range(slot, 1, 254);
        assert_false(seen[slot]);
        seen[slot] = true;
    }
    for (int i = 0; i < 200; i++)
        member_go(&m[i]);
    for (int i = 0; i < 200; i++)
        assert_int_equal(member_wait(&m[i]), 0);
}

static void test_member_killed_peer_is_told_and_hazards_are_cleared(void **state)
{
    struct wf_fabric_event ev;
    struct wf_fabric *f;
    struct wf_peer *p, *q;
    assert_int_equal(wf_fabric_join(&f), 0);
    struct member_proc m = member_start(body_join, NULL);
    uint32_t slot = (uint32_t)member_step(&m);
    assert_int_equal(wf_fabric_peer(f, slot, &p), 0);
    assert_int_equal(p->pid, m.pid);
    assert_true(p->cma);
    atomic_store(&wf_fabric_region(f)->hazard[slot][0], 0x1234);
    member_kill(&m);
    expect_event(f, WF_FABRIC_PEER_DIED, 1000, &ev);
    assert_int_equal(ev.slot, slot);
    assert_int_equal(ev.generation, p->generation);
    assert_false(p->alive);
    assert_int_equal(atomic_load(&wf_fabric_region(f)->hazard[slot][0]), 0);
    assert_int_equal(wf_fabric_peer(f, slot, &q), -ENOENT);
    // A slot just freed comes last.
    m = member_start(body_join, NULL);
    assert_int_not_equal(member_step(&m), slot);
    member_kill(&m);
    wf_fabric_leave(f);
}

static void test_member_killed_slot_is_used_again_with_new_generation(void **state)
{
    struct wf_fabric *f, *g;
    struct wf_peer *old, *p;
    struct wf_fabric_event ev;
    assert_int_equal(wf_fabric_join(&f), 0);
    struct member_proc m = member_start(body_join, NULL);
    uint32_t slot = (uint32_t)member_step(&m);
    assert_int_equal(wf_fabric_peer(f, slot, &old), 0);
    uint64_t generation = old->generation;
    member_kill(&m);
    expect_event(f, WF_FABRIC_PEER_DIED, 1000, &ev);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(wf_fabric_join(&g), 0);
        bool same = wf_fabric_slot(g) == slot;
        if (same) {
            assert_true(wf_fabric_generation(g) != generation);
            assert_int_equal(wf_fabric_peer(f, slot, &p), 0);
            assert_ptr_not_equal(p, old);
            assert_int_equal(p->generation, wf_fabric_generation(g));
            assert_true(p->alive && !old->alive);
        }
        wf_fabric_leave(g);
        if (same) {
            wf_fabric_leave(f);
            return;
        }
    }
    fail_msg("slot %u was never used again", slot);
}

// A child that holds a copy of the connection must not keep its dead parent a member.
static void body_join_and_fork(struct member_proc *self, void *arg)
{
    struct wf_fabric *f;
    if (wf_fabric_join(&f))
        _exit(1);
    pid_t child = fork();
    if (child == 0) {
        for (;;)
            pause();
    }
    member_sync(self, (uint64_t)child << 32 | wf_fabric_slot(f));
    _exit(0);
}

static void test_member_killed_with_forked_child_alive_peer_is_told(void **state)
{
    struct wf_fabric_event ev;
    struct wf_fabric *f;
    assert_int_equal(wf_fabric_join(&f), 0);
    struct member_proc m = member_start(body_join_and_fork, NULL);
    uint64_t v = member_step(&m);
    member_kill(&m);
    expect_event(f, WF_FABRIC_PEER_DIED, 1000, &ev);
    assert_int_equal(ev.slot, (uint32_t)v);
    kill((pid_t)(v >> 32), SIGKILL);
    wf_fabric_leave(f);
}

static void test_leave_in_forked_child_keeps_parent_a_member(void **state)
{
    struct wf_fabric *f;
    struct wf_peer *p;
    int status;
    assert_int_equal(wf_fabric_join(&f), 0);
    pid_t pid = fork();
    if (pid == 0) {
        wf_fabric_leave(f);
        _exit(0);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(wf_fabric_peer(f, wf_fabric_slot(f), &p), 0);
    wf_fabric_leave(f);
}

static void body_other_user(struct member_proc *self, void *arg)
{
    struct wf_fabric *f;
    if (setgid(65534) || setuid(65534)) {
        member_sync(self, EPERM);
        return;
    }
    int ret = wf_fabric_join(&f);
    member_sync(self, (uint64_t)-ret);
}

static void test_join_daemon_of_other_user_is_refused(void **state)
{
    struct wf_fabric *f;
    assert_int_equal(wf_fabric_join(&f), 0);
    struct member_proc m = member_start(body_other_user, NULL);
    uint64_t err = member_step(&m);
    member_go(&m);
    assert_int_equal(member_wait(&m), 0);
    wf_fabric_leave(f);
    if (err == EPERM)
        skip(); // we may not become another user
    assert_int_equal(err, EACCES);
}

// What is not a well-formed message ends the connection and nothing else.
static void test_request_malformed_ends_only_that_connection(void **state)
{
    struct sockaddr_un sa;
    struct wf_fabric *f;
    struct wf_peer *p;
    char junk[sizeof(struct wf_fmsg) + 8];
    assert_int_equal(wf_fabric_join(&f), 0);
    socklen_t len = wf_fabric_address(getenv("WEFT_SOCKET"), &sa);
    for (size_t n = 1; n <= sizeof(junk); n += 97) {
        int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        memset(junk, (int)n, sizeof(junk));
        assert_int_equal(connect(s, (struct sockaddr *)&sa, len), 0);
        assert_int_equal(send(s, junk, n, 0), n);
        assert_int_equal(recv(s, junk, sizeof(junk), 0), 0);
        close(s);
    }
    assert_int_equal(wf_fabric_peer(f, wf_fabric_slot(f), &p), 0);
    wf_fabric_leave(f);
}

// A daemon short of descriptors refuses the next member, keeps serving the others and does not
// spin.
static void test_daemon_out_of_descriptors_refuses_and_serves_on(void **state)
{
    static struct wf_fabric *f[40];
    struct rlimit old, few;
    struct wf_peer *p;
    int n = 0;
    wait_daemon_gone(3000);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(wf_fabric_join(&f[n++]), 0);
    few = (struct rlimit){64, 64};
    assert_int_equal(prlimit(daemon_pid(), RLIMIT_NOFILE, &few, NULL), 0);
    while (n < 40 && wf_fabric_join(&f[n]) == 0)
        n++;
    assert_in_range(n, 4, 39);
    assert_int_equal(wf_fabric_peer(f[0], wf_fabric_slot(f[1]), &p), 0);
    while (n)
        wf_fabric_leave(f[--n]);
    assert_int_equal(wf_fabric_join(&f[0]), 0);
    wf_fabric_leave(f[0]);
    wait_daemon_gone(3000);
}

// The same for a member: what it asks fails, and it stays a member.
static void test_member_out_of_descriptors_request_fails_and_it_stays(void **state)
{
    struct wf_fabric *f, *late;
    struct rlimit old, few;
    struct wf_peer *p;
    struct member_proc other = member_start(body_join, NULL);
    uint32_t slot = (uint32_t)member_step(&other);
    assert_int_equal(wf_fabric_join(&f), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = (struct rlimit){(rlim_t)dup(0), old.rlim_max};
    close((int)few.rlim_cur);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(wf_fabric_peer(f, slot, &p), -EMFILE);
    uint64_t start = test_now_ms();
    assert_int_equal(wf_fabric_join(&late), -EMFILE);
    assert_in_range(test_now_ms() - start, 0, 1000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_false(event_within(f, WF_FABRIC_LOST, 0));
    assert_int_equal(wf_fabric_peer(f, slot, &p), 0);
    wf_fabric_leave(f);
    member_go(&other);
    assert_int_equal(member_wait(&other), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_join_alone_gets_slot_region_and_gid),
        cmocka_unit_test(test_start_by_library_leaves_no_trace),
        cmocka_unit_test(test_member_killed_peer_is_told_and_hazards_are_cleared),
        cmocka_unit_test(test_member_killed_slot_is_used_again_with_new_generation),
        cmocka_unit_test(test_member_killed_with_forked_child_alive_peer_is_told),
        cmocka_unit_test(test_leave_in_forked_child_keeps_parent_a_member),
        cmocka_unit_test(test_join_daemon_of_other_user_is_refused),
        cmocka_unit_test(test_request_malformed_ends_only_that_connection),
        cmocka_unit_test(test_daemon_out_of_descriptors_refuses_and_serves_on),
        cmocka_unit_test(test_member_out_of_descriptors_request_fails_and_it_stays),
        cmocka_unit_test(test_join_200_processes_all_get_a_slot),
    };
    own_network("0.2");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
