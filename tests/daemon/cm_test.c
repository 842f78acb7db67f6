// SPDX-License-Identifier: BSD-2-Clause
// QP1: routing of MADs, weftd's own answers, last wills, multicast; on one host and between two.
#include "daemon/mad.h"
#include "link/link.h"
#include "testing.h"
#include "wire/codec.h"
#include "wire/icrc.h"
#include "wire/opcode.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVICE 0x0000000001061d2full

static void put32(uint8_t *p, uint32_t v)
{
    v = htonl(v);
    memcpy(p, &v, 4);
}

static uint32_t get32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, 4);
    return ntohl(v);
}

static void make_mad(uint8_t mad[256], uint16_t attr, uint32_t local, uint32_t remote)
{
    memset(mad, 0, 256);
    memcpy(mad, (uint8_t[]){1, 7, 2, 3}, 4);
    put32(mad + 12, 0xabcd);
    mad[16] = (uint8_t)(attr >> 8);
    mad[17] = (uint8_t)attr;
    put32(mad + 24, local);
    put32(mad + 28, remote);
}

static void make_req(uint8_t mad[256], uint16_t attr, uint32_t local, uint64_t service)
{
    make_mad(mad, attr, local, 0);
    put32(mad + 32, (uint32_t)(service >> 32));
    put32(mad + 36, (uint32_t)service);
}

static union ibv_gid own_gid(struct wf_fabric *f, uint32_t index)
{
    struct wf_gid_table t;
    wf_fabric_gids(f, &t);
    return t.gids[index].gid;
}

static uint32_t id_of(struct wf_fabric *f, uint32_t low)
{
    return wf_fabric_slot(f) << 24 | low;
}

static void test_req_goes_to_listener_and_rep_to_owner_of_id(void **state)
{
    struct wf_fabric *a, *p;
    struct wf_fabric_event ev;
    uint8_t mad[256];
    assert_int_equal(wf_fabric_join(&a), 0);
    assert_int_equal(wf_fabric_join(&p), 0);
    union ibv_gid gid = own_gid(a, 0);
    assert_int_equal(wf_fabric_listen(p, SERVICE, 0), 0);
    assert_int_equal(wf_fabric_listen(a, SERVICE, 0), -EBUSY);
    make_req(mad, MAD_REQ, id_of(a, 5), SERVICE);
    assert_int_equal(wf_fabric_send_mad(a, &gid, 0, mad), 0);
    expect_event(p, WF_FABRIC_MAD, 1000, &ev);
    assert_memory_equal(ev.mad.data, mad, 256);
    assert_memory_equal(&ev.mad.sgid, &gid, 16);
    assert_memory_equal(&ev.mad.dgid, &gid, 16);
    assert_int_equal(ev.mad.sqpn, 1);
    make_mad(mad, MAD_REP, id_of(p, 9), id_of(a, 5));
    assert_int_equal(wf_fabric_send_mad(p, &gid, 0, mad), 0);
    expect_event(a, WF_FABRIC_MAD, 1000, &ev);
    assert_memory_equal(ev.mad.data, mad, 256);
    // A REJ from somebody who does not know our id yet.
    make_mad(mad, MAD_REJ, id_of(a, 5), 0);
    assert_int_equal(wf_fabric_send_mad(a, &gid, 0, mad), 0);
    expect_event(p, WF_FABRIC_MAD, 1000, &ev);
    wf_fabric_leave(p);
    wf_fabric_leave(a);
}

