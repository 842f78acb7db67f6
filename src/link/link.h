// SPDX-License-Identifier: BSD-2-Clause
// How packets travel. The engine calls a link with its lock held; a link never calls the engine but
// through `deliver`, from inside poll(). Links do not block and do not touch QPs.
#ifndef WF_LINK_LINK_H
#define WF_LINK_LINK_H

#include "wire/packet.h"

struct wf_link;
struct wf_peer;

// Where packets of a QP or an address handle go. Resolved once; the engine owns it.
struct wf_path {
    struct wf_link *link;
    union ibv_gid sgid, dgid;
    uint32_t sgid_index;
    uint32_t flow_label;
    uint8_t tclass, hop_limit, sl;
    bool local; // dgid is an address of this host
    uint32_t ifindex;
    uint32_t mtu;         // largest payload the interface can carry, bytes
    uint16_t sport;       // udp: source port, 0xC000 up
    struct wf_peer *peer; // shm: the destination process
};

struct wf_link_ops {
    const char *name;

    // Send one packet. Headers are copied before it returns; on links with `by_reference` false so
    // is the payload, at the latest in flush(). 0; -EAGAIN no room, call again after some progress;
    // -ENETUNREACH and the like: the path is dead for now (the packet counts as lost).
    int (*send)(struct wf_link *l, const struct wf_path *path, const struct wf_pkt *pkt);

    // Push out what send() has batched. Call it before the lock is released: until then the link
    // may read payload, and a link that must hold packets back (EAGAIN) copies it now.
    void (*flush)(struct wf_link *l);

    // Deliver up to `budget` received packets through l->deliver(l->arg, pkt). pkt and its payload
    // are valid only during the call. Returns the number delivered.
    int (*poll)(struct wf_link *l, int budget);

    // File descriptors to sleep on (at most max); 0 when the link needs none.
    int (*fds)(struct wf_link *l, int *fds, int max);

    void (*destroy)(struct wf_link *l);
};

struct wf_link {
    const struct wf_link_ops *ops;
    void (*deliver)(void *arg, const struct wf_pkt *pkt);
    void (*damaged)(void *arg, uint32_t dqpn); // a packet came with a bad ICRC; may be NULL
    void *arg;
    uint32_t max_payload; // largest payload of one packet; 0: the path MTU
};

// RoCEv2 over the sockets given (weftd's, one per family, -1 when absent). Packets are sent from
// private sockets with source ports from 0xC000, one for each destination slot; path->sport is not
// used. Peers listen on the port that the sockets given are bound to. Counters: link/udp.h.
struct wf_fabric;
int wf_udp_link_create(int fd4, int fd6, struct wf_link **out);

// Rings in shared memory to the peers of `f`.
int wf_shm_link_create(struct wf_fabric *f, struct wf_link **out);

// Largest payload of one packet to this peer now. It grows once both sides know that the receiver
// may copy from the sender, so ask for each packet. Packets of UC and UD carry at most
// WF_SHM_COPY_MAX whatever this says: nobody would keep their payload for the receiver.
#define WF_SHM_COPY_MAX 8192u
uint32_t wf_shm_max_payload(struct wf_link *l, const struct wf_peer *peer);

// Has the peer not yet taken all that was sent to it?
bool wf_shm_unseen(struct wf_link *l, const struct wf_peer *peer);

// Packets to QPs of this engine. Payload is taken by reference until it is delivered: poll until 0
// before the sender's buffers can change.
int wf_loop_link_create(struct wf_link **out);

#endif
