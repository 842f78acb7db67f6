// SPDX-License-Identifier: BSD-2-Clause
// Receiving end of a ring. The sender may change anything at any time, so a cell and the headers in
// the payload area are copied first and the copies checked. Payload is only data: it may change
// while it is copied out, which is the sender's own affair.
#include "base/reason.h"
#include "link/fabric_impl.h"
#include "link/shm_ring.h"
#include "wire/opcode.h"

#include <errno.h>
#include <string.h>

#define RETH_LEN 16u
#define UNIT     64u

void wf_ring_rx_init(struct wf_ring_rx *rx, struct wf_region *region, uint32_t slot)
{
    *rx = (struct wf_ring_rx){.ring = &region->rings[slot], .slot = slot};
}

static void from_ext(struct wf_pkt *pkt, const struct wf_cell_ext *e, uint32_t flags)
{
    pkt->va = e->va;
    pkt->rkey = e->rkey;
    pkt->dma_len = e->dma_len;
    pkt->swap_add = e->swap_add;
    pkt->compare = e->compare;
    pkt->atomic_orig = e->atomic_orig;
    pkt->feth = e->feth;
    pkt->qkey = e->qkey;
    pkt->xrc_srqn = e->xrc_srqn & WF_QPN_MASK;
    pkt->pkey = e->pkey;
    if (flags & WF_H_DETH) {
        pkt->sgid = (const union ibv_gid *)e->sgid;
        pkt->dgid = (const union ibv_gid *)e->dgid;
        pkt->tclass = e->tclass;
        pkt->hop_limit = e->hop_limit;
        pkt->flow_label = e->flow_label;
        pkt->ifindex = e->ifindex;
    }
}

static int decode_here(const struct wf_cell *c, uint32_t flags, struct wf_cell_parts *parts,
                       struct wf_pkt *pkt)
{
    uint32_t skip = flags & WF_H_RETH ? RETH_LEN : 0;
    if (c->len > WF_CELL_INLINE - skip || flags & WF_H_DETH)
        return -EPROTO;
    if (skip) {
        memcpy(&pkt->va, c->data, 8);
        memcpy(&pkt->rkey, c->data + 8, 4);
        memcpy(&pkt->dma_len, c->data + 12, 4);
    }
    pkt->pkey = 0xffff;
    parts->iov = (struct iovec){(void *)(c->data + skip), c->len};
    return 0;
}

// Room that the cell claims in the area, headers first.
static int claim_area(const struct wf_cell *c, const uint8_t *area, uint64_t body,
                      struct wf_cell_parts *parts)
{
    uint64_t size = sizeof(parts->ext) + body;
    size = (size + UNIT - 1) & ~(uint64_t)(UNIT - 1);
    if (c->off % UNIT || c->off >= WF_RING_BYTES || size > WF_RING_BYTES - c->off)
        return -EPROTO;
    memcpy(&parts->ext, area + c->off, sizeof(parts->ext));
    parts->area_used = (uint32_t)size;
    return 0;
}

static int decode_area(const struct wf_cell *c, const uint8_t *area, struct wf_cell_parts *parts)
{
    if (c->len > WF_SHM_COPY_MAX || claim_area(c, area, c->len, parts))
        return -EPROTO;
    parts->iov = (struct iovec){(void *)(area + c->off + sizeof(parts->ext)), c->len};
    return 0;
}

static int decode_remote(const struct wf_cell *c, const uint8_t *area, struct wf_cell_parts *parts)
{
    struct wf_remote_payload *r = &parts->remote;
    uint64_t sum = 0;
    if (c->niov == 0 || c->niov > WF_REMOTE_IOV || c->len > 1u << 31 ||
        claim_area(c, area, sizeof(struct iovec) * c->niov, parts))
        return -EPROTO;
    r->niov = c->niov;
    r->len = c->len;
    memcpy(r->iov, area + c->off + sizeof(parts->ext), sizeof(struct iovec) * c->niov);
    for (int i = 0; i < r->niov; i++) {
        if (r->iov[i].iov_len > 1u << 31)
            return -EPROTO;
        sum += r->iov[i].iov_len;
    }
    return sum >= c->len ? 0 : -EPROTO;
}

