// SPDX-License-Identifier: BSD-2-Clause
// Arrival of a REQ (IBA 12.9.7.2): a duplicate, the other half of a peer-to-peer connection, stale,
// not acceptable, or new.
#include "cm/internal.h"

#include <errno.h>

// A communication id may be used again by its owner once the old connection is over there; PSN and
// QPN tell such a REQ from a late duplicate.
static bool same_request(const struct wf_cm_id *id, const struct wf_cm_req *q)
{
    return id->remote_qpn == q->qpn && id->sq_psn == q->psn;
}

static bool is_duplicate(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    const struct wf_cm_req *q = &rx->msg->req;
    struct wf_cm_id *id = wf_cm_find_remote(cm, KEY_CONNECTION, q->local_id, q->ca_guid, rx->sgid);
    if (!id)
        return false;
    if (id->state == WF_CM_TIMEWAIT && !same_request(id, q)) {
        wf_cm_unhash(id);
        return false;
    }
    wf_cm_step(id, RX_REQ, rx);
    return true;
}

int wf_cm_on_req_again(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    return id->reply[0] ? wf_cm_reply_again(id, id->tid) : 0;
}

static bool is_stale(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    const struct wf_cm_req *q = &rx->msg->req;
    struct wf_cm_id *old = wf_cm_find_remote(cm, KEY_QPN, q->qpn, q->ca_guid, rx->sgid);
    if (!old)
        return false;
    wf_explain(WF_R_CM_STALE, "REQ of communication id 0x%08x: QP 0x%06x is still that of 0x%08x",
               q->local_id, q->qpn, old->local_id);
    wf_cm_refuse_request(cm, rx, WF_CM_REJ_STALE, NULL, 0);
    if (old->state == WF_CM_ESTABLISHED)
        wf_cm_step(old, IN_DREQ, &(struct wf_cm_data_arg){NULL, 0});
    return true;
}

static bool qp_type_of(const struct wf_cm_req *q, enum ibv_qp_type *type)
{
    switch (q->transport) {
    case WF_CM_RC:
        *type = IBV_QPT_RC;
        return true;
    case WF_CM_UC:
        *type = IBV_QPT_UC;
        return true;
    case WF_CM_EXT:
        *type = IBV_QPT_XRC_SEND;
        return q->ext_transport == WF_CM_EXT_XRC;
    default:
        return false;
    }
}

static bool own_gid(struct wf_cm *cm, const union ibv_gid *gid)
{
    return cm->config.ops->gid_index(cm->config.arg, gid) >= 0;
}

// Reason to refuse the request whoever listens, or 0.
static uint16_t objection(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    const struct wf_cm_req *q = &rx->msg->req;
    enum ibv_qp_type type;
    if (!q->local_id)
        return WF_CM_REJ_COMM_ID;
    if (!qp_type_of(q, &type))
        return WF_CM_REJ_TRANSPORT;
    if (q->mtu < IBV_MTU_256 || q->mtu > IBV_MTU_4096)
        return WF_CM_REJ_MTU;
    if (!own_gid(cm, &q->primary.remote_gid))
        return WF_CM_REJ_GID;
    if (wf_cm_path_given(&q->alternate) && !own_gid(cm, &q->alternate.remote_gid))
        return WF_CM_REJ_ALT_GID;
    return 0;
}

static bool refused(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    uint16_t reason = objection(cm, rx);
    bool gid = reason == WF_CM_REJ_GID || reason == WF_CM_REJ_ALT_GID;
    if (!reason)
        return false;
    // 12.6.7.4: a GID that would have been right.
    wf_cm_refuse_request(cm, rx, reason, gid ? rx->dgid : NULL, gid ? sizeof(*rx->dgid) : 0);
    return true;
}

