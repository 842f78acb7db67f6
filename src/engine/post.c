// SPDX-License-Identifier: BSD-2-Clause
// Posting: check a work request, copy it into its queue, run the QP.
#include "engine/engine.h"

#include "mem/segments.h"
#include "qp/kinds.h"

#include <errno.h>
#include <string.h>

static int check_state(const struct wf_qp *qp)
{
    if (qp->state >= IBV_QPS_RTS)
        return 0;
    return wf_refuse(EINVAL, WF_R_QP_STATE, "post_send on QP 0x%06x in %s", qp->qpn,
                     wf_qp_state_name(qp->state));
}

static int check_opcode(const struct wf_qp *qp, const struct ibv_send_wr *wr)
{
    const struct wf_wr_info *info = wf_wr_info((uint8_t)wr->opcode);
    if ((unsigned)wr->opcode >= WF_WR_COUNT || !(info->qp_types & 1u << qp->type))
        return wf_refuse(EINVAL, WF_R_BAD_OPCODE, "opcode %d on QP 0x%06x", (int)wr->opcode,
                         qp->qpn);
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->sq.max_sge)
        return wf_refuse(EINVAL, WF_R_TOO_MANY_SGE, "QP 0x%06x: %d SGEs, max_send_sge %u", qp->qpn,
                         wr->num_sge, qp->sq.max_sge);
    bool fetches = info->kind == WF_WR_READ || info->kind == WF_WR_SINGLE;
    if (wr->send_flags & IBV_SEND_INLINE && fetches && wr->opcode != IBV_WR_ATOMIC_WRITE)
        return wf_refuse(EINVAL, WF_R_ARG, "IBV_SEND_INLINE with an operation that brings data");
    if (qp->type == IBV_QPT_UD && !wr->wr.ud.ah)
        return wf_refuse(EINVAL, WF_R_ARG, "datagram without an address handle");
    return 0;
}

static int check_length(const struct wf_qp *qp, const struct ibv_send_wr *wr, uint64_t len)
{
    if (wr->send_flags & IBV_SEND_INLINE && len > qp->sq.max_inline)
        return wf_refuse(EINVAL, WF_R_INLINE_TOO_LONG, "QP 0x%06x: %llu bytes, max_inline_data %u",
                         qp->qpn, (unsigned long long)len, qp->sq.max_inline);
    uint64_t max = WF_LIMIT_MSG;
    if (qp->type == IBV_QPT_UD)
        max = ((const struct wf_ah *)wr->wr.ud.ah)->path->mtu;
    if (len > max)
        return wf_refuse(EINVAL, WF_R_MSG_TOO_LONG, "QP 0x%06x: %llu bytes of %llu", qp->qpn,
                         (unsigned long long)len, (unsigned long long)max);
    bool atomic =
        wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (atomic && len < 8)
        return wf_refuse(EINVAL, WF_R_ARG, "an atomic needs 8 bytes for the old value, not %llu",
                         (unsigned long long)len);
    if (wr->opcode == IBV_WR_ATOMIC_WRITE && len != 8)
        return wf_refuse(EINVAL, WF_R_ARG, "an atomic write takes 8 bytes, not %llu",
                         (unsigned long long)len);
    return 0;
}

static uint64_t total_length(const struct ibv_send_wr *wr)
{
    uint64_t len = 0;
    for (int i = 0; i < wr->num_sge; i++)
        len += wr->sg_list[i].length;
    return len;
}

static void copy_data(struct wf_swqe *w, const struct ibv_send_wr *wr)
{
    if (!(w->flags & IBV_SEND_INLINE)) {
        for (int i = 0; i < wr->num_sge; i++)
            w->sge[i] = wr->sg_list[i];
        return;
    }
    uint8_t *to = (uint8_t *)w->sge;
    for (int i = 0; i < wr->num_sge; i++) {
        const struct ibv_sge *s = &wr->sg_list[i];
        if (s->length)
            memcpy(to, (const void *)(uintptr_t)s->addr, s->length);
        to += s->length;
    }
}

static void fill_target(struct wf_qp *qp, struct wf_swqe *w, const struct ibv_send_wr *wr)
{
    switch (wf_wr_info(w->opcode)->kind) {
    case WF_WR_WRITE:
    case WF_WR_READ:
        w->raddr = wr->wr.rdma.remote_addr;
        w->rkey = wr->wr.rdma.rkey;
        break;
    case WF_WR_SINGLE:
        w->raddr = wr->wr.atomic.remote_addr;
        w->rkey = wr->wr.atomic.rkey;
        w->compare = wr->wr.atomic.compare_add;
        w->swap = wr->wr.atomic.swap;
        if (w->opcode == IBV_WR_ATOMIC_WRITE || w->opcode == WF_WR_FLUSH) {
            w->raddr = wr->wr.rdma.remote_addr;
            w->rkey = wr->wr.rdma.rkey;
        }
        break;
    case WF_WR_LOCAL:
        if (w->opcode == IBV_WR_BIND_MW) {
            const struct ibv_mw_bind_info *b = &wr->bind_mw.bind_info;
            w->mw = wr->bind_mw.mw->handle;
            w->mr = b->mr ? b->mr->lkey : 0;
            w->rkey = wr->bind_mw.rkey;
            w->raddr = b->addr;
            w->compare = b->length;
            w->bind_access = b->mw_access_flags;
        }
        break;
    default:
        break;
    }
    if (qp->type == IBV_QPT_UD) {
        struct wf_ah *ah = (struct wf_ah *)wr->wr.ud.ah;
        w->path = ah->path;
        ((struct wf_path_ref *)ah->path)->refs++;
        w->dqpn = wr->wr.ud.remote_qpn & WF_QPN_MASK;
        w->qkey = wr->wr.ud.remote_qkey;
    }
    if ((int)qp->type == IBV_QPT_XRC_SEND)
        w->srqn = wr->qp_type.xrc.remote_srqn;
}

