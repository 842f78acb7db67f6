// SPDX-License-Identifier: BSD-2-Clause
// What `weft faults` and `weft capture` want of all processes of a fabric. It lies behind the
// roster in weftd's shared file, read-only for everybody else; WF_F_CONTROL tells that it changed.
#ifndef WF_LINK_CONTROL_H
#define WF_LINK_CONTROL_H

#include "base/fault_rules.h"
#include "link/fabric_proto.h"
#include "link/region.h"

#include <stdatomic.h>

struct wf_control {
    _Atomic uint32_t seq; // odd while it is written
    uint32_t faults_seq;  // changes with each new set of rules; 0: there never were any
    uint32_t faults_len;
    uint32_t capture_seq;
    uint64_t capture_ring;
    uint32_t capture_snaplen;
    char capture_path[1024]; // "": no capture
    char faults[WF_FAULT_TEXT];
};

#define WF_CONTROL_OFFSET 8192u
_Static_assert(WF_ROSTER_OFFSET + WF_SLOTS * sizeof(struct wf_roster_entry) <= WF_CONTROL_OFFSET,
               "the roster ends before");
#define WF_CONTROL_FILE_SIZE (WF_CONTROL_OFFSET + sizeof(struct wf_control))

// A consistent copy of it from the shared file. -EAGAIN: it is being written for too long; -EPROTO.
int wf_control_read(int fd, struct wf_control *out);

struct wf_fabric;
int wf_fabric_control(const struct wf_fabric *f, struct wf_control *out);

#endif
