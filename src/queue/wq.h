// SPDX-License-Identifier: BSD-2-Clause
// Work queues of a QP. All counters are free-running; slot = counter & mask. A slot is taken by the
// post and given back when its completion is polled, as on hardware: wr_id lives in the slot until
// then. The caller holds the engine's lock.
#ifndef WF_QUEUE_WQ_H
#define WF_QUEUE_WQ_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WF_MAX_SGE    32
#define WF_MAX_INLINE 1024u
#define WF_MAX_WR     32768u

enum wf_swqe_state { WF_SWQE_POSTED = 0, WF_SWQE_STARTED, WF_SWQE_DONE };

struct wf_path;

// A send request. Inline data takes the place of the SGEs.
struct wf_swqe {
    uint64_t wr_id;
    uint64_t raddr;     // remote address; bind: address
    uint64_t compare;   // atomic compare or add; bind: length
    uint64_t swap;      // atomic swap; atomic write: the value
    uint32_t rkey;      // bind: the new key (type 2)
    uint32_t imm;       // immediate as on the wire, or R_Key to invalidate
    uint32_t len;       // of the whole message
    uint32_t psn, npsn; // valid from STARTED on
    uint8_t opcode;     // enum ibv_wr_opcode
    uint8_t flags;      // IBV_SEND_*
    uint8_t num_sge;
    uint8_t state;        // enum wf_swqe_state
    uint32_t dqpn, qkey;  // UD
    uint32_t srqn;        // XRC
    uint32_t mw, mr;      // bind: key index of the window, lkey of the region
    uint32_t bind_access; // bind
    struct wf_path *path; // UD; counted
    struct ibv_sge sge[];
};

struct wf_rwqe {
    uint64_t wr_id;
    uint32_t num_sge;
    uint32_t len; // sum of the SGEs, saturated
    struct ibv_sge sge[];
};

struct wf_sq {
    uint8_t *buf;
    uint32_t shift; // log2 of the stride
    uint32_t mask;
    uint32_t max_wr, max_sge, max_inline;
    uint32_t head; // next to post
    uint32_t next; // next to transmit
    uint32_t una;  // oldest not completed
    uint32_t tail; // oldest whose slot is not given back
};

struct wf_rq {
    uint8_t *buf;
    uint32_t shift;
    uint32_t mask;
    uint32_t max_wr, max_sge;
    uint32_t head; // next to post
    uint32_t next; // next to hand to a message
    uint32_t tail; // oldest whose slot is not given back
};

// A shared receive queue: slots complete in any order, so free ones are on a list and posted ones
// in a FIFO of slot numbers.
struct wf_srqueue {
    uint8_t *buf;
    uint32_t shift;
    uint32_t size; // slots
    uint32_t max_sge;
    uint32_t *fifo;
    uint32_t fifo_mask;
    uint32_t head, tail; // of the FIFO
    uint32_t *next_free;
    uint32_t free; // first free slot; `size` when there is none
};

// Sizes are rounded up; the caps are what was really made. -ENOMEM.
int wf_sq_init(struct wf_sq *q, uint32_t max_wr, uint32_t max_sge, uint32_t max_inline);
void wf_sq_fini(struct wf_sq *q);
int wf_rq_init(struct wf_rq *q, uint32_t max_wr, uint32_t max_sge);
void wf_rq_fini(struct wf_rq *q);
int wf_srqueue_init(struct wf_srqueue *q, uint32_t max_wr, uint32_t max_sge);
void wf_srqueue_fini(struct wf_srqueue *q);
int wf_srqueue_grow(struct wf_srqueue *q, uint32_t max_wr); // keeps what is posted

static inline struct wf_swqe *wf_sq_slot(const struct wf_sq *q, uint32_t counter)
{
    return (struct wf_swqe *)(q->buf + ((size_t)(counter & q->mask) << q->shift));
}

static inline struct wf_rwqe *wf_rq_slot(const struct wf_rq *q, uint32_t counter)
{
    return (struct wf_rwqe *)(q->buf + ((size_t)(counter & q->mask) << q->shift));
}

static inline struct wf_rwqe *wf_srq_slot(const struct wf_srqueue *q, uint32_t slot)
{
    return (struct wf_rwqe *)(q->buf + ((size_t)slot << q->shift));
}

static inline bool wf_sq_full(const struct wf_sq *q)
{
    return q->head - q->tail >= q->max_wr;
}

static inline bool wf_rq_full(const struct wf_rq *q)
{
    return q->head - q->tail >= q->max_wr;
}

static inline uint32_t wf_srqueue_posted(const struct wf_srqueue *q)
{
    return q->head - q->tail;
}

// The next posted slot; the caller has checked that there is one.
static inline uint32_t wf_srqueue_take(struct wf_srqueue *q)
{
    return q->fifo[q->tail++ & q->fifo_mask];
}

static inline void wf_srqueue_give_back(struct wf_srqueue *q, uint32_t slot)
{
    q->next_free[slot] = q->free;
    q->free = slot;
}

// Where the send queue begins in the byte offsets that completions carry (wqe_adr): behind the
// receive queue, rounded up to the send stride.
static inline uint64_t wf_sq_base(const struct wf_rq *rq, const struct wf_sq *sq)
{
    uint64_t rq_bytes = rq->buf ? (uint64_t)(rq->mask + 1) << rq->shift : 0;
    return (rq_bytes + (1ull << sq->shift) - 1) >> sq->shift << sq->shift;
}

// Copy a receive request into a slot.
void wf_rwqe_fill(struct wf_rwqe *w, const struct ibv_recv_wr *wr);

// The free-running counter, at or after `base`, of a ring slot.
static inline uint32_t wf_wq_counter(uint32_t base, uint32_t slot, uint32_t mask)
{
    return base + ((slot - base) & mask);
}

#endif
