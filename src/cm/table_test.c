// SPDX-License-Identifier: BSD-2-Clause
// Every cell of the state table against a list typed from the standard and the reference pages: an
// id is brought into the state by a real exchange, the input is given, and the next state, what was
// sent and the event are compared. A cell that the list lacks must change and send nothing.
#include "cm/internal.h"
#include "cm/test_net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define NOTHING  0
#define NO_EVENT (-1)

struct expect {
    enum wf_cm_state from;
    enum wf_cm_input in;
    enum wf_cm_state to;
    uint16_t sent; // attribute, or NOTHING
    int event;     // or NO_EVENT
};

#define X(from, in, to, sent, event)                                                               \
    {                                                                                              \
        WF_CM_##from, in, WF_CM_##to, sent, event                                                  \
    }

static const struct expect cells[] = {
    X(IDLE, IN_LISTEN, LISTEN, NOTHING, NO_EVENT),
    X(IDLE, IN_REQ, REQ_SENT, WF_CM_REQ, NO_EVENT),
    X(IDLE, IN_SIDR_REQ, SIDR_REQ_SENT, WF_CM_SIDR_REQ, NO_EVENT),
    X(REQ_SENT, IN_REJ, IDLE, WF_CM_REJ, NO_EVENT),
    X(REQ_SENT, RX_PEER_REQ, REQ_SENT, NOTHING, NO_EVENT),
    X(REQ_SENT, RX_MRA_REQ, MRA_REQ_RCVD, NOTHING, WF_CM_MRA_RECEIVED),
    X(REQ_SENT, RX_REJ, IDLE, NOTHING, WF_CM_REJ_RECEIVED),
    X(REQ_SENT, RX_REP, REP_RCVD, NOTHING, WF_CM_REP_RECEIVED),
    X(REQ_SENT, TIMER, IDLE, NOTHING, WF_CM_REQ_ERROR),
    X(REQ_RCVD, IN_REP, REP_SENT, WF_CM_REP, NO_EVENT),
    X(REQ_RCVD, IN_REJ, IDLE, WF_CM_REJ, NO_EVENT),
    X(REQ_RCVD, IN_MRA, MRA_REQ_SENT, WF_CM_MRA, NO_EVENT),
    X(REQ_RCVD, RX_REQ, REQ_RCVD, NOTHING, NO_EVENT),
    X(REQ_RCVD, RX_REJ, IDLE, NOTHING, WF_CM_REJ_RECEIVED),
    X(MRA_REQ_SENT, IN_REP, REP_SENT, WF_CM_REP, NO_EVENT),
    X(MRA_REQ_SENT, IN_REJ, IDLE, WF_CM_REJ, NO_EVENT),
    X(MRA_REQ_SENT, RX_REQ, MRA_REQ_SENT, WF_CM_MRA, NO_EVENT),
    X(MRA_REQ_SENT, RX_REJ, IDLE, NOTHING, WF_CM_REJ_RECEIVED),
    X(MRA_REQ_RCVD, IN_REJ, IDLE, WF_CM_REJ, NO_EVENT),
    X(MRA_REQ_RCVD, RX_REJ, IDLE, NOTHING, WF_CM_REJ_RECEIVED),
    X(MRA_REQ_RCVD, RX_REP, REP_RCVD, NOTHING, WF_CM_REP_RECEIVED),
    X(MRA_REQ_RCVD, TIMER, IDLE, NOTHING, WF_CM_REQ_ERROR),
    X(REP_SENT, IN_REJ, TIMEWAIT, WF_CM_REJ, NO_EVENT),
    X(REP_SENT, IN_ESTABLISHED, ESTABLISHED, NOTHING, WF_CM_USER_ESTABLISHED),
    X(REP_SENT, RX_REQ, REP_SENT, NOTHING, NO_EVENT),
    X(REP_SENT, RX_MRA_REP, MRA_REP_RCVD, NOTHING, WF_CM_MRA_RECEIVED),
    X(REP_SENT, RX_REJ, IDLE, NOTHING, WF_CM_REJ_RECEIVED),
    X(REP_SENT, RX_RTU, ESTABLISHED, NOTHING, WF_CM_RTU_RECEIVED),
    X(REP_SENT, RX_DREQ, DREQ_RCVD, NOTHING, WF_CM_DREQ_RECEIVED),
    X(REP_SENT, TIMER, IDLE, NOTHING, WF_CM_REP_ERROR),
    X(REP_RCVD, IN_RTU, ESTABLISHED, WF_CM_RTU, NO_EVENT),
    X(REP_RCVD, IN_REJ, IDLE, WF_CM_REJ, NO_EVENT),
    X(REP_RCVD, IN_MRA, MRA_REP_SENT, WF_CM_MRA, NO_EVENT),
    X(REP_RCVD, RX_REP, REP_RCVD, NOTHING, NO_EVENT),
    X(REP_RCVD, RX_REJ, TIMEWAIT, NOTHING, WF_CM_REJ_RECEIVED),
    X(MRA_REP_SENT, IN_RTU, ESTABLISHED, WF_CM_RTU, NO_EVENT),
    X(MRA_REP_SENT, IN_REJ, IDLE, WF_CM_REJ, NO_EVENT),
    X(MRA_REP_SENT, RX_REP, MRA_REP_SENT, WF_CM_MRA, NO_EVENT),
    X(MRA_REP_SENT, RX_REJ, TIMEWAIT, NOTHING, WF_CM_REJ_RECEIVED),
    X(MRA_REP_RCVD, IN_REJ, TIMEWAIT, WF_CM_REJ, NO_EVENT),
    X(MRA_REP_RCVD, IN_ESTABLISHED, ESTABLISHED, NOTHING, WF_CM_USER_ESTABLISHED),
    X(MRA_REP_RCVD, RX_REQ, MRA_REP_RCVD, NOTHING, NO_EVENT),
    X(MRA_REP_RCVD, RX_REJ, IDLE, NOTHING, WF_CM_REJ_RECEIVED),
    X(MRA_REP_RCVD, RX_RTU, ESTABLISHED, NOTHING, WF_CM_RTU_RECEIVED),
    X(MRA_REP_RCVD, RX_DREQ, DREQ_RCVD, NOTHING, WF_CM_DREQ_RECEIVED),
    X(MRA_REP_RCVD, TIMER, IDLE, NOTHING, WF_CM_REP_ERROR),
    X(ESTABLISHED, IN_DREQ, DREQ_SENT, WF_CM_DREQ, NO_EVENT),
    X(ESTABLISHED, IN_LAP, ESTABLISHED, WF_CM_LAP, NO_EVENT),
    X(ESTABLISHED, RX_REQ, ESTABLISHED, NOTHING, NO_EVENT),
    X(ESTABLISHED, RX_REP, ESTABLISHED, WF_CM_RTU, NO_EVENT),
    X(ESTABLISHED, RX_MRA_OTHER, ESTABLISHED, NOTHING, NO_EVENT),
    X(ESTABLISHED, RX_REJ, TIMEWAIT, NOTHING, WF_CM_REJ_RECEIVED),
    X(ESTABLISHED, RX_DREQ, DREQ_RCVD, NOTHING, WF_CM_DREQ_RECEIVED),
    X(ESTABLISHED, RX_LAP, ESTABLISHED, NOTHING, WF_CM_LAP_RECEIVED),
    X(ESTABLISHED, RX_APR, ESTABLISHED, NOTHING, NO_EVENT),
    X(ESTABLISHED, TIMER, ESTABLISHED, NOTHING, WF_CM_LAP_ERROR),
    X(DREQ_SENT, RX_REJ, TIMEWAIT, NOTHING, WF_CM_REJ_RECEIVED),
    X(DREQ_SENT, RX_DREQ, DREQ_RCVD, NOTHING, WF_CM_DREQ_RECEIVED),
    X(DREQ_SENT, RX_DREP, TIMEWAIT, NOTHING, WF_CM_DREP_RECEIVED),
    X(DREQ_SENT, TIMER, TIMEWAIT, NOTHING, WF_CM_DREQ_ERROR),
    X(DREQ_RCVD, IN_DREP, TIMEWAIT, WF_CM_DREP, NO_EVENT),
    X(DREQ_RCVD, RX_DREQ, DREQ_RCVD, NOTHING, NO_EVENT),
    X(DREQ_RCVD, RX_DREP, TIMEWAIT, NOTHING, WF_CM_DREP_RECEIVED),
    X(TIMEWAIT, RX_REQ, TIMEWAIT, WF_CM_REJ, NO_EVENT),
    X(TIMEWAIT, RX_DREQ, TIMEWAIT, WF_CM_DREP, NO_EVENT),
    X(TIMEWAIT, TIMER, IDLE, NOTHING, WF_CM_TIMEWAIT_EXIT),
    X(SIDR_REQ_SENT, RX_SIDR_REP, IDLE, NOTHING, WF_CM_SIDR_REP_RECEIVED),
    X(SIDR_REQ_SENT, TIMER, IDLE, NOTHING, WF_CM_SIDR_REQ_ERROR),
    X(SIDR_REQ_RCVD, IN_SIDR_REP, IDLE, WF_CM_SIDR_REP, NO_EVENT),
    X(SIDR_REQ_RCVD, RX_SIDR_REQ, SIDR_REQ_RCVD, NOTHING, NO_EVENT),
};

