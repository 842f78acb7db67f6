// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/segment.h"

#include <errno.h>
#include <string.h>

// Records start on multiples of the header's size, so a header never wraps.
static uint64_t record_size(uint32_t len)
{
    return (sizeof(struct wf_gni_am) + (uint64_t)len + 63) & ~63ull;
}

static char *at(struct wf_gni_ring *ring, uint64_t pos)
{
    return ring->data + pos % WF_GNI_RING_BYTES;
}

static uint64_t to_end(uint64_t pos)
{
    return WF_GNI_RING_BYTES - pos % WF_GNI_RING_BYTES;
}

int wf_gni_ring_put(struct wf_gni_ring *ring, const struct wf_gni_am *am, const void *payload)
{
    uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
    uint64_t size = record_size(am->len), skip = to_end(head) < size ? to_end(head) : 0;
    if (head % 64 || head - tail > WF_GNI_RING_BYTES ||
        WF_GNI_RING_BYTES - (head - tail) < skip + size)
        return -EAGAIN;
    if (skip) {
        struct wf_gni_am pad = {.type = WF_GNI_RING_PAD};
        memcpy(at(ring, head), &pad, sizeof(pad));
        head += skip;
    }
    memcpy(at(ring, head), am, sizeof(*am));
    if (am->len)
        memcpy(at(ring, head) + sizeof(*am), payload, am->len);
    atomic_store_explicit(&ring->head, head + size, memory_order_release);
    return 0;
}

static int emptied(struct wf_gni_ring *ring, uint64_t head)
{
    atomic_store_explicit(&ring->tail, head, memory_order_release);
    return -EBADMSG;
}

int wf_gni_ring_get(struct wf_gni_ring *ring, struct wf_gni_am *am, const void **payload)
{
    for (;;) {
        uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        if (head == tail)
            return 0;
        if (head - tail > WF_GNI_RING_BYTES || tail % 64 || head % 64)
            return emptied(ring, head & ~63ull);
        memcpy(am, at(ring, tail), sizeof(*am));
        if (am->type == WF_GNI_RING_PAD) {
            if (to_end(tail) > head - tail)
                return emptied(ring, head);
            atomic_store_explicit(&ring->tail, tail + to_end(tail), memory_order_release);
            continue;
        }
        uint64_t size = record_size(am->len);
        if (am->len > WF_GNI_AM_PAYLOAD || size > head - tail || size > to_end(tail))
            return emptied(ring, head);
        *payload = at(ring, tail) + sizeof(*am);
        return 1;
    }
}

void wf_gni_ring_done(struct wf_gni_ring *ring, const struct wf_gni_am *am)
{
    uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    atomic_store_explicit(&ring->tail, tail + record_size(am->len), memory_order_release);
}
