// SPDX-License-Identifier: BSD-2-Clause
// The operation tables of a context. A slot left NULL makes the inline functions of verbs.h answer
// EOPNOTSUPP: raw Ethernet (flows, work queues, RSS), tag matching, rate limits.
#include "verbs/face.h"

void wf_context_ops(struct verbs_context *v)
{
    struct ibv_context_ops *ops = &v->context.ops;

    ops->_compat_query_device = ibv_query_device;
    ops->_compat_query_port = ibv_query_port;
    ops->alloc_mw = wf_op_alloc_mw;
    ops->bind_mw = wf_op_bind_mw;
    ops->dealloc_mw = wf_op_dealloc_mw;
    ops->poll_cq = wf_op_poll_cq;
    ops->req_notify_cq = wf_op_req_notify_cq;
    ops->post_srq_recv = wf_op_post_srq_recv;
    ops->post_send = wf_op_post_send;
    ops->post_recv = wf_op_post_recv;

    v->query_port = wf_op_query_port;
    v->query_device_ex = wf_op_query_device_ex;
    v->query_rt_values = wf_op_query_rt_values;
    v->advise_mr = wf_op_advise_mr;
    v->alloc_null_mr = wf_op_alloc_null_mr;
    v->alloc_dm = wf_op_alloc_dm;
    v->free_dm = wf_op_free_dm;
    v->reg_dm_mr = wf_op_reg_dm_mr;
    v->alloc_td = wf_op_alloc_td;
    v->dealloc_td = wf_op_dealloc_td;
    v->alloc_parent_domain = wf_op_alloc_parent_domain;
    v->create_cq_ex = wf_op_create_cq_ex;
    v->modify_cq = wf_op_modify_cq;
    v->create_srq_ex = wf_op_create_srq_ex;
    v->get_srq_num = wf_op_get_srq_num;
    v->open_xrcd = wf_op_open_xrcd;
    v->close_xrcd = wf_op_close_xrcd;
    v->create_qp_ex = wf_op_create_qp_ex;
    v->open_qp = wf_op_open_qp;
    v->create_counters = wf_op_create_counters;
    v->destroy_counters = wf_op_destroy_counters;
    v->attach_counters_point_flow = wf_op_attach_counters;
    v->read_counters = wf_op_read_counters;
}
