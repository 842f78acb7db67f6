// SPDX-License-Identifier: BSD-2-Clause
#include "rdmacm/internal.h"

#include <errno.h>
#include <rdma/ib_user_sa.h>
#include <string.h>

static int get_int(const struct rdma_ucm_set_option *cmd, int *out)
{
    if (cmd->optlen != sizeof(*out))
        return -EINVAL;
    memcpy(out, (const void *)(uintptr_t)cmd->optval, sizeof(*out));
    return 0;
}

static int get_byte(const struct rdma_ucm_set_option *cmd, uint8_t *out)
{
    if (cmd->optlen != sizeof(*out))
        return -EINVAL;
    memcpy(out, (const void *)(uintptr_t)cmd->optval, sizeof(*out));
    return 0;
}

static int set_ack_timeout(struct rcm_id *id, const struct rdma_ucm_set_option *cmd)
{
    uint8_t value;
    int rc = get_byte(cmd, &value);
    if (rc)
        return rc;
    if (value > 31)
        return wf_refuse(EINVAL, WF_R_ARG, "ACK timeout %u, at most 31", value);
    if (id->qp_type != IBV_QPT_RC && id->qp_type != IBV_QPT_XRC_SEND)
        return wf_refuse(EINVAL, WF_R_ARG, "ACK timeout for QP type %d", (int)id->qp_type);
    id->ack_timeout = value;
    id->ack_timeout_set = true;
    return 0;
}

static int set_flag(struct rcm_id *id, const struct rdma_ucm_set_option *cmd)
{
    int value;
    int rc = get_int(cmd, &value);
    if (rc)
        return rc;
    if (id->state != RCM_IDLE && cmd->optname == RDMA_OPTION_ID_AFONLY)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "the id is bound already");
    if (id->state == RCM_LISTENING && value)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "the id listens already");
    if (cmd->optname == RDMA_OPTION_ID_AFONLY)
        id->afonly = value != 0;
    else
        id->reuseaddr = value != 0;
    return 0;
}

static int set_id_option(struct rcm_id *id, const struct rdma_ucm_set_option *cmd)
{
    switch (cmd->optname) {
    case RDMA_OPTION_ID_TOS:
        id->tos_set = true;
        return get_byte(cmd, &id->tos);
    case RDMA_OPTION_ID_REUSEADDR:
    case RDMA_OPTION_ID_AFONLY:
        return set_flag(id, cmd);
    case RDMA_OPTION_ID_ACK_TIMEOUT:
        return set_ack_timeout(id, cmd);
    default:
        return wf_refuse(ENOSYS, WF_R_NOT_SUPPORTED, "rdma_cm option %u", cmd->optname);
    }
}

// A path that the program brings itself: the addresses give the route here, so its being there is
// all that counts.
static int set_path(struct rcm_id *id, const struct rdma_ucm_set_option *cmd)
{
    if (cmd->optname != RDMA_OPTION_IB_PATH)
        return wf_refuse(ENOSYS, WF_R_NOT_SUPPORTED, "rdma_cm IB option %u", cmd->optname);
    if (!cmd->optlen || cmd->optlen % sizeof(struct ib_path_rec_data))
        return -EINVAL;
    if (id->state != RCM_ADDR_OK)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "path given in state %d", id->state);
    id->has_path = true;
    id->state = RCM_ROUTE_OK;
    return rcm_emit(id, RCM_ROUTE_RESOLVED, 0);
}

int rcm_cmd_set_option(const struct rcm_call *c)
{
    const struct rdma_ucm_set_option *cmd = c->in;
    struct rcm_id *id;
    if (cmd->optlen && !cmd->optval)
        return -EFAULT;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc)
        return rc;
    if (cmd->level == RDMA_OPTION_ID)
        return set_id_option(id, cmd);
    if (cmd->level == RDMA_OPTION_IB)
        return set_path(id, cmd);
    return wf_refuse(ENOSYS, WF_R_NOT_SUPPORTED, "rdma_cm option level %u", cmd->level);
}
