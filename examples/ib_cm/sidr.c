/* SPDX-License-Identifier: BSD-2-Clause */
/* Find out which UD queue pair serves a service id, and send it a datagram.
 *   sidr            answers one question
 *   sidr ADDRESS    asks there */
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define QKEY 0x12345678

static struct side side;

static void ready(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
    int rc =
        ibv_modify_qp(side.qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY);
    attr.qp_state = IBV_QPS_RTR;
    if (rc == 0)
        rc = ibv_modify_qp(side.qp, &attr, IBV_QP_STATE);
    attr.qp_state = IBV_QPS_RTS;
    if (rc == 0)
        rc = ibv_modify_qp(side.qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
    if (rc)
        die("ibv_modify_qp", rc);
}

static void serve(void)
{
    struct ib_cm_id *listener = ib_create_cm_id(side.device, keep, NULL);
    int rc = listener ? ib_cm_listen(listener, cpu_to_be64(SERVICE + 3), 0, NULL) : -ENOMEM;
    if (rc)
        die("ib_cm_listen", rc);
    receive(&side);
    printf("listening\n");
    fflush(stdout);
    struct note req = expect(IB_CM_SIDR_REQ_RECEIVED);
    struct ib_cm_sidr_rep_param rep = {
        .qp_num = side.qp->qp_num, .qkey = QKEY, .status = IB_SIDR_SUCCESS};
    printf("asked: %s\n", req.data);
    if ((rc = ib_send_cm_sidr_rep(req.id, &rep)))
        die("ib_send_cm_sidr_rep", rc);
    complete(&side);
    printf("received: %s\n", side.buf + 40); /* behind the GRH */
    ib_destroy_cm_id(req.id);
    ib_destroy_cm_id(listener);
}

static void send_to(const struct ib_sa_path_rec *path, u32 qpn, u32 qkey)
{
    struct ibv_ah_attr ah = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = path->hop_limit}};
    struct ibv_sge sge = {(uintptr_t)side.buf, 20, side.mr->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;
    union ibv_gid gid;
    /* The index of the path's source GID. */
    for (int i = 0; ibv_query_gid(side.context, 1, i, &gid) == 0; i++)
        if (memcmp(&gid, &path->sgid, sizeof(gid)) == 0) {
            ah.grh.sgid_index = (uint8_t)i;
            break;
        }
    memcpy(&ah.grh.dgid, &path->dgid, 16);
    wr.wr.ud.ah = ibv_create_ah(side.pd, &ah);
    if (!wr.wr.ud.ah)
        die("ibv_create_ah", 0);
    wr.wr.ud.remote_qpn = qpn;
    wr.wr.ud.remote_qkey = qkey;
    snprintf(side.buf, sizeof(side.buf), "a datagram");
    if (ibv_post_send(side.qp, &wr, &bad))
        die("ibv_post_send", 0);
    complete(&side);
    ibv_destroy_ah(wr.wr.ud.ah);
}

static void ask(const char *address)
{
    struct ib_sa_path_rec path = path_to(&side, address);
    struct ib_cm_id *id = ib_create_cm_id(side.device, keep, NULL);
    struct ib_cm_sidr_req_param req = {
        .path = &path,
        .service_id = cpu_to_be64(SERVICE + 3),
        .timeout_ms = 500,
        .private_data = "which QP?",
        .private_data_len = 10,
        .max_cm_retries = 5,
    };
    int rc = id ? ib_send_cm_sidr_req(id, &req) : -ENOMEM;
    if (rc)
        die("ib_send_cm_sidr_req", rc);
    struct note rep = expect(IB_CM_SIDR_REP_RECEIVED);
    printf("status %d, QP 0x%06x, Q_Key 0x%08x\n", (int)rep.sidr.status, rep.sidr.qpn,
           rep.sidr.qkey);
    if (rep.sidr.status != IB_SIDR_SUCCESS)
        die("nobody serves it", ENOENT);
    send_to(&path, rep.sidr.qpn, rep.sidr.qkey);
    ib_destroy_cm_id(id);
}

int main(int argc, char **argv)
{
    open_side(&side, IBV_QPT_UD);
    ready();
    if (argc > 1)
        ask(argv[1]);
    else
        serve();
    return 0;
}
