// SPDX-License-Identifier: BSD-2-Clause
#include "cm.h"

#include "../ib_cm/common.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct side side; // only its context and device are used
static struct ib_cm_id *id, *listener;
static struct ib_cm_rep_param reply;

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    if (!list || !list[0] || !(side.context = ibv_open_device(list[0])))
        die("no RDMA device", ENODEV);
    ibv_free_device_list(list);
    side.device = weft_ib_device(side.context);
    if (!side.device)
        die("weft_ib_device", 0);
}

static struct ib_qp_attr attributes(enum ib_qp_state state)
{
    struct ib_qp_attr attr;
    int mask;
    memset(&attr, 0, sizeof(attr));
    attr.qp_state = state;
    int rc = ib_cm_init_qp_attr(id, &attr, &mask);
    if (rc)
        die("ib_cm_init_qp_attr", rc);
    return attr;
}

static void describe(struct connection *c)
{
    struct ib_qp_attr rtr = attributes(IB_QPS_RTR), rts = attributes(IB_QPS_RTS);
    union ibv_gid gid;
    if (ibv_query_gid(side.context, rtr.ah_attr.port_num, rtr.ah_attr.grh.sgid_index, &gid))
        die("ibv_query_gid", 0);
    memcpy(c->sgid, &gid, sizeof(c->sgid));
    memcpy(c->dgid, &rtr.ah_attr.grh.dgid, sizeof(c->dgid));
    c->hop_limit = rtr.ah_attr.grh.hop_limit;
    c->dest_qpn = rtr.dest_qp_num;
    c->rq_psn = rtr.rq_psn;
    c->mtu = (uint8_t)rtr.path_mtu;
    c->responder_resources = rtr.max_dest_rd_atomic;
    c->rnr_timer = rtr.min_rnr_timer;
    c->sq_psn = rts.sq_psn;
    c->initiator_depth = rts.max_rd_atomic;
    c->ack_timeout = rts.timeout;
    c->retry_count = rts.retry_cnt;
    c->rnr_retry_count = rts.rnr_retry;
}

void cm_wait(uint32_t qpn, struct connection *c)
{
    open_device();
    listener = ib_create_cm_id(side.device, keep, NULL);
    if (!listener)
        die("ib_create_cm_id", 0);
    int rc = ib_cm_listen(listener, cpu_to_be64(SERVICE), 0, NULL);
    if (rc)
        die("ib_cm_listen", rc);
    printf("listening\n");
    fflush(stdout);
    struct note req = expect(IB_CM_REQ_RECEIVED);
    id = req.id;
    reply = (struct ib_cm_rep_param){
        .qp_num = qpn,
        .starting_psn = 0x1234,
        .responder_resources = req.req.responder_resources,
        .initiator_depth = req.req.initiator_depth,
        .rnr_retry_count = 7,
    };
    describe(c);
    // The connection learns these from the reply, which is sent when the queue pair is ready.
    c->rq_psn = reply.starting_psn;
    c->responder_resources = reply.responder_resources;
    c->initiator_depth = reply.initiator_depth;
}

void cm_accept(void)
{
    int rc = ib_send_cm_rep(id, &reply);
    if (rc)
        die("ib_send_cm_rep", rc);
    expect(IB_CM_RTU_RECEIVED);
}

void cm_call(const char *address, uint32_t qpn, struct connection *c)
{
    open_device();
    struct ib_sa_path_rec path = path_to(&side, address);
    struct ib_cm_req_param req = {
        .primary_path = &path,
        .service_id = cpu_to_be64(SERVICE),
        .qp_num = qpn,
        .qp_type = IB_QPT_RC,
        .starting_psn = 0x4321,
        .responder_resources = 1,
        .initiator_depth = 1,
        .remote_cm_response_timeout = 18,
        .local_cm_response_timeout = 18,
        .retry_count = 7,
        .rnr_retry_count = 7,
        .max_cm_retries = 5,
    };
    id = ib_create_cm_id(side.device, keep, NULL);
    if (!id)
        die("ib_create_cm_id", 0);
    int rc = ib_send_cm_req(id, &req);
    if (rc)
        die("ib_send_cm_req", rc);
    expect(IB_CM_REP_RECEIVED);
    describe(c);
}

void cm_ready(void)
{
    int rc = ib_send_cm_rtu(id, NULL, 0);
    if (rc)
        die("ib_send_cm_rtu", rc);
}

static void close_all(void)
{
    ib_destroy_cm_id(id);
    if (listener)
        ib_destroy_cm_id(listener);
    ibv_close_device(side.context);
}

void cm_disconnect(void)
{
    int rc = ib_send_cm_dreq(id, NULL, 0);
    if (rc)
        die("ib_send_cm_dreq", rc);
    expect(IB_CM_DREP_RECEIVED);
    close_all();
}

void cm_wait_disconnect(void)
{
    expect(IB_CM_DREQ_RECEIVED);
    int rc = ib_send_cm_drep(id, NULL, 0);
    if (rc)
        die("ib_send_cm_drep", rc);
    close_all();
}
