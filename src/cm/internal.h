// SPDX-License-Identifier: BSD-2-Clause
// Inside of the connection manager; see cm.h for what it is and table.c for who does what when.
#ifndef WF_CM_INTERNAL_H
#define WF_CM_INTERNAL_H

#include "base/clock.h"
#include "base/reason.h"
#include "cm/cm.h"
#include <stddef.h>
#include <sys/queue.h>
#include <uthash.h>

// What can happen to an id: calls of the owner, messages that were found to be for it, its timer.
enum wf_cm_input {
    IN_LISTEN,
    IN_REQ,
    IN_REP,
    IN_RTU,
    IN_DREQ,
    IN_DREP,
    IN_REJ,
    IN_MRA,
    IN_LAP,
    IN_APR,
    IN_SIDR_REQ,
    IN_SIDR_REP,
    IN_ESTABLISHED,
    IN_MIGRATED,
    IN_DESTROY,
    RX_REQ,      // a duplicate
    RX_PEER_REQ, // the other peer's, while ours is under way
    RX_MRA_REQ,
    RX_MRA_REP,
    RX_MRA_OTHER,
    RX_REJ,
    RX_REP,
    RX_RTU,
    RX_DREQ,
    RX_DREP,
    RX_LAP,
    RX_APR,
    RX_SIDR_REQ, // a duplicate
    RX_SIDR_REP,
    TIMER, // repetitions are used up, or TIMEWAIT is over
    WF_CM_INPUTS
};

// A message and the ports it went between.
struct wf_cm_rx {
    const struct wf_cm_msg *msg;
    const union ibv_gid *sgid, *dgid;
};

// Arguments of the calls that have no param structure of their own.
struct wf_cm_data_arg {
    const void *data;
    uint8_t len;
};
struct wf_cm_rej_arg {
    uint16_t reason;
    const void *ari;
    uint8_t ari_len;
    struct wf_cm_data_arg d;
};
struct wf_cm_mra_arg {
    uint8_t service_timeout;
    struct wf_cm_data_arg d;
};
struct wf_cm_lap_arg {
    const struct wf_cm_route *alternate;
    struct wf_cm_data_arg d;
};
struct wf_cm_apr_arg {
    uint8_t status;
    const void *info;
    uint8_t info_len;
    struct wf_cm_data_arg d;
};
struct wf_cm_listen_arg {
    uint64_t service_id, mask;
    const struct wf_cm_compare *compare;
};

// Who the other side of an id is. The sender's port is part of it: a stranger who guesses the rest
// must not meet a connection that is not his.
struct wf_cm_key {
    uint32_t number; // communication id, request id or QPN
    uint32_t kind;   // enum wf_cm_key_kind
    uint64_t guid;
    union ibv_gid port;
};
enum wf_cm_key_kind { KEY_CONNECTION = 1, KEY_SIDR, KEY_QPN };

struct wf_cm_id {
    struct wf_cm *cm;
    void *user;
    enum wf_cm_state state;
    enum wf_cm_lap_state lap;
    bool orphan; // the owner destroyed it; it goes when it reaches IDLE
    uint32_t local_id, remote_id;
    UT_hash_handle hh_local;

    uint64_t service_id, service_mask;
    struct wf_cm_compare *compare; // LISTEN
    LIST_ENTRY(wf_cm_id) listed;   // in cm->listeners (LISTEN) or cm->peers (peering)
    bool peering;

    // The other side.
    union ibv_gid peer; // port its datagrams come from and ours go to
    uint32_t sgid_index;
    uint64_t tid;  // of the REQ or SIDR_REQ
    uint64_t tid2; // of the last DREQ or LAP received
    struct wf_cm_key remote_key, qpn_key;
    UT_hash_handle hh_remote, hh_qpn; // kind 0 in the key: not hashed

