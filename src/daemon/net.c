// SPDX-License-Identifier: BSD-2-Clause
// Slot 0's UDP sockets: MADs to and from QP1 of other hosts, and multicast from the network.
#include "base/bytes.h"
#include "daemon/daemon.h"
#include "daemon/mad.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <wire/codec.h>
#include <wire/grh.h>
#include <wire/headers.h>
#include <wire/icrc.h>

#define MAX_DATAGRAM (WF_HDR_MAX + 4096 + 8)

struct origin {
    union ibv_gid sgid, dgid;
    struct wf_icrc_scope scope;
    uint32_t ifindex;
    int tclass, hop_limit;
};

static void set_option(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof(value));
}

static void map_ipv4(union ibv_gid *gid, const void *addr)
{
    memset(gid, 0, sizeof(*gid));
    gid->raw[10] = gid->raw[11] = 0xff;
    memcpy(gid->raw + 12, addr, 4);
}

static void read_control(struct msghdr *mh, struct origin *o)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
        const void *p = CMSG_DATA(c);
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
            const struct in_pktinfo *i = p;
            map_ipv4(&o->dgid, &i->ipi_addr);
            memcpy(o->scope.dst, &i->ipi_addr, 4);
            o->ifindex = (uint32_t)i->ipi_ifindex;
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO) {
            const struct in6_pktinfo *i = p;
            memcpy(o->dgid.raw, &i->ipi6_addr, 16);
            memcpy(o->scope.dst, &i->ipi6_addr, 16);
            o->ifindex = i->ipi6_ifindex;
        } else if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            o->tclass = *(const uint8_t *)p;
        } else if (c->cmsg_type == IP_TTL || c->cmsg_type == IPV6_HOPLIMIT) {
            memcpy(&o->hop_limit, p, sizeof(int));
        } else if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            memcpy(&o->tclass, p, sizeof(int));
        }
    }
}

static ssize_t receive(int fd, uint8_t *buf, size_t size, struct origin *o)
{
    union {
        struct sockaddr_in a4;
        struct sockaddr_in6 a6;
    } from;
    union {
        struct cmsghdr align;
        char buf[256];
    } ctl;
    struct iovec iov = {buf, size};
    struct msghdr mh = {.msg_name = &from,
                        .msg_namelen = sizeof(from),
                        .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = ctl.buf,
                        .msg_controllen = sizeof(ctl.buf)};
    memset(o, 0, sizeof(*o));
    ssize_t n = recvmsg(fd, &mh, MSG_DONTWAIT);
    if (n < 0)
        return n;
    read_control(&mh, o);
    o->scope.v6 = from.a4.sin_family == AF_INET6;
    o->scope.dport = WF_ROCE_PORT;
    if (o->scope.v6) {
        o->scope.sport = ntohs(from.a6.sin6_port);
        memcpy(o->scope.src, &from.a6.sin6_addr, 16);
        memcpy(o->sgid.raw, &from.a6.sin6_addr, 16);
    } else {
        o->scope.sport = ntohs(from.a4.sin_port);
        memcpy(o->scope.src, &from.a4.sin_addr, 4);
        map_ipv4(&o->sgid, &from.a4.sin_addr);
    }
    return mh.msg_flags & MSG_TRUNC ? 0 : n;
}

static void take_mad(struct weftd *d, const struct wf_pkt *pkt, const struct origin *o)
{
    struct wf_fmsg m = {
        .sqpn = pkt->sqpn, .pkey = pkt->pkey, .tclass = (uint8_t)o->tclass, .ifindex = o->ifindex};
    if (pkt->qkey != MAD_QP1_QKEY || pkt->len != MAD_LEN || (pkt->pkey & 0x7fff) == 0)
        return;
    memcpy(m.sgid, o->sgid.raw, 16);
    memcpy(m.dgid, o->dgid.raw, 16);
    memcpy(m.mad, pkt->iov[0].iov_base, MAD_LEN);
    mads_route(d, &m);
}

static void take_datagram(struct weftd *d, const uint8_t *buf, size_t n, struct origin *o)
{
    struct wf_pkt pkt;
    struct iovec iov;
    struct wf_icrc_seen seen;
    if (wf_packet_decode(buf, n, &pkt, &iov) || WF_OPCODE_SVC(pkt.opcode) != WF_SVC_UD)
        return;
    if (wf_icrc_check(&o->scope, buf, n, &seen))
        return;
    pkt.sgid = &o->sgid;
    pkt.dgid = &o->dgid;
    pkt.tclass = (uint8_t)o->tclass;
    pkt.hop_limit = (uint8_t)o->hop_limit;
    pkt.ifindex = o->ifindex;
    if (pkt.dqpn == 1)
        take_mad(d, &pkt, o);
    else if (pkt.dqpn == WF_QPN_MULTICAST && wf_gid_is_multicast(&o->dgid))
        mcast_deliver(d, &pkt);
}

static void net_ready(struct weftd *d, struct source *s, uint32_t events)
{
    uint8_t buf[MAX_DATAGRAM];
    struct origin o;
    for (int i = 0; i < 64; i++) {
        ssize_t n = receive(s->fd, buf, sizeof(buf), &o);
        if (n < 0)
            return;
        take_datagram(d, buf, (size_t)n, &o);
    }
}

