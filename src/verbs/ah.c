// SPDX-License-Identifier: BSD-2-Clause
// Address handles.
#include "verbs/face.h"

_Static_assert(sizeof(struct ibv_ah) == 24, "struct ibv_ah");
_Static_assert(sizeof(struct ibv_ah_attr) == 32, "struct ibv_ah_attr");

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct wf_ah *ah;
    int rc;

    // RoCE: addresses are GIDs, LIDs mean nothing.
    if (!attr->is_global)
        return wf_verb_null(wf_refuse(EINVAL, WF_R_ARG,
                                      "an address on RoCE needs a GRH: set "
                                      "is_global and grh"));
    if (attr->port_num < 1 || attr->port_num > WF_FACE_PORTS)
        return wf_verb_null(wf_refuse(EINVAL, WF_R_ARG, "ibv_create_ah: port %u", attr->port_num));
    rc = wf_ah_create(wf_vpd(pd)->pd, attr, &ah);
    if (rc < 0)
        return wf_verb_null(rc);
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    wf_vpd_use(pd);
    return &ah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ibv)
{
    struct ibv_pd *pd = ibv->pd;
    int rc = wf_vforeign(ibv->context) ? 0 : wf_ah_destroy((struct wf_ah *)ibv);

    if (rc == 0)
        wf_vpd_unuse(pd);
    return wf_verb(rc);
}