static void test_mads_without_owner_are_answered(void **state)
{
    struct wf_fabric *a;
    struct wf_fabric_event ev;
    uint8_t mad[256];
    assert_int_equal(wf_fabric_join(&a), 0);
    union ibv_gid gid = own_gid(a, 0);
    make_req(mad, MAD_REQ, id_of(a, 7), SERVICE);
    assert_int_equal(wf_fabric_send_mad(a, &gid, 0, mad), 0);
    expect_event(a, WF_FABRIC_MAD, 1000, &ev);
    assert_int_equal(mad_attr(ev.mad.data), MAD_REJ);
    assert_int_equal(get32(ev.mad.data + 12), 0xabcd);
    assert_int_equal(get32(ev.mad.data + 28), id_of(a, 7));
    assert_int_equal(ev.mad.data[24 + 8] >> 6, 0);
    assert_int_equal(ev.mad.data[24 + 11], 8);
    make_req(mad, MAD_SIDR_REQ, id_of(a, 8), SERVICE);
    assert_int_equal(wf_fabric_send_mad(a, &gid, 0, mad), 0);
    expect_event(a, WF_FABRIC_MAD, 1000, &ev);
    assert_int_equal(mad_attr(ev.mad.data), MAD_SIDR_REP);
    assert_int_equal(get32(ev.mad.data + 24), id_of(a, 8));
    assert_int_equal(ev.mad.data[28], 1);
    assert_memory_equal(ev.mad.data + 36, mad + 32, 8);
    make_mad(mad, MAD_DREQ, id_of(a, 9), 0xf0000001);
    assert_int_equal(wf_fabric_send_mad(a, &gid, 0, mad), 0);
    expect_event(a, WF_FABRIC_MAD, 1000, &ev);
    assert_int_equal(mad_attr(ev.mad.data), MAD_DREP);
    assert_int_equal(get32(ev.mad.data + 24), 0xf0000001);
    assert_int_equal(get32(ev.mad.data + 28), id_of(a, 9));
    // Anything else without an owner is dropped; so is what is no CM datagram.
    make_mad(mad, MAD_RTU, id_of(a, 9), 0xf0000001);
    assert_int_equal(wf_fabric_send_mad(a, &gid, 0, mad), 0);
    mad[1] = 3;
    assert_int_equal(wf_fabric_send_mad(a, &gid, 0, mad), 0);
    assert_false(event_within(a, WF_FABRIC_MAD, 50));
    wf_fabric_leave(a);
}

static bool is_member(struct wf_fabric *f, uint32_t slot)
{
    union ibv_gid mgid = {.raw = {0xff, 0x0e, [15] = 3}};
    uint64_t slots[WF_SLOTS / 64];
    wf_fabric_mcast_members(f, &mgid, slots);
    return slots[slot / 64] >> slot % 64 & 1;
}

static void test_group_members_follow_joins_leaves_and_deaths(void **state)
{
    union ibv_gid mgid = {.raw = {0xff, 0x0e, [15] = 3}}, no_group = {.raw = {0x20, 1}};
    struct wf_fabric *a, *b;
    struct wf_fabric_event ev;
    assert_int_equal(wf_fabric_join(&a), 0);
    assert_int_equal(wf_fabric_join(&b), 0);
    uint32_t slot = wf_fabric_slot(b);
    assert_int_equal(wf_fabric_mcast_join(b, &no_group, 0), -EINVAL);
    assert_false(is_member(a, slot));
    assert_int_equal(wf_fabric_mcast_join(b, &mgid, 0), 0);
    assert_int_equal(wf_fabric_mcast_join(b, &mgid, 0), 0);
    assert_true(is_member(a, slot));
    assert_int_equal(wf_fabric_mcast_leave(b, &mgid, 0), 0);
    assert_true(is_member(a, slot));
    assert_int_equal(wf_fabric_mcast_leave(b, &mgid, 0), 0);
    assert_false(is_member(a, slot));
    assert_int_equal(wf_fabric_mcast_leave(b, &mgid, 0), -ENOENT);
    assert_int_equal(wf_fabric_mcast_join(b, &mgid, 0), 0);
    assert_true(is_member(a, slot));
    wf_fabric_leave(b);
    expect_event(a, WF_FABRIC_PEER_DIED, 1000, &ev);
    assert_false(is_member(a, slot));
    wf_fabric_leave(a);
}

struct will_arg {
    uint32_t peer_id;
};

static void body_with_will(struct member_proc *self, void *arg)
{
    struct wf_fabric *f;
    uint8_t mad[256];
    if (wf_fabric_join(&f))
        _exit(1);
    union ibv_gid gid = own_gid(f, 0);
    for (uint32_t i = 1; i <= 3; i++) {
        make_mad(mad, MAD_DREQ, id_of(f, i), ((struct will_arg *)arg)->peer_id);
        if (wf_fabric_set_will(f, i, &gid, 0, mad))
            _exit(2);
    }
    wf_fabric_set_will(f, 2, &gid, 0, NULL);
    struct wf_peer *p; // a request: by its reply the wills have arrived
    wf_fabric_peer(f, wf_fabric_slot(f), &p);
    member_sync(self, id_of(f, 0));
}

static void test_member_killed_its_wills_are_sent(void **state)
{
    struct wf_fabric *a;
    struct wf_fabric_event ev;
    assert_int_equal(wf_fabric_join(&a), 0);
    struct will_arg arg = {id_of(a, 77)};
    struct member_proc m = member_start(body_with_will, &arg);
    uint32_t id = (uint32_t)member_step(&m);
    member_kill(&m);
    uint32_t seen = 0;
    for (int i = 0; i < 2; i++) {
        expect_event(a, WF_FABRIC_MAD, 1000, &ev);
        assert_int_equal(mad_attr(ev.mad.data), MAD_DREQ);
        seen |= 1u << (get32(ev.mad.data + 24) - id);
    }
    assert_int_equal(seen, 1 << 1 | 1 << 3);
    assert_false(event_within(a, WF_FABRIC_MAD, 50));
    wf_fabric_leave(a);
}

