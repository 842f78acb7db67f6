// SPDX-License-Identifier: BSD-2-Clause
// Connections to other hosts: rcconn.c makes and ends them, rc.c moves messages on them.
#ifndef WF_UGNI_RCCONN_H
#define WF_UGNI_RCCONN_H

#include "cm/host.h"
#include "engine/hca.h"
#include "ugni/rc.h"

#define WF_GNI_RC_DEPTH 64u // sends under way on one connection

enum wf_gni_conn_state {
    WF_GNI_CONN_WAITING,  // for the engine, or to try again
    WF_GNI_CONN_ASKED,    // REQ sent
    WF_GNI_CONN_ANSWERED, // REP sent
    WF_GNI_CONN_READY,
    WF_GNI_CONN_GONE,
};

// Never freed: completions and events that are still queued may name it.
struct wf_gni_conn {
    struct wf_cm_owner owner; // first: the connection manager hands it back
    struct wf_gni_peer *peer; // NULL: not known yet
    uint32_t pe;
    enum wf_gni_conn_state state;
    struct wf_cm_id *id;
    struct wf_qp *qp;
    uint32_t psn; // the peer's first
    uint32_t sends;
    uint64_t try_at, give_up_at;
    struct wf_gni_conn *next; // of all
};

// What both files share, under the uGNI lock once `up`.
struct wf_gni_rc {
    bool up, failed;
    struct wf_cm_host *host;
    struct wf_hca *hca;
    struct wf_ctx *ctx;
    struct wf_pd *pd;
    struct wf_cq *cq;
    struct wf_srq *srq;
    struct wf_cm_id *listener;
    struct wf_cm_owner owner; // of the listener
    union ibv_gid gid;
    uint8_t mtu;
    struct wf_gni_conn *conns;
};
extern struct wf_gni_rc wf_gni_rc;

extern const struct wf_gni_link wf_gni_rc_link;

int wf_gni_conn_listen(void);                 // without the uGNI lock
void wf_gni_conn_open(struct wf_gni_conn *c); // send REQ
void wf_gni_conn_events(void);                // what the connection manager reported
bool wf_gni_conn_has_events(void);
void wf_gni_conn_timers(uint64_t now);
uint64_t wf_gni_conn_next(void);
void wf_gni_conn_close(struct wf_gni_conn *c);   // no event names it afterwards
void wf_gni_conn_arrived(struct wf_gni_conn *c); // a message came: it is established
struct wf_gni_conn *wf_gni_conn_new(uint32_t pe, struct wf_gni_peer *peer);

#endif
