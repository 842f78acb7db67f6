// SPDX-License-Identifier: BSD-2-Clause
// Subscriptions to error events. What happens here: failed transactions, and peers that died.
#include "ugni/service.h"
#include "ugni/state.h"

#include <stdlib.h>
#include <unistd.h>

#define DEFAULT_EVENTS    64u
#define MAX_EVENTS        (1u << 20)
#define COALESCE_SLICE_MS 1000u

static uint32_t serial;

static struct gni_err *subscription(gni_err_handle_t h)
{
    return wf_gni_pool_check(&wf_gni.err_pool, h);
}

static gni_return_t subscribe(struct gni_nic *nic, gni_error_mask_t mask, uint32_t size,
                              struct gni_err **out)
{
    if (size > MAX_EVENTS)
        return wf_gni_refuse(GNI_RC_ERROR_RESOURCE, "SubscribeErrors: %u events, at most %u", size,
                             MAX_EVENTS);
    struct gni_err *e = wf_gni_pool_get(&wf_gni.err_pool);
    gni_error_event_t *queue = size ? calloc(size, sizeof(*queue)) : NULL;
    if (!e || (size && !queue)) {
        if (e)
            wf_gni_pool_put(&wf_gni.err_pool, e);
        free(queue);
        return GNI_RC_ERROR_NOMEM;
    }
    e->nic = nic;
    e->ptag = nic ? nic->cdm->ptag : 0;
    e->mask = mask;
    e->queue = queue;
    e->size = size;
    e->fd = -1;
    if (nic)
        DL_APPEND(nic->errs, e);
    DL_APPEND2(wf_gni.errs, e, aprev, anext);
    *out = e;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_SubscribeErrors(gni_nic_handle_t nic_handle, uint32_t device_id,
                                 gni_error_mask_t mask, uint32_t EEQ_size,
                                 gni_err_handle_t *err_handle)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_handle);
    if (!err_handle || (nic_handle && !nic) || (!nic_handle && geteuid() != 0))
        wf_gni_refuse(rc, "SubscribeErrors: no NIC (without one only for root)");
    else if (!nic && device_id != WF_GNI_DEVICE_ID)
        rc = wf_gni_refuse(GNI_RC_NO_MATCH, "SubscribeErrors: device %u", device_id);
    else
        rc = subscribe(nic, mask, EEQ_size ? EEQ_size : DEFAULT_EVENTS, err_handle);
    wf_gni_unlock();
    return rc;
}

gni_return_t gni_subscribe_errors(gni_nic_handle_t nic_handle, gni_error_mask_t mask,
                                  uint32_t EEQ_size, void (*EQ_new_event)(gni_err_handle_t),
                                  void (*app_crit_err)(gni_err_handle_t),
                                  gni_err_handle_t *err_handle)
{
    struct gni_err *e;
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_handle);
    if (nic && err_handle)
        rc = subscribe(nic, mask, EEQ_size, &e);
    if (rc == GNI_RC_SUCCESS) {
        e->new_event = EQ_new_event;
        e->critical = app_crit_err;
        *err_handle = e;
    }
    wf_gni_unlock();
    return rc;
}

void wf_gni_err_release(struct gni_err *e)
{
    wf_gni_evict(&e->obj, e->fd, &e->waiters);
    if (e->nic)
        DL_DELETE(e->nic->errs, e);
    DL_DELETE2(wf_gni.errs, e, aprev, anext);
    if (e->fd >= 0)
        close(e->fd);
    free(e->queue);
    wf_gni_pool_put(&wf_gni.err_pool, e);
}

