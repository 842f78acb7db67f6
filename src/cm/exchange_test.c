// SPDX-License-Identifier: BSD-2-Clause
// Whole exchanges between connection managers: what arrives, when, and with which reason it fails.
#include "cm/internal.h"
#include "cm/test_net.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static struct net n;
static struct wf_cm_id *listener, *active, *passive;
static struct wf_cm_route route;

static struct wf_cm_id *new_id(int node)
{
    struct wf_cm_id *id;
    assert_int_equal(wf_cm_id_create(n.node[node].cm, &n, &id), 0);
    return id;
}

static int set_up(void **state)
{
    net_start(&n, 42);
    route = net_route(&n, 0, 1);
    listener = new_id(1);
    active = new_id(0);
    passive = NULL;
    return wf_cm_listen(listener, NET_SERVICE, 0, NULL);
}

static int tear_down(void **state)
{
    net_stop(&n);
    return 0;
}

static struct wf_cm_event expect_event(int node, enum wf_cm_event_type type, uint64_t ms)
{
    struct wf_cm_event ev;
    assert_true(net_event(&n, node, &ev, ms));
    assert_int_equal(ev.type, type);
    return ev;
}

static void expect_silence(uint64_t ms)
{
    struct wf_cm_event ev;
    for (int i = 0; i < NET_NODES; i++)
        assert_false(net_event(&n, i, &ev, ms));
}

static void request(void)
{
    struct wf_cm_req_param p = net_req(&route);
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    passive = expect_event(1, WF_CM_REQ_RECEIVED, 10).id;
}

static void reply(void)
{
    struct wf_cm_rep_param p = {
        .qpn = 0x020022,
        .psn = 0x654321,
        .data = "yes",
        .data_len = 4,
        .responder_resources = 1,
        .initiator_depth = 3,
        .rnr_retry = 5,
    };
    assert_int_equal(wf_cm_send_rep(passive, &p), 0);
    expect_event(0, WF_CM_REP_RECEIVED, 10);
}

static void connect_both(void)
{
    request();
    reply();
    assert_int_equal(wf_cm_send_rtu(active, "go", 3), 0);
    expect_event(1, WF_CM_RTU_RECEIVED, 10);
}

static uint16_t last_reject(void)
{
    struct wf_cm_msg m;
    assert_int_equal(wf_cm_decode(n.last, &m), 0);
    assert_int_equal(m.hdr.attr, WF_CM_REJ);
    return m.rej.reason;
}

// ---- connect, disconnect ------------------------------------------------------------------------

static void test_connect_request_shows_the_receivers_view(void **state)
{
    struct wf_cm_req_param p = net_req(&route);
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    struct wf_cm_event ev = expect_event(1, WF_CM_REQ_RECEIVED, 10);
    assert_ptr_equal(ev.listen_id, listener);
    assert_memory_equal(&ev.path.dgid, &n.node[0].gid, 16);
    assert_memory_equal(&ev.path.sgid, &n.node[1].gid, 16);
    assert_int_equal(ev.path.slid, 0);
    assert_int_equal(ev.path.pkey, 0xffff);
    assert_int_equal(ev.path.mtu, IBV_MTU_1024);
    assert_int_equal(ev.path.hop_limit, 64);
    assert_false(ev.has_alternate);
    assert_int_equal(ev.msg.req.qpn, 0x010011);
    assert_int_equal(ev.msg.req.primary.local_lid, 0xffff);
    assert_int_equal(ev.msg.req.primary.subnet_local, 0);
    // Packet life 16, CA ACK delay 15: 17 and, 15 being two less than that, nothing added.
    assert_int_equal(ev.msg.req.primary.ack_timeout, 17);
    assert_string_equal((const char *)ev.msg.req.data, "hello");
    assert_int_equal(wf_cm_id_local(active) >> 24, 1);
    assert_int_equal(wf_cm_id_local(ev.id) >> 24, 2);
    assert_int_equal(ev.msg.hdr.tid & 0xffffffff, wf_cm_id_local(active));
}

static void test_connect_qp_attributes_come_from_the_right_side(void **state)
{
    struct ibv_qp_attr attr;
    int mask;
    connect_both();
    for (int side = 0; side < 2; side++) {
        struct wf_cm_id *id = side ? passive : active;
        memset(&attr, 0, sizeof(attr));
        attr.qp_state = IBV_QPS_INIT;
        assert_int_equal(wf_cm_init_qp_attr(id, &attr, &mask), 0);
        assert_int_equal(mask,
                         IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT);
        assert_int_equal(attr.qp_access_flags, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                   IBV_ACCESS_REMOTE_ATOMIC);
        attr.qp_state = IBV_QPS_RTR;
        assert_int_equal(wf_cm_init_qp_attr(id, &attr, &mask), 0);
        assert_int_equal(mask, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                   IBV_QP_MIN_RNR_TIMER);
        assert_int_equal(attr.dest_qp_num, side ? 0x010011 : 0x020022);
        assert_int_equal(attr.rq_psn, side ? 0x654321 : 0x123456);
        assert_int_equal(attr.path_mtu, IBV_MTU_1024);
        assert_int_equal(attr.max_dest_rd_atomic, side ? 1 : 3);
        assert_int_equal(attr.min_rnr_timer, 0);
        assert_memory_equal(&attr.ah_attr.grh.dgid, &n.node[!side].gid, 16);
        assert_int_equal(attr.ah_attr.is_global, 1);
        attr.qp_state = IBV_QPS_RTS;
        assert_int_equal(wf_cm_init_qp_attr(id, &attr, &mask), 0);
        assert_int_equal(mask, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC);
        assert_int_equal(attr.sq_psn, side ? 0x123456 : 0x654321);
        assert_int_equal(attr.retry_cnt, 7);
        assert_int_equal(attr.rnr_retry, side ? 6 : 5);
        assert_int_equal(attr.max_rd_atomic, side ? 3 : 1);
        assert_int_equal(attr.timeout, 17);
        attr.qp_state = IBV_QPS_SQD;
        assert_int_equal(wf_cm_init_qp_attr(id, &attr, &mask), -EINVAL);
    }
}

