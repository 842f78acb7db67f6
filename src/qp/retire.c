// SPDX-License-Identifier: BSD-2-Clause
// Completions: requests that are done or failed, receives that were filled, queues that are
// flushed.
#include "qp/qp.h"

#include "qp/kinds.h"

#include <inttypes.h>
#include <stdio.h>

static uint32_t send_adr(const struct wf_qp *qp, uint32_t counter)
{
    return (uint32_t)(wf_sq_base(&qp->rq, &qp->sq) +
                      ((uint64_t)(counter & qp->sq.mask) << qp->sq.shift));
}

static void add(struct wf_qp *qp, struct wf_cq *cq, struct wf_completion *c)
{
    c->qpn = qp->qpn;
    c->timestamp = qp->env->now;
    if (!wf_cqring_add(cq, c))
        qp->env->ops->cq_overrun(qp, cq);
}

const char *wf_wc_status_name(enum ibv_wc_status status)
{
    static const char *const names[] = {
        [IBV_WC_SUCCESS] = "success",
        [IBV_WC_LOC_LEN_ERR] = "local length error",
        [IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
        [IBV_WC_LOC_PROT_ERR] = "local protection error",
        [IBV_WC_WR_FLUSH_ERR] = "flushed",
        [IBV_WC_MW_BIND_ERR] = "memory window bind error",
        [IBV_WC_BAD_RESP_ERR] = "bad response",
        [IBV_WC_LOC_ACCESS_ERR] = "local access error",
        [IBV_WC_REM_INV_REQ_ERR] = "remote invalid request",
        [IBV_WC_REM_ACCESS_ERR] = "remote access error",
        [IBV_WC_REM_OP_ERR] = "remote operation error",
        [IBV_WC_RETRY_EXC_ERR] = "retry exceeded",
        [IBV_WC_RNR_RETRY_EXC_ERR] = "RNR retry exceeded",
    };
    if (status < sizeof(names) / sizeof(names[0]) && names[status])
        return names[status];
    return "general error";
}

static void count_failed_send(struct wf_qp *qp, enum ibv_wc_status status)
{
    struct wf_counters *n = &qp->env->counters;
    if (status == IBV_WC_WR_FLUSH_ERR)
        n->req_cqe_flush_error++;
    else
        n->req_cqe_error++;
    n->req_remote_access_errors += status == IBV_WC_REM_ACCESS_ERR;
    n->req_remote_invalid_request += status == IBV_WC_REM_INV_REQ_ERR;
}

static void complete_send(struct wf_qp *qp, enum ibv_wc_status status, enum wf_reason why)
{
    uint32_t counter = qp->sq.una++;
    struct wf_swqe *w = wf_sq_slot(&qp->sq, counter);
    const struct wf_wr_info *info = wf_wr_info(w->opcode);
    if (w->path) {
        qp->env->ops->path_put(qp, w->path);
        w->path = NULL;
    }
    if (status == IBV_WC_SUCCESS && !qp->sig_all && !(w->flags & IBV_SEND_SIGNALED))
        return;
    if (status != IBV_WC_SUCCESS)
        count_failed_send(qp, status);
    struct wf_completion c = {.wqe_adr = send_adr(qp, counter),
                              .send = true,
                              .arbel_opcode = info->arbel,
                              .status = status,
                              .opcode = info->wc_opcode,
                              .reason = why,
                              .byte_len = w->len};
    add(qp, qp->scq, &c);
}

void wf_retire_done(struct wf_qp *qp)
{
    while (qp->sq.una != qp->sq.next) {
        if (wf_sq_slot(&qp->sq, qp->sq.una)->state != WF_SWQE_DONE)
            return;
        complete_send(qp, IBV_WC_SUCCESS, WF_R_NONE);
    }
    if (qp->req.failing)
        wf_retire_failed(qp, qp->req.fail_status, qp->req.fail_reason);
}

const char *wf_detail_take(struct wf_qp *qp, char *buf, size_t len)
{
    struct wf_qp_env *env = qp->env;
    buf[0] = 0;
    if (env->detail_qpn == qp->qpn && env->detail[0])
        snprintf(buf, len, "; %s", env->detail);
    env->detail[0] = 0;
    return buf;
}

void wf_qp_flush_sends(struct wf_qp *qp)
{
    while (qp->sq.una != qp->sq.head)
        complete_send(qp, IBV_WC_WR_FLUSH_ERR, WF_R_FLUSHED);
    qp->sq.next = qp->sq.una;
    qp->req.off = 0;
    qp->req.reads = 0;
    qp->req.failing = false;
    qp->req.sent_psn = qp->req.una_psn = qp->req.psn;
}

// Once for all that a failure takes with it. A program that itself puts a QP into ERR expects its
// requests to be flushed: that is how connections end.
static void explain_flush(struct wf_qp *qp, uint32_t sends, uint32_t recvs)
{
    if (qp->root && (sends || recvs))
        wf_explain(WF_R_FLUSHED, "QP 0x%06x: %u sends and %u receives, a consequence of [%u %s]",
                   qp->qpn, sends, recvs, qp->root, wf_reason_name(qp->root));
}

void wf_retire_failed(struct wf_qp *qp, enum ibv_wc_status status, enum wf_reason why)
{
    if (qp->sq.una == qp->sq.head)
        return;
    const struct wf_swqe *w = wf_sq_slot(&qp->sq, qp->sq.una);
    char more[400];
    wf_detail_take(qp, more, sizeof(more));
    if (!more[0] && qp->env->ops->diagnose)
        why = qp->env->ops->diagnose(qp, why, more, sizeof(more));
    wf_explain(why, "QP 0x%06x to QP 0x%06x: wr_id 0x%" PRIx64 " ends with status %d, %s%s",
               qp->qpn, qp->type == IBV_QPT_UD ? w->dqpn : qp->attr.dest_qp_num, w->wr_id,
               (int)status, wf_wc_status_name(status), more);
    qp->root = why;
    qp->req.failing = false;
    complete_send(qp, status, why);
    if (wf_qp_reliable(qp)) {
        wf_qp_to_error(qp);
        return;
    }
    // IBA 10.3.1.6: a send error of an unreliable QP stops its send queue only.
    wf_qp_set_state(qp, IBV_QPS_SQE);
    explain_flush(qp, qp->sq.head - qp->sq.una, 0);
    wf_qp_flush_sends(qp);
}

void wf_complete_recv(struct wf_qp *qp, struct wf_completion *c)
{
    struct wf_responder *r = &qp->resp;
    struct wf_cq *cq = r->srq && r->srq->cq ? r->srq->cq : qp->rcq;
    if (r->srq) {
        c->wqe_adr = r->rq_counter << r->srq->q.shift;
        c->srqn = r->srq->srqn;
    } else {
        c->wqe_adr = (r->rq_counter & qp->rq.mask) << qp->rq.shift;
    }
    r->has_wqe = false;
    r->wqe = NULL;
    add(qp, cq, c);
}

void wf_recv_failed(struct wf_qp *qp, enum ibv_wc_status status, enum wf_reason why)
{
    if (!qp->resp.has_wqe)
        return;
    struct wf_counters *n = &qp->env->counters;
    if (status == IBV_WC_WR_FLUSH_ERR)
        n->resp_cqe_flush_error++;
    else
        n->resp_cqe_error++;
    n->resp_local_length_error += status == IBV_WC_LOC_LEN_ERR;
    struct wf_completion c = {.status = status, .opcode = IBV_WC_RECV, .reason = why};
    wf_complete_recv(qp, &c);
}

bool wf_recv_take(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    struct wf_responder *r = &qp->resp;
    struct wf_srq *srq = qp->srq;
    if (qp->type == IBV_QPT_XRC_RECV)
        srq = qp->env->ops->xrc_srq(qp, pkt->xrc_srqn);
    if (srq) {
        if (!wf_srqueue_posted(&srq->q))
            return false;
        r->rq_counter = wf_srqueue_take(&srq->q);
        r->wqe = wf_srq_slot(&srq->q, r->rq_counter);
        // IBA 10.2.9.1: the limit event fires once, then is disarmed.
        if (srq->limit && wf_srqueue_posted(&srq->q) < srq->limit) {
            srq->limit = 0;
            qp->env->ops->srq_event(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
        }
    } else {
        if (qp->rq.next == qp->rq.head)
            return false;
        r->rq_counter = qp->rq.next++;
        r->wqe = wf_rq_slot(&qp->rq, r->rq_counter);
    }
    r->srq = srq;
    r->has_wqe = true;
    r->off = 0;
    return true;
}

static void flush_receives(struct wf_qp *qp)
{
    wf_recv_failed(qp, IBV_WC_WR_FLUSH_ERR, WF_R_FLUSHED);
    struct wf_responder *r = &qp->resp;
    r->open = WF_IN_NONE;
    if (qp->srq || !qp->rq.buf)
        return;
    while (qp->rq.next != qp->rq.head) {
        r->srq = NULL;
        r->rq_counter = qp->rq.next++;
        r->has_wqe = true;
        wf_recv_failed(qp, IBV_WC_WR_FLUSH_ERR, WF_R_FLUSHED);
    }
}

void wf_qp_flush(struct wf_qp *qp)
{
    wf_qp_flush_sends(qp);
    flush_receives(qp);
    wf_timer_stop(qp);
}

void wf_qp_to_error(struct wf_qp *qp)
{
    if (qp->state == IBV_QPS_ERR)
        return;
    wf_qp_set_state(qp, IBV_QPS_ERR);
    uint32_t recvs = qp->srq || !qp->rq.buf ? 0 : qp->rq.head - qp->rq.next;
    explain_flush(qp, qp->sq.head - qp->sq.una, recvs + qp->resp.has_wqe);
    wf_qp_flush(qp);
    if (qp->srq)
        qp->env->ops->event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}
