// SPDX-License-Identifier: BSD-2-Clause
// Unreliable datagrams (IBA 9.8.3): one packet, no answer, 40 bytes of GRH before the payload.
#include "qp/qp.h"

#include "mem/segments.h"
#include "qp/kinds.h"
#include "wire/codec.h"
#include "wire/grh.h"
#include "wire/opcode.h"

#include <errno.h>

static bool send_one(struct wf_qp *qp, struct wf_swqe *w)
{
    struct iovec iov[WF_MAX_IOV];
    // A Q_Key with the high bit set stands for the QP's own (IBA 10.2.5).
    uint32_t qkey = w->qkey & 0x80000000u ? qp->attr.qkey : w->qkey;
    struct wf_pkt pkt = {.opcode = wf_wr_packet_opcode(IBV_QPT_UD, w->opcode, true, true),
                         .flags = w->flags & IBV_SEND_SOLICITED ? WF_PKT_SOLICITED : 0,
                         .pkey = qp->pkey,
                         .dqpn = w->dqpn,
                         .psn = qp->req.psn,
                         .npsn = 1,
                         .imm = w->imm,
                         .qkey = qkey,
                         .sqpn = qp->qpn,
                         .len = w->len,
                         .iov = iov};
    enum wf_reason why = WF_R_NONE;
    enum ibv_wc_status status = wf_gather(qp, w, 0, &pkt.len, 0, iov, &pkt.niov, &why);
    if (status != IBV_WC_SUCCESS) {
        wf_retire_failed(qp, status, why);
        return false;
    }
    int err = qp->env->ops->send(qp, w->path, &pkt);
    if (err == -EAGAIN) {
        qp->blocked = true;
        return false;
    }
    if (err == -EFAULT) {
        wf_retire_failed(qp, IBV_WC_LOC_PROT_ERR, WF_R_LOCAL_FAULT);
        return false;
    }
    qp->req.psn = (qp->req.psn + 1) & WF_PSN_MASK;
    w->state = WF_SWQE_DONE;
    qp->sq.next++;
    wf_retire_done(qp);
    return true;
}

void wf_ud_run(struct wf_qp *qp)
{
    if (qp->state != IBV_QPS_RTS)
        return;
    while (qp->sq.next != qp->sq.head && send_one(qp, wf_sq_slot(&qp->sq, qp->sq.next)))
        ;
}

static void build_grh(const struct wf_pkt *pkt, uint8_t *out)
{
    enum { UDP = 8, ICRC = 4 };
    struct wf_grh grh = {
        .sgid = pkt->sgid,
        .dgid = pkt->dgid,
        .tclass = pkt->tclass,
        .hop_limit = pkt->hop_limit,
        .flow_label = pkt->flow_label,
        .udp_len = (uint16_t)(UDP + wf_opcode_info(pkt->opcode)->hdr_len + pkt->len +
                              wf_packet_pad(pkt->len) + ICRC),
    };
    wf_grh_build(out, &grh);
}

// Which header the GRH area holds. RoCE adapters say it in the completion's SL, of which RoCE makes
// no other use: bit 3 for UDP, below it 1 for IPv6 and 2 for IPv4. UCX finds the address by it.
static uint8_t header_kind(const struct wf_pkt *pkt)
{
    enum { UDP = 8, IPV6 = 1, IPV4 = 2 };
    return UDP | (wf_gid_is_ipv4(pkt->dgid) ? IPV4 : IPV6);
}

void wf_qp_datagram(struct wf_qp *qp, const struct wf_pkt *pkt)
{
    struct wf_responder *r = &qp->resp;
    if (qp->state < IBV_QPS_RTR || qp->state == IBV_QPS_ERR)
        return;
    if (pkt->qkey != qp->attr.qkey) {
        wf_explain(WF_R_QKEY_MISMATCH,
                   "QP 0x%06x has Q_Key 0x%08x, the datagram of QP 0x%06x 0x%08x", qp->qpn,
                   qp->attr.qkey, pkt->sqpn, pkt->qkey);
        return;
    }
    if (!wf_recv_take(qp, pkt))
        return;
    uint32_t total = pkt->len + WF_GRH_LEN;
    enum wf_reason why = WF_R_RECV_TOO_SHORT;
    enum ibv_wc_status status = IBV_WC_LOC_LEN_ERR;
    uint32_t pd = r->srq ? r->srq->pd : qp->pd;
    if (total <= r->wqe->len) {
        uint8_t grh[WF_GRH_LEN];
        struct iovec grh_iov = {.iov_base = grh, .iov_len = WF_GRH_LEN};
        struct wf_pkt head = {.len = WF_GRH_LEN, .iov = &grh_iov, .niov = 1};
        build_grh(pkt, grh);
        if (wf_place_recv(qp, pd, r->wqe, 0, &head, &status, &why) == 0)
            wf_place_recv(qp, pd, r->wqe, WF_GRH_LEN, pkt, &status, &why);
    }
    if (status != IBV_WC_SUCCESS) {
        char more[220];
        wf_explain(why, "QP 0x%06x: datagram of %u + 40 bytes into a receive of %u%s", qp->qpn,
                   pkt->len, r->wqe->len, wf_detail_take(qp, more, sizeof(more)));
        qp->root = why;
        wf_recv_failed(qp, status, why);
        wf_qp_to_error(qp);
        return;
    }
    struct wf_completion c = {.arbel_opcode = pkt->opcode,
                              .opcode = IBV_WC_RECV,
                              .byte_len = total,
                              .wc_flags = IBV_WC_GRH,
                              .src_qp = pkt->sqpn,
                              .sl = header_kind(pkt),
                              .solicited = pkt->flags & WF_PKT_SOLICITED};
    if (wf_opcode_info(pkt->opcode)->flags & WF_H_IMM) {
        c.wc_flags |= IBV_WC_WITH_IMM;
        c.imm = pkt->imm;
    }
    wf_complete_recv(qp, &c);
}
