/* SPDX-License-Identifier: BSD-2-Clause */
/* What Weft's libibverbs.so.1 offers beyond the verbs API. Link with -libverbs as usual; a program
 * that must also run with other libraries finds these with dlvsym(..., "WEFT_0.1"). */
#ifndef WEFT_WEFT_H
#define WEFT_WEFT_H

#include <infiniband/verbs.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The ring behind a completion queue, in the format of Arbel hardware (arbel/cqe.h): `entries`
 * entries of 32 bytes, a power of two. The entry to read next is number *consumer modulo entries.
 * A poller tests the entry's owner bit, reads it, gives it back (owner bit set) and then stores
 * *consumer + 1 with release order. Poll a CQ either this way or with ibv_poll_cq(), never both at
 * one time. The ring moves when the CQ is resized. */
struct weft_cq_ring {
    void *cqe;
    uint32_t entries;
    volatile uint32_t *consumer;
};

/* 0 or EINVAL. */
int weft_cq_ring(struct ibv_cq *cq, struct weft_cq_ring *ring);

#ifdef __cplusplus
}
#endif

#endif
