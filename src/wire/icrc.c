// SPDX-License-Identifier: BSD-2-Clause
#include "wire/icrc.h"

#include "base/bytes.h"
#include "wire/crc32.h"
#include "wire/headers.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>

#define IP_DF         0x4000
#define UDP_LEN       8u
#define IPV4_LEN      20u
#define IPV6_LEN      40u
#define PREFIX_MAX    (8 + IPV6_LEN + UDP_LEN + WF_BTH_LEN)
#define AFTER_IP_WORD 12u // bytes of the IPv4 header behind Identification, flags and offset

// Fields that routers may change count as all ones.
static void put_ipv4(struct wf_writer *w, const struct wf_icrc_scope *s, size_t udp_len)
{
    wf_put_u16(w, 0x45ff);
    wf_put_u16(w, (uint16_t)(IPV4_LEN + udp_len));
    wf_put_u16(w, s->id);
    wf_put_u16(w, IP_DF);
    wf_put_u8(w, 0xff);
    wf_put_u8(w, IPPROTO_UDP);
    wf_put_u16(w, 0xffff);
    wf_put_bytes(w, s->src, 4);
    wf_put_bytes(w, s->dst, 4);
}

static void put_ipv6(struct wf_writer *w, const struct wf_icrc_scope *s, size_t udp_len)
{
    wf_put_u32(w, 0x6fffffff);
    wf_put_u16(w, (uint16_t)udp_len);
    wf_put_u8(w, IPPROTO_UDP);
    wf_put_u8(w, 0xff);
    wf_put_bytes(w, s->src, 16);
    wf_put_bytes(w, s->dst, 16);
}

// CRC over all that precedes the extension headers; `len` counts from BTH to pad.
static uint32_t crc_of_prefix(const struct wf_icrc_scope *s, const uint8_t *bth, size_t len)
{
    uint8_t buf[PREFIX_MAX];
    struct wf_writer w = wf_writer_of(buf, sizeof(buf));
    size_t udp_len = UDP_LEN + len + WF_ICRC_LEN;
    wf_put_u64(&w, UINT64_MAX); // in place of the LRH
    if (s->v6)
        put_ipv6(&w, s, udp_len);
    else
        put_ipv4(&w, s, udp_len);
    wf_put_u16(&w, s->sport);
    wf_put_u16(&w, s->dport);
    wf_put_u16(&w, (uint16_t)udp_len);
    wf_put_u16(&w, 0xffff);
    wf_put_bytes(&w, bth, 4);
    wf_put_u8(&w, 0xff);
    wf_put_bytes(&w, bth + 5, WF_BTH_LEN - 5);
    return wf_crc32(0, buf, (size_t)(w.p - buf));
}

uint32_t wf_icrc(const struct wf_icrc_scope *scope, const struct iovec *iov, int niov)
{
    size_t len = 0;
    for (int i = 0; i < niov; i++)
        len += iov[i].iov_len;
    const uint8_t *bth = iov[0].iov_base;
    uint32_t crc = crc_of_prefix(scope, bth, len);
    if (iov[0].iov_len > WF_BTH_LEN)
        crc = wf_crc32(crc, bth + WF_BTH_LEN, iov[0].iov_len - WF_BTH_LEN);
    for (int i = 1; i < niov; i++)
        if (iov[i].iov_len)
            crc = wf_crc32(crc, iov[i].iov_base, iov[i].iov_len);
    return crc;
}

// Polynomials modulo that of the CRC, reflected: bit 31 is the coefficient of x^0.
static uint32_t mul(uint32_t a, uint32_t b)
{
    uint32_t r = 0;
    for (int i = 0; i < 32; i++) {
        r ^= a & -(b >> 31);
        b <<= 1;
        a = a >> 1 ^ (WF_CRC32_POLY & -(a & 1));
    }
    return r;
}

// x^(-32 n)
static uint32_t inverse_of_words(size_t n)
{
    uint32_t base = 1u << 31, r = 1u << 31;
    for (int i = 0; i < 32; i++) // division by x; the polynomial's x^0 coefficient is one
        base = base >> 31 ? (base ^ WF_CRC32_POLY) << 1 | 1 : base << 1;
    for (; n; n >>= 1) {
        if (n & 1)
            r = mul(r, base);
        base = mul(base, base);
    }
    return r;
}

// The same from a cache by length; zero is no power of x and marks an empty entry.
static uint32_t cached_inverse(size_t words)
{
    static _Atomic uint32_t cache[(UINT16_MAX + 1) / 4 + 16];
    uint32_t v = atomic_load_explicit(&cache[words], memory_order_relaxed);
    if (!v) {
        v = inverse_of_words(words);
        atomic_store_explicit(&cache[words], v, memory_order_relaxed);
    }
    return v;
}

// A change of the IPv4 word "Identification, flags, offset" by d changes the CRC by d x^32 x^(bits
// behind it). Divide that out: what remains is d, and it must be one that a sender could choose.
static int explain_by_id(const struct wf_icrc_scope *s, uint32_t diff, size_t len,
                         struct wf_icrc_seen *seen)
{
    size_t behind = AFTER_IP_WORD + UDP_LEN + len;
    uint32_t d = mul(diff, cached_inverse(behind / 4 + 1));
    uint32_t flags = d >> 16; // bytes of the word, first byte lowest
    const uint32_t df = IP_DF >> 8;
    if (flags != 0 && flags != df)
        return -EBADMSG;
    seen->id = s->id ^ (uint16_t)((d & 0xff) << 8 | (d >> 8 & 0xff));
    seen->df = flags == 0;
    return 0;
}

int wf_icrc_check(const struct wf_icrc_scope *scope, const void *bth, size_t len,
                  struct wf_icrc_seen *seen)
{
    if (len < WF_BTH_LEN + WF_ICRC_LEN || len % 4 || len > UINT16_MAX - IPV4_LEN - UDP_LEN)
        return -EBADMSG;
    len -= WF_ICRC_LEN;
    const uint8_t *at = (const uint8_t *)bth + len;
    uint32_t got =
        (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    struct iovec iov = {(void *)(uintptr_t)bth, len};
    uint32_t diff = got ^ wf_icrc(scope, &iov, 1);
    *seen = (struct wf_icrc_seen){.id = scope->id, .df = true};
    if (diff == 0)
        return 0;
    return scope->v6 ? -EBADMSG : explain_by_id(scope, diff, len, seen);
}
