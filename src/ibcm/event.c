// SPDX-License-Identifier: BSD-2-Clause
#include "ibcm/ibcm.h"

#include <string.h>

static enum ib_qp_type qp_type_of(const struct wf_cm_req *q)
{
    switch (q->transport) {
    case WF_CM_UC:
        return IB_QPT_UC;
    case WF_CM_EXT:
        return IB_QPT_XRC_TGT;
    default:
        return IB_QPT_RC;
    }
}

static void request(struct ibcm_queued *q, struct ib_cm_req_event_param *p,
                    struct ib_sa_path_rec paths[2])
{
    const struct wf_cm_req *m = &q->ev.msg.req;
    p->listen_id = q->listener ? &q->listener->pub : NULL;
    p->port = 1;
    ibcm_path_rec(&q->ev.path, &paths[0]);
    p->primary_path = &paths[0];
    if (q->ev.has_alternate) {
        ibcm_path_rec(&q->ev.alternate, &paths[1]);
        p->alternate_path = &paths[1];
    }
    p->remote_ca_guid = htobe64(m->ca_guid);
    p->remote_qkey = m->qkey;
    p->remote_qpn = m->qpn;
    p->qp_type = qp_type_of(m);
    p->starting_psn = m->psn;
    // Seen from here: their depth is our resources, their remote timeout our local one.
    p->responder_resources = m->initiator_depth;
    p->initiator_depth = m->responder_resources;
    p->local_cm_response_timeout = m->remote_response_timeout & 0x1f;
    p->remote_cm_response_timeout = m->local_response_timeout & 0x1f;
    p->flow_control = m->flow_control;
    p->retry_count = m->retry_count & 7;
    p->rnr_retry_count = m->rnr_retry & 7;
    p->srq = m->srq;
}

static void reply(const struct wf_cm_rep *m, struct ib_cm_rep_event_param *p)
{
    p->remote_ca_guid = htobe64(m->ca_guid);
    p->remote_qkey = m->qkey;
    p->remote_qpn = m->qpn ? m->qpn : m->eecn; // XRC names its target there
    p->starting_psn = m->psn;
    p->responder_resources = m->initiator_depth;
    p->initiator_depth = m->responder_resources;
    p->target_ack_delay = m->target_ack_delay & 0x1f;
    p->failover_accepted = m->failover_accepted & 3;
    p->flow_control = m->flow_control;
    p->rnr_retry_count = m->rnr_retry & 7;
    p->srq = m->srq;
}

static void sidr_reply(struct wf_cm_sidr_rep *m, struct ib_cm_sidr_rep_event_param *p)
{
    p->status = (enum ib_cm_sidr_status)m->status;
    p->qkey = m->qkey;
    p->qpn = m->qpn;
    p->info = m->info;
    p->info_len = m->info_len;
}

// Requests can be for sizes that the field does not have.
static u8 at_most(unsigned len, unsigned max)
{
    return (u8)(len > max ? max : len);
}

void ibcm_event(struct ibcm_queued *q, struct ib_cm_event *out, struct ib_sa_path_rec paths[2])
{
    struct wf_cm_msg *m = &q->ev.msg;
    uint32_t len;
    memset(out, 0, sizeof(*out));
    out->event = (enum ib_cm_event_type)q->ev.type;
    out->private_data = m->hdr.attr ? wf_cm_msg_data(m, &len) : NULL;
    switch (q->ev.type) {
    case WF_CM_REQ_RECEIVED:
        request(q, &out->param.req_rcvd, paths);
        break;
    case WF_CM_REP_RECEIVED:
        reply(&m->rep, &out->param.rep_rcvd);
        break;
    case WF_CM_REJ_RECEIVED:
        out->param.rej_rcvd.reason = (enum ib_cm_rej_reason)m->rej.reason;
        out->param.rej_rcvd.ari = m->rej.ari;
        out->param.rej_rcvd.ari_length = at_most(m->rej.ari_len, IB_CM_REJ_ARI_LENGTH);
        break;
    case WF_CM_MRA_RECEIVED:
        out->param.mra_rcvd.service_timeout = m->mra.service_timeout;
        break;
    case WF_CM_LAP_RECEIVED:
        ibcm_path_rec(&q->ev.alternate, &paths[0]);
        out->param.lap_rcvd.alternate_path = &paths[0];
        break;
    case WF_CM_APR_RECEIVED:
        out->param.apr_rcvd.ap_status = (enum ib_cm_apr_status)m->apr.status;
        out->param.apr_rcvd.apr_info = m->apr.info;
        out->param.apr_rcvd.info_len = at_most(m->apr.info_len, IB_CM_APR_INFO_LENGTH);
        break;
    case WF_CM_SIDR_REQ_RECEIVED:
        out->param.sidr_req_rcvd.listen_id = q->listener ? &q->listener->pub : NULL;
        out->param.sidr_req_rcvd.port = 1;
        out->param.sidr_req_rcvd.pkey = m->sidr_req.pkey;
        break;
    case WF_CM_SIDR_REP_RECEIVED:
        sidr_reply(&m->sidr_rep, &out->param.sidr_rep_rcvd);
        out->param.sidr_rep_rcvd.info_len =
            at_most(m->sidr_rep.info_len, IB_CM_SIDR_REP_INFO_LENGTH);
        break;
    case WF_CM_REQ_ERROR:
    case WF_CM_REP_ERROR:
    case WF_CM_DREQ_ERROR:
    case WF_CM_LAP_ERROR:
    case WF_CM_SIDR_REQ_ERROR:
        out->param.send_status = IB_WC_RESP_TIMEOUT_ERR;
        break;
    case WF_CM_RTU_RECEIVED:
    case WF_CM_USER_ESTABLISHED:
    case WF_CM_DREQ_RECEIVED:
    case WF_CM_DREP_RECEIVED:
    case WF_CM_TIMEWAIT_EXIT:
        break;
    }
}
