// SPDX-License-Identifier: BSD-2-Clause
// Requester of connected QPs: from send requests to request packets (IBA 9.7.2 to 9.7.4).
#include "qp/qp.h"

#include "mem/segments.h"
#include "qp/kinds.h"
#include "wire/opcode.h"

#include <errno.h>

// Copies in the peer's memory are done in pieces, so that a long one does not hold the engine;
// posting does a short one at most, the rest is done by polls.
#define ONE_SIDED_PIECE         (256u << 10)
#define ONE_SIDED_PIECE_IN_POST (64u << 10)
// IBA 9.7.5: fewer than 2^23 PSNs may be outstanding.
#define MAX_OUTSTANDING ((1u << 23) - 1)

static uint32_t in_flight(const struct wf_qp *qp)
{
    return (qp->req.sent_psn - qp->req.una_psn) & WF_PSN_MASK;
}

static bool window_allows(const struct wf_qp *qp, uint32_t npsn)
{
    uint32_t flying = in_flight(qp);
    if (!flying)
        return true;
    if (flying + npsn > MAX_OUTSTANDING)
        return false;
    return !qp->req.cwnd || flying + npsn <= qp->req.cwnd;
}

void wf_req_window_grow(struct wf_qp *qp, uint32_t acked)
{
    struct wf_requester *r = &qp->req;
    if (!r->cwnd || r->cwnd >= r->cwnd_max)
        return;
    if (r->cwnd < r->ssthresh) {
        r->cwnd += acked;
    } else {
        r->cwnd_credit += acked;
        if (r->cwnd_credit >= r->cwnd) {
            r->cwnd_credit = 0;
            r->cwnd++;
        }
    }
    if (r->cwnd > r->cwnd_max)
        r->cwnd = r->cwnd_max;
}

void wf_req_window_shrink(struct wf_qp *qp, bool timeout)
{
    struct wf_requester *r = &qp->req;
    if (!r->cwnd)
        return;
    uint32_t half = r->cwnd / 2;
    r->ssthresh = half > 4 ? half : 4;
    r->cwnd = timeout ? 4 : r->ssthresh;
    r->cwnd_credit = 0;
}

static void next_request(struct wf_qp *qp)
{
    qp->sq.next++;
    qp->req.off = 0;
    qp->req.one_sided_refused = false;
}

static void start_request(struct wf_qp *qp, struct wf_swqe *w)
{
    w->psn = qp->req.psn;
    w->npsn = wf_wr_one_psn(w->opcode) ? 1 : wf_qp_npsn(qp, w->len);
    w->state = WF_SWQE_STARTED;
    qp->req.psn = (qp->req.psn + w->npsn) & WF_PSN_MASK;
}

// A request that fails here becomes a completion only when all before it have completed.
static void fail_here(struct wf_qp *qp, enum ibv_wc_status status, enum wf_reason why)
{
    if (qp->sq.una == qp->sq.next) {
        wf_retire_failed(qp, status, why);
        return;
    }
    qp->req.failing = true;
    qp->req.fail_status = status;
    qp->req.fail_reason = why;
}

void wf_req_go_back(struct wf_qp *qp)
{
    struct wf_requester *r = &qp->req;
    if (qp->sq.una == qp->sq.head)
        return;
    const struct wf_swqe *w = wf_sq_slot(&qp->sq, qp->sq.una);
    if (w->state != WF_SWQE_STARTED)
        return;
    qp->sq.next = qp->sq.una;
    r->sent_psn = r->una_psn;
    r->off = ((r->una_psn - w->psn) & WF_PSN_MASK) * qp->mtu;
    r->reads = 0;
    r->went_back = true;
    r->failing = false;
    qp->stat_retransmits++;
    qp->env->counters.roce_adp_retrans++;
}

