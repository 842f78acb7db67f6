// SPDX-License-Identifier: BSD-2-Clause
// Listening, MADs, wills and multicast membership: requests that weftd carries out.
#include "link/fabric_impl.h"

#include <errno.h>
#include <string.h>

// A will must arrive; weftd that has stopped reading must not stop us.
#define WILL_WAIT_MS 100

// A request that sets something up: remembered once weftd has agreed.
static int set_up(struct wf_fabric *f, const struct wf_fmsg *msg)
{
    struct wf_fmsg m = *msg;
    int ret = wf_fabric_request(f, &m, NULL);
    return ret ? ret : wf_fabric_keep(f, msg);
}

// Its opposite, named by the same fields: forgotten first, or joining again would bring it back.
static int take_down(struct wf_fabric *f, struct wf_fmsg *m, uint16_t type)
{
    wf_fabric_forget(f, m, false);
    m->type = type;
    return wf_fabric_request(f, m, NULL);
}

int wf_fabric_listen(struct wf_fabric *f, uint64_t service_id, uint64_t mask)
{
    return set_up(f, &(struct wf_fmsg){.type = WF_F_LISTEN, .a = service_id, .b = mask});
}

int wf_fabric_unlisten(struct wf_fabric *f, uint64_t service_id, uint64_t mask)
{
    struct wf_fmsg m = {.type = WF_F_LISTEN, .a = service_id, .b = mask};
    return take_down(f, &m, WF_F_UNLISTEN);
}

static int mcast_message(struct wf_fmsg *m, const union ibv_gid *mgid, uint32_t sgid_index)
{
    *m = (struct wf_fmsg){.type = WF_F_MCAST_JOIN, .index = sgid_index};
    memcpy(m->dgid, mgid->raw, 16);
    return sgid_index < WF_GIDS ? 0 : -EINVAL;
}

int wf_fabric_mcast_join(struct wf_fabric *f, const union ibv_gid *mgid, uint32_t sgid_index)
{
    struct wf_fmsg m;
    int ret = mcast_message(&m, mgid, sgid_index);
    return ret ? ret : set_up(f, &m);
}

int wf_fabric_mcast_leave(struct wf_fabric *f, const union ibv_gid *mgid, uint32_t sgid_index)
{
    struct wf_fmsg m;
    int ret = mcast_message(&m, mgid, sgid_index);
    return ret ? ret : take_down(f, &m, WF_F_MCAST_LEAVE);
}

void wf_fabric_mcast_members(struct wf_fabric *f, const union ibv_gid *mgid,
                             uint64_t slots[WF_SLOTS / 64])
{
    struct wf_fmsg m = {.type = WF_F_MCAST_SLOTS};
    memcpy(m.dgid, mgid->raw, 16);
    if (wf_fabric_request(f, &m, NULL))
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
    return wf_fabric_tell(f, &m, 0);
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
        int ret = wf_fabric_keep(f, &m);
        if (ret)
            return ret;
    } else {
        m.flags = WF_FM_DROP;
        wf_fabric_forget(f, &m, true);
    }
    int ret = wf_fabric_tell(f, &m, WILL_WAIT_MS);
    return ret == -ENOTCONN ? 0 : ret; // told when we join again
}
