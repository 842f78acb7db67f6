// SPDX-License-Identifier: BSD-2-Clause
// Values of the async verbs from and to those of the engine.
#include "iba/iba.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

// ---- access -------------------------------------------------------------------------------------

static const struct {
    ULONG iba;
    int ibv;
} access_bits[] = {
    {1 << 0, IBV_ACCESS_REMOTE_READ},         {IB_AC_RDMA_WRITE, IBV_ACCESS_REMOTE_WRITE},
    {IB_AC_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC}, {IB_AC_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE},
    {IB_AC_MW_BIND, IBV_ACCESS_MW_BIND},
};
#define ACCESS_BITS (sizeof(access_bits) / sizeof(access_bits[0]))

int wf_iba_access(const struct wf_iba_ca *ca, ULONG mask)
{
    int access = ca->ifc->literal ? IBV_ACCESS_REMOTE_READ : 0;
    for (size_t i = 0; i < ACCESS_BITS; i++) {
        if (mask & access_bits[i].iba)
            access |= access_bits[i].ibv;
        mask &= ~access_bits[i].iba;
    }
    if (mask) {
        wf_refuse(EINVAL, WF_R_ARG, "access mask has unknown bits 0x%x", mask);
        return -1;
    }
    return access;
}

ULONG wf_iba_access_back(int access)
{
    ULONG mask = 0;
    for (size_t i = 0; i < ACCESS_BITS; i++)
        if (access & access_bits[i].ibv)
            mask |= access_bits[i].iba;
    return mask;
}

// ---- addresses ----------------------------------------------------------------------------------

static int gid_index(const IB_GID *gid)
{
    struct wf_gid_slot slot;
    static const union ibv_gid none;
    for (int i = 0; i < WF_GIDS; i++) {
        if (wf_hca_query_gid(wf_iba_device.hca, 1, (uint32_t)i, &slot))
            continue;
        if (memcmp(&slot.gid, gid, sizeof(*gid)) == 0 && memcmp(gid, &none, sizeof(none)))
            return i;
    }
    return -1;
}

NTSTATUS wf_iba_ah_attr(const IB_AH_ATTR *in, struct ibv_ah_attr *out)
{
    memset(out, 0, sizeof(*out));
    if (in->PortNumber < 1 || in->PortNumber > WF_IBA_PORTS) {
        wf_refuse(EINVAL, WF_R_ARG, "port %u of 1..%d", in->PortNumber, WF_IBA_PORTS);
        return STATUS_INVALID_PARAMETER_1;
    }
    if (!(in->Flags & IB_AH_FLAG_GRH)) {
        wf_refuse(EINVAL, WF_R_ARG, "an address without GRH on a RoCE port");
        return STATUS_INVALID_PARAMETER;
    }
    int index = gid_index(&in->Grh.SGid);
    if (index < 0) {
        wf_refuse(EINVAL, WF_R_ARG, "source GID is not in the port's table");
        return STATUS_INVALID_PARAMETER_2;
    }
    uint32_t vtf = ntohl(in->Grh.VerClassFlow);
    out->port_num = in->PortNumber;
    out->sl = in->SvcLvl;
    out->dlid = in->DLid;
    out->static_rate = in->StaticRate;
    out->src_path_bits = in->PathBits;
    out->is_global = 1;
    memcpy(&out->grh.dgid, &in->Grh.DGid, sizeof(out->grh.dgid));
    out->grh.sgid_index = (uint8_t)index;
    out->grh.hop_limit = in->Grh.HopLimit;
    out->grh.traffic_class = (uint8_t)(vtf >> 20);
    out->grh.flow_label = vtf & 0xfffff;
    return STATUS_SUCCESS;
}

void wf_iba_ah_attr_back(const struct ibv_ah_attr *in, IB_AH_ATTR *out)
{
    struct wf_gid_slot slot;
    memset(out, 0, sizeof(*out));
    out->PortNumber = in->port_num;
    out->SvcLvl = in->sl;
    out->DLid = in->dlid;
    out->StaticRate = in->static_rate;
    out->PathBits = in->src_path_bits;
    if (!in->is_global)
        return;
    out->Flags = IB_AH_FLAG_GRH;
    out->Grh.VerClassFlow =
        htonl(6u << 28 | (uint32_t)in->grh.traffic_class << 20 | in->grh.flow_label);
    out->Grh.HopLimit = in->grh.hop_limit;
    memcpy(&out->Grh.DGid, &in->grh.dgid, sizeof(out->Grh.DGid));
    if (wf_hca_query_gid(wf_iba_device.hca, 1, in->grh.sgid_index, &slot) == 0)
        memcpy(&out->Grh.SGid, &slot.gid, sizeof(out->Grh.SGid));
}