static void test_qp_attributes_before_the_reply_are_refused(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    int mask;
    assert_int_equal(wf_cm_init_qp_attr(active, &attr, &mask), -EINVAL);
    request();
    assert_int_equal(wf_cm_init_qp_attr(active, &attr, &mask), -EINVAL);
    assert_int_equal(wf_cm_init_qp_attr(passive, &attr, &mask), 0);
    attr.qp_state = IBV_QPS_INIT;
    assert_int_equal(wf_cm_init_qp_attr(active, &attr, &mask), 0);
}

static void test_disconnect_ends_in_timewait_of_the_right_length(void **state)
{
    connect_both();
    assert_int_equal(n.node[0].wills, 1);
    assert_int_equal(n.node[1].wills, 1);
    assert_int_equal(wf_cm_send_dreq(active, "bye", 4), 0);
    struct wf_cm_event ev = expect_event(1, WF_CM_DREQ_RECEIVED, 10);
    assert_string_equal((const char *)ev.msg.dreq.data, "bye");
    assert_int_equal(wf_cm_send_drep(passive, NULL, 0), 0);
    expect_event(0, WF_CM_DREP_RECEIVED, 10);
    assert_int_equal(n.node[0].wills + n.node[1].wills, 0);
    // av timeout: packet life 16 + 1, so 512 ms, on both sides.
    uint64_t start = n.now;
    expect_event(1, WF_CM_TIMEWAIT_EXIT, 600);
    assert_in_range(n.now - start, 511 * NET_MS, 513 * NET_MS);
    expect_event(0, WF_CM_TIMEWAIT_EXIT, 600);
    assert_int_equal(wf_cm_id_state(active), WF_CM_IDLE);
    assert_int_equal(wf_cm_id_state(passive), WF_CM_IDLE);
}

static void test_id_can_connect_again_after_timewait(void **state)
{
    test_disconnect_ends_in_timewait_of_the_right_length(state);
    connect_both();
}

static void test_simultaneous_disconnect_ends_on_both_sides(void **state)
{
    connect_both();
    assert_int_equal(wf_cm_send_dreq(active, NULL, 0), 0);
    assert_int_equal(wf_cm_send_dreq(passive, NULL, 0), 0);
    expect_event(0, WF_CM_DREQ_RECEIVED, 10);
    expect_event(1, WF_CM_DREQ_RECEIVED, 10);
    assert_int_equal(wf_cm_send_drep(active, NULL, 0), 0);
    assert_int_equal(wf_cm_send_drep(passive, NULL, 0), 0);
    expect_event(0, WF_CM_TIMEWAIT_EXIT, 600);
    expect_event(1, WF_CM_TIMEWAIT_EXIT, 600);
}

static void test_destroyed_connection_disconnects_the_peer_and_goes(void **state)
{
    connect_both();
    wf_cm_id_destroy(active);
    active = NULL;
    expect_event(1, WF_CM_DREQ_RECEIVED, 10);
    assert_int_equal(wf_cm_send_drep(passive, NULL, 0), 0);
    expect_event(1, WF_CM_TIMEWAIT_EXIT, 600);
    expect_silence(600);
    assert_int_equal(wf_cm_stats(n.node[0].cm)->ids, 0);
    assert_int_equal(n.node[0].wills, 0);
}

// ---- time ---------------------------------------------------------------------------------------

static void test_request_is_repeated_then_fails(void **state)
{
    struct wf_cm_req_param p = net_req(&route);
    n.hold = true;
    uint64_t start = n.now;
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    expect_event(0, WF_CM_REQ_ERROR, 100000);
    // 2 x ms(life 16) + ms(20) = 2 x 256 + 4096 ms, once and three times more.
    assert_int_equal(n.now - start, 4 * 4608 * NET_MS);
    assert_int_equal(n.sent, 4);
    assert_int_equal(wf_cm_stats(n.node[0].cm)->repeated, 3);
}

static void test_reply_is_repeated_then_fails(void **state)
{
    request();
    struct wf_cm_rep_param p = {.qpn = 2};
    assert_int_equal(wf_cm_send_rep(passive, &p), 0);
    n.hold = true;
    wf_cm_timer_stop(active);
    uint64_t start = n.now;
    expect_event(1, WF_CM_REP_ERROR, 100000);
    assert_int_equal(n.now - start, 4 * 2048 * NET_MS); // REQ: local response timeout 19
}

static void test_mra_extends_the_wait(void **state)
{
    request();
    assert_int_equal(wf_cm_send_mra(passive, 24, "wait", 5), 0);
    struct wf_cm_event ev = expect_event(0, WF_CM_MRA_RECEIVED, 10);
    assert_int_equal(ev.msg.mra.service_timeout, 24);
    uint64_t start = n.now;
    n.hold = true;
    expect_event(0, WF_CM_REQ_ERROR, 1000000);
    // 65536 + 512 ms first, then the three repetitions that were left.
    assert_int_equal(n.now - start, (65536 + 512 + 3 * 4608) * NET_MS);
}

static void test_delayed_mra_answers_a_duplicate_only(void **state)
{
    request();
    unsigned sent = n.sent;
    assert_int_equal(wf_cm_send_mra(passive, 24 | WF_CM_MRA_DELAY, NULL, 0), 0);
    assert_int_equal(n.sent, sent);
    expect_event(0, WF_CM_MRA_RECEIVED, 5000);
    assert_int_equal(wf_cm_id_state(active), WF_CM_MRA_REQ_RCVD);
}

