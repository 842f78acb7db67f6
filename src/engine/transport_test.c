// SPDX-License-Identifier: BSD-2-Clause
// Transport behaviour between two engines on simulated time: data, statuses, order, retries.
#include "engine/sim.h"

#include "wire/aeth.h"
#include "wire/opcode.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define MS 1000000ull
#define S  1000000000ull

static struct sim sim;
static struct wf_qp *a, *b;

static void open_pair(enum ibv_qp_type type, const struct sim_conn *c)
{
    sim_open(&sim);
    a = sim_qp(&sim, 0, type);
    b = sim_qp(&sim, 1, type);
    sim_connect(&sim, a, 0, b, 1, c);
}

static int setup(void **state)
{
    (void)state;
    memset(&sim, 0, sizeof(sim));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sim_close(&sim);
    return 0;
}

static void expect(unsigned host, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = sim_wc(&sim, host);
    assert_int_equal(wc.status, status);
    assert_int_equal(wc.wr_id, wr_id);
}

static void expect_none(unsigned host)
{
    assert_int_equal(sim_wc(&sim, host).status, SIM_NO_WC);
}

static void test_send_of_every_length_class_arrives(void **state)
{
    static const uint32_t lengths[] = {0, 1, 3, 1023, 1024, 1025, 2048, 5000, 100000};
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint32_t len = lengths[i];
        sim_fill(&sim, 0, 0, len, (uint8_t)i);
        memset(sim.host[1].buf, 0, len + 1);
        assert_int_equal(sim_recv(&sim, 1, b, 100 + i, 0, len + 1), 0);
        assert_int_equal(sim_send(&sim, 0, a, i, 0, len), 0);
        sim_settle(&sim);
        expect(0, i, IBV_WC_SUCCESS);
        struct ibv_wc wc = sim_wc(&sim, 1);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
        assert_int_equal(wc.opcode, IBV_WC_RECV);
        assert_int_equal(wc.byte_len, len);
        assert_int_equal(wc.qp_num, b->qpn);
        assert_memory_equal(sim.host[0].buf, sim.host[1].buf, len);
        assert_int_equal(sim.host[1].buf[len], 0);
    }
}

static void test_write_read_and_atomics_move_data(void **state)
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    sim_fill(&sim, 0, 0, 300000, 5);
    assert_int_equal(sim_rdma(&sim, 0, a, IBV_WR_RDMA_WRITE, 1, 0, 300000, 1000), 0);
    assert_int_equal(sim_rdma(&sim, 0, a, IBV_WR_RDMA_READ, 2, 1u << 20, 300000, 1000), 0);
    sim_run(&sim, 10 * S, NULL, NULL);
    expect(0, 1, IBV_WC_SUCCESS);
    struct ibv_wc wc = sim_wc(&sim, 0);
    assert_int_equal(wc.opcode, IBV_WC_RDMA_READ);
    assert_int_equal(wc.byte_len, 300000);
    assert_memory_equal(sim.host[0].buf, sim.host[1].buf + 1000, 300000);
    assert_memory_equal(sim.host[0].buf, sim.host[0].buf + (1u << 20), 300000);

    uint64_t *target = (uint64_t *)sim.host[1].buf, *old = (uint64_t *)sim.host[0].buf;
    *target = 41;
    sim_rdma(&sim, 0, a, IBV_WR_ATOMIC_FETCH_AND_ADD, 3, 0, 8, 0);
    sim_settle(&sim);
    expect(0, 3, IBV_WC_SUCCESS);
    assert_int_equal(*target, 42);
    assert_int_equal(*old, 41);
    *target = 1;
    sim_rdma(&sim, 0, a, IBV_WR_ATOMIC_CMP_AND_SWP, 4, 0, 8, 0);
    sim_settle(&sim);
    expect(0, 4, IBV_WC_SUCCESS);
    assert_int_equal(*target, 77);
    sim_rdma(&sim, 0, a, IBV_WR_ATOMIC_CMP_AND_SWP, 5, 0, 8, 0);
    sim_settle(&sim);
    expect(0, 5, IBV_WC_SUCCESS);
    assert_int_equal(*target, 77);
    assert_int_equal(*old, 77);
}

