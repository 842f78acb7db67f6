// SPDX-License-Identifier: BSD-2-Clause
// Listening, MADs and wills: requests that weftd carries out.
#include "link/fabric_impl.h"

#include <errno.h>
#include <string.h>

// A will must arrive; weftd that has stopped reading must not stop us.
#define WILL_WAIT_MS 100

int wf_fabric_set_up(struct wf_fabric *f, const struct wf_fmsg *msg)
{
    struct wf_fmsg m = *msg;
    int ret = wf_fabric_request(f, &m, NULL);
    return ret ? ret : wf_fabric_keep(f, msg);
}

int wf_fabric_take_down(struct wf_fabric *f, struct wf_fmsg *m, uint16_t type)
{
    wf_fabric_forget(f, m, false);
    m->type = type;
    return wf_fabric_request(f, m, NULL);
}

int wf_fabric_listen(struct wf_fabric *f, uint64_t service_id, uint64_t mask)
{
    return wf_fabric_set_up(f, &(struct wf_fmsg){.type = WF_F_LISTEN, .a = service_id, .b = mask});
}

int wf_fabric_unlisten(struct wf_fabric *f, uint64_t service_id, uint64_t mask)
{
    struct wf_fmsg m = {.type = WF_F_LISTEN, .a = service_id, .b = mask};
    return wf_fabric_take_down(f, &m, WF_F_UNLISTEN);
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
