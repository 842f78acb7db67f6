// SPDX-License-Identifier: BSD-2-Clause
// What a rank and `weft run -n N` tell each other, over a stream socket that the rank inherits.
// Each message is this header in host byte order and `len` bytes. A rank has one request
// outstanding.
//
//   BARRIER            -> DONE
//   GATHER data        -> DONE every rank's data, in rank order
//   PUT key\0value\0   -> DONE
//   GET key\0          -> DONE value\0, or FAILED
//   ABORT text         (arg: exit code; no answer)
//   LEAVE              -> DONE: this rank will not take part any more and may end
//
// FAILED also answers what can never be done, because a rank died.
#ifndef WF_PMI_RANKS_H
#define WF_PMI_RANKS_H

#include <stdint.h>

// Environment of a rank.
#define WF_RANKS_FD   "WEFT_RANKS_FD"
#define WF_RANKS_RANK "WEFT_RANK"
#define WF_RANKS_SIZE "WEFT_SIZE"
#define WF_RANKS_PPN  "WEFT_PPN" // ranks of a node: rank / ppn numbers the node
#define WF_RANKS_JOB  "WEFT_JOB" // name of the job

#define WF_RANKS_MAX   4096u       // ranks
#define WF_RANKS_BYTES (16u << 20) // of one message

enum wf_ranks_op {
    WF_RANKS_BARRIER = 1,
    WF_RANKS_GATHER,
    WF_RANKS_PUT,
    WF_RANKS_GET,
    WF_RANKS_ABORT,
    WF_RANKS_LEAVE,
    WF_RANKS_DONE,
    WF_RANKS_FAILED,
};

struct wf_ranks_msg {
    uint32_t op;
    uint32_t len;
    int32_t arg;
    uint32_t reserved;
};

#endif
