// SPDX-License-Identifier: BSD-2-Clause
// Every verb: success, each documented status, each bad argument, in each way of calling.
#include "iba/rig.h"

#include <stdlib.h>
#include <string.h>

struct fixture {
    struct rig r;
    struct rig_set s;
    IB_VERBS_INTERFACE_STANDARD *v;
    WEFT_IB_VERBS_INTERFACE_2 *v2;
    IB_QP *rc, *ud, *fresh; // fresh: RC in RESET
    IB_MR *mr;
    IB_MW *mw;
    IB_SRQ *srq;
    IB_AH *ah;
    IB_QP_CREATE create;
    IB_QP_MODIFY modify;
    IB_AH_ATTR address;
    PMDL mdl;  // of one page
    char *mem; // four pages
};

static void fixture_open(struct fixture *f, enum rig_mode mode)
{
    struct rig_call c;
    IB_SRQ_CREATE srq = {.Depth = 8, .RqSge = 1};
    memset(f, 0, sizeof(*f));
    rig_open(&f->r);
    f->r.mode = mode;
    f->v = f->r.v;
    f->v2 = &f->r.t;
    rig_make(&f->r, &f->s);
    f->rc = rig_qp(&f->r, &f->s, IbQpTypeReliableConn, NULL);
    f->ud = rig_qp(&f->r, &f->s, IbQpTypeUnreliableDgrm, NULL);
    f->fresh = rig_qp(&f->r, &f->s, IbQpTypeReliableConn, NULL);
    rig_to_init(&f->r, f->rc);
    rig_connect(&f->r, f->rc, f->rc->Qpn);
    rig_to_init(&f->r, f->ud);
    f->mem = aligned_alloc(PAGE_SIZE, 4 * PAGE_SIZE);
    memset(f->mem, 0, 4 * PAGE_SIZE);
    f->mr = rig_reg(&f->r, f->s.pd, f->mem, 4 * PAGE_SIZE, IB_AC_LOCAL_WRITE | IB_AC_MW_BIND);
    PIRP irp = rig_begin(&f->r, &c);
    f->mw = (IB_MW *)rig_ok(&f->r, &c, f->v->CreateMw(f->s.pd, NULL, irp));
    irp = rig_begin(&f->r, &c);
    f->srq = (IB_SRQ *)rig_ok(&f->r, &c, f->v2->CreateSrq(f->s.pd, &srq, NULL, NULL, NULL, irp));
    rig_address(&f->r, &f->address);
    assert_int_equal(f->v->CreateAh(f->s.pd, &f->address, &f->ah), 0);
    f->mdl = IoAllocateMdl(f->mem, PAGE_SIZE, FALSE, FALSE, NULL);
    MmBuildMdlForNonPagedPool(f->mdl);
    f->create = (IB_QP_CREATE){.Type = IbQpTypeReliableConn,
                               .SqDepth = 4,
                               .RqDepth = 4,
                               .SqSge = 1,
                               .RqSge = 1,
                               .pSendCq = f->s.cq,
                               .pRecvCq = f->s.cq};
    f->modify.ReqState = IbQpsInit;
    f->modify.state.Init.PrimaryPort = 1;
}

static void fixture_close(struct fixture *f)
{
    struct rig_call c;
    IoFreeMdl(f->mdl);
    assert_int_equal(f->v->DestroyAh(f->ah), 0);
    PIRP irp = rig_begin(&f->r, &c);
    rig_ok(&f->r, &c, f->v2->DestroySrq(f->srq, NULL, irp));
    irp = rig_begin(&f->r, &c);
    rig_ok(&f->r, &c, f->v->DestroyMw(f->mw, irp));
    rig_dereg(&f->r, f->mr);
    rig_destroy_qp(&f->r, f->rc);
    rig_destroy_qp(&f->r, f->ud);
    rig_destroy_qp(&f->r, f->fresh);
    rig_unmake(&f->r, &f->s);
    rig_close(&f->r);
    free(f->mem);
}

// ---- asynchronous verbs that must refuse --------------------------------------------------------

// An object of a kind that is not asked for.
#define WRONG(f, type) ((type *)(void *)(f)->mw)

static NTSTATUS open_without_context(struct fixture *f, PIRP irp)
{
    return f->v->OpenCa(NULL, NULL, NULL, NULL, irp);
}

static NTSTATUS close_null(struct fixture *f, PIRP irp)
{
    return f->v->CloseCa(NULL, NULL, irp);
}

static NTSTATUS fatal_null(struct fixture *f, PIRP irp)
{
    return f->v->GetCaFatalEvent(NULL, irp);
}

static NTSTATUS port_event_null(struct fixture *f, PIRP irp)
{
    return f->v->GetCaPortEvent(NULL, 1, irp);
}

static NTSTATUS port_event_port_0(struct fixture *f, PIRP irp)
{
    return f->v->GetCaPortEvent(f->s.ca, 0, irp);
}

static NTSTATUS port_event_port_2(struct fixture *f, PIRP irp)
{
    return f->v->GetCaPortEvent(f->s.ca, 2, irp);
}

static NTSTATUS query_ca_foreign_context(struct fixture *f, PIRP irp)
{
    return f->v->QueryCa(f, 4096, (IB_CA_ATTR *)f->mem, irp);
}

static NTSTATUS query_ca_null_buffer(struct fixture *f, PIRP irp)
{
    return f->v->QueryCa(f->v->Context, 4096, NULL, irp);
}

static NTSTATUS query_ca_3_bytes(struct fixture *f, PIRP irp)
{
    return f->v->QueryCa(f->v->Context, 3, (IB_CA_ATTR *)f->mem, irp);
}

static NTSTATUS query_port_0(struct fixture *f, PIRP irp)
{
    return f->v->QueryPort(f->v->Context, 0, 4096, (IB_PORT_ATTR *)f->mem, irp);
}

static NTSTATUS query_port_2(struct fixture *f, PIRP irp)
{
    return f->v->QueryPort(f->v->Context, 2, 4096, (IB_PORT_ATTR *)f->mem, irp);
}

static NTSTATUS query_port_3_bytes(struct fixture *f, PIRP irp)
{
    return f->v->QueryPort(f->v->Context, 1, 3, (IB_PORT_ATTR *)f->mem, irp);
}

static NTSTATUS modify_ca_null(struct fixture *f, PIRP irp)
{
    return f->v->ModifyCa(f->s.ca, 0, NULL, irp);
}

static NTSTATUS modify_ca_unknown_flag(struct fixture *f, PIRP irp)
{
    IB_MODIFY_CA m = {0};
    return f->v->ModifyCa(f->s.ca, 4, &m, irp);
}

static NTSTATUS modify_port_null(struct fixture *f, PIRP irp)
{
    return f->v->ModifyPort(f->s.ca, 1, 0, NULL, irp);
}

static NTSTATUS modify_port_0(struct fixture *f, PIRP irp)
{
    IB_MODIFY_PORT m = {0};
    return f->v->ModifyPort(f->s.ca, 0, 0, &m, irp);
}

static NTSTATUS modify_port_hardware_cap(struct fixture *f, PIRP irp)
{
    IB_MODIFY_PORT m = {.SetCapabilites = IB_PORT_CAP_TRAP_SUP};
    return f->v->ModifyPort(f->s.ca, 1, 0, &m, irp);
}

static NTSTATUS modify_port_set_and_clear(struct fixture *f, PIRP irp)
{
    IB_MODIFY_PORT m = {.SetCapabilites = IB_PORT_CAP_IS_SM, .ClearCapabilites = IB_PORT_CAP_IS_SM};
    return f->v->ModifyPort(f->s.ca, 1, 0, &m, irp);
}

