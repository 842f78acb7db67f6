// SPDX-License-Identifier: BSD-2-Clause
#include "cm/internal.h"

#define LID_PERMISSIVE 0xffff

// 4.096 us << code, taken as 1 ms << (code - 8).
uint64_t wf_cm_ms(unsigned code)
{
    return 1000000ull << (code > 8 ? code - 8 : 0);
}

// 12.7.34: the code whose time covers the way there and back and the peer's delay. Codes are
// exponents, so adding two times raises the larger code by one where they are near each other.
uint8_t wf_cm_ack_timeout(uint8_t ack_delay, uint8_t life)
{
    unsigned t = life + 1u;
    if (t >= ack_delay)
        t += ack_delay >= t - 1;
    else
        t = ack_delay + (t >= ack_delay - 1u);
    return (uint8_t)(t > 31 ? 31 : t);
}

void wf_cm_route_to_wire(const struct wf_cm_route *r, uint8_t ack_delay, struct wf_cm_path *out)
{
    memset(out, 0, sizeof(*out));
    out->local_gid = r->sgid;
    out->remote_gid = r->dgid;
    out->local_lid = r->slid;
    out->remote_lid = r->dlid;
    out->subnet_local = r->hop_limit <= 1;
    if (!r->slid && !r->dlid && r->hop_limit > 1) // routed: LIDs do not tell the way
        out->local_lid = out->remote_lid = LID_PERMISSIVE;
    out->flow_label = r->flow_label & 0xfffff;
    out->rate = r->rate;
    out->tclass = r->tclass;
    out->hop_limit = r->hop_limit;
    out->sl = r->sl;
    out->ack_timeout = wf_cm_ack_timeout(ack_delay, r->life);
}

void wf_cm_route_from_wire(const struct wf_cm_path *p, uint16_t pkey, uint8_t mtu,
                           struct wf_cm_route *out)
{
    memset(out, 0, sizeof(*out));
    out->sgid = p->remote_gid;
    out->dgid = p->local_gid;
    out->slid = p->remote_lid == LID_PERMISSIVE ? 0 : p->remote_lid;
    out->dlid = p->local_lid == LID_PERMISSIVE ? 0 : p->local_lid;
    out->pkey = pkey;
    out->mtu = mtu;
    out->flow_label = p->flow_label;
    out->tclass = p->tclass;
    out->hop_limit = p->hop_limit;
    out->sl = p->sl;
    out->rate = p->rate;
    out->life = p->ack_timeout ? (uint8_t)(p->ack_timeout - 1) : 0;
}

bool wf_cm_path_given(const struct wf_cm_path *p)
{
    static const union ibv_gid none;
    return p->local_lid || memcmp(&p->local_gid, &none, sizeof(none)) != 0;
}
