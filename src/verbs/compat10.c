// SPDX-License-Identifier: BSD-2-Clause
// The verbs of version IBVERBS_1.0: programs built before 2007, with other structures. The names
// must be there for the loader; they fail.
#include "verbs/face.h"
#include "verbs/stub.h"

WF_EXPORT int wf_old_int(void);
WF_EXPORT void *wf_old_null(void);

int wf_old_int(void)
{
    return -wf_refuse(ENOSYS, WF_R_NOT_SUPPORTED, "a verb of IBVERBS_1.0: relink the program");
}

void *wf_old_null(void)
{
    return wf_verb_null(-wf_old_int());
}

WF_STUB(wf_old_int, ibv_ack_async_event, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_ack_cq_events, "@", "IBVERBS_1.0")
WF_STUB(wf_old_null, ibv_alloc_pd, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_attach_mcast, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_close_device, "@", "IBVERBS_1.0")
WF_STUB(wf_old_null, ibv_create_ah, "@", "IBVERBS_1.0")
WF_STUB(wf_old_null, ibv_create_cq, "@", "IBVERBS_1.0")
WF_STUB(wf_old_null, ibv_create_qp, "@", "IBVERBS_1.0")
WF_STUB(wf_old_null, ibv_create_srq, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_dealloc_pd, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_dereg_mr, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_destroy_ah, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_destroy_cq, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_destroy_qp, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_destroy_srq, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_detach_mcast, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_free_device_list, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_get_async_event, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_get_cq_event, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_get_device_guid, "@", "IBVERBS_1.0")
WF_STUB(wf_old_null, ibv_get_device_list, "@", "IBVERBS_1.0")
WF_STUB(wf_old_null, ibv_get_device_name, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_modify_qp, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_modify_srq, "@", "IBVERBS_1.0")
WF_STUB(wf_old_null, ibv_open_device, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_query_device, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_query_gid, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_query_pkey, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_query_port, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_query_qp, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_query_srq, "@", "IBVERBS_1.0")
WF_STUB(wf_old_null, ibv_reg_mr, "@", "IBVERBS_1.0")
WF_STUB(wf_old_int, ibv_resize_cq, "@", "IBVERBS_1.0")
