// SPDX-License-Identifier: BSD-2-Clause
#include "link/onesided.h"
#include "wire/packet.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

// The checks of the responder (IBA 9.7.4.1) made from outside, on its published tables. Whatever
// does not hold is left to the responder, which answers with the right NAK.
static bool qp_admits(const struct wf_qp_entry *q, const struct wf_onesided *op, uint32_t access)
{
    return atomic_load_explicit(&q->ready, memory_order_acquire) == 1 &&
           q->remote_qpn == op->sqpn && q->access & access &&
           atomic_load_explicit(&q->epsn, memory_order_relaxed) == op->psn;
}

static bool key_admits(const struct wf_key_entry *k, const struct wf_qp_entry *q,
                       const struct wf_onesided *op, uint32_t access, uint64_t *target)
{
    uint64_t iova = k->iova, len = k->len, addr = k->addr;
    if (k->flags & WF_KEY_SEGMENTED || k->pd != q->pd || (k->access & access) != access ||
        (k->qpn && k->qpn != op->dqpn))
        return false;
    if (op->va < iova || op->va - iova > len || op->len > len - (op->va - iova))
        return false;
    *target = addr + (op->va - iova);
    return true;
}

// The owner clears the key and then waits until no hazard names it; we name it and then look at the
// key. Sequentially consistent on both sides, one of the two sees the other.
static _Atomic uint32_t *enter(const struct wf_peer *peer, uint32_t key)
{
    struct wf_region *r = peer->region;
    for (int k = 0; k < WF_HAZARDS_PER_SLOT; k++) {
        _Atomic uint32_t *h = &r->hazard[peer->self % WF_SLOTS][k];
        uint32_t none = 0;
        if (atomic_compare_exchange_strong(h, &none, key))
            return h;
    }
    return NULL;
}

// One cross-process copy. It stops early only where it meets a bad page on either side.
static int copy(const struct wf_onesided *op, uint64_t target, bool write)
{
    struct iovec remote = {(void *)(uintptr_t)target, op->len};
    ssize_t n = write ? process_vm_writev(op->peer->pid, op->iov, (unsigned)op->niov, &remote, 1, 0)
                      : process_vm_readv(op->peer->pid, op->iov, (unsigned)op->niov, &remote, 1, 0);
    return n >= 0 && (uint64_t)n == op->len ? 0 : -EAGAIN;
}

// One request more was executed, as the responder would count it.
static int advance(struct wf_qp_entry *q, const struct wf_onesided *op)
{
    uint32_t want = op->psn;
    if (!atomic_compare_exchange_strong(&q->epsn, &want, (op->psn + op->npsn) & WF_PSN_MASK))
        return -EAGAIN;
    uint32_t msn = atomic_load_explicit(&q->msn, memory_order_relaxed);
    atomic_store_explicit(&q->msn, (msn + 1) & 0xffffff, memory_order_release);
    return 0;
}

static int execute(const struct wf_onesided *op, uint32_t access)
{
    const struct wf_peer *p = op->peer;
    uint64_t target;
    if (!p->alive || !p->cma || op->dqpn >> 16 != p->slot ||
        WF_KEY_INDEX(op->rkey) >= WF_KEYTAB_SIZE)
        return -EAGAIN;
    struct wf_qp_entry *q = &p->region->qps[op->dqpn % WF_QP_PER_PROCESS];
    if (!qp_admits(q, op, access))
        return -EAGAIN;
    if (op->len == 0) // of no bytes key and address are not looked at
        return op->final ? advance(q, op) : 0;
    _Atomic uint32_t *hazard = op->rkey ? enter(op->peer, op->rkey) : NULL;
    if (!hazard)
        return -EAGAIN;
    struct wf_key_entry *k = &p->region->keys[WF_KEY_INDEX(op->rkey)];
    int ret = -EAGAIN;
    if (atomic_load(&k->key) == op->rkey && key_admits(k, q, op, access, &target))
        ret = copy(op, target, access == IBV_ACCESS_REMOTE_WRITE);
    if (ret == 0 && op->final)
        ret = advance(q, op);
    atomic_store_explicit(hazard, 0, memory_order_release);
    return ret;
}

int wf_onesided_write(const struct wf_onesided *op)
{
    return execute(op, IBV_ACCESS_REMOTE_WRITE);
}

int wf_onesided_read(const struct wf_onesided *op)
{
    return execute(op, IBV_ACCESS_REMOTE_READ);
}

static bool in_use(struct wf_region *region, uint32_t key)
{
    for (uint32_t i = 0; i < WF_SLOTS; i++)
        for (int k = 0; k < WF_HAZARDS_PER_SLOT; k++)
            if (atomic_load_explicit(&region->hazard[i][k], memory_order_acquire) == key)
                return true;
    return false;
}

void wf_hazard_wait(struct wf_region *region, uint32_t key)
{
    atomic_thread_fence(memory_order_seq_cst);
    // A copy takes microseconds. A peer stopped in the middle of one may take for ever, and to go
    // on without it would let it write into memory that is no longer registered.
    for (unsigned n = 0; in_use(region, key); n++) {
        struct timespec ts = {0, 100000};
        if (n < 1000)
            sched_yield();
        else
            nanosleep(&ts, NULL);
    }
}

// A hazard of a QP holds its number. A key of the same value delays somebody a little, no more.
_Atomic uint32_t *wf_sender_hold(const struct wf_peer *peer, uint32_t sqpn, uint32_t dqpn)
{
    if (!peer->alive || sqpn >> 16 != peer->slot)
        return NULL;
    const struct wf_qp_entry *q = &peer->region->qps[sqpn % WF_QP_PER_PROCESS];
    _Atomic uint32_t *hazard = enter(peer, sqpn);
    if (hazard && atomic_load(&q->ready) == 1 && q->remote_qpn == dqpn)
        return hazard;
    if (hazard)
        atomic_store_explicit(hazard, 0, memory_order_release);
    return NULL;
}

bool wf_sender_release(const struct wf_peer *peer, _Atomic uint32_t *hazard, uint32_t sqpn)
{
    const struct wf_qp_entry *q = &peer->region->qps[sqpn % WF_QP_PER_PROCESS];
    bool still = atomic_load(&q->ready) == 1;
    atomic_store_explicit(hazard, 0, memory_order_release);
    return still;
}

// The copier may have been stopped, and QPs fail within the engine, which must go on: the copier
// looks again when it is done.
void wf_sender_wait(struct wf_region *region, uint32_t qpn)
{
    enum { YIELDS = 100, NAPS = 500 }; // 50 ms
    atomic_thread_fence(memory_order_seq_cst);
    for (unsigned n = 0; n < YIELDS + NAPS && in_use(region, qpn); n++) {
        struct timespec ts = {0, 100000};
        if (n < YIELDS)
            sched_yield();
        else
            nanosleep(&ts, NULL);
    }
}
