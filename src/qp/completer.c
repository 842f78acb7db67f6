// SPDX-License-Identifier: BSD-2-Clause
// Requester's other half: takes acknowledgements and responses, retires requests (IBA 9.7.5.1).
#include "qp/qp.h"

#include "mem/segments.h"
#include "qp/kinds.h"
#include "wire/aeth.h"
#include "wire/opcode.h"

#include <errno.h>
#include <string.h>

static struct wf_swqe *oldest(struct wf_qp *qp)
{
    if (qp->sq.una == qp->sq.head)
        return NULL;
    struct wf_swqe *w = wf_sq_slot(&qp->sq, qp->sq.una);
    return w->state == WF_SWQE_STARTED ? w : NULL;
}

// An acknowledgement may reach past where a retransmission stands: continue behind it.
static void skip_acknowledged(struct wf_qp *qp)
{
    struct wf_requester *r = &qp->req;
    if (wf_psn_diff(r->sent_psn, r->una_psn) >= 0)
        return;
    r->sent_psn = r->una_psn;
    qp->sq.next = qp->sq.una;
    struct wf_swqe *w = oldest(qp);
    r->off = w ? ((r->una_psn - w->psn) & WF_PSN_MASK) * qp->mtu : 0;
}

static void go_back_once(struct wf_qp *qp)
{
    if (qp->req.went_back || qp->req.rnr_until)
        return;
    wf_req_window_shrink(qp, false);
    wf_req_go_back(qp);
    qp->env->ops->ready(qp);
}

// Room or read depth came free: is there anything to use it for?
static void go_on(struct wf_qp *qp)
{
    if (qp->sq.next != qp->sq.head || qp->state == IBV_QPS_SQD)
        qp->env->ops->ready(qp);
}

static void finish(struct wf_qp *qp, struct wf_swqe *w)
{
    qp->req.una_psn = (w->psn + w->npsn) & WF_PSN_MASK;
    w->state = WF_SWQE_DONE;
    if (qp->sq.next == qp->sq.una)
        qp->sq.next++;
    wf_retire_done(qp);
}

// Everything before `upto` has arrived. A READ or atomic among it whose response did not come is an
// implied NAK (IBA 9.7.5.1.4): false.
static bool acknowledge(struct wf_qp *qp, uint32_t upto)
{
    struct wf_requester *r = &qp->req;
    uint32_t before = r->una_psn;
    bool complete = true;
    struct wf_swqe *w;
    while ((w = oldest(qp)) && wf_psn_diff(upto, r->una_psn) > 0) {
        if (wf_wr_is_answered(w->opcode)) {
            complete = false;
            qp->env->counters.implied_nak_seq_err++;
            break;
        }
        uint32_t end = (w->psn + w->npsn) & WF_PSN_MASK;
        if (wf_psn_diff(upto, end) < 0) {
            r->una_psn = upto;
            break;
        }
        finish(qp, w);
    }
    uint32_t acked = (r->una_psn - before) & WF_PSN_MASK;
    if (acked) {
        skip_acknowledged(qp);
        wf_req_window_grow(qp, acked);
        wf_timer_progress(qp);
        go_on(qp);
    }
    return complete;
}

static void sequence_nak(struct wf_qp *qp)
{
    qp->env->counters.packet_seq_err++;
    if (qp->req.rnr_until || qp->req.went_back)
        return;
    if (!qp->req.retries) {
        wf_retire_failed(qp, IBV_WC_RETRY_EXC_ERR, WF_R_SEQUENCE_RETRIES);
        return;
    }
    qp->req.retries--;
    qp->req.heard = WF_R_SEQUENCE_RETRIES;
    go_back_once(qp);
}

static void rnr_nak(struct wf_qp *qp, uint8_t syndrome)
{
    if (qp->req.rnr_until)
        return;
    qp->stat_rnr++;
    qp->env->counters.rnr_nak_retry_err++;
    if (!qp->req.rnr_retries) {
        wf_retire_failed(qp, IBV_WC_RNR_RETRY_EXC_ERR, WF_R_RNR_RETRIES);
        return;
    }
    // IBA 9.7.5.2.8: seven means for ever.
    if (qp->attr.rnr_retry != 7)
        qp->req.rnr_retries--;
    wf_req_go_back(qp);
    wf_timer_rnr(qp, wf_rnr_timer_ns(syndrome & 0x1f));
}

static enum ibv_wc_status nak_status(uint8_t syndrome)
{
    switch (syndrome) {
    case WF_SYN_NAK_INV_REQ:
        return IBV_WC_REM_INV_REQ_ERR;
    case WF_SYN_NAK_REM_ACCESS:
        return IBV_WC_REM_ACCESS_ERR;
    case WF_SYN_NAK_REM_OP:
        return IBV_WC_REM_OP_ERR;
    case WF_SYN_NAK_INV_RD:
        return IBV_WC_REM_INV_RD_REQ_ERR;
    default:
        return IBV_WC_BAD_RESP_ERR;
    }
}

static void negative(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    if (!acknowledge(qp, pkt->psn)) {
        go_back_once(qp);
        return;
    }
    if (!oldest(qp) || qp->req.una_psn != pkt->psn)
        return;
    if (pkt->syndrome == WF_SYN_NAK_PSN_SEQ)
        sequence_nak(qp);
    else if (wf_aeth_type(pkt->syndrome) == WF_AETH_RNR_NAK)
        rnr_nak(qp, pkt->syndrome);
    else if (pkt->syndrome == WF_SYN_NAK_REM_OP && wf_payload_gone(qp))
        wf_retire_failed(qp, IBV_WC_LOC_PROT_ERR, WF_R_LOCAL_FAULT); // it could not fetch it
    else
        wf_retire_failed(qp, nak_status(pkt->syndrome), WF_R_REMOTE_NAK);
}