// ---- bring an id into a state -------------------------------------------------------------------

struct bench {
    struct net n;
    struct wf_cm_route route;
    struct wf_cm_id *listener;
    struct wf_cm_id *a, *b; // active side at node 0, passive at node 1
    int node;               // where the id under test lives
};

static struct wf_cm_event wait_event(struct bench *x, int node, enum wf_cm_event_type type)
{
    struct wf_cm_event ev;
    net_deliver(&x->n);
    assert_true(wf_cm_next_event(x->n.node[node].cm, &ev));
    assert_int_equal(ev.type, type);
    return ev;
}

static void req_sent(struct bench *x)
{
    struct wf_cm_req_param p = net_req(&x->route);
    assert_int_equal(wf_cm_send_req(x->a, &p), 0);
}

static void req_rcvd(struct bench *x)
{
    req_sent(x);
    x->b = wait_event(x, 1, WF_CM_REQ_RECEIVED).id;
}

static void rep_sent(struct bench *x)
{
    struct wf_cm_rep_param p = {.qpn = 0x020022, .psn = 0x654321, .rnr_retry = 5};
    req_rcvd(x);
    assert_int_equal(wf_cm_send_rep(x->b, &p), 0);
}

static void rep_rcvd(struct bench *x)
{
    rep_sent(x);
    wait_event(x, 0, WF_CM_REP_RECEIVED);
}