static void test_write_with_immediate_takes_a_receive(void **state)
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    sim_fill(&sim, 0, 0, 3000, 9);
    sim_recv(&sim, 1, b, 7, 100000, 10);
    sim_rdma(&sim, 0, a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 3000, 0);
    sim_settle(&sim);
    expect(0, 1, IBV_WC_SUCCESS);
    struct ibv_wc wc = sim_wc(&sim, 1);
    assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    assert_int_equal(wc.imm_data, 0x11223344);
    assert_int_equal(wc.byte_len, 3000);
    assert_int_equal(wc.wr_id, 7);
    assert_memory_equal(sim.host[0].buf, sim.host[1].buf, 3000);
}

struct traffic {
    unsigned done[2];
    unsigned want;
    bool failed;
};

static bool traffic_done(void *arg)
{
    struct traffic *t = arg;
    for (unsigned h = 0; h < 2; h++) {
        struct ibv_wc wc;
        while (wf_cq_poll(sim.host[h].cq, 1, &wc) == 1) {
            t->failed |= wc.status != IBV_WC_SUCCESS;
            t->failed |= h == 0 && wc.wr_id != t->done[0];
            t->done[h]++;
        }
    }
    return t->failed || t->done[0] == t->want;
}

// A mix of all operations under loss, repetition and reordering: order and data hold.
static void mixed_traffic(const struct sim_wire_faults *faults)
{
    enum { N = 60, LEN = 5000, AREA = LEN * N };
    sim.faults = *faults;
    struct sim_conn c = sim_defaults;
    c.timeout = 10;
    c.min_rnr_timer = 1;
    open_pair(IBV_QPT_RC, &c);
    sim_fill(&sim, 0, 0, AREA, 3);
    memcpy(sim.host[1].buf + 2 * AREA, sim.host[0].buf, AREA);
    uint64_t *counter = (uint64_t *)(sim.host[1].buf + SIM_BUF - 8);
    *counter = 0;
    unsigned sends = 0, adds = 0;
    struct traffic t = {.want = N};
    for (unsigned i = 0; i < N; i++) {
        uint32_t off = i * LEN;
        switch (i % 4) {
        case 0:
            sim_recv(&sim, 1, b, i, off, LEN);
            assert_int_equal(sim_send(&sim, 0, a, i, off, LEN), 0);
            sends++;
            break;
        case 1:
            sim_rdma(&sim, 0, a, IBV_WR_RDMA_WRITE, i, off, LEN, off);
            break;
        case 2:
            sim_rdma(&sim, 0, a, IBV_WR_RDMA_READ, i, AREA + off, LEN, 2 * AREA + off);
            break;
        default:
            sim_rdma(&sim, 0, a, IBV_WR_ATOMIC_FETCH_AND_ADD, i, SIM_BUF - 8, 8, SIM_BUF - 8);
            adds++;
            break;
        }
    }
    sim_run(&sim, 100 * S, traffic_done, &t);
    assert_false(t.failed);
    assert_int_equal(t.done[0], N);
    assert_int_equal(*counter, adds);
    for (unsigned i = 0; i < N; i++) {
        uint32_t off = i * LEN;
        if (i % 4 < 2)
            assert_memory_equal(sim.host[1].buf + off, sim.host[0].buf + off, LEN);
        if (i % 4 == 2)
            assert_memory_equal(sim.host[0].buf + AREA + off, sim.host[0].buf + off, LEN);
    }
    assert_int_equal(t.done[1], sends);
    sim_close(&sim);
}

static void test_mixed_traffic_survives_a_bad_wire(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 60; seed++) {
        struct sim_wire_faults f = {.drop = seed % 3 == 0 ? 100 : 10,
                                    .dup = seed % 2 ? 30 : 0,
                                    .reorder = seed % 5 ? 30 : 0,
                                    .seed = seed * 2654435761u};
        mixed_traffic(&f);
    }
    sim_open(&sim); // for the teardown
}

