// SPDX-License-Identifier: BSD-2-Clause
#include "link/udp_internal.h"

#include "base/reason.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>

#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#ifndef IPV6_FLOWINFO // glibc leaves it out; linux/in6.h clashes with netinet/in.h
#define IPV6_FLOWINFO 11
#endif

#define ECN_CE       3
#define ROUNDS       16
#define QUIET_POLLS  64 // an idle socket beside a busy one is looked at rarely ...
#define QUIET_PERIOD 8  // ... each so many polls, as a look costs a system call

int wf_udp_rx_create(int fd, bool v6, struct wf_udp_rx **out)
{
    struct wf_udp_rx *rx = calloc(1, sizeof(*rx));
    if (!rx)
        return -ENOMEM;
    rx->fd = fd;
    rx->v6 = v6;
    rx->want = 1;
    rx->bufs = malloc((size_t)WF_UDP_RX_MSGS * WF_UDP_RX_BUF);
    rx->msgs = calloc(WF_UDP_RX_MSGS, sizeof(*rx->msgs));
    if (!rx->bufs || !rx->msgs) {
        wf_udp_rx_destroy(rx);
        return -ENOMEM;
    }
    *out = rx;
    return 0;
}

void wf_udp_rx_destroy(struct wf_udp_rx *rx)
{
    if (!rx)
        return;
    free(rx->msgs);
    free(rx->bufs);
    free(rx);
}

static void prepare(struct wf_udp_rx *rx, int i)
{
    rx->iov[i] = (struct iovec){rx->bufs + (size_t)i * WF_UDP_RX_BUF, WF_UDP_RX_BUF};
    rx->msgs[i].msg_hdr = (struct msghdr){
        .msg_name = &rx->from[i],
        .msg_namelen = sizeof(rx->from[i]),
        .msg_iov = &rx->iov[i],
        .msg_iovlen = 1,
        .msg_control = rx->control[i],
        .msg_controllen = sizeof(rx->control[i]),
    };
}

// recvmmsg() looks for one message more than there is; where they come singly, recvmsg() saves a
// third of the time.
static int receive(struct wf_udp_rx *rx)
{
    int n;
    for (int i = 0; i < rx->want; i++)
        prepare(rx, i);
    if (rx->want == 1) {
        ssize_t len = recvmsg(rx->fd, &rx->msgs[0].msg_hdr, MSG_DONTWAIT);
        rx->msgs[0].msg_len = len > 0 ? (unsigned)len : 0;
        n = len >= 0;
    } else {
        n = recvmmsg(rx->fd, rx->msgs, (unsigned)rx->want, MSG_DONTWAIT, NULL);
    }
    rx->nmsg = n > 0 ? n : 0;
    rx->cur = 0;
    rx->off = 0;
    rx->idle = n > 0 ? 0 : rx->idle + (rx->idle < QUIET_POLLS);
    return rx->nmsg;
}

// More were there than asked for: ask for more next time.
static void adapt(struct wf_udp_rx *rx)
{
    if (rx->nmsg == rx->want)
        rx->want = rx->want * 2 < WF_UDP_RX_MSGS ? rx->want * 2 : WF_UDP_RX_MSGS;
    else
        rx->want = rx->nmsg > 1 ? rx->nmsg : 1;
}

static void map_ipv4(union ibv_gid *gid, const void *addr)
{
    memset(gid->raw, 0, 10);
    memset(gid->raw + 10, 0xff, 2);
    memcpy(gid->raw + 12, addr, 4);
}

static int get_int(const struct cmsghdr *c)
{
    int v = 0;
    size_t len = c->cmsg_len - CMSG_LEN(0);
    // TOS comes as one byte, the others as int.
    if (len == 1)
        return *CMSG_DATA(c);
    memcpy(&v, CMSG_DATA(c), len < sizeof(v) ? len : sizeof(v));
    return v;
}