static void established(struct bench *x)
{
    rep_rcvd(x);
    assert_int_equal(wf_cm_send_rtu(x->a, NULL, 0), 0);
    wait_event(x, 1, WF_CM_RTU_RECEIVED);
}

static void sidr_req_sent(struct bench *x)
{
    struct wf_cm_sidr_req_param p = {
        .path = &x->route, .service_id = NET_SERVICE, .timeout_ms = 100, .max_cm_retries = 2};
    assert_int_equal(wf_cm_send_sidr_req(x->a, &p), 0);
}

static struct wf_cm_id *on_passive(struct bench *x)
{
    x->node = 1;
    return x->b;
}

static struct wf_cm_id *bring(struct bench *x, enum wf_cm_state state)
{
    net_start(&x->n, 7);
    x->route = net_route(&x->n, 0, 1);
    x->node = 0;
    assert_int_equal(wf_cm_id_create(x->n.node[1].cm, NULL, &x->listener), 0);
    assert_int_equal(wf_cm_listen(x->listener, NET_SERVICE, 0, NULL), 0);
    assert_int_equal(wf_cm_id_create(x->n.node[0].cm, x, &x->a), 0);
    switch (state) {
    case WF_CM_IDLE:
        break;
    case WF_CM_LISTEN:
        assert_int_equal(wf_cm_listen(x->a, NET_SERVICE, 0, NULL), 0);
        break;
    case WF_CM_REQ_SENT:
        req_sent(x);
        break;
    case WF_CM_REQ_RCVD:
        req_rcvd(x);
        return on_passive(x);
    case WF_CM_MRA_REQ_SENT:
        req_rcvd(x);
        assert_int_equal(wf_cm_send_mra(x->b, 20, NULL, 0), 0);
        return on_passive(x);
    case WF_CM_MRA_REQ_RCVD:
        req_rcvd(x);
        assert_int_equal(wf_cm_send_mra(x->b, 20, NULL, 0), 0);
        wait_event(x, 0, WF_CM_MRA_RECEIVED);
        break;
    case WF_CM_REP_SENT:
        rep_sent(x);
        return on_passive(x);
    case WF_CM_REP_RCVD:
        rep_rcvd(x);
        break;
    case WF_CM_MRA_REP_SENT:
        rep_rcvd(x);
        assert_int_equal(wf_cm_send_mra(x->a, 20, NULL, 0), 0);
        break;
    case WF_CM_MRA_REP_RCVD:
        rep_rcvd(x);
        assert_int_equal(wf_cm_send_mra(x->a, 20, NULL, 0), 0);
        wait_event(x, 1, WF_CM_MRA_RECEIVED);
        return on_passive(x);
    case WF_CM_ESTABLISHED:
        established(x);
        break;
    case WF_CM_DREQ_SENT:
        established(x);
        assert_int_equal(wf_cm_send_dreq(x->a, NULL, 0), 0);
        break;
    case WF_CM_DREQ_RCVD:
        established(x);
        assert_int_equal(wf_cm_send_dreq(x->b, NULL, 0), 0);
        wait_event(x, 0, WF_CM_DREQ_RECEIVED);
        break;
    case WF_CM_TIMEWAIT:
        established(x);
        assert_int_equal(wf_cm_send_dreq(x->b, NULL, 0), 0);
        wait_event(x, 0, WF_CM_DREQ_RECEIVED);
        assert_int_equal(wf_cm_send_drep(x->a, NULL, 0), 0);
        break;
    case WF_CM_SIDR_REQ_SENT:
        sidr_req_sent(x);
        break;
    case WF_CM_SIDR_REQ_RCVD:
        sidr_req_sent(x);
        x->b = wait_event(x, 1, WF_CM_SIDR_REQ_RECEIVED).id;
        return on_passive(x);
    case WF_CM_STATES:
        fail();
    }
    return x->a;
}

