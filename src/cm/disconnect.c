// SPDX-License-Identifier: BSD-2-Clause
// DREQ, DREP and TIMEWAIT (IBA 12.9.8.2, 12.9.8.4).
#include "cm/internal.h"

#include <errno.h>

int wf_cm_do_dreq(struct wf_cm_id *id, const void *arg)
{
    struct wf_cm_msg m;
    wf_cm_timer_stop(id); // a LAP that is still under way
    id->lap = WF_CM_LAP_UNINIT;
    wf_cm_begin(id, &m, WF_CM_DREQ, wf_cm_tid(id));
    m.dreq.remote_qpn = id->remote_qpn;
    wf_cm_add_data(&m, arg);
    int rc = wf_cm_send_repeating(id, &m, id->interval, id->max_cm_retries);
    if (rc)
        wf_cm_enter(id, WF_CM_TIMEWAIT);
    return rc;
}

int wf_cm_send_dreq(struct wf_cm_id *id, const void *data, uint8_t len)
{
    struct wf_cm_data_arg d = {data, len};
    int rc = wf_cm_check_len("private data", len, WF_CM_DREQ_DATA);
    return rc ? rc : wf_cm_step(id, IN_DREQ, &d);
}

// An XRC target has no say in when the initiator goes; all others say good-bye.
int wf_cm_end_established(struct wf_cm_id *id, const void *arg)
{
    struct wf_cm_data_arg none = {NULL, 0};
    (void)arg;
    if (id->qp_type == IBV_QPT_XRC_SEND && !id->active)
        wf_cm_enter(id, WF_CM_IDLE);
    else if (wf_cm_do_dreq(id, &none) == 0)
        wf_cm_enter(id, WF_CM_DREQ_SENT);
    return 0;
}

int wf_cm_end_quietly(struct wf_cm_id *id, const void *arg)
{
    (void)id;
    (void)arg;
    return 0;
}

// ---- DREP ---------------------------------------------------------------------------------------

static void send_drep(struct wf_cm_id *id, const struct wf_cm_data_arg *d)
{
    struct wf_cm_msg m;
    wf_cm_begin(id, &m, WF_CM_DREP, id->tid2);
    wf_cm_add_data(&m, d);
    wf_cm_keep_reply(id, &m);
    (void)wf_cm_send(id, &m); // lost or not: the peer asks again
}

int wf_cm_do_drep(struct wf_cm_id *id, const void *arg)
{
    send_drep(id, arg);
    return 0;
}

int wf_cm_send_drep(struct wf_cm_id *id, const void *data, uint8_t len)
{
    struct wf_cm_data_arg d = {data, len};
    int rc = wf_cm_check_len("private data", len, WF_CM_DREP_DATA);
    return rc ? rc : wf_cm_step(id, IN_DREP, &d);
}

int wf_cm_end_dreq_rcvd(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    send_drep(id, &(struct wf_cm_data_arg){NULL, 0});
    return 0;
}

// ---- received -----------------------------------------------------------------------------------

static bool names_our_qp(struct wf_cm_id *id, const struct wf_cm_rx *rx)
{
    if (rx->msg->dreq.remote_qpn == (id->local_qpn & 0xffffff))
        return true;
    id->cm->stats.unexpected++;
    wf_explain(WF_R_CM_UNEXPECTED, "DREQ for communication id 0x%08x names QP 0x%06x, not 0x%06x",
               id->local_id, rx->msg->dreq.remote_qpn, id->local_qpn);
    return false;
}

int wf_cm_on_dreq(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rx *rx = arg;
    if (!names_our_qp(id, rx))
        return -EINVAL;
    int rc = wf_cm_push(id, WF_CM_DREQ_RECEIVED, rx->msg);
    if (rc)
        return rc;
    wf_cm_timer_stop(id);
    id->lap = WF_CM_LAP_UNINIT;
    id->tid2 = rx->msg->hdr.tid;
    id->reply[0] = 0;
    if (!id->orphan)
        return 0;
    // The owner has gone and cannot answer: it said good-bye itself.
    send_drep(id, &(struct wf_cm_data_arg){NULL, 0});
    wf_cm_enter(id, WF_CM_TIMEWAIT);
    return -EALREADY;
}

int wf_cm_on_dreq_again(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rx *rx = arg;
    if (!names_our_qp(id, rx))
        return -EINVAL;
    id->tid2 = rx->msg->hdr.tid;
    if (id->reply[0] && id->reply[17] == WF_CM_DREP)
        return wf_cm_reply_again(id, id->tid2);
    send_drep(id, &(struct wf_cm_data_arg){NULL, 0});
    return 0;
}

void wf_cm_on_dreq_unknown(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    struct wf_cm_msg m;
    memset(&m, 0, sizeof(m));
    m.hdr.attr = WF_CM_DREP;
    m.drep.local_id = rx->msg->dreq.remote_id;
    m.drep.remote_id = rx->msg->dreq.local_id;
    wf_cm_answer(cm, rx, &m);
}

int wf_cm_on_drep(struct wf_cm_id *id, const void *arg)
{
    const struct wf_cm_rx *rx = arg;
    int rc = wf_cm_push(id, WF_CM_DREP_RECEIVED, rx->msg);
    if (rc == 0)
        wf_cm_timer_stop(id);
    return rc;
}

int wf_cm_on_dreq_error(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    wf_explain(WF_R_CM_NO_ANSWER, "DREQ, communication id 0x%08x, %u tries", id->local_id,
               id->max_cm_retries + 1u);
    return wf_cm_push(id, WF_CM_DREQ_ERROR, NULL);
}

int wf_cm_on_timewait(struct wf_cm_id *id, const void *arg)
{
    (void)arg;
    return wf_cm_push(id, WF_CM_TIMEWAIT_EXIT, NULL);
}
