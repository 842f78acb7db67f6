// SPDX-License-Identifier: BSD-2-Clause
// The 38 async verbs and their table. A client gets the table from weft_iba_query_interface() in
// weft/iba.h, or by sending IRP_MJ_PNP / IRP_MN_QUERY_INTERFACE to weft_iba_device_object().
//
// Asynchronous verbs take an IRP with at least one free stack location, as last argument. The verb
// consumes the next location, whose major and minor function stay as they are, and completes the
// IRP exactly once, whatever it returns:
//   - a final status, which is also IoStatus.Status of the IRP: the IRP was completed before the
//     verb returned;
//   - STATUS_PENDING: it is completed later, by the engine's thread or by whoever releases what the
//     verb waits for, and may be so before the verb returns.
// So after the call the IRP belongs to the client again only through a completion routine that
// returns STATUS_MORE_PROCESSING_REQUIRED. The one exception: an IRP that is NULL or has no stack
// location left cannot be completed; the verb returns STATUS_INVALID_PARAMETER and does nothing.
//
// Every verb may be called at IRQL <= DISPATCH_LEVEL and from any thread. Below DISPATCH_LEVEL an
// asynchronous verb does its work at once where it can; at DISPATCH_LEVEL it hands the work to the
// engine's thread and returns STATUS_PENDING (weft_iba_set_policy() chooses). Completion routines
// and callbacks that the engine's thread runs see DISPATCH_LEVEL, and no lock is held around them:
// they may call any verb.
//
// Status, unless a verb says more: STATUS_SUCCESS; STATUS_INVALID_PARAMETER for an argument that is
// NULL, of another kind or out of range; STATUS_DELETE_PENDING for an object that is being
// destroyed; STATUS_INSUFFICIENT_RESOURCES; STATUS_NOT_SUPPORTED; STATUS_FILE_FORCED_CLOSED after
// the device failed. With a warning or error IoStatus.Information is 0 except where stated.
//
// Verbs that end an object (Close, Destroy, Dereg) cannot fail and ignore a failed device. They
// stay pending until nothing uses the object any more: its children, its bound windows, a callback
// that is running. From the call on the object must not be used; its event IRPs end with
// STATUS_CANCELLED before the call returns.
//
// pUserData may be NULL, and is for kernel clients; when given, OutputSize becomes 0.
#ifndef _IBVERBS_
#define _IBVERBS_

#include "iba/ibdef.h"
#include "iba/ibstatus.h"

