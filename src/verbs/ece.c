// SPDX-License-Identifier: BSD-2-Clause
// Enhanced connection establishment: options that two ends of a connection agree on. This device
// needs none, so it keeps what it is told and offers its own vendor with no options.
#include "verbs/face.h"

_Static_assert(sizeof(struct ibv_ece) == 12, "struct ibv_ece");

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    if (!ece->vendor_id)
        return wf_verb(wf_refuse(EOPNOTSUPP, WF_R_NOT_SUPPORTED, "ibv_set_ece: no vendor"));
    if (ece->comp_mask)
        return wf_verb(wf_refuse(EINVAL, WF_R_ARG, "ibv_set_ece: comp_mask 0x%x", ece->comp_mask));
    wf_vqp(qp)->ece = *ece;
    return 0;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
    struct ibv_device_attr attr;

    *ece = wf_vqp(qp)->ece;
    if (!ece->vendor_id) {
        wf_hca_query_device(wf_vhca(qp->context), &attr);
        ece->vendor_id = attr.vendor_id;
    }
    return 0;
}
