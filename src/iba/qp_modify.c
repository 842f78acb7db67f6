// SPDX-License-Identifier: BSD-2-Clause
// ModifyQp: the RFC's cases become attributes and a mask. Which fields count is table work; what
// becomes of them is the engine's.
#include "iba/iba.h"

#include <errno.h>
#include <string.h>

#define ALTERNATE_TIMEOUT 14 // 67 ms; the RFC has no timeout for the alternate path

struct modify_op {
    struct wf_iba_op op;
    IB_QP_MODIFY m;
};

struct change {
    struct ibv_qp_attr attr;
    int mask;
};

// ---- states -------------------------------------------------------------------------------------

#define FROM(s) (1u << IBV_QPS_##s)
#define ANY     0x7fu

static const struct {
    IB_QP_STATE ask;
    enum ibv_qp_state to;
    unsigned from;
} moves[] = {
    {IbQpsReset, IBV_QPS_RESET, ANY},
    {IbQpsInit, IBV_QPS_INIT, FROM(RESET) | FROM(INIT)},
    {IbQpsRtr, IBV_QPS_RTR, FROM(INIT)},
    {IbQpsRts, IBV_QPS_RTS, FROM(RTR) | FROM(RTS) | FROM(SQD) | FROM(SQE)},
    {IbQpsSqd, IBV_QPS_SQD, FROM(RTS) | FROM(SQD)},
    {IbQpsError, IBV_QPS_ERR, ANY},
};

static bool move_of(IB_QP_STATE ask, enum ibv_qp_state from, enum ibv_qp_state *to)
{
    for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
        if (moves[i].ask != ask)
            continue;
        *to = moves[i].to;
        return moves[i].from & 1u << from;
    }
    return false;
}

// ---- optional fields ----------------------------------------------------------------------------

#define OPTS_KNOWN  0xffffu
#define OPTS_RESIZE (IB_MOD_QP_SQ_DEPTH | IB_MOD_QP_RQ_DEPTH)
#define OPTS_FOR_RTR                                                                               \
    (IB_MOD_QP_ALTERNATE_AV | IB_MOD_QP_PKEY | IB_MOD_QP_ACCESS_CTRL | IB_MOD_QP_QKEY | OPTS_RESIZE)

static NTSTATUS set_path(struct change *c, const IB_AH_ATTR *ah)
{
    NTSTATUS status = wf_iba_ah_attr(ah, &c->attr.ah_attr);
    c->mask |= IBV_QP_AV;
    return status;
}

static NTSTATUS set_alternate(struct change *c, const IB_AH_ATTR *ah)
{
    NTSTATUS status = wf_iba_ah_attr(ah, &c->attr.alt_ah_attr);
    c->attr.alt_port_num = ah->PortNumber;
    c->attr.alt_timeout = ALTERNATE_TIMEOUT;
    c->mask |= IBV_QP_ALT_PATH;
    return status;
}

static NTSTATUS set_access(struct change *c, const struct wf_iba_ca *ca, ULONG mask)
{
    int access = wf_iba_access(ca, mask);
    if (access < 0)
        return STATUS_INVALID_PARAMETER;
    // A QP grants remote operations; local rights are the region's.
    c->attr.qp_access_flags = (unsigned)access & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
                                                  IBV_ACCESS_REMOTE_ATOMIC);
    c->mask |= IBV_QP_ACCESS_FLAGS;
    return STATUS_SUCCESS;
}

static void set_pkey(struct change *c, USHORT index)
{
    c->attr.pkey_index = index;
    c->mask |= IBV_QP_PKEY_INDEX;
}

static void set_qkey(struct change *c, ULONG qkey)
{
    c->attr.qkey = qkey;
    c->mask |= IBV_QP_QKEY;
}

static NTSTATUS check_opts(ULONG opts, ULONG allowed)
{
    if (opts & ~(ULONG)OPTS_KNOWN || opts & ~allowed) {
        wf_refuse(EINVAL, WF_R_QP_ATTR_EXTRA, "Opts 0x%x, allowed 0x%x", opts, allowed);
        return STATUS_INVALID_PARAMETER;
    }
    if (opts & OPTS_RESIZE) {
        wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ModifyQp: work queues cannot be resized");
        return STATUS_NOT_SUPPORTED;
    }
    return STATUS_SUCCESS;
}

// ---- the cases ----------------------------------------------------------------------------------

