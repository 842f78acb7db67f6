// SPDX-License-Identifier: BSD-2-Clause
// Attributes as one block of bytes: IB_CA_ATTR, then for each port an IB_PORT_ATTR with its GID and
// P_Key tables. The block is built whole and as much copied out as the caller has room for, so a
// partial result is a prefix, and its first field says what the whole needs.
#include "iba/iba.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ALIGN8(n) (((n) + 7u) & ~7u)

// ---- port ---------------------------------------------------------------------------------------

static ULONG port_size(const struct ibv_port_attr *a)
{
    return ALIGN8((ULONG)sizeof(IB_PORT_ATTR) + (ULONG)a->gid_tbl_len * (ULONG)sizeof(IB_GID) +
                  a->pkey_tbl_len * (ULONG)sizeof(USHORT));
}

static ULONG agent_caps(void)
{
    ULONG caps = 0;
    for (int i = 0; i < 32; i++)
        if (wf_iba_device.cap_owner[i])
            caps |= 1u << i;
    return caps;
}

static IB_LINK_SPEED link_speed(uint32_t active)
{
    if (active >= IB_LINK_SPEED_10_GBS)
        return IB_LINK_SPEED_10_GBS;
    return active >= IB_LINK_SPEED_5_GBS ? IB_LINK_SPEED_5_GBS : IB_LINK_SPEED_2_5_GBS;
}

static IB_LINK_WIDTH link_width(uint8_t active)
{
    return active == 1 || active == 2 || active == 4 || active == 8 ? (IB_LINK_WIDTH)active
                                                                    : IB_LINK_WIDTH_1X;
}

// Number of virtual lanes, from the code in PortInfo: 1, 2, 4, 8 or 15.
static USHORT vl_count(uint8_t code)
{
    static const USHORT lanes[] = {0, 1, 2, 4, 8, 15};
    return code < sizeof(lanes) / sizeof(lanes[0]) ? lanes[code] : 15;
}

static void fill_link(const struct ibv_port_attr *a, IB_PORT_ATTR *out)
{
    out->LinkState = (IB_LINK_STATE)a->state;
    out->LinkWidth = link_width(a->active_width);
    out->LinkSpeed = link_speed(a->active_speed);
    out->LinkWidthSup = out->LinkWidthEnabled = (ULONG)out->LinkWidth;
    out->LinkSpeedSup = out->LinkSpeedEnabled = (ULONG)out->LinkSpeed;
    out->Mtu = (IB_MTU)a->active_mtu;
    out->MaxMsgSize = a->max_msg_sz;
    out->MaxVls = vl_count(a->max_vl_num);
    out->BaseLid = a->lid;
    out->SmLid = a->sm_lid;
    out->SmSvcLvl = a->sm_sl;
    out->Lmc = a->lmc;
    out->SubnetTimeout = a->subnet_timeout;
}

static void fill_tables(UCHAR port, IB_PORT_ATTR *out)
{
    IB_GID *gids = (IB_GID *)((char *)out + out->GidTblOffset);
    USHORT *pkeys = (USHORT *)((char *)out + out->PkeyTblOffset);
    struct wf_gid_slot slot;
    for (ULONG i = 0; i < out->NumGids; i++)
        if (wf_hca_query_gid(wf_iba_device.hca, port, i, &slot) == 0)
            memcpy(&gids[i], &slot.gid, sizeof(gids[i]));
    for (ULONG i = 0; i < out->NumPkeys; i++)
        if (wf_hca_query_pkey(wf_iba_device.hca, port, i, &pkeys[i]))
            pkeys[i] = 0;
}

// `out` has port_size(a) bytes, all zero.
static void fill_port(UCHAR port, const struct ibv_port_attr *a, IB_PORT_ATTR *out)
{
    struct wf_iba_device *d = &wf_iba_device;
    KIRQL irql = wf_iba_lock();
    out->CapabilitiesFlags = a->port_cap_flags | agent_caps();
    out->InitTypeReply = d->init_type_reply;
    out->QkeyViolations = (USHORT)(a->qkey_viol_cntr - d->qkey_violations_base);
    wf_iba_unlock(irql);
    out->Size = port_size(a);
    out->PortGuid = htobe64(wf_hca_node_guid(d->hca));
    out->PortNum = port;
    out->PkeyViolations = (USHORT)a->bad_pkey_cntr;
    out->NumGids = (USHORT)a->gid_tbl_len;
    out->NumPkeys = a->pkey_tbl_len;
    out->GidTblOffset = sizeof(*out);
    out->PkeyTblOffset = out->GidTblOffset + out->NumGids * (ULONG)sizeof(IB_GID);
    fill_link(a, out);
    fill_tables(port, out);
}

