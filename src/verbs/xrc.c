// SPDX-License-Identifier: BSD-2-Clause
// XRC domains, and receive QPs opened by number.
#include "verbs/face.h"
#include <stdlib.h>
#include <utlist.h>

struct ibv_xrcd *wf_op_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *attr)
{
    const uint32_t need = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    struct wf_vxrcd *v;
    int rc;

    if (attr->comp_mask != need)
        return wf_verb_null(wf_refuse(EINVAL, WF_R_ARG,
                                      "ibv_open_xrcd: comp_mask 0x%x, 0x%x is needed",
                                      attr->comp_mask, need));
    v = calloc(1, sizeof(*v));
    if (!v)
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_open_xrcd"));
    rc = wf_xrcd_open(wf_vcontext(ctx)->file->ctx, attr->fd, attr->oflags, &v->xrcd);
    if (rc < 0) {
        free(v);
        return wf_verb_null(rc);
    }
    v->ibv.context = ctx;
    return &v->ibv;
}

int wf_op_close_xrcd(struct ibv_xrcd *xrcd)
{
    struct wf_vxrcd *v = (struct wf_vxrcd *)xrcd;
    int rc = wf_vforeign(xrcd->context) ? 0 : wf_xrcd_close(v->xrcd);

    if (rc < 0)
        return wf_verb(rc);
    free(v);
    return 0;
}

static struct wf_vqp *find_shared(struct wf_vfile *file, uint32_t qp_num)
{
    struct wf_vqp *qp;

    pthread_mutex_lock(&file->lock);
    DL_SEARCH_SCALAR(file->qps, qp, ibv.qp_base.qp_num, qp_num);
    if (qp && qp->ibv.qp_base.qp_type == IBV_QPT_XRC_RECV)
        atomic_fetch_add(&qp->openers, 1);
    else
        qp = NULL;
    pthread_mutex_unlock(&file->lock);
    return qp;
}

struct ibv_qp *wf_op_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr)
{
    const uint32_t need = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    struct wf_vqp *base, *v;
    struct ibv_qp *ibv;

    if ((attr->comp_mask & need) != need || attr->qp_type != IBV_QPT_XRC_RECV ||
        (attr->comp_mask & ~(need | IBV_QP_OPEN_ATTR_CONTEXT)))
        return wf_verb_null(wf_refuse(EINVAL, WF_R_ARG,
                                      "ibv_open_qp: comp_mask 0x%x, QP type %d; it opens XRC_RECV "
                                      "QPs by number in a domain",
                                      attr->comp_mask, attr->qp_type));
    base = find_shared(wf_vcontext(ctx)->file, attr->qp_num);
    if (!base)
        return wf_verb_null(wf_refuse(ENOENT, WF_R_NO_SUCH_QP,
                                      "ibv_open_qp: this context has no XRC_RECV QP 0x%06x",
                                      attr->qp_num));
    v = calloc(1, sizeof(*v));
    if (!v) {
        atomic_fetch_sub(&base->openers, 1);
        return wf_verb_null(wf_refuse(ENOMEM, WF_R_NO_MEMORY, "ibv_open_qp"));
    }
    v->shared = base;
    v->qp = base->qp;
    v->xrcd = attr->xrcd;
    ibv = &v->ibv.qp_base;
    ibv->context = ctx;
    ibv->qp_context = attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? attr->qp_context : NULL;
    ibv->handle = base->ibv.qp_base.handle;
    ibv->qp_num = attr->qp_num;
    ibv->qp_type = IBV_QPT_XRC_RECV;
    ibv->state = wf_qp_state(base->qp);
    pthread_mutex_init(&ibv->mutex, NULL);
    pthread_cond_init(&ibv->cond, NULL);
    return ibv;
}
