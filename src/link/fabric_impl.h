// SPDX-License-Identifier: BSD-2-Clause
// Shared between the fabric*.c files only.
#ifndef WF_LINK_FABRIC_IMPL_H
#define WF_LINK_FABRIC_IMPL_H

#include "link/fabric.h"
#include "link/fabric_proto.h"
#include <sys/types.h>

struct queued_event {
    struct wf_fabric_event ev;
    struct queued_event *next;
};

// A peer and what its users must not see.
struct peer_entry {
    struct wf_peer peer;
    struct peer_entry *older; // of the same slot, dead; freed by leave only
};

struct wf_fabric {
    pid_t pid;  // who joined: a forked child must not speak for its parent
    int sock;   // -1 while weftd is lost
    int epfd;   // what callers wait on: sock and wakefd
    int wakefd; // readable while `head` is not NULL
    int udp[2];
    int doorbell;
    int region_fd;
    int gid_fd;
    int keepsake;
    uint32_t slot;
    uint32_t seq;
    uint64_t generation;
    struct wf_region *region;
    const struct wf_gid_table *gids;
    struct queued_event *head, **tail;
    struct peer_entry *peers[WF_SLOTS];
    struct kept *kept;          // fabric_keep.c
    struct group_cache *groups; // fabric_mcast.c
    uint64_t retry_ms;          // while lost: when to say so again
};

#define WF_FABRIC_TIMEOUT_MS 2000

// Reach weftd at `deadline_ms` of CLOCK_MONOTONIC at the latest. A descriptor or -errno.
int wf_fabric_connect(uint64_t deadline_ms, bool jitter);
int wf_fabric_spawn(void); // start weftd; returns once its socket exists
uint64_t wf_fabric_now_ms(void);

// Send a request and wait for its reply, which replaces *m. Events that come first are queued.
// Returns the reply's status; -ENOTCONN when weftd is lost.
int wf_fabric_call(struct wf_fabric *f, struct wf_fmsg *m, const int *fds, int nfds,
                   int reply_fds[WF_FABRIC_FDS]);
// The same, joining again first when weftd was killed.
int wf_fabric_request(struct wf_fabric *f, struct wf_fmsg *m, int reply_fds[WF_FABRIC_FDS]);
// Send without a reply; waits for room at most so long.
int wf_fabric_tell(struct wf_fabric *f, const struct wf_fmsg *m, int timeout_ms);

// Remember a request, forget one (one multicast join of several, or the whole entry), tell a new
// weftd all of them.
int wf_fabric_keep(struct wf_fabric *f, const struct wf_fmsg *m);
void wf_fabric_forget(struct wf_fabric *f, const struct wf_fmsg *m, bool all);
// A request that sets something up: remembered once weftd has agreed.
int wf_fabric_set_up(struct wf_fabric *f, const struct wf_fmsg *msg);
// Its opposite, named by the same fields: forgotten first, or joining again would bring it back.
int wf_fabric_take_down(struct wf_fabric *f, struct wf_fmsg *m, uint16_t type);
void wf_fabric_replay(struct wf_fabric *f);
void wf_fabric_forget_all(struct wf_fabric *f);
void wf_fabric_lost(struct wf_fabric *f);
void wf_fabric_catch_up(struct wf_fabric *f); // queue what has arrived
void wf_fabric_queue(struct wf_fabric *f, const struct wf_fabric_event *ev);
void wf_fabric_peer_died(struct wf_fabric *f, uint32_t slot, uint64_t generation);
void wf_fabric_free_peers(struct wf_fabric *f);

// Members of groups as last heard; forgotten when weftd says that they changed (mgid NULL: all).
void wf_fabric_forget_groups(struct wf_fabric *f, const uint8_t *mgid);

// Region of this process, and whether `pid` can be copied from and to.
int wf_region_create(struct wf_region **out, int *fd);
void wf_region_unmap(struct wf_region *r);
bool wf_region_probe(pid_t pid, uint64_t addr, uint64_t value);

#endif
