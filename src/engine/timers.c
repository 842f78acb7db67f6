// SPDX-License-Identifier: BSD-2-Clause
// Deadlines of QPs: a binary heap by `heap_key`. A deadline that moves away leaves its QP where it
// is; when the old time comes, the QP is put back under the new one. So progress, which moves
// deadlines all the time, costs nothing here.
#include "base/clock.h"
#include "engine/engine.h"

#include <stdlib.h>

// heap[0] is not used: heap_pos 0 means "not in the heap".
static void place(struct wf_hca *h, uint32_t pos, struct wf_qp *qp)
{
    h->heap[pos] = qp;
    qp->heap_pos = pos;
}

static void sift_up(struct wf_hca *h, uint32_t pos)
{
    struct wf_qp *qp = h->heap[pos];
    while (pos > 1 && h->heap[pos / 2]->heap_key > qp->heap_key) {
        place(h, pos, h->heap[pos / 2]);
        pos /= 2;
    }
    place(h, pos, qp);
}

static void sift_down(struct wf_hca *h, uint32_t pos)
{
    struct wf_qp *qp = h->heap[pos];
    for (;;) {
        uint32_t child = pos * 2;
        if (child > h->heap_len)
            break;
        if (child < h->heap_len && h->heap[child + 1]->heap_key < h->heap[child]->heap_key)
            child++;
        if (h->heap[child]->heap_key >= qp->heap_key)
            break;
        place(h, pos, h->heap[child]);
        pos = child;
    }
    place(h, pos, qp);
}

static bool reserve(struct wf_hca *h)
{
    if (h->heap_len + 1 < h->heap_room)
        return true;
    uint32_t room = h->heap_room ? h->heap_room * 2 : 64;
    struct wf_qp **heap = realloc(h->heap, room * sizeof(*heap));
    if (!heap)
        return false;
    h->heap = heap;
    h->heap_room = room;
    return true;
}

void wf_heap_put(struct wf_hca *h, struct wf_qp *qp)
{
    if (qp->heap_pos) {
        if (qp->deadline >= qp->heap_key)
            return;
        qp->heap_key = qp->deadline;
        sift_up(h, qp->heap_pos);
        return;
    }
    if (!reserve(h))
        return;
    qp->heap_key = qp->deadline;
    place(h, ++h->heap_len, qp);
    sift_up(h, h->heap_len);
}

void wf_heap_remove(struct wf_hca *h, struct wf_qp *qp)
{
    uint32_t pos = qp->heap_pos;
    if (!pos)
        return;
    struct wf_qp *last = h->heap[h->heap_len--];
    qp->heap_pos = 0;
    if (last == qp)
        return;
    place(h, pos, last);
    sift_up(h, pos);
    sift_down(h, last->heap_pos);
}

uint64_t wf_heap_next(const struct wf_hca *h)
{
    return h->heap_len ? h->heap[1]->heap_key : WF_NEVER;
}

void wf_heap_expire(struct wf_hca *h)
{
    while (h->heap_len && h->heap[1]->heap_key <= h->env.now) {
        struct wf_qp *qp = h->heap[1];
        wf_heap_remove(h, qp);
        if (qp->deadline <= h->env.now)
            wf_qp_expire(qp);
        if (qp->deadline != WF_NEVER)
            wf_heap_put(h, qp);
    }
}