static NTSTATUS modify_port_shutdown(struct fixture *f, PIRP irp)
{
    IB_MODIFY_PORT m = {0};
    return f->v->ModifyPort(f->s.ca, 1, IB_MOD_PORT_SHUTDOWN, &m, irp);
}

static NTSTATUS create_cq_null(struct fixture *f, PIRP irp)
{
    return f->v->CreateCq(NULL, 8, NULL, NULL, NULL, NULL, irp);
}

static NTSTATUS create_cq_wrong_kind(struct fixture *f, PIRP irp)
{
    return f->v->CreateCq(WRONG(f, IB_CA), 8, NULL, NULL, NULL, NULL, irp);
}

static NTSTATUS create_cq_0(struct fixture *f, PIRP irp)
{
    return f->v->CreateCq(f->s.ca, 0, NULL, NULL, NULL, NULL, irp);
}

static NTSTATUS create_cq_huge(struct fixture *f, PIRP irp)
{
    return f->v->CreateCq(f->s.ca, 0xffffffff, NULL, NULL, NULL, NULL, irp);
}

static NTSTATUS destroy_cq_null(struct fixture *f, PIRP irp)
{
    return f->v->DestroyCq(NULL, NULL, irp);
}

static NTSTATUS resize_cq_0(struct fixture *f, PIRP irp)
{
    return f->v->ResizeCq(f->s.cq, 0, NULL, irp);
}

static NTSTATUS resize_cq_huge(struct fixture *f, PIRP irp)
{
    return f->v->ResizeCq(f->s.cq, 0xffffffff, NULL, irp);
}

static NTSTATUS comp_event_null(struct fixture *f, PIRP irp)
{
    return f->v->GetCqCompEvent(NULL, irp);
}

static NTSTATUS cq_event_null(struct fixture *f, PIRP irp)
{
    return f->v->GetCqAsyncEvent(WRONG(f, IB_CQ), irp);
}

static NTSTATUS create_pd_null(struct fixture *f, PIRP irp)
{
    return f->v->CreatePd(NULL, NULL, irp);
}

static NTSTATUS destroy_pd_wrong_kind(struct fixture *f, PIRP irp)
{
    return f->v->DestroyPd(WRONG(f, IB_PD), NULL, irp);
}

static NTSTATUS create_qp_with(struct fixture *f, IB_QP_CREATE *c, PIRP irp)
{
    return f->v->CreateQp(f->s.pd, c, NULL, NULL, NULL, irp);
}

static NTSTATUS create_qp_null(struct fixture *f, PIRP irp)
{
    return create_qp_with(f, NULL, irp);
}

static NTSTATUS create_qp_special_type(struct fixture *f, PIRP irp)
{
    f->create.Type = IbQpTypeQp1;
    return create_qp_with(f, &f->create, irp);
}

static NTSTATUS create_qp_type_2(struct fixture *f, PIRP irp)
{
    f->create.Type = (IB_QP_TYPE)2;
    return create_qp_with(f, &f->create, irp);
}

static NTSTATUS create_qp_without_cq(struct fixture *f, PIRP irp)
{
    f->create.pRecvCq = NULL;
    return create_qp_with(f, &f->create, irp);
}

static NTSTATUS create_qp_too_deep(struct fixture *f, PIRP irp)
{
    f->create.SqDepth = 0xffffffff;
    return create_qp_with(f, &f->create, irp);
}

static NTSTATUS create_qp_wrong_srq(struct fixture *f, PIRP irp)
{
    f->create.pSrq = WRONG(f, IB_SRQ);
    return create_qp_with(f, &f->create, irp);
}

static NTSTATUS special_with(struct fixture *f, IB_QP_TYPE type, UCHAR port, PIRP irp)
{
    f->create.Type = type;
    return f->v->CreateSpecialQp(f->s.pd, port, &f->create, NULL, NULL, irp);
}

static NTSTATUS special_of_rc(struct fixture *f, PIRP irp)
{
    return special_with(f, IbQpTypeReliableConn, 1, irp);
}

static NTSTATUS special_port_0(struct fixture *f, PIRP irp)
{
    return special_with(f, IbQpTypeQp1, 0, irp);
}

static NTSTATUS special_qp1(struct fixture *f, PIRP irp)
{
    return special_with(f, IbQpTypeQp1, 1, irp);
}

static NTSTATUS special_for_user(struct fixture *f, PIRP irp)
{
    irp->RequestorMode = UserMode;
    return special_with(f, IbQpTypeQp0, 1, irp);
}

static NTSTATUS destroy_qp_null(struct fixture *f, PIRP irp)
{
    return f->v->DestroyQp(NULL, NULL, irp);
}

static NTSTATUS modify_qp(struct fixture *f, IB_QP *qp, PIRP irp)
{
    return f->v->ModifyQp(qp, &f->modify, NULL, irp);
}

static NTSTATUS modify_qp_null(struct fixture *f, PIRP irp)
{
    return f->v->ModifyQp(f->fresh, NULL, NULL, irp);
}

static NTSTATUS modify_reset_to_rts(struct fixture *f, PIRP irp)
{
    f->modify.ReqState = IbQpsRts;
    return modify_qp(f, f->fresh, irp);
}

static NTSTATUS modify_to_draining(struct fixture *f, PIRP irp)
{
    f->modify.ReqState = IbQpsSqdDraining;
    return modify_qp(f, f->rc, irp);
}

static NTSTATUS modify_to_drained(struct fixture *f, PIRP irp)
{
    f->modify.ReqState = IbQpsSqdDrained;
    return modify_qp(f, f->rc, irp);
}

static NTSTATUS modify_to_sqerr(struct fixture *f, PIRP irp)
{
    f->modify.ReqState = IbQpsSqErr;
    return modify_qp(f, f->rc, irp);
}

static NTSTATUS modify_to_9(struct fixture *f, PIRP irp)
{
    f->modify.ReqState = (IB_QP_STATE)9;
    return modify_qp(f, f->rc, irp);
}

static NTSTATUS modify_init_port_0(struct fixture *f, PIRP irp)
{
    f->modify.state.Init.PrimaryPort = 0;
    return modify_qp(f, f->fresh, irp);
}

static NTSTATUS modify_init_pkey_9(struct fixture *f, PIRP irp)
{
    f->modify.state.Init.PkeyIndex = 9;
    return modify_qp(f, f->fresh, irp);
}

static NTSTATUS modify_init_unknown_access(struct fixture *f, PIRP irp)
{
    f->modify.state.Init.AccessMask = 1 << 9;
    return modify_qp(f, f->fresh, irp);
}

static NTSTATUS modify_rts_with(struct fixture *f, ULONG opts, PIRP irp)
{
    f->modify.ReqState = IbQpsRts;
    memset(&f->modify.state, 0, sizeof(f->modify.state));
    f->modify.state.rts.Opts = opts;
    return modify_qp(f, f->rc, irp);
}

static NTSTATUS modify_rts_unknown_opt(struct fixture *f, PIRP irp)
{
    return modify_rts_with(f, 1 << 16, irp);
}

static NTSTATUS modify_rts_depth(struct fixture *f, PIRP irp)
{
    return modify_rts_with(f, IB_MOD_QP_SQ_DEPTH, irp);
}

static NTSTATUS modify_rts_apm_0(struct fixture *f, PIRP irp)
{
    return modify_rts_with(f, IB_MOD_QP_APM_STATE, irp);
}

