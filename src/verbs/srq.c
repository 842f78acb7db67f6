// SPDX-License-Identifier: BSD-2-Clause
// Shared receive queues, basic and XRC.
#include "verbs/face.h"

_Static_assert(sizeof(struct ibv_srq) == 128, "struct ibv_srq");

static int srq_new(struct ibv_pd *pd, void *context, struct wf_srq_init *init, struct wf_vsrq **out)
{
    struct wf_vmem mem;
    struct wf_vsrq *v = wf_vmem_alloc(pd, sizeof(*v), WF_VMEM_SRQ, &mem);
    int rc;

    if (!v)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "shared receive queue");
    v->mem = mem;
    v->ibv.context = pd->context;
    v->ibv.srq_context = context;
    v->ibv.pd = pd;
    pthread_mutex_init(&v->ibv.mutex, NULL);
    pthread_cond_init(&v->ibv.cond, NULL);
    init->user = v;
    rc = wf_srq_create(wf_vpd(pd)->pd, init, &v->srq);
    if (rc < 0) {
        wf_vmem_free(v, mem);
        return rc;
    }
    v->ibv.handle = wf_srq_num(v->srq);
    wf_vpd_use(pd);
    *out = v;
    return 0;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
    struct wf_srq_init init = {
        .type = IBV_SRQT_BASIC,
        .max_wr = attr->attr.max_wr,
        .max_sge = attr->attr.max_sge,
        .limit = attr->attr.srq_limit,
    };
    struct wf_vsrq *srq;
    int rc = srq_new(pd, attr->srq_context, &init, &srq);

    if (rc < 0)
        return wf_verb_null(rc);
    attr->attr.max_wr = init.max_wr;
    attr->attr.max_sge = init.max_sge;
    return &srq->ibv;
}

static int check_ex(const struct ibv_srq_init_attr_ex *attr)
{
    const uint32_t xrc = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    const uint32_t known = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | xrc;
    bool typed = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE;

    if (typed && attr->srq_type == IBV_SRQT_TM)
        return wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "tag matching SRQ");
    if (attr->comp_mask & ~known)
        return wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ibv_create_srq_ex: comp_mask 0x%x",
                         attr->comp_mask);
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd)
        return wf_refuse(EINVAL, WF_R_ARG, "ibv_create_srq_ex: no PD");
    if (typed && attr->srq_type == IBV_SRQT_XRC &&
        ((attr->comp_mask & xrc) != xrc || !attr->xrcd || !attr->cq))
        return wf_refuse(EINVAL, WF_R_ARG, "an XRC SRQ needs an XRC domain and a CQ");
    return 0;
}

struct ibv_srq *wf_op_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *attr)
{
    struct wf_srq_init init = {
        .type = attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC,
        .max_wr = attr->attr.max_wr,
        .max_sge = attr->attr.max_sge,
        .limit = attr->attr.srq_limit,
    };
    struct wf_vsrq *srq;
    int rc = check_ex(attr);

    if (rc < 0)
        return wf_verb_null(rc);
    if (init.type == IBV_SRQT_XRC) {
        init.xrcd = ((struct wf_vxrcd *)attr->xrcd)->xrcd;
        init.cq = wf_vcq(attr->cq)->cq;
    }
    rc = srq_new(attr->pd, attr->srq_context, &init, &srq);
    if (rc < 0)
        return wf_verb_null(rc);
    attr->attr.max_wr = init.max_wr;
    attr->attr.max_sge = init.max_sge;
    return &srq->ibv;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
        return wf_verb(wf_refuse(EINVAL, WF_R_ARG, "ibv_modify_srq: mask 0x%x", mask));
    return wf_verb(wf_srq_modify(wf_vsrq(srq)->srq, attr, mask));
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    return wf_verb(wf_srq_query(wf_vsrq(srq)->srq, attr));
}

int ibv_destroy_srq(struct ibv_srq *ibv)
{
    struct wf_vsrq *srq = wf_vsrq(ibv);
    struct wf_vacks acks = {&ibv->mutex,     &ibv->cond, &ibv->events_completed,
                            &srq->delivered, "SRQ",      ibv->handle};
    bool foreign = wf_vforeign(ibv->context);
    int rc = foreign ? 0 : wf_srq_destroy(srq->srq);

    if (rc < 0)
        return wf_verb(rc);
    if (!foreign) {
        wf_vasync_drop(ibv->context, ibv);
        wf_vacks_wait(&acks);
    }
    wf_vpd_unuse(ibv->pd);
    wf_vmem_free(srq, srq->mem);
    return 0;
}

int wf_op_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
    *num = wf_srq_num(wf_vsrq(srq)->srq);
    return 0;
}
