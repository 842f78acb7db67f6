// SPDX-License-Identifier: BSD-2-Clause
// Responder of connected QPs (IBA 9.7.4, 9.7.5 for RC, 9.8.2 for UC). Checks stand in the order
// PSN, opcode sequence, access, receive or resource, length, key; then the request is executed.
#include "base/guard.h"
#include "qp/qp.h"

#include "mem/segments.h"
#include "qp/kinds.h"
#include "wire/aeth.h"
#include "wire/opcode.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

// What became of a request. Values from 0x60 are NAK syndromes.
enum outcome { DONE = 0, NOT_READY = 1, DROPPED = 2 };

static uint32_t epsn_of(const struct wf_qp *qp)
{
    return atomic_load_explicit(&qp->dir->epsn, memory_order_acquire);
}

static void advance(struct wf_qp *qp, uint32_t npsn, bool message_done)
{
    uint32_t epsn = (epsn_of(qp) + npsn) & WF_PSN_MASK;
    atomic_store_explicit(&qp->dir->epsn, epsn, memory_order_release);
    if (message_done) {
        uint32_t msn = atomic_load_explicit(&qp->dir->msn, memory_order_relaxed);
        atomic_store_explicit(&qp->dir->msn, (msn + 1) & WF_PSN_MASK, memory_order_relaxed);
    }
}

// Where the requester is in this process too, its own line says all.
static void tell(struct wf_qp *qp, uint32_t psn, enum wf_reason why, const char *what)
{
    qp->root = why;
    if (qp->env->ops->refused)
        qp->env->ops->refused(qp, psn, why, what);
    if (qp->type == IBV_QPT_UC || qp->attr.dest_qp_num >> 16 != qp->qpn >> 16)
        wf_explain(why, "QP 0x%06x, request of QP 0x%06x: %s", qp->qpn, qp->attr.dest_qp_num, what);
}

static int refuse(struct wf_qp *qp, const struct wf_pkt *pkt, uint8_t nak, enum wf_reason why)
{
    char text[200];
    const char *name = wf_opcode_info(pkt->opcode)->name;
    uint32_t flags = wf_opcode_info(pkt->opcode)->flags;
    if (why == WF_R_QP_ACCESS)
        snprintf(text, sizeof(text),
                 "%s, but qp_access_flags of QP 0x%06x lack IBV_ACCESS_REMOTE_%s", name, qp->qpn,
                 flags & WF_F_WRITE || WF_OPCODE_OP(pkt->opcode) == WF_OP_ATOMIC_WRITE ? "WRITE"
                 : flags & WF_F_READ                                                   ? "READ"
                                                                                       : "ATOMIC");
    else if (why == WF_R_ATOMIC_ALIGN)
        snprintf(text, sizeof(text), "%s at address 0x%" PRIx64, name, pkt->va);
    else if (why == WF_R_TOO_MANY_READS)
        snprintf(text, sizeof(text), "%s, but max_dest_rd_atomic of QP 0x%06x is %u", name, qp->qpn,
                 qp->resp.nres);
    else
        snprintf(text, sizeof(text), "%s, PSN %u", name, pkt->psn);
    tell(qp, pkt->psn, why, text);
    return nak;
}

// The receive in use ends in an error, and the requester is told `nak`.
static int fail_receive(struct wf_qp *qp, enum ibv_wc_status status, enum wf_reason why,
                        uint8_t nak)
{
    char text[300], more[220];
    const struct wf_responder *r = &qp->resp;
    wf_detail_take(qp, more, sizeof(more));
    if (why == WF_R_RECV_TOO_SHORT)
        snprintf(more, sizeof(more), "; the message is longer than %u bytes", r->wqe->len);
    snprintf(text, sizeof(text), "receive of wr_id 0x%" PRIx64 " ends with status %d, %s%s",
             r->wqe ? r->wqe->wr_id : 0, (int)status, wf_wc_status_name(status), more);
    tell(qp, epsn_of(qp), why, text);
    wf_recv_failed(qp, status, why);
    return nak;
}

static enum wf_reason remote_reason(enum wf_access a)
{
    switch (a) {
    case WF_ACCESS_PD:
        return WF_R_RKEY_PD;
    case WF_ACCESS_RANGE:
        return WF_R_RKEY_RANGE;
    case WF_ACCESS_RIGHT:
        return WF_R_RKEY_ACCESS;
    default:
        return WF_R_RKEY_UNKNOWN;
    }
}

