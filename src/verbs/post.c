// SPDX-License-Identifier: BSD-2-Clause
// Posting: the engine takes verbs work requests as they are.
#include "verbs/face.h"

_Static_assert(sizeof(struct ibv_send_wr) == 128, "struct ibv_send_wr");
_Static_assert(sizeof(struct ibv_recv_wr) == 32, "struct ibv_recv_wr");
_Static_assert(sizeof(struct ibv_sge) == 16, "struct ibv_sge");

int wf_op_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    return wf_verb(wf_qp_post_send(wf_vqp(qp)->qp, wr, bad));
}

int wf_op_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return wf_verb(wf_qp_post_recv(wf_vqp(qp)->qp, wr, bad));
}

int wf_op_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    return wf_verb(wf_srq_post(wf_vsrq(srq)->srq, wr, bad));
}
