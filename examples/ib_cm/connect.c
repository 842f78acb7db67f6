/* SPDX-License-Identifier: BSD-2-Clause */
/* Connect two RC queue pairs and send a line over them.
 *   connect            waits for one client
 *   connect ADDRESS    connects to it there */
#include "common.h"

#include <stdio.h>

static struct side side;

static void serve(void)
{
    struct ib_cm_id *listener = ib_create_cm_id(side.device, keep, NULL);
    if (!listener)
        die("ib_create_cm_id", 0);
    int rc = ib_cm_listen(listener, cpu_to_be64(SERVICE), 0, NULL);
    if (rc)
        die("ib_cm_listen", rc);
    printf("listening\n");
    fflush(stdout);

    struct note req = expect(IB_CM_REQ_RECEIVED);
    printf("request: %s\n", req.data);
    struct ib_cm_rep_param rep = {
        .qp_num = side.qp->qp_num,
        .starting_psn = 0x1234,
        .private_data = "welcome",
        .private_data_len = 8,
        .responder_resources = req.req.responder_resources,
        .initiator_depth = req.req.initiator_depth,
        .rnr_retry_count = 7,
    };
    move(&side, req.id, IB_QPS_INIT);
    receive(&side);
    /* The PSN that the peer is to begin with is not in the connection before the reply is. */
    struct ib_qp_attr attr = {.qp_state = IB_QPS_RTR};
    int mask;
    rc = ib_cm_init_qp_attr(req.id, &attr, &mask);
    attr.rq_psn = rep.starting_psn;
    attr.max_dest_rd_atomic = rep.responder_resources;
    if (rc || (rc = weft_ib_modify_qp(side.qp, &attr, mask)))
        die("RTR", rc);
    move(&side, req.id, IB_QPS_RTS);
    if ((rc = ib_send_cm_rep(req.id, &rep)))
        die("ib_send_cm_rep", rc);
    expect(IB_CM_RTU_RECEIVED);
    complete(&side);
    printf("received: %s\n", side.buf);

    expect(IB_CM_DREQ_RECEIVED);
    if ((rc = ib_send_cm_drep(req.id, NULL, 0)))
        die("ib_send_cm_drep", rc);
    ib_destroy_cm_id(req.id);
    ib_destroy_cm_id(listener);
}

static void call(const char *address)
{
    struct ib_sa_path_rec path = path_to(&side, address);
    struct ib_cm_id *id = ib_create_cm_id(side.device, keep, NULL);
    struct ib_cm_req_param req = {
        .primary_path = &path,
        .service_id = cpu_to_be64(SERVICE),
        .qp_num = side.qp->qp_num,
        .qp_type = IB_QPT_RC,
        .starting_psn = 0x4321,
        .private_data = "good day",
        .private_data_len = 9,
        .responder_resources = 1,
        .initiator_depth = 1,
        .remote_cm_response_timeout = 18,
        .local_cm_response_timeout = 18,
        .retry_count = 7,
        .rnr_retry_count = 7,
        .max_cm_retries = 5,
    };
    if (!id)
        die("ib_create_cm_id", 0);
    int rc = ib_send_cm_req(id, &req);
    if (rc)
        die("ib_send_cm_req", rc);
    struct note rep = expect(IB_CM_REP_RECEIVED);
    printf("reply: %s, QP 0x%06x\n", rep.data, rep.rep.remote_qpn);
    move(&side, id, IB_QPS_INIT);
    move(&side, id, IB_QPS_RTR);
    move(&side, id, IB_QPS_RTS);
    if ((rc = ib_send_cm_rtu(id, NULL, 0)))
        die("ib_send_cm_rtu", rc);
    send_text(&side, "a line over the new connection");
    complete(&side);
    if ((rc = ib_send_cm_dreq(id, NULL, 0)))
        die("ib_send_cm_dreq", rc);
    expect(IB_CM_DREP_RECEIVED);
    printf("disconnected\n");
    ib_destroy_cm_id(id);
}

int main(int argc, char **argv)
{
    open_side(&side, IBV_QPT_RC);
    if (argc > 1)
        call(argv[1]);
    else
        serve();
    return 0;
}
