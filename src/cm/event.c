// SPDX-License-Identifier: BSD-2-Clause
#include "cm/internal.h"

#include <errno.h>
#include <stdlib.h>

int wf_cm_push_event(struct wf_cm *cm, const struct wf_cm_event *ev)
{
    struct wf_cm_queued *q = malloc(sizeof(*q));
    if (!q)
        return -ENOMEM;
    q->ev = *ev;
    STAILQ_INSERT_TAIL(&cm->events, q, next);
    return 0;
}

int wf_cm_push(struct wf_cm_id *id, enum wf_cm_event_type type, const struct wf_cm_msg *msg)
{
    struct wf_cm_event ev;
    if (id->orphan)
        return 0;
    memset(&ev, 0, sizeof(ev));
    ev.type = type;
    ev.id = id;
    if (msg)
        ev.msg = *msg;
    return wf_cm_push_event(id->cm, &ev);
}

bool wf_cm_next_event(struct wf_cm *cm, struct wf_cm_event *out)
{
    struct wf_cm_queued *q = STAILQ_FIRST(&cm->events);
    if (!q)
        return false;
    STAILQ_REMOVE_HEAD(&cm->events, next);
    *out = q->ev;
    free(q);
    return true;
}

bool wf_cm_has_event(const struct wf_cm *cm)
{
    return !STAILQ_EMPTY(&cm->events);
}

// Take one event that concerns the id off the queue.
static struct wf_cm_queued *take_one(struct wf_cm_id *id)
{
    struct wf_cm_queued *q;
    STAILQ_FOREACH(q, &id->cm->events, next)
    if (q->ev.id == id || q->ev.listen_id == id) {
        STAILQ_REMOVE(&id->cm->events, q, wf_cm_queued, next);
        return q;
    }
    return NULL;
}

// Requests that nobody has seen yet die with their listener.
void wf_cm_drop_events(struct wf_cm_id *id)
{
    struct wf_cm_queued *q;
    while ((q = take_one(id))) {
        struct wf_cm_id *child = q->ev.listen_id == id ? q->ev.id : NULL;
        free(q);
        if (child)
            wf_cm_id_destroy(child);
    }
}
