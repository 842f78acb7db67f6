// SPDX-License-Identifier: BSD-2-Clause
// The part of the Windows driver model that the async verbs (iba/ibverbs.h) speak, in user space:
// base types, NTSTATUS, IRPs, MDLs, scatter/gather lists, spin locks, events and IRQL. Names and
// signatures are those of the Windows driver kit, so driver code compiles here as it is; structures
// hold the documented fields that such code touches, nothing more.
//
// What differs from Windows, on purpose:
// - A thread's IRQL is a number of that thread. It stops nothing from running; it is checked. A
// call
//   that may block, made at DISPATCH_LEVEL, is counted, explained (WEFT_EXPLAIN=1) and, with
//   WEFT_IRQL=abort in the environment, ends the program. See weft_wdm_irql_violations().
// - Physical and bus addresses are virtual addresses of the process. A page frame number is the
//   virtual address of the page divided by PAGE_SIZE.
// - An IRP whose completion routines have all run without STATUS_MORE_PROCESSING_REQUIRED is ended
//   as the I/O manager ends one: UserIosb is filled, UserEvent is set, and an IRP of
//   IoAllocateIrp() is freed.
//
// Every function may be called from any thread and at IRQL <= DISPATCH_LEVEL unless its comment
// says otherwise.
#ifndef WEFT_WDM_H
#define WEFT_WDM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "weft/export.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- annotations and compiler words -------------------------------------------------------------

#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef OPTIONAL
#define OPTIONAL
#endif
#ifndef CONST
#define CONST const
#endif
#ifndef FORCEINLINE
#define FORCEINLINE static inline
#endif
#ifndef NTAPI
#define NTAPI
#endif
#ifndef NTKERNELAPI
#define NTKERNELAPI WEFT_API
#endif
#ifndef __ptr64
#define __ptr64
#endif
#if !defined(_MSC_VER) && !defined(__declspec)
#define __declspec(x) WEFT_DECLSPEC_##x
#define WEFT_DECLSPEC_align(n) __attribute__((aligned(n)))
#endif
#ifndef DECLSPEC_ALIGN
#define DECLSPEC_ALIGN(n) __attribute__((aligned(n)))
#endif
#ifndef UNREFERENCED_PARAMETER
#define UNREFERENCED_PARAMETER(p) ((void)(p))
#endif
#ifndef TRUE
#define TRUE 1
#endif
#ifndef FALSE
#define FALSE 0
#endif

// ---- base types ---------------------------------------------------------------------------------

typedef void VOID, *PVOID;
typedef char CHAR, *PCHAR, CCHAR;
typedef unsigned char UCHAR, *PUCHAR, BOOLEAN, *PBOOLEAN;
typedef int16_t SHORT, CSHORT;
typedef uint16_t USHORT, *PUSHORT;
typedef int32_t LONG, *PLONG;
typedef uint32_t ULONG, *PULONG;
typedef int64_t LONGLONG;
typedef uint64_t ULONGLONG;
typedef int8_t INT8;
typedef uint8_t UINT8;
typedef int16_t INT16;
typedef uint16_t UINT16;
typedef int32_t INT32;
typedef uint32_t UINT32;
typedef int64_t INT64;
typedef uint64_t UINT64;
typedef size_t SIZE_T, *PSIZE_T;
typedef intptr_t LONG_PTR;
typedef uintptr_t ULONG_PTR, *PULONG_PTR;
typedef ULONG_PTR PFN_NUMBER, *PPFN_NUMBER;
typedef LONG NTSTATUS, *PNTSTATUS;
typedef UCHAR KIRQL, *PKIRQL;
typedef CCHAR KPROCESSOR_MODE;
typedef LONG KPRIORITY;

typedef union _LARGE_INTEGER {
    struct {
        ULONG LowPart;
        LONG HighPart;
    } u;
    LONGLONG QuadPart;
} LARGE_INTEGER, *PLARGE_INTEGER, PHYSICAL_ADDRESS, *PPHYSICAL_ADDRESS;

typedef struct _GUID {
    ULONG Data1;
    USHORT Data2;
    USHORT Data3;
    UCHAR Data4[8];
} GUID;

