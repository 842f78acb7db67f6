// SPDX-License-Identifier: BSD-2-Clause
// Requests: from the post until the completion was fetched.
#include "base/reason.h"
#include "ugni/state.h"

struct wf_gni_req *wf_gni_req_get(struct gni_ep *ep, struct gni_cq *cq)
{
    if (cq && cq->slots_used >= cq->slots)
        return NULL;
    struct wf_gni_req *r = wf_gni_pool_get(&wf_gni.req_pool);
    if (!r)
        return NULL;
    r->cq = cq;
    r->ep = ep;
    r->local_event = ep->local_event;
    r->remote_event = ep->remote_event;
    r->parts = 1; // held by the post until all its transfers have started
    DL_APPEND2(ep->reqs, r, eprev, enext);
    if (cq) {
        cq->slots_used++;
        DL_APPEND(cq->reqs, r);
    }
    return r;
}

static void leave_ep(struct wf_gni_req *r)
{
    if (r->ep)
        DL_DELETE2(r->ep->reqs, r, eprev, enext);
    r->ep = NULL;
}

void wf_gni_req_put(struct wf_gni_req *r)
{
    leave_ep(r);
    if (r->cq) {
        r->cq->slots_used--;
        DL_DELETE(r->cq->reqs, r);
    }
    wf_gni_pool_put(&wf_gni.req_pool, r);
}

static void explain_failure(const struct wf_gni_req *r)
{
    const gni_post_descriptor_t *d = r->descr;
    uint32_t pe = r->ep ? r->ep->pe : 0;
    if (d)
        wf_explain(WF_R_GNI_TRANSACTION, "post of type %d to PE 0x%x, region %u, 0x%llx + %llu: %s",
                   (int)d->type, pe, wf_gni_mh_region(&d->remote_mem_hndl),
                   (unsigned long long)d->remote_addr, (unsigned long long)d->length,
                   wf_gni_status_text(r->status));
    else
        wf_explain(WF_R_GNI_TRANSACTION, "message 0x%x to PE 0x%x: %s", r->local_event, pe,
                   wf_gni_status_text(r->status));
}

static void report_failure(struct wf_gni_req *r)
{
    explain_failure(r);
    struct gni_nic *nic = r->ep ? r->ep->nic : r->cq ? r->cq->nic : NULL;
    if (nic)
        wf_gni_error_event(nic, GNI_ERRMASK_TRANSACTION, r->status, r->local_event);
}

static void complete(struct wf_gni_req *r)
{
    unsigned wanted = r->cq_mode & GNI_CQMODE_DUAL_EVENTS;
    if (r->status)
        report_failure(r);
    else if (r->flag)
        __atomic_store_n(r->flag, r->flag_value, __ATOMIC_RELEASE);
    leave_ep(r);
    r->done = true;
    if (r->descr)
        r->descr->status = r->status;
    r->entries_left = (uint8_t)((wanted & 1) + (wanted >> 1));
    if (!r->cq || !wanted) {
        wf_gni_req_put(r);
        return;
    }
    uint32_t tid = wf_gni_pool_index(&wf_gni.req_pool, r);
    gni_cq_entry_t e = wf_gni_entry_source(r->source, r->type, tid, r->local_event, r->status);
    struct gni_cq *cq = r->cq;
    for (unsigned n = r->entries_left; n; n--)
        wf_gni_cq_push(cq, e);
}

void wf_gni_req_part_done(struct wf_gni_req *r, enum wf_gni_status status)
{
    if (status && !r->status)
        r->status = (uint8_t)status;
    if (--r->parts == 0)
        complete(r);
}

gni_return_t GNI_GetCompleted(gni_cq_handle_t cq_hndl, gni_cq_entry_t event_data,
                              gni_post_descriptor_t **post_descr)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    if (!post_descr)
        return rc;
    wf_gni_lock();
    struct gni_cq *cq = wf_gni_cq(cq_hndl);
    unsigned source = (unsigned)gni_cq_get_source(event_data);
    bool post = (source == WF_GNI_SRC_FMA || source == WF_GNI_SRC_RDMA) &&
                gni_cq_get_type(event_data) == GNI_CQ_EVENT_TYPE_POST;
    struct wf_gni_req *r = wf_gni_pool_at(&wf_gni.req_pool, (uint32_t)gni_cq_get_tid(event_data));
    if (cq && !post) {
        *post_descr = NULL;
        rc = GNI_RC_DESCRIPTOR_ERROR;
    } else if (cq && r && r->cq == cq && r->descr && r->done) {
        *post_descr = r->descr;
        // Of two events the first is the local one.
        unsigned wanted = r->cq_mode & GNI_CQMODE_DUAL_EVENTS;
        bool first = r->entries_left == 2;
        r->descr->cq_mode_complete |= (uint16_t)(first ? GNI_CQMODE_LOCAL_EVENT : wanted);
        rc = r->status ? GNI_RC_TRANSACTION_ERROR : GNI_RC_SUCCESS;
        if (--r->entries_left == 0)
            wf_gni_req_put(r);
    }
    wf_gni_unlock();
    return rc;
}
