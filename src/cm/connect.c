// SPDX-License-Identifier: BSD-2-Clause
// The three-way exchange REQ, REP, RTU (IBA 12.9.3). request.c has the arrival of a REQ.
#include "cm/internal.h"

#include <errno.h>

static int transport_of(enum ibv_qp_type type, struct wf_cm_req *req)
{
    switch (type) {
    case IBV_QPT_RC:
        req->transport = WF_CM_RC;
        return 0;
    case IBV_QPT_UC:
        req->transport = WF_CM_UC;
        return 0;
    case IBV_QPT_XRC_SEND:
        req->transport = WF_CM_EXT;
        req->ext_transport = WF_CM_EXT_XRC;
        return 0;
    default:
        return wf_refuse(EINVAL, WF_R_ARG, "QP type %d cannot be connected", (int)type);
    }
}

static int check_req(const struct wf_cm_req_param *p)
{
    const struct wf_cm_route *alt = p->alternate;
    if (!p->path)
        return wf_refuse(EINVAL, WF_R_CM_PATH, "no primary path");
    if (alt && (alt->pkey != p->path->pkey || alt->mtu != p->path->mtu))
        return wf_refuse(EINVAL, WF_R_CM_PATH, "alternate path of P_Key 0x%04x and MTU %u",
                         alt->pkey, alt->mtu);
    if (p->data_len && !p->data)
        return wf_refuse(EINVAL, WF_R_ARG, "private data is NULL");
    return wf_cm_check_len("private data", p->data_len, WF_CM_REQ_DATA);
}

static void remember_req(struct wf_cm_id *id, const struct wf_cm_req_param *p)
{
    uint8_t ack_delay = id->cm->config.ack_delay;
    id->active = true;
    id->service_id = p->service_id;
    id->service_mask = UINT64_MAX;
    id->qp_type = p->qp_type;
    id->peer = p->path->dgid;
    id->path = *p->path;
    id->has_alternate = p->alternate != NULL;
    if (p->alternate) {
        id->alternate = *p->alternate;
        id->alt_ack_timeout = wf_cm_ack_timeout(ack_delay, p->alternate->life);
    }
    id->local_qpn = p->qpn;
    id->rq_psn = p->psn & 0xffffff;
    id->responder_resources = p->responder_resources;
    id->initiator_depth = p->initiator_depth;
    id->retry_count = p->retry_count;
    id->ack_timeout = wf_cm_ack_timeout(ack_delay, p->path->life);
    id->av_timeout = (uint8_t)(p->path->life + 1);
    id->remote_response_timeout = p->remote_response_timeout;
    id->max_cm_retries = p->max_cm_retries & 15;
    id->tid = wf_cm_tid(id);
}

static void fill_req(const struct wf_cm_id *id, const struct wf_cm_req_param *p,
                     struct wf_cm_msg *m)
{
    struct wf_cm_req *q = &m->req;
    uint8_t ack_delay = id->cm->config.ack_delay;
    wf_cm_begin(id, m, WF_CM_REQ, id->tid);
    m->hdr.modifier = p->ece_options;
    q->vendor_id = p->ece_vendor & 0xffffff;
    q->service_id = p->service_id;
    q->ca_guid = id->cm->config.ca_guid;
    q->qpn = p->qpn;
    q->responder_resources = p->responder_resources;
    q->initiator_depth = p->initiator_depth;
    q->remote_response_timeout = p->remote_response_timeout & 0x1f;
    q->local_response_timeout = p->local_response_timeout & 0x1f;
    q->flow_control = p->flow_control;
    q->psn = p->psn;
    q->retry_count = p->retry_count;
    q->rnr_retry = p->rnr_retry;
    q->pkey = p->path->pkey;
    q->mtu = p->path->mtu;
    q->max_cm_retries = p->max_cm_retries & 15;
    q->srq = p->srq;
    wf_cm_route_to_wire(p->path, ack_delay, &q->primary);
    if (p->alternate)
        wf_cm_route_to_wire(p->alternate, ack_delay, &q->alternate);
    wf_cm_add_data(m, &(struct wf_cm_data_arg){p->data, p->data_len});
}