static void fill_swqe(struct wf_qp *qp, struct wf_swqe *w, const struct ibv_send_wr *wr,
                      uint32_t len)
{
    w->wr_id = wr->wr_id;
    w->opcode = (uint8_t)wr->opcode;
    w->flags = (uint8_t)wr->send_flags;
    w->num_sge = (uint8_t)wr->num_sge;
    w->state = WF_SWQE_POSTED;
    w->len = len;
    w->imm = wr->imm_data;
    w->path = NULL;
    w->srqn = 0;
    copy_data(w, wr);
    fill_target(qp, w, wr);
    enum wf_wr_kind kind = wf_wr_info(w->opcode)->kind;
    bool atomic =
        w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (atomic)
        w->len = 8;
    if (kind == WF_WR_LOCAL)
        w->len = 0;
}

static int post_one(struct wf_qp *qp, const struct ibv_send_wr *wr)
{
    int err = check_state(qp);
    if (!err)
        err = check_opcode(qp, wr);
    if (err)
        return err;
    uint64_t len = total_length(wr);
    err = check_length(qp, wr, len);
    if (err)
        return err;
    if (wf_sq_full(&qp->sq) && !(wf_ctx_reap_locked(qp->ctx) && !wf_sq_full(&qp->sq)))
        return wf_refuse(ENOMEM, WF_R_SQ_FULL, "QP 0x%06x: %u requests", qp->qpn, qp->sq.max_wr);
    struct wf_swqe *w = wf_sq_slot(&qp->sq, qp->sq.head);
    fill_swqe(qp, w, wr, (uint32_t)len);
    if (w->opcode == IBV_WR_ATOMIC_WRITE) {
        // The value is taken now: it travels in the request.
        enum wf_reason why;
        struct iovec iov[WF_MAX_IOV];
        uint32_t n = 8;
        int niov;
        uint8_t *to = (uint8_t *)&w->swap;
        if (wf_gather(qp, w, 0, &n, 0, iov, &niov, &why) == IBV_WC_SUCCESS)
            for (int i = 0; i < niov; to += iov[i].iov_len, i++)
                memcpy(to, iov[i].iov_base, iov[i].iov_len);
    }
    qp->sq.head++;
    return 0;
}

int wf_qp_post_send(struct wf_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    struct wf_hca *h = qp->hca;
    int err = wf_verb_fault(h, "post_send");
    wf_enter(h);
    h->env.posting = true;
    for (; wr && !err; wr = wr->next) {
        err = post_one(qp, wr);
        if (err)
            break;
    }
    // A dead queue takes requests and flushes them.
    if (qp->state == IBV_QPS_ERR || qp->state == IBV_QPS_SQE)
        wf_qp_flush_sends(qp);
    else
        wf_qp_run_now(qp);
    wf_exit(h);
    if (err && bad)
        *bad = wr;
    return err;
}

uint32_t wf_qp_send_room(struct wf_qp *qp)
{
    struct wf_hca *h = qp->hca;
    wf_enter(h);
    wf_ctx_reap_locked(qp->ctx);
    uint32_t room = qp->sq.max_wr - (qp->sq.head - qp->sq.tail);
    wf_exit(h);
    return room;
}

static int post_recv_one(struct wf_qp *qp, const struct ibv_recv_wr *wr)
{
    if (qp->srq || !qp->rq.buf)
        return wf_refuse(EINVAL, WF_R_NO_RQ, "post_recv on QP 0x%06x", qp->qpn);
    if (qp->state == IBV_QPS_RESET)
        return wf_refuse(EINVAL, WF_R_QP_STATE, "post_recv on QP 0x%06x in RESET", qp->qpn);
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->rq.max_sge)
        return wf_refuse(EINVAL, WF_R_TOO_MANY_SGE, "QP 0x%06x: %d SGEs, max_recv_sge %u", qp->qpn,
                         wr->num_sge, qp->rq.max_sge);
    if (wf_rq_full(&qp->rq) && !(wf_ctx_reap_locked(qp->ctx) && !wf_rq_full(&qp->rq)))
        return wf_refuse(ENOMEM, WF_R_RQ_FULL, "QP 0x%06x: %u receives", qp->qpn, qp->rq.max_wr);
    wf_rwqe_fill(wf_rq_slot(&qp->rq, qp->rq.head), wr);
    qp->rq.head++;
    return 0;
}

int wf_qp_post_recv(struct wf_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct wf_hca *h = qp->hca;
    int err = wf_verb_fault(h, "post_recv");
    wf_enter(h);
    for (; wr && !err; wr = wr->next) {
        err = post_recv_one(qp, wr);
        if (err)
            break;
    }
    if (qp->state == IBV_QPS_ERR)
        wf_qp_flush(qp);
    wf_exit(h);
    if (err && bad)
        *bad = wr;
    return err;
}
