// SPDX-License-Identifier: BSD-2-Clause
// Completion queues.
#include "iba/iba.h"

// ---- events -------------------------------------------------------------------------------------

static void on_comp(void *user)
{
    struct wf_iba_cq *cq = user;
    wf_iba_raise(&cq->comp, 0);
}

static void call_comp(struct wf_iba_events *e, ULONG event)
{
    struct wf_iba_cq *cq = CONTAINING_RECORD(e, struct wf_iba_cq, comp);
    cq->on_comp(&cq->pub, cq->pub.Context);
}

static void call_async(struct wf_iba_events *e, ULONG event)
{
    struct wf_iba_cq *cq = CONTAINING_RECORD(e, struct wf_iba_cq, async);
    cq->on_async(&cq->pub, cq->pub.Context, (IB_ASYNC_EVENT)event);
}

// ---- class --------------------------------------------------------------------------------------

static int destroy(struct wf_iba_object *o)
{
    struct wf_iba_cq *cq = CONTAINING_RECORD(o, struct wf_iba_cq, obj);
    return wf_cq_destroy(cq->cq);
}

static void flush(struct wf_iba_object *o, NTSTATUS status)
{
    struct wf_iba_cq *cq = CONTAINING_RECORD(o, struct wf_iba_cq, obj);
    wf_iba_flush_events(&cq->comp, status);
    wf_iba_flush_events(&cq->async, status);
}

static const struct wf_iba_class cq_class = {WF_IBA_CQ, destroy, flush};

struct wf_iba_cq *wf_iba_cq_of(const IB_CQ *pub)
{
    return (struct wf_iba_cq *)wf_iba_object_of(pub, WF_IBA_CQ);
}

// ---- create, destroy, resize --------------------------------------------------------------------

struct create_op {
    struct wf_iba_op op;
    ULONG cqes;
    VOID *context;
    PFN_IB_CQ_COMP_EVENT on_comp;
    PFN_IB_CQ_ASYNC_EVENT on_async;
};

static void init(struct wf_iba_cq *cq, struct wf_iba_ca *ca, const struct create_op *a)
{
    cq->obj.nref = &cq->pub.nRef;
    cq->pub.pCa = &ca->pub;
    cq->pub.Context = a->context;
    cq->on_comp = a->on_comp;
    cq->on_async = a->on_async;
    wf_iba_events_init(&cq->comp, &cq->obj, a->on_comp ? call_comp : NULL);
    cq->comp.latch = true;
    wf_iba_events_init(&cq->async, &cq->obj, a->on_async ? call_async : NULL);
}

static NTSTATUS run_create(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct create_op *a = (struct create_op *)op;
    struct wf_iba_ca *ca = CONTAINING_RECORD(op->target, struct wf_iba_ca, obj);
    struct wf_iba_cq *cq = (struct wf_iba_cq *)wf_iba_object_new(&cq_class, sizeof(*cq), ca);
    if (!cq)
        return STATUS_INSUFFICIENT_RESOURCES;
    init(cq, ca, a);
    struct wf_cq_init ci = {.cqe = a->cqes, .user = cq, .on_comp = on_comp};
    NTSTATUS status = wf_iba_adopt(&cq->obj, 0, &ca->obj);
    if (NT_SUCCESS(status))
        status = wf_iba_status(wf_cq_create(ca->ctx, &ci, &cq->cq));
    if (!NT_SUCCESS(status)) {
        wf_iba_object_discard(&cq->obj);
        return status;
    }
    cq->pub.NumCqes = wf_cq_size(cq->cq);
    wf_iba_add_source(&cq->obj);
    *info = (ULONG_PTR)&cq->pub;
    return STATUS_SUCCESS;
}

NTSTATUS wf_iba_create_cq(IB_CA *const pCa, ULONG const NumCqes, VOID *const Context,
                          PFN_IB_CQ_COMP_EVENT CqCompEvent, PFN_IB_CQ_ASYNC_EVENT CqAsyncEvent,
                          CI_UDATA *const pUserData, IRP *const pIrp)
{
    struct wf_iba_ca *ca = wf_iba_ca_of(pCa);
    struct create_op op = {
        .cqes = NumCqes, .context = Context, .on_comp = CqCompEvent, .on_async = CqAsyncEvent};
    if (!ca || !NumCqes)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_start(&op.op, sizeof(op), run_create, &ca->obj, pUserData, pIrp);
}

NTSTATUS wf_iba_destroy_cq(IB_CQ *const pCq, CI_UDATA *const pUserData, IRP *const pIrp)
{
    struct wf_iba_cq *cq = wf_iba_cq_of(pCq);
    return wf_iba_destroy(cq ? &cq->obj : NULL, pUserData, pIrp);
}

