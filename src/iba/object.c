// SPDX-License-Identifier: BSD-2-Clause
// Life and end of objects. An object ends when it is closing and has no user left: its engine part
// is destroyed, the IRPs of its destroy verbs complete, and then its parents lose a user, which may
// end them in turn. What the engine still holds on to (a region with a bound window) is a zombie:
// asked again after a millisecond, and whenever something happened that may have freed it.
#include "iba/iba.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>

#define RETRY_NS 1000000ull

static void retry_later(void);

struct wf_iba_object *wf_iba_object_new(const struct wf_iba_class *class, size_t size,
                                        struct wf_iba_ca *ca)
{
    struct wf_iba_object *o = calloc(1, size);
    if (!o)
        return NULL;
    o->kind = class->kind;
    o->class = class;
    o->ca = ca;
    InitializeListHead(&o->destroyers);
    InitializeListHead(&o->in_ca);
    InitializeListHead(&o->zombie);
    return o;
}

static NTSTATUS alive_locked(const struct wf_iba_object *o)
{
    if (o->closing)
        return STATUS_DELETE_PENDING;
    return o->ca->dead ? STATUS_FILE_FORCED_CLOSED : STATUS_SUCCESS;
}

NTSTATUS wf_iba_alive(const struct wf_iba_object *o)
{
    if (__atomic_load_n(&o->closing, __ATOMIC_RELAXED))
        return STATUS_DELETE_PENDING;
    return __atomic_load_n(&o->ca->dead, __ATOMIC_RELAXED) ? STATUS_FILE_FORCED_CLOSED
                                                           : STATUS_SUCCESS;
}

NTSTATUS wf_iba_adopt(struct wf_iba_object *o, int slot, struct wf_iba_object *parent)
{
    KIRQL irql = wf_iba_lock();
    NTSTATUS status = alive_locked(parent);
    if (NT_SUCCESS(status)) {
        parent->users++;
        if (parent->nref)
            InterlockedIncrement(parent->nref);
        o->parent[slot] = parent;
    }
    wf_iba_unlock(irql);
    return status;
}

NTSTATUS wf_iba_hold(struct wf_iba_object *o)
{
    KIRQL irql = wf_iba_lock();
    NTSTATUS status = alive_locked(o);
    if (NT_SUCCESS(status))
        o->users++;
    wf_iba_unlock(irql);
    return status;
}

struct wf_iba_object *wf_iba_object_of(const void *pub, enum wf_iba_kind kind)
{
    if (!pub || (uintptr_t)pub % 8)
        return NULL;
    struct wf_iba_object *o = (struct wf_iba_object *)pub - 1;
    return o->kind == kind ? o : NULL;
}

// True when the caller has to end the object.
static bool drop_locked(struct wf_iba_object *o)
{
    o->users--;
    if (o->users || !o->closing || o->reaping)
        return false;
    o->reaping = true;
    return true;
}

static int drop_parents(struct wf_iba_object *o, struct wf_iba_object *last[WF_IBA_PARENTS])
{
    int n = 0;
    KIRQL irql = wf_iba_lock();
    RemoveEntryList(&o->in_ca);
    for (int i = 0; i < WF_IBA_PARENTS; i++) {
        struct wf_iba_object *p = o->parent[i];
        if (!p)
            continue;
        if (p->nref)
            InterlockedDecrement(p->nref);
        if (drop_locked(p))
            last[n++] = p;
    }
    wf_iba_unlock(irql);
    return n;
}

static void complete_from_here(PIRP irp, ULONG_PTR result)
{
    KIRQL irql = 0;
    bool raise = wf_iba_in_engine_thread();
    if (raise)
        KeRaiseIrql(DISPATCH_LEVEL, &irql);
    wf_iba_complete(irp, STATUS_SUCCESS, result);
    if (raise)
        KeLowerIrql(irql);
}

static void reap(struct wf_iba_object *o);

// The engine part is gone. `first` is an IRP of a destroy verb that did not pend, or NULL.
static void release(struct wf_iba_object *o, PIRP first)
{
    struct wf_iba_object *last[WF_IBA_PARENTS];
    int n = drop_parents(o, last);
    LIST_ENTRY waiting;
    ULONG_PTR result = o->result;

    if (o->kind == WF_IBA_CA)
        wf_iba_device_put();
    InitializeListHead(&waiting);
    while (!IsListEmpty(&o->destroyers))
        InsertTailList(&waiting, RemoveHeadList(&o->destroyers));
    o->kind = 0;
    free(o);
    if (first)
        wf_iba_complete(first, STATUS_SUCCESS, result);
    while (!IsListEmpty(&waiting)) {
        PLIST_ENTRY e = RemoveHeadList(&waiting);
        complete_from_here(CONTAINING_RECORD(e, IRP, Tail.Overlay.ListEntry), result);
    }
    for (int i = 0; i < n; i++)
        reap(last[i]);
}

