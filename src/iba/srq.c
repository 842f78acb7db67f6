// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues (version 2).
#include "iba/iba.h"

#include <errno.h>
#include <string.h>

static void call_async(struct wf_iba_events *e, ULONG event)
{
    struct wf_iba_srq *srq = CONTAINING_RECORD(e, struct wf_iba_srq, async);
    srq->on_async(&srq->pub, srq->pub.Context, (IB_SRQ_EVENT)event);
}

// ---- class --------------------------------------------------------------------------------------

static int destroy(struct wf_iba_object *o)
{
    return wf_srq_destroy(CONTAINING_RECORD(o, struct wf_iba_srq, obj)->srq);
}

static void flush(struct wf_iba_object *o, NTSTATUS status)
{
    wf_iba_flush_events(&CONTAINING_RECORD(o, struct wf_iba_srq, obj)->async, status);
}

static const struct wf_iba_class srq_class = {WF_IBA_SRQ, destroy, flush};

struct wf_iba_srq *wf_iba_srq_of(const IB_SRQ *pub)
{
    return (struct wf_iba_srq *)wf_iba_object_of(pub, WF_IBA_SRQ);
}

// ---- create, destroy ----------------------------------------------------------------------------

struct create_op {
    struct wf_iba_op op;
    IB_SRQ_CREATE c;
    VOID *context;
    PFN_IB_SRQ_ASYNC_EVENT on_async;
};

static NTSTATUS create_in_engine(struct wf_iba_srq *srq, struct wf_iba_pd *pd,
                                 const IB_SRQ_CREATE *c)
{
    struct wf_srq_init init = {.type = IBV_SRQT_BASIC,
                               .max_wr = c->Depth,
                               .max_sge = c->RqSge,
                               .limit = c->Limit,
                               .user = srq};
    int rc = wf_srq_create(pd->pd, &init, &srq->srq);
    srq->depth = init.max_wr;
    srq->sge = init.max_sge;
    return wf_iba_status(rc);
}

static NTSTATUS run_create(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct create_op *a = (struct create_op *)op;
    struct wf_iba_pd *pd = CONTAINING_RECORD(op->target, struct wf_iba_pd, obj);
    struct wf_iba_srq *srq =
        (struct wf_iba_srq *)wf_iba_object_new(&srq_class, sizeof(*srq), pd->obj.ca);
    if (!srq)
        return STATUS_INSUFFICIENT_RESOURCES;
    srq->pub.pPd = &pd->pub;
    srq->pub.Context = a->context;
    srq->on_async = a->on_async;
    wf_iba_events_init(&srq->async, &srq->obj, a->on_async ? call_async : NULL);
    NTSTATUS status = wf_iba_adopt(&srq->obj, 0, &pd->obj);
    if (NT_SUCCESS(status))
        status = create_in_engine(srq, pd, &a->c);
    if (!NT_SUCCESS(status)) {
        wf_iba_object_discard(&srq->obj);
        return status;
    }
    wf_iba_add_source(&srq->obj);
    *info = (ULONG_PTR)&srq->pub;
    return STATUS_SUCCESS;
}

NTSTATUS wf_iba_create_srq(IB_PD *const pPd, const IB_SRQ_CREATE *const pCreate,
                           VOID *const Context, PFN_IB_SRQ_ASYNC_EVENT SrqAsyncEvent,
                           CI_UDATA *const pUserData, IRP *const pIrp)
{
    struct wf_iba_pd *pd = wf_iba_pd_of(pPd);
    struct create_op op = {.context = Context, .on_async = SrqAsyncEvent};
    if (!pd || pd->obj.ca->ifc->version < 2 || !pCreate || !pCreate->Depth ||
        pCreate->Limit > pCreate->Depth)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    op.c = *pCreate;
    return wf_iba_start(&op.op, sizeof(op), run_create, &pd->obj, pUserData, pIrp);
}

NTSTATUS wf_iba_destroy_srq(IB_SRQ *const pSrq, CI_UDATA *const pUserData, IRP *const pIrp)
{
    struct wf_iba_srq *srq = wf_iba_srq_of(pSrq);
    return wf_iba_destroy(srq ? &srq->obj : NULL, pUserData, pIrp);
}

NTSTATUS wf_iba_get_srq_async_event(IB_SRQ *const pSrq, IRP *const pIrp)
{
    struct wf_iba_srq *srq = wf_iba_srq_of(pSrq);
    if (!srq)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_wait_event(&srq->async, pIrp);
}

// ---- modify, query ------------------------------------------------------------------------------

struct attr_op {
    struct wf_iba_op op;
    ULONG flags;
    IB_SRQ_ATTR in;
    IB_SRQ_ATTR *out;
};

static NTSTATUS run_modify(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct attr_op *a = (struct attr_op *)op;
    struct wf_iba_srq *srq = CONTAINING_RECORD(op->target, struct wf_iba_srq, obj);
    struct ibv_srq_attr attr = {.max_wr = a->in.Depth, .srq_limit = a->in.Limit};
    int mask = (a->flags & IB_MOD_SRQ_DEPTH ? IBV_SRQ_MAX_WR : 0) |
               (a->flags & IB_MOD_SRQ_LIMIT ? IBV_SRQ_LIMIT : 0);
    return wf_iba_status(wf_srq_modify(srq->srq, &attr, mask));
}

NTSTATUS wf_iba_modify_srq(IB_SRQ *const pSrq, const ULONG Flags, const IB_SRQ_ATTR *const pAttr,
                           CI_UDATA *const pUserData, IRP *const pIrp)
{
    struct wf_iba_srq *srq = wf_iba_srq_of(pSrq);
    struct attr_op op = {.flags = Flags};
    if (!srq || !pAttr || Flags & ~(ULONG)(IB_MOD_SRQ_DEPTH | IB_MOD_SRQ_LIMIT))
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    op.in = *pAttr;
    return wf_iba_start(&op.op, sizeof(op), run_modify, &srq->obj, pUserData, pIrp);
}

static NTSTATUS run_query(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct attr_op *a = (struct attr_op *)op;
    struct wf_iba_srq *srq = CONTAINING_RECORD(op->target, struct wf_iba_srq, obj);
    struct ibv_srq_attr attr;
    int rc = wf_srq_query(srq->srq, &attr);
    if (rc == 0)
        *a->out = (IB_SRQ_ATTR){attr.max_wr, attr.max_sge, attr.srq_limit};
    return wf_iba_status(rc);
}

NTSTATUS wf_iba_query_srq(IB_SRQ *const pSrq, IB_SRQ_ATTR *const pAttr, CI_UDATA *const pUserData,
                          IRP *const pIrp)
{
    struct wf_iba_srq *srq = wf_iba_srq_of(pSrq);
    struct attr_op op = {.out = pAttr};
    if (!srq || !pAttr)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_start(&op.op, sizeof(op), run_query, &srq->obj, pUserData, pIrp);
}
