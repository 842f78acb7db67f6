// SPDX-License-Identifier: BSD-2-Clause
// A write to the device: header, command, answer (linux/include/uapi/rdma/rdma_user_cm.h gives the
// layout).
#include "rdmacm/internal.h"

#include <errno.h>
#include <string.h>

ssize_t rcm_write(struct wf_cm_host *host, int fd, const void *buf, size_t len);

static const struct {
    rcm_command fn;
    uint16_t size; // of the command's structure
    uint16_t least;
} commands[] = {
#define COMMAND(op, fn, type, least) [RDMA_USER_CM_CMD_##op] = {fn, sizeof(type), least}
#define WHOLE(op, fn, type)          COMMAND(op, fn, type, sizeof(type))
    WHOLE(CREATE_ID, rcm_cmd_create_id, struct rdma_ucm_create_id),
    WHOLE(DESTROY_ID, rcm_cmd_destroy_id, struct rdma_ucm_destroy_id),
    WHOLE(BIND_IP, rcm_cmd_bind_ip, struct rdma_ucm_bind_ip),
    WHOLE(RESOLVE_IP, rcm_cmd_resolve_ip, struct rdma_ucm_resolve_ip),
    WHOLE(RESOLVE_ROUTE, rcm_cmd_resolve_route, struct rdma_ucm_resolve_route),
    WHOLE(QUERY_ROUTE, rcm_cmd_query_route, struct rdma_ucm_query),
    COMMAND(CONNECT, rcm_cmd_connect, struct rdma_ucm_connect,
            offsetof(struct rdma_ucm_connect, ece)),
    WHOLE(LISTEN, rcm_cmd_listen, struct rdma_ucm_listen),
    COMMAND(ACCEPT, rcm_cmd_accept, struct rdma_ucm_accept, offsetof(struct rdma_ucm_accept, ece)),
    WHOLE(REJECT, rcm_cmd_reject, struct rdma_ucm_reject),
    WHOLE(DISCONNECT, rcm_cmd_disconnect, struct rdma_ucm_disconnect),
    WHOLE(INIT_QP_ATTR, rcm_cmd_init_qp_attr, struct rdma_ucm_init_qp_attr),
    WHOLE(SET_OPTION, rcm_cmd_set_option, struct rdma_ucm_set_option),
    WHOLE(NOTIFY, rcm_cmd_notify, struct rdma_ucm_notify),
    WHOLE(JOIN_IP_MCAST, rcm_cmd_join_ip_mcast, struct rdma_ucm_join_ip_mcast),
    WHOLE(LEAVE_MCAST, rcm_cmd_leave_mcast, struct rdma_ucm_destroy_id),
    WHOLE(MIGRATE_ID, rcm_cmd_migrate_id, struct rdma_ucm_migrate_id),
    WHOLE(QUERY, rcm_cmd_query, struct rdma_ucm_query),
    WHOLE(BIND, rcm_cmd_bind, struct rdma_ucm_bind),
    WHOLE(RESOLVE_ADDR, rcm_cmd_resolve_addr, struct rdma_ucm_resolve_addr),
    WHOLE(JOIN_MCAST, rcm_cmd_join_mcast, struct rdma_ucm_join_mcast),
#undef WHOLE
#undef COMMAND
};

union any_command {
    struct rdma_ucm_resolve_addr resolve_addr;
    struct rdma_ucm_connect connect;
    struct rdma_ucm_accept accept;
    struct rdma_ucm_reject reject;
    uint8_t bytes[512];
};

int rcm_reply(const struct rcm_call *c, uint64_t response, const void *resp, size_t len)
{
    if (c->out_len < len)
        return -ENOSPC;
    if (!response)
        return -EFAULT;
    memcpy((void *)(uintptr_t)response, resp, len);
    return 0;
}

int rcm_call_id(const struct rcm_call *c, uint32_t handle, struct rcm_id **out)
{
    struct rcm_id *id = rcm_id_find(handle);
    if (!id)
        return wf_refuse(ENOENT, WF_R_RDMACM_ID, "id %u", handle);
    if (id->channel != c->channel)
        return wf_refuse(EINVAL, WF_R_RDMACM_ID, "id %u is on another event channel", handle);
    *out = id;
    return 0;
}

static int get_event(struct wf_cm_host *host, int fd, const uint8_t *in, size_t len, size_t out)
{
    struct rdma_ucm_get_event cmd;
    if (len < sizeof(cmd))
        return -EINVAL;
    memcpy(&cmd, in, sizeof(cmd));
    wf_cm_lock(host);
    struct rcm_channel *c = rcm_channel_of(fd);
    wf_cm_unlock(host);
    return c ? rcm_get_event(c, &cmd, out) : -EBADF;
}

static int run(struct wf_cm_host *host, int fd, const struct rdma_ucm_cmd_hdr *hdr,
               const uint8_t *in)
{
    union any_command cmd;
    if (hdr->cmd >= sizeof(commands) / sizeof(commands[0]))
        return -EINVAL;
    if (!commands[hdr->cmd].fn)
        return wf_refuse(ENOSYS, WF_R_NOT_SUPPORTED, "rdma_cm command %u", hdr->cmd);
    if (hdr->in < commands[hdr->cmd].least)
        return -EINVAL;
    memset(&cmd, 0, sizeof(cmd));
    memcpy(&cmd, in, hdr->in < commands[hdr->cmd].size ? hdr->in : commands[hdr->cmd].size);
    wf_cm_lock(host);
    struct rcm_call call = {rcm_channel_of(fd), &cmd, hdr->out};
    int rc = call.channel ? commands[hdr->cmd].fn(&call) : -EBADF;
    wf_cm_unlock(host);
    return rc;
}

ssize_t rcm_write(struct wf_cm_host *host, int fd, const void *buf, size_t len)
{
    struct rdma_ucm_cmd_hdr hdr;
    if (len < sizeof(hdr))
        return -EINVAL;
    memcpy(&hdr, buf, sizeof(hdr));
    const uint8_t *in = (const uint8_t *)buf + sizeof(hdr);
    if (hdr.in > len - sizeof(hdr))
        return -EINVAL;
    int rc = hdr.cmd == RDMA_USER_CM_CMD_GET_EVENT ? get_event(host, fd, in, hdr.in, hdr.out)
                                                   : run(host, fd, &hdr, in);
    return rc ? rc : (ssize_t)len;
}
