// SPDX-License-Identifier: BSD-2-Clause
// Public verbs of releases after 44 (nodes IBVERBS_1.15 to 1.18), so that programs built there
// load. Those that this device can serve do; the others answer "not supported".
#include "verbs/face.h"
#include "verbs/stub.h"

#pragma GCC visibility push(default)
int wf_newer_int(void);
void *wf_newer_null(void);
int ibv_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *port_speed);
#pragma GCC visibility pop

int wf_newer_int(void)
{
    return wf_verb(wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "a verb of a newer release"));
}

void *wf_newer_null(void)
{
    return wf_verb_null(-wf_newer_int());
}

// A descriptor or -1.
WF_EXPORT int wf_newer_fd(void);
int wf_newer_fd(void)
{
    wf_newer_int();
    return -1;
}

WF_STUB(wf_newer_null, ibv_alloc_dmah, "@@", "IBVERBS_1.15")
WF_STUB(wf_newer_int, ibv_dealloc_dmah, "@@", "IBVERBS_1.15")
WF_STUB(wf_newer_null, ibv_reg_mr_ex, "@@", "IBVERBS_1.15")
WF_STUB(wf_newer_fd, ibv_dm_export_dmabuf_fd, "@@", "IBVERBS_1.16")
WF_STUB(wf_newer_null, ibv_alloc_buf, "@@", "IBVERBS_1.17")
WF_STUB(wf_newer_int, ibv_free_buf, "@@", "IBVERBS_1.17")
WF_STUB(wf_newer_null, ibv_reg_buf_mr, "@@", "IBVERBS_1.17")
WF_STUB(wf_newer_int, _ibv_query_comp_cntr_caps, "@@", "IBVERBS_1.18")
WF_STUB(wf_newer_null, ibv_create_comp_cntr, "@@", "IBVERBS_1.18")
WF_STUB(wf_newer_int, ibv_destroy_comp_cntr, "@@", "IBVERBS_1.18")
WF_STUB(wf_newer_fd, ibv_export_buf_dmabuf_fd, "@@", "IBVERBS_1.18")
WF_STUB(wf_newer_int, ibv_inc_comp_cntr, "@@", "IBVERBS_1.18")
WF_STUB(wf_newer_int, ibv_inc_err_comp_cntr, "@@", "IBVERBS_1.18")
WF_STUB(wf_newer_int, ibv_qp_attach_comp_cntr, "@@", "IBVERBS_1.18")
WF_STUB(wf_newer_int, ibv_read_comp_cntr, "@@", "IBVERBS_1.18")
WF_STUB(wf_newer_int, ibv_read_err_comp_cntr, "@@", "IBVERBS_1.18")
WF_STUB(wf_newer_int, ibv_set_comp_cntr, "@@", "IBVERBS_1.18")
WF_STUB(wf_newer_int, ibv_set_err_comp_cntr, "@@", "IBVERBS_1.18")

// In units of 100 Mbit/s, from the width and speed codes of the IBA (PortInfo).
int ibv_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *port_speed)
{
    static const uint8_t lanes[] = {[1] = 1, [2] = 4, [4] = 8, [8] = 12, [16] = 2};
    static const uint16_t lane_speed[] = {25, 50, 100, 100, 140, 250, 500, 1000};
    struct ibv_port_attr attr;
    int rc = wf_op_query_port(ctx, port > UINT8_MAX ? 0 : (uint8_t)port, &attr, sizeof(attr));
    int lane;

    if (rc)
        return rc;
    lane = __builtin_ffs(attr.active_speed);
    *port_speed = 0;
    if (attr.active_width < sizeof(lanes) && lane)
        *port_speed = (uint64_t)lanes[attr.active_width] * lane_speed[lane - 1];
    return 0;
}