static void test_lost_rtu_is_sent_again_for_a_repeated_reply(void **state)
{
    request();
    reply();
    assert_int_equal(wf_cm_send_rtu(active, "go", 3), 0);
    net_drop(&n);
    struct wf_cm_event ev = expect_event(1, WF_CM_RTU_RECEIVED, 3000);
    assert_string_equal((const char *)ev.msg.rtu.data, "go");
    assert_int_equal(wf_cm_stats(n.node[0].cm)->answered_again, 1);
}

static void test_lost_drep_is_sent_again_from_timewait(void **state)
{
    connect_both();
    assert_int_equal(wf_cm_send_dreq(passive, NULL, 0), 0);
    expect_event(0, WF_CM_DREQ_RECEIVED, 10);
    assert_int_equal(wf_cm_send_drep(active, "ok", 3), 0);
    net_drop(&n);
    // The repetition comes after TIMEWAIT of 512 ms here, so the id is idle and the answer bare.
    expect_event(0, WF_CM_TIMEWAIT_EXIT, 600);
    expect_event(1, WF_CM_DREP_RECEIVED, 3000);
}

static void test_send_failure_leaves_the_id_as_it_was(void **state)
{
    struct wf_cm_req_param p = net_req(&route);
    n.fail = -ENETUNREACH;
    assert_int_equal(wf_cm_send_req(active, &p), -ENETUNREACH);
    assert_int_equal(wf_cm_id_state(active), WF_CM_IDLE);
    n.fail = 0;
    connect_both();
    n.fail = -ENETUNREACH;
    assert_int_equal(wf_cm_send_dreq(active, NULL, 0), -ENETUNREACH);
    assert_int_equal(wf_cm_id_state(active), WF_CM_TIMEWAIT);
}

// ---- rejects ------------------------------------------------------------------------------------

static void check_refused(struct wf_cm_req_param *p, uint16_t reason)
{
    assert_int_equal(wf_cm_send_req(active, p), 0);
    struct wf_cm_event ev = expect_event(0, WF_CM_REJ_RECEIVED, 10);
    assert_int_equal(ev.msg.rej.reason, reason);
    assert_int_equal(ev.msg.rej.what, WF_CM_WHAT_REQ);
    assert_int_equal(wf_cm_id_state(active), WF_CM_IDLE);
}

static void test_request_without_listener_is_rejected(void **state)
{
    struct wf_cm_req_param p = net_req(&route);
    p.service_id++;
    check_refused(&p, WF_CM_REJ_SERVICE_ID);
}

static void test_request_with_bad_mtu_is_rejected(void **state)
{
    struct wf_cm_req_param p = net_req(&route);
    route.mtu = 6;
    check_refused(&p, WF_CM_REJ_MTU);
}

static void test_consumer_reject_carries_its_data(void **state)
{
    request();
    assert_int_equal(wf_cm_send_rej(passive, WF_CM_REJ_CONSUMER, "info", 5, "no thanks", 10), 0);
    struct wf_cm_event ev = expect_event(0, WF_CM_REJ_RECEIVED, 10);
    assert_int_equal(ev.msg.rej.reason, WF_CM_REJ_CONSUMER);
    assert_int_equal(ev.msg.rej.ari_len, 5);
    assert_string_equal((const char *)ev.msg.rej.ari, "info");
    assert_string_equal((const char *)ev.msg.rej.data, "no thanks");
    assert_int_equal(wf_cm_id_state(passive), WF_CM_IDLE);
}

static void forge(struct wf_cm_msg *m, uint16_t attr)
{
    memset(m, 0, sizeof(*m));
    m->hdr.class_version = WF_CM_CLASS_VERSION;
    m->hdr.method = WF_MAD_SEND;
    m->hdr.attr = attr;
}

static void forge_req(struct wf_cm_msg *m)
{
    struct wf_cm_route r = net_route(&n, 2, 1);
    forge(m, WF_CM_REQ);
    m->req.local_id = 0x03000001;
    m->req.service_id = NET_SERVICE;
    m->req.ca_guid = 99;
    m->req.qpn = 77;
    m->req.mtu = IBV_MTU_1024;
    wf_cm_route_to_wire(&r, 15, &m->req.primary);
}

static void inject(int from, int to, const struct wf_cm_msg *m)
{
    uint8_t mad[WF_MAD_SIZE];
    wf_cm_encode(m, mad);
    wf_cm_receive(n.node[to].cm, n.now, &n.node[from].gid, &n.node[to].gid, mad);
}

static void test_unfit_requests_are_rejected_with_the_standards_reason(void **state)
{
    struct wf_cm_msg m;
    forge_req(&m);
    m.req.primary.remote_gid.raw[3] = 1;
    inject(2, 1, &m);
    assert_int_equal(last_reject(), WF_CM_REJ_GID);
    assert_memory_equal(n.last + WF_MAD_DATA + 12, &n.node[1].gid, 16);
    forge_req(&m);
    m.req.alternate = m.req.primary;
    m.req.alternate.remote_gid.raw[3] = 1;
    inject(2, 1, &m);
    assert_int_equal(last_reject(), WF_CM_REJ_ALT_GID);
    forge_req(&m);
    m.req.transport = WF_CM_RD;
    inject(2, 1, &m);
    assert_int_equal(last_reject(), WF_CM_REJ_TRANSPORT);
    forge_req(&m);
    m.req.local_id = 0;
    inject(2, 1, &m);
    assert_int_equal(last_reject(), WF_CM_REJ_COMM_ID);
    forge_req(&m);
    m.hdr.class_version = 1;
    inject(2, 1, &m);
    assert_int_equal(last_reject(), WF_CM_REJ_CLASS_VERSION);
    forge(&m, WF_CM_REP);
    m.rep.local_id = 0x03000001;
    m.rep.remote_id = 0x02999999;
    inject(2, 1, &m);
    assert_int_equal(last_reject(), WF_CM_REJ_COMM_ID);
    assert_int_equal(wf_cm_stats(n.node[1].cm)->rejected, 6);
    expect_silence(1);
}

