// SPDX-License-Identifier: BSD-2-Clause
// The one place where every packet of an engine can be looked at, held back, changed or lost: fault
// rules (faults.c) and captures (capture.c). h->tap is NULL until one of them is wanted; the path
// of packets pays one predictable branch for it.
#ifndef WF_ENGINE_TAP_H
#define WF_ENGINE_TAP_H

#include "base/fault_rules.h"
#include "engine/engine.h"

struct wf_faults;
struct wf_capture;

// A packet that waits, with a copy of all it points to.
struct wf_held {
    struct wf_held *next;
    uint64_t due;      // ns; WF_NEVER: until others overtook it
    uint32_t overtake; // packets of its QP that still have to pass first
    uint32_t qpn;      // of this engine
    bool rx;
    uint16_t mad; // bytes of a CM datagram in data, 0: a packet
    uint32_t sgid_index;
    struct wf_path path; // tx
    struct wf_pkt pkt;
    struct iovec iov;
    union ibv_gid sgid, dgid;
    uint8_t data[];
};

struct wf_tap {
    struct wf_hca *h;
    struct wf_faults *faults;
    struct wf_capture *capture;
    struct wf_held *held; // by due
    bool stuck;           // something held waits for room in a link: nothing may overtake it
    uint64_t started;     // ns
};

// Made on first use and kept as long as the engine. NULL: no memory.
struct wf_tap *wf_tap_get(struct wf_hca *h);
void wf_tap_destroy(struct wf_hca *h);

// What WEFT_FAULTS and WEFT_CAPTURE ask for; and what `weft faults` and `weft capture` do now.
void wf_tap_start(struct wf_hca *h);
void wf_tap_control(struct wf_hca *h);

// The choke points.
int wf_tap_send(struct wf_qp *qp, struct wf_link *link, const struct wf_path *path,
                struct wf_pkt *pkt);
bool wf_tap_receive(struct wf_hca *h, const struct wf_pkt *pkt); // true: not to be delivered now
bool wf_tap_no_onesided(const struct wf_hca *h);
void wf_tap_onesided(struct wf_qp *qp, const struct wf_swqe *w, const struct iovec *iov, int niov,
                     uint32_t off, uint32_t len);
bool wf_tap_mad(struct wf_hca *h, bool rx, const union ibv_gid *sgid, const union ibv_gid *dgid,
                uint32_t sgid_index, const uint8_t mad[256]); // true: it is lost or waits
int wf_tap_verb(struct wf_hca *h, const char *verb);          // takes the lock; 0 or -errno

// Held packets whose time has come; when to look again.
void wf_tap_poll(struct wf_hca *h);
uint64_t wf_tap_next(const struct wf_hca *h);

// Keep a copy of a packet. -ENOMEM, or -EFAULT: then it is lost.
int wf_tap_hold(struct wf_tap *t, bool rx, uint32_t qpn, const struct wf_path *path,
                const struct wf_pkt *pkt, uint64_t due, uint32_t overtake);
int wf_tap_hold_mad(struct wf_tap *t, bool rx, const union ibv_gid *sgid, const union ibv_gid *dgid,
                    uint32_t sgid_index, const uint8_t mad[256], uint64_t due);

// dispatch.c and events.c: deliver past the tap.
void wf_deliver_now(struct wf_hca *h, const struct wf_pkt *pkt);
void wf_mad_deliver_now(struct wf_hca *h, const struct wf_mad *mad);

// ---- faults.c -----------------------------------------------------------------------------------

struct wf_verdict {
    bool drop, damage_icrc, damage_payload, ecn;
    uint32_t copies;   // beside the packet itself
    uint64_t delay;    // ns
    uint32_t overtake; // packets that go first
    uint8_t nak;       // syndrome to answer with, 0: none
    char note[96];     // what was done, for captures
};

struct wf_packet_facts {
    struct wf_qp *qp;
    const struct wf_pkt *pkt;
    bool rx;
    uint32_t path; // enum wf_fault_path
};

// Replace the rules; 0 or -EINVAL (explained). An empty text takes them away.
int wf_faults_set(struct wf_tap *t, const char *text, size_t len, const char *from);
void wf_faults_free(struct wf_faults *f);
void wf_faults_judge(struct wf_tap *t, const struct wf_packet_facts *facts, struct wf_verdict *v);
void wf_faults_judge_mad(struct wf_tap *t, bool rx, const uint8_t mad[256], struct wf_verdict *v);
int wf_faults_verb(struct wf_tap *t, const char *verb);
void wf_faults_tick(struct wf_tap *t); // rules that only name a time; the port coming up again
uint64_t wf_faults_next(const struct wf_tap *t);

// ---- capture.c ----------------------------------------------------------------------------------

// path NULL: stop. ring: bytes kept in memory and written only when something fails; 0: write all.
int wf_capture_set(struct wf_tap *t, const char *path, size_t ring, uint32_t snaplen);
void wf_capture_free(struct wf_tap *t);
void wf_capture_packet(struct wf_tap *t, struct wf_qp *qp, bool rx, const struct wf_path *path,
                       const struct wf_pkt *pkt, const char *note);
void wf_capture_onesided(struct wf_tap *t, struct wf_qp *qp, const struct wf_swqe *w,
                         const struct iovec *iov, int niov, uint32_t off, uint32_t len);
void wf_capture_mad(struct wf_tap *t, bool rx, const union ibv_gid *sgid, const union ibv_gid *dgid,
                    const uint8_t mad[256], const char *note);

#endif
