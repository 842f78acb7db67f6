// SPDX-License-Identifier: BSD-2-Clause
// Other processes, by PE address. A PE is the low 24 bits of the host's IPv4 address and the slot
// of the process on that host.
#ifndef WF_UGNI_PEER_H
#define WF_UGNI_PEER_H

#include "ugni/am.h"
#include "ugni/memhndl.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>
#include <uthash.h>

#define WF_GNI_SLOTS          256u // 0 is never used
#define WF_GNI_PE_SLOT(pe)    ((pe)&0xffu)
#define WF_GNI_PE_HOST(pe)    ((pe) >> 8)
#define WF_GNI_PE(host, slot) ((uint32_t)(host) << 8 | (slot))

struct wf_gni_segment;
struct wf_gni_peer;
struct wf_gni_xfer;
struct wf_gni_stream;
struct wf_gni_conn;

// A message that waits for room on its way out.
struct wf_gni_backlog {
    struct wf_gni_backlog *next;
    uint32_t len;
    char bytes[];
};

// How messages travel to a peer. 0, or -EAGAIN when there is no room now, or -EPIPE.
struct wf_gni_link {
    int (*send)(struct wf_gni_peer *peer, const struct wf_gni_am *am, const void *payload);
    void (*close)(struct wf_gni_peer *peer);
};

struct wf_gni_peer {
    uint32_t pe;
    bool dead;
    const struct wf_gni_link *link; // NULL: this very process
    struct wf_gni_backlog *backlog, *backlog_tail;
    struct wf_gni_xfer *under_way; // transfers that wait for its answer
    struct wf_gni_stream *streams; // data on its way to it
    bool streaming;                // counted among those with something waiting
    uint64_t fault_id;             // of its puts: the last that failed,
    uint8_t fault;                 // and why
    // Same host
    struct wf_gni_segment *seg;
    pid_t pid;
    int bell, sock[2];
    bool cma; // cross-process copies work
    // Other hosts
    struct wf_gni_conn *rc; // on which we send
    UT_hash_handle hh;
};

// The live peer of a PE, connected to; NULL when nobody is there (now).
struct wf_gni_peer *wf_gni_peer_get(uint32_t pe);
// The peer in the table, maybe dead; NULL: none.
struct wf_gni_peer *wf_gni_peer_find(uint32_t pe);
// A peer in the table, not connected yet; an older one of the same PE is forgotten.
struct wf_gni_peer *wf_gni_peer_new(uint32_t pe);
// Send, or keep until there is room. False: the peer is dead.
bool wf_gni_peer_send(struct wf_gni_peer *peer, const struct wf_gni_am *am, const void *payload);
// Try what was kept.
void wf_gni_peer_flush(struct wf_gni_peer *peer);
// Its process ended: fail what waits for it.
void wf_gni_peer_died(struct wf_gni_peer *peer);
void wf_gni_peers_flush(void);
// It has streams: they are gone on with as room comes.
void wf_gni_peer_streaming(struct wf_gni_peer *peer);
bool wf_gni_peers_waiting(void); // some messages found no room yet
void wf_gni_peers_forget(void);

// What a message asks for; am.c. `payload` holds am->len bytes, foreign and possibly changing.
void wf_gni_am_handle(struct wf_gni_peer *from, const struct wf_gni_am *am, const void *payload);

// ---- same host, shm.c ---------------------------------------------------------------------------

// Take a slot and make the segment; the host part names this host. 0 or -errno.
int wf_gni_shm_open(uint32_t host);
uint32_t wf_gni_shm_slot(void);
// 0 and a connected peer, -ENOENT when nobody has the slot, -errno.
int wf_gni_shm_connect(struct wf_gni_peer *peer);
// Messages that arrived; true when there were any.
bool wf_gni_shm_poll(void);
void wf_gni_shm_region(uint32_t number); // publish a region's present state
// Straight into or out of a peer's region, from offset `at`. Status, or -1 when it must go by
// message.
int wf_gni_shm_copy(struct wf_gni_peer *peer, uint8_t ptag, uint32_t region, uint64_t at,
                    void *local, uint64_t len, bool write);

#endif
