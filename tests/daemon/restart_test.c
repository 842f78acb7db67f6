// SPDX-License-Identifier: BSD-2-Clause
// weftd killed: its clients go on, register again, and steering never breaks.
#include "testing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// A datagram for QPN slot << 16 | 5, marked with a number. BTH only: steering looks no further.
static void send_to_slot(int family, uint32_t slot, uint32_t mark)
{
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(WF_ROCE_PORT)};
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(WF_ROCE_PORT)};
    uint8_t bth[16] = {[5] = (uint8_t)slot, [7] = 5};
    memcpy(bth + 12, &mark, 4);
    a4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a6.sin6_addr = in6addr_loopback;
    int s = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ssize_t n = family == AF_INET ? sendto(s, bth, 16, 0, (struct sockaddr *)&a4, sizeof(a4))
                                  : sendto(s, bth, 16, 0, (struct sockaddr *)&a6, sizeof(a6));
    assert_int_equal(n, 16);
    close(s);
}

static uint32_t receive_mark(int fd)
{
    uint8_t buf[64];
    uint32_t mark;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 1000), 1);
    assert_int_equal(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), 16);
    memcpy(&mark, buf + 12, 4);
    return mark;
}

static void check_steering(struct wf_fabric **f, int n)
{
    static const int families[] = {AF_INET, AF_INET6};
    static uint32_t mark;
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < n; i++)
            send_to_slot(families[k], wf_fabric_slot(f[i]), mark + (uint32_t)i);
        for (int i = 0; i < n; i++)
            assert_int_equal(receive_mark(wf_fabric_udp_fd(f[i], families[k])), mark + (uint32_t)i);
        mark += (uint32_t)n;
    }
}

static void test_steering_three_slots_each_gets_its_packets(void **state)
{
    struct wf_fabric *f[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(wf_fabric_join(&f[i]), 0);
    for (int round = 0; round < 5; round++)
        check_steering(f, 3);
    for (int i = 0; i < 3; i++)
        wf_fabric_leave(f[i]);
}

static void test_slot_used_again_starts_with_empty_socket(void **state)
{
    struct wf_fabric *f, *keep;
    char c;
    assert_int_equal(wf_fabric_join(&keep), 0);
    assert_int_equal(wf_fabric_join(&f), 0);
    uint32_t slot = wf_fabric_slot(f);
    send_to_slot(AF_INET, slot, 1);
    wf_fabric_leave(f);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(wf_fabric_join(&f), 0);
        bool same = wf_fabric_slot(f) == slot;
        if (same)
            assert_int_equal(recv(wf_fabric_udp_fd(f, AF_INET), &c, 1, MSG_DONTWAIT), -1);
        wf_fabric_leave(f);
        if (same)
            break;
        assert_true(i < 299);
    }
    wf_fabric_leave(keep);
}

static void rejoin(struct wf_fabric *f)
{
    struct wf_fabric_event ev;
    expect_event(f, WF_FABRIC_LOST, 1000, &ev);
    assert_int_equal(wf_fabric_rejoin(f), 0);
}

static void test_daemon_killed_members_keep_slots_sockets_and_order(void **state)
{
    struct wf_fabric *f[4], *g;
    struct wf_peer *p, *before;
    for (int i = 0; i < 3; i++)
        assert_int_equal(wf_fabric_join(&f[i]), 0);
    assert_int_equal(wf_fabric_peer(f[0], wf_fabric_slot(f[1]), &before), 0);
    for (int round = 0; round < 3; round++) {
        uint32_t slots[3];
        for (int i = 0; i < 3; i++)
            slots[i] = wf_fabric_slot(f[i]);
        kill_daemon();
        check_steering(f, 3); // without a daemon
        for (int i = 2; i >= 0; i--)
            rejoin(f[i]);
        for (int i = 0; i < 3; i++)
            assert_int_equal(wf_fabric_slot(f[i]), slots[i]);
        check_steering(f, 3);
        assert_int_equal(wf_fabric_join(&f[3]), 0);
        for (int i = 0; i < 3; i++)
            assert_int_not_equal(wf_fabric_slot(f[3]), slots[i]);
        check_steering(f, 4);
        wf_fabric_leave(f[3]);
        assert_int_equal(wf_fabric_peer(f[0], slots[1], &p), 0);
        assert_ptr_equal(p, before);
        assert_true(p->alive);
    }
    assert_int_equal(wf_fabric_join(&g), 0);
    wf_fabric_leave(g);
    for (int i = 0; i < 3; i++)
        wf_fabric_leave(f[i]);
}

static void test_daemon_killed_100_members_all_come_back(void **state)
{
    static struct wf_fabric *f[100];
    for (int i = 0; i < 100; i++)
        assert_int_equal(wf_fabric_join(&f[i]), 0);
    check_steering(f, 100);
    for (int round = 0; round < 2; round++) {
        kill_daemon();
        for (int i = 0; i < 100; i++)
            rejoin(f[i]);
        check_steering(f, 100);
    }
    for (int i = 0; i < 100; i++)
        wf_fabric_leave(f[i]);
}

static void body_new_program(struct member_proc *self, void *arg)
{
    struct wf_fabric *f;
    uint64_t start = test_now_ms();
    if (wf_fabric_join(&f))
        _exit(1);
    uint64_t took = test_now_ms() - start;
    member_sync(self, took << 32 | (uint64_t)(wf_fabric_udp_fd(f, AF_INET) >= 0) << 16 |
                          wf_fabric_slot(f));
    wf_fabric_leave(f);
}