static void test_retry_exceeded_comes_in_bounded_time_then_flushes(void **state) // P27
{
    (void)state;
    struct sim_conn c = sim_defaults;
    c.timeout = 8; // 1.05 ms
    c.retry_cnt = 3;
    open_pair(IBV_QPT_RC, &c);
    wf_qp_destroy(b);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(sim_send(&sim, 0, a, i, 0, 100), 0);
    uint64_t start = sim.now;
    sim_run(&sim, 3 * MS, NULL, NULL);
    expect_none(0);
    sim_run(&sim, 14 * MS, NULL, NULL);
    assert_true(sim.now - start >= 4 * MS);
    expect(0, 0, IBV_WC_RETRY_EXC_ERR);
    for (unsigned i = 1; i < 4; i++)
        expect(0, i, IBV_WC_WR_FLUSH_ERR);
    expect_none(0);
    assert_int_equal(wf_qp_state(a), IBV_QPS_ERR);
}

static void test_timeout_zero_never_expires(void **state) // P27
{
    (void)state;
    struct sim_conn c = sim_defaults;
    c.timeout = 0;
    open_pair(IBV_QPT_RC, &c);
    wf_qp_destroy(b);
    sim_send(&sim, 0, a, 1, 0, 100);
    sim_run(&sim, 1000 * S, NULL, NULL);
    expect_none(0);
}

static void rnr(uint8_t rnr_retry, bool late, enum ibv_wc_status want)
{
    struct sim_conn c = sim_defaults;
    c.rnr_retry = rnr_retry;
    open_pair(IBV_QPT_RC, &c);
    sim_send(&sim, 0, a, 1, 0, 100);
    sim_run(&sim, 200 * MS, NULL, NULL);
    if (late) {
        expect_none(0);
        sim_recv(&sim, 1, b, 2, 0, 100);
        sim_run(&sim, 10 * MS, NULL, NULL);
        expect(1, 2, IBV_WC_SUCCESS);
        expect_none(1);
    }
    expect(0, 1, want);
    expect_none(0);
    sim_close(&sim);
}

static void test_rnr_retries_are_counted_and_seven_is_endless(void **state) // P25
{
    (void)state;
    rnr(0, false, IBV_WC_RNR_RETRY_EXC_ERR);
    rnr(1, false, IBV_WC_RNR_RETRY_EXC_ERR);
    rnr(7, true, IBV_WC_SUCCESS);
    sim_open(&sim);
}

static void test_flush_order_after_remote_access_error(void **state) // P19
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(sim_recv(&sim, 0, a, 100 + i, 4096 * i, 100), 0);
    for (unsigned i = 1; i <= 16; i++) {
        struct ibv_sge sge = {(uintptr_t)sim.host[0].buf, 8, wf_mr_lkey(sim.host[0].mr)};
        struct ibv_send_wr *bad, wr = {.wr_id = i,
                                       .sg_list = &sge,
                                       .num_sge = 1,
                                       .opcode = IBV_WR_RDMA_WRITE,
                                       .send_flags = i % 3 == 0 ? IBV_SEND_SIGNALED : 0};
        wr.wr.rdma.remote_addr = (uintptr_t)sim.host[1].buf;
        wr.wr.rdma.rkey = wf_mr_rkey(sim.host[1].mr) ^ (i == 5 ? 0x5a00 : 0);
        assert_int_equal(wf_qp_post_send(a, &wr, &bad), 0);
    }
    sim_settle(&sim);
    expect(0, 3, IBV_WC_SUCCESS);
    expect(0, 5, IBV_WC_REM_ACCESS_ERR);
    struct ibv_wc wc[64];
    unsigned n = sim_drain(&sim, 0, wc, 64), send = 6, recv = 100;
    assert_int_equal(n, 11 + 16);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(wc[i].status, IBV_WC_WR_FLUSH_ERR);
        if (wc[i].wr_id >= 100)
            assert_int_equal(wc[i].wr_id, recv++);
        else
            assert_int_equal(wc[i].wr_id, send++);
    }
    assert_int_equal(wf_qp_state(b), IBV_QPS_ERR);
    assert_int_equal(sim.host[1].events[0].type, IBV_EVENT_QP_ACCESS_ERR);
}

