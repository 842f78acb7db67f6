// SPDX-License-Identifier: BSD-2-Clause
#include "iba/rig.h"

#include "base/clock.h"
#include "engine/engine.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_S 20

// ---- the engine ---------------------------------------------------------------------------------

static void make_gids(struct wf_gid_table *t)
{
    memset(t, 0, sizeof(*t));
    t->port_active = 1;
    t->active_mtu = IBV_MTU_1024;
    t->node_guid = 0x0200000000000001ull;
    for (int i = 0; i < 2; i++) {
        t->gids[i].gid.raw[10] = t->gids[i].gid.raw[11] = 0xff;
        t->gids[i].gid.raw[12] = 10;
        t->gids[i].gid.raw[15] = (uint8_t)(i + 1);
        t->gids[i].ifindex = 1;
        t->gids[i].ifmtu = 1500;
        t->gids[i].up = 1;
    }
}

void rig_open(struct rig *r)
{
    struct wf_gid_table gids;
    struct wf_hca_parts parts = {.slot = 1, .gids = &gids};
    memset(r, 0, sizeof(*r));
    make_gids(&gids);
    assert_int_equal(wf_loop_link_create(&parts.loop), 0);
    assert_int_equal(wf_hca_create(&parts, &r->hca), 0);
    assert_int_equal(wf_thread_start(r->hca), 0);
    wf_iba_device_inject(r->hca);
    assert_int_equal(weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 2, (PINTERFACE)&r->t), 0);
    r->v = &r->t.v1;
}

void rig_close(struct rig *r)
{
    r->v->InterfaceDereference(r->v->Context);
    assert_int_equal(weft_wdm_irql_violations(), 0);
    assert_int_equal(wf_iba_device.refs, 0);
    wf_iba_device_inject(NULL);
    weft_iba_set_policy(WEFT_IBA_BY_IRQL);
    wf_thread_stop(r->hca);
    wf_hca_destroy(r->hca);
}

// ---- calls --------------------------------------------------------------------------------------

static NTSTATUS completed(PDEVICE_OBJECT device, PIRP irp, PVOID context)
{
    struct rig_call *c = context;
    c->status = irp->IoStatus.Status;
    c->info = irp->IoStatus.Information;
    c->pending = irp->PendingReturned;
    c->irql = KeGetCurrentIrql();
    InterlockedIncrement(&c->completions);
    KeSetEvent(&c->done, IO_NO_INCREMENT, FALSE);
    return STATUS_MORE_PROCESSING_REQUIRED;
}

PIRP rig_irp(struct rig_call *c)
{
    memset(c, 0, sizeof(*c));
    KeInitializeEvent(&c->done, NotificationEvent, FALSE);
    c->irp = IoAllocateIrp(1, FALSE);
    assert_non_null(c->irp);
    PIO_STACK_LOCATION next = IoGetNextIrpStackLocation(c->irp);
    next->MajorFunction = IRP_MJ_INTERNAL_DEVICE_CONTROL;
    next->MinorFunction = 0x5a;
    IoSetCompletionRoutine(c->irp, completed, c, TRUE, TRUE, TRUE);
    return c->irp;
}

NTSTATUS rig_end(struct rig_call *c, NTSTATUS returned)
{
    LARGE_INTEGER patience = {.QuadPart = -10000000ll * PATIENCE_S};
    if (returned != STATUS_PENDING)
        assert_int_equal(c->completions, 1);
    assert_int_equal(KeWaitForSingleObject(&c->done, Executive, KernelMode, FALSE, &patience), 0);
    assert_int_equal(c->completions, 1);
    assert_int_equal(c->pending, returned == STATUS_PENDING);
    if (returned != STATUS_PENDING)
        assert_int_equal(returned, c->status);
    PIO_STACK_LOCATION used = IoGetNextIrpStackLocation(c->irp);
    assert_int_equal(used->MajorFunction, IRP_MJ_INTERNAL_DEVICE_CONTROL);
    assert_int_equal(used->MinorFunction, 0x5a);
    IoFreeIrp(c->irp);
    return c->status;
}

PIRP rig_begin(struct rig *r, struct rig_call *c)
{
    PIRP irp = rig_irp(c);
    weft_iba_set_policy(r->mode == RIG_PEND ? WEFT_IBA_ALWAYS_PEND : WEFT_IBA_BY_IRQL);
    r->irql = r->mode == RIG_DISPATCH ? KeRaiseIrqlToDpcLevel() : PASSIVE_LEVEL;
    return irp;
}

NTSTATUS rig_done(struct rig *r, struct rig_call *c, NTSTATUS returned)
{
    if (r->mode == RIG_DISPATCH)
        KeLowerIrql(r->irql);
    if (r->mode != RIG_PASSIVE && NT_SUCCESS(returned))
        assert_int_equal(returned, STATUS_PENDING);
    return rig_end(c, returned);
}

ULONG_PTR rig_ok(struct rig *r, struct rig_call *c, NTSTATUS returned)
{
    assert_int_equal(rig_done(r, c, returned), STATUS_SUCCESS);
    return c->info;
}

// ---- objects ------------------------------------------------------------------------------------