// DEFINE_GUID declares a GUID; in the one file that defines INITGUID first it also makes it. Made
// twice (a program and libweft both may) it is one object.
#ifdef __cplusplus
#define WEFT_EXTERN_C extern "C"
#else
#define WEFT_EXTERN_C extern
#endif
#ifndef DEFINE_GUID
#ifdef INITGUID
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)                               \
    WEFT_EXTERN_C const GUID name __attribute__((weak, visibility("default")));                    \
    const GUID name = {l, w1, w2, {b1, b2, b3, b4, b5, b6, b7, b8}}
#else
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8) WEFT_EXTERN_C const GUID name
#endif
#endif

FORCEINLINE int IsEqualGUID(const GUID *a, const GUID *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

// ---- NTSTATUS -----------------------------------------------------------------------------------

// Severity is the top two bits: success, information, warning, error. Only errors and warnings are
// negative, so STATUS_MORE_ENTRIES counts as success and STATUS_BUFFER_OVERFLOW does not.
#define NT_SUCCESS(s)     (((NTSTATUS)(s)) >= 0)
#define NT_INFORMATION(s) ((((ULONG)(s)) >> 30) == 1)
#define NT_WARNING(s)     ((((ULONG)(s)) >> 30) == 2)
#define NT_ERROR(s)       ((((ULONG)(s)) >> 30) == 3)

#define STATUS_SUCCESS                  ((NTSTATUS)0x00000000L)
#define STATUS_TIMEOUT                  ((NTSTATUS)0x00000102L)
#define STATUS_PENDING                  ((NTSTATUS)0x00000103L)
#define STATUS_MORE_ENTRIES             ((NTSTATUS)0x00000105L)
#define STATUS_BUFFER_OVERFLOW          ((NTSTATUS)0x80000005L)
#define STATUS_NO_MORE_ENTRIES          ((NTSTATUS)0x8000001AL)
#define STATUS_UNSUCCESSFUL             ((NTSTATUS)0xC0000001L)
#define STATUS_INVALID_PARAMETER        ((NTSTATUS)0xC000000DL)
#define STATUS_INVALID_DEVICE_REQUEST   ((NTSTATUS)0xC0000010L)
#define STATUS_MORE_PROCESSING_REQUIRED ((NTSTATUS)0xC0000016L)
#define STATUS_ACCESS_DENIED            ((NTSTATUS)0xC0000022L)
#define STATUS_BUFFER_TOO_SMALL         ((NTSTATUS)0xC0000023L)
#define STATUS_FILE_LOCK_CONFLICT       ((NTSTATUS)0xC0000054L)
#define STATUS_DELETE_PENDING           ((NTSTATUS)0xC0000056L)
#define STATUS_INSUFFICIENT_RESOURCES   ((NTSTATUS)0xC000009AL)
#define STATUS_DEVICE_NOT_READY         ((NTSTATUS)0xC00000A3L)
#define STATUS_FILE_FORCED_CLOSED       ((NTSTATUS)0xC00000B6L)
#define STATUS_NOT_SUPPORTED            ((NTSTATUS)0xC00000BBL)
#define STATUS_INTERNAL_ERROR           ((NTSTATUS)0xC00000E5L)
#define STATUS_INVALID_PARAMETER_1      ((NTSTATUS)0xC00000EFL)
#define STATUS_INVALID_PARAMETER_2      ((NTSTATUS)0xC00000F0L)
#define STATUS_CANCELLED                ((NTSTATUS)0xC0000120L)
#define STATUS_NETWORK_UNREACHABLE      ((NTSTATUS)0xC000023CL)
#define STATUS_CONTINUE_COMPLETION      STATUS_SUCCESS

// ---- doubly linked lists ------------------------------------------------------------------------

typedef struct _LIST_ENTRY {
    struct _LIST_ENTRY *Flink;
    struct _LIST_ENTRY *Blink;
} LIST_ENTRY, *PLIST_ENTRY;

#ifndef CONTAINING_RECORD
#define CONTAINING_RECORD(address, type, field) ((type *)((char *)(address)-offsetof(type, field)))
#endif

FORCEINLINE VOID InitializeListHead(PLIST_ENTRY head)
{
    head->Flink = head->Blink = head;
}

FORCEINLINE BOOLEAN IsListEmpty(const LIST_ENTRY *head)
{
    return (BOOLEAN)(head->Flink == head);
}

// TRUE when the list is empty afterwards. The entry's own links stay as they were.
FORCEINLINE BOOLEAN RemoveEntryList(PLIST_ENTRY entry)
{
    entry->Blink->Flink = entry->Flink;
    entry->Flink->Blink = entry->Blink;
    return (BOOLEAN)(entry->Flink == entry->Blink);
}

FORCEINLINE PLIST_ENTRY RemoveHeadList(PLIST_ENTRY head)
{
    PLIST_ENTRY entry = head->Flink;
    RemoveEntryList(entry);
    return entry;
}

FORCEINLINE VOID InsertTailList(PLIST_ENTRY head, PLIST_ENTRY entry)
{
    entry->Flink = head;
    entry->Blink = head->Blink;
    head->Blink->Flink = entry;
    head->Blink = entry;
}

FORCEINLINE VOID InsertHeadList(PLIST_ENTRY head, PLIST_ENTRY entry)
{
    entry->Blink = head;
    entry->Flink = head->Flink;
    head->Flink->Blink = entry;
    head->Flink = entry;
}

// ---- interlocked operations ---------------------------------------------------------------------

FORCEINLINE LONG InterlockedIncrement(LONG volatile *p)
{
    return __atomic_add_fetch(p, 1, __ATOMIC_SEQ_CST);
}

FORCEINLINE LONG InterlockedDecrement(LONG volatile *p)
{
    return __atomic_sub_fetch(p, 1, __ATOMIC_SEQ_CST);
}

FORCEINLINE LONG InterlockedExchange(LONG volatile *p, LONG value)
{
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);
}

