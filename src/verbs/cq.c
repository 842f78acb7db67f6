// SPDX-License-Identifier: BSD-2-Clause
// Completion queues.
#include "verbs/face.h"
#include "weft/weft.h"
#include <limits.h>
#include <stdlib.h>

_Static_assert(sizeof(struct ibv_cq) == 128, "struct ibv_cq");
_Static_assert(sizeof(struct ibv_wc) == 48, "struct ibv_wc");

static int check_init(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr)
{
    const uint32_t masks = IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD;
    const uint32_t flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
    struct ibv_device_attr device;

    wf_hca_query_device(wf_vhca(ctx), &device);
    if (attr->cqe == 0 || attr->cqe > (uint32_t)device.max_cqe)
        return wf_refuse(EINVAL, WF_R_ARG, "CQ of %u entries, 1 to %d are possible", attr->cqe,
                         device.max_cqe);
    if (attr->comp_vector >= (uint32_t)ctx->num_comp_vectors)
        return wf_refuse(EINVAL, WF_R_ARG, "completion vector %u of %d", attr->comp_vector,
                         ctx->num_comp_vectors);
    if (attr->comp_mask & ~masks)
        return wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ibv_create_cq_ex: comp_mask 0x%x",
                         attr->comp_mask);
    if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) && (attr->flags & ~flags))
        return wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ibv_create_cq_ex: flags 0x%x",
                         attr->flags);
    if (attr->wc_flags & ~(uint64_t)WF_FACE_WC_FLAGS)
        return wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ibv_create_cq_ex: wc_flags 0x%llx",
                         (unsigned long long)attr->wc_flags);
    if (attr->channel && attr->channel->context != ctx)
        return wf_refuse(EINVAL, WF_R_ARG, "the channel is of another context");
    return 0;
}

static int engine_cq(struct wf_vcq *cq, const struct ibv_cq_init_attr_ex *attr, uint32_t flags)
{
    struct wf_cq_init init = {
        .cqe = attr->cqe,
        .ignore_overrun = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
        .user = cq,
        .on_comp = attr->channel ? wf_vchannel_raise : NULL,
    };

    return wf_cq_create(wf_vcontext(cq->ibv.context)->file->ctx, &init, &cq->cq);
}

static uint32_t new_handle(struct ibv_context *ctx)
{
    struct wf_vfile *file = wf_vcontext(ctx)->file;
    uint32_t handle;

    pthread_mutex_lock(&file->lock);
    handle = wf_vfile_handle(file);
    pthread_mutex_unlock(&file->lock);
    return handle;
}

static void channel_ref(struct ibv_comp_channel *channel, int by)
{
    if (!channel)
        return;
    pthread_mutex_lock(&channel->context->mutex);
    channel->refcnt += by;
    pthread_mutex_unlock(&channel->context->mutex);
}

int wf_vcq_new(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *attr, struct wf_vcq **out)
{
    uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
    struct ibv_pd *domain = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ? attr->parent_domain : NULL;
    struct wf_vmem mem;
    struct wf_vcq *cq;
    int rc = check_init(ctx, attr);

    if (rc < 0)
        return rc;
    cq = wf_vmem_alloc(domain, sizeof(*cq), WF_VMEM_CQ, &mem);
    if (!cq)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "completion queue");
    cq->mem = mem;
    cq->domain = domain;
    cq->ibv.context = ctx;
    cq->ibv.channel = attr->channel;
    cq->ibv.cq_context = attr->cq_context;
    cq->single_threaded = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    pthread_mutex_init(&cq->ibv.mutex, NULL);
    pthread_cond_init(&cq->ibv.cond, NULL);
    pthread_mutex_init(&cq->poll_lock, NULL);
    cq->ibv.handle = new_handle(ctx);
    rc = engine_cq(cq, attr, flags);
    if (rc < 0) {
        wf_vmem_free(cq, mem);
        return rc;
    }
    cq->ibv.cqe = (int)wf_cq_size(cq->cq);
    wf_vpd_use(domain);
    channel_ref(attr->channel, 1);
    *out = cq;
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
                             struct ibv_comp_channel *channel, int comp_vector)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = cqe < 0 ? 0 : (uint32_t)cqe,
        .cq_context = cq_context,
        .channel = channel,
        .comp_vector = comp_vector < 0 ? UINT32_MAX : (uint32_t)comp_vector,
        .wc_flags = IBV_WC_STANDARD_FLAGS,
    };
    struct wf_vcq *cq;
    int rc = wf_vcq_new(ctx, &attr, &cq);

    return rc < 0 ? wf_verb_null(rc) : (struct ibv_cq *)&cq->ibv;
}

