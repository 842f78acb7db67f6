// SPDX-License-Identifier: BSD-2-Clause
// What vendor drivers import. Programs link with vendor libraries and so need these to load, but no
// driver ever runs here: the functions answer "not supported". Each release of rdma-core renames
// the version, so each name stands under several.
#include "verbs/face.h"
#include "verbs/stub.h"
#include <stdarg.h>

#pragma GCC visibility push(default)
bool verbs_allow_disassociate_destroy;
int wf_provider_int(void);
void *wf_provider_null(void);
unsigned wf_provider_zero(void);
void wf_provider_void(void);
int wf_provider_sysfs(void);
const char *wf_provider_text(void);
int wf_provider_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index, int *type);
int ibv_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index, int *type);
#pragma GCC visibility pop

int wf_provider_int(void)
{
    return -wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "a function for vendor drivers");
}

void *wf_provider_null(void)
{
    return wf_verb_null(-wf_provider_int());
}

unsigned wf_provider_zero(void)
{
    return 0;
}

// Drivers register themselves when they are loaded: nothing happens.
void wf_provider_void(void)
{
}

// Bytes read or -1.
int wf_provider_sysfs(void)
{
    return -1;
}

const char *wf_provider_text(void)
{
    return "unknown";
}

// The one name here that programs call.
int wf_provider_gid_type(struct ibv_context *ctx, uint8_t port, unsigned index, int *type)
{
    return ibv_query_gid_type(ctx, port, index, type);
}

#define NEWER(answer, name)                                                                        \
    WF_STUB(answer, name, "@", "IBVERBS_PRIVATE_57")                                               \
    WF_STUB(answer, name, "@", "IBVERBS_PRIVATE_59")                                               \
    WF_STUB(answer, name, "@", "IBVERBS_PRIVATE_64")                                               \
    WF_STUB(answer, name, "@", "IBVERBS_PRIVATE_65")
#define EVERY(answer, name)                                                                        \
    WF_STUB(answer, name, "@@", "IBVERBS_PRIVATE_34")                                              \
    NEWER(answer, name)

WF_STUB(wf_provider_void, ibv_register_driver, "@", "IBVERBS_1.1")
WF_STUB(wf_provider_void, verbs_register_driver_34, "@@", "IBVERBS_PRIVATE_34")
WF_STUB(wf_provider_void, verbs_register_driver_57, "@@", "IBVERBS_PRIVATE_57")
WF_STUB(wf_provider_void, verbs_register_driver_59, "@@", "IBVERBS_PRIVATE_59")
WF_STUB(wf_provider_void, verbs_register_driver_64, "@@", "IBVERBS_PRIVATE_64")
WF_STUB(wf_provider_void, verbs_register_driver_65, "@@", "IBVERBS_PRIVATE_65")
NEWER(wf_provider_gid_type, ibv_query_gid_type)
EVERY(wf_provider_zero, __ioctl_final_num_attrs)
EVERY(wf_provider_void, __verbs_log)
EVERY(wf_provider_null, _verbs_init_and_alloc_context)
EVERY(wf_provider_null, verbs_open_device)
EVERY(wf_provider_void, verbs_init_cq)
EVERY(wf_provider_void, verbs_set_ops)
EVERY(wf_provider_void, verbs_uninit_context)
EVERY(wf_provider_int, execute_ioctl)
EVERY(wf_provider_int, ibv_cmd_advise_mr)
EVERY(wf_provider_int, ibv_cmd_alloc_dm)
EVERY(wf_provider_int, ibv_cmd_alloc_mw)
EVERY(wf_provider_int, ibv_cmd_alloc_pd)
EVERY(wf_provider_int, ibv_cmd_attach_mcast)
EVERY(wf_provider_int, ibv_cmd_close_xrcd)
EVERY(wf_provider_int, ibv_cmd_create_ah)
EVERY(wf_provider_int, ibv_cmd_create_counters)
EVERY(wf_provider_int, ibv_cmd_create_cq)
EVERY(wf_provider_int, ibv_cmd_create_cq_ex)
EVERY(wf_provider_int, ibv_cmd_create_flow)
EVERY(wf_provider_int, ibv_cmd_create_flow_action_esp)
EVERY(wf_provider_int, ibv_cmd_create_qp)
EVERY(wf_provider_int, ibv_cmd_create_qp_ex)
EVERY(wf_provider_int, ibv_cmd_create_qp_ex2)
EVERY(wf_provider_int, ibv_cmd_create_rwq_ind_table)
EVERY(wf_provider_int, ibv_cmd_create_srq)
EVERY(wf_provider_int, ibv_cmd_create_srq_ex)
EVERY(wf_provider_int, ibv_cmd_create_wq)
EVERY(wf_provider_int, ibv_cmd_dealloc_mw)
EVERY(wf_provider_int, ibv_cmd_dealloc_pd)
EVERY(wf_provider_int, ibv_cmd_dereg_mr)
EVERY(wf_provider_int, ibv_cmd_destroy_ah)
EVERY(wf_provider_int, ibv_cmd_destroy_counters)
EVERY(wf_provider_int, ibv_cmd_destroy_cq)
EVERY(wf_provider_int, ibv_cmd_destroy_flow)
EVERY(wf_provider_int, ibv_cmd_destroy_flow_action)
EVERY(wf_provider_int, ibv_cmd_destroy_qp)
EVERY(wf_provider_int, ibv_cmd_destroy_rwq_ind_table)
EVERY(wf_provider_int, ibv_cmd_destroy_srq)
EVERY(wf_provider_int, ibv_cmd_destroy_wq)
EVERY(wf_provider_int, ibv_cmd_detach_mcast)
EVERY(wf_provider_int, ibv_cmd_free_dm)
EVERY(wf_provider_int, ibv_cmd_get_context)
EVERY(wf_provider_int, ibv_cmd_modify_cq)
EVERY(wf_provider_int, ibv_cmd_modify_flow_action_esp)
EVERY(wf_provider_int, ibv_cmd_modify_qp)
EVERY(wf_provider_int, ibv_cmd_modify_qp_ex)
EVERY(wf_provider_int, ibv_cmd_modify_srq)
EVERY(wf_provider_int, ibv_cmd_modify_wq)
EVERY(wf_provider_int, ibv_cmd_open_qp)
EVERY(wf_provider_int, ibv_cmd_open_xrcd)
EVERY(wf_provider_int, ibv_cmd_poll_cq)
EVERY(wf_provider_int, ibv_cmd_post_recv)
EVERY(wf_provider_int, ibv_cmd_post_send)
EVERY(wf_provider_int, ibv_cmd_post_srq_recv)
EVERY(wf_provider_int, ibv_cmd_query_context)
EVERY(wf_provider_int, ibv_cmd_query_device_any)
EVERY(wf_provider_int, ibv_cmd_query_mr)
EVERY(wf_provider_int, ibv_cmd_query_port)
EVERY(wf_provider_int, ibv_cmd_query_qp)
EVERY(wf_provider_int, ibv_cmd_query_srq)
EVERY(wf_provider_int, ibv_cmd_read_counters)
EVERY(wf_provider_int, ibv_cmd_reg_dm_mr)
EVERY(wf_provider_int, ibv_cmd_reg_dmabuf_mr)
EVERY(wf_provider_int, ibv_cmd_reg_mr)
EVERY(wf_provider_int, ibv_cmd_req_notify_cq)
EVERY(wf_provider_int, ibv_cmd_rereg_mr)
EVERY(wf_provider_int, ibv_cmd_resize_cq)

