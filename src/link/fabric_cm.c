// SPDX-License-Identifier: BSD-2-Clause
// Listening, MADs, wills and multicast membership: requests that weftd carries out.
#include "link/fabric_impl.h"

#include <errno.h>
#include <string.h>

static int service_call(struct wf_fabric *f, uint16_t type, uint64_t id, uint64_t mask)
{
    struct wf_fmsg m = {.type = type, .a = id, .b = mask};
    return wf_fabric_call(f, &m, NULL, 0, NULL);
}

int wf_fabric_listen(struct wf_fabric *f, uint64_t service_id, uint64_t mask)
{
    return service_call(f, WF_F_LISTEN, service_id, mask);
}

int wf_fabric_unlisten(struct wf_fabric *f, uint64_t service_id, uint64_t mask)
{
    return service_call(f, WF_F_UNLISTEN, service_id, mask);
}

static int mcast_call(struct wf_fabric *f, uint16_t type, const union ibv_gid *mgid, uint32_t index)
{
    struct wf_fmsg m = {.type = type, .index = index};
    memcpy(m.dgid, mgid->raw, 16);
    return wf_fabric_call(f, &m, NULL, 0, NULL);
}

int wf_fabric_mcast_join(struct wf_fabric *f, const union ibv_gid *mgid, uint32_t sgid_index)
{
    return mcast_call(f, WF_F_MCAST_JOIN, mgid, sgid_index);
}

int wf_fabric_mcast_leave(struct wf_fabric *f, const union ibv_gid *mgid, uint32_t sgid_index)
{
    return mcast_call(f, WF_F_MCAST_LEAVE, mgid, sgid_index);
}

void wf_fabric_mcast_members(struct wf_fabric *f, const union ibv_gid *mgid,
                             uint64_t slots[WF_SLOTS / 64])
{
    struct wf_fmsg m = {.type = WF_F_MCAST_SLOTS};
    memcpy(m.dgid, mgid->raw, 16);
    if (wf_fabric_call(f, &m, NULL, 0, NULL))
        memset(m.slots, 0, sizeof(m.slots));
    memcpy(slots, m.slots, sizeof(m.slots));
}

int wf_fabric_send_mad(struct wf_fabric *f, const union ibv_gid *dgid, uint32_t sgid_index,
                       const uint8_t mad[256])
{
    struct wf_fmsg m = {.type = WF_F_MAD, .index = sgid_index, .pkey = 0xffff};
    if (sgid_index >= WF_GIDS)
        return -EINVAL;
    memcpy(m.dgid, dgid->raw, 16);
    memcpy(m.mad, mad, sizeof(m.mad));
    return wf_fabric_tell(f, &m);
}

int wf_fabric_set_will(struct wf_fabric *f, uint32_t id, const union ibv_gid *dgid,
                       uint32_t sgid_index, const uint8_t *mad)
{
    struct wf_fmsg m = {.type = WF_F_WILL, .a = id, .index = sgid_index};
    if (sgid_index >= WF_GIDS)
        return -EINVAL;
    if (mad) {
        memcpy(m.dgid, dgid->raw, 16);
        memcpy(m.mad, mad, sizeof(m.mad));
    } else {
        m.flags = WF_FM_DROP;
    }
    return wf_fabric_tell(f, &m);
}