static bool ends_piece(const struct wf_qp *qp, const struct wf_swqe *w, uint32_t end)
{
    return end == w->len || (qp->req.read_chunk && end % qp->req.read_chunk == 0);
}

// 0, or as wf_place(), with a status.
static int place_read(struct wf_qp *qp, struct wf_swqe *w, uint32_t off, const struct wf_pkt *pkt,
                      enum ibv_wc_status *status, enum wf_reason *why)
{
    struct iovec iov[WF_MAX_IOV];
    int niov;
    for (uint32_t done = 0, n; done < pkt->len; done += n) {
        n = pkt->len - done;
        *status = wf_gather(qp, w, off + done, &n, IBV_ACCESS_LOCAL_WRITE, iov, &niov, why);
        if (*status != IBV_WC_SUCCESS)
            return -EINVAL;
        *status = IBV_WC_LOC_PROT_ERR;
        int err = n ? wf_place(qp, pkt, done, iov, niov) : -EFAULT;
        if (err == -EFAULT && pkt->remote && n && wf_memory_there(iov, niov, true))
            *status = IBV_WC_REM_OP_ERR;
        if (err)
            return err;
    }
    return 0;
}

static void read_data(struct wf_qp *qp, struct wf_swqe *w, const struct wf_pkt *pkt)
{
    uint32_t off = ((pkt->psn - w->psn) & WF_PSN_MASK) * qp->mtu;
    uint32_t npsn = wf_qp_npsn(qp, pkt->len);
    uint32_t left = w->len - off;
    uint32_t want = left < npsn * qp->mtu ? left : npsn * qp->mtu;
    if (off > w->len || pkt->npsn != npsn || pkt->len != want) {
        wf_retire_failed(qp, IBV_WC_BAD_RESP_ERR, WF_R_OPCODE_ORDER);
        return;
    }
    enum wf_reason why = WF_R_LOCAL_FAULT;
    enum ibv_wc_status status;
    int err = place_read(qp, w, off, pkt, &status, &why);
    if (err == -ESTALE)
        return;
    if (err == -EFAULT && status == IBV_WC_REM_OP_ERR) {
        go_back_once(qp); // asked again, the responder finds that its memory is gone and says so
        return;
    }
    if (err) {
        wf_retire_failed(qp, status, why);
        return;
    }
    qp->req.una_psn = (pkt->psn + npsn) & WF_PSN_MASK;
    if (ends_piece(qp, w, off + pkt->len) && qp->req.reads)
        qp->req.reads--;
    if (off + pkt->len == w->len)
        finish(qp, w);
    skip_acknowledged(qp);
    wf_req_window_grow(qp, npsn);
    wf_timer_progress(qp);
    go_on(qp);
}

static void single_done(struct wf_qp *qp, struct wf_swqe *w)
{
    if (qp->req.reads)
        qp->req.reads--;
    finish(qp, w);
    skip_acknowledged(qp);
    wf_timer_progress(qp);
    go_on(qp);
}

static void atomic_data(struct wf_qp *qp, struct wf_swqe *w, const struct wf_pkt *pkt)
{
    struct iovec iov[WF_MAX_IOV];
    uint32_t n = 8;
    int niov = 0;
    enum wf_reason why = WF_R_NONE;
    enum ibv_wc_status status = wf_gather(qp, w, 0, &n, IBV_ACCESS_LOCAL_WRITE, iov, &niov, &why);
    if (status != IBV_WC_SUCCESS) {
        wf_retire_failed(qp, status, why);
        return;
    }
    const uint8_t *value = (const uint8_t *)&pkt->atomic_orig;
    for (int i = 0; i < niov; i++) {
        if (iov[i].iov_base)
            memcpy(iov[i].iov_base, value, iov[i].iov_len);
        value += iov[i].iov_len;
    }
    single_done(qp, w);
}

// A READ response or atomic acknowledgement: belongs to the oldest request once all before it is
// acknowledged by it.
static void answer(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    if (!acknowledge(qp, pkt->psn)) {
        go_back_once(qp);
        return;
    }
    struct wf_swqe *w = oldest(qp);
    if (!w || qp->req.una_psn != pkt->psn || !wf_wr_is_answered(w->opcode))
        return;
    bool atomic_ack = WF_OPCODE_OP(pkt->opcode) == WF_OP_ATOMIC_ACK;
    bool atomic =
        w->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
    if (atomic != atomic_ack)
        wf_retire_failed(qp, IBV_WC_BAD_RESP_ERR, WF_R_OPCODE_ORDER);
    else if (atomic)
        atomic_data(qp, w, pkt);
    else if (w->opcode == IBV_WR_RDMA_READ)
        read_data(qp, w, pkt);
    else
        single_done(qp, w);
}

void wf_qp_response(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_SQD)
        return;
    wf_migrate_seen(qp, pkt);
    // Ghosts (IBA 9.7.5.1.2): older than anything outstanding, or never sent.
    if (wf_psn_diff(pkt->psn, qp->req.una_psn) < 0 || wf_psn_diff(pkt->psn, qp->req.psn) >= 0)
        return;
    if (WF_OPCODE_OP(pkt->opcode) != WF_OP_ACK) {
        answer(qp, pkt);
        return;
    }
    if (wf_aeth_type(pkt->syndrome) != WF_AETH_ACK) {
        negative(qp, pkt);
        return;
    }
    if (!acknowledge(qp, (pkt->psn + 1) & WF_PSN_MASK))
        go_back_once(qp);
}
