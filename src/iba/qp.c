// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs: create, destroy, query, multicast membership.
#include "iba/iba.h"

#include <errno.h>
#include <string.h>

static void call_async(struct wf_iba_events *e, ULONG event)
{
    struct wf_iba_qp *qp = CONTAINING_RECORD(e, struct wf_iba_qp, async);
    qp->on_async(&qp->pub, qp->pub.Context, (IB_ASYNC_EVENT)event);
}

// ---- class --------------------------------------------------------------------------------------

static int destroy(struct wf_iba_object *o)
{
    return wf_qp_destroy(CONTAINING_RECORD(o, struct wf_iba_qp, obj)->qp);
}

static void flush(struct wf_iba_object *o, NTSTATUS status)
{
    wf_iba_flush_events(&CONTAINING_RECORD(o, struct wf_iba_qp, obj)->async, status);
}

static const struct wf_iba_class qp_class = {WF_IBA_QP, destroy, flush};

struct wf_iba_qp *wf_iba_qp_of(const IB_QP *pub)
{
    return (struct wf_iba_qp *)wf_iba_object_of(pub, WF_IBA_QP);
}

// ---- create -------------------------------------------------------------------------------------

struct create_op {
    struct wf_iba_op op;
    IB_QP_CREATE c;
    VOID *context;
    PFN_IB_QP_ASYNC_EVENT on_async;
};

static void fill_public(struct wf_iba_qp *qp, struct wf_iba_pd *pd, const struct create_op *a)
{
    qp->pub.pPd = &pd->pub;
    qp->pub.Context = a->context;
    qp->pub.pSendCq = a->c.pSendCq;
    qp->pub.pRecvCq = a->c.pRecvCq;
    qp->pub.pSrq = a->c.pSrq;
    qp->pub.Type = a->c.Type;
    qp->on_async = a->on_async;
    wf_iba_events_init(&qp->async, &qp->obj, a->on_async ? call_async : NULL);
}

// PD, both CQs (each counts, also when they are one) and the SRQ.
static NTSTATUS adopt_all(struct wf_iba_qp *qp, struct wf_iba_pd *pd)
{
    struct wf_iba_cq *scq = wf_iba_cq_of(qp->pub.pSendCq), *rcq = wf_iba_cq_of(qp->pub.pRecvCq);
    struct wf_iba_srq *srq = wf_iba_srq_of(qp->pub.pSrq);
    NTSTATUS status = wf_iba_adopt(&qp->obj, 0, &pd->obj);
    if (NT_SUCCESS(status))
        status = wf_iba_adopt(&qp->obj, 1, &scq->obj);
    if (NT_SUCCESS(status))
        status = wf_iba_adopt(&qp->obj, 2, &rcq->obj);
    if (NT_SUCCESS(status) && srq)
        status = wf_iba_adopt(&qp->obj, 3, &srq->obj);
    return status;
}

static NTSTATUS create_in_engine(struct wf_iba_qp *qp, struct wf_iba_pd *pd, const IB_QP_CREATE *c)
{
    struct wf_iba_srq *srq = wf_iba_srq_of(c->pSrq);
    struct wf_qp_init init = {
        .send_cq = wf_iba_cq_of(c->pSendCq)->cq,
        .recv_cq = wf_iba_cq_of(c->pRecvCq)->cq,
        .srq = srq ? srq->srq : NULL,
        .cap = {.max_send_wr = c->SqDepth,
                .max_recv_wr = c->RqDepth,
                .max_send_sge = c->SqSge,
                .max_recv_sge = c->RqSge,
                .max_inline_data = c->SqMaxInline},
        .sig_all = c->SqSignaled,
        .user = qp,
    };
    wf_iba_qp_type(c->Type, &init.type);
    int rc = wf_qp_create(pd->obj.ca->ctx, pd->pd, &init, &qp->qp);
    if (rc)
        return wf_iba_status(rc);
    qp->pub.Qpn = wf_qp_num(qp->qp);
    qp->pub.SqDepth = init.cap.max_send_wr;
    qp->pub.RqDepth = init.cap.max_recv_wr;
    qp->pub.SqSge = init.cap.max_send_sge;
    qp->pub.RqSge = init.cap.max_recv_sge;
    qp->pub.SqMaxInline = init.cap.max_inline_data;
    return STATUS_SUCCESS;
}

