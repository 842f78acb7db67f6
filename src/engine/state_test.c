// SPDX-License-Identifier: BSD-2-Clause
// QP state changes (P21), path migration, P_Keys.
#include "engine/sim.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct sim sim;

static int teardown(void **state)
{
    (void)state;
    sim_close(&sim);
    memset(&sim, 0, sizeof(sim));
    return 0;
}

// Attributes that fit every change, and the mask that an RC QP needs for it.
static struct ibv_qp_attr attributes(enum ibv_qp_state to)
{
    struct ibv_qp_attr a = {.qp_state = to,
                            .port_num = 1,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = 0x20002,
                            .timeout = 14,
                            .retry_cnt = 7,
                            .rnr_retry = 7,
                            .max_rd_atomic = 1,
                            .max_dest_rd_atomic = 1};
    sim_av(&sim, 1, &a.ah_attr);
    return a;
}

static int needed(enum ibv_qp_state from, enum ibv_qp_state to)
{
    if (to == IBV_QPS_INIT && from == IBV_QPS_RESET)
        return IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    if (to == IBV_QPS_RTR)
        return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    if (to == IBV_QPS_RTS && from == IBV_QPS_RTR)
        return IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC;
    return 0;
}

static int change(struct wf_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
    struct ibv_qp_attr a = attributes(to);
    return wf_qp_modify(qp, &a, IBV_QP_STATE | needed(from, to));
}

static void bring_to(struct wf_qp *qp, enum ibv_qp_state to)
{
    static const enum ibv_qp_state way[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_SQD};
    enum ibv_qp_state at = IBV_QPS_RESET;
    if (to == IBV_QPS_RESET)
        return;
    if (to == IBV_QPS_ERR) {
        assert_int_equal(change(qp, at, to), 0);
        return;
    }
    for (unsigned i = 0; at != to; at = way[i++])
        assert_int_equal(change(qp, at, way[i]), 0);
}

static void test_every_pair_of_states_follows_the_table(void **state) // P21
{
    // From the specification's diagram; SQE cannot be entered by its user.
    static const enum ibv_qp_state states[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                               IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_ERR};
    static const bool allowed[6][6] = {
        {1, 1, 0, 0, 0, 1}, // RESET to RESET, INIT, RTR, RTS, SQD, ERR
        {1, 1, 1, 0, 0, 1}, // INIT
        {1, 0, 0, 1, 0, 1}, // RTR
        {1, 0, 0, 1, 1, 1}, // RTS
        {1, 0, 0, 1, 1, 1}, // SQD
        {1, 0, 0, 0, 0, 1}, // ERR
    };
    (void)state;
    sim_open(&sim);
    for (unsigned i = 0; i < 6; i++) {
        for (unsigned j = 0; j < 6; j++) {
            struct wf_qp *qp = sim_qp(&sim, 0, IBV_QPT_RC);
            bring_to(qp, states[i]);
            int err = change(qp, states[i], states[j]);
            assert_int_equal(err, allowed[i][j] ? 0 : -EINVAL);
            assert_int_equal(wf_qp_state(qp), allowed[i][j] ? states[j] : states[i]);
            wf_qp_destroy(qp);
        }
    }
}