// ---- CA -----------------------------------------------------------------------------------------

static ULONG ca_caps(unsigned flags)
{
    static const struct {
        unsigned ibv;
        ULONG iba;
    } of[] = {
        {IBV_DEVICE_BAD_PKEY_CNTR, IB_CA_CAP_BAD_PKEY_CNTR},
        {IBV_DEVICE_BAD_QKEY_CNTR, IB_CA_CAP_BAD_QKEY_CNTR},
        {IBV_DEVICE_AUTO_PATH_MIG, IB_CA_CAP_AUTO_PATH_MIG},
        {IBV_DEVICE_CHANGE_PHY_PORT, IB_CA_CAP_CHANGE_PHY_PORT},
        {IBV_DEVICE_UD_AV_PORT_ENFORCE, IB_CA_CAP_AH_PORT_ENFORCE},
        {IBV_DEVICE_CURR_QP_STATE_MOD, IB_CA_CAP_CURR_QP_STATE_MOD},
        {IBV_DEVICE_RC_RNR_NAK_GEN, IB_CA_CAP_RC_RNR_NAK_GEN},
        {IBV_DEVICE_SRQ_RESIZE, IB_CA_CAP_SRQ_RESIZE},
    };
    // These the face provides itself.
    ULONG caps = IB_CA_CAP_PORT_ACTIVE_EVENT | IB_CA_CAP_SYS_IMAGE_GUID | IB_CA_CAP_N_NOTIFY_CQ |
                 IB_CA_CAP_INIT_TYPE;
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
        if (flags & of[i].ibv)
            caps |= of[i].iba;
    return caps;
}

static UINT8 clamp(int n)
{
    return n > 255 ? 255 : n < 0 ? 0 : (UINT8)n;
}

static IB_ATOMIC_CAP atomic_cap(enum ibv_atomic_cap cap)
{
    if (cap == IBV_ATOMIC_NONE)
        return IbAtomicNone;
    return cap == IBV_ATOMIC_GLOB ? IbAtomicGlobal : IbAtomicLocal;
}

static UINT64 fw_version(const char *text)
{
    unsigned a = 0, b = 0, c = 0;
    sscanf(text, "%u.%u.%u", &a, &b, &c);
    return (UINT64)a << 32 | (b & 0xffff) << 16 | (c & 0xffff);
}

UINT64 wf_iba_fw_version(const struct ibv_device_attr *d)
{
    return fw_version(d->fw_ver);
}

static void fill_limits(const struct ibv_device_attr *d, bool v2, IB_CA_ATTR *out)
{
    out->MaxQp = (ULONG)d->max_qp;
    out->MaxQpWr = (ULONG)d->max_qp_wr;
    out->MaxQpSge = (ULONG)d->max_sge;
    out->MaxCq = (ULONG)d->max_cq;
    out->MaxCqe = (ULONG)d->max_cqe;
    out->MaxPd = (ULONG)d->max_pd;
    out->MaxAh = (ULONG)d->max_ah;
    out->MaxMr = (ULONG)d->max_mr;
    out->MaxMrSize = d->max_mr_size;
    out->MaxMw = (ULONG)d->max_mw;
    out->MaxPKeys = d->max_pkeys;
    out->MaxQpReadAtomic = clamp(d->max_qp_rd_atom);
    out->MaxReadAtomic = clamp(d->max_res_rd_atom);
    out->MaxQpInitReadAtomic = clamp(d->max_qp_init_rd_atom);
    if (!v2)
        return; // no verbs for them there
    out->MaxMcastGrp = (ULONG)d->max_mcast_grp;
    out->MaxMcastQp = (ULONG)d->max_total_mcast_qp_attach;
    out->MaxMcastQpPerGrp = (ULONG)d->max_mcast_qp_attach;
    out->MaxSrq = (ULONG)d->max_srq;
    out->MaxSrqWr = (ULONG)d->max_srq_wr;
    out->MaxSrqSge = (ULONG)d->max_srq_sge;
}