// The new program starts the new daemon, which must wait for the sockets of the old one.
static void test_daemon_killed_new_program_works_within_a_second(void **state)
{
    struct wf_fabric *f[1];
    assert_int_equal(wf_fabric_join(&f[0]), 0);
    kill_daemon();
    struct member_proc m = member_start(body_new_program, NULL);
    poll(NULL, 0, 50);
    rejoin(f[0]);
    uint64_t v = member_step(&m);
    assert_in_range(v >> 32, 0, 1000);
    assert_int_equal(v >> 16 & 1, 1);
    assert_int_not_equal(v & 0xffff, wf_fabric_slot(f[0]));
    check_steering(f, 1);
    member_go(&m);
    assert_int_equal(member_wait(&m), 0);
    wf_fabric_leave(f[0]);
}

// Nobody hands over the old sockets in time (a stopped client): same-host traffic must still start.
static void test_daemon_killed_and_client_silent_new_program_starts_without_udp(void **state)
{
    struct wf_fabric *f[1];
    assert_int_equal(wf_fabric_join(&f[0]), 0);
    kill_daemon();
    struct member_proc m = member_start(body_new_program, NULL);
    uint64_t v = member_step(&m);
    assert_in_range(v >> 32, 500, 1500);
    assert_int_equal(v >> 16 & 1, 0);
    rejoin(f[0]);
    check_steering(f, 1);
    member_go(&m);
    assert_int_equal(member_wait(&m), 0);
    wf_fabric_leave(f[0]);
}

static void test_member_died_while_no_daemon_peer_is_told_later(void **state)
{
    struct wf_fabric_event ev;
    struct wf_fabric *f;
    struct wf_peer *p;
    assert_int_equal(wf_fabric_join(&f), 0);
    struct member_proc m = member_start(body_join, NULL);
    uint32_t slot = (uint32_t)member_step(&m);
    assert_int_equal(wf_fabric_peer(f, slot, &p), 0);
    kill_daemon();
    atomic_store(&wf_fabric_region(f)->hazard[slot][1], 77);
    member_kill(&m);
    rejoin(f);
    expect_event(f, WF_FABRIC_PEER_DIED, 2000, &ev);
    assert_int_equal(ev.slot, slot);
    assert_false(p->alive);
    assert_int_equal(atomic_load(&wf_fabric_region(f)->hazard[slot][1]), 0);
    wf_fabric_leave(f);
}

static void test_daemon_killed_listens_and_groups_are_set_up_again(void **state)
{
    union ibv_gid mgid = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [15] = 7}};
    uint64_t slots[WF_SLOTS / 64];
    struct wf_fabric *f, *g;
    assert_int_equal(wf_fabric_join(&f), 0);
    assert_int_equal(wf_fabric_listen(f, 0x1061234, 0), 0);
    assert_int_equal(wf_fabric_listen(f, 0x1065678, 0), 0);
    assert_int_equal(wf_fabric_unlisten(f, 0x1065678, 0), 0);
    assert_int_equal(wf_fabric_mcast_join(f, &mgid, 0), 0);
    kill_daemon();
    rejoin(f);
    assert_int_equal(wf_fabric_join(&g), 0);
    assert_int_equal(wf_fabric_listen(g, 0x1061234, 0), -EBUSY);
    assert_int_equal(wf_fabric_listen(g, 0x1065678, 0), 0);
    wf_fabric_mcast_members(g, &mgid, slots);
    uint32_t s = wf_fabric_slot(f);
    assert_true(slots[s / 64] >> s % 64 & 1);
    wf_fabric_leave(g);
    wf_fabric_leave(f);
}

// 4791 belongs to somebody without SO_REUSEPORT, as with the kernel's own driver.
static void test_port_taken_join_works_without_udp(void **state)
{
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(WF_ROCE_PORT)};
    struct wf_fabric *f;
    struct wf_peer *p;
    wait_daemon_gone(3000);
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&a4, sizeof(a4)), 0);
    assert_int_equal(wf_fabric_join(&f), 0);
    assert_int_equal(wf_fabric_udp_fd(f, AF_INET), -1);
    assert_true(wf_fabric_udp_fd(f, AF_INET6) >= 0);
    assert_int_equal(wf_fabric_peer(f, wf_fabric_slot(f), &p), 0);
    wf_fabric_leave(f);
    close(s);
    wait_daemon_gone(3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steering_three_slots_each_gets_its_packets),
        cmocka_unit_test(test_slot_used_again_starts_with_empty_socket),
        cmocka_unit_test(test_daemon_killed_members_keep_slots_sockets_and_order),
        cmocka_unit_test(test_daemon_killed_100_members_all_come_back),
        cmocka_unit_test(test_daemon_killed_new_program_works_within_a_second),
        cmocka_unit_test(test_daemon_killed_and_client_silent_new_program_starts_without_udp),
        cmocka_unit_test(test_member_died_while_no_daemon_peer_is_told_later),
        cmocka_unit_test(test_daemon_killed_listens_and_groups_are_set_up_again),
        cmocka_unit_test(test_port_taken_join_works_without_udp),
    };
    own_network("0.2");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