int wf_cell_decode(const struct wf_cell *c, const uint8_t *area, struct wf_cell_parts *parts,
                   struct wf_pkt *pkt)
{
    const struct wf_opcode_info *info = wf_opcode_info(c->opcode);
    uint32_t flags = info->flags;
    parts->area_used = 0;
    memset(pkt, 0, sizeof(*pkt));
    pkt->opcode = c->opcode;
    pkt->flags = c->flags;
    pkt->dqpn = c->dqpn & WF_QPN_MASK;
    pkt->psn = c->psn & WF_PSN_MASK;
    pkt->npsn = c->npsn & WF_PSN_MASK;
    pkt->len = c->len;
    pkt->sqpn = c->sqpn & WF_QPN_MASK;
    int ret = -EPROTO;
    if (c->kind == WF_CELL_HERE)
        ret = decode_here(c, flags, parts, pkt);
    else if (c->kind == WF_CELL_AREA)
        ret = decode_area(c, area, parts);
    else if (c->kind == WF_CELL_REMOTE)
        ret = decode_remote(c, area, parts);
    if (ret || !info->name || !c->npsn || (c->len && !(flags & WF_F_PAYLOAD)))
        return -EPROTO;
    if (c->kind != WF_CELL_HERE)
        from_ext(pkt, &parts->ext, flags);
    if (flags & WF_H_AETH) {
        pkt->syndrome = (uint8_t)(c->aeth >> 24);
        pkt->msn = c->aeth & 0xffffff;
    } else if (flags & WF_H_IETH) {
        pkt->ieth = c->imm_ieth;
    } else {
        pkt->imm = c->imm_ieth;
    }
    if (c->kind == WF_CELL_REMOTE) {
        pkt->remote = &parts->remote;
    } else {
        pkt->iov = &parts->iov;
        pkt->niov = c->len ? 1 : 0;
    }
    return 0;
}

static void publish(struct wf_ring_rx *rx)
{
    uint64_t high = (uint64_t)rx->generation << 32;
    atomic_store_explicit(&rx->ring->area_consumed, high | rx->area_pos, memory_order_release);
    atomic_store_explicit(&rx->ring->consumed, high | rx->pos, memory_order_release);
}

// Another process uses the slot now, or the first one does.
static void restart(struct wf_ring_rx *rx)
{
    uint64_t g = atomic_load_explicit(&rx->ring->generation, memory_order_acquire);
    pid_t pid = rx->ring->pid;
    rx->generation = (uint32_t)g;
    rx->pos = rx->area_pos = 0;
    rx->pid = wf_region_probe(pid, rx->ring->probe_addr, rx->ring->probe_value) ? pid : 0;
    publish(rx);
    atomic_store_explicit(&rx->ring->remote_ok, rx->pid ? rx->generation : 0, memory_order_release);
}

// Skip what the sender skipped at the end of the area, too.
static void take_area(struct wf_ring_rx *rx, const struct wf_cell *c, uint32_t used)
{
    rx->area_pos += (c->off - rx->area_pos) % WF_RING_BYTES + used;
}

int wf_ring_poll(struct wf_ring_rx *rx, int budget,
                 void (*deliver)(void *arg, const struct wf_pkt *pkt), void *arg)
{
    struct wf_cell_parts parts;
    struct wf_cell cell;
    struct wf_pkt pkt;
    int n = 0;
    if (wf_ring_restarted(rx))
        restart(rx);
    for (; n < budget && wf_ring_ready(rx); n++) {
        memcpy((void *)&cell, (void *)&rx->ring->cells[rx->pos & (WF_RING_CELLS - 1)],
               sizeof(cell));
        rx->pos++;
        int ret = wf_cell_decode(&cell, rx->ring->area, &parts, &pkt);
        if (parts.area_used)
            take_area(rx, &cell, parts.area_used);
        parts.remote.pid = rx->pid;
        if (ret || (pkt.remote && !rx->pid)) {
            rx->dropped++;
            wf_explain(WF_R_BAD_PACKET, "cell from slot %u, opcode 0x%02x", rx->slot, cell.opcode);
            continue;
        }
        deliver(arg, &pkt);
        if ((n & 63) == 63)
            publish(rx);
    }
    if (n)
        publish(rx);
    return n;
}