static NTSTATUS run_create(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct create_op *a = (struct create_op *)op;
    struct wf_iba_pd *pd = CONTAINING_RECORD(op->target, struct wf_iba_pd, obj);
    struct wf_iba_qp *qp =
        (struct wf_iba_qp *)wf_iba_object_new(&qp_class, sizeof(*qp), pd->obj.ca);
    if (!qp)
        return STATUS_INSUFFICIENT_RESOURCES;
    fill_public(qp, pd, a);
    NTSTATUS status = adopt_all(qp, pd);
    if (NT_SUCCESS(status))
        status = create_in_engine(qp, pd, &a->c);
    if (!NT_SUCCESS(status)) {
        wf_iba_object_discard(&qp->obj);
        return status;
    }
    wf_iba_add_source(&qp->obj);
    *info = (ULONG_PTR)&qp->pub;
    return STATUS_SUCCESS;
}

static bool queues_fit(const struct wf_iba_pd *pd, const IB_QP_CREATE *c)
{
    struct wf_iba_cq *scq = wf_iba_cq_of(c->pSendCq), *rcq = wf_iba_cq_of(c->pRecvCq);
    if (!scq || !rcq || scq->obj.ca != pd->obj.ca || rcq->obj.ca != pd->obj.ca)
        return false;
    if (!c->pSrq)
        return true;
    struct wf_iba_srq *srq = wf_iba_srq_of(c->pSrq);
    return srq && srq->obj.ca == pd->obj.ca && pd->obj.ca->ifc->version >= 2;
}

NTSTATUS wf_iba_create_qp(IB_PD *const pPd, IB_QP_CREATE *const pCreateQp, VOID *const Context,
                          PFN_IB_QP_ASYNC_EVENT QpAsyncEvent, CI_UDATA *const pUserData,
                          IRP *const pIrp)
{
    struct wf_iba_pd *pd = wf_iba_pd_of(pPd);
    struct create_op op = {.context = Context, .on_async = QpAsyncEvent};
    enum ibv_qp_type type;
    if (!pd || !pCreateQp || !wf_iba_qp_type(pCreateQp->Type, &type) || !queues_fit(pd, pCreateQp))
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    op.c = *pCreateQp;
    return wf_iba_start(&op.op, sizeof(op), run_create, &pd->obj, pUserData, pIrp);
}

NTSTATUS wf_iba_create_special_qp(IB_PD *const pPd, UCHAR PortNum, IB_QP_CREATE *const pCreateQp,
                                  VOID *const Context, PFN_IB_QP_ASYNC_EVENT QpAsyncEvent,
                                  IRP *const pIrp)
{
    struct wf_iba_pd *pd = wf_iba_pd_of(pPd);
    if (!pd || !pCreateQp || PortNum < 1 || PortNum > WF_IBA_PORTS ||
        (pCreateQp->Type != IbQpTypeQp0 && pCreateQp->Type != IbQpTypeQp1) ||
        !queues_fit(pd, pCreateQp))
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    NTSTATUS status = wf_iba_alive(&pd->obj);
    if (!NT_SUCCESS(status))
        return wf_iba_refuse(pIrp, status, __func__);
    if (pIrp && pIrp->RequestorMode != KernelMode)
        return wf_iba_refuse(pIrp, STATUS_ACCESS_DENIED, __func__);
    wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "QP%d belongs to weftd",
              pCreateQp->Type == IbQpTypeQp1);
    return wf_iba_refuse(pIrp, STATUS_NOT_SUPPORTED, __func__);
}

NTSTATUS wf_iba_destroy_qp(IB_QP *const pQp, CI_UDATA *const pUserData, IRP *const pIrp)
{
    struct wf_iba_qp *qp = wf_iba_qp_of(pQp);
    return wf_iba_destroy(qp ? &qp->obj : NULL, pUserData, pIrp);
}

NTSTATUS wf_iba_get_qp_async_event(IB_QP *const pQp, IRP *const pIrp)
{
    struct wf_iba_qp *qp = wf_iba_qp_of(pQp);
    if (!qp)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_wait_event(&qp->async, pIrp);
}

// ---- query --------------------------------------------------------------------------------------

struct query_op {
    struct wf_iba_op op;
    IB_QP_ATTR *out;
};

