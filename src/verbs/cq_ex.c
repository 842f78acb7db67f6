// SPDX-License-Identifier: BSD-2-Clause
// Extended polling: start_poll, next_poll, end_poll and the readers of the completion at hand.
#include "verbs/face.h"
#include <time.h>

_Static_assert(sizeof(struct ibv_cq_ex) == 288, "struct ibv_cq_ex");

static const struct wf_wc *at(struct ibv_cq_ex *cq)
{
    return &((struct wf_vcq *)cq)->now;
}

static int advance(struct wf_vcq *cq)
{
    int rc = wf_cq_poll_ex(cq->cq, &cq->now);

    if (rc == 0)
        return ENOENT;
    if (rc < 0)
        return -rc;
    cq->ibv.status = cq->now.wc.status;
    cq->ibv.wr_id = cq->now.wc.wr_id;
    return 0;
}

// The lock is held from a successful start_poll to end_poll: between them the CQ is one thread's.
static int start_poll(struct ibv_cq_ex *ibv, struct ibv_poll_cq_attr *attr)
{
    struct wf_vcq *cq = (struct wf_vcq *)ibv;
    int rc;

    if (attr && attr->comp_mask)
        return EINVAL;
    if (!cq->single_threaded)
        pthread_mutex_lock(&cq->poll_lock);
    rc = advance(cq);
    if (rc && !cq->single_threaded)
        pthread_mutex_unlock(&cq->poll_lock);
    return rc;
}

static int next_poll(struct ibv_cq_ex *ibv)
{
    return advance((struct wf_vcq *)ibv);
}

static void end_poll(struct ibv_cq_ex *ibv)
{
    struct wf_vcq *cq = (struct wf_vcq *)ibv;

    if (!cq->single_threaded)
        pthread_mutex_unlock(&cq->poll_lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *cq)
{
    return at(cq)->wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *cq)
{
    return at(cq)->wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *cq)
{
    return at(cq)->wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *cq)
{
    return at(cq)->wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *cq)
{
    return at(cq)->wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *cq)
{
    return at(cq)->wc.src_qp;
}

static unsigned read_wc_flags(struct ibv_cq_ex *cq)
{
    return at(cq)->wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *cq)
{
    return at(cq)->wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *cq)
{
    return at(cq)->wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *cq)
{
    return at(cq)->wc.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *cq)
{
    return at(cq)->timestamp;
}

// The device clock and the wall clock both count nanoseconds; their distance is taken now, so that
// a clock set meanwhile is followed.
static uint64_t read_wallclock(struct ibv_cq_ex *cq)
{
    struct timespec now;
    uint64_t wall;

    clock_gettime(CLOCK_REALTIME, &now);
    wall = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return wall - (wf_hca_clock(wf_vhca(cq->context)) - at(cq)->timestamp);
}

// RoCE here carries no VLAN tag, no flow rules and no tag matching: these read as "none".
static uint16_t read_cvlan(struct ibv_cq_ex *cq)
{
    return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *cq)
{
    return 0;
}

static void read_tm_info(struct ibv_cq_ex *cq, struct ibv_wc_tm_info *info)
{
    *info = (struct ibv_wc_tm_info){0};
}

void wf_vcq_fill_ex(struct wf_vcq *cq, uint64_t wc_flags)
{
    struct ibv_cq_ex *ex = &cq->ibv;

    ex->start_poll = start_poll;
    ex->next_poll = next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_wc_flags = read_wc_flags;
    if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
        ex->read_byte_len = read_byte_len;
    if (wc_flags & IBV_WC_EX_WITH_IMM)
        ex->read_imm_data = read_imm_data;
    if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
        ex->read_qp_num = read_qp_num;
    if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
        ex->read_src_qp = read_src_qp;
    if (wc_flags & IBV_WC_EX_WITH_SLID)
        ex->read_slid = read_slid;
    if (wc_flags & IBV_WC_EX_WITH_SL)
        ex->read_sl = read_sl;
    if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
        ex->read_dlid_path_bits = read_dlid_path_bits;
    if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
        ex->read_completion_ts = read_completion_ts;
    if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
        ex->read_completion_wallclock_ns = read_wallclock;
    if (wc_flags & IBV_WC_EX_WITH_CVLAN)
        ex->read_cvlan = read_cvlan;
    if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
        ex->read_flow_tag = read_flow_tag;
    if (wc_flags & IBV_WC_EX_WITH_TM_INFO)
        ex->read_tm_info = read_tm_info;
}
