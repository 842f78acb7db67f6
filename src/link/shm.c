// SPDX-License-Identifier: BSD-2-Clause
// The link to processes on the same host: one ring each way between any two of them.
#include "base/reason.h"
#include "link/fabric.h"
#include "link/shm_ring.h"

#include <errno.h>
#include <stdlib.h>

// Polled each time; of the other rings only a few, in turn, so that a poll that finds nothing costs
// the same however many processes there are.
#define HOT  4u
#define COLD 4u

struct shm_link {
    struct wf_link link;
    struct wf_fabric *f;
    struct wf_region *region;
    uint64_t known[WF_SLOTS / 64]; // senders that have an rx
    struct wf_ring_rx *rx[WF_SLOTS];
    unsigned nrx, turn;
    struct wf_ring_tx *tx[WF_SLOTS]; // by slot of the receiver
    int doorbell[WF_SLOTS];
    uint8_t dirty[WF_SLOTS]; // slots to notify at the next flush
    unsigned ndirty;
};

static struct wf_ring_tx *tx_to(struct shm_link *s, const struct wf_peer *peer)
{
    struct wf_ring_tx *tx = s->tx[peer->slot];
    if (tx && tx->region == peer->region)
        return tx;
    if (!tx)
        tx = s->tx[peer->slot] = calloc(1, sizeof(*tx));
    if (!tx)
        return NULL;
    wf_ring_tx_init(tx, peer->region, wf_fabric_slot(s->f), wf_fabric_generation(s->f),
                    wf_fabric_region(s->f));
    s->doorbell[peer->slot] = peer->doorbell;
    return tx;
}

static int shm_send(struct wf_link *l, const struct wf_path *path, const struct wf_pkt *pkt)
{
    struct shm_link *s = (struct shm_link *)l;
    const struct wf_peer *peer = path->peer;
    if (!peer || !peer->alive)
        return -ENETUNREACH;
    struct wf_ring_tx *tx = tx_to(s, peer);
    if (!tx)
        return -EAGAIN;
    bool first = !tx->rung;
    int ret = wf_ring_send(tx, pkt, path);
    if (ret == 0 && first)
        s->dirty[s->ndirty++] = (uint8_t)peer->slot;
    return ret;
}

static void shm_flush(struct wf_link *l)
{
    struct shm_link *s = (struct shm_link *)l;
    for (unsigned i = 0; i < s->ndirty; i++)
        wf_ring_notify(s->tx[s->dirty[i]], s->doorbell[s->dirty[i]]);
    s->ndirty = 0;
}

static void meet(struct shm_link *s, unsigned word, uint64_t fresh)
{
    for (; fresh; fresh &= fresh - 1) {
        uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(fresh);
        struct wf_ring_rx *rx = malloc(sizeof(*rx));
        if (!rx)
            return;
        wf_ring_rx_init(rx, s->region, slot);
        s->rx[s->nrx++] = rx;
        s->known[word] |= 1ull << slot % 64;
    }
}

static int poll_ring(struct shm_link *s, unsigned i, int budget)
{
    struct wf_ring_rx *rx = s->rx[i];
    if (!wf_ring_ready(rx) && !wf_ring_restarted(rx))
        return 0;
    int n = wf_ring_poll(rx, budget, s->link.deliver, s->link.arg);
    if (n && i >= HOT) {
        unsigned to = s->turn % HOT;
        s->rx[i] = s->rx[to];
        s->rx[to] = rx;
    }
    return n;
}

static int shm_poll(struct wf_link *l, int budget)
{
    struct shm_link *s = (struct shm_link *)l;
    int n = 0;
    for (unsigned w = 0; w < WF_SLOTS / 64; w++) {
        uint64_t fresh =
            atomic_load_explicit(&s->region->senders[w], memory_order_acquire) & ~s->known[w];
        if (fresh)
            meet(s, w, fresh);
    }
    for (unsigned i = 0; i < HOT && i < s->nrx && n < budget; i++)
        n += poll_ring(s, i, budget - n);
    if (s->nrx <= HOT)
        return n;
    // About to sleep, the engine must know for sure.
    unsigned cold = s->nrx - HOT;
    unsigned look = cold < COLD ? cold : COLD;
    if (atomic_load_explicit(&s->region->sleeping, memory_order_relaxed))
        look = cold;
    for (unsigned k = 0; k < look && n < budget; k++)
        n += poll_ring(s, HOT + s->turn++ % cold, budget - n);
    return n;
}

static int shm_fds(struct wf_link *l, int *fds, int max)
{
    struct shm_link *s = (struct shm_link *)l;
    if (max < 1)
        return 0;
    fds[0] = wf_fabric_doorbell(s->f);
    return 1;
}

static void shm_destroy(struct wf_link *l)
{
    struct shm_link *s = (struct shm_link *)l;
    for (unsigned i = 0; i < WF_SLOTS; i++)
        free(s->tx[i]);
    for (unsigned i = 0; i < s->nrx; i++)
        free(s->rx[i]);
    free(s);
}

uint32_t wf_shm_max_payload(struct wf_link *l, const struct wf_peer *peer)
{
    struct wf_ring_tx *tx = peer->alive ? tx_to((struct shm_link *)l, peer) : NULL;
    return tx && wf_ring_remote_ok(tx) ? 1u << 31 : WF_SHM_COPY_MAX;
}

bool wf_shm_unseen(struct wf_link *l, const struct wf_peer *peer)
{
    const struct wf_ring_tx *tx = ((struct shm_link *)l)->tx[peer->slot];
    if (!tx || tx->region != peer->region)
        return false;
    uint64_t v = atomic_load_explicit(&tx->ring->consumed, memory_order_relaxed);
    uint32_t taken = v >> 32 == tx->generation ? (uint32_t)v : 0;
    return tx->pos != taken;
}

int wf_shm_link_create(struct wf_fabric *f, struct wf_link **out)
{
    static const struct wf_link_ops ops = {
        .name = "shm",
        .send = shm_send,
        .flush = shm_flush,
        .poll = shm_poll,
        .fds = shm_fds,
        .destroy = shm_destroy,
    };
    struct shm_link *s = calloc(1, sizeof(*s));
    if (!s)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "the link to processes of this host");
    s->link.ops = &ops;
    s->link.max_payload = WF_SHM_COPY_MAX;
    s->f = f;
    s->region = wf_fabric_region(f);
    *out = &s->link;
    return 0;
}
