// SPDX-License-Identifier: BSD-2-Clause
// Ids: made, destroyed, moved between channels.
#include "rdmacm/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

static struct rcm_handles handles;

void rcm_ids_reset(void)
{
    handles = (struct rcm_handles){0};
}

struct rcm_id *rcm_id_find(uint32_t handle)
{
    return rcm_handle_find(&handles, handle);
}

static uint32_t random_psn(void)
{
    uint32_t psn = 0;
    if (getrandom(&psn, sizeof(psn), GRND_NONBLOCK) != sizeof(psn))
        psn = (uint32_t)(uintptr_t)&psn >> 4;
    return psn & 0xffffff;
}

int rcm_id_create(struct rcm_channel *c, uint64_t uid, uint16_t ps, enum ibv_qp_type type,
                  struct rcm_id **out)
{
    struct rcm_id *id = calloc(1, sizeof(*id));
    if (!id)
        return wf_refuse(ENOMEM, WF_R_NO_MEMORY, "rdma_cm id");
    int rc = rcm_handle_new(&handles, id, &id->handle);
    if (rc) {
        free(id);
        return rc;
    }
    id->owner.event = rcm_on_event;
    id->channel = c;
    id->uid = uid;
    id->ps = ps;
    id->qp_type = type;
    id->psn = random_psn();
    LIST_INIT(&id->groups);
    LIST_INSERT_HEAD(&c->ids, id, of_channel);
    *out = id;
    return 0;
}

void rcm_id_destroy(struct rcm_id *id)
{
    rcm_unlisten(id);
    rcm_drop_events(id, NULL);
    rcm_leave_all(id);
    if (id->cm_id)
        wf_cm_id_destroy(id->cm_id);
    rcm_port_release(id);
    rcm_handle_free(&handles, id->handle);
    LIST_REMOVE(id, of_channel);
    free(id);
}

static int qp_type_of(const struct rdma_ucm_create_id *cmd, enum ibv_qp_type *type)
{
    switch (cmd->ps) {
    case RDMA_PS_TCP:
        *type = IBV_QPT_RC;
        return 0;
    case RDMA_PS_UDP:
    case RDMA_PS_IPOIB:
        *type = IBV_QPT_UD;
        return 0;
    case RDMA_PS_IB:
        *type = (enum ibv_qp_type)cmd->qp_type;
        return 0;
    default:
        return wf_refuse(EINVAL, WF_R_ARG, "port space 0x%04x", cmd->ps);
    }
}

int rcm_cmd_create_id(const struct rcm_call *c)
{
    const struct rdma_ucm_create_id *cmd = c->in;
    struct rdma_ucm_create_id_resp resp;
    enum ibv_qp_type type = IBV_QPT_RC;
    struct rcm_id *id;
    if (c->out_len < sizeof(resp))
        return -ENOSPC;
    int rc = qp_type_of(cmd, &type);
    if (rc == 0)
        rc = rcm_id_create(c->channel, cmd->uid, cmd->ps, type, &id);
    if (rc)
        return rc;
    resp.id = id->handle;
    rc = rcm_reply(c, cmd->response, &resp, sizeof(resp));
    if (rc)
        rcm_id_destroy(id);
    return rc;
}

int rcm_cmd_destroy_id(const struct rcm_call *c)
{
    const struct rdma_ucm_destroy_id *cmd = c->in;
    struct rcm_id *id;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc)
        return rc;
    struct rdma_ucm_destroy_id_resp resp = {.events_reported = id->reported};
    if (c->out_len < sizeof(resp))
        return -ENOSPC;
    rcm_id_destroy(id);
    return rcm_reply(c, cmd->response, &resp, sizeof(resp));
}

int rcm_cmd_migrate_id(const struct rcm_call *c)
{
    const struct rdma_ucm_migrate_id *cmd = c->in;
    struct rcm_channel *from = rcm_channel_of((int)cmd->fd);
    struct rcm_id *id = rcm_id_find(cmd->id);
    if (!from)
        return wf_refuse(EINVAL, WF_R_RDMACM_ID, "%d is no event channel", (int)cmd->fd);
    if (!id || id->channel != from)
        return wf_refuse(ENOENT, WF_R_RDMACM_ID, "id %u on that event channel", cmd->id);
    LIST_REMOVE(id, of_channel);
    LIST_INSERT_HEAD(&c->channel->ids, id, of_channel);
    id->channel = c->channel;
    rcm_move_events(id, from, c->channel);
    struct rdma_ucm_migrate_resp resp = {.events_reported = id->reported};
    return rcm_reply(c, cmd->response, &resp, sizeof(resp));
}
