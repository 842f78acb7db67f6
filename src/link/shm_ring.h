// SPDX-License-Identifier: BSD-2-Clause
// One-way rings between two processes (struct wf_ring): the sending and the receiving end. Plain
// memory operations only, so that tests and weftd use them without a fabric.
#ifndef WF_LINK_SHM_RING_H
#define WF_LINK_SHM_RING_H

#include "link/link.h"
#include "link/region.h"
#include "link/remote.h"

struct wf_ring_tx {
    struct wf_region *region; // the receiver's
    struct wf_ring *ring;
    uint32_t self; // the sender's slot
    uint32_t generation;
    uint32_t pos, area_pos;           // next cell, next byte of the payload area; free-running
    uint32_t consumed, area_consumed; // as last read from the receiver
    bool rung;                        // something was produced since the last wf_ring_notify()
};

struct wf_ring_rx {
    struct wf_ring *ring; // in our own region
    uint32_t slot;        // the sender's
    uint32_t generation;
    uint32_t pos, area_pos;
    bool probed;
    pid_t pid;        // of the sender, 0 when we cannot copy from it
    uint64_t dropped; // malformed cells
};

// Open slot `self`'s ring into `region`. `probe` is the sender's own region or NULL.
void wf_ring_tx_init(struct wf_ring_tx *tx, struct wf_region *region, uint32_t self,
                     uint64_t generation, const struct wf_region *probe);

// 0, -EAGAIN no room, -EMSGSIZE payload longer than this ring can carry now. `net` supplies the
// addresses of a datagram and may be NULL for connected services.
int wf_ring_send(struct wf_ring_tx *tx, const struct wf_pkt *pkt, const struct wf_path *net);

// May payload stay in the sender's memory?
static inline bool wf_ring_remote_ok(const struct wf_ring_tx *tx)
{
    return atomic_load_explicit(&tx->ring->remote_ok, memory_order_relaxed) == tx->generation;
}

// Make the receiver look, when it sleeps.
void wf_ring_notify(struct wf_ring_tx *tx, int doorbell);

void wf_ring_rx_init(struct wf_ring_rx *rx, struct wf_region *region, uint32_t slot);

// Is there (probably) a cell?
static inline bool wf_ring_ready(const struct wf_ring_rx *rx)
{
    uint64_t seq = atomic_load_explicit(&rx->ring->cells[rx->pos & (WF_RING_CELLS - 1)].seq,
                                        memory_order_acquire);
    return seq == ((uint64_t)rx->generation << 32 | (uint32_t)(rx->pos + 1));
}

// Has another generation of the sender opened the ring?
static inline bool wf_ring_restarted(const struct wf_ring_rx *rx)
{
    return (uint32_t)atomic_load_explicit(&rx->ring->generation, memory_order_relaxed) !=
           rx->generation;
}

// Deliver up to `budget` packets; the number taken, malformed ones included.
int wf_ring_poll(struct wf_ring_rx *rx, int budget,
                 void (*deliver)(void *arg, const struct wf_pkt *pkt), void *arg);

// One cell, already copied, into a packet. `area` is the payload area it refers to. 0 or -EPROTO.
// The packet points into `ext`, `iov`, `remote` and the cell or the area. *area_used: bytes of the
// area that belong to the cell.
struct wf_cell_parts {
    struct wf_cell_ext ext;
    struct iovec iov;
    struct wf_remote_payload remote;
    uint32_t area_used;
};
int wf_cell_decode(const struct wf_cell *cell, const uint8_t *area, struct wf_cell_parts *parts,
                   struct wf_pkt *pkt);

#endif