static void fill_extension(const struct wf_qp *qp, const struct wf_swqe *w, bool first, bool last,
                           struct wf_pkt *pkt)
{
    if (first) {
        pkt->va = w->raddr;
        pkt->rkey = w->rkey;
        pkt->dma_len = w->len;
    }
    if (last) {
        pkt->imm = w->imm;
        pkt->ieth = w->imm;
        if (w->flags & IBV_SEND_SOLICITED)
            pkt->flags |= WF_PKT_SOLICITED;
    }
    pkt->xrc_srqn = w->srqn;
}

static bool ask_for_ack(struct wf_qp *qp, bool last)
{
    if (!wf_qp_reliable(qp))
        return false;
    uint32_t every = qp->req.cwnd / 4 + 1;
    if (!last && (!qp->req.cwnd || ++qp->req.unasked < every))
        return false;
    qp->req.unasked = 0;
    return true;
}

// Returns false when the link has no room, or the payload is no longer there.
static bool transmit(struct wf_qp *qp, struct wf_pkt *pkt)
{
    pkt->pkey = qp->pkey;
    pkt->dqpn = qp->attr.dest_qp_num;
    pkt->sqpn = qp->qpn;
    pkt->psn = qp->req.sent_psn;
    if (qp->attr.path_mig_state == IBV_MIG_MIGRATED)
        pkt->flags |= WF_PKT_MIG_REQ;
    int err = qp->env->ops->send(qp, qp->path, pkt);
    if (err == -EAGAIN) {
        qp->blocked = true;
        return false;
    }
    if (err == -EFAULT) {
        fail_here(qp, IBV_WC_LOC_PROT_ERR, WF_R_LOCAL_FAULT);
        return false;
    }
    qp->req.sent_psn = (qp->req.sent_psn + pkt->npsn) & WF_PSN_MASK;
    if (wf_qp_reliable(qp))
        wf_timer_start(qp);
    return true;
}

// A list that is too long for one packet makes the packet shorter.
static enum ibv_wc_status gather_packet(struct wf_qp *qp, struct wf_swqe *w, uint32_t off,
                                        uint32_t *n, struct wf_pkt *pkt, struct iovec *iov,
                                        enum wf_reason *why)
{
    uint32_t want = *n;
    enum ibv_wc_status status = wf_gather(qp, w, off, n, 0, iov, &pkt->niov, why);
    if (status != IBV_WC_SUCCESS)
        return status;
    wf_gather_trim(qp, iov, &pkt->niov, n);
    if (*n < want)
        status = wf_gather(qp, w, off, n, 0, iov, &pkt->niov, why);
    pkt->len = *n;
    pkt->npsn = wf_qp_npsn(qp, *n);
    return status;
}

static bool send_data(struct wf_qp *qp, struct wf_swqe *w)
{
    uint32_t off = qp->req.off, left = w->len - off;
    if (!off && w->len > qp->seg)
        qp->seg = qp->env->ops->segment(qp);
    uint32_t n = left < qp->seg ? left : qp->seg;
    uint32_t npsn = wf_qp_npsn(qp, n);
    if (wf_qp_reliable(qp) && !window_allows(qp, npsn))
        return false;
    struct iovec iov[WF_MAX_IOV];
    struct wf_pkt pkt = {.iov = iov};
    enum wf_reason why = WF_R_NONE;
    enum ibv_wc_status status = gather_packet(qp, w, off, &n, &pkt, iov, &why);
    if (status != IBV_WC_SUCCESS) {
        fail_here(qp, status, why);
        return false;
    }
    bool first = off == 0, last = n == left;
    pkt.opcode = wf_wr_packet_opcode(qp->type, w->opcode, first, last);
    fill_extension(qp, w, first, last, &pkt);
    uint32_t unasked = qp->req.unasked;
    if (ask_for_ack(qp, last))
        pkt.flags |= WF_PKT_ACK_REQ;
    if (!transmit(qp, &pkt)) {
        qp->req.unasked = unasked;
        return false;
    }
    qp->req.off += n;
    if (!last)
        return true;
    next_request(qp);
    if (!wf_qp_reliable(qp)) {
        w->state = WF_SWQE_DONE;
        qp->req.una_psn = qp->req.sent_psn;
        wf_retire_done(qp);
    }
    return true;
}

