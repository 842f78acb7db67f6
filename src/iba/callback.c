// SPDX-License-Identifier: BSD-2-Clause
// Callbacks over IRPs. A call is an IRP of one stack location with the callback behind it.
#include "weft/iba_cb.h"

#include <stdlib.h>

struct call {
    WEFT_IBA_DONE done;
    PVOID context;
    IRP irp;
    IO_STACK_LOCATION location[2]; // right behind the IRP; one more than IoInitializeIrp() is told
};
_Static_assert(offsetof(struct call, location) == offsetof(struct call, irp) + sizeof(IRP), "IRP");

static NTSTATUS completed(PDEVICE_OBJECT device, PIRP irp, PVOID context)
{
    struct call *call = context;
    WEFT_IBA_DONE done = call->done;
    PVOID done_context = call->context;
    NTSTATUS status = irp->IoStatus.Status;
    ULONG_PTR info = irp->IoStatus.Information;
    free(call);
    done(done_context, status, info);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static void prepare(PIRP irp, PIO_COMPLETION_ROUTINE routine, PVOID context)
{
    IoInitializeIrp(irp, IoSizeOfIrp(1), 1);
    IoGetNextIrpStackLocation(irp)->MajorFunction = IRP_MJ_INTERNAL_DEVICE_CONTROL;
    IoSetCompletionRoutine(irp, routine, context, TRUE, TRUE, TRUE);
}

// NULL when there is no memory; `done` knows then.
static PIRP call(WEFT_IBA_DONE done, PVOID context)
{
    struct call *call = malloc(sizeof(*call));
    if (!call) {
        done(context, STATUS_INSUFFICIENT_RESOURCES, 0);
        return NULL;
    }
    call->done = done;
    call->context = context;
    prepare(&call->irp, completed, call);
    return &call->irp;
}

// ---- verbs --------------------------------------------------------------------------------------

NTSTATUS weft_cb_open_ca(const IB_VERBS_INTERFACE_STANDARD *Verbs, VOID *Context,
                         PFN_IB_CA_ASYNC_EVENT CaAsyncEvent, WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->OpenCa(Verbs->Context, Context, CaAsyncEvent, NULL, irp)
               : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_close_ca(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca, WEFT_IBA_DONE Done,
                          PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->CloseCa(Ca, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_query_ca(const IB_VERBS_INTERFACE_STANDARD *Verbs, SIZE_T AttrSize,
                          IB_CA_ATTR *Attr, WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->QueryCa(Verbs->Context, AttrSize, Attr, irp)
               : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_query_port(const IB_VERBS_INTERFACE_STANDARD *Verbs, UCHAR PortNumber,
                            SIZE_T AttrSize, IB_PORT_ATTR *Attr, WEFT_IBA_DONE Done,
                            PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->QueryPort(Verbs->Context, PortNumber, AttrSize, Attr, irp)
               : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_modify_ca(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca, ULONG Flags,
                           const IB_MODIFY_CA *Modify, WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->ModifyCa(Ca, Flags, Modify, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_modify_port(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca, UCHAR PortNumber,
                             ULONG Flags, const IB_MODIFY_PORT *Modify, WEFT_IBA_DONE Done,
                             PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->ModifyPort(Ca, PortNumber, Flags, Modify, irp)
               : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_create_cq(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca, ULONG NumCqes,
                           VOID *Context, PFN_IB_CQ_COMP_EVENT CqCompEvent,
                           PFN_IB_CQ_ASYNC_EVENT CqAsyncEvent, WEFT_IBA_DONE Done,
                           PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->CreateCq(Ca, NumCqes, Context, CqCompEvent, CqAsyncEvent, NULL, irp)
               : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_destroy_cq(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CQ *Cq, WEFT_IBA_DONE Done,
                            PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->DestroyCq(Cq, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_resize_cq(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CQ *Cq, ULONG NumCqes,
                           WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->ResizeCq(Cq, NumCqes, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_create_pd(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca, WEFT_IBA_DONE Done,
                           PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->CreatePd(Ca, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_destroy_pd(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd, WEFT_IBA_DONE Done,
                            PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->DestroyPd(Pd, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_create_qp(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd,
                           IB_QP_CREATE *Create, VOID *Context, PFN_IB_QP_ASYNC_EVENT QpAsyncEvent,
                           WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->CreateQp(Pd, Create, Context, QpAsyncEvent, NULL, irp)
               : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_create_special_qp(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd,
                                   UCHAR PortNum, IB_QP_CREATE *Create, VOID *Context,
                                   PFN_IB_QP_ASYNC_EVENT QpAsyncEvent, WEFT_IBA_DONE Done,
                                   PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->CreateSpecialQp(Pd, PortNum, Create, Context, QpAsyncEvent, irp)
               : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_destroy_qp(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_QP *Qp, WEFT_IBA_DONE Done,
                            PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->DestroyQp(Qp, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_modify_qp(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_QP *Qp,
                           IB_QP_MODIFY *Modify, WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->ModifyQp(Qp, Modify, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_query_qp(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_QP *Qp, IB_QP_ATTR *Attr,
                          WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->QueryQp(Qp, Attr, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_reg_mdl(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd, MDL *MdlList,
                         ULONG AccessMask, WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->RegMdl(Pd, MdlList, AccessMask, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_reg_scatter_gather(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd,
                                    SCATTER_GATHER_LIST *ScatterGather, ULONG AccessMask,
                                    WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->RegScatterGather(Pd, ScatterGather, AccessMask, irp)
               : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_get_dma_mr(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd, ULONG AccessMask,
                            WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->GetDmaMr(Pd, AccessMask, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_dereg_mr(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_MR *Mr, WEFT_IBA_DONE Done,
                          PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->DeregMr(Mr, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_create_mw(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd, WEFT_IBA_DONE Done,
                           PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->CreateMw(Pd, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_destroy_mw(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_MW *Mw, WEFT_IBA_DONE Done,
                            PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->DestroyMw(Mw, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_create_srq(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_PD *Pd,
                            const IB_SRQ_CREATE *Create, VOID *Context,
                            PFN_IB_SRQ_ASYNC_EVENT SrqAsyncEvent, WEFT_IBA_DONE Done,
                            PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->CreateSrq(Pd, Create, Context, SrqAsyncEvent, NULL, irp)
               : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_destroy_srq(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_SRQ *Srq,
                             WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->DestroySrq(Srq, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_modify_srq(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_SRQ *Srq, ULONG Flags,
                            const IB_SRQ_ATTR *Attr, WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->ModifySrq(Srq, Flags, Attr, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_query_srq(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_SRQ *Srq, IB_SRQ_ATTR *Attr,
                           WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->QuerySrq(Srq, Attr, NULL, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_attach_mcast(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_QP *Qp, const IB_GID *MGid,
                              WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->AttachMcast(Qp, MGid, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS weft_cb_detach_mcast(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_QP *Qp, const IB_GID *MGid,
                              WEFT_IBA_DONE Done, PVOID DoneContext)
{
    PIRP irp = call(Done, DoneContext);
    return irp ? Verbs->DetachMcast(Qp, MGid, irp) : STATUS_INSUFFICIENT_RESOURCES;
}

// ---- waiting for events -------------------------------------------------------------------------

static NTSTATUS waited(PDEVICE_OBJECT device, PIRP irp, PVOID context)
{
    WEFT_IBA_WAIT *wait = context;
    wait->Done(wait->DoneContext, irp->IoStatus.Status, irp->IoStatus.Information);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

static PIRP wait_for(WEFT_IBA_WAIT *wait, WEFT_IBA_DONE done, PVOID context)
{
    wait->Done = done;
    wait->DoneContext = context;
    prepare(&wait->Irp, waited, wait);
    return &wait->Irp;
}

BOOLEAN weft_cb_cancel(WEFT_IBA_WAIT *Wait)
{
    return IoCancelIrp(&Wait->Irp);
}

NTSTATUS weft_cb_wait_ca_fatal_event(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca,
                                     WEFT_IBA_WAIT *Wait, WEFT_IBA_DONE Done, PVOID DoneContext)
{
    return Verbs->GetCaFatalEvent(Ca, wait_for(Wait, Done, DoneContext));
}

NTSTATUS weft_cb_wait_ca_port_event(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca,
                                    UCHAR PortNumber, WEFT_IBA_WAIT *Wait, WEFT_IBA_DONE Done,
                                    PVOID DoneContext)
{
    return Verbs->GetCaPortEvent(Ca, PortNumber, wait_for(Wait, Done, DoneContext));
}

NTSTATUS weft_cb_wait_cq_comp_event(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CQ *Cq,
                                    WEFT_IBA_WAIT *Wait, WEFT_IBA_DONE Done, PVOID DoneContext)
{
    return Verbs->GetCqCompEvent(Cq, wait_for(Wait, Done, DoneContext));
}

NTSTATUS weft_cb_wait_cq_async_event(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CQ *Cq,
                                     WEFT_IBA_WAIT *Wait, WEFT_IBA_DONE Done, PVOID DoneContext)
{
    return Verbs->GetCqAsyncEvent(Cq, wait_for(Wait, Done, DoneContext));
}

NTSTATUS weft_cb_wait_qp_async_event(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_QP *Qp,
                                     WEFT_IBA_WAIT *Wait, WEFT_IBA_DONE Done, PVOID DoneContext)
{
    return Verbs->GetQpAsyncEvent(Qp, wait_for(Wait, Done, DoneContext));
}

NTSTATUS weft_cb_wait_srq_async_event(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_SRQ *Srq,
                                      WEFT_IBA_WAIT *Wait, WEFT_IBA_DONE Done, PVOID DoneContext)
{
    return Verbs->GetSrqAsyncEvent(Srq, wait_for(Wait, Done, DoneContext));
}
