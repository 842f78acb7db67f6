// SPDX-License-Identifier: BSD-2-Clause
// From an address vector to where packets go. Only here and in link/ is it known that the device is
// RoCE: addresses of this host go over shared memory or the loop, all others over UDP.
#include "engine/engine.h"
#include "engine/tap.h"

#include "wire/grh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool gid_is_zero(const union ibv_gid *gid)
{
    static const union ibv_gid zero;
    return memcmp(gid, &zero, sizeof(zero)) == 0;
}

static bool is_local(const struct wf_hca *h, const union ibv_gid *gid)
{
    for (int i = 0; i < WF_GIDS; i++)
        if (memcmp(&h->gids.gids[i].gid, gid, sizeof(*gid)) == 0)
            return true;
    return false;
}

// IBA's way to spread flows, from the flow label or from the QP numbers (RoCEv2 annex 17.9.2).
static uint16_t source_port(uint32_t flow_label, uint32_t lqpn, uint32_t rqpn)
{
    uint32_t fl = flow_label & 0xfffff;
    if (!fl) {
        uint64_t v = (uint64_t)lqpn * rqpn;
        v ^= v >> 20;
        v ^= v >> 40;
        fl = v & 0xfffff;
    }
    return (uint16_t)(((fl & 0x3fff) ^ ((fl & 0xfc000) >> 14)) | 0xc000);
}

static uint32_t usable_mtu(uint32_t ifmtu)
{
    uint32_t mtu = 4096;
    while (mtu > 256 && mtu + 80 > ifmtu)
        mtu /= 2;
    return mtu;
}

static int check(struct wf_hca *h, const struct ibv_ah_attr *a)
{
    if (!a->is_global)
        return wf_refuse(EINVAL, WF_R_ARG, "an address on RoCE needs is_global and a GRH");
    if (a->port_num != 1 && a->port_num != 0)
        return wf_refuse(EINVAL, WF_R_ARG, "port %u of %d", a->port_num, WF_PORTS);
    if (a->grh.sgid_index >= WF_GIDS || gid_is_zero(&h->gids.gids[a->grh.sgid_index].gid))
        return wf_refuse(EINVAL, WF_R_NO_ROUTE, "GID index %u is empty", a->grh.sgid_index);
    return 0;
}

static void choose_connected(struct wf_hca *h, struct wf_path_ref *p, uint32_t dqpn)
{
    p->fixed = true;
    p->path.link = wf_route(h, &p->path, dqpn, &p->path.peer);
}

int wf_path_make(struct wf_hca *h, const struct ibv_ah_attr *a, uint32_t dqpn, bool connected,
                 struct wf_path_ref **out)
{
    int err = check(h, a);
    if (err)
        return err;
    struct wf_path_ref *p = calloc(1, sizeof(*p));
    if (!p)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "address vector");
    const struct wf_gid_slot *g = &h->gids.gids[a->grh.sgid_index];
    p->refs = 1;
    p->path = (struct wf_path){
        .sgid = g->gid,
        .dgid = a->grh.dgid,
        .sgid_index = a->grh.sgid_index,
        .flow_label = a->grh.flow_label,
        .tclass = a->grh.traffic_class,
        .hop_limit = a->grh.hop_limit ? a->grh.hop_limit : 64,
        .sl = a->sl,
        .local = is_local(h, &a->grh.dgid) && !h->force_udp,
        .ifindex = g->ifindex,
        .mtu = usable_mtu(g->ifmtu),
        .sport = source_port(a->grh.flow_label, h->slot << 16, dqpn),
    };
    if (p->path.local)
        p->path.mtu = 4096;
    if (connected)
        choose_connected(h, p, dqpn);
    *out = p;
    return 0;
}

void wf_path_put(struct wf_path_ref *p)
{
    if (p && --p->refs == 0)
        free(p);
}

struct wf_link *wf_route(struct wf_hca *h, const struct wf_path *path, uint32_t dqpn,
                         struct wf_peer **peer)
{
    *peer = NULL;
    if (!path->local)
        return h->udp;
    uint32_t slot = dqpn >> 16;
    if (slot == h->slot)
        return h->loop;
    if (!h->fabric || !h->shm || wf_fabric_peer(h->fabric, slot, peer))
        return NULL;
    return (*peer)->alive ? h->shm : NULL;
}

// A connected QP has got its path: what one packet may carry, and how much may be under way.
#define UDP_WINDOW_START (64u << 10)
#define UDP_WINDOW_MAX   (256u << 10)
#define UDP_READ_PIECE   (64u << 10)

static bool on_udp(const struct wf_hca *h, const struct wf_qp *qp)
{
    return h->udp && qp->path && qp->path->link == h->udp;
}

#define WHOLE_MESSAGE 0x80000000u // longer than any

uint32_t wf_qp_segment(struct wf_qp *qp)
{
    struct wf_hca *h = wf_hca_of(qp);
    const struct wf_path *path = qp->path;
    if (!path->link || path->link == h->udp || (h->tap && wf_tap_no_onesided(h)))
        return qp->mtu;
    if (path->link == h->loop)
        return WHOLE_MESSAGE;
    uint32_t max = wf_shm_max_payload(h->shm, path->peer);
    // UC has no acknowledgement that would tell when a payload left in place was fetched.
    if (qp->type == IBV_QPT_UC || max < WF_SHM_COPY_MAX)
        max = WF_SHM_COPY_MAX;
    return max >= WF_LIMIT_MSG ? WHOLE_MESSAGE : max / qp->mtu * qp->mtu;
}

void wf_qp_use_path(struct wf_qp *qp)
{
    struct wf_hca *h = wf_hca_of(qp);
    const struct wf_path *path = qp->path;
    qp->one_sided = false;
    qp->seg = qp->mtu;
    qp->req.cwnd = 0;
    qp->req.read_chunk = 0;
    if (on_udp(h, qp)) {
        h->udp_qps++;
        qp->req.cwnd = UDP_WINDOW_START / qp->mtu;
        qp->req.cwnd_max = UDP_WINDOW_MAX / qp->mtu;
        qp->req.ssthresh = qp->req.cwnd_max;
        qp->req.read_chunk = UDP_READ_PIECE;
        return;
    }
    qp->seg = wf_qp_segment(qp);
    if (path->link && path->link == h->shm)
        qp->one_sided = path->peer->cma && qp->type == IBV_QPT_RC;
}
