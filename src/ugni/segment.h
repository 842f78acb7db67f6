// SPDX-License-Identifier: BSD-2-Clause
// What a uGNI process shares with its peers on the same host: a sealed memfd that each of them
// maps. It holds the table of registered regions, by which a peer checks and executes puts and gets
// itself, and one ring of messages per sending slot. A ring has one writer and one reader and its
// head moves only past whole records, so a writer that dies leaves it consistent. Everything a peer
// writes here is checked by its reader, after one copy of each header.
#ifndef WF_UGNI_SEGMENT_H
#define WF_UGNI_SEGMENT_H

#include "ugni/memhndl.h"
#include "ugni/peer.h"
#include <stdatomic.h>

#define WF_GNI_SEGMENT_MAGIC 0x47574e49u
#define WF_GNI_RING_BYTES    65536u
#define WF_GNI_RING_PAD      0xff // am.type of a record that fills the ring to its end

struct wf_gni_seg_region {
    _Atomic uint32_t live; // changes whenever the fields below do; 0: no region
    uint8_t ptag, flags;   // flags: enum wf_gni_mh_flags
    uint8_t has_cq;
    uint8_t by_message; // segments: only the owner can find its way in them
    uint64_t addr, len;
    uint64_t reserved;
};
_Static_assert(sizeof(struct wf_gni_seg_region) == 32, "two regions a cache line");

struct wf_gni_ring {
    _Atomic uint64_t head; // the sender's, bytes ever written
    char pad1[56];
    _Atomic uint64_t tail; // the owner's, bytes ever read
    char pad2[56];
    char data[WF_GNI_RING_BYTES];
};

// Who takes the messages out.
enum wf_gni_bell {
    WF_GNI_BELL_POLLED, // calls of the program do
    WF_GNI_BELL_ARMED,  // the thread does when the bell rings
    WF_GNI_BELL_RUNG,
};

struct wf_gni_segment {
    uint32_t magic, version;
    uint32_t pe;
    int32_t pid;
    uint64_t probe; // peers try a cross-process read of it,
    uint64_t self;  // here in the owner's address space
    char pad1[32];
    _Atomic uint32_t bell; // enum wf_gni_bell
    char pad2[60];
    _Atomic uint64_t pending[WF_GNI_SLOTS / 64]; // slots whose rings have something
    char pad3[32];
    struct wf_gni_seg_region region[WF_GNI_REGIONS];
    struct wf_gni_ring ring[WF_GNI_SLOTS];
};

// ---- ring.c -------------------------------------------------------------------------------------

// 0 or -EAGAIN: no room.
int wf_gni_ring_put(struct wf_gni_ring *ring, const struct wf_gni_am *am, const void *payload);
// 1: *am and *payload (which stays until wf_gni_ring_done()), 0: empty, -EBADMSG: the sender wrote
// nonsense and the ring was emptied.
int wf_gni_ring_get(struct wf_gni_ring *ring, struct wf_gni_am *am, const void **payload);
void wf_gni_ring_done(struct wf_gni_ring *ring, const struct wf_gni_am *am);

#endif
