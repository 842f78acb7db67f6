// SPDX-License-Identifier: BSD-2-Clause
// A packet as the Ethernet frame that RoCEv2 would carry it in, whatever way it really went: for
// captures.
#ifndef WF_WIRE_FRAME_H
#define WF_WIRE_FRAME_H

#include "wire/packet.h"
#include <stddef.h>

#define WF_FRAME_MAX (14u + 40u + 8u + 64u + 4096u + 4u + 4u)

struct wf_frame {
    const struct wf_pkt *pkt; // headers; payload only by its length
    const union ibv_gid *sgid, *dgid;
    const void *payload; // pkt->len bytes, at most 4096
    uint16_t sport;
    uint8_t tclass, hop_limit;
    uint32_t flow_label;
    bool bad_icrc;
};

// The frame's length, or 0 when it cannot be one: an opcode that is not assigned, or GIDs of two
// address families.
size_t wf_frame_build(const struct wf_frame *f, uint8_t buf[WF_FRAME_MAX]);

#endif
