// SPDX-License-Identifier: BSD-2-Clause
// Many connections at once over a network that loses, doubles and reorders: each comes up or fails
// within the time that its retries allow, and nothing is left behind.
#include "cm/cm.h"
#include "cm/test_net.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define CONNECTIONS 40

struct outcome {
    unsigned established, failed, rejected, disconnected, exits;
};

static void answer_passive(struct wf_cm_event *ev, struct outcome *o, uint32_t *qpn)
{
    struct wf_cm_rep_param rep = {.qpn = 0x020000 | ++*qpn, .psn = 5};
    switch (ev->type) {
    case WF_CM_REQ_RECEIVED:
        wf_cm_send_rep(ev->id, &rep);
        break;
    case WF_CM_RTU_RECEIVED:
        o->established++;
        break;
    case WF_CM_DREQ_RECEIVED:
        o->disconnected++;
        wf_cm_send_drep(ev->id, NULL, 0);
        wf_cm_id_destroy(ev->id);
        break;
    case WF_CM_REP_ERROR:
    case WF_CM_REJ_RECEIVED:
        o->failed++;
        wf_cm_id_destroy(ev->id);
        break;
    default:
        fail_msg("passive side: event %d", (int)ev->type);
    }
}

static void answer_active(struct wf_cm_event *ev, struct outcome *o)
{
    switch (ev->type) {
    case WF_CM_REP_RECEIVED:
        wf_cm_send_rtu(ev->id, NULL, 0);
        o->established++;
        break;
    case WF_CM_REQ_ERROR:
        o->failed++;
        wf_cm_id_destroy(ev->id);
        break;
    case WF_CM_REJ_RECEIVED:
        o->rejected++;
        wf_cm_id_destroy(ev->id);
        break;
    case WF_CM_DREP_RECEIVED:
    case WF_CM_DREQ_ERROR:
        o->disconnected++;
        break;
    case WF_CM_TIMEWAIT_EXIT:
        o->exits++;
        wf_cm_id_destroy(ev->id);
        break;
    default:
        fail_msg("active side: event %d", (int)ev->type);
    }
}

static void run(struct net *n, struct outcome *a, struct outcome *p, uint64_t ms)
{
    static uint32_t qpn;
    uint64_t end = n->now + ms * NET_MS;
    struct wf_cm_event ev;
    for (;;) {
        net_run(n, end);
        if (wf_cm_next_event(n->node[0].cm, &ev))
            answer_active(&ev, a);
        else if (wf_cm_next_event(n->node[1].cm, &ev))
            answer_passive(&ev, p, &qpn);
        else
            return;
    }
}

static void one_seed(uint64_t seed, unsigned loss)
{
    static struct net n;
    struct outcome a = {0}, p = {0};
    struct wf_cm_id *listener, *ids[CONNECTIONS];
    net_start(&n, seed);
    n.loss = loss;
    n.twice = 100;
    n.reorder = 200;
    assert_int_equal(wf_cm_id_create(n.node[1].cm, NULL, &listener), 0);
    assert_int_equal(wf_cm_listen(listener, NET_SERVICE, 0, NULL), 0);
    struct wf_cm_route r = net_route(&n, 0, 1);
    struct wf_cm_req_param req = net_req(&r);
    req.max_cm_retries = 15;
    for (int i = 0; i < CONNECTIONS; i++) {
        req.qpn = 0x010000u + (uint32_t)i;
        assert_int_equal(wf_cm_id_create(n.node[0].cm, NULL, &ids[i]), 0);
        assert_int_equal(wf_cm_send_req(ids[i], &req), 0);
    }
    run(&n, &a, &p, 200000);
    // 16 tries at up to 30% loss each way: all come up, on both sides.
    assert_int_equal(a.established, CONNECTIONS);
    assert_int_equal(p.established, CONNECTIONS);
    for (int i = 0; i < CONNECTIONS; i++)
        assert_int_equal(wf_cm_send_dreq(ids[i], NULL, 0), 0);
    run(&n, &a, &p, 200000);
    assert_int_equal(a.disconnected, CONNECTIONS);
    assert_int_equal(p.disconnected, CONNECTIONS);
    assert_int_equal(a.exits, CONNECTIONS);
    assert_int_equal(wf_cm_stats(n.node[0].cm)->ids, 0);
    assert_int_equal(wf_cm_stats(n.node[1].cm)->ids, 1);
    assert_int_equal(n.node[0].wills + n.node[1].wills, 0);
    net_stop(&n);
}

static void test_loss_connections_come_up_and_go_whatever_the_seed(void **state)
{
    for (uint64_t seed = 1; seed <= 30; seed++)
        one_seed(seed, (unsigned)(seed % 4) * 100);
}

static void test_loss_of_everything_fails_in_the_configured_time(void **state)
{
    static struct net n;
    struct outcome a = {0}, p = {0};
    struct wf_cm_id *id;
    net_start(&n, 3);
    n.loss = 1000;
    struct wf_cm_route r = net_route(&n, 0, 1);
    struct wf_cm_req_param req = net_req(&r);
    assert_int_equal(wf_cm_id_create(n.node[0].cm, NULL, &id), 0);
    assert_int_equal(wf_cm_send_req(id, &req), 0);
    run(&n, &a, &p, 4 * 4608 - 1);
    assert_int_equal(a.failed, 0);
    run(&n, &a, &p, 2);
    assert_int_equal(a.failed, 1);
    net_stop(&n);
}

static void test_many_cycles_leave_nothing_behind(void **state)
{
    static struct net n;
    struct outcome a = {0}, p = {0};
    struct wf_cm_id *listener, *id;
    net_start(&n, 4);
    assert_int_equal(wf_cm_id_create(n.node[1].cm, NULL, &listener), 0);
    assert_int_equal(wf_cm_listen(listener, NET_SERVICE, 0, NULL), 0);
    struct wf_cm_route r = net_route(&n, 0, 1);
    struct wf_cm_req_param req = net_req(&r);
    for (unsigned i = 0; i < 20000; i++) {
        req.qpn = 0x010000 | (i & 0xffff);
        assert_int_equal(wf_cm_id_create(n.node[0].cm, NULL, &id), 0);
        assert_int_equal(wf_cm_send_req(id, &req), 0);
        run(&n, &a, &p, 1);
        assert_int_equal(wf_cm_send_dreq(id, NULL, 0), 0);
        run(&n, &a, &p, 1);
    }
    run(&n, &a, &p, 1000);
    assert_int_equal(a.exits, 20000);
    assert_int_equal(wf_cm_stats(n.node[0].cm)->ids, 0);
    assert_int_equal(wf_cm_stats(n.node[1].cm)->ids, 1);
    net_stop(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_connections_come_up_and_go_whatever_the_seed),
        cmocka_unit_test(test_loss_of_everything_fails_in_the_configured_time),
        cmocka_unit_test(test_many_cycles_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
