// SPDX-License-Identifier: BSD-2-Clause
// Open devices and protection domains.
#include "engine/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

int wf_ctx_open(struct wf_hca *h, const struct wf_ctx_ops *ops, void *user, struct wf_ctx **out)
{
    struct wf_ctx *ctx = calloc(1, sizeof(*ctx));
    if (!ctx)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "context");
    ctx->hca = h;
    ctx->ops = ops;
    ctx->user = user;
    wf_enter(h);
    DL_APPEND(h->ctxs, ctx);
    wf_exit(h);
    *out = ctx;
    return 0;
}

// Users first, what they use after them; so nothing is busy.
static void destroy_all(struct wf_ctx *ctx)
{
    while (ctx->qps)
        wf_qp_destroy_locked(ctx->qps);
    while (ctx->srqs)
        wf_srq_destroy_locked(ctx->srqs);
    while (ctx->cqs)
        wf_cq_destroy_locked(ctx->cqs);
    while (ctx->mws)
        wf_mw_dealloc_locked(ctx->mws);
    while (ctx->mrs)
        wf_mr_dereg_locked(ctx->mrs);
    while (ctx->pds) {
        struct wf_pd *pd = ctx->pds;
        DL_DELETE(ctx->pds, pd);
        free(pd);
    }
}

int wf_ctx_close(struct wf_ctx *ctx)
{
    struct wf_hca *h = ctx->hca;
    wf_enter(h);
    ctx->ops = NULL;
    wf_leaks_of_context(ctx);
    destroy_all(ctx);
    DL_DELETE(h->ctxs, ctx);
    wf_exit(h);
    free(ctx);
    return 0;
}

int wf_pd_create(struct wf_ctx *ctx, struct wf_pd **out)
{
    int err = wf_verb_fault(ctx->hca, "alloc_pd");
    if (err)
        return err;
    struct wf_pd *pd = calloc(1, sizeof(*pd));
    if (!pd)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "protection domain");
    wf_enter(ctx->hca);
    pd->ctx = ctx;
    pd->num = ++ctx->hca->next_pd;
    DL_APPEND(ctx->pds, pd);
    wf_exit(ctx->hca);
    *out = pd;
    return 0;
}

int wf_pd_destroy(struct wf_pd *pd)
{
    struct wf_hca *h = pd->ctx->hca;
    int err = 0;
    wf_enter(h);
    if (pd->users)
        err = wf_refuse(EBUSY, WF_R_BUSY, "PD %u: %u objects use it", pd->num, pd->users);
    else
        DL_DELETE(pd->ctx->pds, pd);
    wf_exit(h);
    if (!err)
        free(pd);
    return err;
}
