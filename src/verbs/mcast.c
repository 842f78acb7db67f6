// SPDX-License-Identifier: BSD-2-Clause
// Multicast groups of UD QPs.
#include "verbs/face.h"

static int check(const struct ibv_qp *qp)
{
    if (qp->qp_type != IBV_QPT_UD)
        return wf_refuse(EINVAL, WF_R_ARG, "QP 0x%06x is not UD and cannot join a multicast group",
                         qp->qp_num);
    return 0;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    int rc = check(qp);

    return wf_verb(rc < 0 ? rc : wf_qp_attach_mcast(wf_vqp(qp)->qp, gid));
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
    int rc = check(qp);

    return wf_verb(rc < 0 ? rc : wf_qp_detach_mcast(wf_vqp(qp)->qp, gid));
}