static void test_atomic_refusals_have_their_statuses(void **state) // P15
{
    static const struct {
        unsigned access;
        uint32_t off;
        enum ibv_wc_status want;
    } cases[] = {
        {IBV_ACCESS_REMOTE_WRITE, 0, IBV_WC_REM_INV_REQ_ERR},
        {IBV_ACCESS_REMOTE_ATOMIC, 4, IBV_WC_REM_INV_REQ_ERR},
        {IBV_ACCESS_REMOTE_ATOMIC, 0, IBV_WC_SUCCESS},
    };
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct sim_conn c = sim_defaults;
        c.access = cases[i].access;
        open_pair(IBV_QPT_RC, &c);
        sim_rdma(&sim, 0, a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, cases[i].off);
        sim_settle(&sim);
        expect(0, 1, cases[i].want);
        assert_int_equal(wf_qp_state(b),
                         cases[i].want == IBV_WC_SUCCESS ? IBV_QPS_RTS : IBV_QPS_ERR);
        sim_close(&sim);
    }
    sim_open(&sim);
}

static void test_more_reads_than_responder_keeps_are_refused(void **state) // P17
{
    (void)state;
    struct sim_conn c = sim_defaults;
    open_pair(IBV_QPT_RC, &c);
    for (unsigned i = 0; i < 64; i++)
        sim_rdma(&sim, 0, a, IBV_WR_RDMA_READ, i, i * 4096, 4096, i * 4096);
    sim_run(&sim, S, NULL, NULL);
    for (unsigned i = 0; i < 64; i++)
        expect(0, i, IBV_WC_SUCCESS);
    sim_close(&sim);
    c.dest_rd_atomic = 0;
    open_pair(IBV_QPT_RC, &c);
    sim_rdma(&sim, 0, a, IBV_WR_RDMA_READ, 1, 0, 4096, 0);
    sim_settle(&sim);
    expect(0, 1, IBV_WC_REM_INV_REQ_ERR);
}

static void test_message_longer_than_receive_fails_on_both_sides(void **state)
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    sim_recv(&sim, 1, b, 9, 0, 2000);
    sim_send(&sim, 0, a, 1, 0, 5000);
    sim_settle(&sim);
    expect(1, 9, IBV_WC_LOC_LEN_ERR);
    expect(0, 1, IBV_WC_REM_INV_REQ_ERR);
}

// A page inside a host's buffer that the program unmapped while it was registered.
static void *unmap_page(unsigned host, uint32_t off)
{
    uint8_t *p = (uint8_t *)(((uintptr_t)sim.host[host].buf + off + 4095) & ~(uintptr_t)4095);
    assert_int_equal(mprotect(p, 4096, PROT_NONE), 0);
    return p;
}

static void map_page(void *p)
{
    assert_int_equal(mprotect(p, 4096, PROT_READ | PROT_WRITE), 0);
}

static void test_payload_unmapped_after_posting_is_a_local_protection_error(void **state) // P31
{
    static const enum ibv_wr_opcode ops[] = {IBV_WR_SEND, IBV_WR_RDMA_WRITE};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        open_pair(IBV_QPT_RC, &sim_defaults);
        assert_int_equal(sim_recv(&sim, 1, b, 9, 0, 300000), 0);
        void *gone = unmap_page(0, 200000);
        if (ops[i] == IBV_WR_SEND)
            assert_int_equal(sim_send(&sim, 0, a, 1, 0, 300000), 0);
        else
            assert_int_equal(sim_rdma(&sim, 0, a, ops[i], 1, 0, 300000, 0), 0);
        sim_run(&sim, 5 * S, NULL, NULL);
        map_page(gone);
        expect(0, 1, IBV_WC_LOC_PROT_ERR);
        assert_int_equal(a->state, IBV_QPS_ERR);
        if (i == 0)
            sim_close(&sim);
    }
}