static NTSTATUS run_resize(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct create_op *a = (struct create_op *)op;
    struct wf_iba_cq *cq = CONTAINING_RECORD(op->target, struct wf_iba_cq, obj);
    int rc = wf_cq_resize(cq->cq, a->cqes);
    if (rc == 0)
        cq->pub.NumCqes = wf_cq_size(cq->cq);
    return wf_iba_status(rc);
}

NTSTATUS wf_iba_resize_cq(IB_CQ *const pCq, ULONG const NumCqes, CI_UDATA *const pUserData,
                          IRP *const pIrp)
{
    struct wf_iba_cq *cq = wf_iba_cq_of(pCq);
    struct create_op op = {.cqes = NumCqes};
    if (!cq || !NumCqes)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_start(&op.op, sizeof(op), run_resize, &cq->obj, pUserData, pIrp);
}

// ---- arming -------------------------------------------------------------------------------------

static NTSTATUS arm(struct wf_iba_cq *cq, ULONG count, bool solicited)
{
    NTSTATUS status = wf_iba_alive(&cq->obj);
    int rc = 0;
    if (!NT_SUCCESS(status))
        return status;
    if (count > 1 || __atomic_load_n(&cq->counting, __ATOMIC_RELAXED)) {
        rc = wf_cq_moderate(cq->cq, (uint16_t)(count > 1 ? count : 0), 0);
        __atomic_store_n(&cq->counting, count > 1, __ATOMIC_RELAXED);
    }
    return wf_iba_status(rc ? rc : wf_cq_arm(cq->cq, solicited));
}

NTSTATUS wf_iba_rearm_cq(IB_CQ *const pCq, const BOOLEAN Solicited)
{
    struct wf_iba_cq *cq = wf_iba_cq_of(pCq);
    return cq ? arm(cq, 1, Solicited) : wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
}

NTSTATUS wf_iba_rearm_n_cq(IB_CQ *const pCq, const ULONG NumCqes)
{
    struct wf_iba_cq *cq = wf_iba_cq_of(pCq);
    if (!cq || NumCqes < 1 || NumCqes > cq->pub.NumCqes)
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    if (NumCqes > UINT16_MAX)
        return wf_iba_bad(STATUS_NOT_SUPPORTED, __func__);
    return arm(cq, NumCqes, false);
}

// ---- polling ------------------------------------------------------------------------------------

// A dead device keeps the completions it had.
static NTSTATUS nothing_left(const struct wf_iba_cq *cq)
{
    NTSTATUS status = wf_iba_alive(&cq->obj);
    return NT_SUCCESS(status) ? STATUS_NO_MORE_ENTRIES : status;
}

NTSTATUS wf_iba_poll_cq(IB_CQ *const pCq, LONG *const pNumWc, IB_WC *Wc[])
{
    struct wf_iba_cq *cq = wf_iba_cq_of(pCq);
    struct wf_wc wc;
    if (!pNumWc)
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    LONG want = *pNumWc;
    *pNumWc = 0;
    if (!cq || !Wc || want < 1)
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    int rc = 0;
    LONG n = 0;
    while (n < want) {
        if (!Wc[n])
            return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
        rc = wf_cq_poll_ex(cq->cq, &wc);
        if (rc != 1)
            break;
        wf_iba_wc(&wc, Wc[n]);
        *pNumWc = ++n;
    }
    if (n)
        wf_iba_retry_zombies();
    if (rc < 0)
        return wf_iba_status(rc);
    return n ? STATUS_SUCCESS : nothing_left(cq);
}

NTSTATUS wf_iba_peek_cq(IB_CQ *const pCq, LONG *const pNumWc)
{
    struct wf_iba_cq *cq = wf_iba_cq_of(pCq);
    if (!cq || !pNumWc)
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    *pNumWc = (LONG)wf_cq_pending(cq->cq);
    return STATUS_SUCCESS;
}

// ---- event verbs --------------------------------------------------------------------------------

NTSTATUS wf_iba_get_cq_comp_event(IB_CQ *const pCq, IRP *const pIrp)
{
    struct wf_iba_cq *cq = wf_iba_cq_of(pCq);
    if (!cq)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_wait_event(&cq->comp, pIrp);
}

NTSTATUS wf_iba_get_cq_async_event(IB_CQ *const pCq, IRP *const pIrp)
{
    struct wf_iba_cq *cq = wf_iba_cq_of(pCq);
    if (!cq)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_wait_event(&cq->async, pIrp);
}
