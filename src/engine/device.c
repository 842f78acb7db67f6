// SPDX-License-Identifier: BSD-2-Clause
// What the device says of itself. Every limit is one that the engine really keeps.
#include "base/clock.h"
#include "engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VENDOR_ID    0x02eeff // locally administered: no adapter maker's
#define PART_ID      1
#define PAGE_SIZES   0xfffff000u
#define ACK_DELAY    15
#define DEFAULT_PKEY 0xffff

void wf_hca_query_device(struct wf_hca *h, struct ibv_device_attr *a)
{
    memset(a, 0, sizeof(*a));
    snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", WEFT_VERSION);
    a->node_guid = htobe64(wf_hca_node_guid(h));
    a->sys_image_guid = a->node_guid;
    a->max_mr_size = UINT64_MAX;
    a->page_size_cap = PAGE_SIZES;
    a->vendor_id = VENDOR_ID;
    a->vendor_part_id = PART_ID;
    a->hw_ver = 1;
    a->max_qp = WF_LIMIT_QP;
    a->max_qp_wr = WF_MAX_WR;
    a->device_cap_flags =
        IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE |
        IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_BAD_PKEY_CNTR |
        IBV_DEVICE_BAD_QKEY_CNTR | IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
        IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_XRC | IBV_DEVICE_UD_AV_PORT_ENFORCE;
    a->max_sge = WF_MAX_SGE;
    a->max_sge_rd = WF_MAX_SGE;
    a->max_cq = WF_LIMIT_CQ;
    a->max_cqe = WF_LIMIT_CQE;
    a->max_mr = WF_LIMIT_MR;
    a->max_pd = WF_LIMIT_PD;
    a->max_qp_rd_atom = WF_LIMIT_RD_ATOM;
    a->max_res_rd_atom = WF_LIMIT_RD_ATOM * WF_LIMIT_QP;
    a->max_qp_init_rd_atom = WF_LIMIT_RD_ATOM;
    a->atomic_cap = IBV_ATOMIC_GLOB;
    a->max_mw = WF_LIMIT_MR;
    a->max_mcast_grp = WF_LIMIT_MCAST;
    a->max_mcast_qp_attach = WF_LIMIT_MCAST;
    a->max_total_mcast_qp_attach = WF_LIMIT_MCAST;
    a->max_ah = WF_LIMIT_AH;
    a->max_srq = WF_LIMIT_SRQ;
    a->max_srq_wr = WF_LIMIT_SRQ_WR;
    a->max_srq_sge = WF_MAX_SGE;
    a->max_pkeys = WF_PKEYS;
    a->local_ca_ack_delay = ACK_DELAY;
    a->phys_port_cnt = WF_PORTS;
}

int wf_pkeys_parse(const char *text, uint16_t pkeys[WF_PKEYS])
{
    unsigned n = 0;
    memset(pkeys, 0, sizeof(*pkeys) * WF_PKEYS);
    pkeys[0] = DEFAULT_PKEY;
    while (text && *text) {
        char *end;
        unsigned long v = strtoul(text, &end, 16);
        if (end == text || !(v & 0x7fff) || v > 0xffff || n == WF_PKEYS || (*end && *end != ','))
            return wf_refuse(EINVAL, WF_R_ARG, "WEFT_PKEYS at \"%s\": hexadecimal P_Keys by commas",
                             text);
        pkeys[n++] = (uint16_t)v;
        text = *end ? end + 1 : end;
    }
    return 0;
}

static int check_port(uint8_t port)
{
    if (port >= 1 && port <= WF_PORTS)
        return 0;
    return wf_refuse(EINVAL, WF_R_ARG, "port %u; the device has %d", port, WF_PORTS);
}

int wf_hca_query_port(struct wf_hca *h, uint8_t port, struct ibv_port_attr *a)
{
    int err = check_port(port);
    if (err)
        return err;
    memset(a, 0, sizeof(*a));
    wf_enter(h);
    bool up = h->gids.port_active;
    a->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    a->phys_state = up ? 5 : 3; // LinkUp, Disabled
    a->max_mtu = IBV_MTU_4096;
    a->active_mtu = h->gids.active_mtu ? (enum ibv_mtu)h->gids.active_mtu : IBV_MTU_1024;
    a->bad_pkey_cntr = (uint32_t)h->pkey_violations;
    a->qkey_viol_cntr = (uint32_t)h->qkey_violations;
    wf_exit(h);
    a->gid_tbl_len = WF_GIDS;
    a->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
    a->max_msg_sz = WF_LIMIT_MSG;
    a->pkey_tbl_len = WF_PKEYS;
    a->max_vl_num = 1;
    a->active_width = 2;  // 4x
    a->active_speed = 32; // EDR
    a->link_layer = IBV_LINK_LAYER_ETHERNET;
    a->flags = IBV_QPF_GRH_REQUIRED;
    return 0;
}

int wf_hca_query_gid(struct wf_hca *h, uint8_t port, uint32_t index, struct wf_gid_slot *out)
{
    int err = check_port(port);
    if (err)
        return err;
    if (index >= WF_GIDS)
        return wf_refuse(EINVAL, WF_R_ARG, "GID index %u of %d", index, WF_GIDS);
    wf_enter(h);
    *out = h->gids.gids[index];
    wf_exit(h);
    return 0;
}

int wf_hca_query_pkey(struct wf_hca *h, uint8_t port, uint32_t index, uint16_t *pkey)
{
    int err = check_port(port);
    if (err)
        return err;
    if (index >= WF_PKEYS)
        return wf_refuse(EINVAL, WF_R_ARG, "P_Key index %u of %d", index, WF_PKEYS);
    *pkey = h->pkeys[index];
    return 0;
}

uint64_t wf_hca_node_guid(struct wf_hca *h)
{
    return h->node_guid;
}

uint64_t wf_hca_clock(struct wf_hca *h)
{
    return h->clock ? h->clock(h->clock_arg) : wf_clock_ns();
}