static IB_QP_STATE state_of(const struct ibv_qp_attr *a)
{
    switch (a->qp_state) {
    case IBV_QPS_INIT:
        return IbQpsInit;
    case IBV_QPS_RTR:
        return IbQpsRtr;
    case IBV_QPS_RTS:
        return IbQpsRts;
    case IBV_QPS_SQD:
        return a->sq_draining ? IbQpsSqdDraining : IbQpsSqdDrained;
    case IBV_QPS_SQE:
        return IbQpsSqErr;
    case IBV_QPS_ERR:
        return IbQpsError;
    default:
        return IbQpsReset;
    }
}

static IB_APM_STATE apm_of(enum ibv_mig_state state)
{
    if (state == IBV_MIG_REARM)
        return IbApmRearm;
    return state == IBV_MIG_ARMED ? IbApmArmed : IbApmMigrated;
}

NTSTATUS wf_iba_read_qp(struct wf_iba_qp *qp, IB_QP_ATTR *out)
{
    struct ibv_qp_attr a;
    struct wf_qp_init init;
    int rc = wf_qp_query(qp->qp, &a, &init);
    if (rc)
        return wf_iba_status(rc);
    memset(out, 0, sizeof(*out));
    out->AccessMask = wf_iba_access_back((int)a.qp_access_flags);
    out->PkeyIndex = a.pkey_index;
    out->InitDepth = a.max_rd_atomic;
    out->RespRes = a.max_dest_rd_atomic;
    out->SqSignaled = init.sig_all;
    out->State = state_of(&a);
    out->DestQpNum = a.dest_qp_num;
    out->Qkey = a.qkey;
    out->SqPsn = a.sq_psn;
    out->RqPsn = a.rq_psn;
    out->primary_port = a.port_num;
    out->alternate_port = a.alt_port_num;
    wf_iba_ah_attr_back(&a.ah_attr, &out->PrimaryAh);
    wf_iba_ah_attr_back(&a.alt_ah_attr, &out->AlternateAh);
    out->ApmState = apm_of(a.path_mig_state);
    return STATUS_SUCCESS;
}

static NTSTATUS run_query(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct wf_iba_qp *qp = CONTAINING_RECORD(op->target, struct wf_iba_qp, obj);
    return wf_iba_read_qp(qp, ((struct query_op *)op)->out);
}

NTSTATUS wf_iba_query_qp(IB_QP *const pQp, IB_QP_ATTR *const pAttr, CI_UDATA *const pUserData,
                         IRP *const pIrp)
{
    struct wf_iba_qp *qp = wf_iba_qp_of(pQp);
    struct query_op op = {.out = pAttr};
    if (!qp || !pAttr)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_start(&op.op, sizeof(op), run_query, &qp->obj, pUserData, pIrp);
}

// ---- multicast (version 2) ----------------------------------------------------------------------

struct mcast_op {
    struct wf_iba_op op;
    union ibv_gid gid;
    int (*change)(struct wf_qp *qp, const union ibv_gid *mgid);
};

static NTSTATUS run_mcast(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct mcast_op *a = (struct mcast_op *)op;
    struct wf_iba_qp *qp = CONTAINING_RECORD(op->target, struct wf_iba_qp, obj);
    NTSTATUS status = wf_iba_status(a->change(qp->qp, &a->gid));
    wf_iba_retry_zombies();
    return status;
}

static NTSTATUS mcast(IB_QP *pub, const IB_GID *gid,
                      int (*change)(struct wf_qp *, const union ibv_gid *), PIRP irp)
{
    struct wf_iba_qp *qp = wf_iba_qp_of(pub);
    struct mcast_op op = {.change = change};
    if (!qp || !gid)
        return wf_iba_refuse(irp, STATUS_INVALID_PARAMETER, __func__);
    if (qp->pub.Type != IbQpTypeUnreliableDgrm)
        return wf_iba_refuse(irp, STATUS_INVALID_OPERATION, __func__);
    memcpy(&op.gid, gid, sizeof(op.gid));
    return wf_iba_start(&op.op, sizeof(op), run_mcast, &qp->obj, NULL, irp);
}

NTSTATUS wf_iba_attach_mcast(IB_QP *const pQp, const IB_GID *const pMGid, IRP *const pIrp)
{
    return mcast(pQp, pMGid, wf_qp_attach_mcast, pIrp);
}

NTSTATUS wf_iba_detach_mcast(IB_QP *const pQp, const IB_GID *const pMGid, IRP *const pIrp)
{
    return mcast(pQp, pMGid, wf_qp_detach_mcast, pIrp);
}
