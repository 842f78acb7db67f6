// SPDX-License-Identifier: BSD-2-Clause
// How a user-space client reaches the async verbs of iba/ibverbs.h, and what Weft adds to them: the
// version 2 table with shared receive queues and multicast, helpers for the two places where the
// RFC wants arrays of pointers, and knobs.
#ifndef WEFT_IBA_H
#define WEFT_IBA_H

#include "iba/ibverbs.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- version 2 ----------------------------------------------------------------------------------

typedef struct _IB_SRQ_CREATE {
    ULONG Depth; // receives it holds; at least 1
    ULONG RqSge; // SGEs of a receive
    ULONG Limit; // 0, or raise the limit event when fewer receives than this are left
} IB_SRQ_CREATE;

// IB_SRQ_ATTR.Depth and RqSge are what was given.
typedef struct _IB_SRQ_ATTR {
    ULONG Depth;
    ULONG RqSge;
    ULONG Limit; // 0: not armed, or has fired
} IB_SRQ_ATTR;

enum IB_SRQ_MOD_FLAGS { IB_MOD_SRQ_DEPTH = (1 << 0), IB_MOD_SRQ_LIMIT = (1 << 1) };

// Events of an SRQ. The numbers follow IbAeUnknown, which ends the RFC's list.
typedef enum _IB_SRQ_EVENT { IbSrqLimitReached = 25, IbSrqError = 26 } IB_SRQ_EVENT;
// A queue pair with an SRQ reached the error state and takes no more receives from it; delivered as
// an event of the QP to clients of version 2, and as IbAeUnknown to others.
#define IbAeQpLastWqe ((IB_ASYNC_EVENT)27)

typedef VOID (*PFN_IB_SRQ_ASYNC_EVENT)(IN IB_SRQ *pSrq, IN VOID *SrqContext, IN IB_SRQ_EVENT Event);

// Information: the IB_SRQ*.
typedef NTSTATUS (*PCREATE_SRQ)(IN IB_PD *const pPd, IN const IB_SRQ_CREATE *const pCreate,
                                IN VOID *const Context,
                                IN PFN_IB_SRQ_ASYNC_EVENT SrqAsyncEvent OPTIONAL,
                                IN OUT CI_UDATA *const pUserData, IN IRP *const pIrp);
// Cannot fail; pending until no queue pair uses it.
typedef NTSTATUS (*PDESTROY_SRQ)(IN IB_SRQ *const pSrq, IN OUT CI_UDATA *const pUserData,
                                 IN IRP *const pIrp);
// Flags: IB_SRQ_MOD_FLAGS. STATUS_INVALID_PARAMETER for a depth below what is posted or a limit
// above the depth.
typedef NTSTATUS (*PMODIFY_SRQ)(IN IB_SRQ *const pSrq, IN const ULONG Flags,
                                IN const IB_SRQ_ATTR *const pAttr, IN OUT CI_UDATA *const pUserData,
                                IN IRP *const pIrp);
typedef NTSTATUS (*PQUERY_SRQ)(IN IB_SRQ *const pSrq, OUT IB_SRQ_ATTR *const pAttr,
                               IN OUT CI_UDATA *const pUserData, IN IRP *const pIrp);
// Information: the IB_SRQ_EVENT. Several may wait. Cancellable.
typedef NTSTATUS (*PGET_SRQ_ASYNC_EVENT)(IN IB_SRQ *const pSrq, IN IRP *const pIrp);

// Attach a UD queue pair to a multicast group, or detach it. STATUS_INVALID_OPERATION on other
// types, STATUS_INVALID_PARAMETER for a GID that is no multicast GID, or to detach what is not
// attached. Attaching twice counts once.
typedef NTSTATUS (*PATTACH_MCAST)(IN IB_QP *const pQp, IN const IB_GID *const pMGid,
                                  IN IRP *const pIrp);
typedef NTSTATUS (*PDETACH_MCAST)(IN IB_QP *const pQp, IN const IB_GID *const pMGid,
                                  IN IRP *const pIrp);

#define WEFT_IB_VERBS_INTERFACE_VERSION_2 (2)

// Version 1 with more verbs behind it. CAs opened through it accept IB_QP_CREATE.pSrq and report
// their SRQ and multicast limits, which are 0 through version 1 (decisions 26 and 27).
typedef struct _WEFT_IB_VERBS_INTERFACE_2 {
    IB_VERBS_INTERFACE_STANDARD v1; // Size and Version are those of this structure

    PCREATE_SRQ CreateSrq;
    PDESTROY_SRQ DestroySrq;
    PMODIFY_SRQ ModifySrq;
    PQUERY_SRQ QuerySrq;
    PPOST_SRQ_RECV PostSrqRecv;
    PGET_SRQ_ASYNC_EVENT GetSrqAsyncEvent;

    PATTACH_MCAST AttachMcast;
    PDETACH_MCAST DetachMcast;
} WEFT_IB_VERBS_INTERFACE_2;