FORCEINLINE LONG InterlockedExchangeAdd(LONG volatile *p, LONG value)
{
    return __atomic_fetch_add(p, value, __ATOMIC_SEQ_CST);
}

// Returns what was there; it was exchanged when that equals `comparand`.
FORCEINLINE LONG InterlockedCompareExchange(LONG volatile *p, LONG exchange, LONG comparand)
{
    __atomic_compare_exchange_n(p, &comparand, exchange, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return comparand;
}

// ---- IRQL ---------------------------------------------------------------------------------------

#define PASSIVE_LEVEL  0
#define APC_LEVEL      1
#define DISPATCH_LEVEL 2
#define HIGH_LEVEL     15

// The calling thread's level. Threads start at PASSIVE_LEVEL; completion routines and event
// callbacks that the engine's thread runs are called at DISPATCH_LEVEL.
NTKERNELAPI KIRQL KeGetCurrentIrql(VOID);
// Raising to a lower level and lowering to a higher one are violations.
NTKERNELAPI VOID KeRaiseIrql(KIRQL NewIrql, PKIRQL OldIrql);
NTKERNELAPI KIRQL KeRaiseIrqlToDpcLevel(VOID);
NTKERNELAPI VOID KeLowerIrql(KIRQL NewIrql);

// Violations of the IRQL rules seen so far in this process. A test asserts that it stays 0.
WEFT_API ULONG weft_wdm_irql_violations(VOID);
// Declares that the caller is about to do something that may block: a violation at DISPATCH_LEVEL.
WEFT_API VOID weft_wdm_may_block(const char *what);
#ifndef PAGED_CODE
#define PAGED_CODE() weft_wdm_may_block(__func__)
#endif

// ---- spin locks ---------------------------------------------------------------------------------

typedef ULONG_PTR KSPIN_LOCK, *PKSPIN_LOCK;

// Not recursive. Acquiring raises the thread to DISPATCH_LEVEL, releasing lowers it again.
NTKERNELAPI VOID KeInitializeSpinLock(PKSPIN_LOCK SpinLock);
NTKERNELAPI VOID KeAcquireSpinLock(PKSPIN_LOCK SpinLock, PKIRQL OldIrql);
NTKERNELAPI VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql);
// For callers that are at DISPATCH_LEVEL already.
NTKERNELAPI VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock);
NTKERNELAPI VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock);

// ---- events -------------------------------------------------------------------------------------

typedef enum _EVENT_TYPE { NotificationEvent, SynchronizationEvent } EVENT_TYPE;
typedef enum _KWAIT_REASON { Executive, FreePage, PageIn, UserRequest = 6 } KWAIT_REASON;
typedef enum _MODE { KernelMode, UserMode } MODE;

