// SPDX-License-Identifier: BSD-2-Clause
// Multicast membership. A sender asks for the members of each datagram's group, so they are kept
// until weftd says that they changed.
#include "link/fabric_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct group_cache {
    uint8_t mgid[16];
    uint64_t slots[WF_SLOTS / 64];
    UT_hash_handle hh;
};

void wf_fabric_forget_groups(struct wf_fabric *f, const uint8_t *mgid)
{
    struct group_cache *g, *tmp;
    HASH_ITER(hh, f->groups, g, tmp)
    {
        if (mgid && memcmp(g->mgid, mgid, 16))
            continue;
        HASH_DEL(f->groups, g);
        free(g);
    }
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
    return ret ? ret : wf_fabric_set_up(f, &m);
}

int wf_fabric_mcast_leave(struct wf_fabric *f, const union ibv_gid *mgid, uint32_t sgid_index)
{
    struct wf_fmsg m;
    int ret = mcast_message(&m, mgid, sgid_index);
    return ret ? ret : wf_fabric_take_down(f, &m, WF_F_MCAST_LEAVE);
}

void wf_fabric_mcast_members(struct wf_fabric *f, const union ibv_gid *mgid,
                             uint64_t slots[WF_SLOTS / 64])
{
    struct wf_fmsg m = {.type = WF_F_MCAST_SLOTS};
    struct group_cache *g;
    // Changes announced but not read yet count.
    wf_fabric_catch_up(f);
    HASH_FIND(hh, f->groups, mgid->raw, sizeof(g->mgid), g);
    if (g) {
        memcpy(slots, g->slots, sizeof(g->slots));
        return;
    }
    memcpy(m.dgid, mgid->raw, 16);
    memset(slots, 0, sizeof(g->slots));
    if (wf_fabric_request(f, &m, NULL))
        return;
    memcpy(slots, m.slots, sizeof(m.slots));
    g = calloc(1, sizeof(*g));
    if (!g)
        return;
    memcpy(g->mgid, mgid->raw, 16);
    memcpy(g->slots, m.slots, sizeof(g->slots));
    HASH_ADD(hh, f->groups, mgid, sizeof(g->mgid), g);
}
