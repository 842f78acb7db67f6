// SPDX-License-Identifier: BSD-2-Clause
// QP states (IBA 10.3, 11.2.5.2). An empty cell of the table is a refused transition.
#include "qp/qp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { T_RC, T_UC, T_UD, T_XINI, T_XTGT, T_COUNT };

struct transition {
    bool allowed;
    int required[T_COUNT];
    int optional[T_COUNT];
};

#define INIT_CONN (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_UD   (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)
#define RTR_CONN  (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RESP  (RTR_CONN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTR_OPT   (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX)
#define RTS_REQ                                                                                    \
    (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)
#define LIVE_UC (IBV_QP_CUR_STATE | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define LIVE_RC (LIVE_UC | IBV_QP_MIN_RNR_TIMER)
#define LIVE_UD (IBV_QP_CUR_STATE | IBV_QP_QKEY)
#define SQD_UC                                                                                     \
    (IBV_QP_AV | IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PATH_MIG_STATE)
#define SQD_REQ                                                                                    \
    (SQD_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |                 \
     IBV_QP_MAX_QP_RD_ATOMIC)
#define SQD_RESP                                                                                   \
    (SQD_UC | IBV_QP_PORT | IBV_QP_TIMEOUT | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

// Programs treat both ends of XRC like RC (perftest does): what the other half of an RC QP needs is
// taken and means nothing.
#define AS_RC_RTR (IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC)
#define AS_RC_RTS (IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

// Index: RC, UC, UD, XRC initiator, XRC target.
#define SAME_FOR_CONNECTED(conn, ud)                                                               \
    {                                                                                              \
        conn, conn, ud, conn, conn                                                                 \
    }
#define LIVE_OPTIONAL                                                                              \
    {                                                                                              \
        LIVE_RC, LIVE_UC, LIVE_UD, LIVE_UC, LIVE_RC                                                \
    }

static const struct transition table[IBV_QPS_ERR + 1][IBV_QPS_ERR + 1] =
    {
        [IBV_QPS_RESET] = {[IBV_QPS_INIT] = {true, SAME_FOR_CONNECTED(INIT_CONN, INIT_UD), {0}}},
        [IBV_QPS_INIT] =
            {
                [IBV_QPS_INIT] = {true, {0}, SAME_FOR_CONNECTED(INIT_CONN, INIT_UD)},
                [IBV_QPS_RTR] = {true,
                                 {RTR_RESP, RTR_CONN, 0, RTR_CONN, RTR_RESP},
                                 {RTR_OPT, RTR_OPT, IBV_QP_PKEY_INDEX | IBV_QP_QKEY,
                                  RTR_OPT | AS_RC_RTR, RTR_OPT}},
            },
        [IBV_QPS_RTR] = {[IBV_QPS_RTS] = {true,
                                          {RTS_REQ, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN, RTS_REQ,
                                           IBV_QP_SQ_PSN | IBV_QP_TIMEOUT},
                                          {LIVE_RC, LIVE_UC, LIVE_UD, LIVE_UC,
                                           LIVE_RC | AS_RC_RTS}}},
        [IBV_QPS_RTS] =
            {
                [IBV_QPS_RTS] = {true, {0}, LIVE_OPTIONAL},
                [IBV_QPS_SQD] = {true,
                                 {0},
                                 SAME_FOR_CONNECTED(IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_CUR_STATE,
                                                    IBV_QP_EN_SQD_ASYNC_NOTIFY | IBV_QP_CUR_STATE)},
            },
        [IBV_QPS_SQD] =
            {
                [IBV_QPS_RTS] = {true, {0}, LIVE_OPTIONAL},
                [IBV_QPS_SQD] = {true,
                                 {0},
                                 {SQD_REQ | SQD_RESP, SQD_UC, IBV_QP_PKEY_INDEX | IBV_QP_QKEY,
                                  SQD_REQ, SQD_RESP}},
            },
        [IBV_QPS_SQE] = {[IBV_QPS_RTS] = {true,
                                          {0},
                                          {0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, LIVE_UD, 0,
                                           0}}},
};

static int type_index(enum ibv_qp_type type)
{
    switch ((int)type) {
    case IBV_QPT_UC:
        return T_UC;
    case IBV_QPT_UD:
        return T_UD;
    case IBV_QPT_XRC_SEND:
        return T_XINI;
    case IBV_QPT_XRC_RECV:
        return T_XTGT;
    default:
        return T_RC;
    }
}

const char *wf_qp_state_name(enum ibv_qp_state s)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
    return (unsigned)s < sizeof(names) / sizeof(names[0]) ? names[s] : "?";
}

static void name_attributes(int mask, char *buf, size_t len)
{
    static const struct {
        int bit;
        const char *name;
    } names[] = {
        {IBV_QP_CUR_STATE, "CUR_STATE"},
        {IBV_QP_EN_SQD_ASYNC_NOTIFY, "EN_SQD_ASYNC_NOTIFY"},
        {IBV_QP_ACCESS_FLAGS, "ACCESS_FLAGS"},
        {IBV_QP_PKEY_INDEX, "PKEY_INDEX"},
        {IBV_QP_PORT, "PORT"},
        {IBV_QP_QKEY, "QKEY"},
        {IBV_QP_AV, "AV"},
        {IBV_QP_PATH_MTU, "PATH_MTU"},
        {IBV_QP_TIMEOUT, "TIMEOUT"},
        {IBV_QP_RETRY_CNT, "RETRY_CNT"},
        {IBV_QP_RNR_RETRY, "RNR_RETRY"},
        {IBV_QP_RQ_PSN, "RQ_PSN"},
        {IBV_QP_MAX_QP_RD_ATOMIC, "MAX_QP_RD_ATOMIC"},
        {IBV_QP_ALT_PATH, "ALT_PATH"},
        {IBV_QP_MIN_RNR_TIMER, "MIN_RNR_TIMER"},
        {IBV_QP_SQ_PSN, "SQ_PSN"},
        {IBV_QP_MAX_DEST_RD_ATOMIC, "MAX_DEST_RD_ATOMIC"},
        {IBV_QP_PATH_MIG_STATE, "PATH_MIG_STATE"},
        {IBV_QP_CAP, "CAP"},
        {IBV_QP_DEST_QPN, "DEST_QPN"},
        {IBV_QP_RATE_LIMIT, "RATE_LIMIT"},
    };
    size_t at = 0;
    buf[0] = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if ((mask & names[i].bit) && at < len)
            at += (size_t)snprintf(buf + at, len - at, "%sIBV_QP_%s", at ? " " : "", names[i].name);
}