typedef struct _KEVENT {
    UINT32 State; // private; see KeReadStateEvent()
    EVENT_TYPE Type;
} KEVENT, *PKEVENT;

NTKERNELAPI VOID KeInitializeEvent(PKEVENT Event, EVENT_TYPE Type, BOOLEAN State);
// Returns the previous state. `Increment` and `Wait` are accepted and ignored.
NTKERNELAPI LONG KeSetEvent(PKEVENT Event, KPRIORITY Increment, BOOLEAN Wait);
NTKERNELAPI VOID KeClearEvent(PKEVENT Event);
NTKERNELAPI LONG KeResetEvent(PKEVENT Event);
NTKERNELAPI LONG KeReadStateEvent(PKEVENT Event);
// Waits for an event (the only object there is). Timeout in 100 ns: negative is relative, positive
// absolute since 1601, zero polls, NULL waits for ever. STATUS_SUCCESS or STATUS_TIMEOUT. At
// DISPATCH_LEVEL only a zero timeout is allowed.
NTKERNELAPI NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason,
                                           KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                           PLARGE_INTEGER Timeout);

// ---- memory -------------------------------------------------------------------------------------

typedef enum _POOL_TYPE { NonPagedPool, PagedPool } POOL_TYPE;

// Paged pool may be allocated and freed only below DISPATCH_LEVEL. NULL when out of memory.
NTKERNELAPI PVOID ExAllocatePoolWithTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag);
NTKERNELAPI VOID ExFreePoolWithTag(PVOID P, ULONG Tag);
NTKERNELAPI VOID ExFreePool(PVOID P);

#ifndef RtlZeroMemory
#define RtlZeroMemory(p, n)    memset((p), 0, (n))
#define RtlFillMemory(p, n, v) memset((p), (v), (n))
#define RtlCopyMemory(d, s, n) memcpy((d), (s), (n))
#define RtlMoveMemory(d, s, n) memmove((d), (s), (n))
#endif

// ---- MDLs and scatter/gather lists --------------------------------------------------------------

#ifndef PAGE_SIZE
#define PAGE_SIZE 4096ul
#endif
#ifndef PAGE_SHIFT
#define PAGE_SHIFT 12
#endif
#define BYTE_OFFSET(va)      ((ULONG)((ULONG_PTR)(va) & (PAGE_SIZE - 1)))
#define PAGE_ALIGN(va)       ((PVOID)((ULONG_PTR)(va) & ~(ULONG_PTR)(PAGE_SIZE - 1)))
#define ROUND_TO_PAGES(size) (((ULONG_PTR)(size) + PAGE_SIZE - 1) & ~(ULONG_PTR)(PAGE_SIZE - 1))
#define BYTES_TO_PAGES(size) (((ULONG_PTR)(size) + PAGE_SIZE - 1) >> PAGE_SHIFT)
#define ADDRESS_AND_SIZE_TO_SPAN_PAGES(va, size)                                                   \
    ((ULONG)BYTES_TO_PAGES((ULONG_PTR)BYTE_OFFSET(va) + (ULONG_PTR)(size)))

#define MDL_MAPPED_TO_SYSTEM_VA     0x0001
#define MDL_PAGES_LOCKED            0x0002
#define MDL_SOURCE_IS_NONPAGED_POOL 0x0004
#define MDL_ALLOCATED_FIXED_SIZE    0x0008
#define MDL_PARTIAL                 0x0010

struct _IRP;
struct _DEVICE_OBJECT;

// A run of virtually contiguous bytes; its page frame numbers follow the structure.
typedef struct _MDL {
    struct _MDL *Next;
    CSHORT Size;
    CSHORT MdlFlags;
    PVOID Process;
    PVOID MappedSystemVa;
    PVOID StartVa; // page aligned
    ULONG ByteCount;
    ULONG ByteOffset; // of the first byte from StartVa
} MDL, *PMDL;

// Size is 16 bits wide, so one MDL describes at most MDL_MAX_PAGES pages (16 MB); IoAllocateMdl()
// returns NULL beyond that and a list is needed.
#define MDL_MAX_PAGES ((0x7fff - sizeof(MDL)) / sizeof(PFN_NUMBER))