static void take_pktinfo4(struct wf_udp_rx *rx, const struct cmsghdr *c)
{
    struct in_pktinfo info;
    memcpy(&info, CMSG_DATA(c), sizeof(info));
    map_ipv4(&rx->dgid, &info.ipi_addr);
    memcpy(rx->scope.dst, &info.ipi_addr, 4);
    rx->ifindex = (uint32_t)info.ipi_ifindex;
}

static void take_pktinfo6(struct wf_udp_rx *rx, const struct cmsghdr *c)
{
    struct in6_pktinfo info;
    memcpy(&info, CMSG_DATA(c), sizeof(info));
    memcpy(rx->dgid.raw, &info.ipi6_addr, 16);
    memcpy(rx->scope.dst, &info.ipi6_addr, 16);
    rx->ifindex = info.ipi6_ifindex;
}

static void take_cmsg(struct wf_udp_rx *rx, const struct cmsghdr *c)
{
    int type = c->cmsg_type;
    if (c->cmsg_level == SOL_UDP && type == UDP_GRO)
        rx->seg = (uint16_t)get_int(c);
    else if (c->cmsg_level == IPPROTO_IP && type == IP_PKTINFO)
        take_pktinfo4(rx, c);
    else if (c->cmsg_level == IPPROTO_IP && type == IP_TOS)
        rx->tclass = (uint8_t)get_int(c);
    else if (c->cmsg_level == IPPROTO_IP && type == IP_TTL)
        rx->hop_limit = (uint8_t)get_int(c);
    else if (c->cmsg_level == IPPROTO_IPV6 && type == IPV6_PKTINFO)
        take_pktinfo6(rx, c);
    else if (c->cmsg_level == IPPROTO_IPV6 && type == IPV6_TCLASS)
        rx->tclass = (uint8_t)get_int(c);
    else if (c->cmsg_level == IPPROTO_IPV6 && type == IPV6_HOPLIMIT)
        rx->hop_limit = (uint8_t)get_int(c);
    else if (c->cmsg_level == IPPROTO_IPV6 && type == IPV6_FLOWINFO)
        rx->flow_label = ntohl((uint32_t)get_int(c)) & 0xfffff;
}

// Take the addresses of message `cur`, which all packets merged into it share.
static void open_message(struct wf_udp_link *u, struct wf_udp_rx *rx)
{
    struct msghdr *m = &rx->msgs[rx->cur].msg_hdr;
    const union wf_udp_sockaddr *from = &rx->from[rx->cur];
    rx->seg = rx->next = 0;
    rx->tclass = rx->hop_limit = 0;
    rx->flow_label = rx->ifindex = 0;
    memset(&rx->dgid, 0, sizeof(rx->dgid));
    rx->scope = (struct wf_icrc_scope){.v6 = rx->v6, .dport = u->port};
    if (rx->v6) {
        memcpy(rx->sgid.raw, &from->in6.sin6_addr, 16);
        memcpy(rx->scope.src, rx->sgid.raw, 16);
        rx->scope.sport = ntohs(from->in6.sin6_port);
    } else {
        map_ipv4(&rx->sgid, &from->in.sin_addr);
        memcpy(rx->scope.src, &from->in.sin_addr, 4);
        rx->scope.sport = ntohs(from->in.sin_port);
    }
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
        take_cmsg(rx, c);
    u->counters.rx_batches++;
}

static bool icrc_fits(struct wf_udp_link *u, struct wf_udp_rx *rx, const void *bth, size_t len)
{
    struct wf_icrc_seen seen;
    if (rx->v6)
        return wf_icrc_check(&rx->scope, bth, len, &seen) == 0;
    struct wf_udp_flow *flow = wf_udp_flow_find(u->flows, &rx->scope);
    // What arrives merged mostly left the sender as one batch, with the indexes as values.
    rx->scope.id = rx->seg ? rx->next : wf_udp_flow_expect(flow);
    if (wf_icrc_check(&rx->scope, bth, len, &seen))
        return false;
    u->counters.rx_other_id += seen.id != rx->scope.id || !seen.df;
    return wf_udp_flow_accept(flow, &seen);
}

