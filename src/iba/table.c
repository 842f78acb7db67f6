// SPDX-License-Identifier: BSD-2-Clause
// The tables, and the two ways to get one.
#define INITGUID
#include "iba/iba.h"

#include <endian.h>
#include <stdio.h>

static const IB_VERBS_INTERFACE_STANDARD verbs1 = {
    .OpenCa = wf_iba_open_ca,
    .CloseCa = wf_iba_close_ca,
    .GetCaFatalEvent = wf_iba_get_ca_fatal_event,
    .GetCaPortEvent = wf_iba_get_ca_port_event,
    .QueryCa = wf_iba_query_ca,
    .QueryPort = wf_iba_query_port,
    .ModifyCa = wf_iba_modify_ca,
    .ModifyPort = wf_iba_modify_port,
    .CreateCq = wf_iba_create_cq,
    .DestroyCq = wf_iba_destroy_cq,
    .ResizeCq = wf_iba_resize_cq,
    .RearmCq = wf_iba_rearm_cq,
    .RearmNCq = wf_iba_rearm_n_cq,
    .PollCq = wf_iba_poll_cq,
    .PeekCq = wf_iba_peek_cq,
    .GetCqCompEvent = wf_iba_get_cq_comp_event,
    .GetCqAsyncEvent = wf_iba_get_cq_async_event,
    .CreatePd = wf_iba_create_pd,
    .DestroyPd = wf_iba_destroy_pd,
    .CreateAh = wf_iba_create_ah,
    .DestroyAh = wf_iba_destroy_ah,
    .ModifyAh = wf_iba_modify_ah,
    .QueryAh = wf_iba_query_ah,
    .CreateQp = wf_iba_create_qp,
    .CreateSpecialQp = wf_iba_create_special_qp,
    .DestroyQp = wf_iba_destroy_qp,
    .ModifyQp = wf_iba_modify_qp,
    .QueryQp = wf_iba_query_qp,
    .PostSend = wf_iba_post_send,
    .PostRecv = wf_iba_post_recv,
    .GetQpAsyncEvent = wf_iba_get_qp_async_event,
    .RegMdl = wf_iba_reg_mdl,
    .RegScatterGather = wf_iba_reg_sg,
    .GetDmaMr = wf_iba_get_dma_mr,
    .DeregMr = wf_iba_dereg_mr,
    .CreateMw = wf_iba_create_mw,
    .DestroyMw = wf_iba_destroy_mw,
    .BindMw = wf_iba_bind_mw,
};

static VOID reference(PVOID Context)
{
    if (wf_iba_ifc_of(Context))
        InterlockedIncrement(&wf_iba_device.refs);
}

static VOID dereference(PVOID Context)
{
    if (wf_iba_ifc_of(Context))
        wf_iba_device_put();
}

static void fill1(IB_VERBS_INTERFACE_STANDARD *out, USHORT size, const struct wf_iba_ifc *ifc)
{
    struct ibv_device_attr attr;
    wf_hca_query_device(wf_iba_device.hca, &attr);
    *out = verbs1;
    out->Size = size;
    out->Version = ifc->version;
    out->Context = (PVOID)ifc;
    out->InterfaceReference = reference;
    out->InterfaceDereference = dereference;
    out->NodeGuid = attr.node_guid;
    out->VendorId = attr.vendor_id;
    out->DeviceId = (UINT16)attr.vendor_part_id;
    out->DeviceRev = (UINT16)attr.hw_ver;
    out->FwVersion = (UINT32)wf_iba_fw_version(&attr);
    snprintf(out->UvpName, sizeof(out->UvpName), "weft");
}

static void fill2(WEFT_IB_VERBS_INTERFACE_2 *out, const struct wf_iba_ifc *ifc)
{
    fill1(&out->v1, sizeof(*out), ifc);
    out->CreateSrq = wf_iba_create_srq;
    out->DestroySrq = wf_iba_destroy_srq;
    out->ModifySrq = wf_iba_modify_srq;
    out->QuerySrq = wf_iba_query_srq;
    out->PostSrqRecv = wf_iba_post_srq_recv;
    out->GetSrqAsyncEvent = wf_iba_get_srq_async_event;
    out->AttachMcast = wf_iba_attach_mcast;
    out->DetachMcast = wf_iba_detach_mcast;
}

static NTSTATUS query(const GUID *type, USHORT version, bool literal, PINTERFACE out)
{
    const struct wf_iba_ifc *ifc = wf_iba_ifc(version, literal);
    if (!type || !out)
        return STATUS_INVALID_PARAMETER;
    if (!IsEqualGUID(type, &GUID_IB_VERBS_INTERFACE) || !ifc)
        return STATUS_NOT_SUPPORTED;
    NTSTATUS status = wf_iba_device_get();
    if (!NT_SUCCESS(status))
        return status;
    if (version == 1)
        fill1((IB_VERBS_INTERFACE_STANDARD *)out, sizeof(IB_VERBS_INTERFACE_STANDARD), ifc);
    else
        fill2((WEFT_IB_VERBS_INTERFACE_2 *)out, ifc);
    return STATUS_SUCCESS;
}

NTSTATUS weft_iba_query_interface(const GUID *InterfaceType, USHORT Version, PINTERFACE pInterface)
{
    return query(InterfaceType, Version, false, pInterface);
}

NTSTATUS weft_iba_query_interface_literal(const GUID *InterfaceType, USHORT Version,
                                          PINTERFACE pInterface)
{
    return query(InterfaceType, Version, true, pInterface);
}

// ---- the PnP way --------------------------------------------------------------------------------

static NTSTATUS pnp(PDEVICE_OBJECT device, PIRP irp)
{
    PIO_STACK_LOCATION here = IoGetCurrentIrpStackLocation(irp);
    NTSTATUS status = STATUS_NOT_SUPPORTED;
    USHORT version = here->Parameters.QueryInterface.Version;
    SIZE_T needs =
        version == 1 ? sizeof(IB_VERBS_INTERFACE_STANDARD) : sizeof(WEFT_IB_VERBS_INTERFACE_2);
    if (here->MinorFunction == IRP_MN_QUERY_INTERFACE) {
        status = STATUS_INVALID_PARAMETER;
        if (here->Parameters.QueryInterface.Size >= needs)
            status = query(here->Parameters.QueryInterface.InterfaceType, version, false,
                           here->Parameters.QueryInterface.Interface);
    }
    return wf_iba_complete(irp, status, 0);
}

PDEVICE_OBJECT weft_iba_device_object(VOID)
{
    static DRIVER_OBJECT driver = {.MajorFunction = {[IRP_MJ_PNP] = pnp}};
    static DEVICE_OBJECT device = {.DriverObject = &driver, .StackSize = 1};
    return &device;
}
