// SPDX-License-Identifier: BSD-2-Clause
// Connect, accept, reject, disconnect, notify.
#include "rdmacm/internal.h"

#include <errno.h>
#include <string.h>

// Linux's settings: 4 seconds to answer, 15 repetitions.
#define RESPONSE_TIMEOUT 20
#define MAX_CM_RETRIES   15

static uint8_t at_most_7(uint8_t n)
{
    return n > 7 ? 7 : n;
}

uint64_t rcm_id_service(const struct rcm_id *id)
{
    const struct sockaddr_storage *sa =
        id->state == RCM_LISTENING || id->state == RCM_ADDR_BOUND ? &id->src : &id->dst;
    if (sa->ss_family == AF_IB) {
        const struct sockaddr_ib *ib = (const struct sockaddr_ib *)sa;
        return be64toh(ib->sib_sid);
    }
    return rcm_service_id(id->ps, rcm_addr_port(sa));
}

unsigned rcm_data_offset(const struct rcm_id *id)
{
    return id->src.ss_family == AF_IB ? 0 : RCM_HDR_SIZE;
}

// The header, then the program's data. Room for the longest of both.
static int private_data(const struct rcm_id *id, const uint8_t *data, unsigned len,
                        uint8_t out[RCM_HDR_SIZE + RDMA_MAX_PRIVATE_DATA], unsigned max,
                        uint8_t *total)
{
    unsigned offset = rcm_data_offset(id);
    if (offset + len > max)
        return wf_refuse(EINVAL, WF_R_CM_DATA, "private data of %u bytes, at most %u fit", len,
                         max - offset);
    int rc = 0;
    if (offset)
        rc = rcm_hdr_put(out, (const struct sockaddr *)&id->src, (const struct sockaddr *)&id->dst);
    memcpy(out + offset, data, len);
    *total = (uint8_t)(offset + len);
    return rc;
}

// ---- connect ------------------------------------------------------------------------------------

// An ACK timeout that was asked for becomes the path's life time, so that both sides follow it.
static void apply_ack_timeout(struct rcm_id *id)
{
    if (id->ack_timeout_set && id->ack_timeout)
        id->path.life = (uint8_t)(id->ack_timeout - 1);
}

static int connect_reliable(struct rcm_id *id, const struct rdma_ucm_connect *cmd)
{
    const struct rdma_ucm_conn_param *p = &cmd->conn_param;
    uint8_t data[RCM_HDR_SIZE + RDMA_MAX_PRIVATE_DATA];
    struct wf_cm_req_param req = {
        .path = &id->path,
        .service_id = rcm_id_service(id),
        .qpn = p->qp_num,
        .qp_type = id->qp_type,
        .psn = id->psn,
        .data = data,
        .responder_resources = p->responder_resources,
        .initiator_depth = p->initiator_depth,
        .remote_response_timeout = RESPONSE_TIMEOUT,
        .local_response_timeout = RESPONSE_TIMEOUT,
        .flow_control = p->flow_control,
        .srq = p->srq,
        .retry_count = at_most_7(p->retry_count),
        .rnr_retry = at_most_7(p->rnr_retry_count),
        .max_cm_retries = MAX_CM_RETRIES,
        .ece_vendor = cmd->ece.vendor_id,
        .ece_options = cmd->ece.attr_mod,
    };
    apply_ack_timeout(id);
    int rc =
        private_data(id, p->private_data, p->private_data_len, data, WF_CM_REQ_DATA, &req.data_len);
    return rc ? rc : wf_cm_send_req(id->cm_id, &req);
}

static int connect_datagram(struct rcm_id *id, const struct rdma_ucm_conn_param *p)
{
    uint8_t data[RCM_HDR_SIZE + RDMA_MAX_PRIVATE_DATA];
    struct wf_cm_sidr_req_param req = {
        .path = &id->path,
        .service_id = rcm_id_service(id),
        .timeout_ms = 1u << (RESPONSE_TIMEOUT - 8),
        .data = data,
        .max_cm_retries = MAX_CM_RETRIES,
    };
    int rc = private_data(id, p->private_data, p->private_data_len, data, WF_CM_SIDR_REQ_DATA,
                          &req.data_len);
    return rc ? rc : wf_cm_send_sidr_req(id->cm_id, &req);
}

int rcm_cmd_connect(const struct rcm_call *c)
{
    const struct rdma_ucm_connect *cmd = c->in;
    struct rcm_id *id;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc)
        return rc;
    if (!cmd->conn_param.valid)
        return -EINVAL;
    if (id->state != RCM_ROUTE_OK)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "connect in state %d", id->state);
    struct wf_cm *cm = wf_cm_lock_held(id->channel->host);
    rc = wf_cm_id_create(cm, &id->owner, &id->cm_id);
    if (rc)
        return rc;
    id->qpn = cmd->conn_param.qp_num;
    id->srq = cmd->conn_param.srq;
    rc = id->qp_type == IBV_QPT_UD ? connect_datagram(id, &cmd->conn_param)
                                   : connect_reliable(id, cmd);
    if (rc) {
        wf_cm_id_destroy(id->cm_id);
        id->cm_id = NULL;
        return rc;
    }
    id->state = RCM_CONNECT;
    return 0;
}