int wf_qp_check_modify(const struct wf_qp *qp, enum ibv_qp_state to, int mask)
{
    enum ibv_qp_state from = qp->state;
    char names[256];
    if ((unsigned)to > IBV_QPS_ERR)
        return wf_refuse(EINVAL, WF_R_QP_ATTR_VALUE, "QP 0x%06x: qp_state %d", qp->qpn, (int)to);
    // Any state may go to RESET or ERR, and needs nothing for it.
    bool always = to == IBV_QPS_RESET || to == IBV_QPS_ERR;
    const struct transition *t = &table[from][to];
    if (!always && !t->allowed)
        return wf_refuse(EINVAL, WF_R_QP_STATE, "QP 0x%06x: %s to %s", qp->qpn,
                         wf_qp_state_name(from), wf_qp_state_name(to));
    int type = type_index(qp->type);
    int given = mask & ~(IBV_QP_STATE | IBV_QP_RATE_LIMIT);
    int required = always ? 0 : t->required[type];
    int optional = always ? IBV_QP_CUR_STATE : t->optional[type];
    if (required & ~given) {
        name_attributes(required & ~given, names, sizeof(names));
        return wf_refuse(EINVAL, WF_R_QP_ATTR_MISSING, "QP 0x%06x: %s to %s needs %s", qp->qpn,
                         wf_qp_state_name(from), wf_qp_state_name(to), names);
    }
    if (given & ~(required | optional)) {
        name_attributes(given & ~(required | optional), names, sizeof(names));
        return wf_refuse(EINVAL, WF_R_QP_ATTR_EXTRA, "QP 0x%06x: %s to %s takes no %s", qp->qpn,
                         wf_qp_state_name(from), wf_qp_state_name(to), names);
    }
    return 0;
}

void wf_qp_publish(struct wf_qp *qp)
{
    struct wf_qp_entry *d = qp->dir;
    bool ready = qp->state >= IBV_QPS_RTR && qp->state != IBV_QPS_ERR;
    atomic_store_explicit(&d->state, 1u + qp->state, memory_order_relaxed);
    if (!ready) {
        if (atomic_exchange(&d->ready, 0))
            qp->env->ops->withdrawn(qp);
        return;
    }
    d->remote_qpn = qp->attr.dest_qp_num;
    d->pd = qp->pd;
    d->access = qp->attr.qp_access_flags;
    d->mtu = qp->mtu;
    d->type = qp->type;
    atomic_store_explicit(&d->ready, 1, memory_order_release);
}

void wf_qp_set_state(struct wf_qp *qp, enum ibv_qp_state to)
{
    __atomic_store_n(&qp->state, to, __ATOMIC_RELAXED); // wf_qp_state() takes no lock
    qp->attr.qp_state = qp->attr.cur_qp_state = to;
    wf_qp_publish(qp);
}

void wf_qp_reset(struct wf_qp *qp)
{
    struct wf_resource *res = qp->resp.res;
    uint32_t nres = qp->resp.nres;
    for (uint32_t i = qp->sq.una; i != qp->sq.head; i++) {
        struct wf_swqe *w = wf_sq_slot(&qp->sq, i);
        if (w->path)
            qp->env->ops->path_put(qp, w->path);
        w->path = NULL;
    }
    if (qp->resp.has_wqe && qp->resp.srq)
        wf_srqueue_give_back(&qp->resp.srq->q, qp->resp.rq_counter);
    qp->sq.head = qp->sq.next = qp->sq.una = qp->sq.tail = 0;
    qp->rq.head = qp->rq.next = qp->rq.tail = 0;
    memset(&qp->req, 0, sizeof(qp->req));
    memset(&qp->resp, 0, sizeof(qp->resp));
    qp->resp.res = res;
    qp->resp.nres = nres;
    for (uint32_t i = 0; i < nres; i++)
        res[i] = (struct wf_resource){.operation = 0xff};
    qp->peer_dead = qp->sqd_event_sent = qp->blocked = false;
    qp->root = WF_R_NONE;
    wf_timer_stop(qp);
}

void wf_qp_start_responder(struct wf_qp *qp)
{
    atomic_store_explicit(&qp->dir->epsn, qp->attr.rq_psn & WF_PSN_MASK, memory_order_relaxed);
    atomic_store_explicit(&qp->dir->msn, 0, memory_order_relaxed);
}

void wf_qp_start_requester(struct wf_qp *qp)
{
    qp->req.psn = qp->req.una_psn = qp->req.sent_psn = qp->attr.sq_psn & WF_PSN_MASK;
    qp->req.retries = qp->attr.retry_cnt;
    qp->req.rnr_retries = qp->attr.rnr_retry;
    qp->req.heard = WF_R_NO_ANSWER;
}