// Names that came after 44.
NEWER(wf_provider_int, ibv_cmd_alloc_dmah)
NEWER(wf_provider_int, ibv_cmd_create_comp_cntr)
NEWER(wf_provider_int, ibv_cmd_create_cq_ex2)
NEWER(wf_provider_int, ibv_cmd_destroy_comp_cntr)
NEWER(wf_provider_int, ibv_cmd_export_dmabuf_fd)
NEWER(wf_provider_int, ibv_cmd_free_dmah)
NEWER(wf_provider_int, ibv_cmd_inc_comp_cntr)
NEWER(wf_provider_int, ibv_cmd_inc_err_comp_cntr)
NEWER(wf_provider_int, ibv_cmd_qp_attach_comp_cntr)
NEWER(wf_provider_int, ibv_cmd_query_comp_cntr_caps)
NEWER(wf_provider_int, ibv_cmd_query_port_speed)
NEWER(wf_provider_int, ibv_cmd_read_comp_cntr)
NEWER(wf_provider_int, ibv_cmd_read_err_comp_cntr)
NEWER(wf_provider_int, ibv_cmd_reg_mr_ex)
NEWER(wf_provider_int, ibv_cmd_set_comp_cntr)
NEWER(wf_provider_int, ibv_cmd_set_err_comp_cntr)
NEWER(wf_provider_null, ibv_dmabuf_heap_alloc)
NEWER(wf_provider_int, ibv_dmabuf_heap_cc_shared_init)
NEWER(wf_provider_void, ibv_dmabuf_heap_destroy)
NEWER(wf_provider_void, ibv_dmabuf_heap_free)
NEWER(wf_provider_text, ibv_wr_opcode_str)
NEWER(wf_provider_sysfs, ibv_read_ibdev_sysfs_file)
WF_STUB_DATA(verbs_allow_disassociate_destroy, 1, "@@", "IBVERBS_PRIVATE_34")
WF_STUB_DATA(verbs_allow_disassociate_destroy, 1, "@", "IBVERBS_PRIVATE_57")
WF_STUB_DATA(verbs_allow_disassociate_destroy, 1, "@", "IBVERBS_PRIVATE_59")
WF_STUB_DATA(verbs_allow_disassociate_destroy, 1, "@", "IBVERBS_PRIVATE_64")
WF_STUB_DATA(verbs_allow_disassociate_destroy, 1, "@", "IBVERBS_PRIVATE_65")