int wf_cm_do_req(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_req_param *p = arg;
    const struct wf_cm_config *c = &id->cm->config;
    struct wf_cm_msg m;
    int index = c->ops->gid_index(c->arg, &p->path->sgid);
    if (index < 0)
        return wf_refuse(EINVAL, WF_R_CM_PATH, "the path's source GID is none of this device");
    id->sgid_index = (uint32_t)index;
    remember_req(id, p);
    fill_req(id, p, &m);
    int rc = transport_of(p->qp_type, &m.req);
    if (rc)
        return rc;
    uint64_t interval = 2 * wf_cm_ms(p->path->life) + wf_cm_ms(p->remote_response_timeout & 0x1f);
    rc = wf_cm_send_repeating(id, &m, interval, id->max_cm_retries);
    if (rc == 0 && p->peer_to_peer)
        wf_cm_peer_start(id);
    return rc;
}

int wf_cm_send_req(struct wf_cm_id *id, const struct wf_cm_req_param *param)
{
    int rc = check_req(param);
    return rc ? rc : wf_cm_step(id, IN_REQ, param);
}

int wf_cm_on_req_error(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    wf_explain(WF_R_CM_NO_ANSWER, "REQ for service 0x%016llx, communication id 0x%08x, %u tries",
               (unsigned long long)id->service_id, id->local_id, id->max_cm_retries + 1u);
    return wf_cm_push(id, WF_CM_REQ_ERROR, NULL);
}

// ---- REP ----------------------------------------------------------------------------------------

int wf_cm_do_rep(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rep_param *p = arg;
    struct wf_cm_msg m;
    struct wf_cm_rep *r = &m.rep;
    wf_cm_begin(id, &m, WF_CM_REP, id->tid);
    m.hdr.modifier = p->ece_options;
    r->vendor_id = p->ece_vendor & 0xffffff;
    if (id->qp_type == IBV_QPT_XRC_SEND)
        r->eecn = p->qpn;
    else
        r->qpn = p->qpn;
    r->psn = p->psn;
    r->responder_resources = p->responder_resources;
    r->initiator_depth = p->initiator_depth;
    r->target_ack_delay = id->cm->config.ack_delay;
    r->failover_accepted = p->failover_accepted;
    r->flow_control = p->flow_control;
    r->rnr_retry = p->rnr_retry;
    r->srq = p->srq;
    r->ca_guid = id->cm->config.ca_guid;
    wf_cm_add_data(&m, &(struct wf_cm_data_arg){p->data, p->data_len});
    int rc = wf_cm_send_repeating(id, &m, id->interval, id->max_cm_retries);
    if (rc)
        return rc;
    id->local_qpn = p->qpn;
    id->rq_psn = p->psn & 0xffffff;
    id->responder_resources = p->responder_resources;
    id->initiator_depth = p->initiator_depth;
    return 0;
}

int wf_cm_send_rep(struct wf_cm_id *id, const struct wf_cm_rep_param *param)
{
    int rc = wf_cm_check_len("private data", param->data_len, WF_CM_REP_DATA);
    return rc ? rc : wf_cm_step(id, IN_REP, param);
}

int wf_cm_on_rep_error(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    wf_explain(WF_R_CM_NO_ANSWER, "REP, communication id 0x%08x, %u tries", id->local_id,
               id->max_cm_retries + 1u);
    return wf_cm_push(id, WF_CM_REP_ERROR, NULL);
}

static uint32_t rep_qpn(const struct wf_cm_id *id, const struct wf_cm_rep *r)
{
    return id->qp_type == IBV_QPT_XRC_SEND ? r->eecn : r->qpn;
}

