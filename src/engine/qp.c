// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs as objects: create, query, destroy. modify.c changes their state.
#include "engine/engine.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static bool has_sq(enum ibv_qp_type t)
{
    return (int)t != IBV_QPT_XRC_RECV;
}

static bool has_rq(const struct wf_qp_init *init)
{
    return !init->srq && (int)init->type != IBV_QPT_XRC_RECV && (int)init->type != IBV_QPT_XRC_SEND;
}

static int check_type(const struct wf_qp_init *init, const struct wf_pd *pd)
{
    switch ((int)init->type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
        if (!pd || !init->send_cq || !init->recv_cq)
            return wf_refuse(EINVAL, WF_R_ARG, "a QP needs a PD and two CQs");
        return 0;
    case IBV_QPT_XRC_SEND:
        if (!pd || !init->send_cq)
            return wf_refuse(EINVAL, WF_R_ARG, "an XRC send QP needs a PD and a send CQ");
        return 0;
    case IBV_QPT_XRC_RECV:
        if (!init->xrcd)
            return wf_refuse(EINVAL, WF_R_ARG, "an XRC receive QP needs an XRC domain");
        return 0;
    default:
        return wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "QP type %d", (int)init->type);
    }
}

static int check_caps(const struct wf_qp_init *init)
{
    const struct ibv_qp_cap *c = &init->cap;
    if (has_sq(init->type) && (c->max_send_wr > WF_MAX_WR || c->max_send_sge > WF_MAX_SGE))
        return wf_refuse(EINVAL, WF_R_ARG, "max_send_wr %u of %u, max_send_sge %u of %u",
                         c->max_send_wr, WF_MAX_WR, c->max_send_sge, WF_MAX_SGE);
    if (has_sq(init->type) && c->max_inline_data > WF_MAX_INLINE)
        return wf_refuse(EINVAL, WF_R_ARG, "max_inline_data %u of %u", c->max_inline_data,
                         WF_MAX_INLINE);
    // With an SRQ, or without a receive side, receive sizes mean nothing and are not looked at.
    if (has_rq(init) && (c->max_recv_wr > WF_MAX_WR || c->max_recv_sge > WF_MAX_SGE))
        return wf_refuse(EINVAL, WF_R_ARG, "max_recv_wr %u of %u, max_recv_sge %u of %u",
                         c->max_recv_wr, WF_MAX_WR, c->max_recv_sge, WF_MAX_SGE);
    return 0;
}

static uint32_t free_index(struct wf_hca *h)
{
    if (h->live_qps >= WF_LIMIT_QP)
        return WF_NO_QP_INDEX;
    // Numbers rest before they are used again, so that late packets find nobody.
    for (uint32_t tries = 0; tries < WF_QP_PER_PROCESS; tries++) {
        uint32_t i = h->next_qp++ & 0xffff;
        if (i > 1 && !h->qps[i])
            return i;
    }
    return WF_NO_QP_INDEX;
}

static int make_queues(struct wf_qp *qp, struct wf_qp_init *init)
{
    struct ibv_qp_cap *c = &init->cap;
    int err = 0;
    if (has_sq(init->type))
        err = wf_sq_init(&qp->sq, c->max_send_wr, c->max_send_sge, c->max_inline_data);
    if (!err && has_rq(init))
        err = wf_rq_init(&qp->rq, c->max_recv_wr, c->max_recv_sge);
    if (err)
        return err;
    *c = (struct ibv_qp_cap){.max_send_wr = qp->sq.max_wr,
                             .max_recv_wr = qp->rq.max_wr,
                             .max_send_sge = qp->sq.max_sge,
                             .max_recv_sge = qp->rq.max_sge,
                             .max_inline_data = qp->sq.max_inline};
    qp->attr.cap = *c;
    return 0;
}

static void count_users(struct wf_qp *qp, int by)
{
    if (qp->pd_obj)
        qp->pd_obj->users += (uint32_t)by;
    if (qp->scq)
        qp->scq->users += (uint32_t)by;
    if (qp->rcq)
        qp->rcq->users += (uint32_t)by;
    if (qp->srq)
        qp->srq->users += (uint32_t)by;
    if (qp->xrcd)
        qp->xrcd->users += (uint32_t)by;
}

static void fill(struct wf_qp *qp, struct wf_ctx *ctx, struct wf_pd *pd,
                 const struct wf_qp_init *init, uint32_t index)
{
    struct wf_hca *h = ctx->hca;
    qp->env = &h->env;
    qp->hca = h;
    qp->ctx = ctx;
    qp->dir = &h->region->qps[index];
    qp->qpn = h->slot << 16 | index;
    qp->type = init->type;
    qp->pd = pd ? pd->num : 0;
    qp->pd_obj = pd;
    qp->pkey = 0xffff;
    qp->mtu = qp->seg = 1024;
    qp->sig_all = init->sig_all;
    qp->scq = init->send_cq;
    qp->rcq = init->recv_cq;
    qp->srq = init->srq;
    qp->xrcd = init->xrcd;
    qp->user = init->user;
    qp->create_flags = init->create_flags;
    qp->deadline = WF_NEVER;
    if (qp->type == IBV_QPT_UD)
        qp->mtu = qp->seg = 4096;
    wf_qp_set_state(qp, IBV_QPS_RESET);
    wf_qp_reset(qp);
}

