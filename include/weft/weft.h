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

/* Which request an entry is about. Its wqe_adr is a byte offset into the queue pair's buffer, where
 * the receive queue's slots stand first and the send queue's after them:
 *     send:    slot = (wqe_adr - send_offset) / send_stride
 *     receive: slot = wqe_adr / recv_stride
 * and slot = n modulo send_slots (recv_slots) for the n-th request posted since RESET, from 0. A
 * send entry stands for all earlier unsignalled requests too. Receives from an SRQ are numbered by
 * the SRQ's slots, which are used again in any order. recv_slots is 0 when there is no receive
 * queue of the queue pair's own. */
struct weft_qp_wqes {
    uint32_t send_offset, send_stride, send_slots;
    uint32_t recv_stride, recv_slots;
};

/* 0 or EINVAL. */
int weft_qp_wqes(struct ibv_qp *qp, struct weft_qp_wqes *wqes);

#ifdef __cplusplus
}
#endif

#endif
