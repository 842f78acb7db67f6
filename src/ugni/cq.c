// SPDX-License-Identifier: BSD-2-Clause
// Completion queues: making them, what goes in, taking out without waiting.
#include "ugni/cq.h"
#include "ugni/service.h"
#include "ugni/thread.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ENTRIES (1u << 22) // 32 MiB of ring

static gni_return_t create(gni_nic_handle_t nic_hndl, uint32_t count, gni_cq_mode_t mode,
                           struct gni_cq **out)
{
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    if (!nic || !out || !count || mode & ~0x1fu || GNI_CQ_IS_INVALID_EMULATED(mode))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "CqCreate: nic %p, %u entries, mode 0x%x",
                             (void *)nic_hndl, count, mode);
    if (count > MAX_ENTRIES)
        return wf_gni_fail(nic, GNI_RC_ERROR_RESOURCE, "CqCreate", "%u entries, at most %u", count,
                           MAX_ENTRIES);
    bool dual = nic->cdm->modes & GNI_CDM_MODE_DUAL_EVENTS;
    struct gni_cq *cq = wf_gni_pool_get(&wf_gni.cq_pool);
    if (!cq)
        return GNI_RC_ERROR_NOMEM;
    cq->slots = dual ? (count + 1) / 2 : count;
    cq->size = dual ? cq->slots * 2 : count;
    cq->ring = malloc((size_t)cq->size * sizeof(*cq->ring));
    if (!cq->ring) {
        wf_gni_pool_put(&wf_gni.cq_pool, cq);
        return GNI_RC_ERROR_NOMEM;
    }
    cq->nic = nic;
    cq->mode = mode;
    cq->wait_fd = -1;
    DL_APPEND(nic->cqs, cq);
    *out = cq;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_CqCreate(gni_nic_handle_t nic_hndl, uint32_t entry_count, uint32_t delay_count,
                          gni_cq_mode_t mode, void (*handler)(gni_cq_entry_t *, void *),
                          void *context, gni_cq_handle_t *cq_hndl)
{
    struct gni_cq *cq;
    (void)delay_count; // interrupts are not coalesced: a wait ends with the first event
    if (!cq_hndl)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    gni_return_t rc = create(nic_hndl, entry_count, mode, &cq);
    if (rc == GNI_RC_SUCCESS) {
        cq->handler = handler;
        cq->context = context;
        *cq_hndl = cq;
    }
    wf_gni_unlock();
    return rc;
}

gni_return_t gni_cq_create(gni_nic_handle_t nic_hndl, uint32_t entry_count, uint32_t delay_index,
                           gni_cq_event_hndlr_f *event_handler, uint64_t usr_event_data,
                           gni_cq_handle_t *cq_hndl)
{
    struct gni_cq *cq;
    if (!cq_hndl)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    gni_return_t rc = create(nic_hndl, entry_count, GNI_CQ_BLOCKING, &cq);
    if (rc == GNI_RC_SUCCESS) {
        cq->kernel_handler = event_handler;
        cq->kernel_data = usr_event_data;
        cq->kernel_delay = delay_index;
        *cq_hndl = cq;
    }
    wf_gni_unlock();
    if (rc == GNI_RC_SUCCESS && event_handler)
        wf_gni_doze(); // events are served by the thread from now on
    return rc;
}

void wf_gni_cq_release(struct gni_cq *cq)
{
    struct wf_gni_req *r, *tmp;
    DL_FOREACH_SAFE(cq->reqs, r, tmp)
    {
        DL_DELETE(cq->reqs, r);
        r->cq = NULL;
        if (r->done)
            wf_gni_req_put(r);
    }
    wf_gni_chan_forget(cq);
    wf_gni_evict(&cq->obj, cq->wait_fd, &cq->waiters);
    if (cq->wait_fd >= 0)
        close(cq->wait_fd);
    free(cq->ring);
    DL_DELETE(cq->nic->cqs, cq);
    wf_gni_pool_put(&wf_gni.cq_pool, cq);
}

gni_return_t GNI_CqDestroy(gni_cq_handle_t cq_hndl)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    wf_gni_lock();
    struct gni_cq *cq = wf_gni_cq(cq_hndl);
    if (!cq)
        rc = wf_gni_refuse(GNI_RC_INVALID_PARAM, "CqDestroy: %p", (void *)cq_hndl);
    else if (cq->users || cq->waiters)
        rc = wf_gni_fail(cq->nic, GNI_RC_ERROR_RESOURCE, "CqDestroy",
                         "%u endpoints, regions and others use it, %u threads wait", cq->users,
                         cq->waiters);
    else
        wf_gni_cq_release(cq);
    wf_gni_unlock();
    return rc;
}

static void call_kernel_handler(void *fn, uint64_t data, uint64_t device)
{
    ((gni_cq_event_hndlr_f *)fn)((uint32_t)device, data);
}

