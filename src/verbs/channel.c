// SPDX-License-Identifier: BSD-2-Clause
// Completion channels.
#include "verbs/face.h"
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>

_Static_assert(sizeof(struct ibv_comp_channel) == 16, "struct ibv_comp_channel");

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
    struct wf_vchannel *ch = calloc(1, sizeof(*ch));

    if (!ch)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_create_comp_channel"));
    ch->ibv.fd = wf_event_fd();
    if (ch->ibv.fd < 0) {
        int err = errno;

        free(ch);
        return wf_verb_null(
            wf_refuse(err, WF_R_LIMIT, "ibv_create_comp_channel: no file descriptor"));
    }
    ch->ibv.context = ctx;
    pthread_mutex_init(&ch->lock, NULL);
    return &ch->ibv;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
    struct wf_vchannel *ch = (struct wf_vchannel *)channel;
    int refs;

    pthread_mutex_lock(&channel->context->mutex);
    refs = channel->refcnt;
    pthread_mutex_unlock(&channel->context->mutex);
    if (refs)
        return wf_verb(wf_refuse(EBUSY, WF_R_BUSY, "completion channel: %d CQs use it", refs));
    close(channel->fd);
    pthread_mutex_destroy(&ch->lock);
    free(ch);
    return 0;
}

// Called by the engine, under its lock, once per arming of the CQ.
void wf_vchannel_raise(void *user)
{
    struct wf_vcq *cq = user;
    struct wf_vchannel *ch = (struct wf_vchannel *)cq->ibv.channel;

    pthread_mutex_lock(&ch->lock);
    if (cq->undelivered++ == 0)
        DL_APPEND(ch->head, cq);
    wf_event_signal(ch->ibv.fd);
    pthread_mutex_unlock(&ch->lock);
}

// Take one event; a CQ with several goes to the end, so that no CQ starves the others.
static struct wf_vcq *take(struct wf_vchannel *ch)
{
    struct wf_vcq *cq;

    pthread_mutex_lock(&ch->lock);
    cq = ch->head;
    if (cq) {
        DL_DELETE(ch->head, cq);
        if (--cq->undelivered)
            DL_APPEND(ch->head, cq);
        atomic_fetch_add(&cq->delivered, 1);
        if (!ch->head)
            wf_event_drain(ch->ibv.fd);
    }
    pthread_mutex_unlock(&ch->lock);
    return cq;
}

void wf_vchannel_drop(struct wf_vcq *cq)
{
    struct wf_vchannel *ch = (struct wf_vchannel *)cq->ibv.channel;

    pthread_mutex_lock(&ch->lock);
    if (cq->undelivered) {
        cq->undelivered = 0;
        DL_DELETE(ch->head, cq);
        if (!ch->head)
            wf_event_drain(ch->ibv.fd);
    }
    pthread_mutex_unlock(&ch->lock);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
    struct wf_vchannel *ch = (struct wf_vchannel *)channel;
    struct wf_vcq *got;

    while (!(got = take(ch))) {
        int rc = wf_event_wait(channel->fd, wf_vhca(channel->context));

        if (rc < 0) {
            errno = -rc;
            return -1;
        }
    }
    *cq = (struct ibv_cq *)&got->ibv;
    *cq_context = got->ibv.cq_context;
    return 0;
}

void ibv_ack_cq_events(struct ibv_cq *ibv, unsigned int nevents)
{
    struct wf_vcq *cq = wf_vcq(ibv);
    struct wf_vacks acks = {&ibv->mutex,    &ibv->cond, &ibv->comp_events_completed,
                            &cq->delivered, "CQ",       ibv->handle};

    if (nevents)
        wf_vacks_done(&acks, nevents);
}
