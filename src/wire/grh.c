// SPDX-License-Identifier: BSD-2-Clause
#include "wire/grh.h"

#include "base/bytes.h"

#include <errno.h>
#include <netinet/in.h>

#define IPV4_LEN 20u

static uint16_t ipv4_checksum(const uint8_t *header)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < IPV4_LEN; i += 2)
        sum += (uint32_t)header[i] << 8 | header[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void build_ipv4(uint8_t *at, const struct wf_grh *grh)
{
    struct wf_writer w = wf_writer_of(at, IPV4_LEN);
    wf_put_u8(&w, 0x45);
    wf_put_u8(&w, grh->tclass);
    wf_put_u16(&w, (uint16_t)(IPV4_LEN + grh->udp_len));
    wf_put_u32(&w, 0x4000); // Identification 0 (a socket does not show it), DF
    wf_put_u8(&w, grh->hop_limit);
    wf_put_u8(&w, IPPROTO_UDP);
    wf_put_u16(&w, 0);
    wf_put_bytes(&w, grh->sgid->raw + 12, 4);
    wf_put_bytes(&w, grh->dgid->raw + 12, 4);
    w = wf_writer_of(at + 10, 2);
    wf_put_u16(&w, ipv4_checksum(at));
}

static void build_ipv6(uint8_t *at, const struct wf_grh *grh)
{
    struct wf_writer w = wf_writer_of(at, WF_GRH_LEN);
    wf_put_u32(&w, 6u << 28 | (uint32_t)grh->tclass << 20 | (grh->flow_label & 0xfffff));
    wf_put_u16(&w, grh->udp_len);
    wf_put_u8(&w, IPPROTO_UDP);
    wf_put_u8(&w, grh->hop_limit);
    wf_put_bytes(&w, grh->sgid->raw, 16);
    wf_put_bytes(&w, grh->dgid->raw, 16);
}

void wf_grh_build(uint8_t out[WF_GRH_LEN], const struct wf_grh *grh)
{
    if (wf_gid_is_ipv4(grh->dgid)) {
        memset(out, 0, WF_GRH_LEN - IPV4_LEN);
        build_ipv4(out + WF_GRH_LEN - IPV4_LEN, grh);
    } else {
        build_ipv6(out, grh);
    }
}

static void get_mapped(struct wf_reader *r, union ibv_gid *gid)
{
    memset(gid->raw, 0, 10);
    memset(gid->raw + 10, 0xff, 2);
    wf_get_bytes(r, gid->raw + 12, 4);
}

static void parse_ipv4(struct wf_reader *r, struct wf_grh *grh, union ibv_gid *sgid,
                       union ibv_gid *dgid)
{
    wf_skip(r, 1);
    grh->tclass = wf_get_u8(r);
    grh->udp_len = (uint16_t)(wf_get_u16(r) - IPV4_LEN);
    wf_skip(r, 4);
    grh->hop_limit = wf_get_u8(r);
    wf_skip(r, 3);
    get_mapped(r, sgid);
    get_mapped(r, dgid);
}

static void parse_ipv6(struct wf_reader *r, struct wf_grh *grh, union ibv_gid *sgid,
                       union ibv_gid *dgid)
{
    uint32_t word = wf_get_u32(r);
    grh->tclass = (uint8_t)(word >> 20);
    grh->flow_label = word & 0xfffff;
    grh->udp_len = wf_get_u16(r);
    wf_skip(r, 1);
    grh->hop_limit = wf_get_u8(r);
    wf_get_bytes(r, sgid->raw, 16);
    wf_get_bytes(r, dgid->raw, 16);
}

int wf_grh_parse(const uint8_t in[WF_GRH_LEN], struct wf_grh *grh, union ibv_gid *sgid,
                 union ibv_gid *dgid)
{
    *grh = (struct wf_grh){.sgid = sgid, .dgid = dgid};
    const uint8_t *v4 = in + WF_GRH_LEN - IPV4_LEN;
    struct wf_reader r = wf_reader_of(in, WF_GRH_LEN);
    // An IPv6 header may have 0x45 at byte 20 by chance, hardly with a right checksum too.
    if (v4[0] == 0x45 && ipv4_checksum(v4) == 0) {
        wf_skip(&r, WF_GRH_LEN - IPV4_LEN);
        parse_ipv4(&r, grh, sgid, dgid);
    } else if (in[0] >> 4 == 6) {
        parse_ipv6(&r, grh, sgid, dgid);
    } else {
        return -EBADMSG;
    }
    return 0;
}
