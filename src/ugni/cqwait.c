// SPDX-License-Identifier: BSD-2-Clause
// Waiting on completion queues.
#include "ugni/cq.h"

#include <stdlib.h>

// What a waiting call looks at on each turn: GNI_RC_NOT_DONE to go on waiting.
struct wait {
    gni_cq_handle_t *handles;
    uint32_t n;
    bool take; // take an event, or tell only which queue has one
    bool vector;
    gni_cq_entry_t *entry;
    uint32_t which;
    void (*handler)(gni_cq_entry_t *, void *);
    void *context;
};

static gni_return_t check(const struct wait *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        struct gni_cq *cq = wf_gni_cq(w->handles[i]);
        if (!cq)
            return wf_gni_refuse(GNI_RC_INVALID_PARAM, "waiting: queue %u is none", i);
        if (!GNI_CQ_IS_BLOCKING(cq->mode))
            return wf_gni_fail(cq->nic, GNI_RC_ERROR_RESOURCE, "CqWait",
                               "queue %u is a polling one", i);
    }
    return GNI_RC_SUCCESS;
}

static gni_return_t look(struct wait *w)
{
    bool masked = false;
    wf_gni_progress();
    for (uint32_t i = 0; i < w->n; i++) {
        struct gni_cq *cq = wf_gni_cq(w->handles[i]);
        if (!cq) // destroyed by another thread meanwhile
            return GNI_RC_INVALID_PARAM;
        masked |= cq->masked != 0;
        if (!wf_gni_cq_ready(cq))
            continue;
        w->which = i;
        w->handler = cq->handler;
        w->context = cq->context;
        return w->take ? wf_gni_cq_pop(cq, w->entry) : GNI_RC_SUCCESS;
    }
    return w->vector && masked ? GNI_RC_TIMEOUT : GNI_RC_NOT_DONE;
}

static bool sleep_on(const struct wait *w, uint64_t deadline)
{
    struct wf_gni_waitable few[16], *many = few;
    if (w->n > 16 && !(many = malloc(w->n * sizeof(*many))))
        return true;
    for (uint32_t i = 0; i < w->n; i++) {
        struct gni_cq *cq = wf_gni_cq(w->handles[i]);
        many[i] = (struct wf_gni_waitable){&cq->wait_fd, &cq->waiters};
    }
    bool ok = wf_gni_sleep_any(many, w->n, deadline);
    if (many != few)
        free(many);
    return ok;
}

// Locked. The code that ends the wait; *interrupted when a signal came.
static gni_return_t wait_locked(struct wait *w, uint64_t timeout, bool *interrupted)
{
    uint64_t deadline = wf_gni_deadline(timeout, UINT64_MAX);
    gni_return_t rc = check(w);
    *interrupted = false;
    if (rc != GNI_RC_SUCCESS)
        return rc;
    for (;;) {
        rc = look(w);
        if (rc == GNI_RC_TIMEOUT) // masked
            return GNI_RC_NOT_DONE;
        if (rc != GNI_RC_NOT_DONE)
            return rc;
        if (wf_gni_deadline(0, UINT64_MAX) >= deadline)
            return GNI_RC_TIMEOUT;
        if (!sleep_on(w, deadline)) {
            *interrupted = true;
            if (w->vector && !w->take)
                return GNI_RC_INVALID_STATE;
        }
    }
}

static gni_return_t wait_for(struct wait *w, uint64_t timeout)
{
    bool interrupted;
    wf_gni_lock();
    gni_return_t rc = wait_locked(w, timeout, &interrupted);
    wf_gni_unlock();
    if (w->take)
        wf_gni_cq_call_handler(rc, w->handler, w->context, w->entry);
    return rc;
}

gni_return_t GNI_CqWaitEvent(gni_cq_handle_t cq_hndl, uint64_t timeout, gni_cq_entry_t *event_data)
{
    struct wait w = {.handles = &cq_hndl, .n = 1, .take = true, .entry = event_data};
    return event_data ? wait_for(&w, timeout) : GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_CqVectorWaitEvent(gni_cq_handle_t *cq_hndls, uint32_t num_cqs, uint64_t timeout,
                                   gni_cq_entry_t *event_data, uint32_t *which)
{
    struct wait w = {
        .handles = cq_hndls, .n = num_cqs, .take = true, .vector = true, .entry = event_data};
    if (!cq_hndls || !num_cqs || !event_data || !which)
        return GNI_RC_INVALID_PARAM;
    gni_return_t rc = wait_for(&w, timeout);
    *which = w.which;
    return rc;
}

gni_return_t GNI_CqVectorMonitor(gni_cq_handle_t *cq_hndls, uint32_t num_cqs, uint64_t timeout,
                                 uint32_t *which)
{
    struct wait w = {.handles = cq_hndls, .n = num_cqs, .vector = true};
    if (!cq_hndls || !num_cqs || !which)
        return GNI_RC_INVALID_PARAM;
    gni_return_t rc = wait_for(&w, timeout);
    if (rc == GNI_RC_SUCCESS)
        *which = w.which;
    return rc;
}
