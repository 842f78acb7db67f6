// SPDX-License-Identifier: BSD-2-Clause
// Listeners. The connection manager knows one listener for a service id; those of several addresses
// share it and are told apart by the destination in the request.
//
// Some programs (perftest) end a listener as soon as it has brought a connection and begin a new
// one on the same port for the next, while the peer connects again without being told that it may.
// On a network the peer takes longer than that. Here it does not, so a service lives on for a
// moment and holds what comes meanwhile.
#include "rdmacm/internal.h"

#include "base/clock.h"
#include <errno.h>
#include <stdlib.h>

#define DEFAULT_BACKLOG 1024
#define GRACE           100000000ull // ns
#define MAX_HELD        64

static LIST_HEAD(, rcm_service) services = LIST_HEAD_INITIALIZER(services);

static struct wf_hca_timer timer = {.deadline = WF_NEVER};
static struct wf_cm_host *timer_host;

void rcm_services_reset(void)
{
    LIST_INIT(&services);
    timer = (struct wf_hca_timer){.deadline = WF_NEVER};
}

static struct rcm_service *find(uint64_t service_id)
{
    struct rcm_service *s;
    LIST_FOREACH(s, &services, next)
    if (s->service_id == service_id)
        return s;
    return NULL;
}

static struct rcm_held *take_held(struct rcm_service *s)
{
    struct rcm_held *h = STAILQ_FIRST(&s->held);
    if (h)
        STAILQ_REMOVE_HEAD(&s->held, next);
    return h;
}

static void drop(struct rcm_service *s)
{
    struct rcm_held *h;
    while ((h = take_held(s))) {
        if (h->ev.type == WF_CM_REQ_RECEIVED)
            (void)wf_cm_send_rej(h->ev.id, WF_CM_REJ_SERVICE_ID, NULL, 0, NULL, 0);
        wf_cm_id_destroy(h->ev.id);
        free(h);
    }
    LIST_REMOVE(s, next);
    wf_cm_id_destroy(s->cm_id);
    free(s);
}

// ---- between two listeners ----------------------------------------------------------------------

static void on_timer(struct wf_work *work);

static void arm(struct wf_cm_host *host)
{
    const struct rcm_service *s;
    uint64_t first = WF_NEVER;
    LIST_FOREACH(s, &services, next)
    if (s->expires && s->expires < first)
        first = s->expires;
    timer_host = host;
    timer.work.fn = on_timer;
    wf_hca_set_timer(wf_cm_host_hca(host), &timer, first);
}

static void on_timer(struct wf_work *work)
{
    struct wf_cm_host *host = timer_host;
    struct rcm_service *s, *after;
    (void)work;
    wf_cm_lock(host);
    for (s = LIST_FIRST(&services); s; s = after) {
        after = LIST_NEXT(s, next);
        if (s->expires && s->expires <= wf_clock_ns())
            drop(s);
    }
    arm(host);
    wf_cm_unlock(host);
}

bool rcm_hold(struct rcm_service *s, const struct wf_cm_event *e)
{
    const struct rcm_held *old;
    unsigned n = 0;
    STAILQ_FOREACH(old, &s->held, next)
    n++;
    struct rcm_held *h = s->expires && n < MAX_HELD ? calloc(1, sizeof(*h)) : NULL;
    if (!h)
        return false;
    h->ev = *e;
    STAILQ_INSERT_TAIL(&s->held, h, next);
    return true;
}

static void replay(struct rcm_service *s)
{
    struct rcm_held *h;
    s->expires = 0;
    while ((h = take_held(s))) {
        rcm_on_request(&s->owner, &h->ev);
        free(h);
    }
}

// ---- listen -------------------------------------------------------------------------------------

static int open_service(struct rcm_id *id, struct rcm_service **out)
{
    uint64_t service_id = rcm_id_service(id);
    struct rcm_service *s = find(service_id);
    if (s) {
        *out = s;
        return 0;
    }
    s = calloc(1, sizeof(*s));
    if (!s)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "listener");
    s->owner.event = rcm_on_request;
    s->service_id = service_id;
    LIST_INIT(&s->listeners);
    STAILQ_INIT(&s->held);
    int rc = wf_cm_id_create(wf_cm_lock_held(id->channel->host), &s->owner, &s->cm_id);
    if (rc) {
        free(s);
        return rc;
    }
    LIST_INSERT_HEAD(&services, s, next);
    rc = wf_cm_listen(s->cm_id, service_id, 0, NULL);
    if (rc) {
        drop(s);
        // Another process listens there.
        return rc == -EBUSY ? wf_refuse(EADDRINUSE, WF_R_RDMACM_PORT, "service id 0x%016llx",
                                        (unsigned long long)service_id)
                            : rc;
    }
    *out = s;
    return 0;
}

void rcm_unlisten(struct rcm_id *id)
{
    struct rcm_service *s = id->service;
    if (!s)
        return;
    LIST_REMOVE(id, of_service);
    id->service = NULL;
    if (!LIST_EMPTY(&s->listeners))
        return;
    s->expires = wf_clock_ns() + GRACE;
    arm(id->channel->host);
}

static int bind_somewhere(struct rcm_id *id)
{
    id->src.ss_family = AF_INET;
    id->afonly = true;
    int rc = rcm_port_bind(id);
    if (rc == 0)
        id->state = RCM_ADDR_BOUND;
    return rc;
}

int rcm_cmd_listen(const struct rcm_call *c)
{
    const struct rdma_ucm_listen *cmd = c->in;
    struct rcm_id *id;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc == 0 && id->state == RCM_IDLE)
        rc = bind_somewhere(id);
    if (rc)
        return rc;
    if (id->state != RCM_ADDR_BOUND)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "listen in state %d", id->state);
    rc = rcm_port_listen(id);
    if (rc == 0)
        rc = open_service(id, &id->service);
    if (rc)
        return rc;
    LIST_INSERT_HEAD(&id->service->listeners, id, of_service);
    int backlog = (int)cmd->backlog;
    id->backlog = backlog > 0 && backlog < DEFAULT_BACKLOG ? backlog : DEFAULT_BACKLOG;
    id->state = RCM_LISTENING;
    replay(id->service);
    return 0;
}
