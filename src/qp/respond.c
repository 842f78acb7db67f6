// SPDX-License-Identifier: BSD-2-Clause
// What the responder sends: READ responses, atomic results, acknowledgements; in request order, an
// acknowledgement never before the responses it would overtake (IBA 9.7.5.1).
#include "qp/qp.h"

#include "mem/segments.h"
#include "wire/aeth.h"
#include "wire/opcode.h"

#include <errno.h>

static int send_response(struct wf_qp *qp, struct wf_pkt *pkt)
{
    enum wf_service svc = qp->type == IBV_QPT_XRC_RECV ? WF_SVC_XRC : WF_SVC_RC;
    pkt->opcode = WF_OPCODE(svc, pkt->opcode);
    pkt->pkey = qp->pkey;
    pkt->dqpn = qp->attr.dest_qp_num;
    pkt->sqpn = qp->qpn;
    return qp->env->ops->send(qp, qp->path, pkt);
}

static uint32_t msn_of(const struct wf_qp *qp)
{
    return atomic_load_explicit(&qp->dir->msn, memory_order_relaxed);
}

void wf_resp_nak(struct wf_qp *qp, uint8_t syndrome, uint32_t psn)
{
    struct wf_pkt pkt = {
        .opcode = WF_OP_ACK, .psn = psn, .npsn = 1, .syndrome = syndrome, .msn = msn_of(qp)};
    // A NAK that finds no room is lost; the requester's timer makes up for it.
    (void)send_response(qp, &pkt);
}

static struct wf_resource *oldest_pending(struct wf_responder *r)
{
    for (uint32_t i = r->res_head - r->nres; i != r->res_head; i++) {
        struct wf_resource *res = &r->res[i % r->nres];
        if (res->pending)
            return res;
    }
    return NULL;
}

static uint8_t read_operation(bool first, bool last)
{
    if (first)
        return last ? WF_OP_READ_RESP_ONLY : WF_OP_READ_RESP_FIRST;
    return last ? WF_OP_READ_RESP_LAST : WF_OP_READ_RESP_MIDDLE;
}

static int give_up_read(struct wf_qp *qp, uint8_t nak, enum wf_reason why, uint32_t psn)
{
    qp->root = why;
    wf_resp_nak(qp, nak, psn);
    wf_qp_to_error(qp);
    return -EINVAL;
}

// The region may have gone since the READ was accepted: checked again for each packet.
static int read_packet(struct wf_qp *qp, struct wf_resource *res)
{
    uint32_t left = res->len - res->off;
    uint32_t n = left < qp->seg ? left : qp->seg;
    struct iovec iov[WF_MAX_IOV];
    int niov = 0;
    void *host;
    struct wf_access_req req = {.key = res->rkey,
                                .pd = res->pd,
                                .qpn = qp->qpn,
                                .addr = res->va + res->off,
                                .len = n,
                                .need = IBV_ACCESS_REMOTE_READ};
    uint32_t psn = (res->psn + res->off / qp->mtu) & WF_PSN_MASK;
    if (n && wf_access_check(qp->env->keys, &req, &host) != WF_ACCESS_OK) {
        wf_explain(WF_R_RKEY_UNKNOWN, "QP 0x%06x: region 0x%08x went away during a READ", qp->qpn,
                   res->rkey);
        give_up_read(qp, WF_SYN_NAK_REM_ACCESS, WF_R_RKEY_UNKNOWN, psn);
        qp->env->ops->event(qp, IBV_EVENT_QP_ACCESS_ERR);
        return -EINVAL;
    }
    if (n && !wf_key_in_pieces(qp->env->keys, req.key)) {
        iov[niov++] = (struct iovec){host, n};
    } else if (n) {
        n = (uint32_t)wf_access_map(qp->env->keys, &req, iov, &niov);
        wf_gather_trim(qp, iov, &niov, &n);
        if (n < req.len) {
            niov = 0;
            req.len = n;
            wf_access_map(qp->env->keys, &req, iov, &niov);
        }
    }
    struct wf_pkt pkt = {.opcode = read_operation(res->off == res->start, n == left),
                         .psn = psn,
                         .npsn = wf_qp_npsn(qp, n),
                         .syndrome = WF_SYN_ACK_UNLIMITED,
                         .msn = res->msn,
                         .len = n,
                         .iov = iov,
                         .niov = niov};
    // Links that send later are not told when the memory is gone by then; the requester asks again.
    int err = res->again && !wf_memory_there(iov, niov, false) ? -EFAULT : send_response(qp, &pkt);
    if (err == -EAGAIN)
        return err;
    if (err == -EFAULT) {
        wf_explain(WF_R_LOCAL_FAULT, "QP 0x%06x: READ of region 0x%08x", qp->qpn, res->rkey);
        return give_up_read(qp, WF_SYN_NAK_REM_OP, WF_R_LOCAL_FAULT, psn);
    }
    res->off += n;
    if (n == left)
        res->pending = false;
    return 0;
}

static int single_packet(struct wf_qp *qp, struct wf_resource *res)
{
    bool atomic = res->operation == WF_OP_CMP_SWAP || res->operation == WF_OP_FETCH_ADD;
    struct wf_pkt pkt = {.opcode = atomic ? WF_OP_ATOMIC_ACK : WF_OP_READ_RESP_ONLY,
                         .psn = res->psn,
                         .npsn = 1,
                         .syndrome = WF_SYN_ACK_UNLIMITED,
                         .msn = res->msn,
                         .atomic_orig = res->orig};
    int err = send_response(qp, &pkt);
    if (err == -EAGAIN)
        return err;
    res->pending = false;
    return 0;
}

static bool send_acknowledgement(struct wf_qp *qp)
{
    uint32_t epsn = atomic_load_explicit(&qp->dir->epsn, memory_order_relaxed);
    struct wf_pkt pkt = {.opcode = WF_OP_ACK,
                         .psn = (epsn - 1) & WF_PSN_MASK,
                         .npsn = 1,
                         .syndrome = WF_SYN_ACK_UNLIMITED,
                         .msn = msn_of(qp)};
    return send_response(qp, &pkt) != -EAGAIN;
}

void wf_resp_run(struct wf_qp *qp)
{
    struct wf_responder *r = &qp->resp;
    while (r->res_pending) {
        struct wf_resource *res = oldest_pending(r);
        if (!res)
            break;
        int err = res->operation == WF_OP_READ_REQ ? read_packet(qp, res) : single_packet(qp, res);
        if (err == -EAGAIN)
            qp->blocked = true;
        if (err)
            return;
        if (!res->pending)
            r->res_pending--;
    }
    if (!r->ack_due)
        return;
    if (send_acknowledgement(qp))
        r->ack_due = false;
    else
        qp->blocked = true;
}
