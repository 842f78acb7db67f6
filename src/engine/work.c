// SPDX-License-Identifier: BSD-2-Clause
// Deferred calls. The queue has a small lock of its own, so that callbacks under the engine's lock
// and callers without it may both defer.
#include "engine/engine.h"

void wf_hca_defer(struct wf_hca *h, struct wf_work *work)
{
    pthread_mutex_lock(&h->work_lock);
    if (!work->queued) {
        work->queued = true;
        work->next = NULL;
        if (h->work_last)
            h->work_last->next = work;
        else
            h->work = work;
        h->work_last = work;
    }
    pthread_mutex_unlock(&h->work_lock);
    if (h->threaded)
        wf_thread_kick(h);
}

static struct wf_work *take(struct wf_hca *h)
{
    pthread_mutex_lock(&h->work_lock);
    struct wf_work *work = h->work;
    if (work) {
        h->work = work->next;
        if (!h->work)
            h->work_last = NULL;
        work->queued = false;
    }
    pthread_mutex_unlock(&h->work_lock);
    return work;
}

void wf_work_run(struct wf_hca *h)
{
    struct wf_work *work;
    while ((work = take(h)))
        work->fn(work);
}
