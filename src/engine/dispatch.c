// SPDX-License-Identifier: BSD-2-Clause
// A packet has come: which QP is it for, and may that QP have it (IBA 9.6.1).
#include "engine/engine.h"
#include "engine/tap.h"

#include "wire/opcode.h"

struct wf_qp *wf_qp_find(struct wf_hca *h, uint32_t qpn)
{
    return qpn >> 16 == h->slot ? h->qps[qpn & 0xffff] : NULL;
}

static bool service_matches(enum ibv_qp_type type, enum wf_service svc)
{
    switch ((int)type) {
    case IBV_QPT_RC:
        return svc == WF_SVC_RC;
    case IBV_QPT_UC:
        return svc == WF_SVC_UC;
    case IBV_QPT_UD:
        return svc == WF_SVC_UD;
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return svc == WF_SVC_XRC;
    default:
        return false;
    }
}

// IBA 10.9.3: same partition, and at least one of the two a full member.
static bool pkey_matches(uint16_t a, uint16_t b)
{
    return ((a ^ b) & 0x7fff) == 0 && (a & 0x7fff) && ((a | b) & 0x8000);
}

static void drop(enum wf_reason why, const struct wf_pkt *pkt)
{
    wf_explain(why, "%s for QP 0x%06x, PSN %u", wf_opcode_info(pkt->opcode)->name, pkt->dqpn,
               pkt->psn);
}

void wf_deliver_now(struct wf_hca *h, const struct wf_pkt *pkt)
{
    const struct wf_opcode_info *info = wf_opcode_info(pkt->opcode);
    if (!h->fresh)
        wf_now(h);
    if (!info->name)
        return;
    if (pkt->opcode == WF_OPCODE_CNP)
        return; // no congestion control here beyond the window
    if (pkt->dqpn == WF_QPN_MULTICAST) {
        wf_mcast_deliver(h, pkt);
        return;
    }
    struct wf_qp *qp = wf_qp_find(h, pkt->dqpn);
    if (!qp || !service_matches(qp->type, WF_OPCODE_SVC(pkt->opcode))) {
        drop(WF_R_NO_SUCH_QP, pkt);
        return;
    }
    if (!pkey_matches(pkt->pkey, qp->pkey)) {
        h->pkey_violations++;
        drop(WF_R_PKEY_MISMATCH, pkt);
        return;
    }
    if (qp->type == IBV_QPT_UD) {
        if (qp->state >= IBV_QPS_RTR && pkt->qkey != qp->attr.qkey)
            h->qkey_violations++;
        wf_qp_datagram(qp, pkt);
        return;
    }
    if (qp->state < IBV_QPS_RTR || qp->state == IBV_QPS_ERR) {
        drop(WF_R_NO_SUCH_QP, pkt);
        return;
    }
    // Within the host a packet shows its sender's QP; over UDP, its addresses.
    bool stranger =
        pkt->ifindex ? wf_engine_qp_ops.path_differs(qp, pkt) : pkt->sqpn != qp->attr.dest_qp_num;
    if (stranger) {
        drop(WF_R_WRONG_SOURCE, pkt);
        return;
    }
    if (info->flags & WF_F_RESPONSE)
        wf_qp_response(qp, pkt);
    else
        wf_qp_request(qp, pkt);
}

void wf_damaged(void *arg, uint32_t dqpn)
{
    struct wf_hca *h = arg;
    struct wf_qp *qp = wf_qp_find(h, dqpn);
    if (qp)
        atomic_fetch_add_explicit(&qp->dir->damaged, 1, memory_order_relaxed);
}

void wf_deliver(void *arg, const struct wf_pkt *pkt)
{
    struct wf_hca *h = arg;
    h->rx_packets++;
    h->rx_bytes += pkt->len;
    if (__builtin_expect(pkt->flags & WF_PKT_DAMAGED, 0)) {
        wf_damaged(h, pkt->dqpn);
        drop(WF_R_BAD_ICRC, pkt);
        return;
    }
    if (__builtin_expect(h->tap != NULL, 0) && wf_tap_receive(h, pkt))
        return;
    wf_deliver_now(h, pkt);
}
