// SPDX-License-Identifier: BSD-2-Clause
// For tests: connection managers joined by a network that loses, doubles and reorders datagrams
// from a seed, on simulated time.
#ifndef WF_CM_TEST_NET_H
#define WF_CM_TEST_NET_H

#include "cm/cm.h"

#define NET_NODES 3
#define NET_MS    1000000ull

struct net_mad {
    struct net_mad *next;
    uint64_t at;
    union ibv_gid from, to;
    uint8_t mad[WF_MAD_SIZE];
};

struct net;
struct net_node {
    struct net *net;
    struct wf_cm *cm;
    union ibv_gid gid, gid2; // gid2: a second port, for alternate paths
    int listens, wills;
    uint64_t last_listen;
};

struct net {
    struct net_node node[NET_NODES];
    struct net_mad *queue; // by time
    uint64_t now;
    uint64_t random;
    uint64_t delay;                // ns from sending to arrival
    unsigned loss, twice, reorder; // in 1000
    unsigned sent;                 // datagrams, lost ones included
    uint8_t last[WF_MAD_SIZE];     // the last one sent
    int fail;                      // send_mad returns this when not 0
    bool hold;                     // deliver nothing
};

void net_start(struct net *n, uint64_t seed);
void net_stop(struct net *n);
uint32_t net_random(struct net *n, uint32_t below);

// Deliver and run timers up to `until`; stops early when an event waits at some node.
void net_run(struct net *n, uint64_t until);
// Deliver what is under way now; timers stay.
void net_deliver(struct net *n);
void net_drop(struct net *n);
// The next event at a node within `ms`; false when none comes.
bool net_event(struct net *n, int node, struct wf_cm_event *ev, uint64_t ms);

uint16_t net_last_attr(const struct net *n);
struct wf_cm_route net_route(const struct net *n, int from, int to);
struct wf_cm_route net_route2(const struct net *n, int from, int to);
struct wf_cm_req_param net_req(const struct wf_cm_route *r);

#define NET_SERVICE 0x0000000001061d2full

#endif