void rig_make(struct rig *r, struct rig_set *s)
{
    struct rig_call c;
    PIRP irp;
    irp = rig_begin(r, &c);
    s->ca = (IB_CA *)rig_ok(r, &c, r->v->OpenCa(r->v->Context, NULL, NULL, NULL, irp));
    irp = rig_begin(r, &c);
    s->pd = (IB_PD *)rig_ok(r, &c, r->v->CreatePd(s->ca, NULL, irp));
    irp = rig_begin(r, &c);
    s->cq = (IB_CQ *)rig_ok(r, &c, r->v->CreateCq(s->ca, 64, NULL, NULL, NULL, NULL, irp));
}

void rig_unmake(struct rig *r, struct rig_set *s)
{
    struct rig_call c;
    PIRP irp;
    irp = rig_begin(r, &c);
    rig_ok(r, &c, r->v->DestroyCq(s->cq, NULL, irp));
    irp = rig_begin(r, &c);
    rig_ok(r, &c, r->v->DestroyPd(s->pd, NULL, irp));
    irp = rig_begin(r, &c);
    rig_ok(r, &c, r->v->CloseCa(s->ca, NULL, irp));
}

IB_QP *rig_qp(struct rig *r, struct rig_set *s, IB_QP_TYPE type, IB_SRQ *srq)
{
    struct rig_call call;
    IB_QP_CREATE c = {.Type = type,
                      .SqDepth = 16,
                      .RqDepth = 16,
                      .SqSge = 3,
                      .RqSge = 3,
                      .SqMaxInline = 64,
                      .pSendCq = s->cq,
                      .pRecvCq = s->cq,
                      .pSrq = srq};
    PIRP irp = rig_begin(r, &call);
    return (IB_QP *)rig_ok(r, &call, r->v->CreateQp(s->pd, &c, NULL, NULL, NULL, irp));
}

void rig_address(struct rig *r, IB_AH_ATTR *ah)
{
    struct wf_gid_slot slot;
    wf_hca_query_gid(r->hca, 1, 0, &slot);
    memset(ah, 0, sizeof(*ah));
    ah->PortNumber = 1;
    ah->Flags = IB_AH_FLAG_GRH;
    ah->Grh.VerClassFlow = htonl(6u << 28 | 0x20u << 20 | 0x12345);
    ah->Grh.HopLimit = 7;
    memcpy(&ah->Grh.SGid, &slot.gid, sizeof(ah->Grh.SGid));
    memcpy(&ah->Grh.DGid, &slot.gid, sizeof(ah->Grh.DGid));
}

NTSTATUS rig_modify(struct rig *r, IB_QP *qp, IB_QP_MODIFY *m)
{
    struct rig_call c;
    PIRP irp = rig_begin(r, &c);
    return rig_done(r, &c, r->v->ModifyQp(qp, m, NULL, irp));
}

void rig_to_init(struct rig *r, IB_QP *qp)
{
    IB_QP_MODIFY m = {.ReqState = IbQpsInit};
    m.state.Init.PrimaryPort = 1;
    m.state.Init.Qkey = 0x11111111;
    m.state.Init.AccessMask = IB_AC_RDMA_READ | IB_AC_RDMA_WRITE | IB_AC_ATOMIC;
    assert_int_equal(rig_modify(r, qp, &m), 0);
}

void rig_connect(struct rig *r, IB_QP *qp, ULONG peer)
{
    IB_QP_MODIFY rtr = {.ReqState = IbQpsRtr}, rts = {.ReqState = IbQpsRts};
    rtr.state.rtr.RqPsn = rts.state.rts.SqPsn = 0x123;
    rtr.state.rtr.DestQp = peer;
    rig_address(r, &rtr.state.rtr.PrimaryAh);
    rtr.state.rtr.RespRes = 4;
    rtr.state.rtr.RnrNakTimeout = 12;
    rts.state.rts.RetryCnt = 7;
    rts.state.rts.RnrRetryCnt = 7;
    rts.state.rts.LocalAckTimeout = 14;
    rts.state.rts.InitDepth = 4;
    assert_int_equal(rig_modify(r, qp, &rtr), 0);
    assert_int_equal(rig_modify(r, qp, &rts), 0);
}

void rig_destroy_qp(struct rig *r, IB_QP *qp)
{
    struct rig_call c;
    PIRP irp = rig_begin(r, &c);
    rig_ok(r, &c, r->v->DestroyQp(qp, NULL, irp));
}

void rig_poll(struct rig *r, IB_CQ *cq, IB_WC *wc)
{
    uint64_t until = wf_clock_ns() + PATIENCE_S * WF_NSEC_PER_SEC;
    for (;;) {
        LONG n = 1;
        NTSTATUS status = weft_iba_poll_flat(r->v, cq, &n, wc);
        if (n == 1)
            return;
        assert_int_equal(status, STATUS_NO_MORE_ENTRIES);
        assert_true(wf_clock_ns() < until);
    }
}

IB_MR *rig_reg(struct rig *r, IB_PD *pd, void *addr, ULONG len, ULONG access)
{
    struct rig_call call;
    PMDL mdl = IoAllocateMdl(addr, len, FALSE, FALSE, NULL);
    assert_non_null(mdl);
    MmBuildMdlForNonPagedPool(mdl);
    PIRP irp = rig_begin(r, &call);
    return (IB_MR *)rig_ok(r, &call, r->v->RegMdl(pd, mdl, access, irp));
}

void rig_dereg(struct rig *r, IB_MR *mr)
{
    struct rig_call c;
    PIRP irp = rig_begin(r, &c);
    rig_ok(r, &c, r->v->DeregMr(mr, irp));
    if (c.info)
        IoFreeMdl((PMDL)c.info);
}