    // The connection, from our point of view.
    bool active;
    enum ibv_qp_type qp_type;
    struct wf_cm_route path, alternate;
    bool has_alternate;
    struct wf_cm_route new_alternate; // under way in a LAP
    uint32_t local_qpn, remote_qpn;
    uint32_t rq_psn, sq_psn;
    uint64_t remote_guid;
    uint8_t responder_resources, initiator_depth;
    uint8_t retry_count, rnr_retry;
    uint8_t ack_timeout; // for our QP
    uint8_t alt_ack_timeout;
    uint8_t av_timeout; // 12.9.8.4: what TIMEWAIT and an MRA add
    uint8_t remote_response_timeout;
    uint8_t max_cm_retries;
    uint64_t interval; // between repetitions, ns

    // Timer (timer.c).
    uint64_t deadline;
    size_t heap_at; // 1 + position, 0: not armed
    uint8_t retries_left;
    bool repeating;
    uint8_t repeat[WF_MAD_SIZE];
    uint8_t reply[WF_MAD_SIZE]; // what a duplicate is answered with; reply[0] 0: nothing
    bool has_will;
};

struct wf_cm_queued {
    STAILQ_ENTRY(wf_cm_queued) next;
    struct wf_cm_event ev;
};

struct wf_cm {
    struct wf_cm_config config;
    uint64_t now;
    uint32_t next_id;
    uint32_t next_service;
    struct wf_cm_id *by_local, *by_remote, *by_qpn;
    LIST_HEAD(, wf_cm_id) listeners, peers;
    STAILQ_HEAD(, wf_cm_queued) events;
    struct wf_cm_id **heap;
    size_t heap_len, heap_cap;
    struct wf_cm_stats stats;
};

// table.c: put `in` through the table. Returns what the action returned, -EINVAL for an empty cell.
// The id may be gone afterwards.
int wf_cm_step(struct wf_cm_id *id, enum wf_cm_input in, const void *arg);
#define WF_CM_KEEP WF_CM_STATES // in the table: the action sets the state itself or leaves it
struct wf_cm_cell {
    int (*act)(struct wf_cm_id *id, const void *arg);
    enum wf_cm_state next; // after a result of 0
};
const struct wf_cm_cell *wf_cm_cell(enum wf_cm_state state, enum wf_cm_input in);
const char *wf_cm_input_name(enum wf_cm_input in);

// id.c
void wf_cm_enter(struct wf_cm_id *id, enum wf_cm_state state);
void wf_cm_id_free(struct wf_cm_id *id);
struct wf_cm_id *wf_cm_find_local(struct wf_cm *cm, uint32_t local_id);
struct wf_cm_id *wf_cm_find_remote(struct wf_cm *cm, enum wf_cm_key_kind kind, uint32_t number,
                                   uint64_t guid, const union ibv_gid *port);
void wf_cm_hash_remote(struct wf_cm_id *id, enum wf_cm_key_kind kind, uint32_t number,
                       uint64_t guid);
void wf_cm_hash_qpn(struct wf_cm_id *id, uint32_t qpn, uint64_t guid);
void wf_cm_unhash(struct wf_cm_id *id);
bool wf_cm_from_peer(const struct wf_cm_id *id, const union ibv_gid *sgid);

// event.c. -ENOMEM: nothing was queued; the action gives up and the peer's repetition tries again.
int wf_cm_push(struct wf_cm_id *id, enum wf_cm_event_type type, const struct wf_cm_msg *msg);
int wf_cm_push_event(struct wf_cm *cm, const struct wf_cm_event *ev);
void wf_cm_drop_events(struct wf_cm_id *id);

// send.c
struct wf_cm_msg;
void wf_cm_begin(const struct wf_cm_id *id, struct wf_cm_msg *m, uint16_t attr, uint64_t tid);
void wf_cm_add_data(struct wf_cm_msg *m, const struct wf_cm_data_arg *d);
int wf_cm_send(struct wf_cm_id *id, const struct wf_cm_msg *m);
// Send and repeat until wf_cm_timer_stop() or the retries end. An error: nothing is armed.
int wf_cm_send_repeating(struct wf_cm_id *id, const struct wf_cm_msg *m, uint64_t interval,
                         uint8_t retries);