static void test_many_mads_none_lost_while_receiver_reads(void **state)
{
    struct wf_fabric *a;
    struct wf_fabric_event ev;
    uint8_t mad[256];
    assert_int_equal(wf_fabric_join(&a), 0);
    union ibv_gid gid = own_gid(a, 0);
    int sent = 0, got = 0;
    while (got < 2000) {
        make_mad(mad, MAD_MRA, (uint32_t)sent, id_of(a, 1));
        if (sent < 2000 && wf_fabric_send_mad(a, &gid, 0, mad) == 0)
            sent++;
        while (wf_fabric_next_event(a, &ev) == 0)
            if (ev.type == WF_FABRIC_MAD)
                assert_int_equal(get32(ev.mad.data + 24), got++);
    }
    wf_fabric_leave(a);
}

// ---- two hosts: this namespace and another one, joined by a veth pair
// -----------------------------

static const union ibv_gid group = {
    .raw = {[10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [15] = 9}};

static void take_group(void *arg, const struct wf_pkt *pkt)
{
    if (pkt->dqpn != WF_QPN_MULTICAST || pkt->qkey != 0x1234 || pkt->len != 100 || !pkt->dgid ||
        memcmp(pkt->dgid->raw, group.raw, 16) || pkt->sgid->raw[15] != 1 || pkt->sqpn != 77 ||
        ((uint8_t *)pkt->iov[0].iov_base)[99] != 99)
        _exit(5);
    ++*(int *)arg;
}

// Datagrams to the group come through the ring of slot 0.
static void receive_group(struct wf_fabric *f)
{
    struct wf_link *shm;
    int n = 0;
    if (wf_shm_link_create(f, &shm))
        _exit(6);
    shm->deliver = take_group;
    shm->arg = &n;
    uint64_t end = test_now_ms() + 3000;
    atomic_store(&wf_fabric_region(f)->sleeping, 1);
    struct pollfd p = {.fd = wf_fabric_doorbell(f), .events = POLLIN};
    if (!shm->ops->poll(shm, 100) && poll(&p, 1, 3000) != 1)
        _exit(7);
    while (n < 3 && test_now_ms() < end)
        shm->ops->poll(shm, 100);
    if (n != 3)
        _exit(8);
    shm->ops->destroy(shm);
}

static void send_group(const char *from, uint8_t spoil)
{
    struct sockaddr_in src = {.sin_family = AF_INET},
                       to = {.sin_family = AF_INET, .sin_port = htons(WF_ROCE_PORT)};
    struct wf_pkt pkt = {.opcode = WF_OPCODE(WF_SVC_UD, WF_OP_SEND_ONLY),
                         .pkey = 0xffff,
                         .dqpn = WF_QPN_MULTICAST,
                         .qkey = 0x1234,
                         .sqpn = 77,
                         .len = 100};
    struct wf_icrc_scope scope = {.dport = WF_ROCE_PORT};
    socklen_t len = sizeof(src);
    uint8_t buf[256];
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), mode = IP_PMTUDISC_DO;
    inet_pton(AF_INET, from, &src.sin_addr);
    memcpy(&to.sin_addr, group.raw + 12, 4);
    setsockopt(s, IPPROTO_IP, IP_MTU_DISCOVER, &mode, sizeof(mode));
    setsockopt(s, IPPROTO_IP, IP_MULTICAST_IF, &src.sin_addr, sizeof(src.sin_addr));
    assert_int_equal(bind(s, (struct sockaddr *)&src, sizeof(src)), 0);
    getsockname(s, (struct sockaddr *)&src, &len);
    scope.sport = ntohs(src.sin_port);
    memcpy(scope.src, &src.sin_addr, 4);
    memcpy(scope.dst, &to.sin_addr, 4);
    int n = wf_packet_encode_headers(&pkt, buf, sizeof(buf));
    for (int i = 0; i < 100; i++)
        buf[n + i] = (uint8_t)i;
    struct iovec iov = {buf, (size_t)n + 100};
    wf_icrc_store(buf + n + 100, wf_icrc(&scope, &iov, 1));
    buf[n + 50] ^= spoil;
    assert_int_equal(sendto(s, buf, (size_t)n + 104, 0, (struct sockaddr *)&to, sizeof(to)),
                     n + 104);
    close(s);
}