static void refuse(struct wf_udp_rx *rx, uint64_t *counter, enum wf_reason why, size_t len)
{
    (*counter)++;
    wf_explain(why, "%zu bytes from %s address, source port %u", len,
               rx->v6 ? "an IPv6" : "an IPv4", rx->scope.sport);
}

// Check and deliver one packet; 1 when it was delivered.
static int take_packet(struct wf_udp_link *u, struct wf_udp_rx *rx, const void *bth, size_t len)
{
    struct wf_pkt pkt;
    struct iovec payload;
    if (wf_packet_decode(bth, len, &pkt, &payload)) {
        refuse(rx, &u->counters.rx_malformed, WF_R_BAD_PACKET, len);
        return 0;
    }
    if (!icrc_fits(u, rx, bth, len)) {
        refuse(rx, &u->counters.rx_bad_icrc, WF_R_BAD_ICRC, len);
        if (u->base.damaged)
            u->base.damaged(u->base.arg, pkt.dqpn);
        return 0;
    }
    pkt.sgid = &rx->sgid;
    pkt.dgid = &rx->dgid;
    pkt.tclass = rx->tclass;
    pkt.hop_limit = rx->hop_limit;
    pkt.flow_label = rx->flow_label;
    pkt.ifindex = rx->ifindex;
    pkt.flags |= (rx->tclass & ECN_CE) == ECN_CE ? WF_PKT_CE : 0;
    u->counters.rx_packets++;
    u->counters.rx_bytes += len;
    u->base.deliver(u->base.arg, &pkt);
    return 1;
}

// Deliver packets of the messages at hand; stops at `budget` and goes on there next time.
static int deliver_batch(struct wf_udp_link *u, struct wf_udp_rx *rx, int budget)
{
    int done = 0;
    while (rx->cur < rx->nmsg && done < budget) {
        const struct mmsghdr *m = &rx->msgs[rx->cur];
        if (rx->off == 0) {
            open_message(u, rx);
            if (m->msg_hdr.msg_flags & MSG_TRUNC) {
                u->counters.rx_truncated++;
                rx->cur++;
                continue;
            }
        }
        const uint8_t *at = rx->bufs + (size_t)rx->cur * WF_UDP_RX_BUF + rx->off;
        size_t left = m->msg_len - rx->off;
        size_t len = rx->seg && rx->seg < left ? rx->seg : left;
        rx->off += len;
        bool last = rx->off >= m->msg_len;
        done += take_packet(u, rx, at, len);
        rx->next++;
        if (last) {
            rx->cur++;
            rx->off = 0;
        }
    }
    return done;
}

static int poll_socket(struct wf_udp_link *u, struct wf_udp_rx *rx, int budget)
{
    int done = 0;
    // A flood of refused packets must not hold the caller.
    for (int round = 0; done < budget && round < ROUNDS; round++) {
        if (rx->cur == rx->nmsg) {
            int n = receive(rx);
            bool more = n == rx->want && n > 1;
            adapt(rx);
            if (!more)
                round = ROUNDS;
        }
        done += deliver_batch(u, rx, budget - done);
    }
    return done;
}

int wf_udp_poll(struct wf_link *l, int budget)
{
    struct wf_udp_link *u = (struct wf_udp_link *)l;
    int done = 0;
    for (int v6 = 0; v6 < 2; v6++) {
        struct wf_udp_rx *rx = u->rx[v6], *other = u->rx[!v6];
        if (!rx)
            continue;
        bool quiet = rx->idle >= QUIET_POLLS && other && other->idle < QUIET_POLLS;
        if (quiet && ++rx->idle < QUIET_POLLS + QUIET_PERIOD)
            continue;
        if (quiet)
            rx->idle = QUIET_POLLS;
        done += poll_socket(u, rx, budget - done);
    }
    return done;
}
