// SPDX-License-Identifier: BSD-2-Clause
// PostSend, PostRecv, PostSrqRecv. A list is translated into chains of up to BATCH requests on the
// stack and posted chain by chain. The checks here are those whose statuses the RFC tells apart;
// all others are the engine's, and what it refused is looked at once more for the RFC's name of it.
#include "iba/iba.h"

#include <errno.h>
#include <string.h>

#define BATCH     16
#define SGE_BATCH 64
#define SGE_MAX   64 // more than any queue allows

#define WR_FLAGS_KNOWN                                                                             \
    (IB_WR_FLAG_IMMEDIATE | IB_WR_FLAG_FENCE | IB_WR_FLAG_SIGNALED | IB_WR_FLAG_SOLICITED |        \
     IB_WR_FLAG_INLINE | IB_WR_FLAG_LOCAL | IB_WR_FLAG_VENDOR_MASK)

struct sge_pool {
    struct ibv_sge sge[SGE_BATCH];
    unsigned used;
};

// ---- SGEs ---------------------------------------------------------------------------------------

static NTSTATUS take_sges(struct sge_pool *pool, IB_SGE *const *in, ULONG count,
                          struct ibv_sge **out)
{
    *out = &pool->sge[pool->used];
    for (ULONG i = 0; i < count; i++) {
        if (!in[i])
            return STATUS_INVALID_PARAMETER;
        pool->sge[pool->used++] = (struct ibv_sge){
            .addr = (uintptr_t)in[i]->Address, .length = in[i]->Length, .lkey = in[i]->LKey};
    }
    return STATUS_SUCCESS;
}

// ---- sends --------------------------------------------------------------------------------------

#define RC (1u << IbQpTypeReliableConn)
#define UC (1u << IbQpTypeUnreliableConn)
#define UD (1u << IbQpTypeUnreliableDgrm)

static const struct {
    enum ibv_wr_opcode plain, imm;
    unsigned types;
} send_types[] = {
    [IbSend] = {IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, RC | UC | UD},
    [IbRdmaWrite] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM, RC | UC},
    [IbRdmaRead] = {IBV_WR_RDMA_READ, IBV_WR_RDMA_READ, RC},
    [IbInterlockedCompareExchange] = {IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_CMP_AND_SWP, RC},
    [IbInterlockedAdd] = {IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD, RC},
};

static unsigned send_flags(ULONG flags)
{
    unsigned out = 0;
    if (flags & IB_WR_FLAG_FENCE)
        out |= IBV_SEND_FENCE;
    if (flags & IB_WR_FLAG_SIGNALED)
        out |= IBV_SEND_SIGNALED;
    if (flags & IB_WR_FLAG_SOLICITED)
        out |= IBV_SEND_SOLICITED;
    if (flags & IB_WR_FLAG_INLINE)
        out |= IBV_SEND_INLINE;
    return out;
}

static NTSTATUS set_operands(const struct wf_iba_qp *qp, const IB_SEND_WR *in,
                             struct ibv_send_wr *out)
{
    struct wf_iba_ah *ah;
    switch (in->Type) {
    case IbRdmaWrite:
    case IbRdmaRead:
        out->wr.rdma.remote_addr = (uintptr_t)in->u.Rdma.Address;
        out->wr.rdma.rkey = in->u.Rdma.RKey;
        break;
    case IbInterlockedCompareExchange:
        out->wr.atomic.remote_addr = (uintptr_t)in->u.CompareExchange.Address;
        out->wr.atomic.compare_add = in->u.CompareExchange.Comparand;
        out->wr.atomic.swap = in->u.CompareExchange.Exchange;
        out->wr.atomic.rkey = in->u.CompareExchange.RKey;
        break;
    case IbInterlockedAdd:
        out->wr.atomic.remote_addr = (uintptr_t)in->u.ExchangeAdd.Address;
        out->wr.atomic.compare_add = in->u.ExchangeAdd.Value;
        out->wr.atomic.rkey = in->u.ExchangeAdd.RKey;
        break;
    default:
        if (qp->pub.Type != IbQpTypeUnreliableDgrm)
            break;
        ah = wf_iba_ah_of(in->u.Ud.pAh);
        if (!ah)
            return STATUS_INVALID_PARAMETER;
        out->wr.ud.ah = &ah->ah->ibv;
        out->wr.ud.remote_qpn = in->u.Ud.RemoteQpn;
        out->wr.ud.remote_qkey = in->u.Ud.RemoteQkey;
        break;
    }
    return STATUS_SUCCESS;
}