// An XRC target has no PD: that of the SRQ which the request names counts (IBA A14.2.2).
static uint32_t pd_of(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    if (qp->type != IBV_QPT_XRC_RECV)
        return qp->pd;
    const struct wf_srq *srq = qp->env->ops->xrc_srq(qp, pkt->xrc_srqn);
    return srq ? srq->pd : 0;
}

static int check_rkey(struct wf_qp *qp, uint32_t rkey, uint64_t va, uint64_t len, unsigned need,
                      void **host)
{
    struct wf_access_req req = {
        .key = rkey, .pd = qp->resp.pd, .qpn = qp->qpn, .addr = va, .len = len, .need = need};
    enum wf_access a = wf_access_check(qp->env->keys, &req, host);
    if (a == WF_ACCESS_OK)
        return DONE;
    char text[200];
    wf_access_describe(qp->env->keys, &req, a, text, sizeof(text));
    tell(qp, epsn_of(qp), remote_reason(a), text);
    return WF_SYN_NAK_REM_ACCESS;
}

static int check_sequence(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t flags)
{
    enum wf_inbound kind = flags & WF_F_SEND    ? WF_IN_SEND
                           : flags & WF_F_WRITE ? WF_IN_WRITE
                                                : WF_IN_NONE;
    bool first = flags & WF_F_FIRST || kind == WF_IN_NONE;
    bool good = first ? qp->resp.open == WF_IN_NONE : qp->resp.open == kind;
    return good ? DONE : refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_OPCODE_ORDER);
}

// First and middle packets fill their PSNs exactly (IBA 9.7.4.1.6).
static int check_length(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t flags)
{
    if (!(flags & WF_F_PAYLOAD))
        return DONE;
    bool good = pkt->npsn == wf_qp_npsn(qp, pkt->len);
    if (!(flags & WF_F_LAST) && pkt->len != pkt->npsn * qp->mtu)
        good = false;
    return good ? DONE : refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_BAD_PACKET);
}

static void complete_message(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t flags)
{
    if (!qp->resp.has_wqe)
        return;
    struct wf_completion c = {
        .arbel_opcode = pkt->opcode,
        .opcode = flags & WF_F_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
        .byte_len = qp->resp.off,
        .src_qp = qp->attr.dest_qp_num,
        .solicited = pkt->flags & WF_PKT_SOLICITED,
    };
    if (flags & WF_H_IMM) {
        c.wc_flags = IBV_WC_WITH_IMM;
        c.imm = pkt->imm;
    } else if (flags & WF_H_IETH) {
        c.wc_flags = IBV_WC_WITH_INV;
        c.imm = pkt->ieth;
    }
    wf_complete_recv(qp, &c);
}

static int execute_send(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t flags)
{
    struct wf_responder *r = &qp->resp;
    if (flags & WF_F_FIRST && !wf_recv_take(qp, pkt))
        return NOT_READY;
    if (pkt->len > r->wqe->len - r->off)
        return fail_receive(qp, IBV_WC_LOC_LEN_ERR, WF_R_RECV_TOO_SHORT, WF_SYN_NAK_INV_REQ);
    enum wf_reason why = WF_R_LOCAL_FAULT;
    enum ibv_wc_status status;
    uint32_t pd = r->srq ? r->srq->pd : qp->pd;
    int err = wf_place_recv(qp, pd, r->wqe, r->off, pkt, &status, &why);
    if (err == -ESTALE)
        return DROPPED;
    if (err)
        return fail_receive(qp, status, why, WF_SYN_NAK_REM_OP);
    r->off += pkt->len;
    if (!(flags & WF_F_LAST)) {
        r->open = WF_IN_SEND;
        return DONE;
    }
    r->open = WF_IN_NONE;
    if (flags & WF_H_IETH && wf_local_invalidate(qp, pkt->ieth))
        return fail_receive(qp, IBV_WC_LOC_ACCESS_ERR, WF_R_RKEY_UNKNOWN, WF_SYN_NAK_REM_ACCESS);
    complete_message(qp, pkt, flags);
    return DONE;
}

static int open_write(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    struct wf_responder *r = &qp->resp;
    void *host;
    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_QP_ACCESS);
    r->va = pkt->va;
    r->rkey = pkt->rkey;
    r->left = pkt->dma_len;
    r->off = 0;
    // IBA 9.7.4.1.4: a request of no bytes needs no valid key.
    if (!pkt->dma_len)
        return DONE;
    return check_rkey(qp, pkt->rkey, pkt->va, pkt->dma_len, IBV_ACCESS_REMOTE_WRITE, &host);
}