// ---- give it an input ---------------------------------------------------------------------------

static int call(struct bench *x, struct wf_cm_id *id, enum wf_cm_input in)
{
    struct wf_cm_req_param req = net_req(&x->route);
    struct wf_cm_rep_param rep = {.qpn = 5};
    struct wf_cm_sidr_req_param sidr_req = {.path = &x->route, .timeout_ms = 10};
    struct wf_cm_sidr_rep_param sidr_rep = {.qpn = 5};
    struct wf_cm_route alt = net_route2(&x->n, x->node, !x->node);
    switch (in) {
    case IN_LISTEN:
        return wf_cm_listen(id, 0x77, 0, NULL);
    case IN_REQ:
        return wf_cm_send_req(id, &req);
    case IN_REP:
        return wf_cm_send_rep(id, &rep);
    case IN_RTU:
        return wf_cm_send_rtu(id, NULL, 0);
    case IN_DREQ:
        return wf_cm_send_dreq(id, NULL, 0);
    case IN_DREP:
        return wf_cm_send_drep(id, NULL, 0);
    case IN_REJ:
        return wf_cm_send_rej(id, WF_CM_REJ_CONSUMER, NULL, 0, NULL, 0);
    case IN_MRA:
        return wf_cm_send_mra(id, 20, NULL, 0);
    case IN_LAP:
        return wf_cm_send_lap(id, &alt, NULL, 0);
    case IN_APR:
        return wf_cm_send_apr(id, 0, NULL, 0, NULL, 0);
    case IN_SIDR_REQ:
        return wf_cm_send_sidr_req(id, &sidr_req);
    case IN_SIDR_REP:
        return wf_cm_send_sidr_rep(id, &sidr_rep);
    case IN_ESTABLISHED:
        return wf_cm_notify_established(id);
    case IN_MIGRATED:
        return wf_cm_notify_migrated(id);
    default:
        fail();
        return 0;
    }
}

static uint16_t attr_of(enum wf_cm_input in)
{
    static const uint16_t attr[] = {
        [RX_REQ] = WF_CM_REQ,           [RX_PEER_REQ] = WF_CM_REQ,      [RX_MRA_REQ] = WF_CM_MRA,
        [RX_MRA_REP] = WF_CM_MRA,       [RX_MRA_OTHER] = WF_CM_MRA,     [RX_REJ] = WF_CM_REJ,
        [RX_REP] = WF_CM_REP,           [RX_RTU] = WF_CM_RTU,           [RX_DREQ] = WF_CM_DREQ,
        [RX_DREP] = WF_CM_DREP,         [RX_LAP] = WF_CM_LAP,           [RX_APR] = WF_CM_APR,
        [RX_SIDR_REQ] = WF_CM_SIDR_REQ, [RX_SIDR_REP] = WF_CM_SIDR_REP,
    };
    return attr[in];
}

