// SPDX-License-Identifier: BSD-2-Clause
// The 64-bit completion queue entry. Clients see it through accessors only, so the split is ours;
// it keeps the hardware's outline: bit 63 overrun, 62..59 status, 58..56 source, 55..0 user data.
//
//   source              user data
//   POST_FMA, POST_RDMA  55..54 type | 53..32 tid | 31..0 local event
//   MESSAGE              55..54 type | 53..32 tid | 31..0 msg_id (inst_id reads it too)
//   REMOTE               31..0 the sender's remote event
//   CQ_WRITE             47..0 the value written
//   CE                   39..32 channel | 31..0 reduction
#ifndef WF_UGNI_ENTRY_H
#define WF_UGNI_ENTRY_H

#include <gni_pub.h>

enum wf_gni_source {
    WF_GNI_SRC_FMA = 1,
    WF_GNI_SRC_MESSAGE = 2,
    WF_GNI_SRC_CE = 3,
    WF_GNI_SRC_RDMA = 4,
    WF_GNI_SRC_REMOTE = 5,
    WF_GNI_SRC_CQ_WRITE = 6,
};

// Hardware status numbers; PEER_DIED is ours, taken from those the hardware does not define.
enum wf_gni_status {
    WF_GNI_ST_OK = 0,
    WF_GNI_ST_UNCORRECTABLE = 2,
    WF_GNI_ST_INVALID_COMMAND = 3,
    WF_GNI_ST_TRANSLATION = 5,
    WF_GNI_ST_VMDH = 6,
    WF_GNI_ST_MDD = 7,
    WF_GNI_ST_PROTECTION = 8,
    WF_GNI_ST_BOUNDS = 9,
    WF_GNI_ST_TERMINATED = 10,
    WF_GNI_ST_TIMEOUT = 11,
    WF_GNI_ST_PEER_DIED = 12,
    WF_GNI_ST_DATA = 13,
};

#define WF_GNI_TID_BITS 22
#define WF_GNI_OVERRUN  (1ull << 63)

static inline gni_cq_entry_t wf_gni_entry_source(enum wf_gni_source source, unsigned type,
                                                 uint32_t tid, uint32_t id,
                                                 enum wf_gni_status status)
{
    uint64_t data =
        (uint64_t)(type & 3) << 54 | (uint64_t)(tid & ((1u << WF_GNI_TID_BITS) - 1)) << 32 | id;
    return (uint64_t)status << 59 | (uint64_t)source << 56 | data;
}

static inline gni_cq_entry_t wf_gni_entry_remote(uint32_t event)
{
    return (uint64_t)WF_GNI_SRC_REMOTE << 56 | event;
}

static inline gni_cq_entry_t wf_gni_entry_cq_write(uint64_t value)
{
    return (uint64_t)WF_GNI_SRC_CQ_WRITE << 56 | (value & 0xffffffffffffull);
}

static inline gni_cq_entry_t wf_gni_entry_ce(uint32_t ce_id, uint64_t red_id,
                                             enum wf_gni_status status)
{
    return (uint64_t)status << 59 | (uint64_t)WF_GNI_SRC_CE << 56 | (uint64_t)(ce_id & 0xff) << 32 |
           (uint32_t)red_id;
}

// Text of a status, or NULL when the number is not defined.
const char *wf_gni_status_text(unsigned status);

#endif