static NTSTATUS translate_send(const struct wf_iba_qp *qp, const IB_SEND_WR *in,
                               struct sge_pool *pool, struct ibv_send_wr *out)
{
    if ((unsigned)in->Type >= sizeof(send_types) / sizeof(send_types[0]))
        return STATUS_IB_INVALID_WR_TYPE;
    if (!(send_types[in->Type].types & 1u << qp->pub.Type))
        return STATUS_INVALID_OPERATION;
    if (in->Flags & ~(ULONG)WR_FLAGS_KNOWN)
        return STATUS_INVALID_PARAMETER;
    memset(out, 0, sizeof(*out));
    out->wr_id = in->WrId;
    out->opcode =
        in->Flags & IB_WR_FLAG_IMMEDIATE ? send_types[in->Type].imm : send_types[in->Type].plain;
    out->send_flags = send_flags(in->Flags);
    out->imm_data = in->ImmediateData;
    out->num_sge = (int)in->SgeCount;
    NTSTATUS status = take_sges(pool, in->Sge, in->SgeCount, &out->sg_list);
    return NT_SUCCESS(status) ? set_operands(qp, in, out) : status;
}

// The engine took fewer than it was given: why, in the RFC's words.
static NTSTATUS send_refused(const struct wf_iba_qp *qp, int rc)
{
    enum ibv_qp_state state = wf_qp_state(qp->qp);
    if (rc == -ENOMEM)
        return STATUS_IB_INSUFFICIENT_WR;
    if (state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR)
        return STATUS_IB_INVALID_STATE;
    return wf_iba_status(rc);
}

// Translates up to a batch from *next and posts it. *next becomes the first request that was not
// taken, or what follows the batch.
static NTSTATUS send_batch(struct wf_iba_qp *qp, const IB_SEND_WR **next)
{
    struct ibv_send_wr wr[BATCH], *bad = NULL;
    const IB_SEND_WR *from[BATCH + 1];
    struct sge_pool pool;
    NTSTATUS status = STATUS_SUCCESS;
    int n = 0;
    pool.used = 0;
    from[0] = *next;
    while (from[n] && n < BATCH) {
        if (from[n]->SgeCount > qp->pub.SqSge || from[n]->SgeCount > SGE_MAX)
            status = STATUS_IB_INSUFFICIENT_SGE;
        else if (pool.used + from[n]->SgeCount > SGE_BATCH)
            break;
        else
            status = translate_send(qp, from[n], &pool, &wr[n]);
        if (!NT_SUCCESS(status))
            break;
        if (n)
            wr[n - 1].next = &wr[n];
        from[n + 1] = from[n]->pNext;
        n++;
    }
    *next = from[n];
    int rc = n ? wf_qp_post_send(qp->qp, wr, &bad) : 0;
    if (!rc)
        return status;
    *next = from[bad ? bad - wr : 0];
    return send_refused(qp, rc);
}

NTSTATUS wf_iba_post_send(IB_QP *const pQp, const IB_SEND_WR *pSendWr,
                          IB_SEND_WR **const ppFailedSend)
{
    struct wf_iba_qp *qp = wf_iba_qp_of(pQp);
    const IB_SEND_WR *next = pSendWr;
    if (ppFailedSend)
        *ppFailedSend = (IB_SEND_WR *)pSendWr;
    if (!qp || !pSendWr || (!ppFailedSend && pSendWr->pNext))
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    NTSTATUS status = wf_iba_alive(&qp->obj);
    bool ud = qp->pub.Type == IbQpTypeUnreliableDgrm;
    if (ud)
        pthread_rwlock_rdlock(&wf_iba_device.ah_lock);
    while (NT_SUCCESS(status) && next)
        status = send_batch(qp, &next);
    if (ud)
        pthread_rwlock_unlock(&wf_iba_device.ah_lock);
    if (ppFailedSend)
        *ppFailedSend = (IB_SEND_WR *)next;
    return NT_SUCCESS(status) ? status : wf_iba_bad(status, __func__);
}

