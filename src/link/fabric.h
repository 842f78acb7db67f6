// SPDX-License-Identifier: BSD-2-Clause
// Client side of weftd: how an engine joins the fabric of its user and network namespace. All calls
// are made with the engine's lock held or from one thread; none calls back.
#ifndef WF_LINK_FABRIC_H
#define WF_LINK_FABRIC_H

#include "link/gidtab.h"
#include "link/region.h"
#include <stdbool.h>

struct wf_fabric;

// Reach weftd (abstract socket, peer credentials checked), starting it when it is not there, and
// join: a slot, a generation, this slot's UDP sockets. Blocks for at most two seconds.
// Errors: -EACCES other user's daemon, -ENOENT weftd not found, -ETIMEDOUT, -EPROTO version,
// -ENOSPC no slot left.
int wf_fabric_join(struct wf_fabric **out);

// Leave and free. The slot is given back.
void wf_fabric_leave(struct wf_fabric *f);

uint32_t wf_fabric_slot(const struct wf_fabric *f);
uint64_t wf_fabric_generation(const struct wf_fabric *f);

// Sockets bound to port 4791 on which weftd's steering delivers packets for QPNs of this slot, or
// -1 where the family is not available or the port is taken. Owned by the fabric.
int wf_fabric_udp_fd(const struct wf_fabric *f, int family);

// The region of this process: created and mapped by join, known to weftd. Never NULL.
struct wf_region *wf_fabric_region(const struct wf_fabric *f);

// Eventfd that peers write to when region->sleeping is set. Owned by the fabric.
int wf_fabric_doorbell(const struct wf_fabric *f);

// Consistent copy of the host's GID table.
void wf_fabric_gids(const struct wf_fabric *f, struct wf_gid_table *out);

// A peer process on the same host, mapped.
struct wf_peer {
    uint32_t slot;
    uint32_t self; // our own slot
    uint64_t generation;
    int32_t pid;
    int doorbell;
    bool alive;
    bool cma; // process_vm_readv/writev to it work
    struct wf_region *region;
};

// Find the process in `slot` (a blocking request to weftd the first time, cached afterwards).
// Owned by the fabric and valid until wf_fabric_leave(), also after the peer died (alive is false
// then and a new process in that slot gets a new wf_peer). -ENOENT: nobody is there.
int wf_fabric_peer(struct wf_fabric *f, uint32_t slot, struct wf_peer **out);

enum wf_fabric_event_type {
    WF_FABRIC_PEER_DIED,   // slot, generation: its wf_peer is no longer alive
    WF_FABRIC_GID_CHANGE,  // gid_index
    WF_FABRIC_PORT_ACTIVE, // link came up
    WF_FABRIC_PORT_ERR,    // link went down
    WF_FABRIC_MAD,         // a CM datagram for this process
    WF_FABRIC_LOST,        // weftd is gone: connections go on; call wf_fabric_rejoin()
    WF_FABRIC_CONTROL,     // fault rules or captures are wanted (link/control.h)
    WF_FABRIC_MCAST,       // membership of a multicast group on this host changed
};

struct wf_mad {
    uint8_t data[256];
    union ibv_gid sgid; // who sent it
    union ibv_gid dgid; // to which of our addresses
    uint32_t sqpn;
    uint16_t pkey;
    uint8_t tclass;
    uint32_t ifindex;
};

struct wf_fabric_event {
    enum wf_fabric_event_type type;
    uint32_t slot;
    uint64_t generation;
    uint32_t gid_index;
    struct wf_mad mad;
};

// Readable when wf_fabric_next_event() has something; -1 while weftd is lost.
int wf_fabric_fd(const struct wf_fabric *f);

// Events that came while a request waited for its reply: the descriptor no longer tells of them.
bool wf_fabric_has_events(const struct wf_fabric *f);

// Non-blocking: 0 and an event, or -EAGAIN.
int wf_fabric_next_event(struct wf_fabric *f, struct wf_fabric_event *ev);

// After WF_FABRIC_LOST: reach a new weftd and register the same slot and region again.
// -EBUSY: the slot was given to another process meanwhile (cannot happen when all rejoin).
int wf_fabric_rejoin(struct wf_fabric *f);

// Multicast: weftd joins the IP group on the interface of the GID and keeps the member list.
// The calls count: one leave for each join.
int wf_fabric_mcast_join(struct wf_fabric *f, const union ibv_gid *mgid, uint32_t sgid_index);
int wf_fabric_mcast_leave(struct wf_fabric *f, const union ibv_gid *mgid, uint32_t sgid_index);
// Slots on this host with members of the group, as a bit set.
void wf_fabric_mcast_members(struct wf_fabric *f, const union ibv_gid *mgid,
                             uint64_t slots[WF_SLOTS / 64]);

// Connection management. weftd owns QP1: it routes a MAD that opens an exchange (REQ, SIDR_REQ) by
// service id to the process that listens, and all others by the receiver's communication id, whose
// top 8 bits are the slot. What has no owner is answered by weftd (REJ 8, SIDR status 1, DREP).
int wf_fabric_listen(struct wf_fabric *f, uint64_t service_id, uint64_t mask);
int wf_fabric_unlisten(struct wf_fabric *f, uint64_t service_id, uint64_t mask);
// Send a MAD from the address of `sgid_index` to `dgid`, QP1; never blocks.
int wf_fabric_send_mad(struct wf_fabric *f, const union ibv_gid *dgid, uint32_t sgid_index,
                       const uint8_t mad[256]);
// The last will: the MAD that weftd sends if this process dies; `id` replaces or (mad NULL) drops
// an earlier one.
int wf_fabric_set_will(struct wf_fabric *f, uint32_t id, const union ibv_gid *dgid,
                       uint32_t sgid_index, const uint8_t *mad);

#endif
