// SPDX-License-Identifier: BSD-2-Clause
// weftd: one control process for each user and network namespace. It plays the kernel's part for
// the engines of this host and never touches payload. One thread, one epoll loop; every concern has
// a file of its own and its state in one member of struct weftd.
#ifndef WF_DAEMON_DAEMON_H
#define WF_DAEMON_DAEMON_H

#include "link/control.h"
#include "link/fabric_proto.h"
#include "link/region.h"
#include "link/shm_ring.h"
#include <stdbool.h>
#include <sys/types.h>

struct weftd;

// Something in the epoll set.
struct source {
    void (*ready)(struct weftd *d, struct source *s, uint32_t events);
    int fd;
};

struct outgoing; // clients.c: messages that a client's socket had no room for
struct will;     // wills.c

struct client {
    struct source sock;  // its connection
    struct source pidfd; // becomes readable when the process is gone, even if a child holds `sock`
    pid_t pid;
    uint32_t slot; // 0: not joined yet
    uint64_t generation;
    bool gone;
    bool observer; // a tool that only looks
    bool waiting;  // its JOIN waits until the sockets of an earlier weftd were handed over
    struct wf_fmsg join;
    int region_fd, doorbell;
    struct wf_region *region;
    struct wf_ring_tx mcast_tx; // weftd's ring into it
    struct outgoing *out, **out_tail;
    unsigned out_count;
    struct will *wills;
    struct client *next;
};

struct slots {
    uint8_t queue[WF_SLOTS]; // free slots, the longest unused first
    unsigned first, count;
    bool taken[WF_SLOTS];
    // Members of an earlier weftd that did not come back yet; pid 0: none.
    struct wf_roster_entry expected[WF_SLOTS];
    unsigned expecting;
    uint64_t expecting_since; // ms
    uint64_t last_generation;
};

// The SO_REUSEPORT group of each family; fd[family][slot]. Sockets are never closed: when one of a
// group closes the last takes over its index, and steering goes by index.
struct sockets {
    int fd[2][WF_SLOTS];
    unsigned count;       // slots that have their sockets
    bool have[2];         // the family works
    bool adopting;        // the port is held by clients of an earlier weftd
    uint64_t adopt_until; // ms
    int keep_tx, keep_rx; // see sockets.c
};

struct gids {
    int memfd;
    struct wf_gid_table *table;
    struct wf_roster_entry *roster;
    struct wf_control *control;
    struct source netlink;
    void *manager, *links, *addrs; // libnl caches
    int rank0;                     // how good GID 0 is
    bool dirty;
};

struct service {
    struct client *owner;
    uint64_t id, mask;
    struct service *next;
};

struct member {
    struct client *owner;
    uint8_t mgid[16];
    uint32_t ifindex;
    unsigned count;
    struct member *next;
};

struct weftd {
    int epfd;
    struct source listener;
    int spare_fd;         // given up to turn a client away when there are no more
    struct source net[2]; // slot 0's sockets
    struct client *clients, *graveyard;
    unsigned members_joined;
    struct client *by_slot[WF_SLOTS];
    struct slots slots;
    struct sockets sockets;
    struct gids gids;
    struct service *services;
    struct early *early; // requests that wait for a listener, oldest first
    unsigned early_count;
    struct member *members;
    uint32_t mad_psn;
    uint32_t generation; // of slot 0 in multicast rings
    uint64_t linger_ms, idle_since;
};

// events.c
uint64_t now_ms(void);
int watch(struct weftd *d, struct source *s, uint32_t events);

// clients.c
void client_accept(struct weftd *d, struct source *s, uint32_t events);
void client_close(struct weftd *d, struct client *c);
void client_send(struct weftd *d, struct client *c, const struct wf_fmsg *m, const int *fds,
                 int nfds);
void client_broadcast(struct weftd *d, const struct wf_fmsg *m, const struct client *but);
void clients_bury(struct weftd *d);
void clients_clear_hazards(struct weftd *d, uint32_t slot);

// requests.c
void request_handle(struct weftd *d, struct client *c, const struct wf_fmsg *m, int *fds, int nfds);
void request_retry_joins(struct weftd *d);

// slots.c
void slots_init(struct weftd *d);
int slots_take(struct weftd *d, uint32_t wanted, uint64_t generation, uint32_t *slot);
void slots_start_elsewhere(struct weftd *d);
void slots_give(struct weftd *d, uint32_t slot);
uint64_t slots_generation(struct weftd *d);
void slots_expect(struct weftd *d, const struct wf_roster_entry *roster);
void slots_check_expected(struct weftd *d);

// sockets.c
void sockets_init(struct weftd *d);
void sockets_ensure(struct weftd *d, uint32_t slot);
void sockets_drain(struct weftd *d, uint32_t slot);
void sockets_adopt(struct weftd *d, int keepsake);
void sockets_tick(struct weftd *d);
void sockets_end(struct weftd *d);

// gids.c, gid_pick.c, identity.c
int gids_init(struct weftd *d);
void gids_follow(struct weftd *d);
void gids_adopt(struct weftd *d, int memfd);
int gids_find(const struct weftd *d, const uint8_t gid[16]);
void gids_pick(struct weftd *d, struct wf_gid_slot next[WF_GIDS]);
uint64_t identity_guid(void);

// control.c
void control_adopt(struct weftd *d, const struct wf_control *old);
int control_faults(struct weftd *d, int fd, uint64_t len);
int control_capture(struct weftd *d, const struct wf_fmsg *m);

// mads.c: route a MAD that arrived for, or was sent to, an address of this host.
void mads_send(struct weftd *d, const struct wf_fmsg *m);
void mads_route(struct weftd *d, const struct wf_fmsg *m);
int mads_listen(struct weftd *d, struct client *c, uint64_t id, uint64_t mask);
int mads_unlisten(struct weftd *d, struct client *c, uint64_t id, uint64_t mask);
void mads_forget(struct weftd *d, struct client *c);
bool mads_deliver(struct weftd *d, const struct wf_fmsg *m); // to its owner; false: none
void mads_refuse(struct weftd *d, const struct wf_fmsg *m);  // answer for nobody

// early.c
bool early_hold(struct weftd *d, const struct wf_fmsg *m); // false: no room
void early_retry(struct weftd *d);                         // somebody listens
void early_tick(struct weftd *d);
// mad_answer.c: what weftd itself answers; false when nothing is to be said.
bool mad_answer(const struct wf_fmsg *in, struct wf_fmsg *out);

// net.c
void net_start(struct weftd *d);
void net_send_mad(struct weftd *d, const struct wf_fmsg *m);

// mcast.c
int mcast_join(struct weftd *d, struct client *c, const uint8_t mgid[16], uint32_t index);
int mcast_leave(struct weftd *d, struct client *c, const uint8_t mgid[16], uint32_t index);
void mcast_slots(struct weftd *d, const uint8_t mgid[16], uint64_t slots[4]);
void mcast_forget(struct weftd *d, struct client *c);
void mcast_rejoin_groups(struct weftd *d);
struct wf_pkt;
void mcast_deliver(struct weftd *d, const struct wf_pkt *pkt);

// wills.c
int wills_set(struct client *c, const struct wf_fmsg *m);
void wills_run(struct weftd *d, struct client *c);
void wills_forget(struct client *c);

#endif
