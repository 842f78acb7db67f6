// SPDX-License-Identifier: BSD-2-Clause
// Queue pairs: creation, state, destruction.
#include "verbs/face.h"
#include "weft/weft.h"
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

_Static_assert(sizeof(struct ibv_qp) == 160, "struct ibv_qp");
_Static_assert(sizeof(struct ibv_qp_ex) == 352, "struct ibv_qp_ex");
_Static_assert(offsetof(struct wf_vqp, wr_flush) == 352, "place of wr_flush in newer headers");

static int check_type(enum ibv_qp_type type)
{
    switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_UC:
    case IBV_QPT_UD:
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
        return 0;
    default:
        return wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "QP type %d", type);
    }
}

static int check_init(const struct ibv_qp_init_attr_ex *attr)
{
    const uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
                           IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    const uint32_t flags = IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
    int rc = check_type(attr->qp_type);

    if (rc < 0)
        return rc;
    if (attr->comp_mask & ~known)
        return wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ibv_create_qp_ex: comp_mask 0x%x",
                         attr->comp_mask);
    if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && (attr->create_flags & ~flags))
        return wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ibv_create_qp_ex: create_flags 0x%x",
                         attr->create_flags);
    if (attr->qp_type == IBV_QPT_XRC_RECV) {
        if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)
            return wf_refuse(EINVAL, WF_R_ARG, "an XRC_RECV QP needs an XRC domain");
        return 0;
    }
    if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd)
        return wf_refuse(EINVAL, WF_R_ARG, "ibv_create_qp_ex: no PD");
    if (!attr->send_cq || (attr->qp_type != IBV_QPT_XRC_SEND && !attr->recv_cq))
        return wf_refuse(EINVAL, WF_R_ARG, "a QP needs its completion queues");
    return 0;
}

static void public_part(struct wf_vqp *v, struct ibv_context *ctx,
                        const struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp *qp = &v->ibv.qp_base;
    bool receives = attr->qp_type != IBV_QPT_XRC_RECV && attr->qp_type != IBV_QPT_XRC_SEND;

    qp->context = ctx;
    qp->qp_context = attr->qp_context;
    qp->qp_type = attr->qp_type;
    // An XRC target does not need one, but librdmacm goes on with the PD that it gave.
    qp->pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
    if (attr->qp_type != IBV_QPT_XRC_RECV)
        qp->send_cq = attr->send_cq;
    if (receives) {
        qp->recv_cq = attr->recv_cq;
        qp->srq = attr->srq;
    }
    if (attr->qp_type == IBV_QPT_XRC_RECV)
        v->xrcd = attr->xrcd;
    pthread_mutex_init(&qp->mutex, NULL);
    pthread_cond_init(&qp->cond, NULL);
}

static int engine_part(struct wf_vqp *v, struct ibv_qp_init_attr_ex *attr)
{
    struct ibv_qp *qp = &v->ibv.qp_base;
    struct wf_qp_init init = {
        .type = attr->qp_type,
        .send_cq = qp->send_cq ? wf_vcq(qp->send_cq)->cq : NULL,
        .recv_cq = qp->recv_cq ? wf_vcq(qp->recv_cq)->cq : NULL,
        .srq = qp->srq ? wf_vsrq(qp->srq)->srq : NULL,
        .xrcd = v->xrcd ? ((struct wf_vxrcd *)v->xrcd)->xrcd : NULL,
        .cap = attr->cap,
        .sig_all = attr->sq_sig_all != 0,
        .create_flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0,
        .user = v,
    };
    int rc = wf_qp_create(wf_vcontext(qp->context)->file->ctx, qp->pd ? wf_vpd(qp->pd)->pd : NULL,
                          &init, &v->qp);

    if (rc < 0)
        return rc;
    attr->cap = v->cap = init.cap;
    v->sig_all = attr->sq_sig_all;
    qp->qp_num = qp->handle = wf_qp_num(v->qp);
    qp->state = IBV_QPS_RESET;
    return 0;
}

