// SPDX-License-Identifier: BSD-2-Clause
#include "ugni/amo.h"
#include "ugni/job.h"
#include "ugni/post.h"
#include "ugni/target.h"

#define FLAGGED_MAX 60u // data of a flagged get or AMO: it shares a cache line with its flag

static bool gemini(void)
{
    return wf_gni_device_type() == GNI_DEVICE_GEMINI;
}

static gni_return_t misaligned(const char *what, uint64_t value, unsigned to)
{
    return wf_gni_refuse(GNI_RC_ALIGNMENT_ERROR, "%s 0x%llx is no multiple of %u", what,
                         (unsigned long long)value, to);
}

static gni_return_t invalid(const char *what)
{
    return wf_gni_refuse(GNI_RC_INVALID_PARAM, "post: %s", what);
}

gni_return_t wf_gni_check_endpoint(const struct gni_ep *ep)
{
    if (!ep)
        return invalid("no endpoint");
    if (!ep->bound)
        return invalid("the endpoint is not bound");
    if (ep->nic->cdm->checkpointed || wf_gni_job_suspended(ep->nic->cdm->ptag))
        return wf_gni_fail(ep->nic, GNI_RC_ERROR_RESOURCE, "post",
                           "the job is suspended or at a checkpoint");
    return GNI_RC_SUCCESS;
}

gni_return_t wf_gni_check_modes(const struct gni_ep *ep, const gni_post_descriptor_t *d, bool rdma)
{
    unsigned both = GNI_CQMODE_DUAL_EVENTS;
    if (d->cq_mode & ~7u)
        return invalid("unknown bits in cq_mode");
    if (!rdma && d->cq_mode & GNI_CQMODE_LOCAL_EVENT)
        return invalid("only RDMA has local events");
    if ((d->cq_mode & both) == both && !(ep->nic->cdm->modes & GNI_CDM_MODE_DUAL_EVENTS))
        return invalid("two events, and the domain is without GNI_CDM_MODE_DUAL_EVENTS");
    if (d->dlvr_mode & ~0x1ffu)
        return invalid("unknown bits in dlvr_mode");
    return GNI_RC_SUCCESS;
}

gni_return_t wf_gni_source_queue(const struct gni_ep *ep, gni_post_descriptor_t *d, bool rdma,
                                 struct gni_cq **out)
{
    struct gni_cq *cq = ep->cq;
    *out = NULL;
    if (rdma && d->src_cq_hndl) {
        cq = wf_gni_cq(d->src_cq_hndl);
        if (!cq || cq->nic->cdm->ptag != ep->nic->cdm->ptag || cq->use == WF_GNI_CQ_DESTINATION)
            return invalid("src_cq_hndl is no source queue");
    }
    if (!cq && d->cq_mode & GNI_CQMODE_DUAL_EVENTS)
        return invalid("an event is wanted and there is no queue for it");
    if (cq && cq->use == WF_GNI_CQ_UNUSED)
        cq->use = WF_GNI_CQ_SOURCE;
    if (rdma)
        d->src_cq_hndl = cq;
    *out = cq;
    return GNI_RC_SUCCESS;
}

// The memory that data comes from or goes to on this side.
static gni_return_t check_local(const struct gni_ep *ep, const gni_post_descriptor_t *d,
                                uint64_t len, bool written)
{
    const gni_mem_handle_t *h = &d->local_mem_hndl;
    int st = wf_gni_target_check(ep->nic->cdm->ptag, wf_gni_mh_region(h),
                                 wf_gni_mh_offset(h, d->local_addr), len, written);
    if (st == WF_GNI_ST_PROTECTION && written)
        return wf_gni_refuse(GNI_RC_PERMISSION_ERROR, "the local memory is read-only");
    return st ? invalid("local_mem_hndl does not hold the local address and length")
              : GNI_RC_SUCCESS;
}

static gni_return_t check_remote(const gni_post_descriptor_t *d, bool written)
{
    struct wf_gni_mh m = wf_gni_mh_unpack(&d->remote_mem_hndl);
    if (!m.region || m.flags & WF_GNI_MH_NEWER)
        return invalid("remote_mem_hndl is no memory handle");
    if (written && m.flags & WF_GNI_MH_READ_ONLY)
        return wf_gni_refuse(GNI_RC_PERMISSION_ERROR, "the remote memory is read-only");
    return GNI_RC_SUCCESS;
}

static gni_return_t check_get_alignment(const gni_post_descriptor_t *d)
{
    if (d->remote_addr % 4)
        return misaligned("remote_addr", d->remote_addr, 4);
    if (d->length % 4)
        return misaligned("length", d->length, 4);
    if (gemini() && d->local_addr % 4)
        return misaligned("local_addr", d->local_addr, 4);
    return GNI_RC_SUCCESS;
}

