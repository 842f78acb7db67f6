// SPDX-License-Identifier: BSD-2-Clause
#include "wire/frame.h"

#include "wire/codec.h"
#include "wire/grh.h"
#include "wire/icrc.h"

#include <string.h>

#define ETH_LEN  14u
#define IPV4_LEN 20u
#define IPV6_LEN 40u
#define UDP_LEN  8u
#define ECN_CE   3

// A made-up address that tells hosts apart: locally administered, from the end of the GID.
static void put_mac(struct wf_writer *w, const union ibv_gid *gid)
{
    wf_put_u8(w, wf_gid_is_multicast(gid) ? 0x03 : 0x02);
    wf_put_u8(w, 0);
    wf_put_bytes(w, gid->raw + 12, 4);
}

static uint32_t add16(uint32_t sum, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i + 1 < n; i += 2)
        sum += (uint32_t)(p[i] << 8 | p[i + 1]);
    if (n & 1)
        sum += (uint32_t)(p[n - 1] << 8);
    return sum;
}

static uint16_t fold(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void store16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static uint8_t traffic_class(const struct wf_frame *f)
{
    return f->pkt->flags & WF_PKT_CE ? f->tclass | ECN_CE : f->tclass;
}

static void put_ipv4(struct wf_writer *w, const struct wf_frame *f, size_t udp)
{
    uint8_t *start = w->p;
    wf_put_u8(w, 0x45);
    wf_put_u8(w, traffic_class(f));
    wf_put_u16(w, (uint16_t)(IPV4_LEN + udp));
    wf_put_u16(w, 0);
    wf_put_u16(w, 0x4000); // do not fragment
    wf_put_u8(w, f->hop_limit ? f->hop_limit : 64);
    wf_put_u8(w, 17);
    wf_put_u16(w, 0);
    wf_put_bytes(w, f->sgid->raw + 12, 4);
    wf_put_bytes(w, f->dgid->raw + 12, 4);
    store16(start + 10, fold(add16(0, start, IPV4_LEN)));
}

static void put_ipv6(struct wf_writer *w, const struct wf_frame *f, size_t udp)
{
    wf_put_u32(w, 6u << 28 | (uint32_t)traffic_class(f) << 20 | (f->flow_label & 0xfffff));
    wf_put_u16(w, (uint16_t)udp);
    wf_put_u8(w, 17);
    wf_put_u8(w, f->hop_limit ? f->hop_limit : 64);
    wf_put_bytes(w, f->sgid->raw, 16);
    wf_put_bytes(w, f->dgid->raw, 16);
}

// Optional over IPv4, required over IPv6.
static void udp_checksum(const struct wf_frame *f, uint8_t *udp, size_t len)
{
    uint32_t sum = add16(0, f->sgid->raw, 16);
    sum = add16(sum, f->dgid->raw, 16) + (uint32_t)len + 17;
    uint16_t v = fold(add16(sum, udp, len));
    store16(udp + 6, v ? v : 0xffff);
}

static void fill_scope(const struct wf_frame *f, bool v6, struct wf_icrc_scope *s)
{
    *s = (struct wf_icrc_scope){.v6 = v6, .sport = f->sport, .dport = WF_ROCE_PORT};
    memcpy(s->src, v6 ? f->sgid->raw : f->sgid->raw + 12, v6 ? 16 : 4);
    memcpy(s->dst, v6 ? f->dgid->raw : f->dgid->raw + 12, v6 ? 16 : 4);
}

size_t wf_frame_build(const struct wf_frame *f, uint8_t buf[WF_FRAME_MAX])
{
    uint8_t headers[WF_HDR_MAX];
    bool v6 = !wf_gid_is_ipv4(f->dgid);
    int n = wf_packet_encode_headers(f->pkt, headers, sizeof(headers));
    uint32_t len = f->pkt->len, pad = wf_packet_pad(len);
    if (n < 0 || len > 4096 || wf_gid_is_ipv4(f->sgid) == v6)
        return 0;
    size_t udp = UDP_LEN + (size_t)n + len + pad + WF_ICRC_LEN;
    struct wf_writer w = wf_writer_of(buf, WF_FRAME_MAX);
    put_mac(&w, f->dgid);
    put_mac(&w, f->sgid);
    wf_put_u16(&w, v6 ? 0x86dd : 0x0800);
    if (v6)
        put_ipv6(&w, f, udp);
    else
        put_ipv4(&w, f, udp);
    uint8_t *udp_start = w.p;
    wf_put_u16(&w, f->sport);
    wf_put_u16(&w, WF_ROCE_PORT);
    wf_put_u16(&w, (uint16_t)udp);
    wf_put_u16(&w, 0);
    uint8_t *bth = w.p;
    wf_put_bytes(&w, headers, (size_t)n);
    wf_put_bytes(&w, f->payload, len);
    wf_put_zero(&w, pad);
    struct iovec iov = {bth, (size_t)(w.p - bth)};
    struct wf_icrc_scope scope;
    fill_scope(f, v6, &scope);
    uint8_t icrc[WF_ICRC_LEN];
    wf_icrc_store(icrc, wf_icrc(&scope, &iov, 1) ^ (f->bad_icrc ? 0xdeadbeef : 0));
    wf_put_bytes(&w, icrc, sizeof(icrc));
    if (v6)
        udp_checksum(f, udp_start, udp);
    return wf_writer_ok(&w) ? (size_t)(w.p - buf) : 0;
}