static void test_each_missing_attribute_is_refused_and_leaves_the_state(void **state)
{
    static const enum ibv_qp_state way[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    (void)state;
    sim_open(&sim);
    for (unsigned i = 0; i < 3; i++) {
        int all = needed(way[i], way[i + 1]);
        for (int bit = 1; bit < 1 << 26; bit <<= 1) {
            if (!(all & bit))
                continue;
            struct wf_qp *qp = sim_qp(&sim, 0, IBV_QPT_RC);
            bring_to(qp, way[i]);
            struct ibv_qp_attr a = attributes(way[i + 1]);
            assert_int_equal(wf_qp_modify(qp, &a, IBV_QP_STATE | (all & ~bit)), -EINVAL);
            assert_int_equal(wf_qp_state(qp), way[i]);
            wf_qp_destroy(qp);
        }
    }
}

static void test_values_out_of_range_are_refused(void **state)
{
    (void)state;
    sim_open(&sim);
    struct wf_qp *qp = sim_qp(&sim, 0, IBV_QPT_RC);
    struct ibv_qp_attr a = attributes(IBV_QPS_INIT);
    a.port_num = 2;
    assert_int_equal(wf_qp_modify(qp, &a, IBV_QP_STATE | needed(IBV_QPS_RESET, IBV_QPS_INIT)),
                     -EINVAL);
    bring_to(qp, IBV_QPS_INIT);
    int mask = IBV_QP_STATE | needed(IBV_QPS_INIT, IBV_QPS_RTR);
    a = attributes(IBV_QPS_RTR);
    a.path_mtu = 9;
    assert_int_equal(wf_qp_modify(qp, &a, mask), -EINVAL);
    a = attributes(IBV_QPS_RTR);
    a.ah_attr.is_global = 0;
    assert_int_equal(wf_qp_modify(qp, &a, mask), -EINVAL);
    a = attributes(IBV_QPS_RTR);
    a.ah_attr.grh.sgid_index = 5; // empty
    assert_int_equal(wf_qp_modify(qp, &a, mask), -EINVAL);
    a = attributes(IBV_QPS_RTR);
    a.max_dest_rd_atomic = 200;
    assert_int_equal(wf_qp_modify(qp, &a, mask), -EINVAL);
    assert_int_equal(wf_qp_state(qp), IBV_QPS_INIT);
}

static void load_alternate(struct wf_qp *qp, unsigned to)
{
    struct ibv_qp_attr a = {.path_mig_state = IBV_MIG_REARM, .alt_port_num = 1, .alt_timeout = 14};
    sim_av(&sim, to, &a.alt_ah_attr);
    a.alt_ah_attr.grh.sgid_index = 1;
    a.alt_ah_attr.grh.dgid.raw[1] = 1; // the second address of that host
    assert_int_equal(wf_qp_modify(qp, &a, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE), 0);
}

static bool lose_primary(struct sim *s, unsigned from, const struct wf_pkt *pkt)
{
    (void)s, (void)from;
    return pkt->sgid->raw[1] == 0;
}

static bool saw(unsigned host, enum ibv_event_type type)
{
    for (unsigned i = 0; i < sim.host[host].nevents; i++)
        if (sim.host[host].events[i].type == type)
            return true;
    return false;
}

static void test_qp_migrates_when_the_primary_path_dies(void **state)
{
    (void)state;
    sim_open(&sim);
    for (unsigned i = 0; i < 2; i++) {
        struct wf_gid_slot *g = sim.host[i].hca->gids.gids;
        g[1] = g[0];
        g[1].gid.raw[1] = 1;
    }
    struct wf_qp *a = sim_qp(&sim, 0, IBV_QPT_RC), *b = sim_qp(&sim, 1, IBV_QPT_RC);
    sim_connect(&sim, a, 0, b, 1, &sim_defaults);
    load_alternate(a, 1);
    load_alternate(b, 0);
    sim_recv(&sim, 1, b, 1, 0, 100);
    sim_send(&sim, 0, a, 1, 0, 10);
    sim_settle(&sim);
    assert_int_equal(sim_wc(&sim, 0).status, IBV_WC_SUCCESS);
    assert_int_equal(a->attr.path_mig_state, IBV_MIG_ARMED);
    assert_int_equal(b->attr.path_mig_state, IBV_MIG_ARMED);
    sim.filter = lose_primary;
    sim_recv(&sim, 1, b, 2, 0, 100);
    sim_send(&sim, 0, a, 2, 0, 10);
    sim_run(&sim, 10000000000ull, NULL, NULL);
    assert_int_equal(sim_wc(&sim, 0).status, IBV_WC_SUCCESS);
    assert_true(saw(0, IBV_EVENT_PATH_MIG));
    assert_true(saw(1, IBV_EVENT_PATH_MIG));
    assert_int_equal(a->attr.path_mig_state, IBV_MIG_MIGRATED);
    assert_int_equal(a->attr.ah_attr.grh.sgid_index, 1);
}

static void test_pkeys_parse_and_other_partitions_are_dropped(void **state)
{
    uint16_t keys[WF_PKEYS];
    (void)state;
    sim_open(&sim);
    assert_int_equal(wf_pkeys_parse("ffff,8001,7002", keys), 0);
    assert_int_equal(keys[2], 0x7002);
    assert_int_equal(wf_pkeys_parse("ffff,", keys), 0);
    assert_int_equal(wf_pkeys_parse("zz", keys), -EINVAL);
    assert_int_equal(wf_pkeys_parse("8000", keys), -EINVAL);
    struct wf_qp *a = sim_qp(&sim, 0, IBV_QPT_RC), *b = sim_qp(&sim, 1, IBV_QPT_RC);
    sim_connect(&sim, a, 0, b, 1, &sim_defaults);
    b->pkey = 0x8001;
    sim_recv(&sim, 1, b, 1, 0, 100);
    sim_send(&sim, 0, a, 1, 0, 10);
    sim_settle(&sim);
    assert_int_equal(sim_wc(&sim, 0).status, SIM_NO_WC);
    struct ibv_port_attr port;
    wf_hca_query_port(sim.host[1].hca, 1, &port);
    assert_int_equal(port.bad_pkey_cntr, 1);
    // Two limited members do not talk; a limited and a full one do.
    a->pkey = b->pkey = 0x0001;
    sim_run(&sim, 300000000, NULL, NULL);
    assert_int_equal(sim_wc(&sim, 0).status, SIM_NO_WC);
    b->pkey = 0x8001;
    sim_run(&sim, 300000000, NULL, NULL);
    assert_int_equal(sim_wc(&sim, 0).status, IBV_WC_SUCCESS);
}

#define T(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_every_pair_of_states_follows_the_table),
        T(test_each_missing_attribute_is_refused_and_leaves_the_state),
        T(test_values_out_of_range_are_refused),
        T(test_qp_migrates_when_the_primary_path_dies),
        T(test_pkeys_parse_and_other_partitions_are_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
