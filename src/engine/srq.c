// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues and XRC domains.
#include "engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <utlist.h>

static int check_init(const struct wf_srq_init *init)
{
    if (init->type != IBV_SRQT_BASIC && init->type != IBV_SRQT_XRC)
        return wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "SRQ type %d", (int)init->type);
    if (!init->max_wr || init->max_wr > WF_LIMIT_SRQ_WR)
        return wf_refuse(EINVAL, WF_R_ARG, "SRQ max_wr %u; 1 to %u are possible", init->max_wr,
                         WF_LIMIT_SRQ_WR);
    if (init->max_sge > WF_MAX_SGE)
        return wf_refuse(EINVAL, WF_R_ARG, "SRQ max_sge %u of %u", init->max_sge, WF_MAX_SGE);
    if (init->limit > init->max_wr)
        return wf_refuse(EINVAL, WF_R_ARG, "SRQ limit %u above max_wr %u", init->limit,
                         init->max_wr);
    if (init->type == IBV_SRQT_XRC && (!init->xrcd || !init->cq))
        return wf_refuse(EINVAL, WF_R_ARG, "an XRC SRQ needs a domain and a CQ");
    return 0;
}

static uint32_t free_srqn(struct wf_hca *h)
{
    for (uint32_t tries = 0; tries < WF_QP_PER_PROCESS; tries++) {
        uint32_t i = h->next_srq++ & 0xffff;
        if (i > 1 && !h->srqs[i])
            return i;
    }
    return WF_NO_QP_INDEX;
}

int wf_srq_create(struct wf_pd *pd, struct wf_srq_init *init, struct wf_srq **out)
{
    struct wf_hca *h = pd->ctx->hca;
    int err = check_init(init);
    if (!err)
        err = wf_verb_fault(h, "create_srq");
    if (err)
        return err;
    struct wf_srq *srq = calloc(1, sizeof(*srq));
    if (!srq || wf_srqueue_init(&srq->q, init->max_wr, init->max_sge)) {
        free(srq);
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "SRQ of %u", init->max_wr);
    }
    wf_enter(h);
    uint32_t i = h->live_srqs < WF_LIMIT_SRQ ? free_srqn(h) : WF_NO_QP_INDEX;
    if (i == WF_NO_QP_INDEX) {
        err = wf_refuse(ENOMEM, WF_R_LIMIT, "%u SRQs", WF_LIMIT_SRQ);
    } else {
        h->live_srqs++;
        h->srqs[i] = srq;
        srq->srqn = h->slot << 16 | i;
        srq->type = init->type;
        srq->max_wr = init->max_wr;
        srq->limit = init->limit;
        srq->pd = pd->num;
        srq->pd_obj = pd;
        srq->user = init->user;
        srq->ctx = pd->ctx;
        pd->users++;
        if (init->type == IBV_SRQT_XRC) {
            srq->cq = init->cq;
            srq->cq->users++;
            srq->xrcd_obj = init->xrcd;
            srq->xrcd = init->xrcd->num;
            init->xrcd->users++;
        }
        DL_APPEND(pd->ctx->srqs, srq);
    }
    wf_exit(h);
    if (err) {
        wf_srqueue_fini(&srq->q);
        free(srq);
        return err;
    }
    init->max_sge = srq->q.max_sge;
    *out = srq;
    return 0;
}

int wf_srq_modify(struct wf_srq *srq, const struct ibv_srq_attr *attr, int mask)
{
    struct wf_hca *h = srq->ctx->hca;
    int err = 0;
    if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        return wf_refuse(EINVAL, WF_R_ARG, "modify_srq mask 0x%x", mask);
    wf_enter(h);
    uint32_t max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->max_wr;
    if (!max_wr || max_wr > WF_LIMIT_SRQ_WR || max_wr < wf_srqueue_posted(&srq->q))
        err = wf_refuse(EINVAL, WF_R_ARG, "SRQ max_wr %u with %u posted", max_wr,
                        wf_srqueue_posted(&srq->q));
    else if (mask & IBV_SRQ_LIMIT && attr->srq_limit > max_wr)
        err = wf_refuse(EINVAL, WF_R_ARG, "SRQ limit %u above max_wr %u", attr->srq_limit, max_wr);
    else if (wf_srqueue_grow(&srq->q, max_wr))
        err = wf_refuse(ENOMEM, WF_R_NO_MEMORY, "SRQ of %u", max_wr);
    if (!err) {
        srq->max_wr = max_wr;
        if (mask & IBV_SRQ_LIMIT) {
            srq->limit = attr->srq_limit;
            if (srq->limit && wf_srqueue_posted(&srq->q) < srq->limit) {
                srq->limit = 0;
                wf_ctx_event(srq->ctx, IBV_EVENT_SRQ_LIMIT_REACHED, srq->user, 0);
            }
        }
    }
    wf_exit(h);
    return err;
}

