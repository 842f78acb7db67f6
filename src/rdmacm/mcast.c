// SPDX-License-Identifier: BSD-2-Clause
// Multicast groups. RoCE has no subnet administrator: the join succeeds here at once, and the QP
// becomes a member when librdmacm attaches it.
#include "rdmacm/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct rcm_handles handles;

void rcm_groups_reset(void)
{
    handles = (struct rcm_handles){0};
}

void rcm_route_ah(const struct rcm_id *id, const union ibv_gid *dgid, struct ib_uverbs_ah_attr *to)
{
    struct ibv_ah_attr ah = {
        .is_global = 1,
        .port_num = 1,
        .sl = id->path.sl,
        .grh = {.dgid = *dgid,
                .sgid_index = (uint8_t)id->sgid_index,
                .hop_limit = id->path.hop_limit,
                .traffic_class = id->path.tclass,
                .flow_label = id->path.flow_label},
    };
    rcm_ah_to_user(&ah, to);
}

static int announce(struct rcm_mc *mc)
{
    struct rcm_id *id = mc->id;
    struct rcm_queued *q = rcm_prepare(id, RCM_MULTICAST_JOIN, 0);
    if (!q)
        return -ENOMEM;
    rcm_default_qkey(id);
    q->mc = mc;
    q->resp.uid = mc->uid;
    q->resp.id = mc->handle;
    q->resp.param.ud.qp_num = RCM_MCAST_QPN;
    q->resp.param.ud.qkey = id->qkey;
    rcm_route_ah(id, &mc->mgid, &q->resp.param.ud.ah_attr);
    rcm_queue(q);
    return 0;
}

static void leave(struct rcm_mc *mc)
{
    rcm_drop_events(mc->id, mc);
    rcm_handle_free(&handles, mc->handle);
    LIST_REMOVE(mc, next);
    free(mc);
}

void rcm_leave_all(struct rcm_id *id)
{
    while (!LIST_EMPTY(&id->groups))
        leave(LIST_FIRST(&id->groups));
}

static int join(const struct rcm_call *c, uint32_t handle, uint64_t uid, uint64_t response,
                const void *addr)
{
    struct rcm_id *id;
    struct rdma_ucm_create_id_resp resp;
    int rc = rcm_call_id(c, handle, &id);
    if (rc)
        return rc;
    if (!id->has_device || (id->state != RCM_ADDR_BOUND && id->state != RCM_ADDR_OK))
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "multicast join in state %d", id->state);
    struct rcm_mc *mc = calloc(1, sizeof(*mc));
    if (!mc)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "multicast group");
    rc = rcm_handle_new(&handles, mc, &mc->handle);
    if (rc) {
        free(mc);
        return rc;
    }
    mc->id = id;
    mc->uid = uid;
    rcm_addr_to_gid(addr, &mc->mgid);
    LIST_INSERT_HEAD(&id->groups, mc, next);
    resp.id = mc->handle;
    rc = announce(mc);
    if (rc == 0)
        rc = rcm_reply(c, response, &resp, sizeof(resp));
    if (rc)
        leave(mc);
    return rc;
}

int rcm_cmd_join_ip_mcast(const struct rcm_call *c)
{
    const struct rdma_ucm_join_ip_mcast *cmd = c->in;
    size_t len = rcm_addr_len(&cmd->addr);
    if (!len || len > sizeof(cmd->addr))
        return -EINVAL;
    return join(c, cmd->id, cmd->uid, cmd->response, &cmd->addr);
}

int rcm_cmd_join_mcast(const struct rcm_call *c)
{
    const struct rdma_ucm_join_mcast *cmd = c->in;
    if (!cmd->addr_size || cmd->addr_size != rcm_addr_len(&cmd->addr) ||
        cmd->join_flags >= RDMA_MC_JOIN_FLAG_RESERVED)
        return -EINVAL;
    return join(c, cmd->id, cmd->uid, cmd->response, &cmd->addr);
}

int rcm_cmd_leave_mcast(const struct rcm_call *c)
{
    const struct rdma_ucm_destroy_id *cmd = c->in;
    struct rcm_mc *mc = rcm_handle_find(&handles, cmd->id);
    if (!mc)
        return wf_refuse(ENOENT, WF_R_RDMACM_ID, "multicast group %u", cmd->id);
    if (mc->id->channel != c->channel)
        return wf_refuse(EINVAL, WF_R_RDMACM_ID, "group %u is on another channel", cmd->id);
    struct rdma_ucm_destroy_id_resp resp = {.events_reported = mc->reported};
    leave(mc);
    return rcm_reply(c, cmd->response, &resp, sizeof(resp));
}
