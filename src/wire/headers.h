// SPDX-License-Identifier: BSD-2-Clause
// Codecs of the BTH and of each extension header (IBA chapter 9). Lengths are checked by the
// cursor; whether the packet makes sense is packet.c's business.
#ifndef WF_WIRE_HEADERS_H
#define WF_WIRE_HEADERS_H

#include "base/bytes.h"
#include "wire/opcode.h"
#include "wire/packet.h"

#define WF_BTH_LEN  12u
#define WF_ICRC_LEN 4u
#define WF_HDR_MAX  64u // largest wf_opcode_info.hdr_len is 44 (XRC atomics)

// BTH fields that do not live in struct wf_pkt.
struct wf_bth_extra {
    uint8_t pad;  // PadCnt
    uint8_t tver; // transport header version, 0
};

void wf_get_bth(struct wf_reader *r, struct wf_pkt *pkt, struct wf_bth_extra *extra);
void wf_put_bth(struct wf_writer *w, const struct wf_pkt *pkt, const struct wf_bth_extra *extra);

// The extension headers that `flags` (WF_H_*) names, in wire order.
void wf_get_ext(struct wf_reader *r, uint32_t flags, struct wf_pkt *pkt);
void wf_put_ext(struct wf_writer *w, uint32_t flags, const struct wf_pkt *pkt);

#endif
