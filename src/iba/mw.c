// SPDX-License-Identifier: BSD-2-Clause
// Memory windows (type 1).
#include "iba/iba.h"

#include <errno.h>
#include <string.h>

// A region's nRef counts the windows whose last bind named it. It informs; the engine decides
// whether a region can go.
static void note_bind(struct wf_iba_mw *mw, struct wf_iba_mr *mr)
{
    KIRQL irql = wf_iba_lock();
    if (mw->bound)
        mw->bound->pub.nRef--;
    if (mr)
        mr->pub.nRef++;
    mw->bound = mr;
    wf_iba_unlock(irql);
}

static int destroy(struct wf_iba_object *o)
{
    struct wf_iba_mw *mw = CONTAINING_RECORD(o, struct wf_iba_mw, obj);
    weft_wdm_may_block("revoking a window"); // waits for copies of peers
    int rc = wf_mw_dealloc(mw->mw);
    if (rc != -EBUSY)
        wf_iba_retry_zombies();
    return rc;
}

static const struct wf_iba_class mw_class = {WF_IBA_MW, destroy, NULL};

struct wf_iba_mw *wf_iba_mw_of(const void *pub)
{
    return (struct wf_iba_mw *)wf_iba_object_of(pub, WF_IBA_MW);
}

static NTSTATUS run_create(struct wf_iba_op *op, ULONG_PTR *info)
{
    struct wf_iba_pd *pd = CONTAINING_RECORD(op->target, struct wf_iba_pd, obj);
    struct wf_iba_mw *mw =
        (struct wf_iba_mw *)wf_iba_object_new(&mw_class, sizeof(*mw), pd->obj.ca);
    if (!mw)
        return STATUS_INSUFFICIENT_RESOURCES;
    NTSTATUS status = wf_iba_adopt(&mw->obj, 0, &pd->obj);
    if (NT_SUCCESS(status))
        status = wf_iba_status(wf_mw_alloc(pd->pd, IBV_MW_TYPE_1, &mw->mw));
    if (!NT_SUCCESS(status)) {
        wf_iba_object_discard(&mw->obj);
        return status;
    }
    mw->pub.pPd = &pd->pub;
    mw->pub.RKey = wf_mw_rkey(mw->mw);
    *info = (ULONG_PTR)&mw->pub;
    return STATUS_SUCCESS;
}

NTSTATUS wf_iba_create_mw(IB_PD *const pPd, CI_UDATA *const pUserData, IRP *const pIrp)
{
    struct wf_iba_pd *pd = wf_iba_pd_of(pPd);
    struct wf_iba_op op = {0};
    if (!pd)
        return wf_iba_refuse(pIrp, STATUS_INVALID_PARAMETER, __func__);
    return wf_iba_start(&op, sizeof(op), run_create, &pd->obj, pUserData, pIrp);
}

NTSTATUS wf_iba_destroy_mw(VOID *const pMw, IRP *const pIrp)
{
    struct wf_iba_mw *mw = wf_iba_mw_of(pMw);
    if (mw)
        note_bind(mw, NULL);
    return wf_iba_destroy(mw ? &mw->obj : NULL, NULL, pIrp);
}

// ---- bind ---------------------------------------------------------------------------------------

// pMr is a region or, as the RFC declares it, the address of a handle. Both begin with a pointer: a
// region's leads to its PD, a handle's to the region.
static struct wf_iba_mr *region_of(const void *ptr)
{
    if (!ptr || (uintptr_t)ptr % 8)
        return NULL;
    const void *first = *(void *const *)ptr;
    if (wf_iba_object_of(first, WF_IBA_MR))
        return wf_iba_mr_of(first);
    return wf_iba_object_of(first, WF_IBA_PD) ? wf_iba_mr_of(ptr) : NULL;
}

static unsigned bind_flags(ULONG flags)
{
    unsigned out = 0;
    if (flags & IB_WR_FLAG_FENCE)
        out |= IBV_SEND_FENCE;
    if (flags & IB_WR_FLAG_SIGNALED)
        out |= IBV_SEND_SIGNALED;
    return out;
}

static NTSTATUS refused(struct wf_iba_qp *qp, int rc)
{
    enum ibv_qp_state state = wf_qp_state(qp->qp);
    if (rc == -ENOMEM)
        return STATUS_IB_INSUFFICIENT_WR;
    if (state == IBV_QPS_RESET || state == IBV_QPS_INIT || state == IBV_QPS_RTR)
        return STATUS_IB_INVALID_STATE;
    return wf_iba_status(rc);
}

static NTSTATUS post_bind(struct wf_iba_qp *qp, struct wf_iba_mw *mw, struct wf_iba_mr *mr,
                          const IB_BIND_WR *in, int access)
{
    struct ibv_mr imr = {.lkey = mr ? mr->pub.LKey : 0};
    struct ibv_mw imw = {.handle = wf_mw_handle(mw->mw), .type = IBV_MW_TYPE_1};
    struct ibv_send_wr wr, *bad;
    imw.rkey = mw->pub.RKey;
    memset(&wr, 0, sizeof(wr));
    wr.wr_id = in->WrId;
    wr.opcode = IBV_WR_BIND_MW;
    wr.send_flags = bind_flags(in->Flags);
    wr.bind_mw.mw = &imw;
    wr.bind_mw.rkey = ibv_inc_rkey(mw->pub.RKey);
    wr.bind_mw.bind_info.mr = &imr;
    wr.bind_mw.bind_info.addr = (uintptr_t)in->Addr;
    wr.bind_mw.bind_info.length = in->Length;
    wr.bind_mw.bind_info.mw_access_flags = (unsigned)access;
    int rc = wf_qp_post_send(qp->qp, &wr, &bad);
    if (rc)
        return refused(qp, rc);
    mw->pub.RKey = wr.bind_mw.rkey;
    note_bind(mw, in->Length ? mr : NULL);
    wf_iba_retry_zombies();
    return STATUS_SUCCESS;
}

NTSTATUS wf_iba_bind_mw(IB_QP *const pQp, IB_MW *const pMw, const IB_BIND_WR *const pBindWr)
{
    struct wf_iba_qp *qp = wf_iba_qp_of(pQp);
    struct wf_iba_mw *mw = wf_iba_mw_of(pMw);
    if (!qp || !mw || !pBindWr)
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    struct wf_iba_mr *mr = region_of(pBindWr->pMr);
    const ULONG known = IB_WR_FLAG_FENCE | IB_WR_FLAG_SIGNALED | IB_WR_FLAG_SOLICITED |
                        IB_WR_FLAG_LOCAL | (ULONG)IB_WR_FLAG_VENDOR_MASK;
    if (pBindWr->Flags & ~known || (pBindWr->Length && !mr) || mw->obj.closing)
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    if (qp->pub.Type == IbQpTypeUnreliableDgrm)
        return wf_iba_bad(STATUS_INVALID_OPERATION, __func__);
    int access = wf_iba_access(qp->obj.ca, pBindWr->AccessMask);
    if (access < 0)
        return wf_iba_bad(STATUS_INVALID_PARAMETER, __func__);
    access &= IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    NTSTATUS status = wf_iba_alive(&qp->obj);
    return NT_SUCCESS(status) ? post_bind(qp, mw, mr, pBindWr, access) : status;
}