// A long READ is asked for in pieces that fit the window: responses have no flow control of their
// own, and our socket buffer is small.
static bool send_read(struct wf_qp *qp, struct wf_swqe *w)
{
    struct wf_requester *r = &qp->req;
    uint32_t left = w->len - r->off;
    uint32_t piece = r->read_chunk ? r->read_chunk - r->off % r->read_chunk : left;
    uint32_t n = left < piece ? left : piece;
    struct wf_pkt pkt = {.opcode = wf_wr_packet_opcode(qp->type, w->opcode, true, true),
                         .flags = WF_PKT_ACK_REQ,
                         .npsn = wf_qp_npsn(qp, n),
                         .va = w->raddr + r->off,
                         .rkey = w->rkey,
                         .dma_len = n,
                         .xrc_srqn = w->srqn};
    if (!window_allows(qp, pkt.npsn) || !transmit(qp, &pkt))
        return false;
    r->reads++;
    r->off += n;
    if (r->off == w->len)
        next_request(qp);
    return true;
}

// Atomics, atomic writes and flushes: one packet, one response.
static bool send_single(struct wf_qp *qp, struct wf_swqe *w)
{
    struct iovec iov = {.iov_base = &w->swap, .iov_len = 8};
    struct wf_pkt pkt = {.opcode = wf_wr_packet_opcode(qp->type, w->opcode, true, true),
                         .flags = WF_PKT_ACK_REQ,
                         .npsn = 1,
                         .va = w->raddr,
                         .rkey = w->rkey,
                         .dma_len = w->len,
                         .feth = w->imm,
                         .xrc_srqn = w->srqn};
    if (w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
        pkt.swap_add = w->swap;
        pkt.compare = w->compare;
    } else if (w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        pkt.swap_add = w->compare;
    } else if (w->opcode == IBV_WR_ATOMIC_WRITE) {
        pkt.iov = &iov;
        pkt.niov = 1;
        pkt.len = 8;
    }
    if (!window_allows(qp, 1) || !transmit(qp, &pkt))
        return false;
    qp->req.reads++;
    next_request(qp);
    return true;
}

enum one_sided { NOT_ONE_SIDED, ONE_SIDED_DONE, ONE_SIDED_WAITS };

static enum one_sided refuse_one_sided(struct wf_qp *qp)
{
    qp->req.one_sided_refused = true;
    qp->req.off = 0;
    return NOT_ONE_SIDED;
}

// Execute a WRITE or READ in the peer's memory. Order: only when nothing is outstanding before it.
// A READ waits for that; a WRITE goes as a packet instead.
static enum one_sided try_one_sided(struct wf_qp *qp, struct wf_swqe *w)
{
    bool read = w->opcode == IBV_WR_RDMA_READ;
    if (!qp->one_sided || w->state != WF_SWQE_POSTED || qp->req.one_sided_refused || !w->len)
        return NOT_ONE_SIDED;
    if (!read && w->opcode != IBV_WR_RDMA_WRITE)
        return NOT_ONE_SIDED;
    if (qp->sq.una != qp->sq.next)
        return read ? ONE_SIDED_WAITS : refuse_one_sided(qp);
    uint32_t left = w->len - qp->req.off;
    uint32_t piece = qp->env->posting ? ONE_SIDED_PIECE_IN_POST : ONE_SIDED_PIECE;
    uint32_t n = left < piece ? left : piece;
    struct iovec iov[WF_MAX_IOV];
    int niov;
    enum wf_reason why = WF_R_NONE;
    unsigned need = read ? IBV_ACCESS_LOCAL_WRITE : 0;
    enum ibv_wc_status status = wf_gather(qp, w, qp->req.off, &n, need, iov, &niov, &why);
    if (status != IBV_WC_SUCCESS) {
        fail_here(qp, status, why);
        return ONE_SIDED_WAITS;
    }
    w->psn = qp->req.psn;
    w->npsn = wf_qp_npsn(qp, w->len);
    if (qp->env->ops->onesided(qp, w, iov, niov, qp->req.off, n))
        return refuse_one_sided(qp);
    qp->req.off += n;
    if (qp->req.off < w->len) {
        qp->env->ops->ready(qp);
        return ONE_SIDED_WAITS;
    }
    start_request(qp, w);
    w->state = WF_SWQE_DONE;
    qp->req.una_psn = qp->req.sent_psn = qp->req.psn;
    next_request(qp);
    wf_retire_done(qp);
    return ONE_SIDED_DONE;
}

