// SPDX-License-Identifier: BSD-2-Clause
// Channel adapters: open, close, events of the device and of ports.
#include "iba/iba.h"

#include <string.h>

// ---- events -------------------------------------------------------------------------------------

static void call_fatal(struct wf_iba_events *e, ULONG event)
{
    struct wf_iba_ca *ca = CONTAINING_RECORD(e, struct wf_iba_ca, fatal);
    ca->on_event(&ca->pub, ca->pub.Context, 0, (IB_ASYNC_EVENT)event);
}

static void call_port(struct wf_iba_events *e, ULONG event)
{
    struct wf_iba_ca *ca = CONTAINING_RECORD(e->owner, struct wf_iba_ca, obj);
    UCHAR port = (UCHAR)(e - ca->port + 1);
    ca->on_event(&ca->pub, ca->pub.Context, port, (IB_ASYNC_EVENT)event);
}

void wf_iba_add_source(struct wf_iba_object *o)
{
    KIRQL irql = wf_iba_lock();
    InsertTailList(&o->ca->sources, &o->in_ca);
    wf_iba_unlock(irql);
}

// The next object with events that has not been told yet, held.
static struct wf_iba_object *next_untold(struct wf_iba_ca *ca)
{
    struct wf_iba_object *found = NULL;
    KIRQL irql = wf_iba_lock();
    for (PLIST_ENTRY p = ca->sources.Flink; p != &ca->sources && !found; p = p->Flink) {
        struct wf_iba_object *o = CONTAINING_RECORD(p, struct wf_iba_object, in_ca);
        if (o->told_dead || o->closing)
            continue;
        o->told_dead = true;
        o->users++;
        found = o;
    }
    wf_iba_unlock(irql);
    return found;
}

// After a fatal event every IRP that waits for something else ends: it would wait for ever.
static void tell_dead(struct wf_work *work)
{
    struct wf_iba_ca *ca = CONTAINING_RECORD(work, struct wf_iba_ca, dead_work);
    struct wf_iba_object *o;
    KIRQL irql;
    wf_iba_enter_engine_thread();
    KeRaiseIrql(DISPATCH_LEVEL, &irql);
    for (int i = 0; i < WF_IBA_PORTS; i++)
        wf_iba_flush_events(&ca->port[i], STATUS_FILE_FORCED_CLOSED);
    while ((o = next_untold(ca))) {
        o->class->flush(o, STATUS_FILE_FORCED_CLOSED);
        wf_iba_put(o);
    }
    KeLowerIrql(irql);
    wf_iba_put(&ca->obj);
    wf_iba_leave_engine_thread();
}

static void die(struct wf_iba_ca *ca)
{
    KIRQL irql = wf_iba_lock();
    bool first = !ca->dead && !ca->obj.closing;
    __atomic_store_n(&ca->dead, true, __ATOMIC_RELAXED);
    if (first)
        ca->obj.users++;
    wf_iba_unlock(irql);
    wf_iba_raise(&ca->fatal, IbAeLocalFatal);
    if (first)
        wf_hca_defer(wf_iba_device.hca, &ca->dead_work);
}

void wf_iba_ca_async(void *user, enum ibv_event_type type, void *object, uint8_t port)
{
    struct wf_iba_ca *ca = user;
    ULONG event = wf_iba_event(type, ca->ifc->version);
    switch (type) {
    case IBV_EVENT_DEVICE_FATAL:
        die(ca);
        break;
    case IBV_EVENT_CQ_ERR:
        wf_iba_raise(&((struct wf_iba_cq *)object)->async, event);
        break;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        wf_iba_raise(&((struct wf_iba_srq *)object)->async, event);
        break;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        wf_iba_raise(&((struct wf_iba_qp *)object)->async, event);
        break;
    default:
        if (port >= 1 && port <= WF_IBA_PORTS)
            wf_iba_raise(&ca->port[port - 1], event);
        break;
    }
}

// ---- class --------------------------------------------------------------------------------------

static int destroy(struct wf_iba_object *o)
{
    struct wf_iba_ca *ca = CONTAINING_RECORD(o, struct wf_iba_ca, obj);
    wf_iba_release_port_caps(ca);
    weft_wdm_may_block("closing a context");
    return ca->ctx ? wf_ctx_close(ca->ctx) : 0;
}

