// SPDX-License-Identifier: BSD-2-Clause
// Listeners. The connection manager knows one listener for a service id; those of several addresses
// share it and are told apart by the destination in the request.
#include "rdmacm/internal.h"

#include <errno.h>
#include <stdlib.h>

#define DEFAULT_BACKLOG 1024

static LIST_HEAD(, rcm_service) services = LIST_HEAD_INITIALIZER(services);

void rcm_services_reset(void)
{
    LIST_INIT(&services);
}

static struct rcm_service *find(uint64_t service_id)
{
    struct rcm_service *s;
    LIST_FOREACH(s, &services, next)
    if (s->service_id == service_id)
        return s;
    return NULL;
}

static void drop(struct rcm_service *s)
{
    LIST_REMOVE(s, next);
    wf_cm_id_destroy(s->cm_id);
    free(s);
}

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
    if (LIST_EMPTY(&s->listeners))
        drop(s);
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
    return 0;
}
