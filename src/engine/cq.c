// SPDX-License-Identifier: BSD-2-Clause
// Completion queues as faces see them: create, poll, arm.
#include "base/clock.h"
#include "engine/engine.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <utlist.h>

static void retire_unseen(struct wf_cq *cq, const struct wf_cq_side *s);

static int check_size(uint32_t cqe)
{
    if (cqe >= 1 && cqe <= WF_LIMIT_CQE)
        return 0;
    return wf_refuse(EINVAL, WF_R_ARG, "CQ of %u entries; 1 to %u are possible", cqe, WF_LIMIT_CQE);
}

int wf_cq_create(struct wf_ctx *ctx, const struct wf_cq_init *init, struct wf_cq **out)
{
    struct wf_hca *h = ctx->hca;
    int err = check_size(init->cqe);
    if (!err)
        err = wf_verb_fault(h, "create_cq");
    if (err)
        return err;
    struct wf_cq *cq = calloc(1, sizeof(*cq));
    if (!cq || wf_cqring_init(cq, init->cqe)) {
        free(cq);
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "CQ of %u entries", init->cqe);
    }
    cq->ignore_overrun = init->ignore_overrun;
    cq->user = init->user;
    cq->on_comp = init->on_comp;
    cq->on_retire = retire_unseen;
    cq->ctx = ctx;
    wf_enter(h);
    if (h->live_cqs >= WF_LIMIT_CQ) {
        err = wf_refuse(ENOMEM, WF_R_LIMIT, "%u CQs", WF_LIMIT_CQ);
    } else {
        h->live_cqs++;
        DL_APPEND(ctx->cqs, cq);
    }
    wf_exit(h);
    if (err) {
        wf_cqring_fini(cq);
        free(cq);
        return err;
    }
    *out = cq;
    return 0;
}

uint32_t wf_cq_size(const struct wf_cq *cq)
{
    return cq->size;
}

int wf_cq_resize(struct wf_cq *cq, uint32_t cqe)
{
    struct wf_hca *h = cq->ctx->hca;
    int err = check_size(cqe);
    if (err)
        return err;
    wf_enter(h);
    uint32_t pending = wf_cqring_pending(cq);
    err = wf_cqring_resize(cq, cqe);
    wf_exit(h);
    if (err == -EINVAL)
        return wf_refuse(EINVAL, WF_R_ARG, "resize to %u with %u completions waiting", cqe,
                         pending);
    return err ? wf_refuse(ENOMEM, WF_R_NO_MEMORY, "CQ of %u entries", cqe) : 0;
}

int wf_cq_destroy_locked(struct wf_cq *cq)
{
    struct wf_hca *h = cq->ctx->hca;
    if (cq->users)
        return wf_refuse(EBUSY, WF_R_BUSY, "CQ: %u QPs or SRQs complete there", cq->users);
    h->live_cqs--;
    h->moderated_cqs -= cq->moderate_count > 1;
    DL_DELETE(cq->ctx->cqs, cq);
    wf_cqring_fini(cq);
    free(cq);
    return 0;
}

int wf_cq_destroy(struct wf_cq *cq)
{
    struct wf_hca *h = cq->ctx->hca;
    wf_enter(h);
    int err = wf_cq_destroy_locked(cq);
    wf_exit(h);
    return err;
}

// The work request that a completion is about: its wr_id, and its slot back to its queue.
static uint64_t retire_send(struct wf_qp *qp, uint32_t adr)
{
    struct wf_sq *sq = &qp->sq;
    uint32_t slot = (uint32_t)((adr - wf_sq_base(&qp->rq, sq)) >> sq->shift);
    uint32_t counter = wf_wq_counter(sq->tail, slot, sq->mask);
    sq->tail = counter + 1;
    return wf_sq_slot(sq, counter)->wr_id;
}

static uint64_t retire_recv(struct wf_qp *qp, struct wf_srq *srq, uint32_t adr)
{
    if (srq) {
        uint32_t slot = adr >> srq->q.shift;
        uint64_t id = wf_srq_slot(&srq->q, slot)->wr_id;
        wf_srqueue_give_back(&srq->q, slot);
        return id;
    }
    struct wf_rq *rq = &qp->rq;
    uint32_t counter = wf_wq_counter(rq->tail, adr >> rq->shift, rq->mask);
    rq->tail = counter + 1;
    return wf_rq_slot(rq, counter)->wr_id;
}

// A poller of the ring itself has consumed this completion.
static void retire_unseen(struct wf_cq *cq, const struct wf_cq_side *s)
{
    struct wf_hca *h = cq->ctx->hca;
    struct wf_qp *qp = wf_qp_find(h, s->qpn);
    struct wf_srq *srq = s->srqn ? h->srqs[s->srqn & 0xffff] : NULL;
    if (s->send ? qp != NULL : srq || qp)
        s->send ? retire_send(qp, s->wqe_adr) : retire_recv(qp, srq, s->wqe_adr);
}

// A queue looks full: are there completions that were consumed without a call?
bool wf_ctx_reap_locked(struct wf_ctx *ctx)
{
    bool any = false;
    struct wf_cq *cq;
    DL_FOREACH(ctx->cqs, cq)
    {
        uint32_t before = cq->retired;
        wf_cqring_reap(cq);
        any |= cq->retired != before;
    }
    return any;
}

