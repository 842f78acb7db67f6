// SPDX-License-Identifier: BSD-2-Clause
// Requests: how an IRP gets into our hands, where its work is done, and how it ends.
#include "iba/iba.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// ---- the device that verbs send their IRPs to ---------------------------------------------------

// Private: clients that send IRPs of their own use weft_iba_device_object(), so DriverContext[0] is
// always what wf_iba_submit() put there.
static NTSTATUS dispatch(PDEVICE_OBJECT device, PIRP irp)
{
    struct wf_iba_op *op = irp->Tail.Overlay.DriverContext[0];
    return op->begin(op, irp);
}

// Major and minor function are the client's business: every one leads here.
static DRIVER_OBJECT driver = {.MajorFunction = {[0 ... IRP_MJ_MAXIMUM_FUNCTION] = dispatch}};
static DEVICE_OBJECT device = {.DriverObject = &driver, .StackSize = 1};

NTSTATUS wf_iba_submit(struct wf_iba_op *op, CI_UDATA *ud, PIRP irp)
{
    if (!irp || irp->CurrentLocation <= 1) {
        wf_explain(WF_R_IRP_STACK, "IRP %p", (void *)irp);
        return STATUS_INVALID_PARAMETER;
    }
    if (ud)
        ud->OutputSize = 0;
    irp->Tail.Overlay.DriverContext[0] = op;
    return IoCallDriver(&device, irp);
}

NTSTATUS wf_iba_complete(PIRP irp, NTSTATUS status, ULONG_PTR info)
{
    irp->IoStatus.Status = status;
    irp->IoStatus.Information = info;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
    return status;
}

// ---- refusals -----------------------------------------------------------------------------------

static NTSTATUS begin_refusal(struct wf_iba_op *op, PIRP irp)
{
    return wf_iba_complete(irp, op->refusal, 0);
}

static enum wf_reason reason_of(NTSTATUS status)
{
    switch (status) {
    case STATUS_NOT_SUPPORTED:
    case STATUS_INVALID_OPERATION:
        return WF_R_NOT_SUPPORTED;
    case STATUS_FILE_FORCED_CLOSED:
    case STATUS_DELETE_PENDING:
        return WF_R_IBA_GONE;
    default:
        return WF_R_IBA_ARG;
    }
}

NTSTATUS wf_iba_bad(NTSTATUS status, const char *verb)
{
    size_t prefix = strncmp(verb, "wf_iba_", 7) ? 0 : 7; // callers pass __func__
    wf_explain(reason_of(status), "%s: status 0x%08x", verb + prefix, (unsigned)status);
    return status;
}

NTSTATUS wf_iba_refuse(PIRP irp, NTSTATUS status, const char *verb)
{
    wf_iba_bad(status, verb);
    struct wf_iba_op op = {.begin = begin_refusal, .refusal = status};
    return wf_iba_submit(&op, NULL, irp);
}

NTSTATUS wf_iba_status(int err)
{
    switch (-err) {
    case 0:
        return STATUS_SUCCESS;
    case EINVAL:
    case ERANGE:
    case ENOENT:
    case EMSGSIZE:
        return STATUS_INVALID_PARAMETER;
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
        return STATUS_INSUFFICIENT_RESOURCES;
    case EOPNOTSUPP:
    case ENOSYS:
        return STATUS_NOT_SUPPORTED;
    case EPERM:
    case EACCES:
        return STATUS_ACCESS_DENIED;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EADDRNOTAVAIL:
        return STATUS_NETWORK_UNREACHABLE;
    default:
        return STATUS_UNSUCCESSFUL;
    }
}

// ---- work ---------------------------------------------------------------------------------------

static void run_in_engine_thread(struct wf_work *work)
{
    struct wf_iba_op *op = CONTAINING_RECORD(work, struct wf_iba_op, work);
    ULONG_PTR info = 0;
    KIRQL irql;
    wf_iba_enter_engine_thread();
    NTSTATUS status = op->run(op, &info);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    wf_iba_complete(op->irp, status, info);
    KeLowerIrql(irql);
    if (op->target)
        wf_iba_put(op->target);
    wf_iba_leave_engine_thread();
    free(op);
}

static NTSTATUS pend(struct wf_iba_op *op, PIRP irp)
{
    struct wf_iba_op *later = malloc(op->size);
    if (!later) {
        if (op->target)
            wf_iba_put(op->target);
        return wf_iba_complete(irp, STATUS_INSUFFICIENT_RESOURCES, 0);
    }
    memcpy(later, op, op->size);
    later->irp = irp;
    later->work = (struct wf_work){.fn = run_in_engine_thread};
    IoMarkIrpPending(irp);
    wf_hca_defer(wf_iba_device.hca, &later->work);
    return STATUS_PENDING;
}

static NTSTATUS begin_work(struct wf_iba_op *op, PIRP irp)
{
    ULONG_PTR info = 0;
    NTSTATUS status = op->target ? wf_iba_hold(op->target) : STATUS_SUCCESS;
    if (!NT_SUCCESS(status))
        return wf_iba_complete(irp, wf_iba_bad(status, "an async verb"), 0);
    if (!wf_iba_may_run_here())
        return pend(op, irp);
    status = op->run(op, &info);
    wf_iba_complete(irp, status, info);
    if (op->target)
        wf_iba_put(op->target);
    return status;
}

NTSTATUS wf_iba_start(struct wf_iba_op *op, size_t size,
                      NTSTATUS (*run)(struct wf_iba_op *op, ULONG_PTR *info),
                      struct wf_iba_object *target, CI_UDATA *ud, PIRP irp)
{
    op->begin = begin_work;
    op->run = run;
    op->size = size;
    op->target = target;
    return wf_iba_submit(op, ud, irp);
}
