// SPDX-License-Identifier: BSD-2-Clause
// Multicast groups: members of this process are kept here, members of other processes and of other
// hosts are reached through weftd's list and the IP group.
#include "engine/engine.h"

#include "wire/grh.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

static bool same(const union ibv_gid *a, const union ibv_gid *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static struct wf_mcast_member *find(struct wf_hca *h, const struct wf_qp *qp,
                                    const union ibv_gid *mgid)
{
    struct wf_mcast_member *m;
    DL_FOREACH(h->mcast, m)
    {
        if (m->qp == qp && same(&m->mgid, mgid))
            return m;
    }
    return NULL;
}

// The GID whose interface the group is joined on: same family, first in the table.
static uint32_t join_index(const struct wf_hca *h, const union ibv_gid *mgid)
{
    bool v4 = wf_gid_is_ipv4(mgid);
    static const union ibv_gid zero;
    for (uint32_t i = 0; i < WF_GIDS; i++) {
        const union ibv_gid *g = &h->gids.gids[i].gid;
        if (!same(g, &zero) && wf_gid_is_ipv4(g) == v4)
            return i;
    }
    return 0;
}

int wf_qp_attach_mcast(struct wf_qp *qp, const union ibv_gid *mgid)
{
    struct wf_hca *h = wf_hca_of(qp);
    int err = 0;
    wf_enter(h);
    if (qp->type != IBV_QPT_UD || !wf_gid_is_multicast(mgid)) {
        err = wf_refuse(EINVAL, WF_R_ARG, "multicast needs a UD QP and a group address");
    } else if (!find(h, qp, mgid)) {
        struct wf_mcast_member *m = calloc(1, sizeof(*m));
        if (!m)
            err = wf_refuse(ENOMEM, WF_R_NO_MEMORY, "multicast member");
        else if (h->fabric)
            err = wf_fabric_mcast_join(h->fabric, mgid, join_index(h, mgid));
        if (err) {
            free(m);
        } else {
            m->qp = qp;
            m->mgid = *mgid;
            qp->mcast_groups++;
            DL_APPEND(h->mcast, m);
        }
    }
    wf_exit(h);
    return err;
}

int wf_qp_detach_mcast(struct wf_qp *qp, const union ibv_gid *mgid)
{
    struct wf_hca *h = wf_hca_of(qp);
    int err = 0;
    wf_enter(h);
    struct wf_mcast_member *m = find(h, qp, mgid);
    if (!m) {
        err = wf_refuse(EINVAL, WF_R_ARG, "QP 0x%06x is not in this multicast group", qp->qpn);
    } else {
        DL_DELETE(h->mcast, m);
        qp->mcast_groups--;
        if (h->fabric)
            wf_fabric_mcast_leave(h->fabric, mgid, join_index(h, mgid));
        free(m);
    }
    wf_exit(h);
    return err;
}

void wf_mcast_deliver(struct wf_hca *h, const struct wf_pkt *pkt)
{
    struct wf_mcast_member *m;
    if (!pkt->dgid)
        return;
    DL_FOREACH(h->mcast, m)
    {
        bool own = m->qp->qpn == pkt->sqpn;
        if (same(&m->mgid, pkt->dgid) &&
            !(own && m->qp->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB))
            wf_qp_datagram(m->qp, pkt);
    }
}

static void send_to_processes(struct wf_hca *h, const struct wf_path *path, struct wf_pkt *pkt)
{
    uint64_t slots[WF_SLOTS / 64] = {0};
    wf_fabric_mcast_members(h->fabric, &path->dgid, slots);
    for (uint32_t slot = 1; slot < WF_SLOTS; slot++) {
        struct wf_path to = *path;
        if (slot == h->slot || !(slots[slot / 64] >> slot % 64 & 1))
            continue;
        if (h->shm && wf_fabric_peer(h->fabric, slot, &to.peer) == 0 && to.peer->alive)
            h->shm->ops->send(h->shm, &to, pkt);
    }
}

int wf_mcast_send(struct wf_qp *qp, const struct wf_path *path, struct wf_pkt *pkt)
{
    struct wf_hca *h = wf_hca_of(qp);
    if (h->udp && h->udp->ops->send(h->udp, path, pkt) == -EAGAIN)
        return -EAGAIN;
    if (h->loop)
        h->loop->ops->send(h->loop, path, pkt);
    if (h->fabric)
        send_to_processes(h, path, pkt);
    return 0;
}