static bool take(struct wf_hca *h, struct wf_cq *cq, struct wf_wc *out)
{
    struct wf_completion c;
    wf_cqring_reap(cq);
    if (!wf_cqring_peek(cq, &c))
        return false;
    struct wf_qp *qp = wf_qp_find(h, c.qpn);
    struct wf_srq *srq = c.srqn ? h->srqs[c.srqn & 0xffff] : NULL;
    uint64_t wr_id = 0;
    if (qp)
        wr_id = c.send ? retire_send(qp, c.wqe_adr) : retire_recv(qp, srq, c.wqe_adr);
    wf_cqring_consume(cq);
    out->wc = (struct ibv_wc){
        .wr_id = wr_id,
        .status = c.status,
        .opcode = c.opcode,
        .vendor_err = c.reason,
        .byte_len = c.byte_len,
        .imm_data = c.imm,
        .qp_num = c.qpn,
        .src_qp = c.src_qp,
        .wc_flags = c.wc_flags,
        .sl = c.sl,
    };
    out->timestamp = c.timestamp;
    out->srqn = c.srqn;
    out->qp_user = qp ? qp->user : NULL;
    return true;
}

static int take_many(struct wf_hca *h, struct wf_cq *cq, int n, struct ibv_wc *wc)
{
    struct wf_wc one;
    int got = 0;
    while (got < n && take(h, cq, &one))
        wc[got++] = one.wc;
    return got;
}

// Polls that an acknowledgement may wait for: others may join it, or the program's own answer may
// go first. If no more polls come, the engine's thread sends it.
#define ACK_PATIENCE      4u
#define ACK_PATIENCE_BUSY 16u // while each poll brings completions

static bool may_wait(struct wf_hca *h, bool some)
{
    if (!h->threaded || h->mode == WF_THREAD_DOZE || (h->urgent && !some))
        return false;
    return ++h->ack_waits < (some ? ACK_PATIENCE_BUSY : ACK_PATIENCE);
}

// What one poll may do besides handing out what is there: receive, and send what is due.
static bool progress_for(struct wf_hca *h, struct wf_cq *cq)
{
    wf_receive_locked(h);
    if (h->ready.head && !may_wait(h, wf_cqring_pending(cq)))
        wf_send_locked(h);
    return wf_polled_locked(h, wf_cqring_pending(cq));
}

static void leave(struct wf_hca *h, bool yield)
{
    pthread_mutex_unlock(&h->lock);
    if (yield)
        sched_yield();
}

int wf_cq_poll(struct wf_cq *cq, int n, struct ibv_wc *wc)
{
    struct wf_hca *h = cq->ctx->hca;
    bool yield = false;
    int err = wf_verb_fault(h, "poll_cq");
    if (err)
        return err;
    wf_enter_poll(h);
    int got = take_many(h, cq, n, wc);
    if (!got) {
        yield = progress_for(h, cq);
        got = take_many(h, cq, n, wc);
        if (!got && cq->failed)
            got = -EIO;
    }
    leave(h, yield);
    return got;
}

int wf_cq_poll_ex(struct wf_cq *cq, struct wf_wc *wc)
{
    struct wf_hca *h = cq->ctx->hca;
    bool yield = false;
    int err = wf_verb_fault(h, "poll_cq");
    if (err)
        return err;
    wf_enter_poll(h);
    int got = take(h, cq, wc);
    if (!got) {
        yield = progress_for(h, cq);
        got = take(h, cq, wc);
        if (!got && cq->failed)
            got = -EIO;
    }
    leave(h, yield);
    return got;
}

uint32_t wf_cq_pending(struct wf_cq *cq)
{
    struct wf_hca *h = cq->ctx->hca;
    wf_enter(h);
    uint32_t n = wf_cqring_pending(cq);
    wf_exit(h);
    return n;
}

int wf_cq_arm(struct wf_cq *cq, bool solicited_only)
{
    struct wf_hca *h = cq->ctx->hca;
    wf_enter(h);
    // "Next completion" is never weakened to "next solicited" before it fired (IBA 11.4.2.2).
    if (!solicited_only)
        cq->armed = WF_CQ_ARMED;
    else if (cq->armed == WF_CQ_IDLE)
        cq->armed = WF_CQ_ARMED_SOLICITED;
    wf_doze_locked(h);
    wf_exit(h);
    return 0;
}

int wf_cq_moderate(struct wf_cq *cq, uint16_t count, uint16_t usec)
{
    struct wf_hca *h = cq->ctx->hca;
    wf_enter(h);
    h->moderated_cqs += (count > 1) - (cq->moderate_count > 1);
    cq->moderate_count = count;
    cq->moderate_usec = usec;
    cq->moderate_seen = 0;
    wf_exit(h);
    return 0;
}

uint64_t wf_cq_expire_moderated(struct wf_hca *h)
{
    uint64_t next = WF_NEVER;
    for (struct wf_ctx *ctx = h->ctxs; ctx; ctx = ctx->next) {
        for (struct wf_cq *cq = ctx->cqs; cq; cq = cq->next) {
            wf_cqring_expire(cq, h->env.now);
            if (cq->moderate_deadline && cq->moderate_deadline < next)
                next = cq->moderate_deadline;
        }
    }
    return next;
}

void wf_cq_ring(struct wf_cq *cq, struct wf_cq_ring *out)
{
    out->cqe = cq->ring;
    out->entries = cq->size;
    out->ci = &cq->ci;
}