static void test_destroyed_request_is_taken_back(void **state)
{
    request();
    wf_cm_id_destroy(active);
    active = NULL;
    struct wf_cm_event ev = expect_event(1, WF_CM_REJ_RECEIVED, 10);
    assert_int_equal(ev.msg.rej.reason, WF_CM_REJ_TIMEOUT);
    assert_int_equal(ev.msg.rej.ari_len, 8);
    assert_int_equal(wf_cm_id_state(passive), WF_CM_IDLE);
}

static void test_stale_request_is_rejected_and_the_old_connection_ended(void **state)
{
    connect_both();
    struct wf_cm_id *old = passive;
    // The active side has lost its memory and comes back with the same QP.
    wf_cm_id_forget(active);
    active = new_id(0);
    struct wf_cm_req_param p = net_req(&route);
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    struct wf_cm_event ev = expect_event(0, WF_CM_REJ_RECEIVED, 10);
    assert_int_equal(ev.msg.rej.reason, WF_CM_REJ_STALE);
    ev = expect_event(1, WF_CM_DREP_RECEIVED, 10);
    assert_ptr_equal(ev.id, old);
    expect_event(0, WF_CM_TIMEWAIT_EXIT, 600);
    expect_event(1, WF_CM_TIMEWAIT_EXIT, 600);
    connect_both();
}

static void test_reply_with_a_qp_in_use_is_stale(void **state)
{
    connect_both();
    struct wf_cm_id *first = active;
    wf_cm_id_forget(passive);
    active = new_id(0);
    struct wf_cm_req_param p = net_req(&route);
    p.qpn++;
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    passive = expect_event(1, WF_CM_REQ_RECEIVED, 10).id;
    struct wf_cm_rep_param r = {.qpn = 0x020022};
    assert_int_equal(wf_cm_send_rep(passive, &r), 0);
    struct wf_cm_event ev = expect_event(1, WF_CM_REJ_RECEIVED, 10);
    assert_int_equal(ev.msg.rej.reason, WF_CM_REJ_STALE);
    assert_int_equal(ev.msg.rej.what, WF_CM_WHAT_REP);
    ev = expect_event(0, WF_CM_DREP_RECEIVED, 10);
    assert_ptr_equal(ev.id, first);
}

static void test_late_duplicate_of_a_closed_connection_makes_no_new_one(void **state)
{
    struct wf_cm_req_param p = net_req(&route);
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    uint8_t req[WF_MAD_SIZE];
    memcpy(req, n.last, sizeof(req));
    passive = expect_event(1, WF_CM_REQ_RECEIVED, 10).id;
    reply();
    assert_int_equal(wf_cm_send_rtu(active, NULL, 0), 0);
    expect_event(1, WF_CM_RTU_RECEIVED, 10);
    assert_int_equal(wf_cm_send_dreq(active, NULL, 0), 0);
    expect_event(1, WF_CM_DREQ_RECEIVED, 10);
    assert_int_equal(wf_cm_send_drep(passive, NULL, 0), 0);
    expect_event(0, WF_CM_DREP_RECEIVED, 10);
    wf_cm_receive(n.node[1].cm, n.now, &n.node[0].gid, &n.node[1].gid, req);
    assert_int_equal(last_reject(), WF_CM_REJ_STALE);
    expect_silence(1);
}

// ---- strangers ----------------------------------------------------------------------------------

static void test_messages_from_another_port_touch_nothing(void **state)
{
    static const uint16_t attrs[] = {WF_CM_MRA,  WF_CM_REJ, WF_CM_REP, WF_CM_RTU,     WF_CM_DREQ,
                                     WF_CM_DREP, WF_CM_LAP, WF_CM_APR, WF_CM_SIDR_REP};
    connect_both();
    for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++) {
        struct wf_cm_msg m;
        forge(&m, attrs[i]);
        m.rtu.local_id = wf_cm_id_local(passive);
        m.rtu.remote_id = wf_cm_id_local(active);
        if (attrs[i] == WF_CM_DREQ)
            m.dreq.remote_qpn = 0x010011;
        if (attrs[i] == WF_CM_SIDR_REP)
            m.sidr_rep.request_id = wf_cm_id_local(active);
        inject(2, 0, &m);
    }
    expect_silence(1);
    assert_int_equal(wf_cm_id_state(active), WF_CM_ESTABLISHED);
    assert_int_equal(wf_cm_stats(n.node[0].cm)->wrong_peer, 9);
}

static void test_stranger_cannot_make_a_connection_stale(void **state)
{
    struct wf_cm_msg m;
    connect_both();
    forge_req(&m);
    m.req.ca_guid = 0x0002c90000000000ull;
    m.req.qpn = 0x010011;
    inject(2, 1, &m);
    expect_event(1, WF_CM_REQ_RECEIVED, 1);
    assert_int_equal(wf_cm_id_state(passive), WF_CM_ESTABLISHED);
}

static void test_dreq_for_another_qp_is_dropped(void **state)
{
    struct wf_cm_msg m;
    connect_both();
    forge(&m, WF_CM_DREQ);
    m.dreq.local_id = wf_cm_id_local(passive);
    m.dreq.remote_id = wf_cm_id_local(active);
    m.dreq.remote_qpn = 0x010012;
    inject(1, 0, &m);
    expect_silence(1);
    assert_int_equal(wf_cm_id_state(active), WF_CM_ESTABLISHED);
}

