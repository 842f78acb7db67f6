// SPDX-License-Identifier: BSD-2-Clause
// The connection manager's events come on the engine's thread under its own lock; they are queued
// there and acted upon under the uGNI lock. Lock order: uGNI, connection manager, engine.
//
// Two processes may connect to each other at once. Both connections live then, and each side keeps
// sending on the one it asked for, so that its messages stay in order.
#include "ugni/rcconn.h"
#include "base/reason.h"
#include "ugni/service.h"
#include "ugni/state.h"
#include "ugni/thread.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RESPONSE_TIMEOUT 18 // 4.096 us << 18: a second
#define CM_RETRIES       5
#define RETRY_COUNT      7
#define RNR_TIMER        12          // 0.64 ms
#define TRY_AGAIN_NS     50000000ull // its listener may not be up yet
#define GIVE_UP_NS       5000000000ull

struct queued {
    struct queued *next;
    struct wf_cm_event ev;
    struct wf_gni_conn *conn;
};

static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER; // innermost
static struct queued *first, **last = &first;
static _Atomic bool some;

// ---- events, in
// -----------------------------------------------------------------------------------

static void queue(const struct wf_cm_event *ev, struct wf_gni_conn *c)
{
    struct queued *q = malloc(sizeof(*q));
    if (!q)
        return;
    *q = (struct queued){NULL, *ev, c};
    pthread_mutex_lock(&event_lock);
    *last = q;
    last = &q->next;
    some = true;
    pthread_mutex_unlock(&event_lock);
    wf_gni_thread_kick();
}

static void conn_event(struct wf_cm_owner *owner, const struct wf_cm_event *ev)
{
    queue(ev, (struct wf_gni_conn *)owner);
}

static void listener_event(struct wf_cm_owner *owner, const struct wf_cm_event *ev)
{
    (void)owner;
    struct wf_gni_conn *c = ev->type == WF_CM_REQ_RECEIVED ? calloc(1, sizeof(*c)) : NULL;
    if (!c) {
        wf_cm_id_destroy(ev->id);
        return;
    }
    c->owner.event = conn_event;
    c->id = ev->id;
    wf_cm_id_set_user(ev->id, &c->owner);
    queue(ev, c);
}

bool wf_gni_conn_has_events(void)
{
    return some;
}

static struct queued *take(void)
{
    pthread_mutex_lock(&event_lock);
    struct queued *q = first;
    if (q && !(first = q->next)) {
        last = &first;
        some = false;
    }
    pthread_mutex_unlock(&event_lock);
    return q;
}

// ---- making -------------------------------------------------------------------------------------

static struct wf_gni_greeting greeting(void)
{
    return (struct wf_gni_greeting){htonl(WF_GNI_GREETING_MAGIC), htonl(WF_GNI_AM_VERSION),
                                    htonl(wf_gni.pe), WF_GNI_ORDER};
}

static bool greeting_ok(const void *data, uint32_t *pe)
{
    struct wf_gni_greeting g;
    memcpy(&g, data, sizeof(g));
    *pe = ntohl(g.pe);
    return g.magic == htonl(WF_GNI_GREETING_MAGIC) && g.version == htonl(WF_GNI_AM_VERSION) &&
           g.order == WF_GNI_ORDER;
}

int wf_gni_conn_listen(void)
{
    struct wf_gni_rc *rc = &wf_gni_rc;
    uint64_t service = WF_GNI_SERVICE + WF_GNI_PE_SLOT(wf_gni.pe);
    rc->owner.event = listener_event;
    struct wf_cm *cm = wf_cm_lock(rc->host);
    int err = wf_cm_id_create(cm, &rc->owner, &rc->listener);
    if (!err)
        err = wf_cm_listen(rc->listener, service, 0, NULL);
    wf_cm_unlock(rc->host);
    return err;
}

