// SPDX-License-Identifier: BSD-2-Clause
// One decoded RoCEv2 / IBA transport packet, in host byte order. It is the currency between qp/ and
// link/: the udp link turns it into bytes and back, shm and loop hand it over as it is.
#ifndef WF_WIRE_PACKET_H
#define WF_WIRE_PACKET_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#define WF_PSN_MASK      0xffffffu
#define WF_QPN_MASK      0xffffffu
#define WF_QPN_MULTICAST 0xffffffu

// Signed distance a - b of two 24-bit PSNs (IBA 9.7.2): negative when a is older.
static inline int32_t wf_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

enum wf_pkt_flags {
    WF_PKT_SOLICITED = 1 << 0, // BTH.SE
    WF_PKT_ACK_REQ = 1 << 1,   // BTH.A
    WF_PKT_MIG_REQ = 1 << 2,   // BTH.M
    WF_PKT_FECN = 1 << 3,
    WF_PKT_BECN = 1 << 4,
    WF_PKT_DAMAGED = 1 << 6, // a fault rule damaged it on its way: the receiver drops it
    WF_PKT_CE = 1 << 5, // arrived (or is to be sent) with IP ECN = CE
};

// Payload that lies in another process and must be fetched from there (shm link only).
struct wf_remote_payload;

struct wf_pkt {
    uint8_t opcode; // BTH opcode, wire/opcode.h
    uint8_t flags;  // enum wf_pkt_flags
    uint16_t pkey;
    uint32_t dqpn;
    uint32_t psn;
    uint32_t npsn; // PSNs this packet stands for: 1 on udp; shm and loop carry a whole message as
                   // one packet, which takes as many PSNs as it would have on the wire
    // RETH or AtomicETH
    uint64_t va;
    uint32_t rkey;
    uint32_t dma_len;
    uint64_t swap_add;
    uint64_t compare;
    // AETH, AtomicAckETH
    uint8_t syndrome;
    uint32_t msn;
    uint64_t atomic_orig;
    uint32_t imm;  // ImmDt: the 4 bytes as they stand on the wire, not swapped
    uint32_t ieth; // IETH: R_Key to invalidate
    uint32_t feth; // FLUSH: selectivity [5:4], placement [3:0]
    uint32_t qkey; // DETH
    uint32_t sqpn;
    uint32_t xrc_srqn;
    // Payload without pad and ICRC: `len` bytes in iov[0..niov), or behind `remote` when not NULL.
    uint32_t len;
    int niov;
    const struct iovec *iov;
    const struct wf_remote_payload *remote;
    // Where it came from (receive side only).
    const union ibv_gid *sgid;
    const union ibv_gid *dgid;
    uint8_t tclass;
    uint8_t hop_limit;
    uint32_t flow_label;
    uint32_t ifindex; // 0: came over shm or loop
};

#endif