static struct wf_cm_msg message(struct bench *x, const struct wf_cm_id *id, enum wf_cm_input in)
{
    struct wf_cm_msg m;
    struct wf_cm_route back = net_route2(&x->n, !x->node, x->node);
    memset(&m, 0, sizeof(m));
    m.hdr.class_version = WF_CM_CLASS_VERSION;
    m.hdr.method = WF_MAD_SEND;
    m.hdr.attr = attr_of(in);
    m.rtu.local_id = id->remote_id ? id->remote_id : 0x02abcdef;
    if (m.hdr.attr != WF_CM_REQ && m.hdr.attr != WF_CM_SIDR_REQ && m.hdr.attr != WF_CM_SIDR_REP)
        m.rtu.remote_id = id->local_id;
    if (in == RX_REP) {
        m.rep.qpn = 0x020022;
        m.rep.ca_guid = 0x0002c90000000001ull;
    } else if (in == RX_REJ) {
        m.rej.reason = WF_CM_REJ_CONSUMER;
    } else if (in == RX_DREQ) {
        m.dreq.remote_qpn = id->local_qpn;
    } else if (in == RX_LAP) {
        m.lap.remote_qpn = id->local_qpn;
        wf_cm_route_to_wire(&back, 15, &m.lap.path);
    } else if (in == RX_PEER_REQ) {
        m.req.ca_guid = 1; // smaller than ours: we stay active
    }
    return m;
}

static int give(struct bench *x, struct wf_cm_id *id, enum wf_cm_input in)
{
    if (in < IN_DESTROY)
        return call(x, id, in);
    if (in == TIMER) {
        wf_cm_timer_stop(id);
        return wf_cm_step(id, TIMER, NULL);
    }
    struct wf_cm_msg m = message(x, id, in);
    struct wf_cm_rx rx = {&m, &x->n.node[!x->node].gid, &x->n.node[x->node].gid};
    if (in == RX_PEER_REQ)
        wf_cm_peer_start(id);
    int rc = wf_cm_step(id, in, &rx);
    if (in == RX_PEER_REQ && id->peering)
        wf_cm_peer_stop(id);
    return rc;
}

// ---- compare ------------------------------------------------------------------------------------

static const struct expect *expected(enum wf_cm_state from, enum wf_cm_input in)
{
    for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++)
        if (cells[i].from == from && cells[i].in == in)
            return &cells[i];
    return NULL;
}

static void check_cell(enum wf_cm_state from, enum wf_cm_input in)
{
    static struct bench x;
    struct wf_cm_event ev;
    struct wf_cm_id *id = bring(&x, from);
    const struct expect *e = expected(from, in);
    assert_int_equal(wf_cm_id_state(id), from);
    unsigned sent = x.n.sent;
    int rc = give(&x, id, in);
    int event = wf_cm_next_event(x.n.node[x.node].cm, &ev) ? (int)ev.type : NO_EVENT;
    enum wf_cm_state to = e ? e->to : from;
    if (wf_cm_id_state(id) != to || (!e && !rc) || (e && event != e->event) ||
        (e ? (e->sent != NOTHING) : 0) != (x.n.sent - sent) ||
        (e && e->sent && e->sent != net_last_attr(&x.n)))
        fail_msg("%s, %s: to %s, rc %d, %u sent (%s), event %d", wf_cm_state_name(from),
                 wf_cm_input_name(in), wf_cm_state_name(wf_cm_id_state(id)), rc, x.n.sent - sent,
                 wf_cm_attr_name(net_last_attr(&x.n)), event);
    if (!e && from == WF_CM_ESTABLISHED && in == IN_ESTABLISHED)
        assert_int_equal(rc, -EISCONN);
    else if (!e)
        assert_int_equal(rc, -EINVAL);
    net_stop(&x.n);
}

static void test_table_every_cell_does_what_the_standard_says(void **state)
{
    for (int s = 0; s < WF_CM_STATES; s++)
        for (int in = 0; in < WF_CM_INPUTS; in++)
            if (in != IN_DESTROY)
                check_cell((enum wf_cm_state)s, (enum wf_cm_input)in);
}

