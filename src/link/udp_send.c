// SPDX-License-Identifier: BSD-2-Clause
// From waiting packets to system calls: equal-sized packets of one destination become one
// UDP_SEGMENT send (batching is worth a factor of ten), several sends one sendmmsg.
#include "link/udp_internal.h"

#include "base/guard.h"
#include "base/reason.h"

#include <errno.h>

#define MAX_MSGS     16
#define MAX_SEGMENTS 64    // UDP_MAX_SEGMENTS of the oldest kernels that have UDP_SEGMENT
#define MAX_BYTES    65000 // of one send; the IP length field counts headers too
#define MAX_PIECES   1000  // UIO_MAXIOV is 1024
#define GSO_STRIKES  3

struct batch {
    int nmsg, niov;
    struct mmsghdr msgs[MAX_MSGS];
    int packets[MAX_MSGS];
    union wf_udp_sockaddr to[MAX_MSGS];
    _Alignas(16) uint8_t control[MAX_MSGS][WF_UDP_CMSG_ROOM];
};

// Packets from `first` on that can go in one send: same destination and length; a shorter one may
// come last.
static int group_at(const struct wf_udp_tx *t, int first)
{
    const struct wf_udp_tx_pkt *p = &t->pkts[first];
    if (t->no_gso || first < t->alone_until)
        return 1;
    uint32_t bytes = p->len, pieces = p->niov;
    int n = 1;
    for (; first + n < t->npkts && n < MAX_SEGMENTS; n++) {
        const struct wf_udp_tx_pkt *q = &p[n];
        bytes += q->len;
        pieces += q->niov;
        if (q->dest != p->dest || q->len > p->len || bytes > MAX_BYTES || pieces > MAX_PIECES)
            break;
        if (q->len < p->len)
            return n + 1;
    }
    return n;
}

static void flip_bit(struct iovec *iov, uint32_t bit)
{
    size_t at = bit / 8;
    for (; at >= iov->iov_len; iov++)
        at -= iov->iov_len;
    ((uint8_t *)iov->iov_base)[at] ^= (uint8_t)(1u << bit % 8);
}

// `index` in the batch is the Identification that the kernel will give the packet.
static void seal(struct wf_udp_tx *t, const struct wf_udp_tx_pkt *p, struct wf_icrc_scope *scope,
                 int index)
{
    struct iovec *iov = &t->iovs[p->iov], *last = &iov[p->niov - 1];
    scope->id = (uint16_t)index;
    last->iov_len -= WF_ICRC_LEN;
    uint32_t icrc = wf_icrc(scope, iov, p->niov);
    wf_icrc_store((uint8_t *)last->iov_base + last->iov_len, icrc);
    last->iov_len += WF_ICRC_LEN;
    if (p->flip)
        flip_bit(iov, (p->flip - 1) % (p->len * 8));
}

static void append(struct wf_udp_tx *t, struct batch *b, struct msghdr *m,
                   const struct wf_udp_tx_pkt *p)
{
    for (int i = 0; i < p->niov; i++) {
        const struct iovec *piece = &t->iovs[p->iov + (uint32_t)i];
        struct iovec *prev = m->msg_iovlen ? &m->msg_iov[m->msg_iovlen - 1] : NULL;
        if (prev && (uint8_t *)prev->iov_base + prev->iov_len == piece->iov_base) {
            prev->iov_len += piece->iov_len;
            continue;
        }
        m->msg_iov[m->msg_iovlen++] = *piece;
        b->niov++;
    }
}

struct sealing {
    struct wf_udp_tx *t;
    const struct wf_udp_tx_pkt *p;
    int n;
    struct wf_icrc_scope scope;
};

static void seal_all(void *arg)
{
    struct sealing *s = arg;
    for (int i = 0; i < s->n; i++)
        seal(s->t, &s->p[i], &s->scope, i);
}

static struct wf_icrc_scope scope_of(const struct wf_udp_dest *dest, uint16_t sport, uint16_t dport)
{
    struct wf_icrc_scope s = {.v6 = dest->v6, .sport = sport, .dport = dport};
    size_t skip = dest->v6 ? 0 : 12;
    memcpy(s.src, dest->sgid.raw + skip, 16 - skip);
    memcpy(s.dst, dest->dgid.raw + skip, 16 - skip);
    return s;
}

