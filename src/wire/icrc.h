// SPDX-License-Identifier: BSD-2-Clause
// The invariant CRC of RoCEv2 (annex A17.9.2). It covers fields of the IP and UDP headers that a
// program on a UDP socket neither writes nor sees, so they are described here.
#ifndef WF_WIRE_ICRC_H
#define WF_WIRE_ICRC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define WF_ROCE_PORT 4791

struct wf_icrc_scope {
    bool v6;
    uint16_t id; // IPv4 Identification; DF is taken as set and the fragment offset as 0
    uint16_t sport, dport;
    uint8_t src[16], dst[16]; // network order; IPv4 uses the first four bytes
};

// ICRC of the packet in iov[0..niov): BTH to pad. The BTH lies in iov[0] in one piece. The value
// goes to the wire least significant byte first.
uint32_t wf_icrc(const struct wf_icrc_scope *scope, const struct iovec *iov, int niov);

static inline void wf_icrc_store(uint8_t out[4], uint32_t icrc)
{
    for (int i = 0; i < 4; i++)
        out[i] = (uint8_t)(icrc >> 8 * i);
}

// The Identification and DF bit under which a received packet's ICRC is right.
struct wf_icrc_seen {
    uint16_t id;
    bool df;
};

// Check `len` bytes from BTH to ICRC inclusive. scope->id is the likely Identification and costs
// nothing; over IPv4 any other one and a clear DF bit are found too (a CRC is linear: the
// difference tells the bits that differ), which leaves 15 bits of check. -EBADMSG: no value fits.
int wf_icrc_check(const struct wf_icrc_scope *scope, const void *bth, size_t len,
                  struct wf_icrc_seen *seen);

#endif
