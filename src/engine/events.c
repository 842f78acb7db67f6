// SPDX-License-Identifier: BSD-2-Clause
// What weftd tells: peers that died, addresses and links that changed, management datagrams.
#include "engine/engine.h"
#include "engine/tap.h"

#include <string.h>

void wf_ctx_event(struct wf_ctx *ctx, enum ibv_event_type type, void *object, uint8_t port)
{
    if (ctx->ops && ctx->ops->async)
        ctx->ops->async(ctx->user, type, object, port);
}

void wf_port_event(struct wf_hca *h, enum ibv_event_type type)
{
    for (struct wf_ctx *ctx = h->ctxs; ctx; ctx = ctx->next)
        wf_ctx_event(ctx, type, NULL, 1);
}

static void peer_died(struct wf_hca *h, uint32_t slot, uint64_t generation)
{
    // What it sent before, acknowledgements above all, still counts.
    while (h->shm && h->shm->ops->poll(h->shm, 64) > 0)
        wf_run_ready(h);
    for (struct wf_ctx *ctx = h->ctxs; ctx; ctx = ctx->next) {
        for (struct wf_qp *qp = ctx->qps; qp; qp = qp->next) {
            const struct wf_peer *peer = qp->path ? qp->path->peer : NULL;
            if (peer && peer->slot == slot && peer->generation == generation)
                wf_qp_peer_died(qp);
        }
    }
}

void wf_mad_deliver_now(struct wf_hca *h, const struct wf_mad *mad)
{
    if (h->mad_handler)
        h->mad_handler(h->mad_arg, mad);
}

static void handle(struct wf_hca *h, const struct wf_fabric_event *ev)
{
    switch (ev->type) {
    case WF_FABRIC_PEER_DIED:
        peer_died(h, ev->slot, ev->generation);
        return;
    case WF_FABRIC_GID_CHANGE:
        wf_fabric_gids(h->fabric, &h->gids);
        wf_port_event(h, IBV_EVENT_GID_CHANGE);
        return;
    case WF_FABRIC_PORT_ACTIVE:
        wf_fabric_gids(h->fabric, &h->gids);
        wf_port_event(h, IBV_EVENT_PORT_ACTIVE);
        return;
    case WF_FABRIC_PORT_ERR:
        wf_fabric_gids(h->fabric, &h->gids);
        wf_port_event(h, IBV_EVENT_PORT_ERR);
        return;
    case WF_FABRIC_MAD:
        if (h->tap && wf_tap_mad(h, true, &ev->mad.sgid, &ev->mad.dgid, 0, ev->mad.data))
            return;
        wf_mad_deliver_now(h, &ev->mad);
        return;
    case WF_FABRIC_CONTROL:
        wf_tap_control(h);
        return;
    case WF_FABRIC_LOST:
        // Connections go on without weftd; a failed rejoin is tried again at the next event.
        wf_fabric_rejoin(h->fabric);
        return;
    case WF_FABRIC_MCAST:
        return; // members are looked up for each datagram
    }
}

void wf_fabric_events(struct wf_hca *h)
{
    struct wf_fabric_event ev;
    if (!h->fabric)
        return;
    while (wf_fabric_next_event(h->fabric, &ev) == 0)
        handle(h, &ev);
}
