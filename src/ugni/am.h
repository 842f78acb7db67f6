// SPDX-License-Identifier: BSD-2-Clause
// Active messages: what uGNI processes tell each other. One header of 64 bytes in host byte order
// (all hosts of a job share it), then `len` bytes of payload. They arrive in order, once, on one
// connection per pair of processes; the receiver acts on them in its own thread or in whatever call
// makes progress. docs/ugni.md has the list with every field.
#ifndef WF_UGNI_AM_H
#define WF_UGNI_AM_H

#include <stdint.h>

#define WF_GNI_AM_VERSION 1u
#define WF_GNI_AM_PAYLOAD 8192u // at most, in one message

// `addr` counts from the start of the region.
enum wf_gni_am_type {
    WF_GNI_AM_PUT = 1,     // addr, region, event, payload; LAST: answer
    WF_GNI_AM_GET,         // addr, region, arg = length, event
    WF_GNI_AM_GET_DATA,    // id, addr = offset, payload; LAST: status
    WF_GNI_AM_AMO,         // addr, region, first, second, arg = command | words << 32, event
    WF_GNI_AM_EVENT,       // region, event: a post of which the data is there already
    WF_GNI_AM_CQ_WRITE,    // region, arg = value
    WF_GNI_AM_ACK,         // id, status, payload = old values of a fetching AMO
    WF_GNI_AM_SMSG,        // region, addr = mailbox slot, arg = offset; LAST: commit
    WF_GNI_AM_SMSG_CREDIT, // region, addr = mailbox, arg = messages released so far
    WF_GNI_AM_DGRAM,       // a datagram: enum wf_gni_dgram_kind in status
    WF_GNI_AM_MSGQ,        // message for a shared queue
    WF_GNI_AM_MSGQ_CREDIT,
    WF_GNI_AM_CE_UP,   // a child's part of a reduction
    WF_GNI_AM_CE_DOWN, // its result
};

enum wf_gni_am_flags {
    WF_GNI_AMF_LAST = 1,  // closes an operation of several messages
    WF_GNI_AMF_EVENT = 2, // make a remote event
};

struct wf_gni_am {
    uint8_t type;
    uint8_t flags;
    uint8_t ptag;
    uint8_t status;
    uint32_t len; // payload
    uint32_t region;
    uint32_t event;
    uint64_t id; // of the sender's operation, given back in the answer
    uint64_t addr;
    uint64_t arg;
    uint64_t first;
    uint64_t second;
    uint64_t extra;
};
_Static_assert(sizeof(struct wf_gni_am) == 64, "one cache line");

#endif