#ifdef __cplusplus
extern "C" {
#endif

// Opaque data between the user and kernel halves of a vendor's driver. This device has none.
typedef struct _CI_UDATA {
    const VOID *__ptr64 const pInputBuffer;
    VOID *__ptr64 const pOutputBuffer; // may overlap the input
    SIZE_T InputSize;
    SIZE_T OutputSize; // lowered to the bytes that are to be copied back
} CI_UDATA;

// ---- channel adapters ---------------------------------------------------------------------------

typedef struct _IB_CA {
    VOID *Context;      // the client's, from OpenCa
    LONG volatile nRef; // objects made from it
} IB_CA;

// An event of the device (PortNumber 0) or of a port.
typedef VOID (*PFN_IB_CA_ASYNC_EVENT)(IN IB_CA *const pCa, IN VOID *CaContext,
                                      IN const UCHAR PortNumber, IN IB_ASYNC_EVENT Event);

// Open the adapter. IfcContext is the table's Context, Context is handed to the callback, which may
// be NULL when GetCaFatalEvent and GetCaPortEvent are used instead. Information: the IB_CA*.
typedef NTSTATUS (*POPEN_CA)(IN VOID *const IfcContext, IN VOID *const Context,
                             IN PFN_IB_CA_ASYNC_EVENT CaAsyncEvent OPTIONAL,
                             IN OUT CI_UDATA *const pUserData, IN IRP *const pIrp);

// Close it. Pending until every CQ and PD of the CA is gone.
typedef NTSTATUS (*PCLOSE_CA)(IN IB_CA *const pCa, IN OUT CI_UDATA *const pUserData,
                              IN IRP *const pIrp);

// Ask to be told when the device fails. Several may wait; one is completed, with STATUS_SUCCESS,
// for each failure, and once the device has failed further ones succeed at once. Cancellable.
typedef NTSTATUS (*PGET_CA_FATAL_EVENT)(IN IB_CA *const pCa, IN IRP *const pIrp);

// Ask for the next event of a port. Information: the IB_ASYNC_EVENT. Several may wait, one is
// completed for each event, oldest first; events that nobody waits for are kept (32 of them, the
// oldest). Cancellable.
typedef NTSTATUS (*PGET_CA_PORT_EVENT)(IN IB_CA *const pCa, IN const UCHAR PortNumber,
                                       IN IRP *const pIrp);

// Attributes of the adapter with its ports and their tables. Context is the table's. Information:
// bytes written. A buffer of at least 4 bytes gets as much as it holds, with STATUS_BUFFER_OVERFLOW
// and the size needed in Size; a smaller one gets STATUS_BUFFER_TOO_SMALL.
typedef NTSTATUS (*PQUERY_CA)(IN VOID *const Context, IN const SIZE_T AttrSize,
                              OUT IB_CA_ATTR *const pAttr, IN IRP *const pIrp);

// The same for one port, counted from 1. A partial result is STATUS_MORE_ENTRIES, which
// NT_SUCCESS() takes for success (decision 12).
typedef NTSTATUS (*PQUERY_PORT)(IN VOID *const Context, IN const UCHAR PortNumber,
                                IN const SIZE_T AttrSize, OUT IB_PORT_ATTR *const pAttr,
                                IN IRP *const pIrp);

// Set what Flags (IB_MODIFY_CA_FLAGS) names; for the device, so for every client.
typedef NTSTATUS (*PMODIFY_CA)(IN IB_CA *const pCa, IN const ULONG Flags,
                               IN const IB_MODIFY_CA *const pModify, IN IRP *const pIrp);

// Set and clear capability bits of a port, and what Flags (IB_MODIFY_PORT_FLAGS) names. Bits that
// announce an agent (SM, CM, SNMP tunnelling, device management, vendor class, boot management)
// belong to the CA that set them until it clears them or is closed: STATUS_FILE_LOCK_CONFLICT for
// others, and nothing is changed. Other bits: STATUS_INVALID_PARAMETER. Shutdown:
// STATUS_NOT_SUPPORTED.
typedef NTSTATUS (*PMODIFY_PORT)(IN IB_CA *const pCa, IN const UCHAR PortNumber,
                                 IN const ULONG Flags, IN const IB_MODIFY_PORT *const pModify,
                                 IN IRP *const pIrp);

// ---- completion queues --------------------------------------------------------------------------

typedef struct _IB_CQ {
    IB_CA *pCa;
    ULONG NumCqes; // entries it has
    VOID *Context;
    LONG volatile nRef; // work queues that complete here
} IB_CQ;

typedef VOID (*PFN_IB_CQ_COMP_EVENT)(IN IB_CQ *pCq, IN VOID *CqContext);
typedef VOID (*PFN_IB_CQ_ASYNC_EVENT)(IN IB_CQ *pCq, IN VOID *CqContext, IN IB_ASYNC_EVENT Event);

// A queue of at least NumCqes entries. Context goes to the callbacks, each of which may be NULL.
// An event completes a waiting IRP if there is one and calls the callback otherwise (decision 29).
// Information: the IB_CQ*.
typedef NTSTATUS (*PCREATE_CQ)(IN IB_CA *const pCa, IN ULONG const NumCqes, IN VOID *const Context,
                               IN PFN_IB_CQ_COMP_EVENT CqCompEvent OPTIONAL,
                               IN PFN_IB_CQ_ASYNC_EVENT CqAsyncEvent OPTIONAL,
                               IN OUT CI_UDATA *const pUserData, IN IRP *const pIrp);

// Pending until no queue pair or SRQ uses it.
typedef NTSTATUS (*PDESTROY_CQ)(IN IB_CQ *const pCq, IN OUT CI_UDATA *const pUserData,
                                IN IRP *const pIrp);

// Change the number of entries; pCq->NumCqes tells what it became. STATUS_INVALID_PARAMETER when
// more completions are waiting than the new size holds.
typedef NTSTATUS (*PRESIZE_CQ)(IN IB_CQ *const pCq, IN ULONG const NumCqes,
                               IN OUT CI_UDATA *const pUserData, IN IRP *const pIrp);

// One completion event for the next entry, or with Solicited for the next that is solicited or
// failed. Entries that are there already raise none: poll once more after arming. Synchronous.
typedef NTSTATUS (*PREARM_CQ)(IN IB_CQ *const pCq, IN const BOOLEAN Solicited);

// One completion event once NumCqes more entries have been added. STATUS_INVALID_PARAMETER outside
// 1..NumCqes of the queue, STATUS_NOT_SUPPORTED beyond 65535. Synchronous.
typedef NTSTATUS (*PREARM_N_CQ)(IN IB_CQ *const pCq, IN const ULONG NumCqes);

// Take up to *pNumWc entries; Wc is an array of pointers to structures (weft_iba_poll_flat() takes
// a flat array). *pNumWc becomes the number taken, also on an error. STATUS_NO_MORE_ENTRIES when
// there was none; STATUS_INVALID_PARAMETER for a count below 1. Synchronous.
typedef NTSTATUS (*PPOLL_CQ)(IN IB_CQ *const pCq, IN OUT LONG *const pNumWc, OUT IB_WC *Wc[]);

// How many entries wait. Synchronous.
typedef NTSTATUS (*PPEEK_CQ)(IN IB_CQ *const pCq, OUT LONG *const pNumWc);

// Wait for a completion event (see RearmCq). One IRP at a time: a second one ends the first with
// STATUS_CANCELLED. An event without a taker is remembered, once. Cancellable.
typedef NTSTATUS (*PGET_CQ_COMP_EVENT)(IN IB_CQ *const pCq, IN IRP *const pIrp);

// Wait for an asynchronous event of the queue, as GetCaPortEvent. Cancellable.
typedef NTSTATUS (*PGET_CQ_ASYNC_EVENT)(IN IB_CQ *const pCq, IN IRP *const pIrp);

// ---- protection domains -------------------------------------------------------------------------

typedef struct _IB_PD {
    IB_CA *pCa;
    LONG volatile nRef; // objects made in it
} IB_PD;

// Information: the IB_PD*.
typedef NTSTATUS (*PCREATE_PD)(IN IB_CA *const pCa, IN OUT CI_UDATA *const pUserData,
                               IN IRP *const pIrp);

// Pending until everything made in it is gone.
typedef NTSTATUS (*PDESTROY_PD)(IN IB_PD *const pPd, IN OUT CI_UDATA *const pUserData,
                                IN IRP *const pIrp);

// ---- address handles: all synchronous -----------------------------------------------------------

typedef struct _IB_AH {
    IB_PD *pPd;
} IB_AH;

// STATUS_INVALID_PARAMETER_1 for the port, STATUS_INVALID_PARAMETER_2 for a source GID that the
// port does not have; STATUS_INVALID_PARAMETER without a GRH, as a RoCE port has no LIDs;
// STATUS_NETWORK_UNREACHABLE when no route leads there.
typedef NTSTATUS (*PCREATE_AH)(IN IB_PD *const pPd, IN IB_AH_ATTR *const pAhAttr,
                               OUT IB_AH **const ppAh);
typedef NTSTATUS (*PDESTROY_AH)(IN IB_AH *const pAh);
// Requests posted earlier go to the old address. Failing, it leaves the handle as it was.
typedef NTSTATUS (*PMODIFY_AH)(IN IB_AH *const pAh, IN IB_AH_ATTR *const pModify);
typedef NTSTATUS (*PQUERY_AH)(IN IB_AH *const pAh, OUT IB_AH_ATTR *const pAttr);

// ---- shared receive queues ----------------------------------------------------------------------

// The verbs are in the version 2 table, see weft/iba.h.
typedef struct _IB_SRQ {
    IB_PD *pPd;
    VOID *Context;
} IB_SRQ;

typedef NTSTATUS (*PPOST_SRQ_RECV)(IN IB_SRQ *const pSrq, IN const IB_RECV_WR *pRecvWr,
                                   OUT IB_RECV_WR **const ppFailedRecv);

// ---- queue pairs --------------------------------------------------------------------------------

typedef struct _IB_QP {
    IB_PD *pPd;
    VOID *Context;
    IB_CQ *pSendCq;
    IB_CQ *pRecvCq;
    IB_SRQ *pSrq;
    IB_QP_TYPE Type;
    ULONG Qpn;
    ULONG SqDepth; // this and what follows: what was given, never less than was asked for
    ULONG RqDepth;
    ULONG SqSge;
    ULONG RqSge;
    ULONG SqMaxInline;
} IB_QP;

typedef VOID (*PFN_IB_QP_ASYNC_EVENT)(IN IB_QP *pQp, IN VOID *QpContext, IN IB_ASYNC_EVENT Event);

// Types IbQpTypeReliableConn, IbQpTypeUnreliableConn and IbQpTypeUnreliableDgrm; others are
// STATUS_INVALID_PARAMETER (decision 16). Information: the IB_QP*, in state Reset.
typedef NTSTATUS (*PCREATE_QP)(IN IB_PD *const pPd, IN IB_QP_CREATE *const pCreateQp,
                               IN VOID *const Context,
                               IN PFN_IB_QP_ASYNC_EVENT QpAsyncEvent OPTIONAL,
                               IN OUT CI_UDATA *const pUserData, IN IRP *const pIrp);

// QP0 and QP1 belong to weftd, so after its arguments were checked this is STATUS_NOT_SUPPORTED;
// STATUS_ACCESS_DENIED for an IRP with RequestorMode UserMode.
typedef NTSTATUS (*PCREATE_SPECIAL_QP)(IN IB_PD *const pPd, IN UCHAR PortNum,
                                       IN IB_QP_CREATE *const pCreateQp, IN VOID *const Context,
                                       IN PFN_IB_QP_ASYNC_EVENT QpAsyncEvent OPTIONAL,
                                       IN IRP *const pIrp);

// Pending until it has left every multicast group and no callback of it runs. Completions that
// were not polled are dropped.
typedef NTSTATUS (*PDESTROY_QP)(IN IB_QP *const pQp, IN OUT CI_UDATA *const pUserData,
                                IN IRP *const pIrp);

// Move the queue pair to ReqState (decisions 9 to 11 tell what becomes of which field).
// STATUS_IB_INVALID_STATE for a state that cannot be asked for or reached from the present one,
// STATUS_INVALID_PARAMETER_1 and _2 as CreateAh.
typedef NTSTATUS (*PMODIFY_QP)(IN IB_QP *const pQp, IN IB_QP_MODIFY *const pModify,
                               IN OUT CI_UDATA *const pUserData, IN IRP *const pIrp);

typedef NTSTATUS (*PQUERY_QP)(IN IB_QP *const pQp, OUT IB_QP_ATTR *const pAttr,
                              IN OUT CI_UDATA *const pUserData, IN IRP *const pIrp);

// Post a list of sends or receives; both are synchronous. The failed pointer gets the first request
// that was not taken, earlier ones stay posted, NULL when all were; it may be NULL for a single
// request only.
//   STATUS_INVALID_PARAMETER      no list, no failed pointer for a list, a NULL SGE or AH, an
//   unknown
//                                 flag, inline data longer than SqMaxInline, a message too long
//   STATUS_IB_INSUFFICIENT_WR     queue full
//   STATUS_IB_INSUFFICIENT_SGE    more SGEs than SqSge or RqSge
//   STATUS_IB_INVALID_WR_TYPE     not a type for PostSend
//   STATUS_IB_INVALID_STATE       sends before Rts, receives before Init
//   STATUS_INVALID_OPERATION      this type of QP cannot do that; receives on a QP with an SRQ
typedef NTSTATUS (*PPOST_SEND)(IN IB_QP *const pQp, IN const IB_SEND_WR *pSendWr,
                               OUT IB_SEND_WR **const ppFailedSend);
typedef NTSTATUS (*PPOST_RECV)(IN IB_QP *const pQp, IN const IB_RECV_WR *pRecvWr,
                               OUT IB_RECV_WR **const ppFailedRecv);

// Wait for an asynchronous event of the queue pair, as GetCaPortEvent. Cancellable.
typedef NTSTATUS (*PGET_QP_ASYNC_EVENT)(IN IB_QP *const pQp, IN IRP *const pIrp);

// ---- memory regions -----------------------------------------------------------------------------

// Ends are one past the last byte. Registered from an MDL list: pMdlList is that list and both
// ranges are its virtual addresses. From a scatter/gather list: IoVa and the starts are 0. For the
// DMA region: the whole address space.
typedef struct _IB_MR {
    IB_PD *pPd;
    UINT8 *__ptr64 pLocalStart;
    UINT8 *__ptr64 pLocalEnd;
    UINT8 *__ptr64 pRemoteStart;
    UINT8 *__ptr64 pRemoteEnd;
    ULONG AccessMask;
    UINT32 LKey;
    UINT32 RKey;
    union {
        MDL *pMdlList;
        PHYSICAL_ADDRESS IoVa;
    };
    LONG volatile nRef; // windows whose last bind named this region
} IB_MR;

// Register the memory of an MDL list. The list must be virtually contiguous, its pages locked or
// non-paged, its page frame numbers filled; only the first page of the first MDL and the last page
// of the last may be partial. Anything else is STATUS_INVALID_PARAMETER. The list stays the
// client's and must live until DeregMr. Information: the IB_MR*.
typedef NTSTATUS (*PREG_MDL)(IN IB_PD *const pPd, IN MDL *const pMdlList, IN const ULONG AccessMask,
                             IN IRP *const pIrp);

// Register the memory of a scatter/gather list; requests name its first byte as address 0. With
// more than one element the first must end and the last start on a page boundary and those between
// be whole pages. The list must live until
// the verb is done.
typedef NTSTATUS (*PREG_SCATTER_GATHER)(IN IB_PD *const pPd, IN SCATTER_GATHER_LIST *pScatterGather,
                                        IN const ULONG AccessMask, IN IRP *const pIrp);

// A region that covers all memory; an address is its own I/O address.
typedef NTSTATUS (*PGET_DMA_MR)(IN IB_PD *const pPd, IN const ULONG AccessMask, IN IRP *const pIrp);

// Pending while a window is bound to the region. Information: the MDL list of RegMdl, else 0.
typedef NTSTATUS (*PDEREG_MR)(IN IB_MR *const pMr, IN IRP *const pIrp);

// ---- memory windows -----------------------------------------------------------------------------

typedef struct _IB_MW {
    IB_PD *pPd;
    UINT32 RKey; // changes with every bind
} IB_MW;

// An unbound window (type 1). Information: the IB_MW*.
typedef NTSTATUS (*PCREATE_MW)(IN IB_PD *const pPd, IN OUT CI_UDATA *const pUserData,
                               IN IRP *const pIrp);

// The RFC declares IB_MR* here and means a window: an untyped pointer lets either spelling compile
// (decision 4). Unbinds it if it is bound.
typedef NTSTATUS (*PDESTROY_MW)(IN VOID *const pMw, IN IRP *const pIrp);

// Post a bind to the send queue. pMw->RKey is the new key on return, and is good once the bind has
// completed; the completion is of type IbBindMw. Status as PostSend, for a single request.
// Synchronous.
typedef NTSTATUS (*PBIND_MW)(IN IB_QP *const pQp, IN IB_MW *const pMw,
                             IN const IB_BIND_WR *const pBindWr);

// ---- the table ----------------------------------------------------------------------------------

#define IB_VERBS_INTERFACE_VERSION (1)

typedef struct _IB_VERBS_INTERFACE_STANDARD {
    USHORT Size;
    USHORT Version;
    PVOID Context;                           // first argument of OpenCa, QueryCa and QueryPort
    PINTERFACE_REFERENCE InterfaceReference; // the table comes with one reference
    PINTERFACE_DEREFERENCE InterfaceDereference;

    UINT64 NodeGuid; // network order
    UINT32 VendorId;
    UINT16 DeviceId;
    UINT16 DeviceRev;
    UINT32 FwVersion; // low half of IB_CA_ATTR.FwVersion (decision 15)
    CHAR UvpName[32];

    POPEN_CA OpenCa;
    PCLOSE_CA CloseCa;
    PGET_CA_FATAL_EVENT GetCaFatalEvent;
    PGET_CA_PORT_EVENT GetCaPortEvent;
    PQUERY_CA QueryCa;
    PQUERY_PORT QueryPort;
    PMODIFY_CA ModifyCa;
    PMODIFY_PORT ModifyPort;

    PCREATE_CQ CreateCq;
    PDESTROY_CQ DestroyCq;
    PRESIZE_CQ ResizeCq;
    PREARM_CQ RearmCq;
    PREARM_N_CQ RearmNCq;
    PPOLL_CQ PollCq;
    PPEEK_CQ PeekCq;
    PGET_CQ_COMP_EVENT GetCqCompEvent;
    PGET_CQ_ASYNC_EVENT GetCqAsyncEvent;

    PCREATE_PD CreatePd;
    PDESTROY_PD DestroyPd;

    PCREATE_AH CreateAh;
    PDESTROY_AH DestroyAh;
    PMODIFY_AH ModifyAh;
    PQUERY_AH QueryAh;

    PCREATE_QP CreateQp;
    PCREATE_SPECIAL_QP CreateSpecialQp;
    PDESTROY_QP DestroyQp;
    PMODIFY_QP ModifyQp;
    PQUERY_QP QueryQp;
    PPOST_SEND PostSend;
    PPOST_RECV PostRecv;
    PGET_QP_ASYNC_EVENT GetQpAsyncEvent;

    PREG_MDL RegMdl;
    PREG_SCATTER_GATHER RegScatterGather;
    PGET_DMA_MR GetDmaMr;
    PDEREG_MR DeregMr;

    PCREATE_MW CreateMw;
    PDESTROY_MW DestroyMw;
    PBIND_MW BindMw;
} IB_VERBS_INTERFACE_STANDARD;

#ifdef __cplusplus
}
#endif

#endif

// Outside the include guard, so that the one file that defines INITGUID may include this again.
// {B721E2B0-AF62-4320-A6AF-92F71F78789F}
DEFINE_GUID(GUID_IB_VERBS_INTERFACE, 0xb721e2b0, 0xaf62, 0x4320, 0xa6, 0xaf, 0x92, 0xf7, 0x1f, 0x78,
            0x78, 0x9f);
