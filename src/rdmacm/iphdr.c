// SPDX-License-Identifier: BSD-2-Clause
#include "rdmacm/iphdr.h"

#include "base/bytes.h"
#include <errno.h>

static void put_address(struct wf_writer *w, const struct sockaddr *sa)
{
    if (sa->sa_family == AF_INET6) {
        wf_put_bytes(w, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
        return;
    }
    wf_put_zero(w, 12);
    wf_put_bytes(w, &((const struct sockaddr_in *)(const void *)sa)->sin_addr, 4);
}

// sin_port and sin6_port lie in the same place.
static uint16_t port_of(const struct sockaddr *sa)
{
    return ntohs(((const struct sockaddr_in *)(const void *)sa)->sin_port);
}

int rcm_hdr_put(uint8_t out[RCM_HDR_SIZE], const struct sockaddr *src, const struct sockaddr *dst)
{
    struct wf_writer w = wf_writer_of(out, RCM_HDR_SIZE);
    if (src->sa_family != dst->sa_family)
        return -EINVAL;
    if (src->sa_family != AF_INET && src->sa_family != AF_INET6)
        return -EAFNOSUPPORT;
    wf_put_u8(&w, 0); // version 0.0
    wf_put_u8(&w, src->sa_family == AF_INET6 ? 6 << 4 : 4 << 4);
    wf_put_u16(&w, port_of(src));
    put_address(&w, src);
    put_address(&w, dst);
    return wf_writer_ok(&w) ? 0 : -EINVAL;
}

static void get_address(struct wf_reader *r, unsigned version, uint16_t port,
                        struct sockaddr_storage *out)
{
    memset(out, 0, sizeof(*out));
    if (version == 6) {
        struct sockaddr_in6 *a = (struct sockaddr_in6 *)out;
        a->sin6_family = AF_INET6;
        a->sin6_port = htons(port);
        wf_get_bytes(r, &a->sin6_addr, 16);
        return;
    }
    struct sockaddr_in *a = (struct sockaddr_in *)out;
    a->sin_family = AF_INET;
    a->sin_port = htons(port);
    wf_skip(r, 12);
    wf_get_bytes(r, &a->sin_addr, 4);
}

int rcm_hdr_get(const uint8_t in[RCM_HDR_SIZE], uint64_t service_id, struct sockaddr_storage *src,
                struct sockaddr_storage *dst)
{
    struct wf_reader r = wf_reader_of(in, RCM_HDR_SIZE);
    uint8_t version = wf_get_u8(&r);
    uint8_t ip = wf_get_u8(&r) >> 4;
    uint16_t port = wf_get_u16(&r);
    if (version != 0 || (ip != 4 && ip != 6))
        return -EBADMSG;
    get_address(&r, ip, port, src);
    get_address(&r, ip, (uint16_t)service_id, dst);
    return wf_reader_ok(&r) ? 0 : -EBADMSG;
}
