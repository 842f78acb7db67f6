// SPDX-License-Identifier: BSD-2-Clause
// The host's GID table, kept by weftd in a memfd that every engine maps read-only. Written under a
// sequence lock: `seq` is odd while weftd writes; readers copy the table and try again when seq
// changed.
#ifndef WF_LINK_GIDTAB_H
#define WF_LINK_GIDTAB_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

#define WF_GIDS 32

struct wf_gid_slot {
    union ibv_gid gid; // all zero: the slot is free
    uint32_t ifindex;
    uint32_t ifmtu;
    uint8_t up; // its interface is up and running
    uint8_t mac[6];
    uint8_t reserved;
    char ifname[16];
};

struct wf_gid_table {
    _Atomic uint32_t seq;
    uint32_t port_active; // 1: the port is ACTIVE
    uint32_t active_mtu;  // enum ibv_mtu, from the smallest interface used by a GID
    uint32_t reserved;
    uint64_t node_guid; // host order, never 0, stable per host and network namespace
    struct wf_gid_slot gids[WF_GIDS];
};

#endif