static NTSTATUS to_init(struct change *c, const struct wf_iba_qp *qp, const struct _QpInit *in)
{
    c->attr.port_num = in->PrimaryPort;
    c->mask |= IBV_QP_PORT;
    if (in->PrimaryPort < 1 || in->PrimaryPort > WF_IBA_PORTS)
        return STATUS_INVALID_PARAMETER_1;
    set_pkey(c, in->PkeyIndex);
    if (qp->pub.Type != IbQpTypeUnreliableDgrm)
        return set_access(c, qp->obj.ca, in->AccessMask);
    set_qkey(c, in->Qkey);
    return STATUS_SUCCESS;
}

static NTSTATUS connect_to(struct change *c, const struct wf_iba_qp *qp, const struct _QpRtr *in)
{
    struct ibv_port_attr port;
    NTSTATUS status = set_path(c, &in->PrimaryAh);
    if (!NT_SUCCESS(status))
        return status;
    int rc = wf_hca_query_port(wf_iba_device.hca, in->PrimaryAh.PortNumber, &port);
    if (rc)
        return wf_iba_status(rc);
    c->attr.path_mtu = (enum ibv_mtu)wf_iba_path_mtu((IB_MTU)port.active_mtu);
    c->attr.dest_qp_num = in->DestQp;
    c->attr.rq_psn = in->RqPsn;
    c->mask |= IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (qp->pub.Type == IbQpTypeReliableConn) {
        c->attr.max_dest_rd_atomic = in->RespRes;
        c->attr.min_rnr_timer = in->RnrNakTimeout;
        c->mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    return STATUS_SUCCESS;
}

static NTSTATUS to_rtr(struct change *c, const struct wf_iba_qp *qp, const struct _QpRtr *in)
{
    NTSTATUS status = check_opts(in->Opts, OPTS_FOR_RTR);
    if (NT_SUCCESS(status) && qp->pub.Type != IbQpTypeUnreliableDgrm)
        status = connect_to(c, qp, in);
    if (NT_SUCCESS(status) && in->Opts & IB_MOD_QP_ALTERNATE_AV)
        status = set_alternate(c, &in->AlternateAh);
    if (NT_SUCCESS(status) && in->Opts & IB_MOD_QP_ACCESS_CTRL)
        status = set_access(c, qp->obj.ca, in->AccessMask);
    if (in->Opts & IB_MOD_QP_PKEY)
        set_pkey(c, in->PkeyIndex);
    if (in->Opts & IB_MOD_QP_QKEY)
        set_qkey(c, in->Qkey);
    return status;
}

static bool ibv_state(IB_QP_STATE in, enum ibv_qp_state *out)
{
    static const enum ibv_qp_state of[] = {IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
                                           IBV_QPS_RTS,   IBV_QPS_SQD,  IBV_QPS_SQD,
                                           IBV_QPS_SQD,   IBV_QPS_SQE,  IBV_QPS_ERR};
    if ((unsigned)in >= sizeof(of) / sizeof(of[0]))
        return false;
    *out = of[in];
    return true;
}

static bool ibv_apm(IB_APM_STATE in, enum ibv_mig_state *out)
{
    if (in < IbApmMigrated || in > IbApmArmed)
        return false;
    *out = in == IbApmMigrated ? IBV_MIG_MIGRATED
           : in == IbApmRearm  ? IBV_MIG_REARM
                               : IBV_MIG_ARMED;
    return true;
}

// Numbers that Opts names, each with its mask bit.
static void optional_numbers(struct change *c, const struct _QpRts *in)
{
    const struct {
        ULONG opt;
        int mask;
        uint8_t *to, from;
    } of[] = {
        {IB_MOD_QP_RNR_NAK_TIMEOUT, IBV_QP_MIN_RNR_TIMER, &c->attr.min_rnr_timer,
         in->RnrNakTimeout},
        {IB_MOD_QP_RESP_RES, IBV_QP_MAX_DEST_RD_ATOMIC, &c->attr.max_dest_rd_atomic, in->RespRes},
        {IB_MOD_QP_INIT_DEPTH, IBV_QP_MAX_QP_RD_ATOMIC, &c->attr.max_rd_atomic, in->InitDepth},
        {IB_MOD_QP_PRIMARY_PORT, IBV_QP_PORT, &c->attr.port_num, in->PrimaryPort},
        {IB_MOD_QP_RETRY_CNT, IBV_QP_RETRY_CNT, &c->attr.retry_cnt, in->RetryCnt},
        {IB_MOD_QP_LOCAL_ACK_TIMEOUT, IBV_QP_TIMEOUT, &c->attr.timeout, in->LocalAckTimeout},
        {IB_MOD_QP_RNR_RETRY_CNT, IBV_QP_RNR_RETRY, &c->attr.rnr_retry, in->RnrRetryCnt},
    };
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        if (!(in->Opts & of[i].opt))
            continue;
        *of[i].to = of[i].from;
        c->mask |= of[i].mask;
    }
}