static bool run_local(struct wf_qp *qp, struct wf_swqe *w)
{
    if (qp->sq.una != qp->sq.next)
        return false;
    enum wf_reason why = WF_R_NONE;
    enum ibv_wc_status status = wf_local_execute(qp, w, &why);
    if (status != IBV_WC_SUCCESS) {
        fail_here(qp, status, why);
        return false;
    }
    w->state = WF_SWQE_DONE;
    next_request(qp);
    wf_retire_done(qp);
    return true;
}

// One step with the request at sq.next; false when nothing more can be done now.
static bool step(struct wf_qp *qp)
{
    struct wf_swqe *w = wf_sq_slot(&qp->sq, qp->sq.next);
    if (w->state == WF_SWQE_POSTED) {
        if (qp->state == IBV_QPS_SQD)
            return false;
        if ((w->flags & IBV_SEND_FENCE) && qp->req.reads)
            return false;
        if (wf_wr_is_local(w->opcode))
            return run_local(qp, w);
    }
    bool answered = wf_wr_is_answered(w->opcode);
    if (answered && !qp->attr.max_rd_atomic) {
        fail_here(qp, IBV_WC_LOC_QP_OP_ERR, WF_R_NO_READ_DEPTH);
        return false;
    }
    if (answered && qp->req.reads >= qp->attr.max_rd_atomic && !qp->one_sided)
        return false;
    switch (try_one_sided(qp, w)) {
    case ONE_SIDED_DONE:
        return true;
    case ONE_SIDED_WAITS:
        return false;
    case NOT_ONE_SIDED:
        break;
    }
    if (answered && qp->req.reads >= qp->attr.max_rd_atomic)
        return false;
    if (w->state == WF_SWQE_POSTED)
        start_request(qp, w);
    if (w->opcode == IBV_WR_RDMA_READ)
        return send_read(qp, w);
    if (answered)
        return send_single(qp, w);
    return send_data(qp, w);
}

static void check_drained(struct wf_qp *qp)
{
    if (qp->state != IBV_QPS_SQD || qp->sqd_event_sent || qp->sq.una != qp->sq.next)
        return;
    qp->sqd_event_sent = true;
    qp->attr.sq_draining = 0;
    if (qp->attr.en_sqd_async_notify)
        qp->env->ops->event(qp, IBV_EVENT_SQ_DRAINED);
}

void wf_req_run(struct wf_qp *qp)
{
    if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
        return;
    if (qp->peer_dead) {
        wf_timer_death(qp);
        return;
    }
    if (qp->req.rnr_until)
        return;
    while (qp->sq.next != qp->sq.head && !qp->req.failing && step(qp))
        ;
    check_drained(qp);
}

void wf_qp_peer_died(struct wf_qp *qp)
{
    qp->peer_dead = true;
    qp->env->ops->ready(qp);
}

void wf_qp_run(struct wf_qp *qp)
{
    qp->blocked = false;
    // Own requests first: an answer of the program is not kept waiting by acknowledgements.
    if (qp->type == IBV_QPT_UD)
        wf_ud_run(qp);
    else
        wf_req_run(qp);
    wf_resp_run(qp);
}