static NTSTATUS modify_rts_alternate_port_0(struct fixture *f, PIRP irp)
{
    return modify_rts_with(f, IB_MOD_QP_ALTERNATE_AV, irp);
}

static NTSTATUS query_qp_null(struct fixture *f, PIRP irp)
{
    return f->v->QueryQp(f->rc, NULL, NULL, irp);
}

static NTSTATUS qp_event_null(struct fixture *f, PIRP irp)
{
    return f->v->GetQpAsyncEvent(NULL, irp);
}

static NTSTATUS reg_mdl_null(struct fixture *f, PIRP irp)
{
    return f->v->RegMdl(f->s.pd, NULL, IB_AC_LOCAL_WRITE, irp);
}

static NTSTATUS reg_mdl_write_without_local(struct fixture *f, PIRP irp)
{
    return f->v->RegMdl(f->s.pd, f->mdl, IB_AC_RDMA_WRITE, irp);
}

static NTSTATUS reg_mdl_unknown_access(struct fixture *f, PIRP irp)
{
    return f->v->RegMdl(f->s.pd, f->mdl, 1 << 5, irp);
}

static NTSTATUS reg_mdl_no_pd(struct fixture *f, PIRP irp)
{
    return f->v->RegMdl(WRONG(f, IB_PD), f->mdl, 0, irp);
}

static NTSTATUS reg_sg_null(struct fixture *f, PIRP irp)
{
    return f->v->RegScatterGather(f->s.pd, NULL, 0, irp);
}

static NTSTATUS dma_mr_no_pd(struct fixture *f, PIRP irp)
{
    return f->v->GetDmaMr(NULL, 0, irp);
}

static NTSTATUS dereg_null(struct fixture *f, PIRP irp)
{
    return f->v->DeregMr(NULL, irp);
}

static NTSTATUS create_mw_null(struct fixture *f, PIRP irp)
{
    return f->v->CreateMw(NULL, NULL, irp);
}

static NTSTATUS destroy_mw_of_region(struct fixture *f, PIRP irp)
{
    return f->v->DestroyMw(f->mr, irp);
}

static NTSTATUS create_srq_0(struct fixture *f, PIRP irp)
{
    IB_SRQ_CREATE c = {0};
    return f->v2->CreateSrq(f->s.pd, &c, NULL, NULL, NULL, irp);
}

static NTSTATUS create_srq_limit(struct fixture *f, PIRP irp)
{
    IB_SRQ_CREATE c = {.Depth = 4, .RqSge = 1, .Limit = 5};
    return f->v2->CreateSrq(f->s.pd, &c, NULL, NULL, NULL, irp);
}

static NTSTATUS modify_srq_unknown(struct fixture *f, PIRP irp)
{
    IB_SRQ_ATTR a = {0};
    return f->v2->ModifySrq(f->srq, 4, &a, NULL, irp);
}

static NTSTATUS modify_srq_limit(struct fixture *f, PIRP irp)
{
    IB_SRQ_ATTR a = {.Limit = 1000000};
    return f->v2->ModifySrq(f->srq, IB_MOD_SRQ_LIMIT, &a, NULL, irp);
}

static NTSTATUS query_srq_null(struct fixture *f, PIRP irp)
{
    return f->v2->QuerySrq(NULL, (IB_SRQ_ATTR *)f->mem, NULL, irp);
}

static NTSTATUS destroy_srq_null(struct fixture *f, PIRP irp)
{
    return f->v2->DestroySrq(NULL, NULL, irp);
}

static NTSTATUS srq_event_null(struct fixture *f, PIRP irp)
{
    return f->v2->GetSrqAsyncEvent(NULL, irp);
}

static NTSTATUS attach_rc(struct fixture *f, PIRP irp)
{
    IB_GID group = {.Raw = {0xff, 0x0e}};
    return f->v2->AttachMcast(f->rc, &group, irp);
}

static NTSTATUS attach_unicast(struct fixture *f, PIRP irp)
{
    return f->v2->AttachMcast(f->ud, &f->address.Grh.DGid, irp);
}

static NTSTATUS detach_stranger(struct fixture *f, PIRP irp)
{
    IB_GID group = {.Raw = {0xff, 0x0e}};
    return f->v2->DetachMcast(f->ud, &group, irp);
}

