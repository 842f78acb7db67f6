// SPDX-License-Identifier: BSD-2-Clause
// Progress: receive, run QPs that have work, fire timers. Done by whoever calls in, and by the
// engine's thread when nobody does.
#include "base/clock.h"
#include "engine/engine.h"
#include "engine/tap.h"

#include <sched.h>

#define RX_BUDGET 64
// Rounds in which the loop link and ready QPs may feed each other before the lock is given up.
#define MAX_ROUNDS 64
// With no sign of UDP traffic its socket, which costs a system call, is looked at now and then
// only.
#define UDP_IDLE_SKIP 64u
#define UDP_BUSY_NS   1000000u
// Polls in vain after which the CPU is offered to others: hosts may have more pollers than cores.
#define YIELD_AFTER     256u
#define UDP_POLL_WEIGHT 31u // a look into empty sockets lasts as long as so many into empty rings
// Polls in vain read the clock this often: enough for timers, which are never that exact.
#define CLOCK_EVERY 8u
#define PAUSE_NS    15000u

static void push(struct wf_qp_list *l, struct wf_qp *qp)
{
    qp->ready_next = NULL;
    if (l->tail)
        l->tail->ready_next = qp;
    else
        l->head = qp;
    l->tail = qp;
}

static struct wf_qp *pop(struct wf_qp_list *l)
{
    struct wf_qp *qp = l->head;
    if (qp) {
        l->head = qp->ready_next;
        if (!l->head)
            l->tail = NULL;
    }
    return qp;
}

static void unlink_from(struct wf_qp_list *l, struct wf_qp *qp)
{
    struct wf_qp_list rest = {0};
    struct wf_qp *q;
    while ((q = pop(l)))
        if (q != qp)
            push(&rest, q);
    *l = rest;
}

void wf_ready(struct wf_qp *qp)
{
    struct wf_hca *h = wf_hca_of(qp);
    h->urgent += !qp->on_ready || qp->lazy;
    qp->lazy = false;
    if (qp->on_ready)
        return;
    qp->on_ready = true;
    push(&h->ready, qp);
}

void wf_ready_lazily(struct wf_qp *qp)
{
    if (qp->on_ready)
        return;
    qp->on_ready = qp->lazy = true;
    push(&wf_hca_of(qp)->ready, qp);
}

void wf_forget(struct wf_qp *qp)
{
    struct wf_hca *h = wf_hca_of(qp);
    if (qp->on_ready) {
        unlink_from(&h->ready, qp);
        unlink_from(&h->blocked, qp);
        qp->on_ready = qp->lazy = false;
    }
    wf_heap_remove(h, qp);
}

static void run_one(struct wf_hca *h, struct wf_qp *qp)
{
    wf_qp_run(qp);
    if (qp->blocked && !qp->on_ready) {
        qp->on_ready = true;
        push(&h->blocked, qp);
    }
}

void wf_qp_run_now(struct wf_qp *qp)
{
    // Blocked QPs keep their turn, so that order among them stays fair.
    if (!qp->blocked)
        run_one(wf_hca_of(qp), qp);
}

static void run_round(struct wf_hca *h)
{
    struct wf_qp_list round = h->ready;
    h->ready = (struct wf_qp_list){0};
    h->urgent = h->ack_waits = 0;
    struct wf_qp *qp;
    while ((qp = pop(&round))) {
        qp->on_ready = qp->lazy = false;
        run_one(h, qp);
    }
}

static void flush_links(struct wf_hca *h)
{
    if (h->shm)
        h->shm->ops->flush(h->shm);
    if (h->udp)
        h->udp->ops->flush(h->udp);
}

void wf_run_ready(struct wf_hca *h)
{
    for (int i = 0; i < MAX_ROUNDS; i++) {
        int got = h->loop ? h->loop->ops->poll(h->loop, RX_BUDGET) : 0;
        if (!got && (!h->ready.head || i > 1 || h->env.posting))
            break;
        run_round(h);
    }
    flush_links(h);
}

// For callers that may leave acknowledgements to whoever comes next: a system call less before the
// program's own answer. Within the host an acknowledgement costs little, and sooner is better.
void wf_run_urgent(struct wf_hca *h)
{
    bool patient = h->udp_qps && h->threaded && h->mode == WF_THREAD_WATCH && !h->urgent;
    if (!patient || (h->loop && h->loop->ops->poll(h->loop, RX_BUDGET))) {
        wf_run_ready(h);
        return;
    }
    flush_links(h);
}

static void retry_blocked(struct wf_hca *h)
{
    struct wf_qp *qp;
    struct wf_qp_list blocked = h->blocked;
    h->blocked = (struct wf_qp_list){0};
    while ((qp = pop(&blocked))) {
        push(&h->ready, qp);
        h->urgent++;
    }
}

static int poll_udp(struct wf_hca *h)
{
    if (!h->udp)
        return 0;
    bool busy = h->udp_qps || h->env.now < h->udp_busy_until || h->mode == WF_THREAD_DOZE;
    if (!busy && ++h->udp_skip < UDP_IDLE_SKIP)
        return 0;
    h->udp_skip = 0;
    int got = h->udp->ops->poll(h->udp, RX_BUDGET);
    if (got)
        h->udp_busy_until = h->env.now + UDP_BUSY_NS;
    else
        h->empty_polls += UDP_POLL_WEIGHT;
    return got;
}

int wf_receive_locked(struct wf_hca *h)
{
    int got = 0;
    if (!h->fresh && ++h->stale_polls >= CLOCK_EVERY) {
        h->stale_polls = 0;
        wf_now(h);
    }
    if (h->shm)
        got += h->shm->ops->poll(h->shm, RX_BUDGET);
    got += poll_udp(h);
    if (__builtin_expect(h->tap != NULL, 0))
        wf_tap_poll(h);
    if (h->blocked.head)
        retry_blocked(h);
    if (wf_heap_next(h) <= h->env.now)
        wf_heap_expire(h);
    return got;
}

void wf_send_locked(struct wf_hca *h)
{
    if (!h->fresh)
        wf_now(h);
    wf_run_ready(h);
}

int wf_progress_locked(struct wf_hca *h)
{
    int got = wf_receive_locked(h);
    if (got || h->ready.head)
        wf_send_locked(h);
    return got;
}

// Polls without a pause, for long enough: bursts of polls between other work do not count.
static bool in_earnest(struct wf_hca *h)
{
    if (!h->fresh)
        wf_now(h);
    if (h->env.now - h->polled_at > PAUSE_NS)
        h->burst_at = h->env.now;
    h->polled_at = h->env.now;
    return h->env.now - h->burst_at > h->earnest_ns;
}

bool wf_polled_locked(struct wf_hca *h, int got)
{
    h->polls++;
    // Somebody polls in earnest: the thread may leave the work to them.
    if (h->mode == WF_THREAD_DOZE && h->threaded && in_earnest(h)) {
        h->mode = WF_THREAD_WATCH;
        atomic_store_explicit(&h->region->sleeping, 0, memory_order_relaxed);
        wf_thread_kick(h);
    }
    h->empty_polls = got ? 0 : h->empty_polls + 1;
    if (h->empty_polls < YIELD_AFTER)
        return false;
    h->empty_polls = 0;
    return true;
}

void wf_hca_progress(struct wf_hca *h)
{
    wf_enter_poll(h);
    bool yield = wf_polled_locked(h, wf_progress_locked(h));
    pthread_mutex_unlock(&h->lock);
    if (yield)
        sched_yield();
}