struct wf_gni_conn *wf_gni_conn_new(uint32_t pe, struct wf_gni_peer *peer)
{
    struct wf_gni_conn *c = calloc(1, sizeof(*c));
    if (!c)
        return NULL;
    c->owner.event = conn_event;
    c->pe = pe;
    c->peer = peer;
    c->next = wf_gni_rc.conns;
    wf_gni_rc.conns = c;
    return c;
}

static int make_qp(struct wf_gni_conn *c)
{
    struct wf_gni_rc *rc = &wf_gni_rc;
    struct wf_qp_init init = {
        .type = IBV_QPT_RC,
        .send_cq = rc->cq,
        .recv_cq = rc->cq,
        .srq = rc->srq,
        .cap = {.max_send_wr = WF_GNI_RC_DEPTH, .max_send_sge = 1, .max_recv_sge = 1},
        .user = c,
    };
    return wf_qp_create(rc->ctx, rc->pd, &init, &c->qp);
}

// Under the connection manager's lock: it knows the attributes.
static int move_qp(struct wf_gni_conn *c, enum ibv_qp_state to)
{
    struct ibv_qp_attr attr = {.qp_state = to};
    int mask = 0, err = wf_cm_init_qp_attr(c->id, &attr, &mask);
    if (to == IBV_QPS_RTR) {
        attr.rq_psn = c->psn; // the answering side is asked before its REP told the machine
        attr.min_rnr_timer = RNR_TIMER;
    }
    return err ? err : wf_qp_modify(c->qp, &attr, mask);
}

static void route_to(uint32_t pe, struct wf_cm_route *r)
{
    uint32_t address = htonl(wf_gni_host_address(WF_GNI_PE_HOST(pe)));
    *r = (struct wf_cm_route){.sgid = wf_gni_rc.gid,
                              .dgid = wf_gni_rc.gid,
                              .pkey = 0xffff,
                              .hop_limit = 64,
                              .mtu = wf_gni_rc.mtu,
                              .rate = IBV_RATE_10_GBPS,
                              .life = 14}; // 67 ms
    memcpy(r->dgid.raw + 12, &address, 4);
}

static int ask(struct wf_gni_conn *c, struct wf_cm *cm)
{
    struct wf_gni_greeting g = greeting();
    struct wf_cm_route path;
    route_to(c->pe, &path);
    struct wf_cm_req_param req = {.path = &path,
                                  .service_id = WF_GNI_SERVICE + WF_GNI_PE_SLOT(c->pe),
                                  .qpn = wf_qp_num(c->qp),
                                  .qp_type = IBV_QPT_RC,
                                  .psn = c->psn = (uint32_t)wf_gni_now() & 0xffffff,
                                  .data = &g,
                                  .data_len = sizeof(g),
                                  .responder_resources = 1,
                                  .initiator_depth = 1,
                                  .remote_response_timeout = RESPONSE_TIMEOUT,
                                  .local_response_timeout = RESPONSE_TIMEOUT,
                                  .srq = true,
                                  .retry_count = RETRY_COUNT,
                                  .rnr_retry = 7, // for ever: the peer posts again
                                  .max_cm_retries = CM_RETRIES};
    int err = wf_cm_id_create(cm, &c->owner, &c->id);
    if (!err && (err = wf_cm_send_req(c->id, &req))) {
        wf_cm_id_destroy(c->id);
        c->id = NULL;
    }
    return err;
}

static void lost(struct wf_gni_conn *c);

void wf_gni_conn_open(struct wf_gni_conn *c)
{
    int err = c->qp ? 0 : make_qp(c);
    if (!err) {
        struct wf_cm *cm = wf_cm_lock(wf_gni_rc.host);
        err = ask(c, cm);
        wf_cm_unlock(wf_gni_rc.host);
    }
    c->state = WF_GNI_CONN_ASKED;
    if (err) {
        wf_explain(WF_R_GNI_NO_PEER, "PE 0x%x: %s", c->pe, strerror(-err));
        lost(c);
    }
}

