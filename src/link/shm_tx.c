// SPDX-License-Identifier: BSD-2-Clause
// Sending end of a ring: pick the kind of cell, fill it, store seq last.
#include "base/guard.h"
#include "link/shm_ring.h"
#include "wire/opcode.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define RETH_LEN 16u
#define UNIT     64u // allocation unit of the payload area

void wf_ring_tx_init(struct wf_ring_tx *tx, struct wf_region *region, uint32_t self,
                     uint64_t generation, const struct wf_region *probe)
{
    struct wf_ring *ring = &region->rings[self];
    *tx = (struct wf_ring_tx){
        .region = region, .ring = ring, .self = self, .generation = (uint32_t)generation};
    if (probe) {
        ring->probe_addr = probe->probe_addr;
        ring->probe_value = probe->probe_value;
    }
    ring->pid = probe ? probe->pid : 0;
    atomic_store_explicit(&ring->generation, generation, memory_order_release);
    atomic_fetch_or(&region->senders[self / 64], 1ull << self % 64);
}

// What the receiver has taken, or 0 while it still counts for an earlier generation of ours.
static uint32_t taken(const _Atomic uint64_t *word, uint32_t generation, uint32_t before)
{
    uint64_t v = atomic_load_explicit(word, memory_order_acquire);
    return v >> 32 == generation ? (uint32_t)v : before;
}

static bool cell_free(struct wf_ring_tx *tx)
{
    if (tx->pos - tx->consumed < WF_RING_CELLS)
        return true;
    tx->consumed = taken(&tx->ring->consumed, tx->generation, tx->consumed);
    return tx->pos - tx->consumed < WF_RING_CELLS;
}

// Contiguous room for n bytes; skips the end of the area when they do not fit there.
static bool area_alloc(struct wf_ring_tx *tx, uint32_t n, uint32_t *off)
{
    uint32_t start = tx->area_pos, at = start % WF_RING_BYTES;
    n = (n + UNIT - 1) & ~(UNIT - 1);
    if (at + n > WF_RING_BYTES)
        start += WF_RING_BYTES - at;
    uint32_t end = start + n;
    if (end - tx->area_consumed > WF_RING_BYTES) {
        tx->area_consumed = taken(&tx->ring->area_consumed, tx->generation, tx->area_consumed);
        if (end - tx->area_consumed > WF_RING_BYTES)
            return false;
    }
    tx->area_pos = end;
    *off = start % WF_RING_BYTES;
    return true;
}

// 0, or -EFAULT when the program's memory is gone.
static int gather(uint8_t *dst, const struct wf_pkt *pkt)
{
    uint32_t left = pkt->len;
    for (int i = 0; i < pkt->niov && left; i++) {
        size_t n = pkt->iov[i].iov_len < left ? pkt->iov[i].iov_len : left;
        if (wf_guard_copy(dst, pkt->iov[i].iov_base, n))
            return -EFAULT;
        dst += n;
        left -= (uint32_t)n;
    }
    return 0;
}

static void fill_ext(struct wf_cell_ext *e, const struct wf_pkt *pkt, const struct wf_path *net)
{
    *e = (struct wf_cell_ext){
        .va = pkt->va,
        .rkey = pkt->rkey,
        .dma_len = pkt->dma_len,
        .swap_add = pkt->swap_add,
        .compare = pkt->compare,
        .atomic_orig = pkt->atomic_orig,
        .feth = pkt->feth,
        .qkey = pkt->qkey,
        .xrc_srqn = pkt->xrc_srqn,
        .pkey = pkt->pkey,
        .ifindex = pkt->ifindex,
    };
    if (pkt->sgid && pkt->dgid) { // weftd passing a datagram on
        memcpy(e->sgid, pkt->sgid->raw, 16);
        memcpy(e->dgid, pkt->dgid->raw, 16);
        e->tclass = pkt->tclass;
        e->hop_limit = pkt->hop_limit;
        e->flow_label = pkt->flow_label;
    } else if (net) {
        memcpy(e->sgid, net->sgid.raw, 16);
        memcpy(e->dgid, net->dgid.raw, 16);
        e->tclass = net->tclass;
        e->hop_limit = net->hop_limit;
        e->flow_label = net->flow_label;
    }
}

