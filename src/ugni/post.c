// SPDX-License-Identifier: BSD-2-Clause
// Posts: check, take a request, start its transfers.
#include "ugni/post.h"
#include "ugni/amo.h"
#include "ugni/ce.h"
#include "ugni/op.h"
#include "ugni/target.h"

#define CHAIN_MAX        (1ull << 30)
#define CHAIN_MAX_SHARED (1ull << 20)
#define STAT_FMA_LAUNCH  19

static struct wf_gni_op op_of(struct gni_ep *ep, const gni_post_descriptor_t *d,
                              struct wf_gni_req *req, enum wf_gni_op_kind kind)
{
    return (struct wf_gni_op){
        .kind = kind,
        .req = req,
        .peer = wf_gni_ep_peer(ep),
        .ptag = ep->nic->cdm->ptag,
        .event = d->cq_mode & GNI_CQMODE_REMOTE_EVENT,
        .event_value = ep->remote_event,
        .region = wf_gni_mh_region(&d->remote_mem_hndl),
        .addr = wf_gni_mh_offset(&d->remote_mem_hndl, d->remote_addr),
        .len = d->length,
    };
}

// One transfer for each piece that is contiguous on this side; only the last makes the event.
static void run_pieces(struct wf_gni_op *op, const gni_post_descriptor_t *d)
{
    uint32_t region = wf_gni_mh_region(&d->local_mem_hndl);
    uint64_t at = wf_gni_mh_offset(&d->local_mem_hndl, d->local_addr), left = d->length;
    bool event = op->event;
    while (left) {
        op->local = wf_gni_target_piece(region, &at, &left, &op->len);
        op->event = event && !left;
        wf_gni_op_run(op);
        op->addr += op->len;
    }
}

static void run_put(struct wf_gni_op *op, const gni_post_descriptor_t *d)
{
    op->local = (void *)(uintptr_t)d->local_addr;
    op->keep = true; // FMA stores the data while it posts
    if (d->type != GNI_POST_FMA_PUT_W_SYNCFLAG) {
        wf_gni_op_run(op);
        return;
    }
    struct wf_gni_op flag = *op;
    uint64_t value = d->sync_flag_value;
    op->event = false;
    wf_gni_op_run(op);
    flag.addr = wf_gni_mh_offset(&d->remote_mem_hndl, d->sync_flag_addr);
    flag.local = &value;
    flag.len = sizeof(value);
    wf_gni_op_run(&flag);
}

static void run_amo(struct wf_gni_op *op, const gni_post_descriptor_t *d)
{
    struct wf_gni_amo amo;
    wf_gni_amo_decode(d->amo_cmd, &amo);
    op->amo_cmd = d->amo_cmd;
    op->operand[0] = d->first_operand;
    op->operand[1] = d->second_operand;
    uint64_t left = d->length, at = wf_gni_mh_offset(&d->local_mem_hndl, d->local_addr);
    bool event = op->event;
    while (left) {
        uint64_t n = left < WF_GNI_AM_PAYLOAD ? left : WF_GNI_AM_PAYLOAD, rest = n;
        if (amo.fetch) {
            op->local = wf_gni_target_piece(wf_gni_mh_region(&d->local_mem_hndl), &at, &rest, &n);
        }
        op->len = n;
        left -= n;
        op->event = event && !left;
        wf_gni_op_run(op);
        op->addr += n;
    }
}

// Start what an FMA descriptor, or an element of a chain, asks for.
static void run_fma(struct gni_ep *ep, const gni_post_descriptor_t *d, struct wf_gni_req *req)
{
    struct wf_gni_op op;
    ep->nic->stats[STAT_FMA_LAUNCH]++;
    switch (d->type) {
    case GNI_POST_FMA_PUT:
    case GNI_POST_FMA_PUT_W_SYNCFLAG:
        op = op_of(ep, d, req, WF_GNI_OP_PUT);
        run_put(&op, d);
        return;
    case GNI_POST_AMO:
    case GNI_POST_AMO_W_FLAG:
        op = op_of(ep, d, req, WF_GNI_OP_AMO);
        run_amo(&op, d);
        return;
    default:
        op = op_of(ep, d, req, WF_GNI_OP_GET);
        run_pieces(&op, d);
        return;
    }
}

// A request for a checked post, or ERROR_RESOURCE.
static gni_return_t request(struct gni_ep *ep, struct gni_cq *cq, gni_post_descriptor_t *d,
                            enum wf_gni_source source, struct wf_gni_req **out)
{
    struct wf_gni_req *r = wf_gni_req_get(ep, cq);
    if (!r)
        return wf_gni_fail(ep->nic, GNI_RC_ERROR_RESOURCE, "post",
                           "%u posts of the queue are under way", cq ? cq->slots_used : 0);
    r->descr = d;
    r->cq_mode = d->cq_mode;
    r->source = (uint8_t)source;
    r->type = GNI_CQ_EVENT_TYPE_POST;
    d->status = 0;
    d->cq_mode_complete = 0;
    *out = r;
    return GNI_RC_SUCCESS;
}

