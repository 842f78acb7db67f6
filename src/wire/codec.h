// SPDX-License-Identifier: BSD-2-Clause
// Whole packets: the bytes from the BTH to the ICRC, to and from struct wf_pkt.
#ifndef WF_WIRE_CODEC_H
#define WF_WIRE_CODEC_H

#include "wire/headers.h"
#include "wire/packet.h"

// Decode `len` bytes from BTH to ICRC inclusive. The ICRC's value is not looked at (wire/icrc.h).
// out->iov is `payload_iov`, which points into `bth` and leaves out pad and ICRC. Fields of absent
// headers are zero, so are those of the receive side (sgid ...), and npsn is 1.
// -EBADMSG: too short, opcode not assigned, version, pad, or payload where there can be none.
int wf_packet_decode(const void *bth, size_t len, struct wf_pkt *out, struct iovec *payload_iov);

// Write BTH (with PadCnt for pkt->len) and extension headers. Returns their length, -EINVAL for an
// opcode that is not assigned, or -ENOSPC; WF_HDR_MAX is always room enough.
int wf_packet_encode_headers(const struct wf_pkt *pkt, uint8_t *buf, size_t room);

// Pad bytes that follow `len` bytes of payload.
static inline uint32_t wf_packet_pad(uint32_t len)
{
    return -len & 3;
}

#endif
