// SPDX-License-Identifier: BSD-2-Clause
// Packets wait here until flush(). Headers, pad and ICRC lie in the arena, long payload stays with
// the caller. The arena is filled in order, so the trailer of a packet and the headers of the next
// are one piece and a batch of n packets needs 2n + 1 pieces.
#include "link/udp_internal.h"

#include "base/guard.h"
#include "base/reason.h"

#include <errno.h>
#include <stdlib.h>

#define COPY_UP_TO 512 // payload this short costs less to copy than to refer to
#define ALIGNED(n) (((n) + 3) & ~(size_t)3)

static size_t arena_need(const struct wf_pkt *pkt, bool copy)
{
    return WF_HDR_MAX + (copy ? ALIGNED(pkt->len) : 4) + WF_ICRC_LEN;
}

static bool has_room(const struct wf_udp_tx *t, size_t arena, int iovs)
{
    return t->npkts < WF_UDP_TX_PKTS && t->niov + iovs <= WF_UDP_TX_IOVS &&
           t->ndest < WF_UDP_TX_DESTS && t->arena_used + arena <= WF_UDP_TX_ARENA;
}

static void start_over(struct wf_udp_tx *t)
{
    free(t->keep);
    t->keep = NULL;
    t->head = t->npkts = t->kept = 0;
    t->niov = t->ndest = t->alone_until = 0;
    t->arena_used = 0;
}

// Nearly all packets of a burst go where the last one went.
static uint16_t dest_index(struct wf_udp_tx *t, const struct wf_udp_dest *dest)
{
    for (int i = t->ndest; i-- > 0;)
        if (memcmp(&t->dests[i], dest, sizeof(*dest)) == 0)
            return (uint16_t)i;
    t->dests[t->ndest] = *dest;
    return (uint16_t)t->ndest++;
}

static void add_piece(struct wf_udp_tx *t, void *base, size_t len)
{
    t->iovs[t->niov++] = (struct iovec){base, len};
}

// Headers, payload and trailer in one piece; -EFAULT when the payload is not there.
static int put_copied(struct wf_udp_tx *t, uint8_t *at, int hdr, const struct wf_pkt *pkt)
{
    uint8_t *end = at + hdr;
    for (int i = 0; i < pkt->niov; end += pkt->iov[i++].iov_len)
        if (pkt->iov[i].iov_len && wf_guard_copy(end, pkt->iov[i].iov_base, pkt->iov[i].iov_len))
            return -EFAULT;
    size_t trailer = wf_packet_pad(pkt->len) + WF_ICRC_LEN;
    memset(end, 0, trailer);
    end += trailer;
    add_piece(t, at, (size_t)(end - at));
    t->arena_used += (size_t)(end - at);
    return 0;
}

static void put_referred(struct wf_udp_tx *t, uint8_t *at, int hdr, const struct wf_pkt *pkt)
{
    size_t trailer = wf_packet_pad(pkt->len) + WF_ICRC_LEN;
    add_piece(t, at, (size_t)hdr);
    for (int i = 0; i < pkt->niov; i++)
        if (pkt->iov[i].iov_len)
            add_piece(t, pkt->iov[i].iov_base, pkt->iov[i].iov_len);
    memset(at + hdr, 0, trailer);
    add_piece(t, at + hdr, trailer);
    t->arena_used += (size_t)hdr + trailer;
}

static int check_lengths(const struct wf_pkt *pkt)
{
    size_t sum = 0;
    for (int i = 0; i < pkt->niov; i++)
        sum += pkt->iov[i].iov_len;
    // Payload behind `remote` is for links to the same host only.
    return sum == pkt->len && !pkt->remote && sum < UINT16_MAX && pkt->niov < 256 ? 0 : -EINVAL;
}

// There is room.
static int put_packet(struct wf_udp_link *u, const struct wf_udp_dest *dest,
                      const struct wf_pkt *pkt, bool copy, uint32_t flip)
{
    struct wf_udp_tx *t = &u->tx;
    uint8_t *at = t->arena + t->arena_used;
    int hdr = wf_packet_encode_headers(pkt, at, WF_HDR_MAX), first = t->niov;
    if (hdr < 0)
        return hdr;
    if (copy && put_copied(t, at, hdr, pkt)) {
        u->counters.tx_bad_memory++;
        return wf_refuse(EFAULT, WF_R_LOCAL_FAULT, "%u bytes of payload to QP 0x%06x", pkt->len,
                         pkt->dqpn);
    }
    if (!copy)
        put_referred(t, at, hdr, pkt);
    t->pkts[t->npkts++] = (struct wf_udp_tx_pkt){
        .iov = (uint32_t)first,
        .niov = (uint16_t)(t->niov - first),
        .dest = dest_index(t, dest),
        .len = (uint32_t)hdr + pkt->len + wf_packet_pad(pkt->len) + WF_ICRC_LEN,
        .flip = flip,
    };
    return 0;
}

int wf_udp_tx_queue(struct wf_udp_link *u, const struct wf_path *path, const struct wf_pkt *pkt,
                    bool copy, uint32_t flip)
{
    struct wf_udp_tx *t = &u->tx;
    struct wf_udp_dest dest;
    int rc = check_lengths(pkt);
    if (!rc)
        rc = wf_udp_dest_of(path, pkt, &dest);
    if (rc)
        return rc;
    copy |= pkt->len <= COPY_UP_TO;
    size_t need = arena_need(pkt, copy);
    if (t->blocked || !has_room(t, need, pkt->niov + 2)) {
        wf_udp_tx_push(u);
        if (t->head < t->npkts)
            return -EAGAIN;
    }
    if (t->head == t->npkts)
        start_over(t);
    return put_packet(u, &dest, pkt, copy, flip);
}

static bool is_own(const struct wf_udp_tx *t, const struct iovec *iov)
{
    const uint8_t *base = iov->iov_base;
    return base >= t->arena && base < t->arena + WF_UDP_TX_ARENA;
}

// The socket is full: the callers' payload is ours only until flush() returns, so copy what waits.
static int keep_payload(struct wf_udp_tx *t)
{
    if (t->kept == t->npkts)
        return 0;
    uint32_t from = t->pkts[t->head].iov, to = (uint32_t)t->niov;
    size_t total = 0;
    for (uint32_t i = from; i < to; i++)
        total += is_own(t, &t->iovs[i]) ? 0 : t->iovs[i].iov_len;
    uint8_t *at = malloc(total + !total), *block = at;
    if (!at)
        return -ENOMEM;
    for (uint32_t i = from; i < to; i++)
        if (!is_own(t, &t->iovs[i])) {
            if (wf_guard_copy(at, t->iovs[i].iov_base, t->iovs[i].iov_len)) {
                free(block);
                return -EFAULT;
            }
            t->iovs[i].iov_base = at;
            at += t->iovs[i].iov_len;
        }
    free(t->keep); // what still waited of it was copied over
    t->keep = block;
    t->kept = t->npkts;
    return 0;
}

void wf_udp_tx_flush(struct wf_udp_link *u)
{
    struct wf_udp_tx *t = &u->tx;
    if (t->head == t->npkts)
        return;
    wf_udp_tx_push(u);
    if (t->head == t->npkts || keep_payload(t) == 0)
        return;
    u->counters.tx_other += (uint64_t)(t->npkts - t->head);
    wf_explain(WF_R_NO_MEMORY, "%d packets that wait for a full socket cannot be kept",
               t->npkts - t->head);
    t->head = t->npkts;
}