void wf_cm_keep_reply(struct wf_cm_id *id, const struct wf_cm_msg *m);
int wf_cm_reply_again(struct wf_cm_id *id, uint64_t tid);
// Answer a message that belongs to no id.
void wf_cm_answer(struct wf_cm *cm, const struct wf_cm_rx *rx, struct wf_cm_msg *m);
void wf_cm_refuse_request(struct wf_cm *cm, const struct wf_cm_rx *rx, uint16_t reason,
                          const void *ari, uint8_t ari_len);
uint64_t wf_cm_tid(const struct wf_cm_id *id);
int wf_cm_check_len(const char *what, unsigned len, unsigned max);

// timer.c
void wf_cm_timer_arm(struct wf_cm_id *id, uint64_t deadline);
void wf_cm_timer_stop(struct wf_cm_id *id);

// path.c
uint64_t wf_cm_ms(unsigned code); // 1 << max(code - 8, 0), in ns
uint8_t wf_cm_ack_timeout(uint8_t ack_delay, uint8_t life);
void wf_cm_route_to_wire(const struct wf_cm_route *r, uint8_t ack_delay, struct wf_cm_path *out);
void wf_cm_route_from_wire(const struct wf_cm_path *p, uint16_t pkey, uint8_t mtu,
                           struct wf_cm_route *out);
bool wf_cm_path_given(const struct wf_cm_path *p);

// Actions, by exchange; `arg` as the input asks for (see the callers in the same file).
#define ACTION(name) int wf_cm_##name(struct wf_cm_id *id, const void *arg)
ACTION(do_listen); // listen.c
ACTION(end_listen);
struct wf_cm_id *wf_cm_find_listener(struct wf_cm *cm, uint64_t service_id, const uint8_t *data);
void wf_cm_peer_start(struct wf_cm_id *id);
void wf_cm_peer_stop(struct wf_cm_id *id);

ACTION(do_req); // connect.c
ACTION(do_rep);
ACTION(do_rtu);
ACTION(do_established);
ACTION(on_rep);
ACTION(on_rep_again);
ACTION(on_rtu);
ACTION(on_req_error);
ACTION(on_rep_error);
void wf_cm_on_req(struct wf_cm *cm, const struct wf_cm_rx *rx); // request.c
ACTION(on_req_again);
ACTION(on_peer_req);

ACTION(do_rej); // reject.c
ACTION(do_mra);
ACTION(do_mra_established);
ACTION(on_rej);
ACTION(on_rej_timewait);
ACTION(on_rej_established);
ACTION(on_mra);
ACTION(on_mra_lap);
ACTION(on_req_stale);
ACTION(end_active);
ACTION(end_passive);

ACTION(do_dreq); // disconnect.c
ACTION(do_drep);
ACTION(on_dreq);
ACTION(on_dreq_again);
ACTION(on_drep);
ACTION(on_dreq_error);
ACTION(on_timewait);
ACTION(end_established);
ACTION(end_dreq_rcvd);
ACTION(end_quietly);
void wf_cm_on_dreq_unknown(struct wf_cm *cm, const struct wf_cm_rx *rx);

ACTION(do_lap); // lap.c
ACTION(do_apr);
ACTION(do_migrated);
ACTION(on_lap);
ACTION(on_apr);
ACTION(on_lap_error);
void wf_cm_on_lap_unknown(struct wf_cm *cm, const struct wf_cm_rx *rx);

ACTION(do_sidr_req); // sidr.c
ACTION(do_sidr_rep);
ACTION(on_sidr_rep);
ACTION(on_sidr_error);
ACTION(end_sidr_rcvd);
void wf_cm_on_sidr_req(struct wf_cm *cm, const struct wf_cm_rx *rx);

ACTION(ignore); // table.c: a duplicate that needs no answer
#undef ACTION

#endif
