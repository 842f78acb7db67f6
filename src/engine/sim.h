// SPDX-License-Identifier: BSD-2-Clause
// For tests: engines in one process on simulated time, joined by a wire that loses, repeats,
// reorders and damages packets by a seed. No threads, no sockets, no sleeps.
#ifndef WF_ENGINE_SIM_H
#define WF_ENGINE_SIM_H

#include "engine/engine.h"

struct sim_wire_faults {
    unsigned drop, dup, reorder; // per thousand
    uint32_t seed;
};

struct sim_event {
    enum ibv_event_type type;
    void *object;
};

// One host: an engine with one context, one PD, one CQ and a registered buffer.
struct sim_host {
    struct sim *sim;
    struct wf_hca *hca;
    struct wf_ctx *ctx;
    struct wf_pd *pd;
    struct wf_cq *cq;
    struct wf_mr *mr;
    uint8_t *buf;
    unsigned index;
    struct sim_event events[64];
    unsigned nevents;
    unsigned comp_events;
};

#define SIM_BUF   (4u << 20)
#define SIM_HOSTS 2
#define SIM_NO_WC ((enum ibv_wc_status)999)

struct sim_packet;

struct sim {
    uint64_t now;
    struct sim_wire_faults faults;
    uint32_t rng;
    struct sim_host host[SIM_HOSTS];
    struct sim_packet *queue[SIM_HOSTS]; // to that host
    struct wf_link *link[SIM_HOSTS];
    unsigned sent, dropped;
    // When set: called for each packet; true drops it.
    bool (*filter)(struct sim *s, unsigned from, const struct wf_pkt *pkt);
    unsigned filter_count;
};

void sim_open(struct sim *s);
void sim_close(struct sim *s);

// Let both hosts work until nothing moves at the present time.
void sim_settle(struct sim *s);
// Let time pass, timers included, in steps; stops early once `done` says so (may be NULL).
void sim_run(struct sim *s, uint64_t ns, bool (*done)(void *arg), void *arg);

// A QP of `type` on host h with sensible capacities, in RESET.
struct wf_qp *sim_qp(struct sim *s, unsigned h, enum ibv_qp_type type);
struct wf_qp *sim_qp_srq(struct sim *s, unsigned h, enum ibv_qp_type type, struct wf_srq *srq);

struct sim_conn {
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer, rd_atomic, dest_rd_atomic;
    enum ibv_mtu mtu;
    uint32_t sq_psn;
    unsigned access;
};
extern const struct sim_conn sim_defaults;

// Connect a (host ha) and b (host hb) up to RTS.
void sim_connect(struct sim *s, struct wf_qp *a, unsigned ha, struct wf_qp *b, unsigned hb,
                 const struct sim_conn *c);
void sim_av(struct sim *s, unsigned to, struct ibv_ah_attr *av);
int sim_to_init(struct wf_qp *qp, unsigned access);

// Post helpers on the host's buffer: `off` and `len` inside it.
int sim_send(struct sim *s, unsigned h, struct wf_qp *qp, uint64_t wr_id, uint32_t off,
             uint32_t len);
int sim_recv(struct sim *s, unsigned h, struct wf_qp *qp, uint64_t wr_id, uint32_t off,
             uint32_t len);
// WRITE, READ, atomics to offset `roff` of the other host's buffer.
int sim_rdma(struct sim *s, unsigned h, struct wf_qp *qp, enum ibv_wr_opcode op, uint64_t wr_id,
             uint32_t off, uint32_t len, uint32_t roff);
// The next completion of host h, or status SIM_NO_WC when there is none.
struct ibv_wc sim_wc(struct sim *s, unsigned h);
unsigned sim_drain(struct sim *s, unsigned h, struct ibv_wc *wc, unsigned max);
void sim_fill(struct sim *s, unsigned h, uint32_t off, uint32_t len, uint8_t seed);

#endif
