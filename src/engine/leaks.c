// SPDX-License-Identifier: BSD-2-Clause
// What a program never destroyed or polled: told when it closes its device or ends, on request
// (WEFT_LEAKS).
#include "engine/engine.h"

#include "base/record.h"

#include <stdlib.h>

static bool wanted(void)
{
    static int on = -1;
    if (on < 0) {
        const char *v = getenv("WEFT_LEAKS");
        on = v && *v && *v != '0';
    }
    return on;
}

struct tally {
    unsigned qps, cqs, srqs, mrs, mws, pds, completions;
};

static void count(const struct wf_ctx *ctx, struct tally *t)
{
    for (const struct wf_qp *q = ctx->qps; q; q = q->next)
        t->qps++;
    for (struct wf_cq *c = ctx->cqs; c; c = c->next) {
        t->cqs++;
        t->completions += wf_cqring_pending(c);
    }
    for (const struct wf_srq *s = ctx->srqs; s; s = s->next)
        t->srqs++;
    for (const struct wf_mr *m = ctx->mrs; m; m = m->next)
        t->mrs++;
    for (const struct wf_mw *m = ctx->mws; m; m = m->next)
        t->mws++;
    for (const struct wf_pd *p = ctx->pds; p; p = p->next)
        t->pds++;
}

static void tell(const struct tally *t, const char *when)
{
    if (t->qps + t->cqs + t->srqs + t->mrs + t->mws + t->pds)
        wf_explain(WF_R_LEAK,
                   "%s: %u QPs, %u CQs, %u SRQs, %u memory regions, %u windows, %u PDs are left",
                   when, t->qps, t->cqs, t->srqs, t->mrs, t->mws, t->pds);
    if (t->completions)
        wf_explain(WF_R_NOT_POLLED, "%s: %u completions wait in CQs", when, t->completions);
}

void wf_leaks_of_context(struct wf_ctx *ctx)
{
    struct tally t = {0};
    if (!wanted())
        return;
    count(ctx, &t);
    tell(&t, "the device is closed");
}

static struct wf_hca *process_hca;

static void at_exit(void)
{
    struct wf_hca *h = process_hca;
    struct tally t = {0};
    // Another thread may be inside for ever.
    if (!h || pthread_mutex_trylock(&h->lock))
        return;
    for (const struct wf_ctx *ctx = h->ctxs; ctx; ctx = ctx->next)
        count(ctx, &t);
    pthread_mutex_unlock(&h->lock);
    tell(&t, "the program ends");
}

void wf_leaks_watch(struct wf_hca *h)
{
    static bool registered;
    if (!wanted())
        return;
    wf_explaining(); // its own exit handler must come after ours
    if (h && !registered)
        registered = atexit(at_exit) == 0;
    process_hca = h;
}