static void set_flag(struct wf_gni_req *req, const gni_post_descriptor_t *d)
{
    if (d->type != GNI_POST_FMA_GET_W_FLAG && d->type != GNI_POST_AMO_W_FLAG)
        return;
    req->flag =
        wf_gni_target_pointer(wf_gni_mh_region(&d->local_mem_hndl),
                              wf_gni_mh_offset(&d->local_mem_hndl, d->local_addr + d->length),
                              GNI_FMA_FLAGGED_RESPONSE_SIZE);
    req->flag_value = (uint32_t)d->sync_flag_value;
}

static gni_return_t post_rdma(struct gni_ep *ep, gni_post_descriptor_t *d)
{
    struct wf_gni_req *req;
    struct gni_cq *cq;
    gni_return_t rc = wf_gni_check_endpoint(ep);
    if (rc == GNI_RC_SUCCESS)
        rc = wf_gni_check_modes(ep, d, true);
    if (rc == GNI_RC_SUCCESS)
        rc = wf_gni_check_rdma(ep, d);
    if (rc == GNI_RC_SUCCESS)
        rc = wf_gni_source_queue(ep, d, true, &cq);
    if (rc == GNI_RC_SUCCESS)
        rc = request(ep, cq, d, WF_GNI_SRC_RDMA, &req);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    bool put = d->type == GNI_POST_RDMA_PUT;
    struct wf_gni_op op = op_of(ep, d, req, put ? WF_GNI_OP_PUT : WF_GNI_OP_GET);
    run_pieces(&op, d);
    wf_gni_req_part_done(req, WF_GNI_ST_OK);
    return rc;
}

gni_return_t GNI_PostRdma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    if (!post_descr)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    gni_return_t rc = post_rdma(wf_gni_ep(ep_hndl), post_descr);
    wf_gni_unlock();
    return rc;
}

static gni_return_t post_fma(struct gni_ep *ep, gni_post_descriptor_t *d)
{
    struct wf_gni_req *req;
    struct gni_cq *cq;
    gni_return_t rc = wf_gni_check_endpoint(ep);
    if (rc == GNI_RC_SUCCESS)
        rc = wf_gni_check_modes(ep, d, false);
    if (rc == GNI_RC_SUCCESS)
        rc = d->type == GNI_POST_CE ? wf_gni_ce_check(ep, d) : wf_gni_check_fma(ep, d);
    if (rc == GNI_RC_SUCCESS)
        rc = wf_gni_source_queue(ep, d, false, &cq);
    if (rc == GNI_RC_SUCCESS)
        rc = request(ep, cq, d, WF_GNI_SRC_FMA, &req);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    set_flag(req, d);
    if (d->type == GNI_POST_CE)
        wf_gni_ce_run(ep, d, req);
    else
        run_fma(ep, d, req);
    wf_gni_req_part_done(req, WF_GNI_ST_OK);
    return rc;
}

gni_return_t GNI_PostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    if (!post_descr)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    gni_return_t rc = post_fma(wf_gni_ep(ep_hndl), post_descr);
    wf_gni_unlock();
    return rc;
}

// ---- CQ writes ----------------------------------------------------------------------------------

static gni_return_t check_cq_write(const struct gni_ep *ep, const gni_post_descriptor_t *d)
{
    if (d->type != GNI_POST_CQWRITE || !wf_gni_mh_region(&d->remote_mem_hndl))
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "CQ write: type %d or its memory handle",
                             (int)d->type);
    return wf_gni_check_endpoint(ep);
}

static void run_cq_write(struct gni_ep *ep, const gni_post_descriptor_t *d, struct wf_gni_req *req)
{
    struct wf_gni_op op = op_of(ep, d, req, WF_GNI_OP_CQ_WRITE);
    op.event = false; // the write is the event
    op.len = 0;
    op.value = d->cqwrite_value;
    wf_gni_op_run(&op);
}

static gni_return_t post_cq_write(struct gni_ep *ep, gni_post_descriptor_t *d)
{
    struct wf_gni_req *req;
    struct gni_cq *cq;
    gni_return_t rc = check_cq_write(ep, d);
    if (rc == GNI_RC_SUCCESS)
        rc = wf_gni_check_modes(ep, d, false);
    if (rc == GNI_RC_SUCCESS)
        rc = wf_gni_source_queue(ep, d, false, &cq);
    if (rc == GNI_RC_SUCCESS)
        rc = request(ep, cq, d, WF_GNI_SRC_FMA, &req);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    run_cq_write(ep, d, req);
    wf_gni_req_part_done(req, WF_GNI_ST_OK);
    return rc;
}

gni_return_t GNI_PostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    if (!post_descr)
        return GNI_RC_INVALID_PARAM;
    wf_gni_lock();
    gni_return_t rc = post_cq_write(wf_gni_ep(ep_hndl), post_descr);
    wf_gni_unlock();
    return rc;
}

// ---- chains -------------------------------------------------------------------------------------