gni_return_t GNI_ReleaseErrors(gni_err_handle_t err_handle)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    wf_gni_lock();
    struct gni_err *e = subscription(err_handle);
    if (!e)
        rc = GNI_RC_INVALID_PARAM;
    else if (e->waiters)
        rc = GNI_RC_NOT_DONE;
    else
        wf_gni_err_release(e);
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_GetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t *mask)
{
    wf_gni_lock();
    struct gni_err *e = subscription(err_handle);
    if (e && mask)
        *mask = e->mask;
    wf_gni_unlock();
    return e && mask ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_SetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t mask_in,
                              gni_error_mask_t *mask_out)
{
    wf_gni_lock();
    struct gni_err *e = subscription(err_handle);
    if (e && mask_out) {
        *mask_out = e->mask;
        e->mask = mask_in;
    }
    wf_gni_unlock();
    return e && mask_out ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_SetErrorPtag(gni_err_handle_t err_handle, uint8_t ptag)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    wf_gni_lock();
    struct gni_err *e = subscription(err_handle);
    if (!e)
        rc = GNI_RC_INVALID_PARAM;
    else if (geteuid() != 0 && !(e->nic && ptag == e->nic->cdm->ptag))
        rc = wf_gni_refuse(GNI_RC_PERMISSION_ERROR, "SetErrorPtag: another tag, and not root");
    else
        e->ptag = ptag;
    wf_gni_unlock();
    return rc;
}

// ---- events -------------------------------------------------------------------------------------

static void call_back(void *fn, uint64_t handle, uint64_t unused)
{
    (void)unused;
    ((void (*)(gni_err_handle_t))fn)((gni_err_handle_t)(uintptr_t)handle);
}

static void deliver(struct gni_err *e, const gni_error_event_t *ev)
{
    if (e->size && e->count < e->size)
        e->queue[(e->head + e->count++) % e->size] = *ev;
    wf_gni_wake(e->fd, e->waiters);
    if (e->new_event)
        wf_gni_service_call((struct wf_gni_call){call_back, (void *)e->new_event, (uintptr_t)e, 0});
    if (e->critical && ev->error_category & GNI_ERRMASK_CRITICAL)
        wf_gni_service_call((struct wf_gni_call){call_back, (void *)e->critical, (uintptr_t)e, 0});
}

void wf_gni_error_event(struct gni_nic *nic, uint8_t category, uint16_t code, uint64_t info)
{
    struct gni_err *e;
    gni_error_event_t ev = {.error_code = code,
                            .error_category = category,
                            .ptag = nic->cdm->ptag,
                            .serial_number = ++serial,
                            .timestamp = wf_gni_now(),
                            .info_mmrs = {info}};
    DL_FOREACH2(wf_gni.errs, e, anext)
    if (e->mask & category && (!e->ptag || e->ptag == ev.ptag))
        deliver(e, &ev);
}

static bool pop(struct gni_err *e, gni_error_event_t *out)
{
    if (!e->count)
        return false;
    *out = e->queue[e->head];
    e->head = (e->head + 1) % e->size;
    e->count--;
    return true;
}

gni_return_t GNI_GetErrorEvent(gni_err_handle_t err_handle, gni_error_event_t *event)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    wf_gni_progress();
    struct gni_err *e = subscription(err_handle);
    if (e && event)
        rc = pop(e, event) ? GNI_RC_SUCCESS : GNI_RC_NOT_DONE;
    wf_gni_unlock();
    return rc;
}

// For ever until the first event, then up to `timeout` for more.
static gni_return_t wait_events(gni_err_handle_t h, gni_error_event_t *events, uint32_t size,
                                uint32_t timeout, uint32_t *got)
{
    uint64_t deadline = WF_GNI_INFINITE;
    for (*got = 0;;) {
        struct gni_err *e = subscription(h);
        if (!e)
            return GNI_RC_INVALID_PARAM;
        wf_gni_progress();
        uint32_t before = *got;
        while (*got < size && pop(e, &events[*got]))
            ++*got;
        if (*got == size)
            return GNI_RC_SUCCESS;
        if (*got && !before)
            deadline = wf_gni_deadline(timeout, UINT32_MAX);
        if (*got && wf_gni_deadline(0, UINT64_MAX) >= deadline)
            return *got > 1 ? GNI_RC_SUCCESS : GNI_RC_TIMEOUT;
        wf_gni_sleep(&e->fd, &e->waiters, deadline);
    }
}

gni_return_t GNI_WaitErrorEvents(gni_err_handle_t err_handle, gni_error_event_t *events,
                                 uint32_t events_size, uint32_t timeout, uint32_t *num_events)
{
    if (!events || !events_size || !num_events)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    gni_return_t rc = wait_events(err_handle, events, events_size, timeout, num_events);
    wf_gni_unlock();
    return rc;
}