static void body_other_host(struct member_proc *self, void *arg)
{
    struct wf_fabric *f;
    struct wf_fabric_event ev;
    if (unshare(CLONE_NEWNET))
        _exit(1);
    member_sync(self, 0); // the parent moves and configures the interface
    char cmd[256];
    snprintf(cmd, sizeof(cmd),
             "ip link set lo up && ip addr add 10.7.0.2/24 dev wy && "
             "ip -6 addr add fd07::2/64 dev wy nodad && ip link set wy up");
    if (system(cmd) || wf_fabric_join(&f) || wf_fabric_listen(f, SERVICE, 0))
        _exit(2);
    if (wf_fabric_mcast_join(f, &group, 1))
        _exit(3);
    member_sync(self, wf_fabric_slot(f));
    for (int i = 0; i < 2; i++) {
        expect_event(f, WF_FABRIC_MAD, 3000, &ev);
        uint8_t mad[256];
        make_mad(mad, MAD_REP, id_of(f, 1), get32(ev.mad.data + 24));
        uint32_t index = 0;
        while (index < WF_GIDS && memcmp(own_gid(f, index).raw, ev.mad.dgid.raw, 16))
            index++;
        if (index == WF_GIDS || wf_fabric_send_mad(f, &ev.mad.sgid, index, mad))
            _exit(4);
    }
    member_sync(self, ev.mad.ifindex);
    receive_group(f);
    member_sync(self, 1);
    wf_fabric_leave(f);
}

static uint32_t index_of(struct wf_fabric *f, const char *addr)
{
    union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};
    if (inet_pton(AF_INET, addr, gid.raw + 12) != 1)
        inet_pton(AF_INET6, addr, gid.raw);
    for (uint32_t i = 0; i < WF_GIDS; i++)
        if (memcmp(own_gid(f, i).raw, gid.raw, 16) == 0)
            return i;
    fail_msg("no GID %s", addr);
    return 0;
}

static void exchange(struct wf_fabric *f, const char *from, const char *to)
{
    struct wf_fabric_event ev;
    union ibv_gid dgid = {.raw = {[10] = 0xff, [11] = 0xff}};
    uint8_t mad[256];
    if (inet_pton(AF_INET, to, dgid.raw + 12) != 1)
        inet_pton(AF_INET6, to, dgid.raw);
    make_req(mad, MAD_REQ, id_of(f, 3), SERVICE);
    assert_int_equal(wf_fabric_send_mad(f, &dgid, index_of(f, from), mad), 0);
    expect_event(f, WF_FABRIC_MAD, 2000, &ev);
    assert_int_equal(mad_attr(ev.mad.data), MAD_REP);
    assert_int_equal(get32(ev.mad.data + 28), id_of(f, 3));
    assert_memory_equal(&ev.mad.sgid, &dgid, 16);
}

static void test_mads_and_multicast_between_two_hosts(void **state)
{
    struct wf_fabric *f;
    wait_daemon_gone(3000);
    struct member_proc m = member_start(body_other_host, NULL);
    member_step(&m);
    run("ip link add wx type veth peer name wy");
    run("ip link set wy netns %d", m.pid);
    run("ip addr add 10.7.0.1/24 dev wx && ip -6 addr add fd07::1/64 dev wx nodad");
    run("ip link set wx up");
    assert_int_equal(wf_fabric_join(&f), 0);
    member_go(&m);
    member_step(&m);
    member_go(&m);
    exchange(f, "10.7.0.1", "10.7.0.2");
    exchange(f, "fd07::1", "fd07::2");
    assert_true(member_step(&m) > 0);
    member_go(&m);
    send_group("10.7.0.1", 1); // a wrong ICRC: not delivered
    for (int i = 0; i < 3; i++)
        send_group("10.7.0.1", 0);
    assert_int_equal(member_step(&m), 1);
    member_go(&m);
    assert_int_equal(member_wait(&m), 0);
    wf_fabric_leave(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_req_goes_to_listener_and_rep_to_owner_of_id),
        cmocka_unit_test(test_mads_without_owner_are_answered),
        cmocka_unit_test(test_group_members_follow_joins_leaves_and_deaths),
        cmocka_unit_test(test_member_killed_its_wills_are_sent),
        cmocka_unit_test(test_many_mads_none_lost_while_receiver_reads),
        cmocka_unit_test(test_mads_and_multicast_between_two_hosts),
    };
    own_network("0.2");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