static void test_unknown_dreq_gets_a_drep(void **state)
{
    struct wf_cm_msg m;
    forge(&m, WF_CM_DREQ);
    m.dreq.local_id = 0x03000009;
    m.dreq.remote_id = 0x02000007;
    inject(2, 1, &m);
    assert_int_equal(wf_cm_decode(n.last, &m), 0);
    assert_int_equal(m.hdr.attr, WF_CM_DREP);
    assert_int_equal(m.drep.local_id, 0x02000007);
    assert_int_equal(m.drep.remote_id, 0x03000009);
}

static void test_class_port_info_is_answered(void **state)
{
    struct wf_cm_msg m;
    forge(&m, WF_CM_CLASS_PORT_INFO);
    m.hdr.method = WF_MAD_GET;
    m.hdr.tid = 0x1234;
    inject(2, 1, &m);
    assert_int_equal(wf_cm_decode(n.last, &m), 0);
    assert_int_equal(m.hdr.method, WF_MAD_GET_RESP);
    assert_int_equal(m.hdr.tid, 0x1234);
    assert_int_equal(m.class_port_info.class_version, 2);
}

// ---- listeners ----------------------------------------------------------------------------------

static void test_listen_overlapping_range_is_busy(void **state)
{
    struct wf_cm_id *l = new_id(1);
    assert_int_equal(wf_cm_listen(l, NET_SERVICE, 0, NULL), -EBUSY);
    assert_int_equal(wf_cm_listen(l, NET_SERVICE, 0xffffffffffff0000, NULL), -EBUSY);
    assert_int_equal(wf_cm_listen(l, NET_SERVICE + 1, 0, NULL), 0);
    assert_int_equal(n.node[1].listens, 2);
    wf_cm_id_destroy(l);
    assert_int_equal(n.node[1].listens, 1);
}

static void test_listen_mask_takes_a_range(void **state)
{
    struct wf_cm_id *l = new_id(1);
    struct wf_cm_req_param p = net_req(&route);
    assert_int_equal(wf_cm_listen(l, 0x1000000000ab1234, 0xffffffffffff0000, NULL), 0);
    assert_int_equal(wf_cm_id_service(l), 0x1000000000ab0000);
    p.service_id = 0x1000000000abffff;
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    struct wf_cm_event ev = expect_event(1, WF_CM_REQ_RECEIVED, 10);
    assert_ptr_equal(ev.listen_id, l);
    assert_int_equal(wf_cm_id_service(ev.id), p.service_id);
}

static void test_listen_service_id_is_assigned(void **state)
{
    struct wf_cm_id *a = new_id(1), *b = new_id(1);
    assert_int_equal(wf_cm_listen(a, 0x0200000000000001, 0, NULL), -EINVAL);
    assert_int_equal(wf_cm_listen(a, WF_CM_SERVICE_ASSIGN, 0, NULL), 0);
    assert_int_equal(wf_cm_listen(b, WF_CM_SERVICE_ASSIGN, 0, NULL), 0);
    assert_int_equal(wf_cm_id_service(a) >> 56, 2);
    assert_int_not_equal(wf_cm_id_service(a), wf_cm_id_service(b));
    struct wf_cm_req_param p = net_req(&route);
    p.service_id = wf_cm_id_service(b);
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    assert_ptr_equal(expect_event(1, WF_CM_REQ_RECEIVED, 10).listen_id, b);
}

static void test_listen_compare_data_tells_listeners_apart(void **state)
{
    struct wf_cm_compare x = {.data = "ax", .mask = {0xff}}, y = {.data = "bx", .mask = {0xff}};
    struct wf_cm_id *lx = new_id(1), *ly = new_id(1), *again = new_id(1);
    struct wf_cm_req_param p = net_req(&route);
    assert_int_equal(wf_cm_listen(lx, 0x55, 0, &x), 0);
    assert_int_equal(wf_cm_listen(ly, 0x55, 0, &y), 0);
    assert_int_equal(n.node[1].listens, 2); // one registration for both
    assert_int_equal(wf_cm_listen(again, 0x55, 0, &x), -EBUSY);
    assert_int_equal(wf_cm_listen(again, 0x55, 0, NULL), -EBUSY);
    p.service_id = 0x55;
    p.data = "b anything";
    p.data_len = 10;
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    assert_ptr_equal(expect_event(1, WF_CM_REQ_RECEIVED, 10).listen_id, ly);
    struct wf_cm_id *third = new_id(0);
    p.data = "c";
    p.data_len = 1;
    p.qpn++;
    assert_int_equal(wf_cm_send_req(third, &p), 0);
    assert_int_equal(expect_event(0, WF_CM_REJ_RECEIVED, 10).msg.rej.reason, WF_CM_REJ_SERVICE_ID);
    wf_cm_id_destroy(lx);
    assert_int_equal(n.node[1].listens, 2);
    wf_cm_id_destroy(ly);
    assert_int_equal(n.node[1].listens, 1);
}

static void test_destroyed_listener_rejects_requests_nobody_saw(void **state)
{
    struct wf_cm_req_param p = net_req(&route);
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    net_deliver(&n); // REQ_RECEIVED waits
    wf_cm_id_destroy(listener);
    assert_int_equal(expect_event(0, WF_CM_REJ_RECEIVED, 10).msg.rej.reason, WF_CM_REJ_CONSUMER);
    assert_int_equal(wf_cm_stats(n.node[1].cm)->ids, 0);
}

