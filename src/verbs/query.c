// SPDX-License-Identifier: BSD-2-Clause
// What the device and its port are.
#include "verbs/face.h"
#include <string.h>

_Static_assert(sizeof(struct ibv_device_attr) == 232, "struct ibv_device_attr");
_Static_assert(sizeof(struct ibv_device_attr_ex) == 400, "struct ibv_device_attr_ex");
_Static_assert(sizeof(struct ibv_port_attr) == 52, "struct ibv_port_attr");

#define OLD_PORT_ATTR 48 // struct ibv_port_attr before port_cap_flags2

// UCX 1.13 has atomics only where IBV_ATOMIC_HCA is claimed, the weaker promise; pci_atomic_caps
// tells the rest.
static void device_attr(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
    wf_hca_query_device(wf_vhca(ctx), attr);
    if (attr->atomic_cap == IBV_ATOMIC_GLOB)
        attr->atomic_cap = IBV_ATOMIC_HCA;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
    device_attr(ctx, attr);
    return 0;
}

// Nothing is ever pinned, so every region is paged on demand; all operations work on such memory.
static void odp_caps(struct ibv_device_attr_ex *a)
{
    const uint32_t ud = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_SRQ_RECV;
    const uint32_t uc = ud | IBV_ODP_SUPPORT_WRITE;
    const uint32_t rc = uc | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC;

    a->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    a->odp_caps.per_transport_caps.rc_odp_caps = rc;
    a->odp_caps.per_transport_caps.uc_odp_caps = uc;
    a->odp_caps.per_transport_caps.ud_odp_caps = ud;
    a->xrc_odp_caps = rc;
}

// Atomics are the CPU's own instructions, so they are atomic towards the host's programs too.
static void atomic_caps(struct ibv_device_attr_ex *a)
{
    a->pci_atomic_caps.fetch_add = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
    a->pci_atomic_caps.compare_swap = IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP;
}

int wf_op_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *in,
                          struct ibv_device_attr_ex *attr, size_t size)
{
    struct ibv_device_attr_ex a = {0};

    if (in && in->comp_mask)
        return wf_verb(
            wf_refuse(EINVAL, WF_R_ARG, "ibv_query_device_ex: comp_mask 0x%x", in->comp_mask));
    if (size < sizeof(a.orig_attr))
        return wf_verb(wf_refuse(EINVAL, WF_R_ARG, "ibv_query_device_ex: %zu bytes", size));
    device_attr(ctx, &a.orig_attr);
    odp_caps(&a);
    atomic_caps(&a);
    a.completion_timestamp_mask = UINT64_MAX;
    a.hca_core_clock = 1000000; // kHz: wf_hca_clock() counts nanoseconds
    a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
    a.cq_mod_caps.max_cq_count = UINT16_MAX;
    a.cq_mod_caps.max_cq_period = UINT16_MAX;
    a.max_dm_size = WF_FACE_DM_BYTES;
    a.phys_port_cnt_ex = a.orig_attr.phys_port_cnt;
    memset(attr, 0, size);
    memcpy(attr, &a, size < sizeof(a) ? size : sizeof(a));
    return 0;
}

int wf_op_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
    uint64_t now = wf_hca_clock(wf_vhca(ctx));

    if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
        return wf_verb(wf_refuse(EINVAL, WF_R_ARG, "ibv_query_rt_values_ex: comp_mask 0x%x",
                                 values->comp_mask));
    if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
        values->raw_clock.tv_sec = (time_t)(now / 1000000000u);
        values->raw_clock.tv_nsec = (long)(now % 1000000000u);
    }
    return 0;
}

static int port_attr(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr)
{
    memset(attr, 0, sizeof(*attr));
    if (port < 1 || port > WF_FACE_PORTS)
        return wf_refuse(EINVAL, WF_R_ARG, "port %u of %d", port, WF_FACE_PORTS);
    return wf_hca_query_port(wf_vhca(ctx), port, attr);
}

int wf_op_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
    struct ibv_port_attr a;
    int rc = port_attr(ctx, port, &a);

    if (rc < 0)
        return wf_verb(rc);
    memset(attr, 0, len);
    memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));
    return 0;
}

int ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
    struct ibv_port_attr a;
    int rc = port_attr(ctx, port, &a);

    if (rc < 0)
        return wf_verb(rc);
    memcpy(attr, &a, OLD_PORT_ATTR);
    return 0;
}

int ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
    uint16_t host;
    int rc;

    if (port < 1 || port > WF_FACE_PORTS || index < 0)
        rc = wf_refuse(EINVAL, WF_R_ARG, "ibv_query_pkey: port %u, index %d", port, index);
    else
        rc = wf_hca_query_pkey(wf_vhca(ctx), port, (uint32_t)index, &host);
    if (rc < 0) {
        errno = -rc;
        return -1;
    }
    *pkey = htobe16(host);
    return 0;
}

int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
    struct ibv_port_attr attr;
    uint16_t host;

    if (port_attr(ctx, port, &attr) < 0)
        return -1;
    for (uint32_t i = 0; i < attr.pkey_tbl_len; i++)
        if (wf_hca_query_pkey(wf_vhca(ctx), port, i, &host) == 0 && host == be16toh(pkey))
            return (int)i;
    return -1;
}
