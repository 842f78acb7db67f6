// SPDX-License-Identifier: BSD-2-Clause
// A completion queue: a ring of 32-byte Arbel entries (see include/arbel/cqe.h) that the engine
// writes as the hardware would, and a side array for what Arbel has no field for. The caller holds
// the engine's lock; only `ci` may be moved by a poller outside it.
#ifndef WF_QUEUE_CQ_H
#define WF_QUEUE_CQ_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WF_CQE_BYTES 32

// What the engine wants to report.
struct wf_completion {
    uint32_t qpn;
    uint32_t wqe_adr; // byte offset of the WQE in its QP's (or SRQ's) buffer
    bool send;
    bool solicited;       // wakes a CQ armed for solicited completions
    uint8_t arbel_opcode; // send: nopcode, receive: BTH opcode
    uint8_t sl;
    enum ibv_wc_status status;
    enum ibv_wc_opcode opcode;
    uint32_t reason; // vendor_err
    uint32_t byte_len;
    uint32_t imm; // immediate as on the wire, or invalidated R_Key
    unsigned wc_flags;
    uint32_t src_qp;
    uint32_t srqn; // XRC
    uint64_t timestamp;
};

// The side array's entry: fields of a completion that the ring cannot hold.
struct wf_cq_side {
    uint64_t timestamp;
    uint32_t reason;
    uint32_t srqn;
    uint32_t imm;
    uint8_t opcode;
    uint8_t status;
    uint8_t wc_flags;
    bool send;
    uint32_t qpn, wqe_adr; // again: a poller of the ring may have rewritten its entry
};

enum wf_cq_armed { WF_CQ_IDLE = 0, WF_CQ_ARMED_SOLICITED, WF_CQ_ARMED };

struct wf_cq {
    uint8_t *ring;
    struct wf_cq_side *side;
    uint32_t size;       // power of two
    uint32_t pi;         // next entry to write, free-running
    uint32_t retired;    // entries before it have given their request's slot back
    _Atomic uint32_t ci; // next entry to read, free-running, published by the poller
    bool ignore_overrun;
    bool failed; // overrun: nothing is added any more
    enum wf_cq_armed armed;
    uint16_t moderate_count, moderate_usec; // 0: off
    uint16_t moderate_seen;
    uint64_t moderate_deadline; // 0: none
    uint32_t users;             // QPs and SRQs that complete here
    void *user;
    void (*on_comp)(void *user);
    // Someone else polled the entry of this request: its slot is free again.
    void (*on_retire)(struct wf_cq *cq, const struct wf_cq_side *s);
    struct wf_ctx *ctx;
    bool error_reported;
    struct wf_cq *prev, *next; // of its context
};

int wf_cqring_init(struct wf_cq *cq, uint32_t cqe);
void wf_cqring_fini(struct wf_cq *cq);
// Keeps unread entries and their order. -EINVAL when they do not fit.
int wf_cqring_resize(struct wf_cq *cq, uint32_t cqe);

// Add an entry and raise the event it deserves. false: the queue overran (the caller reports it).
bool wf_cqring_add(struct wf_cq *cq, const struct wf_completion *c);

// Tell on_retire() about entries that were consumed by moving `ci`, not by wf_cqring_consume().
void wf_cqring_reap(struct wf_cq *cq);

// Raise an event that moderation has held back for long enough.
void wf_cqring_expire(struct wf_cq *cq, uint64_t now);

// Entries that wait.
uint32_t wf_cqring_pending(const struct wf_cq *cq);

// The oldest unread entry, decoded; false when there is none. wf_cqring_consume() gives it back.
bool wf_cqring_peek(const struct wf_cq *cq, struct wf_completion *out);
void wf_cqring_consume(struct wf_cq *cq);

// Drop the unread entries of a QP that goes away; calls gone() for each, oldest first.
void wf_cqring_clean(struct wf_cq *cq, uint32_t qpn,
                     void (*gone)(void *arg, const struct wf_completion *c), void *arg);

uint8_t wf_arbel_syndrome(enum ibv_wc_status status);

#endif
