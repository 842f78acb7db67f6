/* SPDX-License-Identifier: BSD-2-Clause */
/* Give a live connection a second path, and go over to it.
 *   altpath                      waits for one client
 *   altpath ADDRESS ADDRESS2     connects to the first, then loads the way to the second */
#include "common.h"

#include <errno.h>
#include <stdio.h>

static struct side side;

/* Load the alternate path of the id into the QP, and take it. */
static void change_over(struct ib_cm_id *id)
{
    struct ib_qp_attr attr = {.qp_state = IB_QPS_RTS};
    int mask;
    int rc = ib_cm_init_qp_attr(id, &attr, &mask);
    if (rc == 0)
        rc = weft_ib_modify_qp(side.qp, &attr, mask);
    if (rc)
        die("loading the alternate path", rc);
    attr.path_mig_state = IB_MIG_MIGRATED;
    rc = weft_ib_modify_qp(side.qp, &attr, IB_QP_PATH_MIG_STATE);
    if (rc)
        die("migrating", rc);
    /* The peer may have used the path, and disconnected, already: then there is nothing to note. */
    rc = ib_cm_notify(id, IB_EVENT_PATH_MIG);
    if (rc && rc != -EINVAL)
        die("ib_cm_notify", rc);
}

static void serve(void)
{
    struct ib_cm_id *listener = ib_create_cm_id(side.device, keep, NULL);
    int rc = listener ? ib_cm_listen(listener, cpu_to_be64(SERVICE + 2), 0, NULL) : -1;
    if (rc)
        die("ib_cm_listen", rc);
    printf("listening\n");
    fflush(stdout);
    struct note req = expect(IB_CM_REQ_RECEIVED);
    struct ib_cm_rep_param rep = {.qp_num = side.qp->qp_num, .rnr_retry_count = 7};
    move(&side, req.id, IB_QPS_INIT);
    receive(&side);
    receive(&side);
    move(&side, req.id, IB_QPS_RTR); /* all depths are 0, the first PSN too */
    move(&side, req.id, IB_QPS_RTS);
    if ((rc = ib_send_cm_rep(req.id, &rep)))
        die("ib_send_cm_rep", rc);
    expect(IB_CM_RTU_RECEIVED);
    complete(&side);
    printf("received: %s\n", side.buf);
    struct note lap = expect(IB_CM_LAP_RECEIVED);
    printf("alternate path, hop limit %u\n", lap.path.hop_limit);
    if ((rc = ib_send_cm_apr(lap.id, IB_CM_APR_SUCCESS, NULL, 0, NULL, 0)))
        die("ib_send_cm_apr", rc);
    change_over(lap.id);
    complete(&side);
    printf("received: %s\n", side.buf);
    expect(IB_CM_DREQ_RECEIVED);
    ib_send_cm_drep(req.id, NULL, 0);
    ib_destroy_cm_id(req.id);
    ib_destroy_cm_id(listener);
}

static void call(const char *address, const char *address2)
{
    struct ib_sa_path_rec path = path_to(&side, address), alternate = path_to(&side, address2);
    struct ib_cm_id *id = ib_create_cm_id(side.device, keep, NULL);
    struct ib_cm_req_param req = {
        .primary_path = &path,
        .service_id = cpu_to_be64(SERVICE + 2),
        .qp_num = side.qp->qp_num,
        .qp_type = IB_QPT_RC,
        .remote_cm_response_timeout = 18,
        .local_cm_response_timeout = 18,
        .retry_count = 7,
        .rnr_retry_count = 7,
        .max_cm_retries = 5,
    };
    int rc = id ? ib_send_cm_req(id, &req) : -1;
    if (rc)
        die("ib_send_cm_req", rc);
    expect(IB_CM_REP_RECEIVED);
    move(&side, id, IB_QPS_INIT);
    move(&side, id, IB_QPS_RTR);
    move(&side, id, IB_QPS_RTS);
    if ((rc = ib_send_cm_rtu(id, NULL, 0)))
        die("ib_send_cm_rtu", rc);
    send_text(&side, "over the first path");
    complete(&side);
    if ((rc = ib_send_cm_lap(id, &alternate, NULL, 0)))
        die("ib_send_cm_lap", rc);
    struct note apr = expect(IB_CM_APR_RECEIVED);
    printf("alternate path: status %d\n", apr.ap_status);
    if (apr.ap_status)
        die("the peer refused the path", EPROTO);
    change_over(id);
    send_text(&side, "over the second path");
    complete(&side);
    if ((rc = ib_send_cm_dreq(id, NULL, 0)))
        die("ib_send_cm_dreq", rc);
    expect(IB_CM_DREP_RECEIVED);
    ib_destroy_cm_id(id);
}

int main(int argc, char **argv)
{
    open_side(&side, IBV_QPT_RC);
    if (argc > 2)
        call(argv[1], argv[2]);
    else
        serve();
    return 0;
}
