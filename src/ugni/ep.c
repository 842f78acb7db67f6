// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/dgram.h"
#include "ugni/peer.h"
#include "ugni/smsg.h"
#include "ugni/state.h"

gni_return_t GNI_EpCreate(gni_nic_handle_t nic_hndl, gni_cq_handle_t src_cq_hndl,
                          gni_ep_handle_t *ep_hndl)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    struct gni_nic *nic = wf_gni_nic(nic_hndl);
    struct gni_cq *cq = wf_gni_cq(src_cq_hndl);
    bool cq_ok = !src_cq_hndl || (cq && cq->nic == nic && cq->use != WF_GNI_CQ_DESTINATION);
    struct gni_ep *ep = nic && cq_ok && ep_hndl ? wf_gni_pool_get(&wf_gni.ep_pool) : NULL;
    if (ep) {
        ep->nic = nic;
        ep->cq = cq;
        if (cq) {
            cq->users++;
            cq->use = WF_GNI_CQ_SOURCE;
        }
        DL_APPEND(nic->eps, ep);
        *ep_hndl = ep;
        rc = GNI_RC_SUCCESS;
    } else if (nic && cq_ok && ep_hndl) {
        rc = GNI_RC_ERROR_NOMEM;
    } else {
        wf_gni_refuse(rc, "EpCreate: nic %p, queue %p%s", (void *)nic_hndl, (void *)src_cq_hndl,
                      cq && !cq_ok ? " of another NIC or of memory" : "");
    }
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_EpSetEventData(gni_ep_handle_t ep_hndl, uint32_t local_event,
                                uint32_t remote_event)
{
    wf_gni_lock();
    struct gni_ep *ep = wf_gni_ep(ep_hndl);
    if (ep) {
        ep->local_event = local_event;
        ep->remote_event = remote_event;
    }
    wf_gni_unlock();
    return ep ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_EpBind(gni_ep_handle_t ep_hndl, uint32_t remote_addr, uint32_t remote_id)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    wf_gni_lock();
    struct gni_ep *ep = wf_gni_ep(ep_hndl);
    if (!ep || ep->bound || ep->session) {
        rc = wf_gni_refuse(GNI_RC_INVALID_PARAM, "EpBind: %s",
                           !ep         ? "no endpoint"
                           : ep->bound ? "bound already"
                                       : "a datagram is posted");
    } else {
        ep->bound = true;
        ep->pe = remote_addr;
        ep->remote_id = remote_id;
        ep->local_event = remote_id;
        ep->remote_event = ep->nic->cdm->inst_id;
        ep->peer = NULL;
    }
    wf_gni_unlock();
    return rc;
}

static gni_return_t idle(const struct gni_ep *ep)
{
    if (ep->reqs)
        return wf_gni_refuse(GNI_RC_NOT_DONE, "endpoint: posts or sends are under way");
    if (ep->session)
        return wf_gni_refuse(GNI_RC_NOT_DONE, "endpoint: a datagram is posted");
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_EpUnbind(gni_ep_handle_t ep_hndl)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    wf_gni_progress();
    struct gni_ep *ep = wf_gni_ep(ep_hndl);
    // libfabric unbinds endpoints that it never bound, and takes anything but success for fatal.
    if (ep)
        rc = idle(ep);
    else
        wf_gni_refuse(rc, "EpUnbind: %p", (void *)ep_hndl);
    if (rc == GNI_RC_SUCCESS) {
        wf_gni_smsg_release(ep);
        ep->bound = false;
        ep->peer = NULL;
    }
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_EpIdle(gni_ep_handle_t ep_hndl)
{
    wf_gni_lock();
    wf_gni_progress();
    struct gni_ep *ep = wf_gni_ep(ep_hndl);
    gni_return_t rc = ep ? idle(ep) : GNI_RC_INVALID_PARAM;
    wf_gni_unlock();
    return rc;
}

void wf_gni_ep_release(struct gni_ep *ep)
{
    struct wf_gni_req *r, *tmp;
    wf_gni_dgram_ep_release(ep);
    wf_gni_smsg_release(ep);
    DL_FOREACH_SAFE2(ep->reqs, r, tmp, enext)
    {
        DL_DELETE2(ep->reqs, r, eprev, enext);
        r->ep = NULL; // completes on its own, to its queue
    }
    if (ep->cq && --ep->cq->users == 0)
        ep->cq->use = WF_GNI_CQ_UNUSED;
    DL_DELETE(ep->nic->eps, ep);
    wf_gni_pool_put(&wf_gni.ep_pool, ep);
}

gni_return_t GNI_EpDestroy(gni_ep_handle_t ep_hndl)
{
    wf_gni_lock();
    struct gni_ep *ep = wf_gni_ep(ep_hndl);
    if (ep)
        wf_gni_ep_release(ep);
    wf_gni_unlock();
    return ep ? GNI_RC_SUCCESS
              : wf_gni_refuse(GNI_RC_INVALID_PARAM, "EpDestroy: %p", (void *)ep_hndl);
}

struct wf_gni_peer *wf_gni_ep_peer(struct gni_ep *ep)
{
    // A peer that died stays dead for this binding: its memory and mailboxes are gone.
    if (!ep->peer)
        ep->peer = wf_gni_peer_get(ep->pe);
    return ep->peer;
}
