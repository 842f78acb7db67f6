// SPDX-License-Identifier: BSD-2-Clause
// Where to answer a datagram, from its completion and the 40 bytes in front of its payload.
#include "verbs/face.h"
#include <endian.h>
#include <string.h>

// The 40 bytes hold an IPv6 header (or GRH, same layout) or, in the last 20, an IPv4 header.
struct seen {
    union ibv_gid src, dst;
    uint32_t flow_label;
    uint8_t traffic_class;
};

static void mapped(union ibv_gid *gid, const uint8_t *ipv4)
{
    memset(gid->raw, 0, 10);
    gid->raw[10] = gid->raw[11] = 0xff;
    memcpy(gid->raw + 12, ipv4, 4);
}

// RFC 791: the sum over a good header is all ones. Without this an IPv6 header whose bytes happen
// to look like a version 4 header would be taken for one.
static bool ipv4_header(const uint8_t *h)
{
    uint32_t sum = 0;

    if (h[0] != 0x45)
        return false;
    for (int i = 0; i < 20; i += 2)
        sum += (uint32_t)h[i] << 8 | h[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return sum == 0xffff;
}

static void look(const struct ibv_grh *grh, struct seen *out)
{
    const uint8_t *v4 = (const uint8_t *)grh + 20;
    uint32_t word = be32toh(grh->version_tclass_flow);

    if (ipv4_header(v4) || (word >> 28 != 6 && v4[0] == 0x45)) {
        mapped(&out->src, v4 + 12);
        mapped(&out->dst, v4 + 16);
        out->traffic_class = v4[1];
        out->flow_label = 0;
        return;
    }
    out->src = grh->sgid;
    out->dst = grh->dgid;
    out->traffic_class = (uint8_t)(word >> 20);
    out->flow_label = word & 0xfffff;
}

static bool is_v4(const union ibv_gid *gid)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

static bool is_group(const union ibv_gid *gid)
{
    return is_v4(gid) ? (gid->raw[12] & 0xf0) == 0xe0 : gid->raw[0] == 0xff;
}

// The local GID that the datagram was sent to; for a group, the first of the group's family.
static int local_gid(struct ibv_context *ctx, uint8_t port, const union ibv_gid *dst)
{
    static const union ibv_gid none;
    bool group = is_group(dst);
    struct wf_gid_slot slot;

    for (uint32_t i = 0; i < WF_GIDS; i++) {
        if (wf_hca_query_gid(wf_vhca(ctx), port, i, &slot) < 0 ||
            !memcmp(&slot.gid, &none, sizeof(none)))
            continue;
        if (group ? is_v4(&slot.gid) == is_v4(dst) : !memcmp(&slot.gid, dst, sizeof(*dst)))
            return (int)i;
    }
    return -1;
}

int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc,
                        struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    struct seen seen;
    int index;

    memset(attr, 0, sizeof(*attr));
    attr->dlid = wc->slid;
    attr->sl = wc->sl;
    attr->src_path_bits = wc->dlid_path_bits;
    attr->port_num = port;
    if (!(wc->wc_flags & IBV_WC_GRH))
        return 0;
    look(grh, &seen);
    index = local_gid(ctx, port, &seen.dst);
    if (index < 0) {
        errno = -wf_refuse(ENOENT, WF_R_NO_ROUTE,
                           "ibv_init_ah_from_wc: the destination is no GID of port %u", port);
        return -1;
    }
    attr->is_global = 1;
    attr->grh.dgid = seen.src;
    attr->grh.sgid_index = (uint8_t)index;
    attr->grh.hop_limit = 0xff;
    attr->grh.flow_label = seen.flow_label;
    attr->grh.traffic_class = seen.traffic_class;
    return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
                                     uint8_t port)
{
    struct ibv_ah_attr attr;

    if (ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr))
        return NULL;
    return ibv_create_ah(pd, &attr);
}

// The destination's Ethernet address: known for GIDs of this host and for link-local ones that
// carry it (RFC 4291 appendix A); neighbours are the kernel's business and not asked.
int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx, struct ibv_ah_attr *attr,
                                uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
    const uint8_t *g = attr->grh.dgid.raw;
    struct wf_gid_slot slot;
    int index = local_gid(ctx, attr->port_num, &attr->grh.dgid);

    if (vid)
        *vid = 0xffff;
    if (index >= 0 && !is_group(&attr->grh.dgid) &&
        wf_hca_query_gid(wf_vhca(ctx), attr->port_num, (uint32_t)index, &slot) == 0) {
        memcpy(eth_mac, slot.mac, ETHERNET_LL_SIZE);
        return 0;
    }
    if (g[0] == 0xfe && g[1] == 0x80 && g[11] == 0xff && g[12] == 0xfe) {
        const uint8_t mac[] = {g[8] ^ 2, g[9], g[10], g[13], g[14], g[15]};

        memcpy(eth_mac, mac, sizeof(mac));
        return 0;
    }
    return wf_verb(
        wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ibv_resolve_eth_l2_from_gid for another host"));
}
