// SPDX-License-Identifier: BSD-2-Clause
#include "iba/native.h"

#include "iba/iba.h"

#include <stdlib.h>

struct native_op {
    struct wf_work work;
    struct wf_iba_qp *qp;
    IB_QP_ATTR *attr;
    WEFT_IBA_DONE done;
    PVOID context;
};

static void run_in_engine_thread(struct wf_work *work)
{
    struct native_op *op = CONTAINING_RECORD(work, struct native_op, work);
    KIRQL irql;
    wf_iba_enter_engine_thread();
    NTSTATUS status = wf_iba_read_qp(op->qp, op->attr);
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    op->done(op->context, status, 0);
    KeLowerIrql(irql);
    wf_iba_put(&op->qp->obj);
    wf_iba_leave_engine_thread();
    free(op);
}

static NTSTATUS pend(const struct native_op *op)
{
    struct native_op *later = malloc(sizeof(*later));
    if (!later) {
        wf_iba_put(&op->qp->obj);
        op->done(op->context, STATUS_INSUFFICIENT_RESOURCES, 0);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    *later = *op;
    later->work = (struct wf_work){.fn = run_in_engine_thread};
    wf_hca_defer(wf_iba_device.hca, &later->work);
    return STATUS_PENDING;
}

NTSTATUS wf_iba_native_query_qp(IB_QP *qp, IB_QP_ATTR *attr, WEFT_IBA_DONE done, PVOID context)
{
    struct native_op op = {.qp = wf_iba_qp_of(qp), .attr = attr, .done = done, .context = context};
    NTSTATUS status = op.qp && attr ? wf_iba_hold(&op.qp->obj) : STATUS_INVALID_PARAMETER;
    if (NT_SUCCESS(status)) {
        if (!wf_iba_may_run_here())
            return pend(&op);
        status = wf_iba_read_qp(op.qp, attr);
        wf_iba_put(&op.qp->obj);
    }
    done(context, status, 0);
    return status;
}
