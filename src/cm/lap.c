// SPDX-License-Identifier: BSD-2-Clause
// Alternate paths of a live connection: LAP, APR and migration (IBA 12.8). The sub-state runs
// inside ESTABLISHED.
#include "cm/internal.h"

#include <errno.h>

static bool lap_ready(const struct wf_cm_id *id)
{
    return id->lap == WF_CM_LAP_UNINIT || id->lap == WF_CM_LAP_IDLE;
}

static int lap_refuse(const struct wf_cm_id *id, const char *what)
{
    return wf_refuse(EINVAL, WF_R_CM_STATE, "%s on communication id 0x%08x in LAP state %d", what,
                     id->local_id, (int)id->lap);
}

int wf_cm_do_lap(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_lap_arg *a = arg;
    struct wf_cm_msg m;
    if (!lap_ready(id))
        return lap_refuse(id, "LAP");
    wf_cm_begin(id, &m, WF_CM_LAP, wf_cm_tid(id));
    m.lap.remote_qpn = id->remote_qpn;
    m.lap.remote_response_timeout = id->remote_response_timeout;
    wf_cm_route_to_wire(a->alternate, id->cm->config.ack_delay, &m.lap.path);
    wf_cm_add_data(&m, &a->d);
    int rc = wf_cm_send_repeating(id, &m, id->interval, id->max_cm_retries);
    if (rc)
        return rc;
    id->new_alternate = *a->alternate;
    id->lap = WF_CM_LAP_SENT;
    return 0;
}

int wf_cm_send_lap(struct wf_cm_id *id, const struct wf_cm_route *alternate, const void *data,
                   uint8_t len)
{
    struct wf_cm_lap_arg a = {alternate, {data, len}};
    const struct wf_cm_config *c = &id->cm->config;
    int rc = wf_cm_check_len("private data", len, WF_CM_LAP_DATA);
    if (rc)
        return rc;
    if (!alternate || c->ops->gid_index(c->arg, &alternate->sgid) < 0)
        return wf_refuse(EINVAL, WF_R_CM_PATH, "the path's source GID is none of this device");
    return wf_cm_step(id, IN_LAP, &a);
}

int wf_cm_on_lap_error(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    wf_explain(WF_R_CM_NO_ANSWER, "LAP, communication id 0x%08x, %u tries", id->local_id,
               id->max_cm_retries + 1u);
    int rc = wf_cm_push(id, WF_CM_LAP_ERROR, NULL);
    id->lap = WF_CM_LAP_IDLE;
    return rc;
}

// ---- LAP received -------------------------------------------------------------------------------

// What is wrong with the message itself, whatever its consumer would say (12.8.2, AP status).
static uint8_t lap_fault(const struct wf_cm_id *id, const struct wf_cm_lap *lap)
{
    const struct wf_cm_config *c = &id->cm->config;
    if (lap->remote_qpn != (id->local_qpn & 0xffffff))
        return WF_CM_APR_QPN;
    if (c->ops->gid_index(c->arg, &lap->path.remote_gid) < 0)
        return WF_CM_APR_GID;
    return WF_CM_APR_SUCCESS;
}

static int lap_answer(struct wf_cm_id *id, uint8_t status, uint64_t tid)
{
    struct wf_cm_msg m;
    wf_cm_begin(id, &m, WF_CM_APR, tid);
    m.apr.status = status;
    return wf_cm_send(id, &m);
}

static int lap_new(struct wf_cm_id *id, const struct wf_cm_rx *rx)
{
    struct wf_cm_event ev;
    memset(&ev, 0, sizeof(ev));
    ev.type = WF_CM_LAP_RECEIVED;
    ev.id = id;
    ev.msg = *rx->msg;
    wf_cm_route_from_wire(&rx->msg->lap.path, id->path.pkey, id->path.mtu, &ev.alternate);
    ev.has_alternate = true;
    int rc = id->orphan ? -EINVAL : wf_cm_push_event(id->cm, &ev);
    if (rc)
        return rc;
    id->new_alternate = ev.alternate;
    id->alt_ack_timeout = rx->msg->lap.path.ack_timeout;
    id->tid2 = rx->msg->hdr.tid;
    id->reply[0] = 0;
    id->lap = WF_CM_LAP_RCVD;
    return 0;
}

// The last APR answers a duplicate of the LAP that it was for.
static bool answered_before(const struct wf_cm_id *id, const struct wf_cm_rx *rx)
{
    return id->reply[0] && id->reply[17] == WF_CM_APR && id->tid2 == rx->msg->hdr.tid &&
           memcmp(&id->new_alternate.dgid, &rx->msg->lap.path.local_gid,
                  sizeof(id->new_alternate.dgid)) == 0;
}