#define MmGetMdlPfnArray(mdl)                       ((PPFN_NUMBER)((mdl) + 1))
#define MmGetMdlByteCount(mdl)                      ((mdl)->ByteCount)
#define MmGetMdlByteOffset(mdl)                     ((mdl)->ByteOffset)
#define MmGetMdlVirtualAddress(mdl)                 ((PVOID)((PCHAR)(mdl)->StartVa + (mdl)->ByteOffset))
#define MmGetSystemAddressForMdlSafe(mdl, priority) MmGetMdlVirtualAddress(mdl)

typedef enum _LOCK_OPERATION { IoReadAccess, IoWriteAccess, IoModifyAccess } LOCK_OPERATION;

// Bytes that an MDL for this range needs.
NTKERNELAPI SIZE_T MmSizeOfMdl(PVOID Base, SIZE_T Length);
NTKERNELAPI VOID MmInitializeMdl(PMDL Mdl, PVOID Base, SIZE_T Length);
// An MDL whose page frame numbers are not filled yet. With an IRP it becomes the IRP's MdlAddress,
// or with SecondaryBuffer the last of its chain. NULL: out of memory, or Length is 0 or too long.
NTKERNELAPI PMDL IoAllocateMdl(PVOID VirtualAddress, ULONG Length, BOOLEAN SecondaryBuffer,
                               BOOLEAN ChargeQuota, struct _IRP *Irp);
NTKERNELAPI VOID IoFreeMdl(PMDL Mdl); // this one, not its chain
// Fills the page frame numbers of memory that needs no locking.
NTKERNELAPI VOID MmBuildMdlForNonPagedPool(PMDL Mdl);
// Fills the page frame numbers and marks the pages locked. Memory that is not mapped leaves the MDL
// without MDL_PAGES_LOCKED (Windows raises an exception instead). Nothing is pinned.
NTKERNELAPI VOID MmProbeAndLockPages(PMDL Mdl, KPROCESSOR_MODE AccessMode, LOCK_OPERATION Op);
NTKERNELAPI VOID MmUnlockPages(PMDL Mdl);
// Target becomes a description of part of Source; it must have been allocated for that range.
NTKERNELAPI VOID IoBuildPartialMdl(PMDL Source, PMDL Target, PVOID VirtualAddress, ULONG Length);
NTKERNELAPI PHYSICAL_ADDRESS MmGetPhysicalAddress(PVOID BaseAddress);

typedef struct _SCATTER_GATHER_ELEMENT {
    PHYSICAL_ADDRESS Address;
    ULONG Length;
    ULONG_PTR Reserved;
} SCATTER_GATHER_ELEMENT, *PSCATTER_GATHER_ELEMENT;

typedef struct _SCATTER_GATHER_LIST {
    ULONG NumberOfElements;
    ULONG_PTR Reserved;
    SCATTER_GATHER_ELEMENT Elements[];
} SCATTER_GATHER_LIST, *PSCATTER_GATHER_LIST;

// ---- interfaces ---------------------------------------------------------------------------------

typedef VOID (*PINTERFACE_REFERENCE)(PVOID Context);
typedef VOID (*PINTERFACE_DEREFERENCE)(PVOID Context);

typedef struct _INTERFACE {
    USHORT Size;
    USHORT Version;
    PVOID Context;
    PINTERFACE_REFERENCE InterfaceReference;
    PINTERFACE_DEREFERENCE InterfaceDereference;
} INTERFACE, *PINTERFACE;

// ---- IRPs ---------------------------------------------------------------------------------------

#define IRP_MJ_CREATE                  0x00
#define IRP_MJ_CLOSE                   0x02
#define IRP_MJ_DEVICE_CONTROL          0x0e
#define IRP_MJ_INTERNAL_DEVICE_CONTROL 0x0f
#define IRP_MJ_PNP                     0x1b
#define IRP_MJ_MAXIMUM_FUNCTION        0x1b
#define IRP_MN_QUERY_INTERFACE         0x08

#define IO_NO_INCREMENT 0