int wf_srq_query(struct wf_srq *srq, struct ibv_srq_attr *attr)
{
    struct wf_hca *h = srq->ctx->hca;
    wf_enter(h);
    *attr = (struct ibv_srq_attr){
        .max_wr = srq->max_wr, .max_sge = srq->q.max_sge, .srq_limit = srq->limit};
    wf_exit(h);
    return 0;
}

int wf_srq_destroy_locked(struct wf_srq *srq)
{
    struct wf_hca *h = srq->ctx->hca;
    if (srq->users)
        return wf_refuse(EBUSY, WF_R_BUSY, "SRQ: %u QPs receive from it", srq->users);
    h->srqs[srq->srqn & 0xffff] = NULL;
    h->live_srqs--;
    srq->pd_obj->users--;
    if (srq->cq)
        srq->cq->users--;
    if (srq->xrcd_obj)
        srq->xrcd_obj->users--;
    DL_DELETE(srq->ctx->srqs, srq);
    wf_srqueue_fini(&srq->q);
    free(srq);
    return 0;
}

int wf_srq_destroy(struct wf_srq *srq)
{
    struct wf_hca *h = srq->ctx->hca;
    wf_enter(h);
    int err = wf_srq_destroy_locked(srq);
    wf_exit(h);
    return err;
}

uint32_t wf_srq_num(const struct wf_srq *srq)
{
    return srq->srqn;
}

static int post_one(struct wf_srq *srq, const struct ibv_recv_wr *wr)
{
    struct wf_srqueue *q = &srq->q;
    if (wr->num_sge < 0 || (uint32_t)wr->num_sge > q->max_sge)
        return wf_refuse(EINVAL, WF_R_TOO_MANY_SGE, "SRQ: %d SGEs, max_sge %u", wr->num_sge,
                         q->max_sge);
    if (q->free >= q->size)
        wf_ctx_reap_locked(srq->ctx);
    if (q->free >= q->size || wf_srqueue_posted(q) >= srq->max_wr)
        return wf_refuse(ENOMEM, WF_R_RQ_FULL, "SRQ of %u", srq->max_wr);
    uint32_t slot = q->free;
    q->free = q->next_free[slot];
    wf_rwqe_fill(wf_srq_slot(q, slot), wr);
    q->fifo[q->head++ & q->fifo_mask] = slot;
    return 0;
}

int wf_srq_post(struct wf_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    struct wf_hca *h = srq->ctx->hca;
    int err = 0;
    wf_enter(h);
    for (; wr && !err; wr = err ? wr : wr->next)
        err = post_one(srq, wr);
    wf_exit(h);
    if (err && bad)
        *bad = wr;
    return err;
}

// Domains are the same when their files are: found by inode (ibv_open_xrcd(3)).
static struct wf_xrcd *find_domain(struct wf_hca *h, const struct stat *st)
{
    struct wf_xrcd *x;
    DL_FOREACH(h->xrcds, x)
    {
        if (x->has_inode && x->dev == st->st_dev && x->ino == st->st_ino)
            return x;
    }
    return NULL;
}

int wf_xrcd_open(struct wf_ctx *ctx, int fd, int oflags, struct wf_xrcd **out)
{
    struct wf_hca *h = ctx->hca;
    struct stat st;
    int err = 0;
    if (fd != -1 && fstat(fd, &st))
        return wf_refuse(errno, WF_R_ARG, "XRC domain: file descriptor %d", fd);
    if (fd == -1 && !(oflags & O_CREAT))
        return wf_refuse(EINVAL, WF_R_ARG, "XRC domain without a file needs O_CREAT");
    wf_enter(h);
    struct wf_xrcd *x = fd == -1 ? NULL : find_domain(h, &st);
    if (x && oflags & O_CREAT && oflags & O_EXCL) {
        err = wf_refuse(EINVAL, WF_R_ARG, "XRC domain exists already and O_EXCL is set");
    } else if (!x && !(oflags & O_CREAT)) {
        err = wf_refuse(ENOENT, WF_R_ARG, "XRC domain of this file is not open");
    } else if (x) {
        x->refs++;
    } else if (!(x = calloc(1, sizeof(*x)))) {
        err = wf_refuse(ENOMEM, WF_R_NO_MEMORY, "XRC domain");
    } else {
        x->num = ++h->next_xrcd;
        x->refs = 1;
        x->hca = h;
        x->has_inode = fd != -1;
        if (x->has_inode) {
            x->dev = st.st_dev;
            x->ino = st.st_ino;
        }
        DL_APPEND(h->xrcds, x);
    }
    wf_exit(h);
    if (!err)
        *out = x;
    return err;
}

int wf_xrcd_close(struct wf_xrcd *x)
{
    struct wf_hca *h = x->hca;
    int err = 0;
    wf_enter(h);
    if (x->refs > 1) {
        x->refs--;
    } else if (x->users) {
        err = wf_refuse(EBUSY, WF_R_BUSY, "XRC domain: %u objects use it", x->users);
    } else {
        DL_DELETE(h->xrcds, x);
        free(x);
    }
    wf_exit(h);
    return err;
}
