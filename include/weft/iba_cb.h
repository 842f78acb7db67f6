// SPDX-License-Identifier: BSD-2-Clause
// The async verbs with plain callbacks instead of IRPs: a thin layer over the same table. Each
// function is the verb of its name, without pUserData and with (Done, DoneContext) where the IRP
// was.
//
// Done is called exactly once for each call, whatever the function returns: with the final status
// and Information, maybe before the function returns, maybe from the engine's thread at
// DISPATCH_LEVEL. The function returns that status, or STATUS_PENDING. Without memory for the call
// it is STATUS_INSUFFICIENT_RESOURCES, told to Done as well. Levels, threads and statuses are the
// verb's, see iba/ibverbs.h; synchronous verbs are called through the table as they are.
#ifndef WEFT_IBA_CB_H
#define WEFT_IBA_CB_H

#include "weft/iba.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef VOID (*WEFT_IBA_DONE)(PVOID DoneContext, NTSTATUS Status, ULONG_PTR Information);

// ---- verbs --------------------------------------------------------------------------------------
WEFT_API NTSTATUS weft_cb_open_ca(const IB_VERBS_INTERFACE_STANDARD *Verbs, VOID *Context,
                                  PFN_IB_CA_ASYNC_EVENT CaAsyncEvent, WEFT_IBA_DONE Done,
                                  PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_close_ca(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca,
                                   WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_query_ca(const IB_VERBS_INTERFACE_STANDARD *Verbs, SIZE_T AttrSize,
                                   IB_CA_ATTR *Attr, WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_query_port(const IB_VERBS_INTERFACE_STANDARD *Verbs, UCHAR PortNumber,
                                     SIZE_T AttrSize, IB_PORT_ATTR *Attr, WEFT_IBA_DONE Done,
                                     PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_modify_ca(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca,
                                    ULONG Flags, const IB_MODIFY_CA *Modify, WEFT_IBA_DONE Done,
                                    PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_modify_port(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca,
                                      UCHAR PortNumber, ULONG Flags, const IB_MODIFY_PORT *Modify,
                                      WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_create_cq(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca,
                                    ULONG NumCqes, VOID *Context, PFN_IB_CQ_COMP_EVENT CqCompEvent,
                                    PFN_IB_CQ_ASYNC_EVENT CqAsyncEvent, WEFT_IBA_DONE Done,
                                    PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_destroy_cq(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CQ *Cq,
                                     WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_resize_cq(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CQ *Cq,
                                    ULONG NumCqes, WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_create_pd(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca,
                                    WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_destroy_pd(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd,
                                     WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_create_qp(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd,
                                    IB_QP_CREATE *Create, VOID *Context,
                                    PFN_IB_QP_ASYNC_EVENT QpAsyncEvent, WEFT_IBA_DONE Done,
                                    PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_create_special_qp(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd,
                                            UCHAR PortNum, IB_QP_CREATE *Create, VOID *Context,
                                            PFN_IB_QP_ASYNC_EVENT QpAsyncEvent, WEFT_IBA_DONE Done,
                                            PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_destroy_qp(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_QP *Qp,
                                     WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_modify_qp(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_QP *Qp,
                                    IB_QP_MODIFY *Modify, WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_query_qp(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_QP *Qp,
                                   IB_QP_ATTR *Attr, WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_reg_mdl(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd, MDL *MdlList,
                                  ULONG AccessMask, WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_reg_scatter_gather(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd,
                                             SCATTER_GATHER_LIST *ScatterGather, ULONG AccessMask,
                                             WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_get_dma_mr(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd,
                                     ULONG AccessMask, WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_dereg_mr(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_MR *Mr,
                                   WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_create_mw(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_PD *Pd,
                                    WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_destroy_mw(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_MW *Mw,
                                     WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_create_srq(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_PD *Pd,
                                     const IB_SRQ_CREATE *Create, VOID *Context,
                                     PFN_IB_SRQ_ASYNC_EVENT SrqAsyncEvent, WEFT_IBA_DONE Done,
                                     PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_destroy_srq(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_SRQ *Srq,
                                      WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_modify_srq(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_SRQ *Srq,
                                     ULONG Flags, const IB_SRQ_ATTR *Attr, WEFT_IBA_DONE Done,
                                     PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_query_srq(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_SRQ *Srq,
                                    IB_SRQ_ATTR *Attr, WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_attach_mcast(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_QP *Qp,
                                       const IB_GID *MGid, WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_detach_mcast(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_QP *Qp,
                                       const IB_GID *MGid, WEFT_IBA_DONE Done, PVOID DoneContext);

// ---- waiting for events -------------------------------------------------------------------------

// A wait for one event. The caller owns the memory, and it must live until Done was called.
typedef struct _WEFT_IBA_WAIT {
    WEFT_IBA_DONE Done;
    PVOID DoneContext;
    IRP Irp;
    IO_STACK_LOCATION Location[2];
} WEFT_IBA_WAIT;

// Ends the wait with STATUS_CANCELLED unless its event came first. TRUE: it did. Harmless once the
// wait is over, as long as the memory is there.
WEFT_API BOOLEAN weft_cb_cancel(WEFT_IBA_WAIT *Wait);

WEFT_API NTSTATUS weft_cb_wait_ca_fatal_event(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca,
                                              WEFT_IBA_WAIT *Wait, WEFT_IBA_DONE Done,
                                              PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_wait_ca_port_event(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CA *Ca,
                                             UCHAR PortNumber, WEFT_IBA_WAIT *Wait,
                                             WEFT_IBA_DONE Done, PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_wait_cq_comp_event(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CQ *Cq,
                                             WEFT_IBA_WAIT *Wait, WEFT_IBA_DONE Done,
                                             PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_wait_cq_async_event(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CQ *Cq,
                                              WEFT_IBA_WAIT *Wait, WEFT_IBA_DONE Done,
                                              PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_wait_qp_async_event(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_QP *Qp,
                                              WEFT_IBA_WAIT *Wait, WEFT_IBA_DONE Done,
                                              PVOID DoneContext);
WEFT_API NTSTATUS weft_cb_wait_srq_async_event(const WEFT_IB_VERBS_INTERFACE_2 *Verbs, IB_SRQ *Srq,
                                               WEFT_IBA_WAIT *Wait, WEFT_IBA_DONE Done,
                                               PVOID DoneContext);

#ifdef __cplusplus
}
#endif

#endif
