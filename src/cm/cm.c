// SPDX-License-Identifier: BSD-2-Clause
// The instance, and the way of a datagram from QP1 to the id that it is for.
#include "cm/internal.h"

#include <errno.h>
#include <stdlib.h>

// 12.12.1: what ClassPortInfo says we do: RC, UC and SIDR.
#define CM_CAPABILITIES (1 << 9 | 1 << 12 | 1 << 13)
#define RESPONSE_TIME   18 // about a second

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

int wf_cm_create(const struct wf_cm_config *config, struct wf_cm **out)
{
    struct wf_cm *cm = calloc(1, sizeof(*cm));
    if (!cm)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "connection manager");
    cm->config = *config;
    cm->now = config->now;
    cm->next_id = (uint32_t)mix(config->seed + 1);
    cm->next_service = (uint32_t)mix(config->seed + 2) & 0xffffff;
    LIST_INIT(&cm->listeners);
    LIST_INIT(&cm->peers);
    STAILQ_INIT(&cm->events);
    *out = cm;
    return 0;
}

void wf_cm_destroy(struct wf_cm *cm)
{
    struct wf_cm_event ev;
    while (wf_cm_next_event(cm, &ev))
        ;
    while (cm->by_local) {
        if (cm->by_local->state == WF_CM_LISTEN)
            wf_cm_id_destroy(cm->by_local);
        else
            wf_cm_id_forget(cm->by_local);
    }
    free(cm->heap);
    free(cm);
}

const struct wf_cm_stats *wf_cm_stats(const struct wf_cm *cm)
{
    return &cm->stats;
}

// ---- receive ------------------------------------------------------------------------------------

static enum wf_cm_input input_of(const struct wf_cm_msg *m)
{
    static const enum wf_cm_input mra[] = {RX_MRA_REQ, RX_MRA_REP, RX_MRA_OTHER, RX_MRA_OTHER};
    switch (m->hdr.attr) {
    case WF_CM_MRA:
        return mra[m->mra.what & 3];
    case WF_CM_REP:
        return RX_REP;
    case WF_CM_RTU:
        return RX_RTU;
    case WF_CM_DREQ:
        return RX_DREQ;
    case WF_CM_DREP:
        return RX_DREP;
    case WF_CM_LAP:
        return RX_LAP;
    case WF_CM_APR:
        return RX_APR;
    case WF_CM_SIDR_REP:
        return RX_SIDR_REP;
    default:
        return RX_REJ;
    }
}

// A REJ for timeout comes from somebody who may never have seen our id: his own id and the GUID in
// the ARI name the connection (12.6.7.3).
static struct wf_cm_id *find_rejected(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    const struct wf_cm_rej *rej = &rx->msg->rej;
    uint64_t guid = 0;
    if (rej->reason == WF_CM_REJ_TIMEOUT && rej->ari_len >= sizeof(guid)) {
        for (size_t i = 0; i < sizeof(guid); i++)
            guid = guid << 8 | rej->ari[i];
        struct wf_cm_id *id = wf_cm_find_remote(cm, KEY_CONNECTION, rej->local_id, guid, rx->sgid);
        if (id)
            return id;
    }
    struct wf_cm_id *id = wf_cm_find_local(cm, rej->remote_id);
    if (!id || (id->remote_id && rej->local_id && id->remote_id != rej->local_id))
        return NULL;
    // Without an id of the sender only an unanswered REQ or REP of ours can be meant.
    if (!rej->local_id && id->state == WF_CM_ESTABLISHED)
        return NULL;
    return id;
}

// Our id is the message's remote id; its local id must be the one we know. Only the first answer to
// a REQ may tell us a new one.
static struct wf_cm_id *find_by_ids(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    const struct wf_cm_rtu *ids = &rx->msg->rtu;
    uint16_t attr = rx->msg->hdr.attr;
    struct wf_cm_id *id = wf_cm_find_local(cm, ids->remote_id);
    if (!id || id->remote_id == ids->local_id)
        return id;
    return !id->remote_id && (attr == WF_CM_REP || attr == WF_CM_MRA) ? id : NULL;
}