static void tell_kernel(struct gni_cq *cq)
{
    if (++cq->kernel_pending <= cq->kernel_delay)
        return;
    cq->kernel_pending = 0;
    wf_gni_service_call((struct wf_gni_call){call_kernel_handler, (void *)cq->kernel_handler,
                                             cq->kernel_data, WF_GNI_DEVICE_ID});
}

void wf_gni_cq_push(struct gni_cq *cq, gni_cq_entry_t entry)
{
    if (cq->mode & GNI_CQ_UNMANAGED)
        return;
    if (cq->count == cq->size) {
        cq->overrun = true;
        wf_gni_refuse(GNI_RC_ERROR_RESOURCE, "CQ %p of %u entries overran", (void *)cq, cq->size);
    } else {
        uint32_t at = cq->head + cq->count++;
        cq->ring[at < cq->size ? at : at - cq->size] = entry;
    }
    wf_gni_wake(cq->wait_fd, cq->waiters);
    if (cq->armed)
        wf_gni_chan_fire(cq);
    if (cq->kernel_handler)
        tell_kernel(cq);
}

// The entry of a sent message was fetched: its slot is free again.
static void free_message_slot(struct gni_cq *cq, gni_cq_entry_t e)
{
    if (gni_cq_get_source(e) != WF_GNI_SRC_MESSAGE)
        return;
    struct wf_gni_req *r = wf_gni_pool_at(&wf_gni.req_pool, (uint32_t)gni_cq_get_tid(e));
    if (r && r->cq == cq && !r->descr)
        wf_gni_req_put(r);
}

gni_return_t wf_gni_cq_pop(struct gni_cq *cq, gni_cq_entry_t *out)
{
    if (cq->overrun) { // told once; what is left in the queue stays good
        cq->overrun = false;
        *out = WF_GNI_OVERRUN | wf_gni_entry_remote(0);
        return GNI_RC_ERROR_RESOURCE;
    }
    if (!cq->count)
        return GNI_RC_NOT_DONE;
    *out = cq->ring[cq->head];
    cq->head = cq->head + 1 == cq->size ? 0 : cq->head + 1;
    cq->count--;
    if (cq->count) // of several waiters each was woken once only
        wf_gni_wake(cq->wait_fd, cq->waiters);
    free_message_slot(cq, *out);
    return gni_cq_get_status(*out) ? GNI_RC_TRANSACTION_ERROR : GNI_RC_SUCCESS;
}

bool wf_gni_cq_ready(const struct gni_cq *cq)
{
    return cq->count || cq->overrun;
}

void wf_gni_cq_call_handler(gni_return_t rc, void (*handler)(gni_cq_entry_t *, void *),
                            void *context, gni_cq_entry_t *entry)
{
    if (handler && (rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR))
        handler(entry, context);
}

gni_return_t GNI_CqGetEvent(gni_cq_handle_t cq_hndl, gni_cq_entry_t *event_data)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    void (*handler)(gni_cq_entry_t *, void *) = NULL;
    void *context = NULL;
    wf_gni_lock();
    struct gni_cq *cq = wf_gni_cq(cq_hndl);
    if (cq && event_data) {
        if (!cq->count)
            wf_gni_progress();
        rc = wf_gni_cq_pop(cq, event_data);
        handler = cq->handler;
        context = cq->context;
    }
    wf_gni_unlock();
    wf_gni_idle(rc == GNI_RC_NOT_DONE);
    wf_gni_cq_call_handler(rc, handler, context, event_data);
    return rc;
}

gni_return_t GNI_CqTestEvent(gni_cq_handle_t cq_hndl)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    struct gni_cq *cq = wf_gni_cq(cq_hndl);
    if (cq) {
        wf_gni_progress();
        rc = cq->overrun ? GNI_RC_ERROR_RESOURCE : cq->count ? GNI_RC_SUCCESS : GNI_RC_NOT_DONE;
    }
    wf_gni_unlock();
    wf_gni_idle(rc == GNI_RC_NOT_DONE);
    return rc;
}

static gni_return_t mask(gni_cq_handle_t cq_hndl, int by)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    wf_gni_lock();
    struct gni_cq *cq = wf_gni_cq(cq_hndl);
    if (!cq || !GNI_CQ_IS_BLOCKING(cq->mode))
        rc = wf_gni_refuse(GNI_RC_INVALID_PARAM, "interrupt mask: no blocking queue");
    else if (by < 0 && !cq->masked)
        rc = GNI_RC_NOT_DONE;
    else
        cq->masked += (uint32_t)by;
    if (rc == GNI_RC_SUCCESS)
        wf_gni_wake(cq->wait_fd, cq->waiters); // waiters see the new state
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_CqInterruptMask(gni_cq_handle_t cq_hndl)
{
    return mask(cq_hndl, 1);
}

gni_return_t GNI_CqInterruptUnmask(gni_cq_handle_t cq_hndl)
{
    return mask(cq_hndl, -1);
}