int wf_cm_on_lap(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rx *rx = arg;
    uint8_t fault = lap_fault(id, &rx->msg->lap);
    if (fault)
        return lap_answer(id, fault, rx->msg->hdr.tid);
    switch (id->lap) {
    case WF_CM_LAP_UNINIT:
    case WF_CM_LAP_IDLE:
        return answered_before(id, rx) ? wf_cm_reply_again(id, id->tid2) : lap_new(id, rx);
    case WF_CM_LAP_MRA_SENT:
        return wf_cm_reply_again(id, id->tid2);
    case WF_CM_LAP_RCVD: // our consumer has it
    case WF_CM_LAP_SENT: // both at once: each side's own goes first
    case WF_CM_LAP_MRA_RCVD:
        return 0;
    }
    return -EINVAL;
}

void wf_cm_on_lap_unknown(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    struct wf_cm_msg m;
    memset(&m, 0, sizeof(m));
    m.hdr.attr = WF_CM_APR;
    m.apr.local_id = rx->msg->lap.remote_id;
    m.apr.remote_id = rx->msg->lap.local_id;
    m.apr.status = WF_CM_APR_COMM_ID;
    wf_cm_answer(cm, rx, &m);
}

// ---- APR ----------------------------------------------------------------------------------------

static void load_alternate(struct wf_cm_id *id)
{
    id->alternate = id->new_alternate;
    id->has_alternate = true;
    if (id->active)
        id->alt_ack_timeout = wf_cm_ack_timeout(id->cm->config.ack_delay, id->alternate.life);
}

int wf_cm_do_apr(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_apr_arg *a = arg;
    struct wf_cm_msg m;
    if (id->lap != WF_CM_LAP_RCVD && id->lap != WF_CM_LAP_MRA_SENT)
        return lap_refuse(id, "APR");
    wf_cm_begin(id, &m, WF_CM_APR, id->tid2);
    m.apr.status = a->status;
    if (a->info_len && a->info) {
        memcpy(m.apr.info, a->info, a->info_len);
        m.apr.info_len = a->info_len;
    }
    wf_cm_add_data(&m, &a->d);
    int rc = wf_cm_send(id, &m);
    if (rc)
        return rc;
    wf_cm_keep_reply(id, &m);
    if (a->status == WF_CM_APR_SUCCESS)
        load_alternate(id);
    id->lap = WF_CM_LAP_IDLE;
    return 0;
}

int wf_cm_send_apr(struct wf_cm_id *id, uint8_t status, const void *info, uint8_t info_len,
                   const void *data, uint8_t len)
{
    struct wf_cm_apr_arg a = {status, info, info_len, {data, len}};
    int rc = wf_cm_check_len("private data", len, WF_CM_APR_DATA);
    if (rc == 0)
        rc = wf_cm_check_len("additional information", info_len, WF_CM_INFO);
    return rc ? rc : wf_cm_step(id, IN_APR, &a);
}

int wf_cm_on_apr(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rx *rx = arg;
    if (id->lap != WF_CM_LAP_SENT && id->lap != WF_CM_LAP_MRA_RCVD)
        return 0;
    int rc = wf_cm_push(id, WF_CM_APR_RECEIVED, rx->msg);
    if (rc)
        return rc;
    wf_cm_timer_stop(id);
    if (rx->msg->apr.status == WF_CM_APR_SUCCESS)
        load_alternate(id);
    id->lap = WF_CM_LAP_IDLE;
    return 0;
}

// ---- migration ----------------------------------------------------------------------------------

int wf_cm_do_migrated(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    if (!lap_ready(id))
        return lap_refuse(id, "migration");
    if (!id->has_alternate)
        return wf_refuse(EINVAL, WF_R_CM_PATH, "communication id 0x%08x has no alternate path",
                         id->local_id);
    struct wf_cm_route path = id->path;
    uint8_t ack_timeout = id->ack_timeout;
    id->path = id->alternate;
    id->alternate = path;
    id->ack_timeout = id->alt_ack_timeout;
    id->alt_ack_timeout = ack_timeout;
    id->lap = WF_CM_LAP_IDLE;
    return 0;
}

int wf_cm_notify_migrated(struct wf_cm_id *id)
{
    return wf_cm_step(id, IN_MIGRATED, NULL);
}