gni_return_t wf_gni_check_rdma(const struct gni_ep *ep, const gni_post_descriptor_t *d)
{
    bool get = d->type == GNI_POST_RDMA_GET;
    gni_return_t rc;
    if (!get && d->type != GNI_POST_RDMA_PUT)
        return invalid("type is not RDMA");
    if (!d->length || d->remote_addr + d->length < d->remote_addr)
        return invalid("length is 0 or wraps around");
    if (d->rdma_mode & ~(GNI_RDMAMODE_FENCE | GNI_RDMAMODE_GETWC_DIS))
        return invalid("unknown or kernel-only bits in rdma_mode");
    if (d->rdma_mode & GNI_RDMAMODE_FENCE &&
        !(ep->nic->cdm->modes & GNI_CDM_MODE_BTE_SINGLE_CHANNEL))
        return invalid("the fence needs GNI_CDM_MODE_BTE_SINGLE_CHANNEL");
    if (get && (rc = check_get_alignment(d)) != GNI_RC_SUCCESS)
        return rc;
    if ((rc = check_local(ep, d, d->length, get)) != GNI_RC_SUCCESS)
        return rc;
    return check_remote(d, !get);
}

static gni_return_t check_flagged(const gni_post_descriptor_t *d)
{
    if (gemini() || d->length > FLAGGED_MAX)
        return invalid("flagged: Aries only, at most 60 bytes");
    if (d->local_addr % 4)
        return misaligned("local_addr", d->local_addr, 4);
    if (d->local_addr % 64 + d->length + GNI_FMA_FLAGGED_RESPONSE_SIZE > 64)
        return wf_gni_refuse(GNI_RC_ALIGNMENT_ERROR, "data and flag do not share a 64-byte line");
    return GNI_RC_SUCCESS;
}

static gni_return_t check_amo(const struct gni_ep *ep, const gni_post_descriptor_t *d, bool flagged)
{
    struct wf_gni_amo amo;
    if (!wf_gni_amo_decode(d->amo_cmd, &amo) || (amo.second && gemini()))
        return invalid("amo_cmd is none of this device");
    if (amo.cached && !(ep->nic->cdm->modes & GNI_CDM_MODE_CACHED_AMO_ENABLED))
        return invalid("cached AMOs need GNI_CDM_MODE_CACHED_AMO_ENABLED");
    if (flagged && !amo.fetch)
        return invalid("a flagged AMO must fetch");
    if (d->remote_addr % amo.width)
        return misaligned("remote_addr", d->remote_addr, amo.width);
    if (d->length % amo.width)
        return misaligned("length", d->length, amo.width);
    if (amo.fetch && d->local_addr % amo.width)
        return misaligned("local_addr", d->local_addr, amo.width);
    uint64_t local = d->length + (flagged ? GNI_FMA_FLAGGED_RESPONSE_SIZE : 0);
    return amo.fetch ? check_local(ep, d, local, true) : GNI_RC_SUCCESS;
}

static gni_return_t check_get(const struct gni_ep *ep, const gni_post_descriptor_t *d, bool flagged)
{
    gni_return_t rc = check_get_alignment(d);
    uint64_t local = d->length + (flagged ? GNI_FMA_FLAGGED_RESPONSE_SIZE : 0);
    return rc == GNI_RC_SUCCESS ? check_local(ep, d, local, true) : rc;
}

static gni_return_t check_put(const gni_post_descriptor_t *d)
{
    if (d->length && !d->local_addr)
        return invalid("local_addr is null");
    if (d->type == GNI_POST_FMA_PUT_W_SYNCFLAG && d->sync_flag_addr % 8)
        return misaligned("sync_flag_addr", d->sync_flag_addr, 8);
    return GNI_RC_SUCCESS;
}

gni_return_t wf_gni_check_fma(const struct gni_ep *ep, const gni_post_descriptor_t *d)
{
    bool flagged = d->type == GNI_POST_FMA_GET_W_FLAG || d->type == GNI_POST_AMO_W_FLAG;
    bool put = d->type == GNI_POST_FMA_PUT || d->type == GNI_POST_FMA_PUT_W_SYNCFLAG;
    gni_return_t rc = GNI_RC_SUCCESS;
    if ((!put && !d->length) || d->remote_addr + d->length < d->remote_addr)
        return invalid("length is 0 or wraps around");
    if (flagged)
        rc = check_flagged(d);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    switch (d->type) {
    case GNI_POST_FMA_PUT:
    case GNI_POST_FMA_PUT_W_SYNCFLAG:
        rc = check_put(d);
        break;
    case GNI_POST_FMA_GET:
    case GNI_POST_FMA_GET_W_FLAG:
        rc = check_get(ep, d, flagged);
        break;
    case GNI_POST_AMO:
    case GNI_POST_AMO_W_FLAG:
        rc = check_amo(ep, d, flagged);
        break;
    default:
        return invalid("type is not FMA");
    }
    bool get = d->type == GNI_POST_FMA_GET || d->type == GNI_POST_FMA_GET_W_FLAG;
    return rc == GNI_RC_SUCCESS ? check_remote(d, !get) : rc;
}
