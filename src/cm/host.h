// SPDX-License-Identifier: BSD-2-Clause
// The connection manager of this process: the pure machine of cm.h bound to the engine's fabric,
// clock and thread. Faces hold its lock around their calls; events are handed out under the lock.
// Lock order: this lock, then the engine's.
#ifndef WF_CM_HOST_H
#define WF_CM_HOST_H

#include "cm/cm.h"
#include "engine/hca.h"

struct wf_cm_host;

// What a face puts at wf_cm_id_user(): who gets the id's events. The event of a new id comes to the
// owner of its listener, which calls wf_cm_id_set_user() or destroys the id.
struct wf_cm_owner {
    // Under the lock. May call anything of cm.h, also destroy the id; must not block.
    void (*event)(struct wf_cm_owner *owner, const struct wf_cm_event *ev);
};

// The one of this process, made on first use; a child of fork() gets one of its own. Counted.
int wf_cm_host_get(struct wf_cm_host **out);
void wf_cm_host_put(struct wf_cm_host *host);

// Between the two, calls of cm.h are allowed. Unlocking hands out the events that wait.
struct wf_cm *wf_cm_lock(struct wf_cm_host *host);
void wf_cm_unlock(struct wf_cm_host *host);
struct wf_cm *wf_cm_lock_held(struct wf_cm_host *host); // for callees of who holds it

struct wf_hca *wf_cm_host_hca(struct wf_cm_host *host);
// Index of the GID, or -ENOENT.
int wf_cm_host_gid_index(struct wf_cm_host *host, const union ibv_gid *gid);

#endif
