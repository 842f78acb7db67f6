// SPDX-License-Identifier: BSD-2-Clause
// REJ and MRA: "no" and "wait" (IBA 12.6.6, 12.6.7, 12.9.8.6), and the end of ids that are not
// connected yet.
#include "cm/internal.h"

#include <errno.h>

static uint8_t rejected_what(enum wf_cm_state state)
{
    switch (state) {
    case WF_CM_REQ_SENT:
    case WF_CM_MRA_REQ_RCVD:
    case WF_CM_REQ_RCVD:
    case WF_CM_MRA_REQ_SENT:
        return WF_CM_WHAT_REQ;
    case WF_CM_REP_RCVD:
    case WF_CM_MRA_REP_SENT:
        return WF_CM_WHAT_REP;
    default:
        return WF_CM_WHAT_OTHER;
    }
}

static int send_rej(struct wf_cm_id *id, const struct wf_cm_rej_arg *a)
{
    struct wf_cm_msg m;
    wf_cm_begin(id, &m, WF_CM_REJ, id->tid);
    if (id->state == WF_CM_REQ_RCVD)
        m.rej.local_id = 0; // the peer has not met our id
    m.rej.what = rejected_what(id->state);
    m.rej.reason = a->reason;
    if (a->ari_len && a->ari) {
        memcpy(m.rej.ari, a->ari, a->ari_len);
        m.rej.ari_len = a->ari_len;
    }
    wf_cm_add_data(&m, &a->d);
    return wf_cm_send(id, &m);
}

int wf_cm_do_rej(struct wf_cm_id *id, const void *arg)
{
    return send_rej(id, arg);
}

int wf_cm_send_rej(struct wf_cm_id *id, uint16_t reason, const void *ari, uint8_t ari_len,
                   const void *data, uint8_t len)
{
    struct wf_cm_rej_arg a = {reason, ari, ari_len, {data, len}};
    int rc = wf_cm_check_len("private data", len, WF_CM_REJ_DATA);
    if (rc == 0)
        rc = wf_cm_check_len("additional information", ari_len, WF_CM_INFO);
    return rc ? rc : wf_cm_step(id, IN_REJ, &a);
}

// ---- received -----------------------------------------------------------------------------------

// A peer may be asked before it has made its own call: it has no listener, but it will answer one
// of the repetitions.
static bool peer_not_ready(const struct wf_cm_id *id, const struct wf_cm_rej *rej)
{
    return id->peering && rej->reason == WF_CM_REJ_SERVICE_ID;
}

static int take_rej(struct wf_cm_id *id, const struct wf_cm_rx *rx)
{
    int rc = wf_cm_push(id, WF_CM_REJ_RECEIVED, rx->msg);
    if (rc)
        return rc;
    wf_cm_timer_stop(id);
    wf_explain(WF_R_CM_REJECTED, "communication id 0x%08x in %s: reject reason %u", id->local_id,
               wf_cm_state_name(id->state), rx->msg->rej.reason);
    return 0;
}

int wf_cm_on_rej(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rx *rx = arg;
    if (peer_not_ready(id, &rx->msg->rej))
        return 0;
    int rc = take_rej(id, rx);
    if (rc == 0)
        wf_cm_enter(id, rx->msg->rej.reason == WF_CM_REJ_STALE ? WF_CM_TIMEWAIT : WF_CM_IDLE);
    return rc;
}

int wf_cm_on_rej_timewait(struct wf_cm_id *id, const void *arg)
{
    return take_rej(id, arg);
}

int wf_cm_on_rej_established(struct wf_cm_id *id, const void *arg)
{
    if (id->lap != WF_CM_LAP_UNINIT && id->lap != WF_CM_LAP_SENT)
        return 0;
    int rc = take_rej(id, arg);
    if (rc == 0)
        wf_cm_enter(id, WF_CM_TIMEWAIT);
    return rc;
}

// A duplicate of the REQ of a connection that is over.
int wf_cm_on_req_stale(struct wf_cm_id *id, const void *arg)
{
    wf_cm_refuse_request(id->cm, arg, WF_CM_REJ_STALE, NULL, 0);
    return 0;
}

// ---- MRA ----------------------------------------------------------------------------------------

static int send_mra(struct wf_cm_id *id, const struct wf_cm_mra_arg *a, uint8_t what, uint64_t tid)
{
    struct wf_cm_msg m;
    wf_cm_begin(id, &m, WF_CM_MRA, tid);
    m.mra.what = what;
    m.mra.service_timeout = a->service_timeout & 0x1f;
    wf_cm_add_data(&m, &a->d);
    int rc = a->service_timeout & WF_CM_MRA_DELAY ? 0 : wf_cm_send(id, &m);
    if (rc == 0)
        wf_cm_keep_reply(id, &m);
    return rc;
}

int wf_cm_do_mra(struct wf_cm_id *id, const void *arg)
{
    return send_mra(id, arg, id->state == WF_CM_REQ_RCVD ? WF_CM_WHAT_REQ : WF_CM_WHAT_REP,
                    id->tid);
}

int wf_cm_do_mra_established(struct wf_cm_id *id, const void *arg)
{
    if (id->lap != WF_CM_LAP_RCVD)
        return wf_refuse(EINVAL, WF_R_CM_STATE, "MRA without a LAP, communication id 0x%08x",
                         id->local_id);
    int rc = send_mra(id, arg, WF_CM_WHAT_OTHER, id->tid2);
    if (rc == 0)
        id->lap = WF_CM_LAP_MRA_SENT;
    return rc;
}

int wf_cm_send_mra(struct wf_cm_id *id, uint8_t service_timeout, const void *data, uint8_t len)
{
    struct wf_cm_mra_arg a = {service_timeout, {data, len}};
    int rc = wf_cm_check_len("private data", len, WF_CM_MRA_DATA);
    return rc ? rc : wf_cm_step(id, IN_MRA, &a);
}

// The wait that runs becomes what the peer asks for; repetitions go on after it.
int wf_cm_on_mra(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rx *rx = arg;
    const struct wf_cm_mra *mra = &rx->msg->mra;
    int rc = wf_cm_push(id, WF_CM_MRA_RECEIVED, rx->msg);
    if (rc)
        return rc;
    wf_cm_timer_arm(id, id->cm->now + wf_cm_ms(mra->service_timeout) + wf_cm_ms(id->av_timeout));
    return 0;
}

int wf_cm_on_mra_lap(struct wf_cm_id *id, const void *arg)
{
    if (id->lap != WF_CM_LAP_SENT)
        return 0;
    int rc = wf_cm_on_mra(id, arg);
    if (rc == 0)
        id->lap = WF_CM_LAP_MRA_RCVD;
    return rc;
}

// ---- destroyed before it was connected ----------------------------------------------------------

// The peer may not have our REQ yet, or be about to answer: it knows us by the GUID in the ARI.
int wf_cm_end_active(struct wf_cm_id *id, const void *arg)
{
    uint64_t guid = id->cm->config.ca_guid;
    uint8_t ari[sizeof(guid)];
    (void)arg;
    for (size_t i = 0; i < sizeof(ari); i++)
        ari[i] = (uint8_t)(guid >> (56 - 8 * i));
    (void)send_rej(id, &(struct wf_cm_rej_arg){
                           .reason = WF_CM_REJ_TIMEOUT, .ari = ari, .ari_len = sizeof(ari)});
    return 0;
}

int wf_cm_end_passive(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    (void)send_rej(id, &(struct wf_cm_rej_arg){.reason = WF_CM_REJ_CONSUMER});
    return 0;
}