static void test_forgotten_request_is_asked_again(void **state)
{
    request();
    wf_cm_id_forget(passive);
    passive = expect_event(1, WF_CM_REQ_RECEIVED, 5000).id;
    reply();
}

static void test_data_longer_than_the_message_is_refused(void **state)
{
    uint8_t big[255] = {0};
    struct wf_cm_req_param p = net_req(&route);
    p.data = big;
    p.data_len = 93;
    assert_int_equal(wf_cm_send_req(active, &p), -EINVAL);
    request();
    struct wf_cm_rep_param r = {.data = big, .data_len = 197};
    assert_int_equal(wf_cm_send_rep(passive, &r), -EINVAL);
    assert_int_equal(wf_cm_send_rej(passive, 28, big, 73, NULL, 0), -EINVAL);
    assert_int_equal(wf_cm_send_rej(passive, 28, NULL, 0, big, 149), -EINVAL);
    assert_int_equal(wf_cm_send_mra(passive, 1, big, 223), -EINVAL);
    reply();
    assert_int_equal(wf_cm_send_rtu(active, big, 225), -EINVAL);
    assert_int_equal(wf_cm_send_rtu(active, big, 224), 0);
    assert_int_equal(wf_cm_send_dreq(active, big, 221), -EINVAL);
    assert_int_equal(wf_cm_send_drep(active, big, 225), -EINVAL);
    assert_int_equal(wf_cm_send_lap(active, &route, big, 169), -EINVAL);
    assert_int_equal(wf_cm_send_apr(active, 0, big, 73, NULL, 0), -EINVAL);
    struct wf_cm_sidr_req_param s = {.path = &route, .data = big, .data_len = 217};
    assert_int_equal(wf_cm_send_sidr_req(new_id(0), &s), -EINVAL);
}

// ---- peer to peer -------------------------------------------------------------------------------

static void finish_peers(struct wf_cm_id *low, struct wf_cm_id *high)
{
    struct wf_cm_event ev = expect_event(0, WF_CM_REQ_RECEIVED, 10000);
    assert_ptr_equal(ev.id, low); // node 0 has the smaller GUID: it gives way
    assert_null(ev.listen_id);
    struct wf_cm_rep_param p = {.qpn = 0x010044};
    assert_int_equal(wf_cm_send_rep(low, &p), 0);
    ev = expect_event(1, WF_CM_REP_RECEIVED, 10);
    assert_ptr_equal(ev.id, high);
    assert_int_equal(wf_cm_send_rtu(high, NULL, 0), 0);
    expect_event(0, WF_CM_RTU_RECEIVED, 10);
    assert_int_equal(wf_cm_id_state(low), WF_CM_ESTABLISHED);
    assert_int_equal(wf_cm_id_state(high), WF_CM_ESTABLISHED);
    expect_silence(100);
}

static void peer_req(struct wf_cm_id *id, int from, int to)
{
    struct wf_cm_route r = net_route(&n, from, to);
    struct wf_cm_req_param p = net_req(&r);
    p.peer_to_peer = true;
    p.service_id = 0x0100000000000077;
    p.qpn = (uint32_t)(from + 1) << 16 | 0x44;
    assert_int_equal(wf_cm_send_req(id, &p), 0);
}

static void test_peers_that_ask_at_once_become_one_connection(void **state)
{
    struct wf_cm_id *high = new_id(1);
    peer_req(active, 0, 1);
    peer_req(high, 1, 0);
    assert_int_equal(n.node[0].listens, 1);
    finish_peers(active, high);
    assert_int_equal(n.node[0].listens, 0);
    assert_int_equal(n.node[1].listens, 1); // the fixture's listener
}

static void test_peer_that_asks_early_waits_for_the_other(void **state)
{
    struct wf_cm_id *high = new_id(1);
    peer_req(active, 0, 1);
    expect_silence(100); // REJ 8 came and was not taken for an answer
    assert_int_equal(wf_cm_id_state(active), WF_CM_REQ_SENT);
    peer_req(high, 1, 0);
    finish_peers(active, high);
}

// ---- SIDR ---------------------------------------------------------------------------------------

static struct wf_cm_sidr_req_param sidr(void)
{
    return (struct wf_cm_sidr_req_param){
        .path = &route,
        .service_id = NET_SERVICE,
        .timeout_ms = 100,
        .data = "who",
        .data_len = 4,
        .max_cm_retries = 2,
    };
}

static void test_sidr_gives_qpn_and_qkey(void **state)
{
    struct wf_cm_sidr_req_param p = sidr();
    assert_int_equal(wf_cm_send_sidr_req(active, &p), 0);
    struct wf_cm_event ev = expect_event(1, WF_CM_SIDR_REQ_RECEIVED, 10);
    assert_ptr_equal(ev.listen_id, listener);
    assert_int_equal(ev.msg.sidr_req.pkey, 0xffff);
    assert_string_equal((const char *)ev.msg.sidr_req.data, "who");
    struct wf_cm_sidr_rep_param r = {.qpn = 0x020033,
                                     .qkey = 0x01234567,
                                     .info = "i",
                                     .info_len = 2,
                                     .data = "me",
                                     .data_len = 3};
    assert_int_equal(wf_cm_send_sidr_rep(ev.id, &r), 0);
    ev = expect_event(0, WF_CM_SIDR_REP_RECEIVED, 10);
    assert_int_equal(ev.msg.sidr_rep.status, 0);
    assert_int_equal(ev.msg.sidr_rep.qpn, 0x020033);
    assert_int_equal(ev.msg.sidr_rep.qkey, 0x01234567);
    assert_int_equal(ev.msg.sidr_rep.info_len, 2);
    assert_string_equal((const char *)ev.msg.sidr_rep.data, "me");
    assert_int_equal(ev.msg.sidr_rep.service_id, NET_SERVICE);
}

