// SPDX-License-Identifier: BSD-2-Clause
// Event sources: events wait for IRPs, IRPs wait for events, and both may be cancelled.
//
// An IRP that waits is on `irps` with a cancel routine set. Whoever takes it off exchanges the
// routine away; getting NULL means that IoCancelIrp() has it, and then it is left to the cancel
// routine. Every waiting IRP is a user of the object, so the source outlives them all.
#include "iba/iba.h"

static void deliver(struct wf_work *work);

void wf_iba_events_init(struct wf_iba_events *e, struct wf_iba_object *owner,
                        void (*call)(struct wf_iba_events *e, ULONG event))
{
    e->owner = owner;
    e->call = call;
    e->work.fn = deliver;
    InitializeListHead(&e->irps);
}

// ---- under the device lock ----------------------------------------------------------------------

static void push(struct wf_iba_events *e, ULONG event)
{
    e->happened = true;
    if (e->count < (e->latch ? 1 : WF_IBA_EVENTS))
        e->ring[(e->head + e->count++) % WF_IBA_EVENTS] = event;
}

static ULONG pop(struct wf_iba_events *e)
{
    ULONG event = e->ring[e->head];
    e->head = (e->head + 1) % WF_IBA_EVENTS;
    e->count--;
    return event;
}

static PIRP take_irp(struct wf_iba_events *e)
{
    while (!IsListEmpty(&e->irps)) {
        PLIST_ENTRY entry = RemoveHeadList(&e->irps);
        PIRP irp = CONTAINING_RECORD(entry, IRP, Tail.Overlay.ListEntry);
        InitializeListHead(entry);
        if (IoSetCancelRoutine(irp, NULL))
            return irp;
    }
    return NULL;
}

// ---- delivery -----------------------------------------------------------------------------------

static void complete_waiter(struct wf_iba_events *e, PIRP irp, NTSTATUS status, ULONG_PTR info)
{
    wf_iba_complete(irp, status, info);
    wf_iba_put(e->owner);
}

// One event to its taker; false when there is none, or no event.
static bool deliver_one(struct wf_iba_events *e)
{
    PIRP irp = NULL;
    ULONG event = 0;
    KIRQL irql = wf_iba_lock();
    bool more = e->count && !e->owner->closing;
    if (more)
        irp = take_irp(e);
    if (irp || (more && e->call))
        event = pop(e);
    else
        more = e->scheduled = false;
    wf_iba_unlock(irql);
    if (!more)
        return false;
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    if (irp)
        complete_waiter(e, irp, STATUS_SUCCESS, e->latch || e->sticky ? 0 : event);
    else
        e->call(e, event);
    KeLowerIrql(irql);
    return true;
}

static void deliver(struct wf_work *work)
{
    struct wf_iba_events *e = CONTAINING_RECORD(work, struct wf_iba_events, work);
    wf_iba_enter_engine_thread();
    while (deliver_one(e)) {
    }
    wf_iba_put(e->owner);
    wf_iba_leave_engine_thread();
}

void wf_iba_raise(struct wf_iba_events *e, ULONG event)
{
    KIRQL irql = wf_iba_lock();
    bool start = false;
    if (!e->owner->closing) {
        push(e, event);
        start = !e->scheduled;
        if (start) {
            e->scheduled = true;
            e->owner->users++;
        }
    }
    wf_iba_unlock(irql);
    if (start)
        wf_hca_defer(wf_iba_device.hca, &e->work);
}

// ---- waiting ------------------------------------------------------------------------------------

// The cancel spin lock is held until the IRP is off the list, so that a destroy verb which finds
// the list empty knows that what is left is being completed.
static VOID cancel_wait(PDEVICE_OBJECT device, PIRP irp)
{
    struct wf_iba_events *e = irp->Tail.Overlay.DriverContext[1];
    KIRQL irql = wf_iba_lock();
    RemoveEntryList(&irp->Tail.Overlay.ListEntry);
    wf_iba_unlock(irql);
    IoReleaseCancelSpinLock(irp->CancelIrql);
    complete_waiter(e, irp, STATUS_CANCELLED, 0);
}

static NTSTATUS wait_status(const struct wf_iba_events *e)
{
    if (e->owner->closing)
        return STATUS_DELETE_PENDING;
    if (e->sticky && e->happened)
        return STATUS_SUCCESS;
    return e->owner->ca->dead ? STATUS_FILE_FORCED_CLOSED : STATUS_PENDING;
}

static void enqueue(struct wf_iba_events *e, PIRP irp)
{
    IoMarkIrpPending(irp);
    irp->Tail.Overlay.DriverContext[1] = e;
    InsertTailList(&e->irps, &irp->Tail.Overlay.ListEntry);
    e->owner->users++;
    IoSetCancelRoutine(irp, cancel_wait);
}

// Takes the IRP back if it was cancelled before it had a cancel routine.
static bool was_cancelled(PIRP irp)
{
    if (!__atomic_load_n(&irp->Cancel, __ATOMIC_SEQ_CST) || !IoSetCancelRoutine(irp, NULL))
        return false;
    RemoveEntryList(&irp->Tail.Overlay.ListEntry);
    return true;
}

static NTSTATUS begin_wait(struct wf_iba_op *op, PIRP irp)
{
    struct wf_iba_events *e = op->queue;
    PIRP replaced = NULL;
    ULONG_PTR info = 0;
    bool cancelled = false;
    KIRQL irql = wf_iba_lock();
    NTSTATUS status = wait_status(e);
    if (status == STATUS_PENDING && e->count && !e->scheduled) {
        info = pop(e);
        info = e->latch ? 0 : info;
        status = STATUS_SUCCESS;
    } else if (status == STATUS_PENDING) {
        replaced = e->latch ? take_irp(e) : NULL;
        enqueue(e, irp);
        cancelled = was_cancelled(irp);
    }
    wf_iba_unlock(irql);
    if (replaced)
        complete_waiter(e, replaced, STATUS_CANCELLED, 0);
    if (cancelled)
        complete_waiter(e, irp, STATUS_CANCELLED, 0);
    return status == STATUS_PENDING ? status : wf_iba_complete(irp, status, info);
}

NTSTATUS wf_iba_wait_event(struct wf_iba_events *e, PIRP irp)
{
    struct wf_iba_op op = {.begin = begin_wait, .queue = e};
    return wf_iba_submit(&op, NULL, irp);
}

void wf_iba_flush_events(struct wf_iba_events *e, NTSTATUS status)
{
    for (;;) {
        KIRQL irql = wf_iba_lock();
        PIRP irp = take_irp(e);
        wf_iba_unlock(irql);
        if (!irp)
            break;
        complete_waiter(e, irp, status, 0);
    }
    // Wait for cancel routines that have exchanged themselves away but not left the list yet.
    KIRQL irql;
    IoAcquireCancelSpinLock(&irql);
    IoReleaseCancelSpinLock(irql);
}