static void test_read_of_memory_unmapped_is_a_remote_operation_error(void **state) // P31
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    void *gone = unmap_page(1, 20000);
    assert_int_equal(sim_rdma(&sim, 0, a, IBV_WR_RDMA_READ, 1, 0, 300000, 0), 0);
    sim_run(&sim, 5 * S, NULL, NULL);
    map_page(gone);
    expect(0, 1, IBV_WC_REM_OP_ERR);
    assert_int_equal(a->state, IBV_QPS_ERR);
    assert_int_equal(b->state, IBV_QPS_ERR);
}

static void test_receive_with_bad_key_is_a_remote_operation_error(void **state)
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    struct ibv_sge sge = {(uintptr_t)sim.host[1].buf, 100, 0xdead00};
    struct ibv_recv_wr *bad, wr = {.wr_id = 9, .sg_list = &sge, .num_sge = 1};
    assert_int_equal(wf_qp_post_recv(b, &wr, &bad), 0);
    sim_send(&sim, 0, a, 1, 0, 50);
    sim_settle(&sim);
    expect(1, 9, IBV_WC_LOC_PROT_ERR);
    expect(0, 1, IBV_WC_REM_OP_ERR);
}

static void test_local_key_error_waits_for_earlier_requests(void **state)
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    sim_rdma(&sim, 0, a, IBV_WR_RDMA_READ, 1, 0, 4096, 0);
    struct ibv_sge sge = {(uintptr_t)sim.host[0].buf, 100, 0xdead00};
    struct ibv_send_wr *bad,
        wr = {.wr_id = 2, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
    assert_int_equal(wf_qp_post_send(a, &wr, &bad), 0);
    sim_send(&sim, 0, a, 3, 0, 4);
    sim_settle(&sim);
    expect(0, 1, IBV_WC_SUCCESS);
    expect(0, 2, IBV_WC_LOC_PROT_ERR);
    expect(0, 3, IBV_WC_WR_FLUSH_ERR);
}

static void test_dead_qp_takes_and_flushes_posts(void **state) // P23
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    assert_int_equal(wf_qp_modify(a, &attr, IBV_QP_STATE), 0);
    for (unsigned i = 0; i < 128; i++)
        assert_int_equal(sim_send(&sim, 0, a, i, 0, 1), 0);
    assert_int_equal(sim_send(&sim, 0, a, 128, 0, 1), -ENOMEM);
    assert_int_equal(sim_recv(&sim, 0, a, 500, 0, 1), 0);
    for (unsigned i = 0; i < 128; i++)
        expect(0, i, IBV_WC_WR_FLUSH_ERR);
    expect(0, 500, IBV_WC_WR_FLUSH_ERR);
    expect_none(0);
}

static void test_unsignaled_sends_free_their_slots_with_the_next_completion(void **state)
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 100; i++) {
            struct ibv_sge sge = {(uintptr_t)sim.host[0].buf, 8, wf_mr_lkey(sim.host[0].mr)};
            struct ibv_send_wr *bad, wr = {.wr_id = i,
                                           .sg_list = &sge,
                                           .num_sge = 1,
                                           .opcode = IBV_WR_RDMA_WRITE,
                                           .send_flags = i == 99 ? IBV_SEND_SIGNALED : 0};
            wr.wr.rdma.remote_addr = (uintptr_t)sim.host[1].buf;
            wr.wr.rdma.rkey = wf_mr_rkey(sim.host[1].mr);
            assert_int_equal(wf_qp_post_send(a, &wr, &bad), 0);
        }
        sim_settle(&sim);
        expect(0, 99, IBV_WC_SUCCESS);
        expect_none(0);
    }
}