int wf_gni_rc_connect(struct wf_gni_peer *peer)
{
    if (wf_gni_rc.failed)
        return -ENETUNREACH;
    struct wf_gni_conn *c = wf_gni_conn_new(peer->pe, peer);
    if (!c)
        return -ENOMEM;
    peer->rc = c;
    peer->link = &wf_gni_rc_link;
    c->give_up_at = wf_gni_now() + GIVE_UP_NS;
    c->try_at = 0;
    wf_gni_thread_kick();
    return 0;
}

void wf_gni_conn_timers(uint64_t now)
{
    for (struct wf_gni_conn *c = wf_gni_rc.conns; c; c = c->next)
        if (c->state == WF_GNI_CONN_WAITING && c->try_at <= now)
            wf_gni_conn_open(c);
}

uint64_t wf_gni_conn_next(void)
{
    uint64_t at = WF_GNI_INFINITE;
    for (struct wf_gni_conn *c = wf_gni_rc.conns; c; c = c->next)
        if (c->state == WF_GNI_CONN_WAITING && c->try_at < at)
            at = c->try_at;
    return at;
}

// ---- ending -------------------------------------------------------------------------------------

void wf_gni_conn_close(struct wf_gni_conn *c)
{
    if (c->state == WF_GNI_CONN_GONE)
        return;
    c->state = WF_GNI_CONN_GONE;
    if (c->id) {
        wf_cm_lock(wf_gni_rc.host);
        wf_cm_id_destroy(c->id);
        c->id = NULL;
        wf_cm_unlock(wf_gni_rc.host);
    }
    if (c->qp)
        wf_qp_destroy(c->qp);
    c->qp = NULL;
    c->sends = 0; // their completions went with the QP
}

// The connection to a peer cannot be had, or ended. Another one to it may be there.
static void lost(struct wf_gni_conn *c)
{
    struct wf_gni_peer *peer = c->peer;
    bool was_ready = c->state == WF_GNI_CONN_READY;
    wf_gni_conn_close(c);
    if (!peer || peer->dead || (peer->rc != c && !was_ready))
        return;
    for (struct wf_gni_conn *o = wf_gni_rc.conns; o && !was_ready; o = o->next)
        if (o->peer == peer &&
            (o->state == WF_GNI_CONN_READY || o->state == WF_GNI_CONN_ANSWERED)) {
            peer->rc = o;
            return;
        }
    wf_gni_peer_died(peer);
}

static void refused(struct wf_gni_conn *c, uint16_t reason)
{
    uint64_t now = wf_gni_now();
    bool later = reason == WF_CM_REJ_SERVICE_ID || reason == WF_CM_REJ_STALE;
    if (!later || now > c->give_up_at) {
        wf_explain(WF_R_GNI_NO_PEER, "PE 0x%x: connection rejected, reason %u", c->pe, reason);
        lost(c);
        return;
    }
    wf_cm_lock(wf_gni_rc.host);
    wf_cm_id_destroy(c->id);
    c->id = NULL;
    wf_cm_unlock(wf_gni_rc.host);
    c->state = WF_GNI_CONN_WAITING;
    c->try_at = now + TRY_AGAIN_NS;
}

// ---- events, acted upon
// ---------------------------------------------------------------------------

// The process that has this PE now; an older one with it is gone.
static struct wf_gni_peer *peer_for(uint32_t pe)
{
    struct wf_gni_peer *p = wf_gni_peer_find(pe);
    if (p && !p->dead)
        return p;
    p = wf_gni_peer_new(pe);
    if (p)
        p->link = &wf_gni_rc_link;
    return p;
}

