// SPDX-License-Identifier: BSD-2-Clause
// Links over loopback: one on 127.0.0.2 and one on 127.0.0.3 with the same port, and one on ::1
// that talks to itself.
#include "link/udp.h"

#include "link/udp_internal.h"
#include "link/udp_testing.h"
#include "wire/opcode.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAYLOAD_MAX 4096

struct got {
    struct wf_pkt pkt;
    union ibv_gid sgid, dgid;
    uint8_t data[PAYLOAD_MAX];
};

struct pair {
    struct udp_testing net;
    struct wf_link *a, *b; // the same over IPv6
    struct got *got;
    int ngot, room;
};

static void on_packet(void *arg, const struct wf_pkt *pkt)
{
    struct pair *p = arg;
    assert_true(p->ngot < p->room);
    struct got *g = &p->got[p->ngot++];
    g->pkt = *pkt;
    g->sgid = *pkt->sgid;
    g->dgid = *pkt->dgid;
    size_t at = 0;
    for (int i = 0; i < pkt->niov; at += pkt->iov[i++].iov_len)
        memcpy(g->data + at, pkt->iov[i].iov_base, pkt->iov[i].iov_len);
    assert_int_equal(at, pkt->len);
}

static struct pair *open_pair(bool v6, int room)
{
    struct pair *p = calloc(1, sizeof(*p));
    assert_int_equal(udp_testing_open(&p->net, v6), 0);
    p->a = p->net.a;
    p->b = p->net.b;
    p->got = calloc((size_t)room, sizeof(*p->got));
    p->room = room;
    p->b->deliver = on_packet;
    p->b->arg = p;
    return p;
}

static void close_pair(struct pair *p)
{
    udp_testing_close(&p->net);
    free(p->got);
    free(p);
}

// Datagrams over loopback are in the receiver's socket when the send returns.
static void receive(struct pair *p, int want)
{
    for (int i = 0; i < 1000 && p->ngot < want; i++)
        p->b->ops->poll(p->b, 64);
    assert_int_equal(p->ngot, want);
}

static struct wf_pkt packet_of(uint8_t opcode, uint32_t psn, struct iovec *iov, int niov)
{
    uint32_t len = 0;
    for (int i = 0; i < niov; i++)
        len += (uint32_t)iov[i].iov_len;
    return (struct wf_pkt){
        .opcode = opcode,
        .pkey = 0xffff,
        .dqpn = 0x050102,
        .psn = psn,
        .iov = iov,
        .niov = niov,
        .len = len,
    };
}

static void send_all_opcodes(bool v6)
{
    static const uint32_t lens[] = {0, 1, 3, 511, 513, 1024, 4095, 4096};
    struct pair *p = open_pair(v6, 1024);
    static uint8_t data[PAYLOAD_MAX];
    for (size_t i = 0; i < sizeof(data); i++)
        data[i] = (uint8_t)(i * 31 + i / 256);
    int sent = 0;
    for (int op = 0; op < 256; op++) {
        const struct wf_opcode_info *info = wf_opcode_info((uint8_t)op);
        for (int l = 0; info->name && l < (info->flags & WF_F_PAYLOAD ? 8 : 1); l++) {
            // Two pieces where there is something to split.
            struct iovec iov[2] = {{data, lens[l] / 3},
                                   {data + lens[l] / 3, lens[l] - lens[l] / 3}};
            struct wf_pkt pkt = packet_of((uint8_t)op, (uint32_t)sent++, iov, 2);
            pkt.va = 0x1122334455667788;
            pkt.imm = 0xa1b2c3d4;
            assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), 0);
            if (sent % 40 == 0) {
                p->a->ops->flush(p->a);
                receive(p, sent);
            }
        }
    }
    p->a->ops->flush(p->a);
    receive(p, sent);
    for (int i = 0; i < sent; i++) {
        const struct got *g = &p->got[i];
        const struct wf_opcode_info *info = wf_opcode_info(g->pkt.opcode);
        assert_int_equal(g->pkt.psn, i);
        assert_int_equal(g->pkt.dqpn, 0x050102);
        assert_memory_equal(g->data, data, g->pkt.len);
        assert_memory_equal(&g->sgid, &p->net.to_b.sgid, 16);
        assert_memory_equal(&g->dgid, &p->net.to_b.dgid, 16);
        assert_int_equal(g->pkt.tclass, 0x68);
        assert_int_equal(g->pkt.hop_limit, 33);
        assert_int_not_equal(g->pkt.ifindex, 0);
        if (info->flags & WF_H_IMM)
            assert_int_equal(g->pkt.imm, 0xa1b2c3d4);
    }
    const struct wf_udp_counters *c = wf_udp_link_counters(p->b);
    assert_int_equal(c->rx_bad_icrc + c->rx_malformed + c->rx_truncated, 0);
    close_pair(p);
}

static void test_all_opcodes_over_ipv4_arrive_unchanged(void **state)
{
    send_all_opcodes(false);
}