bool wf_iba_qp_type(IB_QP_TYPE in, enum ibv_qp_type *out)
{
    switch (in) {
    case IbQpTypeReliableConn:
        *out = IBV_QPT_RC;
        return true;
    case IbQpTypeUnreliableConn:
        *out = IBV_QPT_UC;
        return true;
    case IbQpTypeUnreliableDgrm:
        *out = IBV_QPT_UD;
        return true;
    default:
        return false;
    }
}

// ---- completions --------------------------------------------------------------------------------

static IB_WC_STATUS wc_status(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_SUCCESS:
        return IbWcSuccess;
    case IBV_WC_LOC_LEN_ERR:
        return IbWcLocalLenErr;
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_BAD_RESP_ERR:
        return IbWcLocalOpErr;
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_ACCESS_ERR:
        return IbWcLocalProtectionErr;
    case IBV_WC_WR_FLUSH_ERR:
        return IbWcWrFlushedErr;
    case IBV_WC_MW_BIND_ERR:
        return IbWcMwBindErr;
    case IBV_WC_REM_ACCESS_ERR:
        return IbWcRemAccessErr;
    case IBV_WC_REM_OP_ERR:
        return IbWcRemOpErr;
    case IBV_WC_RNR_RETRY_EXC_ERR:
        return IbWcRnrRetryErr;
    case IBV_WC_RETRY_EXC_ERR:
        return IbWcTimeoutRetryErr;
    case IBV_WC_REM_INV_REQ_ERR:
        return IbWcRemInvalidReqErr;
    default:
        return IbWcUnknown;
    }
}

static IB_OP_TYPE wc_type(enum ibv_wc_opcode opcode)
{
    switch (opcode) {
    case IBV_WC_RDMA_WRITE:
        return IbRdmaWrite;
    case IBV_WC_RDMA_READ:
        return IbRdmaRead;
    case IBV_WC_COMP_SWAP:
        return IbInterlockedCompareExchange;
    case IBV_WC_FETCH_ADD:
        return IbInterlockedAdd;
    case IBV_WC_BIND_MW:
        return IbBindMw;
    case IBV_WC_RECV:
        return IbRecv;
    case IBV_WC_RECV_RDMA_WITH_IMM:
        return IbRecvRdmaWrite;
    default:
        return IbSend;
    }
}

void wf_iba_wc(const struct wf_wc *in, IB_WC *out)
{
    const struct ibv_wc *wc = &in->wc;
    struct wf_iba_qp *qp = in->qp_user;
    memset(out, 0, sizeof(*out));
    out->hQp = qp ? &qp->pub : NULL;
    out->WrId = wc->wr_id;
    out->Status = wc_status(wc->status);
    out->Type = wc_type(wc->opcode);
    out->VendorError = out->Status == IbWcUnknown ? (ULONG)wc->status : wc->vendor_err;
    if (wc->status != IBV_WC_SUCCESS)
        return;
    out->Length = wc->byte_len;
    if (wc->wc_flags & IBV_WC_GRH)
        out->Flags |= IB_WC_FLAG_GRH;
    if (wc->wc_flags & IBV_WC_WITH_IMM) {
        out->Flags |= IB_WC_FLAG_IMMEDIATE;
        out->ImmediateData = wc->imm_data;
    }
    out->Ud.RemoteQp = wc->src_qp;
    out->Ud.RemoteLid = wc->slid;
    out->Ud.PkeyIndex = wc->pkey_index;
    out->Ud.RemoteSl = wc->sl;
    out->Ud.PathBits = wc->dlid_path_bits;
}

// ---- events -------------------------------------------------------------------------------------

ULONG wf_iba_event(enum ibv_event_type type, USHORT version)
{
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return IbAeCqError;
    case IBV_EVENT_QP_FATAL:
        return IbAeQpFatal;
    case IBV_EVENT_QP_REQ_ERR:
        return IbAeWqReqError;
    case IBV_EVENT_QP_ACCESS_ERR:
        return IbAeWqAccessError;
    case IBV_EVENT_COMM_EST:
        return IbAeQpComm;
    case IBV_EVENT_SQ_DRAINED:
        return IbAeSqDrained;
    case IBV_EVENT_PATH_MIG:
        return IbAeQpApm;
    case IBV_EVENT_PATH_MIG_ERR:
        return IbAeQpApmError;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return version >= 2 ? (ULONG)IbAeQpLastWqe : IbAeUnknown;
    case IBV_EVENT_DEVICE_FATAL:
        return IbAeLocalFatal;
    case IBV_EVENT_PORT_ACTIVE:
        return IbAePortActive;
    case IBV_EVENT_PORT_ERR:
        return IbAePortDown;
    case IBV_EVENT_CLIENT_REREGISTER:
        return IbAeClientReregister;
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return IbSrqLimitReached;
    case IBV_EVENT_SRQ_ERR:
        return IbSrqError;
    default:
        return IbAeUnknown;
    }
}