void net_start(struct weftd *d)
{
    for (int f = 0; f < 2; f++) {
        int fd = d->sockets.fd[f][0];
        d->net[f] = (struct source){net_ready, fd};
        if (fd < 0)
            continue;
        // DF set and Identification 0 is what the ICRC we compute assumes.
        if (f == 0) {
            set_option(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
            set_option(fd, IPPROTO_IP, IP_PKTINFO, 1);
            set_option(fd, IPPROTO_IP, IP_RECVTOS, 1);
            set_option(fd, IPPROTO_IP, IP_RECVTTL, 1);
        } else {
            set_option(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
            set_option(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
            set_option(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
        }
        watch(d, &d->net[f], EPOLLIN);
    }
}

// BTH, DETH, MAD and ICRC. Returns the length.
static size_t encode(struct weftd *d, const struct wf_fmsg *m, const struct wf_icrc_scope *scope,
                     uint8_t *buf, size_t size)
{
    struct wf_pkt pkt = {.opcode = WF_OPCODE(WF_SVC_UD, WF_OP_SEND_ONLY),
                         .flags = WF_PKT_MIG_REQ,
                         .pkey = 0xffff,
                         .dqpn = 1,
                         .psn = d->mad_psn++ & WF_PSN_MASK,
                         .npsn = 1,
                         .qkey = MAD_QP1_QKEY,
                         .sqpn = 1,
                         .len = MAD_LEN};
    int n = wf_packet_encode_headers(&pkt, buf, size);
    if (n < 0 || (size_t)n + MAD_LEN + WF_ICRC_LEN > size)
        return 0;
    memcpy(buf + n, m->mad, MAD_LEN);
    struct iovec iov = {buf, (size_t)n + MAD_LEN};
    wf_icrc_store(buf + iov.iov_len, wf_icrc(scope, &iov, 1));
    return iov.iov_len + WF_ICRC_LEN;
}

static void send_ipv4(int fd, const struct wf_fmsg *m, uint8_t *buf, size_t n)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(WF_ROCE_PORT)};
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(struct in_pktinfo))];
    } ctl = {0};
    struct iovec iov = {buf, n};
    struct msghdr mh = {.msg_name = &to,
                        .msg_namelen = sizeof(to),
                        .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = ctl.buf,
                        .msg_controllen = sizeof(ctl.buf)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
    struct in_pktinfo *info = (struct in_pktinfo *)CMSG_DATA(c);
    memcpy(&to.sin_addr, m->dgid + 12, 4);
    c->cmsg_level = IPPROTO_IP;
    c->cmsg_type = IP_PKTINFO;
    c->cmsg_len = CMSG_LEN(sizeof(*info));
    memcpy(&info->ipi_spec_dst, m->sgid + 12, 4);
    (void)!sendmsg(fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_ipv6(int fd, const struct wf_fmsg *m, uint32_t ifindex, uint8_t *buf, size_t n)
{
    struct sockaddr_in6 to = {.sin6_family = AF_INET6, .sin6_port = htons(WF_ROCE_PORT)};
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(struct in6_pktinfo))];
    } ctl = {0};
    struct iovec iov = {buf, n};
    struct msghdr mh = {.msg_name = &to,
                        .msg_namelen = sizeof(to),
                        .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = ctl.buf,
                        .msg_controllen = sizeof(ctl.buf)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
    struct in6_pktinfo *info = (struct in6_pktinfo *)CMSG_DATA(c);
    memcpy(&to.sin6_addr, m->dgid, 16);
    if (IN6_IS_ADDR_LINKLOCAL(&to.sin6_addr))
        to.sin6_scope_id = ifindex;
    c->cmsg_level = IPPROTO_IPV6;
    c->cmsg_type = IPV6_PKTINFO;
    c->cmsg_len = CMSG_LEN(sizeof(*info));
    memcpy(&info->ipi6_addr, m->sgid, 16);
    (void)!sendmsg(fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
}

// A MAD to another host. Families that do not match, or no socket: it is lost, as on a network
// without a route, and its sender's retries end with the right error.
void net_send_mad(struct weftd *d, const struct wf_fmsg *m)
{
    uint8_t buf[WF_HDR_MAX + MAD_LEN + WF_ICRC_LEN];
    union ibv_gid sgid, dgid;
    memcpy(sgid.raw, m->sgid, 16);
    memcpy(dgid.raw, m->dgid, 16);
    bool v6 = !wf_gid_is_ipv4(&dgid);
    int fd = d->net[v6].fd;
    if (v6 == wf_gid_is_ipv4(&sgid) || fd < 0 || !d->net[v6].ready)
        return;
    struct wf_icrc_scope scope = {.v6 = v6, .sport = WF_ROCE_PORT, .dport = WF_ROCE_PORT};
    memcpy(scope.src, v6 ? m->sgid : m->sgid + 12, v6 ? 16 : 4);
    memcpy(scope.dst, v6 ? m->dgid : m->dgid + 12, v6 ? 16 : 4);
    size_t n = encode(d, m, &scope, buf, sizeof(buf));
    if (n && v6)
        send_ipv6(fd, m, d->gids.table->gids[m->index % WF_GIDS].ifindex, buf, n);
    else if (n)
        send_ipv4(fd, m, buf, n);
}