int wf_qp_create(struct wf_ctx *ctx, struct wf_pd *pd, struct wf_qp_init *init, struct wf_qp **out)
{
    struct wf_hca *h = ctx->hca;
    int err = check_type(init, pd);
    if (!err)
        err = check_caps(init);
    if (!err)
        err = wf_verb_fault(h, "create_qp");
    if (err)
        return err;
    struct wf_qp *qp = calloc(1, sizeof(*qp));
    if (!qp)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "QP");
    if (make_queues(qp, init)) {
        err = wf_refuse(ENOMEM, WF_R_NO_MEMORY, "queues of %u sends and %u receives",
                        init->cap.max_send_wr, init->cap.max_recv_wr);
        goto fail;
    }
    wf_enter(h);
    uint32_t index = free_index(h);
    if (index == WF_NO_QP_INDEX) {
        err = wf_refuse(ENOMEM, WF_R_LIMIT, "%u QPs", WF_LIMIT_QP);
    } else {
        fill(qp, ctx, pd, init, index);
        h->qps[index] = qp;
        h->live_qps++;
        h->ud_qps += qp->type == IBV_QPT_UD;
        count_users(qp, 1);
        DL_APPEND(ctx->qps, qp);
    }
    wf_exit(h);
    if (err)
        goto fail;
    *out = qp;
    return 0;
fail:
    wf_sq_fini(&qp->sq);
    wf_rq_fini(&qp->rq);
    free(qp);
    return err;
}

int wf_qp_query(struct wf_qp *qp, struct ibv_qp_attr *attr, struct wf_qp_init *init)
{
    struct wf_hca *h = qp->hca;
    wf_enter(h);
    *attr = qp->attr;
    attr->qp_state = attr->cur_qp_state = qp->state;
    attr->sq_draining = qp->state == IBV_QPS_SQD && qp->sq.una != qp->sq.next;
    if (qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD)
        attr->sq_psn = qp->type == IBV_QPT_UD ? qp->attr.sq_psn : qp->req.psn;
    *init = (struct wf_qp_init){.type = qp->type,
                                .send_cq = qp->scq,
                                .recv_cq = qp->rcq,
                                .srq = qp->srq,
                                .xrcd = qp->xrcd,
                                .cap = qp->attr.cap,
                                .sig_all = qp->sig_all,
                                .create_flags = qp->create_flags,
                                .user = qp->user};
    wf_exit(h);
    return 0;
}

void wf_qp_wqes(struct wf_qp *qp, struct wf_wqes *out)
{
    *out = (struct wf_wqes){0};
    if (qp->rq.buf) {
        out->recv_stride = 1u << qp->rq.shift;
        out->recv_slots = qp->rq.mask + 1;
    }
    if (!qp->sq.buf)
        return;
    out->send_stride = 1u << qp->sq.shift;
    out->send_slots = qp->sq.mask + 1;
    uint64_t recv_bytes = (uint64_t)out->recv_stride * out->recv_slots;
    out->send_offset =
        (uint32_t)((recv_bytes + out->send_stride - 1) / out->send_stride * out->send_stride);
}

// A completion that will never be polled gives its receive back to the SRQ.
static void completion_gone(void *arg, const struct wf_completion *c)
{
    struct wf_hca *h = arg;
    struct wf_srq *srq = c->srqn ? h->srqs[c->srqn & 0xffff] : NULL;
    if (srq)
        wf_srqueue_give_back(&srq->q, c->wqe_adr >> srq->q.shift);
}

// An acknowledgement that is due tells the peer that its request is done: the QP must not lose it
// when the program disconnects (ERR) or destroys it right after its last completion.
void wf_qp_send_due_ack(struct wf_qp *qp)
{
    if (qp->resp.ack_due && qp->state >= IBV_QPS_RTR && qp->state != IBV_QPS_ERR)
        wf_resp_run(qp);
}

// Back to RESET: nothing of the QP is left in queues, CQs or timers.
void wf_qp_wipe(struct wf_qp *qp)
{
    struct wf_hca *h = qp->hca;
    // While the queues still know what their entries are about.
    if (qp->scq)
        wf_cqring_reap(qp->scq);
    if (qp->rcq)
        wf_cqring_reap(qp->rcq);
    wf_qp_send_due_ack(qp);
    wf_forget(qp);
    wf_qp_set_state(qp, IBV_QPS_RESET);
    wf_qp_reset(qp);
    if (qp->scq)
        wf_cqring_clean(qp->scq, qp->qpn, completion_gone, h);
    if (qp->rcq && qp->rcq != qp->scq)
        wf_cqring_clean(qp->rcq, qp->qpn, completion_gone, h);
    wf_qp_drop_paths(qp);
    qp->comm_est_sent = false;
}

int wf_qp_destroy_locked(struct wf_qp *qp)
{
    struct wf_hca *h = qp->hca;
    if (qp->mcast_groups)
        return wf_refuse(EBUSY, WF_R_BUSY, "QP 0x%06x is in %u multicast groups", qp->qpn,
                         qp->mcast_groups);
    wf_qp_wipe(qp);
    h->qps[qp->qpn & 0xffff] = NULL;
    atomic_store_explicit(&qp->dir->state, 0, memory_order_relaxed);
    h->live_qps--;
    h->ud_qps -= qp->type == IBV_QPT_UD;
    count_users(qp, -1);
    DL_DELETE(qp->ctx->qps, qp);
    wf_sq_fini(&qp->sq);
    wf_rq_fini(&qp->rq);
    free(qp->resp.res);
    free(qp);
    return 0;
}

int wf_qp_destroy(struct wf_qp *qp)
{
    struct wf_hca *h = qp->hca;
    wf_enter(h);
    int err = wf_qp_destroy_locked(qp);
    wf_exit(h);
    return err;
}

uint32_t wf_qp_num(const struct wf_qp *qp)
{
    return qp->qpn;
}

enum ibv_qp_state wf_qp_state(const struct wf_qp *qp)
{
    return __atomic_load_n(&qp->state, __ATOMIC_RELAXED);
}
