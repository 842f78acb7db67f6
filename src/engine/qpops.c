// SPDX-License-Identifier: BSD-2-Clause
// What the protocol core asks of the engine.
#include "engine/engine.h"
#include "engine/tap.h"

#include "link/onesided.h"
#include "link/remote.h"

#include <errno.h>
#include <string.h>

// The choke point of sending: faults and captures sit here when they are wanted.
static inline int transmit(struct wf_hca *h, struct wf_qp *qp, struct wf_link *link,
                           const struct wf_path *path, struct wf_pkt *pkt)
{
    h->tx_packets++;
    h->tx_bytes += pkt->len;
    if (__builtin_expect(h->tap != NULL, 0))
        return wf_tap_send(qp, link, path, pkt);
    return link->ops->send(link, path, pkt);
}

static int op_send(struct wf_qp *qp, const struct wf_path *path, struct wf_pkt *pkt)
{
    struct wf_hca *h = wf_hca_of(qp);
    const struct wf_path_ref *ref = (const struct wf_path_ref *)path;
    pkt->sgid = &path->sgid;
    pkt->dgid = &path->dgid;
    pkt->tclass = path->tclass;
    pkt->hop_limit = path->hop_limit;
    pkt->flow_label = path->flow_label;
    if (ref->fixed) {
        if (!path->link)
            return -EHOSTUNREACH;
        return transmit(h, qp, path->link, path, pkt);
    }
    if (pkt->dqpn == WF_QPN_MULTICAST)
        return wf_mcast_send(qp, path, pkt);
    struct wf_path to = *path;
    to.link = wf_route(h, path, pkt->dqpn, &to.peer);
    if (!to.link)
        return -EHOSTUNREACH;
    return transmit(h, qp, to.link, &to, pkt);
}

static int op_fetch(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t off,
                    const struct iovec *dst, int niov)
{
    // A null region takes data and drops it: there is nothing to fetch for it.
    for (int i = 0; i < niov; i++)
        if (!dst[i].iov_base)
            return 0;
    return wf_fetch_remote(wf_hca_of(qp), pkt, off, dst, niov);
}

// As no adapter reads memory for a QP that was destroyed or has failed, the sender's QP is held.
int wf_fetch_remote(struct wf_hca *h, const struct wf_pkt *pkt, uint32_t off,
                    const struct iovec *dst, int niov)
{
    const struct wf_qp *qp = wf_qp_find(h, pkt->dqpn);
    const struct wf_peer *peer = qp && qp->path ? qp->path->peer : NULL;
    if (!peer)
        return -ESTALE;
    _Atomic uint32_t *hazard = wf_sender_hold(peer, pkt->sqpn, pkt->dqpn);
    if (!hazard)
        return -ESTALE;
    int err = wf_remote_copy(pkt->remote, off, dst, niov);
    return wf_sender_release(peer, hazard, pkt->sqpn) ? err : -ESTALE;
}

static int op_onesided(struct wf_qp *qp, const struct wf_swqe *w, const struct iovec *iov, int niov,
                       uint32_t off, uint32_t len)
{
    struct wf_hca *h = wf_hca_of(qp);
    const struct wf_peer *peer = qp->path->peer;
    if (!peer || !peer->alive || (h->tap && wf_tap_no_onesided(h)))
        return -EAGAIN;
    struct wf_onesided op = {.peer = peer,
                             .dqpn = qp->attr.dest_qp_num,
                             .sqpn = qp->qpn,
                             .psn = w->psn,
                             .npsn = w->npsn,
                             .rkey = w->rkey,
                             .va = w->raddr + off,
                             .iov = iov,
                             .niov = niov,
                             .len = len,
                             .final = off + len == w->len};
    int ret = w->opcode == IBV_WR_RDMA_READ ? wf_onesided_read(&op) : wf_onesided_write(&op);
    if (ret)
        return ret;
    h->tx_packets++;
    *(w->opcode == IBV_WR_RDMA_READ ? &h->rx_bytes : &h->tx_bytes) += len;
    if (__builtin_expect(h->tap != NULL, 0))
        wf_tap_onesided(qp, w, iov, niov, off, len);
    return ret;
}

