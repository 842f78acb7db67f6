// SPDX-License-Identifier: BSD-2-Clause
// What a process shows of each of its QPs to peers on the same host, one cache line each, in its
// shared region. The owner writes everything but `epsn`, which the one connected requester also
// advances when it executes a WRITE or READ itself. That never races with the owner's responder:
// the requester does so only when nothing of that QP is unacknowledged.
#ifndef WF_QP_DIRECTORY_H
#define WF_QP_DIRECTORY_H

#include <stdatomic.h>
#include <stdint.h>

#define WF_QP_PER_PROCESS (1u << 16) // QPN = slot << 16 | index

struct wf_qp_entry {
    _Atomic uint32_t ready; // 1: state is RTR, RTS, SQD or SQE and the fields below hold
    uint32_t remote_qpn;    // the only requester
    uint32_t pd;
    uint32_t access; // qp_access_flags
    _Atomic uint32_t epsn;
    _Atomic uint32_t msn;
    uint32_t mtu;             // bytes
    uint32_t type;            // enum ibv_qp_type
    _Atomic uint32_t state;   // 1 + enum ibv_qp_state; 0: there is no such QP. For explanations
    _Atomic uint32_t damaged; // packets for it that came with a bad ICRC
    uint32_t reserved[6];
};
_Static_assert(sizeof(struct wf_qp_entry) == 64, "one entry a cache line");

#endif