static int place_write(struct wf_qp *qp, const struct wf_pkt *pkt, void *host)
{
    struct iovec iov[WF_MAX_IOV];
    if (!wf_key_in_pieces(qp->env->keys, qp->resp.rkey)) {
        iov[0] = (struct iovec){host, pkt->len};
        return wf_place(qp, pkt, 0, iov, 1);
    }
    for (uint32_t done = 0, n; done < pkt->len; done += n) {
        struct wf_access_req req = {
            .key = qp->resp.rkey, .addr = qp->resp.va + done, .len = pkt->len - done};
        int niov = 0;
        n = (uint32_t)wf_access_map(qp->env->keys, &req, iov, &niov);
        int err = wf_place(qp, pkt, done, iov, niov);
        if (err)
            return err;
    }
    return 0;
}

static int execute_write(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t flags)
{
    struct wf_responder *r = &qp->resp;
    int out;
    if (flags & WF_F_FIRST && (out = open_write(qp, pkt)))
        return out;
    if (pkt->len > r->left || (flags & WF_F_LAST && pkt->len != r->left))
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_BAD_PACKET);
    uint32_t placed = r->off;
    if (flags & WF_H_IMM && !wf_recv_take(qp, pkt))
        return NOT_READY;
    r->off = placed;
    if (pkt->len) {
        void *host;
        out = check_rkey(qp, r->rkey, r->va, pkt->len, IBV_ACCESS_REMOTE_WRITE, &host);
        if (out)
            return out;
        int err = place_write(qp, pkt, host);
        if (err == -ESTALE)
            return DROPPED;
        if (err)
            return refuse(qp, pkt, WF_SYN_NAK_REM_OP, WF_R_LOCAL_FAULT);
    }
    r->va += pkt->len;
    r->left -= pkt->len;
    r->off += pkt->len;
    r->open = flags & WF_F_LAST ? WF_IN_NONE : WF_IN_WRITE;
    if (flags & WF_F_LAST)
        complete_message(qp, pkt, flags);
    return DONE;
}

static bool resource_free(const struct wf_qp *qp)
{
    const struct wf_responder *r = &qp->resp;
    return r->nres && !r->res[r->res_head % r->nres].pending;
}

// Keep a READ or atomic until its response is sent and for duplicates after that.
static struct wf_resource *take_resource(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    struct wf_responder *r = &qp->resp;
    if (!resource_free(qp))
        return NULL;
    struct wf_resource *res = &r->res[r->res_head % r->nres];
    r->res_head++;
    r->res_pending++;
    *res = (struct wf_resource){
        .operation = WF_OPCODE_OP(pkt->opcode),
        .pending = true,
        .psn = pkt->psn,
        .npsn = 1,
        .rkey = pkt->rkey,
        .pd = r->pd,
        .va = pkt->va,
        .msn = (atomic_load_explicit(&qp->dir->msn, memory_order_relaxed) + 1) & WF_PSN_MASK,
    };
    return res;
}

static int execute_read(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t *npsn)
{
    void *host;
    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_READ))
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_QP_ACCESS);
    if (pkt->dma_len) {
        int out = check_rkey(qp, pkt->rkey, pkt->va, pkt->dma_len, IBV_ACCESS_REMOTE_READ, &host);
        if (out)
            return out;
    }
    struct wf_resource *res = take_resource(qp, pkt);
    if (!res)
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_TOO_MANY_READS);
    res->len = pkt->dma_len;
    res->npsn = *npsn = wf_qp_npsn(qp, pkt->dma_len);
    return DONE;
}

struct atomic {
    uint64_t *target;
    const struct wf_pkt *pkt;
    uint64_t orig;
};

static void atomic_execute(void *arg)
{
    struct atomic *a = arg;
    const struct wf_pkt *pkt = a->pkt;
    // Real atomic instructions: the CPUs of this host take part (IBV_ATOMIC_GLOB).
    if (WF_OPCODE_OP(pkt->opcode) == WF_OP_FETCH_ADD)
        a->orig = __atomic_fetch_add(a->target, pkt->swap_add, __ATOMIC_SEQ_CST);
    else
        __atomic_compare_exchange_n(a->target, &a->orig, pkt->swap_add, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST);
}

