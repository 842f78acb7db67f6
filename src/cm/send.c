// SPDX-License-Identifier: BSD-2-Clause
#include "cm/internal.h"

#include <errno.h>

#define TID_AGENT (1ull << 32) // the half of a transaction id that names the sender's agent

uint64_t wf_cm_tid(const struct wf_cm_id *id)
{
    return TID_AGENT | id->local_id;
}

int wf_cm_check_len(const char *what, unsigned len, unsigned max)
{
    if (len <= max)
        return 0;
    return wf_refuse(EINVAL, WF_R_CM_DATA, "%s of %u bytes, at most %u fit", what, len, max);
}

static void header(struct wf_cm_msg *m, uint16_t attr, uint64_t tid)
{
    memset(m, 0, sizeof(*m));
    m->hdr.class_version = WF_CM_CLASS_VERSION;
    m->hdr.method = WF_MAD_SEND;
    m->hdr.attr = attr;
    m->hdr.tid = tid;
}

// Every message but REQ and the two of SIDR opens with the two communication ids.
void wf_cm_begin(const struct wf_cm_id *id, struct wf_cm_msg *m, uint16_t attr, uint64_t tid)
{
    header(m, attr, tid);
    m->rtu.local_id = id->local_id;
    if (attr != WF_CM_REQ && attr != WF_CM_SIDR_REQ && attr != WF_CM_SIDR_REP)
        m->rtu.remote_id = id->remote_id;
}

void wf_cm_add_data(struct wf_cm_msg *m, const struct wf_cm_data_arg *d)
{
    uint32_t room;
    uint8_t *to = wf_cm_msg_data(m, &room);
    if (d->len && d->data && d->len <= room)
        memcpy(to, d->data, d->len);
}

static int send_bytes(struct wf_cm_id *id, const uint8_t *mad)
{
    struct wf_cm *cm = id->cm;
    cm->stats.sent[mad[17] & 0x1f]++;
    return cm->config.ops->send_mad(cm->config.arg, &id->peer, id->sgid_index, mad);
}

int wf_cm_send(struct wf_cm_id *id, const struct wf_cm_msg *m)
{
    uint8_t mad[WF_MAD_SIZE];
    wf_cm_encode(m, mad);
    return send_bytes(id, mad);
}

int wf_cm_send_repeating(struct wf_cm_id *id, const struct wf_cm_msg *m, uint64_t interval,
                         uint8_t retries)
{
    wf_cm_encode(m, id->repeat);
    int rc = send_bytes(id, id->repeat);
    if (rc)
        return rc;
    id->interval = interval;
    id->retries_left = retries;
    id->repeating = true;
    wf_cm_timer_arm(id, id->cm->now + interval);
    return 0;
}

void wf_cm_keep_reply(struct wf_cm_id *id, const struct wf_cm_msg *m)
{
    wf_cm_encode(m, id->reply);
}

int wf_cm_reply_again(struct wf_cm_id *id, uint64_t tid)
{
    for (int i = 0; i < 8; i++)
        id->reply[8 + i] = (uint8_t)(tid >> (56 - 8 * i));
    id->cm->stats.answered_again++;
    return send_bytes(id, id->reply);
}

void wf_cm_answer(struct wf_cm *cm, const struct wf_cm_rx *rx, struct wf_cm_msg *m)
{
    uint8_t mad[WF_MAD_SIZE];
    int index = cm->config.ops->gid_index(cm->config.arg, rx->dgid);
    if (index < 0)
        return;
    m->hdr.class_version = WF_CM_CLASS_VERSION;
    if (!m->hdr.method)
        m->hdr.method = WF_MAD_SEND;
    m->hdr.tid = rx->msg->hdr.tid;
    wf_cm_encode(m, mad);
    cm->stats.sent[m->hdr.attr & 0x1f]++;
    (void)cm->config.ops->send_mad(cm->config.arg, rx->sgid, (uint32_t)index, mad);
}

// REJ of a REQ or REP that no id of ours stands behind: our communication id is 0.
void wf_cm_refuse_request(struct wf_cm *cm, const struct wf_cm_rx *rx, uint16_t reason,
                          const void *ari, uint8_t ari_len)
{
    struct wf_cm_msg m;
    memset(&m, 0, sizeof(m));
    m.hdr.attr = WF_CM_REJ;
    m.rej.remote_id = rx->msg->rtu.local_id;
    m.rej.what = rx->msg->hdr.attr == WF_CM_REP ? WF_CM_WHAT_REP : WF_CM_WHAT_REQ;
    m.rej.reason = reason;
    if (ari && ari_len <= sizeof(m.rej.ari)) {
        memcpy(m.rej.ari, ari, ari_len);
        m.rej.ari_len = ari_len;
    }
    cm->stats.rejected++;
    wf_explain(WF_R_CM_REJECTED, "%s of communication id 0x%08x: reject reason %u",
               wf_cm_attr_name(rx->msg->hdr.attr), m.rej.remote_id, reason);
    wf_cm_answer(cm, rx, &m);
}