// ---- receives -----------------------------------------------------------------------------------

struct recv_queue {
    struct wf_iba_qp *qp; // or
    struct wf_iba_srq *srq;
    ULONG sge;
};

static NTSTATUS recv_refused(const struct recv_queue *q, int rc)
{
    if (rc == -ENOMEM)
        return STATUS_IB_INSUFFICIENT_WR;
    if (q->qp && wf_qp_state(q->qp->qp) == IBV_QPS_RESET)
        return STATUS_IB_INVALID_STATE;
    return wf_iba_status(rc);
}

static NTSTATUS recv_batch(const struct recv_queue *q, const IB_RECV_WR **next)
{
    struct ibv_recv_wr wr[BATCH], *bad = NULL;
    const IB_RECV_WR *from[BATCH + 1];
    struct sge_pool pool;
    NTSTATUS status = STATUS_SUCCESS;
    int n = 0;
    pool.used = 0;
    from[0] = *next;
    while (from[n] && n < BATCH) {
        if (from[n]->SgeCount > q->sge || from[n]->SgeCount > SGE_MAX)
            status = STATUS_IB_INSUFFICIENT_SGE;
        else if (pool.used + from[n]->SgeCount > SGE_BATCH)
            break;
        else
            status = take_sges(&pool, from[n]->Sge, from[n]->SgeCount, &wr[n].sg_list);
        if (!NT_SUCCESS(status))
            break;
        wr[n].wr_id = from[n]->WrId;
        wr[n].num_sge = (int)from[n]->SgeCount;
        wr[n].next = NULL;
        if (n)
            wr[n - 1].next = &wr[n];
        from[n + 1] = from[n]->pNext;
        n++;
    }
    *next = from[n];
    int rc = 0;
    if (n)
        rc = q->qp ? wf_qp_post_recv(q->qp->qp, wr, &bad) : wf_srq_post(q->srq->srq, wr, &bad);
    if (!rc)
        return status;
    *next = from[bad ? bad - wr : 0];
    return recv_refused(q, rc);
}

static NTSTATUS post_recv(const struct recv_queue *q, const struct wf_iba_object *o,
                          const IB_RECV_WR *list, IB_RECV_WR **failed)
{
    NTSTATUS status = wf_iba_alive(o);
    const IB_RECV_WR *next = list;
    while (NT_SUCCESS(status) && next)
        status = recv_batch(q, &next);
    if (failed)
        *failed = (IB_RECV_WR *)next;
    return NT_SUCCESS(status) ? status : wf_iba_bad(status, __func__);
}

NTSTATUS wf_iba_post_recv(IB_QP *const pQp, const IB_RECV_WR *pRecvWr,
                          IB_RECV_WR **const ppFailedRecv)
{
    struct wf_iba_qp *qp = wf_iba_qp_of(pQp);
    if (ppFailedRecv)
        *ppFailedRecv = (IB_RECV_WR *)pRecvWr;
    if (!qp || !pRecvWr || (!ppFailedRecv && pRecvWr->pNext))
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    if (qp->pub.pSrq)
        return wf_iba_bad(STATUS_INVALID_OPERATION, __func__);
    struct recv_queue q = {.qp = qp, .sge = qp->pub.RqSge};
    return post_recv(&q, &qp->obj, pRecvWr, ppFailedRecv);
}

NTSTATUS wf_iba_post_srq_recv(IB_SRQ *const pSrq, const IB_RECV_WR *pRecvWr,
                              IB_RECV_WR **const ppFailedRecv)
{
    struct wf_iba_srq *srq = wf_iba_srq_of(pSrq);
    if (ppFailedRecv)
        *ppFailedRecv = (IB_RECV_WR *)pRecvWr;
    if (!srq || !pRecvWr || (!ppFailedRecv && pRecvWr->pNext))
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    struct recv_queue q = {.srq = srq, .sge = srq->sge};
    return post_recv(&q, &srq->obj, pRecvWr, ppFailedRecv);
}
