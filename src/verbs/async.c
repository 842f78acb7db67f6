// SPDX-License-Identifier: BSD-2-Clause
// Asynchronous events of a context: queued by the engine, read with ibv_get_async_event().
#include "verbs/face.h"
#include <stdlib.h>
#include <utlist.h>

struct wf_vevent {
    struct ibv_async_event event;
    struct wf_vevent *prev, *next;
};

void wf_vasync_init(struct wf_vasync *q)
{
    pthread_mutex_init(&q->lock, NULL);
    q->head = NULL;
}

void wf_vasync_fini(struct wf_vasync *q)
{
    struct wf_vevent *e, *tmp;

    DL_FOREACH_SAFE(q->head, e, tmp)
    free(e);
    pthread_mutex_destroy(&q->lock);
}

enum target { TARGET_NONE, TARGET_CQ, TARGET_QP, TARGET_SRQ };

static enum target target_of(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_CQ_ERR:
        return TARGET_CQ;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return TARGET_QP;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
        return TARGET_SRQ;
    default:
        return TARGET_NONE;
    }
}

// Where the event's acknowledgement is counted; false for events of ports and devices, which need
// none.
static bool acks_of(const struct ibv_async_event *event, struct wf_vacks *acks)
{
    switch (target_of(event->event_type)) {
    case TARGET_CQ: {
        struct wf_vcq *cq = wf_vcq(event->element.cq);
        *acks =
            (struct wf_vacks){&cq->ibv.mutex,       &cq->ibv.cond, &cq->ibv.async_events_completed,
                              &cq->async_delivered, "CQ",          cq->ibv.handle};
        return true;
    }
    case TARGET_QP: {
        struct wf_vqp *qp = wf_vqp(event->element.qp);
        struct ibv_qp *ibv = &qp->ibv.qp_base;
        *acks = (struct wf_vacks){&ibv->mutex,    &ibv->cond, &ibv->events_completed,
                                  &qp->delivered, "QP",       ibv->qp_num};
        return true;
    }
    case TARGET_SRQ: {
        struct wf_vsrq *srq = wf_vsrq(event->element.srq);
        *acks = (struct wf_vacks){&srq->ibv.mutex, &srq->ibv.cond, &srq->ibv.events_completed,
                                  &srq->delivered, "SRQ",          srq->ibv.handle};
        return true;
    }
    default:
        return false;
    }
}

static void push(struct wf_vcontext *v, const struct ibv_async_event *event)
{
    struct wf_vevent *e = malloc(sizeof(*e));

    if (!e) {
        wf_explain(WF_R_NO_MEMORY, "asynchronous event %d is lost", event->event_type);
        return;
    }
    e->event = *event;
    pthread_mutex_lock(&v->async.lock);
    DL_APPEND(v->async.head, e);
    wf_event_signal(v->verbs.context.async_fd);
    pthread_mutex_unlock(&v->async.lock);
}

// Called by the engine, under its lock.
void wf_vasync_raise(void *user, enum ibv_event_type type, void *object, uint8_t port)
{
    struct ibv_async_event event = {.event_type = type};
    struct wf_vfile *file = user;
    struct ibv_context *ctx = NULL;
    struct wf_vcontext *v;

    switch (target_of(type)) {
    case TARGET_CQ:
        event.element.cq = object;
        ctx = object ? event.element.cq->context : NULL;
        break;
    case TARGET_QP:
        event.element.qp = object;
        ctx = object ? event.element.qp->context : NULL;
        break;
    case TARGET_SRQ:
        event.element.srq = object;
        ctx = object ? event.element.srq->context : NULL;
        break;
    case TARGET_NONE:
        event.element.port_num = port;
        pthread_mutex_lock(&file->lock);
        DL_FOREACH(file->contexts, v)
        push(v, &event);
        pthread_mutex_unlock(&file->lock);
        return;
    }
    if (ctx)
        push(wf_vcontext(ctx), &event);
}

static bool pop(struct wf_vcontext *v, struct ibv_async_event *event)
{
    struct wf_vacks acks;
    struct wf_vevent *e;

    pthread_mutex_lock(&v->async.lock);
    e = v->async.head;
    if (e) {
        DL_DELETE(v->async.head, e);
        if (!v->async.head)
            wf_event_drain(v->verbs.context.async_fd);
        *event = e->event;
        if (acks_of(event, &acks))
            atomic_fetch_add(acks.delivered, 1);
    }
    pthread_mutex_unlock(&v->async.lock);
    free(e);
    return e != NULL;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
    struct wf_vcontext *v = wf_vcontext(ctx);

    while (!pop(v, event)) {
        int rc = wf_event_wait(ctx->async_fd, v->file->hca);

        if (rc < 0) {
            errno = -rc;
            return -1;
        }
    }
    return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
    struct wf_vacks acks;

    if (acks_of(event, &acks))
        wf_vacks_done(&acks, 1);
}

static bool concerns(const struct ibv_async_event *event, const void *object)
{
    switch (target_of(event->event_type)) {
    case TARGET_CQ:
        return event->element.cq == object;
    case TARGET_QP:
        return event->element.qp == object;
    case TARGET_SRQ:
        return event->element.srq == object;
    default:
        return false;
    }
}

// Forget what nobody got yet about an object that goes away.
void wf_vasync_drop(struct ibv_context *ctx, const void *object)
{
    struct wf_vcontext *v = wf_vcontext(ctx);
    struct wf_vevent *e, *tmp;
    bool any = false;

    pthread_mutex_lock(&v->async.lock);
    DL_FOREACH_SAFE(v->async.head, e, tmp)
    {
        if (!concerns(&e->event, object))
            continue;
        DL_DELETE(v->async.head, e);
        free(e);
        any = true;
    }
    if (any && !v->async.head)
        wf_event_drain(ctx->async_fd);
    pthread_mutex_unlock(&v->async.lock);
}