static void test_datagram_has_grh_and_source(void **state) // P29
{
    (void)state;
    struct sim_conn c = sim_defaults;
    c.sq_psn = 0;
    open_pair(IBV_QPT_UD, &c);
    struct ibv_ah_attr av;
    struct wf_ah *ah;
    sim_av(&sim, 1, &av);
    assert_int_equal(wf_ah_create(sim.host[0].pd, &av, &ah), 0);
    sim_fill(&sim, 0, 0, 10, 1);
    memset(sim.host[1].buf, 0xee, 64);
    sim_recv(&sim, 1, b, 5, 0, 64);
    struct ibv_sge sge = {(uintptr_t)sim.host[0].buf, 10, wf_mr_lkey(sim.host[0].mr)};
    struct ibv_send_wr *bad, wr = {.wr_id = 1,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND_WITH_IMM,
                                   .imm_data = 0x55,
                                   .send_flags = IBV_SEND_SIGNALED};
    wr.wr.ud.ah = &ah->ibv;
    wr.wr.ud.remote_qpn = b->qpn;
    wr.wr.ud.remote_qkey = 0x1234;
    assert_int_equal(wf_qp_post_send(a, &wr, &bad), 0);
    wr.wr.ud.remote_qkey = 0x9999; // dropped
    assert_int_equal(wf_qp_post_send(a, &wr, &bad), 0);
    sim_settle(&sim);
    expect(0, 1, IBV_WC_SUCCESS);
    struct ibv_wc wc = sim_wc(&sim, 1);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, 50);
    assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
    assert_int_equal(wc.src_qp, a->qpn);
    assert_int_equal(wc.sl, 9); // an IPv6 and UDP header, as mlx5 says it
    assert_int_equal(wc.imm_data, 0x55);
    assert_memory_equal(sim.host[1].buf + 40, sim.host[0].buf, 10);
    assert_memory_equal(sim.host[1].buf + 8, &sim.host[0].hca->gids.gids[0].gid, 16);
    assert_int_equal(sim.host[1].buf[50], 0xee);
    expect_none(1);
    struct ibv_port_attr port;
    wf_hca_query_port(sim.host[1].hca, 1, &port);
    assert_int_equal(port.qkey_viol_cntr, 1);
    wf_ah_destroy(ah);
}

static bool lose_third(struct sim *s, unsigned from, const struct wf_pkt *pkt)
{
    (void)pkt;
    return from == 0 && ++s->filter_count == 3;
}

static void test_uc_drops_a_broken_message_whole_and_goes_on(void **state)
{
    (void)state;
    open_pair(IBV_QPT_UC, &sim_defaults);
    sim.filter = lose_third; // the middle of the first message
    sim_recv(&sim, 1, b, 1, 0, 5000);
    sim_send(&sim, 0, a, 1, 0, 5000);
    sim_fill(&sim, 0, 10000, 5000, 77);
    sim_send(&sim, 0, a, 2, 10000, 5000);
    sim_settle(&sim);
    expect(0, 1, IBV_WC_SUCCESS);
    expect(0, 2, IBV_WC_SUCCESS);
    expect(1, 1, IBV_WC_SUCCESS);
    assert_memory_equal(sim.host[1].buf, sim.host[0].buf + 10000, 5000);
    expect_none(1);
}