static void flush(struct wf_iba_object *o, NTSTATUS status)
{
    struct wf_iba_ca *ca = CONTAINING_RECORD(o, struct wf_iba_ca, obj);
    wf_iba_flush_events(&ca->fatal, status);
    for (int i = 0; i < WF_IBA_PORTS; i++)
        wf_iba_flush_events(&ca->port[i], status);
}

static const struct wf_iba_class ca_class = {WF_IBA_CA, destroy, flush};

struct wf_iba_ca *wf_iba_ca_of(const IB_CA *pub)
{
    return (struct wf_iba_ca *)wf_iba_object_of(pub, WF_IBA_CA);
}

// ---- open, close --------------------------------------------------------------------------------

struct open_op {
    struct wf_iba_op op;
    const struct wf_iba_ifc *ifc;
    VOID *context;
    PFN_IB_CA_ASYNC_EVENT on_event;
};

static void init(struct wf_iba_ca *ca, const struct open_op *a)
{
    ca->obj.ca = ca;
    ca->obj.nref = &ca->pub.nRef;
    ca->pub.Context = a->context;
    ca->ifc = a->ifc;
    ca->on_event = a->on_event;
    ca->dead_work.fn = tell_dead;
    InitializeListHead(&ca->sources);
    wf_iba_events_init(&ca->fatal, &ca->obj, a->on_event ? call_fatal : NULL);
    ca->fatal.sticky = true;
    for (int i = 0; i < WF_IBA_PORTS; i++)
        wf_iba_events_init(&ca->port[i], &ca->obj, a->on_event ? call_port : NULL);
}

static NTSTATUS run_open(struct wf_iba_op *op, ULONG_PTR *info)
{
    static const struct wf_ctx_ops ops = {wf_iba_ca_async};
    struct wf_iba_ca *ca = (struct wf_iba_ca *)wf_iba_object_new(&ca_class, sizeof(*ca), NULL);
    if (!ca)
        return STATUS_INSUFFICIENT_RESOURCES;
    init(ca, (struct open_op *)op);
    int rc = wf_ctx_open(wf_iba_device.hca, &ops, ca, &ca->ctx);
    if (rc) {
        wf_iba_object_discard(&ca->obj);
        return wf_iba_status(rc);
    }
    InterlockedIncrement(&wf_iba_device.refs); // the caller's table holds another
    *info = (ULONG_PTR)&ca->pub;
    return STATUS_SUCCESS;
}

NTSTATUS wf_iba_open_ca(VOID *const IfcContext, VOID *const Context,
                        PFN_IB_CA_ASYNC_EVENT CaAsyncEvent, CI_UDATA *const pUserData,
                        IRP *const pIrp)
{
    struct open_op op = {
        .ifc = wf_iba_ifc_of(IfcContext), .context = Context, .on_event = CaAsyncEvent};
    if (!op.ifc)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_start(&op.op, sizeof(op), run_open, NULL, pUserData, pIrp);
}

NTSTATUS wf_iba_close_ca(IB_CA *const pCa, CI_UDATA *const pUserData, IRP *const pIrp)
{
    struct wf_iba_ca *ca = wf_iba_ca_of(pCa);
    return wf_iba_destroy(ca ? &ca->obj : NULL, pUserData, pIrp);
}

// ---- event verbs --------------------------------------------------------------------------------

NTSTATUS wf_iba_get_ca_fatal_event(IB_CA *const pCa, IRP *const pIrp)
{
    struct wf_iba_ca *ca = wf_iba_ca_of(pCa);
    if (!ca)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_wait_event(&ca->fatal, pIrp);
}

NTSTATUS wf_iba_get_ca_port_event(IB_CA *const pCa, const UCHAR PortNumber, IRP *const pIrp)
{
    struct wf_iba_ca *ca = wf_iba_ca_of(pCa);
    if (!ca || PortNumber < 1 || PortNumber > WF_IBA_PORTS)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_wait_event(&ca->port[PortNumber - 1], pIrp);
}