// ---- getting the table --------------------------------------------------------------------------

// Stands for IRP_MJ_PNP / IRP_MN_QUERY_INTERFACE to the adapter. Version 1 fills an
// IB_VERBS_INTERFACE_STANDARD, version 2 a WEFT_IB_VERBS_INTERFACE_2, at pInterface; one reference
// on it is the caller's and goes back with InterfaceDereference(Context). Starts the adapter on
// first use, so it may block: PASSIVE_LEVEL only. STATUS_NOT_SUPPORTED: unknown GUID or version.
// STATUS_DEVICE_NOT_READY: the adapter does not start (WEFT_EXPLAIN=1 tells why).
// STATUS_INVALID_PARAMETER: a NULL argument.
WEFT_API NTSTATUS weft_iba_query_interface(const GUID *InterfaceType, USHORT Version,
                                           PINTERFACE pInterface);
// The same for clients built with IB_AC_RDMA_READ_LITERAL: every access mask grants READ.
WEFT_API NTSTATUS weft_iba_query_interface_literal(const GUID *InterfaceType, USHORT Version,
                                                   PINTERFACE pInterface);
#ifdef IB_AC_RDMA_READ_LITERAL
#define weft_iba_query_interface weft_iba_query_interface_literal
#endif

// The adapter's device object: send it IRP_MJ_PNP / IRP_MN_QUERY_INTERFACE with IoCallDriver().
// Parameters.QueryInterface.Size must hold the version asked for (else STATUS_INVALID_PARAMETER).
WEFT_API PDEVICE_OBJECT weft_iba_device_object(VOID);

// ---- knobs, for the process ---------------------------------------------------------------------

// Where asynchronous verbs do their work. A client that wants to see its pending paths run at
// PASSIVE_LEVEL chooses WEFT_IBA_ALWAYS_PEND. Environment: WEFT_IBA_POLICY=pend.
typedef enum _WEFT_IBA_POLICY {
    WEFT_IBA_BY_IRQL,    // at once below DISPATCH_LEVEL, else in the engine's thread
    WEFT_IBA_ALWAYS_PEND // always in the engine's thread
} WEFT_IBA_POLICY;
WEFT_API VOID weft_iba_set_policy(WEFT_IBA_POLICY Policy);

// The RFC has no path MTU in any structure. QPs take the active MTU of their port, or this if it is
// smaller: set it when the peer uses less. 0 takes the limit away. Environment: WEFT_IBA_MTU=1024.
WEFT_API VOID weft_iba_set_path_mtu(IB_MTU Mtu);

// ---- helpers ------------------------------------------------------------------------------------

// Bytes of a work request with room for this many SGE pointers.
#define WEFT_IBA_SEND_WR_SIZE(SgeCount) (sizeof(IB_SEND_WR) + (SgeCount) * sizeof(IB_SGE *))
#define WEFT_IBA_RECV_WR_SIZE(SgeCount) (sizeof(IB_RECV_WR) + (SgeCount) * sizeof(IB_SGE *))

// Points Wr->Sge[0..Count) at the elements of a flat array; Wr must have room for Count pointers.
FORCEINLINE VOID weft_iba_chain_sge(IB_SGE *__ptr64 *Sge, IB_SGE *Flat, ULONG Count)
{
    for (ULONG i = 0; i < Count; i++)
        Sge[i] = &Flat[i];
}

// PollCq into a flat array. *Count as *pNumWc.
FORCEINLINE NTSTATUS weft_iba_poll_flat(const IB_VERBS_INTERFACE_STANDARD *Verbs, IB_CQ *Cq,
                                        LONG *Count, IB_WC *Wc)
{
    IB_WC *array[16];
    LONG want = *Count, done = 0;
    NTSTATUS status = STATUS_INVALID_PARAMETER;
    if (want < 1)
        *Count = 0;
    while (done < want) {
        LONG n = want - done < 16 ? want - done : 16, got = n;
        for (LONG i = 0; i < n; i++)
            array[i] = &Wc[done + i];
        status = Verbs->PollCq(Cq, &got, array);
        done += got;
        *Count = done;
        if (got < n || !NT_SUCCESS(status))
            break;
    }
    return done && status == STATUS_NO_MORE_ENTRIES ? STATUS_SUCCESS : status;
}

#ifdef __cplusplus
}
#endif

#endif
