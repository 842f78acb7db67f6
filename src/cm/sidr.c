// SPDX-License-Identifier: BSD-2-Clause
// Service id resolution: which QP serves a datagram service (IBA 12.11).
#include "cm/internal.h"

#include <errno.h>

int wf_cm_do_sidr_req(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_sidr_req_param *p = arg;
    const struct wf_cm_config *c = &id->cm->config;
    struct wf_cm_msg m;
    int index = c->ops->gid_index(c->arg, &p->path->sgid);
    if (index < 0)
        return wf_refuse(EINVAL, WF_R_CM_PATH, "the path's source GID is none of this device");
    id->sgid_index = (uint32_t)index;
    id->active = true;
    id->path = *p->path;
    id->peer = p->path->dgid;
    id->service_id = p->service_id;
    id->service_mask = UINT64_MAX;
    id->max_cm_retries = p->max_cm_retries;
    wf_cm_begin(id, &m, WF_CM_SIDR_REQ, wf_cm_tid(id));
    m.sidr_req.pkey = p->path->pkey;
    m.sidr_req.service_id = p->service_id;
    wf_cm_add_data(&m, &(struct wf_cm_data_arg){p->data, p->data_len});
    return wf_cm_send_repeating(id, &m, p->timeout_ms * 1000000ull, p->max_cm_retries);
}

int wf_cm_send_sidr_req(struct wf_cm_id *id, const struct wf_cm_sidr_req_param *param)
{
    if (!param->path)
        return wf_refuse(EINVAL, WF_R_CM_PATH, "no path");
    int rc = wf_cm_check_len("private data", param->data_len, WF_CM_SIDR_REQ_DATA);
    return rc ? rc : wf_cm_step(id, IN_SIDR_REQ, param);
}

int wf_cm_on_sidr_error(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    wf_explain(WF_R_CM_NO_ANSWER, "SIDR_REQ for service 0x%016llx, %u tries",
               (unsigned long long)id->service_id, id->max_cm_retries + 1u);
    return wf_cm_push(id, WF_CM_SIDR_REQ_ERROR, NULL);
}

int wf_cm_on_sidr_rep(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rx *rx = arg;
    int rc = wf_cm_push(id, WF_CM_SIDR_REP_RECEIVED, rx->msg);
    if (rc == 0)
        wf_cm_timer_stop(id);
    return rc;
}

// ---- passive side -------------------------------------------------------------------------------

static void refuse(struct wf_cm *cm, const struct wf_cm_rx *rx, uint8_t status)
{
    struct wf_cm_msg m;
    memset(&m, 0, sizeof(m));
    m.hdr.attr = WF_CM_SIDR_REP;
    m.sidr_rep.request_id = rx->msg->sidr_req.request_id;
    m.sidr_rep.status = status;
    m.sidr_rep.service_id = rx->msg->sidr_req.service_id;
    cm->stats.rejected++;
    wf_explain(WF_R_CM_REJECTED, "SIDR_REQ for service 0x%016llx: status %u",
               (unsigned long long)m.sidr_rep.service_id, status);
    wf_cm_answer(cm, rx, &m);
}

static int announce(struct wf_cm_id *id, const struct wf_cm_rx *rx, struct wf_cm_id *listener)
{
    struct wf_cm_event ev;
    memset(&ev, 0, sizeof(ev));
    ev.type = WF_CM_SIDR_REQ_RECEIVED;
    ev.id = id;
    ev.listen_id = listener;
    ev.path = id->path;
    ev.msg = *rx->msg;
    return wf_cm_push_event(id->cm, &ev);
}

// The message has no path: what it came by goes back too.
static void remember(struct wf_cm_id *id, const struct wf_cm_rx *rx)
{
    const struct wf_cm_sidr_req *q = &rx->msg->sidr_req;
    const struct wf_cm_config *c = &id->cm->config;
    int index = c->ops->gid_index(c->arg, rx->dgid);
    id->sgid_index = index < 0 ? 0 : (uint32_t)index;
    id->peer = *rx->sgid;
    id->path.sgid = *rx->dgid;
    id->path.dgid = *rx->sgid;
    id->path.pkey = q->pkey;
    id->path.hop_limit = 64;
    id->service_id = q->service_id;
    id->service_mask = UINT64_MAX;
    id->tid = rx->msg->hdr.tid;
    id->remote_id = q->request_id;
}

static void to_listener(struct wf_cm *cm, const struct wf_cm_rx *rx, struct wf_cm_id *listener)
{
    struct wf_cm_id *id;
    if (wf_cm_id_create(cm, NULL, &id))
        return;
    remember(id, rx);
    if (announce(id, rx, listener)) {
        wf_cm_id_free(id);
        return;
    }
    wf_cm_hash_remote(id, KEY_SIDR, id->remote_id, 0);
    wf_cm_enter(id, WF_CM_SIDR_REQ_RCVD);
}

void wf_cm_on_sidr_req(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    const struct wf_cm_sidr_req *q = &rx->msg->sidr_req;
    struct wf_cm_id *id = wf_cm_find_remote(cm, KEY_SIDR, q->request_id, 0, rx->sgid);
    if (id) {
        wf_cm_step(id, RX_SIDR_REQ, rx);
        return;
    }
    struct wf_cm_id *l = wf_cm_find_listener(cm, q->service_id, q->data);
    if (l)
        to_listener(cm, rx, l);
    else
        refuse(cm, rx, WF_CM_SIDR_UNSUPPORTED);
}

int wf_cm_do_sidr_rep(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_sidr_rep_param *p = arg;
    struct wf_cm_msg m;
    wf_cm_begin(id, &m, WF_CM_SIDR_REP, id->tid);
    m.hdr.modifier = p->ece_options;
    m.sidr_rep.vendor_id = p->ece_vendor & 0xffffff;
    m.sidr_rep.request_id = id->remote_id;
    m.sidr_rep.status = p->status;
    m.sidr_rep.qpn = p->qpn;
    m.sidr_rep.service_id = id->service_id;
    m.sidr_rep.qkey = p->qkey;
    if (p->info_len && p->info) {
        memcpy(m.sidr_rep.info, p->info, p->info_len);
        m.sidr_rep.info_len = p->info_len;
    }
    wf_cm_add_data(&m, &(struct wf_cm_data_arg){p->data, p->data_len});
    return wf_cm_send(id, &m);
}

int wf_cm_send_sidr_rep(struct wf_cm_id *id, const struct wf_cm_sidr_rep_param *param)
{
    int rc = wf_cm_check_len("private data", param->data_len, WF_CM_SIDR_REP_DATA);
    if (rc == 0)
        rc = wf_cm_check_len("additional information", param->info_len, WF_CM_INFO);
    return rc ? rc : wf_cm_step(id, IN_SIDR_REP, param);
}

int wf_cm_end_sidr_rcvd(struct wf_cm_id *id, const void *arg)
{
    struct wf_cm_sidr_rep_param p = {.status = WF_CM_SIDR_REJECT};
    (void)arg;
    (void)wf_cm_do_sidr_rep(id, &p);
    return 0;
}
