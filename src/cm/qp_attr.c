// SPDX-License-Identifier: BSD-2-Clause
// Attributes for the moves of the QP that belongs to an id (what ib_cm_init_qp_attr() gives).
#include "cm/internal.h"

#include <errno.h>

#define MIN_RNR_TIMER 0 // 655 ms

static int refuse(const struct wf_cm_id *id, enum ibv_qp_state state)
{
    return wf_refuse(EINVAL, WF_R_CM_STATE,
                     "QP attributes for state %d, communication id 0x%08x in %s", (int)state,
                     id->local_id, wf_cm_state_name(id->state));
}

static bool connecting(const struct wf_cm_id *id)
{
    return id->state >= WF_CM_REQ_SENT && id->state <= WF_CM_ESTABLISHED;
}

// The peer's QPN and PSN are known from the REP or REQ on.
static bool peer_known(const struct wf_cm_id *id)
{
    return connecting(id) && id->state != WF_CM_REQ_SENT && id->state != WF_CM_MRA_REQ_RCVD;
}

static bool reliable(const struct wf_cm_id *id)
{
    return id->qp_type != IBV_QPT_UC;
}

static bool initiates(const struct wf_cm_id *id)
{
    return id->qp_type != IBV_QPT_XRC_SEND || id->active;
}

static bool responds(const struct wf_cm_id *id)
{
    return id->qp_type != IBV_QPT_XRC_SEND || !id->active;
}

static void address(const struct wf_cm_id *id, const struct wf_cm_route *r, struct ibv_ah_attr *ah)
{
    const struct wf_cm_config *c = &id->cm->config;
    int index = c->ops->gid_index(c->arg, &r->sgid);
    memset(ah, 0, sizeof(*ah));
    ah->is_global = 1;
    ah->port_num = 1;
    ah->sl = r->sl;
    ah->dlid = r->dlid;
    ah->static_rate = r->rate;
    ah->grh.dgid = r->dgid;
    ah->grh.sgid_index = index < 0 ? 0 : (uint8_t)index;
    ah->grh.flow_label = r->flow_label;
    ah->grh.hop_limit = r->hop_limit;
    ah->grh.traffic_class = r->tclass;
}

static void alternate(const struct wf_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    *mask |= IBV_QP_ALT_PATH;
    address(id, &id->alternate, &attr->alt_ah_attr);
    attr->alt_port_num = 1;
    attr->alt_pkey_index = 0;
    attr->alt_timeout = id->alt_ack_timeout;
}

static int to_init(const struct wf_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    if (!connecting(id))
        return refuse(id, IBV_QPS_INIT);
    *mask = IBV_QP_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    if (id->responder_resources)
        attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    attr->pkey_index = 0;
    attr->port_num = 1;
    return 0;
}

static int to_rtr(const struct wf_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    if (!peer_known(id))
        return refuse(id, IBV_QPS_RTR);
    *mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    address(id, &id->path, &attr->ah_attr);
    attr->path_mtu = id->path.mtu;
    attr->dest_qp_num = id->remote_qpn;
    attr->rq_psn = id->rq_psn;
    if (reliable(id) && responds(id)) {
        *mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        attr->max_dest_rd_atomic = id->responder_resources;
        attr->min_rnr_timer = MIN_RNR_TIMER;
    }
    if (reliable(id) && id->has_alternate)
        alternate(id, attr, mask);
    return 0;
}

static void rearm(const struct wf_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    if (id->lap != WF_CM_LAP_UNINIT)
        alternate(id, attr, mask);
    *mask |= IBV_QP_PATH_MIG_STATE;
    attr->path_mig_state = IBV_MIG_REARM;
}

static int to_rts(const struct wf_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    if (!peer_known(id))
        return refuse(id, IBV_QPS_RTS);
    if (id->lap != WF_CM_LAP_UNINIT && id->has_alternate) {
        *mask = 0; // the QP is in RTS: only a new alternate path is loaded
        rearm(id, attr, mask);
        return 0;
    }
    *mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    attr->sq_psn = id->sq_psn;
    if (reliable(id) && initiates(id)) {
        *mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        attr->timeout = id->ack_timeout;
        attr->retry_cnt = id->retry_count;
        attr->rnr_retry = id->rnr_retry;
        attr->max_rd_atomic = id->initiator_depth;
    } else if (reliable(id)) {
        *mask |= IBV_QP_TIMEOUT;
        attr->timeout = id->ack_timeout;
    }
    if (reliable(id) && id->has_alternate)
        rearm(id, attr, mask);
    return 0;
}

int wf_cm_init_qp_attr(struct wf_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
    switch (attr->qp_state) {
    case IBV_QPS_INIT:
        return to_init(id, attr, mask);
    case IBV_QPS_RTR:
        return to_rtr(id, attr, mask);
    case IBV_QPS_RTS:
        return to_rts(id, attr, mask);
    default:
        return refuse(id, attr->qp_state);
    }
}
