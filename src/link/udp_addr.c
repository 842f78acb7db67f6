// SPDX-License-Identifier: BSD-2-Clause
#include "link/udp_internal.h"

#include "base/reason.h"
#include "wire/grh.h"

#include <errno.h>
#include <netinet/udp.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

#define ECN_CE 3

static bool needs_scope(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xff || (gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80);
}

int wf_udp_dest_of(const struct wf_path *path, const struct wf_pkt *pkt, struct wf_udp_dest *out)
{
    bool v6 = !wf_gid_is_ipv4(&path->dgid);
    if (v6 == wf_gid_is_ipv4(&path->sgid))
        return wf_refuse(ENETUNREACH, WF_R_NO_ROUTE, "one GID is IPv4 and the other IPv6");
    memset(out, 0, sizeof(*out)); // padding too: dests are compared as bytes
    out->sgid = path->sgid;
    out->dgid = path->dgid;
    out->v6 = v6;
    out->slot = (uint8_t)(pkt->dqpn >> 16);
    out->tclass = path->tclass;
    if (pkt->flags & WF_PKT_CE)
        out->tclass |= ECN_CE;
    // The kernel sends no packet with TTL 0, and 0 is what programs that do not care leave.
    out->hop_limit = path->hop_limit ? path->hop_limit : 64;
    out->scope = v6 && needs_scope(&path->dgid) ? path->ifindex : 0;
    // Packets to an address of this host travel on lo, whatever interface the address is on.
    out->ifindex = path->local ? out->scope : path->ifindex;
    return 0;
}

static void add(struct msghdr *msg, int level, int type, const void *data, size_t len)
{
    struct cmsghdr *c = (struct cmsghdr *)((char *)msg->msg_control + msg->msg_controllen);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(len);
    memcpy(CMSG_DATA(c), data, len);
    msg->msg_controllen += CMSG_SPACE(len);
}

static void fill4(const struct wf_udp_dest *d, uint16_t port, struct msghdr *msg,
                  union wf_udp_sockaddr *to)
{
    to->in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    memcpy(&to->in.sin_addr, d->dgid.raw + 12, 4);
    msg->msg_namelen = sizeof(to->in);
    struct in_pktinfo info = {.ipi_ifindex = (int)d->ifindex};
    memcpy(&info.ipi_spec_dst, d->sgid.raw + 12, 4);
    int tos = d->tclass, ttl = d->hop_limit;
    add(msg, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
    add(msg, IPPROTO_IP, IP_TTL, &ttl, sizeof(ttl));
    if (tos)
        add(msg, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
}

static void fill6(const struct wf_udp_dest *d, uint16_t port, struct msghdr *msg,
                  union wf_udp_sockaddr *to)
{
    to->in6 = (struct sockaddr_in6){
        .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_scope_id = d->scope};
    memcpy(&to->in6.sin6_addr, d->dgid.raw, 16);
    msg->msg_namelen = sizeof(to->in6);
    struct in6_pktinfo info = {.ipi6_ifindex = d->ifindex};
    memcpy(&info.ipi6_addr, d->sgid.raw, 16);
    int tclass = d->tclass, hops = d->hop_limit;
    add(msg, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
    add(msg, IPPROTO_IPV6, IPV6_HOPLIMIT, &hops, sizeof(hops));
    if (tclass)
        add(msg, IPPROTO_IPV6, IPV6_TCLASS, &tclass, sizeof(tclass));
}

void wf_udp_dest_fill(const struct wf_udp_dest *dest, uint16_t port, uint16_t gso_size,
                      struct msghdr *msg, union wf_udp_sockaddr *to, void *control)
{
    msg->msg_name = to;
    msg->msg_control = control;
    msg->msg_controllen = 0;
    if (dest->v6)
        fill6(dest, port, msg, to);
    else
        fill4(dest, port, msg, to);
    if (gso_size)
        add(msg, SOL_UDP, UDP_SEGMENT, &gso_size, sizeof(gso_size));
}