static const struct {
    const char *name;
    NTSTATUS (*call)(struct fixture *f, PIRP irp);
    NTSTATUS status;
} refusals[] = {
    {"OpenCa without Context", open_without_context, STATUS_INVALID_PARAMETER},
    {"CloseCa NULL", close_null, STATUS_INVALID_PARAMETER},
    {"GetCaFatalEvent NULL", fatal_null, STATUS_INVALID_PARAMETER},
    {"GetCaPortEvent NULL", port_event_null, STATUS_INVALID_PARAMETER},
    {"GetCaPortEvent port 0", port_event_port_0, STATUS_INVALID_PARAMETER},
    {"GetCaPortEvent port 2", port_event_port_2, STATUS_INVALID_PARAMETER},
    {"QueryCa foreign Context", query_ca_foreign_context, STATUS_INVALID_PARAMETER},
    {"QueryCa NULL buffer", query_ca_null_buffer, STATUS_INVALID_PARAMETER},
    {"QueryCa 3 bytes", query_ca_3_bytes, STATUS_BUFFER_TOO_SMALL},
    {"QueryPort 0", query_port_0, STATUS_INVALID_PARAMETER},
    {"QueryPort 2", query_port_2, STATUS_INVALID_PARAMETER},
    {"QueryPort 3 bytes", query_port_3_bytes, STATUS_BUFFER_TOO_SMALL},
    {"ModifyCa NULL", modify_ca_null, STATUS_INVALID_PARAMETER},
    {"ModifyCa unknown flag", modify_ca_unknown_flag, STATUS_INVALID_PARAMETER},
    {"ModifyPort NULL", modify_port_null, STATUS_INVALID_PARAMETER},
    {"ModifyPort 0", modify_port_0, STATUS_INVALID_PARAMETER},
    {"ModifyPort hardware bit", modify_port_hardware_cap, STATUS_INVALID_PARAMETER},
    {"ModifyPort set and clear", modify_port_set_and_clear, STATUS_INVALID_PARAMETER},
    {"ModifyPort shutdown", modify_port_shutdown, STATUS_NOT_SUPPORTED},
    {"CreateCq NULL", create_cq_null, STATUS_INVALID_PARAMETER},
    {"CreateCq wrong kind", create_cq_wrong_kind, STATUS_INVALID_PARAMETER},
    {"CreateCq 0", create_cq_0, STATUS_INVALID_PARAMETER},
    {"CreateCq huge", create_cq_huge, STATUS_INVALID_PARAMETER},
    {"DestroyCq NULL", destroy_cq_null, STATUS_INVALID_PARAMETER},
    {"ResizeCq 0", resize_cq_0, STATUS_INVALID_PARAMETER},
    {"ResizeCq huge", resize_cq_huge, STATUS_INVALID_PARAMETER},
    {"GetCqCompEvent NULL", comp_event_null, STATUS_INVALID_PARAMETER},
    {"GetCqAsyncEvent wrong kind", cq_event_null, STATUS_INVALID_PARAMETER},
    {"CreatePd NULL", create_pd_null, STATUS_INVALID_PARAMETER},
    {"DestroyPd wrong kind", destroy_pd_wrong_kind, STATUS_INVALID_PARAMETER},
    {"CreateQp NULL", create_qp_null, STATUS_INVALID_PARAMETER},
    {"CreateQp QP1", create_qp_special_type, STATUS_INVALID_PARAMETER},
    {"CreateQp type 2", create_qp_type_2, STATUS_INVALID_PARAMETER},
    {"CreateQp no CQ", create_qp_without_cq, STATUS_INVALID_PARAMETER},
    {"CreateQp too deep", create_qp_too_deep, STATUS_INVALID_PARAMETER},
    {"CreateQp wrong SRQ", create_qp_wrong_srq, STATUS_INVALID_PARAMETER},
    {"CreateSpecialQp RC", special_of_rc, STATUS_INVALID_PARAMETER},
    {"CreateSpecialQp port 0", special_port_0, STATUS_INVALID_PARAMETER},
    {"CreateSpecialQp QP1", special_qp1, STATUS_NOT_SUPPORTED},
    {"CreateSpecialQp for a user", special_for_user, STATUS_ACCESS_DENIED},
    {"DestroyQp NULL", destroy_qp_null, STATUS_INVALID_PARAMETER},
    {"ModifyQp NULL", modify_qp_null, STATUS_INVALID_PARAMETER},
    {"ModifyQp RESET to RTS", modify_reset_to_rts, STATUS_IB_INVALID_STATE},
    {"ModifyQp draining", modify_to_draining, STATUS_IB_INVALID_STATE},
    {"ModifyQp drained", modify_to_drained, STATUS_IB_INVALID_STATE},
    {"ModifyQp SqErr", modify_to_sqerr, STATUS_IB_INVALID_STATE},
    {"ModifyQp 9", modify_to_9, STATUS_IB_INVALID_STATE},
    {"ModifyQp Init port 0", modify_init_port_0, STATUS_INVALID_PARAMETER_1},
    {"ModifyQp Init P_Key 9", modify_init_pkey_9, STATUS_INVALID_PARAMETER},
    {"ModifyQp Init access", modify_init_unknown_access, STATUS_INVALID_PARAMETER},
    {"ModifyQp unknown Opt", modify_rts_unknown_opt, STATUS_INVALID_PARAMETER},
    {"ModifyQp SQ depth", modify_rts_depth, STATUS_NOT_SUPPORTED},
    {"ModifyQp APM 0", modify_rts_apm_0, STATUS_INVALID_PARAMETER},
    {"ModifyQp alternate port 0", modify_rts_alternate_port_0, STATUS_INVALID_PARAMETER_1},
    {"QueryQp NULL", query_qp_null, STATUS_INVALID_PARAMETER},
    {"GetQpAsyncEvent NULL", qp_event_null, STATUS_INVALID_PARAMETER},
    {"RegMdl NULL", reg_mdl_null, STATUS_INVALID_PARAMETER},
    {"RegMdl write without local", reg_mdl_write_without_local, STATUS_INVALID_PARAMETER},
    {"RegMdl unknown access", reg_mdl_unknown_access, STATUS_INVALID_PARAMETER},
    {"RegMdl no PD", reg_mdl_no_pd, STATUS_INVALID_PARAMETER},
    {"RegScatterGather NULL", reg_sg_null, STATUS_INVALID_PARAMETER},
    {"GetDmaMr no PD", dma_mr_no_pd, STATUS_INVALID_PARAMETER},
    {"DeregMr NULL", dereg_null, STATUS_INVALID_PARAMETER},
    {"CreateMw NULL", create_mw_null, STATUS_INVALID_PARAMETER},
    {"DestroyMw of a region", destroy_mw_of_region, STATUS_INVALID_PARAMETER},
    {"CreateSrq 0", create_srq_0, STATUS_INVALID_PARAMETER},
    {"CreateSrq limit above depth", create_srq_limit, STATUS_INVALID_PARAMETER},
    {"ModifySrq unknown flag", modify_srq_unknown, STATUS_INVALID_PARAMETER},
    {"ModifySrq limit above depth", modify_srq_limit, STATUS_INVALID_PARAMETER},
    {"QuerySrq NULL", query_srq_null, STATUS_INVALID_PARAMETER},
    {"DestroySrq NULL", destroy_srq_null, STATUS_INVALID_PARAMETER},
    {"GetSrqAsyncEvent NULL", srq_event_null, STATUS_INVALID_PARAMETER},
    {"AttachMcast RC", attach_rc, STATUS_INVALID_OPERATION},
    {"AttachMcast unicast GID", attach_unicast, STATUS_INVALID_PARAMETER},
    {"DetachMcast stranger", detach_stranger, STATUS_INVALID_PARAMETER},
};

static void test_asynchronous_verbs_with_bad_arguments_refuse(void **state)
{
    for (int mode = 0; mode < RIG_MODES; mode++) {
        for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
            struct fixture f;
            struct rig_call c;
            fixture_open(&f, (enum rig_mode)mode);
            PIRP irp = rig_begin(&f.r, &c);
            NTSTATUS s = rig_done(&f.r, &c, refusals[i].call(&f, irp));
            if (s != refusals[i].status)
                print_error("%s, mode %d: 0x%08x\n", refusals[i].name, mode, (unsigned)s);
            assert_int_equal(s, refusals[i].status);
            assert_int_equal(c.info, 0);
            fixture_close(&f);
        }
    }
}

static void test_asynchronous_verbs_without_usable_irp_do_nothing(void **state)
{
    struct fixture f;
    struct rig_call c;
    fixture_open(&f, RIG_PASSIVE);
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
        if (refusals[i].call != special_for_user)
            assert_int_equal(refusals[i].call(&f, NULL), STATUS_INVALID_PARAMETER);
    // An IRP that waits for an event has no stack location left.
    PIRP irp = rig_irp(&c);
    NTSTATUS s = f.v->GetQpAsyncEvent(f.rc, irp);
    assert_int_equal(s, STATUS_PENDING);
    assert_int_equal(f.v->CreatePd(f.s.ca, NULL, irp), STATUS_INVALID_PARAMETER);
    assert_int_equal(c.completions, 0);
    assert_true(IoCancelIrp(irp));
    assert_int_equal(rig_end(&c, s), STATUS_CANCELLED);
    fixture_close(&f);
}

// ---- synchronous verbs --------------------------------------------------------------------------