struct ibv_cq_ex *wf_op_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *attr)
{
    struct wf_vcq *cq;
    int rc = wf_vcq_new(ctx, attr, &cq);

    if (rc < 0)
        return wf_verb_null(rc);
    wf_vcq_fill_ex(cq, attr->wc_flags);
    return &cq->ibv;
}

int ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
    struct wf_vcq *cq = wf_vcq(ibv);
    struct ibv_device_attr device;
    int rc;

    wf_hca_query_device(wf_vhca(ibv->context), &device);
    if (cqe < 1 || cqe > device.max_cqe)
        return wf_verb(wf_refuse(EINVAL, WF_R_ARG,
                                 "resize of a CQ to %d entries, 1 to %d are "
                                 "possible",
                                 cqe, device.max_cqe));
    rc = wf_cq_resize(cq->cq, (uint32_t)cqe);
    if (rc == 0)
        ibv->cqe = (int)wf_cq_size(cq->cq);
    return wf_verb(rc);
}

int ibv_destroy_cq(struct ibv_cq *ibv)
{
    struct wf_vcq *cq = wf_vcq(ibv);
    struct wf_vacks comp = {&ibv->mutex,    &ibv->cond, &ibv->comp_events_completed,
                            &cq->delivered, "CQ",       ibv->handle};
    struct wf_vacks async = {&ibv->mutex,          &ibv->cond, &ibv->async_events_completed,
                             &cq->async_delivered, "CQ",       ibv->handle};
    bool foreign = wf_vforeign(ibv->context);
    int rc = foreign ? 0 : wf_cq_destroy(cq->cq);

    if (rc < 0)
        return wf_verb(rc);
    if (!foreign) {
        // No new event can come now; those that nobody got are void, those got must be
        // acknowledged.
        if (ibv->channel)
            wf_vchannel_drop(cq);
        wf_vasync_drop(ibv->context, ibv);
        wf_vacks_wait(&comp);
        wf_vacks_wait(&async);
    }
    channel_ref(ibv->channel, -1);
    wf_vpd_unuse(cq->domain);
    pthread_mutex_destroy(&cq->poll_lock);
    wf_vmem_free(cq, cq->mem);
    return 0;
}

int wf_op_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc)
{
    return wf_cq_poll(wf_vcq(cq)->cq, n, wc);
}

int wf_op_req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
    return wf_verb(wf_cq_arm(wf_vcq(cq)->cq, solicited_only != 0));
}

int wf_op_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
    if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
        return wf_verb(
            wf_refuse(EINVAL, WF_R_ARG, "ibv_modify_cq: attr_mask 0x%x", attr->attr_mask));
    return wf_verb(
        wf_cq_moderate(wf_vcq(cq)->cq, attr->moderate.cq_count, attr->moderate.cq_period));
}

WF_EXPORT int weft_cq_ring(struct ibv_cq *cq, struct weft_cq_ring *ring)
{
    struct wf_cq_ring r;

    if (!cq || !ring)
        return EINVAL;
    wf_cq_ring(wf_vcq(cq)->cq, &r);
    ring->cqe = r.cqe;
    ring->entries = r.entries;
    ring->consumer = (volatile uint32_t *)r.ci;
    return 0;
}
