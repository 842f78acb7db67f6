// SPDX-License-Identifier: BSD-2-Clause
// Sizes and offsets that programs built against rdma-core's headers carry in their code. If the
// system's header ever moves one, this library must not be built against it unnoticed.
#include <infiniband/verbs.h>
#include <stddef.h>

#define SIZE(type, n)       _Static_assert(sizeof(type) == (n), #type)
#define AT(type, member, n) _Static_assert(offsetof(type, member) == (n), #type "." #member)

SIZE(struct ibv_device, 664);
AT(struct ibv_device, node_type, 16);
AT(struct ibv_device, transport_type, 20);
AT(struct ibv_device, name, 24);
AT(struct ibv_device, dev_name, 88);
AT(struct ibv_device, dev_path, 152);
AT(struct ibv_device, ibdev_path, 408);

SIZE(struct ibv_context, 328);
AT(struct ibv_context, ops.alloc_mw, 64);
AT(struct ibv_context, ops.bind_mw, 72);
AT(struct ibv_context, ops.dealloc_mw, 80);
AT(struct ibv_context, ops.poll_cq, 96);
AT(struct ibv_context, ops.req_notify_cq, 104);
AT(struct ibv_context, ops.post_srq_recv, 168);
AT(struct ibv_context, ops.post_send, 208);
AT(struct ibv_context, ops.post_recv, 216);
AT(struct ibv_context, cmd_fd, 264);
AT(struct ibv_context, async_fd, 268);
AT(struct ibv_context, num_comp_vectors, 272);
AT(struct ibv_context, mutex, 280);
AT(struct ibv_context, abi_compat, 320);

// Operations lie in front of the context: their distance from it is what programs know.
#define FRONT(member, n)                                                                           \
    _Static_assert(                                                                                \
        offsetof(struct verbs_context, context) - offsetof(struct verbs_context, member) == (n),   \
        #member)
FRONT(sz, 8);
FRONT(close_xrcd, 24);
FRONT(open_xrcd, 32);
FRONT(create_srq_ex, 40);
FRONT(get_srq_num, 48);
FRONT(create_qp_ex, 56);
FRONT(open_qp, 64);
FRONT(query_device_ex, 104);
FRONT(priv, 112);
FRONT(create_cq_ex, 120);
FRONT(query_rt_values, 128);
FRONT(post_srq_ops, 176);
FRONT(modify_cq, 184);
FRONT(alloc_td, 192);
FRONT(dealloc_td, 200);
FRONT(alloc_parent_domain, 208);
FRONT(modify_qp_rate_limit, 216);
FRONT(free_dm, 248);
FRONT(alloc_dm, 256);
FRONT(reg_dm_mr, 264);
FRONT(destroy_counters, 272);
FRONT(create_counters, 280);
FRONT(attach_counters_point_flow, 288);
FRONT(read_counters, 296);
FRONT(alloc_null_mr, 304);
FRONT(advise_mr, 312);
FRONT(query_port, 320);

SIZE(struct ibv_qp, 160);
AT(struct ibv_qp, qp_num, 52);
AT(struct ibv_qp, state, 56);
AT(struct ibv_qp, mutex, 64);
AT(struct ibv_qp, cond, 104);
AT(struct ibv_qp, events_completed, 152);
SIZE(struct ibv_qp_ex, 352);
AT(struct ibv_qp_ex, wr_id, 168);
AT(struct ibv_qp_ex, wr_flags, 176);
AT(struct ibv_qp_ex, wr_atomic_cmp_swp, 184);
AT(struct ibv_qp_ex, wr_send_tso, 264);
AT(struct ibv_qp_ex, wr_start, 320);
AT(struct ibv_qp_ex, wr_atomic_write, 344);
SIZE(struct ibv_cq, 128);
AT(struct ibv_cq, comp_events_completed, 120);
SIZE(struct ibv_cq_ex, 288);
AT(struct ibv_cq_ex, status, 132);
AT(struct ibv_cq_ex, start_poll, 144);
AT(struct ibv_cq_ex, read_completion_wallclock_ns, 280);
SIZE(struct ibv_srq, 128);
AT(struct ibv_srq, events_completed, 120);
SIZE(struct ibv_pd, 16);
SIZE(struct ibv_mr, 48);
AT(struct ibv_mr, lkey, 36);
SIZE(struct ibv_mw, 32);
SIZE(struct ibv_ah, 24);
SIZE(struct ibv_comp_channel, 16);
SIZE(struct ibv_dm, 32);
SIZE(struct ibv_wc, 48);
AT(struct ibv_wc, qp_num, 28);
SIZE(struct ibv_send_wr, 128);
AT(struct ibv_send_wr, wr.ud.ah, 40);
AT(struct ibv_send_wr, qp_type.xrc.remote_srqn, 72);
AT(struct ibv_send_wr, bind_mw.bind_info, 96);
SIZE(struct ibv_recv_wr, 32);
SIZE(struct ibv_sge, 16);
SIZE(struct ibv_ah_attr, 32);
SIZE(struct ibv_qp_attr, 144);
AT(struct ibv_qp_attr, ah_attr, 56);
AT(struct ibv_qp_attr, port_num, 129);
AT(struct ibv_qp_attr, rate_limit, 136);
SIZE(struct ibv_qp_init_attr, 64);
SIZE(struct ibv_qp_init_attr_ex, 136);
AT(struct ibv_qp_init_attr_ex, send_ops_flags, 128);
SIZE(struct ibv_device_attr, 232);
AT(struct ibv_device_attr, phys_port_cnt, 227);
SIZE(struct ibv_device_attr_ex, 400);
AT(struct ibv_device_attr_ex, max_dm_size, 376);
AT(struct ibv_device_attr_ex, phys_port_cnt_ex, 396);
SIZE(struct ibv_port_attr, 52);
SIZE(struct ibv_async_event, 16);
SIZE(struct ibv_gid_entry, 32);
SIZE(struct ibv_ece, 12);
SIZE(struct ibv_srq_init_attr_ex, 64);
SIZE(struct ibv_cq_init_attr_ex, 56);