static void test_address_handle_verbs(void **state)
{
    struct fixture f;
    IB_AH_ATTR a, back;
    IB_AH *ah = NULL;
    fixture_open(&f, RIG_PASSIVE);
    assert_int_equal(f.v->CreateAh(NULL, &f.address, &ah), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->CreateAh(f.s.pd, NULL, &ah), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->CreateAh(f.s.pd, &f.address, NULL), STATUS_INVALID_PARAMETER);
    a = f.address;
    a.PortNumber = 2;
    assert_int_equal(f.v->CreateAh(f.s.pd, &a, &ah), STATUS_INVALID_PARAMETER_1);
    a = f.address;
    a.Grh.SGid.Raw[15] ^= 0x40;
    assert_int_equal(f.v->CreateAh(f.s.pd, &a, &ah), STATUS_INVALID_PARAMETER_2);
    memset(&a.Grh.SGid, 0, sizeof(a.Grh.SGid)); // empty entries of the table do not count
    assert_int_equal(f.v->CreateAh(f.s.pd, &a, &ah), STATUS_INVALID_PARAMETER_2);
    a = f.address;
    a.Flags = 0;
    assert_int_equal(f.v->CreateAh(f.s.pd, &a, &ah), STATUS_INVALID_PARAMETER);
    assert_null(ah);

    LONG before = f.s.pd->nRef;
    assert_int_equal(f.v->CreateAh(f.s.pd, &f.address, &ah), STATUS_SUCCESS);
    assert_ptr_equal(ah->pPd, f.s.pd);
    assert_int_equal(f.s.pd->nRef, before + 1);
    assert_int_equal(f.v->QueryAh(ah, &back), STATUS_SUCCESS);
    assert_memory_equal(&back, &f.address, sizeof(back));
    a = f.address;
    a.PortNumber = 0;
    assert_int_equal(f.v->ModifyAh(ah, &a), STATUS_INVALID_PARAMETER_1);
    assert_int_equal(f.v->ModifyAh(ah, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->ModifyAh(NULL, &a), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->QueryAh(ah, &back), STATUS_SUCCESS);
    assert_memory_equal(&back, &f.address, sizeof(back));
    a = f.address;
    a.SvcLvl = 3;
    assert_int_equal(f.v->ModifyAh(ah, &a), STATUS_SUCCESS);
    assert_int_equal(f.v->QueryAh(ah, &back), STATUS_SUCCESS);
    assert_int_equal(back.SvcLvl, 3);
    assert_int_equal(f.v->QueryAh(NULL, &back), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->QueryAh(ah, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->DestroyAh(ah), STATUS_SUCCESS);
    assert_int_equal(f.v->DestroyAh(NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.s.pd->nRef, before);
    fixture_close(&f);
}

static void test_completion_queue_verbs_synchronous(void **state)
{
    struct fixture f;
    IB_WC wc, *array[2] = {&wc, NULL};
    LONG n;
    fixture_open(&f, RIG_PASSIVE);
    assert_int_equal(f.v->RearmCq(NULL, FALSE), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->RearmCq(f.s.cq, TRUE), STATUS_SUCCESS);
    assert_int_equal(f.v->RearmNCq(f.s.cq, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->RearmNCq(f.s.cq, f.s.cq->NumCqes + 1), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->RearmNCq(f.s.cq, f.s.cq->NumCqes), STATUS_SUCCESS);
    assert_int_equal(f.v->RearmCq(f.s.cq, FALSE), STATUS_SUCCESS);
    assert_int_equal(f.v->PeekCq(f.s.cq, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->PeekCq(NULL, &n), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->PeekCq(f.s.cq, &n), STATUS_SUCCESS);
    assert_int_equal(n, 0);
    n = 2;
    assert_int_equal(f.v->PollCq(f.s.cq, &n, array), STATUS_NO_MORE_ENTRIES);
    assert_int_equal(n, 0);
    n = 0;
    assert_int_equal(f.v->PollCq(f.s.cq, &n, array), STATUS_INVALID_PARAMETER);
    n = -1;
    assert_int_equal(f.v->PollCq(f.s.cq, &n, array), STATUS_INVALID_PARAMETER);
    assert_int_equal(n, 0);
    n = 1;
    assert_int_equal(f.v->PollCq(NULL, &n, array), STATUS_INVALID_PARAMETER);
    n = 1;
    assert_int_equal(f.v->PollCq(f.s.cq, &n, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->PollCq(f.s.cq, NULL, array), STATUS_INVALID_PARAMETER);
    n = 0;
    assert_int_equal(weft_iba_poll_flat(f.v, f.s.cq, &n, &wc), STATUS_INVALID_PARAMETER);
    fixture_close(&f);
}

// ---- posting ------------------------------------------------------------------------------------

struct send {
    IB_SGE sge[80];
    union {
        IB_SEND_WR wr;
        char room[WEFT_IBA_SEND_WR_SIZE(80)];
    };
};

static IB_SEND_WR *make_send(struct send *s, struct fixture *f, IB_OP_TYPE type, ULONG sges)
{
    memset(s, 0, sizeof(*s));
    s->wr.Type = type;
    s->wr.Flags = IB_WR_FLAG_SIGNALED;
    s->wr.SgeCount = sges;
    for (ULONG i = 0; i < sges; i++)
        s->sge[i] = (IB_SGE){f->mem, 8, f->mr->LKey};
    weft_iba_chain_sge(s->wr.Sge, s->sge, sges);
    return &s->wr;
}

static void expect_send(struct fixture *f, IB_QP *qp, IB_SEND_WR *wr, NTSTATUS status)
{
    IB_SEND_WR *failed = (IB_SEND_WR *)1;
    assert_int_equal(f->v->PostSend(qp, wr, &failed), status);
    assert_ptr_equal(failed, status ? wr : NULL);
}

static void test_post_send_refusals(void **state)
{
    struct fixture f;
    struct send a, b;
    IB_SEND_WR *failed;
    fixture_open(&f, RIG_PASSIVE);
    expect_send(&f, f.rc, NULL, STATUS_INVALID_PARAMETER);
    make_send(&a, &f, IbSend, 1);
    assert_int_equal(f.v->PostSend(NULL, &a.wr, &failed), STATUS_INVALID_PARAMETER);
    a.wr.pNext = make_send(&b, &f, IbSend, 1);
    assert_int_equal(f.v->PostSend(f.rc, &a.wr, NULL), STATUS_INVALID_PARAMETER);
    expect_send(&f, f.fresh, make_send(&a, &f, IbSend, 1), STATUS_IB_INVALID_STATE);
    expect_send(&f, f.rc, make_send(&a, &f, IbSend, f.rc->SqSge + 1), STATUS_IB_INSUFFICIENT_SGE);
    static const IB_OP_TYPE wrong[] = {IbBindMw, IbRecv, IbRecvRdmaWrite, (IB_OP_TYPE)6,
                                       (IB_OP_TYPE)-1};
    for (int i = 0; i < 5; i++)
        expect_send(&f, f.rc, make_send(&a, &f, wrong[i], 1), STATUS_IB_INVALID_WR_TYPE);
    for (int t = IbRdmaWrite; t <= IbInterlockedAdd; t++)
        expect_send(&f, f.ud, make_send(&a, &f, (IB_OP_TYPE)t, 1), STATUS_INVALID_OPERATION);
    make_send(&a, &f, IbSend, 1);
    a.wr.Sge[0] = NULL;
    expect_send(&f, f.rc, &a.wr, STATUS_INVALID_PARAMETER);
    make_send(&a, &f, IbSend, 1);
    a.wr.Flags |= 1 << 8;
    expect_send(&f, f.rc, &a.wr, STATUS_INVALID_PARAMETER);
    make_send(&a, &f, IbSend, 1);
    a.wr.Flags |= IB_WR_FLAG_INLINE;
    a.sge[0].Length = f.rc->SqMaxInline + 1;
    expect_send(&f, f.rc, &a.wr, STATUS_INVALID_PARAMETER);
    make_send(&a, &f, IbSend, 1);
    expect_send(&f, f.ud, &a.wr, STATUS_INVALID_PARAMETER); // no AH
    a.wr.u.Ud.pAh = WRONG(&f, IB_AH);
    expect_send(&f, f.ud, &a.wr, STATUS_INVALID_PARAMETER);
    a.wr.u.Ud.pAh = f.ah;
    expect_send(&f, f.ud, &a.wr, STATUS_IB_INVALID_STATE); // in INIT
    fixture_close(&f);
}

// The queue is filled with receives nobody posted for: requests wait in it.
static void test_post_send_to_full_queue_names_the_first_not_taken(void **state)
{
    struct fixture f;
    enum { MANY = 600 };
    struct send *s = calloc(MANY, sizeof(*s));
    IB_SEND_WR *failed;
    fixture_open(&f, RIG_PASSIVE);
    for (int i = 0; i < MANY; i++) {
        make_send(&s[i], &f, IbSend, 1);
        if (i)
            s[i - 1].wr.pNext = &s[i].wr;
    }
    ULONG depth = f.rc->SqDepth;
    assert_true(depth < MANY);
    assert_int_equal(f.v->PostSend(f.rc, &s[0].wr, &failed), STATUS_IB_INSUFFICIENT_WR);
    assert_ptr_equal(failed, &s[depth].wr);
    // A list whose third is bad leaves two posted.
    make_send(&s[0], &f, IbSend, 1);
    s[0].wr.pNext = make_send(&s[1], &f, IbSend, 1);
    s[1].wr.pNext = make_send(&s[2], &f, IbBindMw, 1);
    IB_QP *other = rig_qp(&f.r, &f.s, IbQpTypeReliableConn, NULL);
    rig_to_init(&f.r, other);
    rig_connect(&f.r, other, other->Qpn);
    assert_int_equal(f.v->PostSend(other, &s[0].wr, &failed), STATUS_IB_INVALID_WR_TYPE);
    assert_ptr_equal(failed, &s[2].wr);
    rig_destroy_qp(&f.r, other);
    fixture_close(&f);
    free(s);
}

static void test_post_recv_refusals(void **state)
{
    struct fixture f;
    union {
        IB_RECV_WR wr;
        char room[WEFT_IBA_RECV_WR_SIZE(80)];
    } a, b;
    IB_SGE sge;
    IB_RECV_WR *failed;
    fixture_open(&f, RIG_PASSIVE);
    sge = (IB_SGE){f.mem, 8, f.mr->LKey};
    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    for (int i = 0; i < 80; i++)
        a.wr.Sge[i] = &sge;
    assert_int_equal(f.v->PostRecv(f.rc, NULL, &failed), STATUS_INVALID_PARAMETER);
    assert_null(failed);
    assert_int_equal(f.v->PostRecv(NULL, &a.wr, &failed), STATUS_INVALID_PARAMETER);
    a.wr.pNext = &b.wr;
    assert_int_equal(f.v->PostRecv(f.rc, &a.wr, NULL), STATUS_INVALID_PARAMETER);
    a.wr.pNext = NULL;
    assert_int_equal(f.v->PostRecv(f.fresh, &a.wr, &failed), STATUS_IB_INVALID_STATE);
    assert_ptr_equal(failed, &a.wr);
    a.wr.SgeCount = f.rc->RqSge + 1;
    assert_int_equal(f.v->PostRecv(f.rc, &a.wr, NULL), STATUS_IB_INSUFFICIENT_SGE);
    a.wr.SgeCount = 1;
    a.wr.Sge[0] = NULL;
    assert_int_equal(f.v->PostRecv(f.rc, &a.wr, NULL), STATUS_INVALID_PARAMETER);
    a.wr.SgeCount = 0;
    for (ULONG i = 0; i < f.rc->RqDepth; i++)
        assert_int_equal(f.v->PostRecv(f.rc, &a.wr, NULL), STATUS_SUCCESS);
    assert_int_equal(f.v->PostRecv(f.rc, &a.wr, &failed), STATUS_IB_INSUFFICIENT_WR);
    assert_ptr_equal(failed, &a.wr);

    IB_QP *shared = rig_qp(&f.r, &f.s, IbQpTypeReliableConn, f.srq);
    rig_to_init(&f.r, shared);
    assert_int_equal(f.v->PostRecv(shared, &a.wr, NULL), STATUS_INVALID_OPERATION);
    rig_destroy_qp(&f.r, shared);
    assert_int_equal(f.v2->PostSrqRecv(NULL, &a.wr, &failed), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v2->PostSrqRecv(f.srq, NULL, &failed), STATUS_INVALID_PARAMETER);
    a.wr.SgeCount = 80;
    assert_int_equal(f.v2->PostSrqRecv(f.srq, &a.wr, &failed), STATUS_IB_INSUFFICIENT_SGE);
    fixture_close(&f);
}

static void test_bind_refusals(void **state)
{
    struct fixture f;
    IB_BIND_WR w;
    fixture_open(&f, RIG_PASSIVE);
    w = (IB_BIND_WR){.pMr = f.mr, .AccessMask = IB_AC_RDMA_READ, .Addr = f.mem, .Length = 8};
    assert_int_equal(f.v->BindMw(NULL, f.mw, &w), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->BindMw(f.rc, NULL, &w), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->BindMw(f.rc, f.mw, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(f.v->BindMw(f.ud, f.mw, &w), STATUS_INVALID_OPERATION);
    assert_int_equal(f.v->BindMw(f.fresh, f.mw, &w), STATUS_IB_INVALID_STATE);
    w.pMr = NULL;
    assert_int_equal(f.v->BindMw(f.rc, f.mw, &w), STATUS_INVALID_PARAMETER);
    w.pMr = f.s.pd; // begins with a pointer too
    assert_int_equal(f.v->BindMw(f.rc, f.mw, &w), STATUS_INVALID_PARAMETER);
    w.pMr = f.mr;
    w.Flags = IB_WR_FLAG_INLINE;
    assert_int_equal(f.v->BindMw(f.rc, f.mw, &w), STATUS_INVALID_PARAMETER);
    w.Flags = 0;
    w.AccessMask = 1 << 7;
    assert_int_equal(f.v->BindMw(f.rc, f.mw, &w), STATUS_INVALID_PARAMETER);
    fixture_close(&f);
}

// ---- success in each mode -----------------------------------------------------------------------

static void test_objects_have_the_fields_asked_for(void **state)
{
    int context;
    for (int mode = 0; mode < RIG_MODES; mode++) {
        struct fixture f;
        struct rig_call c;
        fixture_open(&f, (enum rig_mode)mode);
        CI_UDATA ud = {NULL, NULL, 5, 9};
        PIRP irp = rig_begin(&f.r, &c);
        IB_CA *ca = (IB_CA *)rig_ok(&f.r, &c, f.v->OpenCa(f.v->Context, &context, NULL, &ud, irp));
        assert_int_equal(ud.OutputSize, 0);
        assert_ptr_equal(ca->Context, &context);
        assert_int_equal(ca->nRef, 0);
        irp = rig_begin(&f.r, &c);
        IB_CQ *cq =
            (IB_CQ *)rig_ok(&f.r, &c, f.v->CreateCq(ca, 100, &context, NULL, NULL, NULL, irp));
        assert_ptr_equal(cq->pCa, ca);
        assert_ptr_equal(cq->Context, &context);
        assert_true(cq->NumCqes >= 100);
        assert_int_equal(ca->nRef, 1);
        irp = rig_begin(&f.r, &c);
        rig_ok(&f.r, &c, f.v->ResizeCq(cq, 1000, NULL, irp));
        assert_true(cq->NumCqes >= 1000);
        irp = rig_begin(&f.r, &c);
        rig_ok(&f.r, &c, f.v->DestroyCq(cq, NULL, irp));
        assert_int_equal(ca->nRef, 0);
        irp = rig_begin(&f.r, &c);
        rig_ok(&f.r, &c, f.v->CloseCa(ca, NULL, irp));
        fixture_close(&f);
    }
}

static void test_query_qp_gives_back_what_was_set(void **state)
{
    for (int mode = 0; mode < RIG_MODES; mode++) {
        struct fixture f;
        struct rig_call c;
        IB_QP_ATTR a;
        fixture_open(&f, (enum rig_mode)mode);
        assert_true(f.rc->SqDepth >= 16 && f.rc->RqDepth >= 16 && f.rc->SqMaxInline >= 64);
        assert_ptr_equal(f.rc->pSendCq, f.s.cq);
        assert_int_equal(f.s.cq->nRef, 6); // three QPs, two queues each
        PIRP irp = rig_begin(&f.r, &c);
        rig_ok(&f.r, &c, f.v->QueryQp(f.rc, &a, NULL, irp));
        assert_int_equal(a.State, IbQpsRts);
        assert_int_equal(a.DestQpNum, f.rc->Qpn);
        assert_int_equal(a.SqPsn, 0x123);
        assert_int_equal(a.RqPsn, 0x123);
        assert_int_equal(a.InitDepth, 4);
        assert_int_equal(a.RespRes, 4);
        assert_int_equal(a.primary_port, 1);
        assert_int_equal(a.AccessMask, IB_AC_RDMA_READ | IB_AC_RDMA_WRITE | IB_AC_ATOMIC);
        assert_memory_equal(&a.PrimaryAh, &f.address, sizeof(f.address));
        assert_int_equal(a.ApmState, IbApmMigrated);
        irp = rig_begin(&f.r, &c);
        rig_ok(&f.r, &c, f.v->QueryQp(f.ud, &a, NULL, irp));
        assert_int_equal(a.State, IbQpsInit);
        assert_int_equal(a.Qkey, 0x11111111);
        fixture_close(&f);
    }
}

static void test_modify_qp_walks_through_all_states(void **state)
{
    for (int mode = 0; mode < RIG_MODES; mode++) {
        struct fixture f;
        struct rig_call c;
        IB_QP_ATTR a;
        static const IB_QP_STATE ask[] = {IbQpsSqd, IbQpsRts, IbQpsError, IbQpsReset},
                                 got[] = {IbQpsSqdDrained, IbQpsRts, IbQpsError, IbQpsReset};
        fixture_open(&f, (enum rig_mode)mode);
        for (int i = 0; i < 4; i++) {
            IB_QP_MODIFY m = {.ReqState = ask[i]};
            assert_int_equal(rig_modify(&f.r, f.rc, &m), 0);
            PIRP irp = rig_begin(&f.r, &c);
            rig_ok(&f.r, &c, f.v->QueryQp(f.rc, &a, NULL, irp));
            assert_int_equal(a.State, got[i]);
        }
        fixture_close(&f);
    }
}

static void test_modify_qp_in_rts_changes_only_what_opts_names(void **state)
{
    struct fixture f;
    struct rig_call c;
    IB_QP_ATTR a;
    fixture_open(&f, RIG_PASSIVE);
    IB_QP_MODIFY m = {.ReqState = IbQpsRts};
    m.state.rts.SqPsn = 0x999; // never counts here
    m.state.rts.InitDepth = 1;
    m.state.rts.AccessMask = IB_AC_RDMA_WRITE;
    m.state.rts.Opts = IB_MOD_QP_ACCESS_CTRL | IB_MOD_QP_RNR_NAK_TIMEOUT;
    m.state.rts.RnrNakTimeout = 3;
    assert_int_equal(rig_modify(&f.r, f.rc, &m), 0);
    PIRP irp = rig_begin(&f.r, &c);
    rig_ok(&f.r, &c, f.v->QueryQp(f.rc, &a, NULL, irp));
    assert_int_equal(a.AccessMask, IB_AC_RDMA_WRITE);
    assert_int_equal(a.SqPsn, 0x123);
    assert_int_equal(a.InitDepth, 4);
    fixture_close(&f);
}

static void test_modify_port_capabilities_belong_to_who_set_them(void **state)
{
    struct fixture f;
    struct rig_call c;
    IB_MODIFY_PORT set = {.SetCapabilites = IB_PORT_CAP_IS_SM | IB_PORT_CAP_SNMP_TUNNEL_SUP};
    IB_MODIFY_PORT clear = {.ClearCapabilites = IB_PORT_CAP_IS_SM};
    IB_PORT_ATTR port;
    fixture_open(&f, RIG_PASSIVE);
    PIRP irp = rig_begin(&f.r, &c);
    IB_CA *other = (IB_CA *)rig_ok(&f.r, &c, f.v->OpenCa(f.v->Context, NULL, NULL, NULL, irp));
    irp = rig_begin(&f.r, &c);
    rig_ok(&f.r, &c, f.v->ModifyPort(f.s.ca, 1, 0, &set, irp));
    irp = rig_begin(&f.r, &c);
    rig_ok(&f.r, &c, f.v->ModifyPort(f.s.ca, 1, 0, &set, irp));
    irp = rig_begin(&f.r, &c);
    assert_int_equal(rig_done(&f.r, &c, f.v->ModifyPort(other, 1, 0, &set, irp)),
                     STATUS_FILE_LOCK_CONFLICT);
    irp = rig_begin(&f.r, &c);
    assert_int_equal(rig_done(&f.r, &c, f.v->ModifyPort(other, 1, 0, &clear, irp)),
                     STATUS_FILE_LOCK_CONFLICT);
    irp = rig_begin(&f.r, &c);
    rig_done(&f.r, &c, f.v->QueryPort(f.v->Context, 1, sizeof(port), &port, irp));
    assert_true(port.CapabilitiesFlags & IB_PORT_CAP_IS_SM);
    irp = rig_begin(&f.r, &c);
    rig_ok(&f.r, &c, f.v->ModifyPort(f.s.ca, 1, 0, &clear, irp));
    irp = rig_begin(&f.r, &c);
    rig_done(&f.r, &c, f.v->QueryPort(f.v->Context, 1, sizeof(port), &port, irp));
    assert_false(port.CapabilitiesFlags & IB_PORT_CAP_IS_SM);
    assert_true(port.CapabilitiesFlags & IB_PORT_CAP_SNMP_TUNNEL_SUP);
    set.SetCapabilites = IB_PORT_CAP_IS_SM;
    irp = rig_begin(&f.r, &c);
    rig_ok(&f.r, &c, f.v->ModifyPort(other, 1, 0, &set, irp));
    irp = rig_begin(&f.r, &c);
    rig_ok(&f.r, &c, f.v->CloseCa(other, NULL, irp)); // gives the bit back
    irp = rig_begin(&f.r, &c);
    rig_ok(&f.r, &c, f.v->ModifyPort(f.s.ca, 1, 0, &set, irp));
    fixture_close(&f);
}

static void test_modify_ca_is_seen_by_query(void **state)
{
    struct fixture f;
    struct rig_call c;
    IB_MODIFY_CA m = {.SystemImageGuid = 0x1122334455667788ull};
    IB_CA_ATTR a;
    fixture_open(&f, RIG_PEND);
    PIRP irp = rig_begin(&f.r, &c);
    rig_ok(&f.r, &c, f.v->ModifyCa(f.s.ca, IB_MODIFY_CA_SYS_IMAGE_GUID, &m, irp));
    irp = rig_begin(&f.r, &c);
    NTSTATUS s = f.v->QueryCa(f.v->Context, sizeof(a), &a, irp);
    assert_int_equal(rig_end(&c, s), STATUS_BUFFER_OVERFLOW);
    assert_int_equal(a.SystemImageGuid, m.SystemImageGuid);
    fixture_close(&f);
}

static void test_srq_verbs(void **state)
{
    for (int mode = 0; mode < RIG_MODES; mode++) {
        struct fixture f;
        struct rig_call c;
        IB_SRQ_ATTR a = {.Depth = 64, .Limit = 3};
        IB_RECV_WR wr = {.SgeCount = 0};
        fixture_open(&f, (enum rig_mode)mode);
        for (int i = 0; i < 5; i++) // a limit above what is posted would fire at once
            assert_int_equal(f.v2->PostSrqRecv(f.srq, &wr, NULL), STATUS_SUCCESS);
        PIRP irp = rig_begin(&f.r, &c);
        rig_ok(&f.r, &c,
               f.v2->ModifySrq(f.srq, IB_MOD_SRQ_DEPTH | IB_MOD_SRQ_LIMIT, &a, NULL, irp));
        memset(&a, 0, sizeof(a));
        irp = rig_begin(&f.r, &c);
        rig_ok(&f.r, &c, f.v2->QuerySrq(f.srq, &a, NULL, irp));
        assert_true(a.Depth >= 64);
        assert_true(a.RqSge >= 1);
        assert_int_equal(a.Limit, 3);
        fixture_close(&f);
    }
}

// ---- getting the table --------------------------------------------------------------------------

static void test_query_interface(void **state)
{
    struct rig r;
    IB_VERBS_INTERFACE_STANDARD one;
    WEFT_IB_VERBS_INTERFACE_2 two;
    GUID other = GUID_IB_VERBS_INTERFACE;
    rig_open(&r);
    other.Data1++;
    PINTERFACE p = (PINTERFACE)&one;
    assert_int_equal(weft_iba_query_interface(NULL, 1, p), STATUS_INVALID_PARAMETER);
    assert_int_equal(weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 1, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(weft_iba_query_interface(&other, 1, p), STATUS_NOT_SUPPORTED);
    assert_int_equal(weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 0, p),
                     STATUS_NOT_SUPPORTED);
    assert_int_equal(weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 3, p),
                     STATUS_NOT_SUPPORTED);
    assert_int_equal(weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 1, p), 0);
    assert_int_equal(one.Size, 392);
    assert_int_equal(one.Version, 1);
    assert_true(one.NodeGuid);
    assert_string_equal(one.UvpName, "weft");
    one.InterfaceReference(one.Context);
    one.InterfaceDereference(one.Context);
    assert_int_equal(weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 2, (PINTERFACE)&two), 0);
    assert_int_equal(two.v1.Size, sizeof(two));
    // The verbs are one set; only Context tells the versions apart.
    assert_memory_equal(&two.v1.OpenCa, &one.OpenCa, sizeof(one) - offsetof(typeof(one), OpenCa));
    assert_ptr_not_equal(two.v1.Context, one.Context);
    two.v1.InterfaceDereference(two.v1.Context);
    one.InterfaceDereference(one.Context);
    rig_close(&r);
}

static void query_by_irp(USHORT size, USHORT version, UCHAR minor, NTSTATUS expect)
{
    struct rig_call c;
    WEFT_IB_VERBS_INTERFACE_2 table;
    PIRP irp = rig_irp(&c);
    PIO_STACK_LOCATION next = IoGetNextIrpStackLocation(irp);
    next->MajorFunction = IRP_MJ_PNP;
    next->MinorFunction = minor;
    next->Parameters.QueryInterface.InterfaceType = &GUID_IB_VERBS_INTERFACE;
    next->Parameters.QueryInterface.Size = size;
    next->Parameters.QueryInterface.Version = version;
    next->Parameters.QueryInterface.Interface = (PINTERFACE)&table;
    assert_int_equal(IoCallDriver(weft_iba_device_object(), irp), expect);
    assert_int_equal(c.completions, 1);
    assert_int_equal(c.status, expect);
    IoFreeIrp(irp);
    if (NT_SUCCESS(expect))
        table.v1.InterfaceDereference(table.v1.Context);
}

static void test_query_interface_by_irp(void **state)
{
    struct rig r;
    rig_open(&r);
    query_by_irp(392, 1, IRP_MN_QUERY_INTERFACE, STATUS_SUCCESS);
    query_by_irp(391, 1, IRP_MN_QUERY_INTERFACE, STATUS_INVALID_PARAMETER);
    query_by_irp(392, 2, IRP_MN_QUERY_INTERFACE, STATUS_INVALID_PARAMETER);
    query_by_irp(sizeof(WEFT_IB_VERBS_INTERFACE_2), 2, IRP_MN_QUERY_INTERFACE, STATUS_SUCCESS);
    query_by_irp(392, 1, 0x01, STATUS_NOT_SUPPORTED);
    rig_close(&r);
}

static void test_version_1_has_no_srq_and_multicast(void **state)
{
    struct rig r;
    struct rig_call c;
    IB_CA_ATTR a;
    IB_VERBS_INTERFACE_STANDARD one;
    IB_SRQ_CREATE srq = {.Depth = 4, .RqSge = 1};
    rig_open(&r);
    weft_iba_query_interface(&GUID_IB_VERBS_INTERFACE, 1, (PINTERFACE)&one);
    PIRP irp = rig_begin(&r, &c);
    assert_int_equal(rig_done(&r, &c, one.QueryCa(one.Context, sizeof(a), &a, irp)),
                     STATUS_BUFFER_OVERFLOW);
    assert_int_equal(a.MaxSrq | a.MaxSrqWr | a.MaxSrqSge | a.MaxMcastGrp, 0);
    irp = rig_begin(&r, &c);
    rig_done(&r, &c, r.v->QueryCa(r.v->Context, sizeof(a), &a, irp));
    assert_true(a.MaxSrq && a.MaxMcastGrp);
    irp = rig_begin(&r, &c);
    IB_CA *ca = (IB_CA *)rig_ok(&r, &c, one.OpenCa(one.Context, NULL, NULL, NULL, irp));
    irp = rig_begin(&r, &c);
    IB_PD *pd = (IB_PD *)rig_ok(&r, &c, one.CreatePd(ca, NULL, irp));
    irp = rig_begin(&r, &c);
    assert_int_equal(rig_done(&r, &c, r.t.CreateSrq(pd, &srq, NULL, NULL, NULL, irp)),
                     STATUS_INVALID_PARAMETER);
    irp = rig_begin(&r, &c);
    rig_ok(&r, &c, one.DestroyPd(pd, NULL, irp));
    irp = rig_begin(&r, &c);
    rig_ok(&r, &c, one.CloseCa(ca, NULL, irp));
    one.InterfaceDereference(one.Context);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asynchronous_verbs_with_bad_arguments_refuse),
        cmocka_unit_test(test_asynchronous_verbs_without_usable_irp_do_nothing),
        cmocka_unit_test(test_address_handle_verbs),
        cmocka_unit_test(test_completion_queue_verbs_synchronous),
        cmocka_unit_test(test_post_send_refusals),
        cmocka_unit_test(test_post_send_to_full_queue_names_the_first_not_taken),
        cmocka_unit_test(test_post_recv_refusals),
        cmocka_unit_test(test_bind_refusals),
        cmocka_unit_test(test_objects_have_the_fields_asked_for),
        cmocka_unit_test(test_query_qp_gives_back_what_was_set),
        cmocka_unit_test(test_modify_qp_walks_through_all_states),
        cmocka_unit_test(test_modify_qp_in_rts_changes_only_what_opts_names),
        cmocka_unit_test(test_modify_port_capabilities_belong_to_who_set_them),
        cmocka_unit_test(test_modify_ca_is_seen_by_query),
        cmocka_unit_test(test_srq_verbs),
        cmocka_unit_test(test_query_interface),
        cmocka_unit_test(test_query_interface_by_irp),
        cmocka_unit_test(test_version_1_has_no_srq_and_multicast),
    };
    return cmocka_run_group_tests_name("iba_verbs", tests, NULL, NULL);
}