static void test_sidr_without_listener_gives_status_1(void **state)
{
    struct wf_cm_sidr_req_param p = sidr();
    p.service_id++;
    assert_int_equal(wf_cm_send_sidr_req(active, &p), 0);
    struct wf_cm_event ev = expect_event(0, WF_CM_SIDR_REP_RECEIVED, 10);
    assert_int_equal(ev.msg.sidr_rep.status, WF_CM_SIDR_UNSUPPORTED);
}

static void test_sidr_without_answer_fails_in_the_callers_time(void **state)
{
    struct wf_cm_sidr_req_param p = sidr();
    n.hold = true;
    uint64_t start = n.now;
    assert_int_equal(wf_cm_send_sidr_req(active, &p), 0);
    expect_event(0, WF_CM_SIDR_REQ_ERROR, 1000);
    assert_int_equal(n.now - start, 300 * NET_MS);
}

static void test_sidr_destroyed_request_is_rejected(void **state)
{
    struct wf_cm_sidr_req_param p = sidr();
    assert_int_equal(wf_cm_send_sidr_req(active, &p), 0);
    wf_cm_id_destroy(expect_event(1, WF_CM_SIDR_REQ_RECEIVED, 10).id);
    struct wf_cm_event ev = expect_event(0, WF_CM_SIDR_REP_RECEIVED, 10);
    assert_int_equal(ev.msg.sidr_rep.status, WF_CM_SIDR_REJECT);
}

// ---- alternate paths ----------------------------------------------------------------------------

static void test_lap_loads_the_alternate_path_on_both_sides(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    int mask;
    connect_both();
    struct wf_cm_route alt = net_route2(&n, 0, 1);
    assert_int_equal(wf_cm_send_lap(active, &alt, "path", 5), 0);
    assert_int_equal(wf_cm_send_lap(active, &alt, NULL, 0), -EINVAL); // one at a time
    struct wf_cm_event ev = expect_event(1, WF_CM_LAP_RECEIVED, 10);
    assert_memory_equal(&ev.alternate.sgid, &n.node[1].gid2, 16);
    assert_string_equal((const char *)ev.msg.lap.data, "path");
    assert_int_equal(wf_cm_send_mra(passive, 18, NULL, 0), 0);
    expect_event(0, WF_CM_MRA_RECEIVED, 10);
    assert_int_equal(wf_cm_id_lap_state(active), WF_CM_LAP_MRA_RCVD);
    assert_int_equal(wf_cm_send_apr(passive, WF_CM_APR_SUCCESS, "i", 2, "fine", 5), 0);
    ev = expect_event(0, WF_CM_APR_RECEIVED, 10);
    assert_int_equal(ev.msg.apr.status, 0);
    assert_string_equal((const char *)ev.msg.apr.data, "fine");
    for (int side = 0; side < 2; side++) {
        struct wf_cm_id *id = side ? passive : active;
        attr.qp_state = IBV_QPS_RTS;
        assert_int_equal(wf_cm_init_qp_attr(id, &attr, &mask), 0);
        assert_int_equal(mask, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE);
        assert_memory_equal(&attr.alt_ah_attr.grh.dgid, &n.node[!side].gid2, 16);
        assert_int_equal(attr.alt_ah_attr.grh.sgid_index, 1);
        assert_int_equal(attr.alt_timeout, 17);
        assert_int_equal(wf_cm_notify_migrated(id), 0);
        assert_memory_equal(&wf_cm_id_route(id)->dgid, &n.node[!side].gid2, 16);
    }
}

static void test_lap_faults_are_answered_with_their_status(void **state)
{
    struct wf_cm_msg m;
    connect_both();
    struct wf_cm_route alt = net_route2(&n, 0, 1);
    alt.dgid = n.node[2].gid;
    assert_int_equal(wf_cm_send_lap(active, &alt, NULL, 0), 0);
    struct wf_cm_event ev = expect_event(0, WF_CM_APR_RECEIVED, 10);
    assert_int_equal(ev.msg.apr.status, WF_CM_APR_GID);
    forge(&m, WF_CM_LAP);
    m.lap.local_id = 0x03000001;
    m.lap.remote_id = 0x02999999;
    inject(2, 1, &m);
    assert_int_equal(wf_cm_decode(n.last, &m), 0);
    assert_int_equal(m.hdr.attr, WF_CM_APR);
    assert_int_equal(m.apr.status, WF_CM_APR_COMM_ID);
}

static void test_lap_without_answer_is_an_error_event(void **state)
{
    connect_both();
    struct wf_cm_route alt = net_route2(&n, 0, 1);
    n.hold = true;
    assert_int_equal(wf_cm_send_lap(active, &alt, NULL, 0), 0);
    expect_event(0, WF_CM_LAP_ERROR, 100000);
    assert_int_equal(wf_cm_id_state(active), WF_CM_ESTABLISHED);
    assert_int_equal(wf_cm_id_lap_state(active), WF_CM_LAP_IDLE);
}

static void test_alternate_path_in_the_request_reaches_both_qps(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    int mask;
    struct wf_cm_route alt = net_route2(&n, 0, 1);
    struct wf_cm_req_param p = net_req(&route);
    p.alternate = &alt;
    alt.pkey = 1;
    assert_int_equal(wf_cm_send_req(active, &p), -EINVAL);
    alt.pkey = 0xffff;
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    struct wf_cm_event ev = expect_event(1, WF_CM_REQ_RECEIVED, 10);
    assert_true(ev.has_alternate);
    passive = ev.id;
    reply();
    for (int side = 0; side < 2; side++) {
        attr.qp_state = IBV_QPS_RTR;
        assert_int_equal(wf_cm_init_qp_attr(side ? passive : active, &attr, &mask), 0);
        assert_true(mask & IBV_QP_ALT_PATH);
        assert_memory_equal(&attr.alt_ah_attr.grh.dgid, &n.node[!side].gid2, 16);
        attr.qp_state = IBV_QPS_RTS;
        assert_int_equal(wf_cm_init_qp_attr(side ? passive : active, &attr, &mask), 0);
        assert_true(mask & IBV_QP_PATH_MIG_STATE);
        assert_int_equal(attr.path_mig_state, IBV_MIG_REARM);
    }
}

