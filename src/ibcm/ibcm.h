// SPDX-License-Identifier: BSD-2-Clause
// Inside of the ib_cm face: ids with their handlers over cm/. Lock order: the connection manager's,
// then `ibcm_lock`.
#ifndef WF_IBCM_IBCM_H
#define WF_IBCM_IBCM_H

#include "base/reason.h"
#include "cm/host.h"
#include "weft/export.h"
#include <pthread.h>
#include <rdma/ib_cm.h>
#include <stdbool.h>
#include <sys/queue.h>

struct ibcm_id {
    struct ib_cm_id pub; // first
    struct wf_cm_owner owner;
    struct wf_cm_host *host;
    struct wf_cm_id *cm;
    // Under ibcm_lock:
    unsigned busy; // handlers that run with this id, or with a request that came for it
    bool dead;     // being destroyed: no more events
    bool doomed;   // destroy it when the handler that runs is back
};

struct ibcm_queued {
    STAILQ_ENTRY(ibcm_queued) next;
    struct ibcm_id *id, *listener;
    struct wf_cm_event ev;
};

static inline struct ibcm_id *ibcm_of(struct ib_cm_id *pub)
{
    return (struct ibcm_id *)pub;
}

// id.c
void ibcm_show(struct ibcm_id *id); // bring pub up to date, under the connection manager's lock
extern pthread_mutex_t ibcm_lock;

// convert.c
void ibcm_route(const struct ib_sa_path_rec *rec, struct wf_cm_route *out);
void ibcm_path_rec(const struct wf_cm_route *r, struct ib_sa_path_rec *out);
void ibcm_qp_attr(const struct ibv_qp_attr *from, struct ib_qp_attr *to);
void ibcm_qp_attr_to_verbs(const struct ib_qp_attr *from, struct ibv_qp_attr *to);

// event.c: what the handler sees of an event; points into `q` and `paths`.
void ibcm_event(struct ibcm_queued *q, struct ib_cm_event *out, struct ib_sa_path_rec paths[2]);

// bridge.c
struct ib_device *ibcm_device(struct wf_cm_host *host);

#endif