static void test_srq_feeds_many_qps_and_fires_its_limit_once(void **state)
{
    (void)state;
    sim_open(&sim);
    struct wf_srq_init init = {.type = IBV_SRQT_BASIC, .max_wr = 16, .max_sge = 1, .limit = 14};
    struct wf_srq *srq;
    assert_int_equal(wf_srq_create(sim.host[1].pd, &init, &srq), 0);
    struct wf_qp *client[2], *server[2];
    for (unsigned i = 0; i < 2; i++) {
        client[i] = sim_qp(&sim, 0, IBV_QPT_RC);
        server[i] = sim_qp_srq(&sim, 1, IBV_QPT_RC, srq);
        sim_connect(&sim, client[i], 0, server[i], 1, &sim_defaults);
    }
    assert_int_equal(wf_srq_destroy(srq), -EBUSY); // P33
    for (unsigned i = 0; i < 16; i++) {
        struct ibv_sge sge = {(uintptr_t)sim.host[1].buf + i * 64, 64, wf_mr_lkey(sim.host[1].mr)};
        struct ibv_recv_wr *bad, wr = {.wr_id = 40 + i, .sg_list = &sge, .num_sge = 1};
        assert_int_equal(wf_srq_post(srq, &wr, &bad), 0);
    }
    for (unsigned i = 0; i < 16; i++)
        sim_send(&sim, 0, client[i % 2], i, 0, 8);
    sim_settle(&sim);
    struct ibv_wc wc[32];
    assert_int_equal(sim_drain(&sim, 1, wc, 32), 16);
    unsigned seen = 0, of_first = 0;
    for (unsigned i = 0; i < 16; i++) {
        assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
        seen |= 1u << (wc[i].wr_id - 40);
        of_first += wc[i].qp_num == server[0]->qpn;
    }
    assert_int_equal(seen, 0xffff);
    assert_int_equal(of_first, 8);
    unsigned limits = 0;
    for (unsigned i = 0; i < sim.host[1].nevents; i++)
        limits += sim.host[1].events[i].type == IBV_EVENT_SRQ_LIMIT_REACHED;
    assert_int_equal(limits, 1);
}

static void test_cq_overrun_fails_its_qps_and_keeps_what_is_there(void **state) // P05
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    struct wf_cq *small;
    struct wf_cq_init init = {.cqe = 4, .user = &small};
    assert_int_equal(wf_cq_create(sim.host[0].ctx, &init, &small), 0);
    struct wf_qp_init qi = {.type = IBV_QPT_RC,
                            .send_cq = small,
                            .recv_cq = small,
                            .cap = {.max_send_wr = 16, .max_send_sge = 1}};
    struct wf_qp *c, *d = sim_qp(&sim, 1, IBV_QPT_RC);
    assert_int_equal(wf_qp_create(sim.host[0].ctx, sim.host[0].pd, &qi, &c), 0);
    sim_connect(&sim, c, 0, d, 1, &sim_defaults);
    for (unsigned i = 0; i < 6; i++)
        sim_rdma(&sim, 0, c, IBV_WR_RDMA_WRITE, i, 0, 8, 0);
    sim_settle(&sim);
    assert_int_equal(wf_qp_state(c), IBV_QPS_ERR);
    assert_int_equal(sim.host[0].events[0].type, IBV_EVENT_CQ_ERR);
    struct ibv_wc wc;
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(wf_cq_poll(small, 1, &wc), 1);
        assert_int_equal(wc.wr_id, i);
        assert_int_equal(wc.status, IBV_WC_SUCCESS);
    }
    assert_int_equal(wf_cq_poll(small, 1, &wc), -EIO);
}

static void test_arming_raises_one_event_and_respects_solicited(void **state) // P01
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    struct sim_host *h = &sim.host[1];
    for (unsigned i = 0; i < 4; i++)
        sim_recv(&sim, 1, b, i, 0, 100);
    wf_cq_arm(h->cq, true);
    sim_send(&sim, 0, a, 1, 0, 8);
    sim_settle(&sim);
    assert_int_equal(h->comp_events, 0);
    struct ibv_sge sge = {(uintptr_t)sim.host[0].buf, 8, wf_mr_lkey(sim.host[0].mr)};
    struct ibv_send_wr *bad, wr = {.wr_id = 2,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = IBV_SEND_SOLICITED};
    wf_qp_post_send(a, &wr, &bad);
    wf_qp_post_send(a, &wr, &bad);
    sim_settle(&sim);
    assert_int_equal(h->comp_events, 1);
    wf_cq_arm(h->cq, false);
    assert_int_equal(h->comp_events, 1);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    wf_cq_arm(h->cq, true);
    wf_qp_modify(b, &attr, IBV_QP_STATE);
    assert_int_equal(h->comp_events, 2);
}

