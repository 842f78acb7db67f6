// SPDX-License-Identifier: BSD-2-Clause
// What each work request is: one table for the requester, the post checks and the completions.
#ifndef WF_QP_KINDS_H
#define WF_QP_KINDS_H

#include "wire/opcode.h"
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#define WF_WR_COUNT        16
#define WF_WR_FLUSH_OPCODE 14 // IBV_WR_FLUSH of newer headers

enum wf_wr_kind {
    WF_WR_NONE = 0,
    WF_WR_SEND,   // takes a receive at the responder
    WF_WR_WRITE,  // RDMA WRITE, with or without immediate
    WF_WR_READ,   // answered by READ responses
    WF_WR_SINGLE, // one packet, one response: atomics, atomic write, flush
    WF_WR_LOCAL,  // no packet
};

struct wf_wr_info {
    enum wf_wr_kind kind;
    enum ibv_wc_opcode wc_opcode;
    uint8_t arbel;                     // opcode byte of its completion entry
    uint8_t only, first, middle, last; // operations of its packets
    uint32_t qp_types;                 // 1 << IBV_QPT_*
};

extern const struct wf_wr_info wf_wr_table[WF_WR_COUNT];

static inline const struct wf_wr_info *wf_wr_info(uint8_t wr_opcode)
{
    return &wf_wr_table[wr_opcode < WF_WR_COUNT ? wr_opcode : WF_WR_COUNT - 3];
}

static inline bool wf_wr_is_local(uint8_t wr_opcode)
{
    return wf_wr_info(wr_opcode)->kind == WF_WR_LOCAL;
}

static inline bool wf_wr_is_answered(uint8_t wr_opcode)
{
    enum wf_wr_kind k = wf_wr_info(wr_opcode)->kind;
    return k == WF_WR_READ || k == WF_WR_SINGLE;
}

static inline bool wf_wr_one_psn(uint8_t wr_opcode)
{
    return wf_wr_info(wr_opcode)->kind == WF_WR_SINGLE;
}

uint8_t wf_wr_packet_opcode(enum ibv_qp_type type, uint8_t wr_opcode, bool first, bool last);

#endif
