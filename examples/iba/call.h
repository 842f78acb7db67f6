// SPDX-License-Identifier: BSD-2-Clause
// Asynchronous verbs called the simple way: one IRP, used again and again, and a wait for it. A
// program that must not wait uses the completion routine itself, as the last part of tour.c does.
#ifndef EXAMPLES_IBA_CALL_H
#define EXAMPLES_IBA_CALL_H

#include <weft/iba.h>

#include <stdio.h>
#include <stdlib.h>

struct call {
    PIRP irp;
    KEVENT done;
};

static inline NTSTATUS call_completed(PDEVICE_OBJECT device, PIRP irp, PVOID context)
{
    (void)device;
    (void)irp;
    KeSetEvent(&((struct call *)context)->done, IO_NO_INCREMENT, FALSE);
    return STATUS_MORE_PROCESSING_REQUIRED; // the IRP stays ours
}

static inline void call_init(struct call *c)
{
    c->irp = IoAllocateIrp(1, FALSE);
    if (!c->irp) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    KeInitializeEvent(&c->done, NotificationEvent, FALSE);
}

static inline void call_free(struct call *c)
{
    IoFreeIrp(c->irp);
}

// The IRP for the next verb.
static inline PIRP call_irp(struct call *c)
{
    IoReuseIrp(c->irp, STATUS_SUCCESS);
    KeClearEvent(&c->done);
    IoGetNextIrpStackLocation(c->irp)->MajorFunction = IRP_MJ_INTERNAL_DEVICE_CONTROL;
    IoSetCompletionRoutine(c->irp, call_completed, c, TRUE, TRUE, TRUE);
    return c->irp;
}

// Waits for the verb, whatever it returned; ends the program when it failed.
static inline ULONG_PTR call_wait(struct call *c, const char *verb)
{
    KeWaitForSingleObject(&c->done, Executive, KernelMode, FALSE, NULL);
    if (!NT_SUCCESS(c->irp->IoStatus.Status)) {
        fprintf(stderr, "%s: 0x%08x\n", verb, (unsigned)c->irp->IoStatus.Status);
        exit(1);
    }
    return c->irp->IoStatus.Information;
}

// For synchronous verbs.
static inline void check(NTSTATUS status, const char *verb)
{
    if (!NT_SUCCESS(status)) {
        fprintf(stderr, "%s: 0x%08x\n", verb, (unsigned)status);
        exit(1);
    }
}

#endif