static bool op_unseen(struct wf_qp *qp)
{
    struct wf_hca *h = wf_hca_of(qp);
    if (!qp->path || !qp->path->link || qp->path->link != h->shm)
        return false;
    const struct wf_peer *peer = qp->path->peer;
    return peer && peer->alive && wf_shm_unseen(h->shm, peer);
}

static void op_event(struct wf_qp *qp, enum ibv_event_type type)
{
    wf_ctx_event(qp->ctx, type, qp->user, 0);
}

static void op_srq_event(struct wf_srq *srq, enum ibv_event_type type)
{
    wf_ctx_event(srq->ctx, type, srq->user, 0);
}

// Nobody can say which completion is lost, so every QP that completes there fails (IBA 11.6.3.1).
static void op_cq_overrun(struct wf_qp *qp, struct wf_cq *cq)
{
    struct wf_hca *h = wf_hca_of(qp);
    if (cq->error_reported)
        return;
    cq->error_reported = true;
    wf_explain(WF_R_CQ_OVERRUN, "CQ of %u entries, QP 0x%06x", cq->size, qp->qpn);
    wf_ctx_event(cq->ctx, IBV_EVENT_CQ_ERR, cq->user, 0);
    for (struct wf_ctx *ctx = h->ctxs; ctx; ctx = ctx->next) {
        for (struct wf_qp *q = ctx->qps; q; q = q->next) {
            if (q->scq != cq && q->rcq != cq)
                continue;
            if (q->state == IBV_QPS_RESET || q->state == IBV_QPS_ERR)
                continue;
            wf_qp_to_error(q);
            wf_ctx_event(q->ctx, IBV_EVENT_QP_FATAL, q->user, 0);
        }
    }
}

static void op_deadline(struct wf_qp *qp)
{
    wf_heap_put(wf_hca_of(qp), qp);
}

static void op_revoked(struct wf_qp *qp, uint32_t key)
{
    wf_hazard_wait(wf_hca_of(qp)->region, key);
}

static void op_withdrawn(struct wf_qp *qp)
{
    struct wf_hca *h = wf_hca_of(qp);
    if (qp->path && qp->path->link && qp->path->link == h->shm)
        wf_sender_wait(h->region, qp->qpn);
}

static struct wf_srq *op_xrc_srq(struct wf_qp *qp, uint32_t srqn)
{
    struct wf_hca *h = wf_hca_of(qp);
    struct wf_srq *srq = srqn >> 16 == h->slot ? h->srqs[srqn & 0xffff] : NULL;
    if (!srq || srq->srqn != srqn || !qp->xrcd || srq->xrcd != qp->xrcd->num)
        return NULL;
    return srq;
}

static bool is_from(const struct wf_path *p, const struct wf_pkt *pkt)
{
    return p && pkt->sgid && pkt->dgid && memcmp(pkt->sgid, &p->dgid, sizeof(p->dgid)) == 0 &&
           memcmp(pkt->dgid, &p->sgid, sizeof(p->sgid)) == 0;
}

static bool op_path_differs(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    return !is_from(qp->path, pkt) && !is_from(qp->alt_path, pkt);
}

static void op_path_changed(struct wf_qp *qp)
{
    struct wf_hca *h = wf_hca_of(qp);
    if (h->udp && qp->alt_path && qp->alt_path->link == h->udp)
        h->udp_qps--;
    wf_qp_use_path(qp);
}

static void op_path_put(struct wf_qp *qp, struct wf_path *path)
{
    (void)qp;
    wf_path_put((struct wf_path_ref *)path);
}

const struct wf_qp_ops wf_engine_qp_ops = {
    .send = op_send,
    .fetch = op_fetch,
    .segment = wf_qp_segment,
    .onesided = op_onesided,
    .unseen = op_unseen,
    .event = op_event,
    .srq_event = op_srq_event,
    .cq_overrun = op_cq_overrun,
    .ready = wf_ready,
    .ack_due = wf_ready_lazily,
    .deadline = op_deadline,
    .revoked = op_revoked,
    .withdrawn = op_withdrawn,
    .xrc_srq = op_xrc_srq,
    .path_differs = op_path_differs,
    .path_put = op_path_put,
    .path_changed = op_path_changed,
    .refused = wf_refused,
    .diagnose = wf_diagnose,
};