static void test_all_opcodes_over_ipv6_arrive_unchanged(void **state)
{
    send_all_opcodes(true);
}

static void test_equal_packets_to_one_slot_share_a_send(void **state)
{
    struct pair *p = open_pair(false, 64);
    static uint8_t data[4096];
    struct iovec iov = {data, sizeof(data)};
    for (uint32_t i = 0; i < 30; i++) {
        struct wf_pkt pkt = packet_of(WF_OP_WRITE_MIDDLE, i, &iov, 1);
        assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), 0);
    }
    p->a->ops->flush(p->a);
    receive(p, 30);
    const struct wf_udp_counters *tx = wf_udp_link_counters(p->a), *rx = wf_udp_link_counters(p->b);
    assert_int_equal(tx->tx_packets, 30);
    assert_true(tx->tx_batches <= 2 || ((struct wf_udp_link *)p->a)->tx.no_gso);
    assert_int_equal(rx->rx_other_id, 0);
    close_pair(p);
}

static void test_packets_to_two_slots_never_share_a_send(void **state)
{
    struct pair *p = open_pair(false, 64);
    for (uint32_t i = 0; i < 16; i++) {
        struct wf_pkt pkt = packet_of(WF_OP_SEND_ONLY, i, NULL, 0);
        pkt.dqpn = (i & 1) << 16 | 7;
        assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), 0);
    }
    p->a->ops->flush(p->a);
    receive(p, 16);
    assert_int_equal(wf_udp_link_counters(p->a)->tx_batches, 16);
    const struct wf_udp_link *u = (struct wf_udp_link *)p->a;
    assert_int_not_equal(u->socks[0][0].port, u->socks[0][1].port);
    close_pair(p);
}

static void test_budget_of_poll_is_kept_and_nothing_lost(void **state)
{
    struct pair *p = open_pair(false, 64);
    for (uint32_t i = 0; i < 40; i++) {
        struct wf_pkt pkt = packet_of(WF_OP_SEND_ONLY, i, NULL, 0);
        assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), 0);
    }
    p->a->ops->flush(p->a);
    for (int i = 1; i <= 13; i++) {
        assert_int_equal(p->b->ops->poll(p->b, 3), 3);
        assert_int_equal(p->ngot, 3 * i);
    }
    assert_int_equal(p->b->ops->poll(p->b, 3), 1);
    for (uint32_t i = 0; i < 40; i++)
        assert_int_equal(p->got[i].pkt.psn, i);
    close_pair(p);
}

static void test_congestion_mark_travels_both_ways(void **state)
{
    struct pair *p = open_pair(false, 4);
    struct wf_pkt pkt = packet_of(WF_OP_SEND_ONLY, 1, NULL, 0);
    pkt.flags = WF_PKT_CE | WF_PKT_SOLICITED;
    assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), 0);
    p->a->ops->flush(p->a);
    receive(p, 1);
    assert_int_equal(p->got[0].pkt.flags, WF_PKT_CE | WF_PKT_SOLICITED);
    assert_int_equal(p->got[0].pkt.tclass, 0x6b);
    close_pair(p);
}

static void send_raw(const struct pair *p, const void *bytes, size_t len)
{
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(p->net.port)};
    memcpy(&to.sin_addr, p->net.to_b.dgid.raw + 12, 4);
    assert_int_equal(sendto(fd, bytes, len, 0, (struct sockaddr *)&to, sizeof(to)), len);
    close(fd);
}

static void test_garbage_is_dropped_and_counted(void **state)
{
    struct pair *p = open_pair(false, 4);
    static uint8_t big[60000];
    uint8_t ack[20] = {WF_OP_ACK, 0, 0xff, 0xff};
    send_raw(p, NULL, 0);
    send_raw(p, big, 7);
    send_raw(p, big, sizeof(big));
    send_raw(p, ack, sizeof(ack)); // wrong ICRC
    for (int i = 0; i < 10; i++)
        assert_int_equal(p->b->ops->poll(p->b, 64), 0);
    const struct wf_udp_counters *c = wf_udp_link_counters(p->b);
    assert_int_equal(c->rx_malformed, 2);
    assert_int_equal(c->rx_bad_icrc, 2);
    close_pair(p);
}

static void test_payload_of_unmapped_memory_loses_only_its_packet(void **state)
{
    struct pair *p = open_pair(false, 8);
    uint8_t *hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct iovec good = {hole, 4096}, bad = {hole + 4096, 4096};
    for (uint32_t i = 0; i < 3; i++) {
        struct wf_pkt pkt = packet_of(WF_OP_WRITE_MIDDLE, i, i == 1 ? &bad : &good, 1);
        assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), 0);
    }
    munmap(hole + 4096, 4096);
    p->a->ops->flush(p->a);
    receive(p, 2);
    assert_int_equal(p->got[1].pkt.psn, 2);
    assert_int_equal(wf_udp_link_counters(p->a)->tx_bad_memory, 1);
    munmap(hole, 4096);
    close_pair(p);
}