// ---- accept -------------------------------------------------------------------------------------

static int accept_datagram(struct rcm_id *id, const struct rdma_ucm_accept *cmd)
{
    const struct rdma_ucm_conn_param *p = &cmd->conn_param;
    if (p->qkey)
        id->qkey = p->qkey;
    rcm_default_qkey(id);
    struct wf_cm_sidr_rep_param rep = {
        .qpn = p->qp_num,
        .qkey = id->qkey,
        .status = WF_CM_SIDR_SUCCESS,
        .data = p->private_data,
        .data_len = p->private_data_len,
        .ece_vendor = cmd->ece.vendor_id,
        .ece_options = cmd->ece.attr_mod,
    };
    return wf_cm_send_sidr_rep(id->cm_id, &rep);
}

static int accept_reliable(struct rcm_id *id, const struct rdma_ucm_accept *cmd)
{
    const struct rdma_ucm_conn_param *p = &cmd->conn_param;
    struct wf_cm_rep_param rep = {
        .qpn = p->qp_num,
        .psn = id->psn,
        .data = p->private_data,
        .data_len = p->private_data_len,
        .responder_resources = p->responder_resources,
        .initiator_depth = p->initiator_depth,
        .flow_control = p->flow_control,
        .srq = p->srq,
        .rnr_retry = at_most_7(p->rnr_retry_count),
        .ece_vendor = cmd->ece.vendor_id,
        .ece_options = cmd->ece.attr_mod,
    };
    return wf_cm_send_rep(id->cm_id, &rep);
}

static int accept_any(struct rcm_id *id, const struct rdma_ucm_accept *cmd)
{
    // Without parameters it is the active side, whose QP is ready: the RTU.
    if (!cmd->conn_param.valid)
        return id->qp_type == IBV_QPT_UD ? -EINVAL : wf_cm_send_rtu(id->cm_id, NULL, 0);
    id->qpn = cmd->conn_param.qp_num;
    id->srq = cmd->conn_param.srq;
    return id->qp_type == IBV_QPT_UD ? accept_datagram(id, cmd) : accept_reliable(id, cmd);
}

int rcm_cmd_accept(const struct rcm_call *c)
{
    const struct rdma_ucm_accept *cmd = c->in;
    struct rcm_id *id;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc)
        return rc;
    if (id->state != RCM_CONNECT || !id->cm_id)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "accept in state %d", id->state);
    uint64_t uid = id->uid;
    if (cmd->conn_param.valid)
        id->uid = cmd->uid;
    rc = accept_any(id, cmd);
    if (rc) {
        id->uid = uid;
        wf_cm_id_destroy(id->cm_id); // tells the peer
        id->cm_id = NULL;
    }
    return rc;
}

// ---- reject, disconnect, notify -----------------------------------------------------------------

int rcm_cmd_reject(const struct rcm_call *c)
{
    const struct rdma_ucm_reject *cmd = c->in;
    struct rcm_id *id;
    uint8_t reason = cmd->reason ? cmd->reason : WF_CM_REJ_CONSUMER;
    if (reason != WF_CM_REJ_CONSUMER && reason != 35) // 35: vendor option not supported
        return -EINVAL;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc)
        return rc;
    if (!id->cm_id)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "reject in state %d", id->state);
    if (id->qp_type != IBV_QPT_UD)
        return wf_cm_send_rej(id->cm_id, reason, NULL, 0, cmd->private_data, cmd->private_data_len);
    struct wf_cm_sidr_rep_param rep = {
        .status = WF_CM_SIDR_REJECT, .data = cmd->private_data, .data_len = cmd->private_data_len};
    return wf_cm_send_sidr_rep(id->cm_id, &rep);
}

int rcm_cmd_disconnect(const struct rcm_call *c)
{
    const struct rdma_ucm_disconnect *cmd = c->in;
    struct rcm_id *id;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc)
        return rc;
    if (!id->cm_id)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "disconnect in state %d", id->state);
    // Begin or answer; where neither fits, the connection is over already.
    if (wf_cm_id_state(id->cm_id) == WF_CM_ESTABLISHED)
        (void)wf_cm_send_dreq(id->cm_id, NULL, 0);
    else if (wf_cm_id_state(id->cm_id) == WF_CM_DREQ_RCVD)
        (void)wf_cm_send_drep(id->cm_id, NULL, 0);
    return 0;
}

int rcm_cmd_notify(const struct rcm_call *c)
{
    const struct rdma_ucm_notify *cmd = c->in;
    struct rcm_id *id;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc)
        return rc;
    if (!id->cm_id)
        return -EINVAL;
    switch (cmd->event) {
    case IBV_EVENT_COMM_EST:
        return wf_cm_notify_established(id->cm_id);
    case IBV_EVENT_PATH_MIG:
        return wf_cm_notify_migrated(id->cm_id);
    default:
        return wf_refuse(EINVAL, WF_R_ARG, "event %u is not one to notify of", cmd->event);
    }
}
