// SPDX-License-Identifier: BSD-2-Clause
// Completion channels: a descriptor that is readable while some armed queue has fired.
#include "ugni/cq.h"
#include "ugni/thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

static struct gni_comp_chan *channel(gni_comp_chan_handle_t h)
{
    return wf_gni_pool_check(&wf_gni.chan_pool, h);
}

gni_return_t GNI_CompChanCreate(gni_nic_handle_t nic_hndl, gni_comp_chan_handle_t *chan_hndl)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    if (nic && chan_hndl) {
        struct gni_comp_chan *c = wf_gni_pool_get(&wf_gni.chan_pool);
        int fd = c ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;
        rc = GNI_RC_ERROR_NOMEM;
        if (fd >= 0) {
            c->nic = nic;
            c->fd = fd;
            DL_APPEND(nic->chans, c);
            *chan_hndl = c;
            rc = GNI_RC_SUCCESS;
        } else if (c) {
            wf_gni_pool_put(&wf_gni.chan_pool, c);
        }
    }
    wf_gni_unlock();
    return rc;
}

void wf_gni_chan_release(struct gni_comp_chan *c)
{
    struct gni_cq *cq;
    DL_FOREACH(c->nic->cqs, cq)
    if (cq->chan == c)
        wf_gni_chan_forget(cq);
    close(c->fd);
    DL_DELETE(c->nic->chans, c);
    wf_gni_pool_put(&wf_gni.chan_pool, c);
}

gni_return_t GNI_CompChanDestroy(gni_comp_chan_handle_t chan_hndl)
{
    wf_gni_lock();
    struct gni_comp_chan *c = channel(chan_hndl);
    if (c)
        wf_gni_chan_release(c);
    wf_gni_unlock();
    return c ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_CompChanFd(gni_comp_chan_handle_t chan_hndl, int *comp_chan_fd)
{
    wf_gni_lock();
    struct gni_comp_chan *c = channel(chan_hndl);
    bool ok = c && comp_chan_fd;
    if (ok)
        *comp_chan_fd = c->fd;
    wf_gni_unlock();
    return ok ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}

static void drain(struct gni_comp_chan *c)
{
    uint64_t count;
    if (!c->first && read(c->fd, &count, sizeof(count)) < 0)
        return; // was not readable
}

static struct gni_cq *pop(struct gni_comp_chan *c)
{
    struct gni_cq *cq = c->first;
    if (!cq)
        return NULL;
    c->first = cq->chan_next;
    if (!c->first)
        c->last = NULL;
    cq->chan_next = NULL;
    cq->fired = false;
    drain(c);
    return cq;
}

gni_return_t GNI_CompChanGetEvent(gni_comp_chan_handle_t chan_hndl, gni_cq_handle_t *cq_hndl)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    struct gni_comp_chan *c = channel(chan_hndl);
    if (c && cq_hndl) {
        struct gni_cq *cq = pop(c);
        rc = cq ? GNI_RC_SUCCESS : GNI_RC_NOT_DONE;
        if (cq)
            *cq_hndl = cq;
    }
    wf_gni_unlock();
    return rc;
}

void wf_gni_chan_fire(struct gni_cq *cq)
{
    struct gni_comp_chan *c = cq->chan;
    cq->armed = false;
    if (cq->fired)
        return;
    cq->fired = true;
    if (c->last)
        c->last->chan_next = cq;
    else
        c->first = cq;
    c->last = cq;
    wf_gni_wake(c->fd, 1);
}

void wf_gni_chan_forget(struct gni_cq *cq)
{
    struct gni_comp_chan *c = cq->chan;
    if (!c)
        return;
    if (cq->fired) {
        struct gni_cq **at = &c->first, *last = NULL;
        while (*at != cq) {
            last = *at;
            at = &(*at)->chan_next;
        }
        *at = cq->chan_next;
        if (c->last == cq)
            c->last = last;
        drain(c);
    }
    cq->fired = cq->armed = false;
    cq->chan_next = NULL;
    cq->chan = NULL;
}

gni_return_t GNI_CqAttachCompChan(gni_cq_handle_t cq_hndl, gni_comp_chan_handle_t chan_hndl)
{
    wf_gni_lock();
    struct gni_cq *cq = wf_gni_cq(cq_hndl);
    struct gni_comp_chan *c = channel(chan_hndl);
    bool ok = cq && c && !cq->chan && c->nic == cq->nic && GNI_CQ_IS_BLOCKING(cq->mode);
    if (ok)
        cq->chan = c;
    wf_gni_unlock();
    return ok ? GNI_RC_SUCCESS
              : wf_gni_refuse(GNI_RC_INVALID_PARAM,
                              "CqAttachCompChan: no blocking queue and channel of one NIC, or the "
                              "queue has a channel");
}

gni_return_t GNI_CqArmCompChan(gni_cq_handle_t *cq_hndls, uint32_t num_cqs)
{
    gni_return_t rc = cq_hndls && num_cqs ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    for (uint32_t i = 0; rc == GNI_RC_SUCCESS && i < num_cqs; i++) {
        struct gni_cq *cq = wf_gni_cq(cq_hndls[i]);
        if (!cq || !cq->chan)
            rc = wf_gni_refuse(GNI_RC_INVALID_PARAM, "CqArmCompChan: queue %u has no channel", i);
    }
    for (uint32_t i = 0; rc == GNI_RC_SUCCESS && i < num_cqs; i++) {
        struct gni_cq *cq = wf_gni_cq(cq_hndls[i]);
        cq->armed = true;
        if (wf_gni_cq_ready(cq))
            wf_gni_chan_fire(cq);
    }
    if (rc == GNI_RC_SUCCESS)
        wf_gni_doze(); // the caller sleeps on the descriptor next
    wf_gni_unlock();
    return rc;
}
