// SPDX-License-Identifier: BSD-2-Clause
#include "queue/wq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Strides are powers of two of at least 64 bytes, so that a completion's wqe_adr names a slot.
static uint32_t stride_shift(size_t bytes)
{
    uint32_t shift = 6;
    while ((1ull << shift) < bytes)
        shift++;
    return shift;
}

static uint32_t slots_for(uint32_t n)
{
    uint32_t slots = 1;
    while (slots < n)
        slots <<= 1;
    return slots;
}

// Mapped, so that slots never used take no memory: an idle QP stays small.
static uint8_t *map_slots(uint32_t slots, uint32_t shift)
{
    void *p = mmap(NULL, (size_t)slots << shift, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void unmap_slots(uint8_t *buf, uint32_t slots, uint32_t shift)
{
    if (buf)
        munmap(buf, (size_t)slots << shift);
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

int wf_sq_init(struct wf_sq *q, uint32_t max_wr, uint32_t max_sge, uint32_t max_inline)
{
    size_t room = max_sge * sizeof(struct ibv_sge);
    if (room < max_inline)
        room = max_inline;
    *q = (struct wf_sq){.max_wr = max_wr};
    if (!max_wr)
        return 0;
    q->shift = stride_shift(sizeof(struct wf_swqe) + room);
    room = (1u << q->shift) - sizeof(struct wf_swqe);
    q->max_inline = min_u32((uint32_t)room, WF_MAX_INLINE);
    q->max_sge = min_u32((uint32_t)(room / sizeof(struct ibv_sge)), WF_MAX_SGE);
    q->mask = slots_for(max_wr) - 1;
    q->buf = map_slots(q->mask + 1, q->shift);
    return q->buf ? 0 : -ENOMEM;
}

void wf_sq_fini(struct wf_sq *q)
{
    unmap_slots(q->buf, q->mask + 1, q->shift);
    q->buf = NULL;
}

int wf_rq_init(struct wf_rq *q, uint32_t max_wr, uint32_t max_sge)
{
    *q = (struct wf_rq){.max_wr = max_wr};
    if (!max_wr)
        return 0;
    q->max_sge = max_sge ? max_sge : 1;
    q->shift = stride_shift(sizeof(struct wf_rwqe) + q->max_sge * sizeof(struct ibv_sge));
    q->mask = slots_for(max_wr) - 1;
    q->buf = map_slots(q->mask + 1, q->shift);
    return q->buf ? 0 : -ENOMEM;
}

void wf_rq_fini(struct wf_rq *q)
{
    unmap_slots(q->buf, q->mask + 1, q->shift);
    q->buf = NULL;
}

int wf_srqueue_init(struct wf_srqueue *q, uint32_t max_wr, uint32_t max_sge)
{
    *q = (struct wf_srqueue){.size = max_wr, .max_sge = max_sge ? max_sge : 1};
    q->shift = stride_shift(sizeof(struct wf_rwqe) + q->max_sge * sizeof(struct ibv_sge));
    q->fifo_mask = slots_for(max_wr) - 1;
    q->buf = map_slots(q->size, q->shift);
    q->fifo = calloc(q->fifo_mask + 1, sizeof(*q->fifo));
    q->next_free = calloc(q->size, sizeof(*q->next_free));
    if (!q->buf || !q->fifo || !q->next_free) {
        wf_srqueue_fini(q);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < q->size; i++)
        q->next_free[i] = i + 1;
    return 0;
}

void wf_srqueue_fini(struct wf_srqueue *q)
{
    unmap_slots(q->buf, q->size, q->shift);
    free(q->fifo);
    free(q->next_free);
    q->buf = NULL;
    q->fifo = q->next_free = NULL;
}

int wf_srqueue_grow(struct wf_srqueue *q, uint32_t max_wr)
{
    if (max_wr <= q->size)
        return 0;
    struct wf_srqueue n;
    int err = wf_srqueue_init(&n, max_wr, q->max_sge);
    if (err)
        return err;
    // Slots keep their numbers: receives that are out in a message or a CQ name them. The old free
    // chain ends with the old size, which is the first new slot: the chains are joined already.
    memcpy(n.buf, q->buf, (size_t)q->size << q->shift);
    for (uint32_t i = q->tail; i != q->head; i++)
        n.fifo[n.head++] = q->fifo[i & q->fifo_mask];
    memcpy(n.next_free, q->next_free, q->size * sizeof(*q->next_free));
    n.free = q->free;
    wf_srqueue_fini(q);
    *q = n;
    return 0;
}

void wf_rwqe_fill(struct wf_rwqe *w, const struct ibv_recv_wr *wr)
{
    uint64_t len = 0;
    w->wr_id = wr->wr_id;
    w->num_sge = (uint32_t)wr->num_sge;
    for (int i = 0; i < wr->num_sge; i++) {
        w->sge[i] = wr->sg_list[i];
        len += wr->sg_list[i].length;
    }
    w->len = len > UINT32_MAX ? UINT32_MAX : (uint32_t)len;
}
