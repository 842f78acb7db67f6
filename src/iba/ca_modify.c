// SPDX-License-Identifier: BSD-2-Clause
// What clients may change of the device: they share it, so changes are kept in the device.
#include "iba/iba.h"

#include <errno.h>
#include <string.h>

// Bits that announce an agent on the port; each belongs to the CA that set it.
#define AGENT_CAPS                                                                                 \
    (IB_PORT_CAP_IS_SM | IB_PORT_CAP_CM_SUP | IB_PORT_CAP_SNMP_TUNNEL_SUP |                        \
     IB_PORT_CAP_DEVICE_MGMT_SUP | IB_PORT_CAP_VENDOR_CLASS_SUP | IB_PORT_CAP_BOOT_MGMT_SUP)

// ---- ModifyCa -----------------------------------------------------------------------------------

struct modify_ca_op {
    struct wf_iba_op op;
    ULONG flags;
    IB_MODIFY_CA m;
};

static NTSTATUS run_modify_ca(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct modify_ca_op *a = (struct modify_ca_op *)op;
    struct wf_iba_ca *ca = CONTAINING_RECORD(op->target, struct wf_iba_ca, obj);
    KIRQL irql = wf_iba_lock();
    if (a->flags & IB_MODIFY_CA_SYS_IMAGE_GUID)
        wf_iba_device.system_image_guid = a->m.SystemImageGuid;
    if (a->flags & IB_MODIFY_CA_NODE_DESC)
        memcpy(wf_iba_device.node_desc, a->m.NodeDesc, sizeof(a->m.NodeDesc));
    wf_iba_unlock(irql);
    if (a->flags & IB_MODIFY_CA_SYS_IMAGE_GUID)
        wf_iba_raise(&ca->port[0], IbAeSysimgGuidTrap);
    return STATUS_SUCCESS;
}

NTSTATUS wf_iba_modify_ca(IB_CA *const pCa, const ULONG Flags, const IB_MODIFY_CA *const pModify,
                          IRP *const pIrp)
{
    struct modify_ca_op op = {.flags = Flags};
    struct wf_iba_ca *ca = wf_iba_ca_of(pCa);
    if (!ca || !pModify || Flags & ~(ULONG)(IB_MODIFY_CA_SYS_IMAGE_GUID | IB_MODIFY_CA_NODE_DESC))
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    op.m = *pModify;
    return wf_iba_start(&op.op, sizeof(op), run_modify_ca, &ca->obj, NULL, pIrp);
}

// ---- ModifyPort ---------------------------------------------------------------------------------

struct modify_port_op {
    struct wf_iba_op op;
    ULONG flags;
    IB_MODIFY_PORT m;
};

// A bit may be set when it is free or the CA's own, and cleared likewise.
static bool conflicts(struct wf_iba_ca *ca, ULONG bits)
{
    for (int i = 0; i < 32; i++) {
        struct wf_iba_ca *owner = wf_iba_device.cap_owner[i];
        if (bits & 1u << i && owner && owner != ca)
            return true;
    }
    return false;
}

static NTSTATUS change_caps(struct wf_iba_ca *ca, ULONG set, ULONG clear)
{
    struct wf_iba_device *d = &wf_iba_device;
    NTSTATUS status = STATUS_SUCCESS;
    KIRQL irql = wf_iba_lock();
    if (conflicts(ca, set | clear)) {
        status = STATUS_FILE_LOCK_CONFLICT;
    } else {
        for (int i = 0; i < 32; i++)
            if ((set | clear) & 1u << i)
                d->cap_owner[i] = set & 1u << i ? ca : NULL;
    }
    wf_iba_unlock(irql);
    return status;
}

void wf_iba_release_port_caps(struct wf_iba_ca *ca)
{
    KIRQL irql = wf_iba_lock();
    for (int i = 0; i < 32; i++)
        if (wf_iba_device.cap_owner[i] == ca)
            wf_iba_device.cap_owner[i] = NULL;
    wf_iba_unlock(irql);
}

static NTSTATUS run_modify_port(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct modify_port_op *a = (struct modify_port_op *)op;
    struct wf_iba_ca *ca = CONTAINING_RECORD(op->target, struct wf_iba_ca, obj);
    struct ibv_port_attr attr;
    NTSTATUS status = change_caps(ca, a->m.SetCapabilites, a->m.ClearCapabilites);
    if (!NT_SUCCESS(status)) {
        wf_refuse(EBUSY, WF_R_IBA_CAP_OWNED, "set 0x%x, clear 0x%x", a->m.SetCapabilites,
                  a->m.ClearCapabilites);
        return status;
    }
    if (a->flags & IB_MOD_PORT_INIT_REPLY)
        wf_iba_device.init_type_reply = a->m.InitTypeReply;
    if (a->flags & IB_MOD_PORT_RESET_QKEY_VIOLATIONS &&
        wf_hca_query_port(wf_iba_device.hca, 1, &attr) == 0)
        wf_iba_device.qkey_violations_base = attr.qkey_viol_cntr;
    if (a->m.SetCapabilites | a->m.ClearCapabilites)
        wf_iba_raise(&ca->port[0], IbAePortTrap);
    return STATUS_SUCCESS;
}

NTSTATUS wf_iba_modify_port(IB_CA *const pCa, const UCHAR PortNumber, const ULONG Flags,
                            const IB_MODIFY_PORT *const pModify, IRP *const pIrp)
{
    const ULONG known =
        IB_MOD_PORT_SHUTDOWN | IB_MOD_PORT_INIT_REPLY | IB_MOD_PORT_RESET_QKEY_VIOLATIONS;
    struct modify_port_op op = {.flags = Flags};
    struct wf_iba_ca *ca = wf_iba_ca_of(pCa);
    if (!ca || !pModify || PortNumber < 1 || PortNumber > WF_IBA_PORTS || Flags & ~known)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    ULONG set = pModify->SetCapabilites, clear = pModify->ClearCapabilites;
    if ((set | clear) & ~(ULONG)AGENT_CAPS || set & clear)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    if (Flags & IB_MOD_PORT_SHUTDOWN) {
        wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ModifyPort: shutdown of port %u", PortNumber);
        return wf_iba_refuse(pIrp, STATUS_NOT_SUPPORTED, __func__);
    }
    op.m = *pModify;
    return wf_iba_start(&op.op, sizeof(op), run_modify_port, &ca->obj, NULL, pIrp);
}