static int execute_atomic(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    void *host = NULL;
    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC))
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_QP_ACCESS);
    if (pkt->va & 7)
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_ATOMIC_ALIGN);
    int out = check_rkey(qp, pkt->rkey, pkt->va, 8, IBV_ACCESS_REMOTE_ATOMIC, &host);
    if (out)
        return out;
    // The region may be registered so that an aligned request is not aligned in memory.
    if ((uintptr_t)host & 7)
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_ATOMIC_ALIGN);
    if (!resource_free(qp))
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_TOO_MANY_READS);
    struct atomic a = {.target = host, .pkt = pkt, .orig = pkt->compare};
    if (host && wf_guard_run(atomic_execute, &a))
        return refuse(qp, pkt, WF_SYN_NAK_REM_OP, WF_R_LOCAL_FAULT);
    take_resource(qp, pkt)->orig = host ? a.orig : 0;
    return DONE;
}

static int execute_atomic_write(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    struct iovec iov = {.iov_len = 8};
    uint64_t value;
    struct iovec mine = {.iov_base = &value, .iov_len = 8};
    if (!(qp->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE))
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_QP_ACCESS);
    if (pkt->len != 8 || pkt->va & 7)
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_ATOMIC_ALIGN);
    int out = check_rkey(qp, pkt->rkey, pkt->va, 8, IBV_ACCESS_REMOTE_WRITE, &iov.iov_base);
    if (out)
        return out;
    if ((uintptr_t)iov.iov_base & 7)
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_ATOMIC_ALIGN);
    if (wf_place(qp, pkt, 0, &mine, 1))
        return refuse(qp, pkt, WF_SYN_NAK_REM_OP, WF_R_LOCAL_FAULT);
    if (!take_resource(qp, pkt))
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_TOO_MANY_READS);
    if (iov.iov_base)
        __atomic_store_n((uint64_t *)iov.iov_base, value, __ATOMIC_SEQ_CST);
    return DONE;
}

// FLUSH: everything placed is visible already; the answer confirms it.
static int execute_flush(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    void *host;
    bool whole_region = (pkt->feth >> 4 & 3) == 1;
    int out = check_rkey(qp, pkt->rkey, pkt->va, whole_region ? 0 : pkt->dma_len, 0, &host);
    if (out && !whole_region)
        return out;
    if (!take_resource(qp, pkt))
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_TOO_MANY_READS);
    return DONE;
}

static int execute(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t flags, uint32_t *npsn)
{
    int out = check_sequence(qp, pkt, flags);
    if (!out)
        out = check_length(qp, pkt, flags);
    if (out)
        return out;
    if (flags & WF_F_SEND)
        return execute_send(qp, pkt, flags);
    if (flags & WF_F_WRITE) {
        qp->env->counters.rx_write_requests += (flags & WF_F_FIRST) != 0;
        return execute_write(qp, pkt, flags);
    }
    if (flags & WF_F_READ)
        qp->env->counters.rx_read_requests++;
    else
        qp->env->counters.rx_atomic_requests++;
    switch (WF_OPCODE_OP(pkt->opcode)) {
    case WF_OP_READ_REQ:
        return execute_read(qp, pkt, npsn);
    case WF_OP_CMP_SWAP:
    case WF_OP_FETCH_ADD:
        return execute_atomic(qp, pkt);
    case WF_OP_ATOMIC_WRITE:
        return execute_atomic_write(qp, pkt);
    case WF_OP_FLUSH:
        return execute_flush(qp, pkt);
    default:
        return refuse(qp, pkt, WF_SYN_NAK_INV_REQ, WF_R_BAD_OPCODE);
    }
}

static bool repeat_matches(const struct wf_qp *qp, const struct wf_resource *res,
                           const struct wf_pkt *pkt, uint32_t *off)
{
    if (res->operation != WF_OPCODE_OP(pkt->opcode))
        return false;
    if (res->operation != WF_OP_READ_REQ) {
        *off = 0;
        return res->psn == pkt->psn;
    }
    uint32_t psns = (pkt->psn - res->psn) & WF_PSN_MASK;
    *off = psns * qp->mtu;
    return psns < res->npsn && pkt->rkey == res->rkey && pkt->va == res->va + *off &&
           pkt->dma_len <= res->len - *off;
}

// A request that was executed before (IBA 9.7.5.1.2): repeat the answer, never the effect.
static void duplicate(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t flags)
{
    struct wf_responder *r = &qp->resp;
    if (flags & (WF_F_SEND | WF_F_WRITE)) {
        r->ack_due = true;
        qp->env->ops->ready(qp);
        return;
    }
    for (uint32_t i = 0; i < r->nres; i++) {
        struct wf_resource *res = &r->res[i];
        uint32_t off;
        if (!repeat_matches(qp, res, pkt, &off))
            continue;
        if (!res->pending)
            r->res_pending++;
        res->pending = res->again = true;
        res->start = res->off = off;
        qp->env->ops->ready(qp);
        return;
    }
}