static int put_area(struct wf_ring_tx *tx, struct wf_cell *c, const struct wf_pkt *pkt,
                    const struct wf_path *net)
{
    uint32_t off, before = tx->area_pos;
    if (!area_alloc(tx, sizeof(struct wf_cell_ext) + pkt->len, &off))
        return -EAGAIN;
    uint8_t *p = tx->ring->area + off;
    fill_ext((struct wf_cell_ext *)p, pkt, net);
    if (gather(p + sizeof(struct wf_cell_ext), pkt)) {
        tx->area_pos = before;
        return -EFAULT;
    }
    c->kind = WF_CELL_AREA;
    c->niov = 0;
    c->off = off;
    return 0;
}

static int put_remote(struct wf_ring_tx *tx, struct wf_cell *c, const struct wf_pkt *pkt,
                      const struct wf_path *net)
{
    uint8_t svc = WF_OPCODE_SVC(pkt->opcode);
    uint32_t off, list = sizeof(struct iovec) * (uint32_t)pkt->niov;
    if ((svc != WF_SVC_RC && svc != WF_SVC_XRC) || pkt->niov > WF_REMOTE_IOV ||
        !wf_ring_remote_ok(tx))
        return -EMSGSIZE;
    if (!area_alloc(tx, sizeof(struct wf_cell_ext) + list, &off))
        return -EAGAIN;
    uint8_t *p = tx->ring->area + off;
    fill_ext((struct wf_cell_ext *)p, pkt, net);
    memcpy(p + sizeof(struct wf_cell_ext), pkt->iov, list);
    c->kind = WF_CELL_REMOTE;
    c->niov = (uint8_t)pkt->niov;
    c->off = off;
    return 0;
}

static int put_here(struct wf_cell *c, const struct wf_pkt *pkt, uint32_t flags)
{
    uint8_t *p = c->data;
    if (flags & WF_H_RETH) {
        memcpy(p, &pkt->va, 8);
        memcpy(p + 8, &pkt->rkey, 4);
        memcpy(p + 12, &pkt->dma_len, 4);
        p += RETH_LEN;
    }
    c->kind = WF_CELL_HERE;
    c->niov = 0;
    c->off = 0;
    return gather(p, pkt);
}

// Headers that only struct wf_cell_ext has room for.
#define NEEDS_EXT (WF_H_XRCETH | WF_H_DETH | WF_H_FETH | WF_H_ATOMICETH | WF_H_ATOMICACK)

static bool fits_here(const struct wf_pkt *pkt, uint32_t flags)
{
    return !(flags & NEEDS_EXT) && pkt->pkey == 0xffff &&
           pkt->len + (flags & WF_H_RETH ? RETH_LEN : 0) <= WF_CELL_INLINE;
}

int wf_ring_send(struct wf_ring_tx *tx, const struct wf_pkt *pkt, const struct wf_path *net)
{
    if (!cell_free(tx))
        return -EAGAIN;
    uint32_t flags = wf_opcode_info(pkt->opcode)->flags;
    struct wf_cell *c = &tx->ring->cells[tx->pos & (WF_RING_CELLS - 1)];
    int ret = 0;
    if (fits_here(pkt, flags))
        ret = put_here(c, pkt, flags);
    else if (pkt->len <= WF_SHM_COPY_MAX)
        ret = put_area(tx, c, pkt, net);
    else
        ret = put_remote(tx, c, pkt, net);
    if (ret)
        return ret;
    c->opcode = pkt->opcode;
    c->flags = pkt->flags;
    c->dqpn = pkt->dqpn;
    c->psn = pkt->psn;
    c->npsn = pkt->npsn;
    c->len = pkt->len;
    c->sqpn = pkt->sqpn;
    if (flags & WF_H_AETH)
        c->aeth = (uint32_t)pkt->syndrome << 24 | (pkt->msn & 0xffffff);
    else
        c->imm_ieth = flags & WF_H_IETH ? pkt->ieth : pkt->imm;
    tx->pos++;
    atomic_store_explicit(&c->seq, (uint64_t)tx->generation << 32 | tx->pos, memory_order_release);
    tx->rung = true;
    return 0;
}

void wf_ring_notify(struct wf_ring_tx *tx, int doorbell)
{
    if (!tx->rung)
        return;
    tx->rung = false;
    // The receiver sets `sleeping` and then looks at the rings; we store a cell and then look at
    // `sleeping`: one of the two sees the other only with both fences.
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load_explicit(&tx->region->sleeping, memory_order_relaxed))
        return;
    uint64_t one = 1;
    if (atomic_exchange_explicit(&tx->region->sleeping, 0, memory_order_acq_rel) && doorbell >= 0)
        (void)!write(doorbell, &one, sizeof(one));
}