static struct wf_cm_id *find(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    switch (rx->msg->hdr.attr) {
    case WF_CM_REJ:
        return find_rejected(cm, rx);
    case WF_CM_SIDR_REP:
        return wf_cm_find_local(cm, rx->msg->sidr_rep.request_id);
    default:
        return find_by_ids(cm, rx);
    }
}

static void class_port_info(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    struct wf_cm_msg m;
    if (rx->msg->hdr.method != WF_MAD_GET)
        return;
    memset(&m, 0, sizeof(m));
    m.hdr.method = WF_MAD_GET_RESP;
    m.hdr.attr = WF_CM_CLASS_PORT_INFO;
    m.class_port_info.base_version = 1;
    m.class_port_info.class_version = WF_CM_CLASS_VERSION;
    m.class_port_info.capabilities = CM_CAPABILITIES;
    m.class_port_info.response_time = RESPONSE_TIME;
    wf_cm_answer(cm, rx, &m);
}

static void for_nobody(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    cm->stats.unknown_id++;
    wf_explain(WF_R_CM_NO_ID, "%s from communication id 0x%08x", wf_cm_attr_name(rx->msg->hdr.attr),
               rx->msg->rtu.local_id);
    switch (rx->msg->hdr.attr) {
    case WF_CM_REP:
        wf_cm_refuse_request(cm, rx, WF_CM_REJ_COMM_ID, NULL, 0);
        break;
    case WF_CM_DREQ:
        wf_cm_on_dreq_unknown(cm, rx);
        break;
    case WF_CM_LAP:
        wf_cm_on_lap_unknown(cm, rx);
        break;
    default:
        break;
    }
}

static void to_id(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    struct wf_cm_id *id = find(cm, rx);
    if (!id) {
        for_nobody(cm, rx);
        return;
    }
    if (!wf_cm_from_peer(id, rx->sgid)) {
        cm->stats.wrong_peer++;
        wf_explain(WF_R_CM_WRONG_PEER, "%s for communication id 0x%08x",
                   wf_cm_attr_name(rx->msg->hdr.attr), id->local_id);
        return;
    }
    wf_cm_step(id, input_of(rx->msg), rx);
}

static void dispatch(struct wf_cm *cm, const struct wf_cm_rx *rx)
{
    switch (rx->msg->hdr.attr) {
    case WF_CM_CLASS_PORT_INFO:
        class_port_info(cm, rx);
        break;
    case WF_CM_REQ:
        wf_cm_on_req(cm, rx);
        break;
    case WF_CM_SIDR_REQ:
        wf_cm_on_sidr_req(cm, rx);
        break;
    default:
        to_id(cm, rx);
    }
}

void wf_cm_receive(struct wf_cm *cm, uint64_t now, const union ibv_gid *sgid,
                   const union ibv_gid *dgid, const uint8_t mad[WF_MAD_SIZE])
{
    struct wf_cm_msg msg;
    struct wf_cm_rx rx = {.msg = &msg, .sgid = sgid, .dgid = dgid};
    wf_cm_run(cm, now);
    memset(&msg, 0, sizeof(msg));
    int rc = wf_cm_decode(mad, &msg);
    if (rc == 0)
        cm->stats.received[msg.hdr.attr & 0x1f]++;
    if (rc == 0 && msg.hdr.class_version == WF_CM_CLASS_VERSION) {
        dispatch(cm, &rx);
        return;
    }
    cm->stats.malformed++;
    wf_explain(WF_R_CM_BAD_MAD, "class 0x%02x version %u method 0x%02x attribute 0x%02x%02x",
               mad[1], mad[2], mad[3], mad[16], mad[17]);
    if (rc == 0 && msg.hdr.attr == WF_CM_REQ)
        wf_cm_refuse_request(cm, &rx, WF_CM_REJ_CLASS_VERSION, NULL, 0);
}
