// SPDX-License-Identifier: BSD-2-Clause
// Binding to an address, and finding the way to one.
#include "rdmacm/internal.h"

#include "wire/grh.h"

#include <errno.h>
#include <string.h>

#define PACKET_LIFE 16 // what Linux assumes of RoCE
#define HOP_LIMIT   64

// The device has the address: take the GID that stands for it.
int rcm_use_source(struct rcm_id *id)
{
    struct wf_gid_slot slot;
    int index = rcm_addr_gid_index(id->channel->host, &id->src, &slot);
    if (index < 0)
        return wf_refuse(-index, WF_R_RDMACM_ADDR, "no GID stands for the local address");
    id->has_device = true;
    id->sgid_index = (uint32_t)index;
    id->path.sgid = slot.gid;
    id->path.pkey = 0xffff;
    id->path.mtu = rcm_mtu_of(slot.ifmtu);
    id->path.hop_limit = HOP_LIMIT;
    id->path.life = PACKET_LIFE;
    return 0;
}

static int bind_address(struct rcm_id *id, const void *sa)
{
    if (id->state != RCM_IDLE)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "bind of an id that is bound");
    memset(&id->src, 0, sizeof(id->src));
    memcpy(&id->src, sa, rcm_addr_len(sa));
    // An IPv4 wildcard takes nothing from IPv6 and the reverse only if asked to.
    if (id->src.ss_family == AF_INET)
        id->afonly = true;
    int rc = rcm_addr_any(sa) ? 0 : rcm_use_source(id);
    if (rc == 0)
        rc = rcm_port_bind(id);
    if (rc) {
        id->has_device = false;
        return rc;
    }
    id->state = RCM_ADDR_BOUND;
    return 0;
}

// The loopback interface has no RDMA device: who binds to it gets this device, at an address that
// other hosts know too. libfabric's servers bind to "localhost" and tell clients what they got.
static void leave_loopback(struct rcm_id *id)
{
    const union ibv_gid *gid = &id->path.sgid;
    if (id->src.ss_family != AF_INET || !rcm_addr_loopback(&id->src) || !wf_gid_is_ipv4(gid))
        return;
    id->loopback = true;
    memcpy(&((struct sockaddr_in *)&id->src)->sin_addr, gid->raw + 12, 4);
}

static int bind_explicitly(struct rcm_id *id, const void *sa)
{
    int rc = bind_address(id, sa);
    if (rc == 0)
        leave_loopback(id);
    return rc;
}

int rcm_cmd_bind_ip(const struct rcm_call *c)
{
    const struct rdma_ucm_bind_ip *cmd = c->in;
    struct rcm_id *id;
    size_t len = rcm_addr_len(&cmd->addr);
    if (!len || len > sizeof(cmd->addr))
        return -EINVAL;
    int rc = rcm_call_id(c, cmd->id, &id);
    return rc ? rc : bind_explicitly(id, &cmd->addr);
}

int rcm_cmd_bind(const struct rcm_call *c)
{
    const struct rdma_ucm_bind *cmd = c->in;
    struct rcm_id *id;
    if (cmd->reserved || !cmd->addr_size || cmd->addr_size != rcm_addr_len(&cmd->addr))
        return -EINVAL;
    int rc = rcm_call_id(c, cmd->id, &id);
    return rc ? rc : bind_explicitly(id, &cmd->addr);
}

// ---- resolve address ----------------------------------------------------------------------------

static void copy_family(struct sockaddr_storage *to, const void *from)
{
    memset(to, 0, sizeof(*to));
    to->ss_family = ((const struct sockaddr *)from)->sa_family;
}

static int bind_implicitly(struct rcm_id *id, const void *src, const void *dst)
{
    struct sockaddr_storage any;
    copy_family(&any, dst);
    if (any.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&any)->sin6_scope_id =
            ((const struct sockaddr_in6 *)dst)->sin6_scope_id;
    return bind_address(id, src ? src : &any);
}

// "Anybody here" is this host.
static void any_is_loopback(struct sockaddr_storage *dst)
{
    if (!rcm_addr_any(dst))
        return;
    if (dst->ss_family == AF_INET)
        ((struct sockaddr_in *)dst)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else if (dst->ss_family == AF_INET6)
        ((struct sockaddr_in6 *)dst)->sin6_addr = in6addr_loopback;
}

static int find_source(struct rcm_id *id)
{
    struct sockaddr_storage src;
    bool any = rcm_addr_any(&id->src);
    uint16_t port = rcm_addr_port(&id->src);
    // A source on the loopback interface is good for this host only, and needs no route.
    if (!any && rcm_addr_loopback(&id->src))
        return rcm_use_source(id);
    int rc = rcm_addr_route(&id->dst, any ? NULL : &id->src, id->tos, &src);
    if (rc)
        return wf_refuse(-rc, WF_R_RDMACM_ADDR, "no route to the destination");
    if (any) {
        id->src = src;
        rcm_addr_set_port(&id->src, port);
    }
    return rcm_use_source(id);
}

