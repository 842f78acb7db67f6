// SPDX-License-Identifier: BSD-2-Clause
// What this process does when a message comes.
#include "ugni/am.h"
#include "ugni/amo.h"
#include "ugni/ce.h"
#include "ugni/dgram.h"
#include "ugni/msgq.h"
#include "ugni/op.h"
#include "ugni/smsg.h"
#include "ugni/state.h"
#include "ugni/target.h"

static void ack(struct wf_gni_peer *to, const struct wf_gni_am *of, int status, const void *payload,
                uint32_t len)
{
    struct wf_gni_am am = {
        .type = WF_GNI_AM_ACK, .status = (uint8_t)status, .id = of->id, .len = len};
    wf_gni_peer_send(to, &am, payload);
}

// A put may come in parts, each of which names all that is left: bounds fail on the first one.
static void put(struct wf_gni_peer *from, const struct wf_gni_am *am, const void *payload)
{
    int st = am->arg < am->len ? WF_GNI_ST_DATA
                               : wf_gni_target_check(am->ptag, am->region, am->addr, am->arg, true);
    if (!st)
        st = wf_gni_target_copy(am->ptag, am->region, am->addr, (void *)payload, am->len, true);
    if (st) {
        from->fault_id = am->id;
        from->fault = (uint8_t)st;
    }
    if (!(am->flags & WF_GNI_AMF_LAST))
        return;
    if (from->fault_id == am->id && from->fault)
        st = from->fault;
    from->fault = 0;
    if (!st && am->flags & WF_GNI_AMF_EVENT)
        wf_gni_target_event(am->region, am->event);
    ack(from, am, st, NULL, 0);
}

static void amo(struct wf_gni_peer *from, const struct wf_gni_am *am)
{
    static uint64_t old[WF_GNI_AM_PAYLOAD / 8];
    uint64_t words = am->arg >> 32, operand[2] = {am->first, am->second};
    uint32_t cmd = (uint32_t)am->arg;
    struct wf_gni_amo a;
    int st = WF_GNI_ST_INVALID_COMMAND;
    bool known = wf_gni_amo_decode(cmd, &a) && words * a.width <= sizeof(old);
    if (known)
        st = wf_gni_target_amo(am->ptag, am->region, am->addr, cmd, words, operand,
                               a.fetch ? old : NULL);
    if (!st && am->flags & WF_GNI_AMF_EVENT)
        wf_gni_target_event(am->region, am->event);
    ack(from, am, st, old, !st && a.fetch ? (uint32_t)(words * a.width) : 0);
}

void wf_gni_am_handle(struct wf_gni_peer *from, const struct wf_gni_am *am, const void *payload)
{
    switch ((enum wf_gni_am_type)am->type) {
    case WF_GNI_AM_PUT:
        put(from, am, payload);
        break;
    case WF_GNI_AM_GET:
        wf_gni_op_serve_get(from, am);
        break;
    case WF_GNI_AM_GET_DATA:
        wf_gni_op_get_data(from, am, payload);
        break;
    case WF_GNI_AM_AMO:
        amo(from, am);
        break;
    case WF_GNI_AM_EVENT:
        if (!wf_gni_target_check(am->ptag, am->region, am->addr, 0, false))
            wf_gni_target_event(am->region, am->event);
        break;
    case WF_GNI_AM_CQ_WRITE:
        ack(from, am, wf_gni_target_cq_write(am->ptag, am->region, am->arg), NULL, 0);
        break;
    case WF_GNI_AM_ACK:
        wf_gni_op_ack(from, am, payload);
        break;
    case WF_GNI_AM_SMSG:
        wf_gni_smsg_arrived(am, payload);
        break;
    case WF_GNI_AM_SMSG_CREDIT:
        wf_gni_smsg_credit(am);
        break;
    case WF_GNI_AM_DGRAM:
        wf_gni_dgram_arrived(from, am, payload);
        break;
    case WF_GNI_AM_MSGQ:
    case WF_GNI_AM_MSGQ_CREDIT:
        wf_gni_msgq_arrived(from, am, payload);
        break;
    case WF_GNI_AM_CE_UP:
    case WF_GNI_AM_CE_DOWN:
        wf_gni_ce_arrived(from, am);
        break;
    }
}