// Bits of IO_STACK_LOCATION.Control.
#define SL_PENDING_RETURNED  0x01
#define SL_INVOKE_ON_CANCEL  0x20
#define SL_INVOKE_ON_SUCCESS 0x40
#define SL_INVOKE_ON_ERROR   0x80

typedef struct _IO_STATUS_BLOCK {
    union {
        NTSTATUS Status;
        PVOID Pointer;
    };
    ULONG_PTR Information;
} IO_STATUS_BLOCK, *PIO_STATUS_BLOCK;

typedef struct _IRP IRP, *PIRP;
typedef struct _DEVICE_OBJECT DEVICE_OBJECT, *PDEVICE_OBJECT;
typedef struct _DRIVER_OBJECT DRIVER_OBJECT, *PDRIVER_OBJECT;

typedef NTSTATUS IO_COMPLETION_ROUTINE(PDEVICE_OBJECT DeviceObject, PIRP Irp, PVOID Context);
typedef IO_COMPLETION_ROUTINE *PIO_COMPLETION_ROUTINE;
// Called with the cancel spin lock held; must release it with Irp->CancelIrql.
typedef VOID DRIVER_CANCEL(PDEVICE_OBJECT DeviceObject, PIRP Irp);
typedef DRIVER_CANCEL *PDRIVER_CANCEL;
typedef NTSTATUS DRIVER_DISPATCH(PDEVICE_OBJECT DeviceObject, PIRP Irp);
typedef DRIVER_DISPATCH *PDRIVER_DISPATCH;

struct _DRIVER_OBJECT {
    PVOID DriverExtension;
    PDRIVER_DISPATCH MajorFunction[IRP_MJ_MAXIMUM_FUNCTION + 1];
};

struct _DEVICE_OBJECT {
    PDRIVER_OBJECT DriverObject;
    PVOID DeviceExtension;
    ULONG Flags;
    CCHAR StackSize;
};

typedef struct _IO_STACK_LOCATION {
    UCHAR MajorFunction;
    UCHAR MinorFunction;
    UCHAR Flags;
    UCHAR Control;
    union {
        struct {
            const GUID *InterfaceType;
            USHORT Size;
            USHORT Version;
            PINTERFACE Interface;
            PVOID InterfaceSpecificData;
        } QueryInterface;
        struct {
            PVOID Argument1;
            PVOID Argument2;
            PVOID Argument3;
            PVOID Argument4;
        } Others;
    } Parameters;
    PDEVICE_OBJECT DeviceObject;
    PVOID FileObject;
    PIO_COMPLETION_ROUTINE CompletionRoutine;
    PVOID Context;
} IO_STACK_LOCATION, *PIO_STACK_LOCATION;

struct _IRP {
    CSHORT Type;
    USHORT Size;
    PMDL MdlAddress;
    ULONG Flags;
    union {
        struct _IRP *MasterIrp;
        PVOID SystemBuffer;
    } AssociatedIrp;
    IO_STATUS_BLOCK IoStatus;
    KPROCESSOR_MODE RequestorMode;
    BOOLEAN PendingReturned;
    CHAR StackCount;
    CHAR CurrentLocation;
    BOOLEAN Cancel;
    KIRQL CancelIrql;
    UCHAR AllocationFlags; // 1: of IoAllocateIrp()
    PIO_STATUS_BLOCK UserIosb;
    PKEVENT UserEvent;
    PDRIVER_CANCEL CancelRoutine;
    PVOID UserBuffer;
    union {
        struct {
            PVOID DriverContext[4]; // the driver's while it owns the IRP
            PVOID Thread;
            LIST_ENTRY ListEntry;
            PIO_STACK_LOCATION CurrentStackLocation;
            PVOID OriginalFileObject;
        } Overlay;
    } Tail;
};

// Bytes of an IRP with this many stack locations.
#define IoSizeOfIrp(StackSize) ((USHORT)(sizeof(IRP) + (StackSize) * sizeof(IO_STACK_LOCATION)))

// An IRP with StackSize locations (at least 1), or NULL. Free it, or let its last completion do so.
NTKERNELAPI PIRP IoAllocateIrp(CCHAR StackSize, BOOLEAN ChargeQuota);
NTKERNELAPI VOID IoFreeIrp(PIRP Irp);
// Makes an IRP in memory of the caller, of at least IoSizeOfIrp() bytes.
NTKERNELAPI VOID IoInitializeIrp(PIRP Irp, USHORT PacketSize, CCHAR StackSize);
// Makes a completed IRP fit for another request; its completion routine must be set again.
NTKERNELAPI VOID IoReuseIrp(PIRP Irp, NTSTATUS Status);