static void fill_ca(const struct ibv_device_attr *d, bool v2, IB_CA_ATTR *out)
{
    out->VendorId = d->vendor_id;
    out->DeviceId = (UINT16)d->vendor_part_id;
    out->DeviceRev = (UINT16)d->hw_ver;
    out->DriverVersion = 1;
    out->FwVersion = fw_version(d->fw_ver);
    out->CaGuid = d->node_guid;
    KIRQL irql = wf_iba_lock();
    out->SystemImageGuid = wf_iba_device.system_image_guid;
    wf_iba_unlock(irql);
    out->PortAttrOffset = sizeof(*out);
    out->NumPorts = WF_IBA_PORTS;
    out->PageSizeSupport = d->page_size_cap >> 1;
    out->CapabilitiesFlags = ca_caps(d->device_cap_flags);
    out->AtomicCap = atomic_cap(d->atomic_cap);
    out->LocalAckDelay = d->local_ca_ack_delay;
    fill_limits(d, v2, out);
}

// ---- verbs --------------------------------------------------------------------------------------

struct query_op {
    struct wf_iba_op op;
    const struct wf_iba_ifc *ifc;
    UCHAR port;
    SIZE_T room;
    void *out;
};

static NTSTATUS copy_out(const struct query_op *a, const void *block, ULONG size, NTSTATUS partial,
                         ULONG_PTR *info)
{
    *info = a->room < size ? a->room : size;
    memcpy(a->out, block, *info);
    return a->room < size ? partial : STATUS_SUCCESS;
}

static NTSTATUS run_query_ca(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct query_op *a = (struct query_op *)op;
    struct ibv_device_attr dev;
    struct ibv_port_attr port;
    wf_hca_query_device(wf_iba_device.hca, &dev);
    int rc = wf_hca_query_port(wf_iba_device.hca, 1, &port);
    if (rc)
        return wf_iba_status(rc);
    ULONG size = (ULONG)sizeof(IB_CA_ATTR) + port_size(&port);
    IB_CA_ATTR *block = calloc(1, size);
    if (!block)
        return STATUS_INSUFFICIENT_RESOURCES;
    fill_ca(&dev, a->ifc->version >= 2, block);
    block->Size = size;
    fill_port(1, &port, (IB_PORT_ATTR *)(block + 1));
    NTSTATUS status = copy_out(a, block, size, STATUS_BUFFER_OVERFLOW, info);
    free(block);
    return status;
}

static NTSTATUS run_query_port(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct query_op *a = (struct query_op *)op;
    struct ibv_port_attr port;
    int rc = wf_hca_query_port(wf_iba_device.hca, a->port, &port);
    if (rc)
        return wf_iba_status(rc);
    ULONG size = port_size(&port);
    IB_PORT_ATTR *block = calloc(1, size);
    if (!block)
        return STATUS_INSUFFICIENT_RESOURCES;
    fill_port(a->port, &port, block);
    NTSTATUS status = copy_out(a, block, size, STATUS_MORE_ENTRIES, info);
    free(block);
    return status;
}

static NTSTATUS query(struct query_op *a, NTSTATUS (*run)(struct wf_iba_op *, ULONG_PTR *),
                      PIRP irp)
{
    if (!a->ifc || a->port < 1 || a->port > WF_IBA_PORTS)
        return wf_iba_refuse(irp, STATUS_INVALID_PARAMETER, __func__);
    if (a->room < sizeof(ULONG))
        return wf_iba_refuse(irp, STATUS_BUFFER_TOO_SMALL, __func__);
    if (!a->out)
        return wf_iba_refuse(irp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_start(&a->op, sizeof(*a), run, NULL, NULL, irp);
}

NTSTATUS wf_iba_query_ca(VOID *const Context, const SIZE_T AttrSize, IB_CA_ATTR *const pAttr,
                         IRP *const pIrp)
{
    struct query_op op = {.ifc = wf_iba_ifc_of(Context), .port = 1, .room = AttrSize, .out = pAttr};
    return query(&op, run_query_ca, pIrp);
}

NTSTATUS wf_iba_query_port(VOID *const Context, const UCHAR PortNumber, const SIZE_T AttrSize,
                           IB_PORT_ATTR *const pAttr, IRP *const pIrp)
{
    struct query_op op = {
        .ifc = wf_iba_ifc_of(Context), .port = PortNumber, .room = AttrSize, .out = pAttr};
    return query(&op, run_query_port, pIrp);
}
