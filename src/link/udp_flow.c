// SPDX-License-Identifier: BSD-2-Clause
// A socket does not show a packet's IPv4 Identification, so the ICRC check accepts any
// (wire/icrc.h) and is 15 bits strong. Senders have habits: ours and idle ones use 0 or the index
// in a batch, the kernel's rxe counts. Expecting the right value saves the search, and holding a
// sender with small values to them brings back 10 bits.
#include "link/udp_internal.h"

#define SMALL_ID   64 // segments of one UDP_SEGMENT send
#define HABIT      32
#define ODD_IN_ROW 8

struct wf_udp_flow *wf_udp_flow_find(struct wf_udp_flow table[WF_UDP_FLOWS],
                                     const struct wf_icrc_scope *scope)
{
    uint64_t a = 0, b = 0;
    memcpy(&a, scope->src, 8);
    memcpy(&b, scope->src + 8, 8);
    uint64_t key = (a * 0x9e3779b97f4a7c15u ^ b ^ scope->sport) * 0xd6e8feb86659fd93u | 1;
    struct wf_udp_flow *flow = &table[key >> 56];
    if (flow->key != key)
        *flow = (struct wf_udp_flow){.key = key};
    return flow;
}

uint16_t wf_udp_flow_expect(const struct wf_udp_flow *flow)
{
    return (uint16_t)(flow->last_id + flow->step);
}

bool wf_udp_flow_accept(struct wf_udp_flow *flow, const struct wf_icrc_seen *seen)
{
    if (seen->df && seen->id < SMALL_ID) {
        flow->small += flow->small < HABIT;
        flow->odd = 0;
    } else if (flow->small == HABIT && ++flow->odd <= ODD_IN_ROW) {
        return false;
    } else {
        flow->small = flow->odd = 0;
    }
    flow->step = seen->id != flow->last_id;
    flow->last_id = seen->id;
    return true;
}