static void on_request(struct wf_gni_conn *c, const struct wf_cm_event *ev)
{
    struct wf_gni_greeting g = greeting();
    struct wf_cm_rep_param rep = {.data = &g,
                                  .data_len = sizeof(g),
                                  .responder_resources = 1,
                                  .initiator_depth = 1,
                                  .srq = true,
                                  .rnr_retry = 7,
                                  .psn = c->psn = (uint32_t)wf_gni_now() & 0xffffff};
    bool good =
        greeting_ok(ev->msg.req.data, &c->pe) && WF_GNI_PE_HOST(c->pe) != WF_GNI_PE_HOST(wf_gni.pe);
    c->next = wf_gni_rc.conns;
    wf_gni_rc.conns = c;
    c->peer = good ? peer_for(c->pe) : NULL;
    int err = c->peer ? make_qp(c) : -EPROTO;
    wf_cm_lock(wf_gni_rc.host);
    if (!err)
        err = move_qp(c, IBV_QPS_INIT);
    if (!err)
        err = move_qp(c, IBV_QPS_RTR);
    if (!err) {
        rep.qpn = wf_qp_num(c->qp);
        err = wf_cm_send_rep(c->id, &rep);
    }
    wf_cm_unlock(wf_gni_rc.host);
    c->state = WF_GNI_CONN_ANSWERED;
    if (err) {
        wf_explain(WF_R_GNI_NO_PEER, "request of PE 0x%x: %s", c->pe, strerror(-err));
        wf_gni_conn_close(c);
    } else if (!c->peer->rc) {
        c->peer->rc = c;
    }
}

static void on_reply(struct wf_gni_conn *c, const struct wf_cm_event *ev)
{
    uint32_t pe;
    int err = greeting_ok(ev->msg.rep.data, &pe) && pe == c->pe ? 0 : -EPROTO;
    wf_cm_lock(wf_gni_rc.host);
    if (!err)
        err = move_qp(c, IBV_QPS_INIT);
    if (!err)
        err = move_qp(c, IBV_QPS_RTR);
    if (!err)
        err = move_qp(c, IBV_QPS_RTS);
    if (!err)
        err = wf_cm_send_rtu(c->id, NULL, 0);
    wf_cm_unlock(wf_gni_rc.host);
    if (err) {
        wf_explain(WF_R_GNI_NO_PEER, "reply of PE 0x%x: %s", c->pe, strerror(-err));
        lost(c);
        return;
    }
    c->state = WF_GNI_CONN_READY;
}

static void on_established(struct wf_gni_conn *c)
{
    if (c->state != WF_GNI_CONN_ANSWERED)
        return;
    wf_cm_lock(wf_gni_rc.host);
    int err = move_qp(c, IBV_QPS_RTS);
    wf_cm_unlock(wf_gni_rc.host);
    if (err)
        lost(c);
    else
        c->state = WF_GNI_CONN_READY;
}

void wf_gni_conn_arrived(struct wf_gni_conn *c)
{
    if (c->state != WF_GNI_CONN_ANSWERED)
        return;
    wf_cm_lock(wf_gni_rc.host); // the RTU is lost or late
    (void)wf_cm_notify_established(c->id);
    wf_cm_unlock(wf_gni_rc.host);
    on_established(c);
}

static void act(struct wf_gni_conn *c, const struct wf_cm_event *ev)
{
    switch (ev->type) {
    case WF_CM_REQ_RECEIVED:
        on_request(c, ev);
        break;
    case WF_CM_REP_RECEIVED:
        if (c->state == WF_GNI_CONN_ASKED)
            on_reply(c, ev);
        break;
    case WF_CM_RTU_RECEIVED:
    case WF_CM_USER_ESTABLISHED:
        on_established(c);
        break;
    case WF_CM_REJ_RECEIVED:
        refused(c, ev->msg.rej.reason);
        break;
    case WF_CM_REQ_ERROR:
    case WF_CM_REP_ERROR:
    case WF_CM_DREQ_RECEIVED:
    case WF_CM_DREP_RECEIVED:
    case WF_CM_DREQ_ERROR:
        lost(c);
        break;
    default: // alternate paths, datagram services, TIMEWAIT: not used here
        break;
    }
}

void wf_gni_conn_events(void)
{
    struct queued *q;
    while ((q = take())) {
        if (q->conn->state != WF_GNI_CONN_GONE && q->conn->id)
            act(q->conn, &q->ev);
        free(q);
    }
}
