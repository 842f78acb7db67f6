// SPDX-License-Identifier: BSD-2-Clause
// Memory windows.
#include "verbs/face.h"
#include <stdlib.h>

_Static_assert(sizeof(struct ibv_mw) == 32, "struct ibv_mw");

struct ibv_mw *wf_op_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
    struct wf_vmw *v;
    int rc;

    if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
        return wf_verb_null(wf_refuse(EINVAL, WF_R_ARG, "ibv_alloc_mw: type %d", type));
    v = calloc(1, sizeof(*v));
    if (!v)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_alloc_mw"));
    rc = wf_mw_alloc(wf_vpd(pd)->pd, type, &v->mw);
    if (rc < 0) {
        free(v);
        return wf_verb_null(rc);
    }
    v->ibv.context = pd->context;
    v->ibv.pd = pd;
    v->ibv.rkey = wf_mw_rkey(v->mw);
    v->ibv.handle = wf_mw_handle(v->mw);
    v->ibv.type = type;
    wf_vpd_use(pd);
    return &v->ibv;
}

int wf_op_dealloc_mw(struct ibv_mw *mw)
{
    struct wf_vmw *v = (struct wf_vmw *)mw;
    int rc = wf_vforeign(mw->context) ? 0 : wf_mw_dealloc(v->mw);

    if (rc < 0)
        return wf_verb(rc);
    wf_vpd_unuse(mw->pd);
    free(v);
    return 0;
}

// Type 1 windows: the caller's window gets its next rkey at once, the bind takes its place in the
// send queue.
int wf_op_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
    struct ibv_send_wr *bad;
    struct ibv_send_wr wr = {
        .wr_id = bind->wr_id,
        .opcode = IBV_WR_BIND_MW,
        .send_flags = bind->send_flags,
        .bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = bind->bind_info},
    };
    int rc;

    if (mw->type != IBV_MW_TYPE_1)
        return wf_verb(wf_refuse(EINVAL, WF_R_MW_BIND,
                                 "ibv_bind_mw: window 0x%x is of type 2: post IBV_WR_BIND_MW",
                                 mw->rkey));
    rc = wf_qp_post_send(wf_vqp(qp)->qp, &wr, &bad);
    if (rc < 0)
        return wf_verb(rc);
    mw->rkey = wr.bind_mw.rkey;
    return 0;
}