// ---- other transports ---------------------------------------------------------------------------

static void test_uc_has_no_reliability_attributes(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    struct wf_cm_req_param p = net_req(&route);
    int mask;
    p.qp_type = IBV_QPT_UC;
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    passive = expect_event(1, WF_CM_REQ_RECEIVED, 10).id;
    reply();
    assert_int_equal(wf_cm_init_qp_attr(active, &attr, &mask), 0);
    assert_int_equal(mask,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
    attr.qp_state = IBV_QPS_RTS;
    assert_int_equal(wf_cm_init_qp_attr(active, &attr, &mask), 0);
    assert_int_equal(mask, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static void test_xrc_names_the_target_qp_in_the_reply(void **state)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR};
    struct wf_cm_req_param p = net_req(&route);
    int mask;
    p.qp_type = IBV_QPT_XRC_SEND;
    assert_int_equal(wf_cm_send_req(active, &p), 0);
    struct wf_cm_event ev = expect_event(1, WF_CM_REQ_RECEIVED, 10);
    assert_int_equal(ev.msg.req.transport, WF_CM_EXT);
    assert_int_equal(ev.msg.req.ext_transport, WF_CM_EXT_XRC);
    passive = ev.id;
    struct wf_cm_rep_param r = {.qpn = 0x020055, .psn = 1};
    assert_int_equal(wf_cm_send_rep(passive, &r), 0);
    ev = expect_event(0, WF_CM_REP_RECEIVED, 10);
    assert_int_equal(ev.msg.rep.qpn, 0);
    assert_int_equal(ev.msg.rep.eecn, 0x020055);
    assert_int_equal(wf_cm_init_qp_attr(active, &attr, &mask), 0);
    assert_int_equal(attr.dest_qp_num, 0x020055);
    assert_false(mask & IBV_QP_MAX_DEST_RD_ATOMIC);
    assert_int_equal(wf_cm_init_qp_attr(passive, &attr, &mask), 0);
    assert_true(mask & IBV_QP_MAX_DEST_RD_ATOMIC);
}

static void test_unconnectable_qp_type_is_refused(void **state)
{
    struct wf_cm_req_param p = net_req(&route);
    p.qp_type = IBV_QPT_UD;
    assert_int_equal(wf_cm_send_req(active, &p), -EINVAL);
    assert_int_equal(wf_cm_id_state(active), WF_CM_IDLE);
}

#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_connect_request_shows_the_receivers_view),
        T(test_connect_qp_attributes_come_from_the_right_side),
        T(test_qp_attributes_before_the_reply_are_refused),
        T(test_disconnect_ends_in_timewait_of_the_right_length),
        T(test_id_can_connect_again_after_timewait),
        T(test_simultaneous_disconnect_ends_on_both_sides),
        T(test_destroyed_connection_disconnects_the_peer_and_goes),
        T(test_request_is_repeated_then_fails),
        T(test_reply_is_repeated_then_fails),
        T(test_mra_extends_the_wait),
        T(test_delayed_mra_answers_a_duplicate_only),
        T(test_lost_rtu_is_sent_again_for_a_repeated_reply),
        T(test_lost_drep_is_sent_again_from_timewait),
        T(test_send_failure_leaves_the_id_as_it_was),
        T(test_request_without_listener_is_rejected),
        T(test_request_with_bad_mtu_is_rejected),
        T(test_consumer_reject_carries_its_data),
        T(test_unfit_requests_are_rejected_with_the_standards_reason),
        T(test_destroyed_request_is_taken_back),
        T(test_stale_request_is_rejected_and_the_old_connection_ended),
        T(test_reply_with_a_qp_in_use_is_stale),
        T(test_late_duplicate_of_a_closed_connection_makes_no_new_one),
        T(test_messages_from_another_port_touch_nothing),
        T(test_stranger_cannot_make_a_connection_stale),
        T(test_dreq_for_another_qp_is_dropped),
        T(test_unknown_dreq_gets_a_drep),
        T(test_class_port_info_is_answered),
        T(test_listen_overlapping_range_is_busy),
        T(test_listen_mask_takes_a_range),
        T(test_listen_service_id_is_assigned),
        T(test_listen_compare_data_tells_listeners_apart),
        T(test_destroyed_listener_rejects_requests_nobody_saw),
        T(test_forgotten_request_is_asked_again),
        T(test_data_longer_than_the_message_is_refused),
        T(test_peers_that_ask_at_once_become_one_connection),
        T(test_peer_that_asks_early_waits_for_the_other),
        T(test_sidr_gives_qpn_and_qkey),
        T(test_sidr_without_listener_gives_status_1),
        T(test_sidr_without_answer_fails_in_the_callers_time),
        T(test_sidr_destroyed_request_is_rejected),
        T(test_lap_loads_the_alternate_path_on_both_sides),
        T(test_lap_faults_are_answered_with_their_status),
        T(test_lap_without_answer_is_an_error_event),
        T(test_alternate_path_in_the_request_reaches_both_qps),
        T(test_uc_has_no_reliability_attributes),
        T(test_xrc_names_the_target_qp_in_the_reply),
        T(test_unconnectable_qp_type_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
