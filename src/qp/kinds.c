// SPDX-License-Identifier: BSD-2-Clause
#include "qp/kinds.h"

#define RC  (1u << IBV_QPT_RC)
#define UC  (1u << IBV_QPT_UC)
#define UD  (1u << IBV_QPT_UD)
#define XRC (1u << IBV_QPT_XRC_SEND)

// Index 13 (IBV_WR_DRIVER1) stays empty: wf_wr_info() gives it for numbers out of range.
const struct wf_wr_info wf_wr_table[WF_WR_COUNT] = {
    [IBV_WR_RDMA_WRITE] = {WF_WR_WRITE, IBV_WC_RDMA_WRITE, 0x08, WF_OP_WRITE_ONLY,
                           WF_OP_WRITE_FIRST, WF_OP_WRITE_MIDDLE, WF_OP_WRITE_LAST, RC | UC | XRC},
    [IBV_WR_RDMA_WRITE_WITH_IMM] = {WF_WR_WRITE, IBV_WC_RDMA_WRITE, 0x09, WF_OP_WRITE_ONLY_IMM,
                                    WF_OP_WRITE_FIRST, WF_OP_WRITE_MIDDLE, WF_OP_WRITE_LAST_IMM,
                                    RC | UC | XRC},
    [IBV_WR_SEND] = {WF_WR_SEND, IBV_WC_SEND, 0x0a, WF_OP_SEND_ONLY, WF_OP_SEND_FIRST,
                     WF_OP_SEND_MIDDLE, WF_OP_SEND_LAST, RC | UC | UD | XRC},
    [IBV_WR_SEND_WITH_IMM] = {WF_WR_SEND, IBV_WC_SEND, 0x0b, WF_OP_SEND_ONLY_IMM, WF_OP_SEND_FIRST,
                              WF_OP_SEND_MIDDLE, WF_OP_SEND_LAST_IMM, RC | UC | UD | XRC},
    [IBV_WR_SEND_WITH_INV] = {WF_WR_SEND, IBV_WC_SEND, 0x0a, WF_OP_SEND_ONLY_INV, WF_OP_SEND_FIRST,
                              WF_OP_SEND_MIDDLE, WF_OP_SEND_LAST_INV, RC | XRC},
    [IBV_WR_RDMA_READ] = {WF_WR_READ, IBV_WC_RDMA_READ, 0x10, WF_OP_READ_REQ, 0, 0, 0, RC | XRC},
    [IBV_WR_ATOMIC_CMP_AND_SWP] = {WF_WR_SINGLE, IBV_WC_COMP_SWAP, 0x11, WF_OP_CMP_SWAP, 0, 0, 0,
                                   RC | XRC},
    [IBV_WR_ATOMIC_FETCH_AND_ADD] = {WF_WR_SINGLE, IBV_WC_FETCH_ADD, 0x12, WF_OP_FETCH_ADD, 0, 0, 0,
                                     RC | XRC},
    [IBV_WR_LOCAL_INV] = {WF_WR_LOCAL, IBV_WC_LOCAL_INV, 0x00, 0, 0, 0, 0, RC | UC | XRC},
    [IBV_WR_BIND_MW] = {WF_WR_LOCAL, IBV_WC_BIND_MW, 0x18, 0, 0, 0, 0, RC | UC | XRC},
    [WF_WR_FLUSH_OPCODE] = {WF_WR_SINGLE, (enum ibv_wc_opcode)8 /* IBV_WC_FLUSH */, 0x00,
                            WF_OP_FLUSH, 0, 0, 0, RC},
    [IBV_WR_ATOMIC_WRITE] = {WF_WR_SINGLE, IBV_WC_ATOMIC_WRITE, 0x00, WF_OP_ATOMIC_WRITE, 0, 0, 0,
                             RC},
};

uint8_t wf_wr_packet_opcode(enum ibv_qp_type type, uint8_t wr_opcode, bool first, bool last)
{
    const struct wf_wr_info *i = wf_wr_info(wr_opcode);
    uint8_t op = first && last ? i->only : first ? i->first : last ? i->last : i->middle;
    switch ((int)type) {
    case IBV_QPT_UC:
        return WF_OPCODE(WF_SVC_UC, op);
    case IBV_QPT_UD:
        return WF_OPCODE(WF_SVC_UD, op);
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return WF_OPCODE(WF_SVC_XRC, op);
    default:
        return WF_OPCODE(WF_SVC_RC, op);
    }
}
