// SPDX-License-Identifier: BSD-2-Clause
// IRPs: life, the walk over stack locations, completion and cancelling.
#include "base/reason.h"
#include "weft/wdm.h"

#include <stdlib.h>

#define IO_TYPE_IRP    6
#define OF_IO_ALLOCATE 1

static KSPIN_LOCK cancel_lock;

static PIO_STACK_LOCATION locations(PIRP irp)
{
    return (PIO_STACK_LOCATION)(irp + 1);
}

VOID IoInitializeIrp(PIRP Irp, USHORT PacketSize, CCHAR StackSize)
{
    memset(Irp, 0, PacketSize);
    Irp->Type = IO_TYPE_IRP;
    Irp->Size = PacketSize;
    Irp->StackCount = StackSize;
    Irp->CurrentLocation = (CHAR)(StackSize + 1);
    Irp->Tail.Overlay.CurrentStackLocation = locations(Irp) + StackSize;
    InitializeListHead(&Irp->Tail.Overlay.ListEntry);
}

// One location more than asked for lies behind the last: what IoGetCurrentIrpStackLocation() of the
// originator points at, so that marking an IRP pending there hits memory of ours.
PIRP IoAllocateIrp(CCHAR StackSize, BOOLEAN ChargeQuota)
{
    if (StackSize < 1 || StackSize > 100)
        return NULL;
    PIRP irp = malloc(IoSizeOfIrp(StackSize + 1));
    if (!irp)
        return NULL;
    IoInitializeIrp(irp, IoSizeOfIrp(StackSize), StackSize);
    memset(locations(irp) + StackSize, 0, sizeof(IO_STACK_LOCATION));
    irp->AllocationFlags = OF_IO_ALLOCATE;
    return irp;
}

VOID IoFreeIrp(PIRP Irp)
{
    Irp->Type = 0;
    if (Irp->AllocationFlags & OF_IO_ALLOCATE)
        free(Irp);
}

VOID IoReuseIrp(PIRP Irp, NTSTATUS Status)
{
    UCHAR flags = Irp->AllocationFlags;
    IoInitializeIrp(Irp, Irp->Size, Irp->StackCount);
    Irp->AllocationFlags = flags;
    Irp->IoStatus.Status = Status;
}

NTSTATUS IoCallDriver(PDEVICE_OBJECT DeviceObject, PIRP Irp)
{
    if (Irp->CurrentLocation <= 1) {
        wf_explain(WF_R_IRP_STACK, "IRP %p has %d locations, all in use", (void *)Irp,
                   Irp->StackCount);
        return STATUS_INVALID_PARAMETER;
    }
    IoSetNextIrpStackLocation(Irp);
    PIO_STACK_LOCATION here = IoGetCurrentIrpStackLocation(Irp);
    here->DeviceObject = DeviceObject;
    unsigned major = here->MajorFunction;
    if (major > IRP_MJ_MAXIMUM_FUNCTION || !DeviceObject->DriverObject->MajorFunction[major]) {
        Irp->IoStatus.Status = STATUS_INVALID_DEVICE_REQUEST;
        Irp->IoStatus.Information = 0;
        IoCompleteRequest(Irp, IO_NO_INCREMENT);
        return STATUS_INVALID_DEVICE_REQUEST;
    }
    return DeviceObject->DriverObject->MajorFunction[major](DeviceObject, Irp);
}

static int wants_completion(PIRP irp, const IO_STACK_LOCATION *here)
{
    if (!here->CompletionRoutine)
        return 0;
    if (NT_SUCCESS(irp->IoStatus.Status) ? here->Control & SL_INVOKE_ON_SUCCESS
                                         : here->Control & SL_INVOKE_ON_ERROR)
        return 1;
    return __atomic_load_n(&irp->Cancel, __ATOMIC_SEQ_CST) && (here->Control & SL_INVOKE_ON_CANCEL);
}

static void end_irp(PIRP irp)
{
    PKEVENT event = irp->UserEvent;
    if (irp->UserIosb)
        *irp->UserIosb = irp->IoStatus;
    IoFreeIrp(irp);
    if (event)
        KeSetEvent(event, IO_NO_INCREMENT, FALSE);
}

// A completion routine belongs to the driver above, so it gets that driver's device object, and the
// location is left before it runs: the routine may send the IRP down again.
VOID IoCompleteRequest(PIRP Irp, CCHAR PriorityBoost)
{
    while (Irp->CurrentLocation <= Irp->StackCount) {
        PIO_STACK_LOCATION here = IoGetCurrentIrpStackLocation(Irp);
        Irp->PendingReturned = (here->Control & SL_PENDING_RETURNED) != 0;
        IoSkipCurrentIrpStackLocation(Irp);
        if (wants_completion(Irp, here)) {
            PDEVICE_OBJECT above = Irp->CurrentLocation <= Irp->StackCount
                                       ? IoGetCurrentIrpStackLocation(Irp)->DeviceObject
                                       : NULL;
            PIO_COMPLETION_ROUTINE routine = here->CompletionRoutine;
            here->Control = 0;
            if (routine(above, Irp, here->Context) == STATUS_MORE_PROCESSING_REQUIRED)
                return;
        } else if (Irp->PendingReturned && Irp->CurrentLocation <= Irp->StackCount) {
            IoMarkIrpPending(Irp); // drivers above without a routine pass the mark on
        }
    }
    end_irp(Irp);
}

VOID IoAcquireCancelSpinLock(PKIRQL Irql)
{
    KeAcquireSpinLock(&cancel_lock, Irql);
}

VOID IoReleaseCancelSpinLock(KIRQL Irql)
{
    KeReleaseSpinLock(&cancel_lock, Irql);
}

BOOLEAN IoCancelIrp(PIRP Irp)
{
    KIRQL irql;
    IoAcquireCancelSpinLock(&irql);
    __atomic_store_n(&Irp->Cancel, TRUE, __ATOMIC_SEQ_CST);
    PDRIVER_CANCEL routine = IoSetCancelRoutine(Irp, NULL);
    if (!routine) {
        IoReleaseCancelSpinLock(irql);
        return FALSE;
    }
    Irp->CancelIrql = irql;
    PIO_STACK_LOCATION here =
        Irp->CurrentLocation <= Irp->StackCount ? IoGetCurrentIrpStackLocation(Irp) : NULL;
    routine(here ? here->DeviceObject : NULL, Irp);
    return TRUE;
}
