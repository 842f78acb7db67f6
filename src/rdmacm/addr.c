// SPDX-License-Identifier: BSD-2-Clause
// Socket addresses, the GIDs that stand for them, and the way to them.
#include "rdmacm/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <unistd.h>

// RoCEv2 headers at their longest: IPv6, UDP, BTH, XRCETH, AtomicETH, ICRC.
#define ROCE_OVERHEAD (40 + 8 + 12 + 4 + 28 + 4)

static const struct sockaddr_in *v4(const void *sa)
{
    return sa;
}

static const struct sockaddr_in6 *v6(const void *sa)
{
    return sa;
}

static int family(const void *sa)
{
    return ((const struct sockaddr *)sa)->sa_family;
}

size_t rcm_addr_len(const void *sa)
{
    switch (family(sa)) {
    case AF_INET:
        return sizeof(struct sockaddr_in);
    case AF_INET6:
        return sizeof(struct sockaddr_in6);
    case AF_IB:
        return sizeof(struct sockaddr_ib);
    default:
        return 0;
    }
}

bool rcm_addr_any(const void *sa)
{
    switch (family(sa)) {
    case AF_INET:
        return v4(sa)->sin_addr.s_addr == 0;
    case AF_INET6:
        return IN6_IS_ADDR_UNSPECIFIED(&v6(sa)->sin6_addr);
    case AF_IB:
        return ib_addr_any(&((const struct sockaddr_ib *)sa)->sib_addr);
    default:
        return false;
    }
}

bool rcm_addr_loopback(const void *sa)
{
    if (family(sa) == AF_INET)
        return ntohl(v4(sa)->sin_addr.s_addr) >> 24 == 127;
    if (family(sa) == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&v6(sa)->sin6_addr);
    return false;
}

bool rcm_addr_same(const void *a, const void *b)
{
    if (family(a) != family(b))
        return false;
    switch (family(a)) {
    case AF_INET:
        return v4(a)->sin_addr.s_addr == v4(b)->sin_addr.s_addr;
    case AF_INET6:
        return IN6_ARE_ADDR_EQUAL(&v6(a)->sin6_addr, &v6(b)->sin6_addr);
    case AF_IB:
        return memcmp(&((const struct sockaddr_ib *)a)->sib_addr,
                      &((const struct sockaddr_ib *)b)->sib_addr, sizeof(struct ib_addr)) == 0;
    default:
        return false;
    }
}

// The low bits of the service id serve as the port of an InfiniBand address.
uint16_t rcm_addr_port(const void *sa)
{
    if (family(sa) == AF_IB) {
        const struct sockaddr_ib *ib = sa;
        return (uint16_t)be64toh(ib->sib_sid & ib->sib_sid_mask);
    }
    return ntohs(v4(sa)->sin_port); // at the same place in sockaddr_in6
}

void rcm_addr_set_port(void *sa, uint16_t port)
{
    if (family(sa) == AF_IB) {
        struct sockaddr_ib *ib = sa;
        ib->sib_sid = htobe64((be64toh(ib->sib_sid) & ~0xffffull) | port);
        ib->sib_sid_mask = htobe64(UINT64_MAX);
        return;
    }
    ((struct sockaddr_in *)sa)->sin_port = htons(port);
}

void rcm_addr_to_gid(const void *sa, union ibv_gid *gid)
{
    memset(gid, 0, sizeof(*gid));
    if (family(sa) == AF_INET) {
        gid->raw[10] = gid->raw[11] = 0xff;
        memcpy(gid->raw + 12, &v4(sa)->sin_addr, 4);
    } else if (family(sa) == AF_INET6) {
        memcpy(gid->raw, &v6(sa)->sin6_addr, 16);
    } else if (family(sa) == AF_IB) {
        memcpy(gid->raw, &((const struct sockaddr_ib *)sa)->sib_addr, 16);
    }
}

static bool is_v4(const union ibv_gid *gid)
{
    static const uint8_t prefix[12] = {[10] = 0xff, 0xff};
    return memcmp(gid->raw, prefix, sizeof(prefix)) == 0;
}

static bool link_local(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

static uint32_t scope_of(const void *sa)
{
    return family(sa) == AF_INET6 ? v6(sa)->sin6_scope_id : 0;
}

// How well an entry stands for an address: 0 not at all.
static int fitness(const struct wf_gid_slot *s, const void *sa, const union ibv_gid *gid)
{
    static const union ibv_gid none;
    if (memcmp(&s->gid, &none, sizeof(none)) == 0)
        return 0;
    if (rcm_addr_loopback(sa))
        return is_v4(&s->gid) == (family(sa) == AF_INET) ? 3 - link_local(&s->gid) : 1;
    if (memcmp(&s->gid, gid, sizeof(*gid)) != 0)
        return 0;
    uint32_t scope = scope_of(sa);
    return link_local(gid) && scope && scope != s->ifindex ? 0 : 3;
}

int rcm_addr_gid_index(struct wf_cm_host *h, const void *sa, struct wf_gid_slot *out)
{
    struct wf_gid_slot slot;
    union ibv_gid gid;
    int best = 0, index = -ENODEV;
    rcm_addr_to_gid(sa, &gid);
    for (uint32_t i = 0; i < WF_GIDS && best < 3; i++) {
        if (wf_hca_query_gid(wf_cm_host_hca(h), 1, i, &slot))
            continue;
        int fit = fitness(&slot, sa, &gid);
        if (fit > best) {
            best = fit;
            index = (int)i;
            *out = slot;
        }
    }
    return index;
}

// A datagram socket that connects sends nothing, but the kernel looks up the route for it: with it
// come rules, scopes, ToS and the preferred source, as for any program on this host.
int rcm_addr_route(const void *dst, const void *src, uint8_t tos, struct sockaddr_storage *out)
{
    struct sockaddr_storage to, from;
    socklen_t len = sizeof(*out);
    int value = tos;
    memcpy(&to, dst, rcm_addr_len(dst));
    rcm_addr_set_port(&to, 4791);
    int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (tos && to.ss_family == AF_INET)
        setsockopt(fd, IPPROTO_IP, IP_TOS, &value, sizeof(value));
    else if (tos)
        setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &value, sizeof(value));
    int rc = 0;
    if (src) {
        memcpy(&from, src, rcm_addr_len(src));
        rcm_addr_set_port(&from, 0);
        rc = bind(fd, (struct sockaddr *)&from, (socklen_t)rcm_addr_len(src));
    }
    if (rc == 0)
        rc = connect(fd, (struct sockaddr *)&to, (socklen_t)rcm_addr_len(&to));
    if (rc == 0)
        rc = getsockname(fd, (struct sockaddr *)out, &len);
    rc = rc ? -errno : 0;
    close(fd);
    return rc;
}

uint8_t rcm_mtu_of(uint32_t ifmtu)
{
    uint8_t mtu = IBV_MTU_4096;
    while (mtu > IBV_MTU_256 && (128u << mtu) + ROCE_OVERHEAD > ifmtu)
        mtu--;
    return mtu;
}