static void test_packet_longer_than_the_interface_is_lost_and_counted(void **state)
{
    struct pair *p = open_pair(false, 4);
    static uint8_t data[65000];
    struct iovec iov = {data, 65520};
    struct wf_pkt pkt = packet_of(WF_OP_SEND_ONLY, 0, &iov, 1);
    iov.iov_len = pkt.len = 65490; // longer than an IPv4 datagram with its headers
    assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), 0);
    p->a->ops->flush(p->a);
    assert_int_equal(wf_udp_link_counters(p->a)->tx_too_long, 1);
    close_pair(p);
}

static void test_gids_of_two_families_are_refused(void **state)
{
    struct pair *p = open_pair(false, 4);
    struct wf_path path = p->net.to_b;
    path.sgid = (union ibv_gid){.raw = {0xfe, 0x80}};
    struct wf_pkt pkt = packet_of(WF_OP_SEND_ONLY, 0, NULL, 0);
    assert_int_equal(p->a->ops->send(p->a, &path, &pkt), -ENETUNREACH);
    close_pair(p);
}

static void test_source_address_not_of_this_host_loses_the_packet(void **state)
{
    struct pair *p = open_pair(false, 4);
    struct wf_path path = p->net.to_b;
    path.sgid = (union ibv_gid){.raw = {[10] = 255, [11] = 255, 192, 0, 2, 1}};
    struct wf_pkt pkt = packet_of(WF_OP_SEND_ONLY, 0, NULL, 0);
    assert_int_equal(p->a->ops->send(p->a, &path, &pkt), 0);
    p->a->ops->flush(p->a);
    assert_int_equal(wf_udp_link_counters(p->a)->tx_no_route, 1);
    assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), 0);
    p->a->ops->flush(p->a);
    receive(p, 1);
    close_pair(p);
}

// Force what a full socket does.
static void test_full_socket_keeps_packets_and_their_payload(void **state)
{
    struct pair *p = open_pair(false, 32);
    struct wf_udp_link *u = (struct wf_udp_link *)p->a;
    static uint8_t data[1024];
    memset(data, 0x5a, sizeof(data));
    struct iovec iov = {data, sizeof(data)};
    struct wf_pkt pkt = packet_of(WF_OP_WRITE_MIDDLE, 0, &iov, 1);
    udp_testing_block(true);
    assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), 0);
    p->a->ops->flush(p->a);
    memset(data, 0, sizeof(data)); // no longer the link's business
    pkt.psn = 1;
    assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), -EAGAIN);
    assert_true(u->counters.tx_blocked >= 2);
    udp_testing_block(false);
    assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), 0);
    p->a->ops->flush(p->a);
    receive(p, 2);
    for (int i = 0; i < 1024; i++)
        assert_int_equal(p->got[0].data[i], 0x5a);
    assert_int_equal(p->got[1].pkt.psn, 1);
    assert_int_equal(p->got[1].data[0], 0);
    close_pair(p);
}

static void test_kernel_without_segmentation_still_sends(void **state)
{
    struct pair *p = open_pair(false, 64);
    static uint8_t data[1024];
    struct iovec iov = {data, sizeof(data)};
    udp_testing_no_gso(true);
    for (uint32_t i = 0; i < 64; i++) {
        struct wf_pkt pkt = packet_of(WF_OP_WRITE_MIDDLE, i, &iov, 1);
        assert_int_equal(p->a->ops->send(p->a, &p->net.to_b, &pkt), 0);
    }
    p->a->ops->flush(p->a);
    udp_testing_no_gso(false);
    receive(p, 64);
    assert_int_equal(wf_udp_link_counters(p->a)->tx_batches, 64);
    close_pair(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_opcodes_over_ipv4_arrive_unchanged),
        cmocka_unit_test(test_all_opcodes_over_ipv6_arrive_unchanged),
        cmocka_unit_test(test_equal_packets_to_one_slot_share_a_send),
        cmocka_unit_test(test_packets_to_two_slots_never_share_a_send),
        cmocka_unit_test(test_budget_of_poll_is_kept_and_nothing_lost),
        cmocka_unit_test(test_congestion_mark_travels_both_ways),
        cmocka_unit_test(test_garbage_is_dropped_and_counted),
        cmocka_unit_test(test_payload_of_unmapped_memory_loses_only_its_packet),
        cmocka_unit_test(test_packet_longer_than_the_interface_is_lost_and_counted),
        cmocka_unit_test(test_gids_of_two_families_are_refused),
        cmocka_unit_test(test_source_address_not_of_this_host_loses_the_packet),
        cmocka_unit_test(test_full_socket_keeps_packets_and_their_payload),
        cmocka_unit_test(test_kernel_without_segmentation_still_sends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
