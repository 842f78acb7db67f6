// SPDX-License-Identifier: BSD-2-Clause
// ibv_modify_qp: check everything first, then change; a refused call changes nothing.
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int out_of_range(const struct wf_qp *qp, const char *what, unsigned value, unsigned max)
{
    return wf_refuse(EINVAL, WF_R_QP_ATTR_VALUE, "QP 0x%06x: %s %u; at most %u", qp->qpn, what,
                     value, max);
}

static int check_values(const struct wf_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    const struct {
        int bit;
        const char *name;
        unsigned value, max;
    } limits[] = {
        {IBV_QP_TIMEOUT, "timeout", a->timeout, 31},
        {IBV_QP_RETRY_CNT, "retry_cnt", a->retry_cnt, 7},
        {IBV_QP_RNR_RETRY, "rnr_retry", a->rnr_retry, 7},
        {IBV_QP_MIN_RNR_TIMER, "min_rnr_timer", a->min_rnr_timer, 31},
        {IBV_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic", a->max_rd_atomic, WF_LIMIT_RD_ATOM},
        {IBV_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic", a->max_dest_rd_atomic, WF_LIMIT_RD_ATOM},
        {IBV_QP_PKEY_INDEX, "pkey_index", a->pkey_index, WF_PKEYS - 1},
        {IBV_QP_DEST_QPN, "dest_qp_num", a->dest_qp_num, WF_QPN_MASK},
        {IBV_QP_PATH_MIG_STATE, "path_mig_state", a->path_mig_state, IBV_MIG_ARMED},
    };
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        if (mask & limits[i].bit && limits[i].value > limits[i].max)
            return out_of_range(qp, limits[i].name, limits[i].value, limits[i].max);
    if (mask & IBV_QP_PKEY_INDEX && !qp->hca->pkeys[a->pkey_index])
        return wf_refuse(EINVAL, WF_R_QP_ATTR_VALUE, "QP 0x%06x: P_Key index %u is empty", qp->qpn,
                         a->pkey_index);
    if (mask & IBV_QP_PORT && (a->port_num < 1 || a->port_num > WF_PORTS))
        return out_of_range(qp, "port_num", a->port_num, WF_PORTS);
    if (mask & IBV_QP_PATH_MTU && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
        return out_of_range(qp, "path_mtu", a->path_mtu, IBV_MTU_4096);
    if (mask & IBV_QP_CUR_STATE && a->cur_qp_state != qp->state)
        return wf_refuse(EINVAL, WF_R_QP_STATE, "QP 0x%06x is in %s, cur_qp_state says %s", qp->qpn,
                         wf_qp_state_name(qp->state), wf_qp_state_name(a->cur_qp_state));
    unsigned access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                      IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | 1u << 8 | 1u << 9;
    if (mask & IBV_QP_ACCESS_FLAGS && a->qp_access_flags & ~access)
        return wf_refuse(EINVAL, WF_R_QP_ATTR_VALUE, "QP 0x%06x: qp_access_flags 0x%x", qp->qpn,
                         a->qp_access_flags);
    return 0;
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

// Paths and buffers that the change needs, made before anything is touched.
struct prepared {
    struct wf_path_ref *path, *alt;
    struct wf_resource *res;
};

static void drop_prepared(struct prepared *p)
{
    wf_path_put(p->path);
    wf_path_put(p->alt);
    free(p->res);
}

static int prepare(struct wf_qp *qp, const struct ibv_qp_attr *a, int mask, struct prepared *p)
{
    struct wf_hca *h = qp->hca;
    int err = 0;
    uint32_t dqpn = mask & IBV_QP_DEST_QPN ? a->dest_qp_num : qp->attr.dest_qp_num;
    if (mask & IBV_QP_AV)
        err = wf_path_make(h, &a->ah_attr, dqpn, true, &p->path);
    if (!err && p->path && mask & IBV_QP_PATH_MTU && mtu_bytes(a->path_mtu) > p->path->path.mtu)
        err = wf_refuse(EINVAL, WF_R_QP_ATTR_VALUE,
                        "QP 0x%06x: path_mtu %u bytes, the interface carries %u", qp->qpn,
                        mtu_bytes(a->path_mtu), p->path->path.mtu);
    if (!err && mask & IBV_QP_ALT_PATH)
        err = wf_path_make(h, &a->alt_ah_attr, dqpn, true, &p->alt);
    if (!err && mask & IBV_QP_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic) {
        p->res = calloc(a->max_dest_rd_atomic, sizeof(*p->res));
        if (!p->res)
            err = wf_refuse(ENOMEM, WF_R_NO_MEMORY, "responder resources");
    }
    if (err) {
        drop_prepared(p);
        return err;
    }
    return 0;
}

static void use_path(struct wf_qp *qp, struct wf_path_ref *path)
{
    struct wf_hca *h = qp->hca;
    if (qp->path && qp->path->link && qp->path->link == h->udp)
        h->udp_qps--;
    wf_path_put((struct wf_path_ref *)qp->path);
    qp->path = &path->path;
    wf_qp_use_path(qp);
}

void wf_qp_drop_paths(struct wf_qp *qp)
{
    struct wf_hca *h = qp->hca;
    if (qp->path && qp->path->link && qp->path->link == h->udp)
        h->udp_qps--;
    wf_path_put((struct wf_path_ref *)qp->path);
    wf_path_put((struct wf_path_ref *)qp->alt_path);
    qp->path = qp->alt_path = NULL;
}

static void copy_attributes(struct wf_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    struct ibv_qp_attr *q = &qp->attr;
    if (mask & IBV_QP_ACCESS_FLAGS)
        q->qp_access_flags = a->qp_access_flags;
    if (mask & IBV_QP_PKEY_INDEX) {
        q->pkey_index = a->pkey_index;
        qp->pkey = qp->hca->pkeys[a->pkey_index];
    }
    if (mask & IBV_QP_PORT)
        q->port_num = a->port_num;
    if (mask & IBV_QP_QKEY)
        q->qkey = a->qkey;
    if (mask & IBV_QP_AV)
        q->ah_attr = a->ah_attr;
    if (mask & IBV_QP_PATH_MTU)
        q->path_mtu = a->path_mtu;
    if (mask & IBV_QP_TIMEOUT)
        q->timeout = a->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        q->retry_cnt = a->retry_cnt;
    if (mask & IBV_QP_RNR_RETRY)
        q->rnr_retry = a->rnr_retry;
    if (mask & IBV_QP_RQ_PSN)
        q->rq_psn = a->rq_psn & WF_PSN_MASK;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        q->max_rd_atomic = a->max_rd_atomic;
    if (mask & IBV_QP_ALT_PATH) {
        q->alt_ah_attr = a->alt_ah_attr;
        q->alt_pkey_index = a->alt_pkey_index;
        q->alt_port_num = a->alt_port_num;
        q->alt_timeout = a->alt_timeout;
    }
    if (mask & IBV_QP_MIN_RNR_TIMER)
        q->min_rnr_timer = a->min_rnr_timer;
    if (mask & IBV_QP_SQ_PSN)
        q->sq_psn = a->sq_psn & WF_PSN_MASK;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        q->max_dest_rd_atomic = a->max_dest_rd_atomic;
    if (mask & IBV_QP_DEST_QPN)
        q->dest_qp_num = a->dest_qp_num;
    if (mask & IBV_QP_RATE_LIMIT)
        q->rate_limit = a->rate_limit;
    if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
        q->en_sqd_async_notify = a->en_sqd_async_notify;
}

static void install(struct wf_qp *qp, struct prepared *p, const struct ibv_qp_attr *a, int mask)
{
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
        free(qp->resp.res);
        qp->resp.res = p->res;
        qp->resp.nres = a->max_dest_rd_atomic;
        qp->resp.res_head = qp->resp.res_pending = 0;
        for (uint32_t i = 0; i < qp->resp.nres; i++)
            qp->resp.res[i].operation = 0xff;
    }
    if (mask & IBV_QP_PATH_MTU)
        qp->mtu = qp->seg = mtu_bytes(a->path_mtu);
    if (p->path)
        use_path(qp, p->path);
    if (p->alt) {
        wf_path_put((struct wf_path_ref *)qp->alt_path);
        qp->alt_path = &p->alt->path;
    }
    if (mask & IBV_QP_PATH_MIG_STATE)
        wf_migrate_set(qp, a->path_mig_state);
}

static void enter_state(struct wf_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to)
{
    if (to == IBV_QPS_RTR)
        wf_qp_start_responder(qp);
    if (to == IBV_QPS_RTS && from == IBV_QPS_RTR)
        wf_qp_start_requester(qp);
    if (to == IBV_QPS_SQD && from != IBV_QPS_SQD)
        qp->sqd_event_sent = false;
    if (to == IBV_QPS_ERR) {
        wf_qp_send_due_ack(qp);
        wf_qp_to_error(qp);
        return;
    }
    wf_qp_set_state(qp, to);
    wf_ready(qp);
}

static int modify(struct wf_qp *qp, const struct ibv_qp_attr *a, int mask)
{
    enum ibv_qp_state from = qp->state;
    enum ibv_qp_state to = mask & IBV_QP_STATE ? a->qp_state : from;
    struct prepared p = {0};
    int err = wf_qp_check_modify(qp, to, mask);
    if (!err)
        err = check_values(qp, a, mask);
    if (!err)
        err = prepare(qp, a, mask, &p);
    if (err)
        return err;
    if (to == IBV_QPS_RESET) {
        wf_qp_wipe(qp);
        return 0;
    }
    copy_attributes(qp, a, mask);
    install(qp, &p, a, mask);
    enter_state(qp, from, to);
    return 0;
}

int wf_qp_modify(struct wf_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
    struct wf_hca *h = qp->hca;
    int err = wf_verb_fault(h, "modify_qp");
    if (err)
        return err;
    wf_enter(h);
    err = modify(qp, attr, mask);
    wf_exit(h);
    return err;
}