FORCEINLINE PIO_STACK_LOCATION IoGetCurrentIrpStackLocation(PIRP Irp)
{
    return Irp->Tail.Overlay.CurrentStackLocation;
}

FORCEINLINE PIO_STACK_LOCATION IoGetNextIrpStackLocation(PIRP Irp)
{
    return Irp->Tail.Overlay.CurrentStackLocation - 1;
}

FORCEINLINE VOID IoSetNextIrpStackLocation(PIRP Irp)
{
    Irp->CurrentLocation--;
    Irp->Tail.Overlay.CurrentStackLocation--;
}

FORCEINLINE VOID IoSkipCurrentIrpStackLocation(PIRP Irp)
{
    Irp->CurrentLocation++;
    Irp->Tail.Overlay.CurrentStackLocation++;
}

FORCEINLINE VOID IoCopyCurrentIrpStackLocationToNext(PIRP Irp)
{
    PIO_STACK_LOCATION next = IoGetNextIrpStackLocation(Irp);
    *next = *IoGetCurrentIrpStackLocation(Irp);
    next->CompletionRoutine = NULL;
    next->Context = NULL;
    next->Control = 0;
}

// Sets the routine that is called when the driver below completes the IRP, for the outcomes chosen.
// It may return STATUS_MORE_PROCESSING_REQUIRED, which makes the IRP the caller's again. Also when
// the IRP was cancelled with an outcome not chosen, InvokeOnCancel calls it.
FORCEINLINE VOID IoSetCompletionRoutine(PIRP Irp, PIO_COMPLETION_ROUTINE CompletionRoutine,
                                        PVOID Context, BOOLEAN InvokeOnSuccess,
                                        BOOLEAN InvokeOnError, BOOLEAN InvokeOnCancel)
{
    PIO_STACK_LOCATION next = IoGetNextIrpStackLocation(Irp);
    next->CompletionRoutine = CompletionRoutine;
    next->Context = Context;
    next->Control = (UCHAR)((InvokeOnSuccess ? SL_INVOKE_ON_SUCCESS : 0) |
                            (InvokeOnError ? SL_INVOKE_ON_ERROR : 0) |
                            (InvokeOnCancel ? SL_INVOKE_ON_CANCEL : 0));
}

FORCEINLINE VOID IoMarkIrpPending(PIRP Irp)
{
    IoGetCurrentIrpStackLocation(Irp)->Control |= SL_PENDING_RETURNED;
}

// Takes the next stack location and calls the device's dispatch routine. Without a location left
// the IRP is somebody else's: STATUS_INVALID_PARAMETER, nothing is called (Windows stops the
// machine).
NTKERNELAPI NTSTATUS IoCallDriver(PDEVICE_OBJECT DeviceObject, PIRP Irp);
// Ends the IRP with IoStatus as it stands: runs completion routines from the current location up,
// until one returns STATUS_MORE_PROCESSING_REQUIRED. IoStatus.Status must not be STATUS_PENDING.
NTKERNELAPI VOID IoCompleteRequest(PIRP Irp, CCHAR PriorityBoost);

// Sets Cancel and calls the cancel routine if there is one. TRUE if it was called.
NTKERNELAPI BOOLEAN IoCancelIrp(PIRP Irp);
// Exchanges the cancel routine atomically and returns the old one. Who gets a routine back from
// exchanging NULL owns the IRP; who gets NULL leaves completion to the other.
FORCEINLINE PDRIVER_CANCEL IoSetCancelRoutine(PIRP Irp, PDRIVER_CANCEL CancelRoutine)
{
    return __atomic_exchange_n(&Irp->CancelRoutine, CancelRoutine, __ATOMIC_SEQ_CST);
}
NTKERNELAPI VOID IoAcquireCancelSpinLock(PKIRQL Irql);
NTKERNELAPI VOID IoReleaseCancelSpinLock(KIRQL Irql);

#ifdef __cplusplus
}
#endif

#endif