// An element as a descriptor of its own, so that it is checked and run as one.
static gni_post_descriptor_t element(const gni_post_descriptor_t *head, const void *at,
                                     gni_ep_handle_t *ep, void **next)
{
    gni_post_descriptor_t d = {
        .type = head->type, .cq_mode = head->cq_mode, .dlvr_mode = head->dlvr_mode};
    const gni_ct_uni_post_descriptor_t *u = at;
    *next = u->u.put.next_descr; // every kind starts with these two
    *ep = u->u.put.ep_hndl;
    if (head->type == GNI_POST_CQWRITE) {
        d.remote_mem_hndl = u->u.cqw.remote_mem_hndl;
        d.cqwrite_value = u->u.cqw.cqwrite_value;
        return d;
    }
    d.length = u->u.put.length; // and so far put, get and AMO agree
    d.remote_addr = u->u.put.remote_addr;
    d.remote_mem_hndl = u->u.put.remote_mem_hndl;
    d.local_addr = u->u.put.local_addr;
    if (head->type != GNI_POST_FMA_PUT)
        d.local_mem_hndl = u->u.get.local_mem_hndl;
    if (head->type == GNI_POST_AMO) {
        d.amo_cmd = u->u.amo.amo_cmd;
        d.first_operand = u->u.amo.first_operand;
        d.second_operand = u->u.amo.second_operand;
    }
    return d;
}

static gni_return_t check_element(const struct gni_ep *head_ep, const struct gni_ep *ep,
                                  const gni_post_descriptor_t *d)
{
    if (!ep || ep->nic != head_ep->nic)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "chain: an endpoint is none of the NIC");
    if (d->type == GNI_POST_CQWRITE)
        return check_cq_write(ep, d);
    gni_return_t rc = wf_gni_check_endpoint(ep);
    return rc == GNI_RC_SUCCESS ? wf_gni_check_fma(ep, d) : rc;
}

static gni_return_t check_chain(const struct gni_ep *ep, const gni_post_descriptor_t *head)
{
    uint64_t max = ep->nic->cdm->modes & GNI_CDM_MODE_FMA_SHARED ? CHAIN_MAX_SHARED : CHAIN_MAX;
    uint64_t total = head->length;
    gni_return_t rc = check_element(ep, ep, head);
    for (void *at = head->next_descr; rc == GNI_RC_SUCCESS && at;) {
        gni_ep_handle_t h;
        gni_post_descriptor_t d = element(head, at, &h, &at);
        rc = check_element(ep, wf_gni_ep(h), &d);
        total = total + d.length < total ? UINT64_MAX : total + d.length;
    }
    if (rc == GNI_RC_SUCCESS && head->type != GNI_POST_CQWRITE && total > max)
        rc = wf_gni_refuse(GNI_RC_SIZE_ERROR, "chain: %llu bytes, at most %llu",
                           (unsigned long long)total, (unsigned long long)max);
    return rc;
}

static void run_element(struct gni_ep *ep, const gni_post_descriptor_t *d, struct wf_gni_req *req)
{
    if (d->type == GNI_POST_CQWRITE)
        run_cq_write(ep, d, req);
    else
        run_fma(ep, d, req);
}

static gni_return_t post_chain(struct gni_ep *ep, gni_post_descriptor_t *head)
{
    struct wf_gni_req *req;
    struct gni_cq *cq;
    gni_return_t rc = wf_gni_check_endpoint(ep);
    if (rc == GNI_RC_SUCCESS)
        rc = wf_gni_check_modes(ep, head, false);
    if (rc == GNI_RC_SUCCESS && head->dlvr_mode & GNI_DLVMODE_ORDERED_TAIL)
        rc = wf_gni_refuse(GNI_RC_INVALID_PARAM, "chain: GNI_DLVMODE_ORDERED_TAIL");
    if (rc == GNI_RC_SUCCESS)
        rc = check_chain(ep, head);
    if (rc == GNI_RC_SUCCESS)
        rc = wf_gni_source_queue(ep, head, false, &cq);
    if (rc == GNI_RC_SUCCESS)
        rc = request(ep, cq, head, WF_GNI_SRC_FMA, &req);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    run_element(ep, head, req);
    for (void *at = head->next_descr; at;) {
        gni_ep_handle_t h;
        gni_post_descriptor_t d = element(head, at, &h, &at);
        run_element(wf_gni_ep(h), &d, req);
    }
    wf_gni_req_part_done(req, WF_GNI_ST_OK);
    return rc;
}

static gni_return_t chain(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *d, bool cq_write)
{
    bool fits = d && (cq_write ? d->type == GNI_POST_CQWRITE
                               : d->type == GNI_POST_FMA_PUT || d->type == GNI_POST_FMA_GET ||
                                     d->type == GNI_POST_AMO);
    if (!fits)
        return wf_gni_refuse(GNI_RC_INVALID_PARAM, "chain: type %d", d ? (int)d->type : -1);
    wf_gni_lock();
    gni_return_t rc = post_chain(wf_gni_ep(ep_hndl), d);
    wf_gni_unlock();
    return rc;
}

gni_return_t GNI_CtPostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    return chain(ep_hndl, post_descr, false);
}

gni_return_t GNI_CtPostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    return chain(ep_hndl, post_descr, true);
}