// Take over what the REQ says, from our point of view.
static void remember(struct wf_cm_id *id, const struct wf_cm_rx *rx)
{
    const struct wf_cm_req *q = &rx->msg->req;
    const struct wf_cm_config *c = &id->cm->config;
    int index = c->ops->gid_index(c->arg, rx->dgid);
    id->active = false;
    id->service_id = q->service_id;
    id->service_mask = UINT64_MAX;
    id->peer = *rx->sgid;
    id->sgid_index = index < 0 ? 0 : (uint32_t)index;
    id->tid = rx->msg->hdr.tid;
    id->remote_id = q->local_id;
    id->remote_guid = q->ca_guid;
    id->remote_qpn = q->qpn;
    id->sq_psn = q->psn;
    qp_type_of(q, &id->qp_type);
    wf_cm_route_from_wire(&q->primary, q->pkey, q->mtu, &id->path);
    id->has_alternate = wf_cm_path_given(&q->alternate);
    if (id->has_alternate)
        wf_cm_route_from_wire(&q->alternate, q->pkey, q->mtu, &id->alternate);
    id->responder_resources = q->initiator_depth;
    id->initiator_depth = q->responder_resources;
    id->retry_count = q->retry_count;
    id->rnr_retry = q->rnr_retry;
    id->ack_timeout = q->primary.ack_timeout;
    id->alt_ack_timeout = q->alternate.ack_timeout;
    id->av_timeout = (uint8_t)(id->path.life + 1);
    id->remote_response_timeout = q->local_response_timeout;
    id->max_cm_retries = q->max_cm_retries;
    id->interval = wf_cm_ms(q->local_response_timeout);
}

static int announce(struct wf_cm_id *id, const struct wf_cm_rx *rx, struct wf_cm_id *listener)
{
    struct wf_cm_event ev;
    memset(&ev, 0, sizeof(ev));
    ev.type = WF_CM_REQ_RECEIVED;
    ev.id = id;
    ev.listen_id = listener;
    ev.path = id->path;
    ev.alternate = id->alternate;
    ev.has_alternate = id->has_alternate;
    ev.msg = *rx->msg;
    return wf_cm_push_event(id->cm, &ev);
}

static int become_passive(struct wf_cm_id *id, const struct wf_cm_rx *rx, struct wf_cm_id *listener)
{
    const struct wf_cm_req *q = &rx->msg->req;
    remember(id, rx);
    int rc = announce(id, rx, listener);
    if (rc)
        return rc;
    wf_cm_hash_remote(id, KEY_CONNECTION, q->local_id, q->ca_guid);
    wf_cm_hash_qpn(id, q->qpn, q->ca_guid);
    wf_cm_enter(id, WF_CM_REQ_RCVD);
    return 0;
}

// ---- peer to peer (12.9.5.1) --------------------------------------------------------------------

// Of two peers the one with the larger GUID, or on one CA the larger QPN, stays active.
static bool we_stay_active(const struct wf_cm_id *id, const struct wf_cm_req *q)
{
    uint64_t guid = id->cm->config.ca_guid;
    return guid != q->ca_guid ? guid > q->ca_guid : id->local_qpn > q->qpn;
}

int wf_cm_on_peer_req(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rx *rx = arg;
    if (!id->peering)
        return -EINVAL;
    if (we_stay_active(id, &rx->msg->req))
        return 0; // the other side gives way once it has our REQ
    wf_cm_timer_stop(id);
    return become_passive(id, rx, NULL);
}

static bool is_for_peer(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    const struct wf_cm_req *q = &rx->msg->req;
    struct wf_cm_id *id;
    LIST_FOREACH(id, &cm->peers, listed)
    {
        bool own = id->local_id == q->local_id && q->ca_guid == cm->config.ca_guid;
        if (own || id->service_id != q->service_id || !wf_cm_from_peer(id, rx->sgid))
            continue;
        wf_cm_step(id, RX_PEER_REQ, rx);
        return true;
    }
    return false;
}

// ---- new ----------------------------------------------------------------------------------------

static void to_listener(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    struct wf_cm_id *id;
    struct wf_cm_id *l = wf_cm_find_listener(cm, rx->msg->req.service_id, rx->msg->req.data);
    if (!l) {
        wf_cm_refuse_request(cm, rx, WF_CM_REJ_SERVICE_ID, NULL, 0);
        return;
    }
    if (wf_cm_id_create(cm, NULL, &id))
        return;
    if (become_passive(id, rx, l))
        wf_cm_id_free(id);
}

void wf_cm_on_req(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    if (is_duplicate(cm, rx) || refused(cm, rx) || is_for_peer(cm, rx) || is_stale(cm, rx))
        return;
    to_listener(cm, rx);
}