// -EFAULT: payload of one of the packets is not there any more.
static int build_message(struct wf_udp_link *u, struct batch *b, int first,
                         const struct wf_udp_socket *s)
{
    struct wf_udp_tx *t = &u->tx;
    const struct wf_udp_tx_pkt *p = &t->pkts[first];
    const struct wf_udp_dest *dest = &t->dests[p->dest];
    int n = b->packets[b->nmsg] = group_at(t, first);
    struct sealing sealing = {t, p, n, scope_of(dest, s->port, u->port)};
    int rc = wf_guard_run(seal_all, &sealing);
    if (rc)
        return rc;
    struct msghdr *m = &b->msgs[b->nmsg].msg_hdr;
    *m = (struct msghdr){.msg_iov = &t->out[b->niov]};
    for (int i = 0; i < n; i++)
        append(t, b, m, &p[i]);
    wf_udp_dest_fill(dest, u->port, n > 1 ? (uint16_t)p->len : 0, m, &b->to[b->nmsg],
                     b->control[b->nmsg]);
    b->nmsg++;
    return 0;
}

// As many messages as go through one socket. -EFAULT: the first one has bad memory.
static int build(struct wf_udp_link *u, struct batch *b, const struct wf_udp_socket *s)
{
    struct wf_udp_tx *t = &u->tx;
    const struct wf_udp_dest *head = &t->dests[t->pkts[t->head].dest];
    b->nmsg = b->niov = 0;
    for (int at = t->head; at < t->npkts && b->nmsg < MAX_MSGS; at += b->packets[b->nmsg - 1]) {
        const struct wf_udp_dest *dest = &t->dests[t->pkts[at].dest];
        if (dest->slot != head->slot || dest->v6 != head->v6)
            break;
        int rc = build_message(u, b, at, s);
        if (rc)
            return b->nmsg ? 0 : rc;
    }
    return 0;
}

static void lose(struct wf_udp_link *u, int packets, int err)
{
    struct wf_udp_counters *c = &u->counters;
    const struct wf_udp_dest *dest = &u->tx.dests[u->tx.pkts[u->tx.head].dest];
    uint64_t *counter = &c->tx_other;
    enum wf_reason why = WF_R_NO_ROUTE;
    if (err == EMSGSIZE) {
        counter = &c->tx_too_long;
        why = WF_R_PATH_MTU;
    } else if (err == EFAULT) {
        counter = &c->tx_bad_memory;
        why = WF_R_LOCAL_FAULT;
    } else if (err == ENETUNREACH || err == EHOSTUNREACH || err == EADDRNOTAVAIL ||
               err == ENETDOWN || err == ENODEV || err == EINVAL) {
        counter = &c->tx_no_route;
    }
    *counter += (uint64_t)packets;
    wf_explain(why, "%d packets to slot %u over %s: %s", packets, dest->slot,
               dest->v6 ? "IPv6" : "IPv4", strerror(err));
    u->tx.head += packets;
}

static void sent(struct wf_udp_link *u, const struct batch *b, int messages)
{
    struct wf_udp_tx *t = &u->tx;
    u->counters.tx_batches += (uint64_t)messages;
    for (int i = 0; i < messages; i++)
        for (int k = 0; k < b->packets[i]; k++) {
            u->counters.tx_packets++;
            u->counters.tx_bytes += t->pkts[t->head++].len;
        }
    // One by one they go and together they did not: this kernel or device cannot segment.
    if (t->alone_for_gso) {
        t->alone_for_gso = false;
        t->no_gso = ++t->gso_strikes >= GSO_STRIKES;
    }
}

// The first message of the batch was refused.
static void refused(struct wf_udp_link *u, const struct batch *b, int err)
{
    struct wf_udp_tx *t = &u->tx;
    if (err == EINTR)
        return;
    if (err == EAGAIN || err == EWOULDBLOCK) {
        t->blocked = true;
        u->counters.tx_blocked++;
        return;
    }
    if (b->packets[0] > 1) { // one bad packet must not take the others along
        t->alone_until = t->head + b->packets[0];
        t->alone_for_gso = err != EFAULT;
        return;
    }
    t->alone_for_gso = false;
    lose(u, 1, err);
}

static int hand_over(int fd, struct batch *b)
{
    if (b->nmsg > 1)
        return sendmmsg(fd, b->msgs, (unsigned)b->nmsg, MSG_DONTWAIT);
    return sendmsg(fd, &b->msgs[0].msg_hdr, MSG_DONTWAIT) < 0 ? -1 : 1;
}

void wf_udp_tx_push(struct wf_udp_link *u)
{
    struct wf_udp_tx *t = &u->tx;
    struct batch b;
    t->blocked = false;
    while (t->head < t->npkts && !t->blocked) {
        const struct wf_udp_dest *dest = &t->dests[t->pkts[t->head].dest];
        struct wf_udp_socket *s = &u->socks[dest->v6][dest->slot];
        int rc = s->fd < 0 ? wf_udp_open_tx(s, dest->v6, dest->slot, u->variant) : 0;
        if (rc) {
            lose(u, 1, -rc);
            continue;
        }
        rc = build(u, &b, s);
        if (rc) {
            refused(u, &b, -rc);
            continue;
        }
        int n = hand_over(s->fd, &b);
        if (n > 0)
            sent(u, &b, n);
        else
            refused(u, &b, errno);
    }
}