// 12.9.8.3: the peer names a QP that we still hold a connection with: one side has forgotten it.
static bool rep_is_stale(struct wf_cm_id *id, const struct wf_cm_rx *rx)
{
    const struct wf_cm_rep *r = &rx->msg->rep;
    struct wf_cm_id *old =
        wf_cm_find_remote(id->cm, KEY_QPN, rep_qpn(id, r), r->ca_guid, &id->peer);
    if (!old || old == id)
        return false;
    wf_explain(WF_R_CM_STALE, "REP for communication id 0x%08x: QP 0x%06x is still that of 0x%08x",
               id->local_id, rep_qpn(id, r), old->local_id);
    wf_cm_refuse_request(id->cm, rx, WF_CM_REJ_STALE, NULL, 0);
    if (old->state == WF_CM_ESTABLISHED)
        wf_cm_step(old, IN_DREQ, &(struct wf_cm_data_arg){NULL, 0});
    return true;
}

int wf_cm_on_rep(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rx *rx = arg;
    const struct wf_cm_rep *r = &rx->msg->rep;
    if (!r->local_id || rep_is_stale(id, rx))
        return -ESTALE;
    int rc = wf_cm_push(id, WF_CM_REP_RECEIVED, rx->msg);
    if (rc)
        return rc;
    wf_cm_timer_stop(id);
    id->remote_id = r->local_id;
    id->remote_qpn = rep_qpn(id, r);
    id->remote_guid = r->ca_guid;
    id->sq_psn = r->psn;
    id->rnr_retry = r->rnr_retry;
    // What the responder grants is what we may use, and the reverse.
    id->initiator_depth = r->responder_resources;
    id->responder_resources = r->initiator_depth;
    id->ack_timeout = wf_cm_ack_timeout(r->target_ack_delay, (uint8_t)(id->av_timeout - 1));
    if (id->has_alternate)
        id->alt_ack_timeout = wf_cm_ack_timeout(r->target_ack_delay, id->alternate.life);
    wf_cm_hash_remote(id, KEY_CONNECTION, r->local_id, r->ca_guid);
    wf_cm_hash_qpn(id, id->remote_qpn, r->ca_guid);
    return 0;
}

// The RTU or the MRA was lost. The passive side sends none: it has no answer to give.
int wf_cm_on_rep_again(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    return id->active && id->reply[0] ? wf_cm_reply_again(id, id->tid) : 0;
}

// ---- RTU ----------------------------------------------------------------------------------------

int wf_cm_do_rtu(struct wf_cm_id *id, const void *arg)
{
    struct wf_cm_msg m;
    wf_cm_begin(id, &m, WF_CM_RTU, id->tid);
    wf_cm_add_data(&m, arg);
    int rc = wf_cm_send(id, &m);
    if (rc == 0)
        wf_cm_keep_reply(id, &m);
    return rc;
}

int wf_cm_send_rtu(struct wf_cm_id *id, const void *data, uint8_t len)
{
    struct wf_cm_data_arg d = {data, len};
    int rc = wf_cm_check_len("private data", len, WF_CM_RTU_DATA);
    return rc ? rc : wf_cm_step(id, IN_RTU, &d);
}

int wf_cm_on_rtu(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rx *rx = arg;
    int rc = wf_cm_push(id, WF_CM_RTU_RECEIVED, rx->msg);
    if (rc == 0)
        wf_cm_timer_stop(id);
    return rc;
}

int wf_cm_do_established(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    int rc = wf_cm_push(id, WF_CM_USER_ESTABLISHED, NULL);
    if (rc == 0)
        wf_cm_timer_stop(id);
    return rc;
}

int wf_cm_notify_established(struct wf_cm_id *id)
{
    if (id->state == WF_CM_ESTABLISHED)
        return -EISCONN; // the RTU was faster: not worth a word
    return wf_cm_step(id, IN_ESTABLISHED, NULL);
}
