// SPDX-License-Identifier: BSD-2-Clause
// The shared region of one process: a sealed-size memfd that weftd hands to peers on the same host.
// Pages that nobody touches cost nothing. Every word in it that another process writes is hostile
// until checked: copy first, then check the copy.
#ifndef WF_LINK_REGION_H
#define WF_LINK_REGION_H

#include "mem/keytab.h"
#include "qp/directory.h"

#define WF_SLOTS            256 // slot 0 is weftd
#define WF_REGION_MAGIC     0x7765667430303031ull
#define WF_RING_CELLS       512u         // power of two
#define WF_RING_BYTES       (256u << 10) // payload area of one ring, power of two
#define WF_HAZARDS_PER_SLOT 2

// One packet between two processes: a cache line. Payload of up to WF_CELL_INLINE bytes lies in the
// cell, longer payload in the ring's payload area or, with WF_CELL_REMOTE, still in the sender.
#define WF_CELL_INLINE 24
struct wf_cell {
    _Atomic uint64_t seq; // generation << 32 | (position + 1), stored last (release)
    uint8_t opcode;
    uint8_t flags; // enum wf_pkt_flags
    uint8_t kind;  // enum wf_cell_kind
    uint8_t niov;
    uint32_t dqpn;
    uint32_t psn;
    uint32_t npsn;
    uint32_t len;
    uint32_t sqpn;
    union {
        uint32_t imm_ieth; // SEND, WRITE
        uint32_t aeth;     // responses: syndrome << 24 | msn
    };
    uint32_t off; // of headers and payload in the payload area
    uint8_t data[WF_CELL_INLINE];
};
_Static_assert(sizeof(struct wf_cell) == 64, "one cell a cache line");

enum wf_cell_kind {
    WF_CELL_HERE = 0,   // RETH (WRITE, READ), then payload in data[]; P_Key 0xffff, no datagrams
    WF_CELL_AREA = 1,   // extension headers (struct wf_cell_ext) and payload in the payload area
    WF_CELL_REMOTE = 2, // struct wf_cell_ext and an iovec list in the payload area
};

// What does not fit a cell: extension headers, partition, and for datagrams the network header.
struct wf_cell_ext {
    uint64_t va;
    uint32_t rkey;
    uint32_t dma_len;
    uint64_t swap_add;
    uint64_t compare;
    uint64_t atomic_orig;
    uint32_t feth;
    uint32_t qkey;
    uint32_t xrc_srqn;
    uint32_t flow_label;
    uint16_t pkey;
    uint8_t tclass;
    uint8_t hop_limit;
    uint32_t ifindex;
    uint8_t sgid[16];
    uint8_t dgid[16];
};
_Static_assert(sizeof(struct wf_cell_ext) == 96, "the same for every compiler");

// One-way ring from slot i into this process. The first line and the cells are written by slot i,
// the second line by the owner of the region. The sender says where it can be probed, so that the
// receiver finds out without asking weftd whether it may copy from the sender.
struct wf_ring {
    _Alignas(64) _Atomic uint64_t generation; // sender's generation; a new one restarts the ring
    uint64_t probe_addr;
    uint64_t probe_value;
    int32_t pid;
    _Alignas(64) _Atomic uint64_t consumed; // generation << 32 | cells taken
    _Atomic uint64_t area_consumed;         // likewise for bytes of the payload area
    _Atomic uint32_t remote_ok; // low half of the generation that WF_CELL_REMOTE is allowed for
    _Alignas(64) struct wf_cell cells[WF_RING_CELLS];
    uint8_t area[WF_RING_BYTES];
};

// Why this process refused a request, for the requester's explanation of the NAK that it gets.
#define WF_REFUSALS 64u
struct wf_refusal {
    _Atomic uint32_t seq; // odd while it is written
    uint32_t qpn;         // of the responder
    uint32_t psn;
    uint32_t reason; // enum wf_reason
    char text[240];
};

// Where tools that look at this process find what they show. Addresses are the owner's.
struct wf_view {
    uint64_t engine; // struct wf_hca
    uint64_t notes;  // struct wf_notes
    uint32_t layout; // of the structures behind `engine`: WF_VIEW_LAYOUT of the same build
    uint32_t reserved;
    _Atomic uint64_t capture_id; // of the file that packets are captured to; 0: none
    _Atomic uint32_t refused;    // refusals so far
    struct wf_refusal refusals[WF_REFUSALS];
};

struct wf_region {
    uint64_t magic;
    uint64_t size;
    uint64_t generation; // from weftd, differs for each use of a slot
    uint32_t slot;
    int32_t pid;
    uint64_t probe_addr;  // an address in the owner where `probe_value` can be read: tells whether
    uint64_t probe_value; // pid names the owner here and cross-process copies are allowed
    _Alignas(64) _Atomic uint32_t sleeping; // 1: ring the doorbell (eventfd) after producing
    _Alignas(64) _Atomic uint64_t senders[WF_SLOTS / 64]; // bit i: slot i has used its ring
    // hazard[i][k] holds the key that slot i is executing a copy under, else 0.
    _Alignas(64) _Atomic uint32_t hazard[WF_SLOTS][WF_HAZARDS_PER_SLOT];
    struct wf_view view;
    struct wf_qp_entry qps[WF_QP_PER_PROCESS];
    struct wf_key_entry keys[WF_KEYTAB_SIZE];
    struct wf_ring rings[WF_SLOTS];
};

#endif
