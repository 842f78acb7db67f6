// SPDX-License-Identifier: BSD-2-Clause
// The 40 bytes that stand before a datagram in a UD receive buffer, and GIDs as IP addresses.
#ifndef WF_WIRE_GRH_H
#define WF_WIRE_GRH_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define WF_GRH_LEN 40

// ::ffff:a.b.c.d stands for an IPv4 address, any other GID is an IPv6 address.
static inline bool wf_gid_is_ipv4(const union ibv_gid *gid)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static inline bool wf_gid_is_multicast(const union ibv_gid *gid)
{
    return wf_gid_is_ipv4(gid) ? gid->raw[12] >> 4 == 14 : gid->raw[0] == 0xff;
}

// What the IP header of a received packet said.
struct wf_grh {
    const union ibv_gid *sgid, *dgid;
    uint8_t tclass, hop_limit;
    uint32_t flow_label;
    uint16_t udp_len; // UDP header to ICRC inclusive
};

// Over IPv6: the IPv6 header. Over IPv4: 20 zero bytes and the IPv4 header, whose checksum is right
// (ibv_init_ah_from_wc tells the two apart by it).
void wf_grh_build(uint8_t out[WF_GRH_LEN], const struct wf_grh *grh);

// Read it back: 0, or -EBADMSG when it is neither. The GIDs are stored in sgid and dgid.
int wf_grh_parse(const uint8_t in[WF_GRH_LEN], struct wf_grh *grh, union ibv_gid *sgid,
                 union ibv_gid *dgid);

#endif