// InfiniBand addresses are GIDs already.
static int find_source_ib(struct rcm_id *id)
{
    struct sockaddr_ib *src = (struct sockaddr_ib *)&id->src;
    union ibv_gid dgid;
    rcm_addr_to_gid(&id->dst, &dgid);
    if (!rcm_addr_any(&id->src))
        return rcm_use_source(id);
    struct sockaddr_storage ip, from;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)&ip;
    memset(&ip, 0, sizeof(ip));
    six->sin6_family = AF_INET6;
    memcpy(&six->sin6_addr, &dgid, 16);
    if (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr)) {
        struct sockaddr_in four = {.sin_family = AF_INET};
        memcpy(&four.sin_addr, dgid.raw + 12, 4);
        memset(&ip, 0, sizeof(ip));
        memcpy(&ip, &four, sizeof(four));
    }
    int rc = rcm_addr_route(&ip, NULL, 0, &from);
    if (rc)
        return wf_refuse(-rc, WF_R_RDMACM_ADDR, "no route to the destination GID");
    rcm_addr_to_gid(&from, (union ibv_gid *)(void *)&src->sib_addr);
    return rcm_use_source(id);
}

static void find_destination(struct rcm_id *id)
{
    if (rcm_addr_loopback(&id->dst))
        id->path.dgid = id->path.sgid;
    else
        rcm_addr_to_gid(&id->dst, &id->path.dgid);
    id->path.tclass = id->tos;
}

static int resolve(struct rcm_id *id, const void *src, const void *dst)
{
    int rc = 0;
    if (id->state == RCM_IDLE)
        rc = bind_implicitly(id, src, dst);
    if (rc)
        return rc;
    if (id->state != RCM_ADDR_BOUND)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "address resolution in state %d", id->state);
    if (id->src.ss_family != ((const struct sockaddr *)dst)->sa_family)
        return wf_refuse(EINVAL, WF_R_RDMACM_ADDR, "source and destination of different families");
    struct sockaddr_storage before = id->src;
    memset(&id->dst, 0, sizeof(id->dst));
    memcpy(&id->dst, dst, rcm_addr_len(dst));
    any_is_loopback(&id->dst);
    rc = id->dst.ss_family == AF_IB ? find_source_ib(id) : find_source(id);
    if (rc) {
        id->src = before;
        return rcm_emit(id, RCM_ADDR_ERROR, rc);
    }
    find_destination(id);
    id->state = RCM_ADDR_OK;
    return rcm_emit(id, RCM_ADDR_RESOLVED, 0);
}

int rcm_cmd_resolve_ip(const struct rcm_call *c)
{
    const struct rdma_ucm_resolve_ip *cmd = c->in;
    struct rcm_id *id;
    size_t src = rcm_addr_len(&cmd->src_addr), dst = rcm_addr_len(&cmd->dst_addr);
    if (!dst || dst > sizeof(cmd->dst_addr) || src > sizeof(cmd->src_addr) ||
        (cmd->src_addr.sin6_family && !src))
        return -EINVAL;
    int rc = rcm_call_id(c, cmd->id, &id);
    return rc ? rc : resolve(id, src ? &cmd->src_addr : NULL, &cmd->dst_addr);
}

int rcm_cmd_resolve_addr(const struct rcm_call *c)
{
    const struct rdma_ucm_resolve_addr *cmd = c->in;
    struct rcm_id *id;
    if (cmd->reserved || (cmd->src_size && cmd->src_size != rcm_addr_len(&cmd->src_addr)) ||
        !cmd->dst_size || cmd->dst_size != rcm_addr_len(&cmd->dst_addr))
        return -EINVAL;
    int rc = rcm_call_id(c, cmd->id, &id);
    return rc ? rc : resolve(id, cmd->src_size ? &cmd->src_addr : NULL, &cmd->dst_addr);
}

// ---- resolve route ------------------------------------------------------------------------------

int rcm_cmd_resolve_route(const struct rcm_call *c)
{
    const struct rdma_ucm_resolve_route *cmd = c->in;
    struct rcm_id *id;
    int rc = rcm_call_id(c, cmd->id, &id);
    if (rc)
        return rc;
    if (id->state != RCM_ADDR_OK)
        return wf_refuse(EINVAL, WF_R_RDMACM_STATE, "route resolution in state %d", id->state);
    id->has_path = true;
    id->state = RCM_ROUTE_OK;
    return rcm_emit(id, RCM_ROUTE_RESOLVED, 0);
}