static NTSTATUS optional_fields(struct change *c, const struct wf_iba_qp *qp,
                                const struct _QpRts *in)
{
    NTSTATUS status = STATUS_SUCCESS;
    optional_numbers(c, in);
    if (in->Opts & IB_MOD_QP_PKEY)
        set_pkey(c, in->PkeyIndex);
    if (in->Opts & IB_MOD_QP_QKEY)
        set_qkey(c, in->Qkey);
    if (in->Opts & IB_MOD_QP_CURRENT_STATE) {
        c->mask |= IBV_QP_CUR_STATE;
        if (!ibv_state(in->CurrentState, &c->attr.cur_qp_state))
            return STATUS_INVALID_PARAMETER;
    }
    if (in->Opts & IB_MOD_QP_APM_STATE) {
        c->mask |= IBV_QP_PATH_MIG_STATE;
        if (!ibv_apm(in->ApmState, &c->attr.path_mig_state))
            return STATUS_INVALID_PARAMETER;
    }
    if (in->Opts & IB_MOD_QP_ACCESS_CTRL)
        status = set_access(c, qp->obj.ca, in->AccessMask);
    if (NT_SUCCESS(status) && in->Opts & IB_MOD_QP_PRIMARY_AV)
        status = set_path(c, &in->PrimaryAh);
    if (NT_SUCCESS(status) && in->Opts & IB_MOD_QP_ALTERNATE_AV)
        status = set_alternate(c, &in->AlternateAh);
    return status;
}

// Decision 11: from RTR the fields of the connection always count, and naming them is no error.
static NTSTATUS to_rts(struct change *c, const struct wf_iba_qp *qp, enum ibv_qp_state from,
                       const struct _QpRts *in)
{
    struct _QpRts f = *in;
    const ULONG always = IB_MOD_QP_RETRY_CNT | IB_MOD_QP_RNR_RETRY_CNT |
                         IB_MOD_QP_LOCAL_ACK_TIMEOUT | IB_MOD_QP_INIT_DEPTH;
    NTSTATUS status = check_opts(f.Opts, OPTS_KNOWN);
    if (!NT_SUCCESS(status))
        return status;
    if (from == IBV_QPS_RTR) {
        c->attr.sq_psn = f.SqPsn;
        c->mask |= IBV_QP_SQ_PSN;
        f.Opts &= ~always;
        if (qp->pub.Type == IbQpTypeReliableConn)
            f.Opts |= always;
    }
    return optional_fields(c, qp, &f);
}

// ---- verb ---------------------------------------------------------------------------------------

static NTSTATUS describe(const struct wf_iba_qp *qp, const IB_QP_MODIFY *m, struct change *c)
{
    enum ibv_qp_state from = wf_qp_state(qp->qp);
    memset(c, 0, sizeof(*c));
    c->mask = IBV_QP_STATE;
    if (!move_of(m->ReqState, from, &c->attr.qp_state)) {
        wf_refuse(EINVAL, WF_R_QP_STATE, "QP 0x%06x: state %d to requested state %d", qp->pub.Qpn,
                  (int)from, (int)m->ReqState);
        return STATUS_IB_INVALID_STATE;
    }
    switch (m->ReqState) {
    case IbQpsInit:
        return to_init(c, qp, &m->state.Init);
    case IbQpsRtr:
        return to_rtr(c, qp, &m->state.rtr);
    case IbQpsRts:
        return to_rts(c, qp, from, &m->state.rts);
    case IbQpsSqd:
        c->attr.en_sqd_async_notify = m->state.sqd.SqdEvent != 0;
        if (c->attr.en_sqd_async_notify)
            c->mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
        return STATUS_SUCCESS;
    default:
        return STATUS_SUCCESS;
    }
}

static NTSTATUS run_modify(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct wf_iba_qp *qp = CONTAINING_RECORD(op->target, struct wf_iba_qp, obj);
    struct change c;
    NTSTATUS status = describe(qp, &((struct modify_op *)op)->m, &c);
    return NT_SUCCESS(status) ? wf_iba_status(wf_qp_modify(qp->qp, &c.attr, c.mask)) : status;
}

NTSTATUS wf_iba_modify_qp(IB_QP *const pQp, IB_QP_MODIFY *const pModify, CI_UDATA *const pUserData,
                          IRP *const pIrp)
{
    struct wf_iba_qp *qp = wf_iba_qp_of(pQp);
    struct modify_op op;
    if (!qp || !pModify)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    memset(&op.op, 0, sizeof(op.op));
    op.m = *pModify;
    return wf_iba_start(&op.op, sizeof(op), run_modify, &qp->obj, pUserData, pIrp);
}