static void bury(struct wf_iba_object *o)
{
    KIRQL irql = wf_iba_lock();
    InsertTailList(&wf_iba_device.zombies, &o->zombie);
    wf_iba_unlock(irql);
    retry_later();
}

static void end(struct wf_iba_object *o)
{
    int rc = o->class->destroy(o);
    if (rc == -EBUSY)
        bury(o);
    else
        release(o, NULL);
}

static void end_in_engine_thread(struct wf_work *work)
{
    wf_iba_enter_engine_thread();
    end(CONTAINING_RECORD(work, struct wf_iba_object, work));
    wf_iba_leave_engine_thread();
}

static void defer_end(struct wf_iba_object *o)
{
    o->work.fn = end_in_engine_thread;
    wf_hca_defer(wf_iba_device.hca, &o->work);
}

static void reap(struct wf_iba_object *o)
{
    if (wf_iba_may_run_here())
        end(o);
    else
        defer_end(o);
}

void wf_iba_put(struct wf_iba_object *o)
{
    KIRQL irql = wf_iba_lock();
    bool last = drop_locked(o);
    wf_iba_unlock(irql);
    if (last)
        reap(o);
}

void wf_iba_object_discard(struct wf_iba_object *o)
{
    struct wf_iba_object *last[WF_IBA_PARENTS];
    int n = drop_parents(o, last);
    o->kind = 0;
    free(o);
    for (int i = 0; i < n; i++)
        reap(last[i]);
}

// ---- zombies ------------------------------------------------------------------------------------

static void retry_in_engine_thread(struct wf_work *work)
{
    LIST_ENTRY todo;
    InitializeListHead(&todo);
    wf_iba_enter_engine_thread();
    KIRQL irql = wf_iba_lock();
    __atomic_store_n(&wf_iba_device.retrying, false, __ATOMIC_RELAXED);
    while (!IsListEmpty(&wf_iba_device.zombies))
        InsertTailList(&todo, RemoveHeadList(&wf_iba_device.zombies));
    wf_iba_unlock(irql);
    while (!IsListEmpty(&todo)) {
        struct wf_iba_object *o =
            CONTAINING_RECORD(RemoveHeadList(&todo), struct wf_iba_object, zombie);
        InitializeListHead(&o->zombie);
        end(o);
    }
    wf_iba_leave_engine_thread();
}

static void retry_later(void)
{
    struct wf_iba_device *d = &wf_iba_device;
    KIRQL irql = wf_iba_lock();
    bool set = !d->retrying;
    __atomic_store_n(&d->retrying, true, __ATOMIC_RELAXED);
    wf_iba_unlock(irql);
    if (!set)
        return;
    d->retry.work.fn = retry_in_engine_thread;
    wf_hca_set_timer(d->hca, &d->retry, wf_clock_ns() + RETRY_NS);
}

void wf_iba_retry_zombies(void)
{
    if (__atomic_load_n(&wf_iba_device.retrying, __ATOMIC_RELAXED))
        wf_hca_set_timer(wf_iba_device.hca, &wf_iba_device.retry, wf_clock_ns());
}

// ---- destroy verbs ------------------------------------------------------------------------------

static void pend_locked(struct wf_iba_object *o, PIRP irp)
{
    IoMarkIrpPending(irp);
    InsertTailList(&o->destroyers, &irp->Tail.Overlay.ListEntry);
}

// Gives back the user that begin_destroy() took, and ends the object in the call when that was the
// last and the caller may block.
static NTSTATUS settle(struct wf_iba_object *o, PIRP irp)
{
    bool here = wf_iba_may_run_here();
    KIRQL irql = wf_iba_lock();
    o->users--;
    bool idle = o->users == 0 && !o->reaping;
    if (idle)
        o->reaping = true;
    if (!idle || !here)
        pend_locked(o, irp);
    wf_iba_unlock(irql);
    if (!idle)
        return STATUS_PENDING;
    if (!here) {
        defer_end(o);
        return STATUS_PENDING;
    }
    if (o->class->destroy(o) != -EBUSY) {
        release(o, irp);
        return STATUS_SUCCESS;
    }
    pend_locked(o, irp); // nobody else has it: it is being reaped
    bury(o);
    return STATUS_PENDING;
}

static NTSTATUS begin_destroy(struct wf_iba_op *op, PIRP irp)
{
    struct wf_iba_object *o = op->target;
    KIRQL irql = wf_iba_lock();
    bool first = !o->closing;
    __atomic_store_n(&o->closing, true, __ATOMIC_RELAXED);
    o->users++;
    wf_iba_unlock(irql);
    if (first && o->class->flush)
        o->class->flush(o, STATUS_CANCELLED);
    return settle(o, irp);
}

NTSTATUS wf_iba_destroy(struct wf_iba_object *o, CI_UDATA *ud, PIRP irp)
{
    struct wf_iba_op op = {.begin = begin_destroy, .target = o};
    if (!o)
        return wf_iba_refuse(irp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_submit(&op, ud, irp);
}
