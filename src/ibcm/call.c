// SPDX-License-Identifier: BSD-2-Clause
// The calls on an id: translate, hold the lock, show the new state.
#include "ibcm/ibcm.h"

#include <errno.h>
#include <string.h>

static void begin(struct ibcm_id *id)
{
    (void)wf_cm_lock(id->host);
}

static int done(struct ibcm_id *id, int rc)
{
    ibcm_show(id);
    wf_cm_unlock(id->host);
    return rc;
}

WEFT_API int ib_cm_listen(struct ib_cm_id *cm_id, __be64 service_id, __be64 service_mask,
                          struct ib_cm_compare_data *compare_data)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    struct wf_cm_compare compare;
    if (compare_data) {
        memcpy(compare.data, compare_data->data, sizeof(compare.data));
        memcpy(compare.mask, compare_data->mask, sizeof(compare.mask));
    }
    begin(id);
    return done(id, wf_cm_listen(id->cm, be64toh(service_id), be64toh(service_mask),
                                 compare_data ? &compare : NULL));
}

WEFT_API int ib_send_cm_req(struct ib_cm_id *cm_id, struct ib_cm_req_param *param)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    struct wf_cm_route path, alternate;
    if (!param->primary_path)
        return wf_refuse(EINVAL, WF_R_CM_PATH, "no primary path");
    ibcm_route(param->primary_path, &path);
    if (param->alternate_path)
        ibcm_route(param->alternate_path, &alternate);
    struct wf_cm_req_param p = {
        .path = &path,
        .alternate = param->alternate_path ? &alternate : NULL,
        .service_id = be64toh(param->service_id),
        .qpn = param->qp_num,
        .qp_type = (enum ibv_qp_type)param->qp_type,
        .psn = param->starting_psn,
        .data = param->private_data,
        .data_len = param->private_data_len,
        .peer_to_peer = param->peer_to_peer,
        .responder_resources = param->responder_resources,
        .initiator_depth = param->initiator_depth,
        .remote_response_timeout = param->remote_cm_response_timeout,
        .local_response_timeout = param->local_cm_response_timeout,
        .flow_control = param->flow_control,
        .srq = param->srq,
        .retry_count = param->retry_count,
        .rnr_retry = param->rnr_retry_count,
        .max_cm_retries = param->max_cm_retries,
    };
    begin(id);
    return done(id, wf_cm_send_req(id->cm, &p));
}

WEFT_API int ib_send_cm_rep(struct ib_cm_id *cm_id, struct ib_cm_rep_param *param)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    struct wf_cm_rep_param p = {
        .qpn = param->qp_num,
        .psn = param->starting_psn,
        .data = param->private_data,
        .data_len = param->private_data_len,
        .responder_resources = param->responder_resources,
        .initiator_depth = param->initiator_depth,
        .failover_accepted = param->failover_accepted,
        .flow_control = param->flow_control,
        .srq = param->srq,
        .rnr_retry = param->rnr_retry_count,
    };
    begin(id);
    return done(id, wf_cm_send_rep(id->cm, &p));
}

WEFT_API int ib_send_cm_rtu(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    begin(id);
    return done(id, wf_cm_send_rtu(id->cm, private_data, private_data_len));
}

WEFT_API int ib_send_cm_dreq(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    begin(id);
    return done(id, wf_cm_send_dreq(id->cm, private_data, private_data_len));
}

WEFT_API int ib_send_cm_drep(struct ib_cm_id *cm_id, const void *private_data, u8 private_data_len)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    begin(id);
    return done(id, wf_cm_send_drep(id->cm, private_data, private_data_len));
}

WEFT_API int ib_cm_notify(struct ib_cm_id *cm_id, enum ib_event_type event)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    int rc;
    begin(id);
    switch (event) {
    case IB_EVENT_COMM_EST:
        rc = wf_cm_notify_established(id->cm);
        break;
    case IB_EVENT_PATH_MIG:
        rc = wf_cm_notify_migrated(id->cm);
        break;
    default:
        rc = wf_refuse(EINVAL, WF_R_ARG, "event %d is not one to notify of", (int)event);
    }
    return done(id, rc);
}

WEFT_API int ib_send_cm_rej(struct ib_cm_id *cm_id, enum ib_cm_rej_reason reason, void *ari,
                            u8 ari_length, const void *private_data, u8 private_data_len)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    begin(id);
    return done(id, wf_cm_send_rej(id->cm, (uint16_t)reason, ari, ari_length, private_data,
                                   private_data_len));
}

WEFT_API int ib_send_cm_mra(struct ib_cm_id *cm_id, u8 service_timeout, const void *private_data,
                            u8 private_data_len)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    begin(id);
    return done(id, wf_cm_send_mra(id->cm, service_timeout, private_data, private_data_len));
}

WEFT_API int ib_send_cm_lap(struct ib_cm_id *cm_id, struct ib_sa_path_rec *alternate_path,
                            const void *private_data, u8 private_data_len)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    struct wf_cm_route route;
    if (!alternate_path)
        return wf_refuse(EINVAL, WF_R_CM_PATH, "no alternate path");
    ibcm_route(alternate_path, &route);
    begin(id);
    return done(id, wf_cm_send_lap(id->cm, &route, private_data, private_data_len));
}

WEFT_API int ib_send_cm_apr(struct ib_cm_id *cm_id, enum ib_cm_apr_status status, void *info,
                            u8 info_length, const void *private_data, u8 private_data_len)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    begin(id);
    return done(id, wf_cm_send_apr(id->cm, (uint8_t)status, info, info_length, private_data,
                                   private_data_len));
}

WEFT_API int ib_cm_init_qp_attr(struct ib_cm_id *cm_id, struct ib_qp_attr *qp_attr,
                                int *qp_attr_mask)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    struct ibv_qp_attr attr;
    int mask = 0;
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = (enum ibv_qp_state)qp_attr->qp_state;
    begin(id);
    int rc = wf_cm_init_qp_attr(id->cm, &attr, &mask);
    if (rc == 0) {
        ibcm_qp_attr(&attr, qp_attr);
        *qp_attr_mask = mask;
    }
    return done(id, rc);
}

WEFT_API int ib_send_cm_sidr_req(struct ib_cm_id *cm_id, struct ib_cm_sidr_req_param *param)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    struct wf_cm_route path;
    if (!param->path || param->timeout_ms < 0)
        return wf_refuse(EINVAL, WF_R_ARG, "no path, or a negative timeout");
    ibcm_route(param->path, &path);
    struct wf_cm_sidr_req_param p = {
        .path = &path,
        .service_id = be64toh(param->service_id),
        .timeout_ms = (uint32_t)param->timeout_ms,
        .data = param->private_data,
        .data_len = param->private_data_len,
        .max_cm_retries = param->max_cm_retries,
    };
    begin(id);
    return done(id, wf_cm_send_sidr_req(id->cm, &p));
}

WEFT_API int ib_send_cm_sidr_rep(struct ib_cm_id *cm_id, struct ib_cm_sidr_rep_param *param)
{
    struct ibcm_id *id = ibcm_of(cm_id);
    struct wf_cm_sidr_rep_param p = {
        .qpn = param->qp_num,
        .qkey = param->qkey,
        .status = (uint8_t)param->status,
        .info = param->info,
        .info_len = param->info_length,
        .data = param->private_data,
        .data_len = param->private_data_len,
    };
    begin(id);
    return done(id, wf_cm_send_sidr_rep(id->cm, &p));
}