static void test_table_reject_for_stale_leads_to_timewait(void **state)
{
    static const enum wf_cm_state from[] = {WF_CM_REQ_SENT, WF_CM_MRA_REQ_RCVD,
                                            WF_CM_REP_SENT, WF_CM_MRA_REP_RCVD,
                                            WF_CM_REQ_RCVD, WF_CM_MRA_REQ_SENT};
    for (size_t i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
        static struct bench x;
        struct wf_cm_id *id = bring(&x, from[i]);
        struct wf_cm_msg m = message(&x, id, RX_REJ);
        struct wf_cm_rx rx = {&m, &x.n.node[!x.node].gid, &x.n.node[x.node].gid};
        m.rej.reason = WF_CM_REJ_STALE;
        assert_int_equal(wf_cm_step(id, RX_REJ, &rx), 0);
        assert_int_equal(wf_cm_id_state(id), WF_CM_TIMEWAIT);
        net_stop(&x.n);
    }
}

struct ending {
    enum wf_cm_state from;
    uint16_t sent;
    uint16_t reason; // of a REJ
    uint32_t left;   // ids that finish by themselves
};

static void test_table_destroy_tells_the_peer_what_its_state_asks_for(void **state)
{
    static const struct ending endings[] = {
        {WF_CM_IDLE, NOTHING, 0, 0},
        {WF_CM_LISTEN, NOTHING, 0, 0},
        {WF_CM_REQ_SENT, WF_CM_REJ, WF_CM_REJ_TIMEOUT, 0},
        {WF_CM_MRA_REQ_RCVD, WF_CM_REJ, WF_CM_REJ_TIMEOUT, 0},
        {WF_CM_REQ_RCVD, WF_CM_REJ, WF_CM_REJ_CONSUMER, 0},
        {WF_CM_MRA_REQ_SENT, WF_CM_REJ, WF_CM_REJ_CONSUMER, 0},
        {WF_CM_REP_RCVD, WF_CM_REJ, WF_CM_REJ_CONSUMER, 0},
        {WF_CM_MRA_REP_SENT, WF_CM_REJ, WF_CM_REJ_CONSUMER, 0},
        {WF_CM_REP_SENT, WF_CM_REJ, WF_CM_REJ_CONSUMER, 1},
        {WF_CM_MRA_REP_RCVD, WF_CM_REJ, WF_CM_REJ_CONSUMER, 1},
        {WF_CM_ESTABLISHED, WF_CM_DREQ, 0, 1},
        {WF_CM_DREQ_SENT, NOTHING, 0, 1},
        {WF_CM_DREQ_RCVD, WF_CM_DREP, 0, 1},
        {WF_CM_TIMEWAIT, NOTHING, 0, 1},
        {WF_CM_SIDR_REQ_SENT, NOTHING, 0, 0},
        {WF_CM_SIDR_REQ_RCVD, WF_CM_SIDR_REP, 0, 0},
    };
    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        static struct bench x;
        const struct ending *e = &endings[i];
        struct wf_cm_event ev;
        struct wf_cm_id *id = bring(&x, e->from);
        struct wf_cm *cm = x.n.node[x.node].cm;
        unsigned sent = x.n.sent;
        uint32_t ids = wf_cm_stats(cm)->ids;
        wf_cm_id_destroy(id);
        assert_int_equal(x.n.sent - sent, e->sent != NOTHING);
        if (e->sent)
            assert_int_equal(net_last_attr(&x.n), e->sent);
        if (e->reason)
            assert_int_equal(x.n.last[WF_MAD_DATA + 10] << 8 | x.n.last[WF_MAD_DATA + 11],
                             e->reason);
        assert_int_equal(wf_cm_stats(cm)->ids, ids - 1 + e->left);
        // What finishes by itself does so without an event, the peer silent.
        x.n.hold = true;
        net_drop(&x.n);
        net_run(&x.n, x.n.now + 600000 * NET_MS);
        while (wf_cm_next_event(x.n.node[!x.node].cm, &ev))
            net_run(&x.n, x.n.now + 600000 * NET_MS);
        assert_false(wf_cm_next_event(cm, &ev));
        assert_int_equal(wf_cm_stats(cm)->ids, ids - 1);
        net_stop(&x.n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_every_cell_does_what_the_standard_says),
        cmocka_unit_test(test_table_reject_for_stale_leads_to_timewait),
        cmocka_unit_test(test_table_destroy_tells_the_peer_what_its_state_asks_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