static void answer_rc(struct wf_qp *qp, const struct wf_pkt *pkt, int out)
{
    if (out == DROPPED) // its sender is gone: nobody waits for an answer
        return;
    if (out == NOT_READY) {
        // What follows is dropped without a sequence NAK until this PSN comes again.
        qp->env->counters.out_of_buffer++;
        qp->resp.nak_sent = true;
        wf_resp_nak(qp, (uint8_t)(WF_SYN_RNR | (qp->attr.min_rnr_timer & 0x1f)), pkt->psn);
        return;
    }
    wf_resp_run(qp);
    wf_resp_nak(qp, (uint8_t)out, pkt->psn);
    wf_qp_to_error(qp);
    if (out == WF_SYN_NAK_INV_REQ)
        qp->env->ops->event(qp, IBV_EVENT_QP_REQ_ERR);
    qp->env->counters.resp_remote_access_errors += out == WF_SYN_NAK_REM_ACCESS;
    if (out == WF_SYN_NAK_REM_ACCESS)
        qp->env->ops->event(qp, IBV_EVENT_QP_ACCESS_ERR);
}

static void request_rc(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t flags)
{
    int32_t ahead = wf_psn_diff(pkt->psn, epsn_of(qp));
    if (ahead < 0) {
        qp->env->counters.duplicate_request++;
        duplicate(qp, pkt, flags);
        return;
    }
    if (ahead > 0) {
        qp->env->counters.out_of_sequence++;
        if (!qp->resp.nak_sent)
            wf_resp_nak(qp, WF_SYN_NAK_PSN_SEQ, epsn_of(qp));
        qp->resp.nak_sent = true;
        return;
    }
    qp->resp.nak_sent = false;
    uint32_t npsn = pkt->npsn;
    int out = execute(qp, pkt, flags, &npsn);
    if (out) {
        answer_rc(qp, pkt, out);
        return;
    }
    bool answered = !(flags & (WF_F_SEND | WF_F_WRITE));
    advance(qp, npsn, answered || flags & WF_F_LAST);
    if (!answered && pkt->flags & WF_PKT_ACK_REQ)
        qp->resp.ack_due = true;
    if (answered)
        qp->env->ops->ready(qp);
    else if (qp->resp.ack_due)
        qp->env->ops->ack_due(qp);
}

// UC never answers: a broken message is dropped up to the next first packet (IBA 9.8.2).
static void request_uc(struct wf_qp *qp, const struct wf_pkt *pkt, uint32_t flags)
{
    struct wf_responder *r = &qp->resp;
    bool in_order = pkt->psn == epsn_of(qp);
    atomic_store_explicit(&qp->dir->epsn, (pkt->psn + pkt->npsn) & WF_PSN_MASK,
                          memory_order_release);
    if (flags & WF_F_FIRST) {
        // The receive of a message that broke off is used again for this one.
        if (r->has_wqe && r->srq)
            wf_srqueue_give_back(&r->srq->q, r->rq_counter);
        else if (r->has_wqe)
            qp->rq.next--;
        r->has_wqe = false;
        r->open = WF_IN_NONE;
    } else if (!in_order) {
        r->open = WF_IN_NONE;
        return;
    }
    uint32_t npsn;
    int out = execute(qp, pkt, flags, &npsn);
    if (out == DONE || out == NOT_READY || out == DROPPED)
        return;
    r->open = WF_IN_NONE;
    if (out == WF_SYN_NAK_REM_OP)
        wf_qp_to_error(qp);
}

void wf_qp_request(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    uint32_t flags = wf_opcode_info(pkt->opcode)->flags;
    if (qp->state < IBV_QPS_RTR || qp->state == IBV_QPS_ERR)
        return;
    wf_migrate_seen(qp, pkt);
    if (qp->state == IBV_QPS_RTR && !qp->comm_est_sent) {
        qp->comm_est_sent = true;
        qp->env->ops->event(qp, IBV_EVENT_COMM_EST);
    }
    qp->resp.pd = pd_of(qp, pkt);
    if (qp->type == IBV_QPT_UC)
        request_uc(qp, pkt, flags);
    else
        request_rc(qp, pkt, flags);
}