static void test_sqd_drains_and_holds_new_requests(void **state)
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    sim_recv(&sim, 1, b, 1, 0, 100);
    sim_recv(&sim, 1, b, 2, 0, 100);
    sim_send(&sim, 0, a, 1, 0, 50);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    assert_int_equal(wf_qp_modify(a, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    sim_send(&sim, 0, a, 2, 0, 50);
    sim_settle(&sim);
    expect(0, 1, IBV_WC_SUCCESS);
    expect_none(0);
    assert_int_equal(sim.host[0].nevents, 1);
    assert_int_equal(sim.host[0].events[0].type, IBV_EVENT_SQ_DRAINED);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(wf_qp_modify(a, &attr, IBV_QP_STATE), 0);
    sim_settle(&sim);
    expect(0, 2, IBV_WC_SUCCESS);
}

static void test_wrong_psn_is_naked_until_retries_end(void **state)
{
    (void)state;
    open_pair(IBV_QPT_RC, &sim_defaults);
    atomic_store(&b->dir->epsn, (sim_defaults.sq_psn - 100) & WF_PSN_MASK);
    sim_send(&sim, 0, a, 1, 0, 50);
    sim_run(&sim, 10 * S, NULL, NULL);
    struct ibv_wc wc = sim_wc(&sim, 0);
    assert_int_equal(wc.status, IBV_WC_RETRY_EXC_ERR);
}

static void test_loopback_within_one_engine(void **state)
{
    (void)state;
    sim_open(&sim);
    a = sim_qp(&sim, 0, IBV_QPT_RC);
    b = sim_qp(&sim, 0, IBV_QPT_RC);
    sim_connect(&sim, a, 0, b, 0, &sim_defaults);
    sim_fill(&sim, 0, 0, 100000, 8);
    sim_recv(&sim, 0, b, 2, 1u << 20, 100000);
    assert_int_equal(sim_send(&sim, 0, a, 1, 0, 100000), 0);
    struct ibv_wc wc[4];
    assert_int_equal(sim_drain(&sim, 0, wc, 4), 2);
    assert_memory_equal(sim.host[0].buf, sim.host[0].buf + (1u << 20), 100000);
    assert_int_equal(sim.sent, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_send_of_every_length_class_arrives),
        T(test_write_read_and_atomics_move_data),
        T(test_write_with_immediate_takes_a_receive),
        T(test_mixed_traffic_survives_a_bad_wire),
        T(test_retry_exceeded_comes_in_bounded_time_then_flushes),
        T(test_timeout_zero_never_expires),
        T(test_rnr_retries_are_counted_and_seven_is_endless),
        T(test_flush_order_after_remote_access_error),
        T(test_atomic_refusals_have_their_statuses),
        T(test_more_reads_than_responder_keeps_are_refused),
        T(test_message_longer_than_receive_fails_on_both_sides),
        T(test_payload_unmapped_after_posting_is_a_local_protection_error),
        T(test_read_of_memory_unmapped_is_a_remote_operation_error),
        T(test_receive_with_bad_key_is_a_remote_operation_error),
        T(test_local_key_error_waits_for_earlier_requests),
        T(test_dead_qp_takes_and_flushes_posts),
        T(test_unsignaled_sends_free_their_slots_with_the_next_completion),
        T(test_datagram_has_grh_and_source),
        T(test_uc_drops_a_broken_message_whole_and_goes_on),
        T(test_srq_feeds_many_qps_and_fires_its_limit_once),
        T(test_cq_overrun_fails_its_qps_and_keeps_what_is_there),
        T(test_arming_raises_one_event_and_respects_solicited),
        T(test_sqd_drains_and_holds_new_requests),
        T(test_wrong_psn_is_naked_until_retries_end),
        T(test_loopback_within_one_engine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