int wf_vqp_new(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr, struct wf_vqp **out)
{
    struct wf_vfile *file = wf_vcontext(ctx)->file;
    bool has_pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD;
    struct wf_vmem mem;
    struct wf_vqp *v;
    int rc = check_init(attr);

    if (rc < 0)
        return rc;
    v = wf_vmem_alloc(has_pd ? attr->pd : NULL, sizeof(*v), WF_VMEM_QP, &mem);
    if (!v)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "queue pair");
    v->mem = mem;
    public_part(v, ctx, attr);
    if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
        rc = wf_vbuild_new(v, attr->send_ops_flags);
        // An atomic write's value is inline data.
        if ((attr->send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE) && attr->cap.max_inline_data < 8)
            attr->cap.max_inline_data = 8;
    }
    if (rc == 0)
        rc = engine_part(v, attr);
    if (rc < 0) {
        wf_vbuild_free(v);
        wf_vmem_free(v, mem);
        return rc;
    }
    wf_vpd_use(v->ibv.qp_base.pd);
    atomic_store(&v->openers, 1);
    pthread_mutex_lock(&file->lock);
    DL_APPEND(file->qps, v);
    pthread_mutex_unlock(&file->lock);
    *out = v;
    return 0;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex ex = {.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd};
    struct wf_vqp *qp;
    int rc;

    memcpy(&ex, attr, offsetof(struct ibv_qp_init_attr_ex, comp_mask));
    rc = wf_vqp_new(pd->context, &ex, &qp);
    if (rc < 0)
        return wf_verb_null(rc);
    attr->cap = ex.cap;
    return &qp->ibv.qp_base;
}

struct ibv_qp *wf_op_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr)
{
    struct wf_vqp *qp;
    int rc = wf_vqp_new(ctx, attr, &qp);

    return rc < 0 ? wf_verb_null(rc) : &qp->ibv.qp_base;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    return wf_vqp(qp)->build ? &wf_vqp(qp)->ibv : NULL;
}

// Programs often pass the flags of their regions: those that say nothing about a QP are ignored, as
// hardware does.
#define QP_ACCESS                                                                                  \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    struct ibv_qp_attr a = *attr;
    int rc;

    if (mask & IBV_QP_RATE_LIMIT)
        return wf_verb(wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "rate limits"));
    a.qp_access_flags &= QP_ACCESS;
    rc = wf_qp_modify(wf_vqp(qp)->qp, &a, mask);
    qp->state = wf_qp_state(wf_vqp(qp)->qp);
    return wf_verb(rc);
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
                 struct ibv_qp_init_attr *init)
{
    struct wf_vqp *v = wf_vqp(qp);
    struct wf_qp_init engine;
    int rc = wf_qp_query(v->qp, attr, &engine);

    if (rc < 0)
        return wf_verb(rc);
    *init = (struct ibv_qp_init_attr){
        .qp_context = qp->qp_context,
        .send_cq = qp->send_cq,
        .recv_cq = qp->recv_cq,
        .srq = qp->srq,
        .cap = v->cap,
        .qp_type = qp->qp_type,
        .sq_sig_all = v->sig_all,
    };
    attr->cap = v->cap;
    qp->state = attr->qp_state;
    return 0;
}

static int destroy_opened(struct wf_vqp *v)
{
    struct wf_vqp *base = v->shared ? v->shared : v;

    if (atomic_fetch_sub(&base->openers, 1) > 1) {
        if (v != base)
            free(v);
        return 1;
    }
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *ibv)
{
    struct wf_vfile *file = wf_vcontext(ibv->context)->file;
    struct wf_vqp *v = wf_vqp(ibv);
    struct wf_vacks acks = {&ibv->mutex,   &ibv->cond, &ibv->events_completed,
                            &v->delivered, "QP",       ibv->qp_num};
    bool foreign = wf_vforeign(ibv->context);
    int rc;

    // The QP itself lives until the last of those who opened it lets go.
    if (destroy_opened(v))
        return 0;
    if (v->shared) {
        struct ibv_qp *base = &v->shared->ibv.qp_base;

        free(v);
        atomic_store(&wf_vqp(base)->openers, 1);
        return ibv_destroy_qp(base);
    }
    rc = foreign ? 0 : wf_qp_destroy(v->qp);
    if (rc < 0) {
        atomic_fetch_add(&v->openers, 1);
        return wf_verb(rc);
    }
    pthread_mutex_lock(&file->lock);
    DL_DELETE(file->qps, v);
    pthread_mutex_unlock(&file->lock);
    if (!foreign) {
        wf_vasync_drop(ibv->context, ibv);
        wf_vacks_wait(&acks);
    }
    wf_vpd_unuse(ibv->pd);
    wf_vbuild_free(v);
    wf_vmem_free(v, v->mem);
    return 0;
}

// Payload may be copied by another process in pieces of its own choosing: no order is promised.
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
    return 0;
}

WF_EXPORT int weft_qp_wqes(struct ibv_qp *qp, struct weft_qp_wqes *wqes)
{
    struct wf_wqes w;

    if (!qp || !wqes)
        return EINVAL;
    wf_qp_wqes(wf_vqp(qp)->qp, &w);
    *wqes = (struct weft_qp_wqes){w.send_offset, w.send_stride, w.send_slots, w.recv_stride,
                                  w.recv_slots};
    return 0;
}
